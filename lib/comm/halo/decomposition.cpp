// SPDX-License-Identifier: BSD-3-Clause
// Splits points over grids of ranks, and rates such grids.
#include "comm/halo/decomposition.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "support/error.hpp"

namespace halocline::comm {

namespace {

std::string text(const Int3& t) {
  return std::to_string(t[0]) + " x " + std::to_string(t[1]) + " x " + std::to_string(t[2]);
}

// Returns the grids in order of `cost`, the least first. Grids of equal cost keep their order.
// Leaves out grids without a cost, and grids that cost more than `most` times the least.
template <class Cost>
std::vector<Int3> by_cost(const std::vector<Int3>& grids, Cost cost, std::int64_t most) {
  std::vector<std::pair<std::int64_t, Int3>> rated;
  for (const auto& grid : grids)
    if (const std::optional<std::int64_t> c = cost(grid)) rated.emplace_back(*c, grid);
  std::stable_sort(rated.begin(), rated.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Int3> out;
  for (const auto& [c, grid] : rated)
    if (c <= most * rated.front().first) out.push_back(grid);
  return out;
}

}  // namespace

Decomposition::Decomposition(Int3 global, Int3 ranks, PerAxis<bool> periodic,
                             std::vector<int> positions)
    : global_(global), ranks_(ranks), periodic_(periodic), positions_(std::move(positions)) {
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (global[axis] < 1 || ranks[axis] < 1)
      throw ConfigError("empty dimension (" + text(global) + " points on " + text(ranks) +
                        " ranks): use positive sizes");
    if (ranks[axis] > global[axis])
      throw ConfigError("more ranks than points (decomposition " + text(ranks) + " of " +
                        text(global) + " points): use fewer ranks or a larger global size");
  }
  if (positions_.empty()) return;
  rank_at_.assign(static_cast<std::size_t>(size()), -1);
  bool all_differ = std::ssize(positions_) == size();
  for (int rank = 0; all_differ && rank < size(); ++rank) {
    const auto position = static_cast<std::size_t>(positions_[static_cast<std::size_t>(rank)]);
    all_differ = position < rank_at_.size() && rank_at_[position] == -1;
    if (all_differ) rank_at_[position] = rank;
  }
  if (!all_differ)
    throw ConfigError("positions are no permutation of the ranks (decomposition " + text(ranks) +
                      "): give each rank a position of its own");
}

Int3 Decomposition::coordinates(int rank) const {
  const int at = positions_.empty() ? rank : positions_[static_cast<std::size_t>(rank)];
  return {at % ranks_[0], at / ranks_[0] % ranks_[1], at / (ranks_[0] * ranks_[1])};
}

Int3 Decomposition::largest_extent() const {
  return owned(rank_at_.empty() ? 0 : rank_at_.front()).extent;
}

Box Decomposition::owned(int rank) const {
  const auto at = coordinates(rank);
  Box box{};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const auto share = global_[axis] / ranks_[axis], rest = global_[axis] % ranks_[axis];
    box.begin[axis] = at[axis] * share + std::min(at[axis], rest);
    box.extent[axis] = share + (at[axis] < rest ? 1 : 0);
  }
  return box;
}

std::optional<int> Decomposition::neighbor(int rank, Direction direction) const {
  auto at = coordinates(rank);
  for (std::size_t axis = 0; axis < 3; ++axis) {
    at[axis] += direction[axis];
    if (at[axis] >= 0 && at[axis] < ranks_[axis]) continue;
    if (!periodic_[axis]) return std::nullopt;
    at[axis] = (at[axis] + ranks_[axis]) % ranks_[axis];
  }
  const auto position = (at[2] * ranks_[1] + at[1]) * ranks_[0] + at[0];
  return rank_at_.empty() ? static_cast<int>(position)
                          : rank_at_[static_cast<std::size_t>(position)];
}

std::vector<Int3> rank_grids(int ranks) {
  std::vector<Int3> out;
  for (std::int64_t x = 1; x <= ranks; ++x) {
    if (ranks % x != 0) continue;
    for (std::int64_t y = 1; y <= ranks / x; ++y)
      if (ranks / x % y == 0) out.push_back({x, y, ranks / x / y});
  }
  return out;
}

std::vector<Int3> good_grids(int ranks, const Int3& global, const PerAxis<std::int64_t>& radius) {
  const auto halo = [&](const Int3& g) -> std::optional<std::int64_t> {
    Int3 box{};
    for (std::size_t axis = 0; axis < 3; ++axis) {
      if (global[axis] / g[axis] < std::max<std::int64_t>(radius[axis], 1)) return std::nullopt;
      box[axis] = (global[axis] + g[axis] - 1) / g[axis];
    }
    // A dimension with one rank sends nothing to others.
    const auto face = [&](std::size_t axis, std::size_t u, std::size_t v) {
      return g[axis] > 1 ? box[u] * box[v] * radius[axis] : 0;
    };
    return face(0, 1, 2) + face(1, 0, 2) + face(2, 0, 1);
  };
  auto grids = by_cost(rank_grids(ranks), halo, 2);
  if (grids.empty())
    throw ConfigError("no decomposition (" + std::to_string(ranks) + " ranks over global " +
                      text(global) + " points leave some rank fewer than " +
                      (radius.all_alike() ? std::to_string(radius[0]) : text(radius)) +
                      " points, the radius of the halo, in a dimension): use fewer ranks, a larger "
                      "global size or a narrower halo");
  return grids;
}

std::vector<Int3> good_grids(int ranks) {
  return by_cost(
      rank_grids(ranks), [](const Int3& g) { return std::optional(g[0] + g[1] + g[2]); }, 1);
}

Int3 choose_ranks(int ranks, const Int3& global, const PerAxis<std::int64_t>& radius) {
  return good_grids(ranks, global, radius).front();
}

Int3 choose_ranks(int ranks) {
  return good_grids(ranks).front();
}

}  // namespace halocline::comm
