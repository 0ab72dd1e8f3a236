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

/// An even number for what a call exchanges, and for how much is known of types. Order, sides and
/// the collective do not count: whether a call is MPI's does not depend on them either. Two calls
/// that differ otherwise have the same with a probability of 2^-60.
class ExchangeHash {
 public:
  explicit ExchangeHash(std::uint64_t learnt) : start_((learnt + 1) * 0xD6E8FEB86659FD93u) {}
  void add(MPI_Datatype type, int count) {
    __extension__ using Wide = unsigned __int128;
    const auto product = Wide{dtype::key_of(type) + start_} *
                         Wide{static_cast<std::uint64_t>(count) + 0x9E3779B97F4A7C15u};
    // Of one half alone, equal sums of types, counts and their products were equal hashes.
    sum_ += static_cast<std::uint64_t>(product >> 64) ^ static_cast<std::uint64_t>(product);
  }
  std::uint64_t value() const { return 2 * sum_; }

 private:
  std::uint64_t start_, sum_ = 0;
};

/// Calls that were found to be MPI's, by their hashes, so that the same call again is passed on
/// without asking for each of its types. All are forgotten whenever something is learnt of any
/// type, since hashes then are others. Thread-safe.
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
