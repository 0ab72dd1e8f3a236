// SPDX-License-Identifier: BSD-3-Clause
#include "comm/interpose/types.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdio>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <variant>

#include "comm/interpose/calls.hpp"
#include "comm/interpose/requests.hpp"
#include "comm/interpose/settings.hpp"
#include "dtype/canonical/dataloop.hpp"
#include "dtype/datatype.hpp"
#include "dtype/type_tree.hpp"

namespace halocline::interpose {

dtype::HandleTable<KnownType>* const known_types = new dtype::HandleTable<KnownType>;
std::atomic<std::uint64_t> times_learnt{0};

namespace {

// After this, attributes of types cannot be set any more.
std::atomic<bool> is_over{false};

int at_finalize(MPI_Comm, int, void*, void*) {
  is_over = true;
  known_types->close();  // from here on calls go to MPI at once
  finish_abandoned();
  release_devices();
  release_stock();
  if (settings().log != Settings::Log::none) print_summary();
  return MPI_SUCCESS;
}

// Prepares for MPI_Finalize, whose first step is to delete the attributes of MPI_COMM_SELF.
void watch_finalize() {
  static std::once_flag once;
  std::call_once(once, [] {
    int keyval = MPI_KEYVAL_INVALID;
    if (PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_finalize, &keyval, nullptr) !=
        MPI_SUCCESS)
      return;
    PMPI_Comm_set_attr(MPI_COMM_SELF, keyval, nullptr);
    PMPI_Comm_free_keyval(&keyval);
    if (is_model_missing()) model();  // prints a warning
  });
}

// Returns the engine's plan for a type; nullopt for one run of memory and for types without data.
std::optional<dtype::PackPlan> plan_with_gaps(const dtype::TypeExpr& expression) {
  auto form = dtype::canonicalize(dtype::translate(expression));
  const auto& bounds = form.bounds;
  const auto runs = form.runs();
  if (bounds.size == 0 || (runs <= 1 && bounds.size == bounds.extent)) return std::nullopt;
  return dtype::PackPlan(std::move(form));
}

std::string text_of_choice(bool is_ours, double ours, double mpi) {
  char text[96];
  std::snprintf(text, sizeof text, "by %s (engine %.3g us, mpi %.3g us%s)",
                is_ours ? "engine" : "mpi", ours * 1e6, mpi * 1e6,
                !is_ours && ours < mpi ? ": too little a gain" : "");
  return text;
}

// Tells who packs or unpacks `bytes` bytes, and why.
std::string text_of(const char* what, const PackTimes& times, std::int64_t bytes) {
  return std::to_string(bytes) + " bytes " + what + ' ' +
         text_of_choice(times.ours_is_faster(bytes), times.ours.of(bytes), times.mpi.of(bytes));
}

std::string text_of_messages(const PackTimes& packing, std::int64_t bytes) {
  if (message_times() == nullptr) return "messages by mpi: there is no model of them";
  if (!message_may_pay(bytes))
    return "messages by mpi: " +
           (bytes > kLongestMessage
                ? "too long"
                : "not measured beyond " + dtype::text_of_bytes(message_times()->reach(1)));
  const auto way = [&](const char* name, Traffic traffic) {
    const auto time = message_time(*message_times(), packing, bytes, traffic);
    return name + text_of_choice(packing.ours_is_faster(bytes) && time.pays(), time.ours, time.mpi);
  };
  return "messages, by the model, " + way("one way ", Traffic::one_way) + ", " +
         way("both ways ", Traffic::both_ways);
}

// Tells why MPI is to do everything. Empty if the engine may do something.
std::string reason_of(Measured::What what) {
  switch (what) {
    case Measured::What::different:
      return "all by mpi, which packs it otherwise than the type map says";
    case Measured::What::too_long:
      return "all by mpi: too long to measure";
    case Measured::What::too_far:
      return "all by mpi: its instances reach too far to compare";
    default:
      return "";
  }
}

// Returns the number of arguments that a constructor was given. O(1).
std::int64_t arguments_of(MPI_Datatype handle) {
  int combiner = MPI_COMBINER_NAMED;
#if MPI_VERSION >= 4
  // For types of constructors with large counts, the call that counts by ints is an error.
  MPI_Count integers = 0, addresses = 0, counts = 0, types = 0;
  PMPI_Type_get_envelope_c(handle, &integers, &addresses, &counts, &types, &combiner);
  return integers + addresses + counts + types;
#else
  int integers = 0, addresses = 0, types = 0;
  PMPI_Type_get_envelope(handle, &integers, &addresses, &types, &combiner);
  return std::int64_t{integers} + addresses + types;
#endif
}

// Tells if packed bytes of a type must not be cut inside of its elements.
bool holds_long_elements(const dtype::TypeExpr& expression) {
  if (!kStreams) return false;
  if (const auto* const named = std::get_if<dtype::Named>(&expression.node))
    return std::any_of(named->type->members.begin(), named->type->members.end(),
                       [](const auto& member) { return member.type->size > kLongestCutElement; });
  const auto inside = dtype::types_inside(expression);
  const dtype::TypeExpr* last = nullptr;  // members of a struct often share one type
  return std::any_of(inside.begin(), inside.end(), [&](const auto& one) {
    return std::exchange(last, one.get()) != one.get() && holds_long_elements(*one);
  });
}

PackTimes times_of_forced() {
  return {{0, 0}, {1, 1}, std::numeric_limits<std::int64_t>::max()};
}

}  // namespace

KnownType::KnownType(MPI_Datatype handle) {
  constexpr int kBits = 10;
  static std::array<std::atomic<std::uint32_t>, std::size_t{1} << kBits> uses{};
  MPI_Count size = 0;
  MPI_Aint lb = 0, distance = 0, first = 0, extent = 0;
  PMPI_Type_size_x(handle, &size);
  PMPI_Type_get_extent(handle, &lb, &distance);
  PMPI_Type_get_true_extent(handle, &first, &extent);
  size_ = size, true_lb_ = first;
  constexpr std::int64_t kCompared = 2;
  bytes_before_measuring_ = kCompared * (std::max(std::abs(distance), extent) / kReachOfByte);
  const auto hash = (static_cast<std::uint64_t>(size) + 0x9E3779B97F4A7C15u) *
                    (2 * static_cast<std::uint64_t>(extent) + 0xD6E8FEB86659FD93u);
  alike_uses_ = &uses.at((hash ^ hash >> 32) * 0x9E3779B97F4A7C15u >> (64 - kBits));
}

bool KnownType::is_due(int use, std::int64_t count) const {
  const auto bytes = size_ * count * use;
  return (use > kMostMpiUses || (use > kMpiUses && bytes >= kMpiBytes)) &&
         bytes >= bytes_before_measuring_;
}

bool KnownType::seeks_findings(int use, MPI_Datatype handle, std::int64_t count) {
  constexpr int kUses = 3;
  // From here on, packing takes longer than a look-up: bytes in all, and for each argument.
  constexpr std::int64_t kBytes = 65536, kBytesOfNumber = 256;
  const auto alike = alike_uses_->load(std::memory_order_relaxed);  // threads may lose some uses
  alike_uses_->store(alike + 1, std::memory_order_relaxed);
  const auto bytes = size_ * count * use;
  if (bytes < bytes_before_measuring_) return false;
  if (alike < kMpiUses || (use < kUses && bytes < kBytes) || has_sought_) return false;
  constexpr std::int64_t kShort = 20;
  const auto arguments = arguments_of(handle);
  return (arguments <= kShort || bytes >= kBytesOfNumber * arguments) &&
         !has_sought_.exchange(true);
}

const KnownType::Verdict* KnownType::judge(const Verdict* last, MPI_Datatype handle,
                                           const void* buffer, std::int64_t count, Access access) {
  const bool forced = settings().mode == Settings::Mode::engine;
  const bool on_device = is_packed_by_device(kind_at(buffer, true_lb_));
  if (on_device && dtype::current_device() == nullptr) return last;  // MPI does it
  constexpr int kOften = 3;
  const bool was_timed = last != nullptr && last->found.packing.up_to > 0;
  bool may_measure = true;
  if (!forced && !on_device) {
    const auto use = uses_.fetch_add(1, std::memory_order_relaxed) + 1;
    may_measure = was_timed || count == 0 || is_due(use, count);
    if (!may_measure && !seeks_findings(use, handle, count)) return last;
  }
  // After a look-up in vain, the next one waits for more uses of types of this size and extent.
  const auto is_sought_later = [&] {
    if (!may_measure) *alike_uses_ = 0;
    return last;
  };
  const NotedMeasurement noted;
  std::unique_ptr<Verdict> verdict(new (std::nothrow) Verdict);
  if (verdict == nullptr) return last;
  auto& found = verdict->found;
  auto disposition = TypeDisposition::left;
  std::string why = "all by mpi: one run of memory";
  try {
    const auto expression = dtype::decode_value(handle);
    const auto* const known = std::get_if<dtype::TypeExpr>(&expression);
    const auto bytes_of = [&] { return found.plan ? found.plan->packed_bytes(count) : 0; };
    if (known != nullptr) verdict->has_long_elements = holds_long_elements(*known);
    if (known == nullptr) {
      if (!may_measure) return is_sought_later();
      why = "all by mpi: " + std::string(std::get<UnsupportedDatatype>(expression).what());
    } else if (forced || on_device) {
      found = findings_of(plan_with_gaps(*known));
      found.compared = !found.plan;
      verdict->forced = forced;
      if (forced) found.packing = times_of_forced();
      if (found.plan && !forced) {
        const auto what = measure_packing(*found.plan, handle, nullptr, 0, 0).what;
        found.compared = what == Measured::What::alike;
        if (what == Measured::What::different) {
          disposition = TypeDisposition::measured;
          why = reason_of(what);
          found.plan.reset();
        }
      }
      if (found.plan) {
        disposition = TypeDisposition::taken;
        why = forced ? "all by engine" : "engine in memory of a device";
      }
    } else if (const auto met = meet(*known);
               met.findings && (met.findings->compared || !met.findings->plan) &&
               (found = *met.findings, !found.plan || bytes_of() <= found.packing.up_to)) {
      disposition = TypeDisposition::equal;
      why = found.plan ? "" : "all by mpi, as of an equal type";
      if (found.plan && !is_of(*found.plan, buffer)) return is_sought_later();
      if (found.unpacking.up_to > 0)
        learn_unpacking(nullptr, found.unpacking);
      else if (met.times > 2 * kOften)
        unpackings_ = kMpiUnpackings;
    } else if (!may_measure &&
               (met.times < kOften ||
                (met.findings && !std::has_single_bit(static_cast<unsigned>(met.times))))) {
      return is_sought_later();
    } else {
      found = findings_of(plan_with_gaps(*known));
      found.compared = !found.plan;
      if (found.plan) {
        // MPI_BOTTOM is no memory to such a type. Another use will decide.
        if (access == Access::reads && count > 0 && !is_of(*found.plan, buffer))
          return is_sought_later();
        const auto measured =
            measure_packing(*found.plan, handle, access == Access::reads ? buffer : nullptr, count,
                            was_timed ? kLongestMeasured : kFirstMeasured);
        found.packing = measured.times;
        found.compared =
            measured.what == Measured::What::times || measured.what == Measured::What::alike;
        disposition = found.compared || measured.what == Measured::What::different
                          ? TypeDisposition::measured
                          : TypeDisposition::left;
        why = reason_of(measured.what);
        if (!found.compared) found.plan.reset();
      }
      if (!keep(*known, found)) *alike_uses_ = 0;  // the next look-up would be in vain, too
    }
  } catch (const std::exception&) {
    if (last != nullptr || !may_measure) return is_sought_later();
    found.plan.reset();
    why = "all by mpi: no memory";  // MPI has to report any other error
  }
  // Another thread may have been faster: then its verdict counts.
  const Verdict* current = last;
  if (!verdict_.compare_exchange_strong(current, verdict.get(), std::memory_order_acq_rel))
    return current;
  times_learnt.fetch_add(1, std::memory_order_release);
  verdict->last.reset(last);
  if (last == nullptr) note_disposition(disposition);
  if (disposition == TypeDisposition::equal && settings().log < Settings::Log::calls)
    return verdict.release();
  note_type(handle, [&]() -> std::string {
    if (!why.empty()) return why;
    if (found.packing.up_to == 0) return "for now, packed together with other types alone";
    const auto bytes = found.plan->packed_bytes(count);
    return text_of("packed", found.packing, bytes) + ", " + text_of_messages(found.packing, bytes) +
           (disposition == TypeDisposition::equal ? ", as measured of an equal type" : "");
  });
  return verdict.release();
}

const dtype::PackPlan* KnownType::compared_plan(MPI_Datatype handle, const void* buffer,
                                                std::int64_t count, Access access) {
  const auto* verdict = verdict_.load(std::memory_order_acquire);
  const auto is_enough = [&] {
    return verdict != nullptr &&
           (verdict->forced || !verdict->found.plan || verdict->found.compared);
  };
  const bool on_device = is_packed_by_device(kind_at(buffer, true_lb_));
  if (!is_enough() && !on_device) verdict = judge(verdict, handle, buffer, 0, Access::writes);
  const bool is_in_order =
      !on_device && verdict != nullptr && verdict->found.plan && !verdict->is_free_of_order(count);
  const bool is_cut = access != Access::writes && has_long_elements();
  return is_in_order || is_cut ? nullptr : plan();
}

const KnownType::Unpacking* KnownType::learn_unpacking(const Unpacking* last,
                                                       const PackTimes& times) {
  auto unpacking = std::make_unique<Unpacking>();
  unpacking->times = times;
  const Unpacking* current = last;
  if (!unpacking_.compare_exchange_strong(current, unpacking.get(), std::memory_order_acq_rel))
    return current;
  unpacking->last.reset(last);
  return unpacking.release();
}

const KnownType::Unpacking* KnownType::judge_unpacking(const Unpacking* last,
                                                       const Verdict& verdict, MPI_Datatype handle,
                                                       void* buffer, std::int64_t count,
                                                       const std::byte* packed) {
  if (last == nullptr && !verdict.forced &&
      unpackings_.fetch_add(1, std::memory_order_relaxed) < kMpiUnpackings)
    return nullptr;
  if (!verdict.is_free_of_order(count)) return last;
  const NotedMeasurement noted;
  try {
    if (verdict.forced) return learn_unpacking(last, times_of_forced());
    auto found = verdict.found;
    found.unpacking = measure_unpacking(*found.plan, handle, packed, buffer, count,
                                        last == nullptr ? kFirstMeasured : kLongestMeasured);
    if (const auto expression = dtype::decode_value(handle);
        const auto* const known = std::get_if<dtype::TypeExpr>(&expression))
      keep(*known, found);
    note_type(handle, [&] {
      return text_of("unpacked", found.unpacking, found.plan->packed_bytes(count));
    });
    return learn_unpacking(last, found.unpacking);
  } catch (const std::exception&) {
    return last;
  }
}

bool KnownType::Verdict::computes_to_pay(std::int64_t bytes, Traffic traffic) const {
  const bool out = found.packing.ours_is_faster(bytes) && message_may_pay(bytes) &&
                   message_time(*message_times(), found.packing, bytes, traffic).pays();
  last_message(traffic).store(2 * bytes + (out ? 1 : 0), std::memory_order_relaxed);
  return out;
}

PackDecision KnownType::to_send(MPI_Datatype handle, const void* buffer, std::int64_t count,
                                Access access, Traffic traffic, Request request) {
  // sends() comes first: it is faster than finding out where the buffer is.
  if (const auto who = sends(count, traffic);
      who == Sends::by_mpi || (who == Sends::by_mpi_on_host && !is_there_device_memory()))
    return {};
  const auto found = find(handle, buffer, count, access, request);
  if (found.verdict == nullptr) return {};
  if (found.verdict->has_long_elements && access != Access::writes) return {};
  return by_engine_if(found, [&] {
    return found.verdict->pays(found.bytes, traffic) && found.verdict->is_free_of_order(count);
  });
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
  if (is_over || known_types == nullptr) return;
  int is_initialized = 0;  // false with sessions of MPI 4, whose types are left to MPI
  PMPI_Initialized(&is_initialized);
  if (is_initialized == 0) return;
  try {
    if (known_type(handle) != nullptr || dtype::is_predefined(handle)) return;
    watch_finalize();
    known_types->insert(handle, std::make_unique<KnownType>(handle));
    note_disposition(TypeDisposition::committed);
    times_learnt.fetch_add(1, std::memory_order_release);
  } catch (const std::exception&) {
    // MPI goes on with this type.
  }
}

}  // namespace halocline::interpose
