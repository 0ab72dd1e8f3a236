// SPDX-License-Identifier: BSD-3-Clause
// Sends and receives messages of any datatype between two ranks: pack, MPI, unpack. Each message
// has its own transfer: [PEA21] sections 4 and 6.3.
//
// Best peer: [PEA21] packs a whole message before it sends any byte, and has no nonblocking calls
// that overlap. Here long messages go in chunks through a few buffers. A chunk is packed while the
// chunk before is under way. A short message is still a plain message that any MPI call can match.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "dtype/device/resource_cache.hpp"
#include "dtype/model/system_model.hpp"
#include "dtype/model/transfer_selector.hpp"
#include "dtype/pack/packer.hpp"

namespace halocline::comm {

namespace detail {
class Engine;
class Operation;
}  // namespace detail

/// Describes a received message.
struct ReceiveStatus {
  int source = MPI_PROC_NULL;
  int tag = MPI_ANY_TAG;
  std::int64_t bytes = 0;  ///< packed bytes
};

/// Sends and receives typed messages over one communicator. Neither copied nor moved. For one
/// thread at a time; must outlive its requests.
///
/// Buffers may be in host memory or device memory, independent of the partner's memory. A device
/// must be done with them before. A message of at most chunk_bytes is one MPI message of its packed
/// bytes (as MPI_PACKED). Plain MPI calls match it in both directions. Open MPI 4.1 may end a
/// process that receives elements of more than 16 bytes by such a call, such as C's long double
/// complex. A longer message needs a PointToPoint with the same chunk_bytes at both ends.
/// Wildcards, order, short receives and MPI_PROC_NULL are as in MPI.
///
/// Every call here makes progress for all requests; nothing else does. A rank with a long message
/// under way must call again to complete it. It must not wait for its partner by other means. A
/// message that is too long for its receive is an error at the receiver. If the receive has no room
/// for a chunk, the sender waits for ever, since no MPI tells it.
class PointToPoint {
 public:
  /// Is the default size of a chunk in bytes. On a CPU, chunks of 64 KiB, 256 KiB and 1 MiB were
  /// equally fast. From 16 MiB on, they were about twice as fast as one message. Not measured on a
  /// device.
  static constexpr std::int64_t kDefaultChunkBytes = std::int64_t{1} << 19;

  struct Options {
    /// Packs whole messages on the host; must outlive the PointToPoint. nullptr: the host packer.
    const dtype::Packer* packer = nullptr;
    /// Belongs to the device whose memory may hold the buffers; must outlive the PointToPoint.
    /// nullptr: the resources of current_device(), if there is one.
    dtype::ResourceCache* resources = nullptr;
    /// Says if MPI takes device memory. Unset: probe_gpu_awareness().
    std::optional<bool> gpu_aware_mpi = std::nullopt;
    /// Chooses the transfers; must outlive the PointToPoint. nullptr: the default of
    /// select_transfer().
    const dtype::SystemModel* model = nullptr;
    /// Fixes the transfer of all messages from and to device memory. Unset: chosen for each
    /// message.
    std::optional<dtype::Transfer> transfer = std::nullopt;
    /// Sets the size of a chunk in bytes, at least 64, the same on all ranks. 0: every message is
    /// one MPI message.
    std::int64_t chunk_bytes = kDefaultChunkBytes;
    /// Limits the chunks of a message that are under way or being packed at once, at least 2.
    int chunks = 3;
    /// Is the largest count handed to MPI. Tests lower it.
    std::int64_t mpi_count_limit = INT32_MAX;
  };

  /// Makes an engine over `comm`, which must outlive it. Short messages and first chunks travel
  /// over `comm`, further chunks over a duplicate. Collective.
  /// \throws ConfigError on all ranks if an option is out of range or differs between ranks.
  PointToPoint(MPI_Comm comm, const Options& options);
  explicit PointToPoint(MPI_Comm comm);
  PointToPoint(const PointToPoint&) = delete;
  PointToPoint& operator=(const PointToPoint&) = delete;
  ~PointToPoint();

  /// Represents a send or receive under way. Move-only; the destructor waits.
  class Request {
   public:
    Request(Request&&) noexcept;
    Request& operator=(Request&&) = delete;
    ~Request();

    /// Waits until the message is complete. Returns what was received; for a send, an empty status.
    /// Throws MpiError, with class MPI_ERR_TRUNCATE for a message that is longer than the receive.
    ReceiveStatus wait();
    /// Tells if the message is complete. If so, wait() returns at once.
    bool test();

   private:
    friend class PointToPoint;
    Request(detail::Engine* engine, std::shared_ptr<detail::Operation> operation);
    detail::Engine* engine_;
    std::shared_ptr<detail::Operation> operation_;
  };

  /// Starts to send `count` instances of `type` at `buffer`, which must not change before the
  /// request is complete. The type may be freed afterwards. It need not be committed if it has a
  /// plan of ours. O(packed bytes).
  ///
  /// \throws ConfigError for a count below 0, or an Options::transfer that is impossible for this
  /// buffer. Also for a type without a plan of ours if the message is longer than a chunk, or MPI
  /// does not take its memory.
  [[nodiscard]] Request isend(const void* buffer, std::int64_t count, MPI_Datatype type,
                              int destination, int tag);
  /// Starts to receive at most `count` instances of `type` at `buffer`. `source` may be
  /// MPI_ANY_SOURCE, `tag` MPI_ANY_TAG. O(1). Throws ConfigError for the reasons that isend()
  /// lists.
  [[nodiscard]] Request irecv(void* buffer, std::int64_t count, MPI_Datatype type, int source,
                              int tag);

  void send(const void* buffer, std::int64_t count, MPI_Datatype type, int destination, int tag);
  ReceiveStatus recv(void* buffer, std::int64_t count, MPI_Datatype type, int source, int tag);

  /// Returns the transfer of a message to or from `partner`; host if MPI uses the buffer
  /// itself. Local. O(1) once chosen: [PEA21] needs 277 ns. Throws ConfigError for an impossible
  /// Options::transfer.
  dtype::Transfer transfer(const void* buffer, std::int64_t count, MPI_Datatype type, int partner);

 private:
  std::unique_ptr<detail::Engine> engine_;
};

}  // namespace halocline::comm
