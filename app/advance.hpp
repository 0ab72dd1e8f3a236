// SPDX-License-Identifier: BSD-3-Clause
// The stencil kernel.
#pragma once

#include <span>

#include "fields.hpp"
#include "stencil.hpp"

namespace halocline::app {

/// One substep: out = in + diffusion_number * h^2 L in on all owned points of all arrays; reads the
/// ghosts of `in` up to the stencil's radius, writes no ghosts. Kernels run on the default host
/// execution space, or on the device where the fields are; complete on return. Every point is
/// computed by the same operations in the same order wherever it lies, so the bits do not depend on
/// decomposition, layout or parts. Local; O(points x lines x radius).
template <class T>
void advance(const Domain& domain, const StencilSpec& spec, double diffusion_number,
             const FieldSet<T>& in, const FieldSet<T>& out);

/// Likewise part of it: the points of `boxes` (stored coordinates) of one array. On a device it is
/// under way on return. Boxes whose rows are equally long share a launch if they stand together.
template <class T>
void start_advance(const Domain& domain, const StencilSpec& spec, double diffusion_number,
                   const FieldSet<T>& in, const FieldSet<T>& out, int array,
                   std::span<const comm::Box> boxes);

/// Waits for what start_advance() has started on these fields. Local.
template <class T>
void finish_advance(const FieldSet<T>& out);

}  // namespace halocline::app
