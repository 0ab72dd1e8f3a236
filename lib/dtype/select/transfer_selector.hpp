// SPDX-License-Identifier: BSD-3-Clause
// Chooses how messages that are packed from device memory travel. The choice is the transfer that a
// system model predicts to be fastest. [PEA21] section 4, equations 1 to 3.
//
// Best peer: [PEA21] chooses between device and one-shot, for one message at a time and in 277 ns.
// Here staged and host can win, and strides count. A whole exchange (one launch, messages at once)
// is one choice. A SelectionCache finds it again in 3 ns.
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "dtype/pack/pack_plan.hpp"
#include "dtype/select/system_model.hpp"

namespace halocline::dtype {

/// Names the way of packed bytes between the memory of the fields and MPI.
enum class Transfer : unsigned char {
  device,    ///< kernels pack to device memory, which MPI sends and receives
  one_shot,  ///< kernels pack to mapped host memory, which MPI sends and receives
  staged,    ///< kernels pack to device memory, which is copied to and from host memory for MPI
  host,      ///< the host packs and unpacks; it must be able to address the fields
};
inline constexpr std::size_t kTransfers = 4;

/// Returns all transfers, in the order of help texts and tables.
std::span<const Transfer> all_transfers();

/// Returns "device", "one-shot", "staged" or "host".
std::string_view name(Transfer transfer);

/// Returns the transfer of that name; nullopt for "auto", which leaves the choice to
/// select_transfer(). Throws ConfigError that lists all names if there is no such transfer.
std::optional<Transfer> parse_transfer(std::string_view name);

/// Holds a bit for each transfer, by enumerator.
using TransferSet = std::bitset<kTransfers>;

/// Describes the abilities of this run.
struct Capabilities {
  bool device_messages = false;  ///< MPI takes device memory
  bool mapped_memory = false;    ///< there is pinned host memory that kernels can address
  bool host_access = false;      ///< the host can address the fields
};

/// Returns the transfers that are possible. `device` needs device_messages. `one_shot` and `staged`
/// need mapped_memory. `host` needs host_access.
TransferSet possible_transfers(const Capabilities& capabilities);

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

/// Holds the transfer that was chosen, and the predicted times.
struct Selection {
  Transfer transfer;
  /// Holds the seconds of each transfer, by enumerator. nullopt if the transfer is not possible, or
  /// if a part of the model was not measured for these bytes.
  std::array<std::optional<double>, kTransfers> seconds;
  std::string_view reason;  ///< reason of the choice, in a few words
};

/// Holds the seconds of the phases of an exchange. nullopt if a part of the model was not measured,
/// or does not reach these bytes (see kBandwidthBytes).
struct PhaseSeconds {
  std::optional<double> pack;      ///< with the copy to the host, if staged
  std::optional<double> transfer;  ///< until all messages have arrived
  std::optional<double> unpack;    ///< with the copy from the host, if staged
  /// Returns the sum of all phases; nullopt if one is nullopt.
  std::optional<double> total() const;
};

/// Names a part of a model that has no answer.
struct Unknown {
  std::string part;                   ///< such as "host messages on the node"
  std::optional<std::int64_t> reach;  ///< bytes that were measured; nullopt if nothing was

  /// Returns the part in words: "host messages on the node: not measured beyond 64 B".
  std::string text() const;
};

/// Is the least number of bytes, packed at once, for which staged is the default rather than
/// one-shot. From here on its copies run at the full rate of the link. The fixed costs of these two
/// copies then no longer count.
inline constexpr std::int64_t kDefaultStagedBytes = std::int64_t{1} << 20;

/// Returns the fastest of the `possible` transfers for messages that are packed by one launch, sent
/// at once and unpacked by one launch. One message is the simplest case. A rank looks at what it
/// sends, and assumes that it receives the same. L and S are the times of launch and
/// synchronization:
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
/// The default is chosen if no possible transfer was measured for these bytes, and without a model
/// (nullptr). It is the first possible one of: device; one-shot below kDefaultStagedBytes, else
/// staged; one-shot; staged; host. Of equal times the first enumerator wins.
///
/// Pure, local, thread-safe, no allocation. O(messages * log points). Throws ConfigError if no
/// transfer is possible.
Selection select_transfer(const SystemModel* model, std::span<const Message> messages,
                          TransferSet possible);

/// Returns the terms that select_transfer() adds up for `transfer`. The messages are packed by one
/// launch, sent at once and unpacked by one launch. Pure; O(messages * log points).
PhaseSeconds phase_seconds(const SystemModel& model, std::span<const Message> messages,
                           Transfer transfer);

/// Returns the first part of the model because of which phase_seconds() has no total; nullopt if it
/// has one. O(messages * log points).
std::optional<Unknown> unknown_part(const SystemModel& model, std::span<const Message> messages,
                                    Transfer transfer);

/// Returns the part of the model because of which copy_seconds() has no answer; nullopt if it has
/// one. O(messages * log points).
std::optional<Unknown> unknown_part_of_copy(const SystemModel& model,
                                            std::span<const Message> messages, bool on_device);

/// Returns the seconds of one copy of all these messages from layout to layout, by a kernel if
/// `on_device`. They are those of packing the messages, since a copy moves the same bytes. nullopt
/// if that was not measured. The messages' reach does not count. Pure; O(messages * log points).
std::optional<double> copy_seconds(const SystemModel& model, std::span<const Message> messages,
                                   bool on_device);

}  // namespace halocline::dtype
