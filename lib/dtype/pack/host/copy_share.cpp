// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/pack/host/copy_share.hpp"

#include <algorithm>
#include <cstddef>
#include <span>

#include "dtype/pack/host/copy_loops.hpp"
#include "dtype/pack/host/copy_range.hpp"

namespace halocline::dtype::host {

namespace {

using detail::CopyNest;
using detail::CopyPiece;
using detail::CopyProgram;
using detail::CopyStep;

// Copies a part of each nest of a step. with_part(nest, copy) calls copy(loops, source,
// destination) with the part of that nest.
template <class WithPart>
void copy_parts(std::span<const CopyNest> nests, const CopyStep& step, const WithPart& with_part) {
  if (step.twins != nullptr) {
    const auto source_apart = nests[1].source - nests[0].source,
               destination_apart = nests[1].destination - nests[0].destination;
    return with_part(nests[0], [&](const Nest& loops, Address source, Address destination) {
      step.twins(loops, source, destination, source_apart, destination_apart);
    });
  }
  for (const auto& nest : nests) with_part(nest, nest.kernel);
}

// Copies the units [first, last) of a step.
[[gnu::noinline]] void copy_units(std::span<const CopyNest> nests, const CopyStep& step,
                                  std::int64_t first, std::int64_t last) {
  const auto rank = static_cast<std::size_t>(step.rank);
  const auto steps = nests.front().levels[rank].count;
  const auto chunks = (steps + step.chunk - 1) / step.chunk;
  for (auto unit = first; unit < last; ++unit) {
    const auto begin = unit % chunks * step.chunk;
    copy_parts(nests, step, [&](const CopyNest& nest, const auto& copy) {
      auto source = nest.source, destination = nest.destination;
      const auto move = [&](const LoopLevel& level, std::int64_t by) {
        source += static_cast<Address>(by * level.stride);
        destination += static_cast<Address>(by * level.packed_stride);
      };
      auto outer = unit / chunks;
      for (auto k = rank + 1; k < nest.levels.size(); ++k) {
        move(nest.levels[k], outer % nest.levels[k].count);
        outer /= nest.levels[k].count;
      }
      move(nest.levels[rank], begin);
      LoopLevel levels[64];
      std::copy_n(nest.levels.begin(), rank + 1, levels);
      levels[rank].count = std::min(step.chunk, steps - begin);
      copy({nest.run, std::span(levels, rank + 1)}, source, destination);
    });
  }
}

void copy_all(std::span<const CopyNest> nests, const CopyStep& step) {
  copy_parts(nests, step, [](const CopyNest& nest, const auto& copy) {
    copy({nest.run, nest.levels}, nest.source, nest.destination);
  });
}

// Copies the bytes [first, last) of pieces.
void copy_pieces(std::span<const CopyPiece> pieces, std::int64_t first, std::int64_t last) {
  auto piece = std::upper_bound(pieces.begin(), pieces.end(), first,
                                [](std::int64_t at, const CopyPiece& p) { return at < p.end; });
  auto begin = piece == pieces.begin() ? 0 : std::prev(piece)->end;
  for (; first < last; ++piece) {
    const auto end = std::min(piece->end, last);
    const auto inside = static_cast<Address>(first - begin);
    copy_some<Direction::pack>(end - first, piece->source + inside, piece->destination + inside);
    begin = piece->end;
    first = end;
  }
}

// Copies the bytes [first, last) of a job's packed stream through a window.
void copy_staged(const CopyJob& job, std::int64_t first, std::int64_t last) {
  constexpr std::int64_t kWindowBytes = 8192;
  alignas(kLineBytes) std::byte window[kWindowBytes];
  const auto packed = reinterpret_cast<Address>(window);
  for (; first < last; first += kWindowBytes) {
    const auto end = std::min(first + kWindowBytes, last);
    copy_range<Direction::pack>(job.source_plan, reinterpret_cast<Address>(job.source),
                                job.source_count, first, end, packed);
    copy_range<Direction::unpack>(job.destination_plan, reinterpret_cast<Address>(job.destination),
                                  job.destination_count, first, end, packed);
  }
}

// Copies the share [first, last) of a step, which has `bytes` bytes.
void copy_part(const CopyProgram& program, const CopyStep& step, std::int64_t bytes,
               std::int64_t first, std::int64_t last) {
  const auto size = step.last - step.first;
  switch (step.kind) {
    case CopyStep::Kind::nests: {
      const auto nests = std::span(program.nests).subspan(step.first, size);
      if (step.units == 1) return first == 0 ? copy_all(nests, step) : void();
      // Units are numbered in proportion to bytes, rounded down.
      const auto distance = bytes / step.units;
      const auto unit_at = [&](std::int64_t at) {
        return at == bytes ? step.units : std::min(at / distance, step.units);
      };
      return copy_units(nests, step, unit_at(first), unit_at(last));
    }
    case CopyStep::Kind::pieces:
      return copy_pieces(std::span(program.pieces).subspan(step.first, size), first, last);
    case CopyStep::Kind::staged:
      return copy_staged(program.staged[step.first], first, last);
  }
}

}  // namespace

void copy_share(const CopyPlan& plan, std::int64_t first, std::int64_t last) {
  const auto& steps = plan.program().steps;
  auto step = std::upper_bound(steps.begin(), steps.end(), first,
                               [](std::int64_t at, const CopyStep& s) { return at < s.end; });
  auto begin = step == steps.begin() ? 0 : std::prev(step)->end;
  for (; first < last; ++step) {
    const auto end = std::min(step->end, last);
    copy_part(plan.program(), *step, step->end - begin, first - begin, end - begin);
    first = begin = end;
  }
}

}  // namespace halocline::dtype::host
