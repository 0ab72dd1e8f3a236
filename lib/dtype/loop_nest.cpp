// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/loop_nest.hpp"

#include <algorithm>
#include <cstdlib>

#include "dtype/support/contract.hpp"
#include "dtype/support/overload.hpp"

namespace halocline::dtype {

namespace {

// The way from the root to the leaf: shifts added up, levels from the outermost to the innermost.
struct Path {
  std::int64_t start = 0;
  std::vector<Vec> levels;
  std::int64_t leaf_bytes = 0;
};

Path flatten(const TypeTree& tree) {
  Path path;
  const TreeNode* at = tree.root.get();
  while (true) {
    if (const auto* idx = std::get_if<Idx>(&at->node)) {
      HALOCLINE_EXPECT(idx->displacements.size() == 1);
      path.start += idx->displacements.front();
      at = idx->child.get();
    } else if (const auto* vec = std::get_if<Vec>(&at->node)) {
      path.levels.push_back(*vec);
      at = vec->child.get();
    } else {
      HALOCLINE_EXPECT(std::holds_alternative<Leaf>(at->node));
      path.leaf_bytes = std::get<Leaf>(at->node).bytes;
      return path;
    }
  }
}

bool is_strided(const TreeNode& tree) {
  return std::visit(
      Overload{
          [](const Leaf&) { return true; },
          [](const Vec& n) { return is_strided(*n.child); },
          [](const Idx& n) { return n.displacements.size() == 1 && is_strided(*n.child); },
          [](const auto&) { return false; },
      },
      tree.node);
}

}  // namespace

std::int64_t LoopNest::runs() const {
  std::int64_t product = run == 0 ? 0 : 1;
  for (const auto& level : levels) product *= level.count;
  return product;
}

LoopNest canonicalize(const TypeTree& tree) {
  LoopNest nest;
  nest.bounds = tree.bounds;
  if (tree.bounds.size == 0) return nest;

  const Path path = flatten(tree);
  nest.start = path.start;
  nest.run = path.leaf_bytes;
  // Innermost first. Neighbours in this order are the only ones that can be folded, because only
  // their packed bytes adjoin; so one pass that looks at the last level kept finds them all.
  for (auto level = path.levels.rbegin(); level != path.levels.rend(); ++level) {
    if (level->count == 1) continue;  // elision; the offset is in `start`
    if (nest.levels.empty() && level->stride == nest.run) {
      nest.run *= level->count;  // dense folding
    } else if (!nest.levels.empty() &&
               level->stride == nest.levels.back().count * nest.levels.back().stride) {
      nest.levels.back().count *= level->count;  // stream flattening
    } else {
      const auto packed_stride = nest.levels.empty()
                                     ? nest.run
                                     : nest.levels.back().count * nest.levels.back().packed_stride;
      nest.levels.push_back({level->count, level->stride, packed_stride});
    }
  }
  std::sort(nest.levels.begin(), nest.levels.end(), [](const LoopLevel& a, const LoopLevel& b) {
    const auto x = std::abs(a.stride), y = std::abs(b.stride);
    return x != y ? x < y : a.packed_stride < b.packed_stride;
  });
  return nest;
}

Result<LoopNest> strided_nest(const TypeTree& tree) {
  if (tree.bounds.size == 0 || is_strided(*tree.root)) return canonicalize(tree);
  return UnsupportedDatatype("indexed, struct and cyclic layouts are not strided");
}

std::string to_string(const LoopNest& nest) {
  std::string out =
      "start " + std::to_string(nest.start) + ", run " + std::to_string(nest.run) + ", levels [";
  for (std::size_t k = 0; k < nest.levels.size(); ++k)
    out += (k == 0 ? "" : ", ") + std::to_string(nest.levels[k].count) + " x " +
           std::to_string(nest.levels[k].stride) + " -> " +
           std::to_string(nest.levels[k].packed_stride);
  return out + "]";
}

}  // namespace halocline::dtype
