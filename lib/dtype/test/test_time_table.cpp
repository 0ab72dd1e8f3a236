// SPDX-License-Identifier: BSD-3-Clause
// Tests interpolation in measured times: curves, message times and pack tables.
#include "dtype/model/time_table.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <string>

#include "model.hpp"
#include "support/error.hpp"

namespace halocline::dtype::test {

namespace {

constexpr auto kInt64Max = std::numeric_limits<std::int64_t>::max();

std::string refusal(const std::function<void()>& make) {
  try {
    make();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "not refused";
}

}  // namespace

TEST(Curve, IsExactAtItsPointsAndLinearBetween) {
  const std::vector<std::int64_t> bytes{3, 10, 31, 1000};
  const std::vector<double> seconds{0.1, 0.7, 0.3, 1.9};
  const Curve curve(bytes, seconds, "test");
  for (std::size_t i = 0; i < bytes.size(); ++i)
    EXPECT_EQ(curve.at(static_cast<double>(bytes[i])), seconds[i]);
  EXPECT_DOUBLE_EQ(curve.at(6.5), 0.4);
  EXPECT_DOUBLE_EQ(curve.at(10 + 21.0 / 4), 0.6);
  EXPECT_DOUBLE_EQ(curve.at(31 + 969.0 * 3 / 4), 1.5);
}

TEST(Curve, BelowItsPointsIsTheLatency) {
  const Curve curve({3, 10}, {0.1, 0.7}, "test");
  EXPECT_EQ(curve.at(0), 0.1);
  EXPECT_EQ(curve.at(2.9), 0.1);
}

TEST(Curve, BeyondItsPointsKeepsTheBandwidth) {
  const Curve curve({2, 10, 30}, {7, 1, 2}, "test");
  EXPECT_DOUBLE_EQ(curve.at(50), 3);
  EXPECT_DOUBLE_EQ(curve.at(2030), 102);
}

TEST(Curve, NeverFallsBeyondItsPoints) {
  const Curve curve({10, 20}, {2, 1}, "test");
  EXPECT_EQ(curve.at(20), 1);
  EXPECT_EQ(curve.at(1e6), 1);
}

TEST(Curve, OfOnePointIsALatencyAndABandwidth) {
  const Curve curve({8}, {0.5}, "test");
  EXPECT_EQ(curve.at(0), 0.5);
  EXPECT_EQ(curve.at(8), 0.5);
  EXPECT_EQ(curve.at(24), 1.5);
}

TEST(Curve, OfGrowingTimesNeverFalls) {
  std::mt19937 random(1);
  std::uniform_int_distribution<std::int64_t> step(1, 1000);
  std::vector<std::int64_t> bytes{1};
  std::vector<double> seconds{1e-6};
  for (int i = 0; i < 30; ++i) {
    bytes.push_back(bytes.back() + step(random));
    seconds.push_back(seconds.back() + 1e-9 * static_cast<double>(step(random) / 3));
  }
  const Curve curve(bytes, seconds, "test");
  double before = 0;
  for (std::int64_t x = 0; x < bytes.back() + 1000; ++x) {
    const auto now = curve.at(static_cast<double>(x));
    ASSERT_GE(now, before) << x;
    before = now;
  }
}

TEST(Reach, OfAShortCurveIsItsLastPoint) {
  const Curve curve({1, 64}, {1e-6, 1.1e-6}, "test");
  EXPECT_EQ(curve.reach(), 64);
  EXPECT_TRUE(curve.reaches(64));
  EXPECT_FALSE(curve.reaches(65));
  EXPECT_EQ(Curve({8}, {0.5}, "test").reach(), 8);
}

TEST(Reach, OfALongCurveIsSomeTimesItsLastPoint) {
  const Curve curve({64, kBandwidthBytes}, {1e-6, 1e-4}, "test");
  EXPECT_EQ(curve.reach(), kBeyond * kBandwidthBytes);
  EXPECT_TRUE(curve.reaches(2e6));
  EXPECT_FALSE(curve.reaches(1e9));
  EXPECT_EQ(Curve({64, kBandwidthBytes - 1}, {1e-6, 1e-4}, "test").reach(), kBandwidthBytes - 1);
  // Without a slope there is no bandwidth.
  EXPECT_EQ(Curve({64, kBandwidthBytes}, {1e-4, 1e-4}, "test").reach(), kBandwidthBytes);
}

TEST(Reach, OfSeveralMessagesCountsAllTheirBytes) {
  const Curve shorter({1, 1 << 16}, {1e-6, 1e-5}, "test");
  const Curve longer({1, 1 << 20}, {1e-6, 1e-4}, "test");
  const MessageTimes times({{1, longer}, {4, shorter}, {16, shorter}}, "test");
  EXPECT_EQ(times.reach(1), kBeyond << 20);
  EXPECT_EQ(times.reach(2), 1 << 16);  // reaches as far as the curve of 4 messages
  EXPECT_EQ(times.reach(4), 1 << 16);
  EXPECT_EQ(times.reach(16), kBeyond << 16);
  EXPECT_EQ(times.reach(26), kBeyond << 16);
}

TEST(Reach, OfPacksIsThatOfTheirShape) {
  const PackTable table({{64, kBandwidthBytes}, {8, 16}, {32}}, {1e-6, 1e-6, 1e-4, 1e-6}, "test");
  EXPECT_EQ(table.of(8, 32).reach(), kBeyond * kBandwidthBytes);
  EXPECT_EQ(table.of(16, 32).reach(), kBandwidthBytes);
  EXPECT_TRUE(table.of(8, 32).reaches(1e7));
  EXPECT_FALSE(table.of(16, 32).reaches(1e7));
}

TEST(Bytes, HaveTheirUnit) {
  EXPECT_EQ(text_of_bytes(0), "0 B");
  EXPECT_EQ(text_of_bytes(64), "64 B");
  EXPECT_EQ(text_of_bytes(1023), "1023 B");
  EXPECT_EQ(text_of_bytes(1 << 14), "16 KiB");
  EXPECT_EQ(text_of_bytes(1876951), "1.79 MiB");
  EXPECT_EQ(text_of_bytes(kMaxPoint), "1 TiB");
}

// Holds for any content that a table may have.
TEST(Tables, AreFinite) {
  const auto least = std::numeric_limits<double>::denorm_min();
  const auto most = static_cast<double>(kInt64Max);
  const Curve steep({kMaxPoint - 1, kMaxPoint}, {least, kMaxSeconds}, "test");
  const Curve first({1}, {kMaxSeconds}, "test");
  for (const auto& curve : {steep, first})
    for (const double bytes : {0.0, 1.0, 2.0, 1e12, most}) {
      EXPECT_TRUE(std::isfinite(curve.at(bytes)));
      EXPECT_TRUE(std::isfinite(MessageTimes({{1, curve}}, "test").at(kInt64Max, bytes)));
    }
  const PackTable table({{1, 2}, {kMaxPoint - 1, kMaxPoint}, {1, kMaxPoint}},
                        {least, least, least, least, 1, 2, 3, kMaxSeconds}, "test");
  for (const std::int64_t length :
       {std::int64_t{0}, std::int64_t{1}, kMaxPoint - 1, kMaxPoint, kInt64Max, -kInt64Max - 1})
    for (const double bytes : {0.0, 1.5, 3.0, most})
      EXPECT_TRUE(std::isfinite(table.of(length, length).at(bytes))) << length << " " << bytes;
}

TEST(MessageTimes, InterpolateBetweenNumbersOfMessages) {
  const MessageTimes times(
      {{1, linear_curve(4, 1)}, {3, linear_curve(8, 2)}, {8, linear_curve(16, 8)}}, "test");
  EXPECT_DOUBLE_EQ(times.at(1, 100), 104);
  EXPECT_DOUBLE_EQ(times.at(2, 100), (104 + 208) / 2.0);
  EXPECT_DOUBLE_EQ(times.at(3, 100), 208);
  EXPECT_DOUBLE_EQ(times.at(4, 100), 208 + (816 - 208) / 5.0);
  EXPECT_DOUBLE_EQ(times.at(8, 100), 816);
}

TEST(MessageTimes, GrowWithTheMessagesBeyondTheLargestNumber) {
  const MessageTimes times({{1, linear_curve(4, 1)}, {8, linear_curve(16, 8)}}, "test");
  EXPECT_DOUBLE_EQ(times.at(26, 100), 816 * 26 / 8.0);
  EXPECT_DOUBLE_EQ(MessageTimes({{1, linear_curve(4, 1)}}, "test").at(26, 100), 104 * 26);
}

TEST(PackTable, IsExactAtItsPoints) {
  const PackTable::Axes axes{{64, 1000, 4096}, {3, 8, 100}, {16, 24, 1000, 4096}};
  const auto time = [](auto bytes, auto block, auto stride) {
    return 1e-9 * static_cast<double>(bytes * 7 % 1013 + block * 31 % 211 + stride * 3 % 101 + 1);
  };
  const auto table = pack_table(axes, time);
  for (const auto bytes : axes.bytes)
    for (const auto block : axes.block_bytes)
      for (const auto stride : axes.stride_bytes)
        ASSERT_EQ(table.of(block, stride).at(static_cast<double>(bytes)),
                  time(bytes, block, stride));
}

// Times are a product of functions that are linear along the axes. Each axis is tested alone, then
// all together.
TEST(PackTable, IsLinearInBytesAndInTheLogarithmsOfBlockAndStride) {
  const auto time = [](double bytes, double block, double stride) {
    return (5 + bytes / 3) * (2 + std::log2(block)) * (40 - std::log2(stride));
  };
  const auto table = pack_table({{64, 4096, 1 << 20}, {1, 32, 512}, {8, 4096, 1 << 16}},
                                [&](auto... x) { return time(static_cast<double>(x)...); });
  for (const double bytes : {64.0, 65.0, 2000.0, 4097.0, 1048576.0, 3e8})
    for (const std::int64_t block : {1, 2, 3, 31, 33, 300, 512})
      for (const std::int64_t stride : {8, 24, 4000, 5000, 65535}) {
        const auto expected = time(bytes, static_cast<double>(block), static_cast<double>(stride));
        ASSERT_NEAR(table.of(block, stride).at(bytes) / expected, 1, 1e-12)
            << bytes << " " << block << " " << stride;
      }
}

TEST(PackTable, KeepsTheNearestBlockAndStride) {
  const auto table = pack_table({{64, 4096}, {8, 64}, {16, 1024}}, [](auto b, auto l, auto s) {
    return static_cast<double>(b + 3 * l + 5 * s);
  });
  for (const double bytes : {10.0, 1000.0, 9999.0}) {
    EXPECT_EQ(table.of(0, 0).at(bytes), table.of(8, 16).at(bytes));
    EXPECT_EQ(table.of(7, 15).at(bytes), table.of(8, 16).at(bytes));
    EXPECT_EQ(table.of(65, 5000).at(bytes), table.of(64, 1024).at(bytes));
    EXPECT_EQ(table.of(kInt64Max, kInt64Max).at(bytes), table.of(64, 1024).at(bytes));
    EXPECT_EQ(table.of(8, -100).at(bytes), table.of(8, 100).at(bytes));
  }
}

TEST(PackTable, TreatsBytesAsACurveDoes) {
  const auto table = pack_table({{64, 4096}, {8, 64}, {16, 1024}}, [](auto b, auto l, auto s) {
    return static_cast<double>(b * l + s);
  });
  const auto column = [](double bytes, double l, double s) { return bytes * l + s; };
  EXPECT_DOUBLE_EQ(table.of(64, 16).at(0), column(64, 64, 16));
  EXPECT_DOUBLE_EQ(table.of(64, 16).at(1e6), column(1e6, 64, 16));
  const auto falling = pack_table({{64, 4096}, {8}, {16}},
                                  [](auto b, auto, auto) { return 1.0 / static_cast<double>(b); });
  EXPECT_EQ(falling.of(8, 16).at(1e9), 1.0 / 4096);
}

TEST(PackTable, OfOnePoint) {
  const PackTable table({{64}, {8}, {16}}, {0.5}, "test");
  EXPECT_EQ(table.of(1, 1).at(0), 0.5);
  EXPECT_EQ(table.of(100, 100).at(64), 0.5);
  EXPECT_EQ(table.of(8, 16).at(256), 2.0);
}

TEST(Tables, RefuseWhatTheyMayNotHold) {
  const auto nan = std::numeric_limits<double>::quiet_NaN();
  const auto infinity = std::numeric_limits<double>::infinity();
  const auto curve = [](std::vector<std::int64_t> bytes, std::vector<double> seconds) {
    return refusal([&] { Curve(bytes, seconds, "HERE"); });
  };
  const auto refused = [](const std::string& cause) {
    return "measured times cannot be used (HERE: " + cause +
           "): measure them again with 'halocline calibrate'";
  };
  EXPECT_EQ(curve({}, {}), refused("bytes is empty"));
  EXPECT_EQ(curve({1, 2, 2}, {1, 1, 1}), refused("bytes[2] is not above bytes[1]"));
  EXPECT_EQ(curve({4, 3}, {1, 1}), refused("bytes[1] is not above bytes[0]"));
  for (const auto point : {std::int64_t{0}, std::int64_t{-1}, kMaxPoint + 1})
    EXPECT_EQ(curve({point}, {1}), refused("bytes[0] is not from 1 to 2^40"));
  EXPECT_EQ(curve({1, 2}, {1}), refused("seconds has 1 values for 2 points"));
  EXPECT_EQ(curve({1}, {1, 2}), refused("seconds has 2 values for 1 points"));
  for (const auto seconds : {0.0, -1.0, nan, infinity, 2e9})
    EXPECT_EQ(curve({1, 2}, {1, seconds}),
              refused("seconds[1] is not a time above 0 s and up to 1e9 s"));

  const auto messages = [](std::vector<std::int64_t> numbers) {
    return refusal([&] {
      std::vector<MessageTimes::AtOnce> all;
      for (const auto number : numbers) all.push_back({number, linear_curve(1, 1)});
      MessageTimes(all, "HERE");
    });
  };
  EXPECT_EQ(messages({}), refused("its first entry is not for 1 message"));
  EXPECT_EQ(messages({2, 4}), refused("its first entry is not for 1 message"));
  EXPECT_EQ(messages({1, 4, 4}), refused("[2].messages is not above [1].messages"));

  const auto table = [](std::vector<std::int64_t> bytes, std::vector<std::int64_t> block,
                        std::vector<std::int64_t> stride, std::vector<double> seconds) {
    return refusal([&] { PackTable({bytes, block, stride}, seconds, "HERE"); });
  };
  EXPECT_EQ(table({1, 1}, {1}, {1}, {1, 1}), refused("bytes[1] is not above bytes[0]"));
  EXPECT_EQ(table({1}, {}, {1}, {}), refused("block_bytes is empty"));
  EXPECT_EQ(table({1}, {1}, {0}, {1}), refused("stride_bytes[0] is not from 1 to 2^40"));
  EXPECT_EQ(table({1, 2}, {1}, {1, 2}, {1, 1, 1}), refused("seconds has 3 values for 4 points"));
  EXPECT_EQ(table({1}, {1}, {1}, {0}),
            refused("seconds[0] is not a time above 0 s and up to 1e9 s"));
}

}  // namespace halocline::dtype::test
