// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/select/transfer_selector.hpp"

#include <algorithm>
#include <initializer_list>
#include <string>

#include "dtype/pack/block_list.hpp"
#include "support/error.hpp"

namespace halocline::dtype {

namespace {

constexpr std::array kAll{Transfer::device, Transfer::one_shot, Transfer::staged, Transfer::host};
static_assert(kAll.size() == kTransfers);

constexpr std::size_t index(Transfer transfer) {
  return static_cast<std::size_t>(transfer);
}

// Is a time in seconds; nullopt if a part of it was not measured.
using Seconds = std::optional<double>;

Seconds sum(std::initializer_list<Seconds> terms) {
  double out = 0;
  for (const auto& term : terms) {
    if (!term) return std::nullopt;
    out += *term;
  }
  return out;
}

// Sums up messages that take the same path.
struct Group {
  std::int64_t messages = 0;
  double bytes = 0;

  double mean_bytes() const { return bytes / static_cast<double>(messages); }
};

// Sums up the messages to other ranks, by path.
struct Traffic {
  explicit Traffic(std::span<const Message> messages) {
    for (const auto& message : messages) {
      if (message.reach == Reach::self) continue;
      auto& group = message.reach == Reach::on_node ? on_node : off_node;
      group.messages += message.continues ? 0 : 1;
      group.bytes += static_cast<double>(message.bytes);
    }
  }
  bool none() const { return on_node.messages + off_node.messages == 0; }
  double bytes() const { return on_node.bytes + off_node.bytes; }
  Group on_node, off_node;
};

bool reaches(const MessageTimes& times, const Group& group) {
  return group.mean_bytes() <= static_cast<double>(times.reach(group.messages));
}

Seconds arrival(const std::optional<MessageTimes>& times, const Group& group) {
  if (group.messages == 0) return 0;
  if (!times || !reaches(*times, group)) return std::nullopt;
  return times->at(group.messages, group.mean_bytes());
}

Seconds arrival(const MessagePaths& paths, const Traffic& traffic) {
  const auto on_node = arrival(paths.on_node, traffic.on_node);
  const auto off_node = arrival(paths.off_node, traffic.off_node);
  if (!on_node || !off_node) return std::nullopt;
  return std::max(*on_node, *off_node);
}

Seconds copy(const std::optional<Curve>& curve, const Traffic& traffic) {
  if (traffic.none()) return 0;
  if (!curve || !curve->reaches(traffic.bytes())) return std::nullopt;
  return curve->at(traffic.bytes());
}

Seconds by_kernel(const std::optional<PackTable>& table, std::span<const Message> messages,
                  BlockShape Message::*side) {
  if (!table) return std::nullopt;
  double longest_floor = 0, beyond = 0;
  for (const auto& message : messages) {
    const auto& shape = message.*side;
    const auto times = table->of(shape.block_bytes, shape.stride_bytes);
    if (!times.reaches(static_cast<double>(message.bytes))) return std::nullopt;
    const auto floor = times.at(0);
    longest_floor = std::max(longest_floor, floor);
    beyond += std::max(times.at(static_cast<double>(message.bytes)) - floor, 0.0);
  }
  return longest_floor + beyond;
}

Seconds by_host(const std::optional<PackTable>& table, std::span<const Message> messages,
                BlockShape Message::*side) {
  if (!table) return std::nullopt;
  double out = 0;
  for (const auto& message : messages) {
    const auto& shape = message.*side;
    const auto times = table->of(shape.block_bytes, shape.stride_bytes);
    if (!times.reaches(static_cast<double>(message.bytes))) return std::nullopt;
    out += times.at(static_cast<double>(message.bytes));
  }
  return out;
}

// Returns the phases of each transfer, by enumerator.
std::array<PhaseSeconds, kTransfers> phases(const SystemModel& model,
                                            std::span<const Message> messages) {
  const Traffic traffic(messages);
  const auto launch = model.launch_seconds, synchronize = model.synchronize_seconds;
  const auto pack = [&](const PackTimes& times) {
    return sum({launch, by_kernel(times.pack, messages, &Message::source), synchronize});
  };
  const auto unpack = [&](const PackTimes& times) {
    return sum({launch, by_kernel(times.unpack, messages, &Message::destination), synchronize});
  };
  const auto device_pack = pack(model.device_packing), device_unpack = unpack(model.device_packing);
  const auto host_arrival = arrival(model.host_messages, traffic);
  return {{{device_pack, arrival(model.device_messages, traffic), device_unpack},
           {pack(model.mapped_packing), host_arrival, unpack(model.mapped_packing)},
           {sum({device_pack, copy(model.device_to_host, traffic)}), host_arrival,
            sum({copy(model.host_to_device, traffic), device_unpack})},
           {by_host(model.host_packing.pack, messages, &Message::source), host_arrival,
            by_host(model.host_packing.unpack, messages, &Message::destination)}}};
}

// Finds the first part of a model because of which the functions above return nullopt.
class Missing {
 public:
  Missing(const SystemModel& model, std::span<const Message> messages)
      : model_(model), messages_(messages), traffic_(messages) {}

  const std::optional<Unknown>& first() const { return first_; }

  void launch() {
    if (!model_.launch_seconds || !model_.synchronize_seconds) note("launch and synchronization");
  }
  void packing(const std::string& name, const std::optional<PackTable>& table,
               BlockShape Message::*side) {
    if (!table) return note(name);
    for (const auto& message : messages_) {
      const auto& shape = message.*side;
      const auto times = table->of(shape.block_bytes, shape.stride_bytes);
      if (!times.reaches(static_cast<double>(message.bytes))) note(name, times.reach());
    }
  }
  void packing(const std::string& where, const PackTimes& times) {
    packing("packing " + where, times.pack, &Message::source);
    packing("unpacking " + where, times.unpack, &Message::destination);
  }
  void arrival(const std::string& which, const MessagePaths& paths) {
    arrival(which + " messages on the node", paths.on_node, traffic_.on_node);
    arrival(which + " messages between nodes", paths.off_node, traffic_.off_node);
  }
  void copies() {
    copy("copies from the device to the host", model_.device_to_host);
    copy("copies from the host to the device", model_.host_to_device);
  }

 private:
  void note(const std::string& part, std::optional<std::int64_t> reach = std::nullopt) {
    if (!first_) first_ = {part, reach};
  }
  void arrival(const std::string& name, const std::optional<MessageTimes>& times,
               const Group& group) {
    if (group.messages == 0) return;
    if (!times) return note(name);
    if (!reaches(*times, group)) note(name, times->reach(group.messages));
  }
  void copy(const std::string& name, const std::optional<Curve>& curve) {
    if (traffic_.none()) return;
    if (!curve) return note(name);
    if (!curve->reaches(traffic_.bytes())) note(name, curve->reach());
  }

  const SystemModel& model_;
  std::span<const Message> messages_;
  Traffic traffic_;
  std::optional<Unknown> first_;
};

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

BlockShape shape_of(const PackPlan& plan) {
  const auto bytes = plan.packed_bytes(1), blocks = count_blocks(plan, 1, 0, bytes);
  const auto block = std::max<std::int64_t>(bytes / std::max<std::int64_t>(blocks, 1), 1);
  return {block, std::max(block, plan.bounds().true_extent / std::max<std::int64_t>(blocks, 1))};
}

Seconds PhaseSeconds::total() const {
  return sum({pack, transfer, unpack});
}

PhaseSeconds phase_seconds(const SystemModel& model, std::span<const Message> messages,
                           Transfer transfer) {
  return phases(model, messages)[index(transfer)];
}

std::string Unknown::text() const {
  return part + ": not measured" + (reach ? " beyond " + text_of_bytes(*reach) : "");
}

std::optional<Unknown> unknown_part(const SystemModel& model, std::span<const Message> messages,
                                    Transfer transfer) {
  Missing missing(model, messages);
  if (transfer != Transfer::host) missing.launch();
  if (transfer == Transfer::host)
    missing.packing("by the host", model.host_packing);
  else if (transfer == Transfer::one_shot)
    missing.packing("to mapped memory", model.mapped_packing);
  else
    missing.packing("to device memory", model.device_packing);
  if (transfer == Transfer::staged) missing.copies();
  if (transfer == Transfer::device)
    missing.arrival("device", model.device_messages);
  else
    missing.arrival("host", model.host_messages);
  return missing.first();
}

std::optional<Unknown> unknown_part_of_copy(const SystemModel& model,
                                            std::span<const Message> messages, bool on_device) {
  Missing missing(model, messages);
  if (messages.empty()) return std::nullopt;
  if (on_device) missing.launch();
  missing.packing(on_device ? "packing to device memory" : "packing by the host",
                  on_device ? model.device_packing.pack : model.host_packing.pack,
                  &Message::source);
  return missing.first();
}

std::optional<double> copy_seconds(const SystemModel& model, std::span<const Message> messages,
                                   bool on_device) {
  if (messages.empty()) return 0;
  if (!on_device) return by_host(model.host_packing.pack, messages, &Message::source);
  return sum({model.launch_seconds,
              by_kernel(model.device_packing.pack, messages, &Message::source),
              model.synchronize_seconds});
}

Selection select_transfer(const SystemModel* model, std::span<const Message> messages,
                          TransferSet possible) {
  if (possible.none())
    throw ConfigError(
        "no transfer is possible (MPI does not take device memory, no pinned memory can be had, "
        "and the host cannot address the fields): use an MPI that is GPU-aware, or host memory");
  Selection out{};
  std::array<PhaseSeconds, kTransfers> measured;
  if (model != nullptr) measured = phases(*model, messages);
  std::optional<Transfer> fastest;
  for (const auto transfer : kAll) {
    auto& seconds = out.seconds[index(transfer)];
    if (possible[index(transfer)]) seconds = measured[index(transfer)].total();
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
