// SPDX-License-Identifier: BSD-3-Clause
// From pieces to packed messages: what the packing methods have in common. Internal to
// lib/comm/exchange.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "comm/exchange/backend.hpp"
#include "dtype/datatype.hpp"
#include "dtype/pack/copy_plan.hpp"
#include "dtype/pack/fused_plan.hpp"

namespace halocline::comm::detail {

/// The plans of types, each made once: fields share theirs.
class TypePlans {
 public:
  /// nullptr: there is none, and MPI packs it; why, is noted once.
  const dtype::PackPlan* find(MPI_Datatype type);
  const std::vector<std::string>& reasons() const { return reasons_; }

 private:
  std::map<MPI_Datatype, Result<dtype::PackPlan>> plans_;
  std::vector<std::string> reasons_;
};

/// Where the data of a piece are: the least byte, how far that is from the buffer argument, and the
/// bytes from there to the end of the last one.
struct Span {
  const void* first;
  std::int64_t distance;
  std::int64_t bytes;
};
Span span_of(const Piece& piece, const dtype::PackPlan& plan);

/// A piece that MPI packs to `packed` and unpacks from there.
class PieceByMpi {
 public:
  /// Throws ConfigError for a piece that MPI_Pack's int arguments cannot express, or that it does
  /// not pack in native form.
  PieceByMpi(const Piece& piece, std::byte* packed, MPI_Comm comm);
  void pack() const;
  void unpack() const;

 private:
  Piece piece_;
  std::byte* packed_;
  dtype::Datatype type_;
  MPI_Comm comm_;
};

/// All messages of one direction of travel, in one buffer, in wire order. Neither copied nor moved.
class PackedMessages {
 public:
  enum class Direction { out, in };
  /// What is packed or unpacked by one call: on a device, one launch; on a host, what can travel
  /// while others are packed.
  enum class Parts { one, each_message, each_piece };

  struct Message {
    int partner;
    int tag;                  ///< number among those of this partner and direction
    int displacement, count;  ///< in units
  };

  /// Of `pieces`, none of which stays on the rank unless MPI packs. The transport must outlive
  /// this. Types without a plan are packed by MPI. Throws ConfigError for those if they are not in
  /// the host's memory. Makes no communication; O(pieces) plus the translation of the types.
  PackedMessages(const Communicator& comm, const Pieces& pieces, Direction direction,
                 Packing packing, const Transport& transport, Parts parts, const CountUnits& units,
                 TypePlans& plans);
  PackedMessages(const PackedMessages&) = delete;
  PackedMessages& operator=(const PackedMessages&) = delete;

  const std::vector<Message>& messages() const { return messages_; }
  /// Where MPI takes the messages from, or puts them.
  std::byte* wire() const { return buffer_.wire(); }
  std::byte* wire(const Message& message) const {
    return wire() + message.displacement * unit_bytes_;
  }

  /// Of all parts, in the order of the messages: packs or unpacks it; the transport's packer's
  /// fence() waits for it.
  void start(std::size_t part);
  std::size_t parts() const { return parts_.size(); }
  std::int64_t unit_bytes() const { return unit_bytes_; }
  /// The messages [first, last) of a part, and where its bytes end in the last one.
  struct Extent {
    std::size_t first, last;
    std::int64_t end;
  };
  const Extent& extent(std::size_t part) const { return parts_[part].extent; }
  /// The part that ends a message.
  std::size_t last_part_of(std::size_t message) const { return last_parts_[message]; }

 private:
  struct Part {
    Extent extent{};
    dtype::FusedPlan plan;
    std::vector<PieceByMpi> by_mpi;
    Transport::Repeated ours;  // refers to the plan and the buffer
  };
  std::int64_t lay_out(const Pieces& pieces, const CountUnits& units);
  std::vector<std::size_t> divide(const Pieces& pieces, Parts parts);

  Direction direction_;
  std::int64_t unit_bytes_;
  std::vector<Message> messages_;
  Transport::Message buffer_;
  std::vector<Part> parts_;
  std::vector<std::size_t> last_parts_;  // by message
};

/// What a rank sends to itself: copied from layout to layout, or, for types without a plan, packed
/// and unpacked by MPI.
class OwnCopies {
 public:
  /// The pieces of `sends` and `receives` whose partner is the rank itself, in wire order. The
  /// transport must outlive this. Makes no communication; errors as of PackedMessages.
  OwnCopies(const Communicator& comm, const Pieces& sends, const Pieces& receives,
            const Transport& transport, TypePlans& plans);

  /// The transport's packer's fence() waits for it.
  void start() const;

 private:
  struct Pair {
    PieceByMpi from, to;
  };
  const Transport& transport_;
  std::vector<std::byte> packed_;  // of the pairs
  dtype::CopyPlan plan_;
  std::vector<Pair> by_mpi_;
};

/// Those of the pieces that travel to or from other ranks.
Pieces without_own(const Pieces& pieces, int rank);

/// A datatype of so many bytes: what messages are counted in.
dtype::Datatype unit_type(const CountUnits& units, MPI_Datatype of);

}  // namespace halocline::comm::detail
