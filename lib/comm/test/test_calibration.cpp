// SPDX-License-Identifier: BSD-3-Clause
// Tests turns on a clock of our own, the points of the grid, and a short calibration.
#include "comm/calibrate/calibration.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <span>

#include "comm/calibrate/grid.hpp"
#include "comm/calibrate/ping_pong.hpp"
#include "comm/calibrate/turns.hpp"
#include "dtype/device/emulated_device.hpp"
#include "dtype/pack/block_list.hpp"
#include "dtype/pack/pack_plan.hpp"
#include "world.hpp"

namespace halocline::comm {
namespace {

using namespace detail;

/// Runs operations of known time on a clock that only they move.
class FakeMachine {
 public:
  Clock clock() {
    return [this] { return now_; };
  }
  /// Returns an operation that is descheduled for `pause` seconds in each of its first `trials`
  /// trials.
  Trial late(double seconds, int trials, double pause) {
    return [this, seconds, trials, pause, trial = 0](std::int64_t calls) mutable {
      const auto all = seconds * static_cast<double>(calls) + (trial++ < trials ? pause : 0);
      now_ += all + seconds;
      return all / static_cast<double>(calls);
    };
  }
  /// Returns an operation that takes ten times as long in trial number `disturbed`, counted from 0.
  Trial operation(double seconds, int disturbed = -1) {
    return [this, seconds, disturbed, trial = 0](std::int64_t calls) mutable {
      const auto each = trial++ == disturbed ? 10 * seconds : seconds;
      now_ += each * static_cast<double>(calls + 1);
      return each;
    };
  }
  double now() const { return now_; }

 private:
  double now_ = 17;
};

std::vector<double> seconds_of(const std::vector<Timed>& all) {
  std::vector<double> out;
  for (const auto& one : all) out.push_back(one.seconds);
  return out;
}

TEST(Turns, TheFirstQuartileCountsAndHasToAgree) {
  EXPECT_EQ(evaluate({9, 1, 1.1}).seconds, 1);
  EXPECT_TRUE(evaluate({9, 1, 1.1}).settled);
  EXPECT_FALSE(evaluate({9, 1, 4}).settled);
  EXPECT_EQ(evaluate({9, 1, 1.1, 2}).seconds, 1.1);
  EXPECT_FALSE(evaluate({1, 2, 2, 2, 2, 2, 2, 2}).settled);
}

TEST(Turns, TinyOperationsAreBatchedAndLongOnesAreNot) {
  EXPECT_EQ(calls_per_trial(1), 1);
  EXPECT_EQ(calls_per_trial(kTrialSeconds), 1);
  EXPECT_EQ(calls_per_trial(kTrialSeconds / 128), 128);
  EXPECT_EQ(calls_per_trial(0), 1'000'000);
}

TEST(Turns, ADisturbanceDoesNotCount) {
  for (const int disturbed : {0, 1, 3}) {
    FakeMachine machine;
    const std::vector trials{machine.operation(1e-3, disturbed),
                             machine.operation(2e-5, disturbed)};
    EXPECT_EQ(seconds_of(take_turns(trials, 1, machine.clock())), (std::vector{1e-3, 2e-5}));
  }
}

// Models a machine on which each of the first trials loses its core.
TEST(Turns, AFewDescheduledSamplesDoNotCount) {
  for (const int trials : {1, 2, 3}) {
    FakeMachine machine;
    const std::vector one{machine.late(1e-6, trials, 0.084)};
    const auto timed = take_turns(one, 0, machine.clock());
    EXPECT_NEAR(timed[0].seconds, 1e-6, 1e-9) << trials;
    EXPECT_TRUE(timed[0].settled) << trials;
  }
}

// Disturbs every call of a long trial, as if two ranks shared one core.
TEST(Turns, TrialsStayShortWhileLongOnesAreDisturbed) {
  double now = 0;
  std::int64_t most = 0;
  const std::vector<Trial> one{[&](std::int64_t calls) {
    const double each = calls <= 4 ? 1e-6 : 4e-3;
    most = std::max(most, calls);
    now += each * static_cast<double>(calls);
    return each;
  }};
  EXPECT_NEAR(take_turns(one, 0, [&] { return now; })[0].seconds, 1e-6, 1e-12);
  EXPECT_LT(most, 10);
  EXPECT_LT(now, 0.2);
}

TEST(Turns, SamplesThatNeverAgreeAreNoisy) {
  double now = 0, seconds = 1e-3;
  const std::vector<Trial> one{[&](std::int64_t) {
    now += seconds;
    return seconds *= 1.3;
  }};
  EXPECT_FALSE(take_turns(one, 0, [&] { return now; })[0].settled);
}

// Returns layers of two points, for one and for two messages. `of` makes the trial of each point.
Layers layers_of(std::size_t count, std::function<Trial(std::size_t layer, std::size_t point)> of) {
  return {count, 4,
          [of](std::size_t i) {
            return std::vector{of(i, 0), of(i, 1)};
          },
          [](std::size_t layer, std::size_t point) {
            std::vector<Lesser> out;
            if (layer > 0) out.push_back({layer - 1, point, 4});
            if (point > 0) out.push_back({layer, point - 1, 2});
            return out;
          }};
}
double time_of(std::size_t layer, std::size_t point) {
  return 1e-6 * std::pow(2.0, layer) * static_cast<double>(point + 1);
}

TEST(Turns, ABusyBeginningCutsNoCurve) {
  FakeMachine machine;
  const auto layers = layers_of(8, [&](std::size_t layer, std::size_t point) {
    return machine.late(time_of(layer, point), layer < 2 ? 3 : 0, 0.084);
  });
  const auto found = measure(layers, 2, machine.clock(), [](auto) {});
  ASSERT_EQ(found.seconds.size(), 8u);
  EXPECT_TRUE(found.noisy.empty());
  for (std::size_t layer = 0; layer < 8; ++layer)
    for (std::size_t point = 0; point < 2; ++point)
      EXPECT_NEAR(found.seconds[layer][point] / time_of(layer, point), 1, 0.01);
}

// One point is slow in all trials of its first measurement, so it must be measured again.
TEST(Turns, WhatContradictsOthersIsMeasuredAgain) {
  constexpr int kTurns = kMostTrials + kExtraTrials + 1;
  for (const std::size_t slow : {0, 3, 5})
    for (const std::size_t of : {0, 1}) {
      FakeMachine machine;
      const auto layers = layers_of(6, [&](std::size_t layer, std::size_t point) {
        return machine.late(time_of(layer, point), layer == slow && point == of ? kTurns : 0, 0.02);
      });
      const auto found = measure(layers, 60, machine.clock(), [](auto) {});
      ASSERT_EQ(found.seconds.size(), 6u);
      EXPECT_NEAR(found.seconds[slow][of] / time_of(slow, of), 1, 0.01) << slow << " " << of;
    }
}

TEST(Turns, WhatContradictsOthersToTheEndIsNamed) {
  FakeMachine machine;
  const auto layers = layers_of(4, [&](std::size_t layer, std::size_t point) {
    return machine.operation(layer == 1 && point == 1 ? 0.01 : time_of(layer, point));
  });
  const auto found = measure(layers, 60, machine.clock(), [](auto) {});
  ASSERT_EQ(found.noisy.size(), 1u);
  EXPECT_EQ(found.noisy[0].layer, 1u);
  EXPECT_EQ(found.noisy[0].point, 1u);
}

TEST(Turns, OthersTakeTheirTurnsInBetween) {
  std::vector<int> order;
  double now = 0;
  const auto trial = [&](int which) {
    return [&, which](std::int64_t) {
      order.push_back(which);
      now += 1;
      return 1.0;
    };
  };
  take_turns(std::vector<Trial>{trial(1), trial(2)}, 0, [&] { return now; });
  EXPECT_EQ(order, (std::vector{1, 2, 1, 2, 2, 1, 2, 1}));
}

TEST(Turns, UseTheirTimeAndNoMore) {
  FakeMachine machine;
  const std::vector trials{machine.operation(1e-2), machine.operation(3e-2)};
  const auto begin = machine.now();
  take_turns(trials, 1, machine.clock());
  EXPECT_LE(machine.now() - begin, 1);
  EXPECT_GT(machine.now() - begin, 0.9);
  const auto second = machine.now();
  take_turns(trials, 1e9, machine.clock());  // stops long before its time is used
  EXPECT_LT(machine.now() - second, 3);
  const auto third = machine.now();
  take_turns(trials, 0, machine.clock());
  EXPECT_NEAR(machine.now() - third, least_seconds(std::vector{1e-2, 3e-2}), 1e-9);
}

TEST(Turns, LayersEndWhereTheTimeDoes) {
  const auto run = [](double seconds) {
    FakeMachine machine;
    std::size_t points = 0;
    const Layers layers{
        6, 4, [&](std::size_t i) {
          return std::vector{machine.operation(1e-3 * std::pow(4.0, i)), machine.operation(1e-3)};
        }};
    const auto begin = machine.now();
    const auto times =
        measure(layers, seconds, machine.clock(), [&](auto n) { points += n; }).seconds;
    EXPECT_EQ(points, 2 * times.size());
    for (std::size_t i = 0; i < times.size(); ++i)
      EXPECT_EQ(times[i], (std::vector{1e-3 * std::pow(4.0, i), 1e-3}));
    return std::pair{times.size(), machine.now() - begin};
  };
  EXPECT_EQ(run(0).first, 2u);
  EXPECT_EQ(run(100).first, 6u);
  std::size_t most = 0;
  for (const double seconds : {0.2, 0.5, 1.0, 2.0, 5.0, 20.0}) {
    const auto [layers, used] = run(seconds);
    EXPECT_LE(used, 1.01 * seconds);
    EXPECT_GE(layers, most);
    most = layers;
  }
  EXPECT_EQ(most, 6u);
}

TEST(Grid, IsOneThatAModelMayHold) {
  for (const double seconds : {0.1, kFullGridSeconds}) {
    const auto grid = make_grid(seconds);
    for (const auto* axis :
         {&grid.message_bytes, &grid.messages_at_once, &grid.copy_bytes, &grid.packs.bytes,
          &grid.packs.block_bytes, &grid.packs.stride_bytes}) {
      EXPECT_TRUE(std::is_sorted(axis->begin(), axis->end()));
      EXPECT_EQ(std::set(axis->begin(), axis->end()).size(), axis->size());
      EXPECT_GE(axis->front(), 1);
    }
    EXPECT_EQ(grid.messages_at_once.front(), 1);
    EXPECT_LE(grid.message_bytes.back(), std::int64_t{64} << 20);
    EXPECT_EQ(numbers_for(grid, 1), grid.messages_at_once.size());
    EXPECT_EQ(numbers_for(grid, grid.message_bytes.back()), 1u);
  }
  EXPECT_LT(make_grid(1).packs.bytes.size(), make_grid(60).packs.bytes.size());
}

TEST(Grid, LongBlocksAndShortStridesStandForWhatTheyAre) {
  EXPECT_EQ(shape_at(4096, 8, 64), (PackShape{4096, 8, 64}));
  EXPECT_EQ(shape_at(4096, 128, 64), (PackShape{4096, 128, 128}));
  EXPECT_EQ(shape_at(64, 128, 4096), (PackShape{64, 64, 64}));
  const dtype::PackTable::Axes axes{{64}, {8, 64, 128}, {16, 32, 4096}};
  const auto layer = pack_layer(axes, 64);
  EXPECT_EQ(layer.shapes.size(), 4u);
  EXPECT_EQ(layer.shape_at, (std::vector<std::size_t>{0, 1, 2, 3, 3, 3, 3, 3, 3}));
}

/// Tells if two blocks share a line of a cache.
bool shares_a_line(const dtype::PackPlan& plan) {
  std::vector<bool> used(static_cast<std::size_t>(plan.bounds().true_extent / 64 + 1));
  std::vector<dtype::MemoryBlock> blocks(4096);
  for (std::int64_t position = 0; position < plan.packed_bytes(1);) {
    const auto number = dtype::list_blocks(plan, 1, position, blocks);
    for (const auto& block : std::span(blocks).first(number)) {
      const auto first = block.offset / 64, last = (block.offset + block.length - 1) / 64;
      for (auto line = static_cast<std::size_t>(first); line <= static_cast<std::size_t>(last);
           ++line) {
        if (used[line]) return true;
        used[line] = true;
      }
    }
  }
  return false;
}

TEST(Grid, ShapesLieInTheirMemoryAndUseNoLineTwice) {
  for (const double seconds : {0.1, kFullGridSeconds}) {
    const auto grid = make_grid(seconds);
    for (const auto bytes : grid.packs.bytes)
      for (const auto& shape : pack_layer(grid.packs, bytes).shapes) {
        const auto plan = dtype::make_plan(*type_of(shape, field_bytes(grid.packs)));
        EXPECT_EQ(plan.packed_bytes(1), bytes);
        EXPECT_EQ(plan.bounds().true_lb, 0);
        EXPECT_LE(plan.bounds().true_extent, field_bytes(grid.packs));
        // The plan must run as it is described: without tiles.
        EXPECT_EQ(to_string(plan).find("tiles"), std::string::npos);
        if (shape.stride_bytes < 64 || (bytes != 4096 && bytes != grid.packs.bytes.back()))
          continue;
        EXPECT_FALSE(shares_a_line(plan)) << shape.block_bytes << " " << shape.stride_bytes;
      }
  }
}

dtype::SystemModel calibrate(const Calibration::Options& options, std::vector<std::string>& parts) {
  Calibration calibration(MPI_COMM_WORLD, options);
  for (const auto& part : calibration.parts())
    if (part.why_not.empty()) parts.push_back(part.name);
  std::int64_t last = 0;
  const auto model = calibration.measure([&](std::int64_t points) {
    EXPECT_GE(points, last);
    last = points;
  });
  EXPECT_EQ(last, world_rank() == 0 ? calibration.points() : 0);
  return model;
}

TEST(Calibration, MeasuresAllThatThereIs) {
  dtype::EmulatedDevice device;
  dtype::ResourceCache resources(device);
  std::vector<std::string> parts;
  const auto model = calibrate({.resources = &resources, .seconds = 0.05}, parts);
  const bool pair = world_size() > 1;
  EXPECT_EQ(parts.size(), pair ? 9u : 5u);
  if (world_rank() > 0) {
    EXPECT_EQ(model, dtype::SystemModel());
    return;
  }
  EXPECT_TRUE(model.launch_seconds && model.synchronize_seconds);
  EXPECT_EQ(model.host_messages.on_node.has_value(), pair);
  for (const auto& traffic : {model.blocks_on_node.strided, model.blocks_on_node.listed})
    for (const auto& [packed, typed] : {traffic.one_way, traffic.both_ways})
      EXPECT_TRUE(packed.has_value() == pair && typed.has_value() == pair);
  EXPECT_EQ(model.device_messages.on_node.has_value(), pair);
  EXPECT_FALSE(model.host_messages.off_node || model.blocks_off_node.strided.one_way.packed ||
               model.device_messages.off_node);
  EXPECT_TRUE(model.device_to_host && model.host_to_device);
  for (const auto* times : {&model.device_packing, &model.mapped_packing, &model.host_packing})
    EXPECT_TRUE(times->pack && times->unpack);
  EXPECT_EQ(dtype::parse_model(to_json(model), "test"), model);
  // So short a calibration cannot measure this part up to its end.
  const auto& cut = model.incomplete;
  EXPECT_TRUE(std::any_of(cut.begin(), cut.end(), [](const auto& part) {
    return part.starts_with("packing to device memory: up to ") &&
           part.ends_with(" instead of 1 MiB");
  })) << to_json(model);
}

TEST(PingPong, TheOtherRankMakesTheTripsThatOneLeads) {
  if (world_size() < 2 || world_rank() > 1) return;
  std::vector<std::int64_t> made;
  detail::PingPong pair(MPI_COMM_WORLD, 1 - world_rank(), [&](const detail::PingPong::What& what) {
    return [&made, number = what[0] + what[3]] { made.push_back(number); };
  });
  if (world_rank() == 0) {
    pair.lead({7, 0, 0, 1}, 2);
    EXPECT_GE(pair.time({5}, 1), 0);
    pair.end();
  } else {
    pair.follow();
  }
  EXPECT_EQ(made, (std::vector<std::int64_t>{8, 8, 5, 5}));
}

TEST(PingPong, AllRanksKnowTheCostOfALink) {
  if (world_size() < 2) return;
  const auto cost = measure_link(MPI_COMM_WORLD, world_size() - 1).value_or(dtype::LinkCost{});
  std::array mine{cost.latency_s, cost.seconds_per_byte}, first = mine;
  MPI_Bcast(first.data(), 2, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  EXPECT_EQ(mine, first);
}

TEST(Calibration, SaysWhatItCannotMeasure) {
  dtype::EmulatedDevice device;
  dtype::ResourceCache resources(device);
  const auto why_not = [](const Calibration::Options& options, const std::string& name) {
    const Calibration calibration(MPI_COMM_WORLD, options);
    for (const auto& part : calibration.parts())
      if (part.name == name) return part.why_not;
    return std::string("no such part");
  };
  const std::string alone = world_size() == 1 ? "messages need two ranks" : "";
  EXPECT_EQ(why_not({}, "host messages on the node"), alone);
  EXPECT_EQ(why_not({.resources = &resources}, "device messages on the node"), alone);
  EXPECT_NE(why_not({}, "host messages between nodes"), "");
  EXPECT_NE(why_not({}, "copies"), "");
  EXPECT_EQ(why_not({}, "packing by the host"), "");
  if (world_size() == 1) return;
  EXPECT_EQ(
      why_not({.resources = &resources, .gpu_aware_mpi = false}, "device messages on the node"),
      "this MPI does not take device memory");
  auto* const of_rank_0 = world_rank() == 0 ? &resources : nullptr;
  EXPECT_EQ(why_not({.resources = of_rank_0}, "device messages on the node"),
            "rank 1 has no device");
  auto* const of_rank_1 = world_rank() == 1 ? &resources : nullptr;
  EXPECT_NE(why_not({.resources = of_rank_1}, "device messages on the node"), "");
}

TEST(Calibration, AFailureOfOneRankIsEverybodys) {
  dtype::EmulatedDevice device(world_rank() == 0 ? 1 << 20 : std::size_t(-1));
  dtype::ResourceCache resources(device);
  std::vector<std::string> parts;
  EXPECT_THROW(calibrate({.resources = &resources, .seconds = 0.1}, parts), EnvironmentError);
}

}  // namespace
}  // namespace halocline::comm
