// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/pack/host/host_packer.hpp"

#include "dtype/pack/host/copy_range.hpp"
#include "dtype/pack/host/copy_share.hpp"

namespace halocline::dtype {

namespace {

host::Address address_of(const void* pointer) {
  return reinterpret_cast<host::Address>(pointer);
}

}  // namespace

void HostPacker::pack(const PackPlan& plan, const void* buffer, std::int64_t count,
                      void* packed) const {
  host::copy_range<host::CopyDirection::pack>(plan, address_of(buffer), count, 0,
                                              plan.packed_bytes(count), address_of(packed));
}

void HostPacker::unpack(const PackPlan& plan, const void* packed, void* buffer,
                        std::int64_t count) const {
  host::copy_range<host::CopyDirection::unpack>(plan, address_of(buffer), count, 0,
                                                plan.packed_bytes(count), address_of(packed));
}

void HostPacker::pack(const FusedPlan& plan, void* packed) const {
  host::copy_range<host::CopyDirection::pack>(plan, 0, plan.packed_bytes(), address_of(packed));
}

void HostPacker::unpack(const FusedPlan& plan, const void* packed) const {
  host::copy_range<host::CopyDirection::unpack>(plan, 0, plan.packed_bytes(), address_of(packed));
}

void HostPacker::copy(const CopyPlan& plan) const {
  host::copy_share(plan, 0, plan.bytes());
}

}  // namespace halocline::dtype
