// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/pack/segment.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

#include "dtype/pack/host/copy_range.hpp"
#include "dtype/pack/walk.hpp"
#include "dtype/support/narrow.hpp"

namespace halocline::dtype {

namespace {

using detail::Op;
using detail::StridedOp;

// Passes every run of a range to emit(displacement, packed offset, bytes), until that returns
// false.
template <class Emit>
struct EachBlock {
  Emit emit;

  bool strided(const Op& op, std::int64_t displacement, std::int64_t offset, std::int64_t first,
               std::int64_t last) const {
    return detail::cut(
        op.strided, first, last,
        [&](std::int64_t inside, std::int64_t at, int rank, std::int64_t count) {
          return each_run(op.strided, displacement + inside, offset + at, rank, count);
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
            if (end > at && !piece(detail::displacement_of(op, i), at, end - at)) return false;
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
    const auto end = offset + count * op.level(rank).packed_stride;
    std::int64_t at[64] = {};
    while (true) {
      if (!emit(displacement, offset, op.run)) return false;
      offset += op.run;
      if (offset == end) return true;
      for (int k = 0;; ++k) {
        const auto& level = op.level(k);
        displacement += level.stride;
        if (k == rank || ++at[k] < level.count) break;
        displacement -= level.count * level.stride;
        at[k] = 0;
      }
    }
  }
};

// Counts the blocks that EachBlock would emit. A run that continues the run before it does not
// count.
struct CountBlocks {
  struct State {
    std::int64_t blocks = 0, end = 0;  // `end`: displacement behind the last run
  };
  State* state;

  bool strided(const Op& op, std::int64_t displacement, std::int64_t, std::int64_t first,
               std::int64_t last) const {
    const auto& nest = op.strided;
    return detail::cut(
        nest, first, last,
        [&](std::int64_t inside, std::int64_t, int rank, std::int64_t count) {
          // For the ranks so far: the blocks, and the distance from the first run to the last run.
          std::int64_t blocks = 1, reach = 0;
          for (int k = 0; k <= rank; ++k) {
            const auto& level = nest.level(k);
            const auto steps = k == rank ? count : level.count;
            const bool continues = level.stride == reach + nest.run;
            blocks = blocks * steps - (continues ? steps - 1 : 0);
            reach += (steps - 1) * level.stride;
          }
          return add(displacement + inside, blocks, displacement + inside + reach + nest.run);
        },
        [&](std::int64_t inside, std::int64_t, std::int64_t bytes) {
          return add(displacement + inside, 1, displacement + inside + bytes);
        });
  }

  bool listed(const Op& op, std::int64_t displacement, std::int64_t offset, std::int64_t first,
              std::int64_t last) const {
    if (first == 0 && last == op.size) {
      // A rule may have empty buckets at both ends.
      const auto first_entry = op.rule ? op.rule->bucket_of(0) : 0;
      const auto i = op.rule ? op.rule->bucket_of(op.rule->elements() - 1) : op.count - 1;
      const auto run = op.size - (i == 0 ? 0 : detail::end_of(op, i - 1));
      return add(displacement + detail::displacement_of(op, first_entry), op.blocks,
                 displacement + detail::displacement_of(op, i) + run);
    }
    const auto one = [&](std::int64_t at, std::int64_t, std::int64_t bytes) {
      return add(at, 1, at + bytes);
    };
    return EachBlock<decltype(one)>{one}.listed(op, displacement, offset, first, last);
  }

 private:
  bool add(std::int64_t begin, std::int64_t blocks, std::int64_t end) const {
    const bool continues = state->blocks > 0 && state->end == begin;
    state->blocks += blocks - (continues ? 1 : 0);
    state->end = end;
    return true;
  }
};

}  // namespace

Segment::Segment(PackPlan plan, const void* buffer, std::int64_t count, std::int64_t lookahead)
    : plan_(std::move(plan)), buffer_(buffer), count_(count), bytes_(plan_.packed_bytes(count)) {
  const auto& strided = plan_.program().entry(count).strided;
  if (strided.innermost == 0) return;
  // Steps of the innermost loop that share a cache line are a packed stride apart in the stream.
  const auto& level = strided.levels[0];
  const auto sharing = detail::kLineBytes / std::max<std::int64_t>(std::abs(level.stride), 1);
  const auto steps = std::min(sharing, lookahead / level.packed_stride);
  if (steps < 2) return;
  group_bytes_ = steps * level.packed_stride;
  group_span_ = strided.innermost == strided.top() ? bytes_ : level.count * level.packed_stride;
  kept_ = std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(group_bytes_));
}

void Segment::seek(std::int64_t position) {
  if (position < 0 || position > bytes_)
    throw ConfigError("segment position " + std::to_string(position) +
                      " is outside of the packed stream (it has " + std::to_string(bytes_) +
                      " bytes): seek within it");
  if (position != position_) leave();
  position_ = position;
}

// Kept bytes are valid only while packing or unpacking goes on in order: the user may change the
// buffer in between.
void Segment::leave() {
  flush();
  packed_ = {};
}

std::int64_t Segment::clip(std::int64_t bytes) const {
  return std::clamp<std::int64_t>(bytes, 0, bytes_ - position_);
}

template <host::Direction kDirection>
void Segment::copy(std::int64_t first, std::int64_t last, const void* packed) {
  host::copy_range<kDirection>(plan_, reinterpret_cast<host::Address>(buffer_), count_, first, last,
                               reinterpret_cast<host::Address>(packed));
}

// Returns the end of the group that holds a position.
std::int64_t Segment::window_end(std::int64_t position) const {
  const auto inside = position % group_span_;
  const auto end = std::min(inside - inside % group_bytes_ + group_bytes_, group_span_);
  return std::min(position - inside + end, bytes_);
}

// Tells if the next piece continues the last piece and ends inside of a group. All other pieces are
// copied directly.
bool Segment::uses_window(std::int64_t bytes) const {
  return group_bytes_ > 0 && (position_ == resumed_at_ || position_ == 0) &&
         position_ + bytes < window_end(position_);
}

std::int64_t Segment::pack(void* packed, std::int64_t capacity) {
  flush();
  const auto bytes = clip(capacity);
  const auto end = position_ + bytes;
  auto* to = static_cast<std::byte*>(packed);
  while (position_ < end) {
    if (!packed_.holds(position_) && uses_window(end - position_)) {
      packed_ = {position_, window_end(position_), window_end(position_)};
      copy<host::Direction::pack>(packed_.first, packed_.last, kept_.get());
    }
    auto part = end - position_;
    if (packed_.holds(position_)) {
      part = std::min(part, packed_.last - position_);
      std::memcpy(to, kept_.get() + (position_ - packed_.first), static_cast<std::size_t>(part));
    } else {
      if (group_bytes_ > 0) part = std::min(part, window_end(position_) - position_);
      copy<host::Direction::pack>(position_, position_ + part, to);
    }
    to += part;
    resumed_at_ = position_ += part;
  }
  return bytes;
}

std::int64_t Segment::unpack(const void* packed, std::int64_t available) {
  packed_ = {};
  const auto bytes = clip(available);
  const auto end = position_ + bytes;
  const auto* from = static_cast<const std::byte*>(packed);
  while (position_ < end) {
    auto part = end - position_;
    if (unpacked_.first == unpacked_.last && uses_window(part))
      unpacked_ = {position_, position_, window_end(position_)};
    if (unpacked_.end > position_) {
      part = std::min(part, unpacked_.end - position_);
      std::memcpy(kept_.get() + (position_ - unpacked_.first), from,
                  static_cast<std::size_t>(part));
      unpacked_.last += part;
      if (unpacked_.last == unpacked_.end) flush();
    } else {
      if (group_bytes_ > 0) part = std::min(part, window_end(position_) - position_);
      copy<host::Direction::unpack>(position_, position_ + part, from);
    }
    from += part;
    resumed_at_ = position_ += part;
  }
  return bytes;
}

void Segment::flush() {
  copy<host::Direction::unpack>(unpacked_.first, unpacked_.last, kept_.get());
  unpacked_ = {};
}

std::size_t Segment::blocks(std::span<IoBlock> out) {
  if (out.empty()) return 0;
  leave();
  std::size_t written = 0;
  const auto emit = [&](std::int64_t displacement, std::int64_t offset, std::int64_t bytes) {
    if (written > 0 && out[written - 1].offset + out[written - 1].length == displacement) {
      out[written - 1].length += bytes;
    } else if (written < out.size()) {
      out[written++] = {displacement, bytes};
    } else {
      return false;
    }
    position_ = offset + bytes;
    return true;
  };
  detail::walk(plan_.program(), count_, position_, bytes_, EachBlock<decltype(emit)>{emit});
  return written;
}

Segment::Measure Segment::measure(std::int64_t bytes) {
  leave();
  const auto passed = clip(bytes);
  CountBlocks::State state;
  detail::walk(plan_.program(), count_, position_, position_ + passed, CountBlocks{&state});
  position_ += passed;
  return {passed, state.blocks};
}

}  // namespace halocline::dtype
