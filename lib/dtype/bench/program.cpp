// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/bench/program.hpp"

#include <fnmatch.h>
#include <mpi.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <iterator>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "support/machine.hpp"
#include "support/mpi_check.hpp"

namespace halocline::dtype::bench {

namespace {

// Returns nullopt if the command line asks for help, which rank 0 then prints.
std::optional<Options> parse(int argc, char** argv, const Program& program, bool prints) {
  Options out;
  CLI::App app(program.what);
  std::vector<std::string> names, wanted;
  for (const auto& group : program.groups) names.emplace_back(group.name);
  app.add_option("--groups,--group", wanted, "what is measured; all if not given")
      ->delimiter(',')
      ->check(CLI::IsMember(names));
  app.add_option("--only", out.only, "cases by name, a pattern such as 'pack-*'");
  if (!program.modes.empty()) {
    out.mode = program.modes.front();
    app.add_option("--mode", out.mode, "how ours packs (default: " + out.mode + ")")
        ->check(CLI::IsMember(program.modes));
  }
  if (program.takes_points)
    app.add_option("--points", out.points,
                   "edge of the block in groups halo and copy (default: 256)")
        ->check(CLI::Range(std::int64_t{3}, std::int64_t{1} << 20));
  if (program.takes_model)
    app.add_option("--model", out.model, "what `halocline calibrate` has written: chooses");
  app.add_flag("--quick", out.quick, "few samples");
  app.add_flag("--smoke", out.smoke, "tiny sizes: does everything work, and verify?");
  app.add_flag("--json", out.json, "one JSON object per row on stdout, the table on stderr");
  app.add_flag("--list", out.list, "list the groups");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    if (prints) std::fputs(app.help().c_str(), stdout);
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    throw ConfigError(std::string(error.what()) + ": see --help");
  }
  for (const auto& name : wanted.empty() ? names : wanted)
    if (std::find(out.groups.begin(), out.groups.end(), name) == out.groups.end())
      out.groups.push_back(name);
  if (out.smoke) out.points = std::min<std::int64_t>(out.points, 12);
  return out;
}

// Returns a value for JSON: whole numbers without a fraction, all other numbers with the digits
// that a measurement has. NaN becomes null.
nlohmann::json number(double value) {
  if (std::isnan(value)) return nullptr;
  if (value == std::round(value)) return static_cast<std::int64_t>(value);
  return std::round(value * 1e4) / 1e4;
}

// Prints rows as they come, and the remarks on them at the end.
class Report {
 public:
  Report(bool json, Facts facts)
      : json_(json), file_(json ? stderr : stdout), facts_(std::move(facts)) {
    auto mpi = mpi_library();
    mpi = mpi.substr(0, mpi.find(','));  // without its build options
    facts_.provenance.emplace_back("mpi", mpi);
    facts_.provenance.emplace_back("compiler", __VERSION__);
    if (!facts_.headline.empty()) facts_.headline += ", ";
    std::fprintf(
        file_, "%s%s\n%s\n", facts_.headline.c_str(), mpi.c_str(),
        "_ns: nanoseconds of a call, median; A_vs_B, vs_B: A, or ours, is N x as fast as B");
  }

  void begin(const Group& group, const std::vector<Benchmark>& all) {
    group_ = &group;
    width_ = 0;
    for (const auto& one : all) width_ = std::max(width_, static_cast<int>(one.name.size()));
    std::istringstream columns(group.columns);
    columns_.assign(std::istream_iterator<std::string>(columns), {});
    std::fprintf(file_, "\n%s: %s\n%-*s", group.name, group.what, width_, "");
    for (const auto& column : columns_)
      std::fprintf(file_, " %*s", width_of(column), column.c_str());
    std::fprintf(file_, " verified\n");
  }

  void add(const std::string& name, const Row& row) {
    ++rows_;
    if (!row.verified) ++unverified_;
    for (const auto& remark : row.remarks)
      remarks_.push_back(std::string(group_->name) + "/" + name + ": " + remark);
    if (json_) print_json(name, row);
    print_row(name, row);
    std::fflush(nullptr);
  }

  void end(const std::string& closing) const {
    if (!closing.empty()) std::fprintf(file_, "\n%s\n", closing.c_str());
    std::fprintf(file_, "\n%d rows, %d not verified\n", rows_, unverified_);
    for (const auto& remark : remarks_) std::fprintf(file_, "  %s\n", remark.c_str());
  }

  int unverified() const { return unverified_; }

 private:
  static int width_of(const std::string& column) {
    return std::max(static_cast<int>(column.size()), 9);
  }

  void print_row(const std::string& name, const Row& row) const {
    std::fprintf(file_, "%-*s", width_, name.c_str());
    for (const auto& column : columns_) {
      const auto value = row.value(column), size = std::abs(value);
      const int digits = size >= 1000 || value == std::round(value) ? 0 : size < 0.1 ? 3 : 2;
      if (std::isnan(value))
        std::fprintf(file_, " %*s", width_of(column), "-");
      else
        std::fprintf(file_, " %*.*f", width_of(column), digits, value);
    }
    std::fprintf(file_, " %s%s%s\n", row.verified ? "yes" : "NO", row.note.empty() ? "" : ": ",
                 row.note.c_str());
  }

  void print_json(const std::string& name, const Row& row) const {
    nlohmann::ordered_json out = {{"group", group_->name}, {"case", name}};
    for (const auto& [field, value] : row.fields) out[field] = number(value);
    out["verified"] = row.verified;
    out["note"] = row.note;
    for (const auto& [key, value] : facts_.provenance) out[key] = value;
    std::printf("%s\n", out.dump().c_str());
  }

  bool json_;
  std::FILE* file_;  // of the tables
  Facts facts_;
  const Group* group_ = nullptr;
  int width_ = 0, rows_ = 0, unverified_ = 0;
  std::vector<std::string> columns_, remarks_;
};

// Returns the groups to measure, scales first.
std::vector<const Group*> wanted_groups(const Program& program, const Options& options) {
  std::vector<const Group*> out;
  for (const auto& group : program.groups)
    if (group.is_scale) out.push_back(&group);
  for (const auto& name : options.groups)
    for (const auto& group : program.groups)
      if (group.name == name && !group.is_scale) out.push_back(&group);
  return out;
}

// Returns the number of rows that are not verified.
int measure(const Program& program, const Options& options, int rank) {
  auto facts = program.start(options);
  std::optional<Report> report;
  if (rank == 0) report.emplace(options.json, std::move(facts));
  std::size_t rows = 0, left_out = 0;
  for (const auto* group : wanted_groups(program, options)) {
    auto all = group->make(options);
    if (!group->is_scale) {
      left_out += std::erase_if(all, [&](const Benchmark& one) {
        return fnmatch(options.only.c_str(), one.name.c_str(), 0) != 0;
      });
      rows += all.size();
    }
    if (all.empty()) continue;
    if (report) report->begin(*group, all);
    for (const auto& one : all) {
      const auto row = one.run();
      if (report) report->add(one.name, row);
    }
  }
  if (rows == 0 && left_out > 0)
    throw ConfigError("no case is called '" + options.only +
                      "' (--only): run without it to see all");
  int unverified = 0;
  if (report) {
    report->end(program.closing ? program.closing() : "");
    unverified = report->unverified();
  }
  HALOCLINE_MPI(MPI_Bcast(&unverified, 1, MPI_INT, 0, MPI_COMM_WORLD));
  return unverified;
}

int run(int argc, char** argv, const Program& program, int rank) {
  const auto options = parse(argc, argv, program, rank == 0);
  if (!options) return 0;
  if (!options->list) return measure(program, *options, rank) > 0 ? 1 : 0;
  if (rank == 0)
    for (const auto& group : program.groups) std::printf("%-11s %s\n", group.name, group.what);
  return 0;
}

// Returns `code`, or 3 after a line on standard error if not all of the output could be written.
int end_output(const char* name, int code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  std::fprintf(stderr,
               "%s: stdout cannot be written: send it to a terminal, a pipe or a file on a disk "
               "with free space\n",
               name);
  return 3;
}

}  // namespace

std::string name_of_bytes(std::int64_t bytes) {
  for (const auto& [unit, suffix] : {std::pair(1 << 20, "MiB"), std::pair(1 << 10, "KiB")})
    if (bytes % unit == 0) return std::to_string(bytes / unit) + suffix;
  return std::to_string(bytes) + "B";
}

Effort effort_of(const Options& options, const Effort& full, const Effort& quick) {
  if (options.smoke) return {0, 0, 1};
  return options.quick ? quick : full;
}

int bench_main(const char* name, int argc, char** argv, const std::function<Program()>& make) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 0, code = 3;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const auto say = [&](const char* text) { std::fprintf(stderr, "%s: %s\n", name, text); };
  // All ranks meet the first two errors; others wait for a rank that meets another one.
  const auto fail = [&](const char* text) {
    say(text);
    if (ranks > 1) MPI_Abort(MPI_COMM_WORLD, code);
  };
  try {
    code = run(argc, argv, make(), rank);
  } catch (const ConfigError& error) {
    if (rank == 0) say(error.what());
    code = 2;
  } catch (const NothingToMeasure& error) {
    if (rank == 0) say(error.what());
    code = 77;
  } catch (const std::bad_alloc&) {
    fail("out of memory (for the arrays of a case): name smaller cases with --only");
  } catch (const std::exception& error) {
    fail(error.what());
  }
  MPI_Finalize();
  return end_output(name, code);
}

}  // namespace halocline::dtype::bench
