// SPDX-License-Identifier: BSD-3-Clause
// Alltoallv, alltoallw and their like: the same collective of MPI, so that it matches what ranks
// without the interposer call, with packed bytes on either side or both.
#include "comm/interpose/collectives.hpp"

#include <algorithm>
#include <climits>
#include <cstdint>
#include <exception>
#include <memory>
#include <numeric>
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

// What goes to or comes from one partner, if there is one and it gets something.
using Part = DeviceMessage::Part;

// The packed bytes of all partners, one behind the other, in place of what one side of a collective
// sends or receives. Parts of nobody are none.
class PackedSide {
 public:
  // `one_type`: a call that takes one for all partners, so that they cannot be streamed.
  PackedSide(std::vector<std::optional<Part>> parts, bool on_device, bool one_type)
      : types_(parts.size(), MPI_PACKED) {
    int offset = 0;
    std::vector<Part> on_device_parts;
    for (auto& part : parts) {
      const auto bytes = part ? part->plan.packed_bytes(part->count) : 0;
      counts_.push_back(static_cast<int>(bytes));
      offsets_.push_back(offset);
      addresses_.push_back(offset);
      offset += static_cast<int>(bytes);
      if (!part) continue;
      if (on_device) {
        on_device_parts.push_back(*std::move(part));
        continue;
      }
      auto type = one_type ? nullptr : streamed(bytes);
      if (type != nullptr) {
        types_[counts_.size() - 1] = type->type();
        counts_.back() = 1;
        offset += comm::StreamedBytes::kRoom;
      }
      parts_.push_back({*std::move(part), offsets_.back(), std::move(type)});
    }
    if (on_device)
      on_device_ = std::make_unique<DeviceMessage>(on_device_parts);
    else
      packed_ = PackedBytes(offset);
  }

  void pack() const {
    if (on_device_ != nullptr) return on_device_->pack();
    for (const auto& [part, offset, type] : parts_) {
      auto* const to = packed_.data() + offset;
      dtype::HostPacker().pack(part.plan, part.buffer, part.count, to);
      if (type != nullptr) type->part(to);
    }
  }
  void unpack() const {
    if (on_device_ != nullptr)
      return on_device_->unpack(std::accumulate(counts_.begin(), counts_.end(), std::int64_t{0}));
    for (const auto& [part, offset, type] : parts_) {
      auto* const from = packed_.data() + offset;
      if (type != nullptr) type->join(from);
      dtype::HostPacker().unpack(part.plan, from, part.buffer, part.count);
    }
  }

  void* data() const { return on_device_ != nullptr ? on_device_->data() : packed_.data(); }
  const int* counts() const { return counts_.data(); }
  const int* offsets() const { return offsets_.data(); }
  const MPI_Aint* addresses() const { return addresses_.data(); }
  const MPI_Datatype* types() const { return types_.data(); }

 private:
  struct InHost {
    Part part;
    int offset;
    std::shared_ptr<const comm::StreamedBytes> type;  // nullptr: one run
  };
  std::vector<InHost> parts_;
  PackedBytes packed_;
  std::unique_ptr<DeviceMessage> on_device_;
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
  void* buffer_of(int i) const {
    MPI_Aint lower = 0, unit = 1;
    if (one_type) PMPI_Type_get_extent(types[0], &lower, &unit);
    return reinterpret_cast<void*>(
        reinterpret_cast<std::uintptr_t>(buffer) +
        static_cast<std::uintptr_t>(unit * static_cast<MPI_Aint>(displacements[i])));
  }
  bool is_given() const {
    return buffer != MPI_IN_PLACE && counts != nullptr && displacements != nullptr &&
           types != nullptr;
  }
};

// Whether the engine is to pack a side: if it takes over most of the bytes, or some of a device.
// What is received by one type for all partners, and so would have to be one run of memory, is left
// to an MPI whose messages are streamed, unless the engine is forced.
template <class Displacement>
bool is_ours(const Side<Displacement>& side, Way way, const Partners& partners) {
  const bool is_for_devices = kStreams && side.one_type && way == Way::receive &&
                              settings().mode != Settings::Mode::engine;
  std::int64_t all = 0, ours = 0;
  bool on_device = false;
  for (int i = 0; i < partners.count; ++i) {
    if (!partners.is_there(i) || side.counts[i] == 0) continue;
    const auto type = side.type(i);
    if (side.counts[i] < 0 || type == MPI_DATATYPE_NULL) return false;
    MPI_Count size = 0;
    PMPI_Type_size_x(type, &size);
    all += size * side.counts[i];
    auto* const known = known_type(type);
    const auto by =
        known == nullptr ? Handling{} : known->to_send(type, side.buffer_of(i), side.counts[i]);
    if (by.plan != nullptr) ours += size * side.counts[i];
    on_device = on_device || is_packed_by_device(by.memory);
  }
  return ours > 0 && all + partners.count * comm::StreamedBytes::kRoom <= INT_MAX &&
         (on_device || (!is_for_devices && 2 * ours >= all));
}

// `side` packed, if the engine is to do that and it knows all types. Nothing is packed yet. Without
// memory for it, MPI does it.
template <class Displacement>
std::optional<PackedSide> packed_instead(const Side<Displacement>& side, Way way,
                                         const Partners& partners) {
  if (!side.is_given() || !is_ours(side, way, partners)) return std::nullopt;
  try {
    std::vector<std::optional<Part>> parts(static_cast<std::size_t>(partners.count));
    bool on_device = false, on_host = false;
    for (int i = 0; i < partners.count; ++i) {
      if (!partners.is_there(i) || side.counts[i] == 0) continue;
      const auto type = side.type(i);
      const auto* const known = known_type(type);
      if (known == nullptr ? !dtype::is_predefined(type) : known->is_packed_otherwise())
        return std::nullopt;
      const auto* const plan = std::get_if<dtype::PackPlan>(&dtype::cached_plan(type));
      auto* const buffer = side.buffer_of(i);
      if (plan == nullptr || !is_of(*plan, buffer)) return std::nullopt;
      const auto kind = kind_of(*plan, buffer);
      on_device = on_device || is_packed_by_device(kind);
      on_host = on_host || kind == dtype::MemoryKind::host;
      parts[static_cast<std::size_t>(i)] = Part{*plan, buffer, side.counts[i]};
    }
    if (on_device && on_host) return std::nullopt;  // no packer reaches both
    return PackedSide(std::move(parts), on_device, side.one_type);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

// The first of these types that was committed in the interposer's sight, or MPI_DATATYPE_NULL.
MPI_Datatype first_known(int count, const MPI_Datatype* types) {
  for (int i = 0; types != nullptr && i < count; ++i)
    if ((i == 0 || types[i] != types[i - 1]) && known_type(types[i]) != nullptr) return types[i];
  return MPI_DATATYPE_NULL;
}
MPI_Datatype first_known(int count, const MPI_Datatype* types, int other_count,
                         const MPI_Datatype* other_types) {
  const auto found = first_known(count, types);
  return found != MPI_DATATYPE_NULL ? found : first_known(other_count, other_types);
}

}  // namespace

namespace halocline::interpose {

Partners partners_of(MPI_Comm comm) {
  Partners out;
  int between_groups = 0;
  PMPI_Comm_test_inter(comm, &between_groups);
  if (between_groups != 0)
    PMPI_Comm_remote_size(comm, &out.count);
  else
    PMPI_Comm_size(comm, &out.count);
  return out;
}

std::pair<int, int> neighbor_counts(MPI_Comm comm) {
  int topology = MPI_UNDEFINED, in = 0, out = 0;
  PMPI_Topo_test(comm, &topology);
  if (topology == MPI_CART) {
    int dimensions = 0;
    PMPI_Cartdim_get(comm, &dimensions);
    in = out = 2 * dimensions;
  } else if (topology == MPI_GRAPH) {
    int rank = 0;
    PMPI_Comm_rank(comm, &rank);
    PMPI_Graph_neighbors_count(comm, rank, &in);
    out = in;
  } else if (topology == MPI_DIST_GRAPH) {
    int weighted = 0;
    PMPI_Dist_graph_neighbors_count(comm, &in, &out, &weighted);
  }
  return {in, out};
}

Neighbors neighbors_of(MPI_Comm comm) {
  const auto [in, out] = neighbor_counts(comm);
  Neighbors neighbors{{in, {}}, {out, {}}};
  int topology = MPI_UNDEFINED;
  PMPI_Topo_test(comm, &topology);
  for (int i = 0; topology == MPI_CART && i < in / 2; ++i) {
    int below = MPI_PROC_NULL, above = MPI_PROC_NULL;
    PMPI_Cart_shift(comm, i, 1, &below, &above);
    for (const int neighbor : {below, above}) {
      neighbors.in.there.push_back(neighbor != MPI_PROC_NULL);
      neighbors.out.there.push_back(neighbor != MPI_PROC_NULL);
    }
  }
  return neighbors;
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
  const auto sent =
      packed_instead(Side<int>{sendbuf, sendcounts, sdispls, &sendtype, true}, Way::send, partners);
  const auto received =
      packed_instead(Side<int>{recvbuf, recvcounts, rdispls, &recvtype, true}, Way::receive, partners);
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
  const auto type = first_known(partners.count, sendtypes, partners.count, recvtypes);
  if (type == MPI_DATATYPE_NULL) return as_it_is();
  const auto sent =
      packed_instead(Side<int>{sendbuf, sendcounts, sdispls, sendtypes, false}, Way::send, partners);
  const auto received =
      packed_instead(Side<int>{recvbuf, recvcounts, rdispls, recvtypes, false}, Way::receive, partners);
  if (!sent && !received) return noted(Call::alltoallw, Path::mpi, type, 1, as_it_is);
  return noted(Call::alltoallw, Path::engine, type, 1, [&] {
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
  const auto [in_count, out_count] = neighbor_counts(comm);
  const auto type = first_known(out_count, sendtypes, in_count, recvtypes);
  if (type == MPI_DATATYPE_NULL) return as_it_is();
  const auto [in, out] = neighbors_of(comm);
  const auto sent =
      packed_instead(Side<MPI_Aint>{sendbuf, sendcounts, sdispls, sendtypes, false}, Way::send, out);
  const auto received =
      packed_instead(Side<MPI_Aint>{recvbuf, recvcounts, rdispls, recvtypes, false}, Way::receive, in);
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
