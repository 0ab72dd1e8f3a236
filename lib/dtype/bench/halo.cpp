// SPDX-License-Identifier: BSD-3-Clause
// Measures the slabs that a block of points^3 doubles sends to its 26 neighbours, radius 3, with
// loops as a good programmer writes them.
//
// halo: slabs are packed one by one, all 26 with one plan each, and all 26 as one fused plan.
// copy: slabs of 8 fields are copied into the ghosts of another block, as between two ranks of a
// node that see each other's memory. Compares a CopyPlan, loops that copy row by row, packing and
// unpacking, and one memcpy of the same number of bytes.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "dtype/bench/harness.hpp"
#include "dtype/bench/memory.hpp"
#include "dtype/pack/copy_plan.hpp"
#include "dtype/pack/host/host_packer.hpp"

namespace halocline::dtype::bench {

namespace {

constexpr std::int64_t kRadius = 3, kFields = 8;

// Describes a slab of a (z, y, x) array, with x contiguous. `shape`: bit k says that axis k (0: z)
// is kRadius thin. `from` and `to` are the begin of the points that are sent, and of their ghosts
// in the block that gets them.
struct Slab {
  std::int64_t points;
  int shape = 0;
  std::string axes = {};  // such as "-zlo-yhi"
  std::array<std::int64_t, 3> from = {}, to = {};

  std::int64_t side() const { return points + 2 * kRadius; }
  std::int64_t extent(int axis) const { return (shape >> axis & 1) != 0 ? kRadius : points; }
  std::int64_t place(const std::array<std::int64_t, 3>& at) const {
    return (at[0] * side() + at[1]) * side() + at[2];
  }
  TypeExprPtr type_at(const std::array<std::int64_t, 3>& at) const {
    return type(Subarray{Order::c,
                         {side(), side(), side()},
                         {extent(0), extent(1), extent(2)},
                         {at[0], at[1], at[2]},
                         named("double")});
  }
};

// Returns all 26 slabs in the order of their directions.
std::vector<Slab> slabs_of(std::int64_t points) {
  std::vector<Slab> out;
  for (int direction = 0; direction < 27; ++direction) {
    if (direction == 13) continue;
    const std::array steps = {direction / 9 - 1, direction / 3 % 3 - 1, direction % 3 - 1};
    auto& slab = out.emplace_back(Slab{points});
    for (std::size_t k = 0; k < 3; ++k) {
      slab.from[k] = steps[k] > 0 ? points : kRadius;
      slab.to[k] = steps[k] == 0 ? kRadius : steps[k] > 0 ? 0 : points + kRadius;
      if (steps[k] == 0) continue;
      slab.shape |= 1 << k;
      slab.axes += std::string("-") + "zyx"[k] + (steps[k] < 0 ? "lo" : "hi");
    }
  }
  return out;
}

// Calls use(shape) with the shape, 1 to 7, as a constant.
template <int kShape = 1, class Use>
auto with_shape(int shape, Use use) {
  if constexpr (kShape < 7) {
    if (shape != kShape) return with_shape<kShape + 1>(shape, use);
  }
  return use(std::integral_constant<int, kShape>{});
}

// Returns the extent of a slab along an axis. The radius is known when a stencil is compiled, the
// size of the block is not.
template <bool kThin>
auto extent_of(std::int64_t points) {
  if constexpr (kThin)
    return std::integral_constant<std::int64_t, kRadius>{};
  else
    return points;
}

// ---- halo ----

template <int kShape, class Move>
double* move_slab(const Slab& slab, Move move, double* __restrict memory,
                  double* __restrict packed) {
  const auto side = slab.side();
  const auto nz = extent_of<(kShape & 1) != 0>(slab.points);
  const auto ny = extent_of<(kShape & 2) != 0>(slab.points);
  const auto nx = extent_of<(kShape & 4) != 0>(slab.points);
  memory += slab.place(slab.from);
  for (std::int64_t z = 0; z < nz; ++z)
    for (std::int64_t y = 0; y < ny; ++y, packed += nx)
      for (std::int64_t x = 0; x < nx; ++x) move(memory[(z * side + y) * side + x], packed[x]);
  return packed;
}

Method one_slab(const Slab& slab) {
  return with_shape(slab.shape, [&](auto shape) {
    return by_hand<double>([slab](auto move, double* memory, double* packed) {
      move_slab<decltype(shape)::value>(slab, move, memory, packed);
    });
  });
}

Method all_slabs(const std::vector<Slab>& slabs) {
  return by_hand<double>([slabs](auto move, double* memory, double* packed) {
    for (const auto& slab : slabs)
      packed = with_shape(slab.shape, [&](auto shape) {
        return move_slab<decltype(shape)::value>(slab, move, memory, packed);
      });
  });
}

// ---- copy ----

// Holds the fields of a block, one behind the other, each from a page on.
class Block {
 public:
  explicit Block(std::int64_t side) : field_bytes_((side * side * side * 8 + 4095) / 4096 * 4096) {
    memory_.resize(kFields * field_bytes_);
  }
  double* field(std::int64_t i) const {
    return reinterpret_cast<double*>(memory_.data() + i * field_bytes_);
  }
  Buffer& memory() { return memory_; }

 private:
  std::int64_t field_bytes_;
  Buffer memory_{0};
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

// Measures copies of slabs. `periodic`: into the ghosts of the block itself.
Row measure_copy(const std::vector<Slab>& slabs, bool periodic, const Options& options) {
  const auto points = slabs.front().points, side = slabs.front().side();
  Block source(side), other(periodic ? 0 : side);
  auto& destination = periodic ? source : other;
  std::vector<CopyJob> jobs;
  std::vector<PackJob> from, to;
  for (const auto& slab : slabs) {
    const auto sent = make_plan(*slab.type_at(slab.from));
    const auto received = make_plan(*slab.type_at(slab.to));
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

  std::vector<Contender> all;
  const auto add = [&](const char* name, auto body) {
    all.emplace_back(name, [body](std::int64_t calls) {
      for (; calls > 0; --calls) {
        body();
        benchmark::ClobberMemory();
      }
    });
  };
  add("hand", [&] {
    for (const auto& slab : slabs)
      for (std::int64_t i = 0; i < kFields; ++i)
        with_shape(slab.shape, [&](auto shape) {
          copy_rows<decltype(shape)::value>(points, side, source.field(i) + slab.place(slab.from),
                                            destination.field(i) + slab.place(slab.to));
        });
  });
  add("copy", [&] { HostPacker().copy(plan); });
  add("packed", [&] {
    HostPacker().pack(pack, packed.data());
    HostPacker().unpack(unpack, packed.data());
  });
  add("memcpy", [&] { std::memcpy(again.data(), packed.data(), bytes); });

  Row row;
  const auto after = [&](const Contender& contender) {
    source.memory().fill(1);
    if (!periodic) destination.memory().fill(2);
    contender.calls()(1);
    return destination.memory().hash();
  };
  const auto expected = after(all[0]);
  row.verified = after(all[1]) == expected && after(all[2]) == expected;
  row.add("bytes", bytes);
  if (!row.verified) {
    row.note = "differs from the loop by hand";
    return row;
  }
  take_turns(all, effort_of(options, {2, 20e3, 9}, {0.1, 20e3, 3}));
  for (const std::size_t i : {0, 2, 3}) row.add("copy_vs_" + all[i].name(), ratio(all[1], all[i]));
  for (const auto& contender : all) row.add_times(contender.name(), contender.ns());
  remark_if_slower(row, all[1], all[0]);
  return row;
}

}  // namespace

std::vector<Case> halo(const Options& options) {
  constexpr std::array kKinds = {"face", "edge", "corner"};
  const auto slabs = slabs_of(options.points);
  std::vector<Part> parts;
  std::vector<Case> cases;
  for (const auto& slab : slabs) {
    parts.push_back({slab.type_at(slab.from)});
    cases.push_back({kKinds[slab.axes.size() / 4 - 1] + slab.axes, {parts.back()}, one_slab(slab)});
  }
  const auto hand = all_slabs(slabs);
  cases.push_back({"all-26-one-by-one", parts, hand});
  cases.push_back({"all-26-fused", parts, hand, Mode::fused});
  return cases;
}

std::vector<Benchmark> copy(const Options& options) {
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
  std::vector<Benchmark> out;
  for (const auto points : sizes) {
    const auto add = [&](const std::string& name, bool periodic, const std::vector<Slab>& slabs) {
      out.push_back({name + "-" + std::to_string(points),
                     [=, &options] { return measure_copy(slabs, periodic, options); }});
    };
    for (const auto& [shape, name] : kShapes) {
      auto slabs = slabs_of(points);
      std::erase_if(slabs, [wanted = shape](const Slab& slab) { return slab.shape != wanted; });
      add(name, false, slabs);
    }
    add("all-26", false, slabs_of(points));
    add("all-26-periodic", true, slabs_of(points));
  }
  return out;
}

}  // namespace halocline::dtype::bench
