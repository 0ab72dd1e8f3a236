// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/model/transfer_selector.hpp"

#include <algorithm>
#include <string>

#include "support/error.hpp"

namespace halocline::dtype {

namespace {

constexpr std::array kAll{Transfer::device, Transfer::one_shot, Transfer::staged, Transfer::host};
static_assert(kAll.size() == kTransfers);

constexpr std::size_t index(Transfer transfer) {
  return static_cast<std::size_t>(transfer);
}

Transfer default_transfer(std::span<const Message> messages, TransferSet possible) {
  double bytes = 0;
  for (const auto& message : messages) bytes += static_cast<double>(message.bytes);
  const bool staged_first = bytes >= static_cast<double>(kDefaultStagedBytes);
  const std::array order{Transfer::device, staged_first ? Transfer::staged : Transfer::one_shot,
                         Transfer::one_shot, Transfer::staged, Transfer::host};
  return *std::find_if(order.begin(), order.end(),
                       [&](Transfer transfer) { return possible[index(transfer)]; });
}

}  // namespace

std::span<const Transfer> all_transfers() {
  return kAll;
}

std::string_view name(Transfer transfer) {
  switch (transfer) {
    case Transfer::device:
      return "device";
    case Transfer::one_shot:
      return "one-shot";
    case Transfer::staged:
      return "staged";
    case Transfer::host:
      break;
  }
  return "host";
}

std::optional<Transfer> parse_transfer(std::string_view text) {
  if (text == "auto") return std::nullopt;
  std::string names;
  for (const auto transfer : kAll) {
    if (name(transfer) == text) return transfer;
    names.append(name(transfer)).append(", ");
  }
  throw ConfigError("unknown transfer (" + std::string(text) + "): use one of " + names + "auto");
}

TransferSet possible_transfers(const Capabilities& capabilities) {
  TransferSet out;
  out[index(Transfer::device)] = capabilities.device_messages;
  out[index(Transfer::one_shot)] = capabilities.mapped_memory;
  out[index(Transfer::staged)] = capabilities.mapped_memory;
  out[index(Transfer::host)] = capabilities.host_access;
  return out;
}

Selection select_transfer(const SystemModel* model, std::span<const Message> messages,
                          TransferSet possible) {
  if (possible.none())
    throw ConfigError(
        "no transfer is possible (MPI does not take device memory, no pinned memory can be had, "
        "and the host cannot address the fields): use an MPI that is GPU-aware, or host memory");
  Selection out{};
  std::optional<Transfer> fastest;
  for (const auto transfer : kAll) {
    auto& seconds = out.seconds[index(transfer)];
    if (model != nullptr && possible[index(transfer)])
      seconds = phase_seconds(*model, messages, transfer).total().seconds();
    if (seconds && (!fastest || *seconds < *out.seconds[index(*fastest)])) fastest = transfer;
  }
  out.transfer = fastest ? *fastest : default_transfer(messages, possible);
  out.reason = possible.count() == 1 ? "the only one possible"
               : fastest             ? "fastest by the system model"
               : model != nullptr    ? "default: nothing that is possible was measured this far"
                                     : "default: no system model";
  return out;
}

}  // namespace halocline::dtype
