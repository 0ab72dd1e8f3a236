// SPDX-License-Identifier: BSD-3-Clause
// What the interposer knows of the application's datatypes.
//
// Best peer: [PEA21] makes a type's plan when it is committed, which then takes up to eight times
// as long, and takes over every call with it; here a commit leaves a note, the first uses are
// MPI's, and then both are measured, which takes less than these uses did: a type that is used a
// few times costs next to nothing, and the engine takes over where that pays.
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

/// How a call is done.
struct Handling {
  const dtype::PackPlan* plan = nullptr;               ///< of the engine; nullptr: by MPI
  dtype::MemoryKind memory = dtype::MemoryKind::host;  ///< that the data are in
};

/// The longest basic element, in bytes, that Open MPI 4.1 receives from packed bytes that are cut
/// inside of it: it keeps the part on its stack. Its own sends never end there.
inline constexpr std::int64_t kLongestCutElement = 16;

/// Tells if `plan` finds memory at `buffer`. MPI_BOTTOM is right for types of absolute addresses;
/// for other types MPI has to say that it is wrong.
inline bool is_of(const dtype::PackPlan& plan, const void* buffer) {
  constexpr std::int64_t kNoAddress = 65536;  // below which no memory is
  return buffer != MPI_BOTTOM || plan.bounds().true_lb >= kNoAddress;
}

/// Of one committed datatype. Thread-safe. In memory of a device, once one was seen
/// (is_there_device_memory()), the engine handles all that is not contiguous; in the host's what it
/// was found to be faster at, after some uses by MPI; with HALOCLINE_MPI=engine all that is not
/// contiguous. After twenty uses of types of its size and extent, what was found of a type of the
/// same constructors' calls is sought first, with the third use or, of 64 KiB or more, with the
/// first; if that is in vain, not before twenty more, and what is sought for the third time is
/// measured. A type that MPI packs otherwise than its type map says stays MPI's: ranks without the
/// interposer go by that.
class KnownType {
 public:
  /// By MPI: more than kMpiUses of kMpiBytes in all, or more than kMostMpiUses, until a type is
  /// measured, which takes less than these do. Types that reach far wait for a byte in all for
  /// every kReachOfByte bytes that the compared instances span, since the comparison maps all of
  /// them.
  static constexpr int kMpiUses = 20, kMostMpiUses = 128;
  static constexpr std::int64_t kMpiBytes = std::int64_t{1} << 19, kReachOfByte = 256;
  static constexpr int kMpiUnpackings = 10;  ///< more, by MPI_Unpack, until that is measured

  /// One that was just committed.
  explicit KnownType(MPI_Datatype handle);
  KnownType(const KnownType&) = delete;
  KnownType& operator=(const KnownType&) = delete;
  ~KnownType() {
    delete verdict_.load();
    delete unpacking_.load();
  }

  /// To pack `count` instances at `buffer`, which may be read. O(1) but for the calls that
  /// translate the type and measure.
  Handling to_pack(MPI_Datatype handle, const void* buffer, std::int64_t count) {
    const auto found = find(handle, buffer, count, Access::reads);
    return by_engine_if(found,
                        [&] { return found.verdict->found.packing.ours_is_faster(found.bytes); });
  }
  /// To unpack them from the first of `room` bytes, which it may do more than once: by MPI if these
  /// are not enough.
  Handling to_unpack(MPI_Datatype handle, void* buffer, std::int64_t count, const std::byte* packed,
                     std::int64_t room) {
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
      // Kernels that unpack what is on a device have no order of writes anyway.
      return is_on_device(packed) ||
             (unpacking != nullptr && unpacking->times.ours_is_faster(found.bytes) &&
              found.verdict->is_free_of_order(count));
    });
  }
  /// Tells what a call does with a buffer at once: only what is read may be read for measuring.
  enum class Access { none, reads, writes };
  /// To send or receive them, as `access` says; a persistent request is made to be used often, and
  /// so counts for all the uses by MPI.
  enum class Request { ordinary, persistent };
  Handling to_send(MPI_Datatype handle, const void* buffer, std::int64_t count, Access access,
                   Traffic traffic, Request request = Request::ordinary);

  /// What to_send() may say of so many: that MPI does it, but for data in memory of a device, or
  /// either. O(1).
  enum class Sends { by_mpi, by_mpi_on_host, open };
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

  /// Returns the plan for a call that takes other types as well: compared with what MPI packs,
  /// unless the engine is forced or the data are in memory of a device. nullptr if there is none.
  /// nullptr as well if some byte stands twice in `count` instances, or if long elements are sent.
  const dtype::PackPlan* compared_plan(MPI_Datatype handle, const void* buffer, std::int64_t count,
                                       Access access);
  /// Returns the plan that calls go by; nullptr as long as none was asked for, and if MPI does it
  /// all.
  const dtype::PackPlan* plan() const {
    const auto* const verdict = verdict_.load(std::memory_order_acquire);
    return verdict != nullptr && verdict->found.plan ? &*verdict->found.plan : nullptr;
  }
  /// Tells if MPI alone may send it, since its elements are too long for receives in pieces.
  bool has_long_elements() const {
    const auto* const verdict = verdict_.load(std::memory_order_acquire);
    return verdict != nullptr && verdict->has_long_elements;
  }
  /// Tells whether it was found to be one run of memory, which has no plan of its own.
  bool is_one_run() const {
    const auto* const verdict = verdict_.load(std::memory_order_acquire);
    return verdict != nullptr && !verdict->found.plan && verdict->found.compared;
  }

 private:
  struct Verdict {
    Findings found;       // but for unpacking, which is judged by itself
    bool forced = false;  // the engine does
    // MPI receives packed bytes wrongly that end in the midst of an element, as they may.
    bool has_long_elements = false;
    std::unique_ptr<const Verdict> last;  // that somebody may still go by
    // Of each traffic, twice its bytes, and 1 if it pays.
    mutable std::array<std::atomic<std::int64_t>, 2> last_messages{};

    // Tells if the engine may do it in the host's memory without another look at what MPI does.
    bool is_trusted() const { return forced || found.compared; }
    // Tells if these instances hold no byte twice, or if the engine is forced. Where they do, what
    // is left in memory depends on the order of writes. With Open MPI 5 it depends even on who
    // packed the message.
    bool is_free_of_order(std::int64_t count) const { return forced || count <= found.disjoint(); }
    // Tells if a message of `bytes` bytes in the host's memory is to be the engine's.
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

  // What is known of the instances of a call.
  struct Found {
    const Verdict* verdict = nullptr;  // nullptr: they are MPI's, wherever they are
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

  // In memory of a device, or if the engine `is_faster()` in the host's; that comes first, since
  // where the memory is takes longer to find out.
  template <class IsFaster>
  Handling by_engine_if(const Found& found, IsFaster&& is_faster) const {
    if (found.verdict == nullptr) return {};
    const bool faster = is_faster();
    if (!faster && !is_there_device_memory()) return {};
    const auto& plan = *found.verdict->found.plan;
    const auto memory = kind_of(plan, found.buffer);
    if (is_packed_by_device(memory) ? dtype::current_device() == nullptr : !faster) return {};
    return {&plan, memory};
  }

  // Whether it is to be measured with this use, and whether findings of an equal type are to be
  // sought now, which is not so again until then.
  bool is_due(int use, std::int64_t count) const;
  bool seeks_findings(int use, MPI_Datatype handle, std::int64_t count);
  // Makes a new verdict from this use, or from a comparison alone if `count` is 0. Returns it or
  // another thread's, or the last one if there can be none.
  const Verdict* judge(const Verdict* last, MPI_Datatype handle, const void* buffer,
                       std::int64_t count, Access access);
  const Unpacking* judge_unpacking(const Unpacking* last, const Verdict& verdict,
                                   MPI_Datatype handle, void* buffer, std::int64_t count,
                                   const std::byte* packed);
  const Unpacking* learn_unpacking(const Unpacking* last, const PackTimes& times);

  std::int64_t size_, true_lb_;             // bytes
  std::int64_t bytes_before_measuring_;     // packed in all, because of how far the type reaches
  std::atomic<std::uint32_t>* alike_uses_;  // of types of its size and extent, about
  std::atomic<const Verdict*> verdict_{nullptr};
  std::atomic<const Unpacking*> unpacking_{nullptr};
  std::atomic<int> uses_{0}, unpackings_{0};
  std::atomic<bool> has_sought_{false};
};

/// Remembers a type that was just committed, until it is freed, unless it is MPI's own.
void committed(MPI_Datatype handle) noexcept;

/// Those that are; nullptr before the library's statics are there.
extern dtype::HandleTable<KnownType>* const known_types;

/// Whether it may be another; false for most of MPI's own.
inline bool may_be_known(MPI_Datatype handle) noexcept {
  return known_types != nullptr && known_types->may_have(handle);
}

/// nullptr for types that were not remembered: MPI's own, and those that were committed by other
/// ways than the interposer sees.
inline KnownType* known_type(MPI_Datatype handle) noexcept {
  return may_be_known(handle) ? known_types->find(handle) : nullptr;
}

/// How often KnownType::sends() may have come to say otherwise than before of a handle: 0 until a
/// type is remembered. That one is freed does not count: its handle is nobody's until it is
/// committed again, which counts.
extern std::atomic<std::uint64_t> times_learnt;

}  // namespace halocline::interpose
