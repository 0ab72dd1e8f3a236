// SPDX-License-Identifier: BSD-3-Clause
#include "overlap.hpp"

#include <algorithm>

namespace halocline::app {

namespace {

constexpr std::int64_t kVectorBytes = 32;  // of AVX2

}  // namespace

SplitPoints split_points(const Domain& domain, std::int64_t reach, bool own_at_start) {
  const auto owned = domain.halo.interior();
  const auto& ranks = domain.decomposition.ranks();
  const auto& periodic = domain.decomposition.periodic();
  comm::Int3 margin;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    margin[axis] = own_at_start && periodic[axis] && ranks[axis] == 1 ? 0 : reach;
    if (margin[axis] > 0 && owned.extent[axis] <= 2 * reach)
      return {{owned.begin, {0, 0, 0}}, {owned}};
  }
  const auto vector = kVectorBytes / (domain.element_bytes * domain.elements_per_point());
  if (margin[0] > 0 && owned.extent[0] > 2 * vector) margin[0] = std::max(reach, vector);

  SplitPoints out{owned, {}};
  for (const std::size_t axis : {2, 1, 0}) {
    if (margin[axis] == 0) continue;
    auto& rest = out.interior;
    auto low = rest, high = rest;
    low.extent[axis] = high.extent[axis] = margin[axis];
    high.begin[axis] += rest.extent[axis] - margin[axis];
    out.boundary.insert(out.boundary.end(), {low, high});
    rest.begin[axis] += margin[axis];
    rest.extent[axis] -= 2 * margin[axis];
  }
  return out;
}

std::vector<std::vector<PartBox>> cut_planes(const comm::Box& box, int parts, std::int64_t chunks) {
  const auto planes = box.points() == 0 ? 0 : box.extent[2];
  const auto all = planes * parts;
  chunks = std::min(chunks, all);
  std::vector<std::vector<PartBox>> out;
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
    auto& chunk_parts = out.emplace_back();
    const auto end = all * (chunk + 1) / chunks;
    for (auto plane = all * chunk / chunks; plane < end;) {
      auto part = box;
      part.begin[2] += plane % planes;
      part.extent[2] = std::min(end - plane, planes - plane % planes);
      chunk_parts.push_back({static_cast<int>(plane / planes), part});
      plane += part.extent[2];
    }
  }
  return out;
}

}  // namespace halocline::app
