// SPDX-License-Identifier: BSD-3-Clause
// Tests a substep in parts: each point is computed once, no ghost is read too early, and the bits
// are those of the whole.
#include "physics/heat/advance.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "field_views.hpp"
#include "overlap.hpp"

namespace halocline::app {
namespace {

using Extent = std::array<std::int64_t, 3>;

// Extents with and without room for an interior, for wide x sides, and for an interior of one
// point.
constexpr std::array kExtents{Extent{23, 9, 11}, Extent{17, 7, 7}, Extent{7, 8, 9},
                              Extent{6, 9, 9},   Extent{9, 9, 6},  Extent{3, 3, 3}};

Domain domain_of(const Extent& local, Layout layout, Element element) {
  Config config;
  config.local = local;
  config.fields = 3;
  config.layout = layout;
  config.element = element;
  config.pad = element == Element::float32 ? Pad::none : Pad::by64;
  return make_domain(config, comm::NodeHierarchy(MPI_COMM_SELF));
}

template <class Body>
void for_each_domain(Body body) {
  for (const auto& extent : kExtents)
    for (const auto layout : {Layout::soa, Layout::aos})
      for (const auto element : {Element::float64, Element::float32, Element::complex64}) {
        SCOPED_TRACE(std::to_string(extent[0]) + " x " + std::to_string(extent[1]) + " x " +
                     std::to_string(extent[2]) + (layout == Layout::aos ? " aos" : " soa"));
        body(domain_of(extent, layout, element));
      }
}

template <class Body>
void for_each_point(const comm::Box& box, Body body) {
  for (auto z = box.begin[2]; z < box.begin[2] + box.extent[2]; ++z)
    for (auto y = box.begin[1]; y < box.begin[1] + box.extent[1]; ++y)
      for (auto x = box.begin[0]; x < box.begin[0] + box.extent[0]; ++x) body(comm::Int3{x, y, z});
}

TEST(SplitPoints, HaveEveryOwnedPointOnce) {
  for_each_domain([](const Domain& domain) {
    for (const std::int64_t reach : {1, 3}) {
      const auto points = split_points(domain, reach, false);
      std::map<comm::Int3, int> times;
      const auto count = [&](const comm::Int3& point) { ++times[point]; };
      for_each_point(points.interior, count);
      for (const auto& box : points.boundary) for_each_point(box, count);
      EXPECT_EQ(std::ssize(times), domain.halo.interior().points());
      for_each_point(domain.halo.interior(), [&](const comm::Int3& p) { EXPECT_EQ(times[p], 1); });
    }
  });
}

TEST(SplitPoints, HaveAsMuchInsideAsTheStencilAllows) {
  for_each_domain([](const Domain& domain) {
    for (const std::int64_t reach : {1, 3}) {
      const auto owned = domain.halo.interior();
      const auto inside = split_points(domain, reach, false).interior;
      const bool possible = std::all_of(owned.extent.begin(), owned.extent.end(),
                                        [&](std::int64_t n) { return n > 2 * reach; });
      ASSERT_EQ(inside.points() > 0, possible);
      if (!possible) continue;
      for (const std::size_t axis : {1, 2}) {
        EXPECT_EQ(inside.begin[axis], owned.begin[axis] + reach);
        EXPECT_EQ(inside.extent[axis], owned.extent[axis] - 2 * reach);
      }
      const auto margin = inside.begin[0] - owned.begin[0];
      EXPECT_GE(margin, reach);
      EXPECT_EQ(inside.extent[0], owned.extent[0] - 2 * margin);
      const auto row_bytes = margin * domain.elements_per_point() * domain.element_bytes;
      EXPECT_TRUE(margin == reach || row_bytes <= 32) << margin;
    }
  });
}

// This test runs on one rank, or on two that are split in z.
TEST(SplitPoints, HaveNoSidesWhereTheRankIsItsOwnNeighbour) {
  const comm::NodeHierarchy nodes(MPI_COMM_WORLD);
  Config config;
  config.local = {8, 9, 10};
  config.decomposition = {1, 1, nodes.ranks()};
  const auto split = [&](const comm::PerAxis<bool>& periodic, bool own_at_start) {
    config.periodic = periodic;
    return split_points(make_domain(config, nodes), 3, own_at_start);
  };
  const auto points = split(true, true);
  const std::int64_t side = nodes.ranks() == 1 ? 0 : 3;
  EXPECT_EQ(points.interior, (comm::Box{{3, 3, 3 + side}, {8, 9, 10 - 2 * side}}));
  std::vector<comm::Box> sides{{{3, 3, 3}, {8, 9, 3}}, {{3, 3, 10}, {8, 9, 3}}};
  if (side == 0) sides.clear();
  EXPECT_EQ(points.boundary, sides);
  EXPECT_EQ(split(true, false).boundary.size(), 6);
  EXPECT_EQ(split(false, true).boundary.size(), 6) << "beyond open boundaries ghosts are set later";
  EXPECT_EQ(split({true, false, true}, true).interior,
            (comm::Box{{3, 6, 3 + side}, {8, 3, 10 - 2 * side}}));
  config.local = {5, 5, 10};  // too few points for sides
  EXPECT_EQ(split(true, true).interior, (comm::Box{{3, 3, 3 + side}, {5, 5, 10 - 2 * side}}));
}

TEST(CutPlanes, GivesEachPlaneOfEachArrayOnceAndEqualShares) {
  const comm::Box box{{1, 2, 3}, {4, 5, 7}};
  for (const int arrays : {1, 3}) {
    for (const std::int64_t wanted : {1, 2, 5, 21, 22, 1000}) {
      const auto chunks = cut_planes(box, arrays, wanted);
      EXPECT_EQ(std::ssize(chunks), std::min<std::int64_t>(wanted, 7 * arrays));
      std::int64_t next = 0, least = 100, most = 0;
      for (const auto& chunk : chunks) {
        const auto begin = next;
        for (const auto& [array, part] : chunk) {
          EXPECT_EQ(array * 7 + part.begin[2] - 3, next) << "in order, without gaps";
          EXPECT_EQ(part.begin[0], 1);
          EXPECT_EQ(part.begin[1], 2);
          EXPECT_EQ(part.extent[0], 4);
          EXPECT_EQ(part.extent[1], 5);
          next += part.extent[2];
        }
        least = std::min(least, next - begin);
        most = std::max(most, next - begin);
      }
      EXPECT_EQ(next, 7 * arrays);
      EXPECT_LE(most - least, 1);
    }
  }
  EXPECT_TRUE(cut_planes({{3, 3, 3}, {0, 0, 0}}, 3, 5).empty());
}

template <class T>
std::vector<T> owned_values(const Domain& domain, const FieldSet<T>& fields) {
  std::vector<T> out;
  for (int a = 0; a < fields.arrays(); ++a)
    for_each_point(domain.halo.interior(), [&](const comm::Int3& p) {
      for (std::int64_t e = 0; e < domain.elements_per_point(); ++e)
        out.push_back(array_of(fields, a)(p[2], p[1], p[0] * domain.elements_per_point() + e));
    });
  return out;
}

// Sets all owned elements, or all ghosts, to value(number).
template <class T, class Value>
void set(const Domain& domain, const FieldSet<T>& fields, bool owned, Value value) {
  for (int a = 0; a < fields.arrays(); ++a) {
    const ElementMap map(domain, a);
    const auto view = array_of(fields, a);
    for (std::int64_t z = 0; z < view.extent_int(0); ++z)
      for (std::int64_t y = 0; y < view.extent_int(1); ++y)
        for (std::int64_t e = 0; e < view.extent_int(2); ++e)
          if (map(z, y, e).owned == owned) view(z, y, e) = value(((a * 40 + z) * 40 + y) * 400 + e);
  }
}

template <class T>
void check_parts(const Domain& domain, Stencil stencil) {
  constexpr double kDiffusion = 0.07;
  const auto spec = stencil_spec(stencil);
  const FieldSet<T> in(domain, nullptr), whole(domain, nullptr), parts(domain, nullptr);
  const auto number = [](std::int64_t i) { return static_cast<T>((i * 2654435761) % 100003) / 7; };
  const auto nan = [](std::int64_t) { return std::numeric_limits<T>::quiet_NaN(); };
  set(domain, in, true, number);
  set(domain, in, false, number);
  set(domain, parts, true, nan);
  advance(domain, spec, kDiffusion, in, whole);

  const auto points = split_points(domain, spec.radius(), false);
  set(domain, in, false, nan);
  for (const auto& chunk : cut_planes(points.interior, in.arrays(), 4))
    for (const auto& [array, box] : chunk)
      start_advance(domain, spec, kDiffusion, in, parts, array, {&box, 1});
  finish_advance(parts);
  set(domain, in, false, number);
  for (int array = 0; array < in.arrays(); ++array)
    start_advance(domain, spec, kDiffusion, in, parts, array, points.boundary);
  finish_advance(parts);

  const auto expected = owned_values(domain, whole), found = owned_values(domain, parts);
  EXPECT_EQ(std::memcmp(found.data(), expected.data(), expected.size() * sizeof(T)), 0);
}

TEST(Advance, InPartsHasTheBitsOfTheWholeAndReadsNoGhostTooEarly) {
  for_each_domain([](const Domain& domain) {
    for (const auto stencil : {Stencil::heat13, Stencil::heat9, Stencil::heat3, Stencil::point26}) {
      SCOPED_TRACE(to_string(stencil));
      if (domain.element_bytes == sizeof(double))
        check_parts<double>(domain, stencil);
      else
        check_parts<float>(domain, stencil);
    }
  });
}

}  // namespace
}  // namespace halocline::app
