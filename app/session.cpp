// SPDX-License-Identifier: BSD-3-Clause
#include "session.hpp"

#include <array>
#include <cstdio>

#include "comm/mpi/communicator.hpp"
#include "dtype/pack/host/host_packer.hpp"
#include "dtype/pack/kokkos/kokkos_packer.hpp"
#include "dtype/support/mpi_check.hpp"
#include "dtype/support/region.hpp"
#include "environment.hpp"
#include "table.hpp"
#include "verify.hpp"

namespace halocline::app {

namespace {

int count_nodes(MPI_Comm comm) {
  MPI_Comm node = MPI_COMM_NULL;
  HALOCLINE_MPI(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
  int leaders = rank_of(node) == 0 ? 1 : 0;
  HALOCLINE_MPI(MPI_Comm_free(&node));
  HALOCLINE_MPI(MPI_Allreduce(MPI_IN_PLACE, &leaders, 1, MPI_INT, MPI_SUM, comm));
  return leaders;
}

std::int64_t max_over_ranks(std::int64_t value, MPI_Comm comm) {
  HALOCLINE_MPI(MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT64_T, MPI_MAX, comm));
  return value;
}

}  // namespace

template <class T>
HaloFields<T>::HaloFields(const Config& config, const Domain& domain, MPI_Comm comm)
    : config_(config), domain_(domain), comm_(comm) {
  comm::collectively(comm, [&] {
    fields_.emplace(domain, device_resources(config));
    const auto jobs_at = [&](std::optional<RegionTypes>& types, std::vector<void*> addresses) {
      types.emplace(domain, config.describe, sizeof(T) == sizeof(double) ? MPI_DOUBLE : MPI_FLOAT,
                    std::move(addresses));
      return comm::halo_jobs(domain.decomposition, domain.rank, domain.halo, domain.arrays(),
                             std::ref(*types));
    };
    jobs_ = jobs_at(types_, fields_->working_addresses());
    host_jobs_ = jobs_at(host_types_, fields_->addresses());
    injector_.emplace(config.inject, host_jobs_, comm);
  });
}

template <class T>
std::optional<std::string> HaloFields<T>::verify(comm::ExchangePlan& plan) const {
  const Region region("halocline: verify");
  const auto exchange = [&] {
    injector_->around([&] {
      fields_->to_device();
      plan.start().finish();
      fields_->from_device();
    });
  };
  return check_exchange(domain_, *fields_, config_.seed, exchange, comm_);
}

template class HaloFields<double>;
template class HaloFields<float>;

bool admit(const Config& config, const Domain& domain, const MemoryEstimate& estimate,
           MPI_Comm comm) {
  const bool wanted = config.memory == Memory::device;
  if (!config.dry_run) comm::collectively(comm, [&] { device_resources(config); });
  const auto* const device = wanted ? dtype::current_device() : nullptr;
  const bool emulated = device != nullptr && device->properties().emulated;
  auto host = estimate.host;
  if (emulated) {
    host.fields += estimate.device.fields;
    host.messages += estimate.device.messages;
  }
  const auto node = tightest_node(host, comm);
  std::optional<SharedMemory> on_device;
  int real = device != nullptr && !emulated ? 1 : 0;  // on all ranks?
  HALOCLINE_MPI(MPI_Allreduce(MPI_IN_PLACE, &real, 1, MPI_INT, MPI_MIN, comm));
  if (real == 1) on_device = tightest_device(estimate.device, *device, comm);
  if (!config.dry_run) {
    require_memory(node, "node");
    if (on_device) require_memory(*on_device, "device");
    return true;
  }
  auto memory = describe_memory(host, node, "node");
  if (on_device) memory += "device " + describe_memory(estimate.device, *on_device, "device");
  if (emulated) memory += "the emulated device's memory is the host's, and counted there\n";
  if (wanted && device == nullptr)
    memory += "device memory per rank: " + format_bytes(estimate.device.fields) + " for fields, " +
              format_bytes(estimate.device.messages) + " for messages; no device here (" +
              dtype::why_no_device() + ")\n";
  on_root(comm, [&] { print(describe_dry_run(domain, memory)); });
  return false;
}

std::unique_ptr<dtype::Packer> make_packer(const Config& config) {
  if (config.packer == PackerKind::kokkos)
    return std::make_unique<dtype::KokkosPacker<HostSpace>>();
  return std::make_unique<dtype::HostPacker>();
}

Samples max_over_ranks(Samples samples, MPI_Comm comm) {
  HALOCLINE_MPI(MPI_Allreduce(MPI_IN_PLACE, samples.data(), static_cast<int>(samples.size()),
                              MPI_DOUBLE, MPI_MAX, comm));
  return samples;
}

void append(Phases& phases, const comm::PhaseTimes& times) {
  if (times.pack) phases.pack.push_back(*times.pack);
  if (times.transfer) phases.transfer.push_back(*times.transfer);
  if (times.unpack) phases.unpack.push_back(*times.unpack);
}

Phases max_over_ranks(Phases phases, MPI_Comm comm) {
  for (auto* samples :
       {&phases.pack, &phases.transfer, &phases.unpack, &phases.compute, &phases.total})
    *samples = max_over_ranks(std::move(*samples), comm);
  return phases;
}

Record make_record(const Config& config, const Domain& domain, const comm::ExchangePlan& plan,
                   MPI_Comm comm) {
  Record record;
  record.kind = to_string(config.subcommand);
  record.method = comm::name(plan.method());
  record.exchange = comm::name(plan.method().exchange);
  record.transfer = dtype::name(plan.transfer());
  record.memory = to_string(config.memory);
  record.ranks = domain.decomposition.size();
  record.nodes = count_nodes(comm);
  for (std::size_t axis = 0; axis < 3; ++axis) {
    record.decomposition[axis] = static_cast<int>(domain.decomposition.ranks()[axis]);
    record.local[axis] = domain.decomposition.owned(0).extent[axis];
    record.global[axis] = domain.decomposition.global()[axis];
  }
  record.fields = domain.fields;
  record.layout = to_string(domain.layout);
  record.describe = to_string(config.describe);
  record.packer = to_string(config.packer);
  record.stencil = to_string(config.stencil);
  record.periodic = config.periodic;
  record.radius = static_cast<int>(domain.halo.radius);
  record.element_bytes = domain.element_bytes;
  record.bytes_to_others = max_over_ranks(plan.traffic().bytes_to_others, comm);
  record.bytes_to_self = max_over_ranks(plan.traffic().bytes_to_self, comm);
  record.messages = max_over_ranks(plan.traffic().messages, comm);
  record.threads = HostSpace().concurrency();
  // All ranks describe their regions alike, so rank 0's reasons are everybody's unless it has no
  // job at all.
  for (const auto& reason : plan.packed_by_mpi())
    record.notes.push_back("packed by MPI: " + reason);
  return record;
}

namespace {

// Unless that is what everybody expects.
std::string where_fields_are(const Config& config) {
  if (config.memory == Memory::host) return "";
  const auto properties = dtype::current_device()->properties();
  return ", fields in the memory of " + properties.name +
         (properties.emulated ? " (times mean nothing)" : "");
}

}  // namespace

std::string headline(const Config& config, const Record& record) {
  const bool even = record.global == std::array{record.local[0] * record.decomposition[0],
                                                record.local[1] * record.decomposition[1],
                                                record.local[2] * record.decomposition[2]};
  const std::string most = even ? "" : "up to ";
  return format_count(record.ranks, "rank") + " (" + format_extent(record.decomposition) + ") on " +
         format_count(record.nodes, "node") + ", " + format_count(record.threads, "thread") +
         " each; " + most + format_extent(record.local) + " points per rank, " +
         format_count(record.fields, "field") + " of " + std::string(to_string(config.element)) +
         " (" + record.layout + "), radius " + std::to_string(record.radius) +
         ", regions described by " + std::string(to_string(config.describe)) +
         where_fields_are(config) + "\nper rank and exchange: " + most +
         format_bytes(record.bytes_to_others) + " to others in " +
         format_count(record.messages, "message") + ", " + most +
         format_bytes(record.bytes_to_self) + " to itself\n";
}

void say(const Config& config, MPI_Comm comm, const std::string& text) {
  on_root(comm, [&] {
    if (!config.quiet) print(text);
  });
}

void report_failure(MPI_Comm comm, const std::string& what) {
  if (rank_of(comm) == 0)
    std::fprintf(stderr, "halocline: verification failed (%s\n", what.c_str());
}

}  // namespace halocline::app
