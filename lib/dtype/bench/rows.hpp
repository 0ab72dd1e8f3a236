// SPDX-License-Identifier: BSD-3-Clause
// Describes the parts of a case and the rows of its result. Prints rows as a table for people or as
// JSON.
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

/// Describes `count` instances of a type, `offset` bytes into the memory of the case.
struct Part {
  TypeExprPtr type;
  std::int64_t count = 1;
  std::int64_t offset = 0;
};

/// Is a line of the result. Times are medians in nanoseconds per call, ratios are ratios of rates.
struct Row {
  bool verified = false;
  std::string note;
  std::vector<std::pair<std::string, double>> fields;
};

/// Flushes standard output.
/// \return `code`, or 3 after a line on standard error if not all of the output could be written
int end_output(const char* program, int code);

struct Column {
  const char *title, *field;
  int width, decimals;  // decimals: digits behind the point, for values below 100
};
struct Table {
  const char* what;
  std::span<const Column> columns;
};

/// Prints the title and the names of the columns. `name_width`: characters of the longest name of a
/// case.
void print_head(std::FILE* file, const std::string& group, const Table& table, int name_width);
/// Prints a row. field(name) returns NaN if the row has no such field.
void print_row(std::FILE* file, const std::string& name, const Table& table, int name_width,
               const std::function<double(const char*)>& field, bool verified,
               const std::string& note);

/// Returns a value for JSON: whole numbers without a fraction, all other numbers with the digits
/// that a measurement has. NaN becomes null.
nlohmann::json number(double value);

/// Returns the MPI library's own name, in one line without its build options.
std::string mpi_library();

}  // namespace halocline::dtype::bench
