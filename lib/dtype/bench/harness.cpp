// SPDX-License-Identifier: BSD-3-Clause
#include "harness.hpp"

#include <mpi.h>

#include <Kokkos_Core.hpp>
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>
#include <optional>
#include <utility>
#include <variant>

#include "dtype/datatype.hpp"
#include "dtype/vendor_check.hpp"
#include "engine.hpp"
#include "noise.hpp"
#include "support/mpi_check.hpp"
#include "support/narrow.hpp"

namespace halocline::dtype::bench {

namespace {

// Holds memory that is touched before it is timed, and kept for the next case. Bytes before and
// behind those of the case must not change.
class Buffer {
 public:
  /// `offset`: bytes from the begin of a page to the data
  explicit Buffer(std::size_t offset) : offset_(offset) {}

  void resize(std::int64_t bytes) {
    const auto wanted = static_cast<std::size_t>(bytes) + offset_ + 2 * kGuard;
    if (wanted > capacity_) {
      memory_.reset(static_cast<std::byte*>(std::aligned_alloc(kGuard, rounded(wanted))));
      if (!memory_) throw std::bad_alloc();
      capacity_ = rounded(wanted);
    }
    used_ = wanted;
  }

  std::byte* data() const { return memory_.get() + kGuard + offset_; }

  void fill(std::uint64_t seed) { fill_with_noise(memory_.get(), rounded(used_), seed); }

  bool operator==(const Buffer& other) const {
    return used_ == other.used_ && std::memcmp(memory_.get(), other.memory_.get(), used_) == 0;
  }

 private:
  static constexpr std::size_t kGuard = 4096;

  static std::size_t rounded(std::size_t bytes) { return (bytes + kGuard - 1) / kGuard * kGuard; }

  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::unique_ptr<std::byte[], Free> memory_;
  std::size_t offset_, capacity_ = 0, used_ = 0;
};

// Holds the memory that all cases use in turn.
struct Arena {
  // Half a page apart. Otherwise many loads of small cases would wait for a store whose address
  // differs only in the page.
  static constexpr std::size_t kApart = 2048 + 64;
  Buffer memory{0}, packed{kApart}, expected_memory{0}, expected_packed{kApart};

  void resize(std::int64_t memory_bytes, std::int64_t packed_bytes) {
    memory.resize(memory_bytes);
    expected_memory.resize(memory_bytes);
    packed.resize(packed_bytes);
    expected_packed.resize(packed_bytes);
  }
};
Arena& arena() {
  static Arena the_arena;
  return the_arena;
}

// Holds the parts of a case with their handles.
struct Jobs {
  std::vector<Datatype> handles;
  std::vector<Job> all;
  std::int64_t memory_bytes = 0, packed_bytes = 0;

  void add(MPI_Datatype handle, std::int64_t count, std::int64_t offset,
           TypeExprPtr type = nullptr) {
    const auto bounds = mpi_bounds(handle);
    if (bounds.true_lb < 0) throw ConfigError("a case begins before its memory: move its offset");
    all.push_back({handle, count, offset, bounds.size * count, packed_bytes, std::move(type)});
    packed_bytes += bounds.size * count;
    memory_bytes = std::max(
        memory_bytes, offset + bounds.extent * (count - 1) + bounds.true_lb + bounds.true_extent);
  }
};

template <auto pack, auto unpack>
Method by_mpi(const Jobs& jobs) {
  const auto size = checked_int(jobs.packed_bytes, "packed bytes");
  return {batch([all = jobs.all, size](std::byte* memory, std::byte* packed) {
            int position = 0;
            for (const auto& job : all)
              HALOCLINE_MPI(pack(memory + job.offset, static_cast<int>(job.count), job.handle,
                                 packed, size, &position, MPI_COMM_SELF));
          }),
          batch([all = jobs.all, size](std::byte* memory, std::byte* packed) {
            int position = 0;
            for (const auto& job : all)
              HALOCLINE_MPI(unpack(packed, size, &position, memory + job.offset,
                                   static_cast<int>(job.count), job.handle, MPI_COMM_SELF));
          })};
}

// Returns MPI's own methods, even if our interposer is loaded.
Method vendor(const Jobs& jobs) {
  return by_mpi<PMPI_Pack, PMPI_Unpack>(jobs);
}

Method contiguous_copy(std::int64_t bytes) {
  const auto size = static_cast<std::size_t>(bytes);
  return {
      batch([size](std::byte* memory, std::byte* packed) { std::memcpy(packed, memory, size); }),
      batch([size](std::byte* memory, std::byte* packed) { std::memcpy(memory, packed, size); })};
}

// Tells if two methods leave the same packed streams and memories, with their gaps and
// surroundings.
bool agree(const Method& reference, const Method& method) {
  auto& [memory, packed, expected_memory, expected_packed] = arena();
  const auto equal_after = [&](const Batch& expected, const Batch& run, std::uint64_t seed) {
    for (auto* buffer : {&memory, &expected_memory}) buffer->fill(seed);
    for (auto* buffer : {&packed, &expected_packed}) buffer->fill(seed + 1);
    expected(expected_memory.data(), expected_packed.data(), 1);
    run(memory.data(), packed.data(), 1);
    return memory == expected_memory && packed == expected_packed;
  };
  return equal_after(reference.pack, method.pack, 1) &&
         equal_after(reference.unpack, method.unpack, 3);
}

// Says how long to measure one direction of a case, and how often to repeat it.
struct Patience {
  Effort effort;
  int reruns;
};
Patience patience(const Options& options) {
  if (options.smoke) return {{0, 0, 1}, 0};
  if (options.quick) return {{0.02, 20e3, 3}, 0};
  return {{0.25, 20e3, 5}, 3};
}

constexpr auto kNone = static_cast<std::size_t>(-1);

struct Direction {
  Batch Method::*run;
  std::string ours, hand, memcpy, vendor;
};
const Direction kDirections[] = {
    {&Method::pack, "pack", "hand", "memcpy", "vendor_pack"},
    {&Method::unpack, "unpack", "hand_unpack", "memcpy_unpack", "vendor_unpack"}};

// Holds the methods that gave the right bytes.
struct Methods {
  Method hand;
  std::optional<Method> ours, vendor;
};

// Appends the fields of one direction. Returns the number of reruns.
int measure_direction(Row& row, const Direction& direction, const Methods& methods,
                      std::int64_t bytes, double good_overhead_ns, const Patience& patience) {
  const auto& effort = patience.effort;
  std::vector<Contender> contenders;
  const auto add = [&](const std::string& name, const Batch& run) {
    const auto on_arena = [run](std::int64_t calls) {
      run(arena().memory.data(), arena().packed.data(), calls);
    };
    contenders.emplace_back(name, on_arena).calibrate(effort.sample_ns);
    return contenders.size() - 1;
  };
  const auto add_if = [&](const std::string& name, const std::optional<Method>& method) {
    return method ? add(name, (*method).*direction.run) : kNone;
  };
  const auto hand = add(direction.hand, methods.hand.*direction.run);
  const auto ours = add_if(direction.ours, methods.ours);
  // memcpy stands between ours and MPI, which may leave caches and clock in any state.
  add(direction.memcpy, contiguous_copy(bytes).*direction.run);
  const auto vendor = add_if(direction.vendor, methods.vendor);

  take_turns(contenders, effort);
  const auto good = [&] {
    return ours == kNone || ratio(contenders[ours], contenders[hand]) >= kGoodRatio ||
           median(contenders[ours].ns()) - median(contenders[hand].ns()) <= good_overhead_ns;
  };
  int reruns = 0;
  for (; reruns < patience.reruns && !good(); ++reruns) take_turns(contenders, effort);
  const auto append_ratio = [&](const std::string& name, std::size_t a, std::size_t b) {
    if (a != kNone && b != kNone)
      row.fields.emplace_back(name, ratio(contenders[a], contenders[b]));
  };
  append_ratio(direction.ours + "_vs_hand", ours, hand);
  append_ratio(direction.ours + "_vs_vendor", ours, vendor);
  append_ratio(direction.vendor + "_vs_hand", vendor, hand);
  for (const auto& contender : contenders) append_times(row, contender);
  return reruns;
}

}  // namespace

Row measure(const Case& the_case, const Options& options) {
  Jobs jobs;
  for (const auto& part : the_case.parts) {
    jobs.handles.push_back(make_datatype(*part.type));
    jobs.add(jobs.handles.back().get(), part.count, part.offset, part.type);
  }
  // memcpy reads its bytes from the same memory.
  arena().resize(std::max(jobs.memory_bytes, jobs.packed_bytes), jobs.packed_bytes);

  Row row;
  double packs = 0, small_packs = 0;
  const auto count_pack = [&](std::int64_t bytes) {
    ++packs;
    if (bytes < kOverheadBelowBytes) ++small_packs;
  };
  if (the_case.mode == Mode::fused)
    count_pack(jobs.packed_bytes);
  else
    for (const auto& job : jobs.all) count_pack(job.bytes);
  row.fields.emplace_back("bytes", static_cast<double>(jobs.packed_bytes));
  row.fields.emplace_back("packs", packs);
  const auto good_overhead_ns =
      small_packs * (the_case.mode == Mode::interposed ? kGoodInterposedNs : kGoodOverheadNs);
  row.fields.emplace_back("small_packs", small_packs);
  row.fields.emplace_back("good_overhead_ns", good_overhead_ns);
  if (the_case.mode == Mode::threads) {
    const auto threads = threads_of(jobs.packed_bytes);
    row.fields.emplace_back("threads", static_cast<double>(threads));
    row.note = "ours on " + std::to_string(threads) + (threads == 1 ? " thread" : " threads");
  }
  Methods methods{the_case.hand, std::nullopt, std::nullopt};
  if (the_case.mode == Mode::interposed) {
    // The interposer leaves the first uses of a type to MPI.
    constexpr int kFirstUses = 140;
    arena().memory.fill(1);
    const auto first_uses = by_mpi<MPI_Pack, MPI_Unpack>(jobs);
    first_uses.pack(arena().memory.data(), arena().packed.data(), kFirstUses);
    first_uses.unpack(arena().memory.data(), arena().packed.data(), kFirstUses);
  }
  auto packer = the_case.mode == Mode::interposed
                    ? Result<Method>(by_mpi<MPI_Pack, MPI_Unpack>(jobs))
                    : ours(jobs.all, the_case.mode, arena().memory.data());
  if (const auto* reason = std::get_if<UnsupportedDatatype>(&packer)) {
    row.note = std::string("unsupported: ") + reason->what();
  } else if (agree(methods.hand, std::get<Method>(packer))) {
    row.verified = true;
    methods.ours = std::get<Method>(std::move(packer));
  } else {
    row.note = "differs from the loop by hand";
    return row;
  }
  methods.vendor = vendor(jobs);
  if (!agree(methods.hand, *methods.vendor)) {
    methods.vendor.reset();
    row.note +=
        (row.note.empty() ? "" : "; ") + std::string("MPI_Pack differs from the loop by hand");
  }

  int reruns = 0;
  for (const auto& direction : kDirections)
    reruns += measure_direction(row, direction, methods, jobs.packed_bytes, good_overhead_ns,
                                patience(options));
  row.fields.emplace_back("reruns", reruns);
  return row;
}

bool agrees_with_vendor(MPI_Datatype handle, std::int64_t count) {
  Jobs jobs;
  jobs.add(handle, count, 0);
  arena().resize(jobs.memory_bytes, jobs.packed_bytes);
  const auto method = ours(jobs.all, Mode::whole, arena().memory.data());
  return std::holds_alternative<Method>(method) && agree(vendor(jobs), std::get<Method>(method));
}

}  // namespace halocline::dtype::bench
