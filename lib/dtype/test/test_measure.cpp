// SPDX-License-Identifier: BSD-3-Clause
// Tests the order of turns and the statistics of lib/support/measure.hpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "support/measure.hpp"

namespace halocline {
namespace {

using Order = std::vector<std::size_t>;

TEST(OrderOfTurn, GoesThereAndBackFromAnotherMethodEachTime) {
  EXPECT_EQ(order_of_turn(3, 0), (Order{0, 1, 2}));
  EXPECT_EQ(order_of_turn(3, 1), (Order{2, 1, 0}));
  EXPECT_EQ(order_of_turn(3, 2), (Order{1, 2, 0}));
  EXPECT_EQ(order_of_turn(3, 3), (Order{0, 2, 1}));
  EXPECT_EQ(order_of_turn(3, 6), order_of_turn(3, 0));
  EXPECT_EQ(order_of_turn(0, 5), Order{});
}

// Over all turns each method is in each place equally often.
TEST(OrderOfTurn, FavoursNobody) {
  for (const std::size_t methods : {1, 2, 5, 8}) {
    std::vector<Order> times(methods, Order(methods));
    for (std::size_t turn = 0; turn < 2 * methods; ++turn) {
      const auto order = order_of_turn(methods, static_cast<std::int64_t>(turn));
      for (std::size_t place = 0; place < methods; ++place) ++times[order[place]][place];
    }
    for (const auto& places : times)
      EXPECT_TRUE(std::all_of(places.begin(), places.end(), [](auto n) { return n == 2; }));
  }
}

TEST(Statistics, InterpolateBetweenTheClosestValues) {
  const std::vector<double> values{5, 1, 3, 2, 4};
  EXPECT_EQ(median(values), 3);
  EXPECT_DOUBLE_EQ(percentile(values, 0.1), 1.4);
  const auto found = statistics(values);
  EXPECT_EQ(found.median, 3);
  EXPECT_DOUBLE_EQ(found.p10, 1.4);
  EXPECT_DOUBLE_EQ(found.p90, 4.6);
  EXPECT_EQ(found.min, 1);
  EXPECT_EQ(found.max, 5);
  EXPECT_EQ(median({7}), 7);
}

}  // namespace
}  // namespace halocline
