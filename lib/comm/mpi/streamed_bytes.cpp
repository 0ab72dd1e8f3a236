// SPDX-License-Identifier: BSD-3-Clause
// Makes the datatype of packed bytes that MPI moves piece by piece.
#include "comm/mpi/streamed_bytes.hpp"

#include <array>

#include "support/contract.hpp"
#include "support/mpi_check.hpp"

namespace halocline::comm {

StreamedBytes::StreamedBytes(int bytes) : last_(bytes - 1) {
  HALOCLINE_EXPECT(bytes >= 2);
  const std::array lengths{bytes - 1, 1};
  const std::array<MPI_Aint, 2> displacements{0, last_ + kRoom};
  MPI_Datatype handle = MPI_DATATYPE_NULL;
  HALOCLINE_MPI(
      MPI_Type_create_hindexed(2, lengths.data(), displacements.data(), MPI_PACKED, &handle));
  type_ = dtype::Datatype(handle);
  HALOCLINE_MPI(MPI_Type_commit(&handle));
}

}  // namespace halocline::comm
