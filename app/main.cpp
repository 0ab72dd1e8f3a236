// SPDX-License-Identifier: BSD-3-Clause
// Starts the mini-app `halocline` and turns errors into exit codes. Other files do the work.
#include <mpi.h>

#include <Kokkos_Core.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <string>
#include <thread>

#include "comm/mpi/communicator.hpp"
#include "commands.hpp"
#include "config.hpp"
#include "dtype/device/device.hpp"
#include "dtype/pack/kokkos/kokkos_threads.hpp"
#include "environment.hpp"
#include "support/error.hpp"
#include "support/machine.hpp"
#include "tools.hpp"

namespace {

using namespace halocline;

constexpr int kBadInput = 2;
constexpr int kEnvironment = 3;

int dispatch(const app::Config& config, MPI_Comm comm) {
  switch (config.subcommand) {
    case app::Subcommand::run:
      return app::run(config, comm);
    case app::Subcommand::compare:
      return app::compare(config, comm);
    case app::Subcommand::calibrate:
      return app::calibrate(config, comm);
    case app::Subcommand::gather:
      return app::gather(config, comm);
    case app::Subcommand::predict:
      return app::predict(config, comm);
    case app::Subcommand::inspect:
      return app::inspect(config, comm);
    case app::Subcommand::info:
      break;
  }
  return app::info(config, comm);
}

// Prints one line on stderr by one write, whatever characters the message has.
void report(std::string line) {
  std::replace_if(
      line.begin(), line.end(), [](unsigned char c) { return c < ' '; }, ' ');
  std::fputs((line + "\n").c_str(), stderr);
}

// Returns the number of threads for Kokkos. A flag that is too large is refused. A number from the
// environment or the machine need not be meant for this program, so it is limited.
int threads_for_kokkos(const app::Config& config, MPI_Comm comm) {
  const auto choice = app::choose_threads(config, comm);
  if (choice.wanted > choice.threads && app::rank_of(comm) == 0)
    report("halocline: " + std::to_string(choice.threads) + " threads per rank instead of " +
           std::to_string(choice.wanted) + " (" + choice.reason +
           "): give --threads N for another number");
  return dtype::limit_kokkos_threads(choice.threads);
}

// Checks that MPI has addresses for its messages. Each rank looks for itself, since Open MPI hangs
// in a message without them.
void require_addresses() {
  if (addresses_left() < kAddressesOfMpi)
    throw EnvironmentError("ulimit -v leaves MPI no addresses for messages: raise ulimit -v");
}

int parse_and_dispatch(int argc, char** argv, MPI_Comm comm) {
  const auto config = app::parse_config(comm, argc, argv);
  if (!config) return 0;
  // Kokkos warns unless this is set; binding is the launcher's business.
  setenv("OMP_PROC_BIND", "false", 0);
  const Kokkos::ScopeGuard kokkos(Kokkos::InitializationSettings()
                                      .set_num_threads(threads_for_kokkos(*config, comm))
                                      .set_disable_warnings(true));
  const app::ToolsConnection tools;
  // An error of one rank's device concerns all ranks; without this call, only that rank would
  // notice it.
  comm::collectively(comm, [] { dtype::current_device(); });
  return dispatch(*config, comm);
}

// Reports an error that every rank has: one line, and all ranks end in the ordinary way.
int end_job(MPI_Comm comm, const std::exception& error, int code) {
  if (app::rank_of(comm) == 0) report(std::string("halocline: ") + error.what());
  return code;
}

// Reports an error of this rank alone. It has to abort, since other ranks may wait inside of a
// collective call. Rank 0 is the first to report, so that an error of all ranks is one line.
int abort_job(MPI_Comm comm, const std::exception& error) {
  if (app::size_of(comm) == 1) return end_job(comm, error, kEnvironment);
  if (app::rank_of(comm) > 0) std::this_thread::sleep_for(std::chrono::milliseconds(500));
  char host[MPI_MAX_PROCESSOR_NAME] = "?";
  int length = 0;
  MPI_Get_processor_name(host, &length);
  report("halocline: rank " + std::to_string(app::rank_of(comm)) + " on " + host + ": " +
         error.what());
  MPI_Abort(comm, kEnvironment);
  return kEnvironment;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const app::MpiEnvironment mpi(&argc, &argv);
    const MPI_Comm comm = MPI_COMM_WORLD;
    try {
      require_addresses();
    } catch (const EnvironmentError& error) {
      return abort_job(comm, error);
    }
    try {
      return parse_and_dispatch(argc, argv, comm);
    } catch (const MpiError& error) {
      return abort_job(comm, error);
    } catch (const CudaError& error) {
      return abort_job(comm, error);
    } catch (const NoDeviceMemory& error) {
      return abort_job(comm, error);
    } catch (const ConfigError& error) {
      return end_job(comm, error, kBadInput);
    } catch (const EnvironmentError& error) {
      return end_job(comm, error, kEnvironment);
    } catch (const std::bad_alloc&) {
      return abort_job(comm, EnvironmentError(kNoMemory));
    } catch (const std::exception& error) {
      return abort_job(comm, error);
    }
  } catch (const std::bad_alloc&) {
    report(std::string("halocline: ") + kNoMemory);
    return kEnvironment;
  } catch (const std::exception& error) {
    report(std::string("halocline: ") + error.what());
    return kEnvironment;
  }
}
