// SPDX-License-Identifier: BSD-3-Clause
#include "rows.hpp"

#include <mpi.h>

#include <cctype>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>

#include "support/mpi_check.hpp"

namespace halocline::dtype::bench {

int end_output(const char* program, int code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  std::fprintf(stderr,
               "%s: stdout cannot be written: send it to a terminal, a pipe or a file on a disk "
               "with free space\n",
               program);
  return 3;
}

void print_head(std::FILE* file, const std::string& group, const Table& table, int name_width) {
  std::fprintf(file, "\n%s: %s\n%-*s", group.c_str(), table.what, name_width, "");
  for (const auto& column : table.columns) std::fprintf(file, " %*s", column.width, column.title);
  std::fprintf(file, "  verified\n");
}

void print_row(std::FILE* file, const std::string& name, const Table& table, int name_width,
               const std::function<double(const char*)>& field, bool verified,
               const std::string& note) {
  std::fprintf(file, "%-*s", name_width, name.c_str());
  for (const auto& column : table.columns) {
    const auto value = field(column.field);
    if (std::isnan(value))
      std::fprintf(file, " %*s", column.width, "-");
    else
      std::fprintf(file, " %*.*f", column.width, value < 100 ? column.decimals : 0, value);
  }
  std::fprintf(file, "  %s%s%s\n", verified ? "yes" : "NO", note.empty() ? "" : ": ", note.c_str());
}

nlohmann::json number(double value) {
  if (std::isnan(value)) return nullptr;
  if (value == std::round(value)) return static_cast<std::int64_t>(value);
  return std::round(value * 1e4) / 1e4;
}

std::string mpi_library() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  HALOCLINE_MPI(MPI_Get_library_version(text, &length));
  std::string line;
  for (const char c :
       std::string_view(text).substr(0, std::string_view(text).find_first_of(",\n"))) {
    const bool space = std::isspace(static_cast<unsigned char>(c)) != 0;
    if (!space) line += c;
    if (space && !line.empty() && line.back() != ' ') line += ' ';
  }
  return line;
}

}  // namespace halocline::dtype::bench
