// SPDX-License-Identifier: BSD-3-Clause
// The packed bytes of one message, any stretch of them. Internal to lib/comm.
//
// Best peer: MPICH's segments pack any stretch on the host; here a transport's packer does, on the
// host or on a device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "comm/device/transport.hpp"
#include "dtype/pack/fused_plan.hpp"
#include "dtype/pack/segment.hpp"

namespace halocline::comm::detail {

/// `count` instances at `buffer`, packed and unpacked by `transport`, which must outlive this.
class PackedStream {
 public:
  PackedStream(const Transport& transport, dtype::PackPlan plan, void* buffer, std::int64_t count);

  std::int64_t bytes() const { return plan_.packed_bytes(count_); }
  /// Whether stretches can be packed one by one: everywhere on the host, of strided types on a
  /// device.
  bool has_parts() const;

  /// The bytes [first, last): a stretch only if has_parts(). Done after fence(), and so is
  /// unpack(); nothing else may be called before.
  void pack(std::int64_t first, std::int64_t last, std::byte* packed);
  /// The way back. The begin of the stream, [0, last), may always be unpacked; where there are no
  /// parts, the instance that it ends in is packed, overwritten and unpacked.
  void unpack(std::int64_t first, std::int64_t last, const std::byte* packed);
  /// Makes ready what it takes to pack or unpack all of them at `packed`; may fence.
  void prepare(const std::byte* packed) const {
    transport_.packer().prepare(plan_, buffer_, count_, packed);
  }
  void fence() const { transport_.packer().fence(); }

 private:
  bool is_all(std::int64_t first, std::int64_t last) const { return first == 0 && last == bytes(); }
  dtype::Segment& segment();
  void unpack_begin_of(std::int64_t instance, std::int64_t size, const std::byte* packed);

  const Transport& transport_;
  dtype::PackPlan plan_;
  void* buffer_;
  std::int64_t count_;
  std::optional<dtype::Segment> segment_;  // on the host, once there are parts
  // In the hands of the device until the next fence.
  dtype::FusedPlan part_;
  Transport::Memory instance_;
};

}  // namespace halocline::comm::detail
