// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/bench/program.hpp"

#include <benchmark/benchmark.h>
#include <fnmatch.h>
#include <mpi.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>
#include <map>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "support/machine.hpp"
#include "support/mpi_check.hpp"

namespace halocline::dtype::bench {

namespace {

// Gives Google Benchmark its flags, and refuses all others. Finds the mistakes for which Google
// Benchmark would end the process with a code that is not ours.
void initialize(char* program, std::vector<std::string> flags, bool writes) {
  const std::string out = "--benchmark_out=";
  std::vector<char*> all = {program};
  for (auto& flag : flags) {
    if (flag == "--benchmark_out_format=csv")
      throw ConfigError(flag + " cannot be used (rows differ in their fields): use json");
    if (writes && flag.starts_with(out) && !std::ofstream(flag.substr(out.size()), std::ios::app))
      throw EnvironmentError(flag + " cannot be written: name a file in a folder of yours");
    all.push_back(flag.data());
  }
  int count = static_cast<int>(all.size());
  all.push_back(nullptr);
  benchmark::Initialize(&count, all.data(), [] {
    throw ConfigError("a value of a flag --benchmark_... is not known: see --help");
  });
  if (count > 1) throw ConfigError(std::string(all[1]) + " is not known: see --help");
}

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
  app.allow_extras()->footer(
      "Flags of Google Benchmark:\n"
      "  --benchmark_filter=REGEX    benchmarks by GROUP/CASE\n"
      "  --benchmark_out=FILE        its own JSON, or --benchmark_out_format=console\n"
      "  --benchmark_...             and all others, except for those of the format on stdout");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    if (prints) std::fputs(app.help().c_str(), stdout);
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    throw ConfigError(std::string(error.what()) + ": see --help");
  }
  initialize(argv[0], app.remaining(), prints);
  for (const auto& name : wanted.empty() ? names : wanted)
    if (std::find(out.groups.begin(), out.groups.end(), name) == out.groups.end())
      out.groups.push_back(name);
  if (out.smoke) out.points = std::min<std::int64_t>(out.points, 12);
  return out;
}

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

struct Entry {
  const Group* group;
  Benchmark benchmark;
};

std::vector<Entry> wanted_benchmarks(const Program& program, const Options& options) {
  std::vector<Entry> out;
  std::size_t rows = 0, left_out = 0;
  for (const auto* group : wanted_groups(program, options))
    for (auto& one : group->make(options)) {
      const bool wanted = fnmatch(options.only.c_str(), one.name.c_str(), 0) == 0;
      if (!group->is_scale) ++(wanted ? rows : left_out);
      if (wanted || group->is_scale) out.push_back({group, std::move(one)});
    }
  if (rows == 0 && left_out > 0)
    throw ConfigError("no case is called '" + options.only +
                      "' (--only): run without it to see all");
  return out;
}

// Returns a value for JSON: whole numbers without a fraction, all other numbers with the digits
// that a measurement has. NaN becomes null.
nlohmann::json number(double value) {
  if (std::isnan(value)) return nullptr;
  if (value == std::round(value)) return static_cast<std::int64_t>(value);
  return std::round(value * 1e4) / 1e4;
}

// Prints rows as they come, and the remarks on them at the end. Fields of a row are the counters of
// a run of Google Benchmark, and the note is its label.
class Report final : public benchmark::BenchmarkReporter {
 public:
  Report(const Program& program, bool json, const std::vector<Entry>& all, Facts facts)
      : program_(program),
        json_(json),
        file_(json ? stderr : stdout),
        facts_(std::move(facts)),
        mpi_(mpi_library()) {
    for (const auto& [group, one] : all)
      width_ = std::max(width_, static_cast<int>(one.name.size()));
    mpi_ = mpi_.substr(0, mpi_.find(','));  // without its build options
    facts_.provenance.emplace_back("mpi", mpi_);
    facts_.provenance.emplace_back("compiler", __VERSION__);
    for (const auto& [key, value] : facts_.provenance) benchmark::AddCustomContext(key, value);
  }

  // Notes a row that is going to be reported. Google Benchmark may run a benchmark several times.
  void note(const std::string& name, const Row& row) {
    verified_.emplace(name, true).first->second &= row.verified;
    remarks_[name] = row.remarks;
  }
  int unverified() const {
    return static_cast<int>(std::count_if(verified_.begin(), verified_.end(),
                                          [](const auto& one) { return !one.second; }));
  }

  bool ReportContext(const Context&) override {
    std::fprintf(
        file_, "%s%s%s\n%s\n", facts_.headline.c_str(), facts_.headline.empty() ? "" : ", ",
        mpi_.c_str(),
        "_ns: nanoseconds of a call, median; A_vs_B, vs_B: A, or ours, is N x as fast as B");
    return true;
  }

  void ReportRuns(const std::vector<Run>& runs) override {
    for (const auto& run : runs) {
      const auto& name = run.run_name.function_name;
      const auto slash = name.find('/');
      if (group_ == nullptr || group_->name != name.substr(0, slash)) begin(name.substr(0, slash));
      auto of_case = name.substr(slash + 1);
      if (is_aggregate(run)) of_case += "_" + run.aggregate_name;
      if (json_) print_json(of_case, run);
      print_row(of_case, run);
    }
    std::fflush(nullptr);
  }

  void Finalize() override {
    const auto closing = program_.closing ? program_.closing() : "";
    if (!closing.empty()) std::fprintf(file_, "\n%s\n", closing.c_str());
    std::fprintf(file_, "\n%zu rows, %d not verified\n", verified_.size(), unverified());
    for (const auto& [name, remarks] : remarks_)
      for (const auto& remark : remarks)
        std::fprintf(file_, "  %s: %s\n", name.c_str(), remark.c_str());
  }

 private:
  static int width_of(const std::string& column) {
    return std::max(static_cast<int>(column.size()), 9);
  }
  // Returns NaN if there is no such field.
  static double field(const Run& run, const std::string& name) {
    const auto found = run.counters.find(name);
    return found == run.counters.end() ? std::nan("") : found->second.value;
  }
  static bool is_aggregate(const Run& run) { return run.run_type == Run::RT_Aggregate; }
  static bool is_verified(const Run& run) {
    return !is_aggregate(run) && field(run, "verified") == 1;
  }

  void begin(const std::string& name) {
    group_ = &*std::find_if(program_.groups.begin(), program_.groups.end(),
                            [&](const Group& group) { return group.name == name; });
    std::istringstream columns(group_->columns);
    columns_.assign(std::istream_iterator<std::string>(columns), {});
    std::fprintf(file_, "\n%s: %s\n%-*s", group_->name, group_->what, width_, "");
    for (const auto& column : columns_)
      std::fprintf(file_, " %*s", width_of(column), column.c_str());
    std::fprintf(file_, " verified\n");
  }

  void print_row(const std::string& name, const Run& run) const {
    std::fprintf(file_, "%-*s", width_, name.c_str());
    for (const auto& column : columns_) {
      const auto value = field(run, column), size = std::abs(value);
      const int digits = size >= 1000 || value == std::round(value) ? 0 : size < 0.1 ? 3 : 2;
      if (std::isnan(value))
        std::fprintf(file_, " %*s", width_of(column), "-");
      else
        std::fprintf(file_, " %*.*f", width_of(column), digits, value);
    }
    const char* verified = is_verified(run) ? "yes" : is_aggregate(run) ? "-" : "NO";
    std::fprintf(file_, " %s%s%s\n", verified, run.report_label.empty() ? "" : ": ",
                 run.report_label.c_str());
  }

  // Columns of the table come first.
  void print_json(const std::string& name, const Run& run) const {
    nlohmann::ordered_json out = {{"group", group_->name}, {"case", name}};
    for (const auto& column : columns_)
      if (run.counters.contains(column)) out[column] = number(field(run, column));
    for (const auto& [key, counter] : run.counters)
      if (!out.contains(key) && key != "verified") out[key] = number(counter.value);
    if (!is_aggregate(run)) out["verified"] = is_verified(run);
    out["note"] = run.report_label;
    for (const auto& [key, value] : facts_.provenance) out[key] = value;
    std::printf("%s\n", out.dump().c_str());
  }

  const Program& program_;
  bool json_;
  std::FILE* file_;  // of the tables
  int width_ = 0;    // of the names of cases
  Facts facts_;
  std::string mpi_;
  const Group* group_ = nullptr;  // of the row before
  std::vector<std::string> columns_;
  std::map<std::string, bool> verified_;  // by the name of a row
  std::map<std::string, std::vector<std::string>> remarks_;
};

// Returns the value of rank 0.
int from_rank_0(int value) {
  HALOCLINE_MPI(MPI_Bcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD));
  return value;
}

constexpr int kEnd = -1;  // in place of the number of a benchmark, or of rows

// Has Google Benchmark run the benchmarks, and tells the other ranks before each. A row travels to
// the report, and to --benchmark_out, as counters and label. Returns the number of rows that are
// not verified, kEnd if the filter left out all benchmarks.
int lead(const std::vector<Entry>& all, Report& report) {
  for (int i = 0; i < static_cast<int>(all.size()); ++i) {
    const auto& [group, one] = all[static_cast<std::size_t>(i)];
    const auto name = std::string(group->name) + "/" + one.name;
    benchmark::RegisterBenchmark(
        name.c_str(),
        [=, &report, &run = one.run, ours = group->ours](benchmark::State& state) {
          Row row;
          for (auto _ : state) {
            from_rank_0(i);
            row = run();
            const auto ns = row.value(ours);
            state.SetIterationTime(std::isnan(ns) ? 0 : ns * 1e-9);
          }
          for (const auto& [field, value] : row.fields) state.counters[field] = value;
          state.counters["verified"] = row.verified ? 1 : 0;
          state.SetLabel(row.note);
          report.note(name, row);
        })
        ->Iterations(1)
        ->UseManualTime();
  }
  if (all.empty()) report.Finalize();
  const bool none = !all.empty() && benchmark::RunSpecifiedBenchmarks(&report) == 0;
  from_rank_0(kEnd);
  return none ? kEnd : report.unverified();
}

// Returns the number of rows that are not verified.
int measure(const Program& program, const Options& options, int rank) {
  auto facts = program.start(options);
  const auto all = wanted_benchmarks(program, options);
  int unverified = 0;
  if (rank == 0) {
    Report report(program, options.json, all, std::move(facts));
    unverified = lead(all, report);
  } else {
    for (int i = from_rank_0(0); i != kEnd; i = from_rank_0(0))
      all[static_cast<std::size_t>(i)].benchmark.run();
  }
  unverified = from_rank_0(unverified);
  if (unverified == kEnd)
    throw ConfigError("no case is left (by --benchmark_filter): run without it to see all");
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
