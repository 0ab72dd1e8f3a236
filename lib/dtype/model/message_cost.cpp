// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/model/message_cost.hpp"

#include "dtype/pack/block_list.hpp"

namespace halocline::dtype {

namespace {

// Sums up messages that take the same path.
struct Group {
  std::int64_t messages = 0;
  double bytes = 0;
};

// Sums up the messages to other ranks, by path.
struct PathTotals {
  explicit PathTotals(std::span<const Message> messages) {
    for (const auto& message : messages) {
      if (message.reach == Reach::self) continue;
      auto& group = message.reach == Reach::on_node ? on_node : off_node;
      group.messages += message.continues ? 0 : 1;
      group.bytes += static_cast<double>(message.bytes);
    }
  }
  Group on_node, off_node;
};

PredictedSeconds arrival(std::string_view part, const std::optional<MessageTimes>& times,
                         const Group& group) {
  if (group.messages == 0) return 0;
  if (!times) return Unknown{part};
  const auto mean = group.bytes / static_cast<double>(group.messages);
  const auto reach = times->reach(group.messages);
  if (mean > static_cast<double>(reach)) return Unknown{part, reach};
  return times->at(group.messages, mean);
}

PredictedSeconds copy(std::string_view part, const std::optional<Curve>& curve,
                      const PathTotals& totals) {
  if (totals.on_node.messages + totals.off_node.messages == 0) return 0;
  if (!curve) return Unknown{part};
  const auto bytes = totals.on_node.bytes + totals.off_node.bytes;
  if (!curve->reaches(bytes)) return Unknown{part, curve->reach()};
  return curve->at(bytes);
}

// Names a side of the messages, and the times of packing there.
struct Packing {
  std::string_view part;
  const std::optional<PackTable>& table;
  BlockShape Message::*side;
};

PredictedSeconds packing(const Packing& how, std::span<const Message> messages, bool by_kernel) {
  if (!how.table) return Unknown{how.part};
  double longest_floor = 0, beyond = 0;
  for (const auto& message : messages) {
    const auto& shape = message.*how.side;
    const auto times = how.table->of(shape.block_bytes, shape.stride_bytes);
    const auto bytes = static_cast<double>(message.bytes);
    if (!times.reaches(bytes)) return Unknown{how.part, times.reach()};
    const auto floor = by_kernel ? times.at(0) : 0;
    longest_floor = std::max(longest_floor, floor);
    beyond += std::max(times.at(bytes) - floor, 0.0);
  }
  return longest_floor + beyond;
}

PredictedSeconds by_host(const Packing& how, std::span<const Message> messages) {
  return packing(how, messages, false);
}

PredictedSeconds by_kernel(const SystemModel& model, const Packing& how,
                           std::span<const Message> messages) {
  if (!model.launch_seconds || !model.synchronize_seconds)
    return Unknown{"launch and synchronization"};
  return *model.launch_seconds + packing(how, messages, true) + *model.synchronize_seconds;
}

const MessagePaths& paths_of(const SystemModel& model, Transfer transfer) {
  return transfer == Transfer::device ? model.device_messages : model.host_messages;
}

}  // namespace

BlockShape shape_of(const PackPlan& plan) {
  const auto bytes = plan.packed_bytes(1), blocks = count_blocks(plan, 1, 0, bytes);
  const auto block = std::max<std::int64_t>(bytes / std::max<std::int64_t>(blocks, 1), 1);
  return {block, std::max(block, plan.bounds().true_extent / std::max<std::int64_t>(blocks, 1))};
}

std::string Unknown::text() const {
  return std::string(part) + ": not measured" + (reach ? " beyond " + text_of_bytes(*reach) : "");
}

PhaseSeconds phase_seconds(const SystemModel& model, std::span<const Message> messages,
                           Transfer transfer) {
  const PathTotals totals(messages);
  const auto& paths = paths_of(model, transfer);
  const bool on_device = transfer == Transfer::device;
  PhaseSeconds out;
  out.transfer =
      max(arrival(on_device ? "device messages on the node" : "host messages on the node",
                  paths.on_node, totals.on_node),
          arrival(on_device ? "device messages between nodes" : "host messages between nodes",
                  paths.off_node, totals.off_node));
  switch (transfer) {
    case Transfer::host: {
      const auto& [pack, unpack] = model.host_packing;
      out.pack = by_host({"packing by the host", pack, &Message::source}, messages);
      out.unpack = by_host({"unpacking by the host", unpack, &Message::destination}, messages);
      break;
    }
    case Transfer::one_shot: {
      const auto& [pack, unpack] = model.mapped_packing;
      out.pack = by_kernel(model, {"packing to mapped memory", pack, &Message::source}, messages);
      out.unpack =
          by_kernel(model, {"unpacking to mapped memory", unpack, &Message::destination}, messages);
      break;
    }
    case Transfer::device:
    case Transfer::staged: {
      const auto& [pack, unpack] = model.device_packing;
      out.pack = by_kernel(model, {"packing to device memory", pack, &Message::source}, messages);
      out.unpack =
          by_kernel(model, {"unpacking to device memory", unpack, &Message::destination}, messages);
      if (on_device) break;
      out.pack =
          out.pack + copy("copies from the device to the host", model.device_to_host, totals);
      out.unpack =
          copy("copies from the host to the device", model.host_to_device, totals) + out.unpack;
      break;
    }
  }
  return out;
}

PredictedSeconds copy_seconds(const SystemModel& model, std::span<const Message> messages,
                              bool on_device) {
  if (messages.empty()) return 0;
  if (!on_device)
    return by_host({"packing by the host", model.host_packing.pack, &Message::source}, messages);
  return by_kernel(model, {"packing to device memory", model.device_packing.pack, &Message::source},
                   messages);
}

double injection_seconds(const SystemModel& model, Transfer transfer, std::int64_t messages,
                         double node_bytes) {
  const auto& times = paths_of(model, transfer).off_node;
  if (messages == 0 || !times || !model.injection_bytes_per_second) return 0;
  return times->at(messages, 0) + node_bytes / *model.injection_bytes_per_second;
}

PredictedSeconds block_message_seconds(const std::optional<PackTable>& times,
                                       const BlockShape& shape, std::int64_t bytes) {
  const Message message{bytes, shape, shape, Reach::self};
  return by_host({"messages of blocks", times, &Message::source}, {&message, 1});
}

std::optional<LinkCost> link_cost(const MessageTimes& times) {
  const auto& [messages, curve] = times.measured().back();
  const auto last = static_cast<double>(curve.bytes().back());
  if (!curve.reaches(2 * last, messages)) return std::nullopt;
  const double alone = times.at(1, 0);
  const double each = messages == 1 ? 0
                                    : std::max(0.0, times.at(messages, 0) - alone) /
                                          static_cast<double>(messages - 1);
  return LinkCost{std::max(0.0, alone - each),
                  (times.at(messages, 2 * last) - times.at(messages, last)) /
                      (last * static_cast<double>(messages)),
                  std::min(each, alone)};
}

}  // namespace halocline::dtype
