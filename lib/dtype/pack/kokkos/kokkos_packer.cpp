// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/pack/kokkos/kokkos_packer.hpp"

#include <cstdint>

namespace halocline::dtype {

namespace {

using Address = std::uintptr_t;

struct Word16 {
  std::uint64_t low, high;
};

// About this many bytes make a step of the kernel: many short runs, or a piece of a long one.
constexpr std::int64_t kStepBytes = 4096;

// A step divides once to find its first run and walks from there like an odometer. Levels are
// captured by value: no metadata in device memory.
template <bool kPacks, class Word, int kMaxLevels>
struct CopyStep {
  Address memory, packed;
  std::int64_t words_per_run, words_per_piece, pieces_per_run;
  std::int64_t runs, runs_per_step;
  int depth;
  Kokkos::Array<LoopLevel, kMaxLevels> levels;  // innermost first

  KOKKOS_FUNCTION void operator()(std::int64_t step) const {
    const auto first_word = step % pieces_per_run * words_per_piece;
    const auto last_word = Kokkos::min(first_word + words_per_piece, words_per_run);
    const auto first_run = step / pieces_per_run * runs_per_step;
    const auto last_run = Kokkos::min(first_run + runs_per_step, runs);

    std::int64_t at[kMaxLevels] = {};
    Address m = memory, p = packed;
    auto rest = first_run;
    for (int k = 0; k < depth; ++k) {
      at[k] = rest % levels[k].count;
      rest /= levels[k].count;
      m += static_cast<Address>(at[k] * levels[k].stride);
      p += static_cast<Address>(at[k] * levels[k].packed_stride);
    }
    for (auto run = first_run;;) {
      copy(reinterpret_cast<Word*>(m), reinterpret_cast<Word*>(p), first_word, last_word);
      if (++run == last_run) return;
      for (int k = 0; k < depth; ++k) {
        m += static_cast<Address>(levels[k].stride);
        p += static_cast<Address>(levels[k].packed_stride);
        if (++at[k] < levels[k].count) break;
        m -= static_cast<Address>(levels[k].count * levels[k].stride);
        p -= static_cast<Address>(levels[k].count * levels[k].packed_stride);
        at[k] = 0;
      }
    }
  }

  KOKKOS_FORCEINLINE_FUNCTION static void copy(Word* m, Word* p, std::int64_t first,
                                               std::int64_t last) {
    for (auto w = first; w < last; ++w) {
      if constexpr (kPacks) {
        p[w] = m[w];
      } else {
        m[w] = p[w];
      }
    }
  }
};

template <bool kPacks, class Word, int kMaxLevels, class ExecutionSpace>
void launch(const ExecutionSpace& space, const PackPlan::Loops& loops, Address memory,
            Address packed) {
  // Outer levels beyond what a kernel holds: loops on the host.
  if (const auto depth = loops.levels.size(); depth > kMaxLevels) {
    const auto& outer = loops.levels.back();
    const auto inner = loops.levels.first(depth - 1);
    for (std::int64_t i = 0; i < loops.outermost_count; ++i)
      launch<kPacks, Word, kMaxLevels>(space, {0, loops.run, inner, inner.back().count},
                                       memory + static_cast<Address>(i * outer.stride),
                                       packed + static_cast<Address>(i * outer.packed_stride));
    return;
  }
  constexpr auto kStepWords = kStepBytes / static_cast<std::int64_t>(sizeof(Word));
  const auto words = loops.run / static_cast<std::int64_t>(sizeof(Word));
  CopyStep<kPacks, Word, kMaxLevels> copy{
      .memory = memory,
      .packed = packed,
      .words_per_run = words,
      .words_per_piece = kStepWords,
      .pieces_per_run = (words + kStepWords - 1) / kStepWords,
      .runs = 1,
      .runs_per_step = words < kStepWords ? kStepWords / words : 1,
      .depth = static_cast<int>(loops.levels.size()),
      .levels = {}};
  for (int k = 0; k < copy.depth; ++k) {
    auto level = loops.levels[static_cast<std::size_t>(k)];
    if (k + 1 == copy.depth) level.count = loops.outermost_count;
    copy.levels[static_cast<std::size_t>(k)] = level;
    copy.runs *= level.count;
  }
  const auto steps =
      (copy.runs + copy.runs_per_step - 1) / copy.runs_per_step * copy.pieces_per_run;
  using Policy = Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>;
  Kokkos::parallel_for(kPacks ? "halocline::KokkosPacker::pack" : "halocline::KokkosPacker::unpack",
                       Policy(space, 0, steps), copy);
}

template <bool kPacks, int kMaxLevels, class ExecutionSpace>
void execute(const ExecutionSpace& space, const PackPlan& plan, const void* buffer,
             std::int64_t count, const void* packed) {
  auto loops = plan.loops(count);
  if (loops.run == 0) return;
  const auto memory = reinterpret_cast<Address>(buffer) + static_cast<Address>(loops.start);
  const auto stream = reinterpret_cast<Address>(packed);
  switch (aligned_word(plan.word_bytes(), buffer, packed)) {
    case 1:
      return launch<kPacks, std::uint8_t, kMaxLevels>(space, loops, memory, stream);
    case 2:
      return launch<kPacks, std::uint16_t, kMaxLevels>(space, loops, memory, stream);
    case 4:
      return launch<kPacks, std::uint32_t, kMaxLevels>(space, loops, memory, stream);
    case 8:
      return launch<kPacks, std::uint64_t, kMaxLevels>(space, loops, memory, stream);
    default:
      return launch<kPacks, Word16, kMaxLevels>(space, loops, memory, stream);
  }
}

}  // namespace

template <class ExecutionSpace>
void KokkosPacker<ExecutionSpace>::pack(const PackPlan& plan, const void* buffer,
                                        std::int64_t count, void* packed) const {
  execute<true, kMaxKernelLevels>(space_, plan, buffer, count, packed);
}

template <class ExecutionSpace>
void KokkosPacker<ExecutionSpace>::unpack(const PackPlan& plan, const void* packed, void* buffer,
                                          std::int64_t count) const {
  execute<false, kMaxKernelLevels>(space_, plan, buffer, count, packed);
}

#ifdef KOKKOS_ENABLE_SERIAL
template class KokkosPacker<Kokkos::Serial>;
#endif
#ifdef KOKKOS_ENABLE_OPENMP
template class KokkosPacker<Kokkos::OpenMP>;
#endif

}  // namespace halocline::dtype
