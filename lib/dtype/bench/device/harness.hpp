// SPDX-License-Identifier: BSD-3-Clause
// Verifies and measures the cases of bench_device. A case is some types in the memory of a device,
// packed or unpacked. The host's packer gives the expected result. All methods with the right
// result are timed in turns.
//
// Best peer: [PEA21] reports bandwidths and their ratio to an MPI that copies block by block. Here
// every row gives its distance from a plain copy of the same number of bytes, measured in the same
// run.
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
#include "dtype/bench/program.hpp"
#include "dtype/device/device.hpp"
#include "dtype/pack/block_list.hpp"

namespace halocline::dtype::bench {

/// Names the methods to compare with. tempi waits after each of its launches, as [PEA21] does. All
/// other methods wait once for their work.
enum class Twin {
  tempi,     ///< a launch of [PEA21]'s kernel for each part
  separate,  ///< a launch of ours for each part
  blocks,    ///< a copy for each contiguous block, as in MPI libraries
  memcpy3d,  ///< cudaMemcpy3DAsync for each part
  gather,    ///< a kernel with a list of all words
  mpi        ///< MPI_Pack or MPI_Unpack, if MPI knows CUDA
};

/// Is the least value that a field of a row should reach.
struct Target {
  const char* field;
  double at_least;
};

/// Describes types to pack or unpack. Their packed bytes follow each other; ours takes one launch
/// for all parts.
struct DeviceCase {
  std::string name;
  CopyDirection direction = CopyDirection::pack;
  MemoryKind packed = MemoryKind::device;
  std::vector<Part> parts;
  std::vector<Twin> twins;
  double seconds = 0.1;                                         ///< time to measure
  std::vector<std::pair<std::string, double>> parameters = {};  ///< fields of the row
  std::vector<Target> targets = {};
};

/// Holds memory of a device between guards. It is kept for the next case.
class DeviceBuffer {
 public:
  static constexpr std::int64_t kGuard = 4096;

  DeviceBuffer(Device& device, MemoryKind kind) : device_(device), kind_(kind) {}
  /// Makes room for `bytes` bytes. Returns true if the memory is new: its bytes are then undefined.
  bool grow(std::int64_t bytes);
  /// Returns the begin of the guard in front of the data.
  std::byte* begin() const { return memory_.get(); }
  std::byte* data() const { return memory_.get() + kGuard; }
  std::int64_t capacity() const { return capacity_; }

 private:
  Device& device_;
  MemoryKind kind_;
  std::shared_ptr<std::byte> memory_;
  std::int64_t capacity_ = 0;
};

/// Measures cases. Owns the stream and all memory of the cases. Not thread-safe.
class DeviceHarness {
 public:
  DeviceHarness(Device& device, const Options& options);
  ~DeviceHarness();
  DeviceHarness(const DeviceHarness&) = delete;
  DeviceHarness& operator=(const DeviceHarness&) = delete;

  const Options& options() const { return options_; }

  /// Verifies a case, then measures it.
  Row measure(const DeviceCase& the_case);

  /// Measures a recording that is replayed, beside its operations launched one by one (`launches`).
  /// Packed bytes on the host are staged through the memory of the device, as in exchanges.
  Row measure_replay(const DeviceCase& the_case);

  /// Measures a plain copy of `bytes` bytes from the memory of the device to packed bytes of the
  /// kind `packed`, or back. The rows of measure() are compared with the largest copy.
  Row measure_copy(CopyDirection direction, MemoryKind packed, std::int64_t bytes);
  /// Measures the launch of an empty kernel, and the wait for it.
  Row measure_empty_kernel();
  /// Measures kind_of_memory(), the query of a guest in somebody else's process: [PEA21] section
  /// 6.3.
  Row measure_kind_of(MemoryKind kind);

 private:
  struct Job;
  struct Prepared;

  /// Gives the stream the work of one call. A string is the reason why a twin cannot.
  using Launch = std::variant<std::function<void()>, std::string>;

  Prepared prepare(const DeviceCase& the_case);
  void make_room(std::int64_t bytes);
  void copy_now(void* to, const void* from, std::size_t bytes) const;
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
  // They wait after each call, and after the last call.
  Calls one_by_one(const std::function<void()>& launch) const;
  Calls in_a_row(const std::function<void()>& launch) const;
  /// Measures the contenders in turns.
  std::vector<Contender> compare(std::vector<Contender> all, double seconds, Row& row) const;

  Device& device_;
  Options options_;
  Device::Stream stream_;
  std::unique_ptr<Packer> packer_;
  std::unique_ptr<Twins> twins_;
  // `shadow_` is the host's copy of the bytes in the device's memory.
  DeviceBuffer memory_, shadow_, device_packed_, pinned_packed_, staging_;
  struct Speed {
    std::int64_t bytes = 0;
    double ns_per_byte = std::numeric_limits<double>::quiet_NaN();  // time for a packed byte
  };
  Speed on_device_, to_host_, from_host_;
};

// Groups.
std::vector<Benchmark> device_copies(DeviceHarness& harness);
std::vector<Benchmark> device_graphs(DeviceHarness& harness);
std::vector<DeviceCase> fig8(const Options& options);
std::vector<DeviceCase> fig10(const Options& options);
std::vector<DeviceCase> device_halo(const Options& options);
std::vector<DeviceCase> device_lists(const Options& options);

}  // namespace halocline::dtype::bench
