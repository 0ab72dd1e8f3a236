// SPDX-License-Identifier: BSD-3-Clause
// Finds plans by handle, for callers that get an MPI_Datatype at every call. A caller that can keep
// a PackPlan keeps it instead.
#pragma once

#include <mpi.h>

#include "dtype/pack/pack_plan.hpp"

namespace halocline::dtype {

/// Returns the plan of a datatype, or the reason why it has none.
///
/// The first call for a handle makes the plan and attaches an attribute to the type. The
/// attribute's delete callback drops the plan. Later calls find it in O(1). The result lives until
/// the type is freed. Local; thread-safe as far as the MPI is. Throws MpiError.
const Result<PackPlan>& cached_plan(MPI_Datatype handle);

}  // namespace halocline::dtype
