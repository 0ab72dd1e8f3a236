// SPDX-License-Identifier: BSD-3-Clause
// Keeps what was measured of a type for all types that are made by the same calls of constructors.
//
// Best peer: [PEA21] learns each handle anew. Here a measurement holds for equal types, too. It
// may, since MPI goes by the constructors of a type, not only by its type map.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "comm/interpose/choice.hpp"
#include "dtype/pack/pack_plan.hpp"
#include "dtype/type_expr.hpp"

namespace halocline::interpose {

/// Holds what is known of one type in host memory.
struct Findings {
  std::optional<dtype::PackPlan> plan{};  ///< plan of the engine; none: MPI does everything
  bool compared = false;  ///< the plan packs what MPI packs; also true of one run of memory
  PackTimes packing{}, unpacking{};  ///< `up_to` is 0 if nothing was measured
  /// Holds the answer of disjoint(), kUnknown before its first call. Copies share it. If it is
  /// nullptr, each call computes the answer anew.
  std::shared_ptr<std::atomic<std::int64_t>> known_disjoint{};

  static constexpr std::int64_t kUnknown = -1;
  /// Returns a number of instances that certainly hold no byte twice; 0 without a plan. MPIs write
  /// more instances in orders of their own. The first call takes as long as disjoint_instances().
  /// Thread-safe.
  std::int64_t disjoint() const;
};

/// Returns findings with this plan, and nothing measured. Throws std::bad_alloc.
Findings findings_of(std::optional<dtype::PackPlan> plan);

/// Keeps what was found of an expression's type. Returns false if it is too large to be kept.
///
/// Old times stay if they hold for more bytes than new ones. A type without a plan never gets one.
///
/// Keeps up to 1000 expressions. They and their plans have up to a million numbers. When it is
/// full, it forgets expressions without findings. If that frees too little, it forgets all. An
/// expression and its plan with more than half a million numbers are too large.
///
/// O(arguments log kept). Thread-safe. Throws std::bad_alloc.
bool keep(const dtype::TypeExpr& expression, const Findings& findings);

/// Holds what is kept of an expression.
struct Met {
  std::optional<Findings> findings;
  int times;  ///< calls of meet() with it, this one included
};
/// Returns what is kept of an expression, and counts the call. The count is kept by the rules of
/// keep(). O(arguments log kept). Thread-safe. Throws std::bad_alloc.
Met meet(const dtype::TypeExpr& expression);

}  // namespace halocline::interpose
