// SPDX-License-Identifier: BSD-3-Clause
// Holds what is known of a datatype, for all handles that are made by the same calls of
// constructors. A program may make a type anew in each step.
//
// Best peer: [PEA21] makes a plan for each handle, at its commit. Here equal types share one plan.
#pragma once

#include <mpi.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "comm/interpose/rule.hpp"
#include "dtype/model/transfer_selector.hpp"
#include "dtype/pack/pack_plan.hpp"
#include "dtype/type_expr.hpp"

namespace halocline::interpose {

/// Is the longest basic element, in bytes, that the engine sends with Open MPI. Open MPI 4.1 keeps
/// a part of an element on its stack if packed bytes end inside of it. Longer elements do not fit
/// there. Its own sends never end inside of an element.
inline constexpr std::int64_t kLongestCutElement = 16;

/// Holds what is known of one type. Thread-safe.
class TypeFacts {
 public:
  /// Compiles the plan of a type with gaps. Throws std::bad_alloc.
  explicit TypeFacts(const dtype::TypeExpr& expression);
  /// Describes a type that MPI has to do, for a reason.
  explicit TypeFacts(std::string why_no_plan) : why_no_plan_(std::move(why_no_plan)) {}

  /// Returns the engine's plan; nullptr if MPI does everything.
  const dtype::PackPlan* plan() const { return plan_ ? &*plan_ : nullptr; }
  /// Says why there is no plan.
  const std::string& why_no_plan() const { return why_no_plan_; }
  /// Tells if the type is one run of memory. Such a type has no plan.
  bool is_one_run() const { return is_one_run_; }
  /// Describes the blocks. Precondition: there is a plan.
  const Blocks& blocks() const { return blocks_; }
  /// Tells if packed bytes of the type must not be cut inside of its elements: only MPI may send
  /// them.
  bool has_long_elements() const { return has_long_elements_; }

  /// Tells if the engine packs `count` instances as MPI does. Compares them at the first call for
  /// one and for several instances. Without memory to compare, the answer is no. Precondition:
  /// there is a plan.
  bool is_as_mpi(MPI_Datatype handle, std::int64_t count) const noexcept {
    const auto known = comparison(count).load(std::memory_order_relaxed);
    return known == Comparison::equal || (known == Comparison::unknown && compare(handle, count));
  }
  /// Tells if is_as_mpi() is known to be false for this count. O(1).
  bool differs_from_mpi(std::int64_t count) const {
    return comparison(count).load(std::memory_order_relaxed) == Comparison::different;
  }
  /// Tells if `count` instances hold no byte twice. If a byte stands twice, the result depends on
  /// the order of writes, and MPIs have orders of their own. The first call takes as long as
  /// dtype::disjoint_instances(). Precondition: there is a plan.
  bool is_free_of_order(std::int64_t count) const;
  /// Tells if the rule lets the engine send `bytes` packed bytes. Remembers the last answer.
  /// Precondition: there is a plan.
  bool is_sent_by_engine(std::int64_t bytes, MessagePattern pattern) const {
    const auto known = last_message(pattern).load(std::memory_order_relaxed);
    return known / 2 == bytes ? known % 2 != 0 : ask_rule(bytes, pattern);
  }

 private:
  enum class Comparison : unsigned char { unknown, equal, different };
  static constexpr std::int64_t kUnknown = -1;

  std::atomic<Comparison>& comparison(std::int64_t count) const {
    return comparisons_[count > 1 ? 1 : 0];
  }
  std::atomic<std::int64_t>& last_message(MessagePattern pattern) const {
    return last_messages_[static_cast<std::size_t>(pattern)];
  }
  bool compare(MPI_Datatype handle, std::int64_t count) const noexcept;
  bool ask_rule(std::int64_t bytes, MessagePattern pattern) const;

  std::optional<dtype::PackPlan> plan_;
  std::string why_no_plan_;
  Blocks blocks_{};
  bool is_one_run_ = false, has_long_elements_ = false;
  mutable std::array<std::atomic<Comparison>, 2> comparisons_{};  // of one and of several instances
  mutable std::atomic<std::int64_t> disjoint_{kUnknown};
  // For each pattern: twice the bytes of the last message, plus 1 if the engine sends it.
  mutable std::array<std::atomic<std::int64_t>, 2> last_messages_{-2, -2};
};

/// Returns what is known of a type, after reading it unless an equal type is kept.
///
/// Keeps up to 1000 types, whose constructors' arguments and plans have up to a million numbers in
/// all. When it is full, it forgets all of them. A type of more than half a million numbers is not
/// kept. O(arguments log kept), and reading. Thread-safe. Throws std::bad_alloc.
std::shared_ptr<const TypeFacts> facts_of(MPI_Datatype handle);

}  // namespace halocline::interpose
