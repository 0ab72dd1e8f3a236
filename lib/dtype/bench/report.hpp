// SPDX-License-Identifier: BSD-3-Clause
// Rows as a table for people, or as one JSON object per line.
#pragma once

#include <benchmark/benchmark.h>

#include <string>
#include <vector>

namespace halocline::dtype::bench {

class Reporter final : public benchmark::BenchmarkReporter {
 public:
  explicit Reporter(bool json);

  bool ReportContext(const Context& context) override;
  void ReportRuns(const std::vector<Run>& runs) override;
  void Finalize() override;

  /// Rows that were measured by a wrong packer, and rows without a plan of ours.
  int unverified() const { return unverified_; }
  int unsupported() const { return unsupported_; }

 private:
  void print_json(const Run& run, bool verified) const;
  void print_table_row(const Run& run, bool verified);

  bool json_;
  std::string mpi_;
  std::size_t name_width_ = 0;
  std::string group_;  // of the last row of the table
  int rows_ = 0, unverified_ = 0, unsupported_ = 0;
  std::vector<std::string> slower_;  // rows below the hand loop
};

}  // namespace halocline::dtype::bench
