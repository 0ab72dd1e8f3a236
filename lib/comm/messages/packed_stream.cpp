// SPDX-License-Identifier: BSD-3-Clause
#include "comm/messages/packed_stream.hpp"

#include <utility>

#include "dtype/pack/range_plan.hpp"

namespace halocline::comm::detail {

using dtype::Transfer;
using dtype::host::CopyDirection;

PackedStream::PackedStream(const Transport& transport, PlannedBuffer data)
    : transport_(transport), data_(std::move(data)) {}

bool PackedStream::has_parts() const {
  return transport_.transfer() == Transfer::host || dtype::has_range_plans(data_.plan, data_.count);
}

void PackedStream::pack(std::int64_t first, std::int64_t last, std::byte* packed) {
  const auto& packer = transport_.packer();
  const auto& [plan, buffer, count] = data_;
  if (is_all(first, last)) return packer.pack(plan, buffer, count, packed);
  if (transport_.transfer() == Transfer::host)
    return data_.copy<CopyDirection::pack>(first, last, packed);
  part_ = dtype::range_plan(plan, buffer, count, first, last).value();
  packer.pack(*part_, packed);
}

void PackedStream::unpack(std::int64_t first, std::int64_t last, const std::byte* packed) {
  const auto& packer = transport_.packer();
  const auto& [plan, buffer, count] = data_;
  if (is_all(first, last)) return packer.unpack(plan, packed, buffer, count);
  if (transport_.transfer() == Transfer::host)
    return data_.copy<CopyDirection::unpack>(first, last, packed);
  part_ = dtype::range_plan(plan, buffer, count, first, last);
  if (part_) return packer.unpack(*part_, packed);
  const auto size = plan.bounds().size, whole = last / size;
  part_ = dtype::range_plan(plan, buffer, count, 0, whole * size).value();
  packer.unpack(*part_, packed);
  unpack_begin_of(whole, last - whole * size, packed + whole * size);
}

void PackedStream::unpack_begin_of(std::int64_t instance, std::int64_t size,
                                   const std::byte* packed) {
  const auto& packer = transport_.packer();
  const auto& [plan, all, count] = data_;
  auto* const buffer = byte_at(all, instance * plan.bounds().extent);
  instance_ = transport_.own_memory(static_cast<std::size_t>(plan.bounds().size));
  packer.pack(plan, buffer, 1, instance_.data());
  transport_.copy(instance_.data(), packed, static_cast<std::size_t>(size));
  packer.unpack(plan, instance_.data(), buffer, 1);
}

}  // namespace halocline::comm::detail
