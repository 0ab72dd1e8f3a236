// SPDX-License-Identifier: BSD-3-Clause
// Runs `halocline predict`: predicts the time of the halo exchange on other numbers of nodes.
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "comm/predict/exchange_model.hpp"
#include "commands.hpp"
#include "domain.hpp"
#include "dtype/pack/pack_plan.hpp"
#include "environment.hpp"
#include "halo_messages.hpp"
#include "methods.hpp"
#include "model.hpp"
#include "progress.hpp"
#include "record.hpp"
#include "session.hpp"
#include "table.hpp"

namespace halocline::app {

namespace {

using dtype::Transfer;

/// Lists the regions that ranks exchange, in the form of a plan's jobs.
class ExchangedRegions {
 public:
  ExchangedRegions(const Domain& domain, comm::HaloShape shape)
      : domain_(domain), messages_{shape, {domain.needed()}} {}

  comm::RankTraffic operator()(int rank) {
    const comm::HaloSpec halo{domain_.decomposition.owned(rank).extent, domain_.halo.radius};
    // All arrays have the same jobs, so one array is enough. A region's buffer is its box.
    std::deque<comm::Box> boxes;
    const auto jobs = comm::halo_jobs(
        domain_.decomposition, rank, halo, 1,
        [&](int, const comm::Box& box) {
          return comm::Region{&boxes.emplace_back(box), box.points(), MPI_BYTE};
        },
        messages_);
    const auto bytes_per_point = std::int64_t{domain_.fields} * domain_.value_bytes();
    comm::RankTraffic out;
    for (const auto& job : jobs) {
      out.resize(std::max(out.size(), static_cast<std::size_t>(job.round) + 1));
      out.back().push_back({job.partner, job.send_count * bytes_per_point,
                            job.receive_count * bytes_per_point, shape_of(halo, job.send_buffer),
                            shape_of(halo, job.receive_buffer)});
    }
    return out;
  }

 private:
  // Returns the blocks of a box in the arrays of a rank.
  dtype::BlockShape shape_of(const comm::HaloSpec& halo, const void* region) {
    const auto& box = *static_cast<const comm::Box*>(region);
    const auto extents = domain_.extents_in_memory(halo);
    const auto [known, is_new] = shapes_.try_emplace({extents, box.extent});
    if (is_new) {
      const auto element =
          dtype::parse_type(domain_.element_bytes == sizeof(double) ? "double" : "float");
      const auto point = domain_.elements_per_point() == 1
                             ? element
                             : dtype::type(dtype::Contiguous{domain_.fields, element});
      const auto backwards = [](const comm::Int3& xyz) {
        return std::vector<std::int64_t>{xyz[2], xyz[1], xyz[0]};
      };
      known->second = dtype::shape_of(dtype::make_plan(
          *dtype::type(dtype::Subarray{dtype::Order::c, backwards(extents), backwards(box.extent),
                                       backwards(box.begin), point})));
    }
    return known->second;
  }

  const Domain& domain_;
  comm::HaloMessages messages_;
  std::map<std::pair<comm::Int3, comm::Int3>, dtype::BlockShape> shapes_;  // by extents in
                                                                           // memory and of the box
};

// Returns the transfers that config.methods allows, in their order.
std::vector<Transfer> transfers_for(const Config& config) {
  std::vector<Transfer> possible{Transfer::host};
  if (config.memory == Memory::device)
    possible = {Transfer::device, Transfer::one_shot, Transfer::staged};
  if (config.methods.empty()) return possible;
  std::vector<Transfer> out;
  for (const auto& method : config.methods) {
    const bool known =
        method.exchange == comm::Exchange::alltoallv &&
        (!method.transfer || std::count(possible.begin(), possible.end(), *method.transfer) == 1);
    if (!known)
      throw ConfigError("method cannot be predicted (" + comm::name(method) + " with memory " +
                        std::string(to_string(config.memory)) +
                        "): use alltoallv, with fields on a device also alltoallv:device, "
                        "alltoallv:one-shot, alltoallv:staged");
    for (const auto transfer : possible)
      if ((!method.transfer || transfer == *method.transfer) &&
          std::count(out.begin(), out.end(), transfer) == 0)
        out.push_back(transfer);
  }
  return out;
}

dtype::SystemModel read_model(const Config& config, Provenance& provenance) {
  const auto path = model_path(config);
  if (path.empty())
    throw ConfigError(
        "no system model (none of --model, HALOCLINE_MODEL, XDG_CONFIG_HOME and HOME "
        "is set): name one with --model");
  auto model = dtype::read_model(path);
  if (const auto flaws = flaws_of(model, path); !flaws.empty())
    std::fprintf(stderr, "halocline: %s\n", flaws.c_str());
  provenance.model = {path, model.provenance.time, model.provenance.host, model.provenance.git,
                      dtype::require_match(model.provenance, machine_of(provenance), true)};
  return model;
}

// ---- The messages for SimGrid, which jobs/simgrid/replay.py reads

// Holds the bytes of the messages to and from a partner in a round.
struct PartnerBytes {
  std::int64_t out = 0, in = 0;
};

std::vector<std::map<int, PartnerBytes>> by_partner(const comm::RankTraffic& traffic, int rank) {
  std::vector<std::map<int, PartnerBytes>> out(traffic.size());
  for (std::size_t round = 0; round < traffic.size(); ++round)
    for (const auto& region : traffic[round]) {
      if (region.partner == rank) continue;
      auto& bytes = out[round][region.partner];
      bytes.out += region.bytes_out;
      bytes.in += region.bytes_in;
    }
  return out;
}

// Returns a rank's messages as a time-independent trace of SMPI: no data, no computation.
std::string trace_of(const comm::RankTraffic& traffic, int rank, std::int64_t exchanges) {
  const auto me = std::to_string(rank);
  std::string exchange;
  for (const auto& partners : by_partner(traffic, rank)) {
    for (const auto& [partner, bytes] : partners)
      exchange +=
          me + " irecv " + std::to_string(partner) + " 0 " + std::to_string(bytes.in) + "\n";
    for (const auto& [partner, bytes] : partners)
      exchange +=
          me + " isend " + std::to_string(partner) + " 0 " + std::to_string(bytes.out) + "\n";
    exchange += me + " waitall\n";
  }
  std::string out = me + " init\n";
  for (std::int64_t i = 0; i < exchanges; ++i) out += exchange;
  return out + me + " finalize\n";
}

dtype::LinkCost link_of(const dtype::MessageTimes& times, const std::string& where) {
  const auto out = link_cost(times);
  if (!out)
    throw ConfigError("traces cannot be written (the model's messages " + where + " end at " +
                      dtype::text_of_bytes(times.measured().back().curve.bytes().back()) +
                      ", where they have no bandwidth yet): measure it again with "
                      "'halocline calibrate', for longer");
  return *out;
}

nlohmann::ordered_json platform_of(const dtype::SystemModel& model, Transfer transfer,
                                   const comm::NodeHierarchy& nodes, std::size_t rounds) {
  const auto& paths = transfer == Transfer::device ? model.device_messages : model.host_messages;
  if (!paths.on_node || !paths.off_node)
    throw ConfigError(
        "traces cannot be written (the model has no messages on the node or between nodes for "
        "transfer " +
        std::string(dtype::name(transfer)) + "): calibrate on two nodes of two ranks or more");
  const auto on_node = link_of(*paths.on_node, "on the node"),
             off_node = link_of(*paths.off_node, "between nodes");
  const auto each = nodes.ranks() / nodes.nodes();
  const auto link = [](const dtype::LinkCost& cost) -> nlohmann::ordered_json {
    return {{"latency_s", cost.latency_s},
            {"bytes_per_s", 1 / cost.seconds_per_byte},
            {"bandwidth_of", "rank"}};
  };
  constexpr int kPorts = 36;  // ports of an InfiniBand switch
  return {{"nodes", nodes.nodes()},
          {"ranks_per_node", each},
          {"rounds", rounds},
          {"overhead_s", off_node.overhead_s},
          {"on_node", link(on_node)},
          {"off_node", link(off_node)},
          {"injection_bytes_per_s",
           model.injection_bytes_per_second.value_or(each * (1 / off_node.seconds_per_byte))},
          {"radix", kPorts}};
}

[[noreturn]] void fail_to_write(const std::string& path, const std::error_code& error) {
  throw EnvironmentError("traces cannot be written (" + path + ": " + error.message() + "): " +
                         (error == std::errc::no_space_on_device ? "free space there or " : "") +
                         "give another folder");
}

// Writes the messages of all ranks and the platform into a new folder, all or nothing.
void write_traces(const Config& config, const nlohmann::ordered_json& platform, int ranks,
                  ExchangedRegions& traffic) {
  namespace fs = std::filesystem;
  const fs::path folder(config.traces), draft(config.traces + "." + std::to_string(getpid()));
  std::error_code error;
  if (fs::exists(fs::symlink_status(folder, error)))
    throw ConfigError("traces cannot be written (" + config.traces +
                      ": is there already): give --traces the path of a new folder");
  if (!fs::create_directory(draft, error))
    throw ConfigError("traces cannot be written (" + config.traces + ": " + error.message() +
                      "): give --traces a new folder in one that is there and may be written to");
  try {
    std::ofstream trace(draft / "trace.txt", std::ios::binary), machine(draft / "platform.json");
    for (int rank = 0; rank < ranks && trace; ++rank)
      trace << trace_of(traffic(rank), rank, config.iterations);
    machine << platform.dump(2) << "\n";
    trace.close();
    machine.close();
    if (!trace || !machine)
      fail_to_write(draft.string(), std::make_error_code(std::errc::io_error));
    fs::rename(draft, folder, error);
    if (error) fail_to_write(config.traces, error);
  } catch (...) {
    fs::remove_all(draft, error);
    throw;
  }
}

// ---- Results

std::string seconds_or_dash(const std::optional<double>& seconds) {
  return seconds ? format_seconds(*seconds) : "-";
}

PredictRecord record_of(const Config& config, const Domain& domain, Transfer transfer,
                        const comm::Prediction& prediction) {
  PredictRecord out;
  static_cast<HaloRecord&>(out) = describe_halo(config, domain, config.shape.front());
  out.exchange = comm::name(comm::Exchange::alltoallv);
  out.transfer = dtype::name(transfer);
  out.method = config.memory == Memory::device ? out.exchange + ":" + out.transfer : out.exchange;
  out.messages = prediction.load.messages;
  out.bytes_off_node_of_node = prediction.load.bytes_off_node_of_node;
  out.bytes_off_node_total = prediction.load.bytes_off_node;
  out.pack_s = prediction.seconds.phases.pack.seconds();
  out.transfer_s = prediction.seconds.phases.transfer.seconds();
  out.unpack_s = prediction.seconds.phases.unpack.seconds();
  out.total_s = prediction.seconds.total.seconds();
  out.injection_limits = prediction.seconds.injection_limits;
  if (const auto* unknown = prediction.seconds.total.unknown()) out.unknown = unknown->text();
  return out;
}

std::string table_of(const std::vector<PredictRecord>& records) {
  Table table({{"nodes"},
               {"ranks"},
               {"grid", Align::left},
               {"off node, of a node"},
               {"pack"},
               {"transfer"},
               {"unpack"},
               {"total"},
               {"limited by", Align::left}});
  for (const auto& record : records)
    table.add_row({std::to_string(record.nodes), std::to_string(record.ranks),
                   format_extent(record.decomposition), format_bytes(record.bytes_off_node_of_node),
                   seconds_or_dash(record.pack_s), seconds_or_dash(record.transfer_s),
                   seconds_or_dash(record.unpack_s), seconds_or_dash(record.total_s),
                   record.unknown                                  ? "-: " + *record.unknown
                   : !record.transfer_s || *record.transfer_s == 0 ? "-"
                   : record.injection_limits                       ? "injection"
                                                                   : "messages"});
  return "\n" + records.front().method + "\n" + table.str();
}

std::string headline(const Config& config, const Provenance& provenance,
                     const dtype::SystemModel& model) {
  const auto& of = model.provenance;
  return "predicted by " + provenance.model->path + " (" + of.cpu +
         (of.gpu.empty() ? "" : ", " + of.gpu) + ", " + of.mpi + ")\n" +
         format_count(config.ranks_per_node.empty() ? 1 : config.ranks_per_node.front(), "rank") +
         " on each node, " +
         (config.global ? format_extent(*config.global) + " points in all"
                        : format_extent(*config.local) + " points of each rank") +
         ", " + format_count(config.fields, "field") + " of " +
         std::string(to_string(config.element)) + " (" + std::string(to_string(config.layout)) +
         "), radius " + format_radius(config.radius) + "\n";
}

bool knows_packing(const dtype::SystemModel& model, Transfer transfer) {
  const dtype::Message one{1, {1, 1}, {1, 1}, dtype::Reach::on_node};
  const auto phases = phase_seconds(model, {&one, 1}, transfer);
  return phases.pack && phases.unpack;
}

// Explains the table to the reader, and says how to replace a - by a number.
std::string footer(const std::vector<Transfer>& transfers,
                   const std::vector<std::vector<PredictRecord>>& by_transfer,
                   const dtype::SystemModel& model) {
  std::string out = "\nof the slowest rank; -: the model does not know it\n";
  const bool off_node = std::any_of(by_transfer.front().begin(), by_transfer.front().end(),
                                    [](const auto& record) { return record.nodes > 1; });
  bool knows_off_node = false;
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    const auto name = std::string(dtype::name(transfers[i]));
    const bool on_device = transfers[i] == Transfer::device;
    const auto& paths = on_device ? model.device_messages : model.host_messages;
    const auto memory = std::string(on_device ? "device" : "host") + " memory";
    knows_off_node = knows_off_node || (paths.on_node && paths.off_node);
    if (!paths.on_node)
      out += name + ": no messages on a node in " + memory +
             ": calibrate with two ranks on a node or more\n";
    if (off_node && !paths.off_node)
      out += name + ": no messages between nodes in " + memory + ": calibrate on two nodes\n";
    if (!knows_packing(model, transfers[i]))
      out += name + ": no times of packing: calibrate where the fields are" +
             (model.provenance.gpu.empty() ? "" : ", or give the other --memory") + "\n";
  }
  if (off_node && knows_off_node && !model.injection_bytes_per_second)
    out += "the model has no rate of injection: all ranks of a node send as if it were alone\n";
  return out;
}

}  // namespace

int predict(const Config& config, MPI_Comm comm) {
  constexpr int kMostRanks = 1 << 20;  // more would take more than seconds
  if (config.ranks_per_node.size() > 1)
    throw ConfigError(
        "ranks per node cannot be used (a list, where any number of nodes is "
        "predicted): give one number");
  const int each = config.ranks_per_node.empty() ? 1 : config.ranks_per_node.front();
  const auto transfers = transfers_for(config);
  if (!config.traces.empty() && (config.nodes.size() != 1 || transfers.size() != 1))
    throw ConfigError("traces cannot be written (" +
                      format_count(std::ssize(config.nodes), "number") + " of nodes, " +
                      format_count(std::ssize(transfers), "transfer") +
                      "): give --nodes one number, and --methods alltoallv with one transfer");
  auto provenance = gather_provenance(config, comm);
  run_on_root(comm, [&] {
    const auto model = read_model(config, provenance);
    const ResultWriter<PredictRecord> writer(config, provenance);
    Progress progress(!config.quiet, "predict", std::ssize(config.nodes));
    std::vector<std::vector<PredictRecord>> by_transfer(transfers.size());
    std::int64_t done = 0;
    for (const auto nodes : config.nodes) {
      if (nodes > kMostRanks / each)
        throw ConfigError("too many ranks (" + std::to_string(nodes) + " nodes of " +
                          std::to_string(each) + "): each is gone through; use at most " +
                          std::to_string(kMostRanks));
      const auto domain = make_domain(config, comm::NodeHierarchy::regular(nodes, each));
      ExchangedRegions traffic(domain, config.shape.front());
      for (std::size_t i = 0; i < transfers.size(); ++i)
        by_transfer[i].push_back(
            record_of(config, domain, transfers[i],
                      comm::predict_exchange(model, domain.nodes.node_of_ranks(), transfers[i],
                                             config.memory == Memory::device, std::ref(traffic))));
      if (!config.traces.empty())
        write_traces(config, platform_of(model, transfers.front(), domain.nodes, traffic(0).size()),
                     domain.nodes.ranks(), traffic);
      progress.update(++done);
    }
    progress.finish();
    std::vector<PredictRecord> all;
    std::string text = headline(config, provenance, model);
    for (const auto& records : by_transfer) {
      text += table_of(records);
      all.insert(all.end(), records.begin(), records.end());
    }
    for (const auto& record : all) writer.write(record);
    if (!config.quiet) print(text + footer(transfers, by_transfer, model));
  });
  return 0;
}

}  // namespace halocline::app
