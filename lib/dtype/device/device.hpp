// SPDX-License-Identifier: BSD-3-Clause
// What exchanges ask of a device: memory, streams, copies, packers.
//
// Best peer: GHEX and [PEA21] call CUDA wherever they need it, so nothing of their device paths
// runs without one; here all of it goes through one interface, and an emulated device lets every
// machine test what is built on it.
#pragma once

#include <cstddef>
#include <memory>
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
    bool emulated = false;  ///< of the host's memory and threads
  };
  virtual const Properties& properties() const = 0;

  /// The kind of memory that holds `address`; what the device does not know is of the host.
  virtual MemoryKind kind_of(const void* address) const = 0;

  /// Memory of any kind but `host`, aligned to 256 bytes. Throws EnvironmentError if there is none.
  virtual void* allocate(MemoryKind kind, std::size_t bytes) = 0;
  /// Of what allocate() returned for that kind.
  virtual void release(MemoryKind kind, void* memory) noexcept = 0;

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
};

/// The device of this process: the CUDA device that is current at the first call; with
/// HALOCLINE_DEVICE=emulated in the environment, an EmulatedDevice, for tests. nullptr if there is
/// none: see why_no_device().
Device* current_device();

/// Why current_device() is nullptr, for people.
const std::string& why_no_device();

}  // namespace halocline::dtype
