// SPDX-License-Identifier: BSD-3-Clause
#include "comm/interpose/findings.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace halocline::interpose {

namespace {

constexpr std::size_t kMostKept = 1000, kMostNumbers = 1'000'000;

struct Kept {
  std::mutex mutex;
  std::map<std::vector<std::int64_t>, Findings> all;
  std::size_t numbers = 0;  // of expressions, and as many as plans have words
  std::atomic<bool> is_any{false};
};
Kept& the_kept() {
  static auto* const value = new Kept;  // in use until the very end
  return *value;
}

}  // namespace

void keep(const dtype::TypeExpr& expression, const Findings& findings) {
  auto numbers = dtype::to_numbers(expression);
  const auto size =
      numbers.size() +
      (findings.plan ? static_cast<std::size_t>(findings.plan->metadata_bytes()) / 8 : 0);
  if (size > kMostNumbers) return;
  auto& [mutex, all, all_numbers, is_any] = the_kept();
  const std::lock_guard lock(mutex);
  if (all.size() >= kMostKept || all_numbers + size > kMostNumbers) all.clear(), all_numbers = 0;
  const auto [at, is_new] = all.try_emplace(std::move(numbers), findings);
  if (is_new) {
    all_numbers += size;
  } else {
    auto& [key, known] = *at;
    if (findings.packing.up_to >= known.packing.up_to)
      known = {findings.plan, findings.packed_otherwise, findings.packing, known.unpacking};
    if (findings.unpacking.up_to >= known.unpacking.up_to) known.unpacking = findings.unpacking;
  }
  is_any = true;
}

std::optional<Findings> kept(const dtype::TypeExpr& expression) {
  const auto numbers = dtype::to_numbers(expression);
  auto& [mutex, all, all_numbers, is_any] = the_kept();
  const std::lock_guard lock(mutex);
  const auto found = all.find(numbers);
  return found == all.end() ? std::nullopt : std::optional(found->second);
}

bool is_anything_kept() noexcept {
  return the_kept().is_any;
}

}  // namespace halocline::interpose
