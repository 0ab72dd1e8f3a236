// SPDX-License-Identifier: BSD-3-Clause
// Injects deliberate faults, to show that the verification sees them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "comm/exchange/job.hpp"
#include "config.hpp"

namespace halocline::app {

/// Spoils one message (or copy to itself) that rank 0 receives. The fault acts on the receive
/// regions before and after an exchange, so it is the same for every method. Kinds of faults:
/// - drop: the message is lost.
/// - swap: it is swapped with another message of its size.
/// - flip: one bit is wrong.
/// - stale: it holds the data of the exchange before.
class FaultInjector {
 public:
  /// Chooses the message to spoil in exchanges whose number is at least `from`. `jobs` and their
  /// types must outlive this object.
  /// \throws ConfigError on rank 0 only if there is no message to spoil.
  FaultInjector(Inject kind, std::int64_t from, const std::vector<comm::ExchangeJob>& jobs,
                MPI_Comm comm);

  /// Runs `exchange`, number `number` of its plan, with the fault. The very first exchange cannot
  /// be stale and stays right. Collective.
  /// \throws ConfigError on all ranks if there is nothing to swap.
  void around(std::int64_t number, const std::function<void()>& exchange) const;

 private:
  void spoil(const std::vector<std::byte>& before, std::vector<std::byte> after) const;

  Inject kind_;
  std::int64_t from_;
  MPI_Comm comm_;
  const comm::ExchangeJob* victim_ = nullptr;    ///< nullptr on ranks that spoil nothing
  std::vector<const comm::ExchangeJob*> twins_;  ///< jobs of the victim's size
  mutable std::vector<std::byte> last_;          ///< data that arrived in the last exchange
};

}  // namespace halocline::app
