// SPDX-License-Identifier: BSD-3-Clause
// What exchanges ask of a device: memory, streams, copies, packers.
//
// Best peer: GHEX and [PEA21] call CUDA wherever they need it, so nothing of their device paths
// runs without one; here all of it goes through one interface, and an emulated device lets every
// machine test what is built on it.
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

/// Where memory is and who can address it.
enum class MemoryKind {
  host,    ///< pageable: the host alone
  pinned,  ///< page-locked memory of the host, mapped: both
  device,  ///< the device alone
  managed  ///< moves to whoever touches it: both
};

/// "host", "pinned", "device", "managed".
const char* name(MemoryKind kind);

/// Whether the host may follow pointers to it.
inline bool host_can_address(MemoryKind kind) {
  return kind != MemoryKind::device;
}

/// Memory of one process by which others on its node reach it; a plain value, to be sent there.
struct SharedMemory {
  std::array<std::byte, 64> allocation{};  ///< the same for all addresses in one allocation
  std::int64_t offset = 0;                 ///< of the address, from the begin of the allocation
  std::int64_t bytes = 0;                  ///< from the address to the end of the allocation
};

/// One device and its queues of work. Thread-safe. What goes to a stream returns before it is done;
/// synchronize(), allocate() and release() may wait. Errors of the device are EnvironmentErrors,
/// also those of earlier work.
class Device {
 public:
  /// A handle; nullptr is the stream that other streams wait for.
  using Stream = void*;

  virtual ~Device() = default;

  struct Properties {
    std::string name;
    std::string driver;     ///< its version
    std::string id;         ///< the same in all processes of a node that share it, and there alone
    bool emulated = false;  ///< of the host's memory and threads
  };
  virtual const Properties& properties() const = 0;

  /// The kind of memory that holds `address`; what the device does not know is of the host.
  virtual MemoryKind kind_of(const void* address) const = 0;

  /// Memory of any kind but `host`, aligned to 256 bytes. Throws NoDeviceMemory if there is none.
  virtual void* allocate(MemoryKind kind, std::size_t bytes) = 0;
  /// Of what allocate() returned for that kind.
  virtual void release(MemoryKind kind, void* memory) noexcept = 0;

  /// Of kind `device`, what could be allocated now if nobody else did.
  virtual std::size_t free_bytes() const = 0;

  /// Names memory of kind `device` for other processes; nullopt for other kinds and where the
  /// system does not allow it.
  virtual std::optional<SharedMemory> share(const void* address) const = 0;
  /// The begin of an allocation that another process has shared, here; nullptr where devices do
  /// not reach each other. Each is closed once. The allocation must be there until then.
  virtual void* open(const SharedMemory& shared) = 0;
  virtual void close(void* opened) noexcept = 0;

  virtual Stream create_stream() = 0;
  virtual void destroy_stream(Stream stream) noexcept = 0;

  /// Gives the stream a copy between memory of any kinds.
  virtual void copy(void* to, const void* from, std::size_t bytes, Stream stream) = 0;

  /// Gives the stream a kernel that does nothing: what a launch costs.
  virtual void launch_nothing(Stream stream) = 0;

  /// Returns when all that the stream was given is done.
  virtual void synchronize(Stream stream) = 0;

  /// A packer on a stream.
  virtual std::unique_ptr<Packer> make_packer(Stream stream) = 0;

  /// What a stream was given once, to be given again. Used by one thread at a time. The stream must
  /// be done with it before it is destroyed.
  class Recording {
   public:
    virtual ~Recording() = default;
    /// Gives the stream all of it, in the order in which it was recorded, by one launch.
    virtual void replay() = 0;
  };

  /// What `work` gives to a stream of create_stream(), which does nothing of it yet: packs by
  /// packers of the stream and copies without pageable memory. `work` must have been done before,
  /// so that plans and kernels are where the device needs them, and must neither allocate nor
  /// release nor wait; earlier work of the stream may be under way. Arguments are kept by value,
  /// tables that travel with a launch included; buffers, the plans whose tables are in the memory
  /// of the device, and the stream must outlive the recording. Throws what `work` throws.
  virtual std::unique_ptr<Recording> record(Stream stream, const std::function<void()>& work) = 0;
};

/// The device of this process: the CUDA device that is current at the first call; with
/// HALOCLINE_DEVICE=emulated in the environment, an EmulatedDevice, for tests. nullptr if there is
/// none: see why_no_device().
Device* current_device();

/// The kind of the memory that holds `address`, for a guest in somebody else's process: as the
/// driver says if the process has loaded one, which is looked for again when anything was loaded;
/// nothing is started. `host` for all that no device knows. 20 ns where there is no driver.
MemoryKind kind_of_memory(const void* address) noexcept;

/// Whether kind_of_memory() has found a driver so far, or an emulated device: else all memory that
/// it was asked about is of the host. 2 ns.
bool has_device_memory() noexcept;

/// Why current_device() is nullptr, for people.
const std::string& why_no_device();

}  // namespace halocline::dtype
