// SPDX-License-Identifier: BSD-3-Clause
// Packed bytes that travel in the place of derived types, and the requests under which they do.
//
// Best peer: [PEA21] leaves persistent calls to MPI and looks for its own requests in a map at
// every wait; here the application holds MPI's own request, a wait that meets none of ours costs
// one load if there are none and two if there are, and a request that is complete when it is made
// is never kept.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "comm/interpose/types.hpp"
#include "comm/mpi/streamed_bytes.hpp"
#include "dtype/pack/pack_plan.hpp"

namespace halocline::interpose {

/// Memory for packed bytes and StreamedBytes::kRoom, from a stock and back to it. Thread-safe.
class PackedBytes {
 public:
  PackedBytes() : memory_(nullptr, GiveBack{0}) {}
  /// Throws std::bad_alloc.
  explicit PackedBytes(std::int64_t bytes);
  std::byte* data() const { return memory_.get(); }

 private:
  struct GiveBack {
    int size_class;
    void operator()(std::byte* memory) const noexcept;
  };
  std::unique_ptr<std::byte, GiveBack> memory_;
};

/// How MPI moves packed bytes of the host: streamed with Open MPI, whose receives of one run of
/// memory write all of a message that is longer where the kernel copies it (4.1.4), and which moves
/// derived types like that as well, so that the two differ in who packs. Of bytes below 2, and with
/// other MPIs, nullptr: as one run of MPI_PACKED. O(1) but for the first of its length;
/// thread-safe. Throws MpiError and std::bad_alloc.
std::shared_ptr<const comm::StreamedBytes> streamed(std::int64_t bytes);
#ifdef OPEN_MPI
inline constexpr bool kStreams = true;
#else
inline constexpr bool kStreams = false;
#endif

/// Gives back what nobody uses of the stock, and of the types that streamed() made.
void release_stock() noexcept;

/// `count` instances at `buffer`, and room for their packed bytes, which MPI counts by an int.
class Travelling {
 public:
  /// Throws std::bad_alloc, and what a DeviceMessage does.
  Travelling(const Handling& by, const void* buffer, int count);

  // What MPI is to carry.
  std::byte* data() const { return on_device_ != nullptr ? on_device_->data() : packed_.data(); }
  int count() const { return streamed_ != nullptr ? 1 : bytes_; }
  MPI_Datatype type() const { return streamed_ != nullptr ? streamed_->type() : MPI_PACKED; }

  void pack() const;
  /// What was received, which may be less than there is room for.
  void unpack(const MPI_Status& status) const;

 private:
  dtype::PackPlan plan_;
  void* buffer_;
  int count_, bytes_;
  PackedBytes packed_;
  std::unique_ptr<DeviceMessage> on_device_;
  std::shared_ptr<const comm::StreamedBytes> streamed_;
};

enum class Way { send, receive };

/// Keeps what travels under a request that MPI has just started, until it is complete. Ends the job
/// if there is no memory for that.
void watch(MPI_Request request, Travelling travelling, Way way);
/// Likewise of a persistent request, until that is freed.
void watch_persistent(MPI_Request request, Travelling travelling, Way way);

/// What travels under a request.
struct Entry {
  MPI_Request request;
  Travelling travelling;
  Way way;
  bool persistent, active;
  bool delivered = false;  ///< complete and unpacked, but not yet waited for

  /// What is to be sent is packed. If the start fails nothing is known of the request, and whoever
  /// waits for it finds it complete and empty if it is not active.
  void before_start() {
    if (way == Way::send) travelling.pack();
    active = true, delivered = false;
  }
  /// A receive is complete: its bytes go to their places.
  void deliver(const MPI_Status& status);
};

/// Whether the calls that complete requests arrive here: where another tool takes one of them and
/// asks MPI itself, what was received would stay packed. O(1).
bool sees_completions();

/// Tells if a call on requests has to look for ours. Lets abandoned requests make progress.
/// O(abandoned).
bool look();
/// Tells if a call on these requests has to look for ours; false if it is known at once that none
/// is. O(count + abandoned), no lock if none was abandoned.
bool look(int count, const MPI_Request* requests);

/// Of a watched request that no call is completing, or nullptr; it stays watched.
Entry* watched(MPI_Request request);

/// Those of some requests that are ours while a call of MPI may complete them. With threads they
/// are taken out, since MPI may give the handle to another thread's request before the call
/// returns, and what is neither complete afterwards nor persistent is watched again: O(count).
/// Without, they are looked for once they are complete: O(completed).
class Taken {
 public:
  /// The requests must be there as long as this, as MPI leaves them. Ends the job if there is no
  /// memory for the list.
  Taken(int count, const MPI_Request* requests);
  Taken(const Taken&) = delete;
  Taken& operator=(const Taken&) = delete;
  ~Taken();

  /// MPI has completed request `index`; `code` is whether with success. One that is neither null
  /// nor persistent has met an error that leaves it as it was, such as the failure of a process
  /// that it may not need.
  void end(int index, int code, const MPI_Status& status);

 private:
  const MPI_Request* requests_;
  std::vector<MPI_Request> before_;                            // without threads: as they were
  std::vector<std::pair<int, std::unique_ptr<Entry>>> taken_;  // with threads
};

/// Of a call that completes several requests: the caller's statuses or, if it wants none, our own,
/// since we have to know what was received.
class Statuses {
 public:
  Statuses(int count, MPI_Status* wanted)
      : own_(wanted == MPI_STATUSES_IGNORE ? static_cast<std::size_t>(count) : 0),
        list_(own_.empty() ? wanted : own_.data()) {}
  MPI_Status* list() const { return list_; }

 private:
  std::vector<MPI_Status> own_;
  MPI_Status* list_;
};

/// Ends what a call completed: `completed` requests, of which status i is that of request
/// indices[i], or of request i. Returns `code`, which is the caller's.
int end_several(int code, int completed, const MPI_Status* statuses, Taken& taken,
                const int* indices = nullptr);

/// Frees a request that is ours as soon as it is complete; false if it is not ours.
bool abandon(MPI_Request request);
/// Counts the receives that were abandoned and are not known to be complete.
extern std::atomic<std::size_t> abandoned_receives;
/// Counts the calls of MPI that this thread is in, one inside of another: MPI may call functions of
/// the user's, such as operations of reductions, which may call MPI.
#ifdef __GNUC__
[[gnu::tls_model("initial-exec")]]
#endif
extern constinit thread_local int calls_of_thread;
/// Unpacks what abandoned receives have got.
void deliver_abandoned();
/// Does that at the end of a call of MPI: what has arrived until then is in its place. Calls inside
/// of others leave it to these, since MPI may hold locks meanwhile.
struct DeliveryAfterCall {
  DeliveryAfterCall() { ++calls_of_thread; }
  DeliveryAfterCall(const DeliveryAfterCall&) = delete;
  DeliveryAfterCall& operator=(const DeliveryAfterCall&) = delete;
  ~DeliveryAfterCall() {
    if (abandoned_receives.load(std::memory_order_acquire) != 0) deliver_abandoned();
    --calls_of_thread;
  }
};
/// Abandoned sends come to their end, and of receives what has arrived, before MPI_Finalize goes
/// on; into other receives MPI may write until then, for nobody.
void finish_abandoned() noexcept;

}  // namespace halocline::interpose
