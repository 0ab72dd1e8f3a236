// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/pack/pack_plan.hpp"

#include <utility>

#include "dtype/support/contract.hpp"

namespace halocline::dtype {

namespace {

// Largest power of two that divides all the bits or'ed into `moves`, which must not be 0.
std::int64_t power_of_two_divisor(std::uint64_t moves) {
  return static_cast<std::int64_t>(moves & (~moves + 1));
}

}  // namespace

PackPlan::PackPlan(LoopNest nest) : nest_(std::move(nest)), levels_(nest_.levels) {
  const auto extent = nest_.bounds.extent;
  const bool dense = levels_.empty() && extent == nest_.run;
  // Whether instance i + 1 is just what the outermost level would do next, in memory and in the
  // packed stream.
  const bool continues = !levels_.empty() &&
                         extent == levels_.back().count * levels_.back().stride &&
                         nest_.bounds.size == levels_.back().count * levels_.back().packed_stride;
  if (!dense && !continues) levels_.push_back({1, extent, nest_.bounds.size});

  constexpr std::uint64_t kMaxWord = 16;
  std::uint64_t moves =
      kMaxWord | static_cast<std::uint64_t>(nest_.start) | static_cast<std::uint64_t>(nest_.run);
  for (const auto& level : levels_)
    moves |=
        static_cast<std::uint64_t>(level.stride) | static_cast<std::uint64_t>(level.packed_stride);
  word_bytes_ = power_of_two_divisor(moves);
}

PackPlan::Loops PackPlan::loops(std::int64_t count) const {
  HALOCLINE_EXPECT(count >= 0);
  if (count == 0 || nest_.run == 0) return {0, 0, {}, 0};
  if (levels_.empty()) return {nest_.start, nest_.run * count, {}, 1};
  return {nest_.start, nest_.run, levels_, levels_.back().count * count};
}

Result<PackPlan> make_plan(MPI_Datatype handle) {
  auto tree = translate(handle);
  if (auto* reason = std::get_if<UnsupportedDatatype>(&tree)) return std::move(*reason);
  auto nest = strided_nest(std::get<TypeTree>(tree));
  if (auto* reason = std::get_if<UnsupportedDatatype>(&nest)) return std::move(*reason);
  return PackPlan(std::get<LoopNest>(std::move(nest)));
}

std::int64_t aligned_word(std::int64_t word_bytes, const void* a, const void* b) {
  return power_of_two_divisor(static_cast<std::uint64_t>(word_bytes) |
                              reinterpret_cast<std::uintptr_t>(a) |
                              reinterpret_cast<std::uintptr_t>(b));
}

}  // namespace halocline::dtype
