// SPDX-License-Identifier: BSD-3-Clause
#include "comm/interpose/types.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "comm/interpose/calls.hpp"
#include "comm/interpose/requests.hpp"
#include "comm/interpose/settings.hpp"
#include "dtype/datatype.hpp"

namespace halocline::interpose {

dtype::HandleTable<CommittedType>* const committed_types = new dtype::HandleTable<CommittedType>;
std::atomic<std::uint64_t> changes_of_senders{0};

namespace {

// After this, attributes of types cannot be set any more.
std::atomic<bool> is_over{false};

int at_finalize(MPI_Comm, int, void*, void*) {
  is_over = true;
  committed_types->close();  // from here on calls go to MPI at once
  finish_abandoned();
  release_devices();
  release_spare_memory();
  if (settings().log != Settings::Log::none) print_summary();
  return MPI_SUCCESS;
}

// Prepares for MPI_Finalize, whose first step is to delete the attributes of MPI_COMM_SELF. Warns
// once if the model is missing.
void at_first_commit() {
  static std::once_flag once;
  std::call_once(once, [] {
    int keyval = MPI_KEYVAL_INVALID;
    if (PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_finalize, &keyval, nullptr) !=
        MPI_SUCCESS)
      return;
    PMPI_Comm_set_attr(MPI_COMM_SELF, keyval, nullptr);
    PMPI_Comm_free_keyval(&keyval);
    if (is_model_missing()) model();  // prints the warning
  });
}

std::string text_of_messages(const TypeFacts& facts, std::int64_t bytes) {
  if (facts.blocks().shape.block_bytes >= kLongSentBlock)
    return "messages by mpi: blocks of " + std::to_string(kLongSentBlock) + " bytes or more";
  if (!has_message_times()) return "messages by mpi: there is no model of them";
  if (bytes > kLongestMessage) return "messages by mpi: too long";
  const auto way = [&](const char* name, MessagePattern pattern) -> std::string {
    const auto time = message_time(facts.blocks(), bytes, pattern);
    if (!time) return std::string(name) + "by mpi: shorter or longer than the model's messages";
    char text[96];
    std::snprintf(text, sizeof text, "%sby %s (engine %.3g us, mpi %.3g us%s)", name,
                  facts.is_sent_by_engine(bytes, pattern) ? "engine" : "mpi", time->ours * 1e6,
                  time->mpi * 1e6,
                  time->ours < time->mpi && !time->pays() ? ": too little a gain" : "");
    return text;
  };
  return "messages, as measured by the model, " + way("one way ", MessagePattern::one_way) + ", " +
         way("both ways ", MessagePattern::both_ways);
}

// Tells who does calls with `bytes` packed bytes of a type, and why.
std::string text_of(const TypeFacts& facts, std::int64_t bytes) {
  if (facts.plan() == nullptr) return "all by mpi: " + facts.why_no_plan();
  if (settings().mode == Settings::Mode::engine) return "all by engine";
  const auto blocks = std::string(facts.blocks().listed ? "listed " : "") + "blocks of " +
                      std::to_string(facts.blocks().shape.block_bytes) + " bytes";
  if (bytes <= facts.blocks().shape.block_bytes) return "by mpi: one block";
  if (!are_short(facts.blocks()))
    return "all by mpi: " + blocks + ", " + std::to_string(kLongBlock) + " or more";
  return std::to_string(bytes) + " bytes packed by engine (" + blocks + "), " +
         text_of_messages(facts, bytes);
}

}  // namespace

CommittedType::CommittedType(MPI_Datatype handle) {
  MPI_Count size = 0;
  MPI_Aint first = 0, extent = 0;
  PMPI_Type_size_x(handle, &size);
  PMPI_Type_get_true_extent(handle, &first, &extent);
  size_ = size, true_lb_ = first;
  bytes_before_reading_ = std::max<std::int64_t>(kBytesBeforeReading, extent / kSpanPerByte);
}

const TypeFacts* CommittedType::count_use(MPI_Datatype handle, const void* buffer,
                                          std::int64_t count, bool at_once) {
  const auto bytes = size_ * count;
  const auto used =
      bytes + kBytesPerUse + used_.fetch_add(bytes + kBytesPerUse, std::memory_order_relaxed);
  if (!at_once && used < bytes_before_reading_ && !is_forced() &&
      !(may_have_device_memory() &&
        is_packed_by_device(dtype::kind_of_memory(comm::byte_at(buffer, true_lb_)))))
    return nullptr;
  const auto* const facts = read(handle);
  if (facts != nullptr) note_type(handle, [&] { return text_of(*facts, bytes); });
  return facts;
}

const TypeFacts* CommittedType::read(MPI_Datatype handle) noexcept {
  const NotedReading noted;
  try {
    auto facts = facts_of(handle);
    // Another thread may have been faster: then its facts count.
    const TypeFacts* current = nullptr;
    if (!facts_.compare_exchange_strong(current, facts.get(), std::memory_order_acq_rel))
      return current;
    owned_facts_ = std::move(facts);
    changes_of_senders.fetch_add(1, std::memory_order_release);
    note_disposition(owned_facts_->plan() != nullptr &&
                             (is_forced() || are_short(owned_facts_->blocks()))
                         ? TypeDisposition::taken
                         : TypeDisposition::left);
    return owned_facts_.get();
  } catch (const std::exception&) {
    return nullptr;  // no memory: MPI may need less
  }
}

PackDecision CommittedType::to_send(MPI_Datatype handle, const void* buffer, std::int64_t count,
                                    Role role, MessagePattern pattern, bool is_persistent) {
  // known_sender() comes first: it is faster than finding out where the buffer is.
  if (const auto who = known_sender(count, pattern);
      who == Sender::mpi || (who == Sender::mpi_on_host && !may_have_device_memory()))
    return {};
  const auto by = decide(
      handle, buffer, count,
      [&](const TypeFacts& facts) {
        // Open MPI 5 writes otherwise what a rank receives from itself, if the engine has sent it.
        return facts.is_sent_by_engine(size_ * count, pattern) && facts.is_free_of_order(count);
      },
      is_persistent);
  return role == Role::sender && has_long_elements() ? PackDecision{} : by;
}

const dtype::PackPlan* CommittedType::plan_beside_others(MPI_Datatype handle, const void* buffer,
                                                         std::int64_t count, Role role) {
  const auto* facts = facts_.load(std::memory_order_acquire);
  if (facts == nullptr) facts = read(handle);
  if (facts == nullptr || facts->plan() == nullptr || !is_trusted(*facts, handle, count) ||
      (role == Role::sender && facts->has_long_elements()))
    return nullptr;
  const bool on_device =
      is_packed_by_device(dtype::kind_of_memory(comm::byte_at(buffer, true_lb_)));
  return on_device || is_forced() || facts->is_free_of_order(count) ? facts->plan() : nullptr;
}

void note_commit(MPI_Datatype handle) noexcept {
  if (settings().mode == Settings::Mode::off) {
    static const bool told [[maybe_unused]] = [] {
      if (settings().log != Settings::Log::none && is_first_rank())
        std::fprintf(stderr, "halocline: HALOCLINE_MPI is off: all is left to MPI\n");
      return true;
    }();
    return;
  }
  if (is_over || committed_types == nullptr) return;
  int is_initialized = 0;  // false with sessions of MPI 4, whose types are left to MPI
  PMPI_Initialized(&is_initialized);
  if (is_initialized == 0) return;
  try {
    if (committed_type(handle) != nullptr || dtype::is_predefined(handle)) return;
    at_first_commit();
    committed_types->insert(handle, std::make_unique<CommittedType>(handle));
    note_disposition(TypeDisposition::committed);
    changes_of_senders.fetch_add(1, std::memory_order_release);
  } catch (const std::exception&) {
    // MPI goes on with this type.
  }
}

}  // namespace halocline::interpose
