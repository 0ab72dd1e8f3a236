// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/pack/segment.hpp"

#include <algorithm>
#include <string>

#include "dtype/pack/host/copy_range.hpp"
#include "dtype/pack/walk.hpp"

namespace halocline::dtype {

namespace {

using detail::Op;
using detail::StridedOp;

// Hands every run of a range to `emit(displacement, packed offset, bytes)`, which returns whether
// to go on.
template <class Emit>
struct EachBlock {
  static constexpr bool kTakesParts = false;
  Emit emit;

  bool strided(const StridedOp& op, std::int64_t displacement, std::int64_t offset,
               std::int64_t first, std::int64_t last) const {
    return detail::cut(
        op, first, last,
        [&](std::int64_t inside, std::int64_t at, int rank, std::int64_t count) {
          return each_run(op, displacement + inside, offset + at, rank, count);
        },
        [&](std::int64_t inside, std::int64_t at, std::int64_t bytes) {
          return emit(displacement + inside, offset + at, bytes);
        });
  }

  bool listed(const Op& op, std::int64_t displacement, std::int64_t offset, std::int64_t first,
              std::int64_t last) const {
    const auto piece = [&](std::int64_t inside, std::int64_t at, std::int64_t bytes) {
      return emit(displacement + inside, offset + at, bytes);
    };
    return detail::cut_list(
        op, first, last,
        [&](std::int64_t i, std::int64_t j, std::int64_t at) {
          for (; i < j; ++i) {
            const auto end = detail::end_of(op, i);
            if (!piece(detail::displacement_of(op, i), at, end - at)) return false;
            at = end;
          }
          return true;
        },
        piece);
  }

 private:
  bool each_run(const StridedOp& op, std::int64_t displacement, std::int64_t offset, int rank,
                std::int64_t count) const {
    if (rank < 0) return emit(displacement, offset, op.run);
    const auto end = offset + count * op.packed[static_cast<std::size_t>(rank)].packed_stride;
    std::int64_t at[64] = {};
    while (true) {
      if (!emit(displacement, offset, op.run)) return false;
      offset += op.run;
      if (offset == end) return true;
      for (std::size_t k = 0;; ++k) {
        displacement += op.packed[k].stride;
        if (static_cast<int>(k) == rank || ++at[k] < op.packed[k].count) break;
        displacement -= op.packed[k].count * op.packed[k].stride;
        at[k] = 0;
      }
    }
  }
};

struct CountBlocks {
  static constexpr bool kTakesParts = false;
  std::int64_t* blocks;

  bool strided(const StridedOp& op, std::int64_t, std::int64_t, std::int64_t first,
               std::int64_t last) const {
    return detail::cut(
        op, first, last,
        [&](std::int64_t, std::int64_t, int rank, std::int64_t count) {
          *blocks += rank < 0
                         ? 1
                         : count * op.packed[static_cast<std::size_t>(rank)].packed_stride / op.run;
          return true;
        },
        [&](std::int64_t, std::int64_t, std::int64_t) { return ++*blocks, true; });
  }

  bool listed(const Op& op, std::int64_t, std::int64_t, std::int64_t first,
              std::int64_t last) const {
    return detail::cut_list(
        op, first, last,
        [&](std::int64_t i, std::int64_t j, std::int64_t) { return *blocks += j - i, true; },
        [&](std::int64_t, std::int64_t, std::int64_t) { return ++*blocks, true; });
  }
};

}  // namespace

Segment::Segment(PackPlan plan, const void* buffer, std::int64_t count)
    : plan_(std::move(plan)), buffer_(buffer), count_(count), bytes_(plan_.packed_bytes(count)) {}

void Segment::seek(std::int64_t position) {
  if (position < 0 || position > bytes_)
    throw ConfigError("segment position " + std::to_string(position) +
                      " is outside of the packed stream (it has " + std::to_string(bytes_) +
                      " bytes): seek within it");
  position_ = position;
}

std::int64_t Segment::clip(std::int64_t bytes) const {
  return std::clamp<std::int64_t>(bytes, 0, bytes_ - position_);
}

std::int64_t Segment::pack(void* packed, std::int64_t capacity) {
  const auto bytes = clip(capacity);
  host::copy_range(host::Direction::pack, plan_, reinterpret_cast<host::Address>(buffer_), count_,
                   position_, position_ + bytes, reinterpret_cast<host::Address>(packed));
  position_ += bytes;
  return bytes;
}

std::int64_t Segment::unpack(const void* packed, std::int64_t available) {
  const auto bytes = clip(available);
  host::copy_range(host::Direction::unpack, plan_, reinterpret_cast<host::Address>(buffer_), count_,
                   position_, position_ + bytes, reinterpret_cast<host::Address>(packed));
  position_ += bytes;
  return bytes;
}

std::size_t Segment::blocks(std::span<IoBlock> out) {
  if (out.empty()) return 0;
  std::size_t written = 0;
  const auto emit = [&](std::int64_t displacement, std::int64_t offset, std::int64_t bytes) {
    out[written] = {displacement, bytes};
    position_ = offset + bytes;
    return ++written < out.size();
  };
  detail::walk(plan_.program(), count_, position_, bytes_, EachBlock<decltype(emit)>{emit});
  return written;
}

Segment::Measure Segment::measure(std::int64_t bytes) {
  const auto passed = clip(bytes);
  std::int64_t blocks = 0;
  detail::walk(plan_.program(), count_, position_, position_ + passed, CountBlocks{&blocks});
  position_ += passed;
  return {passed, blocks};
}

}  // namespace halocline::dtype
