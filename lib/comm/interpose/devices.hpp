// SPDX-License-Identifier: BSD-3-Clause
// Buffers in memory of a device, and managed ones: [PEA21] section 4.
//
// Best peer: [PEA21] looks a buffer up with CUDA's run-time library at every call, which makes a
// context where there was none; here the driver is asked, if the application has loaded it.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <exception>
#include <vector>

#include "comm/device/transport.hpp"
#include "comm/p2p/packed_stream.hpp"
#include "dtype/device/device.hpp"
#include "dtype/pack/pack_plan.hpp"

namespace halocline::interpose {

/// The kind of memory that holds what is so many bytes behind `buffer`, which need not be memory.
dtype::MemoryKind kind_at(const void* buffer, std::int64_t displacement) noexcept;
/// That the data of `plan` at `buffer` begin in.
inline dtype::MemoryKind kind_of(const dtype::PackPlan& plan, const void* buffer) noexcept {
  return kind_at(buffer, plan.bounds().true_lb);
}

/// Whether any memory may be of a device: as far as was seen at one of some calls, for who leaves
/// to MPI what is not. 2 ns.
bool is_there_device_memory() noexcept;

/// Whether kernels pack it: the host could follow pointers to managed memory, but would move it.
inline bool is_packed_by_device(dtype::MemoryKind kind) {
  return kind == dtype::MemoryKind::device || kind == dtype::MemoryKind::managed;
}

/// Whether packed bytes are in memory that the host cannot reach.
inline bool is_on_device(const void* packed) {
  return dtype::has_device_memory() && dtype::kind_of_memory(packed) == dtype::MemoryKind::device;
}

/// Packs and unpacks `count` instances where `buffer`, `packed` or both are in memory of a device;
/// done on return. False if there is no memory left for that, which is told once on standard error:
/// then all is still to be done. Ends the job if the device fails.
bool pack_by_device(const dtype::PackPlan& plan, const void* buffer, std::int64_t count,
                    void* packed);
bool unpack_by_device(const dtype::PackPlan& plan, const void* packed, void* buffer,
                      std::int64_t count);

/// A transport that all threads share, one after the other.
struct Lane;

/// The packed bytes of some buffers that kernels pack, one behind the other, on their way by the
/// transfer that the system model says is fastest: `device` where MPI takes device memory,
/// `one-shot` or `staged`; `host` if the host can address all.
class DeviceMessage {
 public:
  struct Part {
    dtype::PackPlan plan;
    void* buffer;
    std::int64_t count;
  };
  /// Throws EnvironmentError, also if there is no memory left for packed bytes or lists, and
  /// ConfigError if no transfer is possible.
  explicit DeviceMessage(const std::vector<Part>& parts);
  DeviceMessage(const DeviceMessage&) = delete;
  DeviceMessage& operator=(const DeviceMessage&) = delete;
  ~DeviceMessage();

  /// For MPI, with StreamedBytes::kRoom behind them if they are for the host.
  std::byte* data() const { return message_.wire(); }
  /// Whether the host can address what MPI gets.
  bool is_for_host() const;
  /// Both are done on return, and end the job if the device fails or has no memory for a kernel.
  void pack();
  /// The first `bytes`; fewer than there is room for may take more memory, without which the job
  /// ends as well.
  void unpack(std::int64_t bytes);

 private:
  Lane& lane_;
  std::deque<comm::detail::PackedStream> streams_;
  comm::Transport::Message message_;
  std::int64_t bytes_ = 0;
};

/// Does what can fail with a device, after which nothing that is on its way could be trusted: then
/// it tells why, and ends the job.
template <class F>
void or_end(F&& work) {
  try {
    work();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "halocline: %s\n", error.what());
    PMPI_Abort(MPI_COMM_WORLD, 3);
  }
}

/// Gives back what nobody uses: before MPI_Finalize goes on.
void release_devices() noexcept;

}  // namespace halocline::interpose
