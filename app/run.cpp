// SPDX-License-Identifier: BSD-3-Clause
// Runs `halocline run`: the mini-app.
#include <algorithm>
#include <cmath>

#include "commands.hpp"
#include "environment.hpp"
#include "methods.hpp"
#include "overlap.hpp"
#include "physics.hpp"
#include "progress.hpp"
#include "session.hpp"
#include "support/mpi_check.hpp"
#include "support/region.hpp"
#include "table.hpp"
#include "verify.hpp"

namespace halocline::app {

namespace {

/// Computes config.steps steps of the physics, on two sets of fields in turn.
template <class T>
class Simulation {
 public:
  Simulation(const Config& config, const Domain& domain, const comm::ExchangePlan::Options& options,
             MPI_Comm comm)
      : config_(config),
        domain_(domain),
        info_(physics_of(config).info(config)),
        physics_(make_physics<T>(config, domain)),
        comm_(comm),
        sets_(make_sets()),
        plans_{plan_for(*sets_[0], options), plan_for(*sets_[1], options)},
        points_(split_points(domain, info_.radius, plans_[0].own_at_start())) {}

  const comm::ExchangePlan& plan() const { return plans_[0]; }
  std::string where_fields_are() const { return sets_[0]->storage(); }
  /// Returns the reason why the fields are not in shared memory; empty if there is none.
  const std::string& why_not_shared() const { return why_not_shared_; }

  std::optional<std::string> verify_before_steps() {
    for (int number = 1; number <= Verification::kBeforeTiming; ++number)
      if (auto problem = verify(number)) return problem;
    return std::nullopt;
  }
  /// Verifies the ghosts that the last substep has read, then one exchange more. Overwrites the
  /// fields.
  std::optional<std::string> verify_after_steps() {
    if (substeps() > 0) {
      const auto& last = fields_before(substeps() - 1);
      last.from_device();
      if (!ghosts_match(domain_, last, comm_))
        return "exchange of the last step: ghosts differ from the points that they mirror";
    }
    return verify(Verification::kBeforeTiming + 1);
  }

  /// Holds the measurements of all substeps.
  struct Measured {
    Phases phases;                   ///< each sample the maximum over the ranks
    std::vector<Timeline> timeline;  ///< by rank; empty without overlap
  };

  Measured advance_all(Progress& progress) {
    // This call warms the kernel up, on arbitrary values. The exchanges were warmed up by their
    // verification.
    compute_all(0, sets_[0]->fields(), sets_[1]->fields());
    physics_->set_initial(sets_[0]->fields());
    sets_[0]->fields().to_device();
    if (info_.chooses_steps) {
      plans_[0].start().finish();
      set_outer(sets_[0]->fields(), 0);
      physics_->observe(-1, sets_[0]->fields(), comm_);
    }
    Phases phases;
    for (std::int64_t substep = 0; substep < substeps(); ++substep) {
      if (!config_.overlap) {
        advance_plainly(substep, phases);
      } else {
        HALOCLINE_MPI(MPI_Barrier(comm_));
        // The order A B B A lets both kinds of substeps read both sets.
        if (substep % 4 == 0 || substep % 4 == 3)
          advance_overlapped(substep, phases);
        else
          advance_plainly(substep, phases);
      }
      progress.update(substep + 1);
    }
    auto timeline = gather_timelines(phases);
    return {max_over_ranks(std::move(phases), comm_), std::move(timeline)};
  }

  /// Compares the final state with the exact solution, if one is known.
  std::optional<SolutionCheck> check() const {
    final_fields().from_device();
    return physics_->check(final_fields(), substeps(), comm_);
  }
  std::uint64_t hash() const { return state_hash(domain_, final_fields(), comm_); }
  std::int64_t substeps() const { return config_.steps * info_.substeps; }

 private:
  std::optional<std::string> verify(int number) {
    for (std::size_t i = 0; i < 2; ++i)
      if (auto problem = sets_[i]->verify(plans_[i], config_.shape.front(), {number, seed_++}))
        return problem;
    return std::nullopt;
  }

  const FieldSet<T>& fields_before(std::int64_t substep) const {
    return sets_[static_cast<std::size_t>(substep % 2)]->fields();
  }
  comm::ExchangePlan& plan_before(std::int64_t substep) {
    return plans_[static_cast<std::size_t>(substep % 2)];
  }

  // Computes all points of a substep.
  void compute_all(std::int64_t substep, const FieldSet<T>& in, const FieldSet<T>& out) const {
    const std::array whole{domain_.halo.interior()};
    for (int part = 0; part < physics_->parts(); ++part)
      physics_->start(substep, in, out, part, whole);
    physics_->finish(out);
  }

  // Exchanges all ghosts, then computes all points.
  void advance_plainly(std::int64_t substep, Phases& phases) {
    const auto &in = fields_before(substep), &out = fields_before(substep + 1);
    const double start = MPI_Wtime();
    const auto times = plan_before(substep).start().finish();
    const double exchanged = MPI_Wtime();
    const ProfileRegion region("halocline: compute");
    set_outer(in, substep);
    physics_->observe(substep, in, comm_);
    compute_all(substep, in, out);
    const double end = MPI_Wtime();
    if (config_.overlap) {
      phases.plain_exchange.push_back(exchanged - start);
      phases.plain_compute.push_back(end - exchanged);
      phases.plain_total.push_back(end - start);
    } else {
      append(phases, times);
      phases.compute.push_back(end - exchanged);
      phases.total.push_back(end - start);
    }
  }

  // Computes the points that need no ghosts while the ghosts travel, then the rest. A device goes
  // on with the interior in the background; the boundary waits for it at the end.
  void advance_overlapped(std::int64_t substep, Phases& phases) {
    const auto &in = fields_before(substep), &out = fields_before(substep + 1);
    const double start = MPI_Wtime();
    auto pending = plan_before(substep).start();
    const double posted = MPI_Wtime();
    advance_interior(substep, in, out, pending);
    const double computed = MPI_Wtime();
    append(phases, pending.finish());
    const double exchanged = MPI_Wtime();
    {
      const ProfileRegion region("halocline: boundary");
      set_outer(in, substep);
      physics_->observe(substep, in, comm_);
      for (int part = 0; part < physics_->parts(); ++part)
        physics_->start(substep, in, out, part, points_.boundary);
      physics_->finish(out);
    }
    const double end = MPI_Wtime();
    phases.post.push_back(posted - start);
    phases.interior.push_back(computed - posted);
    phases.wait.push_back(exchanged - computed);
    phases.boundary.push_back(end - exchanged);
    phases.compute.push_back(computed - posted + end - exchanged);
    phases.total.push_back(end - start);
  }

  // Computes the interior. On a device it only starts, so the host can wait for the exchange at
  // once.
  void advance_interior(std::int64_t substep, const FieldSet<T>& in, const FieldSet<T>& out,
                        comm::PendingExchange& pending) const {
    const ProfileRegion region("halocline: interior");
    const auto calls = in.on_device() ? 0 : config_.progress;
    const auto chunks = cut_planes(points_.interior, physics_->parts(), calls + 1);
    for (std::size_t chunk = 0; chunk < chunks.size(); ++chunk) {
      if (chunk > 0) pending.progress();
      for (const auto& [part, box] : chunks[chunk])
        physics_->start(substep, in, out, part, {&box, 1});
    }
  }

  // Gathers the timelines of all ranks on every rank. Collective.
  std::vector<Timeline> gather_timelines(const Phases& own) const {
    if (own.post.empty()) return {};
    const Timeline mine{median(own.post), median(own.interior), median(own.wait),
                        median(own.boundary)};
    constexpr int kNumbers = sizeof(Timeline) / sizeof(double);
    std::vector<Timeline> all(static_cast<std::size_t>(domain_.decomposition.size()));
    HALOCLINE_MPI(
        MPI_Allgather(&mine, kNumbers, MPI_DOUBLE, all.data(), kNumbers, MPI_DOUBLE, comm_));
    return all;
  }

  // Sets the ghosts beyond open boundaries on the host, like all values that are set. On a device
  // this costs two copies per substep.
  void set_outer(const FieldSet<T>& fields, std::int64_t substep) const {
    if (config_.periodic) return;
    physics_->finish(fields);
    const ProfileRegion region("halocline: boundaries");
    fields.from_device();
    physics_->set_outer_ghosts(fields, substep);
    fields.to_device();
  }
  comm::ExchangePlan plan_for(const HaloFields<T>& set, comm::ExchangePlan::Options options) const {
    options.chunk_bytes = config_.chunk_bytes;
    options.windows = set.windows();
    options.message_of_tag = message_of_tag(config_, domain_);
    return {comm_, set.jobs(config_.shape.front()), method_to_run(config_), options};
  }

  using Sets = std::array<std::unique_ptr<const HaloFields<T>>, 2>;

  // Makes both sets with the storage that the method wants, or both without it.
  Sets make_sets() {
    const auto storage = storage_for(method_to_run(config_), config_.memory);
    Sets sets;
    const auto make = [&](Storage where) {
      for (auto& set : sets)
        set = std::make_unique<const HaloFields<T>>(config_, domain_, where, comm_);
    };
    try {
      make(storage);
      return sets;
    } catch (const MpiError&) {
      throw;  // this rank's own error
    } catch (const EnvironmentError& error) {
      if (storage != Storage::shared_window_if_possible) throw;
      why_not_shared_ = error.what();
    }
    sets = {};
    make(Storage::ordinary);
    return sets;
  }
  const FieldSet<T>& final_fields() const { return fields_before(substeps()); }

  const Config& config_;
  const Domain& domain_;
  PhysicsInfo info_;
  std::unique_ptr<Physics<T>> physics_;
  MPI_Comm comm_;
  std::string why_not_shared_;
  const Sets sets_;
  comm::ExchangePlan plans_[2];
  SplitPoints points_;
  std::uint64_t seed_ = static_cast<std::uint64_t>(config_.seed);
};

std::string phase_table(const Phases& phases) {
  Table table({{"phase", Align::left}, {"median"}, {"p10"}, {"p90"}, {"min"}, {"max"}});
  for (const auto& [name, member] : kPhases) {
    const auto& samples = phases.*member;
    if (samples.empty()) continue;
    const auto s = statistics(samples);
    table.add_row({name, format_seconds(s.median), format_seconds(s.p10), format_seconds(s.p90),
                   format_seconds(s.min), format_seconds(s.max)});
  }
  return "\n" + table.str() + "times of a substep on the slowest rank; " +
         format_count(std::ssize(phases.total), "substep") +
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
  Record record = make_record(config, domain, simulation.plan(), config.shape.front(),
                              simulation.where_fields_are(), comm);
  if (config.memory == Memory::device && !config.periodic)
    record.notes.push_back(
        "compute includes two copies of all fields, to the host and back: the ghosts beyond open "
        "boundaries are set there");
  if (const auto& why = simulation.why_not_shared(); !why.empty())
    record.notes.push_back("auto is p2p: " + why);
  record.overlap = config.overlap;
  if (config.overlap) record.progress = config.progress;
  if (const auto why = why_no_overlap(config, record)) record.notes.push_back(*why);
  std::string introduction = headline(config, domain, record) + "exchanged by " + record.method +
                             (record.chosen == record.exchange ? "" : " (" + record.chosen + ")") +
                             ", shape " + std::string(to_string(record.shape)) + ", transfer " +
                             record.transfer + "\n";
  for (const auto& note : record.notes) introduction += note + "\n";
  say(config, comm, introduction);
  const auto fail = [&](const std::string& what) {
    report_failure(comm, "method " + record.method + ", " + what);
    return 1;
  };

  if (const auto problem = simulation.verify_before_steps()) {
    run_on_root(comm, [&] { context.writer->write(record); });
    return fail(*problem + "): nothing was timed");
  }
  Progress progress(domain.rank == 0 && !config.quiet, "run", simulation.substeps());
  auto measured = simulation.advance_all(progress);
  progress.finish();
  record.phases = std::move(measured.phases);
  record.timeline = std::move(measured.timeline);
  record.iterations = std::ssize(record.phases.total);
  record.overlap_ratio = overlap_ratio(record.phases);
  const auto solution = simulation.check();
  record.state_hash = simulation.hash();
  const auto problem = simulation.verify_after_steps();
  record.verified = (!solution || solution->passed()) && !problem;
  const auto steps_done = " after " + format_count(config.steps, "step");
  const auto deviation =
      !solution ? "every value is finite" + steps_done + "; no exact solution is known"
      : !std::isfinite(solution->error)
          ? "some value is not finite" + steps_done
          : "wave off by " + format_scientific(solution->error) + " of its amplitude" + steps_done +
                ", allowed " + format_scientific(solution->tolerance);
  return write_and_show(
      comm, [&] { context.writer->write(record); },
      [&] {
        if (!record.verified)
          return fail(problem.value_or(deviation) + "): its times are not shown");
        say(config, comm,
            phase_table(record.phases) + timeline_table(record.timeline) + overlap_summary(record) +
                wrapped(
                    "verified: every ghost bitwise, before the first step and after the last; " +
                        deviation,
                    columns_of_terminal()));
        run_on_root(comm, [&] { print("state hash: " + format_hash(*record.state_hash) + "\n"); });
        return 0;
      });
}

}  // namespace

int run(const Config& config, MPI_Comm comm) {
  return with_domain(config, find_nodes(config, comm), comm, 2,
                     {method_to_run(config), method_to_run(config)},
                     [&](auto element, const Domain& domain, const CommandContext& context) {
                       return run_as<decltype(element)>(config, domain, context, comm);
                     });
}

}  // namespace halocline::app
