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
#include <variant>

#include "comm/interpose/calls.hpp"
#include "comm/interpose/requests.hpp"
#include "comm/interpose/settings.hpp"
#include "dtype/dataloop.hpp"
#include "dtype/datatype.hpp"
#include "dtype/type_tree.hpp"

namespace halocline::interpose {

dtype::HandleTable<KnownType>* const known_types = new dtype::HandleTable<KnownType>;

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
  return dtype::kind_of_memory(reinterpret_cast<const void*>(
      reinterpret_cast<std::uintptr_t>(buffer) + static_cast<std::uintptr_t>(first)));
}

std::string decision(const PackRates& rates) {
  char text[100];
  std::snprintf(text, sizeof text, "%s packs faster (%.3g to %.3g ns a byte)",
                rates.ours < rates.mpi ? "engine" : "mpi", std::min(rates.ours, rates.mpi) * 1e9,
                std::max(rates.ours, rates.mpi) * 1e9);
  return text;
}

}  // namespace

const KnownType::Verdict* KnownType::judge(MPI_Datatype handle, const void* buffer,
                                           std::int64_t count) {
  const bool forced = settings().mode == Settings::Mode::engine;
  const bool on_device = is_packed_by_device(memory_of(handle, buffer));
  if (!forced && !on_device && uses_.fetch_add(1, std::memory_order_relaxed) < kMpiUses)
    return nullptr;
  auto verdict = std::make_unique<Verdict>();
  std::string told = "all by mpi";
  try {
    verdict->plan = plan_with_gaps(handle);
    if (verdict->plan && forced) {
      verdict->packs = verdict->sends = true;
      told = "all by engine";
    } else if (verdict->plan && on_device) {
      told = "engine in memory of a device";
    } else if (verdict->plan) {
      if (!is_of(*verdict->plan, buffer)) return nullptr;  // the next use will tell
      const auto found = measure_packing(*verdict->plan, handle, buffer, count);
      verdict->rates = found.rates;
      verdict->packs = found.rates.ours < found.rates.mpi;
      verdict->sends = verdict->packs && model() != nullptr;
      told = decision(found.rates);
      if (found.what == Measured::What::inconclusive) return nullptr;
      if (found.what == Measured::What::too_long) told = "all by mpi: too long to measure";
      if (found.what == Measured::What::different) {
        told = "all by mpi, which packs it otherwise than the type map says";
        verdict->packed_otherwise = true;
      }
      if (found.what != Measured::What::rates) verdict->plan.reset();
    }
  } catch (const std::exception&) {
    verdict->plan.reset();  // what went wrong is MPI's to find out, or memory's
  }
  const Verdict* expected = nullptr;
  // Another thread may have been faster.
  if (!verdict_.compare_exchange_strong(expected, verdict.get(), std::memory_order_acq_rel))
    return expected;
  note_type(handle, told.c_str());
  return verdict.release();
}

Handling KnownType::to_send(MPI_Datatype handle, const void* buffer, std::int64_t count) {
  if (sends() != Sends::open && !is_there_device_memory()) return {};
  const auto by = to_pack(handle, buffer, count);
  if (by.plan == nullptr || is_packed_by_device(by.memory) ||
      settings().mode == Settings::Mode::engine)
    return by;
  const auto bytes = by.plan->packed_bytes(count);
  const auto last = last_message_.load(std::memory_order_relaxed);
  if (last / 2 == bytes) return last % 2 != 0 ? by : Handling{};
  const bool pays = message_pays(verdict_.load(std::memory_order_acquire)->rates, bytes);
  last_message_.store(2 * bytes + (pays ? 1 : 0), std::memory_order_relaxed);
  return pays ? by : Handling{};
}

void committed(MPI_Datatype handle) noexcept {
  if (settings().mode == Settings::Mode::off || is_over || known_types == nullptr) return;
  try {
    if (known_type(handle) != nullptr || dtype::is_predefined(handle)) return;
    watch_finalize();
    known_types->insert(handle, std::make_unique<KnownType>());
  } catch (const std::exception&) {
    // MPI goes on handling it.
  }
}

}  // namespace halocline::interpose
