// SPDX-License-Identifier: BSD-3-Clause
// Moves fields between the memory of all ranks and a file, by collective MPI-IO.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <vector>

#include "collective_file.hpp"
#include "fields.hpp"

namespace halocline::app {

/// Bounds the bytes of a field that a rank packs at a time.
inline constexpr std::int64_t kMostPackedBytes = std::int64_t{16} << 20;

/// Moves the owned points of fields in host memory. A field in a file has all points of the domain,
/// x fastest, then y. Each rank sees its box of them through a file view, and packs its box by our
/// own plans. All members are collective.
template <class T>
class FieldTransfer {
 public:
  /// Keeps a reference to the domain.
  /// \throws ConfigError on all ranks if the domain is too large for MPI
  FieldTransfer(const Domain& domain, MPI_Comm comm,
                std::int64_t most_packed_bytes = kMostPackedBytes);

  /// Writes field number `field` from byte `at` of the file on.
  void write(const FieldSet<T>& fields, int field, CollectiveFile& file, std::int64_t at);
  /// Reads field number `field` from byte `at` of the file on.
  void read(const FieldSet<T>& fields, int field, CollectiveFile& file, std::int64_t at);

 private:
  const Domain& domain_;
  std::vector<comm::Box> boxes_;  // parts of the owned box, in the order of the file
  std::int64_t rounds_;           // largest number of parts of any rank
  dtype::Datatype view_;
  std::vector<T> packed_;
};

}  // namespace halocline::app
