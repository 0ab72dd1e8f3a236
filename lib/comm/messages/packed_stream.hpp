// SPDX-License-Identifier: BSD-3-Clause
// Packs and unpacks any stretch of one message. Internal to lib/comm.
//
// Best peer: MPICH's segments pack any stretch on the host. Here a transport's packer does it, on
// the host or on a device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "comm/messages/planned_buffer.hpp"
#include "comm/messages/transport.hpp"
#include "dtype/pack/fused_plan.hpp"

namespace halocline::comm::detail {

/// Represents the packed bytes of a PlannedBuffer. `transport` packs and unpacks them; it must
/// outlive the stream.
class PackedStream {
 public:
  PackedStream(const Transport& transport, PlannedBuffer data);

  std::int64_t bytes() const { return data_.bytes(); }
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

  /// Packs a stretch to byte `offset` of `to`, and brings the bytes up to its end to MPI's side.
  /// Done on return.
  void pack(std::int64_t first, std::int64_t last, const Transport::Message& to,
            std::int64_t offset) {
    pack(first, last, to.packed() + offset);
    transport_.to_wire(to, static_cast<std::size_t>(offset + last - first));
  }
  /// Unpacks a stretch that MPI has put to byte `offset` of `from`. Complete after fence().
  void unpack(std::int64_t first, std::int64_t last, const Transport::Message& from,
              std::int64_t offset) {
    transport_.from_wire(from, static_cast<std::size_t>(offset + last - first));
    unpack(first, last, from.packed() + offset);
  }

  /// Prepares packing or unpacking of all instances at `packed`; may fence.
  void prepare(const std::byte* packed) const {
    transport_.packer().prepare(data_.plan, data_.buffer, data_.count, packed);
  }
  void fence() const { transport_.packer().fence(); }

 private:
  bool is_all(std::int64_t first, std::int64_t last) const { return first == 0 && last == bytes(); }
  void unpack_begin_of(std::int64_t instance, std::int64_t size, const std::byte* packed);

  const Transport& transport_;
  PlannedBuffer data_;
  // The device may use these until the next fence.
  std::optional<dtype::FusedPlan> part_;
  Transport::Memory instance_;
};

}  // namespace halocline::comm::detail
