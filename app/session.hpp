// SPDX-License-Identifier: BSD-3-Clause
// Shares code between run and compare: fields with their exchange jobs, and the frame of a result
// record.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/exchange/exchange_plan.hpp"
#include "comm/node/shared_window.hpp"
#include "describe.hpp"
#include "domain.hpp"
#include "dtype/pack/packer.hpp"
#include "environment.hpp"
#include "fields.hpp"
#include "halo_messages.hpp"
#include "inject.hpp"
#include "methods.hpp"
#include "model.hpp"
#include "record.hpp"
#include "verify.hpp"

namespace halocline::app {

/// Holds a set of fields and the jobs that exchange its halos, in each of shapes_of(config). The
/// jobs' datatypes are made as the configuration says. Neither copied nor moved, since jobs refer
/// to fields and types.
template <class T>
class HaloFields {
 public:
  /// Allocates the fields and describes their jobs. Collective. The destruction of fields in a
  /// shared window is collective, too.
  /// \throws ConfigError or EnvironmentError, the same on all ranks.
  HaloFields(const Config& config, const Domain& domain, Storage storage, MPI_Comm comm);
  HaloFields(const HaloFields&) = delete;
  HaloFields& operator=(const HaloFields&) = delete;

  const FieldSet<T>& fields() const { return *fields_; }
  const std::vector<comm::ExchangeJob>& jobs(comm::HaloShape shape) const {
    return jobs_.at(shape).working;
  }
  /// Returns the shared window of the fields for a plan; empty if they are not in a window.
  std::vector<const comm::SharedWindow*> windows() const;
  /// Returns the storage in words: "private", "shared-window", "device".
  std::string storage() const;
  /// Says in a record where the fields are. Collective.
  void describe_memory(Record& record) const;
  /// Returns the share of the fields in host memory that is on huge pages, on the rank with the
  /// least; nullopt if a system does not say. The fields have to be set. Collective.
  std::optional<double> share_on_huge_pages() const;

  /// Runs one exchange of jobs(shape) on poisoned contents that depend on their place, and compares
  /// everything; see check_exchange(). Also makes MPI's progress calls, as with overlap. Applies
  /// config.inject. Collective.
  /// \return nullopt, or a problem; its text begins with the name of the exchange.
  std::optional<std::string> verify(comm::ExchangePlan& plan, comm::HaloShape shape,
                                    const Verification& verification) const;

 private:
  struct Jobs {
    std::vector<comm::ExchangeJob> working;
    std::vector<comm::ExchangeJob> on_host;  // the same regions in host memory, where faults are
                                             // injected
    FaultInjector injector;

    Jobs(std::vector<comm::ExchangeJob> all, std::vector<comm::ExchangeJob> of_host,
         const Config& config, MPI_Comm comm)
        : working(std::move(all)),
          on_host(std::move(of_host)),
          injector(config.inject, config.inject_from, on_host, comm) {}
    Jobs(const Jobs&) = delete;  // the injector refers to the jobs
    Jobs& operator=(const Jobs&) = delete;
  };

  const Config& config_;
  const Domain& domain_;
  MPI_Comm comm_;
  std::optional<comm::SharedWindow> window_;
  std::optional<FieldSet<T>> fields_;
  std::optional<RegionTypes> types_, host_types_;
  std::map<comm::HaloShape, Jobs> jobs_;
};

/// Makes the packer that config.packer names.
std::unique_ptr<dtype::Packer> make_packer(const Config& config);

/// Appends the times of one exchange. A phase that the method does not report stays empty.
void append(Phases& phases, const comm::PhaseTimes& times);

/// Returns max_over_ranks() of every phase. Collective.
Phases max_over_ranks(Phases phases, MPI_Comm comm);

/// Returns the storage that a method needs for its fields, unless they are on a device.
Storage storage_for(const comm::Method& method, Memory memory);

/// Describes the exchange of a domain, without its method and its messages.
HaloRecord describe_halo(const Config& config, const Domain& domain, comm::HaloShape shape);

/// Makes a record with everything but the memory of the fields, phases, verdict and ratio.
/// Collective.
Record make_record(const Config& config, const Domain& domain, const comm::ExchangePlan& plan,
                   comm::HaloShape shape, MPI_Comm comm);

/// Sets what is sent in an exchange, from what this rank sends. Collective.
void set_traffic(Record& record, const comm::Traffic& traffic, const Domain& domain, MPI_Comm comm);

/// Returns the lines above a table: "2 ranks (1 x 1 x 2) on 1 node, ..." and the bytes that each
/// rank sends. With several nodes they also tell the bytes that each node sends.
std::string headline(const Config& config, const Domain& domain, const Record& record);

/// Tells if the command goes on. With --dry-run it prints the answer and returns false. Otherwise
/// it refuses a device that does not exist and fields that do not fit into memory. Collective.
bool admit(const Config& config, const Domain& domain, const MemoryEstimate& estimate,
           MPI_Comm comm);

/// Holds what outlives all exchanges of a command.
struct CommandContext {
  const ResultWriter<Record>* writer;  ///< nullptr on all ranks but 0
  const dtype::SystemModel* model;     ///< nullptr without a model
};

/// Runs the frame of run and compare. Lays out the domain over `nodes`, loads the system model,
/// asks admit(), and opens the result files. Returns body(T(), domain, context). `copies` and
/// `methods` are parameters of estimate_memory(). Collective.
template <class Body>
int with_domain(const Config& config, const comm::NodeHierarchy& nodes, MPI_Comm comm, int copies,
                const std::vector<comm::Method>& methods, Body body) {
  auto domain = make_domain(config, nodes);
  auto provenance = gather_provenance(config, comm);
  const auto model = load_model(config, methods, provenance, comm);
  const auto estimate = estimate_memory(config, domain, copies, methods);
  domain.beside_windows = estimate.host.fields + estimate.addresses - estimate.windows;
  if (!admit(config, domain, estimate, comm)) return 0;
  std::optional<ResultWriter<Record>> writer;
  run_on_root(comm, [&] { writer.emplace(config, provenance); });
  say(config, comm, describe_model(provenance));
  if (const auto why = comm::why_no_huge_pages(); config.pages == comm::Pages::huge && !why.empty())
    say(config, comm, "fields on small pages: " + why + "\n");
  if (provenance.interposed)
    say(config, comm,
        "another library stands in front of MPI: the vendor's methods are not the vendor's "
        "alone\n");
  const CommandContext context{writer ? &*writer : nullptr, model ? &*model : nullptr};
  return is_double(config.element) ? body(double{}, domain, context)
                                   : body(float{}, domain, context);
}

}  // namespace halocline::app
