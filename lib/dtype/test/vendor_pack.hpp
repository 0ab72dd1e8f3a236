// SPDX-License-Identifier: BSD-3-Clause
// The second opinion on packing: MPI_Pack, and where it is known to differ from the type map.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

#include "random_call.hpp"

namespace halocline::dtype::test {

/// What is peculiar about a call, the first that holds. Those with "bounds" in front: MPI and the
/// type map disagree about lb or extent of the type or of one inside.
enum class Trait {
  without_data,  ///< a type inside has no data, and it sets its bounds or MPI's bounds disagree
  bounds_negative_stride,
  bounds_zero_stride,
  bounds_other,
  wide_number,      ///< a basic type of 16-byte numbers, where MPI_Pack is known to mistreat those
  complex_number,   ///< the same with a basic type of two numbers, such as c_float_complex
  negative_stride,  ///< a loop with a negative stride, or several instances with a negative extent
  zero_stride,      ///< the same with zero
  none
};
std::string_view to_string(Trait trait);
Trait trait_of(const Call& call);

/// Whether the MPI that runs was ever seen to pack calls of this trait wrongly.
bool may_be_packed_wrongly(Trait trait);

/// Whether its MPI_Pack may crash: MPICH 5.0.2 divides by zero where a struct has a member without
/// data.
bool may_crash(const Call& call);

/// Calls MPI_Pack on buffers that tell where each packed byte came from.
class VendorPack {
 public:
  VendorPack();

  /// The displacement of every byte that MPI_Pack puts into the packed stream, in its order;
  /// nothing where MPI's bounds are so far from ours that it would leave the buffers.
  std::vector<std::int64_t> displacements(const Call& call) const;

  /// True if the packed bytes are not those of the type map.
  bool differs(const Call& call) const;

  /// Writes DIR/<MPI implementation>-<trait>.json: the call, what the type map says, what this MPI
  /// does.
  void write_report(const Call& call, Trait trait, const std::filesystem::path& directory) const;

 private:
  // Byte i of plane k is byte k of the number i; three planes tell any position below 2^24.
  static constexpr int kPlanes = 3;
  std::vector<unsigned char> planes_[kPlanes];
};

}  // namespace halocline::dtype::test
