// SPDX-License-Identifier: BSD-3-Clause
// With whom a rank exchanges in a collective.
#pragma once

#include <mpi.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "dtype/pack/handle_table.hpp"

namespace halocline::interpose {

/// One for each rank of a group, or for each neighbor.
struct Partners {
  int count = 0;
  std::vector<bool> there{};  ///< whether there is one: a grid may end somewhere; empty: all are

  bool is_there(int i) const { return there.empty() || there[static_cast<std::size_t>(i)]; }
};

/// Calls that were found to be MPI's, by even hashes of what they exchange, so that the same call
/// again is passed on without asking for each of its types. Two calls of one hash are both passed
/// on, which is never wrong. Thread-safe.
class PassedOn {
 public:
  enum class Found {
    mpis,          ///< wherever the data are
    mpis_on_host,  ///< but for data in memory of a device
    not_yet
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

/// Those that one call is between.
struct Between {
  Partners sources, destinations;
};

/// Of a communicator: who is in it stays the same until it is freed.
struct Group {
  Between ranks;  ///< of the other group if there are two
  Between neighbors;
  PassedOn passed_on{};  ///< of all its collectives
};

/// Those that were asked for.
extern dtype::HandleTable<Group, dtype::HandlesOf::communicators>* const groups;

/// Asks MPI.
Group* new_group(MPI_Comm comm) noexcept;

/// Asks MPI once for each communicator. nullptr if there is no memory for the answer.
inline Group* group_of(MPI_Comm comm) noexcept {
  auto* const known = groups->find(comm);
  return known != nullptr ? known : new_group(comm);
}

}  // namespace halocline::interpose
