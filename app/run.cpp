// SPDX-License-Identifier: BSD-3-Clause
// Runs `halocline run`: the mini-app.
#include <algorithm>
#include <cmath>

#include "commands.hpp"
#include "environment.hpp"
#include "methods.hpp"
#include "progress.hpp"
#include "run_files.hpp"
#include "session.hpp"
#include "simulation.hpp"
#include "table.hpp"

namespace halocline::app {

namespace {

std::string phase_table(const Phases& phases, int wide) {
  Table table({{"phase", Align::left}, {"median"}, {"p10"}, {"p90"}, {"min"}, {"max"}});
  for (const auto& [name, member] : kPhases) {
    const auto& samples = phases.*member;
    if (samples.empty()) continue;
    const auto s = statistics(samples);
    table.add_row({name, format_seconds(s.median), format_seconds(s.p10), format_seconds(s.p90),
                   format_seconds(s.min), format_seconds(s.max)});
  }
  const auto unit =
      wide == 1 ? std::string("substep") : "block of " + std::to_string(wide) + " substeps";
  return "\n" + table.str() + "times of a " + unit + " on the slowest rank; " +
         format_count(std::ssize(phases.total), wide == 1 ? "substep" : "block") +
         (phases.post.empty() ? " in all\n"
                              : " with overlap, " + std::to_string(phases.plain_total.size()) +
                                    " without (plain)\n");
}

std::string timeline_table(const std::vector<Timeline>& ranks) {
  constexpr std::size_t kMost = 16;
  if (ranks.empty() || ranks.size() > kMost) return "";
  Table table({{"rank"}, {"post"}, {"interior"}, {"wait"}, {"boundary"}});
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const auto& [post, interior, wait, boundary] = ranks[rank];
    table.add_row({std::to_string(rank), format_seconds(post), format_seconds(interior),
                   format_seconds(wait), format_seconds(boundary)});
  }
  return "\n" + table.str() + "each rank's own medians\n";
}

// Returns the median total relative to its lower bound: the larger of plain compute and plain
// exchange. Both are measured in the substeps in between.
std::optional<double> overlap_ratio(const Phases& phases) {
  if (phases.plain_total.empty()) return std::nullopt;
  return median(phases.total) /
         std::max(median(phases.plain_compute), median(phases.plain_exchange));
}

std::string overlap_summary(const Record& record) {
  if (!record.overlap) return "";
  if (!record.overlap_ratio)
    return "overlap: one substep alone cannot be compared with one without; use more steps\n";
  const auto& phases = record.phases;
  return "overlap: " + format_fixed(median(phases.plain_total) / median(phases.total), 2) +
         " x as fast as a substep without, " + format_fixed(1 / *record.overlap_ratio, 2) +
         " x as fast as max(compute, exchange) = max(" +
         format_seconds(median(phases.plain_compute)) + ", " +
         format_seconds(median(phases.plain_exchange)) + ")\n";
}

// Returns the reason why messages do not travel while the interior is computed, if there is one.
std::optional<std::string> why_no_overlap(const Config& config, const Record& record) {
  if (!config.overlap) return std::nullopt;
  std::optional<std::string> why_little;
  if (config.shape.front() == comm::HaloShape::axes)
    why_little =
        "little to overlap with: in shape axes, what goes along the first axis alone travels while "
        "the interior is computed";
  switch (comm::parse_method(record.chosen).exchange) {
    case comm::Exchange::p2p:
    case comm::Exchange::partitioned:
    case comm::Exchange::vendor_p2p:
      if (record.ranks == 1) return "nothing to overlap with: one rank sends no messages";
      return why_little;
    case comm::Exchange::shared:
      if (record.nodes > 1 || config.memory == Memory::device) return why_little;
      return "nothing to overlap with: on a node, shared copies all when the interior is done";
    default:
      return "nothing to overlap with: " + record.chosen +
             " calls a collective of MPI that blocks before the interior is begun";
  }
}

// Holds what has become of the steps of a run.
template <class T>
struct ComputedSteps {
  std::int64_t done = 0;  ///< since the first begin, before a restart included
  bool is_own = true;     ///< the run began with the initial state of its physics
  typename RunFiles<T>::End end;
};

// Computes steps until config.steps are done or the run has to end. Collective.
template <class T>
ComputedSteps<T> compute_steps(const Config& config, const Domain& domain,
                               Simulation<T>& simulation, RunFiles<T>& files) {
  ComputedSteps<T> out;
  simulation.begin([&](const FieldSet<T>& fields) {
    const auto start = files.restart(fields);
    out.done = start.step;
    out.is_own = !start.foreign;
    return start;
  });
  const auto first = out.done;
  const auto points = static_cast<double>(comm::Box{{}, domain.decomposition.global()}.points());
  Progress progress(domain.rank == 0 && !config.quiet, "run", config.steps - first);
  const double begin = MPI_Wtime();
  while (true) {
    const auto end = files.after_step(out.done, simulation.substeps(), simulation.fields(),
                                      [&] { simulation.set_all_ghosts(); });
    if (end) {
      out.end = *end;
      break;
    }
    if (out.done >= config.steps) break;
    simulation.advance();
    ++out.done;
    const auto clock = simulation.physics().clock(simulation.substeps());
    const double rate = points *
                        static_cast<double>((out.done - first) * simulation.info().substeps) /
                        (MPI_Wtime() - begin);
    progress.update(out.done - first, "step " + std::to_string(out.done) + " of " +
                                          std::to_string(config.steps) + ", t " +
                                          format_fixed(clock.time, 4) + ", dt " +
                                          format_scientific(clock.dt) + ", " +
                                          format_fixed(rate / 1e6, 1) + " M points/s");
  }
  progress.finish();
  return out;
}

template <class T>
int run_as(const Config& config, const Domain& domain, const CommandContext& context,
           MPI_Comm comm) {
  const auto packer = make_packer(config);
  Simulation<T> simulation(config, domain,
                           {.packer = packer.get(),
                            .gpu_aware_mpi = gpu_awareness_by_flag(config),
                            .model = context.model,
                            .nodes = &domain.nodes},
                           comm);
  RunFiles<T> files(config, domain, simulation.info(), simulation.physics(), comm);
  Record record = make_record(config, domain, simulation.plan(), config.shape.front(), comm);
  simulation.describe_memory(record);
  if (simulation.info().helper) {
    set_traffic(record, simulation.traffic(), domain, comm);
    record.predicted_s.reset();  // it holds for the first exchange of a substep alone
    record.notes.push_back(describe_helper(simulation.info()));
  }
  if (config.memory == Memory::device && domain.decomposition.has_open_axis())
    record.notes.push_back(
        "compute includes two copies of all fields, to the host and back: the ghosts beyond open "
        "boundaries are set there");
  if (const auto& why = simulation.why_not_shared(); !why.empty())
    record.notes.push_back("auto is p2p: " + why);
  record.wide = config.wide;
  record.overlap = config.overlap;
  if (config.overlap) record.progress = config.progress;
  for (const auto& note : simulation.info().notes) record.notes.push_back(note);
  if (const auto why = why_no_overlap(config, record)) record.notes.push_back(*why);
  std::string introduction = headline(config, domain, record) + "exchanged by " + record.method +
                             (record.chosen == record.exchange ? "" : " (" + record.chosen + ")") +
                             ", shape " + std::string(to_string(record.shape)) + ", transfer " +
                             record.transfer + "\n";
  for (const auto& note : record.notes) introduction += note + "\n";
  if (!files.folder().empty()) introduction += "writes to " + files.folder() + "\n";
  say(config, comm, introduction);
  const auto fail = [&](const std::string& what) {
    report_failure(comm, "method " + record.method + ", " + what);
    return 1;
  };

  if (const auto problem = simulation.verify_before_steps()) {
    run_on_root(comm, [&] { context.writer->write(record); });
    return fail(*problem + "): nothing was timed");
  }
  record.on_huge_pages = simulation.share_on_huge_pages();
  const auto steps = compute_steps(config, domain, simulation, files);
  auto measured = simulation.measured();
  record.phases = std::move(measured.phases);
  record.timeline = std::move(measured.timeline);
  record.iterations = std::ssize(record.phases.total);
  record.overlap_ratio = overlap_ratio(record.phases);
  if (!steps.end.problem.empty()) {
    run_on_root(comm, [&] { context.writer->write(record); });
    warn(comm, "halocline: " + steps.end.problem +
                   ": check the initial state and the sides, or use a shorter time step or more "
                   "viscosity\n");
    return 1;
  }
  auto solution = simulation.check();
  // The state of another program has no exact solution here, but its values must be finite, too.
  if (solution && !steps.is_own && std::isfinite(solution->error)) solution.reset();
  record.state_hash = simulation.hash();
  const auto problem = simulation.verify_after_steps();
  record.verified = (!solution || solution->passed()) && !problem;
  const auto steps_done = " after " + format_count(steps.done, "step");
  const auto deviation =
      !solution ? "every value is finite" + steps_done + "; no exact solution is known"
      : !std::isfinite(solution->error)
          ? "some value is not finite" + steps_done
          : "wave off by " + format_scientific(solution->error) + " of its amplitude" + steps_done +
                ", allowed " + format_scientific(solution->tolerance);
  if (!steps.end.why.empty())
    run_on_root(comm, [&] {  // --quiet does not hide that steps are missing
      print("stopped by " + steps.end.why + " after step " + std::to_string(steps.done) + " of " +
            std::to_string(config.steps) + "; go on with --restart " + files.folder() + "\n");
    });
  return write_and_show(
      comm, [&] { context.writer->write(record); },
      [&] {
        if (!record.verified)
          return fail(problem.value_or(deviation) + "): its times are not shown");
        say(config, comm,
            phase_table(record.phases, config.wide) + timeline_table(record.timeline) +
                overlap_summary(record) +
                wrapped(
                    "verified: every ghost bitwise, before the first step and after the last; " +
                        deviation,
                    columns_of_terminal()));
        run_on_root(comm, [&] { print("state hash: " + format_hash(*record.state_hash) + "\n"); });
        return 0;
      });
}

}  // namespace

namespace {

// Returns the configuration with the halo that config.wide wants.
Config with_wide_halo(Config config) {
  const auto info = physics_of(config).info(config);
  if (info.helper && (config.overlap || config.wide > 1))
    throw ConfigError(
        (config.overlap ? "overlap" : "wide") +
        std::string(" is not possible with a field that takes exchanges of its own (") +
        std::string(info.fields[static_cast<std::size_t>(info.helper->field)]) +
        "): leave one of them out");
  if (config.wide == 1) return config;
  if (config.overlap)
    throw ConfigError("wide and overlap exclude each other (wide " + std::to_string(config.wide) +
                      "): leave one of them out");
  if (info.reads_out && config.wide % info.substeps != 0)
    throw ConfigError("wide does not suit " + config.physics + " (wide " +
                      std::to_string(config.wide) + "): give a multiple of its " +
                      std::to_string(info.substeps) + " substeps");
  if (config.neighbors != Neighbors::automatic && config.neighbors != Neighbors::all)
    throw ConfigError("neighbors are too few for a wide halo (neighbors " +
                      std::string(to_string(config.neighbors)) +
                      "): leave neighbors out, it needs 26");
  const auto& extent = config.local ? *config.local : *config.global;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    auto& radius = config.radius[axis];
    if (radius > extent[axis] / config.wide)
      throw ConfigError("wide is too large (wide " + std::to_string(config.wide) + " of radius " +
                        std::to_string(radius) + ", " + (config.local ? "local" : "global") +
                        " has " + std::to_string(extent[axis]) + " points in " + "xyz"[axis] +
                        "): use a smaller wide or more points");
    radius *= config.wide;
  }
  return config;
}

}  // namespace

int run(const Config& given, MPI_Comm comm) {
  if (is_complex(given.element) && (writes_files(given) || !given.restart.empty()))
    throw ConfigError(
        "files of a run hold no complex fields (element " + std::string(to_string(given.element)) +
        "): use element = \"double\" or \"float\", or leave out all options of files");
  const auto config = with_wide_halo(given);
  if (config.dry_run) check_files(config, comm);
  return with_domain(config, find_nodes(config, comm), comm, 2,
                     {method_to_run(config), method_to_run(config)},
                     [&](auto element, const Domain& domain, const CommandContext& context) {
                       return run_as<decltype(element)>(config, domain, context, comm);
                     });
}

}  // namespace halocline::app
