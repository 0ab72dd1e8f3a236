// SPDX-License-Identifier: BSD-3-Clause
#include <mpi.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "comm/exchange/method.hpp"
#include "comm/mpi/communicator.hpp"
#include "comm/node/shared_window.hpp"
#include "commands.hpp"
#include "domain.hpp"
#include "dtype/device/device.hpp"
#include "environment.hpp"
#include "methods.hpp"
#include "model.hpp"
#include "provenance.hpp"
#include "table.hpp"

namespace halocline::app {

namespace {

// Says if the MPI takes device memory. The MPI is not asked if there is no device.
std::string describe_gpu_awareness(const Config& config) {
  auto* const device = dtype::current_device();
  if (device == nullptr) return "not asked (no device)";
  const auto known = gpu_awareness(config, *device);
  return std::string(known.aware ? "yes (" : "no (") + known.source + ")";
}

std::string device() {
  const auto* const found = dtype::current_device();
  if (found == nullptr) return "none (" + dtype::why_no_device() + ")";
  const auto properties = found->properties();
  return properties.name + " (driver " + properties.driver + ")";
}

std::string join(const nlohmann::ordered_json& value) {
  if (value.is_null()) return "none";
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return value.dump();
  std::string out;
  for (const auto& item : value) out += (out.empty() ? "" : ", ") + join(item);
  return out.empty() ? "none" : out;
}

}  // namespace

namespace {

// Says on which pages a part of memory lies.
std::string describe_pages(const void* data, std::int64_t bytes) {
  const auto share = comm::share_on_huge_pages(data, bytes);
  return share ? format_fixed(100 * *share, 0) + " % huge" : "unknown";
}

// Tries a few MiB of the memory that fields get. Collective.
void try_memory(nlohmann::ordered_json& facts, MPI_Comm comm) try {
  constexpr std::int64_t kBytes = 4 * comm::PagedMemory::kHugePage;
  std::optional<comm::PagedMemory> private_memory;
  comm::collectively(comm, [&] { private_memory.emplace(kBytes).touch(); });
  const auto& own = *private_memory;
  const comm::SharedWindow window(comm, kBytes);
  facts["shared_memory"] = std::string(to_string(window.kind())) +
                           (window.why_mpi().empty() ? "" : " (" + window.why_mpi() + ")");
  const auto why = comm::why_no_huge_pages();
  facts["pages"] = "private " + describe_pages(own.data(), kBytes) + ", shared " +
                   describe_pages(window.data(), kBytes) + (why.empty() ? "" : " (" + why + ")");
} catch (const MpiError&) {
  throw;
} catch (const EnvironmentError& error) {
  facts["shared_memory"] = error.what();
}

}  // namespace

int info(const Config& config, MPI_Comm comm) {
  const auto nodes = find_nodes(config, comm);
  const auto provenance = gather_provenance(config, comm);
  const auto choice = choose_threads(config, comm);
  auto facts = to_json(provenance);
  facts.erase("config");
  facts.erase("environment");
  facts.erase("gpu_aware_mpi");
  facts["ranks"] = size_of(comm);
  facts["nodes"] = nodes.nodes();
  facts["nodes_emulated"] = nodes.emulated();
  facts["threads"] = choice.threads;
  facts["threads_reason"] = choice.reason;
  facts["device"] = device();
  comm::collectively(comm, [&] { facts["gpu_aware_mpi"] = describe_gpu_awareness(config); });
  if (rank_of(comm) == 0) facts["model"] = model_state(config, provenance);
  try_memory(facts, comm);
  facts["methods"] = nlohmann::ordered_json::array();
  for (const auto exchange : comm::all_exchanges())
    if (comm::why_not_available(exchange).empty()) facts["methods"].push_back(comm::name(exchange));

  run_on_root(comm, [&] {
    if (config.json) {
      print(facts.dump() + "\n");
      return;
    }
    std::string text;
    constexpr std::size_t kWidth = 16;
    for (const auto& [key, value] : facts.items())
      text += key + std::string(kWidth - key.size(), ' ') + join(value) + "\n";
    print(text);
  });
  return 0;
}

}  // namespace halocline::app
