// SPDX-License-Identifier: BSD-3-Clause
// `halocline run`: the mini-app.
#include "advance.hpp"
#include "commands.hpp"
#include "dtype/support/region.hpp"
#include "environment.hpp"
#include "progress.hpp"
#include "session.hpp"
#include "table.hpp"
#include "verify.hpp"

namespace halocline::app {

namespace {

/// The stencil applied config.steps times, on two sets of fields in turn.
template <class T>
class Simulation {
 public:
  Simulation(const Config& config, const Domain& domain, const comm::ExchangePlan::Options& options,
             MPI_Comm comm)
      : config_(config),
        domain_(domain),
        spec_(stencil_spec(config.stencil)),
        diffusion_number_(choose_diffusion_number(
            spec_, domain.fields, domain.decomposition.global(), substeps(), config.stages)),
        comm_(comm),
        sets_{HaloFields<T>{config, domain, comm}, HaloFields<T>{config, domain, comm}},
        plans_{plan_for(sets_[0], options), plan_for(sets_[1], options)} {}

  const comm::ExchangePlan& plan() const { return plans_[0]; }

  std::optional<std::string> verify_exchange() {
    for (std::size_t i = 0; i < 2; ++i)
      if (auto problem = sets_[i].verify(plans_[i])) return problem;
    return std::nullopt;
  }

  /// Returns the phases of every substep, each the maximum over the ranks.
  Phases advance_all(Progress& progress) {
    // The kernel's warm-up, on whatever is there; the exchanges' was their verification.
    advance(domain_, spec_, diffusion_number_, sets_[0].fields(), sets_[1].fields());
    set_wave(domain_, sets_[0].fields());
    sets_[0].fields().to_device();
    Phases phases;
    for (std::int64_t substep = 0; substep < substeps(); ++substep) {
      const auto now = static_cast<std::size_t>(substep % 2), next = 1 - now;
      const double start = MPI_Wtime();
      append(phases, plans_[now].start().finish());
      const double exchanged = MPI_Wtime();
      const Region region("halocline: compute");
      set_outer(sets_[now].fields(), substep);
      advance(domain_, spec_, diffusion_number_, sets_[now].fields(), sets_[next].fields());
      const double end = MPI_Wtime();
      phases.compute.push_back(end - exchanged);
      phases.total.push_back(end - start);
      progress.update(substep + 1);
    }
    return max_over_ranks(std::move(phases), comm_);
  }

  WaveCheck check() const {
    final_fields().from_device();
    return check_wave(domain_, final_fields(), spec_, diffusion_number_, substeps(), comm_);
  }
  std::uint64_t hash() const { return state_hash(domain_, final_fields(), comm_); }
  std::int64_t substeps() const { return config_.steps * config_.stages; }

 private:
  // On the host, like all values that are set: open boundaries cost a device two copies a substep.
  void set_outer(const FieldSet<T>& fields, std::int64_t substep) const {
    if (config_.periodic) return;
    const Region region("halocline: boundaries");
    fields.from_device();
    set_outer_ghosts(domain_, fields, spec_, diffusion_number_, substep);
    fields.to_device();
  }
  comm::ExchangePlan plan_for(const HaloFields<T>& set,
                              const comm::ExchangePlan::Options& options) const {
    return {comm_, set.jobs(), method_to_run(config_), options};
  }
  const FieldSet<T>& final_fields() const {
    return sets_[static_cast<std::size_t>(substeps() % 2)].fields();
  }

  const Config& config_;
  const Domain& domain_;
  StencilSpec spec_;
  double diffusion_number_;
  MPI_Comm comm_;
  HaloFields<T> sets_[2];
  comm::ExchangePlan plans_[2];
};

std::string phase_table(const Phases& phases, std::int64_t substeps) {
  Table table({{"phase", Align::left}, {"median"}, {"p10"}, {"p90"}, {"min"}, {"max"}});
  const auto row = [&](const char* name, const Samples& samples) {
    if (samples.empty()) return;
    const auto s = statistics(samples);
    table.add_row({name, format_seconds(s.median), format_seconds(s.p10), format_seconds(s.p90),
                   format_seconds(s.min), format_seconds(s.max)});
  };
  row("pack", phases.pack);
  row("transfer", phases.transfer);
  row("unpack", phases.unpack);
  row("compute", phases.compute);
  row("total", phases.total);
  return "\n" + table.str() + "times of a substep on the slowest rank; " +
         format_count(substeps, "substep") + " in all\n";
}

template <class T>
int run_as(const Config& config, const Domain& domain, const Setup& setup, MPI_Comm comm) {
  const auto packer = make_packer(config);
  Simulation<T> simulation(config, domain, {.packer = packer.get(), .model = setup.model}, comm);
  Record record = make_record(config, domain, simulation.plan(), comm);
  if (config.memory == Memory::device && !config.periodic)
    record.notes.push_back(
        "compute includes two copies of all fields, to the host and back: the ghosts beyond open "
        "boundaries are set there");
  std::string introduction = headline(config, record) + "exchanged by " + record.method +
                             ", transfer " + record.transfer + "\n";
  for (const auto& note : record.notes) introduction += note + "\n";
  say(config, comm, introduction);
  const auto fail = [&](const std::string& what) {
    report_failure(comm, "method " + record.method + ", " + what);
    return 1;
  };

  if (const auto problem = simulation.verify_exchange()) {
    on_root(comm, [&] { setup.writer->write(record); });
    return fail("exchange: " + *problem + "): nothing was timed");
  }
  Progress progress(domain.rank == 0 && !config.quiet, "run", simulation.substeps());
  record.phases = simulation.advance_all(progress);
  progress.finish();
  record.iterations = simulation.substeps();
  const auto wave = simulation.check();
  record.verified = wave.passed();
  record.state_hash = simulation.hash();
  on_root(comm, [&] { setup.writer->write(record); });
  say(config, comm, phase_table(record.phases, record.iterations));

  const auto deviation = "wave off by " + format_scientific(wave.error) +
                         " of its amplitude after " + format_count(config.steps, "step") +
                         ", allowed " + format_scientific(wave.tolerance);
  if (!record.verified) return fail(deviation + "): do not use these timings");
  say(config, comm, "verified: every ghost bitwise; " + deviation + "\n");
  on_root(comm, [&] { print("state hash: " + format_hash(*record.state_hash) + "\n"); });
  return 0;
}

}  // namespace

int run(const Config& config, MPI_Comm comm) {
  return with_domain(config, comm, 2, {method_to_run(config), method_to_run(config)},
                     [&](auto element, const Domain& domain, const Setup& setup) {
                       return run_as<decltype(element)>(config, domain, setup, comm);
                     });
}

}  // namespace halocline::app
