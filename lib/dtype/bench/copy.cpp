// SPDX-License-Identifier: BSD-3-Clause
// Copies halos between two blocks of 8 fields of doubles, as between two ranks of a node that see
// each other's memory. Compares a CopyPlan, loops that copy row by row, packing and unpacking, and
// one memcpy of the same number of bytes.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "dtype/pack/copy_plan.hpp"
#include "dtype/pack/host/host_packer.hpp"
#include "harness.hpp"
#include "noise.hpp"
#include "slab.hpp"

namespace halocline::dtype::bench {

namespace {

constexpr std::int64_t kFields = 8;

// Describes a region that is sent: its begin in the source, and the begin of its ghosts in the
// destination.
struct Region {
  int shape;
  std::int64_t from[3], to[3];
};

// Returns all 26 regions in the order of their directions.
std::vector<Region> regions_of(std::int64_t points) {
  std::vector<Region> out;
  for (int d = 0; d < 27; ++d) {
    if (d == 13) continue;
    const int steps[] = {d / 9 - 1, d / 3 % 3 - 1, d % 3 - 1};
    Region region{0, {}, {}};
    for (int k = 0; k < 3; ++k) {
      if (steps[k] != 0) region.shape |= 1 << k;
      region.from[k] = steps[k] > 0 ? points : kRadius;
      region.to[k] = steps[k] == 0 ? kRadius : steps[k] > 0 ? 0 : points + kRadius;
    }
    out.push_back(region);
  }
  return out;
}

// Holds the fields of a block, one behind the other.
class Block {
 public:
  explicit Block(std::int64_t points)
      : side_(points + 2 * kRadius),
        field_((side_ * side_ * side_ * 8 + kPage - 1) / kPage * kPage / 8),
        data_(static_cast<double*>(std::aligned_alloc(kPage, bytes()))) {
    if (!data_) throw std::bad_alloc();
  }

  std::int64_t side() const { return side_; }
  std::size_t bytes() const { return static_cast<std::size_t>(kFields * field_ * 8); }
  double* field(std::int64_t i) const { return data_.get() + i * field_; }
  double* at(std::int64_t i, const std::int64_t (&start)[3]) const {
    return field(i) + (start[0] * side_ + start[1]) * side_ + start[2];
  }
  void fill(std::uint64_t seed) const {
    fill_with_noise(reinterpret_cast<std::byte*>(data_.get()), bytes(), seed);
  }
  // Returns a hash of all bytes and their order.
  std::uint64_t hash() const {
    std::uint64_t hash = 0;
    for (std::int64_t i = 0; i < kFields * field_; ++i) {
      std::uint64_t word = 0;
      std::memcpy(&word, data_.get() + i, sizeof word);
      hash = (hash ^ word) * 0x9E3779B97F4A7C15U;
      hash ^= hash >> 32;
    }
    return hash;
  }

 private:
  static constexpr std::int64_t kPage = 4096;
  struct Free {
    void operator()(double* data) const { std::free(data); }
  };
  std::int64_t side_, field_;
  std::unique_ptr<double, Free> data_;
};

template <int kShape>
void copy_rows(std::int64_t points, std::int64_t side, const double* __restrict from,
               double* __restrict to) {
  const auto nz = extent_of<(kShape & 1) != 0>(points);
  const auto ny = extent_of<(kShape & 2) != 0>(points);
  const auto nx = extent_of<(kShape & 4) != 0>(points);
  for (std::int64_t z = 0; z < nz; ++z)
    for (std::int64_t y = 0; y < ny; ++y)
      std::memcpy(to + (z * side + y) * side, from + (z * side + y) * side,
                  static_cast<std::size_t>(nx) * sizeof(double));
}

TypeExprPtr datatype(const Region& region, std::int64_t points, const std::int64_t (&start)[3]) {
  const auto side = points + 2 * kRadius;
  const auto extent = [&](int axis) { return (region.shape >> axis & 1) != 0 ? kRadius : points; };
  return type(Subarray{Order::c,
                       {side, side, side},
                       {extent(0), extent(1), extent(2)},
                       {start[0], start[1], start[2]},
                       named("double")});
}

struct Scene {
  std::int64_t points;
  bool periodic;  // the destination is the block's own ghosts
  std::vector<Region> regions;
};

Row measure(const Scene& scene, const Options& options) {
  const auto points = scene.points;
  const Block source(points), other(scene.periodic ? 0 : points);
  const auto& destination = scene.periodic ? source : other;
  std::vector<CopyJob> jobs;
  std::vector<PackJob> from, to;
  for (const auto& region : scene.regions) {
    const auto sent = make_plan(*datatype(region, points, region.from));
    const auto received = make_plan(*datatype(region, points, region.to));
    for (std::int64_t i = 0; i < kFields; ++i) {
      jobs.push_back({sent, source.field(i), 1, received, destination.field(i), 1});
      from.push_back({sent, source.field(i), 1});
      to.push_back({received, destination.field(i), 1});
    }
  }
  const CopyPlan plan(jobs);
  const FusedPlan pack(from), unpack(to);
  const auto bytes = static_cast<std::size_t>(plan.bytes());
  std::vector<std::byte> packed(bytes), again(bytes);

  std::vector<Contender> contenders;
  const auto add = [&](const char* name, auto body) {
    contenders.emplace_back(name, [body](std::int64_t calls) {
      for (; calls > 0; --calls) {
        body();
        benchmark::ClobberMemory();
      }
    });
  };
  add("hand", [&] {
    for (const auto& region : scene.regions)
      for (std::int64_t i = 0; i < kFields; ++i)
        with_shape(region.shape, [&](auto shape) {
          copy_rows<decltype(shape)::value>(points, source.side(), source.at(i, region.from),
                                            destination.at(i, region.to));
        });
  });
  add("copy", [&] { HostPacker().copy(plan); });
  add("packed", [&] {
    HostPacker().pack(pack, packed.data());
    HostPacker().unpack(unpack, packed.data());
  });
  add("memcpy", [&] { std::memcpy(again.data(), packed.data(), bytes); });

  Row row;
  const auto after = [&](const Calls& calls) {
    source.fill(1);
    if (!scene.periodic) destination.fill(2);
    calls(1);
    return destination.hash();
  };
  const auto expected = after(contenders[0].calls());
  row.verified =
      after(contenders[1].calls()) == expected && after(contenders[2].calls()) == expected;
  row.fields.emplace_back("bytes", static_cast<double>(bytes));
  const Effort effort = options.smoke   ? Effort{0, 0, 1}
                        : options.quick ? Effort{0.1, 20e3, 3}
                                        : Effort{2, 20e3, 9};
  for (auto& contender : contenders) contender.calibrate(effort.sample_ns);
  take_turns(contenders, effort);
  for (const std::size_t i : {0, 2, 3})
    row.fields.emplace_back("copy_vs_" + contenders[i].name(), ratio(contenders[1], contenders[i]));
  for (const auto& contender : contenders) append_times(row, contender);
  return row;
}

}  // namespace

std::vector<Benchmark> copy(const Options& options) {
  std::vector<Benchmark> all;
  // Faces and edges are named by the axes in which they are thin. Rows have 24 bytes if x is one of
  // these.
  constexpr std::array<std::pair<int, const char*>, 7> kShapes = {{{4, "faces-x"},
                                                                   {2, "faces-y"},
                                                                   {1, "faces-z"},
                                                                   {6, "edges-yx"},
                                                                   {5, "edges-zx"},
                                                                   {3, "edges-zy"},
                                                                   {7, "corners"}}};
  auto sizes = std::vector<std::int64_t>{128, options.points};
  if (options.points <= 128) sizes.pop_back();
  if (options.smoke) sizes = {options.points};
  for (const auto points : sizes) {
    const auto add = [&](const std::string& name, bool periodic, std::vector<Region> regions) {
      all.push_back({name + "-" + std::to_string(points),
                     [scene = Scene{points, periodic, std::move(regions)}](const Options& o) {
                       return measure(scene, o);
                     }});
    };
    for (const auto& [shape, name] : kShapes) {
      auto regions = regions_of(points);
      std::erase_if(regions, [wanted = shape](const Region& r) { return r.shape != wanted; });
      add(name, false, std::move(regions));
    }
    add("all-26", false, regions_of(points));
    add("all-26-periodic", true, regions_of(points));
  }
  return all;
}

}  // namespace halocline::dtype::bench
