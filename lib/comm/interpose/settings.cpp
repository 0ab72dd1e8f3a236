// SPDX-License-Identifier: BSD-3-Clause
#include "comm/interpose/settings.hpp"

#include <mpi.h>
#include <strings.h>

#include <cstdio>
#include <cstdlib>
#include <span>
#include <string_view>

namespace halocline::interpose {

namespace {

template <class T>
struct Choice {
  std::string_view name;
  T value;
};

template <class T>
void read(const char* variable, std::span<const Choice<T>> choices, T& out) {
  const char* const text = std::getenv(variable);
  if (text == nullptr || *text == '\0') return;
  for (const auto& [name, value] : choices)
    if (strcasecmp(name.data(), text) == 0) {
      out = value;
      return;
    }
  if (!is_first_rank()) return;
  std::fprintf(stderr, "halocline: %s is '%s', and counts as unset: give one of", variable, text);
  for (const auto& choice : choices)
    std::fprintf(stderr, "%s %s", &choice == choices.data() ? "" : ",", choice.name.data());
  std::fprintf(stderr, "\n");
}

Settings from_environment() {
  using Mode = Settings::Mode;
  using Log = Settings::Log;
  using GpuAware = Settings::GpuAware;
  constexpr Choice<Mode> kModes[] = {{"off", Mode::off},
                                     {"auto", Mode::automatic},
                                     {"engine", Mode::engine},
                                     {"verify", Mode::verify}};
  constexpr Choice<Log> kLogs[] = {
      {"summary", Log::summary}, {"types", Log::types}, {"calls", Log::calls}};
  constexpr Choice<GpuAware> kAnswers[] = {
      {"yes", GpuAware::yes}, {"no", GpuAware::no}, {"ask", GpuAware::ask}};
  Settings out;
  read<Mode>("HALOCLINE_MPI", kModes, out.mode);
  read<Log>("HALOCLINE_MPI_LOG", kLogs, out.log);
  read<GpuAware>("HALOCLINE_GPU_AWARE_MPI", kAnswers, out.gpu_aware_mpi);
  // A comparison that finds nothing should say that it has compared.
  if (out.mode == Mode::verify && out.log == Log::none) out.log = Log::summary;
  return out;
}

}  // namespace

bool is_first_rank() {
  int is_ready = 0, is_over = 0;
  PMPI_Initialized(&is_ready);
  PMPI_Finalized(&is_over);
  if (is_ready != 0 && is_over == 0) {
    int rank = 0;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank == 0;
  }
  for (const char* variable : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"})
    if (const char* const rank = std::getenv(variable); rank != nullptr) return rank[0] == '0';
  return true;
}

const Settings& settings() {
  static const Settings value = from_environment();
  return value;
}

}  // namespace halocline::interpose
