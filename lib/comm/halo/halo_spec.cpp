// SPDX-License-Identifier: BSD-3-Clause
// Finds the boxes of a halo and turns them into jobs.
#include "comm/halo/halo_spec.hpp"

#include <optional>
#include <string>

#include "support/error.hpp"

namespace halocline::comm {

namespace {

// Sets `box` along one axis with `owned` points. It covers the points sent towards `step`, or with
// `ghosts` the ghost points there.
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
    fill_axis(box, axis, spec.extent[axis], spec.radius[axis], direction[axis], ghosts);
  return box;
}

}  // namespace

Int3 HaloSpec::stored() const {
  return {extent[0] + 2 * radius[0], extent[1] + 2 * radius[1], extent[2] + 2 * radius[2]};
}

Box HaloSpec::interior() const {
  return {radius, extent};
}

Box HaloSpec::send_box(Direction direction) const {
  return box_towards(*this, direction, false);
}

Box HaloSpec::ghost_box(Direction direction) const {
  return box_towards(*this, direction, true);
}

namespace {

void check(const HaloSpec& spec, int rank, int fields, const HaloMessages& messages) {
  for (std::size_t axis = 0; axis < 3; ++axis)
    if (spec.extent[axis] < spec.radius[axis])
      throw ConfigError("radius is larger than the local extent (radius " +
                        std::to_string(spec.radius[axis]) + ", rank " + std::to_string(rank) +
                        " has " + std::to_string(spec.extent[axis]) + " points in " +
                        std::string(1, "xyz"[axis]) +
                        "): use a smaller radius, fewer ranks or more points");
  if (!messages.needs.empty() && std::ssize(messages.needs) != fields)
    throw ConfigError("needs are not given for each field (" +
                      std::to_string(messages.needs.size()) + " for " + std::to_string(fields) +
                      " fields): give a set of directions for each, or none at all");
}

// Returns the last axis along which a direction leads.
std::size_t last_axis(Direction direction) {
  return direction[2] != 0 ? 2 : direction[1] != 0 ? 1 : 0;
}

// Returns `needed` and the stations of its directions. Ghosts travel last along the last axis of
// their direction. Before, they are the neighbour's ghosts in the direction without this axis. That
// direction is their station.
DirectionSet with_stations(const DirectionSet& needed) {
  auto out = needed;
  // A station's last axis comes before the last axis of ghosts that travel through it.
  for (std::size_t axis = 2; axis > 0; --axis)
    for_each_direction([&](Direction direction) {
      if (out.contains(direction) && last_axis(direction) == axis && direction.axes() > 1)
        out.insert(direction.with(axis, 0));
    });
  return out;
}

// Tells if the slab that fills the ghosts of `face` extends to `side` of the axis `before`. It does
// if a direction of `filled` in this slab lies there.
bool is_wider(const DirectionSet& filled, Direction face, std::size_t before, std::int64_t side) {
  const auto axis = last_axis(face);
  bool out = false;
  for_each_direction([&](Direction direction) {
    out = out || (filled.contains(direction) && last_axis(direction) == axis &&
                  direction[axis] == face[axis] && direction[before] == side);
  });
  return out;
}

// Returns all directions that lie in the slabs of `filled`.
DirectionSet in_slabs(const DirectionSet& filled) {
  DirectionSet out;
  for_each_direction([&](Direction direction) {
    const auto axis = last_axis(direction);
    auto face = direction;
    if (axis > 0) face = face.with(0, 0);
    if (axis > 1) face = face.with(1, 0);
    // Any filled direction makes the slab. The slab is as wide as its widest filled direction.
    bool inside = is_wider(filled, face, axis, face[axis]);
    for (std::size_t before = 0; before < axis; ++before)
      inside =
          inside && (direction[before] == 0 || is_wider(filled, face, before, direction[before]));
    if (inside) out.insert(direction);
  });
  return out;
}

/// Holds the boxes that a field sends and receives in a direction; nullopt: no box.
struct BoxPair {
  std::optional<Box> out, in;
};

/// Finds the boxes that a field sends and receives in one shape.
class Regions {
 public:
  Regions(const Decomposition& decomposition, int rank, const HaloSpec& spec, HaloShape shape,
          const DirectionSet& needed)
      : decomposition_(decomposition),
        rank_(rank),
        spec_(spec),
        shape_(shape),
        filled_(filled_directions(needed, shape)) {}

  BoxPair towards(Direction direction) const {
    if (shape_ == HaloShape::axes && direction.axes() > 1) return {};
    BoxPair out;
    if (filled_.contains(direction.opposite()))
      out.out = widened(spec_.send_box(direction), direction.opposite());
    if (filled_.contains(direction)) out.in = widened(spec_.ghost_box(direction), direction);
    return out;
  }

 private:
  // Returns `box` extended by the ghosts along earlier axes that travel with it. `box` fills the
  // ghosts in the direction `ghosts`, here or at the neighbour.
  Box widened(Box box, Direction ghosts) const {
    if (shape_ == HaloShape::direct) return box;
    const auto axis = last_axis(ghosts);
    for (std::size_t before = 0; before < axis; ++before)
      for (const int side : {-1, 1}) {
        const auto edge = ghosts.with(before, side);
        if (!filled_.contains(edge) || !decomposition_.neighbor(rank_, edge.with(axis, 0)))
          continue;
        if (side < 0) box.begin[before] -= spec_.radius[before];
        box.extent[before] += spec_.radius[before];
      }
    return box;
  }

  const Decomposition& decomposition_;
  int rank_;
  const HaloSpec& spec_;
  HaloShape shape_;
  DirectionSet filled_;
};

}  // namespace

DirectionSet filled_directions(const DirectionSet& needed, HaloShape shape) {
  return shape == HaloShape::direct ? needed : in_slabs(with_stations(needed));
}

std::vector<ExchangeJob> halo_jobs(const Decomposition& decomposition, int rank,
                                   const HaloSpec& spec, int fields, const DescribeRegion& describe,
                                   const HaloMessages& messages) {
  check(spec, rank, fields, messages);
  std::vector<Regions> regions;
  for (int field = 0; field < fields; ++field)
    regions.emplace_back(decomposition, rank, spec, messages.shape,
                         messages.needs.empty() ? DirectionSet::all()
                                                : messages.needs[static_cast<std::size_t>(field)]);
  std::vector<ExchangeJob> jobs;
  for_each_direction([&](Direction direction) {
    const auto partner = decomposition.neighbor(rank, direction);
    if (!partner) return;
    for (int field = 0; field < fields; ++field) {
      const auto boxes = regions[static_cast<std::size_t>(field)].towards(direction);
      ExchangeJob job;
      job.partner = *partner;
      job.round = messages.shape == HaloShape::axes ? static_cast<int>(last_axis(direction)) : 0;
      job.send_tag = direction.index() * fields + field;
      job.receive_tag = direction.opposite().index() * fields + field;
      if (boxes.out) {
        const auto out = describe(field, *boxes.out);
        job.send_buffer = out.buffer, job.send_count = out.count, job.send_type = out.type;
      }
      if (boxes.in) {
        const auto in = describe(field, *boxes.in);
        job.receive_buffer = in.buffer, job.receive_count = in.count, job.receive_type = in.type;
      }
      if (boxes.out || boxes.in) jobs.push_back(job);
    }
  });
  return jobs;
}

}  // namespace halocline::comm
