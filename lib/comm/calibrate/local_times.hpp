// SPDX-License-Identifier: BSD-3-Clause
// What one rank measures alone: launches, copies, packing. [PEA21 section 6.3], T_d2h, T_h2d,
// T_gpu-pack, T_host-pack and back.
//
// Best peer: [PEA21] has launch and synchronization inside of every number; here they are
// subtracted, so that work that shares them can be added up, and the host packs as well.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "comm/calibrate/grid.hpp"
#include "comm/calibrate/turns.hpp"
#include "dtype/device/resource_cache.hpp"
#include "dtype/select/system_model.hpp"

namespace halocline::comm::detail {

/// Bounds the time of a part, and names the functions that hear of its progress.
struct Effort {
  double seconds;
  std::function<void(std::size_t points)> done;  ///< points are measured
  /// Called if the times end at `reached` bytes instead of `wanted`.
  std::function<void(std::int64_t reached, std::int64_t wanted)> cut;
  std::function<void(const std::string& point)> noisy;  ///< a point is, to the end
};

/// Memory of any kind that was written to before, so that nobody times its first use; in
/// memory of the device that the host cannot address it has any contents.
class TouchedMemory {
 public:
  TouchedMemory() = default;
  /// `resources` may be nullptr for `host`. Throws EnvironmentError if there is none.
  TouchedMemory(dtype::ResourceCache* resources, dtype::MemoryKind kind, std::int64_t bytes);
  std::byte* data() const { return host_ ? host_.get() : buffer_.data(); }

 private:
  struct Free {
    void operator()(std::byte* memory) const noexcept;
  };
  std::unique_ptr<std::byte, Free> host_;
  dtype::ResourceCache::Buffer buffer_;
};

struct LaunchTimes {
  double launch = 0, synchronize = 0;
};
LaunchTimes measure_launch(dtype::ResourceCache& resources, const Effort& effort);

struct CopyTimes {
  dtype::Curve device_to_host, host_to_device;
};
CopyTimes measure_copies(dtype::ResourceCache& resources, const Grid& grid, const LaunchTimes& less,
                         const Effort& effort);

/// By kernels, between device memory and packed bytes in memory of kind `packed`.
dtype::PackTimes measure_packing(dtype::ResourceCache& resources, dtype::MemoryKind packed,
                                 const Grid& grid, const LaunchTimes& less, const Effort& effort);

/// By the host packer in its own memory.
dtype::PackTimes measure_host_packing(const Grid& grid, const Effort& effort);

}  // namespace halocline::comm::detail
