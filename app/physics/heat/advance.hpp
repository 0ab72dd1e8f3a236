// SPDX-License-Identifier: BSD-3-Clause
// Applies the stencil to fields, on the host or on a device.
#pragma once

#include <span>

#include "fields.hpp"
#include "physics/heat/stencil.hpp"

namespace halocline::app {

/// Computes one substep: out = in + diffusion_number * h^2 L in on all owned points of all arrays.
/// Reads the ghosts of `in` up to the stencil's radius and writes no ghosts. Kernels run on the
/// default host execution space, or on the device that holds the fields. The substep is complete on
/// return. Every point takes the same operations in the same order. So the bits do not depend on
/// decomposition, layout or parts. Local; O(points x lines x radius).
template <class T>
void advance(const Domain& domain, const StencilSpec& spec, double diffusion_number,
             const FieldSet<T>& in, const FieldSet<T>& out);

/// Starts a part of a substep: the points of `boxes` in one array of `in` and `out`. The boxes have
/// stored coordinates. On a device the part is under way on return; finish_advance() waits for it.
/// There, adjacent boxes in the list share a launch if their rows are equally long.
template <class T>
void start_advance(const Domain& domain, const StencilSpec& spec, double diffusion_number,
                   const FieldSet<T>& in, const FieldSet<T>& out, int array,
                   std::span<const comm::Box> boxes);

/// Waits for all parts that start_advance() has started on these fields. Local.
template <class T>
void finish_advance(const FieldSet<T>& out);

}  // namespace halocline::app
