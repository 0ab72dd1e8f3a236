// SPDX-License-Identifier: BSD-3-Clause
#include "run_control.hpp"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <ctime>
#include <utility>

#include "environment.hpp"
#include "support/mpi_check.hpp"

namespace halocline::app {

namespace {

// One bit for each wish, so that no wish hides another one.
enum WishBit : unsigned { kStopFile = 1, kReloadFile = 2, kTerm = 4, kUsr1 = 8 };

std::atomic<unsigned> noted_signals = 0;
static_assert(std::atomic<unsigned>::is_always_lock_free);

std::atomic<std::time_t> first_term = 0;
static_assert(std::atomic<std::time_t>::is_always_lock_free);

// Calls only functions that are safe in a handler of signals.
void note_signal(int signal) {
  noted_signals |= signal == SIGTERM ? kTerm : kUsr1;
  if (signal != SIGTERM) return;
  const auto now = std::time(nullptr);
  if (std::time_t none = 0; first_term.compare_exchange_strong(none, now)) return;
  // Launchers may pass on a signal that the rank already has, so one at once is no second wish.
  if (now - first_term < 2) return;
  std::signal(SIGTERM, SIG_DFL);
  std::raise(SIGTERM);
}

struct sigaction old_term, old_usr1;

}  // namespace

RunControl::RunControl(std::string folder, MPI_Comm comm)
    : folder_(std::move(folder)), comm_(comm) {
  struct sigaction action {};
  action.sa_handler = note_signal;
  action.sa_flags = SA_RESTART;
  sigaction(SIGTERM, &action, &old_term);
  sigaction(SIGUSR1, &action, &old_usr1);
}

RunControl::~RunControl() {
  sigaction(SIGTERM, &old_term, nullptr);
  sigaction(SIGUSR1, &old_usr1, nullptr);
}

RunControl::Wishes RunControl::wishes() {
  unsigned mine = noted_signals.exchange(0), all = 0;
  if (rank_of(comm_) == 0) {
    // A removed file cannot act twice.
    if (unlink((folder_ + "/STOP").c_str()) == 0) mine |= kStopFile;
    if (access((folder_ + "/RELOAD").c_str(), F_OK) == 0) mine |= kReloadFile;
  }
  HALOCLINE_MPI(MPI_Allreduce(&mine, &all, 1, MPI_UNSIGNED, MPI_BOR, comm_));
  Wishes out;
  out.reload = (all & kReloadFile) != 0;
  if ((all & kUsr1) != 0) out.stop = "SIGUSR1";
  if ((all & kTerm) != 0) out.stop = "SIGTERM";
  if ((all & kStopFile) != 0) out.stop = "file STOP";
  return out;
}

void RunControl::end_reload() {
  if (rank_of(comm_) == 0) unlink((folder_ + "/RELOAD").c_str());
}

}  // namespace halocline::app
