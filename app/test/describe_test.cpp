// SPDX-License-Identifier: BSD-3-Clause
// Tests that all descriptions of a region give the same plan.
#include <gtest/gtest.h>

#include <cstdint>
#include <variant>
#include <vector>

#include "config.hpp"
#include "describe.hpp"
#include "domain.hpp"
#include "dtype/pack/pack_plan.hpp"

namespace halocline::app {
namespace {

// Holds what a packer executes for one region, and the begin in bytes from the array's first byte.
struct Executed {
  std::int64_t begin;
  dtype::detail::Op op;
  bool operator==(const Executed&) const = default;
};

Executed executed(const comm::Region& region, const void* array) {
  const auto plan = dtype::make_plan(region.type);
  const auto& program = std::get<dtype::PackPlan>(plan).program();
  auto op = program.entry(1);
  // One instance needs no loop over instances. The stride of that loop differs between
  // descriptions.
  const auto levels = program.instance_levels();
  op.strided.levels.assign(levels.begin(), levels.end());
  const auto offset =
      static_cast<const std::byte*>(region.buffer) - static_cast<const std::byte*>(array);
  return {offset + program.start, std::move(op)};
}

TEST(Describe, AllWaysEndInOnePlan) {
  for (const auto layout : {Layout::soa, Layout::aos})
    for (const int radius : {1, 3})
      for (const comm::Int3 local :
           {comm::Int3{8, 9, 10}, comm::Int3{3, 64, 5}, comm::Int3{70, 3, 3}}) {
        Config config;
        config.local = local;
        config.radius = radius;
        config.fields = 3;
        config.layout = layout;
        config.stencil = Stencil::point26;
        const auto domain = make_domain(config, comm::NodeHierarchy(MPI_COMM_SELF));
        const auto [nx, ny, nz] = domain.halo.stored();
        std::vector<double> array(static_cast<std::size_t>(nx * ny * nz) *
                                  static_cast<std::size_t>(domain.elements_per_point()));
        const std::vector<void*> arrays(static_cast<std::size_t>(domain.arrays()), array.data());
        RegionTypes subarrays(domain, Describe::subarray, MPI_DOUBLE, arrays);
        for (const auto way :
             {Describe::vector, Describe::hvector, Describe::hindexed, Describe::structure}) {
          RegionTypes others(domain, way, MPI_DOUBLE, arrays);
          comm::for_each_direction([&](comm::Direction direction) {
            for (const auto& box :
                 {domain.halo.send_box(direction), domain.halo.ghost_box(direction)})
              EXPECT_EQ(executed(others(0, box), array.data()),
                        executed(subarrays(0, box), array.data()))
                  << "description " << static_cast<int>(way) << ", direction " << direction.index();
          });
        }
      }
}

}  // namespace
}  // namespace halocline::app
