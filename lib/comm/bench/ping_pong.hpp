// SPDX-License-Identifier: BSD-3-Clause
// Two ranks that send a message to and fro in several ways, which take turns.
//
// Best peer: OSU's latency test has vectors of one shape and times one MPI's way alone; here any
// type goes any way, what arrives is compared byte by byte, and all ways are in one run.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "dtype/bench/rows.hpp"
#include "dtype/bench/turns.hpp"
#include "dtype/datatype.hpp"
#include "dtype/device/resource_cache.hpp"
#include "dtype/pack/pack_plan.hpp"

namespace halocline::comm::bench {

using dtype::bench::Calls;
using dtype::bench::Contender;
using dtype::bench::Effort;
using dtype::bench::Part;
using dtype::bench::Row;

/// Memory of a rank for messages of one type: what it sends and what it receives, each with guards.
class MessageMemory {
 public:
  /// How many times its span it takes, on the host and on the device together.
  static constexpr std::int64_t kCopies = 6;

  /// In ordinary memory if `resources` is nullptr.
  MessageMemory(const Part& part, dtype::ResourceCache* resources, dtype::MemoryKind kind);

  std::int64_t bytes() const { return bytes_; }    ///< packed
  std::int64_t blocks() const { return blocks_; }  ///< contiguous ones
  MPI_Datatype type() const { return type_.get(); }
  std::int64_t count() const { return count_; }
  void* out() const { return out_.data + kGuard; }
  void* in() const { return in_.data + kGuard; }

  /// Before a message that is to be checked, on both sides; afterwards, whether `in` holds what
  /// the other's `out` held, and around that what it held before.
  void reset() const;
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

/// A way for messages: both ends of it, and the memory in which they arrive; nullptr if that is not
/// to be checked.
struct Way {
  std::string name;
  std::function<void()> send, receive;
  const MessageMemory* memory;
};

/// Rank 0 and rank 1 of a communicator; others stay outside.
class PingPong {
 public:
  explicit PingPong(MPI_Comm comm);

  int rank() const { return rank_; }

  /// Half of the time of a message there and back, in each of the ways: fields NAME_ns,
  /// NAME_p10_ns, NAME_p90_ns of `row`. A way whose first message arrives wrong is noted in the
  /// row and left out. Returns the contenders, on rank 0. Collective over both.
  std::vector<Contender> measure(const std::vector<Way>& ways, const Effort& effort,
                                 Row& row) const;

 private:
  bool is_right(const Way& way) const;
  void exchange(const Way& way) const;
  void serve(const std::vector<Way>& ways) const;

  MPI_Comm comm_;
  int rank_ = 0;
};

}  // namespace halocline::comm::bench
