// SPDX-License-Identifier: BSD-3-Clause
// Holds packed bytes that travel in the place of derived types, and the requests they travel under.
//
// Best peer: [PEA21] leaves persistent calls to MPI, and looks for its own requests in a map at
// every wait. Here the application holds MPI's own request. A wait for requests of MPI alone takes
// a few loads and no lock. A send that is complete when it is made is never watched.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "comm/interpose/types.hpp"
#include "comm/messages/message_memory.hpp"
#include "comm/messages/planned_buffer.hpp"
#include "comm/mpi/streamed_bytes.hpp"
#include "dtype/datatype.hpp"

namespace halocline::interpose {

using comm::HostBytes;
/// Holds spare host memory for all packed bytes here. Thread-safe.
comm::MessageMemory& message_memory();
/// Takes host memory for `bytes` packed bytes and StreamedBytes::kRoom more bytes. Throws
/// std::bad_alloc.
HostBytes host_bytes(std::int64_t bytes);

/// Returns the type by which MPI streams `bytes` packed bytes in host memory. Returns nullptr below
/// 2 bytes and with MPIs other than Open MPI: they go as one run of MPI_PACKED.
///
/// With Open MPI, streaming has two reasons. If a receive is one run of memory and the kernel
/// copies a message that is longer, version 4.1.4 writes beyond the end. Also, Open MPI streams
/// derived types, so the messages of the engine and of MPI differ only in who packs.
///
/// O(1), except for the first call for a length. Thread-safe. Throws MpiError and std::bad_alloc.
std::shared_ptr<const comm::StreamedBytes> streamed(std::int64_t bytes);
using comm::kStreams;

/// Gives back the host memory that is not in use, and the types that streamed() made.
void release_spare_memory() noexcept;

/// Describes `count` instances at `buffer` on their way, and holds the memory for their packed
/// bytes. MPI counts these by an int.
class PackedMessage {
 public:
  /// Takes memory for the packed bytes. Packs nothing yet. Throws what streamed() and DeviceMessage
  /// throw.
  PackedMessage(const PackDecision& by, MPI_Datatype type, const void* buffer, int count);

  // These three say what MPI is to carry.
  std::byte* data() const { return on_device_ != nullptr ? on_device_->data() : packed_.data(); }
  int count() const { return streamed_ != nullptr ? 1 : bytes_; }
  MPI_Datatype type() const { return streamed_ != nullptr ? streamed_->type() : MPI_PACKED; }

  /// Packs the instances into data().
  void pack() const;
  /// Unpacks what was received. It may be less than all packed bytes.
  void unpack(const MPI_Status& status) const;

 private:
  comm::PlannedBuffer data_;
  int bytes_;
  HostBytes packed_;
  std::unique_ptr<DeviceMessage> on_device_;
  std::shared_ptr<const comm::StreamedBytes> streamed_;
  std::shared_ptr<const dtype::Datatype> verified_;  // a copy of the type; nullptr: not verified
};

/// Keeps what travels under a request that MPI has just started, until the request is complete.
/// Ends the job if there is no memory for that.
void watch(MPI_Request request, PackedMessage travelling, Role role);
/// Keeps what travels under a persistent request, until the request is freed. Ends the job if there
/// is no memory for that.
void watch_persistent(MPI_Request request, PackedMessage travelling, Role role);

/// Describes what travels under a request.
struct Entry {
  MPI_Request request;
  PackedMessage travelling;
  Role role;
  bool persistent, active;
  bool delivered = false;  ///< complete and unpacked, but not yet waited for

  /// Packs what is to be sent, and marks the request as active. Call it before MPI starts the
  /// request. If that start fails, the mark stays although the request is not active. MPI_Wait then
  /// returns an empty status, so nothing is unpacked.
  void before_start() {
    if (role == Role::sender) travelling.pack();
    active = true, delivered = false;
  }
  /// Unpacks what was received, once, unless it was cancelled. Call it when MPI has completed the
  /// request.
  void deliver(const MPI_Status& status);
};

/// Tells if the calls that complete requests arrive here. If another tool takes one of them and
/// asks MPI itself, received data would stay packed. O(1) after the first call.
bool sees_completions();

/// Tells if a call on requests has to look for watched requests. Lets abandoned requests make
/// progress. O(abandoned).
bool look();
/// Tells if a call on these requests has to look for watched requests. False only if certainly none
/// of them is watched. O(count + abandoned). Takes no lock if no request was abandoned.
bool look(int count, const MPI_Request* requests);

/// Returns the entry of a watched request that no call is completing, or nullptr. The request stays
/// watched.
Entry* watched(MPI_Request request);

/// Holds the watched ones of some requests while a call of MPI may complete them.
///
/// With MPI_THREAD_MULTIPLE, it takes their entries out of the table: before the call returns, MPI
/// may give the same handle to a request of another thread. Entries of requests that are not
/// complete afterwards, or persistent, go back to the table. O(count).
///
/// Without, it looks for an entry only once its request is complete. O(completed).
class CompletingRequests {
 public:
  /// Takes the entries. `requests` must outlive this object, as MPI leaves it. Ends the job if
  /// there is no memory for the list.
  CompletingRequests(int count, const MPI_Request* requests);
  CompletingRequests(const CompletingRequests&) = delete;
  CompletingRequests& operator=(const CompletingRequests&) = delete;
  ~CompletingRequests();

  /// Ends request `index` after MPI has completed it with `code`. If its handle is unchanged and it
  /// is not persistent, an error has left it as it was, and it stays watched. The failure of a
  /// process is such an error.
  void end(int index, int code, const MPI_Status& status);

 private:
  const MPI_Request* requests_;
  std::vector<MPI_Request> handles_before_;  // without threads: handles before the call
  std::vector<std::pair<int, std::unique_ptr<Entry>>> taken_entries_;  // with threads
};

/// Ends the `completed` requests that a call completed. Returns `code`, which the caller gets.
///
/// \param statuses status i is that of request indices[i], or of request i without indices
/// \param first_index index of the first request
int end_several(int code, int completed, const MPI_Status* statuses, CompletingRequests& taken,
                const int* indices = nullptr, int first_index = 0);

/// Frees a watched request as soon as it is complete. Returns false if it is not watched.
bool abandon(MPI_Request request);
/// Counts the abandoned receives that are not known to be complete.
extern std::atomic<std::size_t> abandoned_receives;
/// Counts the calls of MPI that this thread is in, one inside of another. MPI may call functions of
/// the user, such as operations of reductions, and these may call MPI.
#ifdef __GNUC__
[[gnu::tls_model("initial-exec")]]
#endif
extern constinit thread_local int calls_of_thread;
/// Unpacks what abandoned receives have got, unless this thread is in a call inside of a call.
void deliver_abandoned();
/// Delivers abandoned receives at the end of a call of MPI: what has arrived by then is unpacked. A
/// call inside of another call leaves that to the outer call, since MPI may hold locks meanwhile.
struct DeliveryAfterCall {
  DeliveryAfterCall() { ++calls_of_thread; }
  DeliveryAfterCall(const DeliveryAfterCall&) = delete;
  DeliveryAfterCall& operator=(const DeliveryAfterCall&) = delete;
  ~DeliveryAfterCall() {
    if (abandoned_receives.load(std::memory_order_acquire) != 0) deliver_abandoned();
    --calls_of_thread;
  }
};
/// Ends abandoned requests before MPI_Finalize goes on. Waits for sends, and unpacks receives that
/// have arrived. MPI may write to the packed bytes of other receives until the process ends.
void finish_abandoned() noexcept;

}  // namespace halocline::interpose
