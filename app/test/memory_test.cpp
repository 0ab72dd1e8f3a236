// SPDX-License-Identifier: BSD-3-Clause
// Tests the memory that a run needs on nodes and devices, and the methods that are compared there.
#include <gtest/gtest.h>

#include "domain.hpp"
#include "dtype/device/emulated_device.hpp"
#include "environment.hpp"
#include "fields.hpp"
#include "halo_messages.hpp"
#include "methods.hpp"
#include "physics.hpp"
#include "support/error.hpp"

namespace halocline::app {
namespace {

using comm::Exchange;
using comm::Method;
using dtype::Transfer;

constexpr double kGhosts = 14 * 14 * 14 - 8 * 8 * 8;  // points around 8 x 8 x 8, radius 3

MemoryEstimate estimate(Config config, const std::vector<Method>& methods) {
  config.local = {8, 8, 8};
  config.fields = 1;
  return estimate_memory(config, make_domain(config, comm::NodeHierarchy(MPI_COMM_SELF)), 2,
                         methods);
}

MemoryEstimate estimate(const std::vector<Method>& methods, Memory memory) {
  Config config;
  config.memory = memory;
  return estimate(config, methods);
}

TEST(Memory, FieldsOfADeviceAreOnTheHostToo) {
  const auto host = estimate({}, Memory::host), device = estimate({}, Memory::device);
  EXPECT_GE(host.host.fields, 2 * 14 * 14 * 14 * 8);
  EXPECT_GE(device.host.fields, 2 * 16 * 14 * 14 * 8) << "rows are padded";
  EXPECT_EQ(device.device.fields, device.host.fields);
  EXPECT_EQ(host.device.fields, 0);
}

template <class T>
void check_rows(const Config& config, std::uintptr_t alignment) {
  const auto domain = make_domain(config, comm::NodeHierarchy(MPI_COMM_SELF));
  const FieldSet<T> fields(domain, nullptr);
  const auto row = fields.extents()[2];
  const auto ghosts = config.radius[0] * domain.elements_per_point();
  for (int a = 0; a < domain.arrays(); ++a)
    for (const std::size_t number : {0, 1, 2, 50})
      EXPECT_EQ(
          reinterpret_cast<std::uintptr_t>(fields.address(a) + number * row + ghosts) % alignment,
          0);
  EXPECT_LE(2.0 * static_cast<double>(FieldSet<T>::bytes(domain)),
            estimate_memory(config, domain, 2, {}).host.fields);
}

TEST(Memory, OwnedPointsOfEachRowBeginAligned) {
  for (const auto layout : {Layout::soa, Layout::aos})
    for (const int fields : {1, 3})
      for (const int radius : {1, 3, 4})
        for (const auto& [pad, bytes] :
             {std::pair{Pad::by32, 32}, {Pad::by64, 64}, {Pad::by128, 128}})
          for (const auto element : all_of<Element>()) {
            Config config;
            config.subcommand = Subcommand::compare;
            config.local = {7, 5, 4};
            config.layout = layout;
            config.fields = fields;
            config.radius = radius;
            config.pad = pad;
            config.element = element;
            if (is_double(element))
              check_rows<double>(config, static_cast<std::uintptr_t>(bytes));
            else
              check_rows<float>(config, static_cast<std::uintptr_t>(bytes));
          }
}

TEST(Memory, FacesOnADeviceLieInOneSector) {
  Config config;
  config.local = {64, 64, 64};
  config.memory = Memory::device;
  const auto domain = make_domain(config, comm::NodeHierarchy(MPI_COMM_SELF));
  EXPECT_EQ(domain.left_padding(), 1);
  EXPECT_EQ(domain.extents_in_memory(), (comm::Int3{72, 70, 70}));
  config.pad = Pad::none;
  const auto bare = make_domain(config, comm::NodeHierarchy(MPI_COMM_SELF));
  EXPECT_EQ(bare.left_padding(), 0);
  EXPECT_EQ(bare.extents_in_memory(), (comm::Int3{70, 70, 70}));
}

TEST(Memory, RowsOnTheHostAreAlignedForMhdAlone) {
  Config config;
  config.local = {64, 64, 64};
  EXPECT_EQ(make_domain(config, comm::NodeHierarchy(MPI_COMM_SELF)).pad, Pad::none);
  config.physics = "mhd";
  EXPECT_EQ(make_domain(config, comm::NodeHierarchy(MPI_COMM_SELF)).pad, Pad::by32);
}

TEST(Memory, MessagesAreWhereTheTransferHasThem) {
  const auto open = [](Memory memory) { return estimate({Method(Exchange::alltoallv)}, memory); };
  const double bytes = 2 * kGhosts * 8, bookkeeping = open(Memory::host).host.messages - bytes;
  EXPECT_GT(bookkeeping, 0);
  EXPECT_LT(bookkeeping, 100e3);
  EXPECT_EQ(open(Memory::host).device.messages, 0);
  const auto check = [&](Method method, double on_host, double on_device) {
    const auto one = estimate({method}, Memory::device);
    EXPECT_EQ(one.host.messages, on_host * bytes + bookkeeping) << comm::name(method);
    EXPECT_EQ(one.device.messages, on_device * bytes) << comm::name(method);
    const auto two = estimate({method, method}, Memory::device);
    EXPECT_EQ(two.host.messages, 2 * one.host.messages);
    EXPECT_EQ(two.device.messages, 2 * one.device.messages);
  };
  check({Exchange::alltoallv, Transfer::device}, 0, 1);
  check({Exchange::alltoallv, Transfer::one_shot}, 1, 0.5);
  check({Exchange::alltoallv, Transfer::staged}, 1, 1);
  check({Exchange::alltoallv, Transfer::host}, 1, 0);
  check(Exchange::alltoallv, 1, 1);
  check(Exchange::shared, 0, 0);
  check(Exchange::vendor_pack, 0, 1);
  check(Exchange::vendor_alltoallw, 0, 1);
}

// In soa there are 26 regions, with 2 x 400 bytes of bookkeeping each. The 6 slabs hold the same
// bytes.
TEST(Memory, MessagesFollowNeighborsAndShapes) {
  const auto messages = [](Subcommand subcommand, std::vector<comm::HaloShape> shape,
                           Neighbors neighbors) {
    Config config;
    config.subcommand = subcommand;
    config.stencil = Stencil::heat3;
    config.shape = std::move(shape);
    config.neighbors = neighbors;
    return estimate(config, {Method(Exchange::p2p)}).host.messages;
  };
  using enum comm::HaloShape;
  const auto run = [&](comm::HaloShape shape, Neighbors neighbors) {
    return messages(Subcommand::run, {shape, direct}, neighbors);
  };
  const double all = 2 * kGhosts * 8, faces = 2 * 6 * 3 * 8 * 8 * 8;
  EXPECT_EQ(run(direct, Neighbors::all), all + 800 * 26);
  EXPECT_EQ(run(axes, Neighbors::all), all + 800 * 6);
  EXPECT_EQ(run(direct, Neighbors::automatic), faces + 800 * 6);
  EXPECT_EQ(run(axes, Neighbors::six), faces + 800 * 6);
  EXPECT_EQ(messages(Subcommand::compare, {direct, axes}, Neighbors::automatic),
            2 * all + 800 * (26 + 6));
}

// A rank keeps the ghosts beyond its fixed sides. 14 x 14 x 3 points of 8 bytes lie beyond a side.
TEST(Memory, CountsFixedGhosts) {
  constexpr double kSlab = 14 * 14 * 3 * 8;
  const auto fields = [](const PerSide<Boundary>& boundary, const comm::PerAxis<bool>& periodic,
                         MPI_Comm comm) {
    Config config;
    config.subcommand = Subcommand::run;
    config.local = {8, 8, 8};
    config.fields = 1;
    config.periodic = periodic;
    config.boundary = boundary;
    return estimate_memory(config, make_domain(config, comm::NodeHierarchy(comm)), 2, {})
        .host.fields;
  };
  const comm::PerAxis<bool> open(false), open_z(true, true, false);
  const PerSide<Boundary> fixed(Boundary::fixed), exact(Boundary::exact);
  const double none = fields(exact, open, MPI_COMM_SELF);
  EXPECT_EQ(fields(fixed, open, MPI_COMM_SELF), none + 6 * kSlab);
  EXPECT_EQ(fields(fixed, open_z, MPI_COMM_SELF), none + 2 * kSlab);
  // One of two ranks above each other has the low side, the other one the high side.
  const double sides = size_of(MPI_COMM_WORLD) == 2 ? 1 : 2;
  EXPECT_EQ(fields(fixed, open_z, MPI_COMM_WORLD), none + sides * kSlab);
}

// A run with files may exchange all ghosts, by a plan for each set.
TEST(Memory, CountsPlansForAllGhosts) {
  const auto messages = [](auto... change) {
    Config config;
    config.subcommand = Subcommand::run;
    config.stencil = Stencil::heat3;
    (change(config), ...);
    return estimate(config, {}).host.messages;
  };
  const double all = 2 * (2 * kGhosts * 8 + 800 * 26);
  EXPECT_EQ(messages(), 0);
  EXPECT_EQ(messages([](Config& config) { config.series_every = 1; }), all);
  EXPECT_EQ(messages([](Config& config) { config.slice_every = 1; }), all);
  EXPECT_EQ(messages([](Config& config) { config.restart = "folder"; }), all);
}

// The viscosity near shocks takes plans with 26, 26 and 6 neighbours.
TEST(Memory, CountsPlansOfAHelpingField) {
  const auto messages = [](double shock) {
    Config config;
    config.subcommand = Subcommand::run;
    config.physics = "mhd";
    config.local = {8, 8, 8};
    config.parameters["mhd.shock"] = shock;
    config.fields = physics_of(config).fields(config);
    const auto domain = make_domain(config, comm::NodeHierarchy(MPI_COMM_SELF));
    return estimate_memory(config, domain, 2, {comm::Method(comm::Exchange::p2p)}).host.messages;
  };
  const double faces = 6 * 8 * 8 * 3;
  EXPECT_EQ(messages(1), messages(0) + 2 * 8 * (2 * kGhosts + faces) + 800 * (26 + 26 + 6));
}

// With two ranks, one lies above the other.
TEST(Halo, TrafficFollowsMessages) {
  Config config;
  config.local = {8, 8, 8};
  config.fields = 5;
  const bool two = size_of(MPI_COMM_WORLD) == 2;
  const auto traffic = [&](comm::HaloShape shape, Messages messages) {
    config.messages = messages;
    const auto domain = make_domain(config, comm::NodeHierarchy(MPI_COMM_WORLD));
    return halo_traffic(config, domain, domain.decomposition, domain.rank, shape);
  };
  using enum comm::HaloShape;
  EXPECT_EQ(traffic(direct, Messages::partner).regions, 26 * 5);
  EXPECT_EQ(traffic(axes, Messages::partner).regions, 6 * 5);
  for (const auto shape : {direct, axes}) {
    EXPECT_EQ(traffic(shape, Messages::partner).messages, two ? 1 : 0);
    EXPECT_EQ(traffic(shape, Messages::partner).grouped_messages, two ? 1 : 0);
    EXPECT_EQ(traffic(shape, Messages::field).grouped_messages, two ? 5 : 0);
    EXPECT_EQ(traffic(shape, Messages::region).bytes_to_others, two ? 2 * 3 * 14 * 14 * 40 : 0);
    EXPECT_EQ(traffic(shape, Messages::region).bytes_off_node, 0);
  }
  EXPECT_EQ(traffic(direct, Messages::region).grouped_messages, two ? 18 : 0);
  EXPECT_EQ(traffic(axes, Messages::region).grouped_messages, two ? 2 : 0);
}

TEST(Memory, RanksShareTheirNode) {
  const auto node = tightest_node({.fields = 3, .messages = 4}, MPI_COMM_WORLD);
  EXPECT_EQ(node.needed, 7 * size_of(MPI_COMM_WORLD));
  EXPECT_GT(node.available, 1e6);
}

// Each rank has an emulated device of its own; the last rank has the smallest.
TEST(Memory, ADeviceThatIsTooSmallIsRefused) {
  const bool last = rank_of(MPI_COMM_WORLD) == size_of(MPI_COMM_WORLD) - 1;
  const dtype::EmulatedDevice device(last ? 1000 : 100'000);
  const auto tightest = [&](double bytes) {
    return tightest_device({.fields = bytes, .messages = 0}, device, MPI_COMM_WORLD);
  };
  EXPECT_EQ(tightest(1000).needed, 1000);
  EXPECT_EQ(tightest(1000).available, 1000);
  EXPECT_NO_THROW(require_memory(tightest(1000), "device", "less"));
  try {
    require_memory(tightest(1001), "device", "less");
    ADD_FAILURE() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("a device needs 1001 B"), std::string::npos)
        << error.what();
  }
}

TEST(Methods, OnADeviceAreAllThatThisMpiCan) {
  const auto aware = methods_on_device({true, "asked"}, {true, ""});
  EXPECT_EQ(aware.list, (std::vector<Method>{{Exchange::alltoallv, Transfer::device},
                                             {Exchange::alltoallv, Transfer::one_shot},
                                             {Exchange::alltoallv, Transfer::staged},
                                             Exchange::shared,
                                             Exchange::vendor_pack,
                                             Exchange::vendor_alltoallw}));
  EXPECT_TRUE(aware.left_out.empty());
  const auto unaware = methods_on_device({false, "asked"}, {false, "they are apart"});
  EXPECT_EQ(unaware.list, (std::vector<Method>{{Exchange::alltoallv, Transfer::one_shot},
                                               {Exchange::alltoallv, Transfer::staged}}));
  EXPECT_EQ(
      unaware.left_out,
      (std::vector<std::string>{
          "left out: shared, since they are apart",
          "left out: alltoallv:device, vendor-pack, vendor-alltoallw, since this MPI does not "
          "take device memory (asked)"}));
}

}  // namespace
}  // namespace halocline::app
