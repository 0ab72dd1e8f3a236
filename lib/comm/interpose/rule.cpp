// SPDX-License-Identifier: BSD-3-Clause
#include "comm/interpose/rule.hpp"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <string>
#include <system_error>

#include "comm/interpose/settings.hpp"
#include "support/error.hpp"
#include "support/machine.hpp"

namespace halocline::interpose {

namespace {

bool is_model_given() {
  const auto* const given = std::getenv("HALOCLINE_MODEL");
  return given != nullptr && *given != '\0';
}

std::optional<dtype::SystemModel> read_model_of_user() {
  const bool is_given = is_model_given();
  const bool is_logged = settings().log != Settings::Log::none;
  try {
    const auto path = dtype::default_model_path();
    if (!is_given && !std::filesystem::exists(path)) {
      if (is_logged && is_first_rank())
        std::fprintf(stderr,
                     "halocline: there is no system model (%s): messages are left to MPI until "
                     "'halocline calibrate' has measured one\n",
                     path.c_str());
      return std::nullopt;
    }
    auto out = dtype::read_model(path);
    auto here = out.provenance;  // the device is compared later, when one is found
    here.cpu = cpu_model();
    here.mpi = mpi_library();
    if (const auto differences = dtype::require_match(out.provenance, here, true);
        !differences.empty())
      throw ConfigError(path + ": the system model is of another machine (" + differences +
                        "): measure this one with 'halocline calibrate'");
    if (const auto flaws = flaws_of(out, path); !flaws.empty() && is_logged && is_first_rank())
      std::fprintf(stderr, "halocline: %s\n", flaws.c_str());
    return out;
  } catch (const std::exception& error) {
    // Without a log or HALOCLINE_MODEL, nobody has asked for a model.
    if ((is_given || is_logged) && is_first_rank())
      std::fprintf(stderr, "halocline: %s; goes on without a model%s\n", error.what(),
                   settings().mode == Settings::Mode::engine ? "" : ", messages are left to MPI");
    return std::nullopt;
  }
}

int number_in(const char* variable) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? -1 : std::atoi(text);
}

// Returns the times of messages between the ranks of this job; nullptr if none were measured.
const dtype::BlockTraffic* block_traffic() {
  static const auto* const value = [] {
    const dtype::BlockTraffic* none = nullptr;
    if (model() == nullptr) return none;
    const auto& traffic = all_ranks_are_near() ? model()->blocks_on_node : model()->blocks_off_node;
    if (traffic != dtype::BlockTraffic()) return &traffic;
    if (settings().log != Settings::Log::none && is_first_rank())
      std::fprintf(stderr,
                   "halocline: the system model has no messages of blocks %s: they are left to MPI "
                   "until 'halocline calibrate' has measured them\n",
                   all_ranks_are_near() ? "on the node" : "between nodes");
    return none;
  }();
  return value;
}

}  // namespace

const dtype::SystemModel* model() {
  // Never destroyed: a program may send while it ends.
  static const auto& value = *new auto(read_model_of_user());
  return value ? &*value : nullptr;
}

bool is_model_missing() {
  std::error_code error;
  return is_model_given() && !std::filesystem::exists(dtype::default_model_path(), error);
}

bool all_ranks_are_near() {
  static const bool value = [] {
    int ranks = 0;
    PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
    // The variables are Open MPI's, that of MPICH and Intel MPI, and Slurm's without these
    // launchers.
    const int open_mpi = number_in("OMPI_COMM_WORLD_LOCAL_SIZE");
    const int near = open_mpi > 0 ? open_mpi : number_in("MPI_LOCALNRANKS");
    return ranks == 1 || near == ranks || (near < 0 && number_in("SLURM_STEP_NUM_NODES") == 1);
  }();
  return value;
}

bool has_message_times() {
  return block_traffic() != nullptr;
}

std::optional<MessageTime> message_time(const dtype::BlockTraffic& times,
                                        const dtype::BlockShape& shape, std::int64_t bytes,
                                        Traffic traffic) {
  const auto& [packed, typed] = traffic == Traffic::one_way ? times.one_way : times.both_ways;
  if (!packed || !typed || bytes > kLongestMessage) return std::nullopt;
  const auto ours = packed->of(shape.block_bytes, shape.stride_bytes);
  const auto n = static_cast<double>(bytes);
  if (!ours.reaches(n)) return std::nullopt;
  return MessageTime{ours.at(n), typed->of(shape.block_bytes, shape.stride_bytes).at(n)};
}

std::optional<MessageTime> message_time(const dtype::BlockShape& shape, std::int64_t bytes,
                                        Traffic traffic) {
  const auto* const times = block_traffic();
  return times != nullptr ? message_time(*times, shape, bytes, traffic) : std::nullopt;
}

bool engine_sends(const dtype::BlockShape& shape, std::int64_t bytes, Traffic traffic) {
  if (!engine_packs(shape)) return false;
  const auto time = message_time(shape, bytes, traffic);
  return time && time->pays();
}

}  // namespace halocline::interpose
