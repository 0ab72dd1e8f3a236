// SPDX-License-Identifier: BSD-3-Clause
// Draws a plane of one field as PNG.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string>

#include "fields.hpp"

namespace halocline::app {

/// Describes a plane of a field at one time.
struct Slice {
  std::string folder;
  std::string name;    ///< of the field
  int field;           ///< its number in the domain
  Axis axis;           ///< at right angles to the plane
  std::int64_t index;  ///< place of the plane on the axis; points
  std::int64_t step;
  double time;

  /// Returns the file's name without its folder: slice-lnrho-z-00000010.png.
  std::string file() const;
};

/// Draws the plane of the fields in host memory, at least 512 pixels long. The first two of x, y, z
/// that lie in the plane point to the right and upwards. Collective: only ranks that own points of
/// the plane send, and rank 0 alone needs memory for the plane.
/// \throws EnvironmentError on all ranks if the picture cannot be written; an older one stays then
template <class T>
void write_slice(const Slice& slice, const Domain& domain, const FieldSet<T>& fields,
                 MPI_Comm comm);

}  // namespace halocline::app
