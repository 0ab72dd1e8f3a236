// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/type_tree.hpp"

#include <algorithm>

#include "dtype/datatype.hpp"
#include "dtype/support/narrow.hpp"
#include "dtype/support/overload.hpp"

namespace halocline::dtype {

namespace {

// Bounds with what is needed to combine them further: which of lb and ub were set explicitly (by
// resized or subarray, or by such a type inside), and the alignment that pads a natural upper
// bound.
struct Shape {
  std::int64_t size = 0;
  std::int64_t true_lb = 0, true_ub = 0;  // meaningful if has_data
  std::int64_t alignment = 1;
  bool has_data = false;
  bool explicit_lb = false, explicit_ub = false;
  std::int64_t explicit_lb_value = 0, explicit_ub_value = 0;

  std::int64_t lb() const { return explicit_lb ? explicit_lb_value : has_data ? true_lb : 0; }
  std::int64_t ub() const {
    if (explicit_ub) return explicit_ub_value;
    if (!has_data) return lb();
    const auto length = true_ub - lb();
    const auto remainder = ((length % alignment) + alignment) % alignment;
    return true_ub + (remainder == 0 ? 0 : alignment - remainder);
  }
  std::int64_t extent() const { return ub() - lb(); }

  Shape at(std::int64_t displacement) const {
    Shape out = *this;
    for (auto* bound : {&out.true_lb, &out.true_ub, &out.explicit_lb_value, &out.explicit_ub_value})
      *bound = checked_add(*bound, displacement);
    return out;
  }

  // Adds the data and bounds of `other`.
  void unite(const Shape& other) {
    size = checked_add(size, other.size);
    if (other.has_data) {
      true_lb = has_data ? std::min(true_lb, other.true_lb) : other.true_lb;
      true_ub = has_data ? std::max(true_ub, other.true_ub) : other.true_ub;
      alignment = std::max(alignment, other.alignment);
      has_data = true;
    }
    if (other.explicit_lb) {
      explicit_lb_value = explicit_lb ? std::min(explicit_lb_value, other.explicit_lb_value)
                                      : other.explicit_lb_value;
      explicit_lb = true;
    }
    if (other.explicit_ub) {
      explicit_ub_value = explicit_ub ? std::max(explicit_ub_value, other.explicit_ub_value)
                                      : other.explicit_ub_value;
      explicit_ub = true;
    }
  }

  // `count` copies, `stride` bytes apart: the first and the last decide the bounds.
  Shape repeated(std::int64_t count, std::int64_t stride) const {
    if (count == 0) return {};
    Shape out = *this;
    out.unite(at(checked_multiply(count - 1, stride)));
    out.size = checked_multiply(count, size);
    return out;
  }

  Shape block(std::int64_t blocklength) const { return repeated(blocklength, extent()); }
};

template <class Blocklength>
Shape indexed_shape(const std::vector<std::int64_t>& displacements, std::int64_t unit,
                    const Shape& old, Blocklength blocklength) {
  Shape out;
  for (std::size_t i = 0; i < displacements.size(); ++i)
    out.unite(old.block(blocklength(i)).at(checked_multiply(displacements[i], unit)));
  return out;
}

Shape shape(const TypeExpr& expr) {
  return std::visit(
      Overload{
          [](const Named& t) {
            Shape out;
            for (const auto& member : t.type->members) {
              const Shape piece{.size = member.type->size,
                                .true_lb = 0,
                                .true_ub = member.type->size,
                                .alignment = member.type->alignment,
                                .has_data = true};
              out.unite(piece.at(member.displacement));
            }
            return out;
          },
          [](const Contiguous& t) { return shape(*t.old).block(t.count); },
          [](const Vector& t) {
            const auto old = shape(*t.old);
            return old.block(t.blocklength)
                .repeated(t.count, checked_multiply(t.stride, old.extent()));
          },
          [](const Hvector& t) {
            return shape(*t.old).block(t.blocklength).repeated(t.count, t.stride);
          },
          [](const Indexed& t) {
            const auto old = shape(*t.old);
            return indexed_shape(t.displacements, old.extent(), old,
                                 [&](std::size_t i) { return t.blocklengths[i]; });
          },
          [](const Hindexed& t) {
            return indexed_shape(t.displacements, 1, shape(*t.old),
                                 [&](std::size_t i) { return t.blocklengths[i]; });
          },
          [](const IndexedBlock& t) {
            const auto old = shape(*t.old);
            return indexed_shape(t.displacements, old.extent(), old,
                                 [&](std::size_t) { return t.blocklength; });
          },
          [](const HindexedBlock& t) {
            return indexed_shape(t.displacements, 1, shape(*t.old),
                                 [&](std::size_t) { return t.blocklength; });
          },
          [](const Struct& t) {
            Shape out;
            for (std::size_t i = 0; i < t.old.size(); ++i)
              out.unite(shape(*t.old[i]).block(t.blocklengths[i]).at(t.displacements[i]));
            return out;
          },
          [](const Subarray& t) {
            Shape out = shape(*t.old);
            std::int64_t stride = out.extent();
            const auto dimensions = t.sizes.size();
            for (std::size_t i = 0; i < dimensions; ++i) {
              const auto d = t.order == Order::fortran ? i : dimensions - 1 - i;
              out = out.repeated(t.subsizes[d], stride).at(checked_multiply(t.starts[d], stride));
              stride = checked_multiply(stride, t.sizes[d]);
            }
            out.explicit_lb = out.explicit_ub = true;
            out.explicit_lb_value = 0;
            out.explicit_ub_value = stride;
            return out;
          },
          [](const Resized& t) {
            Shape out = shape(*t.old);
            out.explicit_lb = out.explicit_ub = true;
            out.explicit_lb_value = checked_bytes(t.lb, false);
            out.explicit_ub_value = checked_add(t.lb, t.extent);
            return out;
          },
          [](const Dup& t) { return shape(*t.old); },
      },
      expr.node);
}

TreeNodePtr node(decltype(TreeNode::node) value) {
  return std::make_shared<const TreeNode>(TreeNode{std::move(value)});
}

TreeNodePtr blocks(std::int64_t count, std::int64_t blocklength, std::int64_t stride,
                   std::int64_t extent, TreeNodePtr child) {
  return node(Vec{count, stride, node(Vec{blocklength, extent, std::move(child)})});
}

Result<TreeNodePtr> tree(const TypeExpr& expr);

// The tree of `old` handed to `build`, unless there is none.
template <class Build>
Result<TreeNodePtr> over(const TypeExprPtr& old, Build build) {
  auto child = tree(*old);
  if (auto* found = std::get_if<TreeNodePtr>(&child)) return build(std::move(*found));
  return child;
}

Result<TreeNodePtr> unsupported(const char* constructor) {
  return UnsupportedDatatype(std::string(constructor) +
                             " is not strided (its blocks may lie anywhere)");
}

Result<TreeNodePtr> tree(const TypeExpr& expr) {
  using R = Result<TreeNodePtr>;
  return std::visit(
      Overload{
          [](const Named& t) -> R {
            std::int64_t end = 0;
            for (const auto& member : t.type->members) {
              if (member.displacement != end)
                return UnsupportedDatatype(std::string(t.type->name) + " has a hole inside");
              end += member.type->size;
            }
            return node(Leaf{end});
          },
          [](const Contiguous& t) {
            return over(t.old, [&](TreeNodePtr child) {
              return node(Vec{t.count, type_bounds(*t.old).extent, std::move(child)});
            });
          },
          [](const Vector& t) {
            return over(t.old, [&](TreeNodePtr child) {
              const auto extent = type_bounds(*t.old).extent;
              return blocks(t.count, t.blocklength, t.stride * extent, extent, std::move(child));
            });
          },
          [](const Hvector& t) {
            return over(t.old, [&](TreeNodePtr child) {
              return blocks(t.count, t.blocklength, t.stride, type_bounds(*t.old).extent,
                            std::move(child));
            });
          },
          [](const Indexed&) { return unsupported("indexed"); },
          [](const Hindexed&) { return unsupported("hindexed"); },
          [](const IndexedBlock&) { return unsupported("indexed_block"); },
          [](const HindexedBlock&) { return unsupported("hindexed_block"); },
          [](const Struct&) { return unsupported("struct"); },
          [](const Subarray& t) {
            return over(t.old, [&](TreeNodePtr child) {
              std::int64_t stride = type_bounds(*t.old).extent;
              std::int64_t start = 0;
              const auto dimensions = t.sizes.size();
              for (std::size_t i = 0; i < dimensions; ++i) {
                const auto d = t.order == Order::fortran ? i : dimensions - 1 - i;
                child = node(Vec{t.subsizes[d], stride, std::move(child)});
                start += t.starts[d] * stride;
                stride *= t.sizes[d];
              }
              return node(Idx{{start}, std::move(child)});
            });
          },
          [](const Resized& t) { return tree(*t.old); },
          [](const Dup& t) { return tree(*t.old); },
      },
      expr.node);
}

}  // namespace

TypeBounds type_bounds(const TypeExpr& expr) {
  const Shape s = shape(expr);
  return {.size = s.size,
          .lb = s.lb(),
          .extent = s.extent(),
          .true_lb = s.has_data ? s.true_lb : 0,
          .true_extent = s.has_data ? s.true_ub - s.true_lb : 0};
}

Result<TypeTree> translate(const TypeExpr& expr) {
  const auto bounds = type_bounds(expr);  // first, since it checks what the tree then multiplies
  auto root = tree(expr);
  if (auto* reason = std::get_if<UnsupportedDatatype>(&root)) return std::move(*reason);
  return TypeTree{std::get<TreeNodePtr>(std::move(root)), bounds};
}

Result<TypeTree> translate(MPI_Datatype handle) {
  auto expr = decode(handle);
  if (auto* reason = std::get_if<UnsupportedDatatype>(&expr)) return std::move(*reason);
  return translate(*std::get<TypeExprPtr>(expr));
}

std::string to_string(const TreeNode& tree) {
  return std::visit(Overload{
                        [](const Leaf& n) { return "leaf(" + std::to_string(n.bytes) + ")"; },
                        [](const Vec& n) {
                          return "vec(" + std::to_string(n.count) + "," + std::to_string(n.stride) +
                                 "," + to_string(*n.child) + ")";
                        },
                        [](const Idx& n) {
                          std::string out = "idx(" + std::to_string(n.displacements.size()) + ",<";
                          for (std::size_t i = 0; i < n.displacements.size(); ++i)
                            out += (i == 0 ? "" : ",") + std::to_string(n.displacements[i]);
                          return out + ">," + to_string(*n.child) + ")";
                        },
                        [](const auto&) { return std::string("later"); },
                    },
                    tree.node);
}

}  // namespace halocline::dtype
