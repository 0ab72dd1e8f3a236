// SPDX-License-Identifier: BSD-3-Clause
#include "comm/interpose/types.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdio>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <variant>

#include "comm/interpose/calls.hpp"
#include "comm/interpose/requests.hpp"
#include "comm/interpose/settings.hpp"
#include "dtype/dataloop.hpp"
#include "dtype/datatype.hpp"
#include "dtype/type_tree.hpp"

namespace halocline::interpose {

dtype::HandleTable<KnownType>* const known_types = new dtype::HandleTable<KnownType>;
std::atomic<std::uint64_t> times_learnt{0};

namespace {

// Then attributes of types can be set no more.
std::atomic<bool> is_over{false};

int at_finalize(MPI_Comm, int, void*, void*) {
  is_over = true;
  finish_abandoned();
  release_devices();
  release_stock();
  if (settings().log != Settings::Log::none) print_summary();
  return MPI_SUCCESS;
}

// MPI_Finalize begins with deleting the attributes of MPI_COMM_SELF.
void watch_finalize() {
  static std::once_flag once;
  std::call_once(once, [] {
    int keyval = MPI_KEYVAL_INVALID;
    if (PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_finalize, &keyval, nullptr) !=
        MPI_SUCCESS)
      return;
    PMPI_Comm_set_attr(MPI_COMM_SELF, keyval, nullptr);
    PMPI_Comm_free_keyval(&keyval);
  });
}

// What the engine handles a type by; nullopt for what is one run of memory or nothing at all, and
// for what it does not know.
std::optional<dtype::PackPlan> plan_with_gaps(MPI_Datatype handle) {
  auto tree = dtype::translate(handle);
  auto* const known = std::get_if<dtype::TypeTree>(&tree);
  if (known == nullptr) return std::nullopt;
  auto form = dtype::canonicalize(*known);
  const auto& bounds = form.bounds;
  const auto runs = form.runs();
  if (bounds.size == 0 || (runs <= 1 && bounds.size == bounds.extent)) return std::nullopt;
  return dtype::PackPlan(std::move(form));
}

dtype::MemoryKind memory_of(MPI_Datatype handle, const void* buffer) {
  MPI_Aint first = 0, extent = 0;
  PMPI_Type_get_true_extent(handle, &first, &extent);
  return kind_at(buffer, first);
}

// Who packs or unpacks so many bytes, and why.
std::string text_of(const char* what, const PackTimes& times, std::int64_t bytes) {
  const auto& [ours, mpi, up_to] = times;
  char text[160];
  std::snprintf(text, sizeof text,
                "%lld bytes %s by %s (engine %.0f ns and %.3g ns a byte, mpi %.0f and %.3g)",
                static_cast<long long>(bytes), what, times.ours_is_faster(bytes) ? "engine" : "mpi",
                ours.call * 1e9, ours.byte * 1e9, mpi.call * 1e9, mpi.byte * 1e9);
  return text;
}

std::string text_of_messages(const PackTimes& times, std::int64_t bytes) {
  if (message_times() == nullptr) return "mpi: there is no model of them";
  const auto time = message_time(times, bytes);
  if (!time) return "mpi: too long";
  const bool ours = times.ours_is_faster(bytes) && time->pays();
  char text[96];
  std::snprintf(text, sizeof text, "%s (engine %.3g us, mpi %.3g, by the model)",
                ours ? "engine" : "mpi", time->ours * 1e6, time->mpi * 1e6);
  return text;
}

PackTimes times_of_forced() {
  return {{0, 0}, {1, 1}, std::numeric_limits<std::int64_t>::max()};
}

}  // namespace

const KnownType::Verdict* KnownType::judge(const Verdict* last, MPI_Datatype handle,
                                           const void* buffer, std::int64_t count) {
  const bool forced = settings().mode == Settings::Mode::engine;
  const bool on_device = is_packed_by_device(memory_of(handle, buffer));
  if (!forced && !on_device) {
    const auto use = uses_.fetch_add(1, std::memory_order_relaxed);
    if ((last == nullptr && use < kMpiUses) || (is_inconclusive_.load(std::memory_order_relaxed) &&
                                                !std::has_single_bit(static_cast<unsigned>(use))))
      return last;
  }
  auto verdict = std::make_unique<Verdict>();
  std::string told = "all by mpi: one run of memory, or unknown";
  try {
    verdict->plan = plan_with_gaps(handle);
    if (!verdict->plan) {
      // One run of memory, or unknown.
    } else if (forced) {
      verdict->forced = true;
      verdict->times = times_of_forced();
      told = "all by engine";
    } else if (on_device) {
      told = "engine in memory of a device";
    } else {
      if (!is_of(*verdict->plan, buffer)) return last;  // the next use will tell
      const auto found = timed_measurement([&] {
        return measure_packing(*verdict->plan, handle, buffer, count,
                               last == nullptr ? kFirstMeasured : kLongestMeasured);
      });
      if (found.what == Measured::What::inconclusive) {
        if (!is_inconclusive_.exchange(true))
          note_type(handle, last == nullptr
                                ? "by mpi for now: all bytes that it packs are the same"
                                : "as before for now: all bytes that it packs are the same");
        return last;
      }
      is_inconclusive_ = false;
      verdict->times = found.times;
      const auto bytes = verdict->plan->packed_bytes(count);
      told = text_of("packed", found.times, bytes) + ", messages by " +
             text_of_messages(found.times, bytes);
      if (found.what == Measured::What::too_long) told = "all by mpi: too long to measure";
      if (found.what == Measured::What::different) {
        told = "all by mpi, which packs it otherwise than the type map says";
        verdict->packed_otherwise = true;
      }
      if (found.what != Measured::What::times) verdict->plan.reset();
    }
  } catch (const std::exception&) {
    if (last != nullptr) return last;
    verdict->plan.reset();  // what went wrong is MPI's to find out, or memory's
  }
  // Another thread may have been faster.
  const Verdict* current = last;
  if (!verdict_.compare_exchange_strong(current, verdict.get(), std::memory_order_acq_rel))
    return current;
  times_learnt.fetch_add(1, std::memory_order_release);
  verdict->last.reset(last);
  note_type(handle, told.c_str());
  return verdict.release();
}

const KnownType::Unpacking* KnownType::judge_unpacking(const Unpacking* last,
                                                       const Verdict& verdict, MPI_Datatype handle,
                                                       void* buffer, std::int64_t count,
                                                       const std::byte* packed) {
  try {
    auto unpacking = std::make_unique<Unpacking>();
    unpacking->times = verdict.forced ? times_of_forced() : timed_measurement([&] {
      return measure_unpacking(*verdict.plan, handle, packed, buffer, count,
                               last == nullptr ? kFirstMeasured : kLongestMeasured);
    });
    const Unpacking* current = last;
    if (!unpacking_.compare_exchange_strong(current, unpacking.get(), std::memory_order_acq_rel))
      return current;
    unpacking->last.reset(last);
    if (!verdict.forced)
      note_type(handle,
                text_of("unpacked", unpacking->times, verdict.plan->packed_bytes(count)).c_str());
    return unpacking.release();
  } catch (const std::exception&) {
    return last;
  }
}

bool KnownType::Verdict::computes_to_pay(std::int64_t bytes) const {
  const auto time = message_time(times, bytes);
  const bool out = times.ours_is_faster(bytes) && time && time->pays();
  last_message.store(2 * bytes + (out ? 1 : 0), std::memory_order_relaxed);
  return out;
}

Handling KnownType::to_send(MPI_Datatype handle, const void* buffer, std::int64_t count,
                            Request request) {
  // What MPI is to have is told before it is asked where the buffer is.
  if (const auto who = sends(count);
      who == Sends::by_mpi || (who == Sends::by_mpi_on_host && !is_there_device_memory()))
    return {};
  const auto found = find(handle, buffer, count, request);
  return found.by_engine_if([&] { return found.verdict->pays(found.bytes); });
}

void committed(MPI_Datatype handle) noexcept {
  if (settings().mode == Settings::Mode::off) {
    static const bool told [[maybe_unused]] = [] {
      if (settings().log != Settings::Log::none && is_first_rank())
        std::fprintf(stderr, "halocline: HALOCLINE_MPI is off: all is left to MPI\n");
      return true;
    }();
    return;
  }
  int is_initialized = 0;  // not so by MPI 4's sessions, whose types are left to MPI
  PMPI_Initialized(&is_initialized);
  if (is_over || is_initialized == 0 || known_types == nullptr) return;
  try {
    if (known_type(handle) != nullptr || dtype::is_predefined(handle)) return;
    watch_finalize();
    known_types->insert(handle, std::make_unique<KnownType>());
    times_learnt.fetch_add(1, std::memory_order_release);
  } catch (const std::exception&) {
    // MPI goes on handling it.
  }
}

}  // namespace halocline::interpose
