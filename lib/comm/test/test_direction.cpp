// SPDX-License-Identifier: BSD-3-Clause
// Tests directions, sets of them, and the directions that an exchange fills.
#include "comm/halo/direction.hpp"

#include <gtest/gtest.h>

#include <initializer_list>
#include <set>

#include "comm/halo/halo_spec.hpp"

namespace halocline::comm {
namespace {

TEST(Direction, TwentySixDistinctOnesThatKnowTheirIndex) {
  std::set<Int3> seen;
  int expected = 0;
  for_each_direction([&](Direction d) {
    EXPECT_EQ(d.index(), expected++);
    EXPECT_EQ(Direction::from_index(d.index()), d);
    seen.insert({d[0], d[1], d[2]});
  });
  EXPECT_EQ(expected, Direction::kCount);
  EXPECT_EQ(seen.size(), 26u);
  EXPECT_EQ(seen.count({0, 0, 0}), 0u);
}

TEST(Direction, OppositeNegatesEveryComponent) {
  for_each_direction([](Direction d) {
    for (std::size_t axis = 0; axis < 3; ++axis) EXPECT_EQ(d.opposite()[axis], -d[axis]);
    EXPECT_EQ(d.opposite().opposite(), d);
    EXPECT_EQ(d.opposite().index(), 25 - d.index());
  });
}

TEST(Direction, LeadsToFacesEdgesAndCorners) {
  int axes[4] = {};
  for_each_direction([&](Direction d) { ++axes[d.axes()]; });
  EXPECT_EQ(axes[1], 6);
  EXPECT_EQ(axes[2], 12);
  EXPECT_EQ(axes[3], 8);
  EXPECT_EQ(Direction::from_index(25).with(1, 0).with(2, -1), Direction::from_index(2 + 3));
}

TEST(DirectionSet, HoldsWhatIsInserted) {
  EXPECT_EQ(DirectionSet().size(), 0);
  EXPECT_EQ(DirectionSet::along_at_most(1).size(), 6);
  EXPECT_EQ(DirectionSet::along_at_most(2).size(), 18);
  EXPECT_EQ(DirectionSet::all().size(), 26);
  DirectionSet set;
  set.insert(Direction::from_index(3));
  EXPECT_TRUE(set.contains(Direction::from_index(3)));
  EXPECT_FALSE(set.contains(Direction::from_index(4)));
  EXPECT_EQ(set.bits(), 1u << 3);
  EXPECT_TRUE(DirectionSet::all().contains(set));
  EXPECT_FALSE(set.contains(DirectionSet::all()));
  set.erase(Direction::from_index(3));
  EXPECT_EQ(set, DirectionSet());
}

// Slabs fill the stations of needed directions, and all directions between them.
TEST(FilledDirections, AreThoseOfTheSlabs) {
  const auto axes = [](std::initializer_list<Direction> needed) {
    DirectionSet set;
    for (const auto& direction : needed) set.insert(direction);
    EXPECT_EQ(filled_directions(set, HaloShape::direct), set);
    return filled_directions(set, HaloShape::axes);
  };
  const auto corner = Direction::from_index(25);
  const auto x = corner.with(1, 0).with(2, 0), y = corner.with(0, 0).with(2, 0),
             z = corner.with(0, 0).with(1, 0);
  const auto xy = corner.with(2, 0), xz = corner.with(1, 0), yz = corner.with(0, 0);
  const auto are = [](const DirectionSet& set, std::initializer_list<Direction> expected) {
    int found = 0;
    for (const auto& direction : expected) found += set.contains(direction) ? 1 : 0;
    return found == std::ssize(expected) && set.size() == found;
  };
  EXPECT_TRUE(are(axes({}), {}));
  EXPECT_TRUE(are(axes({z}), {z}));
  EXPECT_TRUE(are(axes({xy}), {x, y, xy}));
  EXPECT_TRUE(are(axes({xz}), {x, z, xz}));
  EXPECT_TRUE(are(axes({xz, yz}), {x, y, z, xz, yz, corner}));
  EXPECT_TRUE(are(axes({corner}), {x, y, z, xy, xz, yz, corner}));
  EXPECT_EQ(filled_directions(DirectionSet::along_at_most(1), HaloShape::axes).size(), 6);
  EXPECT_EQ(filled_directions(DirectionSet::along_at_most(2), HaloShape::axes).size(), 26);
}

}  // namespace
}  // namespace halocline::comm
