// SPDX-License-Identifier: BSD-3-Clause
#include "comm/gather/rank_order.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <random>
#include <utility>

namespace halocline::comm {

std::vector<int> ranks_in_order(RankOrder order, const NodeHierarchy& nodes, std::int64_t seed) {
  std::vector<int> out(static_cast<std::size_t>(nodes.ranks()));
  std::iota(out.begin(), out.end(), 0);
  if (order == RankOrder::reversed) std::reverse(out.begin(), out.end());
  if (order == RankOrder::round_robin) {
    out.clear();
    for (std::size_t i = 0; std::ssize(out) < nodes.ranks(); ++i)
      for (int node = 0; node < nodes.nodes(); ++node)
        if (i < nodes.ranks_of(node).size()) out.push_back(nodes.ranks_of(node)[i]);
  }
  if (order == RankOrder::random) {
    std::mt19937_64 random(static_cast<std::uint64_t>(seed));
    // Fisher and Yates: std::shuffle differs between libraries.
    for (auto left = out.size(); left > 1; --left) std::swap(out[left - 1], out[random() % left]);
  }
  return out;
}

}  // namespace halocline::comm
