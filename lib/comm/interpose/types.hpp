// SPDX-License-Identifier: BSD-3-Clause
// What the interposer knows of the application's datatypes.
//
// Best peer: [PEA21] makes a type's plan when it is committed, which then takes up to eight times
// as long, and takes over every call with it; here a commit leaves a note, the first use makes the
// plan, and the engine takes over where that pays.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <optional>

#include "dtype/pack/pack_plan.hpp"

namespace halocline::interpose {

/// Of one committed datatype. Thread-safe.
class KnownType {
 public:
  /// Where all runs of memory are this long or longer, MPI's loops over them are as fast as ours.
  static constexpr std::int64_t kLongRun = 4096;

  KnownType() = default;
  KnownType(const KnownType&) = delete;
  KnownType& operator=(const KnownType&) = delete;
  ~KnownType() { delete learned_.load(); }

  /// The plan by which the engine packs and unpacks, or nullptr if MPI is to do it. Makes the plan
  /// at the first call of both; O(1) at all later ones.
  const dtype::PackPlan* to_pack(MPI_Datatype handle) {
    const auto& learned = of(handle);
    return learned.packs ? &*learned.plan : nullptr;
  }
  /// Likewise for messages of `count` instances.
  const dtype::PackPlan* to_send(MPI_Datatype handle, std::int64_t count) {
    const auto& learned = of(handle);
    return learned.sends && count > 0 ? &*learned.plan : nullptr;
  }

 private:
  struct Learned {
    std::optional<dtype::PackPlan> plan;
    std::int64_t mean_run = 0;
    bool packs = false, sends = false;
  };
  const Learned& of(MPI_Datatype handle) {
    const auto* learned = learned_.load(std::memory_order_acquire);
    return learned != nullptr ? *learned : learn(handle);
  }
  const Learned& learn(MPI_Datatype handle);

  std::atomic<const Learned*> learned_{nullptr};
};

/// Whether `plan` finds memory at `buffer`: MPI_BOTTOM is right for types of absolute addresses,
/// and for others it is MPI that has to say that it is not.
inline bool is_of(const dtype::PackPlan& plan, const void* buffer) {
  constexpr std::int64_t kNoAddress = 65536;  // below which no memory is
  return buffer != MPI_BOTTOM || plan.bounds().true_lb >= kNoAddress;
}

/// Remembers a type that was just committed, until it is freed, unless it is MPI's own.
void committed(MPI_Datatype handle) noexcept;

/// nullptr for types that were not remembered: MPI's own, and those that were committed by other
/// ways than the interposer sees.
KnownType* known_type(MPI_Datatype handle) noexcept;

}  // namespace halocline::interpose
