// SPDX-License-Identifier: BSD-3-Clause
#include "slice.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "colours.hpp"
#include "comm/mpi/communicator.hpp"
#include "draft.hpp"
#include "dtype/datatype.hpp"
#include "environment.hpp"
#include "field_boxes.hpp"
#include "support/mpi_check.hpp"
#include "support/region.hpp"
#include "vti.hpp"

namespace halocline::app {

namespace {

constexpr std::int64_t kLeastPixels = 512;  // of the longer side

// Returns the part of `box` in the plane; it has no points if the box does not meet the plane.
comm::Box in_plane(comm::Box box, std::size_t axis, std::int64_t index) {
  const bool meets = box.begin[axis] <= index && index < box.begin[axis] + box.extent[axis];
  box.begin[axis] = index;
  box.extent[axis] = meets ? 1 : 0;
  return box;
}

/// Collects the plane of a field on rank 0.
template <class T>
class PlaneGather {
 public:
  PlaneGather(const Slice& slice, const Domain& domain)
      : domain_(domain), axis_(static_cast<std::size_t>(slice.axis)), index_(slice.index) {}

  // Returns the points of the plane, empty on other ranks than 0. Collective.
  std::vector<T> operator()(int field, const FieldSet<T>& fields, MPI_Comm comm) {
    std::vector<T> plane;
    comm::collectively(comm, [&] { prepare(field, plane); });
    if (own_.get() != MPI_DATATYPE_NULL) {
      auto& request = requests_.emplace_back();
      HALOCLINE_MPI(MPI_Isend(fields.address(array_), 1, own_.get(), 0, 0, comm, &request));
    }
    for (const auto& [rank, type] : parts_) {
      auto& request = requests_.emplace_back();
      HALOCLINE_MPI(MPI_Irecv(plane.data(), 1, type.get(), rank, 0, comm, &request));
    }
    HALOCLINE_MPI(
        MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE));
    return plane;
  }

 private:
  struct Part {
    int rank;
    dtype::Datatype type;
  };

  // Makes the types, and on rank 0 the plane. Local.
  void prepare(int field, std::vector<T>& plane) {
    if (const auto box = in_plane(domain_.owned, axis_, index_); box.points() > 0) {
      const auto [array, type] = field_box(domain_, field, box);
      array_ = array;
      own_ = dtype::make_datatype(*type);
    }
    if (domain_.rank != 0) return;
    auto whole = domain_.decomposition.global();
    whole[axis_] = 1;
    for (int rank = 0; rank < domain_.decomposition.size(); ++rank) {
      auto box = in_plane(domain_.decomposition.owned(rank), axis_, index_);
      if (box.points() == 0) continue;
      box.begin[axis_] = 0;
      parts_.push_back({rank, dtype::make_datatype(*box_in_array(whole, box, sizeof(T)))});
    }
    plane.resize(static_cast<std::size_t>(comm::Box{{}, whole}.points()));
  }

  const Domain& domain_;
  std::size_t axis_;
  std::int64_t index_;
  int array_ = 0;
  dtype::Datatype own_;  // null without points in the plane
  std::vector<Part> parts_;
  std::vector<MPI_Request> requests_;
};

// Draws `plane`, whose rows of `width` points begin at the bottom.
template <class T>
PalettePicture draw_plane(const Slice& slice, const std::vector<T>& plane, std::int64_t width) {
  constexpr auto kInfinity = std::numeric_limits<double>::infinity();
  double low = kInfinity, high = -kInfinity;
  for (const double value : plane)
    if (std::isfinite(value)) low = std::min(low, value), high = std::max(high, value);
  const auto scale = colour_scale(low, high);
  const auto height = std::ssize(plane) / width, longer = std::max(width, height);
  PalettePicture out{width, height,        static_cast<int>((kLeastPixels + longer - 1) / longer),
                     {},    scale.palette, {}};
  out.numbers.reserve(plane.size());
  for (auto row = plane.end(); row != plane.begin();) {
    row -= width;
    std::transform(row, row + width, std::back_inserter(out.numbers),
                   [&](T value) { return scale.colour(value); });
  }
  out.texts = {{"field", slice.name},
               {"step", std::to_string(slice.step)},
               {"time", shortest(slice.time)},
               {"min", shortest(low)},
               {"max", shortest(high)},
               {"axis", std::string(to_string(slice.axis))},
               {"index", std::to_string(slice.index)}};
  return out;
}

}  // namespace

std::string Slice::file() const {
  return "slice-" + name + "-" + std::string(to_string(axis)) + "-" + digits_of_step(step) + ".png";
}

template <class T>
void write_slice(const Slice& slice, const Domain& domain, const FieldSet<T>& fields,
                 MPI_Comm comm) {
  const ProfileRegion region("halocline: slice");
  const auto plane = PlaneGather<T>(slice, domain)(slice.field, fields, comm);
  const auto& global = domain.decomposition.global();
  run_on_root(comm, [&] {
    const auto picture = draw_plane(slice, plane, global[slice.axis == Axis::x ? 1 : 0]);
    write_whole_file(slice.folder + "/" + slice.file(), png_of(picture));
  });
}

template void write_slice(const Slice&, const Domain&, const FieldSet<double>&, MPI_Comm);
template void write_slice(const Slice&, const Domain&, const FieldSet<float>&, MPI_Comm);

}  // namespace halocline::app
