// SPDX-License-Identifier: BSD-3-Clause
// Measures and predicts who is faster, the engine or MPI, and so decides who does a call.
//
// Best peer: [PEA21] takes over every type that it can canonicalise. Its model chooses only the
// method. Here MPI's own way is one of the candidates. It wins where it is as fast.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <optional>

#include "dtype/pack/pack_plan.hpp"
#include "dtype/select/system_model.hpp"

namespace halocline::interpose {

/// Describes the time of a pack, in seconds: for a call, and for each packed byte.
struct PackTime {
  double call, byte;
  double of(std::int64_t bytes) const { return call + byte * static_cast<double>(bytes); }
};
/// Holds the times of packing or unpacking, by the engine and by MPI.
struct PackTimes {
  PackTime ours, mpi;
  std::int64_t up_to = 0;  ///< packed bytes up to which they hold: caches slow longer packs
  /// Tells if the engine is faster for `bytes` packed bytes, by more than the noise between runs.
  bool ours_is_faster(std::int64_t bytes) const {
    constexpr double kNoise = 0.95;
    return ours.of(bytes) < kNoise * mpi.of(bytes);
  }
};

/// Holds the result of measure_packing().
struct Measured {
  enum class What {
    times,      ///< packed bytes are equal, and both were timed
    alike,      ///< packed bytes are equal; nothing was timed
    different,  ///< packed bytes differ, so the type stays MPI's
    too_long,   ///< one instance has more than kLongestMeasured bytes
    too_far     ///< the compared instances span more than 36 GB
  };
  What what;
  PackTimes times{};
};
inline constexpr std::int64_t kLongestMeasured = std::int64_t{1} << 25;
inline constexpr std::int64_t kFirstMeasured = std::int64_t{1} << 20;

/// Compares the packed bytes of `plan` and MPI, then times both in turns.
///
/// Two or three instances are compared. Then one instance is timed, and up to `count` instances
/// with at most `at_most` packed bytes (at least one instance). With a count of 0, nothing is
/// timed.
///
/// The comparison packs memory of the library, in which each byte tells its place. The program's
/// buffer may hold nothing but zeros. The times are of packs from `readable`, the program's buffer.
/// If it is nullptr, the program's buffer may not be read, and the library's memory is packed.
///
/// This takes about four packs by each, or six if both are about as fast. Several instances take
/// twice that. It takes at least 5 us, and 2 us for each MiB that the instances span.
/// Throws std::bad_alloc.
Measured measure_packing(const dtype::PackPlan& plan, MPI_Datatype handle, const void* readable,
                         std::int64_t count, std::int64_t at_most);

/// Times unpacking by `plan` and by MPI, in turns, as measure_packing() times packing.
///
/// Each repetition unpacks into `buffer`, where the application wants the data. `packed` holds the
/// bytes of all `count` instances. Call it only after measure_packing() has returned times.
PackTimes measure_unpacking(const dtype::PackPlan& plan, MPI_Datatype handle,
                            const std::byte* packed, void* buffer, std::int64_t count,
                            std::int64_t at_most);

/// Returns the system model of the file in HALOCLINE_MODEL, or of the place where `halocline
/// calibrate` writes it. Returns nullptr if there is none.
///
/// A model that cannot be read, or that is of another machine, counts as none. Rank 0 then says so
/// on standard error, if HALOCLINE_MODEL is set or a log is wanted. Reads the file at the first
/// call.
const dtype::SystemModel* model();

/// Tells if HALOCLINE_MODEL names a file that does not exist. O(1).
bool is_model_missing();

/// Tells if all ranks are on this node, as far as the launcher's variables say. If they say
/// nothing, other ranks count as being on other nodes. Asks no other rank.
bool all_ranks_are_near();

/// Returns the model's times of messages, moved as streamed() has them moved. They are for messages
/// on a node or between nodes, by all_ranks_are_near(). Returns nullptr if the model has none.
const dtype::MessageTimes* message_times();

/// Says if a message travels alone, or if another one travels the other way at the same time, as in
/// the exchange of a halo.
enum class Traffic { one_way, both_ways };

/// Holds the predicted time of a message, in seconds, if the engine packs it and if MPI does.
///
/// The engine packs the message, sends it as a whole, and unpacks it. MPI streams it: it packs,
/// moves and unpacks pieces of kPiece bytes. The terms, for n packed bytes:
///
/// - P and V: packing by the engine and by MPI. Unpacking is taken to be as long.
/// - M: a message of n bytes, moved as streamed() has it moved.
/// - K: time of the engine at either end, to find memory and to keep it while the message travels:
///   0.1 us, both ways 0.4 us.
///
/// The times:
///
///     one way    ours  2 (K + P(n)) + M(n)
///                MPI   M(0) + max(V(n), M(n) - M(0)) + V(min(n, kPiece))
///     both ways  ours  2 (K + P(n)) + 2 M(n) - M(0)
///                MPI   2 V(n) + M(n)
///
/// One way, MPI packs at one end while it unpacks at the other end. Both ways, each end packs and
/// unpacks, and both ends copy. results/interpose compares this with measurements.
struct MessageTime {
  double ours, mpi;
  bool pays() const {
    constexpr double kWorthwhile = 0.9;  // a smaller gain may be noise
    return ours < kWorthwhile * mpi;
  }
};
/// Returns the predicted time of a message of `bytes` packed bytes.
MessageTime message_time(const dtype::MessageTimes& messages, const PackTimes& packing,
                         std::int64_t bytes, Traffic traffic);
/// Tells if the engine may send a message of `bytes` packed bytes. False without message_times(),
/// beyond the longest message that they reach, and beyond kLongestMessage.
///
/// No cache keeps the packed bytes of longer messages on their way. Blocks of 16 bytes then took up
/// to twice MPI's time, and blocks of 8 bytes gained nothing.
bool message_may_pay(std::int64_t bytes);
inline constexpr std::int64_t kPiece = 32768;
inline constexpr std::int64_t kLongestMessage = std::int64_t{1} << 23;

}  // namespace halocline::interpose
