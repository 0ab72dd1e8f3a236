// SPDX-License-Identifier: BSD-3-Clause
#include <mpi.h>

#include <nlohmann/json.hpp>
#include <string>

#include "comm/exchange/method.hpp"
#include "commands.hpp"
#include "environment.hpp"
#include "provenance.hpp"

#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif

namespace halocline::app {

namespace {

// Asked at run time: the macro only says that there is somebody to ask.
std::string gpu_awareness() {
#ifdef MPIX_CUDA_AWARE_SUPPORT
  return MPIX_Query_cuda_support() == 1 ? "yes (MPIX_Query_cuda_support: 1)"
                                        : "no (MPIX_Query_cuda_support: 0)";
#else
  return "unknown (this MPI has no MPIX_Query_cuda_support)";
#endif
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

int info(const Config& config, MPI_Comm comm) {
  const auto provenance = gather_provenance(config, comm);
  const auto choice = choose_threads(config, comm);
  auto facts = to_json(provenance);
  facts.erase("config");
  facts.erase("environment");
  facts["ranks"] = size_of(comm);
  facts["nodes"] = provenance.hosts.size();
  facts["threads"] = choice.threads;
  facts["threads_reason"] = choice.reason;
  facts["gpu_aware_mpi"] = gpu_awareness();
  facts["methods"] = nlohmann::ordered_json::array();
  for (const auto exchange : comm::all_exchanges())
    facts["methods"].push_back(comm::name(exchange));

  on_root(comm, [&] {
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
