// SPDX-License-Identifier: BSD-3-Clause
// Finds the partners of a rank in a collective, and remembers collectives that stay MPI's.
#pragma once

#include <mpi.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "dtype/pack/handle_table.hpp"

namespace halocline::interpose {

/// Lists the partners of a rank: one for each rank of a group, or one for each neighbor.
struct Partners {
  int count = 0;
  std::vector<bool> there{};  ///< if partner i exists: a grid may end there; empty: all exist

  bool is_there(int i) const { return there.empty() || there[static_cast<std::size_t>(i)]; }
};

/// Computes an even number for what a call exchanges and for how much is known of types.
///
/// Order, sides and the collective do not count: they do not decide if a call is MPI's. Two calls
/// that differ in anything else have the same number with a probability of 2^-60.
class ExchangeHash {
 public:
  explicit ExchangeHash(std::uint64_t learnt) : start_((learnt + 1) * 0xD6E8FEB86659FD93u) {}
  void add(MPI_Datatype type, int count) {
    __extension__ using Wide = unsigned __int128;
    const auto product = Wide{dtype::key_of(type) + start_} *
                         Wide{static_cast<std::uint64_t>(count) + 0x9E3779B97F4A7C15u};
    // Both halves count. With one half alone, equal sums of types, counts and products collided.
    sum_ += static_cast<std::uint64_t>(product >> 64) ^ static_cast<std::uint64_t>(product);
  }
  std::uint64_t value() const { return 2 * sum_; }

 private:
  std::uint64_t start_, sum_ = 0;
};

/// Remembers calls that were found to be MPI's, by their hashes. The same call is then passed on
/// without a look at each of its types. When something is learnt of any type, the hashes change, so
/// all calls are forgotten. Thread-safe.
class PassedOn {
 public:
  enum class Found {
    mpis,          ///< MPI's, wherever the data are
    mpis_on_host,  ///< MPI's, unless the data are in memory of a device
    not_yet        ///< not known
  };
  Found find(std::uint64_t hash) const {
    const auto different = slots_[slot(hash)].load(std::memory_order_relaxed) ^ hash;
    return different <= 1 ? static_cast<Found>(different) : Found::not_yet;
  }
  void insert(std::uint64_t hash, bool on_host) {
    slots_[slot(hash)].store(hash | (on_host ? 1 : 0), std::memory_order_relaxed);
  }

 private:
  static constexpr int kBits = 3;
  static std::size_t slot(std::uint64_t hash) { return hash >> (64 - kBits); }
  std::array<std::atomic<std::uint64_t>, std::size_t{1} << kBits> slots_{};
};

/// Holds the partners of one call.
struct Between {
  Partners sources, destinations;
};

/// Describes a communicator. Its ranks and neighbors stay the same until it is freed.
struct Group {
  Between ranks;  ///< all ranks; of an intercommunicator, the ranks of the other group
  Between neighbors;
  PassedOn passed_on{};  ///< calls of all its collectives
};

/// Holds the groups of the communicators that group_of() was asked for.
extern dtype::HandleTable<Group, dtype::HandlesOf::communicators>* const groups;

/// Asks MPI for the group of a communicator, and keeps it. Returns nullptr if there is no memory.
Group* new_group(MPI_Comm comm) noexcept;

/// Returns the group of a communicator. Asks MPI once for each communicator. Returns nullptr if
/// there is no memory for the answer.
inline Group* group_of(MPI_Comm comm) noexcept {
  auto* const known = groups->find(comm);
  return known != nullptr ? known : new_group(comm);
}

}  // namespace halocline::interpose
