// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/pack/host/copy_share.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "dtype/pack/host/copy_range.hpp"
#include "dtype/pack/host/copy_widths.hpp"

namespace halocline::dtype::host {

namespace {

using detail::CopyNest;
using detail::CopyPiece;
using detail::CopyProgram;
using detail::CopyStep;

// Bytes that nests touch in a turn, so that they stay in the nearest cache. A nest alone has turns
// only so that threads can share them.
constexpr std::int64_t kTurnBytes = 64 * 1024, kAloneBytes = 256 * 1024;

std::span<const CopyNest> nests_of(const CopyProgram& program, const CopyStep& step) {
  return std::span(program.nests).subspan(step.first, step.last - step.first);
}

bool are_twins(std::span<const CopyNest> nests) {
  return nests.size() <= TwinDistances::kMost + 1 &&
         std::all_of(nests.begin() + 1, nests.end(), [&](const CopyNest& nest) {
           return nest.run == nests[0].run && nest.levels == nests[0].levels;
         });
}

TwinDistances distances_of(std::span<const CopyNest> nests) {
  TwinDistances out;
  for (std::size_t i = 1; i < nests.size(); ++i) {
    out.memory[i - 1] = nests[i].source - nests[0].source;
    out.packed[i - 1] = nests[i].destination - nests[0].destination;
  }
  return out;
}

// Tells if a plan is so large that its ghosts leave the caches before they are read. Stores past
// the caches then save fetching the lines that they write.
bool is_streamed(const CopyPlan& plan) {
  constexpr std::int64_t kBeyondCaches = std::int64_t{4} << 20;
  return kCanStream && plan.bytes() >= kBeyondCaches;
}

// Chooses units that touch a certain number of bytes, and the kernels that copy them.
StepUnits choose_units(std::span<const CopyNest> nests, bool streamed) {
  const auto& levels = nests[0].levels;
  std::int64_t touched = 0;
  for (const auto& nest : nests) touched += 2 * (nest.run / kLineBytes + 1) * kLineBytes;
  const auto twins_of = [&](std::span<const LoopLevel> loops) {
    return are_twins(nests) ? choose_twin_kernel({nests[0].run, loops}, nests.size() - 1) : nullptr;
  };
  const bool alone = nests.size() == 1 || twins_of(levels) != nullptr;
  const auto wanted = alone ? kAloneBytes : kTurnBytes;
  std::size_t height = 0;
  const bool tiled = is_tiled(levels);
  for (; height + 1 < levels.size() && (tiled || touched * levels[height].count <= wanted);
       ++height)
    touched *= levels[height].count;
  StepUnits units;
  units.height = static_cast<int>(height);
  units.chunk = std::clamp<std::int64_t>(wanted / touched, 1, levels[height].count);
  units.units = (levels[height].count + units.chunk - 1) / units.chunk;
  for (auto k = height + 1; k < levels.size(); ++k) units.units *= levels[k].count;
  units.twins = twins_of(std::span(levels).first(height + 1));
  if (units.twins != nullptr) units.apart = distances_of(nests);
  for (const auto& nest : nests) {
    const Nest unit{nest.run, std::span(nest.levels).first(height + 1)};
    auto* const past_caches = streamed ? choose_streaming_kernel(unit) : nullptr;
    units.kernels.push_back(past_caches != nullptr ? past_caches
                                                   : choose_kernel<CopyDirection::pack>(unit));
  }
  return units;
}

// Copies a part of each nest of a step. with_part(nest, copy) calls copy(loops, source,
// destination) with the part of that nest.
template <class WithPart>
void copy_parts(std::span<const CopyNest> nests, const StepUnits& step, const WithPart& with_part) {
  if (step.twins != nullptr)
    return with_part(nests[0], [&](const Nest& loops, Address source, Address destination) {
      step.twins(loops, source, destination, step.apart);
    });
  for (std::size_t i = 0; i < nests.size(); ++i) with_part(nests[i], step.kernels[i]);
}

// Copies the units [first, last) of a step.
[[gnu::noinline]] void copy_units(std::span<const CopyNest> nests, const StepUnits& step,
                                  std::int64_t first, std::int64_t last) {
  const auto height = static_cast<std::size_t>(step.height);
  const auto steps = nests.front().levels[height].count;
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
      for (auto k = height + 1; k < nest.levels.size(); ++k) {
        move(nest.levels[k], outer % nest.levels[k].count);
        outer /= nest.levels[k].count;
      }
      move(nest.levels[height], begin);
      LoopLevel levels[64];
      std::copy_n(nest.levels.begin(), height + 1, levels);
      levels[height].count = std::min(step.chunk, steps - begin);
      copy({nest.run, std::span(levels, height + 1)}, source, destination);
    });
  }
}

void copy_all(std::span<const CopyNest> nests, const StepUnits& step) {
  copy_parts(nests, step, [](const CopyNest& nest, const auto& copy) {
    copy({nest.run, nest.levels}, nest.source, nest.destination);
  });
}

// Copies the bytes [first, last) of pieces.
void copy_pieces(std::span<const CopyPiece> pieces, std::int64_t first, std::int64_t last,
                 bool streamed) {
  auto piece = std::upper_bound(pieces.begin(), pieces.end(), first,
                                [](std::int64_t at, const CopyPiece& p) { return at < p.end; });
  auto begin = piece == pieces.begin() ? 0 : std::prev(piece)->end;
  for (; first < last; ++piece) {
    const auto end = std::min(piece->end, last);
    const auto inside = static_cast<Address>(first - begin);
    const auto bytes = end - first;
    if (streamed && bytes >= kStreamedFrom)
      Streamed{bytes}.copy(piece->destination + inside, piece->source + inside);
    else
      copy_some<CopyDirection::pack>(bytes, piece->source + inside, piece->destination + inside);
    begin = piece->end;
    first = end;
  }
}

// Copies the bytes [first, last) of a job's packed stream through a window.
void copy_windowed(const CopyJob& job, std::int64_t first, std::int64_t last) {
  constexpr std::int64_t kWindowBytes = 8192;
  alignas(kLineBytes) std::byte window[kWindowBytes];
  const auto packed = reinterpret_cast<Address>(window);
  for (; first < last; first += kWindowBytes) {
    const auto end = std::min(first + kWindowBytes, last);
    copy_range<CopyDirection::pack>(job.source_plan, reinterpret_cast<Address>(job.source),
                                    job.source_count, first, end, packed);
    copy_range<CopyDirection::unpack>(job.destination_plan,
                                      reinterpret_cast<Address>(job.destination),
                                      job.destination_count, first, end, packed);
  }
}

// Copies the share [first, last) of a step, which has `bytes` bytes.
void copy_part(const CopyProgram& program, const CopyStep& step, const StepUnits& units,
               std::int64_t bytes, std::int64_t first, std::int64_t last, bool streamed) {
  switch (step.kind) {
    case CopyStep::Kind::nests: {
      const auto nests = nests_of(program, step);
      if (units.units == 1) return first == 0 ? copy_all(nests, units) : void();
      // Units are numbered in proportion to bytes, rounded down.
      const auto distance = bytes / units.units;
      const auto unit_at = [&](std::int64_t at) {
        return at == bytes ? units.units : std::min(at / distance, units.units);
      };
      return copy_units(nests, units, unit_at(first), unit_at(last));
    }
    case CopyStep::Kind::pieces:
      return copy_pieces(std::span(program.pieces).subspan(step.first, step.last - step.first),
                         first, last, streamed);
    case CopyStep::Kind::windowed:
      return copy_windowed(program.windowed[step.first], first, last);
  }
}

}  // namespace

const std::vector<StepUnits>& units_of(const CopyPlan& plan) {
  const auto& program = plan.program();
  using All = std::vector<StepUnits>;
  return program.attachment.get<All>(detail::Attachment::Backend::host, [&] {
    All units;
    for (const auto& step : program.steps)
      units.push_back(step.kind == CopyStep::Kind::nests
                          ? choose_units(nests_of(program, step), is_streamed(plan))
                          : StepUnits());
    return std::make_shared<const All>(std::move(units));
  });
}

void copy_share(const CopyPlan& plan, std::int64_t first, std::int64_t last) {
  const auto& steps = plan.program().steps;
  const bool streamed = is_streamed(plan);
  auto step = std::upper_bound(steps.begin(), steps.end(), first,
                               [](std::int64_t at, const CopyStep& s) { return at < s.end; });
  auto unit = units_of(plan).begin() + (step - steps.begin());
  auto begin = step == steps.begin() ? 0 : std::prev(step)->end;
  for (; first < last; ++step, ++unit) {
    const auto end = std::min(step->end, last);
    copy_part(plan.program(), *step, *unit, step->end - begin, first - begin, end - begin,
              streamed);
    first = begin = end;
  }
  if (streamed) end_streams();
}

}  // namespace halocline::dtype::host
