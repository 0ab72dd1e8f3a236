// SPDX-License-Identifier: BSD-3-Clause
#include "comm/interpose/choice.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <limits>
#include <string>

#include "comm/interpose/requests.hpp"
#include "dtype/pack/host/host_packer.hpp"
#include "dtype/support/error.hpp"
#include "dtype/support/machine.hpp"

namespace halocline::interpose {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Both ways in turns, as many calls to a sample as the clock needs.
template <class Ours, class Mpi>
PackRates fastest(Ours&& ours, Mpi&& mpi, std::int64_t bytes) {
  constexpr double kSample = 1e-6, kAtMost = 2e-3;
  constexpr int kRounds = 5;
  const auto sample = [](auto&& pack, int calls) {
    const auto start = Clock::now();
    for (int i = 0; i < calls; ++i) pack();
    return seconds_since(start) / calls;
  };
  const auto calls_of = [&](auto&& pack) {
    return static_cast<int>(std::clamp(kSample / std::max(sample(pack, 1), 1e-9), 1.0, 100.0));
  };
  const int our_calls = calls_of(ours), mpi_calls = calls_of(mpi);
  double of_ours = std::numeric_limits<double>::infinity(), of_mpi = of_ours;
  const auto start = Clock::now();
  for (int round = 0; round < kRounds && (round < 2 || seconds_since(start) < kAtMost); ++round) {
    of_ours = std::min(of_ours, sample(ours, our_calls));
    of_mpi = std::min(of_mpi, sample(mpi, mpi_calls));
  }
  const auto n = static_cast<double>(bytes);
  return {of_ours / n, of_mpi / n};
}

std::optional<dtype::SystemModel> read_model_of_user() {
  try {
    const auto* const given = std::getenv("HALOCLINE_MODEL");
    const auto path = dtype::default_model_path();
    if ((given == nullptr || *given == '\0') && !std::filesystem::exists(path)) return std::nullopt;
    auto out = dtype::read_model(path);
    auto here = out.provenance;  // devices are compared when one is met
    here.cpu = cpu_model();
    here.mpi = mpi_library();
    if (const auto differences = dtype::require_match(out.provenance, here, true);
        !differences.empty())
      throw ConfigError(path + ": the system model is of another machine (" + differences +
                        "): measure this one with 'halocline calibrate'");
    return out;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "halocline: %s; goes on without a model\n", error.what());
    return std::nullopt;
  }
}

int number_in(const char* variable) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? -1 : std::atoi(text);
}

}  // namespace

std::optional<PackRates> measure_packing(const dtype::PackPlan& plan, MPI_Datatype handle,
                                         const void* buffer, std::int64_t count) {
  constexpr std::int64_t kAtMost = std::int64_t{1} << 20;
  const auto size = plan.packed_bytes(1);
  const auto sampled = std::clamp<std::int64_t>(kAtMost / size, 1, count);
  const auto bytes = plan.packed_bytes(sampled);
  if (bytes > std::numeric_limits<int>::max()) return std::nullopt;
  const PackedBytes our_bytes(bytes), mpi_bytes(bytes);
  int position = 0, code = MPI_SUCCESS;
  const auto by_us = [&] { dtype::HostPacker().pack(plan, buffer, sampled, our_bytes.data()); };
  const auto by_mpi = [&] {
    position = 0;
    code = PMPI_Pack(buffer, static_cast<int>(sampled), handle, mpi_bytes.data(),
                     static_cast<int>(bytes), &position, MPI_COMM_SELF);
  };
  by_us();
  by_mpi();
  if (code != MPI_SUCCESS || position != bytes ||
      std::memcmp(our_bytes.data(), mpi_bytes.data(), static_cast<std::size_t>(bytes)) != 0)
    return std::nullopt;
  return fastest(by_us, by_mpi, bytes);
}

const dtype::SystemModel* model() {
  static const auto value = read_model_of_user();
  return value ? &*value : nullptr;
}

bool all_ranks_are_near() {
  static const bool value = [] {
    int ranks = 0;
    PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
    // Open MPI's, that of MPICH and Intel MPI, Slurm's.
    return ranks == 1 || number_in("OMPI_COMM_WORLD_LOCAL_SIZE") == ranks ||
           number_in("MPI_LOCALNRANKS") == ranks || number_in("SLURM_STEP_NUM_NODES") == 1;
  }();
  return value;
}

bool message_pays(const PackRates& rates, std::int64_t bytes) {
  constexpr double kWorthwhile = 0.9;  // of MPI's time: less is noise
  if (model() == nullptr) return false;
  const auto& paths = model()->host_messages;
  const bool near = all_ranks_are_near();
  const auto& path = near ? paths.on_node : paths.off_node;
  if (!path) return false;
  const auto n = static_cast<double>(bytes), piece = std::min(n, double{kPiece});
  const double latency = path->at(1, 0), message = path->at(1, n);
  const double moved = near ? rates.mpi * n : std::max(rates.mpi * n, message - latency);
  const double ours = 2 * rates.ours * n + message;
  const double mpi = latency + moved + rates.mpi * piece;
  return ours < kWorthwhile * mpi;
}

}  // namespace halocline::interpose
