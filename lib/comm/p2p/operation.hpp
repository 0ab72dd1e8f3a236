// SPDX-License-Identifier: BSD-3-Clause
// Sends and receives under way. Internal to lib/comm/p2p.
//
// On the wire, a message of at most chunk_bytes is its packed bytes. A longer one begins with a
// message of the user's tag, LongHeader and its first chunk, so that MPI matches it in the order of
// the calls; the other chunks follow over the engine's own communicator with a tag that the header
// tells, so that no other message meets them.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <vector>

#include "comm/p2p/packed_stream.hpp"
#include "comm/p2p/point_to_point.hpp"

namespace halocline::comm::detail {

/// Before the first chunk of a long message.
struct alignas(16) LongHeader {
  static constexpr std::uint64_t kMark = 0x656E696C636F6C61;
  std::uint64_t mark = kMark;
  std::int64_t bytes = 0;  ///< of the whole message
  std::int64_t tag = 0;    ///< of the other chunks
};
inline constexpr std::int64_t kHeaderBytes = sizeof(LongHeader);

/// What all operations of a PointToPoint share.
struct Wire {
  MPI_Comm comm = MPI_COMM_NULL;    ///< the user's
  MPI_Comm chunks = MPI_COMM_NULL;  ///< for all chunks but the first
  std::int64_t chunk_bytes = 0;
  int slots = 0;
  std::int64_t count_limit = 0;
  int largest_tag = 0;
  std::int64_t next_tag = 0;              ///< of the next long message, modulo the largest
  std::vector<Transport::Message> spare;  ///< host memory of operations that are complete

  bool is_long(std::int64_t bytes) const { return chunk_bytes > 0 && bytes > chunk_bytes; }
  Transport::Message memory(const Transport& transport, std::int64_t bytes);
  void give_back(const Transport& transport, Transport::Message memory);
};

/// What the user asked for.
struct Call {
  void* buffer;
  std::int64_t count;
  int partner, tag;
};

/// A send or receive between its first MPI call and its end.
class Operation {
 public:
  virtual ~Operation() = default;

  /// Makes the first MPI call.
  virtual void start() = 0;

  /// Those that are not complete, and null ones.
  std::vector<MPI_Request>& requests() { return requests_; }
  /// Request `i` is complete, and `error` is what MPI says of it. Makes further MPI calls. An error
  /// ends the operation.
  void complete(std::size_t i, int error, const MPI_Status& status);

  bool done() const { return done_ || failed(); }
  /// Whether an error ended it: MPI may still use its memory.
  bool failed() const { return failure_ != nullptr; }
  /// Of an operation that is done. Throws what ended it.
  ReceiveStatus result() const;

 protected:
  virtual void completed(std::size_t i, const MPI_Status& status) = 0;

  std::vector<MPI_Request> requests_ = {MPI_REQUEST_NULL};
  ReceiveStatus status_;
  bool done_ = false;

 private:
  std::exception_ptr failure_;
};

/// MPI moves the user's own type; for types without a plan.
class VendorOperation final : public Operation {
 public:
  enum class Direction { send, receive };
  VendorOperation(const Wire& wire, const Call& call, MPI_Datatype type, Direction direction)
      : wire_(wire), call_(call), type_(type), direction_(direction) {}
  void start() override;

 private:
  void completed(std::size_t i, const MPI_Status& status) override;
  const Wire& wire_;
  const Call call_;
  MPI_Datatype type_;  // until start() has returned
  Direction direction_;
};

/// What sends and receives of packed bytes have in common. A message has up to Wire::slots chunks
/// under way, each with a request and, unless all bytes are in one place, a memory of its own.
class PackedOperation : public Operation {
 public:
  /// `in_buffer`: the packed bytes are one run of the buffer, from which MPI takes them.
  PackedOperation(Wire& wire, const Call& call, const Transport& transport,
                  const dtype::PackPlan& plan, bool in_buffer);

 protected:
  void isend(std::size_t slot, const std::byte* from, std::int64_t bytes, MPI_Comm comm, int tag);
  void irecv(std::size_t slot, std::byte* to, std::int64_t bytes, MPI_Comm comm, int source,
             int tag);

  /// Memory for all bytes at once. Afterwards all_bytes_ is where they are for MPI.
  void make_room_for_all();
  /// Memory of one slot, for a header and a chunk.
  Transport::Message& memory_of(std::size_t slot);
  /// The next chunk of the stream, now `slot`'s.
  void take_chunk(std::size_t slot);
  bool is_long() const { return wire_.is_long(end_); }
  /// Whether all bytes are, behind a header, in the first slot's memory.
  bool has_own_room() const { return all_bytes_ != nullptr && !in_buffer_; }
  /// All requests are complete and no chunks are left.
  bool is_over() const;
  /// Memory goes back.
  void end();

  Wire& wire_;
  const Call call_;
  const Transport& transport_;
  PackedStream stream_;
  const bool in_buffer_;
  std::byte* all_bytes_ = nullptr;
  /// By slot: memory and the stretch of the stream that is in it.
  struct Part {
    std::int64_t first, last;
  };
  struct Slot {
    Transport::Message memory;
    Part part;
  };
  std::vector<Slot> slots_;
  std::int64_t next_ = 0, end_ = 0;  // bytes of the stream: without a slot yet, all
  std::exception_ptr too_long_;      // of a message that is received to its end, for its sender
  int tag_of_chunks_ = 0;
};

class Send final : public PackedOperation {
 public:
  using PackedOperation::PackedOperation;
  void start() override;

 private:
  void completed(std::size_t i, const MPI_Status& status) override;
  void send_first_chunk();
  void send_chunk(std::size_t slot);
};

class Receive final : public PackedOperation {
 public:
  using PackedOperation::PackedOperation;
  void start() override;

 private:
  void completed(std::size_t i, const MPI_Status& status) override;
  void first_completed(const MPI_Status& status);
  void unpack_short(std::int64_t bytes);
  void receive_chunk(std::size_t slot);
  void unpack_chunk(std::size_t slot);
};

}  // namespace halocline::comm::detail
