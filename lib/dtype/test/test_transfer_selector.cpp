// SPDX-License-Identifier: BSD-3-Clause
// Tests the choice of a transfer by the system model.
#include "dtype/model/transfer_selector.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "dtype/model/selection_cache.hpp"
#include "model.hpp"
#include "support/error.hpp"

namespace halocline::dtype::test {

namespace {

constexpr auto kEverything = TransferSet(15);
constexpr auto kByKernel = TransferSet(7);
constexpr auto kUs = 0x1p-20;    // about a microsecond
constexpr auto kByte = 0x1p-30;  // about a nanosecond
constexpr auto kNothing = 0x1p-50;

Message message(std::int64_t bytes, Reach reach = Reach::on_node, BlockShape shape = {8, 8}) {
  return {bytes, shape, shape, reach};
}

double seconds(const Selection& selection, Transfer transfer) {
  const auto found = selection.seconds[static_cast<std::size_t>(transfer)];
  return found ? *found : std::nan("");
}

Transfer choice(const SystemModel* model, std::int64_t bytes, TransferSet possible = kEverything) {
  const std::vector one{message(bytes)};
  return select_transfer(model, one, possible).transfer;
}

// All costs but those of messages and copies are next to nothing.
SystemModel free_packing() {
  SystemModel model;
  model.launch_seconds = model.synchronize_seconds = kNothing;
  for (auto* times : {&model.device_packing, &model.mapped_packing, &model.host_packing})
    times->pack = times->unpack = linear_packs(kNothing, kNothing);
  return model;
}

// Removes from a model something that a transfer needs.
using Removal = void (*)(SystemModel&);

}  // namespace

TEST(Transfer, HasItsNames) {
  std::vector<std::string_view> names;
  for (const auto transfer : all_transfers()) {
    names.push_back(name(transfer));
    EXPECT_EQ(parse_transfer(name(transfer)), transfer);
  }
  EXPECT_EQ(names, (std::vector<std::string_view>{"device", "one-shot", "staged", "host"}));
  EXPECT_EQ(parse_transfer("auto"), std::nullopt);
  try {
    parse_transfer("oneshot");
    ADD_FAILURE();
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(),
                 "unknown transfer (oneshot): use one of device, one-shot, staged, host, auto");
  }
}

TEST(Transfer, IsPossibleOrNot) {
  EXPECT_EQ(possible_transfers({}), TransferSet(0));
  EXPECT_EQ(possible_transfers({.device_messages = true}), TransferSet(1));
  EXPECT_EQ(possible_transfers({.mapped_memory = true}), TransferSet(2 | 4));
  EXPECT_EQ(possible_transfers({.host_access = true}), TransferSet(8));
}

// Equations 1 to 3 of [PEA21] and ours, with numbers whose sums are exact.
TEST(SelectTransfer, AddsUpOneMessage) {
  SystemModel model;
  model.launch_seconds = 1;
  model.synchronize_seconds = 10;
  model.device_packing = {linear_packs(100, 1 * kUs), linear_packs(200, 2 * kUs)};
  model.mapped_packing = {linear_packs(300, 4 * kUs), linear_packs(400, 8 * kUs)};
  model.host_packing = {linear_packs(500, 16 * kUs), linear_packs(600, 32 * kUs)};
  model.device_messages = {linear_messages(1000, 64 * kUs), linear_messages(2000, 128 * kUs)};
  model.host_messages = {linear_messages(3000, 256 * kUs), linear_messages(4000, 512 * kUs)};
  model.device_to_host = linear_curve(5000, 1024 * kUs);
  model.host_to_device = linear_curve(6000, 2048 * kUs);
  for (const double bytes : {1.0, 2.0, 100.0, 65536.0}) {
    const auto x = kUs * bytes;
    const auto of = [&](Reach reach) {
      const std::vector one{message(static_cast<std::int64_t>(bytes), reach)};
      return select_transfer(&model, one, kEverything);
    };
    const auto on_node = of(Reach::on_node), off_node = of(Reach::off_node), self = of(Reach::self);
    const auto device = 2 * (1 + 10) + 300 + 3 * x, one_shot = 2 * (1 + 10) + 700 + 12 * x,
               copies = 11000 + 3072 * x, host = 1100 + 48 * x;
    EXPECT_DOUBLE_EQ(seconds(on_node, Transfer::device), device + 1000 + 64 * x);
    EXPECT_DOUBLE_EQ(seconds(off_node, Transfer::device), device + 2000 + 128 * x);
    EXPECT_DOUBLE_EQ(seconds(self, Transfer::device), device);
    EXPECT_DOUBLE_EQ(seconds(on_node, Transfer::one_shot), one_shot + 3000 + 256 * x);
    EXPECT_DOUBLE_EQ(seconds(off_node, Transfer::one_shot), one_shot + 4000 + 512 * x);
    EXPECT_DOUBLE_EQ(seconds(self, Transfer::one_shot), one_shot);
    EXPECT_DOUBLE_EQ(seconds(on_node, Transfer::staged), device + copies + 3000 + 256 * x);
    EXPECT_DOUBLE_EQ(seconds(off_node, Transfer::staged), device + copies + 4000 + 512 * x);
    EXPECT_DOUBLE_EQ(seconds(self, Transfer::staged), device);
    EXPECT_DOUBLE_EQ(seconds(on_node, Transfer::host), host + 3000 + 256 * x);
    EXPECT_DOUBLE_EQ(seconds(off_node, Transfer::host), host + 4000 + 512 * x);
    EXPECT_DOUBLE_EQ(seconds(self, Transfer::host), host);
  }
}

TEST(SelectTransfer, PacksTheSourceAndUnpacksToTheDestination) {
  auto model = free_packing();
  const PackTable::Axes axes{{1}, {8, 16}, {32, 64}};
  model.host_packing.pack = PackTable(axes, {1, 2, 3, 4}, "test");
  model.host_packing.unpack = PackTable(axes, {10, 20, 30, 40}, "test");
  const std::vector one{Message{1, {8, 64}, {16, 32}, Reach::self}};
  EXPECT_EQ(seconds(select_transfer(&model, one, kEverything), Transfer::host), 2 + 30);
}

TEST(SelectTransfer, CrossesFromOneShotToDevice) {
  auto model = free_packing();
  // Device messages cost 8 us more and save 1/2 kByte for each byte: equal at 16 KiB.
  model.device_messages.on_node = linear_messages(9 * kUs, kByte / 2);
  model.host_messages.on_node = linear_messages(kUs, kByte);
  constexpr std::int64_t kCrossing = 16 * 1024;
  for (auto bytes = kCrossing - 300; bytes <= kCrossing + 300; ++bytes)
    ASSERT_EQ(choice(&model, bytes, kByKernel),
              bytes < kCrossing ? Transfer::one_shot : Transfer::device)
        << bytes;
}

// Mapped memory is quick to reach but slow to write to.
TEST(SelectTransfer, CrossesFromOneShotToStaged) {
  auto model = free_packing();
  model.host_messages.on_node = linear_messages(kUs, kByte);
  model.mapped_packing = {linear_packs(kUs, 2 * kByte), linear_packs(kUs, 3 * kByte)};
  model.device_packing = {linear_packs(kUs, kByte / 16), linear_packs(kUs, kByte / 16)};
  model.device_to_host = linear_curve(9 * kUs, kByte / 16);
  model.host_to_device = linear_curve(10 * kUs, kByte / 16);
  // Staging adds 19 us of copies and saves 5 - 4/16 kByte for each byte: equal at 4096 bytes.
  constexpr std::int64_t kCrossing = 4096;
  for (auto bytes = kCrossing - 300; bytes <= kCrossing + 300; ++bytes)
    ASSERT_EQ(choice(&model, bytes, kByKernel),
              bytes <= kCrossing ? Transfer::one_shot : Transfer::staged)
        << bytes;
}

TEST(SelectTransfer, CrossesFromHostToDevice) {
  auto model = free_packing();
  model.launch_seconds = 2 * kUs;
  model.synchronize_seconds = 3 * kUs;
  model.device_messages.on_node = model.host_messages.on_node = linear_messages(kUs, kByte);
  model.host_packing = {linear_packs(kUs, kByte), linear_packs(kUs, kByte)};
  model.device_packing = {linear_packs(kUs, kByte / 4), linear_packs(kUs, kByte / 4)};
  // The device adds two launches and synchronizations and saves 3/2 kByte for each byte: equal at
  // 10 us.
  const double crossing = 10 * 1024 * 2 / 3.0;
  for (auto bytes = std::int64_t{6600}; bytes <= 7000; ++bytes)
    ASSERT_EQ(choice(&model, bytes, TransferSet(1 | 8)),
              static_cast<double>(bytes) < crossing ? Transfer::host : Transfer::device)
        << bytes;
}

TEST(SelectTransfer, StagedWinsWhereDeviceMessagesAreSlow) {
  auto model = whole_model();
  model.device_messages.on_node = linear_messages(1, 1);
  model.mapped_packing.pack = linear_packs(1, 1);
  const std::vector one{message(1000)};
  const auto selection = select_transfer(&model, one, kByKernel);
  EXPECT_EQ(selection.transfer, Transfer::staged);
  EXPECT_EQ(selection.reason, "fastest by the system model");
}

// Errata B.12: the stride decides alone.
TEST(SelectTransfer, DependsOnTheStride) {
  auto model = free_packing();
  model.device_messages.on_node = model.host_messages.on_node = linear_messages(kUs, kByte);
  const PackTable::Axes axes{{1, 1 << 20}, {8}, {16, 4096}};
  model.mapped_packing.pack =
      pack_table(axes, [](auto, auto, auto stride) { return 1e-9 * static_cast<double>(stride); });
  model.device_packing.pack = pack_table(axes, [](auto, auto, auto) { return 1e-6; });
  const auto choose = [&](std::int64_t stride) {
    const std::vector one{message(4096, Reach::on_node, {8, stride})};
    return select_transfer(&model, one, TransferSet(3)).transfer;
  };
  EXPECT_EQ(choose(16), Transfer::one_shot);
  EXPECT_EQ(choose(4096), Transfer::device);
}

TEST(SelectTransfer, OneKernelHasOneFloor) {
  auto model = free_packing();
  model.launch_seconds = 1;
  model.synchronize_seconds = 10;
  const auto table = [](double per_byte) {
    return pack_table({{64, 1024}, {8, 128}, {256}}, [=](auto bytes, auto block, auto) {
      return 100 + static_cast<double>(block) + per_byte * static_cast<double>(bytes - 64);
    });
  };
  model.device_packing = {table(2), table(4)};
  model.host_packing = {table(2), table(4)};
  const std::vector parts{message(64, Reach::self, {8, 256}), message(100, Reach::self, {8, 256}),
                          message(10, Reach::self, {128, 256}),
                          message(1000, Reach::self, {128, 256})};
  const auto selection = select_transfer(&model, parts, kEverything);
  EXPECT_DOUBLE_EQ(seconds(selection, Transfer::device),
                   2 * 11 + 2 * (100 + 128) + (2 + 4) * (36 + 936));
  EXPECT_DOUBLE_EQ(seconds(selection, Transfer::host),
                   2 * (4 * 100 + 2 * 8 + 2 * 128) + (2 + 4) * (36 + 936));
  EXPECT_DOUBLE_EQ(*copy_seconds(model, parts, true), 11 + 100 + 128 + 2 * (36 + 936));
  EXPECT_DOUBLE_EQ(*copy_seconds(model, parts, false), 4 * 100 + 2 * 8 + 2 * 128 + 2 * (36 + 936));
  // Noise must not make the time of a part negative.
  model.device_packing.pack = PackTable({{64, 1024}, {8}, {256}}, {100, 90}, "test");
  model.device_packing.unpack = PackTable({{64, 1024}, {8}, {256}}, {100, 90}, "test");
  EXPECT_DOUBLE_EQ(seconds(select_transfer(&model, parts, kEverything), Transfer::device),
                   2 * 11 + 2 * 100);
}

TEST(CopySeconds, IsWhatWasMeasured) {
  auto model = free_packing();
  const std::vector parts{message(64), message(100, Reach::off_node)};
  EXPECT_EQ(*copy_seconds(model, {}, true), 0);
  EXPECT_TRUE(copy_seconds(model, parts, true));
  model.launch_seconds.reset();
  EXPECT_FALSE(copy_seconds(model, parts, true));
  EXPECT_TRUE(copy_seconds(model, parts, false));
  model.host_packing.pack.reset();
  EXPECT_FALSE(copy_seconds(model, parts, false));
}

TEST(SelectTransfer, MessagesGoAtOnce) {
  auto model = free_packing();
  model.host_messages.on_node =
      MessageTimes({{1, linear_curve(4, 1)}, {2, linear_curve(8, 2)}}, "test");
  model.host_messages.off_node =
      MessageTimes({{1, linear_curve(100, 1)}, {5, linear_curve(500, 5)}}, "test");
  const auto host = [&](const std::vector<Message>& messages) {
    return seconds(select_transfer(&model, messages, kEverything), Transfer::host);
  };
  const auto on = [](std::int64_t bytes) { return message(bytes, Reach::on_node); };
  const auto part = [](std::int64_t bytes) {
    auto out = message(bytes, Reach::on_node);
    out.continues = true;
    return out;
  };
  const auto off = [](std::int64_t bytes) { return message(bytes, Reach::off_node); };
  const auto self = message(1000, Reach::self);
  EXPECT_NEAR(host({on(100), on(300)}), 8 + 2 * 200, 1e-9);
  EXPECT_NEAR(host({on(100), self, on(300)}), 8 + 2 * 200, 1e-9);
  EXPECT_NEAR(host({on(100), part(200), part(100)}), 4 + 400, 1e-9);
  EXPECT_NEAR(host({on(50), part(50), on(300)}), 8 + 2 * 200, 1e-9);
  EXPECT_NEAR(host({on(1), on(2), on(3), on(4), on(5), on(6)}), 3 * (8 + 2 * 3.5), 1e-9);
  EXPECT_NEAR(host({off(100), off(200), off(300)}), ((100 + 200) + (500 + 1000)) / 2.0, 1e-9);
  // Messages on the node and off the node: the longer time counts.
  EXPECT_NEAR(host({on(100), off(10)}), 110, 1e-9);
  EXPECT_NEAR(host({on(1000), off(10)}), 1004, 1e-9);
}

TEST(SelectTransfer, CopiesAllThatIsSentAtOnce) {
  auto model = free_packing();
  model.host_messages = {linear_messages(kNothing, kNothing), linear_messages(kNothing, kNothing)};
  model.device_to_host = linear_curve(10, 1);
  model.host_to_device = linear_curve(20, 2);
  const std::vector parts{message(100, Reach::on_node), message(200, Reach::off_node),
                          message(5000, Reach::self)};
  EXPECT_NEAR(seconds(select_transfer(&model, parts, kEverything), Transfer::staged), 30 + 3 * 300,
              1e-9);
}

TEST(SelectTransfer, EstimatesWhatWasMeasuredAndIsPossible) {
  struct Need {
    Removal remove;
    TransferSet by;
  };
  const Need needs[] = {
      {[](SystemModel& m) { m.launch_seconds.reset(); }, 7},
      {[](SystemModel& m) { m.synchronize_seconds.reset(); }, 7},
      {[](SystemModel& m) { m.device_messages.on_node.reset(); }, 1},
      {[](SystemModel& m) { m.host_messages.on_node.reset(); }, 2 | 4 | 8},
      {[](SystemModel& m) { m.device_messages.off_node.reset(); }, 0},
      {[](SystemModel& m) { m.host_messages.off_node.reset(); }, 0},
      {[](SystemModel& m) { m.device_to_host.reset(); }, 4},
      {[](SystemModel& m) { m.host_to_device.reset(); }, 4},
      {[](SystemModel& m) { m.device_packing.pack.reset(); }, 1 | 4},
      {[](SystemModel& m) { m.device_packing.unpack.reset(); }, 1 | 4},
      {[](SystemModel& m) { m.mapped_packing.pack.reset(); }, 2},
      {[](SystemModel& m) { m.mapped_packing.unpack.reset(); }, 2},
      {[](SystemModel& m) { m.host_packing.pack.reset(); }, 8},
      {[](SystemModel& m) { m.host_packing.unpack.reset(); }, 8},
  };
  const std::vector one{message(1000)};
  for (const auto& need : needs) {
    auto model = whole_model();
    need.remove(model);
    for (unsigned long possible = 1; possible < 16; ++possible) {
      const auto selection = select_transfer(&model, one, possible);
      for (std::size_t i = 0; i < kTransfers; ++i)
        EXPECT_EQ(selection.seconds[i].has_value(), TransferSet(possible)[i] && !need.by[i]);
      EXPECT_TRUE(TransferSet(possible)[static_cast<std::size_t>(selection.transfer)]);
    }
  }
}

// A measured transfer wins, however slow it was.
TEST(SelectTransfer, WhatWasMeasuredWins) {
  SystemModel model = free_packing();
  model.launch_seconds.reset();
  model.host_messages.on_node = linear_messages(1e6, 1);
  const std::vector one{message(1000)};
  const auto selection = select_transfer(&model, one, kEverything);
  EXPECT_EQ(selection.transfer, Transfer::host);
  EXPECT_EQ(selection.reason, "fastest by the system model");
}

TEST(SelectTransfer, HasADefault) {
  const SystemModel nothing;
  for (const SystemModel* model : {static_cast<const SystemModel*>(nullptr), &nothing}) {
    for (const std::int64_t bytes : {std::int64_t{0}, kDefaultStagedBytes - 1})
      for (unsigned long possible = 1; possible < 16; ++possible)
        EXPECT_EQ(choice(model, bytes, possible), (possible & 1) != 0   ? Transfer::device
                                                  : (possible & 2) != 0 ? Transfer::one_shot
                                                  : (possible & 4) != 0 ? Transfer::staged
                                                                        : Transfer::host);
    for (const std::int64_t bytes : {kDefaultStagedBytes, std::int64_t{1} << 60})
      for (unsigned long possible = 1; possible < 16; ++possible)
        EXPECT_EQ(choice(model, bytes, possible), (possible & 1) != 0   ? Transfer::device
                                                  : (possible & 4) != 0 ? Transfer::staged
                                                  : (possible & 2) != 0 ? Transfer::one_shot
                                                                        : Transfer::host);
  }
  const std::vector halves{message(kDefaultStagedBytes / 2, Reach::self),
                           message(kDefaultStagedBytes / 2)};
  const auto selection = select_transfer(nullptr, halves, TransferSet(6));
  EXPECT_EQ(selection.transfer, Transfer::staged);
  EXPECT_EQ(selection.reason, "default: no system model");
  for (const auto transfer : all_transfers()) EXPECT_TRUE(std::isnan(seconds(selection, transfer)));
  EXPECT_EQ(select_transfer(&nothing, halves, TransferSet(6)).reason,
            "default: nothing that is possible was measured this far");
  EXPECT_EQ(select_transfer(&nothing, halves, TransferSet(4)).reason, "the only one possible");
}

// Curves that end at 64 bytes, from a busy machine, say nothing about a long message.
TEST(SelectTransfer, GoesNoFurtherThanTheModel) {
  auto model = free_packing();
  model.device_messages.on_node = linear_messages(1, kByte);
  model.host_messages.on_node = MessageTimes({{1, {{1, 64}, {1e-6, 1e-6}, "test"}}}, "test");
  model.device_to_host = model.host_to_device = linear_curve(kNothing, kNothing);
  EXPECT_EQ(choice(&model, 64, kByKernel), Transfer::one_shot);
  EXPECT_EQ(choice(&model, 65, kByKernel), Transfer::device);
  const std::vector longer{message(1 << 20)};
  const auto selection = select_transfer(&model, longer, TransferSet(2 | 4));
  EXPECT_EQ(selection.transfer, Transfer::staged);
  EXPECT_EQ(selection.reason, "default: nothing that is possible was measured this far");
  EXPECT_FALSE(phase_seconds(model, longer, Transfer::host).transfer);
  EXPECT_EQ(phase_seconds(model, longer, Transfer::staged).total().unknown()->text(),
            "host messages on the node: not measured beyond 64 B");
  EXPECT_TRUE(phase_seconds(model, longer, Transfer::device).total());
  model.device_to_host = Curve({64}, {1e-6}, "test");
  EXPECT_EQ(phase_seconds(model, longer, Transfer::staged).total().unknown()->text(),
            "copies from the device to the host: not measured beyond 64 B");
  model.device_packing.unpack.reset();
  EXPECT_EQ(phase_seconds(model, longer, Transfer::device).total().unknown()->text(),
            "unpacking to device memory: not measured");
}

TEST(MessageCost, ANodeSendsNoFasterThanItsInjection) {
  SystemModel model;
  EXPECT_EQ(injection_seconds(model, Transfer::host, 3, 1024), 0);
  model.host_messages.off_node = linear_messages(2, kByte);
  EXPECT_EQ(injection_seconds(model, Transfer::host, 3, 1024), 0);
  model.injection_bytes_per_second = 256;
  EXPECT_EQ(injection_seconds(model, Transfer::host, 3, 1024), 2 + kByte + 4);
  EXPECT_EQ(injection_seconds(model, Transfer::host, 0, 1024), 0);
  EXPECT_EQ(injection_seconds(model, Transfer::device, 3, 1024), 0);
}

TEST(MessageCost, ALinkHasLatencyOverheadAndRate) {
  // Three messages at once come 8 s later than one, and share the rate.
  const Curve one({1, 1 << 20}, {10, 1024}, "test"), three({1, 1 << 20}, {18, 4096}, "test");
  const auto cost = link_cost(MessageTimes({{1, one}, {3, three}}, "test"));
  ASSERT_TRUE(cost);
  EXPECT_EQ(cost->overhead_s, 4);
  EXPECT_EQ(cost->latency_s, 6);
  EXPECT_DOUBLE_EQ(cost->seconds_per_byte, (4096. - 18) / ((1 << 20) - 1) / 3);
  EXPECT_DOUBLE_EQ(cost->at(100), 10 + 100 * cost->seconds_per_byte);
  EXPECT_FALSE(link_cost(MessageTimes({{1, Curve({1, 64}, {1, 2}, "test")}}, "test")));
  EXPECT_FALSE(link_cost(MessageTimes({{1, Curve({1, 1 << 20}, {2, 2}, "test")}}, "test")));
}

TEST(MessageCost, NamesTheFirstPartThatIsMissing) {
  const Unknown first{"first", 64}, second{"second"};
  EXPECT_EQ(PredictedSeconds(1) + PredictedSeconds(2), PredictedSeconds(3));
  EXPECT_EQ(max(PredictedSeconds(1), PredictedSeconds(2)), PredictedSeconds(2));
  EXPECT_EQ(PredictedSeconds(1) + first + second, PredictedSeconds(first));
  EXPECT_EQ(max(PredictedSeconds(second), PredictedSeconds(first)), PredictedSeconds(second));
  EXPECT_FALSE(PredictedSeconds(first).seconds());
  EXPECT_EQ(PredictedSeconds(3).seconds(), 3);
  EXPECT_EQ(block_message_seconds(std::nullopt, {8, 8}, 1).unknown()->text(),
            "messages of blocks: not measured");
}

TEST(SelectTransfer, NeedsAPossibleTransfer) {
  EXPECT_THROW(select_transfer(nullptr, {}, TransferSet()), ConfigError);
}

TEST(SelectTransfer, OfEqualTimesTheFirstWins) {
  auto model = free_packing();
  model.launch_seconds = model.synchronize_seconds = 1;
  model.device_messages.on_node = model.host_messages.on_node = linear_messages(1, 1);
  EXPECT_EQ(choice(&model, 1000, TransferSet(3)), Transfer::device);
}

TEST(SelectTransfer, IsFinite) {
  const auto model = whole_model();
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  for (const std::int64_t bytes : {std::int64_t{0}, std::int64_t{1}, kMost})
    for (const std::size_t parts : {0, 1, 26}) {
      std::vector<Message> messages(parts, message(bytes, Reach::off_node, {bytes, -bytes}));
      const auto selection = select_transfer(&model, messages, kEverything);
      for (const auto& time : selection.seconds) {
        EXPECT_EQ(time.has_value(),
                  bytes < kMost || parts == 0);  // otherwise it is beyond the model
        EXPECT_TRUE(std::isfinite(time.value_or(0)));
      }
    }
}

TEST(SelectionCache, ChoosesOnce) {
  SelectionCache cache;
  int choices = 0;
  const auto find = [&](std::int64_t amount, bool on_node, Transfer transfer) {
    return cache.find_or(amount, on_node, [&] {
      ++choices;
      return transfer;
    });
  };
  for (const auto transfer : all_transfers()) {
    const auto amount = static_cast<std::int64_t>(transfer);
    EXPECT_EQ(find(amount, false, transfer), transfer);
    EXPECT_EQ(find(amount, false, Transfer::device), transfer);
  }
  EXPECT_EQ(choices, 4);
  EXPECT_EQ(find(3, true, Transfer::staged), Transfer::staged);
  EXPECT_EQ(find(3, false, Transfer::device), Transfer::host);
  EXPECT_EQ(find(3, true, Transfer::device), Transfer::staged);
  EXPECT_EQ(choices, 5);
}

// An entry that has no room in the cache is chosen again, never confused.
TEST(SelectionCache, IsRightForAnyAmount) {
  SelectionCache cache;
  std::mt19937_64 random(1);
  std::vector<std::int64_t> amounts{0, std::int64_t{1} << 60, (std::int64_t{1} << 60) - 1,
                                    std::numeric_limits<std::int64_t>::max()};
  for (int i = 0; i < 1000; ++i)
    amounts.push_back(static_cast<std::int64_t>(random() >> (1 + random() % 63)));
  const auto right = [](std::int64_t amount, bool on_node) {
    return static_cast<Transfer>((amount % 7 + amount / 3 % 2 + (on_node ? 1 : 0)) % 4);
  };
  for (int i = 0; i < 100000; ++i) {
    const auto amount = amounts[random() % amounts.size()];
    const bool on_node = random() % 2 == 0;
    ASSERT_EQ(cache.find_or(amount, on_node, [&] { return right(amount, on_node); }),
              right(amount, on_node));
  }
}

TEST(SelectionCache, KeepsWhatIsUsedInTurn) {
  SelectionCache cache;
  int choices = 0;
  for (int i = 0; i < 1000; ++i)
    for (const std::int64_t count : {1, 2, 3})
      cache.find_or(count, true, [&] {
        ++choices;
        return Transfer::device;
      });
  EXPECT_EQ(choices, 3);
}

TEST(SelectionCache, IsForManyThreads) {
  SelectionCache cache;
  const auto right = [](std::int64_t amount, bool on_node) {
    return static_cast<Transfer>((amount + (on_node ? 2 : 0)) % 4);
  };
  std::atomic<int> wrong = 0;
  {
    std::vector<std::jthread> threads;
    for (unsigned t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        std::mt19937 random(t);
        for (int i = 0; i < 100000; ++i) {
          const auto amount = static_cast<std::int64_t>(random() % 100);
          const bool on_node = random() % 2 == 0;
          if (cache.find_or(amount, on_node, [&] { return right(amount, on_node); }) !=
              right(amount, on_node))
            ++wrong;
        }
      });
  }
  EXPECT_EQ(wrong, 0);
}

}  // namespace halocline::dtype::test
