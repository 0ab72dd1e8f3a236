// SPDX-License-Identifier: BSD-3-Clause
// What messages of derived types become: MPI carries packed bytes, as MPI_PACKED, which match any
// type at the other end, whether or not the partner has the interposer.
#pragma once

#include <mpi.h>

#include <optional>

#include "comm/interpose/calls.hpp"
#include "comm/interpose/requests.hpp"
#include "comm/interpose/types.hpp"

namespace halocline::interpose {

/// What MPI is to carry instead of `count` instances of `type`, which is `known`, to or from
/// `partner`; none if that is to be the type itself. Nothing is packed yet.
std::optional<Travelling> packed_instead(KnownType* known, MPI_Datatype type, const void* buffer,
                                         int count, int partner);

/// A call that MPI does itself.
template <class F>
int by_mpi(Call call, const KnownType* known, MPI_Datatype type, int count, F&& action) {
  return known == nullptr ? action() : noted(call, Path::mpi, type, count, action);
}

}  // namespace halocline::interpose
