// SPDX-License-Identifier: BSD-3-Clause
// Prints the tables, JSON and targets of the benchmarks with groups of rows.
#pragma once

#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "dtype/bench/rows.hpp"

namespace halocline::dtype::bench {

/// Prints rows as they come: a table on stdout, or JSON objects on stdout and the table on stderr.
/// A field target_NAME is the least value that the field NAME should reach.
class TableReport {
 public:
  /// `provenance`: names and values that every JSON object has.
  TableReport(bool json, const std::string& headline,
              std::vector<std::pair<std::string, std::string>> provenance);

  void begin(const std::string& group, const Table& table, int name_width);
  void add(const std::string& name, const Row& row);
  /// Prints the number of rows, and the targets that were met.
  void end() const;

  int unverified() const { return unverified_; }

 private:
  void add_target(const std::string& name, const std::string& field, double at_least,
                  const std::map<std::string, double>& fields);
  void print_json(const std::string& name, const Row& row) const;

  bool json_;
  std::FILE* table_file_;
  std::vector<std::pair<std::string, std::string>> provenance_;
  std::string group_;
  Table table_ = {"", {}};
  int name_width_ = 0, rows_ = 0, unverified_ = 0;
  std::vector<std::string> targets_;
};

}  // namespace halocline::dtype::bench
