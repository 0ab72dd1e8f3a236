// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/bench/device/harness.hpp"

#include <benchmark/benchmark.h>
#include <dlfcn.h>
#include <mpi.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <optional>
#include <utility>

#include "dtype/bench/memory.hpp"
#include "dtype/datatype.hpp"
#include "dtype/pack/device/job_table.hpp"
#include "dtype/pack/host/host_packer.hpp"
#include "support/mpi_check.hpp"
#include "support/narrow.hpp"

namespace halocline::dtype::bench {

namespace {

constexpr std::int64_t kSector = 32;  // bytes that a device moves at least
constexpr std::int64_t kStagingBytes = std::int64_t{1} << 25;
// Limits of twins that copy block by block: a block takes microseconds, and ten times as long with
// a CUDA-aware MPI.
constexpr std::int64_t kMaxBlocks = 65536, kMaxMpiBlocks = 8192;

const char* name(Twin twin) {
  constexpr const char* kNames[] = {"tempi", "separate", "blocks", "memcpy3d", "gather", "mpi"};
  return kNames[static_cast<std::size_t>(twin)];
}

std::size_t size(std::int64_t bytes) {
  return static_cast<std::size_t>(bytes);
}

// Returns the StridedBlock of a form. nullopt if it has more dimensions, or if its packed order is
// not that of the strides. The paper's kernels would pack other bytes there (errata B.1).
std::optional<StridedBlock> strided_block(const CanonicalForm& form) {
  const auto nest = form.nest();
  if (!nest || nest->levels.size() >= StridedBlock::kMaxDimensions) return std::nullopt;
  StridedBlock block;
  block.start = nest->start;
  block.extent = nest->bounds.extent;
  block.counts[0] = nest->run;
  auto packed_stride = nest->run;
  for (const auto& level : nest->levels) {
    if (level.packed_stride != packed_stride) return std::nullopt;
    block.counts[block.dimensions] = level.count;
    block.strides[block.dimensions] = level.stride;
    ++block.dimensions;
    packed_stride *= level.count;
  }
  return block;
}

// Tells if Twins::memcpy3d() can follow the strides.
bool fits_memcpy3d(const StridedBlock& block) {
  if (block.strides[1] < (block.counts[1] > 1 ? block.counts[0] : 0)) return false;
  return block.counts[2] == 1 || (block.strides[2] % block.strides[1] == 0 &&
                                  block.strides[2] / block.strides[1] >= block.counts[1]);
}

// Tells if the running MPI says that it can follow pointers to the memory of CUDA devices. Asks at
// run time, since a program may run with another MPI than it was built with. Asks the same
// questions in the same order as comm::ask_mpi_for_gpu_awareness(), which this library does not
// know. The caller has a device.
bool mpi_knows_cuda() {
  using Query = int();
  using GpuQuery = int(int, int*);
  constexpr int kCuda = 0;  // MPICH's MPIX_GPU_SUPPORT_CUDA
  int supported = 0;
  auto* const ask = reinterpret_cast<GpuQuery*>(dlsym(RTLD_DEFAULT, "MPIX_GPU_query_support"));
  if (ask != nullptr && ask(kCuda, &supported) == MPI_SUCCESS) return supported == 1;
  auto* const query = reinterpret_cast<Query*>(dlsym(RTLD_DEFAULT, "MPIX_Query_cuda_support"));
  return query != nullptr && query() == 1;
}

}  // namespace

bool DeviceBuffer::grow(std::int64_t bytes) {
  if (bytes <= capacity_) return false;
  memory_.reset();
  capacity_ = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(bytes)));
  memory_ = std::shared_ptr<std::byte>(
      static_cast<std::byte*>(device_.allocate(kind_, size(capacity_ + 2 * kGuard))),
      [&device = device_, kind = kind_](std::byte* memory) { device.release(kind, memory); });
  return true;
}

struct DeviceHarness::Job {
  TypeExprPtr type;
  PackPlan plan;
  std::optional<StridedBlock> strided;
  std::int64_t count, offset, position;
};

struct DeviceHarness::Prepared {
  CopyDirection direction = CopyDirection::pack;
  MemoryKind kind = MemoryKind::device;  // of the packed bytes
  std::byte* packed = nullptr;
  std::vector<Job> jobs;
  FusedPlan fused;
  std::int64_t bytes = 0, memory_bytes = 0;
  std::int64_t blocks = 0, sectors = 0;  // in memory
  std::vector<MemoryBlock> block_list;   // the first ones, if there are more than kMaxBlocks

  bool packs() const { return direction == CopyDirection::pack; }
};

DeviceHarness::DeviceHarness(Device& device, const Options& options)
    : device_(device),
      options_(options),
      stream_(device.create_stream()),
      packer_(device.make_packer(stream_)),
      twins_(make_twins(device, stream_)),
      memory_(device, MemoryKind::device),
      shadow_(device, MemoryKind::pinned),
      device_packed_(device, MemoryKind::device),
      pinned_packed_(device, MemoryKind::pinned),
      staging_(device, MemoryKind::pinned) {
  staging_.grow(kStagingBytes);
}

DeviceHarness::~DeviceHarness() {
  device_.destroy_stream(stream_);
}

void DeviceHarness::copy_now(void* to, const void* from, std::size_t bytes) const {
  device_.copy(to, from, bytes, stream_);
  device_.synchronize(stream_);
}

void DeviceHarness::make_room(std::int64_t bytes) {
  if (!memory_.grow(bytes)) return;
  shadow_.grow(bytes);
  const auto all = size(memory_.capacity() + 2 * DeviceBuffer::kGuard);
  fill_with_noise(shadow_.begin(), all, 1);
  copy_now(memory_.begin(), shadow_.begin(), all);
}

DeviceHarness::Prepared DeviceHarness::prepare(const DeviceCase& the_case) {
  Prepared out;
  out.direction = the_case.direction;
  out.kind = the_case.packed;
  for (const auto& part : the_case.parts) {
    const auto form = canonicalize(translate(*part.type));
    const PackPlan plan(form);
    const auto& bounds = plan.bounds();
    if (part.offset + bounds.true_lb < 0 || bounds.extent < 0)
      throw ConfigError("a case begins before its memory: move its offset");
    out.jobs.push_back({part.type, plan, strided_block(form), part.count, part.offset, out.bytes});
    out.bytes += plan.packed_bytes(part.count);
    out.memory_bytes = std::max(out.memory_bytes, part.offset + bounds.extent * (part.count - 1) +
                                                      bounds.true_lb + bounds.true_extent);
  }
  make_room(out.memory_bytes);
  auto& packed = out.kind == MemoryKind::device ? device_packed_ : pinned_packed_;
  packed.grow(out.bytes);
  out.packed = packed.data();

  std::vector<PackJob> fused;
  std::vector<bool> touched(size(out.memory_bytes / kSector + 1));
  std::vector<MemoryBlock> some(1024);
  for (const auto& job : out.jobs) {
    fused.push_back({job.plan, memory_.data() + job.offset, job.count});
    std::int64_t position = 0;
    while (const auto n = list_blocks(job.plan, job.count, position, some)) {
      out.blocks += static_cast<std::int64_t>(n);
      for (auto block : std::span(some).first(n)) {
        block.offset += job.offset;
        if (out.blocks <= kMaxBlocks) out.block_list.push_back(block);
        const auto end = (block.offset + block.length - 1) / kSector;
        for (auto sector = block.offset / kSector; sector <= end; ++sector)
          touched[size(sector)] = true;
      }
    }
  }
  out.sectors = std::count(touched.begin(), touched.end(), true);
  out.fused = FusedPlan(fused);
  return out;
}

void DeviceHarness::host_pack(const Prepared& prepared, std::byte* to) const {
  for (const auto& job : prepared.jobs)
    HostPacker().pack(job.plan, shadow_.data() + job.offset, job.count, to + job.position);
}
void DeviceHarness::host_unpack(const Prepared& prepared, const std::byte* from) {
  for (const auto& job : prepared.jobs)
    HostPacker().unpack(job.plan, from + job.position, shadow_.data() + job.offset, job.count);
}

// Compares the packed bytes and their guards. Before the pack, each packed byte differs from the
// expected one.
bool DeviceHarness::packs_right(const Prepared& prepared, const Calls& run) {
  const auto all = size(prepared.bytes + 2 * DeviceBuffer::kGuard);
  const auto guard = size(DeviceBuffer::kGuard);
  std::vector<std::byte> expected(all), found(all);
  host_pack(prepared, expected.data() + guard);
  auto poison = expected;
  for (auto i = guard; i < all - guard; ++i) poison[i] = ~poison[i];
  copy_now(prepared.packed - guard, poison.data(), all);
  run(1);
  copy_now(found.data(), prepared.packed - guard, all);
  return found == expected;
}

// Unpacks bytes that differ from those in memory, to the same places in both memories. Nothing else
// may change.
bool DeviceHarness::unpacks_right(const Prepared& prepared, const Calls& run) {
  std::vector<std::byte> stream(size(prepared.bytes)), after(stream.size());
  host_pack(prepared, stream.data());
  for (auto& byte : stream) byte = ~byte;
  copy_now(prepared.packed, stream.data(), stream.size());
  host_unpack(prepared, stream.data());
  run(1);
  copy_now(after.data(), prepared.packed, after.size());
  return equals_shadow(prepared.memory_bytes) && after == stream;
}

bool DeviceHarness::is_right(const Prepared& prepared, const Calls& run) {
  if (prepared.packs()) return packs_right(prepared, run);
  if (unpacks_right(prepared, run)) return true;
  // Restores the memory, so that later twins can be verified.
  copy_now(memory_.begin(), shadow_.begin(), size(memory_.capacity() + 2 * DeviceBuffer::kGuard));
  return false;
}

// Compares the memory of a case and its guards with the shadow. The guard behind it is the memory
// that follows.
bool DeviceHarness::equals_shadow(std::int64_t bytes) {
  const auto all = bytes + 2 * DeviceBuffer::kGuard;
  for (std::int64_t at = 0; at < all; at += kStagingBytes) {
    const auto piece = size(std::min(kStagingBytes, all - at));
    copy_now(staging_.begin(), memory_.begin() + at, piece);
    if (std::memcmp(staging_.begin(), shadow_.begin() + at, piece) != 0) return false;
  }
  return true;
}

Calls DeviceHarness::one_by_one(const std::function<void()>& launch) const {
  return [this, launch](std::int64_t calls) {
    for (; calls > 0; --calls) {
      launch();
      device_.synchronize(stream_);
    }
  };
}
Calls DeviceHarness::in_a_row(const std::function<void()>& launch) const {
  return [this, launch](std::int64_t calls) {
    for (; calls > 0; --calls) launch();
    device_.synchronize(stream_);
  };
}

// Returns the launches of a twin, or the reason why it cannot do this case.
DeviceHarness::Launch DeviceHarness::launch_of(Twin twin, const Prepared& p) const {
  const bool strided = std::all_of(p.jobs.begin(), p.jobs.end(),
                                   [](const Job& job) { return job.strided.has_value(); });
  const auto call_of = [this, &p](const Job& job) {
    return StridedCall{*job.strided, memory_.data() + job.offset, p.packed + job.position,
                       job.count};
  };
  switch (twin) {
    case Twin::tempi:
      if (!twins_) return {"needs CUDA"};
      if (!strided) return {"knows no such type"};
      return {[this, &p, call_of] {
        for (const auto& job : p.jobs) {
          twins_->tempi(call_of(job), p.direction);
          device_.synchronize(stream_);
        }
      }};
    case Twin::separate:
      return {[this, &p] {
        for (const auto& job : p.jobs) {
          auto* memory = memory_.data() + job.offset;
          auto* packed = p.packed + job.position;
          p.packs() ? packer_->pack(job.plan, memory, job.count, packed)
                    : packer_->unpack(job.plan, packed, memory, job.count);
        }
      }};
    case Twin::blocks:
      if (p.blocks > kMaxBlocks) return {"not tried, " + std::to_string(p.blocks) + " blocks"};
      return {[this, &p] {
        auto* packed = p.packed;
        for (const auto& block : p.block_list) {
          auto* memory = memory_.data() + block.offset;
          device_.copy(p.packs() ? packed : memory, p.packs() ? memory : packed, size(block.length),
                       stream_);
          packed += block.length;
        }
      }};
    case Twin::memcpy3d:
      if (!twins_) return {"needs CUDA"};
      if (!strided || !std::all_of(p.jobs.begin(), p.jobs.end(),
                                   [](const Job& job) { return fits_memcpy3d(*job.strided); }))
        return {"knows no such type"};
      return {[this, &p, call_of] {
        for (const auto& job : p.jobs) twins_->memcpy3d(call_of(job), p.direction);
      }};
    case Twin::gather:
      return gather(p);
    case Twin::mpi:
      return mpi(p);
  }
  return {"unknown"};
}

// Returns the launch of an application that has listed all words once.
DeviceHarness::Launch DeviceHarness::gather(const Prepared& p) const {
  if (!twins_) return "needs CUDA";
  std::uint64_t alignment_bits = 0;
  std::vector<MemoryBlock> blocks(size(p.blocks));
  auto next = blocks.begin();
  for (const auto& job : p.jobs) {
    const auto begin = next;
    std::int64_t position = 0;
    next += static_cast<std::ptrdiff_t>(
        list_blocks(job.plan, job.count, position, std::span(begin, blocks.end())));
    for (auto block = begin; block != next; ++block) {
      block->offset += job.offset;
      alignment_bits |= static_cast<std::uint64_t>(block->offset | block->length);
    }
  }
  const auto word = std::int64_t{1} << device::word_log2(alignment_bits);
  std::vector<std::int32_t> index;
  index.reserve(size(p.bytes / word));
  for (const auto& block : blocks)
    for (std::int64_t at = 0; at < block.length; at += word)
      index.push_back(static_cast<std::int32_t>((block.offset + at) / word));
  const auto list = std::make_shared<DeviceBuffer>(device_, MemoryKind::device);
  const auto bytes = std::ssize(index) * static_cast<std::int64_t>(sizeof(index[0]));
  list->grow(bytes);
  copy_now(list->data(), index.data(), size(bytes));
  const auto words = std::ssize(index);
  return [this, &p, list, words, word] {
    twins_->gather({reinterpret_cast<const std::int32_t*>(list->data()), words, word,
                    memory_.data(), p.packed},
                   p.direction);
  };
}

DeviceHarness::Launch DeviceHarness::mpi(const Prepared& p) const {
  if (!twins_ || !mpi_knows_cuda()) return "knows no CUDA";
  if (p.blocks > kMaxMpiBlocks) return "not tried, " + std::to_string(p.blocks) + " blocks";
  const auto handles = std::make_shared<std::vector<Datatype>>();
  for (const auto& job : p.jobs) handles->push_back(make_datatype(*job.type));
  const auto bytes = checked_int(p.bytes, "packed bytes");
  return [this, &p, handles, bytes] {
    int position = 0;
    for (std::size_t i = 0; i < p.jobs.size(); ++i) {
      const auto& job = p.jobs[i];
      auto* memory = memory_.data() + job.offset;
      const auto count = static_cast<int>(job.count);
      const auto handle = (*handles)[i].get();
      if (p.packs())
        HALOCLINE_MPI(MPI_Pack(memory, count, handle, p.packed, bytes, &position, MPI_COMM_SELF));
      else
        HALOCLINE_MPI(MPI_Unpack(p.packed, bytes, &position, memory, count, handle, MPI_COMM_SELF));
    }
  };
}

std::vector<Contender> DeviceHarness::compare(std::vector<Contender> all, double seconds,
                                              Row& row) const {
  constexpr double kSampleNs = 500e3, kSlowNs = 5e6;
  take_turns(all, effort_of(options_, {seconds, kSampleNs, 5, kSlowNs},
                            {seconds / 5, kSampleNs / 2, 2, kSlowNs}));
  for (const auto& contender : all) row.add_times(contender.name(), contender.ns());
  return all;
}

// A copy reads and writes each packed byte. A pack does the same in whole sectors. The link to the
// host limits packs to host memory.
void DeviceHarness::append_limits(Row& row, const Prepared& p, double ns) const {
  const auto bytes = static_cast<double>(p.bytes);
  if (p.kind != MemoryKind::device) {
    const auto limit = bytes * (p.packs() ? to_host_ : from_host_).ns_per_byte;
    row.add("gb_s", bytes / ns);
    row.add("limit_ns", limit);
    row.add("of_copy", limit / ns);
    return;
  }
  const auto packed_sectors = (p.bytes + kSector - 1) / kSector;
  const auto touched = static_cast<double>((p.sectors + packed_sectors) * kSector);
  const auto limit = bytes * on_device_.ns_per_byte;
  row.add("gb_s", 2 * bytes / ns);
  row.add("limit_ns", limit);
  row.add("of_copy", limit / ns);
  row.add("sector_bytes", touched);
  row.add("of_sectors", touched / 2 * on_device_.ns_per_byte / ns);
}

Row DeviceHarness::measure(const DeviceCase& the_case) {
  const auto p = prepare(the_case);
  Row row;
  row.fields = the_case.parameters;
  row.add("unpack", p.packs() ? 0 : 1);
  row.add("packed_on_host", p.kind == MemoryKind::device ? 0 : 1);
  row.add("bytes", p.bytes);
  row.add("blocks", p.blocks);

  // One type uses its plan directly: a FusedPlan would know the count beforehand.
  const bool one = p.jobs.size() == 1;
  const auto ours = one ? std::get<0>(launch_of(Twin::separate, p)) : [this, &p] {
    p.packs() ? packer_->pack(p.fused, p.packed) : packer_->unpack(p.fused, p.packed);
  };
  std::vector<Contender> all = {{"ours", one_by_one(ours)}, {"stream", in_a_row(ours)}};
  row.verified = is_right(p, one_by_one(ours));
  if (!row.verified) {
    row.note = "differs from the host's packer";
    return row;
  }
  for (const auto twin : the_case.twins) {
    const auto launch = launch_of(twin, p);
    if (const auto* why_not = std::get_if<std::string>(&launch)) {
      row.add_note(std::string(name(twin)) + " " + *why_not);
      continue;
    }
    const auto calls = one_by_one(std::get<0>(launch));
    if (is_right(p, calls))
      all.emplace_back(name(twin), calls);
    else
      row.add_note(std::string(name(twin)) + " differs from the host's packer");
  }
  all = compare(std::move(all), the_case.seconds, row);
  append_limits(row, p, median(all[1].ns()));
  for (std::size_t i = 2; i < all.size(); ++i)
    row.add("vs_" + all[i].name(), ratio(all[0], all[i]));
  for (const auto& [field, at_least] : the_case.targets) {
    row.add(std::string("target_") + field, at_least);
    const auto value = row.value(field);
    if (std::isnan(value)) continue;
    char text[128];
    std::snprintf(text, sizeof text, "%s %.2f, at least %.2f: %s", field, value, at_least,
                  value >= at_least ? "met" : "MISSED");
    row.remarks.emplace_back(text);
  }
  return row;
}

Row DeviceHarness::measure_replay(const DeviceCase& the_case) {
  const auto p = prepare(the_case);
  Row row;
  row.fields = the_case.parameters;
  row.add("unpack", p.packs() ? 0 : 1);
  row.add("bytes", p.bytes);
  const bool staged = p.kind != MemoryKind::device;
  device_packed_.grow(p.bytes);
  auto* const packed = staged ? device_packed_.data() : p.packed;
  const auto launches = [this, &p, staged, packed] {
    if (p.packs()) packer_->pack(p.fused, packed);
    if (staged)
      device_.copy(p.packs() ? p.packed : packed, p.packs() ? packed : p.packed, size(p.bytes),
                   stream_);
    if (!p.packs()) packer_->unpack(p.fused, packed);
  };
  row.verified = is_right(p, one_by_one(launches));
  if (row.verified) {
    const auto recording = device_.record(stream_, launches);
    const auto replay = [&recording] { recording->replay(); };
    row.verified = is_right(p, one_by_one(replay));
    if (row.verified) {
      const auto all = compare({{"ours", one_by_one(replay)},
                                {"stream", in_a_row(replay)},
                                {"launches", one_by_one(launches)}},
                               the_case.seconds, row);
      row.add("vs_launches", ratio(all[0], all[2]));
    }
  }
  if (!row.verified) row.note = "differs from the host's packer";
  return row;
}

Row DeviceHarness::measure_copy(CopyDirection direction, MemoryKind kind, std::int64_t bytes) {
  const auto p = prepare({.name = "",
                          .direction = direction,
                          .packed = kind,
                          .parts = {{type(Contiguous{bytes, named("byte")})}},
                          .twins = {}});
  const auto copy = [this, &p] {
    device_.copy(p.packs() ? p.packed : memory_.data(), p.packs() ? memory_.data() : p.packed,
                 size(p.bytes), stream_);
  };
  Row row;
  row.add("bytes", bytes);
  row.verified = is_right(p, one_by_one(copy));
  const auto all = compare({{"ours", one_by_one(copy)}, {"stream", in_a_row(copy)}}, 0.2, row);
  const auto ns = median(all[1].ns());
  auto& speed = kind == MemoryKind::device ? on_device_ : p.packs() ? to_host_ : from_host_;
  if (bytes >= speed.bytes) speed = {bytes, ns / static_cast<double>(bytes)};
  append_limits(row, p, ns);
  return row;
}

Row DeviceHarness::measure_empty_kernel() {
  Row row;
  row.verified = true;
  if (!twins_) {
    row.note = "needs CUDA";
    return row;
  }
  const auto launch = [this] { twins_->empty_kernel(); };
  compare({{"ours", one_by_one(launch)}, {"stream", in_a_row(launch)}}, 0.2, row);
  return row;
}

Row DeviceHarness::measure_kind_of(MemoryKind kind) {
  device_packed_.grow(1);
  pinned_packed_.grow(1);
  Row row;
  const void* const address = kind == MemoryKind::device   ? device_packed_.data()
                              : kind == MemoryKind::pinned ? pinned_packed_.data()
                                                           : static_cast<const void*>(&row);
  row.verified = kind_of_memory(address) == kind;
  const auto ask = [address](std::int64_t calls) {
    for (; calls > 0; --calls) benchmark::DoNotOptimize(kind_of_memory(address));
  };
  compare({{"ours", ask}}, 0.1, row);
  return row;
}

}  // namespace halocline::dtype::bench
