// SPDX-License-Identifier: BSD-3-Clause
// What the benchmarks with groups of rows print: tables, JSON, targets.
#pragma once

#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "dtype/bench/rows.hpp"

namespace halocline::dtype::bench {

/// Prints rows as they come: as a table on stdout, or as JSON objects there and the table on
/// stderr. A field target_NAME says what the field NAME shall reach.
class TableReport {
 public:
  /// `provenance`: names and values that every JSON object has.
  TableReport(bool json, const std::string& headline,
              std::vector<std::pair<std::string, std::string>> provenance);

  void begin(const std::string& group, const Table& table, int name_width);
  void add(const std::string& name, const Row& row);
  /// How many rows there were, and which targets were met.
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
