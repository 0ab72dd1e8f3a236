// SPDX-License-Identifier: BSD-3-Clause
// Packed bytes that MPI moves piece by piece.
//
// Best peer: [PEA21] sends packed bytes as one run of memory, which MPI may have the kernel or the
// adapter move as a whole: for Open MPI 4.1 on a node that takes three times as long as pieces
// through shared memory, and a message that is longer than its receive is written beyond it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "dtype/datatype.hpp"

namespace halocline::comm {

/// The datatype of some packed bytes of which the last one lies apart: not one run of memory, so
/// that MPI copies them as it copies other derived types. It has MPI_PACKED's signature.
class StreamedBytes {
 public:
  /// What they take in memory beyond their number.
  static constexpr std::int64_t kRoom = 64;

  /// Of `bytes`, at least 2. Throws MpiError.
  explicit StreamedBytes(int bytes);

  /// For one instance at packed bytes that part() was called for, or to receive them; owned.
  MPI_Datatype type() const { return type_.get(); }

  /// Puts the last byte of packed bytes that follow each other to where the type has it.
  void part(std::byte* packed) const { packed[last_ + kRoom] = packed[last_]; }
  /// After a receive of all of them: puts it back.
  void join(std::byte* packed) const { packed[last_] = packed[last_ + kRoom]; }

 private:
  std::int64_t last_;
  dtype::Datatype type_;
};

}  // namespace halocline::comm
