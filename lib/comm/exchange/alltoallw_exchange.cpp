// SPDX-License-Identifier: BSD-3-Clause
// The user's derived types straight into MPI_Alltoallw (method vendor-alltoallw).
#include <algorithm>

#include "comm/exchange/backend.hpp"
#include "dtype/datatype.hpp"
#include "dtype/support/mpi_check.hpp"
#include "dtype/support/narrow.hpp"
#include "dtype/support/region.hpp"

namespace halocline::comm::detail {

namespace {

/// One direction of travel in MPI_Alltoallw's terms: per rank a struct of all its pieces at their
/// distances from `base`.
struct TypedMessages {
  void* base = MPI_BOTTOM;
  std::vector<dtype::Datatype> owned;
  std::vector<MPI_Datatype> types;
  std::vector<int> counts, displacements;
};

// MPIs tell by the buffer argument whether it is memory of a device; from MPI_BOTTOM they cannot.
TypedMessages combine(const Pieces& pieces, int ranks, bool on_device) {
  const auto n = static_cast<std::size_t>(ranks);
  TypedMessages side{.base = on_device && !pieces.empty() ? pieces.front().buffer : MPI_BOTTOM,
                     .owned = {},
                     .types = std::vector<MPI_Datatype>(n, MPI_BYTE),
                     .counts = std::vector<int>(n),
                     .displacements = std::vector<int>(n)};
  MPI_Aint base = 0;
  HALOCLINE_MPI(MPI_Get_address(side.base, &base));
  for (auto first = pieces.begin(); first != pieces.end();) {
    const auto last = std::find_if(first, pieces.end(),
                                   [&](const Piece& p) { return p.partner != first->partner; });
    std::vector<int> counts;
    std::vector<MPI_Aint> addresses;
    std::vector<MPI_Datatype> types;
    for (auto piece = first; piece != last; ++piece) {
      counts.push_back(checked_int(piece->count, "count of a job"));
      auto& address = addresses.emplace_back();
      HALOCLINE_MPI(MPI_Get_address(piece->buffer, &address));
      address = MPI_Aint_diff(address, base);
      types.push_back(piece->type);
    }
    MPI_Datatype combined = MPI_DATATYPE_NULL;
    HALOCLINE_MPI(MPI_Type_create_struct(checked_int(std::ssize(counts), "number of jobs"),
                                         counts.data(), addresses.data(), types.data(), &combined));
    side.owned.emplace_back(combined);
    HALOCLINE_MPI(MPI_Type_commit(&combined));
    side.types[static_cast<std::size_t>(first->partner)] = combined;
    side.counts[static_cast<std::size_t>(first->partner)] = 1;
    first = last;
  }
  return side;
}

class AlltoallwExchange final : public Backend {
 public:
  AlltoallwExchange(std::shared_ptr<const Communicator> comm, const Pieces& sends,
                    const Pieces& receives, bool on_device)
      : comm_(std::move(comm)),
        out_(combine(sends, comm_->size(), on_device)),
        in_(combine(receives, comm_->size(), on_device)) {}

  void begin() override {
    const Region region("halocline: transfer");
    const double start = MPI_Wtime();
    HALOCLINE_MPI(MPI_Alltoallw(out_.base, out_.counts.data(), out_.displacements.data(),
                                out_.types.data(), in_.base, in_.counts.data(),
                                in_.displacements.data(), in_.types.data(), comm_->get()));
    transfer_ = MPI_Wtime() - start;
  }

  PhaseTimes end() override { return {.pack = {}, .transfer = transfer_, .unpack = {}}; }

 private:
  std::shared_ptr<const Communicator> comm_;
  TypedMessages out_, in_;
  double transfer_ = 0;
};

}  // namespace

std::unique_ptr<Backend> make_alltoallw_exchange(std::shared_ptr<const Communicator> comm,
                                                 const Pieces& sends, const Pieces& receives,
                                                 bool on_device) {
  return std::make_unique<AlltoallwExchange>(std::move(comm), sends, receives, on_device);
}

}  // namespace halocline::comm::detail
