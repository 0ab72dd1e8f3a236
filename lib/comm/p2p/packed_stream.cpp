// SPDX-License-Identifier: BSD-3-Clause
#include "comm/p2p/packed_stream.hpp"

#include <utility>

#include "dtype/pack/range_plan.hpp"

namespace halocline::comm::detail {

using dtype::Transfer;

PackedStream::PackedStream(const Transport& transport, dtype::PackPlan plan, void* buffer,
                           std::int64_t count)
    : transport_(transport), plan_(std::move(plan)), buffer_(buffer), count_(count) {}

bool PackedStream::has_parts() const {
  return transport_.transfer() == Transfer::host || dtype::has_range_plans(plan_, count_);
}

dtype::Segment& PackedStream::segment() {
  if (!segment_) segment_.emplace(plan_, buffer_, count_);
  return *segment_;
}

void PackedStream::pack(std::int64_t first, std::int64_t last, std::byte* packed) {
  const auto& packer = transport_.packer();
  if (is_all(first, last)) return packer.pack(plan_, buffer_, count_, packed);
  if (transport_.transfer() == Transfer::host) {
    segment().seek(first);
    segment().pack(packed, last - first);
    return;
  }
  part_ = dtype::range_plan(plan_, buffer_, count_, first, last).value();
  packer.pack(part_, packed);
}

void PackedStream::unpack(std::int64_t first, std::int64_t last, const std::byte* packed) {
  const auto& packer = transport_.packer();
  if (is_all(first, last)) return packer.unpack(plan_, packed, buffer_, count_);
  if (transport_.transfer() == Transfer::host) {
    segment().seek(first);
    segment().unpack(packed, last - first);
    return;
  }
  if (auto part = dtype::range_plan(plan_, buffer_, count_, first, last)) {
    part_ = *std::move(part);
    return packer.unpack(part_, packed);
  }
  const auto size = plan_.bounds().size, whole = last / size;
  part_ = dtype::range_plan(plan_, buffer_, count_, 0, whole * size).value();
  packer.unpack(part_, packed);
  unpack_begin_of(whole, last - whole * size, packed + whole * size);
}

void PackedStream::unpack_begin_of(std::int64_t instance, std::int64_t size,
                                   const std::byte* packed) {
  const auto& packer = transport_.packer();
  const auto begin = reinterpret_cast<std::uintptr_t>(buffer_) +
                     static_cast<std::uintptr_t>(instance * plan_.bounds().extent);
  auto* const buffer = reinterpret_cast<void*>(begin);
  instance_ = transport_.own_memory(static_cast<std::size_t>(plan_.bounds().size));
  packer.pack(plan_, buffer, 1, instance_.data());
  transport_.copy(instance_.data(), packed, static_cast<std::size_t>(size));
  packer.unpack(plan_, instance_.data(), buffer, 1);
}

}  // namespace halocline::comm::detail
