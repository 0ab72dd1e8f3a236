// SPDX-License-Identifier: BSD-3-Clause
// Finds, packs and sends buffers in device memory and managed memory: [PEA21] section 4.
//
// Best peer: [PEA21] looks a buffer up with CUDA's run-time library at every call. That makes a
// context where there was none. Here the driver is asked, if the application has loaded it.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <exception>
#include <vector>

#include "comm/messages/packed_stream.hpp"
#include "comm/messages/planned_buffer.hpp"
#include "comm/messages/transport.hpp"
#include "dtype/device/device.hpp"
#include "dtype/pack/pack_plan.hpp"

namespace halocline::interpose {

/// Returns the kind of the memory in which the data of `plan` at `buffer` begin.
inline dtype::MemoryKind kind_of(const dtype::PackPlan& plan, const void* buffer) noexcept {
  return dtype::kind_of_memory(comm::byte_at(buffer, plan.bounds().true_lb));
}

/// Tells if some memory may be of a device. It is for callers that leave everything in host memory
/// to MPI. 6 ns.
bool may_have_device_memory() noexcept;

/// Tells if kernels pack this memory. The host could read managed memory, too, but that would move
/// the memory.
inline bool is_packed_by_device(dtype::MemoryKind kind) {
  return kind == dtype::MemoryKind::device || kind == dtype::MemoryKind::managed;
}

/// Tells if packed bytes are in memory that the host cannot reach.
inline bool is_on_device(const void* packed) {
  return dtype::has_device_memory() && dtype::kind_of_memory(packed) == dtype::MemoryKind::device;
}

/// Packs `count` instances at `buffer` into `packed`. One of the two, or both, are in memory of a
/// device. The work is done on return.
///
/// Returns false if there is no memory left for it. Then everything is still to be done, and the
/// first such case is reported on standard error. Ends the job if the device fails.
bool pack_by_device(const dtype::PackPlan& plan, const void* buffer, std::int64_t count,
                    void* packed);
/// Unpacks `count` instances from `packed` into `buffer`, on the conditions of pack_by_device().
bool unpack_by_device(const dtype::PackPlan& plan, const void* packed, void* buffer,
                      std::int64_t count);

/// Holds a transport that all threads share: its mutex lets in one at a time.
struct SharedTransport;

/// Holds the packed bytes of some buffers, one behind the other. Kernels pack them.
///
/// The system model chooses the fastest transfer: `device` where MPI takes device memory,
/// `one-shot`, `staged`, or `host` if the host can address all data.
class DeviceMessage {
 public:
  /// Takes the memory for all parts. Throws EnvironmentError, also without memory of the device,
  /// and std::bad_alloc without memory of the host. Throws ConfigError if no transfer is possible.
  explicit DeviceMessage(const std::vector<comm::PlannedBuffer>& parts);
  DeviceMessage(const DeviceMessage&) = delete;
  DeviceMessage& operator=(const DeviceMessage&) = delete;
  ~DeviceMessage();

  /// Returns the packed bytes for MPI. If they are for the host, StreamedBytes::kRoom bytes follow.
  std::byte* data() const { return message_.wire(); }
  /// Tells if the host can address the packed bytes that MPI gets.
  bool is_for_host() const;
  /// Packs all parts. Done on return. Ends the job if the device fails or has no memory for a
  /// kernel.
  void pack();
  /// Unpacks the first `bytes` packed bytes. Done on return. Fewer than all bytes may take more
  /// memory. Ends the job if the device fails or has no memory for that or for a kernel.
  void unpack(std::int64_t bytes);

 private:
  // Calls `f(stream, packed, bytes)` for each part of the first `bytes` packed bytes.
  template <class F>
  void for_parts(std::int64_t bytes, F&& f);

  SharedTransport& shared_;
  std::deque<comm::detail::PackedStream> streams_;
  comm::Transport::Message message_;
  std::int64_t bytes_ = 0;
};

/// Calls `work()`. If it throws, prints the reason and ends the job: no message on its way could be
/// trusted any more.
template <class F>
void or_end(F&& work) {
  try {
    work();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "halocline: %s\n", error.what());
    PMPI_Abort(MPI_COMM_WORLD, 3);
  }
}

/// Gives back memory of the device that is not in use. Called before MPI_Finalize goes on.
void release_devices() noexcept;

}  // namespace halocline::interpose
