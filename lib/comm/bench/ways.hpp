// SPDX-License-Identifier: BSD-3-Clause
// Measures several ways to send a message between two ranks. The ways take turns.
//
// Best peer: OSU's latency test has vectors of one shape and times one MPI alone. Here any type
// goes any way, arrived data are compared byte by byte, and all ways are in one run.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "dtype/bench/program.hpp"
#include "dtype/datatype.hpp"
#include "dtype/device/resource_cache.hpp"
#include "dtype/pack/pack_plan.hpp"

namespace halocline::comm::bench {

using dtype::bench::Calls;
using dtype::bench::Contender;
using dtype::bench::Effort;
using dtype::bench::Part;
using dtype::bench::Row;

/// Holds a rank's arrays for messages of one type: one to send and one to receive, each with
/// guards.
class MessageArrays {
 public:
  /// Counts the copies of a span that the object takes, on host and device together.
  static constexpr std::int64_t kCopies = 6;

  /// Allocates the arrays. They are in ordinary memory if `resources` is nullptr.
  MessageArrays(const Part& part, dtype::ResourceCache* resources, dtype::MemoryKind kind);

  std::int64_t bytes() const { return bytes_; }    ///< packed bytes
  std::int64_t blocks() const { return blocks_; }  ///< contiguous blocks
  MPI_Datatype type() const { return type_.get(); }
  std::int64_t count() const { return count_; }
  void* out() const { return out_.data + kGuard; }
  void* in() const { return in_.data + kGuard; }

  /// Fills both arrays before a message that is to be checked; call it on both ranks.
  void reset() const;
  /// Tells if the received array holds the partner's data, and its old contents around the data.
  bool is_right() const;

 private:
  static constexpr std::int64_t kGuard = 4096;
  struct Array {
    std::byte* data = nullptr;
    std::unique_ptr<std::byte[]> host;
    dtype::ResourceCache::Buffer device;
  };
  Array allocate(dtype::ResourceCache* resources, dtype::MemoryKind kind) const;
  void copy(void* to, const void* from) const;

  dtype::Datatype type_;
  dtype::PackPlan plan_;
  std::int64_t count_, bytes_, blocks_ = 0, span_;
  dtype::Device* device_;
  Array out_, in_;
  std::vector<std::byte> out_host_, gaps_host_;
};

/// Describes one way of sending: both ends of a message, and the memory in which it arrives.
/// `memory` is nullptr if the data are not checked.
struct Way {
  std::string name;
  std::function<void()> send, receive;
  const MessageArrays* memory;
};

/// Measures half the time of a message there and back, for each of `ways`. Adds the fields NAME_ns,
/// NAME_p10_ns and NAME_p90_ns to `row`. A way whose first message arrives wrong is noted in the
/// row and left out. Returns the contenders on rank 0. Collective over the two ranks of `comm`.
std::vector<Contender> measure_ways(MPI_Comm comm, const std::vector<Way>& ways,
                                    const Effort& effort, Row& row);

}  // namespace halocline::comm::bench
