// SPDX-License-Identifier: BSD-3-Clause
// The harness of bench_device. A case is some types in the memory of a device, packed or unpacked;
// the host's packer says what has to come of it. Whoever does it right is timed, in turns.
//
// Best peer: [PEA21] reports bandwidths and their ratio to an MPI that copies block by block; here
// every row says how far it is from a plain copy of as many bytes, measured in the same run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "dtype/bench/device/twins.hpp"
#include "dtype/bench/rows.hpp"
#include "dtype/bench/turns.hpp"
#include "dtype/device/device.hpp"
#include "dtype/pack/segment.hpp"

namespace halocline::dtype::bench {

struct DeviceOptions {
  bool quick = false;  ///< few samples
  bool smoke = false;  ///< tiny sizes, and nothing is timed for longer than it takes
};

/// Who else does it. Each waits for its work: tempi after each of its launches, as [PEA21] does,
/// the others once.
enum class Twin {
  tempi,     ///< a launch of [PEA21]'s kernel for each part
  separate,  ///< a launch of ours for each part
  blocks,    ///< a copy for each contiguous block, as MPIs do it
  memcpy3d,  ///< cudaMemcpy3DAsync for each part
  gather,    ///< a kernel with a list of all words
  mpi        ///< MPI_Pack or MPI_Unpack, where MPI knows of CUDA
};

/// What a field of a row shall reach.
struct Target {
  const char* field;
  double at_least;
};

/// All parts are packed one behind the other: by ours, in one launch.
struct DeviceCase {
  std::string name;
  Direction direction = Direction::pack;
  MemoryKind packed = MemoryKind::device;
  std::vector<Part> parts;
  std::vector<Twin> twins;
  double seconds = 0.1;                                         ///< to measure for
  std::vector<std::pair<std::string, double>> parameters = {};  ///< fields of the row
  std::vector<Target> targets = {};
};

/// Memory of a device that is kept for the next case, between guards.
class DeviceBuffer {
 public:
  static constexpr std::int64_t kGuard = 4096;

  DeviceBuffer(Device& device, MemoryKind kind) : device_(device), kind_(kind) {}
  /// Returns whether this is other memory than before.
  bool grow(std::int64_t bytes);
  /// Where the guard begins.
  std::byte* begin() const { return memory_.get(); }
  std::byte* data() const { return memory_.get() + kGuard; }
  std::int64_t capacity() const { return capacity_; }

 private:
  Device& device_;
  MemoryKind kind_;
  std::shared_ptr<std::byte> memory_;
  std::int64_t capacity_ = 0;
};

/// Owns the stream and all memory of the cases. Not thread-safe.
class DeviceHarness {
 public:
  DeviceHarness(Device& device, const DeviceOptions& options);
  ~DeviceHarness();
  DeviceHarness(const DeviceHarness&) = delete;
  DeviceHarness& operator=(const DeviceHarness&) = delete;

  const DeviceOptions& options() const { return options_; }

  /// Verifies a case, then measures it.
  Row measure(const DeviceCase& the_case);

  /// Packing, with packed bytes on the host staged through the memory of the device, as exchanges
  /// do it: a recording that is replayed, beside its operations launched one by one (`launches`).
  Row measure_replay(const DeviceCase& the_case);

  /// A plain copy of so many bytes from the memory of the device to packed ones of that kind, or
  /// back. The largest one is what the rows of measure() are compared with.
  Row measure_copy(Direction direction, MemoryKind packed, std::int64_t bytes);
  /// Launching nothing and waiting for it.
  Row measure_empty_kernel();
  /// Finding out that an address is in such memory, as guests do: [PEA21] section 6.3.
  Row measure_kind_of(MemoryKind kind);

 private:
  struct Job;
  struct Prepared;

  /// Gives the stream the work of one call; or why this twin cannot.
  using Launch = std::variant<std::function<void()>, std::string>;

  Prepared prepare(const DeviceCase& the_case);
  void make_room(std::int64_t bytes);
  Launch launch_of(Twin twin, const Prepared& prepared) const;
  Launch gather(const Prepared& prepared) const;
  Launch mpi(const Prepared& prepared) const;
  bool is_right(const Prepared& prepared, const Calls& run);
  bool packs_right(const Prepared& prepared, const Calls& run);
  bool unpacks_right(const Prepared& prepared, const Calls& run);
  bool equals_shadow(std::int64_t bytes);
  void host_pack(const Prepared& prepared, std::byte* to) const;
  void host_unpack(const Prepared& prepared, const std::byte* from);
  void append_limits(Row& row, const Prepared& prepared, double ns) const;
  Effort effort(double seconds) const;
  /// Waiting after each call, or after the last one.
  Calls one_by_one(const std::function<void()>& launch) const;
  Calls in_a_row(const std::function<void()>& launch) const;
  /// Measures them in turns.
  std::vector<Contender> compare(std::vector<Contender> all, double seconds, Row& row) const;

  Device& device_;
  DeviceOptions options_;
  Device::Stream stream_;
  std::unique_ptr<Packer> packer_;
  std::unique_ptr<Twins> twins_;
  // What the device's memory holds, the host knows from `shadow_`.
  DeviceBuffer memory_, shadow_, device_packed_, pinned_packed_, staging_;
  struct Speed {
    std::int64_t bytes = 0;
    double ns_per_byte = std::numeric_limits<double>::quiet_NaN();  // of the packed bytes
  };
  Speed on_device_, to_host_, from_host_;
};

struct DeviceBenchmark {
  std::string name;
  std::function<Row(DeviceHarness&)> run;
};

// The groups.
std::vector<DeviceBenchmark> device_copies(const DeviceOptions& options);
std::vector<DeviceCase> fig8(const DeviceOptions& options);
std::vector<DeviceCase> fig10(const DeviceOptions& options);
std::vector<DeviceCase> device_halo(const DeviceOptions& options);
std::vector<DeviceBenchmark> device_graphs(const DeviceOptions& options);
std::vector<DeviceCase> device_lists(const DeviceOptions& options);

}  // namespace halocline::dtype::bench
