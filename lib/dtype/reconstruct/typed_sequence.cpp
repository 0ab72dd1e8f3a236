// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/reconstruct/typed_sequence.hpp"

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "support/overload.hpp"

namespace halocline::dtype {

namespace {

// Writes every node once.
class Writer {
 public:
  TypeExprPtr operator()(const TreeNodePtr& node) {
    if (const auto found = written_.find(node.get()); found != written_.end()) return found->second;
    return written_[node.get()] =
               std::visit([this](const auto& t) { return write(t); }, node->node);
  }

 private:
  TypeExprPtr write(const Leaf& t) const {
    if (t.type != nullptr) return parse_type(t.type->name);
    return type(Contiguous{t.bytes, named("byte")});
  }
  // Counts strides in elements where that is possible, as people write it.
  TypeExprPtr write(const Vec& t) {
    const auto child = (*this)(t.child);
    if (const auto* block = std::get_if<Contiguous>(&child->node))
      return vector(t, block->count, block->old);
    return vector(t, 1, child);
  }
  static TypeExprPtr vector(const Vec& t, std::int64_t blocklength, const TypeExprPtr& element) {
    if (std::holds_alternative<Named>(element->node)) {
      const auto extent = type_bounds(*element).extent;
      if (blocklength == 1 && t.stride == extent) return type(Contiguous{t.count, element});
      if (t.stride % extent == 0)
        return type(Vector{t.count, blocklength, t.stride / extent, element});
    }
    return type(Hvector{t.count, blocklength, t.stride, element});
  }
  TypeExprPtr write(const Idx& t) {
    return type(HindexedBlock{1, t.displacements, (*this)(t.child)});
  }
  // In MPI the stride of a bucket is the extent of its child. A basic type may have that extent.
  // Another child gets a Resized, since the installed MPI may make another extent of its
  // alignments. Not all MPIs handle a stride that is not positive, though it is legal: such buckets
  // become a struct of hvectors (results/vendor-bugs).
  TypeExprPtr write(const IdxBuc& t) {
    const auto child = (*this)(t.child);
    if (t.stride > 0) {
      const bool natural =
          std::holds_alternative<Leaf>(t.child->node) && type_bounds(*child).extent == t.stride;
      return type(Hindexed{t.blocklengths, t.displacements,
                           natural ? child : type(Resized{child, 0, t.stride})});
    }
    Struct out{std::vector<std::int64_t>(t.displacements.size(), 1), t.displacements, {}};
    for (const auto length : t.blocklengths)
      out.old.push_back(type(Hvector{length, 1, t.stride, child}));
    return type(std::move(out));
  }
  TypeExprPtr write(const RuleBuc& t) { return write(with_lists(t)); }
  TypeExprPtr write(const Strc& t) {
    Struct out{std::vector<std::int64_t>(t.displacements.size(), 1), t.displacements, {}};
    for (const auto& child : t.children) out.old.push_back((*this)(child));
    return type(std::move(out));
  }

  std::unordered_map<const TreeNode*, TypeExprPtr> written_;
};

}  // namespace

TypedSequence typed_sequence(const TypeMap& map) {
  TypedSequence out;
  // The same basic type may stand at several addresses.
  std::map<std::pair<std::string_view, std::int64_t>, std::int32_t> known;
  for (const auto& [basic, displacement] : map.entries) {
    const auto [entry, is_new] =
        known.try_emplace({basic->name, basic->size}, static_cast<std::int32_t>(out.leaves.size()));
    if (is_new) out.leaves.push_back({basic->size, basic});
    out.displacements.push_back(displacement);
    out.kinds.push_back(entry->second);
  }
  if (out.leaves.size() <= 1) out.kinds.clear();
  return out;
}

TypeExprPtr to_type_expr(const TypeTree& tree) {
  auto expr = Writer()(tree.root);
  if (std::holds_alternative<Leaf>(tree.root->node) && type_bounds(*expr) == tree.bounds)
    return expr;
  // Sets even natural bounds, since some MPIs compute others (results/vendor-bugs).
  return type(Resized{std::move(expr), tree.bounds.lb, tree.bounds.extent});
}

}  // namespace halocline::dtype
