// SPDX-License-Identifier: BSD-3-Clause
// What messages of derived types become: MPI carries packed bytes of MPI_PACKED, which match any
// type at the other end, whether or not the partner has the interposer.
#pragma once

#include <mpi.h>

#include <optional>
#include <utility>

#include "comm/interpose/calls.hpp"
#include "comm/interpose/requests.hpp"
#include "comm/interpose/types.hpp"

namespace halocline::interpose {

/// What MPI is to carry instead of `count` instances of `type`, which is `known`, to or from
/// `partner` by a `call`; none if that is to be the type itself. Nothing is packed yet. All calls
/// but MPI_Send and MPI_Recv are taken to have another one come the other way.
std::optional<Travelling> packed_instead(Call call, KnownType* known, MPI_Datatype type,
                                         const void* buffer, int count, int partner);

/// What a call sends or receives.
struct Content {
  const void* buffer;
  int count;
  MPI_Datatype type;
  int partner;
  bool stays = false;  ///< as it is
};

/// Calls `by_mpi(buffer, count, type)`, which returns what MPI does, with what is given or, after
/// `start(packed)`, with its packed bytes, of another type; then, if MPI had success, also
/// `end(packed)`.
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

// What there is to do before a call and after it.
inline constexpr auto kPack = [](const Travelling& packed) { packed.pack(); };
inline constexpr auto kNothing = [](const Travelling&) {};
inline auto watch_as(const MPI_Request* request, Way way) {
  return [=](Travelling& packed) { watch(*request, std::move(packed), way); };
}
inline auto watch_persistent_as(const MPI_Request* request, Way way) {
  return [=](Travelling& packed) { watch_persistent(*request, std::move(packed), way); };
}

}  // namespace halocline::interpose
