// SPDX-License-Identifier: BSD-3-Clause
// How messages that are packed from device memory travel: the choice between the transfers, by what
// a system model says that each of them takes. [PEA21] section 4, equations 1 to 3.
//
// Best peer: [PEA21] chooses between device and one-shot, for one message at a time and in 277 ns.
// Here staged and host can win, strides count, and a whole exchange (one launch, messages at once)
// is one choice; a SelectionCache finds it again in 3 ns.
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

enum class Transfer : unsigned char {
  device,    ///< kernels pack to device memory, which MPI sends and receives
  one_shot,  ///< kernels pack to mapped host memory, which MPI sends and receives
  staged,    ///< kernels pack to device memory, which is copied to and from host memory for MPI
  host,      ///< the host packs and unpacks where it can address the fields
};
inline constexpr std::size_t kTransfers = 4;

/// All transfers, in the order in which help texts and tables list them.
std::span<const Transfer> all_transfers();

/// "device", "one-shot", "staged", "host".
std::string_view name(Transfer transfer);

/// The transfer of that name; nullopt for "auto", which leaves the choice to select_transfer().
/// Throws ConfigError that lists the names there are.
std::optional<Transfer> parse_transfer(std::string_view name);

/// By enumerator.
using TransferSet = std::bitset<kTransfers>;

/// What this run can do.
struct Capabilities {
  bool device_messages = false;  ///< MPI takes device memory
  bool mapped_memory = false;    ///< there is pinned host memory that kernels can address
  bool host_access = false;      ///< the host can address the fields
};

/// device needs device_messages; one-shot and staged, mapped_memory; host, host_access.
TransferSet possible_transfers(const Capabilities& capabilities);

/// The blocks that bytes are gathered from or scattered to. Without gaps the stride is the length
/// of a block.
struct BlockShape {
  std::int64_t block_bytes;
  std::int64_t stride_bytes;  ///< from the start of a block to the start of the next
};

/// The blocks of a datatype on average, and how far apart they are. O(loops + displacements).
BlockShape shape_of(const PackPlan& plan);

enum class Reach : unsigned char {
  self,  ///< packed and unpacked, but not sent
  on_node,
  off_node,
};

/// A message, or its next part in blocks of another shape.
struct Message {
  std::int64_t bytes;  ///< packed
  BlockShape source;
  BlockShape destination;
  Reach reach;
  bool continues = false;  ///< a further part of the message before it
};

struct Selection {
  Transfer transfer;
  /// What each transfer takes, by enumerator; nullopt where it is not possible or something that it
  /// needs was not measured, or not for so many bytes.
  std::array<std::optional<double>, kTransfers> seconds;
  std::string_view reason;  ///< in a few words
};

/// Holds the times of the parts of an exchange; nullopt where something that is needed was not
/// measured, or does not reach as far (kBandwidthBytes).
struct PhaseSeconds {
  std::optional<double> pack;      ///< with the copy to the host, if staged
  std::optional<double> transfer;  ///< until all messages have arrived
  std::optional<double> unpack;    ///< with the copy from the host, if staged
  std::optional<double> total() const;
};

/// A part of a model that does not say what was asked of it.
struct Unknown {
  std::string part;                   ///< "host messages on the node"
  std::optional<std::int64_t> reach;  ///< bytes; none: it was not measured at all

  /// "host messages on the node: not measured beyond 64 B".
  std::string text() const;
};

/// From so many bytes on that are packed at once, staged is the default rather than one-shot: its
/// copies run at the full rate of the link, and two more of them no longer count.
inline constexpr std::int64_t kDefaultStagedBytes = std::int64_t{1} << 20;

/// The fastest of the `possible` transfers for messages that are packed by one launch, sent at once
/// and unpacked by one launch; one message is the simplest case. A rank looks at what it sends, and
/// takes it that it receives the like. With L and S for launch and synchronization:
///
///     device    L + P(device) + S + M(device) + L + U(device) + S                          (1)
///     one-shot  L + P(mapped) + S + M(host) + L + U(mapped) + S                            (2)
///     staged    L + P(device) + D + S + M(host) + H + L + U(device) + S                    (3)
///     host      P(host) + M(host) + U(host)
///
/// [PEA21]'s equations, but for L and S: there each pack, unpack and copy has its own in its time,
/// here the copies of (3) share those of the kernels. Further than the paper goes:
/// - P and U, pack and unpack by one kernel: the longest floor plus what each part takes beyond its
///   own floor, where the floor is the time for no bytes in such blocks; parts of a kernel run side
///   by side until they fill the device. By the host: the sum over the parts.
/// - M, until all messages have arrived: the time for as many at once as there are, of their mean
///   length; on the node and off it at once, the longer of both.
/// - D and H, copies to and from the host: one each, of all bytes that are sent.
///
/// A transfer that was not measured, or not for so many bytes, is chosen only if none was, or
/// without a model (nullptr). Then
/// it is the first of these that is possible: device; one-shot below kDefaultStagedBytes, else
/// staged; one-shot; staged; host. Of equal times the first enumerator wins.
///
/// Pure, local, thread-safe, no allocation. O(messages * log points). Throws ConfigError if no
/// transfer is possible.
Selection select_transfer(const SystemModel* model, std::span<const Message> messages,
                          TransferSet possible);

/// The terms that select_transfer() adds up for `transfer`: what is packed by one launch, sent at
/// once and unpacked by one launch. Pure; O(messages * log points).
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

/// What one copy from layout to layout of all these messages takes, by a kernel if `on_device`: as
/// packing them, since as many bytes are moved. nullopt if that was not measured. Messages' reach
/// does not count. Pure; O(messages * log points).
std::optional<double> copy_seconds(const SystemModel& model, std::span<const Message> messages,
                                   bool on_device);

}  // namespace halocline::dtype
