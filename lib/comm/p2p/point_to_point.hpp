// SPDX-License-Identifier: BSD-3-Clause
// Messages of any datatype between two ranks: pack, MPI, unpack, with the transfer chosen for each.
// [PEA21] sections 4 and 6.3.
//
// Best peer: [PEA21] packs a whole message before it sends any of it, and has no nonblocking calls
// that overlap; here long messages go in chunks through a few buffers, packed while the chunk
// before is on its way, and a short one is still a plain message that any MPI call can match.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "dtype/device/resource_cache.hpp"
#include "dtype/pack/packer.hpp"
#include "dtype/select/system_model.hpp"
#include "dtype/select/transfer_selector.hpp"

namespace halocline::comm {

namespace detail {
class Engine;
class Operation;
}  // namespace detail

/// What was received.
struct ReceiveStatus {
  int source = MPI_PROC_NULL;
  int tag = MPI_ANY_TAG;
  std::int64_t bytes = 0;  ///< packed
};

/// Typed sends and receives over one communicator. Neither copied nor moved. For one thread at a
/// time; must outlive its requests.
///
/// Buffers may be in the host's memory or the device's, wherever the other side's are; a device
/// must be done with them before. A message of at most chunk_bytes is one MPI message of its packed
/// bytes (as MPI_PACKED), which plain MPI calls match in both directions. (Open MPI 4.1 may end the
/// process that receives elements of more than 16 bytes so, such as C's long double complex.) A
/// longer one is a protocol that needs a PointToPoint with the same chunk_bytes at both ends.
/// Wildcards, order, short receives and MPI_PROC_NULL are as in MPI.
///
/// Progress is made by every call here, for all requests, and by no other: who has a long message
/// under way must come back to complete it, and not wait for its partner by other means. A message
/// that is too long for its receive is an error there; if the receive has no room for a chunk, its
/// sender waits for ever, as no MPI lets it know.
class PointToPoint {
 public:
  /// On a CPU, chunks of 64 KiB, 256 KiB and 1 MiB were equally fast, and about twice as fast as
  /// one message from 16 MiB on; on a device none was measured.
  static constexpr std::int64_t kDefaultChunkBytes = std::int64_t{1} << 19;

  struct Options {
    /// Packs whole messages on the host; must outlive this. nullptr: the host packer.
    const dtype::Packer* packer = nullptr;
    /// Of the device whose memory may hold the buffers; must outlive this. nullptr: those of
    /// current_device(), if there is one.
    dtype::ResourceCache* resources = nullptr;
    /// Whether MPI takes device memory. Unset: probe_gpu_awareness().
    std::optional<bool> gpu_aware_mpi = std::nullopt;
    /// For choosing; must outlive this. nullptr: the default of select_transfer().
    const dtype::SystemModel* model = nullptr;
    /// Of all messages from and to a device's memory; unset: chosen for each message.
    std::optional<dtype::Transfer> transfer = std::nullopt;
    /// Of a chunk, the same on all ranks, at least 64; 0: every message is one MPI message.
    std::int64_t chunk_bytes = kDefaultChunkBytes;
    /// Chunks of a message that are under way or being packed at once, at least 2.
    int chunks = 3;
    /// Largest count handed to MPI. Lowered by tests.
    std::int64_t mpi_count_limit = INT32_MAX;
  };

  /// Messages travel over `comm` itself, which must stay; what follows the first chunk of a long
  /// one, over a duplicate. Throws ConfigError on all ranks if an option is out of range or differs
  /// between them. Collective.
  PointToPoint(MPI_Comm comm, const Options& options);
  explicit PointToPoint(MPI_Comm comm);
  PointToPoint(const PointToPoint&) = delete;
  PointToPoint& operator=(const PointToPoint&) = delete;
  ~PointToPoint();

  /// A send or receive under way. Move-only; the destructor waits.
  class Request {
   public:
    Request(Request&&) noexcept;
    Request& operator=(Request&&) = delete;
    ~Request();

    /// Completes it and tells what a receive got; of a send, nothing. Throws MpiError, also one of
    /// class MPI_ERR_TRUNCATE for a message that is longer than the receive.
    ReceiveStatus wait();
    /// Whether it is complete by now; if so, wait() returns at once.
    bool test();

   private:
    friend class PointToPoint;
    Request(detail::Engine* engine, std::shared_ptr<detail::Operation> operation);
    detail::Engine* engine_;
    std::shared_ptr<detail::Operation> operation_;
  };

  /// Starts to send `count` instances of `type` at `buffer`, which must not change before the
  /// request is complete. The type may be freed afterwards and, if it has a plan of ours, need not
  /// be committed.
  ///
  /// Throws ConfigError for a count below 0, for an Options::transfer that is not possible for this
  /// buffer, and for a type without a plan of ours that is longer than a chunk or not in memory
  /// that MPI takes. O(packed bytes).
  [[nodiscard]] Request isend(const void* buffer, std::int64_t count, MPI_Datatype type,
                              int destination, int tag);
  /// Starts to receive at most `count` instances; `source` may be MPI_ANY_SOURCE, `tag`
  /// MPI_ANY_TAG. Errors as of isend(); O(1).
  [[nodiscard]] Request irecv(void* buffer, std::int64_t count, MPI_Datatype type, int source,
                              int tag);

  void send(const void* buffer, std::int64_t count, MPI_Datatype type, int destination, int tag);
  ReceiveStatus recv(void* buffer, std::int64_t count, MPI_Datatype type, int source, int tag);

  /// How such a message would travel, if `partner` were at the other end; host if MPI takes it from
  /// or to the buffer itself. Local. Errors as of isend(). O(1) once it was chosen: [PEA21] needs
  /// 277 ns.
  dtype::Transfer transfer(const void* buffer, std::int64_t count, MPI_Datatype type, int partner);

 private:
  std::unique_ptr<detail::Engine> engine_;
};

}  // namespace halocline::comm
