// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/pack/block_list.hpp"

#include <algorithm>

#include "dtype/pack/walk.hpp"

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
        [&](std::int64_t inside, std::int64_t at, int height, std::int64_t count) {
          return each_run(op.strided, displacement + inside, offset + at, height, count);
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
  bool each_run(const StridedOp& op, std::int64_t displacement, std::int64_t offset, int height,
                std::int64_t count) const {
    if (height < 0) return emit(displacement, offset, op.run);
    const auto end = offset + count * op.level(height).packed_stride;
    std::int64_t at[64] = {};
    while (true) {
      if (!emit(displacement, offset, op.run)) return false;
      offset += op.run;
      if (offset == end) return true;
      for (int k = 0;; ++k) {
        const auto& level = op.level(k);
        displacement += level.stride;
        if (k == height || ++at[k] < level.count) break;
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
        [&](std::int64_t inside, std::int64_t, int height, std::int64_t count) {
          // For the heights so far: the blocks, and the distance from the first run to the last
          // run.
          std::int64_t blocks = 1, reach = 0;
          for (int k = 0; k <= height; ++k) {
            const auto& level = nest.level(k);
            const auto steps = k == height ? count : level.count;
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
      return add(displacement + detail::displacement_of(op, first_entry), op.separate_runs,
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

std::size_t list_blocks(const PackPlan& plan, std::int64_t count, std::int64_t& position,
                        std::span<MemoryBlock> out) {
  if (out.empty()) return 0;
  std::size_t written = 0;
  const auto emit = [&](std::int64_t displacement, std::int64_t offset, std::int64_t bytes) {
    if (written > 0 && out[written - 1].offset + out[written - 1].length == displacement) {
      out[written - 1].length += bytes;
    } else if (written < out.size()) {
      out[written++] = {displacement, bytes};
    } else {
      return false;
    }
    position = offset + bytes;
    return true;
  };
  detail::walk(plan.program(), count, position, plan.packed_bytes(count),
               EachBlock<decltype(emit)>{emit});
  return written;
}

std::int64_t count_blocks(const PackPlan& plan, std::int64_t count, std::int64_t first,
                          std::int64_t last) {
  CountBlocks::State state;
  detail::walk(plan.program(), count, first, last, CountBlocks{&state});
  return state.blocks;
}

}  // namespace halocline::dtype
