// SPDX-License-Identifier: BSD-3-Clause
// Defines MPI_Pack and MPI_Unpack. MPI_Pack_size stays MPI's: its answer is enough, since the
// packed bytes have no header and are as long as the type's size.
#include <mpi.h>

#include "comm/interpose/calls.hpp"
#include "comm/interpose/comparison.hpp"
#include "comm/interpose/requests.hpp"
#include "comm/interpose/types.hpp"
#include "dtype/pack/host/host_packer.hpp"

using namespace halocline;
using interpose::Call;
using interpose::PackDecision;
using interpose::Path;

namespace {

// Returns the bytes behind `position` of `size` packed bytes. Returns -1 if an argument is wrong:
// MPI has to report that.
std::int64_t room_behind(const void* packed, int size, const int* position, MPI_Comm comm) {
  if (packed == nullptr || position == nullptr || *position < 0 || comm == MPI_COMM_NULL) return -1;
  return std::int64_t{size} - *position;
}

// Says who packs by `by`, between the data and `packed`. It is MPI if only a device could do it and
// the library has no device.
enum class Who { mpi, host, device };
Who who(const PackDecision& by, const void* packed) {
  if (by.plan == nullptr) return Who::mpi;
  if (!interpose::is_packed_by_device(by.memory) && !interpose::is_on_device(packed))
    return Who::host;
  return dtype::current_device() != nullptr ? Who::device : Who::mpi;
}

}  // namespace

int MPI_Pack(const void* inbuf, int incount, MPI_Datatype datatype, void* outbuf, int outsize,
             int* position, MPI_Comm comm) {
  const interpose::DeliveryAfterCall after;
  auto* const known = interpose::known_type(datatype);
  if (known == nullptr) return PMPI_Pack(inbuf, incount, datatype, outbuf, outsize, position, comm);
  const auto by = known->to_pack(datatype, inbuf, incount);
  const bool fits = by.plan != nullptr &&
                    by.plan->packed_bytes(incount) <= room_behind(outbuf, outsize, position, comm);
  auto* const packed = fits ? static_cast<std::byte*>(outbuf) + *position : nullptr;
  const auto packer = fits ? who(by, packed) : Who::mpi;
  auto path = packer == Who::mpi ? Path::mpi : Path::engine;
  return noted(Call::pack, path, {datatype, incount}, [&] {
    if (packer == Who::host) {
      dtype::HostPacker().pack(*by.plan, inbuf, incount, packed);
      if (interpose::verifies())
        interpose::verify(datatype, inbuf, incount, packed, by.plan->packed_bytes(incount));
    } else if (packer == Who::mpi || !interpose::pack_by_device(*by.plan, inbuf, incount, packed)) {
      path = Path::mpi;
      return PMPI_Pack(inbuf, incount, datatype, outbuf, outsize, position, comm);
    }
    *position += static_cast<int>(by.plan->packed_bytes(incount));
    return MPI_SUCCESS;
  });
}

int MPI_Unpack(const void* inbuf, int insize, int* position, void* outbuf, int outcount,
               MPI_Datatype datatype, MPI_Comm comm) {
  const interpose::DeliveryAfterCall after;
  auto* const known = interpose::known_type(datatype);
  if (known == nullptr)
    return PMPI_Unpack(inbuf, insize, position, outbuf, outcount, datatype, comm);
  const auto room = room_behind(inbuf, insize, position, comm);
  const auto* const packed = room < 0 ? nullptr : static_cast<const std::byte*>(inbuf) + *position;
  const auto by = known->to_unpack(datatype, outbuf, outcount, packed, room);
  const auto unpacker = who(by, packed);
  auto path = unpacker == Who::mpi ? Path::mpi : Path::engine;
  return noted(Call::unpack, path, {datatype, outcount}, [&] {
    if (unpacker == Who::host) {
      dtype::HostPacker().unpack(*by.plan, packed, outbuf, outcount);
      if (interpose::verifies())
        interpose::verify(datatype, outbuf, outcount, packed, by.plan->packed_bytes(outcount));
    } else if (unpacker == Who::mpi ||
               !interpose::unpack_by_device(*by.plan, packed, outbuf, outcount)) {
      path = Path::mpi;
      return PMPI_Unpack(inbuf, insize, position, outbuf, outcount, datatype, comm);
    }
    *position += static_cast<int>(by.plan->packed_bytes(outcount));
    return MPI_SUCCESS;
  });
}
