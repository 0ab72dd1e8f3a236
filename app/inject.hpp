// SPDX-License-Identifier: BSD-3-Clause
// Deliberate faults, to show that the verification sees them.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "comm/exchange/job.hpp"
#include "config.hpp"

namespace halocline::app {

/// Makes one message (or copy to itself) that rank 0 receives wrong: lost (drop), swapped with
/// another one of its size (swap), or with one bit wrong (flip). It acts on the receive regions
/// before and after an exchange, so it is the same for every method.
class FaultInjector {
 public:
  /// `jobs` and their types must outlive this object. Throws ConfigError, on rank 0 only, if there
  /// is no message to spoil.
  FaultInjector(Inject kind, const std::vector<comm::ExchangeJob>& jobs, MPI_Comm comm);

  /// Runs `exchange` with the fault.
  /// Throws ConfigError on all ranks if there is nothing to swap. Collective.
  void around(const std::function<void()>& exchange) const;

 private:
  void spoil(const std::vector<std::byte>& before) const;

  Inject kind_;
  MPI_Comm comm_;
  const comm::ExchangeJob* victim_ = nullptr;    ///< none on ranks that spoil nothing
  std::vector<const comm::ExchangeJob*> twins_;  ///< of the victim's size
};

}  // namespace halocline::app
