// SPDX-License-Identifier: BSD-3-Clause
// Predicts the seconds of messages by a system model: packs, copies and the wire. All choices and
// predictions of Halocline use these sums.
//
// Best peer: [PEA21] section 4 has one sum for each transfer of one message. Here a rank's messages
// count together, and a sum that has no answer names the part of the model that is missing.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "dtype/model/system_model.hpp"
#include "dtype/pack/pack_plan.hpp"

namespace halocline::dtype {

/// Names the way of packed bytes between the memory of the fields and MPI.
enum class Transfer : unsigned char {
  device,    ///< kernels pack to device memory, which MPI sends and receives
  one_shot,  ///< kernels pack to mapped host memory, which MPI sends and receives
  staged,    ///< kernels pack to device memory, which is copied to and from host memory for MPI
  host,      ///< the host packs and unpacks; it must be able to address the fields
};
inline constexpr std::size_t kTransfers = 4;

/// Describes the blocks from which bytes are gathered or to which they are scattered. Without gaps,
/// the stride is the length of a block.
struct BlockShape {
  std::int64_t block_bytes;
  std::int64_t stride_bytes;  ///< bytes from the start of a block to the start of the next
};

/// Returns the mean block length of a datatype, and the mean distance of its blocks. O(loops +
/// displacements).
BlockShape shape_of(const PackPlan& plan);

/// Names the place of the rank that a message goes to.
enum class Reach : unsigned char {
  self,  ///< packed and unpacked, but not sent
  on_node,
  off_node,
};

/// Describes a message, or its next part in blocks of another shape.
struct Message {
  std::int64_t bytes;  ///< packed bytes
  BlockShape source;
  BlockShape destination;
  Reach reach;
  bool continues = false;  ///< a further part of the message before it
};

/// Names a part of a model that has no answer.
struct Unknown {
  std::string_view part;  ///< such as "host messages on the node"; a literal
  std::optional<std::int64_t> reach = std::nullopt;  ///< bytes measured; nullopt if none were

  /// Returns the part in words: "host messages on the node: not measured beyond 64 B".
  std::string text() const;
  bool operator==(const Unknown&) const = default;
};

/// Holds predicted seconds, or names the first part of the model that is missing for them.
class PredictedSeconds {
 public:
  PredictedSeconds(double seconds = 0) : value_(seconds) {}
  PredictedSeconds(const Unknown& unknown) : value_(unknown) {}

  explicit operator bool() const { return std::holds_alternative<double>(value_); }
  /// Returns the seconds. Precondition: they are known.
  double operator*() const { return *std::get_if<double>(&value_); }
  std::optional<double> seconds() const { return *this ? std::optional(**this) : std::nullopt; }
  /// Returns the part that is missing; nullptr if the seconds are known.
  const Unknown* unknown() const { return std::get_if<Unknown>(&value_); }

  friend PredictedSeconds operator+(const PredictedSeconds& a, const PredictedSeconds& b) {
    return !a ? a : !b ? b : PredictedSeconds(*a + *b);
  }
  friend PredictedSeconds max(const PredictedSeconds& a, const PredictedSeconds& b) {
    return !a ? a : !b ? b : PredictedSeconds(std::max(*a, *b));
  }
  bool operator==(const PredictedSeconds&) const = default;

 private:
  std::variant<double, Unknown> value_;
};

/// Holds the phases of an exchange. A phase is unknown if a part of the model was not measured, or
/// does not reach its bytes (see kBandwidthBytes).
struct PhaseSeconds {
  PredictedSeconds pack;      ///< with the copy to the host, if staged
  PredictedSeconds transfer;  ///< until all messages have arrived
  PredictedSeconds unpack;    ///< with the copy from the host, if staged
  PredictedSeconds total() const { return pack + transfer + unpack; }
};

/// Returns the phases of messages that are packed by one launch, sent at once and unpacked by one
/// launch. One message is the simplest case. A rank looks at what it sends, and assumes that it
/// receives the same. L and S are the times of launch and synchronization:
///
///     device    L + P(device) + S + M(device) + L + U(device) + S                          (1)
///     one-shot  L + P(mapped) + S + M(host) + L + U(mapped) + S                            (2)
///     staged    L + P(device) + D + S + M(host) + H + L + U(device) + S                    (3)
///     host      P(host) + M(host) + U(host)
///
/// These are [PEA21]'s equations, except for L and S. There the time of each pack, unpack and copy
/// includes a launch and a synchronization. Here the copies of (3) share those of the kernels. The
/// terms go further than the paper:
///
/// - P and U, pack and unpack by one kernel: the longest floor, plus the time of each part beyond
///   its own floor. The floor is the time for no bytes in such blocks. Parts of a kernel run side
///   by side until they fill the device. By the host: the sum over the parts.
/// - M, until all messages have arrived: the time for this number of messages at once, of their
///   mean length. With messages on the node and off it: the longer of both times.
/// - D and H, copies to and from the host: one copy each, of all bytes that are sent.
///
/// Pure, local, thread-safe, no allocation. O(messages * log points).
PhaseSeconds phase_seconds(const SystemModel& model, std::span<const Message> messages,
                           Transfer transfer);

/// Returns the seconds of one copy of all these messages from layout to layout, by a kernel if
/// `on_device`. They are those of packing the messages, since a copy moves the same bytes. The
/// messages' reach does not count. Pure; O(messages * log points).
PredictedSeconds copy_seconds(const SystemModel& model, std::span<const Message> messages,
                              bool on_device);

/// Returns the least seconds of a rank's `messages` to other nodes, if all ranks of its node send
/// `node_bytes` bytes to other nodes meanwhile: the max-rate model [GOS16]. Returns 0 for no
/// messages, and if the model has no injection rate or no messages between nodes. O(log points).
double injection_seconds(const SystemModel& model, Transfer transfer, std::int64_t messages,
                         double node_bytes);

/// Returns the seconds of a message of `bytes` packed bytes in blocks of this shape, packing
/// included, by `times` of such messages (see BlockMessages). O(log points).
PredictedSeconds block_message_seconds(const std::optional<PackTable>& times,
                                       const BlockShape& shape, std::int64_t bytes);

/// Describes the messages of one path by three numbers: latency, overhead and rate.
struct LinkCost {
  double latency_s = 0;
  double seconds_per_byte = 0;
  double overhead_s = 0;  ///< seconds by which each further message at once comes later
  /// Returns the seconds of one message.
  double at(std::int64_t bytes) const {
    return latency_s + overhead_s + seconds_per_byte * static_cast<double>(bytes);
  }
};

/// Returns the three numbers of `times`: latency and overhead of messages of no bytes, and the rate
/// beyond the last point. nullopt if the last points are no bandwidth (see kBandwidthBytes).
std::optional<LinkCost> link_cost(const MessageTimes& times);

}  // namespace halocline::dtype
