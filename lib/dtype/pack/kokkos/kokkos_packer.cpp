// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/pack/kokkos/kokkos_packer.hpp"

#include <cstdint>

namespace halocline::dtype {

namespace {

using Address = std::uintptr_t;

struct Word16 {
  std::uint64_t low, high;
};

// One step of the kernel moves one piece of one run, word by word; long runs have several pieces, so that few of them
// still keep all threads busy. Levels are captured by value: no metadata in device memory.
template <bool kPacks, class Word, int kMaxLevels>
struct CopyPiece {
  static constexpr std::int64_t kPieceWords = 4096 / sizeof(Word);

  Address memory, packed;
  std::int64_t words_per_run, pieces_per_run;
  int depth;
  Kokkos::Array<LoopLevel, kMaxLevels> levels;  // innermost first

  KOKKOS_FUNCTION void operator()(std::int64_t index) const {
    const auto first = index % pieces_per_run * kPieceWords;
    const auto last = first + kPieceWords < words_per_run ? first + kPieceWords : words_per_run;
    auto run = index / pieces_per_run;
    std::int64_t in_memory = 0, in_packed = 0;
    for (int k = 0; k < depth; ++k) {
      const auto step = run % levels[k].count;
      run /= levels[k].count;
      in_memory += step * levels[k].stride;
      in_packed += step * levels[k].packed_stride;
    }
    auto* m = reinterpret_cast<Word*>(memory + static_cast<Address>(in_memory));
    auto* p = reinterpret_cast<Word*>(packed + static_cast<Address>(in_packed));
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
void launch(const ExecutionSpace& space, const PackPlan::Loops& loops, Address memory, Address packed) {
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
  using Copy = CopyPiece<kPacks, Word, kMaxLevels>;
  const auto words = loops.run / static_cast<std::int64_t>(sizeof(Word));
  Copy copy{memory, packed, words, (words + Copy::kPieceWords - 1) / Copy::kPieceWords,
            static_cast<int>(loops.levels.size()), {}};
  std::int64_t pieces = copy.pieces_per_run;
  for (int k = 0; k < copy.depth; ++k) {
    auto level = loops.levels[static_cast<std::size_t>(k)];
    if (k + 1 == copy.depth) level.count = loops.outermost_count;
    copy.levels[static_cast<std::size_t>(k)] = level;
    pieces *= level.count;
  }
  using Policy = Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>;
  Kokkos::parallel_for(kPacks ? "halocline::KokkosPacker::pack" : "halocline::KokkosPacker::unpack",
                       Policy(space, 0, pieces), copy);
}

template <bool kPacks, int kMaxLevels, class ExecutionSpace>
void execute(const ExecutionSpace& space, const PackPlan& plan, const void* buffer, std::int64_t count,
             const void* packed) {
  auto loops = plan.loops(count);
  if (loops.run == 0) return;
  const auto memory = reinterpret_cast<Address>(buffer) + static_cast<Address>(loops.start);
  const auto stream = reinterpret_cast<Address>(packed);
  switch (aligned_word(plan.word_bytes(), buffer, packed)) {
    case 1: return launch<kPacks, std::uint8_t, kMaxLevels>(space, loops, memory, stream);
    case 2: return launch<kPacks, std::uint16_t, kMaxLevels>(space, loops, memory, stream);
    case 4: return launch<kPacks, std::uint32_t, kMaxLevels>(space, loops, memory, stream);
    case 8: return launch<kPacks, std::uint64_t, kMaxLevels>(space, loops, memory, stream);
    default: return launch<kPacks, Word16, kMaxLevels>(space, loops, memory, stream);
  }
}

}  // namespace

template <class ExecutionSpace>
void KokkosPacker<ExecutionSpace>::pack(const PackPlan& plan, const void* buffer, std::int64_t count,
                                        void* packed) const {
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
