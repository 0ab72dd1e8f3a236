// SPDX-License-Identifier: BSD-3-Clause
#include "field_transfer.hpp"

#include <algorithm>

#include "comm/mpi/communicator.hpp"
#include "dtype/pack/host/host_packer.hpp"
#include "field_boxes.hpp"
#include "support/mpi_check.hpp"
#include "support/narrow.hpp"

namespace halocline::app {

namespace {

template <class T>
MPI_Datatype mpi_value() {
  return sizeof(T) == sizeof(double) ? MPI_DOUBLE : MPI_FLOAT;
}

// Cuts a box into boxes of at most `most` points, or of one row, in the order of their points in
// the file.
std::vector<comm::Box> cut_in_order(const comm::Box& box, std::int64_t most) {
  const auto& [nx, ny, nz] = box.extent;
  const auto rows = std::clamp<std::int64_t>(most / nx, 1, ny);
  const auto planes = rows < ny ? 1 : std::clamp<std::int64_t>(most / (nx * ny), 1, nz);
  std::vector<comm::Box> out;
  for (std::int64_t z = 0; z < nz; z += planes)
    for (std::int64_t y = 0; y < ny; y += rows)
      out.push_back({{box.begin[0], box.begin[1] + y, box.begin[2] + z},
                     {nx, std::min(rows, ny - y), std::min(planes, nz - z)}});
  return out;
}

// Returns a part, or nullptr for ranks that have fewer parts.
const comm::Box* part_of(const std::vector<comm::Box>& boxes, std::int64_t round) {
  return round < std::ssize(boxes) ? &boxes[static_cast<std::size_t>(round)] : nullptr;
}

int count_of(const comm::Box* box) {
  return box == nullptr ? 0 : checked_int(box->points(), "row of a field");
}

}  // namespace

template <class T>
FieldTransfer<T>::FieldTransfer(const Domain& domain, MPI_Comm comm, std::int64_t most_packed_bytes)
    : domain_(domain) {
  constexpr int kBytes = sizeof(T);
  comm::collectively(comm, [&] {
    boxes_ = cut_in_order(domain.owned, most_packed_bytes / kBytes);
    view_ =
        dtype::make_datatype(*box_in_array(domain.decomposition.global(), domain.owned, kBytes));
    packed_.resize(static_cast<std::size_t>(boxes_.front().points()));
  });
  rounds_ = std::ssize(boxes_);
  HALOCLINE_MPI(MPI_Allreduce(MPI_IN_PLACE, &rounds_, 1, MPI_INT64_T, MPI_MAX, comm));
}

template <class T>
void FieldTransfer<T>::write(const FieldSet<T>& fields, int field, CollectiveFile& file,
                             std::int64_t at) {
  const dtype::HostPacker packer;
  file.set_view(at, mpi_value<T>(), view_);
  for (std::int64_t round = 0; round < rounds_; ++round) {
    const auto* const box = part_of(boxes_, round);
    if (box != nullptr) {
      const auto [array, type] = field_box(domain_, field, *box);
      packer.pack(dtype::make_plan(*type), fields.address(array), 1, packed_.data());
    }
    file.write(packed_.data(), count_of(box), mpi_value<T>());
  }
}

template <class T>
void FieldTransfer<T>::read(const FieldSet<T>& fields, int field, CollectiveFile& file,
                            std::int64_t at) {
  const dtype::HostPacker packer;
  file.set_view(at, mpi_value<T>(), view_);
  for (std::int64_t round = 0; round < rounds_; ++round) {
    const auto* const box = part_of(boxes_, round);
    file.read(packed_.data(), count_of(box), mpi_value<T>());
    if (box == nullptr) continue;
    const auto [array, type] = field_box(domain_, field, *box);
    packer.unpack(dtype::make_plan(*type), packed_.data(), fields.address(array), 1);
  }
}

template class FieldTransfer<double>;
template class FieldTransfer<float>;

}  // namespace halocline::app
