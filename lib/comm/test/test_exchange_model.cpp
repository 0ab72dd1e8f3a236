// SPDX-License-Identifier: BSD-3-Clause
// Tests predictions against sums of known terms.
#include "comm/predict/exchange_model.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "comm/node/node_hierarchy.hpp"
#include "model.hpp"

namespace halocline::comm {
namespace {

using dtype::BlockShape;
using dtype::SystemModel;
using dtype::Transfer;
using dtype::test::linear_curve;
using dtype::test::linear_messages;
using dtype::test::linear_packs;

constexpr double kMicro = 1e-6, kNano = 1e-9;
constexpr double kTiny = 1e-12;
constexpr BlockShape kBlocks{8, 64};

// Returns a model whose times are exact sums of terms that all differ.
SystemModel model_of_host() {
  SystemModel model;
  model.host_messages.on_node = linear_messages(2 * kMicro, 1 * kNano);
  model.host_messages.off_node = linear_messages(10 * kMicro, 4 * kNano);
  model.host_packing = {linear_packs(1 * kMicro, 0.5 * kNano),
                        linear_packs(3 * kMicro, 0.25 * kNano)};
  return model;
}

RegionTraffic to(int partner, std::int64_t bytes) {
  return {partner, bytes, bytes, kBlocks, kBlocks};
}

// Returns traffic in which each rank sends to the rank `distance` ahead.
TrafficOf ring(int ranks, int distance, std::int64_t bytes) {
  return [=](int rank) -> RankTraffic { return {{to((rank + distance) % ranks, bytes)}}; };
}

Prediction on_host(const SystemModel& model, int nodes, int each, const TrafficOf& traffic) {
  return predict_exchange(model, NodeHierarchy::regular(nodes, each).node_of_ranks(),
                          Transfer::host, false, traffic);
}

TEST(ExchangeModel, AddsUpThePhasesOfTheSlowestRank) {
  // Only rank 0 sends: two parts to rank 1 on its node, one to another node, one to itself.
  const auto out = on_host(model_of_host(), 2, 2, [](int rank) -> RankTraffic {
    if (rank != 0) return {{}};
    return {{to(1, 1000), to(2, 500), to(1, 3000), to(0, 2000)}};
  });
  EXPECT_NEAR(*out.seconds.phases.pack, 3 * kMicro + 4500 * 0.5 * kNano, kTiny);
  EXPECT_NEAR(*out.seconds.phases.transfer, 10 * kMicro + 500 * 4 * kNano, kTiny);
  EXPECT_NEAR(*out.seconds.phases.unpack,
              9 * kMicro + 4500 * 0.25 * kNano + 1 * kMicro + 2000 * 0.5 * kNano, kTiny);
  EXPECT_EQ(out.seconds.total, out.seconds.phases.total());
  EXPECT_FALSE(out.seconds.injection_limits);
  EXPECT_EQ(out.load.messages, 2);
  EXPECT_EQ(out.load.bytes_off_node, 500);
}

TEST(ExchangeModel, TheRateOfANodeLimitsItsRanksTogether) {
  auto model = model_of_host();
  constexpr std::int64_t kBytes = 1 << 20;
  const auto alone = on_host(model, 3, 4, ring(12, 4, kBytes));
  model.injection_bytes_per_second = 1e9;  // exactly the rate of four ranks together
  const auto together = on_host(model, 3, 4, ring(12, 4, kBytes));
  EXPECT_NEAR(*alone.seconds.phases.transfer, 10 * kMicro + kBytes * 4 * kNano, kTiny);
  EXPECT_FALSE(alone.seconds.injection_limits);
  // Four messages at 1e9 B/s take the time of one rank's message at 4 ns per byte, plus some
  // latency.
  EXPECT_NEAR(*together.seconds.phases.transfer, *alone.seconds.phases.transfer, 5 * kNano);
  model.injection_bytes_per_second = 0.5e9;
  const auto limited = on_host(model, 3, 4, ring(12, 4, kBytes));
  EXPECT_NEAR(*limited.seconds.phases.transfer, 10 * kMicro + 4 * kBytes * 2 * kNano, 5 * kNano);
  EXPECT_TRUE(limited.seconds.injection_limits);
  EXPECT_EQ(limited.load.bytes_off_node_of_node, 4 * kBytes);
  EXPECT_EQ(limited.load.bytes_off_node, 12 * kBytes);
  // Messages that stay on a node do not count.
  const auto near = on_host(model, 3, 1, ring(3, 0, kBytes));
  EXPECT_EQ(near.load.bytes_off_node, 0);
  EXPECT_NEAR(*near.seconds.phases.transfer, 0, kTiny);
}

TEST(ExchangeModel, RoundsWaitForEachOther) {
  const auto one = on_host(model_of_host(), 2, 1, ring(2, 1, 4096));
  const auto three = on_host(model_of_host(), 2, 1, [](int rank) -> RankTraffic {
    const auto round = std::vector{to(1 - rank, 4096)};
    return {round, round, round};
  });
  EXPECT_NEAR(*three.seconds.total, 3 * *one.seconds.total, kTiny);
  EXPECT_EQ(three.load.messages, 3);
}

// A curve may be short, since a busy machine cut it. Then there is no prediction, but a reason.
TEST(ExchangeModel, GoesNoFurtherThanTheModel) {
  auto model = model_of_host();
  model.host_messages.off_node =
      dtype::MessageTimes({{1, {{1, 64}, {9e-7, 9.46e-7}, "test"}}}, "test");
  constexpr std::int64_t kBytes = 1876951;
  const auto out = on_host(model, 2, 1, ring(2, 1, kBytes)).seconds;
  EXPECT_FALSE(out.phases.transfer || out.total);
  EXPECT_TRUE(out.phases.pack && out.phases.unpack);
  ASSERT_TRUE(out.total.unknown());
  EXPECT_EQ(out.total.unknown()->text(), "host messages between nodes: not measured beyond 64 B");
  EXPECT_TRUE(on_host(model, 2, 1, ring(2, 1, 64)).seconds.total);
  EXPECT_FALSE(on_host(model, 2, 1, ring(2, 1, 64)).seconds.total.unknown());

  model = model_of_host();
  model.host_packing.unpack = dtype::PackTable({{1, 4096}, {8}, {8}}, {1e-9, 2e-9}, "test");
  const auto packed = on_host(model, 2, 1, ring(2, 1, kBytes)).seconds;
  EXPECT_FALSE(packed.phases.unpack);
  EXPECT_EQ(packed.total.unknown()->text(), "unpacking by the host: not measured beyond 4 KiB");
  // The same limit holds for data that a rank keeps.
  model = model_of_host();
  model.host_packing.pack = dtype::PackTable({{1, 4096}, {8}, {8}}, {1e-9, 2e-9}, "test");
  const auto kept = on_host(model, 1, 1, ring(1, 0, kBytes)).seconds;
  EXPECT_FALSE(kept.total);
  EXPECT_EQ(kept.total.unknown()->text(), "packing by the host: not measured beyond 4 KiB");
}

TEST(ExchangeModel, KnowsWhatItDoesNotKnow) {
  auto model = model_of_host();
  model.host_messages.off_node.reset();
  model.injection_bytes_per_second = 1e9;
  const auto off = on_host(model, 2, 1, ring(2, 1, 64));
  EXPECT_TRUE(off.seconds.phases.pack && off.seconds.phases.unpack);
  EXPECT_FALSE(off.seconds.phases.transfer || off.seconds.total);
  EXPECT_TRUE(on_host(model, 1, 2, ring(2, 1, 64)).seconds.total);
  const auto device =
      predict_exchange(model, {0, 0}, Transfer::staged, true, ring(2, 1, 64)).seconds;
  EXPECT_FALSE(device.phases.pack || device.phases.unpack);
  EXPECT_TRUE(device.phases.transfer);
}

}  // namespace
}  // namespace halocline::comm
