// SPDX-License-Identifier: BSD-3-Clause
// The stencil kernel.
#pragma once

#include "fields.hpp"
#include "stencil.hpp"

namespace halocline::app {

/// One substep: out = in + diffusion_number * h^2 L in on all owned points of all arrays; reads the
/// ghosts of `in` up to the stencil's radius, writes no ghosts. Kernels run on the default host
/// execution space, or on the device where the fields are; complete on return. Every point is
/// computed by the same operations in the same order wherever it lies, so the bits do not depend on
/// decomposition or layout. Local; O(points x lines x radius).
template <class T>
void advance(const Domain& domain, const StencilSpec& spec, double diffusion_number,
             const FieldSet<T>& in, const FieldSet<T>& out);

}  // namespace halocline::app
