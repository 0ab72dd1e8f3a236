// SPDX-License-Identifier: BSD-3-Clause
#include "comm/interpose/types.hpp"

#include <exception>
#include <memory>
#include <mutex>
#include <utility>
#include <variant>

#include "comm/interpose/calls.hpp"
#include "comm/interpose/requests.hpp"
#include "comm/interpose/settings.hpp"
#include "dtype/dataloop.hpp"
#include "dtype/datatype.hpp"
#include "dtype/pack/handle_table.hpp"
#include "dtype/type_tree.hpp"

namespace halocline::interpose {

namespace {

dtype::HandleTable<KnownType>& table() {
  static auto* const the_table = new dtype::HandleTable<KnownType>;
  return *the_table;
}

int at_finalize(MPI_Comm, int, void*, void*) {
  finish_abandoned();
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

}  // namespace

const KnownType::Learned& KnownType::learn(MPI_Datatype handle) {
  auto learned = std::make_unique<Learned>();
  try {
    auto tree = dtype::translate(handle);
    if (auto* known = std::get_if<dtype::TypeTree>(&tree)) {
      auto form = dtype::canonicalize(*known);
      const auto& bounds = form.bounds;
      const auto runs = form.runs();
      const bool contiguous = runs <= 1 && bounds.size == bounds.extent;
      learned->mean_run = runs == 0 ? 0 : bounds.size / runs;
      learned->plan.emplace(std::move(form));
      const bool forced = settings().mode == Settings::Mode::engine;
      learned->packs = !contiguous && (forced || learned->mean_run < kLongRun);
      learned->sends = learned->packs && forced;
    }
  } catch (const std::exception&) {
    learned->packs = learned->sends = false;  // what went wrong is MPI's to find out, or memory's
  }
  note_type(handle, learned->sends   ? "packing and messages by engine"
                    : learned->packs ? "packing by engine, messages by mpi"
                                     : "all by mpi");
  const Learned* expected = nullptr;
  // Another thread may have been faster; both have found the same.
  if (learned_.compare_exchange_strong(expected, learned.get(), std::memory_order_acq_rel))
    return *learned.release();
  return *expected;
}

void committed(MPI_Datatype handle) noexcept {
  if (settings().mode == Settings::Mode::off) return;
  try {
    if (known_type(handle) != nullptr || dtype::is_predefined(handle)) return;
    watch_finalize();
    table().insert(handle, std::make_unique<KnownType>());
  } catch (const std::exception&) {
    // MPI goes on handling it.
  }
}

KnownType* known_type(MPI_Datatype handle) noexcept {
  return table().find(handle);
}

}  // namespace halocline::interpose
