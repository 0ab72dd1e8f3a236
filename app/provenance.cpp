// SPDX-License-Identifier: BSD-3-Clause
#include "provenance.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "comm/mpi/communicator.hpp"
#include "dtype/device/device.hpp"
#include "environment.hpp"
#include "halocline_build.hpp"
#include "halocline_git.hpp"
#include "kokkos_runtime.hpp"
#include "methods.hpp"
#include "support/machine.hpp"
#include "support/mpi_check.hpp"

namespace halocline::app {

namespace {

std::string mpi_standard() {
  int major = 0;
  int minor = 0;
  HALOCLINE_MPI(MPI_Get_version(&major, &minor));
  return std::to_string(major) + "." + std::to_string(minor);
}

// Are the functions that the baselines call.
constexpr std::array kCalledByBaselines = {
    "MPI_Pack",      "MPI_Unpack",    "MPI_Isend",     "MPI_Irecv",
    "MPI_Send_init", "MPI_Recv_init", "MPI_Start",     "MPI_Startall",
    "MPI_Waitall",   "MPI_Alltoallv", "MPI_Alltoallw", "MPI_Neighbor_alltoallw"};

using Name = std::array<char, std::max(256, MPI_MAX_PROCESSOR_NAME)>;

// Returns the names of all ranks, each once, in rank order. Leaves out empty names.
std::vector<std::string> each_once(const Name& mine, MPI_Comm comm) {
  std::vector<Name> all(rank_of(comm) == 0 ? static_cast<std::size_t>(size_of(comm)) : 0);
  const int bytes = static_cast<int>(mine.size());
  HALOCLINE_MPI(MPI_Gather(mine.data(), bytes, MPI_CHAR, all.data(), bytes, MPI_CHAR, 0, comm));
  std::vector<std::string> unique;
  for (const auto& name : all)
    if (name[0] != '\0' && std::find(unique.begin(), unique.end(), name.data()) == unique.end())
      unique.emplace_back(name.data());
  return nlohmann::json::parse(broadcast(nlohmann::json(unique).dump(), comm));
}

std::vector<std::string> hosts(MPI_Comm comm) {
  Name mine{};
  int length = 0;
  HALOCLINE_MPI(MPI_Get_processor_name(mine.data(), &length));
  return each_once(mine, comm);
}

std::vector<std::string> cpus(MPI_Comm comm) {
  Name mine{};
  cpu_model().copy(mine.data(), mine.size() - 1);
  return each_once(mine, comm);
}

std::vector<std::string> gpus(MPI_Comm comm) {
  Name mine{};
  if (const auto* device = dtype::current_device())
    device->properties().name.copy(mine.data(), mine.size() - 1);
  return each_once(mine, comm);
}

std::string binding(MPI_Comm comm) {
  std::array<int, 2> least_and_minus_most{bound_cores(), -bound_cores()};
  HALOCLINE_MPI(
      MPI_Allreduce(MPI_IN_PLACE, least_and_minus_most.data(), 2, MPI_INT, MPI_MIN, comm));
  const int least = least_and_minus_most[0];
  const int most = -least_and_minus_most[1];
  return std::to_string(least) + (least == most ? "" : " to " + std::to_string(most)) +
         " hardware thread" + (most == 1 ? "" : "s") + " per rank";
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

// Returns the variables that a user sets to tune a run. Leaves out the variables that Open MPI's
// launcher sets for its processes (addresses, directories, keys).
std::map<std::string, std::string> tuning_environment() {
  constexpr std::array wanted{
      "OMPI_MCA_", "OMP_", "KOKKOS_", "UCX_", "CUDA_VISIBLE_DEVICES=", "HALOCLINE_"};
  constexpr std::array launcher{"OMPI_MCA_orte_", "OMPI_MCA_ess", "OMPI_MCA_pmix",
                                "OMPI_MCA_initial_wdir"};
  std::map<std::string, std::string> out;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const auto begins = [&](const char* prefix) { return text.starts_with(prefix); };
    if (std::none_of(wanted.begin(), wanted.end(), begins) ||
        std::any_of(launcher.begin(), launcher.end(), begins))
      continue;
    const auto equals = text.find('=');
    out.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return out;
}

}  // namespace

const Build& build() {
  static const Build instance{
      .version = HALOCLINE_VERSION,
      .git = HALOCLINE_GIT,
      .dirty = std::string_view(HALOCLINE_GIT_STATE) == "unknown"
                   ? std::nullopt
                   : std::optional(std::string_view(HALOCLINE_GIT_STATE) == "dirty"),
      .compiler = HALOCLINE_COMPILER,
      .flags = HALOCLINE_FLAGS,
      .type = HALOCLINE_BUILD_TYPE,
  };
  return instance;
}

std::string version_line() {
  return build().version + " (git " + build().git +
         (build().dirty.value_or(false) ? ", dirty)" : ")");
}

namespace {

// Says if MPI takes messages in device memory, and how that is known.
std::string awareness_used(const Config& config, MPI_Comm comm) {
  auto* const device = dtype::current_device();
  if (config.memory != Memory::device || config.subcommand == Subcommand::predict ||
      device == nullptr)
    return "";
  comm::GpuAwareness known;
  comm::collectively(comm, [&] { known = gpu_awareness(config, *device); });
  return std::string(known.aware ? "yes (" : "no (") + known.source + ")";
}

}  // namespace

Provenance gather_provenance(const Config& config, MPI_Comm comm) {
  return {
      .mpi_library = mpi_library(),
      .mpi_standard = mpi_standard(),
      .interposed = is_interposed(kCalledByBaselines),
      .kokkos_version = kokkos_version(),
      .kokkos_spaces = kokkos_spaces(),
      .cuda =
          dtype::current_device() != nullptr ? dtype::current_device()->properties().driver : "",
      .cpus = cpus(comm),
      .gpus = gpus(comm),
      .hosts = hosts(comm),
      .gpu_aware_mpi = awareness_used(config, comm),
      .binding = binding(comm),
      .time = utc_now(),
      .environment = tuning_environment(),
      .model = std::nullopt,
      .config = effective_config_json(config),
  };
}

}  // namespace halocline::app
