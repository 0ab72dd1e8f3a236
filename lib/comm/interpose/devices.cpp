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

std::atomic<bool> lanes_made{false};

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
    lanes_made = true;
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

Transfer transfer_of(const std::vector<DeviceMessage::Part>& parts) {
  if (dtype::current_device() == nullptr) throw EnvironmentError(dtype::why_no_device());
  bool host_access = true;
  std::vector<dtype::Message> messages;
  for (const auto& part : parts) {
    host_access = host_access && host_can_address(kind_of(part.plan, part.buffer));
    const auto shape = dtype::shape_of(part.plan);
    messages.push_back({part.plan.packed_bytes(part.count), shape, shape,
                        all_ranks_are_near() ? dtype::Reach::on_node : dtype::Reach::off_node});
  }
  return select_transfer(model_of_device(), messages,
                         dtype::possible_transfers({.device_messages = mpi_takes_device_memory(),
                                                    .mapped_memory = true,
                                                    .host_access = host_access}))
      .transfer;
}

// Tells if a kernel may read and write packed bytes there.
bool is_for_kernels(const void* packed) {
  return dtype::kind_of_memory(packed) != MemoryKind::host;
}

void tell_once(const std::exception& error) {
  static std::atomic_flag is_told;
  if (!is_told.test_and_set()) std::fprintf(stderr, "halocline: left to MPI: %s\n", error.what());
}

// Packs or unpacks by the device. Returns false if there is no memory for it.
//
// - If the data are in host memory, it calls `by_host(shared, here, bytes)`. `here` is host memory
//   for packed bytes, and the caller's `packed` is in memory of the device.
// - Else it calls `by_kernel(shared, room, bytes)`. `room` is device memory for packed bytes, or
//   nullptr if kernels reach `packed`.
template <class ByHost, class ByKernel>
bool is_done_by_device(const dtype::PackPlan& plan, const void* buffer, std::int64_t count,
                       const void* packed, ByHost&& by_host, ByKernel&& by_kernel) {
  const auto bytes = plan.packed_bytes(count);
  const auto size = static_cast<std::size_t>(bytes);
  const bool is_of_host = !is_packed_by_device(kind_of(plan, buffer));
  bool is_done = false;
  or_end([&] {
    try {
      auto& one = shared_transport(Transfer::device);
      const std::lock_guard lock(one.mutex);
      const auto room = one.transport.own_memory(is_of_host || is_for_kernels(packed) ? 0 : size);
      try {
        if (is_of_host)
          by_host(one, PackedBytes(bytes).data(), size);
        else
          by_kernel(one, room.data(), size);
      } catch (const std::exception&) {
        one.transport.settle();  // before the memory goes back
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

MemoryKind kind_at(const void* buffer, std::int64_t displacement) noexcept {
  return dtype::kind_of_memory(reinterpret_cast<const void*>(
      reinterpret_cast<std::uintptr_t>(buffer) + static_cast<std::uintptr_t>(displacement)));
}

bool may_have_device_memory() noexcept {
  constexpr unsigned kSome = 64;
  static std::atomic<unsigned> calls{0};  // threads may lose some calls
  const auto call = calls.load(std::memory_order_relaxed);
  calls.store(call + 1, std::memory_order_relaxed);
  if (call % kSome == 0) dtype::kind_of_memory(nullptr);  // looks for a driver
  return dtype::has_device_memory();
}

bool pack_by_device(const dtype::PackPlan& plan, const void* buffer, std::int64_t count,
                    void* packed) {
  return is_done_by_device(
      plan, buffer, count, packed,
      [&](const SharedTransport& shared, std::byte* here, std::size_t bytes) {
        shared.packer.pack(plan, buffer, count, here);
        shared.transport.copy(packed, here, bytes);
        shared.transport.packer().fence();
      },
      [&](const SharedTransport& shared, std::byte* room, std::size_t bytes) {
        shared.transport.packer().pack(plan, buffer, count, room != nullptr ? room : packed);
        if (room != nullptr) shared.transport.copy(packed, room, bytes);
        shared.transport.packer().fence();
      });
}

bool unpack_by_device(const dtype::PackPlan& plan, const void* packed, void* buffer,
                      std::int64_t count) {
  return is_done_by_device(
      plan, buffer, count, packed,
      [&](const SharedTransport& shared, std::byte* here, std::size_t bytes) {
        shared.transport.copy(here, packed, bytes);
        shared.transport.packer().fence();
        shared.packer.unpack(plan, here, buffer, count);
      },
      [&](const SharedTransport& shared, std::byte* room, std::size_t bytes) {
        if (room != nullptr) shared.transport.copy(room, packed, bytes);
        shared.transport.packer().unpack(plan, room != nullptr ? room : packed, buffer, count);
        shared.transport.packer().fence();
      });
}

DeviceMessage::DeviceMessage(const std::vector<Part>& parts)
    : lane_(shared_transport(transfer_of(parts))) {
  for (const auto& part : parts) {
    streams_.emplace_back(lane_.transport, part.plan, part.buffer, part.count);
    bytes_ += streams_.back().bytes();
  }
  message_ = lane_.transport.message(static_cast<std::size_t>(bytes_ + comm::StreamedBytes::kRoom));
  const std::lock_guard lock(lane_.mutex);
  std::int64_t at = 0;
  for (const auto& stream : streams_) {
    stream.prepare(message_.packed() + at);
    at += stream.bytes();
  }
}

bool DeviceMessage::is_for_host() const {
  return lane_.transport.transfer() != Transfer::device;
}

// Waits until no kernel uses the memory any more, also after an error. Then it can be given back.
DeviceMessage::~DeviceMessage() {
  const std::lock_guard lock(lane_.mutex);
  lane_.transport.settle();
}

void DeviceMessage::pack() {
  or_end([this] {
    const std::lock_guard lock(lane_.mutex);
    std::int64_t at = 0;
    for (auto& stream : streams_) {
      stream.pack(0, stream.bytes(), message_.packed() + at);
      at += stream.bytes();
    }
    lane_.transport.to_wire(message_, static_cast<std::size_t>(bytes_));
  });
}

void DeviceMessage::unpack(std::int64_t bytes) {
  or_end([&] {
    const std::lock_guard lock(lane_.mutex);
    lane_.transport.from_wire(message_, static_cast<std::size_t>(bytes));
    std::int64_t at = 0;
    for (auto& stream : streams_) {
      const auto here = std::min(stream.bytes(), bytes - at);
      if (here <= 0) break;
      stream.unpack(0, here, message_.packed() + at);
      at += here;
    }
    lane_.transport.packer().fence();
  });
}

void release_devices() noexcept {
  if (lanes_made) resources().release_kept();
}

}  // namespace halocline::interpose
