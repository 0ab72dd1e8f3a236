// SPDX-License-Identifier: BSD-3-Clause
// Computes the steps of `run`: exchanges and a physics, on two sets of fields in turn.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "boundaries.hpp"
#include "methods.hpp"
#include "overlap.hpp"
#include "physics.hpp"
#include "session.hpp"
#include "support/mpi_check.hpp"
#include "support/region.hpp"
#include "verify.hpp"

namespace halocline::app {

/// Computes steps of the configuration's physics.
template <class T>
class Simulation {
 public:
  Simulation(const Config& config, const Domain& domain, const comm::ExchangePlan::Options& options,
             MPI_Comm comm)
      : config_(config),
        domain_(domain),
        info_(physics_of(config).info(config)),
        physics_(make_physics<T>(config, domain)),
        boundaries_(domain),
        comm_(comm),
        options_(options),
        sets_(make_sets()),
        plans_{plan_for(*sets_[0], options), plan_for(*sets_[1], options)},
        helper_(make_helper_plans(options)),
        points_(split_points(domain, info_.radius, plans_[0].own_at_start())) {}

  const PhysicsInfo& info() const { return info_; }
  Physics<T>& physics() { return *physics_; }
  const comm::ExchangePlan& plan() const { return plans_[0]; }
  /// Returns what this rank sends in a substep.
  comm::Traffic traffic() const {
    auto out = plans_[0].traffic();
    for (const auto& round : helper_) out += round.plan_of[0].traffic();
    return out;
  }
  /// Says in a record where the fields are. Collective.
  void describe_memory(Record& record) const { sets_[0]->describe_memory(record); }
  /// Returns the share of the fields in host memory that is on huge pages. Collective.
  std::optional<double> share_on_huge_pages() const { return sets_[0]->share_on_huge_pages(); }
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
    // In a wide halo, the last substep has read ghosts that were computed.
    if (substep_ > first_substep_ && place_in_block(substep_ - 1) == 0) {
      const auto& last = fields_before(substep_ - 1);
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

  /// Returns the fields as they are now. The ghosts may be old.
  const FieldSet<T>& fields() const { return fields_before(substep_); }
  /// Returns the substeps that are done. A step begins with every info().substeps-th substep.
  std::int64_t substeps() const { return substep_; }

  /// Sets the ghosts of fields() in all directions. Collective.
  void set_all_ghosts() {
    auto& plan = full_plans_[set_before(substep_)];
    if (!plan) plan.emplace(full_plan_for(*sets_[set_before(substep_)]));
    plan->start().finish();
    set_outer(fields(), substep_);
  }

  /// Sets the initial state. Then `read` may read another one into the fields in host memory.
  /// \param read returns an object with the members of RunFiles::Restart
  template <class Read>
  void begin(Read read) {
    // This call warms the kernel up, on arbitrary values. The exchanges were warmed up by their
    // verification.
    compute_all(0, sets_[0]->fields(), sets_[1]->fields());
    physics_->set_initial(sets_[0]->fields());
    boundaries_.keep(sets_[0]->fields());
    const auto start = read(sets_[0]->fields());
    substep_ = first_substep_ = start.step * info_.substeps;
    fields().to_device();
    // A fixed step may be too long for the fields of a checkpoint. The initial ones allowed it.
    if (!start.is_new && (start.changes || info_.checks_steps)) {
      set_all_ghosts();
      physics_->reload(config_, fields(), comm_);
    }
    if (!info_.chooses_steps || !start.is_new) return;
    plan_before(substep_).start().finish();
    set_outer(fields(), substep_);
    physics_->observe(-1, fields(), comm_);
  }

  /// Computes one step.
  void advance() {
    for (int stage = 0; stage < info_.substeps; ++stage) {
      if (config_.wide > 1) {
        advance_wide(substep_);
      } else if (!config_.overlap) {
        advance_plainly(substep_);
      } else {
        HALOCLINE_MPI(MPI_Barrier(comm_));
        // The order A B B A lets both kinds of substeps read both sets.
        if (substep_ % 4 == 0 || substep_ % 4 == 3)
          advance_overlapped(substep_);
        else
          advance_plainly(substep_);
      }
      ++substep_;
    }
  }

  /// Returns what was measured in all steps. Collective.
  Measured measured() const { return {max_over_ranks(phases_, comm_), gather_timelines(phases_)}; }

  /// Compares the fields with the exact solution, if one is known.
  std::optional<SolutionCheck> check() const {
    fields().from_device();
    return physics_->check(fields(), substep_, comm_);
  }
  /// Returns the hash of the fields in host memory, where check() has put them.
  std::uint64_t hash() const { return state_hash(domain_, fields(), comm_); }

 private:
  std::optional<std::string> verify(int number) {
    for (std::size_t i = 0; i < 2; ++i)
      if (auto problem = sets_[i]->verify(plans_[i], config_.shape.front(), {number, seed_++}))
        return problem;
    for (auto& round : helper_)
      for (std::size_t i = 0; i < 2; ++i)
        if (auto problem = verify_helper(round.domain, sets_[i]->fields(), round.plan_of[i]))
          return Verification{number, 0}.name() + " of a helping field: " + *problem;
    return std::nullopt;
  }

  std::optional<std::string> verify_helper(const Domain& domain, const FieldSet<T>& fields,
                                           comm::ExchangePlan& plan) {
    const auto exchange = [&] {
      fields.to_device();
      plan.start().finish();
      fields.from_device();
    };
    return check_exchange(domain, fields, config_.shape.front(), seed_++, exchange, comm_);
  }

  // Makes the helping field of a substep. Adds the times of its exchanges to `times`, and returns
  // their sum in seconds.
  double help(std::int64_t substep, comm::PhaseTimes& times) {
    if (!info_.helper) return 0;
    double seconds = 0;
    for (std::size_t round = 0; round < info_.helper->needs.size(); ++round) {
      const bool forward = round % 2 == 0;
      const auto to = set_before(forward ? substep + 1 : substep);
      physics_->help(static_cast<int>(round), sets_[1 - to]->fields(), sets_[to]->fields());
      const double start = MPI_Wtime();
      add(times, helper_[round].plan_of[to].start().finish());
      seconds += MPI_Wtime() - start;
      set_outer(sets_[to]->fields(), substep);
    }
    return seconds;
  }
  static void add(comm::PhaseTimes& sum, const comm::PhaseTimes& times) {
    const auto add_one = [](std::optional<double>& to, const std::optional<double>& from) {
      if (from) to = to.value_or(0) + *from;
    };
    add_one(sum.pack, times.pack);
    add_one(sum.transfer, times.transfer);
    add_one(sum.unpack, times.unpack);
  }

  // Returns the number of the set that a substep reads. The other set gets its results.
  std::size_t set_before(std::int64_t substep) const {
    return static_cast<std::size_t>((substep - first_substep_) % 2);
  }
  const FieldSet<T>& fields_before(std::int64_t substep) const {
    return sets_[set_before(substep)]->fields();
  }
  comm::ExchangePlan& plan_before(std::int64_t substep) { return plans_[set_before(substep)]; }

  // Computes all points of a substep.
  void compute_all(std::int64_t substep, const FieldSet<T>& in, const FieldSet<T>& out) const {
    const std::array whole{domain_.halo.interior()};
    for (int part = 0; part < physics_->parts(); ++part)
      physics_->start(substep, in, out, part, whole);
    physics_->finish(out);
  }

  // Exchanges all ghosts, then computes all points.
  void advance_plainly(std::int64_t substep) {
    const auto &in = fields_before(substep), &out = fields_before(substep + 1);
    const double start = MPI_Wtime();
    auto times = plan_before(substep).start().finish();
    double exchange = MPI_Wtime() - start;
    const ProfileRegion region("halocline: compute");
    set_outer(in, substep);
    physics_->observe(substep, in, comm_);
    exchange += help(substep, times);
    compute_all(substep, in, out);
    const double total = MPI_Wtime() - start;
    if (config_.overlap) {
      phases_.plain_exchange.push_back(exchange);
      phases_.plain_compute.push_back(total - exchange);
      phases_.plain_total.push_back(total);
    } else {
      append(phases_, times);
      phases_.compute.push_back(total - exchange);
      phases_.total.push_back(total);
    }
  }

  // Returns the number of a substep since the last exchange.
  std::int64_t place_in_block(std::int64_t substep) const {
    return (substep - first_substep_) % config_.wide;
  }

  // Exchanges before the first substep of a block. Computes all points that later substeps of the
  // block read: in each substep fewer of the ghosts.
  void advance_wide(std::int64_t substep) {
    const auto &in = fields_before(substep), &out = fields_before(substep + 1);
    const auto place = place_in_block(substep);
    const double start = MPI_Wtime();
    if (place == 0) append(phases_, plan_before(substep).start().finish());
    const double exchanged = MPI_Wtime();
    const ProfileRegion region("halocline: compute");
    set_outer(in, substep);
    physics_->observe(substep, in, comm_);
    const std::array box{with_ghosts((config_.wide - 1 - place) * info_.radius)};
    for (int part = 0; part < physics_->parts(); ++part)
      physics_->start(substep, in, out, part, box);
    physics_->finish(out);
    const double end = MPI_Wtime();
    if (place == 0) block_ = {};
    block_.compute += end - exchanged;
    block_.total += end - start;
    if (place + 1 < config_.wide) return;
    phases_.compute.push_back(block_.compute);
    phases_.total.push_back(block_.total);
  }

  // Returns the owned points and their ghosts up to `width`, which some other rank owns.
  comm::Box with_ghosts(std::int64_t width) const {
    auto box = domain_.halo.interior();
    for (std::size_t axis = 0; axis < 3; ++axis)
      for (const int side : {-1, 1}) {
        comm::Direction direction = comm::Direction::from_index(0).with(axis, side);
        for (std::size_t other = 0; other < 3; ++other)
          if (other != axis) direction = direction.with(other, 0);
        if (!domain_.decomposition.neighbor(domain_.rank, direction)) continue;
        box.extent[axis] += width;
        if (side < 0) box.begin[axis] -= width;
      }
    return box;
  }

  // Computes the points that need no ghosts while the ghosts travel, then the rest. A device goes
  // on with the interior in the background; the boundary waits for it at the end.
  void advance_overlapped(std::int64_t substep) {
    const auto &in = fields_before(substep), &out = fields_before(substep + 1);
    const double start = MPI_Wtime();
    auto pending = plan_before(substep).start();
    const double posted = MPI_Wtime();
    advance_interior(substep, in, out, pending);
    const double computed = MPI_Wtime();
    append(phases_, pending.finish());
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
    phases_.post.push_back(posted - start);
    phases_.interior.push_back(computed - posted);
    phases_.wait.push_back(exchanged - computed);
    phases_.boundary.push_back(end - exchanged);
    phases_.compute.push_back(computed - posted + end - exchanged);
    phases_.total.push_back(end - start);
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
    if (!domain_.decomposition.has_open_axis()) return;
    physics_->finish(fields);
    const ProfileRegion region("halocline: boundaries");
    fields.from_device();
    if (has_exact_side(domain_)) physics_->set_outer_ghosts(fields, substep);
    boundaries_.set(fields);
    fields.to_device();
  }
  // Makes a plan for the ghosts of all directions, with what MPI has everywhere.
  comm::ExchangePlan full_plan_for(const HaloFields<T>& set) const {
    RegionTypes types(domain_, config_.describe, mpi_type_of(config_.element),
                      set.fields().working_addresses());
    const auto jobs = comm::halo_jobs(domain_.decomposition, domain_.rank, domain_.halo,
                                      domain_.arrays(), std::ref(types));
    return {comm_, jobs, comm::Method(comm::Exchange::alltoallv), options_};
  }
  comm::ExchangePlan plan_for(const HaloFields<T>& set, comm::ExchangePlan::Options options) const {
    options.chunk_bytes = config_.chunk_bytes;
    options.windows = set.windows();
    options.message_of_tag = message_of_tag(config_, domain_);
    return {comm_, set.jobs(config_.shape.front()), method_to_run(config_), options};
  }

  // Exchanges the helping field after one round.
  struct HelperRound {
    Domain domain;                              // with the needs of this field alone
    std::array<comm::ExchangePlan, 2> plan_of;  // by the set that the round has written
  };
  std::vector<HelperRound> make_helper_plans(comm::ExchangePlan::Options options) const {
    std::vector<HelperRound> out;
    if (!info_.helper) return out;
    for (const auto& needs : info_.helper->needs) {
      const auto domain = with_needs_of(domain_, info_.helper->field, needs);
      const auto plan = [&](const HaloFields<T>& set) {
        RegionTypes types(domain, config_.describe, mpi_type_of(config_.element),
                          set.fields().working_addresses());
        const auto jobs =
            comm::halo_jobs(domain.decomposition, domain.rank, domain.halo, domain.arrays(),
                            std::ref(types), halo_messages(domain, config_.shape.front()));
        options.chunk_bytes = config_.chunk_bytes;
        options.windows = set.windows();
        options.message_of_tag = message_of_tag(config_, domain);
        return comm::ExchangePlan(comm_, jobs, method_to_run(config_), options);
      };
      out.push_back({domain, {plan(*sets_[0]), plan(*sets_[1])}});
    }
    return out;
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

  const Config& config_;
  const Domain& domain_;
  PhysicsInfo info_;
  std::unique_ptr<Physics<T>> physics_;
  Boundaries<T> boundaries_;
  MPI_Comm comm_;
  comm::ExchangePlan::Options options_;
  std::string why_not_shared_;
  const Sets sets_;
  std::array<comm::ExchangePlan, 2> plans_;
  std::array<std::optional<comm::ExchangePlan>, 2> full_plans_;  // made when they are needed
  std::vector<HelperRound> helper_;                              // by round
  SplitPoints points_;
  std::int64_t substep_ = 0, first_substep_ = 0;
  Phases phases_;
  // Sums up the substeps since the last exchange, in seconds.
  struct {
    double compute = 0, total = 0;
  } block_;
  std::uint64_t seed_ = static_cast<std::uint64_t>(config_.seed);
};

}  // namespace halocline::app
