// SPDX-License-Identifier: BSD-3-Clause
// Gives a second opinion on packing: MPI_Pack, and its known differences from the type map.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

#include "random_call.hpp"

namespace halocline::dtype::test {

/// Names what is peculiar about a call; the first trait that holds counts. In traits with "bounds"
/// in front, MPI and the type map disagree about lb or extent of a type.
enum class Trait {
  without_data,  ///< a type inside has no data, and sets bounds or gets others from MPI
  bounds_negative_stride,
  bounds_zero_stride,
  bounds_other,
  wide_number,      ///< a basic type of 16-byte numbers, which MPI_Pack is known to mistreat
  complex_number,   ///< a basic type of two numbers that MPI_Pack is known to mistreat, such as
                    ///< c_float_complex
  negative_stride,  ///< a loop with a negative stride, or several instances with a negative extent
  zero_stride,      ///< a loop with stride zero, or several instances with extent zero
  none
};
std::string_view to_string(Trait trait);
Trait trait_of(const Call& call);

/// Tells if the running MPI was ever seen to pack calls of this trait wrongly.
bool may_be_packed_wrongly(Trait trait);

/// Tells if MPI_Pack of the running MPI may crash. MPICH 5.0.2 divides by zero if a struct has a
/// member without data.
bool may_crash(const Call& call);

/// Calls MPI_Pack on buffers that show where each packed byte came from.
class VendorPack {
 public:
  VendorPack();

  /// Returns the displacement of every byte that MPI_Pack puts into the packed stream, in its
  /// order. Returns nothing if MPI's bounds are so far from ours that MPI_Pack would leave the
  /// buffers.
  std::vector<std::int64_t> displacements(const Call& call) const;

  /// Tells if the packed bytes differ from those of the type map.
  bool differs(const Call& call) const;

  /// Writes DIR/<MPI implementation>-<trait>.json: the call, the type map's answer, and this MPI's
  /// answer.
  void write_report(const Call& call, Trait trait, const std::filesystem::path& directory) const;

 private:
  // Byte i of plane k is byte k of the number i. Three planes can show any position below 2^24.
  static constexpr int kPlanes = 3;
  std::vector<unsigned char> planes_[kPlanes];
};

}  // namespace halocline::dtype::test
