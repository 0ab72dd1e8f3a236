// SPDX-License-Identifier: BSD-3-Clause
#include "comm/interpose/requests.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <list>
#include <memory>
#include <mutex>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "comm/interpose/comparison.hpp"
#include "comm/interpose/settings.hpp"

namespace halocline::interpose {

constinit std::atomic<std::size_t> abandoned_receives{0};
constinit thread_local int calls_of_thread = 0;

namespace {

constexpr std::uint64_t kSpread = 0x9e3779b97f4a7c15;  // 2^64 / golden ratio, to hash to upper bits

using comm::StreamedBytes;
using dtype::host::CopyDirection;

// ---- Types of streamed bytes: a small cache by length

struct StreamedTypes {
  std::mutex mutex;
  std::array<std::shared_ptr<const StreamedBytes>, 64> places;
};
StreamedTypes& streamed_types() {
  static auto* const the_types = new StreamedTypes;
  return *the_types;
}

// ---- Requests

// The handle of a request is a pointer or an integer.
using HandleBits = std::conditional_t<sizeof(MPI_Request) == 8, std::uint64_t, std::uint32_t>;

// Holds all requests that the library watches. Its lists change only under `mutex`.
struct Table {
  std::mutex mutex;
  std::unordered_map<MPI_Request, std::unique_ptr<Entry>> watched;
  std::list<std::unique_ptr<Entry>> abandoned;
  // The thread that looks at abandoned requests holds this all the time. Another thread that looks
  // waits, and then finds what has arrived in its place. Recursive, since MPI may call functions of
  // the user's meanwhile.
  std::recursive_mutex looking_mutex;
  bool is_looking = false;
  std::list<std::unique_ptr<Entry>> left_to_mpi;  // MPI may write to it until the process ends
  std::atomic<std::size_t> watched_count{0}, abandoned_count{0};
  // Counts the watched requests by hash. If the count is 0, a request is known not to be watched,
  // without a lock.
  std::array<std::atomic<std::uint32_t>, 256> of_hash{};

  std::atomic<std::uint32_t>& with_hash_of(MPI_Request request) {
    return of_hash[std::bit_cast<HandleBits>(request) * kSpread >> 56];
  }
  void insert(std::unique_ptr<Entry> entry) {
    // An entry may still be there if an error ended its request and MPI uses the handle again.
    const auto request = entry->request;
    if (watched.insert_or_assign(request, std::move(entry)).second) ++with_hash_of(request);
    watched_count = watched.size();
  }
  // Counts an abandoned request, or counts it no more when it is over.
  void count_abandoned(const Entry& entry, bool is_over) {
    const auto count = [is_over](auto& counter) { is_over ? --counter : ++counter; };
    count(abandoned_count);
    if (entry.role == Role::receiver) count(abandoned_receives);
  }
  std::unique_ptr<Entry> extract(MPI_Request request) {
    const auto found = watched.find(request);
    if (found == watched.end()) return nullptr;
    auto entry = std::move(found->second);
    watched.erase(found);
    --with_hash_of(request);
    watched_count = watched.size();
    return entry;
  }
};
Table& table() {
  static auto* const the_table = new Table;
  return *the_table;
}

void keep(std::unique_ptr<Entry> entry) {
  auto& all = table();
  const std::lock_guard lock(all.mutex);
  all.insert(std::move(entry));
}

std::unique_ptr<Entry> take(MPI_Request request) {
  auto& all = table();
  const std::lock_guard lock(all.mutex);
  return all.extract(request);
}

// Marks the table while a thread looks at its abandoned requests.
class Looking {
 public:
  explicit Looking(Table& all) : all_(all) { all_.is_looking = true; }
  Looking(const Looking&) = delete;
  Looking& operator=(const Looking&) = delete;
  ~Looking() { all_.is_looking = false; }

 private:
  Table& all_;
};

// Lets the requests progress that the user gave to MPI_Request_free. MPI goes on using the packed
// bytes, and only this function can give them back.
//
// At the end, it waits for sends. It does not wait for receives, since their messages may never
// come. It does not cancel them either: the sender might wait for ever.
void progress_abandoned(bool at_end) {
  auto& all = table();
  const std::lock_guard looking(all.looking_mutex);
  if (all.is_looking) return;
  const Looking mark(all);
  std::list<std::unique_ptr<Entry>> list;
  {
    const std::lock_guard lock(all.mutex);
    list.swap(all.abandoned);
  }
  std::erase_if(list, [&all, at_end](const std::unique_ptr<Entry>& entry) {
    int done = 1;
    MPI_Status status;
    const int code = at_end && entry->role == Role::sender
                         ? PMPI_Wait(&entry->request, &status)
                         : PMPI_Test(&entry->request, &done, &status);
    if (code == MPI_SUCCESS && done != 0) entry->deliver(status);
    const bool is_over = code != MPI_SUCCESS || done != 0;
    if ((is_over || at_end) && entry->request != MPI_REQUEST_NULL)
      PMPI_Request_free(&entry->request);
    if (is_over || at_end) all.count_abandoned(*entry, true);
    return is_over;
  });
  const std::lock_guard lock(all.mutex);
  auto& left = at_end ? all.left_to_mpi : all.abandoned;
  left.splice(left.end(), list);
}

// Tells if another thread may start requests while a call of this thread completes some.
bool threads_may_race() {
  static const bool value = [] {
    int level = MPI_THREAD_SINGLE;
    PMPI_Query_thread(&level);
    return level == MPI_THREAD_MULTIPLE;
  }();
  return value;
}

bool is_class(int code, int error_class) {
  if (code == MPI_SUCCESS) return error_class == MPI_SUCCESS;
  int of_code = MPI_SUCCESS;
  PMPI_Error_class(code, &of_code);
  return of_code == error_class;
}

}  // namespace

comm::MessageMemory& message_memory() {
  // Never destroyed: in use until the process ends.
  static auto* const the_memory =
      new comm::MessageMemory(std::size_t{1} << 27, comm::MessageMemory::Users::all_threads);
  return *the_memory;
}

HostBytes host_bytes(std::int64_t bytes) {
  return {message_memory(), static_cast<std::size_t>(bytes + StreamedBytes::kRoom)};
}

std::shared_ptr<const StreamedBytes> streamed(std::int64_t bytes) {
  if (!kStreams || bytes < 2) return nullptr;
  auto& all = streamed_types();
  const std::lock_guard lock(all.mutex);
  auto& place = all.places[static_cast<std::uint64_t>(bytes) * kSpread >> 58];
  if (place == nullptr || place->bytes() != bytes)
    place = std::make_shared<const StreamedBytes>(static_cast<int>(bytes));
  return place;
}

void release_spare_memory() noexcept {
  {
    const std::lock_guard lock(streamed_types().mutex);
    streamed_types().places.fill({});
  }
  message_memory().release();
}

PackedMessage::PackedMessage(const PackDecision& by, MPI_Datatype type, const void* buffer,
                             int count)
    : data_{*by.plan, const_cast<void*>(buffer), count}, bytes_(static_cast<int>(data_.bytes())) {
  if (is_packed_by_device(by.memory))
    on_device_ = std::make_unique<DeviceMessage>(std::vector{data_});
  else
    packed_ = host_bytes(bytes_);
  if (on_device_ == nullptr || on_device_->is_for_host()) streamed_ = streamed(bytes_);
  if (!verifies() || on_device_ != nullptr) return;
  MPI_Datatype copy =
      MPI_DATATYPE_NULL;  // the program may free its type before the message is packed
  if (PMPI_Type_dup(type, &copy) == MPI_SUCCESS)
    verified_ = std::make_shared<const dtype::Datatype>(copy);
}

void PackedMessage::pack() const {
  if (on_device_ != nullptr)
    on_device_->pack();
  else
    data_.copy<CopyDirection::pack>(0, bytes_, packed_.data());
  if (verified_ != nullptr)
    verify(verified_->get(), data_.buffer, data_.count, packed_.data(), bytes_);
  if (streamed_ != nullptr) streamed_->part(data());
}

void PackedMessage::unpack(const MPI_Status& status) const {
  int received = 0;
  if (PMPI_Get_count(&status, MPI_PACKED, &received) != MPI_SUCCESS || received <= 0) return;
  received = std::min(received, bytes_);
  if (streamed_ != nullptr && received == bytes_) streamed_->join(data());
  if (on_device_ != nullptr)
    on_device_->unpack(received);
  else
    data_.copy<CopyDirection::unpack>(0, received, packed_.data());
  if (verified_ != nullptr && received == bytes_)
    verify(verified_->get(), data_.buffer, data_.count, packed_.data(), bytes_);
}

void watch(MPI_Request request, PackedMessage travelling, Role role) {
  if (request == MPI_REQUEST_NULL) return;  // after an error that a handler has taken
  // Some MPIs share one request among all sends that are complete at once. Such a send is not
  // watched. Receives are not asked: a failed one would report to the wrong error handler.
  int done = 0;
  if (role == Role::sender &&
      PMPI_Request_get_status(request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done != 0)
    return;
  or_end([&] {
    keep(std::make_unique<Entry>(Entry{request, std::move(travelling), role, false, true}));
  });
}

void watch_persistent(MPI_Request request, PackedMessage travelling, Role role) {
  if (request == MPI_REQUEST_NULL) return;
  or_end([&] {
    keep(std::make_unique<Entry>(Entry{request, std::move(travelling), role, true, false}));
  });
}

void Entry::deliver(const MPI_Status& status) {
  int cancelled = 0;
  if (role == Role::receiver && !delivered &&
      PMPI_Test_cancelled(&status, &cancelled) == MPI_SUCCESS && cancelled == 0)
    travelling.unpack(status);
  delivered = true;
}

void deliver_abandoned() {
  if (calls_of_thread <= 1) progress_abandoned(false);
}

bool look() {
  if (table().abandoned_count.load(std::memory_order_acquire) != 0) deliver_abandoned();
  return table().watched_count.load(std::memory_order_relaxed) != 0;
}

bool look(int count, const MPI_Request* requests) {
  return look() && requests != nullptr &&
         std::any_of(requests, requests + std::max(count, 0), [](MPI_Request request) {
           return table().with_hash_of(request).load(std::memory_order_relaxed) != 0;
         });
}

Entry* watched(MPI_Request request) {
  auto& all = table();
  const std::lock_guard lock(all.mutex);
  const auto found = all.watched.find(request);
  return found == all.watched.end() ? nullptr : found->second.get();
}

CompletingRequests::CompletingRequests(int count, const MPI_Request* requests)
    : requests_(requests) {
  if (requests == nullptr || count <= 0) return;
  or_end([&] {
    if (!threads_may_race()) {
      handles_before_.assign(requests, requests + count);
      return;
    }
    auto& all = table();
    const std::lock_guard lock(all.mutex);
    for (int i = 0; i < count; ++i)
      if (auto entry = all.extract(requests[i])) taken_entries_.emplace_back(i, std::move(entry));
  });
}

// Watches requests again that are not complete or are persistent. MPI may have ended other requests
// without a report: their entries are dropped.
CompletingRequests::~CompletingRequests() {
  for (auto& [index, entry] : taken_entries_)
    if (entry != nullptr && (entry->persistent || requests_[index] == entry->request))
      keep(std::move(entry));
}

void CompletingRequests::end(int index, int code, const MPI_Status& status) {
  Entry* entry = nullptr;
  if (!handles_before_.empty()) {
    entry = watched(handles_before_[static_cast<std::size_t>(index)]);
  } else {
    const auto found = std::lower_bound(taken_entries_.begin(), taken_entries_.end(), index,
                                        [](const auto& one, int i) { return one.first < i; });
    if (found != taken_entries_.end() && found->first == index) entry = found->second.get();
  }
  if (entry == nullptr || !entry->active) return;  // a wait for an inactive request does nothing
  if (!entry->persistent && requests_[index] == entry->request) return;
  if (code == MPI_SUCCESS) entry->deliver(status);
  entry->active = false;
  if (!handles_before_.empty() && !entry->persistent) take(entry->request);
}

int end_several(int code, int completed, const MPI_Status* statuses, CompletingRequests& taken,
                const int* indices, int first_index) {
  const bool some_failed = is_class(code, MPI_ERR_IN_STATUS);
  if (code != MPI_SUCCESS && !some_failed) return code;  // no request is complete
  for (int i = 0; i < completed; ++i) {
    const int error = some_failed ? statuses[i].MPI_ERROR : MPI_SUCCESS;
    if (is_class(error, MPI_ERR_PENDING)) continue;
    taken.end(indices != nullptr ? indices[i] - first_index : i, error, statuses[i]);
  }
  return code;
}

bool abandon(MPI_Request request) {
  auto entry = take(request);
  if (entry == nullptr) return false;
  if (!entry->active) {
    PMPI_Request_free(&entry->request);
    return true;
  }
  or_end([&] {
    auto& all = table();
    const std::lock_guard lock(all.mutex);
    all.abandoned.push_back(std::move(entry));
    all.count_abandoned(*all.abandoned.back(), false);
  });
  return true;
}

void finish_abandoned() noexcept {
  if (table().abandoned_count != 0) progress_abandoned(true);
}

}  // namespace halocline::interpose
