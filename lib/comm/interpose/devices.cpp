// SPDX-License-Identifier: BSD-3-Clause
#include "comm/interpose/devices.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <exception>
#include <memory>
#include <mutex>
#include <new>

#include "comm/device/gpu_awareness.hpp"
#include "comm/interpose/requests.hpp"
#include "comm/interpose/rule.hpp"
#include "comm/interpose/settings.hpp"
#include "dtype/device/resource_cache.hpp"
#include "dtype/model/transfer_selector.hpp"
#include "dtype/pack/host/host_packer.hpp"
#include "support/error.hpp"

namespace halocline::interpose {

using comm::Transport;
using dtype::MemoryKind;
using dtype::Transfer;
using dtype::host::CopyDirection;

namespace {

// Returns the cache of device memory. There must be a device. The cache keeps little, since the
// application needs the memory, too.
dtype::ResourceCache& resources() {
  constexpr std::size_t kMostKept = std::size_t{1} << 27;
  static auto* const the_resources = new dtype::ResourceCache(*dtype::current_device(), kMostKept);
  return *the_resources;
}

}  // namespace

struct SharedTransport {
  explicit SharedTransport(Transfer transfer) : transport(transfer, packer, &resources()) {}

  dtype::HostPacker packer;
  Transport transport;
  std::mutex mutex;
};

namespace {

std::atomic<bool> transports_made{false};

// Returns the shared transport of a transfer. Streams and compiled kernels are made once. There
// must be a device.
SharedTransport& shared_transport(Transfer transfer) {
  static std::mutex mutex;
  static auto* const all = new std::array<std::unique_ptr<SharedTransport>, dtype::kTransfers>;
  const std::lock_guard lock(mutex);
  auto& one = (*all)[static_cast<std::size_t>(transfer)];
  if (one == nullptr) {
    if (dtype::current_device() == nullptr) throw EnvironmentError(dtype::why_no_device());
    one = std::make_unique<SharedTransport>(transfer);
    transports_made = true;
  }
  return *one;
}

// Returns the model if it is of this device, else nullptr.
const dtype::SystemModel* model_of_device() {
  static const auto* const value = [] {
    const auto* const all = model();
    if (all == nullptr) return all;
    auto here = all->provenance;
    const auto& device = dtype::current_device()->properties();
    here.gpu = device.name, here.driver = device.driver, here.emulated = device.emulated;
    const auto differences = dtype::require_match(all->provenance, here, true);
    if (differences.empty()) return all;
    std::fprintf(stderr, "halocline: the system model is of another device (%s): not used\n",
                 differences.c_str());
    return static_cast<const dtype::SystemModel*>(nullptr);
  }();
  return value;
}

bool mpi_takes_device_memory() {
  using GpuAware = Settings::GpuAware;
  const auto said = settings().gpu_aware_mpi;
  if (said != GpuAware::ask) return said == GpuAware::yes;
  return comm::find_gpu_awareness(*dtype::current_device()).aware;
}

Transfer transfer_of(const std::vector<comm::PlannedBuffer>& parts) {
  if (dtype::current_device() == nullptr) throw EnvironmentError(dtype::why_no_device());
  bool host_access = true;
  std::vector<dtype::Message> messages;
  for (const auto& part : parts) {
    host_access = host_access && host_can_address(kind_of(part.plan, part.buffer));
    const auto shape = dtype::shape_of(part.plan);
    messages.push_back({part.bytes(), shape, shape,
                        all_ranks_are_near() ? dtype::Reach::on_node : dtype::Reach::off_node});
  }
  return select_transfer(model_of_device(), messages,
                         dtype::possible_transfers({.device_messages = mpi_takes_device_memory(),
                                                    .mapped_memory = true,
                                                    .host_access = host_access}))
      .transfer;
}

void tell_once(const std::exception& error) {
  static std::atomic_flag is_told;
  if (!is_told.test_and_set()) std::fprintf(stderr, "halocline: left to MPI: %s\n", error.what());
}

// Moves data to or from `packed`. One of the two, or both, are in memory of the device. Returns
// false if there is no memory for it.
bool is_moved_by_device(const comm::PlannedBuffer& data, std::byte* packed,
                        CopyDirection direction) {
  const auto size = static_cast<std::size_t>(data.bytes());
  const bool packs = direction == CopyDirection::pack;
  const bool is_of_host = !is_packed_by_device(kind_of(data.plan, data.buffer));
  bool is_done = false;
  or_end([&] {
    try {
      auto& one = shared_transport(Transfer::device);
      const auto& transport = one.transport;
      const std::lock_guard lock(one.mutex);
      // Data in host memory are packed there. Kernels pack all other data, in memory of the device
      // if they cannot reach `packed`.
      const auto on_host = is_of_host ? host_bytes(data.bytes()) : HostBytes();
      const bool is_reached = is_of_host || dtype::kind_of_memory(packed) != MemoryKind::host;
      const auto on_device = transport.own_memory(is_reached ? 0 : size);
      auto* const at = is_of_host                    ? on_host.data()
                       : on_device.data() != nullptr ? on_device.data()
                                                     : packed;
      const dtype::Packer& packer = is_of_host ? one.packer : transport.packer();
      try {
        if (packs) packer.pack(data.plan, data.buffer, data.count, at);
        if (at != packed) transport.copy(packs ? packed : at, packs ? at : packed, size);
        if (is_of_host) transport.packer().fence();
        if (!packs) packer.unpack(data.plan, at, data.buffer, data.count);
        if (!is_of_host) transport.packer().fence();
      } catch (const std::exception&) {
        transport.settle();  // before the memory goes back
        throw;
      }
      is_done = true;
    } catch (const NoDeviceMemory& error) {
      tell_once(error);
    } catch (const std::bad_alloc& error) {
      tell_once(error);
    }
  });
  return is_done;
}

}  // namespace

bool may_have_device_memory() noexcept {
  if (!dtype::has_device_memory()) dtype::kind_of_memory(nullptr);  // looks for a driver
  return dtype::has_device_memory();
}

bool pack_by_device(const dtype::PackPlan& plan, const void* buffer, std::int64_t count,
                    void* packed) {
  return is_moved_by_device({plan, const_cast<void*>(buffer), count},
                            static_cast<std::byte*>(packed), CopyDirection::pack);
}

bool unpack_by_device(const dtype::PackPlan& plan, const void* packed, void* buffer,
                      std::int64_t count) {
  return is_moved_by_device({plan, buffer, count},
                            static_cast<std::byte*>(const_cast<void*>(packed)),
                            CopyDirection::unpack);
}

template <class F>
void DeviceMessage::for_parts(std::int64_t bytes, F&& f) {
  auto* at = message_.packed();
  for (auto& stream : streams_) {
    const auto here = std::min(stream.bytes(), bytes);
    if (here > 0) f(stream, at, here);
    at += here, bytes -= here;
  }
}

DeviceMessage::DeviceMessage(const std::vector<comm::PlannedBuffer>& parts)
    : shared_(shared_transport(transfer_of(parts))) {
  for (const auto& part : parts) bytes_ += streams_.emplace_back(shared_.transport, part).bytes();
  message_ = shared_.transport.message(
      static_cast<std::size_t>(bytes_ + comm::StreamedBytes::kRoom), &message_memory());
  const std::lock_guard lock(shared_.mutex);
  for_parts(bytes_, [](auto& stream, std::byte* packed, std::int64_t) { stream.prepare(packed); });
}

bool DeviceMessage::is_for_host() const {
  return shared_.transport.transfer() != Transfer::device;
}

// Waits until no kernel uses the memory any more, also after an error. Then it can be given back.
DeviceMessage::~DeviceMessage() {
  const std::lock_guard lock(shared_.mutex);
  shared_.transport.settle();
}

void DeviceMessage::pack() {
  or_end([this] {
    const std::lock_guard lock(shared_.mutex);
    for_parts(bytes_, [](auto& stream, std::byte* packed, std::int64_t here) {
      stream.pack(0, here, packed);
    });
    shared_.transport.to_wire(message_, static_cast<std::size_t>(bytes_));
  });
}

void DeviceMessage::unpack(std::int64_t bytes) {
  or_end([&] {
    const std::lock_guard lock(shared_.mutex);
    shared_.transport.from_wire(message_, static_cast<std::size_t>(bytes));
    for_parts(bytes, [](auto& stream, const std::byte* packed, std::int64_t here) {
      stream.unpack(0, here, packed);
    });
    shared_.transport.packer().fence();
  });
}

void release_devices() noexcept {
  if (transports_made) resources().release_kept();
}

}  // namespace halocline::interpose
