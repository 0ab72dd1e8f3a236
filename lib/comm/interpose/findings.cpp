// SPDX-License-Identifier: BSD-3-Clause
#include "comm/interpose/findings.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "dtype/pack/disjoint.hpp"

namespace halocline::interpose {

namespace {

constexpr std::size_t kMostKept = 1000, kMostNumbers = 1'000'000;

struct Kept {
  Met met{std::nullopt, 0};
  std::size_t size;  // numbers of the expression and of a plan
};
struct Table {
  std::mutex mutex;
  std::map<std::vector<std::int64_t>, Kept> all;
  std::size_t size = 0;

  // Returns the entry of an expression, old or new, with room for a plan of `plan` numbers.
  Kept& entry(std::vector<std::int64_t> numbers, std::size_t plan) {
    const auto needed = numbers.size() + plan;
    const auto known = all.find(numbers);
    if (const auto had = known == all.end() ? 0 : known->second.size;
        (known == all.end() && all.size() >= kMostKept) ||
        (needed > had && size + needed - had > kMostNumbers))
      make_room(needed);
    auto& out = all.try_emplace(std::move(numbers), Kept{.size = 0}).first->second;
    if (needed > out.size) size += needed - out.size, out.size = needed;
    return out;
  }
  void make_room(std::size_t needed) {
    constexpr double kMost = 0.75;  // with more, there would soon be no room again
    std::erase_if(all, [](const auto& one) { return !one.second.met.findings; });
    size = 0;
    for (const auto& [numbers, one] : all) size += one.size;
    if (static_cast<double>(all.size()) > kMost * kMostKept ||
        static_cast<double>(size + needed) > kMost * kMostNumbers)
      all.clear(), size = 0;
  }
};
Table& table() {
  static auto* const value = new Table;  // never destroyed: in use until the process ends
  return *value;
}

std::size_t size_of(const Findings& findings) {
  return findings.plan ? static_cast<std::size_t>(findings.plan->metadata_bytes()) / 8 : 0;
}

}  // namespace

Findings findings_of(std::optional<dtype::PackPlan> plan) {
  Findings out;
  out.plan = std::move(plan);
  out.known_disjoint = std::make_shared<std::atomic<std::int64_t>>(Findings::kUnknown);
  return out;
}

std::int64_t Findings::disjoint() const {
  if (!plan) return 0;
  auto value = known_disjoint ? known_disjoint->load(std::memory_order_relaxed) : kUnknown;
  if (value != kUnknown) return value;
  try {
    value = dtype::disjoint_instances(*plan);
  } catch (const std::bad_alloc&) {
    value = 0;
  }
  if (known_disjoint) known_disjoint->store(value, std::memory_order_relaxed);
  return value;
}

bool keep(const dtype::TypeExpr& expression, const Findings& findings) {
  auto numbers = dtype::to_numbers(expression, kMostNumbers);
  const auto plan = size_of(findings);
  if (!numbers || numbers->size() + plan > kMostNumbers / 2) return false;
  auto& all = table();
  const std::lock_guard lock(all.mutex);
  auto& known = all.entry(*std::move(numbers), plan).met.findings;
  if (!known || !findings.plan) {
    known = findings;
    return true;
  }
  if (!known->plan) return true;
  if (findings.packing.up_to >= known->packing.up_to) known->packing = findings.packing;
  if (findings.unpacking.up_to >= known->unpacking.up_to) known->unpacking = findings.unpacking;
  return true;
}

Met meet(const dtype::TypeExpr& expression) {
  auto numbers = dtype::to_numbers(expression, kMostNumbers / 2);
  if (!numbers) return {std::nullopt, 1};
  auto& all = table();
  const std::lock_guard lock(all.mutex);
  auto& met = all.entry(*std::move(numbers), 0).met;
  if (met.times < std::numeric_limits<int>::max()) ++met.times;
  return met;
}

}  // namespace halocline::interpose
