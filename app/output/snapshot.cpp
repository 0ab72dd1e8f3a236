// SPDX-License-Identifier: BSD-3-Clause
#include "snapshot.hpp"

#include <optional>

#include "collective_file.hpp"
#include "draft.hpp"
#include "environment.hpp"
#include "field_transfer.hpp"
#include "series.hpp"
#include "support/region.hpp"

namespace halocline::app {

template <class T>
void write_snapshot(const Snapshot& snapshot, const Domain& domain, const FieldSet<T>& fields,
                    MPI_Comm comm, std::int64_t most_packed_bytes) {
  const ProfileRegion region("halocline: snapshot");
  constexpr int kBytes = sizeof(T);
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

  CollectiveFile file(comm, path + ".part", CollectiveFile::Use::write);
  FieldTransfer<T> transfer(domain, comm, most_packed_bytes);
  for (std::size_t i = 0; i < layout.data.size(); ++i)
    transfer.write(fields, snapshot.fields[i], file, layout.data[i]);
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
