// SPDX-License-Identifier: BSD-3-Clause
// Defines what exchanges need of a device: memory, streams, copies, packers.
//
// Best peer: GHEX and [PEA21] call CUDA wherever they need it, so their device paths need a device
// to run. Here all device work goes through one interface. An emulated device lets every machine
// test what is built on it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "dtype/pack/packer.hpp"

namespace halocline::dtype {

/// Names the place of memory, and who can address it.
enum class MemoryKind {
  host,    ///< pageable memory of the host; the host can address it
  pinned,  ///< page-locked, mapped memory of the host; host and device can address it
  device,  ///< memory of the device; the device can address it
  managed  ///< memory that moves to whoever touches it; host and device can address it
};

/// Returns "host", "pinned", "device" or "managed".
const char* name(MemoryKind kind);

/// Tells if the host may follow pointers to memory of this kind.
inline bool host_can_address(MemoryKind kind) {
  return kind != MemoryKind::device;
}

/// Names memory of one process, so that other processes of its node can reach it. A plain value
/// that can be sent.
struct SharedMemory {
  std::array<std::byte, 64> allocation{};  ///< the same for all addresses in one allocation
  std::int64_t offset = 0;                 ///< bytes from the allocation's begin to the address
  std::int64_t bytes = 0;                  ///< bytes from the address to the end of the allocation
};

/// Is one device with its queues of work. Thread-safe. Calls that give work to a stream may
/// return before the work is done. synchronize(), allocate() and release() may wait. Errors of the
/// device are EnvironmentErrors, and a call may report an error of earlier work.
class Device {
 public:
  /// Is the handle of a stream. nullptr is the stream that other streams wait for.
  using Stream = void*;

  virtual ~Device() = default;

  /// Describes the device for people and for other processes.
  struct Properties {
    std::string name;
    std::string driver;     ///< version of the driver
    std::string id;         ///< same in all processes of a node that share it, and only there
    bool emulated = false;  ///< made of the host's memory and threads
  };
  virtual const Properties& properties() const = 0;

  /// Returns the kind of memory that holds `address`. Memory that the device does not know is
  /// `host`.
  virtual MemoryKind kind_of(const void* address) const = 0;

  /// Allocates memory of any kind but `host`, aligned to 256 bytes. Throws NoDeviceMemory if there
  /// is none.
  virtual void* allocate(MemoryKind kind, std::size_t bytes) = 0;
  /// Frees memory that allocate() returned for `kind`.
  virtual void release(MemoryKind kind, void* memory) noexcept = 0;

  /// Returns the bytes of kind `device` that could be allocated now if nobody else allocated.
  virtual std::size_t free_bytes() const = 0;

  /// Names memory of kind `device` for other processes. Returns nullopt for other kinds, and if the
  /// system does not allow it.
  virtual std::optional<SharedMemory> share(const void* address) const = 0;
  /// Opens an allocation that another process has shared. Returns its begin in this process;
  /// nullptr if the devices do not reach each other. close() closes each opened allocation once;
  /// its owner must keep the allocation until then.
  virtual void* open(const SharedMemory& shared) = 0;
  virtual void close(void* opened) noexcept = 0;

  virtual Stream create_stream() = 0;
  virtual void destroy_stream(Stream stream) noexcept = 0;

  /// Gives the stream a copy of `bytes` bytes between memory of any kinds.
  virtual void copy(void* to, const void* from, std::size_t bytes, Stream stream) = 0;

  /// Gives the stream a kernel that does nothing, to measure the cost of a launch.
  virtual void launch_nothing(Stream stream) = 0;

  /// Waits until all work of the stream is done.
  virtual void synchronize(Stream stream) = 0;

  /// Returns a packer that works on `stream`.
  virtual std::unique_ptr<Packer> make_packer(Stream stream) = 0;

  /// Holds work of a stream, to be given to the stream again. Used by one thread at a time. The
  /// stream must have done the work before the Recording is destroyed.
  class Recording {
   public:
    virtual ~Recording() = default;
    /// Gives the stream all recorded work by one launch, in the order of the recording.
    virtual void replay() = 0;
  };

  /// Records the work that `work` gives to `stream`, one of create_stream(). The stream does none
  /// of it yet; its earlier work may still be under way.
  ///
  /// - `work` packs by packers of the stream, and copies without pageable memory.
  /// - `work` must have run before, so that plans and kernels are where the device needs them.
  /// - `work` must neither allocate nor release nor wait.
  ///
  /// Arguments are kept by value, and so are tables that travel with a launch. Buffers, the stream,
  /// and plans with tables in device memory must outlive the recording. Throws what `work` throws.
  virtual std::unique_ptr<Recording> record(Stream stream, const std::function<void()>& work) = 0;
};

/// Returns the device of this process: the CUDA device that is current at the first call. With
/// HALOCLINE_DEVICE=emulated in the environment, returns an EmulatedDevice, for tests. Returns
/// nullptr if there is none: see why_no_device(). Throws ConfigError for other values of
/// HALOCLINE_DEVICE.
Device* current_device();

/// Returns the kind of the memory that holds `address`, for a library that is a guest in somebody
/// else's process. Asks the CUDA driver if the process has loaded one, and starts nothing. A driver
/// that is loaded later is seen after at most 31 ms, before it has started. With HALOCLINE_DEVICE,
/// asks current_device(). Returns `host` for memory that no device knows. 6 ns without a driver.
MemoryKind kind_of_memory(const void* address) noexcept;

/// Tells if kind_of_memory() has found a driver so far, or if HALOCLINE_DEVICE names a device.
/// Otherwise all memory that it was asked about is of the host. 2 ns.
bool has_device_memory() noexcept;

/// Returns the reason why current_device() is nullptr, for people.
const std::string& why_no_device();

}  // namespace halocline::dtype
