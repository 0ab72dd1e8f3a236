// SPDX-License-Identifier: BSD-3-Clause
// What the interposer knows of the application's datatypes.
//
// Best peer: [PEA21] makes a type's plan when it is committed, which then takes up to eight times
// as long, and takes over every call with it; here a commit leaves a note, the first uses are
// MPI's, and then both are measured: a type that is used once costs nothing, and the engine takes
// over where that pays.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "comm/interpose/choice.hpp"
#include "comm/interpose/devices.hpp"
#include "dtype/pack/handle_table.hpp"
#include "dtype/pack/pack_plan.hpp"

namespace halocline::interpose {

/// How a call is done.
struct Handling {
  const dtype::PackPlan* plan = nullptr;               ///< of the engine; nullptr: by MPI
  dtype::MemoryKind memory = dtype::MemoryKind::host;  ///< that the data are in
};

/// Whether `plan` finds memory at `buffer`: MPI_BOTTOM is right for types of absolute addresses,
/// and for others it is MPI that has to say that it is not.
inline bool is_of(const dtype::PackPlan& plan, const void* buffer) {
  constexpr std::int64_t kNoAddress = 65536;  // below which no memory is
  return buffer != MPI_BOTTOM || plan.bounds().true_lb >= kNoAddress;
}

/// Of one committed datatype. Thread-safe. In memory of a device the engine handles all that is not
/// contiguous; in the host's what it was found to be faster at, after kMpiUses uses by MPI; with
/// HALOCLINE_MPI=engine all that is not contiguous. A type that MPI packs otherwise than its type
/// map says stays MPI's: ranks without the interposer go by that.
class KnownType {
 public:
  static constexpr int kMpiUses = 2;

  KnownType() = default;
  KnownType(const KnownType&) = delete;
  KnownType& operator=(const KnownType&) = delete;
  ~KnownType() { delete verdict_.load(); }

  /// To pack or unpack `count` instances at `buffer`, which may be read. O(1) but for the calls
  /// that translate the type and measure.
  Handling to_pack(MPI_Datatype handle, const void* buffer, std::int64_t count) {
    if (count <= 0) return {};
    const auto* verdict = verdict_.load(std::memory_order_acquire);
    if (verdict == nullptr) verdict = judge(nullptr, handle, buffer, count);
    if (verdict == nullptr || !verdict->plan || !is_of(*verdict->plan, buffer)) return {};
    const auto memory = kind_of(*verdict->plan, buffer);
    if (is_packed_by_device(memory)) {
      if (dtype::current_device() == nullptr) return {};
      return {&*verdict->plan, memory};
    }
    const auto bytes = verdict->plan->packed_bytes(count);
    if (bytes > verdict->up_to) verdict = judge(verdict, handle, buffer, count);
    if (!verdict->plan || !verdict->packs || !verdict->times.ours_is_faster(bytes)) return {};
    return {&*verdict->plan, memory};
  }
  /// Likewise to send or receive them.
  Handling to_send(MPI_Datatype handle, const void* buffer, std::int64_t count);

  /// What to_send() may say: that MPI does it, but for data in memory of a device, or either.
  enum class Sends { by_mpi, by_mpi_on_host, open };
  Sends sends() const {
    const auto* const verdict = verdict_.load(std::memory_order_acquire);
    if (verdict == nullptr || verdict->sends) return Sends::open;
    return verdict->plan ? Sends::by_mpi_on_host : Sends::by_mpi;
  }

  /// By which it is packed, or nullptr as long as nobody has asked for it.
  const dtype::PackPlan* plan() const {
    const auto* const verdict = verdict_.load(std::memory_order_acquire);
    return verdict != nullptr && verdict->plan ? &*verdict->plan : nullptr;
  }
  /// Whether MPI was found to pack it otherwise than its type map says.
  bool is_packed_otherwise() const {
    const auto* const verdict = verdict_.load(std::memory_order_acquire);
    return verdict != nullptr && verdict->packed_otherwise;
  }

 private:
  struct Verdict {
    std::optional<dtype::PackPlan> plan;  // none: MPI does it all
    bool packs = false;                   // the engine, some counts in the host's memory
    bool sends = false;                   // messages, perhaps
    bool packed_otherwise = false;        // by MPI: then there is no plan
    PackTimes times{};                    // of both, there
    std::int64_t up_to = 0;               // bytes there
    std::unique_ptr<const Verdict> last;  // that somebody may still go by
    mutable std::atomic<std::int64_t> last_message{0};  // twice its bytes, and 1 if it pays

    // Whether a message of so many bytes, in the host's memory, is to be the engine's.
    bool pays(std::int64_t bytes) const;
  };
  // The new one, or another thread's; the last one if there can be none.
  const Verdict* judge(const Verdict* last, MPI_Datatype handle, const void* buffer,
                       std::int64_t count);
  std::atomic<const Verdict*> verdict_{nullptr};
  std::atomic<int> uses_{0};
  std::atomic<bool> is_inconclusive_{false};  // what was measured so far: then less and less often
};

/// Remembers a type that was just committed, until it is freed, unless it is MPI's own.
void committed(MPI_Datatype handle) noexcept;

/// Those that are; nullptr before the library's statics are there.
extern dtype::HandleTable<KnownType>* const known_types;

/// nullptr for types that were not remembered: MPI's own, and those that were committed by other
/// ways than the interposer sees.
inline KnownType* known_type(MPI_Datatype handle) noexcept {
  return known_types != nullptr ? known_types->find(handle) : nullptr;
}

/// Whether there are any others. O(1).
inline bool any_known_type() noexcept {
  return known_types != nullptr && !known_types->empty();
}

}  // namespace halocline::interpose
