// SPDX-License-Identifier: BSD-3-Clause
// Defines MPI_Alltoallv, MPI_Alltoallw and MPI_Neighbor_alltoallw. The same collective of MPI is
// called with packed bytes on one side or both, so it matches calls of ranks without the
// interposer.
#include "comm/interpose/collectives.hpp"

#include <algorithm>
#include <climits>
#include <cstdint>
#include <exception>
#include <memory>
#include <numeric>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "comm/interpose/calls.hpp"
#include "comm/interpose/comparison.hpp"
#include "comm/interpose/languages.hpp"
#include "comm/interpose/requests.hpp"
#include "comm/interpose/settings.hpp"
#include "comm/interpose/types.hpp"
#include "dtype/datatype.hpp"
#include "dtype/pack/handle_table.hpp"
#include "dtype/pack/host/host_packer.hpp"
#include "dtype/pack/plan_table.hpp"

namespace halocline::interpose {
namespace {

int partner_count(MPI_Comm comm) {
  int count = 0, between_groups = 0;
  PMPI_Comm_test_inter(comm, &between_groups);
  if (between_groups != 0)
    PMPI_Comm_remote_size(comm, &count);
  else
    PMPI_Comm_size(comm, &count);
  return count;
}

Between neighbors_of(MPI_Comm comm) {
  Between out;
  auto& [sources, destinations] = out;
  int topology = MPI_UNDEFINED;
  PMPI_Topo_test(comm, &topology);
  if (topology == MPI_CART) {
    int dimensions = 0;
    PMPI_Cartdim_get(comm, &dimensions);
    for (int i = 0; i < dimensions; ++i) {
      int below = MPI_PROC_NULL, above = MPI_PROC_NULL;
      PMPI_Cart_shift(comm, i, 1, &below, &above);
      for (const int neighbor : {below, above}) sources.there.push_back(neighbor != MPI_PROC_NULL);
    }
    sources.count = 2 * dimensions;
    destinations = sources;
  } else if (topology == MPI_GRAPH) {
    int rank = 0;
    PMPI_Comm_rank(comm, &rank);
    PMPI_Graph_neighbors_count(comm, rank, &sources.count);
    destinations = sources;
  } else if (topology == MPI_DIST_GRAPH) {
    int weighted = 0;
    PMPI_Dist_graph_neighbors_count(comm, &sources.count, &destinations.count, &weighted);
  }
  return out;
}

// Describes one side of a call: what is sent, or what is received.
template <class Displacement>
struct Side {
  const void* buffer;
  const int* counts;
  const Displacement* displacements;  // in units of unit()
  const MPI_Datatype* types;          // one type, or one for each partner
  bool one_type;

  MPI_Datatype type(int i) const { return types[one_type ? 0 : i]; }
  // Returns the bytes of a displacement of 1: the type's extent, or 1.
  MPI_Aint unit() const {
    MPI_Aint lower = 0, out = 1;
    if (one_type) PMPI_Type_get_extent(types[0], &lower, &out);
    return out;
  }
  void* buffer_of(int i, MPI_Aint unit) const {
    return reinterpret_cast<void*>(
        reinterpret_cast<std::uintptr_t>(buffer) +
        static_cast<std::uintptr_t>(unit * static_cast<MPI_Aint>(displacements[i])));
  }
  bool is_given() const {
    return buffer != MPI_IN_PLACE && counts != nullptr && displacements != nullptr &&
           types != nullptr;
  }
  // Tells if a type is null, so that MPI may have to refuse it by the communicator's error handler.
  // Open MPI refuses it even for a partner with nothing to send.
  bool has_null_type(int partners) const {
    if (types == nullptr || counts == nullptr) return false;
    for (int i = 0; i < (one_type ? 1 : partners); ++i)
      if (types[i] == MPI_DATATYPE_NULL && (one_type || kStreams || counts[i] != 0)) return true;
    return false;
  }
};

// Holds the packed bytes of all partners, one behind the other. MPI gets them in place of one side
// of a collective.
class PackedSide {
 public:
  // Takes memory for all parts; nullopt is a partner without data. Bytes cannot be streamed with
  // `one_type`: such a call has one type for all partners, however long their packed bytes are.
  PackedSide(std::vector<std::optional<comm::PlannedBuffer>> parts, bool on_device, bool one_type)
      : types_(parts.size(), MPI_PACKED), one_type_(one_type) {
    int offset = 0;
    std::vector<comm::PlannedBuffer> on_device_parts;
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
      parts_.push_back({*std::move(part), offsets_.back(), std::move(type), counts_.size() - 1});
    }
    if (on_device)
      on_device_ = std::make_unique<DeviceMessage>(on_device_parts);
    else
      packed_ = host_bytes(offset);
  }

  void pack() const {
    if (on_device_ != nullptr) return on_device_->pack();
    for (const auto& [part, offset, type, partner] : parts_) {
      auto* const to = packed_.data() + offset;
      dtype::HostPacker().pack(part.plan, part.buffer, part.count, to);
      if (type != nullptr) type->part(to);
    }
  }
  void unpack() const {
    if (on_device_ != nullptr)
      return on_device_->unpack(std::accumulate(counts_.begin(), counts_.end(), std::int64_t{0}));
    for (const auto& [part, offset, type, partner] : parts_) {
      auto* const from = packed_.data() + offset;
      if (type != nullptr) type->join(from);
      dtype::HostPacker().unpack(part.plan, from, part.buffer, part.count);
    }
  }

  // Compares what was packed, or what was unpacked and is packed again, with MPI's packs.
  template <class Displacement>
  void verify(const Side<Displacement>& given) const {
    for (const auto& [part, offset, type, partner] : parts_)
      interpose::verify(given.type(static_cast<int>(partner)), part.buffer, part.count,
                        packed_.data() + offset, part.plan.packed_bytes(part.count));
  }

  // Returns the side that MPI gets instead.
  template <class Displacement>
  Side<Displacement> side() const {
    const Displacement* displacements = nullptr;
    if constexpr (std::is_same_v<Displacement, int>)
      displacements = offsets_.data();
    else
      displacements = addresses_.data();
    return {on_device_ != nullptr ? on_device_->data() : packed_.data(), counts_.data(),
            displacements, types_.data(), one_type_};
  }

 private:
  struct InHost {
    comm::PlannedBuffer part;
    int offset;
    std::shared_ptr<const comm::StreamedBytes> type;  // nullptr: one run
    std::size_t partner;
  };
  std::vector<InHost> parts_;
  HostBytes packed_;
  std::unique_ptr<DeviceMessage> on_device_;
  std::vector<int> counts_, offsets_;
  std::vector<MPI_Aint> addresses_;
  std::vector<MPI_Datatype> types_;
  bool one_type_;
};

// Returns the packed bytes that a side sends or receives.
template <class Displacement>
std::int64_t bytes_of(const Side<Displacement>& side, const Partners& partners) {
  std::int64_t out = 0;
  for (int i = 0; side.is_given() && i < partners.count; ++i) {
    if (!partners.is_there(i) || side.counts[i] == 0) continue;
    MPI_Count size = 0;
    PMPI_Type_size_x(side.type(i), &size);
    out += size * side.counts[i];
  }
  return out;
}

// Tells if the engine is to pack a side: it takes over half of the bytes or more, or some in memory
// of a device.
template <class Displacement>
bool is_ours(const Side<Displacement>& side, Role role, const Partners& partners) {
  // If messages are streamed, a receive with one type for all partners needs one run of memory.
  const bool needs_one_run = kStreams && side.one_type && role == Role::receiver;
  // With one rank, Open MPI 4.1 uses other displacements (results/vendor-bugs). A program must not
  // get these first and the right ones later.
  const bool is_one_rank =
      kStreams && std::is_same_v<Displacement, int> && !side.one_type && partners.count == 1;
  const bool is_mpis_on_host =
      (needs_one_run || is_one_rank) && settings().mode != Settings::Mode::engine;
  if (is_mpis_on_host && !may_have_device_memory()) return false;
  const auto unit = side.unit();
  std::int64_t ours = 0;
  bool on_device = false;
  for (int i = 0; i < partners.count; ++i) {
    if (!partners.is_there(i) || side.counts[i] == 0) continue;
    if (side.counts[i] < 0 || side.type(i) == MPI_DATATYPE_NULL) return false;
    auto* const known = committed_type(side.type(i));
    if (known == nullptr) continue;
    const auto by = known->to_send(side.type(i), side.buffer_of(i, unit), side.counts[i], role,
                                   MessagePattern::both_ways);
    if (by.plan != nullptr) ours += by.plan->packed_bytes(side.counts[i]);
    on_device = on_device || is_packed_by_device(by.memory);
  }
  if (ours == 0) return false;
  const auto all = bytes_of(side, partners);
  if (all + partners.count * comm::StreamedBytes::kRoom > INT_MAX) return false;
  return on_device || (!is_mpis_on_host && 2 * ours >= all);
}

// Tells if a predefined type may hold an element that is too long to be received in pieces.
bool is_long(MPI_Datatype predefined) {
  int size = 0;
  return kStreams && PMPI_Type_size(predefined, &size) == MPI_SUCCESS && size > kLongestCutElement;
}

// Returns `side` packed, if the engine is to pack it and knows all its types. Nothing is packed
// yet. Returns nullopt if MPI is to do it, also if there is no memory.
template <class Displacement>
std::optional<PackedSide> packed_instead(const Side<Displacement>& side, Role role,
                                         const Partners& partners) {
  if (!side.is_given() || !is_ours(side, role, partners)) return std::nullopt;
  try {
    std::vector<std::optional<comm::PlannedBuffer>> parts(static_cast<std::size_t>(partners.count));
    const auto unit = side.unit();
    bool on_device = false, on_host = false;
    for (int i = 0; i < partners.count; ++i) {
      if (!partners.is_there(i) || side.counts[i] == 0) continue;
      const auto type = side.type(i);
      auto* const buffer = side.buffer_of(i, unit);
      auto* const known = committed_type(type);
      if (known == nullptr && !dtype::is_predefined(type)) return std::nullopt;
      const auto* plan = known != nullptr
                             ? known->plan_beside_others(type, buffer, side.counts[i], role)
                             : nullptr;
      if (known != nullptr && plan == nullptr && !known->is_one_run()) return std::nullopt;
      if (role == Role::sender && (known != nullptr ? known->has_long_elements() : is_long(type)))
        return std::nullopt;
      if (plan == nullptr) plan = std::get_if<dtype::PackPlan>(&dtype::cached_plan(type));
      if (plan == nullptr || !has_address(*plan, buffer)) return std::nullopt;
      const auto kind = kind_of(*plan, buffer);
      on_device = on_device || is_packed_by_device(kind);
      on_host = on_host || kind == dtype::MemoryKind::host;
      parts[static_cast<std::size_t>(i)] = comm::PlannedBuffer{*plan, buffer, side.counts[i]};
    }
    if (on_device && on_host) return std::nullopt;  // no packer reaches both
    return PackedSide(std::move(parts), on_device, side.one_type);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

// Holds what is known of the types of a call, found without a look at buffers.
struct Types {
  MPI_Datatype first = MPI_DATATYPE_NULL;  // first one that was committed in the interposer's sight
  CommittedType::Sender sender = CommittedType::Sender::mpi;

  // Tells if the engine may do a part of the call.
  bool may_be_ours() const {
    return sender == CommittedType::Sender::undecided ||
           (sender == CommittedType::Sender::mpi_on_host && may_have_device_memory());
  }
  // Tells if the call is MPI's, and no log needs it.
  bool are_mpis() const {
    return first == MPI_DATATYPE_NULL || (settings().log == Settings::Log::none && !may_be_ours());
  }
};

// Returns what is known of the types of both sides. A side has one type, or one for each partner.
template <bool one_type>
Types types_of(const Between& partners, const int* sent, const MPI_Datatype* sent_types,
               const int* received, const MPI_Datatype* received_types) {
  Types out;
  const auto add = [&](const Partners& to, const int* counts, const MPI_Datatype* types) {
    if (counts == nullptr || types == nullptr) return;
    std::pair last(MPI_DATATYPE_NULL, 0);
    for (int i = 0; i < to.count; ++i) {
      const std::pair one(types[one_type ? 0 : i], counts[i]);
      if (one == last) continue;
      last = one;
      const auto* const known = committed_type(one.first);
      if (known == nullptr) continue;
      if (out.first == MPI_DATATYPE_NULL) out.first = one.first;
      out.sender = std::max(out.sender, known->known_sender(one.second, MessagePattern::both_ways));
    }
  };
  add(partners.destinations, sent, sent_types);
  add(partners.sources, received, received_types);
  return out;
}

// Tells if a call is MPI's, and no log needs it. It looks at each type, and then remembers a call
// that is MPI's in `passed_on`, unless that is nullptr.
template <bool one_type>
[[gnu::noinline]] bool are_found_mpis(PassedOn* passed_on, std::uint64_t hash,
                                      const Between& partners, const int* sent,
                                      const MPI_Datatype* sent_types, const int* received,
                                      const MPI_Datatype* received_types) {
  const auto types = types_of<one_type>(partners, sent, sent_types, received, received_types);
  const bool out = types.are_mpis();
  if (out && passed_on != nullptr)
    passed_on->insert(hash, types.sender == CommittedType::Sender::mpi_on_host);
  return out;
}

// Tells if a call is MPI's, and no log needs it. So are all calls in place, or without a
// communicator.
//
// It is short and has one loop, since it runs right after MPI's code has filled the instruction
// cache and the branch predictor.
template <bool one_type, Between Group::*partners>
[[gnu::always_inline]] inline bool are_mpis(const void* sendbuf, const int* sent,
                                            const MPI_Datatype* sent_types, const int* received,
                                            const MPI_Datatype* received_types, MPI_Comm comm) {
  const auto learnt = changes_of_senders.load(std::memory_order_acquire);
  if (learnt == 0 || sendbuf == MPI_IN_PLACE || comm == MPI_COMM_NULL) return true;
  auto* const group = group_of(comm);
  if (group == nullptr) return true;
  const auto& between = group->*partners;
  const int count = between.sources.count;
  if (between.destinations.count != count || sent == nullptr || sent_types == nullptr ||
      received == nullptr || received_types == nullptr)
    return are_found_mpis<one_type>(nullptr, 0, between, sent, sent_types, received,
                                    received_types);
  ExchangeHash hash(learnt);
  for (int i = 0; i < count; ++i) {
    hash.add(sent_types[one_type ? 0 : i], sent[i]);
    hash.add(received_types[one_type ? 0 : i], received[i]);
  }
  const auto found = group->passed_on.find(hash.value());
  return found == PassedOn::Found::mpis ||
         (found == PassedOn::Found::mpis_on_host && !may_have_device_memory()) ||
         are_found_mpis<one_type>(&group->passed_on, hash.value(), between, sent, sent_types,
                                  received, received_types);
}

// Does a collective by `by_mpi(sent, received)`. The sides that the engine takes over go as packed
// bytes.
template <bool one_type, class Displacement, class ByMpi>
int carry_all(MpiCall call, const Between& partners, const Side<Displacement>& sent,
              const Side<Displacement>& received, ByMpi&& by_mpi) {
  const auto& [sources, destinations] = partners;
  if (sent.has_null_type(destinations.count) || received.has_null_type(sources.count))
    return by_mpi(sent, received);
  const auto types =
      types_of<one_type>(partners, sent.counts, sent.types, received.counts, received.types);
  const auto as_it_is = [&] { return by_mpi(sent, received); };
  const auto subject = Subject::of_several(
      types.first, settings().log == Settings::Log::none ? 0 : bytes_of(sent, destinations));
  if (!types.may_be_ours()) return noted(call, Path::mpi, subject, as_it_is);
  const auto packed = packed_instead(sent, Role::sender, destinations);
  const auto room = packed_instead(received, Role::receiver, sources);
  if (!packed && !room) return noted(call, Path::mpi, subject, as_it_is);
  return noted(call, Path::engine, subject, [&] {
    if (packed) packed->pack();
    if (packed && verifies()) packed->verify(sent);
    const int code = by_mpi(packed ? packed->template side<Displacement>() : sent,
                            room ? room->template side<Displacement>() : received);
    if (code == MPI_SUCCESS && room) {
      room->unpack();
      if (verifies()) room->verify(received);
    }
    return code;
  });
}

[[gnu::noinline]] int carry_alltoallv(const void* sendbuf, const int sendcounts[],
                                      const int sdispls[], MPI_Datatype sendtype, void* recvbuf,
                                      const int recvcounts[], const int rdispls[],
                                      MPI_Datatype recvtype, MPI_Comm comm) {
  using Given = Side<int>;
  return carry_all<true>(MpiCall::alltoallv, group_of(comm)->ranks,
                         Given{sendbuf, sendcounts, sdispls, &sendtype, true},
                         Given{recvbuf, recvcounts, rdispls, &recvtype, true},
                         [=](const Given& sent, const Given& received) {
                           return PMPI_Alltoallv(sent.buffer, sent.counts, sent.displacements,
                                                 sent.type(0), const_cast<void*>(received.buffer),
                                                 received.counts, received.displacements,
                                                 received.type(0), comm);
                         });
}

// These two say how MPI_Alltoallw and MPI_Neighbor_alltoallw differ.
template <MpiCall call>
constexpr auto* kInC = &MPI_Alltoallw;
template <>
constexpr auto* kInC<MpiCall::neighbor_alltoallw> = &MPI_Neighbor_alltoallw;
template <MpiCall call>
constexpr auto kPartners = call == MpiCall::alltoallw ? &Group::ranks : &Group::neighbors;

template <class Mpi, MpiCall call, class Displacement>
[[gnu::noinline]] int carry_alltoallw(const void* sendbuf, const int sendcounts[],
                                      const Displacement sdispls[], const MPI_Datatype sendtypes[],
                                      void* recvbuf, const int recvcounts[],
                                      const Displacement rdispls[], const MPI_Datatype recvtypes[],
                                      MPI_Comm comm) {
  using Given = Side<Displacement>;
  return carry_all<false>(call, group_of(comm)->*kPartners<call>,
                          Given{sendbuf, sendcounts, sdispls, sendtypes, false},
                          Given{recvbuf, recvcounts, rdispls, recvtypes, false},
                          [=](const Given& sent, const Given& received) {
                            return Mpi()(sent.buffer, sent.counts, sent.displacements, sent.types,
                                         const_cast<void*>(received.buffer), received.counts,
                                         received.displacements, received.types, comm);
                          });
}

int alltoallv(const auto& mpi, auto sendbuf, auto sendcounts, auto sdispls, const auto& sendtype,
              auto recvbuf, auto recvcounts, auto rdispls, const auto& recvtype, auto comm) {
  const DeliveryAfterCall after;
  const auto &sent = in_c(sendtype), &received = in_c(recvtype);
  if ((!may_be_committed(sent) && !may_be_committed(received)) || is_special(sendbuf) ||
      is_special(recvbuf) ||
      are_mpis<true, &Group::ranks>(in_c(sendbuf), in_c(sendcounts), &sent, in_c(recvcounts),
                                    &received, in_c(comm)))
    return mpi(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype,
               comm);
  return carry_alltoallv(in_c(sendbuf), in_c(sendcounts), in_c(sdispls), sent, in_c(recvbuf),
                         in_c(recvcounts), in_c(rdispls), received, in_c(comm));
}

// Does MPI_Alltoallw and MPI_Neighbor_alltoallw in C.
template <MpiCall call, class Mpi>
int alltoallw(const Mpi& mpi, const void* sendbuf, const int sendcounts[], auto sdispls,
              const MPI_Datatype sendtypes[], void* recvbuf, const int recvcounts[], auto rdispls,
              const MPI_Datatype recvtypes[], MPI_Comm comm) {
  const DeliveryAfterCall after;
  if (are_mpis<false, kPartners<call>>(sendbuf, sendcounts, sendtypes, recvcounts, recvtypes, comm))
    return mpi(sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes,
               comm);
  return carry_alltoallw<Mpi, call>(sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts,
                                    rdispls, recvtypes, comm);
}

std::vector<MPI_Datatype> types_in_c(Given<const MPI_Datatype*> types, int count) {
  std::vector<MPI_Datatype> out;
  for (int i = 0; i < count; ++i) out.push_back(at(types, i));
  return out;
}

// Does them in Fortran, by the call for C.
template <MpiCall call, class... Language>
int alltoallw(const InFortran<Language...>& mpi, auto sendbuf, auto sendcounts, auto sdispls,
              auto sendtypes, auto recvbuf, auto recvcounts, auto rdispls, auto recvtypes,
              auto comm) {
  const DeliveryAfterCall after;
  const auto in = in_c(comm);
  const auto* const group = changes_of_senders != 0 && in != MPI_COMM_NULL ? group_of(in) : nullptr;
  if (group == nullptr || is_special(sendbuf) || is_special(recvbuf))
    return mpi(sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes,
               comm);
  const auto& [sources, destinations] = group->*kPartners<call>;
  return kInC<call>(in_c(sendbuf), in_c(sendcounts), in_c(sdispls),
                    types_in_c(sendtypes, destinations.count).data(), in_c(recvbuf),
                    in_c(recvcounts), in_c(rdispls), types_in_c(recvtypes, sources.count).data(),
                    in);
}

}  // namespace

dtype::HandleTable<Group, dtype::HandlesOf::communicators>* const groups =
    new dtype::HandleTable<Group, dtype::HandlesOf::communicators>;

Group* new_group(MPI_Comm comm) noexcept {
  try {
    const Partners ranks{partner_count(comm)};
    return groups->insert(comm,
                          std::unique_ptr<Group>(new Group{{ranks, ranks}, neighbors_of(comm)}));
  } catch (const std::exception&) {
    return nullptr;
  }
}

}  // namespace halocline::interpose

#define HALOCLINE_COLLECTIVE HALOCLINE_ENTRY_POINTS
#include "comm/interpose/calls.def"
