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

#include "dtype/model/message_cost.hpp"

namespace halocline::dtype {

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

/// Holds the transfer that was chosen, and the predicted times.
struct Selection {
  Transfer transfer;
  /// Holds the seconds of each transfer, by enumerator. nullopt if the transfer is not possible, or
  /// if a part of the model was not measured for these bytes.
  std::array<std::optional<double>, kTransfers> seconds;
  std::string_view reason;  ///< reason of the choice, in a few words
};

/// Is the least number of bytes, packed at once, for which staged is the default rather than
/// one-shot. From here on its copies run at the full rate of the link. The fixed costs of these two
/// copies then no longer count.
inline constexpr std::int64_t kDefaultStagedBytes = std::int64_t{1} << 20;

/// Returns the fastest of the `possible` transfers for messages that are packed by one launch, sent
/// at once and unpacked by one launch, by phase_seconds().
///
/// The default is chosen if no possible transfer was measured for these bytes, and without a model
/// (nullptr). It is the first possible one of: device; one-shot below kDefaultStagedBytes, else
/// staged; one-shot; staged; host. Of equal times the first enumerator wins.
///
/// Pure, local, thread-safe, no allocation. O(messages * log points). Throws ConfigError if no
/// transfer is possible.
Selection select_transfer(const SystemModel* model, std::span<const Message> messages,
                          TransferSet possible);

}  // namespace halocline::dtype
