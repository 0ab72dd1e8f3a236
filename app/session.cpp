// SPDX-License-Identifier: BSD-3-Clause
#include "session.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <numeric>

#include "comm/mpi/communicator.hpp"
#include "dtype/pack/host/host_packer.hpp"
#include "environment.hpp"
#include "kokkos_runtime.hpp"
#include "support/contract.hpp"
#include "support/machine.hpp"
#include "support/mpi_check.hpp"
#include "support/region.hpp"
#include "table.hpp"

namespace halocline::app {

namespace {

std::int64_t max_over_ranks(std::int64_t value, MPI_Comm comm) {
  HALOCLINE_MPI(MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT64_T, MPI_MAX, comm));
  return value;
}

// Returns the sum of `value` over the ranks of each node. Collective.
std::vector<std::int64_t> by_node(std::int64_t value, const comm::NodeHierarchy& nodes,
                                  MPI_Comm comm) {
  std::vector<std::int64_t> out(static_cast<std::size_t>(nodes.nodes()));
  out[static_cast<std::size_t>(nodes.node_of(nodes.rank()))] = value;
  HALOCLINE_MPI(MPI_Allreduce(MPI_IN_PLACE, out.data(), nodes.nodes(), MPI_INT64_T, MPI_SUM, comm));
  return out;
}

comm::SharedWindow::Options options_of_windows(const Domain& domain) {
  return {.pages = domain.pages, .beside = static_cast<std::int64_t>(domain.beside_windows)};
}

}  // namespace

template <class T>
HaloFields<T>::HaloFields(const Config& config, const Domain& domain, Storage storage,
                          MPI_Comm comm)
    : config_(config), domain_(domain), comm_(comm) {
  HALOCLINE_EXPECT(is_double(config.element) == (sizeof(T) == sizeof(double)));
  if (storage != Storage::ordinary)
    window_.emplace(comm, FieldSet<T>::bytes(domain), options_of_windows(domain));
  try {
    comm::collectively(comm, [&] {
      fields_.emplace(domain, device_resources(config), window_ ? window_->data() : nullptr);
      const auto element = mpi_type_of(config.element);
      types_.emplace(domain, config.describe, element, fields_->working_addresses());
      host_types_.emplace(domain, config.describe, element, fields_->addresses());
      for (const auto shape : shapes_of(config)) {
        const auto jobs = [&](RegionTypes& types) {
          return comm::halo_jobs(domain.decomposition, domain.rank, domain.halo, domain.arrays(),
                                 std::ref(types), halo_messages(domain, shape));
        };
        jobs_.try_emplace(shape, jobs(*types_), jobs(*host_types_), config, comm);
      }
    });
  } catch (const MpiError&) {
    throw;  // this rank's own error
  } catch (const Error&) {
    window_.reset();  // collective: all ranks are still here
    throw;
  }
}

template <class T>
std::vector<const comm::SharedWindow*> HaloFields<T>::windows() const {
  if (!window_) return {};
  return {&*window_};
}

template <class T>
std::string HaloFields<T>::storage() const {
  return window_ ? "shared-window" : config_.memory == Memory::device ? "device" : "private";
}

template <class T>
void HaloFields<T>::describe_memory(Record& record) const {
  record.storage = storage();
  if (!window_) return;
  // A window of MPI on one node alone counts for all.
  int by_mpi = window_->kind() == comm::SharedWindow::Kind::mpi_window ? 1 : 0;
  HALOCLINE_MPI(MPI_Allreduce(MPI_IN_PLACE, &by_mpi, 1, MPI_INT, MPI_MAX, comm_));
  record.shared_memory =
      by_mpi == 1 ? comm::SharedWindow::Kind::mpi_window : comm::SharedWindow::Kind::memory_file;
  if (!window_->why_mpi().empty())
    record.notes.push_back("shared memory is a window of MPI: " + window_->why_mpi());
  else if (by_mpi == 1)
    record.notes.push_back("shared memory of another node is a window of MPI");
}

template <class T>
std::optional<double> HaloFields<T>::share_on_huge_pages() const {
  double share = fields_->share_on_huge_pages().value_or(-1);
  HALOCLINE_MPI(MPI_Allreduce(MPI_IN_PLACE, &share, 1, MPI_DOUBLE, MPI_MIN, comm_));
  if (share < 0) return std::nullopt;
  return share;
}

template <class T>
std::optional<std::string> HaloFields<T>::verify(comm::ExchangePlan& plan, comm::HaloShape shape,
                                                 const Verification& verification) const {
  const ProfileRegion region("halocline: verify");
  const auto exchange = [&] {
    jobs_.at(shape).injector.around(verification.number, [&] {
      fields_->to_device();
      auto pending = plan.start();
      for (std::int64_t i = 0; config_.overlap && i < config_.progress; ++i) pending.progress();
      pending.finish();
      fields_->from_device();
    });
  };
  auto problem = check_exchange(domain_, *fields_, shape, verification.seed, exchange, comm_);
  if (problem) *problem = verification.name() + ": " + *problem;
  return problem;
}

template class HaloFields<double>;
template class HaloFields<float>;

namespace {

std::string describe_addresses(const SharedMemory& addresses) {
  return "needs " + format_bytes(addresses.needed) + ", and ulimit -v leaves " +
         format_bytes(addresses.available);
}

// Says how much disk the checkpoints and snapshots of a run take, if it writes some.
std::string describe_disk(const Config& config, const Domain& domain) {
  const auto points = comm::Box{{}, domain.decomposition.global()}.points();
  const auto field = static_cast<double>(points) * domain.value_bytes();
  const int chosen = static_cast<int>(std::ssize(config.snapshot_fields));
  const auto snapshot = field * (chosen > 0 ? chosen : domain.fields);
  std::string out;
  if (config.checkpoint_every > 0)
    out = "disk: " + format_bytes(field * domain.fields) +
          " a checkpoint, of which two are kept, and a third one while it is written\n";
  if (config.snapshot_every > 0) {
    const auto snapshots = config.steps / config.snapshot_every + 1;
    out += "disk: " + format_bytes(snapshot) + " a snapshot, " +
           format_bytes(snapshot * static_cast<double>(snapshots)) + " for " +
           format_count(snapshots, "snapshot") + " from step 0 on\n";
  }
  return out;
}

}  // namespace

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
  int real = device != nullptr && !emulated ? 1 : 0;  // 1 if this is so on all ranks
  HALOCLINE_MPI(MPI_Allreduce(MPI_IN_PLACE, &real, 1, MPI_INT, MPI_MIN, comm));
  if (real == 1) on_device = tightest_device(estimate.device, *device, comm);
  const auto addresses =
      tightest_addresses(host.fields + estimate.addresses + kAddressesOfMpi, comm);
  if (!config.dry_run) {
    constexpr auto* kLess = "a smaller local or global size, fewer fields";
    require_memory(node, "node", kLess);
    if (on_device) require_memory(*on_device, "device", kLess);
    if (!addresses.fits())
      throw ConfigError("not enough addresses (a rank " + describe_addresses(addresses) +
                        "): raise ulimit -v, or use " + kLess);
    return true;
  }
  auto memory = describe_memory(host, node, "node");
  if (on_device) memory += "device " + describe_memory(estimate.device, *on_device, "device");
  if (!addresses.fits())
    memory += "addresses: a rank " + describe_addresses(addresses) +
              ": TOO MUCH, a real run would refuse\n";
  if (estimate.windows > 0 && node.fits() && addresses.fits()) {
    const auto shared = tightest_windows(estimate.windows, comm);
    if (!shared.fits())
      memory += "shared memory: a node needs " + format_bytes(shared.needed) + " of " +
                format_bytes(shared.available) +
                " in /dev/shm: TOO MUCH, shared is not possible, and auto means p2p\n";
    const auto mapped = tightest_addresses(
        static_cast<double>(comm::SharedWindow::addresses(
            comm, static_cast<std::int64_t>(estimate.windows), options_of_windows(domain))),
        comm);
    if (!mapped.fits())
      memory += "addresses: with shared memory, a rank " + describe_addresses(mapped) +
                ": TOO MUCH, shared is not possible, and auto means p2p\n";
  }
  if (emulated) memory += "the emulated device's memory is the host's, and counted there\n";
  if (wanted && device == nullptr)
    memory += "device memory per rank: " + format_bytes(estimate.device.fields) + " for fields, " +
              format_bytes(estimate.device.messages) + " for messages; no device here (" +
              dtype::why_no_device() + ")\n";
  memory += describe_disk(config, domain);
  run_on_root(comm, [&] { print(describe_dry_run(config, domain, memory)); });
  return false;
}

std::unique_ptr<dtype::Packer> make_packer(const Config& config) {
  if (config.packer == PackerKind::kokkos) return make_kokkos_packer();
  return std::make_unique<dtype::HostPacker>();
}

void append(Phases& phases, const comm::PhaseTimes& times) {
  if (times.pack) phases.pack.push_back(*times.pack);
  if (times.transfer) phases.transfer.push_back(*times.transfer);
  if (times.unpack) phases.unpack.push_back(*times.unpack);
}

Phases max_over_ranks(Phases phases, MPI_Comm comm) {
  for (const auto& [name, member] : kPhases)
    phases.*member = max_over_ranks(std::move(phases.*member), comm);
  return phases;
}

Storage storage_for(const comm::Method& method, Memory memory) {
  if (memory == Memory::device) return Storage::ordinary;
  if (method.exchange == comm::Exchange::automatic) return Storage::shared_window_if_possible;
  return method.exchange == comm::Exchange::shared ? Storage::shared_window : Storage::ordinary;
}

HaloRecord describe_halo(const Config& config, const Domain& domain, comm::HaloShape shape) {
  return {.memory = config.memory,
          .ranks = domain.nodes.ranks(),
          .nodes = domain.nodes.nodes(),
          .decomposition = domain.decomposition.ranks(),
          .reorder = config.reorder,
          .local = domain.decomposition.largest_extent(),
          .global = domain.decomposition.global(),
          .fields = domain.fields,
          .layout = domain.layout,
          .pad = domain.pad,
          .radius = config.radius,
          .periodic = config.periodic,
          .shape = shape,
          .needs_by_field = domain.needs_differ(),
          .neighbors = domain.needed().size(),
          .element_bytes = domain.value_bytes()};
}

void set_traffic(Record& record, const comm::Traffic& traffic, const Domain& domain,
                 MPI_Comm comm) {
  record.bytes_to_others = max_over_ranks(traffic.bytes_to_others, comm);
  record.bytes_to_self = max_over_ranks(traffic.bytes_to_self, comm);
  record.messages = max_over_ranks(traffic.messages, comm);
  const auto off_node = traffic.bytes_off_node;
  const auto of_nodes = by_node(off_node, domain.nodes, comm);
  record.bytes_off_node = max_over_ranks(off_node, comm);
  record.bytes_off_node_of_node = *std::max_element(of_nodes.begin(), of_nodes.end());
  record.bytes_off_node_total = std::accumulate(of_nodes.begin(), of_nodes.end(), std::int64_t{0});
  record.messages_off_node = max_over_ranks(traffic.messages_off_node, comm);
}

Record make_record(const Config& config, const Domain& domain, const comm::ExchangePlan& plan,
                   comm::HaloShape shape, MPI_Comm comm) {
  Record record;
  static_cast<HaloRecord&>(record) = describe_halo(config, domain, shape);
  record.kind = config.subcommand;
  record.method = comm::name(plan.method());
  record.exchange = comm::name(plan.method().exchange);
  record.chosen = comm::name(plan.chosen());
  record.transfer = dtype::name(plan.transfer());
  record.predicted_s = plan.predicted_seconds();
  record.nodes_emulated = domain.nodes.emulated();
  record.pages = config.pages;
  record.describe = config.describe;
  record.packer = config.packer;
  record.physics = config.physics;
  record.stencil = config.stencil;
  record.boundary = config.boundary;
  record.is_complex = is_complex(config.element);
  record.messages_per = messages_of(config, plan.method());
  set_traffic(record, plan.traffic(), domain, comm);
  record.threads = kokkos_threads();
  if (record.messages_per != config.messages)
    record.notes.push_back("one message per partner: this method has no others");
  // All ranks describe their regions in the same way. So rank 0's reasons are everybody's, unless
  // rank 0 has no job.
  for (const auto& reason : plan.packed_by_mpi())
    record.notes.push_back("packed by MPI: " + reason);
  return record;
}

namespace {

// Says where the fields are, unless that is host memory, as everybody expects.
std::string where_fields_are(const Config& config) {
  if (config.memory == Memory::host) return "";
  const auto properties = dtype::current_device()->properties();
  return ", fields in the memory of " + properties.name +
         (properties.emulated ? " (times mean nothing)" : "");
}

std::string to_other_nodes(const Record& record) {
  if (record.nodes == 1) return "";
  return "of it to other nodes: up to " + format_bytes(record.bytes_off_node) + " of a rank in " +
         format_count(record.messages_off_node, "message") + ", " +
         format_bytes(record.bytes_off_node_of_node) + " of a node, " +
         format_bytes(record.bytes_off_node_total) + " in all (reorder " +
         std::string(to_string(record.reorder)) + ")\n";
}

}  // namespace

std::string headline(const Config& config, const Domain& domain, const Record& record) {
  const bool even = record.global == std::array{record.local[0] * record.decomposition[0],
                                                record.local[1] * record.decomposition[1],
                                                record.local[2] * record.decomposition[2]};
  const std::string most = even ? "" : "up to ";
  const auto first =
      format_count(record.ranks, "rank") + " (" + format_extent(record.decomposition) + ") on " +
      format_nodes(record.nodes, record.nodes_emulated) + ", " +
      format_count(record.threads, "thread") + " each; " + most + format_extent(record.local) +
      " points per rank, " + format_count(record.fields, "field") + " of " +
      std::string(to_string(config.element)) + " (" + std::string(to_string(record.layout)) +
      "), radius " + format_radius(record.radius) + ", " + std::to_string(record.neighbors) +
      " neighbours" + (domain.needs_differ() ? " (" + describe_blocks(domain) + ")" : "") +
      describe_pad(domain) + ", regions described by " + std::string(to_string(config.describe)) +
      where_fields_are(config);
  // At an open boundary a rank has fewer neighbours.
  const bool is_alike = even && (!domain.decomposition.has_open_axis() || record.ranks == 1);
  const auto second = "per rank and exchange: " + std::string(is_alike ? "" : "up to ") +
                      format_bytes(record.bytes_to_others) + " to others in " +
                      (is_alike ? "" : "up to ") + format_count(record.messages, "message") + ", " +
                      most + format_bytes(record.bytes_to_self) + " to itself";
  const auto columns = columns_of_terminal();
  return wrapped(first, columns) + wrapped(second, columns) + to_other_nodes(record);
}

}  // namespace halocline::app
