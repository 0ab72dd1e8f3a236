// SPDX-License-Identifier: BSD-3-Clause
// Whether the engine is to do what MPI could, by what both were measured to take.
//
// Best peer: [PEA21] takes over every type that it can canonicalise, and asks its model only how;
// here MPI's own way is one of those that are compared, and wins where it is as good.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <optional>

#include "dtype/pack/pack_plan.hpp"
#include "dtype/select/system_model.hpp"

namespace halocline::interpose {

/// What packing takes, in seconds: for a call, and for each byte.
struct PackTime {
  double call, byte;
  double of(std::int64_t bytes) const { return call + byte * static_cast<double>(bytes); }
};
struct PackTimes {
  PackTime ours, mpi;
  std::int64_t up_to = 0;  ///< bytes that they are good for: caches make longer packs others
  /// By more than what comes and goes from run to run.
  bool ours_is_faster(std::int64_t bytes) const {
    constexpr double kNoise = 0.95;
    return ours.of(bytes) < kNoise * mpi.of(bytes);
  }
};

struct Measured {
  enum class What {
    times,
    alike,      ///< packed bytes; nothing was timed
    different,  ///< packed bytes: then MPI's are what its other calls go by
    too_long,   ///< one instance has more than kLongestMeasured bytes
    too_far     ///< two instances reach beyond 36 GB
  };
  What what;
  PackTimes times{};
};
inline constexpr std::int64_t kLongestMeasured = std::int64_t{1} << 25;
inline constexpr std::int64_t kFirstMeasured = std::int64_t{1} << 20;

/// Compares what `plan` and MPI pack of several instances, then times both in turns: one instance,
/// and up to `count` of them, but one or `at_most` packed bytes. With a count of 0, nothing is
/// timed.
///
/// Both pack memory of the library's own for the comparison, whose bytes tell every place from
/// others: the program's may hold nothing but zeros. What is timed is packed from `readable`, the
/// program's buffer, or from that memory if it is nullptr, since the buffer is only to be written.
/// Takes as long as some four packs by each, or six if they are about as fast, twice that for
/// several instances, at least 5 us, and 2 us for each MiB of memory that the instances span.
/// Throws std::bad_alloc.
Measured measure_packing(const dtype::PackPlan& plan, MPI_Datatype handle, const void* readable,
                         std::int64_t count, std::int64_t at_most);

/// Times unpacking by `plan` and by MPI as measure_packing() does, again and again to where the
/// application wants the instances. `packed` has them all. measure_packing() must have given times.
PackTimes measure_unpacking(const dtype::PackPlan& plan, MPI_Datatype handle,
                            const std::byte* packed, void* buffer, std::int64_t count,
                            std::int64_t at_most);

/// Of HALOCLINE_MODEL, or where `halocline calibrate` puts it: nullptr if there is none. If it
/// cannot be read, or is of another machine, there is none, and rank 0 says so on standard error
/// if that variable is set or a log is wanted. Read at the first call.
const dtype::SystemModel* model();

/// Whether HALOCLINE_MODEL names no file. O(1).
bool is_model_missing();

/// Whether all ranks are on this node, as far as the launcher tells: else all are taken to be
/// elsewhere. Nothing that would need the other ranks is asked.
bool all_ranks_are_near();

/// Of the model, for messages as streamed() has them moved, to where the other ranks are; nullptr
/// if there are none.
const dtype::MessageTimes* message_times();

/// Whether a message is alone on its way, or another one comes the other way at the same time, as
/// in the exchange of a halo.
enum class Traffic { one_way, both_ways };

/// What a message of so many packed bytes takes, in seconds, if we pack it, send it as a whole and
/// unpack it, and if MPI streams it, which packs, moves and unpacks pieces of kPiece. With P and V
/// for packing by us and by MPI (unpacking is taken to be as long), M for a message of n bytes, as
/// streamed() has them moved, and K for what it takes us at either end to find memory and to keep
/// it while the message travels, 0.1 us or, both ways, 0.4:
///
///     one way    ours  2 (K + P(n)) + M(n)
///                MPI   M(0) + max(V(n), M(n) - M(0)) + V(min(n, kPiece))
///     both ways  ours  2 (K + P(n)) + 2 M(n) - M(0)
///                MPI   2 V(n) + M(n)
///
/// One way, MPI packs at one end while it unpacks at the other; both ways, each end does both, and
/// both ends copy. results/interpose has what comes of it.
struct MessageTime {
  double ours, mpi;
  bool pays() const {
    constexpr double kWorthwhile = 0.9;  // less is noise
    return ours < kWorthwhile * mpi;
  }
};
MessageTime message_time(const dtype::MessageTimes& messages, const PackTimes& packing,
                         std::int64_t bytes, Traffic traffic);
/// False if there are no message_times(), beyond their reach() of one message, and beyond
/// kLongestMessage, whose packed bytes no cache keeps for the way: blocks of 16 bytes then took up
/// to twice MPI's time, and those of 8 bytes gained nothing.
bool message_may_pay(std::int64_t bytes);
inline constexpr std::int64_t kPiece = 32768;
inline constexpr std::int64_t kLongestMessage = std::int64_t{1} << 23;

}  // namespace halocline::interpose
