// SPDX-License-Identifier: BSD-3-Clause
#include "comm/calibrate/injection.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "dtype/model/time_table.hpp"
#include "support/mpi_check.hpp"

namespace halocline::comm::detail {

namespace {

// Returns the seconds of one exchange on the slowest rank. All ranks get the same number.
double exchange_seconds(MPI_Comm comm, int partner, const TouchedMemory& sent,
                        const TouchedMemory& received) {
  constexpr auto kCount = static_cast<int>(kInjectionBytes);
  std::array<MPI_Request, 2> requests{};
  HALOCLINE_MPI(MPI_Barrier(comm));
  const auto start = steady_seconds();
  HALOCLINE_MPI(MPI_Irecv(received.data(), kCount, MPI_BYTE, partner, 0, comm, requests.data()));
  HALOCLINE_MPI(MPI_Isend(sent.data(), kCount, MPI_BYTE, partner, 0, comm, &requests[1]));
  HALOCLINE_MPI(MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE));
  double seconds = steady_seconds() - start;
  HALOCLINE_MPI(MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, comm));
  return seconds;
}

}  // namespace

double measure_injection(MPI_Comm comm, int partner, const TouchedMemory& sent,
                         const TouchedMemory& received, const Effort& effort) {
  int rank = 0, ranks = 1;
  HALOCLINE_MPI(MPI_Comm_rank(comm, &rank));
  HALOCLINE_MPI(MPI_Comm_size(comm, &ranks));
  exchange_seconds(comm, partner, sent, received);  // warm-up
  const auto start = steady_seconds();
  std::vector<double> trials;
  for (int go_on = 1; go_on != 0;) {
    trials.push_back(exchange_seconds(comm, partner, sent, received));
    const auto done = static_cast<int>(trials.size());
    go_on =
        done < kLeastTrials || (done < kMostTrials && steady_seconds() - start < effort.seconds);
    HALOCLINE_MPI(MPI_Bcast(&go_on, 1, MPI_INT, 0, comm));
  }
  if (rank != 0) return 0;
  effort.done(1);
  const auto timed = evaluate(std::move(trials));
  if (!timed.settled) effort.noisy(dtype::text_of_bytes(kInjectionBytes) + " of each rank");
  return static_cast<double>(kInjectionBytes) * (ranks / 2) / timed.seconds;
}

}  // namespace halocline::comm::detail
