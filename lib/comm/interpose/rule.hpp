// SPDX-License-Identifier: BSD-3-Clause
// Decides by a rule who does a call, the engine or MPI. The rule depends on the shape of a type,
// the bytes, and the times of messages that `halocline calibrate` measured.
//
// - MPI_Pack and MPI_Unpack: the engine does all types of short blocks in host memory:
//   engine_packs().
// - The engine packs a message if that saves at least 5 % of MPI's time: engine_sends(). Without
//   measured times, MPI does all messages of host memory.
//
// Both ends of a message need not decide alike. Packed bytes travel as MPI_PACKED, which matches
// any type, in the order of the type map. A Send is one way, but an Irecv counts as both ways.
//
// Best peer: [PEA21] takes over every type that it can canonicalise. Its model chooses only the
// method. Here MPI's own way is one of the candidates, and wins where it is as fast.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <optional>

#include "dtype/model/message_cost.hpp"
#include "dtype/model/system_model.hpp"
#include "dtype/pack/pack_plan.hpp"
#include "dtype/type_expr.hpp"

namespace halocline::interpose {

/// Is the mean block length, in bytes, from which on MPI packs as fast as the engine: both call the
/// C library for each block. Without AVX, the engine does so for shorter blocks, too.
#ifdef __AVX__
inline constexpr std::int64_t kLongBlock = 4096;
#else
inline constexpr std::int64_t kLongBlock = 512;
#endif
/// Is the mean block length, in bytes, from which on all messages are MPI's. `halocline calibrate`
/// measures messages of shorter blocks alone.
inline constexpr std::int64_t kLongSentBlock = 512;

/// Describes the blocks of a type.
struct Blocks {
  dtype::BlockShape shape;  ///< mean shape, in the order of memory
  /// Is the mean distance in bytes from a block to the next one in packed order, in which MPI
  /// copies. In a transpose it is much longer than shape.stride_bytes. The engine copies that in
  /// tiles.
  std::int64_t distance;
  bool listed;  ///< an indexed type or a struct lists them, at irregular distances
};
/// Describes the blocks of a type and its plan. O(loops + displacements).
Blocks blocks_of(const dtype::TypeExpr& expression, const dtype::PackPlan& plan);

/// Tells if `expression` lists its blocks: an indexed type or a struct has no vector and no
/// subarray inside. O(types inside).
bool lists_blocks(const dtype::TypeExpr& expression);

/// Tells if the blocks are shorter than kLongBlock.
inline bool are_short(const Blocks& blocks) {
  return blocks.shape.block_bytes < kLongBlock;
}
/// Tells if the engine packs and unpacks `bytes` bytes in host memory. MPI packs a single block as
/// fast.
inline bool engine_packs(const Blocks& blocks, std::int64_t bytes) {
  return are_short(blocks) && bytes > blocks.shape.block_bytes;
}

/// Says if a message travels alone, or if another one travels the other way at the same time, as in
/// the exchange of a halo.
enum class MessagePattern { one_way, both_ways };

/// Is the longest message, in packed bytes, that the engine sends. No cache keeps the packed bytes
/// of longer messages on their way. Blocks of 16 bytes then took up to twice MPI's time.
inline constexpr std::int64_t kLongestMessage = std::int64_t{1} << 23;

/// Holds the measured time of a message, in seconds, if the engine packs it and if MPI does.
struct MessageTime {
  double ours, mpi;
  /// Tells if the engine is faster by enough to leave MPI's own way.
  bool pays() const {
    constexpr double kWorthwhile = 0.95;
    return ours < kWorthwhile * mpi;
  }
};

/// Returns the time of a message of `bytes` packed bytes, by `times`. It is nullopt for messages
/// beyond kLongestMessage, and for messages shorter or longer than what was measured.
std::optional<MessageTime> message_time(const dtype::BlockTimes& times, const Blocks& blocks,
                                        std::int64_t bytes, MessagePattern pattern);
/// Returns the time of such a message by the model; nullopt also without a model.
std::optional<MessageTime> message_time(const Blocks& blocks, std::int64_t bytes,
                                        MessagePattern pattern);

/// Tells if the engine sends or receives a message of `bytes` packed bytes. Returns false without
/// measured times of messages, for blocks from kLongSentBlock bytes on, and if the engine saves
/// less than 5 %. O(log points of the model).
bool engine_sends(const Blocks& blocks, std::int64_t bytes, MessagePattern pattern);

/// Returns the system model of the file in HALOCLINE_MODEL, or of the place where `halocline
/// calibrate` writes it. Returns nullptr if there is none.
///
/// A model that cannot be read, or that is of another machine, counts as none. Rank 0 then says so
/// on standard error, if HALOCLINE_MODEL is set or a log is wanted. Reads the file at the first
/// call.
const dtype::SystemModel* model();

/// Tells if HALOCLINE_MODEL names a file that does not exist. O(1).
bool is_model_missing();

/// Tells if the model has times of messages for this job.
bool has_message_times();

/// Tells if all ranks are on this node, as far as the launcher's variables say. If they say
/// nothing, other ranks count as being on other nodes. Asks no other rank.
bool all_ranks_are_near();

}  // namespace halocline::interpose
