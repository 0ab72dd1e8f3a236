// SPDX-License-Identifier: BSD-3-Clause
// Sets fields to plane waves, and compares them with the exact waves that a stencil leaves of them.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "fields.hpp"
#include "physics.hpp"
#include "physics/heat/stencil.hpp"

namespace halocline::app {

/// Sets the owned points and the ghosts beyond open boundaries to the waves field_wave() of unit
/// amplitude, and other ghosts to NaN. Local.
template <class T>
void set_wave(const Domain& domain, const FieldSet<T>& fields);

/// Sets the ghosts beyond open boundaries to the wave after `substeps` substeps. Leaves other
/// ghosts alone. Local.
template <class T>
void set_outer_ghosts(const Domain& domain, const FieldSet<T>& fields, const StencilSpec& spec,
                      double diffusion_number, std::int64_t substeps);

/// Compares the owned points with the exact wave after `substeps` substeps. The tolerance is 1e-12
/// in double and 1e-5 in float, or two roundings per substep if that is more. Collective.
template <class T>
SolutionCheck check_wave(const Domain& domain, const FieldSet<T>& fields, const StencilSpec& spec,
                         double diffusion_number, std::int64_t substeps, MPI_Comm comm);

}  // namespace halocline::app
