// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/type_map.hpp"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "support/overload.hpp"

namespace halocline::dtype {

namespace {

// Is a type map with the standard's lb and ub markers. Among several markers only the least lb and
// the greatest ub matter.
struct Marked {
  std::vector<TypeMap::Entry> entries;
  std::optional<std::int64_t> lb_marker, ub_marker;

  std::int64_t lb() const {
    if (lb_marker) return *lb_marker;
    if (entries.empty()) return 0;
    return std::min_element(entries.begin(), entries.end(), by_displacement)->displacement;
  }

  std::int64_t ub() const {
    if (ub_marker) return *ub_marker;
    if (entries.empty()) return lb();
    const std::int64_t begin = lb();
    std::int64_t end = true_ub();
    std::int64_t alignment = 1;
    for (const auto& entry : entries) alignment = std::max(alignment, entry.type->alignment);
    while ((end - begin) % alignment != 0) ++end;
    return end;
  }

  std::int64_t true_ub() const {
    std::int64_t end = entries.front().displacement + entries.front().type->size;
    for (const auto& entry : entries) end = std::max(end, entry.displacement + entry.type->size);
    return end;
  }

  void append(const Marked& other, std::int64_t displacement) {
    for (const auto& entry : other.entries)
      entries.push_back({entry.type, entry.displacement + displacement});
    if (other.lb_marker)
      lb_marker = std::min(lb_marker.value_or(*other.lb_marker + displacement),
                           *other.lb_marker + displacement);
    if (other.ub_marker)
      ub_marker = std::max(ub_marker.value_or(*other.ub_marker + displacement),
                           *other.ub_marker + displacement);
  }

  void append_block(const Marked& other, std::int64_t blocklength, std::int64_t displacement) {
    const std::int64_t extent = other.ub() - other.lb();
    for (std::int64_t i = 0; i < blocklength; ++i) append(other, displacement + i * extent);
  }

  static bool by_displacement(const TypeMap::Entry& a, const TypeMap::Entry& b) {
    return a.displacement < b.displacement;
  }
};

Marked expand(const TypeExpr& expr);

Marked expand_strided(std::int64_t count, std::int64_t blocklength, std::int64_t stride_bytes,
                      const Marked& old) {
  Marked out;
  for (std::int64_t i = 0; i < count; ++i) out.append_block(old, blocklength, i * stride_bytes);
  return out;
}

template <class Blocklength>
Marked expand_indexed(const std::vector<std::int64_t>& displacements, std::int64_t unit,
                      const Marked& old, Blocklength blocklength) {
  Marked out;
  for (std::size_t i = 0; i < displacements.size(); ++i)
    out.append_block(old, blocklength(i), displacements[i] * unit);
  return out;
}

// Expands a part of a global array of `sizes` elements, one dimension at a time, the fastest first.
// indices(d) lists the part's indices along dimension d.
template <class Indices>
Marked expand_array(const std::vector<std::int64_t>& sizes, Order order, Marked map,
                    Indices indices) {
  std::int64_t extent = map.ub() - map.lb();
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto d = order == Order::fortran ? i : sizes.size() - 1 - i;
    Marked next;
    for (const std::int64_t index : indices(d)) next.append(map, index * extent);
    map = std::move(next);
    extent *= sizes[d];
    map.lb_marker = 0;
    map.ub_marker = extent;
  }
  return map;
}

std::vector<std::int64_t> subarray_indices(const Subarray& t, std::size_t d) {
  std::vector<std::int64_t> out;
  for (std::int64_t i = 0; i < t.subsizes[d]; ++i) out.push_back(t.starts[d] + i);
  return out;
}

// Blocks are dealt to the processes along dimension d in turn (MPI-3.1 section 4.1.4).
std::vector<std::int64_t> darray_indices(const Darray& t, std::size_t d) {
  // The last dimension of the process grid is the fastest.
  std::int64_t coordinate = t.rank;
  for (std::size_t e = t.psizes.size() - 1; e > d; --e) coordinate /= t.psizes[e];
  coordinate %= t.psizes[d];

  std::int64_t block = t.dargs[d];
  if (t.distribs[d] == Distribution::none)
    block = t.gsizes[d];
  else if (block == kDefaultDarg && t.distribs[d] == Distribution::cyclic)
    block = 1;
  else if (block == kDefaultDarg)
    block = (t.gsizes[d] + t.psizes[d] - 1) / t.psizes[d];

  std::vector<std::int64_t> out;
  for (std::int64_t i = 0; i < t.gsizes[d]; ++i)
    if (i / block % t.psizes[d] == coordinate) out.push_back(i);
  return out;
}

// Expands blocks at start, start + stride, ..., without elements from `end` on. place(position) is
// the place of an element.
template <class Constructor, class Place>
Marked expand_ordered(const Constructor& t, std::int64_t end, const TypeExpr& old, Place place) {
  const auto one = expand(old);
  Marked out;
  for (auto block = t.start; block < end; block += t.stride)
    for (auto at = block; at < std::min(block + t.blocklength, end); ++at)
      out.append(one, place(at) * (one.ub() - one.lb()));
  return out;
}

struct Block {
  std::int64_t position, length;
};

template <class BlockOf>
Marked expand_blocks(std::int64_t count, const TypeExpr& old, BlockOf block_of) {
  const auto one = expand(old);
  Marked out;
  for (std::int64_t i = 0; i < count; ++i) {
    const Block block = block_of(i);
    out.append_block(one, block.length, block.position * (one.ub() - one.lb()));
  }
  return out;
}

Marked expand(const TypeExpr& expr) {
  const auto extent = [](const Marked& m) { return m.ub() - m.lb(); };
  return std::visit(
      Overload{
          [](const Named& t) {
            Marked out;
            for (const auto& member : t.type->members)
              out.entries.push_back({member.type, member.displacement});
            return out;
          },
          [](const Contiguous& t) {
            Marked out;
            out.append_block(expand(*t.old), t.count, 0);
            return out;
          },
          [&](const Vector& t) {
            const auto old = expand(*t.old);
            return expand_strided(t.count, t.blocklength, t.stride * extent(old), old);
          },
          [](const Hvector& t) {
            return expand_strided(t.count, t.blocklength, t.stride, expand(*t.old));
          },
          [&](const Indexed& t) {
            const auto old = expand(*t.old);
            return expand_indexed(t.displacements, extent(old), old,
                                  [&](std::size_t i) { return t.blocklengths[i]; });
          },
          [](const Hindexed& t) {
            return expand_indexed(t.displacements, 1, expand(*t.old),
                                  [&](std::size_t i) { return t.blocklengths[i]; });
          },
          [&](const IndexedBlock& t) {
            const auto old = expand(*t.old);
            return expand_indexed(t.displacements, extent(old), old,
                                  [&](std::size_t) { return t.blocklength; });
          },
          [](const HindexedBlock& t) {
            return expand_indexed(t.displacements, 1, expand(*t.old),
                                  [&](std::size_t) { return t.blocklength; });
          },
          [](const Struct& t) {
            Marked out;
            for (std::size_t i = 0; i < t.old.size(); ++i)
              out.append_block(expand(*t.old[i]), t.blocklengths[i], t.displacements[i]);
            return out;
          },
          [](const Subarray& t) {
            return expand_array(t.sizes, t.order, expand(*t.old),
                                [&](std::size_t d) { return subarray_indices(t, d); });
          },
          [](const Darray& t) {
            return expand_array(t.gsizes, t.order, expand(*t.old),
                                [&](std::size_t d) { return darray_indices(t, d); });
          },
          [](const Resized& t) {
            Marked out = expand(*t.old);
            out.lb_marker = t.lb;
            out.ub_marker = t.lb + t.extent;
            return out;
          },
          [](const Dup& t) { return expand(*t.old); },
          [](const BoundedVector& t) {
            return expand_ordered(t, t.bound, *t.old, std::identity());
          },
          [](const CircularVector& t) {
            return expand_ordered(t, t.end, *t.old, [&](std::int64_t position) {
              return (position % t.bound + t.bound) % t.bound;
            });
          },
          [](const Bucket& t) {
            return expand_blocks(std::ssize(t.counts), *t.old, [&](std::int64_t i) -> Block {
              return {i * t.size, t.counts[static_cast<std::size_t>(i)]};
            });
          },
          [](const StretchedVector& t) {
            std::int64_t before = 0;
            return expand_blocks(std::ssize(*t.ends), *t.old, [&](std::int64_t j) -> Block {
              const auto end = (*t.ends)[static_cast<std::size_t>(j)];
              const auto length = end - before;
              return {t.index * length + t.types * std::exchange(before, end), length};
            });
          },
          [](const Triangular& t) {
            return expand_blocks(t.count, *t.old, [&](std::int64_t i) -> Block {
              return {i * t.stride, t.blocklength + i * t.change};
            });
          },
      },
      expr.node);
}

}  // namespace

TypeMap type_map(const TypeExpr& expr) {
  Marked marked = expand(expr);
  TypeMap map;
  map.lb = marked.lb();
  map.extent = marked.ub() - map.lb;
  if (!marked.entries.empty()) {
    map.true_lb =
        std::min_element(marked.entries.begin(), marked.entries.end(), Marked::by_displacement)
            ->displacement;
    map.true_extent = marked.true_ub() - map.true_lb;
  }
  for (const auto& entry : marked.entries) map.size += entry.type->size;
  map.entries = std::move(marked.entries);
  return map;
}

}  // namespace halocline::dtype
