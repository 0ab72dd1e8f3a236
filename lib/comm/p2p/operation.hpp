// SPDX-License-Identifier: BSD-3-Clause
// Performs sends and receives that are under way. Internal to lib/comm/p2p.
//
// A message of at most chunk_bytes travels as its packed bytes. A longer message begins with one
// MPI message of the user's tag, so that MPI matches it in the order of the calls. It holds a
// LongHeader and the first chunk. All further chunks use the engine's own communicator and the tag
// in the header, so that no other message can match them.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <vector>

#include "comm/messages/packed_stream.hpp"
#include "comm/p2p/point_to_point.hpp"

namespace halocline::comm::detail {

/// Precedes the first chunk of a long message.
struct alignas(16) LongHeader {
  static constexpr std::uint64_t kMark = 0x656E696C636F6C61;
  std::uint64_t mark = kMark;
  std::int64_t bytes = 0;  ///< bytes of the whole message
  std::int64_t tag = 0;    ///< tag of all further chunks
};
inline constexpr std::int64_t kHeaderBytes = sizeof(LongHeader);

/// Holds what all operations of a PointToPoint share.
struct Wire {
  MPI_Comm comm = MPI_COMM_NULL;    ///< the user's communicator
  MPI_Comm chunks = MPI_COMM_NULL;  ///< communicator of all chunks but the first
  std::int64_t chunk_bytes = 0;
  int slots = 0;
  std::int64_t count_limit = 0;
  int largest_tag = 0;
  std::int64_t next_tag = 0;  ///< tag of the next long message, modulo largest_tag + 1
  MessageMemory memory{std::size_t{1} << 29, MessageMemory::Users::one_thread};

  bool is_long(std::int64_t bytes) const { return chunk_bytes > 0 && bytes > chunk_bytes; }
};

/// Holds the arguments of a send or receive.
struct MessageArguments {
  void* buffer;
  std::int64_t count;
  int partner, tag;
};

/// Performs a send or receive, from its first MPI call to its end.
class Operation {
 public:
  virtual ~Operation() = default;

  /// Makes the first MPI call.
  virtual void start() = 0;

  /// Returns the open requests. Completed ones are MPI_REQUEST_NULL.
  std::vector<MPI_Request>& requests() { return requests_; }
  /// Handles the completion of request `i`, for which MPI returned `error`. May make further MPI
  /// calls. An error ends the operation.
  void complete(std::size_t i, int error, const MPI_Status& status);

  bool done() const { return done_ || failed(); }
  /// Tells if an error ended the operation. MPI may still use its memory.
  bool failed() const { return failure_ != nullptr; }
  /// Returns the status of an operation that is done. Throws the error that ended it.
  ReceiveStatus result() const;

 protected:
  virtual void completed(std::size_t i, const MPI_Status& status) = 0;

  std::vector<MPI_Request> requests_ = {MPI_REQUEST_NULL};
  ReceiveStatus status_;
  bool done_ = false;

 private:
  std::exception_ptr failure_;
};

/// Lets MPI move the user's own type; for types without a plan.
class VendorOperation final : public Operation {
 public:
  VendorOperation(const Wire& wire, const MessageArguments& call, MPI_Datatype type, bool sends)
      : wire_(wire), call_(call), type_(type), sends_(sends) {}
  void start() override;

 private:
  void completed(std::size_t i, const MPI_Status& status) override;
  const Wire& wire_;
  const MessageArguments call_;
  MPI_Datatype type_;  // valid until start() has returned
  bool sends_;
};

/// Shares the chunks and memory between sends and receives of packed bytes. A message has up to
/// Wire::slots chunks under way. Each chunk has a request and, unless all bytes are in one place,
/// its own memory.
class PackedOperation : public Operation {
 public:
  /// Makes the operation. `in_buffer` says that the packed bytes are one run of the user's buffer,
  /// which MPI then uses directly.
  PackedOperation(Wire& wire, const MessageArguments& call, const Transport& transport,
                  const dtype::PackPlan& plan, bool in_buffer);

 protected:
  void isend(std::size_t slot, const std::byte* from, std::int64_t bytes, MPI_Comm comm, int tag);
  void irecv(std::size_t slot, std::byte* to, std::int64_t bytes, MPI_Comm comm, int source,
             int tag);

  /// Takes memory for all packed bytes at once. all_bytes_ is then their place for MPI.
  void make_room_for_all() { all_bytes_ = memory_of(0, end_).wire() + kHeaderBytes; }
  /// Returns the memory of a slot. Takes it at the first call, with room for a header and `bytes`
  /// bytes.
  const Transport::Message& memory_of(std::size_t slot, std::int64_t bytes);
  /// Assigns the next chunk of the stream to `slot`.
  void take_chunk(std::size_t slot);
  bool is_long() const { return wire_.is_long(end_); }
  /// Tells if all bytes are in the memory of the first slot, behind a header.
  bool has_own_room() const { return all_bytes_ != nullptr && !in_buffer_; }
  /// Tells if all requests are complete and no chunks are left.
  bool is_over() const;
  /// Ends the operation and gives its memory back.
  void end() { slots_.clear(), done_ = true; }

  Wire& wire_;
  const MessageArguments call_;
  const Transport& transport_;
  PackedStream stream_;
  const bool in_buffer_;
  std::byte* all_bytes_ = nullptr;
  struct Slot {
    Transport::Message memory;
    std::int64_t first = 0, last = 0;  // its stretch of the stream
  };
  std::vector<Slot> slots_;
  std::int64_t next_ = 0, end_ = 0;  // bytes of the stream: first one without a slot, and all
  std::exception_ptr too_long_;      // set for a message that is too long; its chunks are received
  int tag_of_chunks_ = 0;
};

class Send final : public PackedOperation {
 public:
  using PackedOperation::PackedOperation;
  void start() override;

 private:
  void completed(std::size_t i, const MPI_Status& status) override;
  void send_chunk(std::size_t slot);
};

class Receive final : public PackedOperation {
 public:
  using PackedOperation::PackedOperation;
  void start() override;

 private:
  void completed(std::size_t i, const MPI_Status& status) override;
  void first_completed(const MPI_Status& status);
  void receive_chunk(std::size_t slot);
  void unpack_chunk(std::size_t slot);
};

}  // namespace halocline::comm::detail
