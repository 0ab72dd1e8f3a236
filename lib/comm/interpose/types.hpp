// SPDX-License-Identifier: BSD-3-Clause
// Decides for each of the application's datatypes who does its calls, the engine or MPI.
//
// Best peer: [PEA21] makes a type's plan at its commit, which then takes up to eight times as long.
// It takes over every call with the type. Here a commit leaves a note, and the first uses are
// MPI's. Then both are measured, which takes less than these uses did. A type that is used a few
// times costs next to nothing, and the engine takes over where that pays.
#pragma once

#include <mpi.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "comm/interpose/choice.hpp"
#include "comm/interpose/devices.hpp"
#include "comm/interpose/findings.hpp"
#include "dtype/pack/handle_table.hpp"
#include "dtype/pack/pack_plan.hpp"

namespace halocline::interpose {

/// Says how a call is done.
struct PackDecision {
  const dtype::PackPlan* plan = nullptr;               ///< plan of the engine; nullptr: by MPI
  dtype::MemoryKind memory = dtype::MemoryKind::host;  ///< kind of the memory that holds the data
};

/// Is the longest basic element, in bytes, that the engine sends with Open MPI. Open MPI 4.1 keeps
/// a part of an element on its stack if packed bytes end inside of it. Longer elements do not fit
/// there. Its own sends never end inside of an element.
inline constexpr std::int64_t kLongestCutElement = 16;

/// Tells if the data of `plan` at `buffer` are in memory. MPI_BOTTOM is right only for types of
/// absolute addresses. For other types, MPI has to report the error.
inline bool is_of(const dtype::PackPlan& plan, const void* buffer) {
  constexpr std::int64_t kNoAddress = 65536;  // no memory has a lower address
  return buffer != MPI_BOTTOM || plan.bounds().true_lb >= kNoAddress;
}

/// Decides who does the calls with one committed datatype. Thread-safe.
///
/// - In host memory, the engine does what it was measured to be faster at, after some uses by MPI.
/// - In memory of a device, it does all types that are not contiguous. That begins once
///   is_there_device_memory() has seen a device.
/// - With HALOCLINE_MPI=engine, it does all types that are not contiguous.
///
/// A type that MPI packs otherwise than its type map says stays MPI's: ranks without the interposer
/// go by MPI's packs.
///
/// Findings of an equal type, made by the same calls of constructors, replace a measurement. They
/// are looked up after 20 uses of types of the same size and extent. The look-up comes with the
/// third use of this type, or earlier once its uses have 64 KiB. If it finds nothing, the next
/// look-up waits for 20 more such uses. A type that is looked up for the third time is measured.
class KnownType {
 public:
  /// Says when a type is measured: after more than kMpiUses uses by MPI with kMpiBytes in all, or
  /// after more than kMostMpiUses uses. Measuring takes less time than these uses.
  ///
  /// Types that reach far wait longer, since the comparison maps all memory that its instances
  /// span. For each kReachOfByte bytes of that span, one byte must have been packed.
  static constexpr int kMpiUses = 20, kMostMpiUses = 128;
  static constexpr std::int64_t kMpiBytes = std::int64_t{1} << 19, kReachOfByte = 256;
  static constexpr int kMpiUnpackings = 10;  ///< further calls of MPI_Unpack, until it is measured

  /// Makes a note of a type that was just committed.
  explicit KnownType(MPI_Datatype handle);
  KnownType(const KnownType&) = delete;
  KnownType& operator=(const KnownType&) = delete;
  ~KnownType() {
    delete verdict_.load();
    delete unpacking_.load();
  }

  /// Decides who packs `count` instances at `buffer`, which may be read. O(1), except for the calls
  /// that translate the type and measure.
  PackDecision to_pack(MPI_Datatype handle, const void* buffer, std::int64_t count) {
    const auto found = find(handle, buffer, count, Access::reads);
    return by_engine_if(found,
                        [&] { return found.verdict->found.packing.ours_is_faster(found.bytes); });
  }
  /// Decides who unpacks `count` instances into `buffer`. It may unpack them itself, more than
  /// once, to measure. If the `room` bytes at `packed` are not enough, MPI gets the call.
  PackDecision to_unpack(MPI_Datatype handle, void* buffer, std::int64_t count,
                         const std::byte* packed, std::int64_t room) {
    const auto found = find(handle, buffer, count, Access::writes);
    if (found.bytes > room) return {};
    return by_engine_if(found, [&] {
      if (!found.verdict->is_trusted()) return false;
      const auto* unpacking = unpacking_.load(std::memory_order_acquire);
      if (unpacking == nullptr || found.bytes > unpacking->times.up_to) {
        const auto memory = kind_of(*found.verdict->found.plan, buffer);  // notices a driver
        if (!is_packed_by_device(memory) && !is_on_device(packed))
          unpacking = judge_unpacking(unpacking, *found.verdict, handle, buffer, count, packed);
      }
      // Kernels that unpack packed bytes of a device have no order of writes anyway.
      return is_on_device(packed) ||
             (unpacking != nullptr && unpacking->times.ours_is_faster(found.bytes) &&
              found.verdict->is_free_of_order(count));
    });
  }
  /// Says what a call does with a buffer before it returns. Measuring reads a buffer only with
  /// `reads`.
  enum class Access { none, reads, writes };
  /// Names the kind of a request. A persistent request is made to be used often, so it counts as
  /// kMostMpiUses uses.
  enum class Request { ordinary, persistent };
  /// Decides who sends or receives `count` instances at `buffer`.
  PackDecision to_send(MPI_Datatype handle, const void* buffer, std::int64_t count, Access access,
                       Traffic traffic, Request request = Request::ordinary);

  /// Lists the answers of sends(): MPI's, MPI's unless the data are in memory of a device, or open.
  enum class Sends { by_mpi, by_mpi_on_host, open };
  /// Returns what is certain about the answer of to_send() for `count` instances. O(1).
  Sends sends(std::int64_t count, Traffic traffic) const {
    if (count <= 0) return Sends::by_mpi;
    const auto* const verdict = verdict_.load(std::memory_order_acquire);
    if (verdict == nullptr) return Sends::open;
    const auto& found = verdict->found;
    if (!found.plan) return Sends::by_mpi;
    const auto bytes = found.plan->packed_bytes(count);
    return verdict->pays(bytes, traffic) || (bytes > found.packing.up_to && message_may_pay(bytes))
               ? Sends::open
               : Sends::by_mpi_on_host;
  }

  /// Returns the plan for a call that takes other types as well, such as a collective.
  ///
  /// The plan packs what MPI packs. That may not have been compared if the engine is forced or the
  /// data are in memory of a device. Returns nullptr without a plan, or if long elements would be
  /// sent. In host memory, also returns nullptr if `count` instances hold a byte twice and the
  /// engine is not forced.
  const dtype::PackPlan* compared_plan(MPI_Datatype handle, const void* buffer, std::int64_t count,
                                       Access access);
  /// Returns the plan that calls go by. Returns nullptr before the first decision, and if MPI does
  /// everything.
  const dtype::PackPlan* plan() const {
    const auto* const verdict = verdict_.load(std::memory_order_acquire);
    return verdict != nullptr && verdict->found.plan ? &*verdict->found.plan : nullptr;
  }
  /// Tells if only MPI may send the type, since its elements are too long to be received in pieces.
  bool has_long_elements() const {
    const auto* const verdict = verdict_.load(std::memory_order_acquire);
    return verdict != nullptr && verdict->has_long_elements;
  }
  /// Tells if the type was found to be one run of memory. Such a type has no plan.
  bool is_one_run() const {
    const auto* const verdict = verdict_.load(std::memory_order_acquire);
    return verdict != nullptr && !verdict->found.plan && verdict->found.compared;
  }

 private:
  struct Verdict {
    Findings found;       // without unpacking, which has its own decision
    bool forced = false;  // the engine does everything
    // Packed bytes may end inside of an element. MPI receives such bytes wrongly if elements are
    // long.
    bool has_long_elements = false;
    std::unique_ptr<const Verdict> last;  // kept, since another thread may still use it
    // For each traffic: twice the bytes of the last message, plus 1 if it pays.
    mutable std::array<std::atomic<std::int64_t>, 2> last_messages{};

    // Tells if the engine may be used in host memory without another comparison with MPI.
    bool is_trusted() const { return forced || found.compared; }
    // Tells if these instances hold no byte twice, or if the engine is forced. If a byte stands
    // twice, the result depends on the order of writes. With Open MPI 5, it even depends on who
    // packed the message.
    bool is_free_of_order(std::int64_t count) const { return forced || count <= found.disjoint(); }
    // Tells if the engine is to carry a message of `bytes` packed bytes in host memory.
    bool pays(std::int64_t bytes, Traffic traffic) const {
      if (forced) return true;
      const auto known = last_message(traffic).load(std::memory_order_relaxed);
      return known / 2 == bytes ? known % 2 != 0 : computes_to_pay(bytes, traffic);
    }
    bool computes_to_pay(std::int64_t bytes, Traffic traffic) const;
    std::atomic<std::int64_t>& last_message(Traffic traffic) const {
      return last_messages[static_cast<std::size_t>(traffic)];
    }
  };
  struct Unpacking {
    PackTimes times;
    std::unique_ptr<const Unpacking> last;
  };

  // Holds what is known of the instances of a call.
  struct Found {
    const Verdict* verdict = nullptr;  // nullptr: the call is MPI's, wherever the data are
    const void* buffer = nullptr;
    std::int64_t bytes = 0;
  };
  Found find(MPI_Datatype handle, const void* buffer, std::int64_t count, Access access,
             Request request = Request::ordinary) {
    if (count <= 0) return {};
    const auto* verdict = verdict_.load(std::memory_order_acquire);
    if (verdict == nullptr) {
      if (request == Request::persistent && uses_.load(std::memory_order_relaxed) < kMostMpiUses)
        uses_.fetch_add(kMostMpiUses, std::memory_order_relaxed);
      verdict = judge(nullptr, handle, buffer, count, access);
    }
    if (verdict == nullptr || !verdict->found.plan || !is_of(*verdict->found.plan, buffer))
      return {};
    const auto bytes = size_ * count;
    if (bytes > verdict->found.packing.up_to &&
        !is_packed_by_device(kind_of(*verdict->found.plan, buffer))) {
      verdict = judge(verdict, handle, buffer, count, access);
      if (!verdict->found.plan) return {};
    }
    return {verdict, buffer, bytes};
  }

  // Returns the plan if the data are in memory of a device, or if `is_faster()` for host memory.
  // is_faster() is called first, since finding the kind of the memory takes longer.
  template <class IsFaster>
  PackDecision by_engine_if(const Found& found, IsFaster&& is_faster) const {
    if (found.verdict == nullptr) return {};
    const bool faster = is_faster();
    if (!faster && !is_there_device_memory()) return {};
    const auto& plan = *found.verdict->found.plan;
    const auto memory = kind_of(plan, found.buffer);
    if (is_packed_by_device(memory) ? dtype::current_device() == nullptr : !faster) return {};
    return {&plan, memory};
  }

  // is_due() tells if the type is to be measured with this use. seeks_findings() tells if findings
  // of an equal type are to be looked up with this use. It is true at most once for a type.
  bool is_due(int use, std::int64_t count) const;
  bool seeks_findings(int use, MPI_Datatype handle, std::int64_t count);
  // Makes a new verdict from this use, or from a comparison alone if `count` is 0. Returns the new
  // verdict or another thread's, or `last` if no verdict can be made.
  const Verdict* judge(const Verdict* last, MPI_Datatype handle, const void* buffer,
                       std::int64_t count, Access access);
  const Unpacking* judge_unpacking(const Unpacking* last, const Verdict& verdict,
                                   MPI_Datatype handle, void* buffer, std::int64_t count,
                                   const std::byte* packed);
  const Unpacking* learn_unpacking(const Unpacking* last, const PackTimes& times);

  std::int64_t size_, true_lb_;             // bytes
  std::int64_t bytes_before_measuring_;     // packed bytes of all uses, by the span of the type
  std::atomic<std::uint32_t>* alike_uses_;  // of types of its size and extent, approximately
  std::atomic<const Verdict*> verdict_{nullptr};
  std::atomic<const Unpacking*> unpacking_{nullptr};
  std::atomic<int> uses_{0}, unpackings_{0};
  std::atomic<bool> has_sought_{false};
};

/// Remembers a type that was just committed, until it is freed. Does nothing for MPI's own types.
void committed(MPI_Datatype handle) noexcept;

/// Holds the remembered types. It is nullptr before the library's static objects are made.
extern dtype::HandleTable<KnownType>* const known_types;

/// Tells if a handle may be that of a remembered type. False for most of MPI's own types.
inline bool may_be_known(MPI_Datatype handle) noexcept {
  return known_types != nullptr && known_types->may_have(handle);
}

/// Returns what is known of a type. Returns nullptr for types that were not remembered: MPI's own,
/// and types that were committed out of the interposer's sight.
inline KnownType* known_type(MPI_Datatype handle) noexcept {
  return may_be_known(handle) ? known_types->find(handle) : nullptr;
}

/// Counts how often KnownType::sends() may have changed its answer for a handle. It is 0 until a
/// type is remembered. Freeing a type does not count: its handle is nobody's until a new type is
/// committed, and that counts.
extern std::atomic<std::uint64_t> times_learnt;

}  // namespace halocline::interpose
