// SPDX-License-Identifier: BSD-3-Clause
#include "comm/halo/decomposition.hpp"

#include <algorithm>
#include <limits>
#include <string>

#include "dtype/support/error.hpp"

namespace halocline::comm {

namespace {

std::string text(const Int3& t) {
  return std::to_string(t[0]) + " x " + std::to_string(t[1]) + " x " + std::to_string(t[2]);
}

// Every way to write `ranks` as x * y * z, fewest ranks in x first, then fewest in y.
template <class Body>
void for_each_grid(int ranks, Body body) {
  for (std::int64_t x = 1; x <= ranks; ++x) {
    if (ranks % x != 0) continue;
    for (std::int64_t y = 1; y <= ranks / x; ++y)
      if (ranks / x % y == 0) body(Int3{x, y, ranks / x / y});
  }
}

// The grid of least cost; the first one of those that cost the same.
template <class Cost>
std::optional<Int3> cheapest_grid(int ranks, Cost cost) {
  std::optional<Int3> best;
  auto best_cost = std::numeric_limits<std::int64_t>::max();
  for_each_grid(ranks, [&](const Int3& grid) {
    const std::optional<std::int64_t> c = cost(grid);
    if (c && *c < best_cost) {
      best_cost = *c;
      best = grid;
    }
  });
  return best;
}

}  // namespace

Decomposition::Decomposition(Int3 global, Int3 ranks, bool periodic)
    : global_(global), ranks_(ranks), periodic_(periodic) {
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (global[axis] < 1 || ranks[axis] < 1)
      throw ConfigError("empty dimension (" + text(global) + " points on " + text(ranks) +
                        " ranks): use positive sizes");
    if (ranks[axis] > global[axis])
      throw ConfigError("more ranks than points (decomposition " + text(ranks) + " of " +
                        text(global) + " points): use fewer ranks or a larger global size");
  }
}

Int3 Decomposition::coordinates(int rank) const {
  return {rank % ranks_[0], rank / ranks_[0] % ranks_[1], rank / (ranks_[0] * ranks_[1])};
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
    if (!periodic_) return std::nullopt;
    at[axis] = (at[axis] + ranks_[axis]) % ranks_[axis];
  }
  return static_cast<int>((at[2] * ranks_[1] + at[1]) * ranks_[0] + at[0]);
}

Int3 choose_ranks(int ranks, const Int3& global, std::int64_t least) {
  const auto grid = cheapest_grid(ranks, [&](const Int3& g) -> std::optional<std::int64_t> {
    Int3 box{};
    for (std::size_t axis = 0; axis < 3; ++axis) {
      if (global[axis] / g[axis] < std::max<std::int64_t>(least, 1)) return std::nullopt;
      box[axis] = (global[axis] + g[axis] - 1) / g[axis];
    }
    // A dimension with one rank sends nothing to others.
    const auto face = [&](std::size_t axis, std::size_t u, std::size_t v) {
      return g[axis] > 1 ? box[u] * box[v] : 0;
    };
    return face(0, 1, 2) + face(1, 0, 2) + face(2, 0, 1);
  });
  if (!grid)
    throw ConfigError("no decomposition (" + std::to_string(ranks) + " ranks over global " +
                      text(global) + " points leave some rank fewer than " + std::to_string(least) +
                      " points, the radius, in a dimension): use fewer ranks, a larger global size "
                      "or a smaller radius");
  return *grid;
}

Int3 choose_ranks(int ranks) {
  return *cheapest_grid(ranks, [](const Int3& g) { return std::optional(g[0] + g[1] + g[2]); });
}

}  // namespace halocline::comm
