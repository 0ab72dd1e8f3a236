// SPDX-License-Identifier: BSD-3-Clause
// Runs the benchmark programs, of the host and of devices: reads the command line, measures the
// wanted groups of benchmarks, and prints their rows as tables or as JSON. Google Benchmark runs
// each row as one benchmark of one iteration, which times itself by turns.hpp.
//
// Exit codes: 0, 1 if a row is not verified, 2 bad input, 3 the environment failed, 77 there is
// nothing to measure.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "dtype/bench/turns.hpp"
#include "dtype/type_expr.hpp"
#include "support/error.hpp"

namespace halocline::dtype::bench {

/// Describes `count` instances of a type, `offset` bytes into the memory of a benchmark.
struct Part {
  TypeExprPtr type;
  std::int64_t count = 1;
  std::int64_t offset = 0;
};

/// Holds the command line.
struct Options {
  std::vector<std::string> groups;  ///< each once, in the order given; by default all
  std::string only = "*";           ///< pattern of the names of benchmarks
  std::string model;                ///< file of a system model
  std::string mode;                 ///< one of Program::modes
  std::int64_t points = 256;        ///< edge of the block in groups halo and copy
  bool quick = false;               ///< few samples and no reruns
  bool smoke = false;               ///< tiny sizes and one sample: does it work, and verify?
  bool json = false;                ///< JSON on stdout, tables on stderr
  bool list = false;                ///< the names of the groups and nothing else
};

/// Returns how long to measure: by the options, and one round of single calls for --smoke.
Effort effort_of(const Options& options, const Effort& full, const Effort& quick);

/// Returns a size for the name of a benchmark, such as 4MiB.
std::string name_of_bytes(std::int64_t bytes);

/// Holds a benchmark: a row of the result.
struct Benchmark {
  std::string name;
  std::function<Row()> run;
};

struct Group {
  const char* name;
  const char* what;     ///< one line: what is measured, and what the columns mean
  const char* ours;     ///< field of the rows that is the time of Google Benchmark
  const char* columns;  ///< fields of the rows that the table shows
  std::function<std::vector<Benchmark>(const Options&)> make;
  /// Measured whatever --groups and --only say: rows of other groups refer to it.
  bool is_scale = false;
};

/// Holds the facts that all rows share.
struct Facts {
  std::string headline;
  std::vector<std::pair<std::string, std::string>> provenance;  ///< of every JSON object
};

/// Describes a benchmark program. All ranks measure; rank 0 prints.
struct Program {
  std::string what;  ///< purpose, for --help
  std::vector<Group> groups;
  std::function<Facts(const Options&)> start;  ///< called once, before any group is made
  std::function<std::string()> closing = {};   ///< returns a line to print below the tables
  std::vector<std::string> modes = {};         ///< values of --mode, the default first
  bool takes_model = false, takes_points = false;
};

/// Says why there is nothing to measure: exit code 77.
class NothingToMeasure : public Error {
  using Error::Error;
};

/// Runs the program `name` between MPI_Init and MPI_Finalize. Returns its exit code. `make` is
/// called, and its result destroyed, in between.
int bench_main(const char* name, int argc, char** argv, const std::function<Program()>& make);

}  // namespace halocline::dtype::bench
