// SPDX-License-Identifier: BSD-3-Clause
// What was found out about a type stays known of all that the same calls of constructors make.
//
// Best peer: [PEA21] learns each handle anew; here what was measured of one is true of the next,
// since MPI handles both alike: it goes by the constructors, not by the type map alone.
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

/// Of one type, in the host's memory.
struct Findings {
  std::optional<dtype::PackPlan> plan{};  ///< of the engine; none: MPI does it all
  bool compared = false;  ///< the plan's packs with MPI's; also true of one run of memory
  PackTimes packing{}, unpacking{};  ///< up_to is 0 of what was not measured
  /// Holds the answer of disjoint(), kUnknown before its first call. Copies share it; unset, each
  /// call computes it anew.
  std::shared_ptr<std::atomic<std::int64_t>> known_disjoint{};

  static constexpr std::int64_t kUnknown = -1;
  /// Returns how many instances certainly hold no byte twice; MPIs write more of them in orders of
  /// their own. 0 without a plan. The first call takes as long as disjoint_instances().
  /// Thread-safe.
  std::int64_t disjoint() const;
};

/// Returns findings of a plan that nothing was found of. Throws std::bad_alloc.
Findings findings_of(std::optional<dtype::PackPlan> plan);

/// Keeps what was found of an expression's type: of times those that are good for more bytes, and
/// that it has no plan for ever. Of up to 1000 expressions, with up to a million numbers in all and
/// in their plans; then it forgets those that were only met or, if that does not help, all.
/// False if these are half a million or more: then it is not kept. O(arguments log kept);
/// thread-safe. Throws std::bad_alloc.
bool keep(const dtype::TypeExpr& expression, const Findings& findings);

/// What is kept of an expression.
struct Met {
  std::optional<Findings> findings;
  int times;  ///< that it was met, this one included
};
/// Likewise; counts, and so keeps that, too.
Met meet(const dtype::TypeExpr& expression);

}  // namespace halocline::interpose
