// SPDX-License-Identifier: BSD-3-Clause
#include "comm/p2p/point_to_point.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "comm/device/gpu_awareness.hpp"
#include "comm/mpi/communicator.hpp"
#include "comm/node/node_hierarchy.hpp"
#include "comm/p2p/operation.hpp"
#include "dtype/model/selection_cache.hpp"
#include "dtype/pack/host/host_packer.hpp"
#include "dtype/pack/plan_table.hpp"
#include "support/mpi_check.hpp"
#include "support/narrow.hpp"

namespace halocline::comm {

namespace detail {

using dtype::MemoryKind;
using dtype::PackPlan;
using dtype::Transfer;

namespace {

// The packer is never destroyed: static plans use it while the process ends.
const dtype::HostPacker& kHostPacker = *new const dtype::HostPacker;
constexpr std::int64_t kMinChunkBytes = 64;
constexpr std::size_t kMaxKnownPlans = 4096;

bool is_one_run(const PackPlan& plan, std::int64_t count) {
  const auto& program = plan.program();
  if (program.entry(count).kind != dtype::detail::Op::Kind::strided) return false;
  return count == 1 ? program.instance_levels().empty()
                    : program.entry(count).strided.levels.empty();
}

}  // namespace

/// Chooses, starts and progresses operations.
class Engine {
 public:
  Engine(MPI_Comm comm, const PointToPoint::Options& options)
      : chunks_(comm), options_(options), nodes_(comm) {
    require_valid();
    collectively(comm, [&] {
      resources_ = options.resources;
      if (resources_ == nullptr && dtype::current_device() != nullptr)
        resources_ = &dtype::current_resources();
      if (resources_ != nullptr)
        aware_ = options.gpu_aware_mpi ? *options.gpu_aware_mpi
                                       : probe_gpu_awareness(resources_->device()).aware;
    });
    wire_.comm = comm;
    wire_.chunks = chunks_.get();
    wire_.chunk_bytes = options.chunk_bytes;
    wire_.slots = options.chunks;
    wire_.count_limit = options.mpi_count_limit;
    int* tag = nullptr;
    int found = 0;
    HALOCLINE_MPI(MPI_Comm_get_attr(chunks_.get(), MPI_TAG_UB, &tag, &found));
    wire_.largest_tag = found != 0 ? *tag : 32767;
  }

  ~Engine() {
    if (mpi_is_over()) return;
    // MPI may use the memory of a failed operation until the process ends, so it is never freed.
    static std::mutex mutex;
    static auto& left_to_mpi = *new std::vector<std::shared_ptr<Operation>>;
    const std::lock_guard lock(mutex);
    for (const auto& operation : failed_) {
      bool is_under_way = false;
      for (auto& request : operation->requests())
        if (request != MPI_REQUEST_NULL) {
          MPI_Request_free(&request);
          is_under_way = true;
        }
      if (is_under_way) left_to_mpi.push_back(operation);
    }
  }

  // Starts an operation, which is Send or Receive if the type has a plan.
  template <class Packed>
  std::shared_ptr<Operation> start(const MessageArguments& call, MPI_Datatype type) {
    if (call.count < 0)
      throw ConfigError("negative count of " + std::to_string(call.count) +
                        " in a message: use 0 or more");
    if (call.partner == MPI_PROC_NULL) return nullptr;
    std::shared_ptr<Operation> operation;
    const auto& found = dtype::cached_plan(type);
    if (const auto* reason = std::get_if<UnsupportedDatatype>(&found)) {
      require_vendor(call, type, *reason);
      operation =
          std::make_shared<VendorOperation>(wire_, call, type, std::is_same_v<Packed, Send>);
    } else {
      const auto& plan = std::get<PackPlan>(found);
      checked_multiply(plan.bounds().size, call.count);  // throws if it overflows
      const auto transfer = choose(plan, call);
      const bool in_buffer = is_one_run(plan, call.count) &&
                             (transfer == Transfer::host || transfer == Transfer::device);
      operation = std::make_shared<Packed>(wire_, call, transport(transfer), plan, in_buffer);
    }
    try {
      operation->start();
    } catch (...) {
      failed_.push_back(operation);
      throw;
    }
    active_.push_back(operation);
    progress(false);
    return operation;
  }

  Transfer transfer(const MessageArguments& call, MPI_Datatype type) {
    const auto* plan = std::get_if<PackPlan>(&dtype::cached_plan(type));
    return plan == nullptr ? Transfer::host : choose(*plan, call);
  }

  // Lets MPI work, with `wait` until some request is complete, and handles completed requests.
  void progress(bool wait) {
    requests_.clear();
    owners_.clear();
    for (const auto& operation : active_) {
      const auto& requests = operation->requests();
      for (std::size_t i = 0; i < requests.size(); ++i)
        if (requests[i] != MPI_REQUEST_NULL) {
          requests_.push_back(requests[i]);
          owners_.push_back({operation.get(), i});
        }
    }
    if (requests_.empty()) return;
    const auto count = static_cast<int>(requests_.size());
    indices_.resize(requests_.size());
    statuses_.resize(requests_.size());
    int completed = 0;
    const auto call = wait ? MPI_Waitsome : MPI_Testsome;
    const int error = call(count, requests_.data(), &completed, indices_.data(), statuses_.data());
    int error_class = MPI_SUCCESS;
    if (error != MPI_SUCCESS) MPI_Error_class(error, &error_class);
    const bool in_status = error_class == MPI_ERR_IN_STATUS;
    if (!in_status) HALOCLINE_MPI(error);
    for (int i = 0; i < completed; ++i) {
      const auto [operation, slot] = owners_[static_cast<std::size_t>(indices_[i])];
      const auto& status = statuses_[static_cast<std::size_t>(i)];
      operation->complete(slot, in_status ? status.MPI_ERROR : MPI_SUCCESS, status);
    }
    retire();
  }

 private:
  // Holds the plan of a type and the transfers chosen for it: for buffers that the host cannot
  // address, and for buffers that it can.
  struct Known {
    explicit Known(const PackPlan& p) : plan(p), shape(dtype::shape_of(p)) {}
    PackPlan plan;
    dtype::BlockShape shape;
    std::array<dtype::SelectionCache, 2> chosen;
  };

  void require_valid() const {
    collectively(chunks_.get(), [&] {
      const auto bytes = options_.chunk_bytes;
      if (bytes != 0 && (bytes < kMinChunkBytes || bytes > options_.mpi_count_limit - kHeaderBytes))
        throw ConfigError("chunk_bytes of " + std::to_string(bytes) +
                          " are out of range: use 0, or " + std::to_string(kMinChunkBytes) +
                          " and more that MPI can count");
      if (options_.chunks < 2)
        throw ConfigError("chunks = " + std::to_string(options_.chunks) +
                          " is out of range (nothing would overlap): use 2 or more");
    });
    std::array extremes{options_.chunk_bytes, -options_.chunk_bytes};
    HALOCLINE_MPI(
        MPI_Allreduce(MPI_IN_PLACE, extremes.data(), 2, MPI_INT64_T, MPI_MAX, chunks_.get()));
    if (extremes[0] != -extremes[1])
      throw ConfigError("chunk_bytes differ between ranks (" + std::to_string(-extremes[1]) +
                        " to " + std::to_string(extremes[0]) + "): give all the same");
  }

  // Throws ConfigError unless MPI itself can take a type without a plan, in one message.
  void require_vendor(const MessageArguments& call, MPI_Datatype type,
                      const UnsupportedDatatype& reason) const {
    MPI_Count size = 0, lb = 0, extent = 0;
    HALOCLINE_MPI(MPI_Type_size_x(type, &size));
    HALOCLINE_MPI(MPI_Type_get_true_extent_x(type, &lb, &extent));
    if (wire_.is_long(checked_multiply(size, call.count)))
      throw ConfigError("a message of a type that MPI alone knows is longer than a chunk (" +
                        std::string(reason.what()) + "): set chunk_bytes to 0 on all ranks");
    if (resources_ != nullptr && !aware_ && call.count > 0 &&
        !host_can_address(resources_->device().kind_of(byte_at(call.buffer, lb))))
      throw ConfigError(
          "a message of a type that MPI alone knows is in a device's memory, which "
          "this MPI does not take (" +
          std::string(reason.what()) + "): keep it in memory of the host");
  }

  Known& known(const PackPlan& plan) {
    const auto* key = &plan.program();
    auto found = known_.find(key);
    if (found != known_.end()) return found->second;
    if (known_.size() >= kMaxKnownPlans) known_.clear();
    return known_.try_emplace(key, plan).first->second;
  }

  Transfer choose(const PackPlan& plan, const MessageArguments& call) {
    const auto bytes = plan.packed_bytes(call.count);
    if (resources_ == nullptr || bytes == 0) return Transfer::host;
    const auto kind = resources_->device().kind_of(byte_at(call.buffer, plan.bounds().true_lb));
    if (kind == MemoryKind::host) return Transfer::host;
    const bool host = host_can_address(kind);
    const auto possible = dtype::possible_transfers(
        {.device_messages = aware_, .mapped_memory = true, .host_access = host});
    if (options_.transfer) {
      if (possible.test(static_cast<std::size_t>(*options_.transfer))) return *options_.transfer;
      throw ConfigError("transfer " + std::string(dtype::name(*options_.transfer)) +
                        " is not possible for a buffer in " + dtype::name(kind) + " memory (" +
                        (host ? "this MPI does not take device memory"
                              : "the host cannot address it, or MPI does not take it") +
                        "): leave the transfer open");
    }
    if (is_one_run(plan, call.count) && (host || aware_))
      return host ? Transfer::host : Transfer::device;
    auto& entry = known(plan);
    // A partner that is no rank is MPI's to refuse.
    const bool is_rank = call.partner >= 0 && call.partner < nodes_.ranks();
    const bool near = is_rank ? nodes_.same_node(call.partner) : nodes_.nodes() == 1;
    return entry.chosen[host ? 1 : 0].find_or(call.count, near, [&] {
      const dtype::Message message{bytes, entry.shape, entry.shape,
                                   near ? dtype::Reach::on_node : dtype::Reach::off_node};
      return dtype::select_transfer(options_.model, {&message, 1}, possible).transfer;
    });
  }

  const Transport& transport(Transfer transfer) {
    auto& slot = transports_[static_cast<std::size_t>(transfer)];
    if (!slot)
      slot.emplace(transfer, options_.packer != nullptr ? *options_.packer : kHostPacker,
                   resources_);
    return *slot;
  }

  // Removes operations that are done. Failed ones are kept, since MPI may still use their memory.
  void retire() {
    std::erase_if(active_, [&](const std::shared_ptr<Operation>& operation) {
      if (operation->failed()) failed_.push_back(operation);
      return operation->done();
    });
  }

  Communicator chunks_;
  PointToPoint::Options options_;
  dtype::ResourceCache* resources_ = nullptr;
  bool aware_ = false;
  Wire wire_;
  NodeHierarchy nodes_;
  std::array<std::optional<Transport>, dtype::kTransfers> transports_;
  std::unordered_map<const dtype::detail::Program*, Known> known_;
  std::vector<std::shared_ptr<Operation>> active_, failed_;

  // Arrays of progress(), kept to save allocations.
  std::vector<MPI_Request> requests_;
  std::vector<std::pair<Operation*, std::size_t>> owners_;
  std::vector<int> indices_;
  std::vector<MPI_Status> statuses_;
};

}  // namespace detail

PointToPoint::PointToPoint(MPI_Comm comm, const Options& options)
    : engine_(std::make_unique<detail::Engine>(comm, options)) {}
PointToPoint::PointToPoint(MPI_Comm comm) : PointToPoint(comm, Options()) {}
PointToPoint::~PointToPoint() = default;

PointToPoint::Request PointToPoint::isend(const void* buffer, std::int64_t count, MPI_Datatype type,
                                          int destination, int tag) {
  return {engine_.get(),
          engine_->start<detail::Send>({const_cast<void*>(buffer), count, destination, tag}, type)};
}

PointToPoint::Request PointToPoint::irecv(void* buffer, std::int64_t count, MPI_Datatype type,
                                          int source, int tag) {
  return {engine_.get(), engine_->start<detail::Receive>({buffer, count, source, tag}, type)};
}

void PointToPoint::send(const void* buffer, std::int64_t count, MPI_Datatype type, int destination,
                        int tag) {
  isend(buffer, count, type, destination, tag).wait();
}

ReceiveStatus PointToPoint::recv(void* buffer, std::int64_t count, MPI_Datatype type, int source,
                                 int tag) {
  return irecv(buffer, count, type, source, tag).wait();
}

dtype::Transfer PointToPoint::transfer(const void* buffer, std::int64_t count, MPI_Datatype type,
                                       int partner) {
  return engine_->transfer({const_cast<void*>(buffer), count, partner, 0}, type);
}

PointToPoint::Request::Request(detail::Engine* engine, std::shared_ptr<detail::Operation> operation)
    : engine_(engine), operation_(std::move(operation)) {}
PointToPoint::Request::Request(Request&&) noexcept = default;

PointToPoint::Request::~Request() {
  if (mpi_is_over()) return;  // nothing is left to wait for
  try {
    wait();
  } catch (const std::exception&) {
    // Nobody waited for this message, so nobody can handle its error.
  }
}

ReceiveStatus PointToPoint::Request::wait() {
  if (operation_ == nullptr) return {};
  while (!operation_->done()) engine_->progress(true);
  return operation_->result();
}

bool PointToPoint::Request::test() {
  if (operation_ == nullptr || operation_->done()) return true;
  engine_->progress(false);
  return operation_->done();
}

}  // namespace halocline::comm
