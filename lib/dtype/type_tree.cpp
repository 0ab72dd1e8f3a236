// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/type_tree.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>

#include "dtype/datatype.hpp"
#include "dtype/lower.hpp"
#include "dtype/type_part.hpp"
#include "support/comma_separated.hpp"
#include "support/narrow.hpp"
#include "support/overload.hpp"

namespace halocline::dtype {

namespace {

using detail::KnownParts;
using detail::Part;
using detail::Shape;

// Returns a node; null if a child is null, as in a translation without a tree.
template <class Node>
TreeNodePtr node(Node value) {
  if constexpr (requires { value.child; })
    if (value.child == nullptr) return nullptr;
  if constexpr (requires { value.children; })
    if (!value.children.empty() && value.children.front() == nullptr) return nullptr;
  return tree_node(std::move(value));
}

TreeNodePtr shifted(std::int64_t displacement, TreeNodePtr child) {
  if (displacement == 0) return child;
  return node(Idx{{displacement}, std::move(child)});
}

void repeat(Part& part, std::int64_t count, std::int64_t stride) {
  if (count == 1) return;
  part.shape.repeat(count, stride);
  part.tree = node(Vec{count, stride, std::move(part.tree)});
}

void repeat_block(Part& part, std::int64_t blocklength) {
  repeat(part, blocklength, part.shape.extent());
}

std::vector<std::int64_t> in_bytes(std::vector<std::int64_t> displacements, std::int64_t unit) {
  if (unit != 1)
    for (auto& displacement : displacements) displacement = checked_multiply(displacement, unit);
  return displacements;
}

// Puts one `child` at each displacement.
Part indexed(std::vector<std::int64_t> displacements, Part child) {
  if (displacements.empty()) return {{}, node(Idx{{}, std::move(child.tree)})};
  std::int64_t least = displacements.front(), greatest = least;
  for (const auto displacement : displacements) {
    least = std::min(least, displacement);
    greatest = std::max(greatest, displacement);
  }
  child.shape.copy(std::ssize(displacements), least, greatest);
  child.tree = displacements.size() == 1
                   ? shifted(least, std::move(child.tree))
                   : node(Idx{std::move(displacements), std::move(child.tree)});
  return child;
}

// Puts blocks of `old` at these displacements.
Part indexed(std::vector<std::int64_t> blocklengths, std::vector<std::int64_t> displacements,
             Part old) {
  const auto differs =
      std::adjacent_find(blocklengths.begin(), blocklengths.end(), std::not_equal_to());
  if (differs == blocklengths.end()) {
    repeat_block(old, blocklengths.empty() ? 1 : blocklengths.front());
    return indexed(std::move(displacements), std::move(old));
  }
  const auto extent = old.shape.extent();
  std::int64_t count = 0, least = INT64_MAX, greatest = INT64_MIN;
  for (std::size_t i = 0; i < displacements.size(); ++i) {
    if (blocklengths[i] == 0) continue;
    const auto first = displacements[i];
    const auto last = checked_add(first, checked_multiply(blocklengths[i] - 1, extent));
    least = std::min({least, first, last});
    greatest = std::max({greatest, first, last});
    count = checked_add(count, blocklengths[i]);
  }
  old.shape.copy(count, least, greatest);
  old.tree =
      node(IdxBuc{std::move(blocklengths), std::move(displacements), extent, std::move(old.tree)});
  return old;
}

// Puts `old` into buckets by a rule. Buckets without elements do not count for the bounds. A
// triangular type reaches farthest in two buckets at either end, since places are linear in i.
Part in_buckets(BucketRule rule, Part old) {
  const auto extent = old.shape.extent();
  std::int64_t least = INT64_MAX, greatest = INT64_MIN;
  const auto reach = [&](std::int64_t i) {
    const auto length = rule.length(i);
    const auto first = checked_add(checked_multiply(i, rule.distance),
                                   checked_add(checked_multiply(length, rule.own),
                                               checked_multiply(rule.begin(i), rule.before)));
    if (length == 0) return;
    const auto last = checked_add(first, checked_multiply(length - 1, extent));
    least = std::min({least, first, last});
    greatest = std::max({greatest, first, last});
  };
  const bool all = rule.ends != nullptr || rule.count < 4;
  for (std::int64_t i = 0; i < rule.count; ++i) {
    reach(i);
    if (!all && i == 1) i = rule.count - 3;
  }
  old.shape.copy(rule.elements(), least, greatest);
  old.tree = node(RuleBuc{std::move(rule), extent, std::move(old.tree)});
  return old;
}

// Describes the part of one dimension of an array that a type has, in elements: `blocks` blocks,
// `stride` apart, the first at `first`. The last block has length `last`; each block before it has
// length `blocklength`.
struct Owned {
  std::int64_t first, blocks, stride, blocklength, last;
};

Owned one_block(std::int64_t first, std::int64_t length) {
  return {first, 1, 0, length, length};
}

Owned owned(const Subarray& t, std::size_t d) {
  return one_block(t.starts[d], t.subsizes[d]);
}

// MPI-3.1 section 4.1.4 in closed form: blocks are dealt in turn to the processes along d.
Owned owned(const Darray& t, std::size_t d) {
  const auto gsize = t.gsizes[d], psize = t.psizes[d];
  if (psize == 1) return one_block(0, gsize);
  std::int64_t faster = 1;  // the process grid is in row-major order
  for (auto e = d + 1; e < t.psizes.size(); ++e) faster *= t.psizes[e];
  const auto process = t.rank / faster % psize;

  const auto evenly = [&] { return (gsize - 1) / psize + 1; };
  const auto darg = t.dargs[d] != kDefaultDarg              ? t.dargs[d]
                    : t.distribs[d] == Distribution::cyclic ? 1
                                                            : evenly();
  const auto last_block = (gsize - 1) / darg;
  if (process > last_block) return one_block(0, 0);
  const auto blocks = (last_block - process) / psize + 1;
  const auto last = last_block % psize == process ? gsize - last_block * darg : darg;
  if (blocks == 1) return one_block(process * darg, last);
  return {process * darg, blocks, psize * darg, darg, last};
}

// Repeats `part` along one dimension as `own` says; elements are `element` bytes apart.
void repeat_along_dimension(Part& part, const Owned& own, std::int64_t element) {
  if (own.blocks == 1) return repeat(part, own.last, element);
  const auto stride = checked_multiply(own.stride, element);
  Part last = part;
  repeat(last, own.last, element);
  repeat(part, own.blocklength, element);
  if (own.last == own.blocklength) return repeat(part, own.blocks, stride);
  repeat(part, own.blocks - 1, stride);
  const auto last_at = checked_multiply(own.blocks - 1, stride);
  part.shape.unite(last.shape.at(last_at));
  part.tree = node(Strc{{0, last_at}, {std::move(part.tree), std::move(last.tree)}});
}

// Returns the part of `t`, a piece of an array of `sizes` elements, from the part of an element.
// The fastest dimension is innermost.
template <class Constructor>
Part array_part(const Constructor& t, const std::vector<std::int64_t>& sizes, Part part) {
  std::int64_t element = part.shape.extent();
  std::int64_t start = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto d = t.order == Order::fortran ? i : sizes.size() - 1 - i;
    const auto own = owned(t, d);
    repeat_along_dimension(part, own, element);
    start = checked_add(start, checked_multiply(own.first, element));
    element = checked_multiply(element, sizes[d]);
  }
  part.shape.move_by(start);
  part.shape.explicit_lb = part.shape.explicit_ub = true;
  part.shape.explicit_lb_value = 0;
  part.shape.explicit_ub_value = element;
  part.tree = shifted(start, std::move(part.tree));
  return part;
}

// Computes the part of a constructor. Constructors that are taken by value give their lists to the
// tree.
struct PartOf {
  bool with_tree;
  const KnownParts& known;

  Part operator()(const Named& t) const {
    static const auto& all = *new auto([] {
      std::vector<Part> out;
      for (const auto& each : named_types()) out.push_back(part_of(each));
      return out;
    }());
    const auto result = [&](const Part& part) -> Part {
      return {part.shape, with_tree ? part.tree : nullptr};
    };
    return t.type->index < 0 ? result(part_of(*t.type))
                             : result(all[static_cast<std::size_t>(t.type->index)]);
  }
  Part operator()(const Contiguous& t) const { return block_of(t.count, *t.old); }
  Part operator()(const Vector& t) const {
    Part out = part_of(*t.old);
    const auto stride = checked_multiply(t.stride, out.shape.extent());
    repeat_block(out, t.blocklength);
    repeat(out, t.count, stride);
    return out;
  }
  Part operator()(const Hvector& t) const {
    Part out = block_of(t.blocklength, *t.old);
    repeat(out, t.count, t.stride);
    return out;
  }
  Part operator()(Indexed t) const {
    auto old = part_of(*t.old);
    auto displacements = in_bytes(std::move(t.displacements), old.shape.extent());
    return indexed(std::move(t.blocklengths), std::move(displacements), std::move(old));
  }
  Part operator()(Hindexed t) const {
    return indexed(std::move(t.blocklengths), std::move(t.displacements), part_of(*t.old));
  }
  Part operator()(IndexedBlock t) const {
    auto old = part_of(*t.old);
    auto displacements = in_bytes(std::move(t.displacements), old.shape.extent());
    repeat_block(old, t.blocklength);
    return indexed(std::move(displacements), std::move(old));
  }
  Part operator()(HindexedBlock t) const {
    return indexed(std::move(t.displacements), block_of(t.blocklength, *t.old));
  }
  Part operator()(const Struct& t) const {
    Strc members{t.displacements, {}};
    members.children.reserve(t.old.size());
    Shape shape;
    Part old, member;
    for (std::size_t i = 0; i < t.old.size(); ++i) {
      const bool same = i > 0 && t.old[i] == t.old[i - 1];
      if (!same) old = part_of(*t.old[i]);
      if (!same || t.blocklengths[i] != t.blocklengths[i - 1]) {
        member = old;
        repeat_block(member, t.blocklengths[i]);
      }
      shape.unite(member.shape.at(t.displacements[i]));
      members.children.push_back(member.tree);
    }
    if (t.old.size() == 1) return {shape, shifted(t.displacements.front(), member.tree)};
    return {shape, node(std::move(members))};
  }
  Part operator()(const Subarray& t) const { return array_part(t, t.sizes, part_of(*t.old)); }
  Part operator()(const Darray& t) const { return array_part(t, t.gsizes, part_of(*t.old)); }
  Part operator()(const Resized& t) const {
    Part out = part_of(*t.old);
    out.shape.resize(t.lb, t.extent);
    return out;
  }
  Part operator()(const Dup& t) const { return part_of(*t.old); }
  Part operator()(const BoundedVector& t) const { return in_sequence(strided_blocks(t), *t.old); }
  Part operator()(const CircularVector& t) const { return in_sequence(strided_blocks(t), *t.old); }
  Part operator()(const Bucket& t) const {
    check_arguments(t);
    std::vector<std::int64_t> ends;
    ends.reserve(t.counts.size());
    std::int64_t end = 0;
    for (const auto count : t.counts) ends.push_back(end = checked_add(end, count));
    auto old = part_of(*t.old);
    const auto buckets = std::ssize(ends);
    return in_buckets({buckets, std::make_shared<const std::vector<std::int64_t>>(std::move(ends)),
                       0, 0, 0, checked_multiply(t.size, old.shape.extent())},
                      std::move(old));
  }
  Part operator()(const StretchedVector& t) const {
    check_arguments(t);
    auto old = part_of(*t.old);
    const auto extent = old.shape.extent();
    return in_buckets({std::ssize(*t.ends), t.ends, 0, 0, 0, 0, checked_multiply(t.index, extent),
                       checked_multiply(t.types, extent)},
                      std::move(old));
  }
  Part operator()(const Triangular& t) const {
    check_arguments(t);
    auto old = part_of(*t.old);
    const auto distance = checked_multiply(t.stride, old.shape.extent());
    if (t.count <= 1 || t.change == 0) {
      repeat_block(old, t.blocklength);
      repeat(old, t.count, distance);
      return old;
    }
    const auto last = t.blocklength + (t.count - 1) * t.change;
    checked_multiply(t.count, std::max(t.blocklength, last));  // bounds all sums of lengths
    return in_buckets({t.count, nullptr, t.blocklength, t.change, 0, distance}, std::move(old));
  }

 private:
  static Part part_of(const NamedType& type);
  Part part_of(const TypeExpr& expr) const {
    if (const auto found = known.find(&expr); found != known.end()) return found->second;
    return std::visit(*this, expr.node);
  }
  Part in_sequence(const std::vector<StridedBlocks>& all, const TypeExpr& inner) const {
    const auto old = part_of(inner);
    const auto extent = old.shape.extent();
    Strc members;
    Shape shape;
    for (const auto& [position, count, blocklength, stride] : all) {
      auto member = old;
      repeat_block(member, blocklength);
      repeat(member, count, checked_multiply(stride, extent));
      members.displacements.push_back(checked_multiply(position, extent));
      shape.unite(member.shape.at(members.displacements.back()));
      members.children.push_back(std::move(member.tree));
    }
    if (all.size() == 1)
      return {shape, shifted(members.displacements.front(), std::move(members.children.front()))};
    return {shape, node(std::move(members))};
  }
  Part block_of(std::int64_t blocklength, const TypeExpr& old) const {
    Part out = part_of(old);
    repeat_block(out, blocklength);
    return out;
  }
};

Part PartOf::part_of(const NamedType& type) {
  Shape shape;
  Strc members;
  for (const auto& [basic, displacement] : type.members) {
    const Shape piece{.size = basic->size,
                      .true_lb = 0,
                      .true_ub = basic->size,
                      .alignment = basic->alignment,
                      .has_data = true};
    shape.unite(piece.at(displacement));
    members.displacements.push_back(displacement);
    members.children.push_back(basic == type.members.front().type && !members.children.empty()
                                   ? members.children.front()
                                   : node(Leaf{basic->size, basic}));
  }
  if (members.children.size() == 1)
    return {shape, shifted(members.displacements.front(), members.children.front())};
  return {shape, node(std::move(members))};
}

TypeTree tree_of(Part part) {
  return {std::move(part.tree), part.shape.bounds()};
}

std::string listed(const std::vector<std::int64_t>& list) {
  return "<" + comma_separated(list, [](std::int64_t number) { return std::to_string(number); }) +
         ">";
}

}  // namespace

TypeBounds type_bounds(const TypeExpr& expr) {
  return std::visit(PartOf{.with_tree = false, .known = {}}, expr.node).shape.bounds();
}

TypeTree translate(const TypeExpr& expr) {
  return tree_of(std::visit(PartOf{.with_tree = true, .known = {}}, expr.node));
}

detail::Part detail::part_of(TypeExpr expr, bool with_tree, const KnownParts& known) {
  return std::visit(PartOf{.with_tree = with_tree, .known = known}, std::move(expr).node);
}

Result<TypeTree> translate(MPI_Datatype handle) {
  auto part = detail::read_part(handle);
  if (auto* reason = std::get_if<UnsupportedDatatype>(&part)) return std::move(*reason);
  return tree_of(std::get<Part>(std::move(part)));
}

IdxBuc with_lists(const RuleBuc& node) {
  IdxBuc out{{}, {}, node.stride, node.child};
  for (std::int64_t i = 0; i < node.rule.count; ++i) {
    out.blocklengths.push_back(node.rule.length(i));
    out.displacements.push_back(node.rule.displacement(i));
  }
  return out;
}

std::string to_string(const TreeNode& tree) {
  const auto text = [](auto number) { return std::to_string(number); };
  return std::visit(
      Overload{
          [&](const Leaf& n) { return "leaf(" + text(n.bytes) + ")"; },
          [&](const Vec& n) {
            return "vec(" + text(n.count) + "," + text(n.stride) + "," + to_string(*n.child) + ")";
          },
          [&](const Idx& n) {
            return "idx(" + text(n.displacements.size()) + "," + listed(n.displacements) + "," +
                   to_string(*n.child) + ")";
          },
          [&](const IdxBuc& n) {
            return "idxbuc(" + text(n.displacements.size()) + "," + listed(n.blocklengths) + "," +
                   listed(n.displacements) + "," + text(n.stride) + "," + to_string(*n.child) + ")";
          },
          [&](const RuleBuc& n) {
            const auto& r = n.rule;
            auto out = r.name() + ("(" + text(r.count)) + ",";
            if (r.ends == nullptr)
              out += text(r.first) + "," + text(r.change) + "," + text(r.distance);
            else if (r.own == 0 && r.before == 0)
              out += text(r.distance) + "," + listed(with_lists(n).blocklengths);
            else
              out += listed(with_lists(n).blocklengths) + "," + text(r.own) + "," + text(r.before);
            return out + "," + text(n.stride) + "," + to_string(*n.child) + ")";
          },
          [&](const Strc& n) {
            return "strc(" + text(n.displacements.size()) + "," + listed(n.displacements) + ",<" +
                   comma_separated(n.children,
                                   [](const auto& child) { return to_string(*child); }) +
                   ">)";
          },
      },
      tree.node);
}

}  // namespace halocline::dtype
