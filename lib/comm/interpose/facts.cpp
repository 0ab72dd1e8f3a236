// SPDX-License-Identifier: BSD-3-Clause
#include "comm/interpose/facts.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <new>
#include <utility>
#include <variant>
#include <vector>

#include "comm/interpose/calls.hpp"
#include "comm/interpose/comparison.hpp"
#include "comm/mpi/streamed_bytes.hpp"
#include "dtype/canonical/dataloop.hpp"
#include "dtype/datatype.hpp"
#include "dtype/pack/disjoint.hpp"
#include "dtype/pack/host/copy_range.hpp"
#include "dtype/type_tree.hpp"

namespace halocline::interpose {

namespace {

// Tells if packed bytes of a type must not be cut inside of its elements.
bool holds_long_elements(const dtype::TypeExpr& expression) {
  if (!comm::kStreams) return false;
  if (const auto* const named = std::get_if<dtype::Named>(&expression.node))
    return std::any_of(named->type->members.begin(), named->type->members.end(),
                       [](const auto& member) { return member.type->size > kLongestCutElement; });
  const auto inside = dtype::types_inside(expression);
  const dtype::TypeExpr* last = nullptr;  // members of a struct often share one type
  return std::any_of(inside.begin(), inside.end(), [&](const auto& one) {
    return std::exchange(last, one.get()) != one.get() && holds_long_elements(*one);
  });
}

constexpr std::size_t kMostKept = 1000, kMostNumbers = 1'000'000;

struct Table {
  std::mutex mutex;
  std::map<std::vector<std::int64_t>, std::shared_ptr<const TypeFacts>> all;
  std::size_t numbers = 0;
};
Table& table() {
  static auto* const value = new Table;  // never destroyed: in use until the process ends
  return *value;
}

}  // namespace

TypeFacts::TypeFacts(const dtype::TypeExpr& expression)
    : has_long_elements_(holds_long_elements(expression)) {
  auto form = dtype::canonicalize(dtype::translate(expression));
  const auto& bounds = form.bounds;
  is_one_run_ = bounds.size == 0 || (form.runs() <= 1 && bounds.size == bounds.extent);
  if (is_one_run_) {
    why_no_plan_ = "one run of memory";
    return;
  }
  plan_.emplace(std::move(form));
  dtype::host::prepare(*plan_);  // later, nobody could catch std::bad_alloc
  blocks_ = blocks_of(expression, *plan_);
}

bool TypeFacts::compare(MPI_Datatype handle, std::int64_t count) const noexcept {
  const NotedReading noted;
  bool equal = false, is_compared = false;
  try {
    const auto found = packs_as_mpi(*plan_, handle, count > 1);
    equal = found.value_or(false), is_compared = found.has_value();
  } catch (const std::bad_alloc&) {
    // MPI needs less memory.
  }
  comparison(count).store(equal ? Comparison::equal : Comparison::different,
                          std::memory_order_relaxed);
  if (!equal)
    note_type(handle, [&] {
      return std::string(is_compared
                             ? "all by mpi, which packs it otherwise than the type map says"
                             : "all by mpi: too long, or no memory, to compare it with MPI's");
    });
  return equal;
}

bool TypeFacts::is_free_of_order(std::int64_t count) const {
  auto known = disjoint_.load(std::memory_order_relaxed);
  if (known == kUnknown) {
    try {
      known = dtype::disjoint_instances(*plan_);
    } catch (const std::bad_alloc&) {
      known = 0;
    }
    disjoint_.store(known, std::memory_order_relaxed);
  }
  return count <= known;
}

bool TypeFacts::ask_rule(std::int64_t bytes, MessagePattern pattern) const {
  const bool out = engine_sends(blocks_, bytes, pattern);
  last_message(pattern).store(2 * bytes + (out ? 1 : 0), std::memory_order_relaxed);
  return out;
}

std::shared_ptr<const TypeFacts> facts_of(MPI_Datatype handle) {
  const auto decoded = dtype::decode(handle);
  if (const auto* const reason = std::get_if<UnsupportedDatatype>(&decoded))
    return std::make_shared<TypeFacts>(reason->what());
  const auto& expression = *std::get<dtype::TypeExprPtr>(decoded);
  auto key = dtype::to_numbers(expression, kMostNumbers / 2);
  auto& kept = table();
  if (key) {
    const std::lock_guard lock(kept.mutex);
    if (const auto known = kept.all.find(*key); known != kept.all.end()) return known->second;
  }
  auto facts = std::make_shared<const TypeFacts>(expression);
  const auto* const plan = facts->plan();
  if (!key) return facts;
  const auto numbers =
      key->size() + (plan != nullptr ? static_cast<std::size_t>(plan->metadata_bytes()) / 8 : 0);
  if (numbers > kMostNumbers / 2) return facts;
  const std::lock_guard lock(kept.mutex);
  if (kept.all.size() >= kMostKept || kept.numbers + numbers > kMostNumbers)
    kept.all.clear(), kept.numbers = 0;
  const auto [place, is_new] = kept.all.emplace(*std::move(key), std::move(facts));
  if (is_new) kept.numbers += numbers;
  return place->second;
}

}  // namespace halocline::interpose
