// SPDX-License-Identifier: BSD-3-Clause
// What a case is made of and what comes of it: rows, as a table for people or as JSON.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "dtype/type_expr.hpp"

namespace halocline::dtype::bench {

/// `count` instances of a type, `offset` bytes into the memory of the case.
struct Part {
  TypeExprPtr type;
  std::int64_t count = 1;
  std::int64_t offset = 0;
};

/// A line of the result. Times are medians in nanoseconds per call, ratios are of rates.
struct Row {
  bool verified = false;
  std::string note;
  std::vector<std::pair<std::string, double>> fields;
};

/// Writes what is left for standard output.
/// \return `code`, or 3 after a line on standard error if not all of the output could be written
int end_output(const char* program, int code);

struct Column {
  const char *title, *field;
  int width, decimals;  // of values below 100
};
struct Table {
  const char* what;
  std::span<const Column> columns;
};

/// `name_width`: of the longest case.
void print_head(std::FILE* file, const std::string& group, const Table& table, int name_width);
/// `field` returns NaN for what the row does not have.
void print_row(std::FILE* file, const std::string& name, const Table& table, int name_width,
               const std::function<double(const char*)>& field, bool verified,
               const std::string& note);

/// Whole numbers without a fraction, others to the digits that a measurement has; null for NaN.
nlohmann::json number(double value);

/// What the MPI library calls itself, in one line without its build options.
std::string mpi_library();

}  // namespace halocline::dtype::bench
