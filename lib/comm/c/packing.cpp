// SPDX-License-Identifier: BSD-3-Clause
// Packing of halocline.h.
#include <cstdint>
#include <limits>
#include <string>

#include "comm/c/common.hpp"
#include "dtype/datatype.hpp"
#include "dtype/pack/host/host_packer.hpp"
#include "dtype/pack/plan_table.hpp"

namespace halocline::c {

namespace {

// Returns the plan of a datatype; nullptr if MPI has to pack it.
const dtype::PackPlan* pack_plan_of(MPI_Datatype datatype) {
  return std::get_if<dtype::PackPlan>(&dtype::cached_plan(datatype));
}

// Checks that the packed bytes of `count` instances fit behind `*position`. Returns their number.
std::int64_t checked_room(const void* buffer, std::int64_t count, MPI_Datatype datatype,
                          const void* packed, std::int64_t bytes, const std::int64_t* position) {
  require_mpi();
  require(position != nullptr, "`position` is NULL: give the address of a number");
  const auto needed = require_data(buffer, count, datatype);
  require(needed == 0 || packed != nullptr, "`packed` is NULL: give a buffer");
  if (*position < 0 || *position > bytes || needed > bytes - *position)
    throw ConfigError(std::to_string(needed) + " packed bytes do not fit behind position " +
                      std::to_string(*position) + " of " + std::to_string(bytes) +
                      " bytes: ask halocline_packed_bytes() for the length of the buffer");
  return needed;
}

int as_int(std::int64_t number) {
  require(number <= std::numeric_limits<int>::max(),
          "MPI packs this datatype, and takes less than 2 GiB at a time: pack fewer instances");
  return static_cast<int>(number);
}

// Returns a copy by which MPI can pack: `datatype` need not be committed.
dtype::Datatype committed(MPI_Datatype datatype) {
  MPI_Datatype copy = MPI_DATATYPE_NULL;
  HALOCLINE_MPI(MPI_Type_dup(datatype, &copy));
  dtype::Datatype out(copy);
  HALOCLINE_MPI(MPI_Type_commit(&copy));
  return out;
}

}  // namespace
}  // namespace halocline::c

using namespace halocline;
using namespace halocline::c;

int halocline_packed_bytes(std::int64_t count, MPI_Datatype datatype, std::int64_t* bytes) {
  return guarded([&] {
    require(bytes != nullptr, "`bytes` is NULL: give the address of a number");
    require_mpi();
    *bytes = bytes_of(count, datatype);
  });
}

int halocline_pack(const void* buffer, std::int64_t count, MPI_Datatype datatype, void* packed,
                   std::int64_t bytes, std::int64_t* position) {
  return guarded([&] {
    const auto needed = checked_room(buffer, count, datatype, packed, bytes, position);
    if (needed == 0) return;
    auto* const to = static_cast<std::byte*>(packed) + *position;
    if (const auto* const plan = pack_plan_of(datatype)) {
      dtype::HostPacker().pack(*plan, buffer, count, to);
    } else {
      int inside = 0;
      const OwnCommunicator self(MPI_COMM_SELF);  // MPI_COMM_SELF itself ends the process
      HALOCLINE_MPI(MPI_Pack(buffer, as_int(count), committed(datatype).get(), to, as_int(needed),
                             &inside, self.get()));
    }
    *position += needed;
  });
}

int halocline_unpack(const void* packed, std::int64_t bytes, std::int64_t* position, void* buffer,
                     std::int64_t count, MPI_Datatype datatype) {
  return guarded([&] {
    const auto needed = checked_room(buffer, count, datatype, packed, bytes, position);
    if (needed == 0) return;
    const auto* const from = static_cast<const std::byte*>(packed) + *position;
    if (const auto* const plan = pack_plan_of(datatype)) {
      dtype::HostPacker().unpack(*plan, from, buffer, count);
    } else {
      int inside = 0;
      const OwnCommunicator self(MPI_COMM_SELF);
      HALOCLINE_MPI(MPI_Unpack(from, as_int(needed), &inside, buffer, as_int(count),
                               committed(datatype).get(), self.get()));
    }
    *position += needed;
  });
}
