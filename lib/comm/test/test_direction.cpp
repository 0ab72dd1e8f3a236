// SPDX-License-Identifier: BSD-3-Clause
#include "comm/halo/direction.hpp"

#include <gtest/gtest.h>

#include <set>

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

}  // namespace
}  // namespace halocline::comm
