// SPDX-License-Identifier: BSD-3-Clause
// Prints rows as a table for people, or as one JSON object per line.
#pragma once

#include <benchmark/benchmark.h>

#include <string>
#include <vector>

namespace halocline::dtype::bench {

class Reporter final : public benchmark::BenchmarkReporter {
 public:
  /// `name_width`: characters of the longest name of a case.
  Reporter(bool json, int name_width);

  bool ReportContext(const Context&) override;
  void ReportRuns(const std::vector<Run>& runs) override;
  void Finalize() override;

  /// Returns the rows in which our packer and the loop by hand differ, or which have no plan of
  /// ours.
  int unverified() const { return unverified_; }

 private:
  void print_json(const Run& run, bool verified) const;
  void print_table_row(const Run& run, bool verified);
  void note_if_slower(const Run& run, const std::string& ours, const std::string& hand);

  bool json_;
  int name_width_;
  std::string mpi_;
  std::string group_;  // group of the last row of the table
  int rows_ = 0, unverified_ = 0;
  std::vector<std::string> slower_;  // rows in which the loop by hand is faster
};

}  // namespace halocline::dtype::bench
