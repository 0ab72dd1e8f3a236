// SPDX-License-Identifier: BSD-3-Clause
// Measures what one rank does alone: launches, copies and packing. These are T_d2h, T_h2d,
// T_gpu-pack, T_gpu-unpack, T_host-pack and T_host-unpack of [PEA21 section 6.3].
//
// Best peer: [PEA21] includes launch and synchronization in every number. Here they are subtracted,
// so that times of work that shares them can be added. Packing by the host is measured, too.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "comm/calibrate/grid.hpp"
#include "comm/calibrate/turns.hpp"
#include "dtype/device/resource_cache.hpp"
#include "dtype/model/system_model.hpp"

namespace halocline::comm::detail {

/// Bounds the time of a part, and holds the functions that hear of its progress.
struct Effort {
  double seconds;
  std::function<void(std::size_t points)>
      done;  ///< called with the number of points of a layer, once measured
  /// Hears that the times end at `reached` bytes instead of `wanted`, for lack of time.
  std::function<void(std::int64_t reached, std::int64_t wanted)> cut;
  std::function<void(const std::string& point)>
      noisy;  ///< called for a point that stays noisy to the end
};

/// Holds memory of any kind that was written to before, so that no time includes its first use.
/// Device memory that the host cannot address keeps any contents.
class TouchedMemory {
 public:
  TouchedMemory() = default;
  /// Allocates `bytes` bytes of `kind`. `resources` may be nullptr for host memory. Throws
  /// EnvironmentError if there is no memory.
  TouchedMemory(dtype::ResourceCache* resources, dtype::MemoryKind kind, std::int64_t bytes);
  std::byte* data() const { return host_ ? host_.get() : buffer_.data(); }

 private:
  struct Free {
    void operator()(std::byte* memory) const noexcept;
  };
  std::unique_ptr<std::byte, Free> host_;
  dtype::ResourceCache::Buffer buffer_;
};

/// Holds seconds of an empty launch and of a synchronization.
struct LaunchTimes {
  double launch = 0, synchronize = 0;
};
/// Measures launches and synchronizations of a device.
LaunchTimes measure_launch(dtype::ResourceCache& resources, const Effort& effort);

struct CopyTimes {
  dtype::Curve device_to_host, host_to_device;
};
/// Measures copies between pinned host memory and device memory, without the synchronization of
/// `less`.
CopyTimes measure_copies(dtype::ResourceCache& resources, const Grid& grid, const LaunchTimes& less,
                         const Effort& effort);

/// Measures packing and unpacking by kernels, without the times of `less`. Packs between device
/// memory and packed bytes in memory of kind `packed`.
dtype::PackTimes measure_packing(dtype::ResourceCache& resources, dtype::MemoryKind packed,
                                 const Grid& grid, const LaunchTimes& less, const Effort& effort);

/// Measures packing and unpacking by the host packer, in host memory.
dtype::PackTimes measure_host_packing(const Grid& grid, const Effort& effort);

}  // namespace halocline::comm::detail
