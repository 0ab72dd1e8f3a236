// SPDX-License-Identifier: BSD-3-Clause
#include "comm/halo/halo_spec.hpp"

#include <string>

#include "dtype/support/error.hpp"

namespace halocline::comm {

namespace {

// Along one axis with `owned` points: what is sent towards `step`, or which ghosts lie there,
// depending on `ghosts`.
void fill_axis(Box& box, std::size_t axis, std::int64_t owned, std::int64_t radius,
               std::int64_t step, bool ghosts) {
  box.begin[axis] = radius;
  box.extent[axis] = owned;
  if (step == 0) return;
  box.extent[axis] = radius;
  if (step > 0) box.begin[axis] = ghosts ? radius + owned : owned;
  if (step < 0 && ghosts) box.begin[axis] = 0;
}

Box box_towards(const HaloSpec& spec, Direction direction, bool ghosts) {
  Box box{};
  for (std::size_t axis = 0; axis < 3; ++axis)
    fill_axis(box, axis, spec.extent[axis], spec.radius, direction[axis], ghosts);
  return box;
}

}  // namespace

Int3 HaloSpec::stored() const {
  return {extent[0] + 2 * radius, extent[1] + 2 * radius, extent[2] + 2 * radius};
}

Box HaloSpec::interior() const {
  return {{radius, radius, radius}, extent};
}

Box HaloSpec::send_box(Direction direction) const {
  return box_towards(*this, direction, false);
}

Box HaloSpec::ghost_box(Direction direction) const {
  return box_towards(*this, direction, true);
}

std::vector<ExchangeJob> halo_jobs(const Decomposition& decomposition, int rank,
                                   const HaloSpec& spec, int fields,
                                   const DescribeRegion& describe) {
  for (std::size_t axis = 0; axis < 3; ++axis)
    if (spec.extent[axis] < spec.radius)
      throw ConfigError("radius is larger than the local extent (radius " +
                        std::to_string(spec.radius) + ", rank " + std::to_string(rank) + " has " +
                        std::to_string(spec.extent[axis]) + " points in " +
                        std::string(1, "xyz"[axis]) +
                        "): use a smaller radius, fewer ranks or more points");
  std::vector<ExchangeJob> jobs;
  for_each_direction([&](Direction direction) {
    const auto partner = decomposition.neighbor(rank, direction);
    if (!partner) return;
    for (int field = 0; field < fields; ++field) {
      const Region out = describe(field, spec.send_box(direction));
      const Region in = describe(field, spec.ghost_box(direction));
      jobs.push_back({.partner = *partner,
                      .send_buffer = out.buffer,
                      .send_count = out.count,
                      .send_type = out.type,
                      .send_tag = direction.index() * fields + field,
                      .receive_buffer = in.buffer,
                      .receive_count = in.count,
                      .receive_type = in.type,
                      .receive_tag = direction.opposite().index() * fields + field});
    }
  });
  return jobs;
}

}  // namespace halocline::comm
