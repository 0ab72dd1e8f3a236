// SPDX-License-Identifier: BSD-3-Clause
// Alltoallv, alltoallw and their like: the same collective of MPI, so that it matches what ranks
// without the interposer call, with packed bytes on either side or both.
#include "comm/interpose/collectives.hpp"

#include <algorithm>
#include <climits>
#include <cstdint>
#include <exception>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "comm/interpose/calls.hpp"
#include "comm/interpose/requests.hpp"
#include "comm/interpose/types.hpp"
#include "dtype/datatype.hpp"
#include "dtype/pack/host/host_packer.hpp"
#include "dtype/pack/plan_table.hpp"

using namespace halocline;
using namespace halocline::interpose;

namespace {

// What goes to or comes from one partner.
struct Part {
  const dtype::PackPlan* plan;
  const void* buffer;
  int count;
};

// The packed bytes of all partners, one behind the other, in place of what one side of a collective
// sends or receives.
class PackedSide {
 public:
  explicit PackedSide(std::vector<Part> parts, std::int64_t bytes)
      : parts_(std::move(parts)), packed_(bytes), types_(parts_.size(), MPI_PACKED) {
    int offset = 0;
    for (const auto& part : parts_) {
      counts_.push_back(
          static_cast<int>(part.count == 0 ? 0 : part.plan->packed_bytes(part.count)));
      offsets_.push_back(offset);
      addresses_.push_back(offset);
      offset += counts_.back();
    }
  }

  void pack() const {
    for (std::size_t i = 0; i < parts_.size(); ++i)
      if (parts_[i].count > 0)
        dtype::HostPacker().pack(*parts_[i].plan, parts_[i].buffer, parts_[i].count,
                                 packed_.data() + offsets_[i]);
  }
  void unpack() const {
    for (std::size_t i = 0; i < parts_.size(); ++i)
      if (parts_[i].count > 0)
        dtype::HostPacker().unpack(*parts_[i].plan, packed_.data() + offsets_[i],
                                   const_cast<void*>(parts_[i].buffer), parts_[i].count);
  }

  void* data() const { return packed_.data(); }
  const int* counts() const { return counts_.data(); }
  const int* offsets() const { return offsets_.data(); }
  const MPI_Aint* addresses() const { return addresses_.data(); }
  const MPI_Datatype* types() const { return types_.data(); }

 private:
  std::vector<Part> parts_;
  PackedBytes packed_;
  std::vector<int> counts_, offsets_;
  std::vector<MPI_Aint> addresses_;
  std::vector<MPI_Datatype> types_;
};

// One side of a call as the application gives it.
template <class Displacement>
struct Side {
  const void* buffer;
  const int* counts;
  const Displacement* displacements;  // bytes, or extents of the type
  const MPI_Datatype* types;          // one, or one for each partner
  bool one_type;

  MPI_Datatype type(int i) const { return types[one_type ? 0 : i]; }
};

// `side` packed, if the engine is to do that: where most of the bytes are of types that it takes
// over, and it knows all others. Nothing is packed yet. `partners`: whether there is one.
template <class Displacement>
std::optional<PackedSide> packed_instead(const Side<Displacement>& side,
                                         const std::vector<bool>& partners) {
  if (side.buffer == MPI_IN_PLACE || side.counts == nullptr || side.displacements == nullptr ||
      side.types == nullptr)
    return std::nullopt;
  std::vector<Part> parts;
  std::int64_t all = 0, taken_over = 0;
  for (int i = 0; i < static_cast<int>(partners.size()); ++i) {
    const int count = partners[static_cast<std::size_t>(i)] ? side.counts[i] : 0;
    if (count < 0) return std::nullopt;
    auto& part = parts.emplace_back(Part{nullptr, nullptr, count});
    if (count == 0) continue;
    const auto type = side.type(i);
    if (type == MPI_DATATYPE_NULL) return std::nullopt;
    auto* const known = known_type(type);
    if (known == nullptr && !dtype::is_predefined(type)) return std::nullopt;
    const auto* const pays = known == nullptr ? nullptr : known->to_send(type, count);
    part.plan = pays != nullptr ? pays : std::get_if<dtype::PackPlan>(&dtype::cached_plan(type));
    if (part.plan == nullptr) return std::nullopt;
    const auto unit = side.one_type ? part.plan->bounds().extent : 1;
    part.buffer = reinterpret_cast<const void*>(
        reinterpret_cast<std::uintptr_t>(side.buffer) +
        static_cast<std::uintptr_t>(unit * static_cast<std::int64_t>(side.displacements[i])));
    if (!is_of(*part.plan, part.buffer)) return std::nullopt;
    const auto bytes = part.plan->packed_bytes(count);
    all += bytes;
    if (pays != nullptr) taken_over += bytes;
  }
  if (all == 0 || all > INT_MAX || 2 * taken_over < all) return std::nullopt;
  return PackedSide(std::move(parts), all);
}

// Likewise; without memory for it, or types for which a plan could not be made, MPI does it.
template <class Displacement>
std::optional<PackedSide> try_to_pack(const Side<Displacement>& side,
                                      const std::vector<bool>& partners) {
  try {
    return packed_instead(side, partners);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

// Whether a type among these was committed in the interposer's sight.
bool any_known(const std::vector<bool>& partners, const MPI_Datatype* types) {
  return types != nullptr && std::any_of(types, types + partners.size(), [](MPI_Datatype type) {
           return known_type(type) != nullptr;
         });
}

}  // namespace

namespace halocline::interpose {

std::vector<bool> partners_of(MPI_Comm comm) {
  int size = 0, between_groups = 0;
  PMPI_Comm_test_inter(comm, &between_groups);
  if (between_groups != 0)
    PMPI_Comm_remote_size(comm, &size);
  else
    PMPI_Comm_size(comm, &size);
  return std::vector<bool>(static_cast<std::size_t>(size), true);
}

Neighbors neighbors_of(MPI_Comm comm) {
  int topology = MPI_UNDEFINED, in = 0, out = 0;
  PMPI_Topo_test(comm, &topology);
  if (topology == MPI_CART) {
    int dimensions = 0;
    PMPI_Cartdim_get(comm, &dimensions);
    std::vector<bool> all;
    for (int i = 0; i < dimensions; ++i) {
      int below = MPI_PROC_NULL, above = MPI_PROC_NULL;
      PMPI_Cart_shift(comm, i, 1, &below, &above);
      all.push_back(below != MPI_PROC_NULL);
      all.push_back(above != MPI_PROC_NULL);
    }
    return {all, all};
  }
  if (topology == MPI_GRAPH) {
    int rank = 0;
    PMPI_Comm_rank(comm, &rank);
    PMPI_Graph_neighbors_count(comm, rank, &in);
    out = in;
  } else if (topology == MPI_DIST_GRAPH) {
    int weighted = 0;
    PMPI_Dist_graph_neighbors_count(comm, &in, &out, &weighted);
  }
  return {std::vector<bool>(static_cast<std::size_t>(in), true),
          std::vector<bool>(static_cast<std::size_t>(out), true)};
}

}  // namespace halocline::interpose

int MPI_Alltoallv(const void* sendbuf, const int sendcounts[], const int sdispls[],
                  MPI_Datatype sendtype, void* recvbuf, const int recvcounts[], const int rdispls[],
                  MPI_Datatype recvtype, MPI_Comm comm) {
  const auto as_it_is = [&] {
    return PMPI_Alltoallv(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls,
                          recvtype, comm);
  };
  if (comm == MPI_COMM_NULL || sendbuf == MPI_IN_PLACE ||
      (known_type(sendtype) == nullptr && known_type(recvtype) == nullptr))
    return as_it_is();
  const auto partners = partners_of(comm);
  const auto sent = try_to_pack(Side<int>{sendbuf, sendcounts, sdispls, &sendtype, true}, partners);
  const auto received =
      try_to_pack(Side<int>{recvbuf, recvcounts, rdispls, &recvtype, true}, partners);
  if (!sent && !received) return noted(Call::alltoallv, Path::mpi, sendtype, 1, as_it_is);
  return noted(Call::alltoallv, Path::engine, sendtype, 1, [&] {
    if (sent) {
      sent->pack();
      sendbuf = sent->data(), sendcounts = sent->counts(), sdispls = sent->offsets();
      sendtype = MPI_PACKED;
    }
    if (received) {
      recvbuf = received->data(), recvcounts = received->counts(), rdispls = received->offsets();
      recvtype = MPI_PACKED;
    }
    const int code = as_it_is();
    if (code == MPI_SUCCESS && received) received->unpack();
    return code;
  });
}

int MPI_Alltoallw(const void* sendbuf, const int sendcounts[], const int sdispls[],
                  const MPI_Datatype sendtypes[], void* recvbuf, const int recvcounts[],
                  const int rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm) {
  const auto as_it_is = [&] {
    return PMPI_Alltoallw(sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls,
                          recvtypes, comm);
  };
  if (comm == MPI_COMM_NULL || sendbuf == MPI_IN_PLACE) return as_it_is();
  const auto partners = partners_of(comm);
  if (!any_known(partners, sendtypes) && !any_known(partners, recvtypes)) return as_it_is();
  const auto sent =
      try_to_pack(Side<int>{sendbuf, sendcounts, sdispls, sendtypes, false}, partners);
  const auto received =
      try_to_pack(Side<int>{recvbuf, recvcounts, rdispls, recvtypes, false}, partners);
  if (!sent && !received) return noted(Call::alltoallw, Path::mpi, sendtypes[0], 1, as_it_is);
  return noted(Call::alltoallw, Path::engine, sendtypes[0], 1, [&] {
    if (sent) {
      sent->pack();
      sendbuf = sent->data(), sendcounts = sent->counts(), sdispls = sent->offsets();
      sendtypes = sent->types();
    }
    if (received) {
      recvbuf = received->data(), recvcounts = received->counts(), rdispls = received->offsets();
      recvtypes = received->types();
    }
    const int code = as_it_is();
    if (code == MPI_SUCCESS && received) received->unpack();
    return code;
  });
}

int MPI_Neighbor_alltoallw(const void* sendbuf, const int sendcounts[], const MPI_Aint sdispls[],
                           const MPI_Datatype sendtypes[], void* recvbuf, const int recvcounts[],
                           const MPI_Aint rdispls[], const MPI_Datatype recvtypes[],
                           MPI_Comm comm) {
  const auto as_it_is = [&] {
    return PMPI_Neighbor_alltoallw(sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts,
                                   rdispls, recvtypes, comm);
  };
  if (comm == MPI_COMM_NULL) return as_it_is();
  const auto [in, out] = neighbors_of(comm);
  if (!any_known(out, sendtypes) && !any_known(in, recvtypes)) return as_it_is();
  const auto sent =
      try_to_pack(Side<MPI_Aint>{sendbuf, sendcounts, sdispls, sendtypes, false}, out);
  const auto received =
      try_to_pack(Side<MPI_Aint>{recvbuf, recvcounts, rdispls, recvtypes, false}, in);
  const auto type = !out.empty() ? sendtypes[0] : recvtypes[0];
  if (!sent && !received) return noted(Call::neighbor_alltoallw, Path::mpi, type, 1, as_it_is);
  return noted(Call::neighbor_alltoallw, Path::engine, type, 1, [&] {
    if (sent) {
      sent->pack();
      sendbuf = sent->data(), sendcounts = sent->counts(), sdispls = sent->addresses();
      sendtypes = sent->types();
    }
    if (received) {
      recvbuf = received->data(), recvcounts = received->counts(), rdispls = received->addresses();
      recvtypes = received->types();
    }
    const int code = as_it_is();
    if (code == MPI_SUCCESS && received) received->unpack();
    return code;
  });
}
