// SPDX-License-Identifier: BSD-3-Clause
// Defines MPI_Pack and MPI_Unpack. MPI_Pack_size stays MPI's: its answer is enough, since the
// packed bytes have no header and are as long as the type's size.
#include "comm/interpose/calls.hpp"
#include "comm/interpose/comparison.hpp"
#include "comm/interpose/languages.hpp"
#include "comm/interpose/types.hpp"
#include "dtype/pack/host/host_packer.hpp"

namespace halocline::interpose {
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
  if (!is_packed_by_device(by.memory) && !is_on_device(packed)) return Who::host;
  return dtype::current_device() != nullptr ? Who::device : Who::mpi;
}

// Always inline, or the call for Fortran would copy all arguments once more.
[[gnu::always_inline]] inline int pack(const auto& mpi, auto given, auto given_count,
                                       auto given_type, auto given_out, auto given_size,
                                       auto given_position, auto given_comm) {
  const DeliveryAfterCall after;
  const auto by_mpi = [&] {
    return mpi(given, given_count, given_type, given_out, given_size, given_position, given_comm);
  };
  const auto type = in_c(given_type);
  auto* const known = committed_type(type);
  if (known == nullptr || is_special(given) || is_special(given_out)) return by_mpi();
  const void* const buffer = in_c(given);
  const auto count = in_c(given_count);
  auto* const position = in_c(given_position);
  const auto by = known->to_pack(type, buffer, count);
  const auto room = room_behind(in_c(given_out), in_c(given_size), position, in_c(given_comm));
  const bool fits = by.plan != nullptr && by.plan->packed_bytes(count) <= room;
  auto* const packed = fits ? static_cast<std::byte*>(in_c(given_out)) + *position : nullptr;
  const auto packer = fits ? who(by, packed) : Who::mpi;
  auto path = packer == Who::mpi ? Path::mpi : Path::engine;
  return noted(MpiCall::pack, path, {type, count}, [&] {
    if (packer == Who::host) {
      dtype::HostPacker().pack(*by.plan, buffer, count, packed);
      if (verifies()) verify(type, buffer, count, packed, by.plan->packed_bytes(count));
    } else if (packer == Who::mpi || !pack_by_device(*by.plan, buffer, count, packed)) {
      path = Path::mpi;
      return by_mpi();
    }
    *position += static_cast<int>(by.plan->packed_bytes(count));
    return MPI_SUCCESS;
  });
}

[[gnu::always_inline]] inline int unpack(const auto& mpi, auto given, auto given_size,
                                         auto given_position, auto given_out, auto given_count,
                                         auto given_type, auto given_comm) {
  const DeliveryAfterCall after;
  const auto by_mpi = [&] {
    return mpi(given, given_size, given_position, given_out, given_count, given_type, given_comm);
  };
  const auto type = in_c(given_type);
  auto* const known = committed_type(type);
  if (known == nullptr || is_special(given) || is_special(given_out)) return by_mpi();
  void* const buffer = in_c(given_out);
  const auto count = in_c(given_count);
  auto* const position = in_c(given_position);
  const auto room = room_behind(in_c(given), in_c(given_size), position, in_c(given_comm));
  const auto* const packed =
      room < 0 ? nullptr : static_cast<const std::byte*>(in_c(given)) + *position;
  const auto by = known->to_unpack(type, buffer, count, packed, room);
  const auto unpacker = who(by, packed);
  auto path = unpacker == Who::mpi ? Path::mpi : Path::engine;
  return noted(MpiCall::unpack, path, {type, count}, [&] {
    if (unpacker == Who::host) {
      dtype::HostPacker().unpack(*by.plan, packed, buffer, count);
      if (verifies()) verify(type, buffer, count, packed, by.plan->packed_bytes(count));
    } else if (unpacker == Who::mpi || !unpack_by_device(*by.plan, packed, buffer, count)) {
      path = Path::mpi;
      return by_mpi();
    }
    *position += static_cast<int>(by.plan->packed_bytes(count));
    return MPI_SUCCESS;
  });
}

}  // namespace
}  // namespace halocline::interpose

#define HALOCLINE_PACKING HALOCLINE_ENTRY_POINTS
#include "comm/interpose/calls.def"
