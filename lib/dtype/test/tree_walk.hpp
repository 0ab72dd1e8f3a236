// SPDX-License-Identifier: BSD-3-Clause
// Expands a type tree node by node, by nothing but the meaning of its nodes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "dtype/type_tree.hpp"
#include "support/overload.hpp"

namespace halocline::dtype::test {

inline bool has_data(const TreeNode& node) {
  const auto some = [](const auto& list) {
    return std::any_of(list.begin(), list.end(), [](auto length) { return length != 0; });
  };
  return std::visit(
      Overload{
          [](const Leaf& n) { return n.bytes != 0; },
          [](const Vec& n) { return n.count != 0 && has_data(*n.child); },
          [](const Idx& n) { return !n.displacements.empty() && has_data(*n.child); },
          [&](const IdxBuc& n) { return some(n.blocklengths) && has_data(*n.child); },
          [](const RuleBuc& n) { return n.rule.elements() != 0 && has_data(*n.child); },
          [](const Strc& n) {
            return std::any_of(n.children.begin(), n.children.end(),
                               [](const auto& child) { return has_data(*child); });
          },
      },
      node.node);
}

/// Appends the displacement of every byte of `node` at displacement `at`, in pack order.
inline void append_bytes(const TreeNode& node, std::int64_t at, std::vector<std::int64_t>& out) {
  if (!has_data(node)) return;  // otherwise loops over nothing would take their time
  std::visit(Overload{
                 [&](const Leaf& n) {
                   for (std::int64_t i = 0; i < n.bytes; ++i) out.push_back(at + i);
                 },
                 [&](const Vec& n) {
                   for (std::int64_t i = 0; i < n.count; ++i)
                     append_bytes(*n.child, at + i * n.stride, out);
                 },
                 [&](const Idx& n) {
                   for (const auto displacement : n.displacements)
                     append_bytes(*n.child, at + displacement, out);
                 },
                 [&](const IdxBuc& n) {
                   for (std::size_t i = 0; i < n.displacements.size(); ++i)
                     for (std::int64_t j = 0; j < n.blocklengths[i]; ++j)
                       append_bytes(*n.child, at + n.displacements[i] + j * n.stride, out);
                 },
                 [&](const RuleBuc& n) {
                   const auto& r = n.rule;
                   std::int64_t begin = 0;
                   for (std::int64_t i = 0; i < r.count; ++i) {
                     const auto length =
                         r.ends == nullptr ? r.first + i * r.change : r.ends->data()[i] - begin;
                     for (std::int64_t j = 0; j < length; ++j)
                       append_bytes(*n.child,
                                    at + r.start + i * r.distance + length * r.own +
                                        begin * r.before + j * n.stride,
                                    out);
                     begin += length;
                   }
                 },
                 [&](const Strc& n) {
                   for (std::size_t i = 0; i < n.displacements.size(); ++i)
                     append_bytes(*n.children[i], at + n.displacements[i], out);
                 },
             },
             node.node);
}

/// Returns the displacement of every packed byte of `count` instances, in pack order.
inline std::vector<std::int64_t> byte_displacements(const TypeTree& tree, std::int64_t count) {
  std::vector<std::int64_t> out;
  out.reserve(static_cast<std::size_t>(tree.bounds.size * count));
  for (std::int64_t i = 0; i < count; ++i) append_bytes(*tree.root, i * tree.bounds.extent, out);
  return out;
}

}  // namespace halocline::dtype::test
