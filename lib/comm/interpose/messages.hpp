// SPDX-License-Identifier: BSD-3-Clause
// Makes messages of packed bytes from messages of derived types. MPI carries them as MPI_PACKED,
// which matches any type at the other end. The partner may have the interposer or not.
#pragma once

#include <mpi.h>

#include <optional>
#include <utility>

#include "comm/interpose/calls.hpp"
#include "comm/interpose/requests.hpp"
#include "comm/interpose/types.hpp"

namespace halocline::interpose {

/// Returns what MPI is to carry instead of `count` instances of `type`. Returns none if MPI is to
/// carry the instances themselves. Nothing is packed yet.
///
/// \param call decides the traffic: MPI_Send and MPI_Recv count as one way. For all other calls,
///   another message is taken to travel the other way.
/// \param known what is known of `type`; nullptr gives none
/// \param partner rank at the other end; MPI_PROC_NULL gives none
std::optional<PackedMessage> packed_instead(Call call, KnownType* known, MPI_Datatype type,
                                            const void* buffer, int count, int partner);

/// Describes what a call sends or receives.
struct Content {
  const void* buffer;
  int count;
  MPI_Datatype type;
  int partner;
  bool stays = false;  ///< MPI gets it as it is
};

/// Makes one call of MPI by `by_mpi(buffer, count, type)`, and returns its code.
///
/// If MPI is to carry packed bytes, it calls `start(packed)`, then `by_mpi` with the packed bytes.
/// After success, it calls `end(packed)`. Otherwise `by_mpi` gets the content as it is.
template <class ByMpi, class Start, class End>
int carry(Call call, const Content& content, ByMpi&& by_mpi, Start&& start, End&& end) {
  const DeliveryAfterCall after;
  const auto& [buffer, count, type, partner, stays] = content;
  auto* const known = stays ? nullptr : known_type(type);
  if (known == nullptr) return by_mpi(const_cast<void*>(buffer), count, type);
  auto packed = packed_instead(call, known, type, buffer, count, partner);
  if (!packed)
    return noted(call, Path::mpi, {type, count}, [&] {
      return by_mpi(const_cast<void*>(content.buffer), content.count, content.type);
    });
  return noted(call, Path::engine, {type, count}, [&] {
    start(*packed);
    const int code = by_mpi(packed->data(), packed->count(), packed->type());
    if (code == MPI_SUCCESS) end(*packed);
    return code;
  });
}

// These are for `start` and `end` of carry().
inline constexpr auto kPack = [](const PackedMessage& packed) { packed.pack(); };
inline constexpr auto kNothing = [](const PackedMessage&) {};
inline auto watch_as(const MPI_Request* request, Way way) {
  return [=](PackedMessage& packed) { watch(*request, std::move(packed), way); };
}
inline auto watch_persistent_as(const MPI_Request* request, Way way) {
  return [=](PackedMessage& packed) { watch_persistent(*request, std::move(packed), way); };
}

}  // namespace halocline::interpose
