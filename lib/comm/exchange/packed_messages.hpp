// SPDX-License-Identifier: BSD-3-Clause
// Turns pieces into packed messages for all methods that pack. Internal to lib/comm/exchange. A
// piece is the sending or the receiving side of one job (backend.hpp). The methods call start() to
// pack or unpack: packed_exchange.cpp is the simplest one.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "comm/exchange/backend.hpp"
#include "comm/mpi/role.hpp"
#include "dtype/datatype.hpp"
#include "dtype/pack/copy_plan.hpp"
#include "dtype/pack/fused_plan.hpp"

namespace halocline::comm::detail {

/// Holds the plans of types. Each plan is made once, since fields share their types.
class TypePlans {
 public:
  /// Returns the plan of `type`, made by dtype::make_plan(); nullptr if there is none, so that MPI
  /// packs. Notes each reason once.
  const dtype::PackPlan* find(MPI_Datatype type);
  const std::vector<std::string>& reasons() const { return reasons_; }

 private:
  std::map<MPI_Datatype, Result<dtype::PackPlan>> plans_;
  std::vector<std::string> reasons_;
};

/// Locates the data of a piece: the lowest byte, its distance from the buffer argument, and the
/// bytes up to the end of the highest one. `distance` and `bytes` are in bytes.
struct Span {
  const void* first;
  std::int64_t distance;
  std::int64_t bytes;
};
Span span_of(const Piece& piece, const dtype::PackPlan& plan);

/// Packs a piece to `packed` with MPI_Pack, and unpacks it from there.
class PieceByMpi {
 public:
  /// Throws ConfigError for a piece that MPI_Pack's int arguments cannot express, or that this MPI
  /// does not pack in native form.
  PieceByMpi(const Piece& piece, std::byte* packed, MPI_Comm comm);
  void pack() const;
  void unpack() const;

 private:
  Piece piece_;
  std::byte* packed_;
  dtype::Datatype type_;
  MPI_Comm comm_;
};

/// Holds all messages that a rank sends, or all that it receives, in one buffer, in wire order.
/// Neither copied nor moved.
///
///     | piece | piece | padding | piece | piece | piece | padding | ...
///     ^ message to partner 0    ^ message to partner 3            ^ next message
///
/// Pieces stand one behind the other. A message begins at a multiple of kMessageAlignment. All
/// pieces of a part are one FusedPlan, so that one call packs them.
class PackedMessages {
 public:
  /// Says what one call packs or unpacks. On a device, a part is one launch. On a host, one part
  /// can travel while the next is packed.
  enum class Parts { one, each_message, each_piece };

  struct Message {
    int partner;
    int tag;                  ///< MPI's tag: number among the messages to this partner, or from it
    int displacement, count;  ///< in units of unit_bytes()
  };

  /// Lays out `pieces` in a buffer of the transport. With Packing::ours, the caller has taken out
  /// the pieces to the rank itself (see SelfCopies), and MPI packs types without a plan. The
  /// transport must outlive this object. Makes no communication. Throws ConfigError for a type
  /// without a plan unless the transport is of the host. O(pieces) plus the translation of the
  /// types.
  PackedMessages(const Communicator& comm, const Pieces& pieces, Role role, Packing packing,
                 const Transport& transport, Parts parts, const CountUnits& units,
                 TypePlans& plans);
  PackedMessages(const PackedMessages&) = delete;
  PackedMessages& operator=(const PackedMessages&) = delete;

  const std::vector<Message>& messages() const { return messages_; }
  /// Returns the memory from which MPI sends the messages, or where it receives them.
  std::byte* wire() const { return buffer_.wire(); }
  std::byte* wire(const Message& message) const {
    return wire() + message.displacement * unit_bytes_;
  }

  /// Packs or unpacks part number `part`, in the order of the messages. fence() of the transport's
  /// packer waits for it.
  void start(std::size_t part);
  std::size_t parts() const { return parts_.size(); }
  std::int64_t unit_bytes() const { return unit_bytes_; }
  /// Locates a part: it touches the messages [first, last). Its last byte is before byte `end` of
  /// message last - 1.
  struct Extent {
    std::size_t first, last;
    std::int64_t end;
  };
  const Extent& extent(std::size_t part) const { return parts_[part].extent; }
  /// Returns the number of the part that completes a message.
  std::size_t last_part_of(std::size_t message) const { return last_parts_[message]; }

 private:
  struct Part {
    Extent extent{};
    dtype::FusedPlan plan;
    std::vector<PieceByMpi> by_mpi;
    Transport::Repeated ours;  // refers to the plan and to the buffer
  };
  std::int64_t lay_out(const Pieces& pieces, const CountUnits& units);
  std::vector<std::size_t> divide(const Pieces& pieces, Parts parts);

  Role role_;
  std::int64_t unit_bytes_;
  std::vector<Message> messages_;
  Transport::Message buffer_;
  std::vector<Part> parts_;
  std::vector<std::size_t> last_parts_;  // by message
};

/// Copies what a rank sends to itself from layout to layout. MPI packs and unpacks types without a
/// plan.
class SelfCopies {
 public:
  /// Plans the copies between the pieces of `sends` and of `receives` whose partner is the rank
  /// itself. Pairs the first such piece of `sends` with the first of `receives`, and so on:
  /// require_match() has made sure that both exist. The transport must outlive this object. Makes
  /// no communication. Throws ConfigError for a type without a plan unless the transport is of the
  /// host, and for a piece that MPI_Pack's int arguments cannot express.
  SelfCopies(const Communicator& comm, const Pieces& sends, const Pieces& receives,
             const Transport& transport, TypePlans& plans);

  /// Starts the copies. fence() of the transport's packer waits for them.
  void start() const;

 private:
  struct Pair {
    PieceByMpi from, to;
  };
  const Transport& transport_;
  std::vector<std::byte> packed_;  // room for the pairs, one after the other
  dtype::CopyPlan plan_;
  std::vector<Pair> by_mpi_;
};

/// Returns the pieces that travel to or from other ranks.
Pieces without_own(const Pieces& pieces, int rank);

/// Returns the datatype in which messages are counted: `units.bytes` instances of `of`, one byte
/// each.
dtype::Datatype unit_type(const CountUnits& units, MPI_Datatype of);

}  // namespace halocline::comm::detail
