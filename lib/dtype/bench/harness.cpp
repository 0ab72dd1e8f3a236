// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/bench/harness.hpp"

#include <sched.h>

#include <Kokkos_Core.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "dtype/bench/memory.hpp"
#include "dtype/datatype.hpp"
#include "dtype/mpi_bounds.hpp"
#include "dtype/pack/fused_plan.hpp"
#include "dtype/pack/host/host_packer.hpp"
#include "dtype/pack/host/segment.hpp"
#include "dtype/pack/kokkos/kokkos_packer.hpp"
#include "dtype/pack/kokkos/kokkos_threads.hpp"
#include "dtype/pack/pack_plan.hpp"
#include "support/mpi_check.hpp"
#include "support/narrow.hpp"

namespace halocline::dtype::bench {

namespace {

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

// ---- Our packer: the only place to change for other options of the engine ----

constexpr std::int64_t kSegmentBytes = 64 * 1024;
constexpr std::int64_t kLookahead = 4 * 1024 * 1024;

// Describes a part of a case, ready for use. `count` instances begin `offset` bytes into the
// memory. They are packed to `bytes` bytes, `position` bytes into the stream.
struct Job {
  MPI_Datatype handle;
  std::int64_t count, offset, bytes, position;
  TypeExprPtr type;  // expression of the handle, for Mode::by_rule
};

struct PlannedJob {
  PackPlan plan;
  Job job;
};

using ThreadsPacker = KokkosPacker<Kokkos::DefaultHostExecutionSpace>;

// Returns the number of threads that share one job of `bytes` bytes.
std::int64_t threads_of(std::int64_t bytes) {
  return std::clamp<std::int64_t>(bytes / ThreadsPacker::kLeastShare, 1,
                                  Kokkos::DefaultHostExecutionSpace().concurrency());
}

template <class Packer>
Method pack_whole(const std::vector<PlannedJob>& all, Packer packer) {
  return {batch([all, packer](std::byte* memory, std::byte* packed) {
            for (const auto& [plan, job] : all)
              packer.pack(plan, memory + job.offset, job.count, packed + job.position);
          }),
          batch([all, packer](std::byte* memory, std::byte* packed) {
            for (const auto& [plan, job] : all)
              packer.unpack(plan, packed + job.position, memory + job.offset, job.count);
          })};
}

// Packs in segments that are made beforehand, as in a library that sends in pieces. Each call packs
// the whole stream again.
Method pack_in_segments(const std::vector<PlannedJob>& all, std::byte* memory) {
  const auto segments = std::make_shared<std::deque<Segment>>();
  for (const auto& [plan, job] : all)
    segments->emplace_back(plan, memory + job.offset, job.count, kLookahead);
  const auto in_segments = [&segments](auto step) {
    return batch([segments, step](std::byte*, std::byte* packed) {
      for (auto& segment : *segments) {
        segment.seek(0);
        while (!segment.done()) packed += step(segment, packed);
      }
    });
  };
  return {in_segments([](Segment& segment, std::byte* packed) {
            return segment.pack(packed, kSegmentBytes);
          }),
          in_segments([](Segment& segment, const std::byte* packed) {
            return segment.unpack(packed, kSegmentBytes);
          })};
}

Method pack_fused(const std::vector<PlannedJob>& all, std::byte* memory) {
  std::vector<PackJob> jobs;
  for (const auto& [plan, job] : all) jobs.push_back({plan, memory + job.offset, job.count});
  const FusedPlan fused(jobs);
  return {batch([fused](std::byte*, std::byte* packed) { HostPacker().pack(fused, packed); }),
          batch([fused](std::byte*, std::byte* packed) { HostPacker().unpack(fused, packed); })};
}

// Returns our pack and unpack of all jobs. Segments and a fused plan are bound to `memory`.
Result<Method> ours(const std::vector<Job>& jobs, Mode mode, std::byte* memory) {
  std::vector<PlannedJob> all;
  for (const auto& job : jobs) {
    auto plan =
        mode == Mode::by_rule ? Result<PackPlan>(make_plan(*job.type)) : make_plan(job.handle);
    if (auto* reason = std::get_if<UnsupportedDatatype>(&plan)) return std::move(*reason);
    all.push_back({std::get<PackPlan>(std::move(plan)), job});
  }
  if (mode == Mode::segments) return pack_in_segments(all, memory);
  if (mode == Mode::fused) return pack_fused(all, memory);
  if (mode == Mode::threads) return pack_whole(all, ThreadsPacker());
  return pack_whole(all, HostPacker());
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

constexpr Effort kFull{0.25, 20e3, 5}, kQuick{0.02, 20e3, 3};

constexpr auto kNone = static_cast<std::size_t>(-1);

struct DirectionFields {
  Batch Method::*run;
  std::string ours, hand, memcpy, vendor;
};
const DirectionFields kDirections[] = {
    {&Method::pack, "pack", "hand", "memcpy", "vendor_pack"},
    {&Method::unpack, "unpack", "hand_unpack", "memcpy_unpack", "vendor_unpack"}};

// Holds the methods that gave the right bytes.
struct Methods {
  Method hand;
  std::optional<Method> ours, vendor;
};

// Appends the fields of one direction. Returns the number of reruns.
int measure_direction(Row& row, const DirectionFields& direction, const Methods& methods,
                      std::int64_t bytes, double good_overhead_ns, const Options& options) {
  std::vector<Contender> contenders;
  const auto add = [&](const std::string& name, const Batch& run) {
    contenders.emplace_back(name, [run](std::int64_t calls) {
      run(arena().memory.data(), arena().packed.data(), calls);
    });
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

  const auto effort = effort_of(options, kFull, kQuick);
  take_turns(contenders, effort);
  const auto good = [&] {
    return ours == kNone || ratio(contenders[ours], contenders[hand]) >= kGoodRatio ||
           median(contenders[ours].ns()) - median(contenders[hand].ns()) <= good_overhead_ns;
  };
  int reruns = 0;
  const int most_reruns = options.smoke || options.quick ? 0 : 3;
  for (; reruns < most_reruns && !good(); ++reruns) take_turns(contenders, effort);
  const auto add_ratio = [&](const std::string& name, std::size_t a, std::size_t b) {
    if (a != kNone && b != kNone) row.add(name, ratio(contenders[a], contenders[b]));
  };
  add_ratio(direction.ours + "_vs_hand", ours, hand);
  add_ratio(direction.ours + "_vs_vendor", ours, vendor);
  add_ratio(direction.vendor + "_vs_hand", vendor, hand);
  for (const auto& contender : contenders) row.add_times(contender.name(), contender.ns());
  if (ours != kNone) remark_if_slower(row, contenders[ours], contenders[hand], good_overhead_ns);
  return reruns;
}

Row measure(const Case& the_case, const Options& options) {
  Jobs jobs;
  for (const auto& part : the_case.parts) {
    jobs.handles.push_back(make_datatype(*part.type));
    jobs.add(jobs.handles.back().get(), part.count, part.offset, part.type);
  }
  // memcpy reads its bytes from the same memory.
  arena().resize(std::max(jobs.memory_bytes, jobs.packed_bytes), jobs.packed_bytes);

  Row row;
  std::int64_t packs = 0, small_packs = 0;
  const auto count_pack = [&](std::int64_t bytes) {
    ++packs;
    if (bytes < kOverheadBelowBytes) ++small_packs;
  };
  if (the_case.mode == Mode::fused)
    count_pack(jobs.packed_bytes);
  else
    for (const auto& job : jobs.all) count_pack(job.bytes);
  const bool interposed = the_case.mode == Mode::interposed;
  const auto good_overhead_ns =
      static_cast<double>(small_packs) * (interposed ? kGoodInterposedNs : kGoodOverheadNs);
  row.add("bytes", jobs.packed_bytes);
  row.add("packs", packs);
  row.add("small_packs", small_packs);
  row.add("good_overhead_ns", good_overhead_ns);
  if (the_case.mode == Mode::threads) {
    const auto threads = threads_of(jobs.packed_bytes);
    row.add("threads", threads);
    row.add_note("ours on " + std::to_string(threads) + (threads == 1 ? " thread" : " threads"));
  }
  const auto through_mpi = by_mpi<MPI_Pack, MPI_Unpack>(jobs);
  const auto packer = interposed ? Result<Method>(through_mpi)
                                 : ours(jobs.all, the_case.mode, arena().memory.data());
  Methods methods{the_case.hand, std::nullopt, vendor(jobs)};
  if (const auto* reason = std::get_if<UnsupportedDatatype>(&packer)) {
    row.add_note(std::string("unsupported: ") + reason->what());
  } else if (agree(methods.hand, std::get<Method>(packer))) {
    row.verified = true;
    methods.ours = std::get<Method>(packer);
  } else {
    row.note = "differs from the loop by hand";
    return row;
  }
  if (!agree(methods.hand, *methods.vendor)) {
    methods.vendor.reset();
    row.add_note("MPI_Pack differs from the loop by hand");
  }

  int reruns = 0;
  for (const auto& direction : kDirections)
    reruns +=
        measure_direction(row, direction, methods, jobs.packed_bytes, good_overhead_ns, options);
  row.add("reruns", reruns);
  return row;
}

Mode mode_of(const Options& options) {
  if (options.mode == "segments") return Mode::segments;
  if (options.mode == "threads") return Mode::threads;
  return options.mode == "interposed" ? Mode::interposed : Mode::whole;
}

cpu_set_t allowed_cores() {
  cpu_set_t out;
  CPU_ZERO(&out);
  sched_getaffinity(0, sizeof out, &out);
  return out;
}

// Allows all cores to this process, whatever the launcher has bound it to. Returns the number of
// threads for Kokkos.
int unbind() {
  cpu_set_t all;
  CPU_ZERO(&all);
  for (std::size_t i = 0; i < CPU_SETSIZE; ++i) CPU_SET(i, &all);
  sched_setaffinity(0, sizeof all, &all);
  all = allowed_cores();
  const auto* wanted = std::getenv("OMP_NUM_THREADS");
  const int threads = std::max(wanted != nullptr ? std::atoi(wanted) : CPU_COUNT(&all), 1);
  if (threads > kMostKokkosThreads)
    std::fprintf(stderr, "bench_dtype: %d threads instead of %d: Kokkos has room for no more\n",
                 kMostKokkosThreads, threads);
  return limit_kokkos_threads(threads);
}

}  // namespace

std::vector<Benchmark> measured(std::vector<Case> cases, const Options& options) {
  std::vector<Benchmark> out;
  const auto mode = mode_of(options);
  for (auto& one : cases) {
    if (mode != Mode::whole && one.mode != Mode::whole) continue;
    if (mode != Mode::whole) one.mode = mode;
    auto name = one.name;
    out.push_back(
        {std::move(name), [one = std::move(one), options] { return measure(one, options); }});
  }
  return out;
}

void remark_if_slower(Row& row, const Contender& ours, const Contender& hand, double good_ns) {
  const double rate = ratio(ours, hand), more = median(ours.ns()) - median(hand.ns());
  if (rate >= 0.995 || more <= good_ns) return;
  char text[96];
  std::snprintf(text, sizeof text, "%s %.2f x as fast as the loop by hand, %.0f ns more",
                ours.name().c_str(), rate, more);
  row.remarks.emplace_back(text);
}

bool agrees_with_vendor(MPI_Datatype handle, std::int64_t count) {
  Jobs jobs;
  jobs.add(handle, count, 0);
  arena().resize(jobs.memory_bytes, jobs.packed_bytes);
  const auto method = ours(jobs.all, Mode::whole, arena().memory.data());
  return std::holds_alternative<Method>(method) && agree(vendor(jobs), std::get<Method>(method));
}

std::shared_ptr<void> start_threads(bool many) {
  const auto given = allowed_cores();
  auto kokkos = std::make_shared<Kokkos::ScopeGuard>(
      Kokkos::InitializationSettings()
          .set_num_threads(many ? unbind() : limit_kokkos_threads(1))
          .set_disable_warnings(true));
  sched_setaffinity(0, sizeof given, &given);
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<unsigned>(std::max(sched_getcpu(), 0)), &one);
  sched_setaffinity(0, sizeof one, &one);
  return kokkos;
}

}  // namespace halocline::dtype::bench
