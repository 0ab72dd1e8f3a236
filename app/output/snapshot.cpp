// SPDX-License-Identifier: BSD-3-Clause
#include "snapshot.hpp"

#include <algorithm>
#include <optional>

#include "collective_file.hpp"
#include "comm/mpi/communicator.hpp"
#include "draft.hpp"
#include "dtype/pack/host/host_packer.hpp"
#include "environment.hpp"
#include "field_boxes.hpp"
#include "series.hpp"
#include "support/mpi_check.hpp"
#include "support/narrow.hpp"
#include "support/region.hpp"

namespace halocline::app {

namespace {

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

}  // namespace

template <class T>
void write_snapshot(const Snapshot& snapshot, const Domain& domain, const FieldSet<T>& fields,
                    MPI_Comm comm, std::int64_t most_packed_bytes) {
  const ProfileRegion region("halocline: snapshot");
  constexpr int kBytes = sizeof(T);
  const auto value = kBytes == sizeof(double) ? MPI_DOUBLE : MPI_FLOAT;
  const auto& global = domain.decomposition.global();
  const auto layout = lay_out(snapshot, global, kBytes);
  const auto path = snapshot.folder + "/" + snapshot.file();

  std::optional<Draft> draft;  // of rank 0
  run_on_root(comm, [&] {
    draft.emplace(path);
    draft->reserve(layout.bytes);
    draft->write(layout.head, 0);
    for (const auto at : layout.data) draft->write(layout.length(), at - VtiLayout::kLengthBytes);
    draft->write(layout.tail, layout.bytes - std::ssize(layout.tail));
  });

  std::vector<comm::Box> boxes;
  dtype::Datatype view;
  std::vector<T> packed;
  comm::collectively(comm, [&] {
    boxes = cut_in_order(domain.owned, most_packed_bytes / kBytes);
    view = dtype::make_datatype(*box_in_array(global, domain.owned, kBytes));
    packed.resize(static_cast<std::size_t>(boxes.front().points()));
  });
  std::int64_t rounds = std::ssize(boxes);  // largest number of any rank
  HALOCLINE_MPI(MPI_Allreduce(MPI_IN_PLACE, &rounds, 1, MPI_INT64_T, MPI_MAX, comm));

  CollectiveFile file(comm, path + ".part");
  const dtype::HostPacker packer;
  for (std::size_t i = 0; i < layout.data.size(); ++i) {
    file.set_view(layout.data[i], value, view);
    for (std::int64_t round = 0; round < rounds; ++round) {
      int count = 0;
      if (round < std::ssize(boxes)) {
        const auto& box = boxes[static_cast<std::size_t>(round)];
        const auto [array, type] = field_box(domain, snapshot.fields[i], box);
        packer.pack(dtype::make_plan(*type), fields.address(array), 1, packed.data());
        count = checked_int(box.points(), "row of a field");
      }
      file.write(packed.data(), count, value);
    }
  }
  file.close();
  run_on_root(comm, [&] {
    draft->commit();
    add_to_series(snapshot, layout, global);
  });
}

template void write_snapshot(const Snapshot&, const Domain&, const FieldSet<double>&, MPI_Comm,
                             std::int64_t);
template void write_snapshot(const Snapshot&, const Domain&, const FieldSet<float>&, MPI_Comm,
                             std::int64_t);

}  // namespace halocline::app
