// SPDX-License-Identifier: BSD-3-Clause
// Makes MPI move packed bytes piece by piece.
//
// Best peer: [PEA21] sends packed bytes as one run of memory. MPI may have the kernel or the
// adapter move such a run as a whole. With Open MPI 4.1 on a node, this takes three times as long
// as pieces through shared memory. A message that is longer than its receive is then written beyond
// the receive buffer.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>

#include "dtype/datatype.hpp"

namespace halocline::comm {

/// Tells if packed bytes travel as StreamedBytes with this MPI.
#ifdef OPEN_MPI
inline constexpr bool kStreams = true;
#else
inline constexpr bool kStreams = false;
#endif

/// Is a datatype for packed bytes whose last byte lies kRoom bytes farther. They are not one run of
/// memory, so MPI copies them as it copies other derived types. It has MPI_PACKED's signature. A
/// short receive does not fill the last byte, so it needs no join().
class StreamedBytes {
 public:
  /// Is the memory that the type takes beyond its bytes, in bytes: a cache line.
  static constexpr std::int64_t kRoom = 64;

  /// Makes the type for `bytes` bytes, at least 2. Throws MpiError.
  explicit StreamedBytes(int bytes);

  /// Returns the type, still owned by this object. One instance sends packed bytes after part(), or
  /// receives packed bytes before join().
  MPI_Datatype type() const { return type_.get(); }
  std::int64_t bytes() const { return last_ + 1; }

  /// Moves the last byte of contiguous packed bytes to its place in the type.
  void part(std::byte* packed) const { packed[last_ + kRoom] = packed[last_]; }
  /// Moves the last byte back after all bytes have been received.
  void join(std::byte* packed) const { packed[last_] = packed[last_ + kRoom]; }

 private:
  std::int64_t last_;
  dtype::Datatype type_;
};

}  // namespace halocline::comm
