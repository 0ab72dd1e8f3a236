// SPDX-License-Identifier: BSD-3-Clause
// Tests that all descriptions of a region give the same plan.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "config.hpp"
#include "describe.hpp"
#include "domain.hpp"
#include "dtype/datatype.hpp"
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
        config.element = local[0] == 8 ? Element::complex64 : Element::float64;
        config.local = local;
        config.radius = radius;
        config.fields = 3;
        config.layout = layout;
        config.stencil = Stencil::point26;
        config.pad = radius == 1 ? Pad::none : Pad::by64;
        const auto domain = make_domain(config, comm::NodeHierarchy(MPI_COMM_SELF));
        const auto [nx, ny, nz] = domain.extents_in_memory();
        std::vector<double> array(static_cast<std::size_t>(nx * ny * nz) *
                                  static_cast<std::size_t>(domain.elements_per_point()));
        const std::vector<void*> arrays(static_cast<std::size_t>(domain.arrays()), array.data());
        const auto value = mpi_type_of(config.element);
        RegionTypes subarrays(domain, Describe::subarray, value, arrays);
        for (const auto way :
             {Describe::vector, Describe::hvector, Describe::hindexed, Describe::structure}) {
          RegionTypes others(domain, way, value, arrays);
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

TEST(Describe, ComplexValuesAreThoseOfMpi) {
  for (const auto& [element, name, bytes] : {std::tuple{Element::complex64, "c_double_complex", 16},
                                             std::tuple{Element::complex32, "c_float_complex", 8}})
    for (const auto layout : {Layout::soa, Layout::aos}) {
      Config config;
      config.subcommand = Subcommand::compare;
      config.local = {8, 9, 10};
      config.element = element;
      config.fields = 3;
      config.layout = layout;
      const auto domain = make_domain(config, comm::NodeHierarchy(MPI_COMM_SELF));
      EXPECT_EQ(domain.value_bytes(), bytes);
      std::vector<void*> arrays(static_cast<std::size_t>(domain.arrays()));
      for (const auto way : all_of<Describe>()) {
        RegionTypes types(domain, way, mpi_type_of(element), arrays);
        const auto box = domain.halo.send_box(comm::Direction::from_index(0));
        const auto region = types(0, box);
        int size = 0;
        MPI_Type_size(region.type, &size);
        EXPECT_EQ(size, box.points() * bytes * (layout == Layout::aos ? 3 : 1));
        const auto type = dtype::to_string(*std::get<0>(dtype::decode(region.type)));
        EXPECT_NE(type.find(name), std::string::npos) << type;
      }
    }
}

}  // namespace
}  // namespace halocline::app
