// SPDX-License-Identifier: BSD-3-Clause
// MPI_Pack and MPI_Unpack. MPI_Pack_size is MPI's own: what it tells is enough for packed bytes
// without a header, which are as many as the type's size says.
#include <mpi.h>

#include "comm/interpose/calls.hpp"
#include "comm/interpose/types.hpp"
#include "dtype/pack/host/host_packer.hpp"

using namespace halocline;
using interpose::Call;
using interpose::Path;

namespace {

// Whether `plan`'s bytes of `count` instances at `buffer` fit behind `position`, and nothing else
// is amiss: if not, MPI has to say so.
bool fits(const dtype::PackPlan& plan, const void* buffer, int count, const void* packed, int size,
          const int* position, MPI_Comm comm) {
  return count > 0 && interpose::is_of(plan, buffer) && packed != nullptr && position != nullptr &&
         *position >= 0 && plan.packed_bytes(count) <= std::int64_t{size} - *position &&
         comm != MPI_COMM_NULL;
}

}  // namespace

int MPI_Pack(const void* inbuf, int incount, MPI_Datatype datatype, void* outbuf, int outsize,
             int* position, MPI_Comm comm) {
  auto* const known = interpose::known_type(datatype);
  if (known == nullptr) return PMPI_Pack(inbuf, incount, datatype, outbuf, outsize, position, comm);
  const auto* const plan = known->to_pack(datatype);
  if (plan == nullptr || !fits(*plan, inbuf, incount, outbuf, outsize, position, comm))
    return noted(Call::pack, Path::mpi, datatype, incount, [&] {
      return PMPI_Pack(inbuf, incount, datatype, outbuf, outsize, position, comm);
    });
  return noted(Call::pack, Path::engine, datatype, incount, [&] {
    dtype::HostPacker().pack(*plan, inbuf, incount, static_cast<std::byte*>(outbuf) + *position);
    *position += static_cast<int>(plan->packed_bytes(incount));
    return MPI_SUCCESS;
  });
}

int MPI_Unpack(const void* inbuf, int insize, int* position, void* outbuf, int outcount,
               MPI_Datatype datatype, MPI_Comm comm) {
  auto* const known = interpose::known_type(datatype);
  if (known == nullptr)
    return PMPI_Unpack(inbuf, insize, position, outbuf, outcount, datatype, comm);
  const auto* const plan = known->to_pack(datatype);
  if (plan == nullptr || !fits(*plan, outbuf, outcount, inbuf, insize, position, comm))
    return noted(Call::unpack, Path::mpi, datatype, outcount, [&] {
      return PMPI_Unpack(inbuf, insize, position, outbuf, outcount, datatype, comm);
    });
  return noted(Call::unpack, Path::engine, datatype, outcount, [&] {
    dtype::HostPacker().unpack(*plan, static_cast<const std::byte*>(inbuf) + *position, outbuf,
                               outcount);
    *position += static_cast<int>(plan->packed_bytes(outcount));
    return MPI_SUCCESS;
  });
}
