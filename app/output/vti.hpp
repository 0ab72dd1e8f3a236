// SPDX-License-Identifier: BSD-3-Clause
// Lays out the file of a snapshot: VTK's image data, with the fields as raw bytes behind the XML.
// results/pictures.md describes it for other programs.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "comm/halo/direction.hpp"

namespace halocline::app {

/// Describes a snapshot: the fields at one time.
struct Snapshot {
  std::string folder;
  std::int64_t step;
  double time;
  std::array<double, 3> spacing;   ///< distances of points along x, y, z
  std::vector<std::string> names;  ///< of the fields in the file
  std::vector<int> fields;         ///< their numbers in the domain

  /// Returns the file's name without its folder: fields-00000010.vti.
  std::string file() const;
};

/// Says what stands where in the file of a snapshot.
struct VtiLayout {
  std::string head;  ///< from byte 0 on: XML up to the first field
  std::string tail;  ///< end of the XML, behind the last field
  /// Holds the first byte of each field's values. A field has all points, x fastest, then y.
  std::vector<std::int64_t> data;
  std::int64_t field_bytes;
  std::int64_t bytes;  ///< of the whole file

  /// Returns the number of bytes of a field, which stands in front of its values.
  std::string length() const;
  static constexpr std::int64_t kLengthBytes = 8;
};

/// Lays out the fields of `global` points.
/// \param value_bytes 8 for double, 4 for float
VtiLayout lay_out(const Snapshot& snapshot, const comm::Int3& global, int value_bytes);

/// Returns the number in as few digits as it takes to read the same number again.
std::string shortest(double value);

/// Returns the step in 8 digits, or more if it needs more.
std::string digits_of_step(std::int64_t step);

}  // namespace halocline::app
