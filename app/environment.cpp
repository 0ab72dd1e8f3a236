// SPDX-License-Identifier: BSD-3-Clause
#include "environment.hpp"

#include <malloc.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "dtype/pack/kokkos/kokkos_threads.hpp"
#include "support/machine.hpp"
#include "support/mpi_check.hpp"
#include "support/narrow.hpp"

namespace halocline::app {

namespace {

// Returns the affinity mask of this process as bytes; empty if the system does not show one.
std::vector<unsigned char> affinity_mask() {
#ifdef __linux__
  // The mask has the size of the kernel's largest configuration: the call fails if the mask is too
  // small.
  constexpr std::size_t kCpus = 8192;
  std::vector<unsigned char> mask(CPU_ALLOC_SIZE(kCpus));
  auto* set = reinterpret_cast<cpu_set_t*>(mask.data());
  CPU_ZERO_S(mask.size(), set);
  if (sched_getaffinity(0, mask.size(), set) == 0) return mask;
#endif
  return {};
}

int bits_in(const std::vector<unsigned char>& mask) {
  int bits = 0;
  for (const auto byte : mask) bits += __builtin_popcount(byte);
  return bits;
}

// Reads the first number of OMP_NUM_THREADS. OpenMP allows a list, with one number for each nesting
// level. The OpenMP library reports values that are no numbers.
std::optional<int> openmp_threads() {
  const char* text = std::getenv("OMP_NUM_THREADS");
  if (text == nullptr) return std::nullopt;
  std::string_view view(text);
  view.remove_prefix(std::min(view.find_first_not_of(' '), view.size()));
  int value = 0;
  const auto [end, error] = std::from_chars(view.data(), view.data() + view.size(), value);
  const bool is_list = end == view.data() + view.size() || *end == ',' || *end == ' ';
  if (error != std::errc{} || value < 1 || !is_list) return std::nullopt;
  return value;
}

// Reads KOKKOS_NUM_THREADS. Throws ConfigError for anything but a number of threads.
std::optional<int> kokkos_threads_wanted() {
  const char* text = std::getenv("KOKKOS_NUM_THREADS");
  if (text == nullptr || *text == '\0') return std::nullopt;
  int value = 0;
  const std::string_view view(text);
  const auto [end, error] = std::from_chars(view.data(), view.data() + view.size(), value);
  if (error != std::errc{} || end != view.data() + view.size() || value < 1)
    throw ConfigError("KOKKOS_NUM_THREADS is '" + std::string(view.substr(0, 40)) +
                      "': give a number of threads from 1 to " +
                      std::to_string(dtype::kMostKokkosThreads) + ", or unset it");
  return value;
}

// Returns the choice of `wanted` threads, limited to the number that Kokkos has room for.
ThreadChoice limited(int wanted, const std::string& reason) {
  constexpr int kMost = dtype::kMostKokkosThreads;
  if (wanted <= kMost) return {wanted, reason, wanted};
  return {kMost, reason + "; Kokkos has room for " + std::to_string(kMost), wanted};
}

}  // namespace

MpiEnvironment::MpiEnvironment(int* argc, char*** argv) {
  // MPI_File_open of Open MPI prepares shared file pointers, which we never use. Other ways to do
  // so wait for a semaphore that a killed program of this node has left, or abort for long paths.
  setenv("OMPI_MCA_sharedfp", "individual", 0);
#ifdef __GLIBC__
  // Each thread of MPI gets a heap of 64 MiB of addresses, and the limit may leave MPI no others.
  if (std::isfinite(addresses_left())) mallopt(M_ARENA_MAX, 1);
#endif
  int provided = 0;
  HALOCLINE_MPI(MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &provided));
  HALOCLINE_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  HALOCLINE_MPI(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
}

MpiEnvironment::~MpiEnvironment() {
  MPI_Finalize();
}

int rank_of(MPI_Comm comm) {
  int rank = 0;
  HALOCLINE_MPI(MPI_Comm_rank(comm, &rank));
  return rank;
}

int size_of(MPI_Comm comm) {
  int size = 0;
  HALOCLINE_MPI(MPI_Comm_size(comm, &size));
  return size;
}

std::string broadcast(std::string text, MPI_Comm comm) {
  auto length = static_cast<std::int64_t>(text.size());
  HALOCLINE_MPI(MPI_Bcast(&length, 1, MPI_INT64_T, 0, comm));
  text.resize(static_cast<std::size_t>(length));
  HALOCLINE_MPI(
      MPI_Bcast(text.data(), checked_int(length, "length of a broadcast text"), MPI_CHAR, 0, comm));
  return text;
}

void run_on_root(MPI_Comm comm, const std::function<void()>& action) {
  // The first character is the kind of the error.
  std::string outcome;
  if (rank_of(comm) == 0) {
    try {
      action();
    } catch (const MpiError&) {
      throw;
    } catch (const ConfigError& error) {
      outcome = std::string("C") + error.what();
    } catch (const EnvironmentError& error) {
      outcome = std::string("E") + error.what();
    }
  }
  outcome = broadcast(std::move(outcome), comm);
  if (outcome.empty()) return;
  if (outcome.front() == 'C') throw ConfigError(outcome.substr(1));
  throw EnvironmentError(outcome.substr(1));
}

void print(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    throw EnvironmentError("stdout cannot be written (" + std::generic_category().message(errno) +
                           "): send it to a terminal, a pipe or a file on a disk with free space");
}

int bound_cores() {
  if (const int bits = bits_in(affinity_mask()); bits > 0) return bits;
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

ThreadChoice choose_threads(const Config& config, MPI_Comm comm) {
  // The collective call comes first: each rank's environment may end this function early.
  MPI_Comm node = MPI_COMM_NULL;
  HALOCLINE_MPI(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
  auto mask = affinity_mask();
  HALOCLINE_MPI(MPI_Allreduce(MPI_IN_PLACE, mask.data(), static_cast<int>(mask.size()), MPI_BYTE,
                              MPI_BOR, node));
  const int ranks = size_of(node);
  HALOCLINE_MPI(MPI_Comm_free(&node));

  if (config.threads > 0) return limited(config.threads, "threads option");
  // The environments of ranks may differ.
  std::optional<int> wanted_by_kokkos;
  comm::collectively(comm, [&] { wanted_by_kokkos = kokkos_threads_wanted(); });
  if (wanted_by_kokkos) return limited(*wanted_by_kokkos, "KOKKOS_NUM_THREADS");
  if (const auto threads = openmp_threads()) return limited(*threads, "OMP_NUM_THREADS");
  const int cores = mask.empty() ? bound_cores() : bits_in(mask);
  return limited(std::max(1, std::min(cores / ranks, bound_cores())),
                 "share of the node: " + std::to_string(cores) + " hardware threads, " +
                     std::to_string(ranks) + (ranks == 1 ? " rank" : " ranks"));
}

void say(const Config& config, MPI_Comm comm, const std::string& text) {
  run_on_root(comm, [&] {
    if (!config.quiet) print(text);
  });
}

void warn(MPI_Comm comm, const std::string& text) {
  if (rank_of(comm) == 0) std::fputs(text.c_str(), stderr);
}

void report_failure(MPI_Comm comm, const std::string& what) {
  if (rank_of(comm) == 0)
    std::fprintf(stderr, "halocline: verification failed (%s\n", what.c_str());
}

Samples max_over_ranks(Samples samples, MPI_Comm comm) {
  HALOCLINE_MPI(MPI_Allreduce(MPI_IN_PLACE, samples.data(), static_cast<int>(samples.size()),
                              MPI_DOUBLE, MPI_MAX, comm));
  return samples;
}

}  // namespace halocline::app
