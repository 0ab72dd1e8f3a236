// SPDX-License-Identifier: BSD-3-Clause
// Tests owners, neighbours, and the choice of grids.
#include "comm/halo/decomposition.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "support/error.hpp"

namespace halocline::comm {
namespace {

TEST(Decomposition, EveryPointHasOneOwnerForAnyGrid) {
  const Int3 global{7, 5, 4};
  for (const Int3 grid :
       {Int3{1, 1, 1}, Int3{2, 1, 1}, Int3{3, 2, 1}, Int3{7, 5, 4}, Int3{2, 3, 4}}) {
    const Decomposition decomposition(global, grid, true);
    std::vector<int> owners(7 * 5 * 4);
    for (int rank = 0; rank < decomposition.size(); ++rank) {
      const Box box = decomposition.owned(rank);
      EXPECT_GT(box.points(), 0);
      for (auto z = box.begin[2]; z < box.begin[2] + box.extent[2]; ++z)
        for (auto y = box.begin[1]; y < box.begin[1] + box.extent[1]; ++y)
          for (auto x = box.begin[0]; x < box.begin[0] + box.extent[0]; ++x)
            ++owners.at(static_cast<std::size_t>((z * 5 + y) * 7 + x));
    }
    EXPECT_EQ(owners, std::vector<int>(owners.size(), 1));
  }
}

TEST(Decomposition, UnevenSharesDifferByOnePointAndRankZeroHasTheLargest) {
  const Decomposition decomposition({23, 19, 17}, {2, 3, 4}, true);
  EXPECT_EQ(decomposition.owned(0), (Box{{0, 0, 0}, {12, 7, 5}}));
  EXPECT_EQ(decomposition.owned(23), (Box{{12, 13, 13}, {11, 6, 4}}));
}

TEST(Decomposition, NeighborsAreMutual) {
  for (const auto& periodic : {PerAxis(true), PerAxis(false), PerAxis(false, true, false)}) {
    const Decomposition decomposition({8, 8, 8}, {2, 3, 1}, periodic);
    for (int rank = 0; rank < decomposition.size(); ++rank)
      for_each_direction([&](Direction d) {
        const auto neighbor = decomposition.neighbor(rank, d);
        bool is_outside = false;
        for (std::size_t axis = 0; axis < 3; ++axis) {
          const auto at = decomposition.coordinates(rank)[axis] + d[axis];
          is_outside |= !periodic[axis] && (at < 0 || at >= decomposition.ranks()[axis]);
        }
        EXPECT_EQ(neighbor.has_value(), !is_outside);
        if (neighbor) {
          EXPECT_EQ(decomposition.neighbor(*neighbor, d.opposite()), rank);
        }
      });
  }
}

TEST(Decomposition, RanksMayStandAtOtherPositions) {
  const Decomposition natural({9, 8, 7}, {2, 3, 1}, false);
  const std::vector<int> positions{5, 0, 3, 1, 4, 2};
  const Decomposition mapped({9, 8, 7}, {2, 3, 1}, false, positions);
  const auto position = [&](int rank) { return positions[static_cast<std::size_t>(rank)]; };
  for (int rank = 0; rank < mapped.size(); ++rank) {
    EXPECT_EQ(mapped.coordinates(rank), natural.coordinates(position(rank)));
    EXPECT_EQ(mapped.owned(rank), natural.owned(position(rank)));
    for_each_direction([&](Direction d) {
      const auto neighbor = mapped.neighbor(rank, d);
      const auto expected = natural.neighbor(position(rank), d);
      ASSERT_EQ(neighbor.has_value(), expected.has_value());
      if (neighbor) {
        EXPECT_EQ(position(*neighbor), *expected);
        EXPECT_EQ(mapped.neighbor(*neighbor, d.opposite()), rank);
      }
    });
  }
  EXPECT_EQ(mapped.largest_extent(), (Int3{5, 3, 7}));
  EXPECT_EQ(natural.largest_extent(), (Int3{5, 3, 7}));
}

TEST(Decomposition, RefusesPositionsThatAreNoPermutation) {
  using Positions = std::vector<int>;
  for (const auto& positions :
       {Positions{0}, Positions{0, 0}, Positions{0, 2}, Positions{-1, 0}, Positions{0, 1, 2}})
    EXPECT_THROW(Decomposition({4, 4, 4}, {2, 1, 1}, true, positions), ConfigError);
}

TEST(Decomposition, OneRankIsItsOwnPeriodicNeighborAndHasNoneOtherwise) {
  for_each_direction([](Direction d) {
    EXPECT_EQ(Decomposition({4, 4, 4}, {1, 1, 1}, true).neighbor(0, d), 0);
    EXPECT_EQ(Decomposition({4, 4, 4}, {1, 1, 1}, false).neighbor(0, d), std::nullopt);
  });
}

TEST(Decomposition, RefusesMoreRanksThanPoints) {
  EXPECT_THROW(Decomposition({4, 4, 4}, {5, 1, 1}, true), ConfigError);
  EXPECT_THROW(Decomposition({4, 0, 4}, {1, 1, 1}, true), ConfigError);
}

TEST(ChooseRanks, SplitsTheLongAxisAndZFirst) {
  EXPECT_EQ(choose_ranks(2, {100, 10, 10}, 3), (Int3{2, 1, 1}));
  EXPECT_EQ(choose_ranks(2, {10, 10, 10}, 3), (Int3{1, 1, 2}));
  // 1 x 2 x 4 has the surface of 2 x 2 x 2, and no part of it in x.
  EXPECT_EQ(choose_ranks(8, {64, 64, 64}, 3), (Int3{1, 2, 4}));
  EXPECT_EQ(choose_ranks(27, {81, 81, 81}, 3), (Int3{3, 3, 3}));
  EXPECT_EQ(choose_ranks(4), (Int3{1, 2, 2}));
  EXPECT_EQ(choose_ranks(8), (Int3{2, 2, 2}));
  EXPECT_EQ(choose_ranks(7), (Int3{1, 1, 7}));
}

TEST(ChooseRanks, OtherGridsAreCubicOrHaveAtMostTwiceTheLeastSurface) {
  using Grids = std::vector<Int3>;
  EXPECT_EQ(good_grids(4), (Grids{{1, 2, 2}, {2, 1, 2}, {2, 2, 1}}));
  EXPECT_EQ(good_grids(8), (Grids{{2, 2, 2}}));
  EXPECT_EQ(good_grids(2, {10, 10, 10}, 3), (Grids{{1, 1, 2}, {1, 2, 1}, {2, 1, 1}}));
  EXPECT_EQ(good_grids(2, {10, 10, 21}, 3), (Grids{{1, 1, 2}}));
  EXPECT_EQ(good_grids(2, {10, 10, 20}, 3), (Grids{{1, 1, 2}, {1, 2, 1}, {2, 1, 1}}));
}

TEST(ChooseRanks, AvoidsThinBoxesOrSaysThatItCannot) {
  EXPECT_EQ(choose_ranks(2, {12, 4, 4}, 3), (Int3{2, 1, 1}));
  EXPECT_THROW(choose_ranks(7, {6, 6, 6}, 1), ConfigError);
  EXPECT_THROW(choose_ranks(8, {12, 5, 5}, 3), ConfigError);
}

}  // namespace
}  // namespace halocline::comm
