// SPDX-License-Identifier: BSD-3-Clause
// Defines the calls that send and receive. They make messages of packed bytes from messages of
// derived types. MPI carries them as MPI_PACKED, which matches any type at the other end. The
// partner may have the interposer or not.
#include <climits>
#include <exception>
#include <optional>
#include <utility>

#include "comm/interpose/calls.hpp"
#include "comm/interpose/languages.hpp"
#include "comm/interpose/requests.hpp"
#include "comm/interpose/types.hpp"

namespace halocline::interpose {
namespace {

// Describes what a call sends or receives.
struct MessageContent {
  const void* buffer;
  int count;
  MPI_Datatype type;
  int partner;   // rank at the other end; MPI_PROC_NULL gives no message
  bool special;  // MPI gets it as it is
};
MessageContent message_content(auto buffer, auto count, auto type, auto partner) {
  return {in_c(buffer), in_c(count), in_c(type), in_c(partner), is_special(buffer)};
}

// Returns the role of the rank that makes a call.
constexpr Role role_of(MpiCall call) {
  return call == MpiCall::recv || call == MpiCall::irecv || call == MpiCall::sendrecv_recv ||
                 call == MpiCall::recv_init
             ? Role::receiver
             : Role::sender;
}

// Returns what MPI is to carry instead of the content. Returns none if MPI is to carry the content
// itself. Nothing is packed yet.
//
// MPI_Send and MPI_Recv count as one way. For all other calls, another message is taken to travel
// the other way.
std::optional<PackedMessage> packed_instead(MpiCall call, CommittedType& known,
                                            const MessageContent& content) {
  const auto& [buffer, count, type, partner, special] = content;
  if (count <= 0 || partner == MPI_PROC_NULL) return std::nullopt;
  const auto pattern = call == MpiCall::send || call == MpiCall::recv ? MessagePattern::one_way
                                                                      : MessagePattern::both_ways;
  const auto by = known.to_send(type, buffer, count, role_of(call), pattern, is_persistent(call));
  if (by.plan == nullptr || !sees_completions()) return std::nullopt;
  const auto bytes = by.plan->packed_bytes(count);
  if (bytes > INT_MAX || (kStreams && bytes < 2)) return std::nullopt;  // one byte is not streamed
  try {
    return PackedMessage(by, type, buffer, count);
  } catch (const std::exception&) {
    return std::nullopt;  // MPI may need less memory
  }
}

// Makes one call of MPI by `by_mpi(buffer, count, type)`, and returns its code.
//
// If MPI is to carry packed bytes, it calls `start(packed)`, then `by_mpi` with the packed bytes.
// After success, it calls `end(packed)`. Otherwise `by_mpi` gets the content as it is.
template <class ByMpi, class Start, class End>
int carry(MpiCall call, const MessageContent& content, ByMpi&& by_mpi, Start&& start, End&& end) {
  const DeliveryAfterCall after;
  const auto& [buffer, count, type, partner, special] = content;
  auto* const known = special ? nullptr : committed_type(type);
  if (known == nullptr) return by_mpi(const_cast<void*>(buffer), count, type);
  auto packed = packed_instead(call, *known, content);
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
//
// With MPICH, a call succeeds after an error whose handler has returned. So a status starts as
// nothing received, and a request as MPI_REQUEST_NULL. Then nothing is unpacked or watched.
constexpr auto kPack = [](const PackedMessage& packed) { packed.pack(); };
constexpr auto kNothing = [](const PackedMessage&) {};
auto empty(auto& status) {
  return [&](const PackedMessage&) { status.empty(); };
}
auto unpack_by(auto& status) {
  return [&](const PackedMessage& packed) { packed.unpack(status.in_c()); };
}

template <class Mpi>
int send(const Mpi& mpi, auto buffer, auto count, auto type, auto to, auto tag, auto comm) {
  const auto by_mpi = [&](void* data, int n, MPI_Datatype of) {
    return mpi(data, n, Mpi::argument(of), to, tag, comm);
  };
  return carry(MpiCall::send, message_content(buffer, count, type, to), by_mpi, kPack, kNothing);
}

template <class Mpi>
int recv(const Mpi& mpi, auto buffer, auto count, auto type, auto from, auto tag, auto comm,
         auto status) {
  typename Mpi::Status got(status);
  const auto by_mpi = [&](void* data, int n, MPI_Datatype of) {
    return mpi(data, n, Mpi::argument(of), from, tag, comm, got.list());
  };
  return carry(MpiCall::recv, message_content(buffer, count, type, from), by_mpi, empty(got),
               unpack_by(got));
}

template <class Mpi>
int sendrecv(const Mpi& mpi, auto send_buffer, auto send_count, auto send_type, auto to,
             auto send_tag, auto buffer, auto count, auto type, auto from, auto tag, auto comm,
             auto status) {
  typename Mpi::Status got(status);
  const auto by_mpi = [&](void* data, int n, MPI_Datatype of) {
    const auto both = [&](void* room, int most, MPI_Datatype as) {
      return mpi(data, n, Mpi::argument(of), to, send_tag, room, most, Mpi::argument(as), from, tag,
                 comm, got.list());
    };
    return carry(MpiCall::sendrecv_recv, message_content(buffer, count, type, from), both,
                 empty(got), unpack_by(got));
  };
  return carry(MpiCall::sendrecv, message_content(send_buffer, send_count, send_type, to), by_mpi,
               kPack, kNothing);
}

// Does the calls that give a request.
template <MpiCall call, class Mpi>
int request(const Mpi& mpi, auto buffer, auto count, auto type, auto partner, auto tag, auto comm,
            auto made) {
  const auto by_mpi = [&](void* data, int n, MPI_Datatype of) {
    return mpi(data, n, Mpi::argument(of), partner, tag, comm, made);
  };
  const auto start = [&](const PackedMessage& packed) {
    set_null(made);
    if (call == MpiCall::isend) packed.pack();
  };
  const auto end = [&](PackedMessage& packed) {
    (is_persistent(call) ? watch_persistent : watch)(at(made, 0), std::move(packed), role_of(call));
  };
  return carry(call, message_content(buffer, count, type, partner), by_mpi, start, end);
}

}  // namespace
}  // namespace halocline::interpose

#define HALOCLINE_MESSAGE HALOCLINE_ENTRY_POINTS
#include "comm/interpose/calls.def"
