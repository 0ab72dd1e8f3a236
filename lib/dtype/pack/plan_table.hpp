// SPDX-License-Identifier: BSD-3-Clause
// Plans by handle, for callers that are given an MPI_Datatype at every call. Who can keep a
// PackPlan does so instead.
#pragma once

#include <mpi.h>

#include "dtype/pack/pack_plan.hpp"

namespace halocline::dtype {

/// The plan of a datatype, or why it has none: made at the first call for this handle, found at all
/// later ones. The result lives until the type is freed. Local; thread-safe as far as the MPI is;
/// O(1) but for the first call, which makes the plan and attaches an attribute to the type whose
/// delete callback drops it. Throws MpiError.
const Result<PackPlan>& cached_plan(MPI_Datatype handle);

}  // namespace halocline::dtype
