// SPDX-License-Identifier: BSD-3-Clause
// Decides for each of the application's datatypes who does its calls, the engine or MPI. The engine
// is Halocline's own plans and packers, in lib/dtype and lib/comm.
//
// The engine itself calls MPI, such as MPI_Type_commit. The build renames its MPI_ calls to PMPI_
// (profiling_names.sh), so they never arrive in the functions here.
//
// Best peer: [PEA21] makes a type's plan at its commit, which then takes up to eight times as long.
// It takes over every call with the type. Here a commit leaves a note, and the type is read once it
// was used for some kilobytes. Then the rule decides.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "comm/interpose/devices.hpp"
#include "comm/interpose/facts.hpp"
#include "comm/interpose/rule.hpp"
#include "comm/interpose/settings.hpp"
#include "comm/mpi/role.hpp"
#include "dtype/pack/handle_table.hpp"
#include "dtype/pack/pack_plan.hpp"

namespace halocline::interpose {

using comm::Role;

/// Says how a call is done.
struct PackDecision {
  const dtype::PackPlan* plan = nullptr;               ///< plan of the engine; nullptr: by MPI
  dtype::MemoryKind memory = dtype::MemoryKind::host;  ///< kind of the memory that holds the data
};

/// Tells if the data of `plan` can be at `buffer`. MPI_BOTTOM is right only for types of absolute
/// addresses. For other types, MPI has to report the error.
inline bool has_address(const dtype::PackPlan& plan, const void* buffer) {
  constexpr std::int64_t kNoAddress = 65536;  // no memory has a lower address
  return buffer != MPI_BOTTOM || plan.bounds().true_lb >= kNoAddress;
}

/// Decides who does the calls with one committed datatype. Thread-safe.
///
/// - In host memory, the engine does what the rule gives it. That begins once the type was used for
///   kBytesBeforeReading bytes.
/// - In memory of a device, it does all types that are not contiguous. That begins once
///   may_have_device_memory() has seen a device.
/// - With HALOCLINE_MPI=engine, it does all types that are not contiguous.
///
/// A type that MPI packs otherwise than its type map says stays MPI's: ranks without the interposer
/// go by MPI's packs.
class CommittedType {
 public:
  /// Says when a type is read: at the use that brings the sum of its uses to kBytesBeforeReading. A
  /// use counts its packed bytes and kBytesPerUse. Reading and comparing takes as long as MPI takes
  /// for these uses. So a short type that is made, used once and freed costs next to nothing.
  ///
  /// Types that reach far wait longer, since the comparison maps all memory that an instance spans.
  /// For each kSpanPerByte bytes of that span, one byte must have been packed.
  static constexpr std::int64_t kBytesBeforeReading = 16384, kBytesPerUse = 512, kSpanPerByte = 256;

  /// Makes a note of a type that was just committed.
  explicit CommittedType(MPI_Datatype handle);
  CommittedType(const CommittedType&) = delete;
  CommittedType& operator=(const CommittedType&) = delete;

  /// Decides who packs `count` instances at `buffer`. O(1), except for the call that reads the
  /// type.
  PackDecision to_pack(MPI_Datatype handle, const void* buffer, std::int64_t count) {
    return decide(handle, buffer, count, [&](const TypeFacts& facts) {
      return engine_packs(facts.blocks(), size_ * count);
    });
  }
  /// Decides who unpacks `count` instances into `buffer`. If the `room` bytes at `packed` are not
  /// enough, MPI gets the call.
  PackDecision to_unpack(MPI_Datatype handle, void* buffer, std::int64_t count,
                         const std::byte* packed, std::int64_t room) {
    if (size_ * count > room) return {};
    // Kernels that unpack packed bytes of a device have no order of writes anyway.
    return decide(handle, buffer, count, [&](const TypeFacts& facts) {
      return is_on_device(packed) || (engine_packs(facts.blocks(), size_ * count) &&
                                      (is_forced() || facts.is_free_of_order(count)));
    });
  }
  /// Decides who sends or receives `count` instances at `buffer`. Counts a use of the type: the use
  /// that reaches the limit reads and compares it. A type of a persistent request is read at once,
  /// since such a request is made to be used often.
  ///
  /// Instances in host memory that hold a byte twice stay MPI's, sends too: the order in which an
  /// MPI writes such a byte may depend on who packed the message.
  PackDecision to_send(MPI_Datatype handle, const void* buffer, std::int64_t count, Role role,
                       MessagePattern pattern, bool is_persistent = false);

  /// Names who sends a message, as far as it is certain. `mpi_on_host`: MPI, unless the data are in
  /// memory of a device. `undecided`: to_send() has to find out.
  enum class Sender { mpi, mpi_on_host, undecided };
  /// Returns what is certain about the answer of to_send() for `count` instances. O(1).
  Sender known_sender(std::int64_t count, MessagePattern pattern) const {
    if (count <= 0) return Sender::mpi;
    const auto* const facts = facts_.load(std::memory_order_acquire);
    if (facts == nullptr || (facts->plan() != nullptr && is_forced())) return Sender::undecided;
    if (facts->plan() == nullptr || facts->differs_from_mpi(count)) return Sender::mpi;
    return facts->is_sent_by_engine(size_ * count, pattern) ? Sender::undecided
                                                            : Sender::mpi_on_host;
  }

  /// Returns the plan for a call that takes other types as well, such as a collective. Reads the
  /// type.
  ///
  /// Returns nullptr without a plan, if MPI packs otherwise and the engine is not forced, or if
  /// long elements would be sent. In host memory, also returns nullptr if `count` instances hold
  /// a byte twice, unless the engine is forced.
  const dtype::PackPlan* plan_beside_others(MPI_Datatype handle, const void* buffer,
                                            std::int64_t count, Role role);
  /// Returns the plan that calls go by, for tests. Returns nullptr before the type is read, and if
  /// MPI does everything.
  const dtype::PackPlan* plan() const {
    const auto* const facts = facts_.load(std::memory_order_acquire);
    return facts != nullptr ? facts->plan() : nullptr;
  }
  /// Tells if only MPI may send the type, since its elements are too long to be received in pieces.
  bool has_long_elements() const {
    const auto* const facts = facts_.load(std::memory_order_acquire);
    return facts != nullptr && facts->has_long_elements();
  }
  /// Tells if the type was found to be one run of memory. Such a type has no plan.
  bool is_one_run() const {
    const auto* const facts = facts_.load(std::memory_order_acquire);
    return facts != nullptr && facts->is_one_run();
  }

 private:
  static bool is_forced() { return settings().mode == Settings::Mode::engine; }

  // Returns the plan if the data are in memory of a device, or if `is_engines(facts)` for host
  // memory. is_engines() is called first, since finding the kind of the memory takes longer.
  template <class IsEngines>
  PackDecision decide(MPI_Datatype handle, const void* buffer, std::int64_t count,
                      IsEngines&& is_engines, bool at_once = false) {
    if (count <= 0) return {};
    const auto* facts = facts_.load(std::memory_order_acquire);
    if (facts == nullptr) facts = count_use(handle, buffer, count, at_once);
    if (facts == nullptr || facts->plan() == nullptr || !has_address(*facts->plan(), buffer))
      return {};
    const bool on_host = is_forced() || is_engines(*facts);
    if (!on_host && !may_have_device_memory()) return {};
    const auto memory = kind_of(*facts->plan(), buffer);
    const bool is_engines_here =
        is_packed_by_device(memory) ? dtype::current_device() != nullptr : on_host;
    if (!is_engines_here || !is_trusted(*facts, handle, count)) return {};
    return {facts->plan(), memory};
  }
  // Tells if the engine may do `count` instances, since MPI packs the same or the engine is forced.
  static bool is_trusted(const TypeFacts& facts, MPI_Datatype handle, std::int64_t count) {
    return is_forced() || facts.is_as_mpi(handle, count);
  }
  // Reads the type if its uses, with this one, have enough bytes. Returns nullptr if they have not,
  // or if there is no memory.
  const TypeFacts* count_use(MPI_Datatype handle, const void* buffer, std::int64_t count,
                             bool at_once);
  const TypeFacts* read(MPI_Datatype handle) noexcept;

  std::int64_t size_, true_lb_;  // bytes
  std::int64_t bytes_before_reading_;
  std::atomic<std::int64_t> used_{0};  // bytes of all uses
  std::atomic<const TypeFacts*> facts_{nullptr};
  std::shared_ptr<const TypeFacts> owned_facts_;  // those of facts_, set by the thread that set it
};

/// Remembers a type that was just committed, until it is freed. Does nothing for MPI's own types.
void note_commit(MPI_Datatype handle) noexcept;

/// Holds the remembered types. It is nullptr before the library's static objects are made.
extern dtype::HandleTable<CommittedType>* const committed_types;

/// Tells if a handle may be that of a remembered type. False for most of MPI's own types.
inline bool may_be_committed(MPI_Datatype handle) noexcept {
  return committed_types != nullptr && committed_types->may_have(handle);
}

/// Returns what is known of a type. Returns nullptr for types that were not remembered: MPI's own,
/// and types that were committed out of the interposer's sight.
inline CommittedType* committed_type(MPI_Datatype handle) noexcept {
  return may_be_committed(handle) ? committed_types->find(handle) : nullptr;
}

/// Counts how often CommittedType::known_sender() may have changed its answer for a handle. It is 0
/// until a type is remembered. Freeing a type does not count: its handle is nobody's until a new
/// type is committed, and that counts.
extern std::atomic<std::uint64_t> changes_of_senders;

}  // namespace halocline::interpose
