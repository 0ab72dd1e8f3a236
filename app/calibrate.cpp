// SPDX-License-Identifier: BSD-3-Clause
// Runs `halocline calibrate`: measures the system model of this machine, writes it, and prints
// tables.
#include "comm/calibrate/calibration.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <vector>

#include "commands.hpp"
#include "dtype/model/transfer_selector.hpp"
#include "environment.hpp"
#include "methods.hpp"
#include "model.hpp"
#include "progress.hpp"
#include "table.hpp"

namespace halocline::app {

namespace {

using dtype::SystemModel;
using Parts = std::vector<comm::Calibration::Part>;

std::string parts_not_measured(const Parts& parts) {
  std::string out;
  for (const auto& part : parts)
    if (!part.why_not.empty()) out += "not measured: " + part.name + " (" + part.why_not + ")\n";
  return out;
}

std::string describe_dry_run(const Config& config, const comm::Calibration& calibration,
                             const std::string& path) {
  Table table({{"part", Align::left}, {"points"}});
  for (const auto& part : calibration.parts())
    if (part.why_not.empty()) table.add_row({part.name, std::to_string(part.points)});
  return table.str() + parts_not_measured(calibration.parts()) + "takes up to about " +
         format_seconds(config.max_seconds) + " and, on a rank that measures, up to " +
         format_bytes(static_cast<double>(calibration.memory_bytes())) +
         " of the host's and of the device's memory each;\nwould be written to " + path +
         "; nothing was measured\n";
}

// ---- Tables of the measured model

std::vector<std::string> row_of(const std::string& name, const std::string& messages,
                                const dtype::Curve& curve) {
  const auto most = static_cast<double>(curve.bytes().back());
  return {name, messages, format_seconds(curve.at(0)), format_rate(most / curve.seconds().back()),
          format_bytes(most)};
}

std::string movements_table(const SystemModel& model) {
  Table table({{"from and to", Align::left}, {"at once"}, {"latency"}, {"rate"}, {"up to"}});
  const auto add = [&](const std::string& name, const std::optional<dtype::MessageTimes>& times) {
    if (!times) return;
    for (const auto* entry : {&times->measured().front(), &times->measured().back()}) {
      auto row = row_of(name, std::to_string(entry->messages), entry->curve);
      const auto& curve = entry->curve;
      row[3] = format_rate(static_cast<double>(entry->messages * curve.bytes().back()) /
                           curve.seconds().back());
      table.add_row(row);
    }
  };
  add("host to host on the node", model.host_messages.on_node);
  add("host to host between nodes", model.host_messages.off_node);
  add("device to device on the node", model.device_messages.on_node);
  add("device to device between nodes", model.device_messages.off_node);
  if (model.injection_bytes_per_second)
    table.add_row({"out of a node, from all its ranks", "1 each", "-",
                   format_rate(*model.injection_bytes_per_second), "-"});
  if (model.device_to_host)
    table.add_row(row_of("copy from device to host", "1", *model.device_to_host));
  if (model.host_to_device)
    table.add_row(row_of("copy from host to device", "1", *model.host_to_device));
  return table.str();
}

// Tells how many times as fast a message of blocks arrives if Halocline packs it.
std::string blocks_table(const dtype::BlockTraffic& traffic, const std::string& which) {
  const auto& [packed, typed] = traffic.both_ways;
  if (!packed || !typed) return "";
  const auto& axes = packed->axes();
  std::vector<Column> columns{{"block"}};
  for (const auto bytes : axes.bytes) columns.push_back({dtype::text_of_bytes(bytes)});
  Table table(columns);
  for (const auto block : axes.block_bytes) {
    const auto stride =
        *std::upper_bound(axes.stride_bytes.begin(), axes.stride_bytes.end() - 1, block);
    std::vector<std::string> row{dtype::text_of_bytes(block)};
    for (const auto bytes : axes.bytes) {
      const auto n = static_cast<double>(bytes);
      row.push_back(
          format_fixed(typed->of(block, stride).at(n) / packed->of(block, stride).at(n), 2) + "x");
    }
    table.add_row(row);
  }
  return "\nmessages of " + which +
         ", both ways at once: packed by Halocline, N x as fast as this MPI's datatypes\n" +
         table.str();
}

std::string packing_table(const SystemModel& model) {
  struct Column {
    const char* name;
    const dtype::PackTimes* times;
  };
  constexpr auto kMi = std::int64_t{1} << 20;
  std::vector<Column> measured;
  for (const auto& column :
       {Column{"device", &model.device_packing}, Column{"mapped", &model.mapped_packing},
        Column{"host", &model.host_packing}})
    if (column.times->pack && column.times->unpack) measured.push_back(column);
  std::vector<app::Column> columns{{"block"}, {"stride"}};
  auto bytes = kMi;
  for (const auto& [name, times] : measured) {
    columns.push_back({std::string(name) + " pack"});
    columns.push_back({"unpack"});
    bytes = std::min(bytes, times->pack->axes().bytes.back());
  }
  Table table(columns);
  struct Shape {
    std::int64_t block, stride;
  };
  for (const auto& [block, stride] : {Shape{8, 16}, Shape{8, 2112}, Shape{32, 2112},
                                      Shape{128, 2112}, Shape{2048, 16448}, Shape{16384, 16384}}) {
    std::vector<std::string> row{format_bytes(static_cast<double>(block)),
                                 format_bytes(static_cast<double>(stride))};
    for (const auto& column : measured)
      for (const auto* times : {&*column.times->pack, &*column.times->unpack}) {
        const auto amount = static_cast<double>(bytes);
        row.push_back(format_rate(amount / times->of(block, stride).at(amount)));
      }
    table.add_row(row);
  }
  return "\npacking " + format_bytes(static_cast<double>(bytes)) +
         ", launch and synchronization apart\n" + table.str();
}

// Shows the fastest transfer of one message by bytes and block, for blocks that are `kStride`
// apart. A - stands for more bytes than were measured. Returns "" if nothing was measured.
std::string choices_table(const SystemModel& model, dtype::Reach reach, const std::string& where) {
  constexpr std::int64_t kStride = 2112;  // rows of 256 doubles and some ghosts
  constexpr std::array<std::int64_t, 5> kBlocks{8, 32, 128, 512, 2048};
  std::vector<Column> columns{{"bytes"}};
  for (const auto block : kBlocks)
    columns.push_back({"blocks of " + format_bytes(static_cast<double>(block)), Align::left});
  Table table(columns);
  const auto possible = dtype::possible_transfers({.device_messages = true, .mapped_memory = true});
  bool is_any = false;
  for (std::int64_t bytes = 64; bytes <= std::int64_t{16} << 20; bytes *= 8) {
    std::vector<std::string> row{format_bytes(static_cast<double>(bytes))};
    for (const auto block : kBlocks) {
      const dtype::BlockShape shape{block, kStride};
      const dtype::Message message{bytes, shape, shape, reach};
      const auto choice = select_transfer(&model, {&message, 1}, possible);
      const auto seconds = choice.seconds[static_cast<std::size_t>(choice.transfer)];
      is_any = is_any || seconds;
      row.push_back(seconds ? std::string(name(choice.transfer)) + " " + format_seconds(*seconds)
                            : "-");
    }
    table.add_row(row);
  }
  if (!is_any) return "";
  return "\nfastest transfer of a message " + where + ", for blocks " +
         format_bytes(static_cast<double>(kStride)) + " apart in device memory\n" + table.str();
}

// Lists what the measurement does not cover, and signs that it cannot be trusted.
std::string describe_flaws(const SystemModel& model) {
  std::string out;
  for (const auto& part : model.incomplete)
    out += "cut short: " + part + "; longer ones count as not measured\n";
  for (const auto& part : model.noisy) out += "noisy: " + part + "\n";
  for (const auto& point : odd_points(model))
    out += "over 10 times as slow as its neighbours: " + point + "\n";
  if (out.empty()) return "";
  return "\n" + out +
         "the model can be used; for better figures measure again while nothing else runs" +
         (model.incomplete.empty() ? "\n" : ", and for longer (--max-seconds)\n");
}

std::string describe(const SystemModel& model) {
  std::string out = "\n";
  if (model.launch_seconds && model.synchronize_seconds)
    out += "launch " + format_seconds(*model.launch_seconds) + ", synchronization " +
           format_seconds(*model.synchronize_seconds) +
           (model.provenance.emulated ? " (the device is emulated: times mean nothing)" : "") +
           "\n\n";
  if (model.host_messages.on_node || model.host_messages.off_node || model.device_to_host)
    out += movements_table(model);
  return out + packing_table(model) +
         blocks_table(model.blocks_on_node.strided, "strided blocks on the node") +
         blocks_table(model.blocks_on_node.listed, "listed blocks on the node") +
         blocks_table(model.blocks_off_node.strided, "strided blocks between nodes") +
         blocks_table(model.blocks_off_node.listed, "listed blocks between nodes") +
         choices_table(model, dtype::Reach::on_node, "on the node") +
         choices_table(model, dtype::Reach::off_node, "between nodes") + describe_flaws(model);
}

std::string place_to_write(const Config& config) {
  return config.model.empty() ? dtype::default_model_path() : config.model;
}

}  // namespace

int calibrate(const Config& config, MPI_Comm comm) {
  const auto provenance = gather_provenance(config, comm);
  std::string path;
  run_on_root(comm, [&] {
    path = place_to_write(config);
    if (config.dry_run) return;
    // The program makes the folder of the default place itself.
    const auto folder = std::filesystem::path(path).parent_path();
    if (!config.model.empty() && !folder.empty() && !std::filesystem::is_directory(folder))
      throw ConfigError("system model cannot be written (" + path + ": there is no folder " +
                        folder.string() + "): make it, or give another path");
    dtype::require_writable_model(path);
  });
  comm::Calibration calibration(comm, {.resources = resources_if_any(),
                                       .gpu_aware_mpi = gpu_awareness_by_flag(config),
                                       .seconds = config.max_seconds});
  if (config.dry_run) {
    run_on_root(comm, [&] { print(describe_dry_run(config, calibration, path)); });
    return 0;
  }
  const bool tables = !config.quiet && !config.json;
  run_on_root(comm, [&] {
    if (tables) print(parts_not_measured(calibration.parts()));
  });
  Progress progress(rank_of(comm) == 0 && tables, "calibrate", calibration.points());
  auto model = calibration.measure([&](std::int64_t points) { progress.update(points); });
  progress.finish();
  model.provenance = machine_of(provenance);
  run_on_root(comm, [&] {
    dtype::write_model(model, path);
    if (config.json) print(to_json(model));
    if (tables)
      print(describe(model) + "\nwritten to " + path + "\n");
    else if (const auto flaws = flaws_of(model, path); !flaws.empty())
      std::fprintf(stderr, "halocline: %s\n", flaws.c_str());
  });
  return 0;
}

}  // namespace halocline::app
