// SPDX-License-Identifier: BSD-3-Clause
// `halocline run`: the mini-app.
#include <cstdio>

#include "advance.hpp"
#include "commands.hpp"
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
  Simulation(const Config& config, const Domain& domain, const dtype::Packer& packer, MPI_Comm comm)
      : config_(config),
        domain_(domain),
        spec_(stencil_spec(config.stencil)),
        comm_(comm),
        sets_{HaloFields<T>{config, domain, comm}, HaloFields<T>{config, domain, comm}},
        plans_{plan_for(sets_[0], packer), plan_for(sets_[1], packer)} {}

  const comm::ExchangePlan& plan() const { return plans_[0]; }

  std::optional<std::string> verify_exchange() {
    for (std::size_t i = 0; i < 2; ++i)
      if (auto problem = sets_[i].verify(plans_[i])) return problem;
    return std::nullopt;
  }

  /// Returns the phases of every substep, each the maximum over the ranks.
  Phases advance_all(Progress& progress) {
    set_wave(domain_, sets_[0].fields());
    Phases phases;
    for (std::int64_t substep = 0; substep < substeps(); ++substep) {
      const auto now = static_cast<std::size_t>(substep % 2), next = 1 - now;
      const double start = MPI_Wtime();
      append(phases, plans_[now].start().finish());
      const double exchanged = MPI_Wtime();
      set_outer_ghosts(domain_, sets_[now].fields(), spec_, diffusion_number(), substep);
      advance(domain_, spec_, diffusion_number(), sets_[now].fields(), sets_[next].fields());
      const double end = MPI_Wtime();
      phases.compute.push_back(end - exchanged);
      phases.total.push_back(end - start);
      progress.update(substep + 1);
    }
    return max_over_ranks(std::move(phases), comm_);
  }

  WaveCheck check() const {
    return check_wave(domain_, final_fields(), spec_, diffusion_number(), substeps(), comm_);
  }
  std::uint64_t hash() const { return state_hash(domain_, final_fields(), comm_); }
  std::int64_t substeps() const { return config_.steps * config_.stages; }

 private:
  comm::ExchangePlan plan_for(const HaloFields<T>& set, const dtype::Packer& packer) const {
    return {comm_, set.jobs(), config_.methods.front(), {.packer = &packer}};
  }
  double diffusion_number() const { return kDiffusionNumber / config_.stages; }
  const FieldSet<T>& final_fields() const {
    return sets_[static_cast<std::size_t>(substeps() % 2)].fields();
  }

  const Config& config_;
  const Domain& domain_;
  StencilSpec spec_;
  MPI_Comm comm_;
  HaloFields<T> sets_[2];
  comm::ExchangePlan plans_[2];
};

void print_phases(const Phases& phases, std::int64_t substeps) {
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
  std::printf("%sper substep (%lld of them), slowest rank\n", table.str().c_str(),
              static_cast<long long>(substeps));
}

template <class T>
int run_as(const Config& config, const Domain& domain, const ResultWriter* writer, MPI_Comm comm) {
  const auto packer = make_packer(config);
  Simulation<T> simulation(config, domain, *packer, comm);
  Record record = make_record(config, domain, simulation.plan(), comm);
  const bool root = domain.rank == 0;
  const bool talks = root && !config.quiet;
  if (talks) {
    std::printf("%s", headline(config, record).c_str());
    for (const auto& note : record.notes) std::printf("%s\n", note.c_str());
  }
  const auto finish = [&](int code) {
    on_root(comm, [&] { writer->write(record); });
    return code;
  };

  if (const auto problem = simulation.verify_exchange()) {
    if (root)
      std::fprintf(stderr,
                   "halocline: verification failed (method %s, exchange: %s): nothing was timed\n",
                   record.method.c_str(), problem->c_str());
    return finish(1);
  }
  Progress progress(talks, "run", simulation.substeps());
  record.phases = simulation.advance_all(progress);
  progress.finish();
  record.iterations = simulation.substeps();
  const auto wave = simulation.check();
  record.verified = wave.passed();
  record.state_hash = simulation.hash();
  if (talks) {
    print_phases(record.phases, record.iterations);
    std::printf(
        "verified: every ghost bitwise; wave off by %.2e of its amplitude after %lld steps "
        "(allowed %.0e)\n",
        wave.error, static_cast<long long>(config.steps), wave.tolerance);
  }
  if (root && !record.verified)
    std::fprintf(stderr,
                 "halocline: verification failed (method %s, wave off by %.2e of its amplitude, "
                 "allowed %.2e): do not use "
                 "these timings\n",
                 record.method.c_str(), wave.error, wave.tolerance);
  const int code = finish(record.verified ? 0 : 1);
  if (root)
    std::printf("state hash: 0x%016llx\n", static_cast<unsigned long long>(*record.state_hash));
  return code;
}

}  // namespace

int run(const Config& config, MPI_Comm comm) {
  return with_domain(config, comm, 2, 2,
                     [&](auto element, const Domain& domain, const ResultWriter* writer) {
                       return run_as<decltype(element)>(config, domain, writer, comm);
                     });
}

}  // namespace halocline::app
