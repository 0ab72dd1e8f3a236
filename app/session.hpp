// SPDX-License-Identifier: BSD-3-Clause
// What run and compare have in common: fields with their exchange jobs, and the frame of a result
// record.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/exchange/exchange_plan.hpp"
#include "describe.hpp"
#include "domain.hpp"
#include "dtype/pack/packer.hpp"
#include "environment.hpp"
#include "fields.hpp"
#include "inject.hpp"
#include "methods.hpp"
#include "model.hpp"
#include "record.hpp"

namespace halocline::app {

/// A set of fields and the jobs that exchange its halos, described as the configuration says.
/// Neither copied nor moved, since jobs refer to fields and types.
template <class T>
class HaloFields {
 public:
  /// Throws ConfigError or EnvironmentError, the same on all ranks. Collective.
  HaloFields(const Config& config, const Domain& domain, MPI_Comm comm);
  HaloFields(const HaloFields&) = delete;
  HaloFields& operator=(const HaloFields&) = delete;

  const FieldSet<T>& fields() const { return *fields_; }
  const std::vector<comm::ExchangeJob>& jobs() const { return jobs_; }

  /// Runs one exchange on poisoned, position-dependent contents and compares everything; see
  /// check_exchange(). Applies config.inject. Collective.
  std::optional<std::string> verify(comm::ExchangePlan& plan) const;

 private:
  const Config& config_;
  const Domain& domain_;
  MPI_Comm comm_;
  std::optional<FieldSet<T>> fields_;
  std::optional<RegionTypes> types_;
  std::vector<comm::ExchangeJob> jobs_;
  // The same regions in the host's memory, where faults are injected.
  std::optional<RegionTypes> host_types_;
  std::vector<comm::ExchangeJob> host_jobs_;
  std::optional<FaultInjector> injector_;
};

/// The packer that config.packer names.
std::unique_ptr<dtype::Packer> make_packer(const Config& config);

/// Times of one phase, in seconds, one per iteration.
using Samples = std::vector<double>;

/// The largest over the ranks of each sample. Collective; all ranks pass equally many.
Samples max_over_ranks(Samples samples, MPI_Comm comm);

/// Appends what a method reported of one exchange; phases that it has not stay empty.
void append(Phases& phases, const comm::PhaseTimes& times);

/// max_over_ranks() of every phase. Collective.
Phases max_over_ranks(Phases phases, MPI_Comm comm);

/// A record with everything but phases, verdict and ratio. Collective.
Record make_record(const Config& config, const Domain& domain, const comm::ExchangePlan& plan,
                   MPI_Comm comm);

/// "2 ranks (1 x 1 x 2) on 1 node, ..." and what each rank sends: the lines above a table.
std::string headline(const Config& config, const Record& record);

/// Prints `text` on rank 0 unless --quiet. Throws EnvironmentError on all ranks if that fails.
/// Collective.
void say(const Config& config, MPI_Comm comm, const std::string& text);

/// One line on rank 0's stderr: "halocline: verification failed (" and `what`. Collective.
void report_failure(MPI_Comm comm, const std::string& what);

/// Answers --dry-run, and returns false; else refuses a device that is not there and what does not
/// fit into memory. Collective.
bool admit(const Config& config, const Domain& domain, const MemoryEstimate& estimate,
           MPI_Comm comm);

/// What outlives all exchanges of a command.
struct Setup {
  const ResultWriter* writer;       ///< nullptr but on rank 0
  const dtype::SystemModel* model;  ///< nullptr: none
};

/// The frame of run and compare: lays out the domain, loads the system model, asks admit(), opens
/// the result files, and returns body(T(), domain, setup). `copies` and `methods` as in
/// estimate_memory(). Collective.
template <class Body>
int with_domain(const Config& config, MPI_Comm comm, int copies,
                const std::vector<comm::Method>& methods, Body body) {
  const auto domain = make_domain(config, rank_of(comm), size_of(comm));
  auto provenance = gather_provenance(config, comm);
  const auto model = load_model(config, provenance, comm);
  if (!admit(config, domain, estimate_memory(domain, copies, methods, config.memory), comm))
    return 0;
  std::optional<ResultWriter> writer;
  on_root(comm, [&] { writer.emplace(config, provenance); });
  say(config, comm, describe_model(provenance));
  const Setup setup{writer ? &*writer : nullptr, model ? &*model : nullptr};
  return config.element == Element::float64 ? body(double{}, domain, setup)
                                            : body(float{}, domain, setup);
}

}  // namespace halocline::app
