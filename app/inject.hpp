// SPDX-License-Identifier: BSD-3-Clause
// Deliberate faults, to show that the verification sees them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "comm/exchange/job.hpp"
#include "config.hpp"

namespace halocline::app {

/// Makes one message (or copy to itself) that rank 0 receives wrong: lost (drop), swapped with
/// another one of its size (swap), with one bit wrong (flip), or with the data of the exchange
/// before it (stale). It acts on the receive regions before and after an exchange, so it is the
/// same for every method.
class FaultInjector {
 public:
  /// Spoils the exchanges whose number is at least `from`. `jobs` and their types must outlive this
  /// object. Throws ConfigError, on rank 0 only, if there is no message to spoil.
  FaultInjector(Inject kind, std::int64_t from, const std::vector<comm::ExchangeJob>& jobs,
                MPI_Comm comm);

  /// Runs `exchange`, which has this number, with the fault. The first exchange of all cannot be
  /// stale, and stays right then.
  /// Throws ConfigError on all ranks if there is nothing to swap. Collective.
  void around(std::int64_t number, const std::function<void()>& exchange) const;

 private:
  void spoil(const std::vector<std::byte>& before, std::vector<std::byte> after) const;

  Inject kind_;
  std::int64_t from_;
  MPI_Comm comm_;
  const comm::ExchangeJob* victim_ = nullptr;    ///< none on ranks that spoil nothing
  std::vector<const comm::ExchangeJob*> twins_;  ///< of the victim's size
  mutable std::vector<std::byte> last_;          ///< what has arrived in the last exchange
};

}  // namespace halocline::app
