// SPDX-License-Identifier: BSD-3-Clause
// Packs and unpacks any stretch of one message. Internal to lib/comm.
//
// Best peer: MPICH's segments pack any stretch on the host. Here a transport's packer does it, on
// the host or on a device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "comm/device/transport.hpp"
#include "dtype/pack/fused_plan.hpp"
#include "dtype/pack/host/segment.hpp"

namespace halocline::comm::detail {

/// Represents the packed bytes of `count` instances at `buffer`. `transport` packs and unpacks
/// them; it must outlive the stream.
class PackedStream {
 public:
  PackedStream(const Transport& transport, dtype::PackPlan plan, void* buffer, std::int64_t count);

  std::int64_t bytes() const { return plan_.packed_bytes(count_); }
  /// Tells if stretches can be packed one by one: always on the host, for strided types on a
  /// device.
  bool has_parts() const;

  /// Packs the bytes [first, last) of the stream into `packed`. Only the whole stream may be packed
  /// unless has_parts(). The bytes are complete after fence(); before it, no other call is allowed.
  void pack(std::int64_t first, std::int64_t last, std::byte* packed);
  /// Unpacks the bytes [first, last) of the stream from `packed`, complete after fence(). A stretch
  /// [0, last) may be unpacked even without has_parts(). The instance in which the stretch ends is
  /// then packed, overwritten and unpacked.
  void unpack(std::int64_t first, std::int64_t last, const std::byte* packed);
  /// Prepares packing or unpacking of all instances at `packed`; may fence.
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
  std::optional<dtype::Segment> segment_;  // on the host, once a stretch is used
  // The device may use these until the next fence.
  dtype::FusedPlan part_;
  Transport::Memory instance_;
};

}  // namespace halocline::comm::detail
