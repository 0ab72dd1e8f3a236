// SPDX-License-Identifier: BSD-3-Clause
// Measures typed messages between two ranks, Halocline's beside MPI's own: [PEA21] figures 9 and
// 11. A row shows half the time there and back. All ways take turns, each verified byte by byte
// first.
//
//   mpirun -n 2 bench_messages [--groups=NAME,...] [--model=FILE] ...    --help lists all options
//
// Objects that need more than half of the free memory are left out.
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/device/gpu_awareness.hpp"
#include "comm/p2p/point_to_point.hpp"
#include "dtype/bench/harness.hpp"
#include "dtype/bench/program.hpp"
#include "dtype/model/system_model.hpp"
#include "support/mpi_check.hpp"
#include "support/narrow.hpp"
#include "ways.hpp"

namespace halocline::comm::bench {

namespace {

using dtype::MemoryKind;
using dtype::Transfer;
using dtype::bench::Benchmark;
using dtype::bench::Facts;
using dtype::bench::Options;
using dtype::bench::Program;

constexpr std::int64_t kPitch = 512;
// An MPI that copies block by block takes microseconds for each block on a device.
constexpr std::int64_t kMaxVendorBlocks = 8192;

Part contiguous(std::int64_t bytes) {
  return {dtype::type(dtype::Contiguous{bytes, dtype::named("byte")})};
}
Part blocks(std::int64_t bytes, std::int64_t block, std::int64_t pitch) {
  return {dtype::type(dtype::Hvector{bytes / block, block, pitch, dtype::named("byte")})};
}

// Holds what all cases share, and makes both ends of all ways.
class Bench {
 public:
  explicit Bench(const Options& options)
      : options_(options),
        resources_(dtype::current_device() != nullptr ? &dtype::current_resources() : nullptr),
        aware_(resources_ != nullptr && probe_gpu_awareness(resources_->device()).aware) {
    HALOCLINE_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank_));
    if (!options.model.empty()) model_ = dtype::read_model(options.model);
  }

  const Options& options() const { return options_; }
  bool has_device() const { return resources_ != nullptr; }
  std::string device() const {
    return has_device() ? resources_->device().properties().name : "no device";
  }

  // Tells if the arrays of an object of this span, and their copies, fit easily into the memory of
  // both ranks. Collective.
  bool fits(std::int64_t span) const {
    const auto pages = sysconf(_SC_AVPHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    int out = 2 * MessageArrays::kCopies * span < pages * page / 2 ? 1 : 0;
    HALOCLINE_MPI(MPI_Allreduce(MPI_IN_PLACE, &out, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD));
    return out == 1;
  }

  MessageArrays memory(const Part& part, bool on_device) const {
    return {part, on_device ? resources_ : nullptr, MemoryKind::device};
  }
  MessageArrays pinned(const Part& part) const { return {part, resources_, MemoryKind::pinned}; }

  Effort effort(double seconds) const {
    constexpr double kSampleNs = 500e3, kSlowNs = 20e6;
    return effort_of(options_, {seconds, kSampleNs, 5, kSlowNs},
                     {seconds / 5, kSampleNs / 2, 2, kSlowNs});
  }

  // Sends by PointToPoint, by `transfer` or the chosen one, in chunks of `chunk` bytes.
  Way ours(std::string name, const MessageArrays& memory, std::optional<Transfer> transfer,
           std::int64_t chunk = PointToPoint::kDefaultChunkBytes) {
    auto& p2p = messages_[{transfer, chunk}];
    if (p2p == nullptr) {
      PointToPoint::Options options;
      options.resources = resources_;
      options.model = model_ ? &*model_ : nullptr;
      options.transfer = transfer;
      options.chunk_bytes = chunk;
      p2p = std::make_unique<PointToPoint>(MPI_COMM_WORLD, options);
    }
    const int other = 1 - rank_;
    const auto* m = &memory;
    return {std::move(name),
            [=, p = p2p.get()] { p->send(m->out(), m->count(), m->type(), other, 1); },
            [=, p = p2p.get()] { p->recv(m->in(), m->count(), m->type(), other, 1); }, m};
  }

  // Sends by MPI itself, even with the interposer loaded. Returns nullopt if MPI cannot do it, or
  // not in reasonable time.
  std::optional<Way> vendor(const MessageArrays& memory, bool on_device,
                            std::string name = "vendor") const {
    if (on_device && (!aware_ || memory.blocks() > kMaxVendorBlocks)) return std::nullopt;
    return by_mpi<PMPI_Send, PMPI_Recv>(std::move(name), memory);
  }

  // Sends by these functions: those of MPI itself, or of the interposer if it was loaded.
  template <auto send, auto recv>
  Way by_mpi(std::string name, const MessageArrays& memory) const {
    const int other = 1 - rank_;
    const auto* m = &memory;
    const int count = checked_int(m->count(), "count");
    return {std::move(name),
            [=] { HALOCLINE_MPI(send(m->out(), count, m->type(), other, 2, MPI_COMM_WORLD)); },
            [=] {
              HALOCLINE_MPI(
                  recv(m->in(), count, m->type(), other, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            },
            m};
  }
  // Exchanges a message in both directions at once, as in a halo exchange; there and back are one
  // exchange each.
  template <auto irecv, auto isend, auto waitall>
  Way both_ways(std::string name, const MessageArrays& memory) const {
    const int other = 1 - rank_;
    const auto* m = &memory;
    const int count = checked_int(m->count(), "count");
    const auto exchange = [=] {
      MPI_Request requests[2];
      HALOCLINE_MPI(irecv(m->in(), count, m->type(), other, 2, MPI_COMM_WORLD, &requests[0]));
      HALOCLINE_MPI(isend(m->out(), count, m->type(), other, 2, MPI_COMM_WORLD, &requests[1]));
      HALOCLINE_MPI(waitall(2, requests, MPI_STATUSES_IGNORE));
    };
    return {std::move(name), exchange, exchange, m};
  }

  // Copies on rank 0, twice for a message there and back.
  Way copy(std::string name, const MessageArrays& to, const MessageArrays& from) const {
    if (rank_ != 0) return {std::move(name), [] {}, [] {}, nullptr};
    auto& device = resources_->device();
    const auto copy = [&device, to = to.in(), from = from.out(), bytes = to.bytes()] {
      device.copy(to, from, static_cast<std::size_t>(bytes), nullptr);
      device.synchronize(nullptr);
    };
    return {std::move(name), copy, copy, nullptr};
  }

  // Returns the transfers that are possible for device memory.
  std::vector<Transfer> transfers() const {
    std::vector<Transfer> out;
    for (const auto transfer : dtype::all_transfers())
      if (transfer != Transfer::host && (transfer != Transfer::device || aware_))
        out.push_back(transfer);
    return out;
  }
  bool aware() const { return aware_; }

 private:
  Options options_;
  int rank_ = 0;
  dtype::ResourceCache* resources_;
  bool aware_;
  std::optional<dtype::SystemModel> model_;
  std::map<std::pair<std::optional<Transfer>, std::int64_t>, std::unique_ptr<PointToPoint>>
      messages_;
};

const Contender* find(const std::vector<Contender>& all, const std::string& name) {
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Contender& c) { return c.name() == name; });
  return found == all.end() ? nullptr : &*found;
}

// Measures the ways of a case. vs_NAME is the rate of `ours` divided by that of way NAME.
Row measure(Bench& bench, const MessageArrays& memory, std::vector<Way> ways, double seconds,
            const std::string& ours) {
  Row row;
  row.add("bytes", memory.bytes());
  row.add("blocks", memory.blocks());
  const auto all = measure_ways(MPI_COMM_WORLD, ways, bench.effort(seconds), row);
  row.verified = row.note.empty();
  if (const auto* mine = find(all, ours))
    for (const auto& other : all)
      if (&other != mine) row.add("vs_" + other.name(), dtype::bench::ratio(*mine, other));
  return row;
}

// Measures the parts of a message, and partial sums without packing: [PEA21] figure 9.
std::vector<Benchmark> fig9(Bench& bench) {
  std::vector<Benchmark> out;
  const std::int64_t largest = bench.options().smoke ? 64 : 1 << 24;
  for (std::int64_t bytes = 1; bytes <= largest; bytes *= bytes < 64 ? 8 : 4)
    out.push_back({dtype::bench::name_of_bytes(bytes), [bytes, &b = bench] {
                     const auto part = contiguous(bytes);
                     const auto host = b.has_device() ? b.pinned(part) : b.memory(part, false);
                     std::vector<Way> ways{*b.vendor(host, false, "host")};
                     std::optional<MessageArrays> device;
                     if (b.has_device()) {
                       device.emplace(b.memory(part, true));
                       if (auto way = b.vendor(*device, true, "device"))
                         ways.push_back(*std::move(way));
                       ways.push_back(b.copy("d2h", host, *device));
                       ways.push_back(b.copy("h2d", *device, host));
                     }
                     auto row = measure(b, host, std::move(ways), 0.1, "host");
                     row.add("staged_ns",
                             row.value("host_ns") + row.value("d2h_ns") + row.value("h2d_ns"));
                     return row;
                   }});
  return out;
}

// Appends the regret of the automatic choice: how much longer it takes than the fastest transfer.
void append_regret(Row& row, const std::vector<Transfer>& transfers) {
  double best = std::nan(""), noise = std::nan("");
  for (const auto transfer : transfers) {
    const auto name = std::string(dtype::name(transfer));
    const auto ns = row.value(name + "_ns");
    if (std::isnan(ns) || ns >= best) continue;
    best = ns;
    noise = row.value(name + "_p90_ns") / row.value(name + "_p10_ns") - 1;
  }
  row.add("best_ns", best);
  row.add("regret", row.value("auto_ns") / best - 1);
  row.add("best_spread", noise);
}

// Measures 2-D objects in device memory: [PEA21] figure 11.
std::vector<Benchmark> fig11(Bench& bench) {
  std::vector<Benchmark> out;
  if (!bench.has_device()) return out;
  const auto sizes = bench.options().smoke ? std::vector<std::int64_t>{1024}
                                           : std::vector<std::int64_t>{1 << 10, 1 << 20, 1 << 22};
  for (const auto bytes : sizes)
    for (std::int64_t block = 1; block <= kPitch; block *= bench.options().smoke ? 8 : 2) {
      if (!bench.fits(bytes / block * kPitch)) continue;
      out.push_back({dtype::bench::name_of_bytes(bytes) + "-b" + std::to_string(block),
                     [bytes, block, &b = bench] {
                       const auto memory = b.memory(blocks(bytes, block, kPitch), true);
                       std::vector<Way> ways;
                       for (const auto transfer : b.transfers())
                         ways.push_back(
                             b.ours(std::string(dtype::name(transfer)), memory, transfer));
                       ways.push_back(b.ours("auto", memory, std::nullopt));
                       if (auto way = b.vendor(memory, true)) ways.push_back(*std::move(way));
                       auto row = measure(b, memory, std::move(ways), 0.15, "auto");
                       append_regret(row, b.transfers());
                       return row;
                     }});
    }
  return out;
}

// Measures the objects of fig11() in ordinary memory.
std::vector<Benchmark> host(Bench& bench) {
  std::vector<Benchmark> out;
  const auto sizes = bench.options().smoke ? std::vector<std::int64_t>{1024}
                                           : std::vector<std::int64_t>{1 << 10, 1 << 20, 1 << 22};
  for (const auto bytes : sizes)
    for (std::int64_t block = 8; block <= kPitch; block *= bench.options().smoke ? 16 : 4) {
      if (!bench.fits(bytes / block * kPitch)) continue;
      out.push_back({dtype::bench::name_of_bytes(bytes) + "-b" + std::to_string(block),
                     [bytes, block, &b = bench] {
                       const auto memory = b.memory(blocks(bytes, block, kPitch), false);
                       return measure(
                           b, memory,
                           {b.ours("ours", memory, std::nullopt), *b.vendor(memory, false)}, 0.2,
                           "ours");
                     }});
    }
  return out;
}

// Measures long messages, whole and in chunks.
std::vector<Benchmark> long_messages(Bench& bench) {
  std::vector<Benchmark> out;
  const auto sizes = bench.options().smoke
                         ? std::vector<std::int64_t>{1 << 19}
                         : std::vector<std::int64_t>{1 << 20, 1 << 22, 1 << 24, 1 << 26};
  for (const bool on_device : {false, true}) {
    if (on_device && !bench.has_device()) continue;
    for (const auto bytes : sizes)
      out.push_back(
          {std::string(on_device ? "device-" : "host-") + dtype::bench::name_of_bytes(bytes),
           [bytes, on_device, &b = bench] {
             const auto memory = b.memory(blocks(bytes, 64, 128), on_device);
             std::vector<Way> ways{b.ours("whole", memory, std::nullopt, 0)};
             for (const auto& [name, chunk] :
                  {std::pair("64KiB", 1 << 16), {"256KiB", 1 << 18}, {"1MiB", 1 << 20}})
               if (chunk < bytes) ways.push_back(b.ours(name, memory, std::nullopt, chunk));
             if (auto way = b.vendor(memory, on_device)) ways.push_back(*std::move(way));
             return measure(b, memory, std::move(ways), 0.5, "whole");
           }});
  }
  return out;
}

// Returns the calls of a program, which our interposer does if it was loaded, and MPI's own.
std::vector<Way> one_way(const Bench& bench, const MessageArrays& memory) {
  return {bench.by_mpi<MPI_Send, MPI_Recv>("interposed", memory), *bench.vendor(memory, false)};
}
std::vector<Way> both_ways_at_once(const Bench& bench, const MessageArrays& memory) {
  return {bench.both_ways<MPI_Irecv, MPI_Isend, MPI_Waitall>("interposed", memory),
          bench.both_ways<PMPI_Irecv, PMPI_Isend, PMPI_Waitall>("vendor", memory)};
}

Benchmark beside_mpi(Bench& bench, std::string name, const Part& part,
                     std::vector<Way> (*ways)(const Bench&, const MessageArrays&)) {
  return {std::move(name), [part, ways, &b = bench] {
            const auto memory = b.memory(part, false);
            return measure(b, memory, ways(b, memory), 0.2, "interposed");
          }};
}

// Measures blocks with gaps of their own length, in ordinary memory.
std::vector<Benchmark> of_blocks(Bench& bench,
                                 std::vector<Way> (*ways)(const Bench&, const MessageArrays&)) {
  std::vector<Benchmark> out;
  const std::int64_t largest = bench.options().smoke ? 1 << 10 : 1 << 22;
  for (std::int64_t bytes = 1 << 10; bytes <= largest; bytes *= 4)
    for (std::int64_t block = 8; block <= bytes / 2 && block <= 1 << 13; block *= 4)
      out.push_back(beside_mpi(bench,
                               dtype::bench::name_of_bytes(bytes) + "-b" + std::to_string(block),
                               blocks(bytes, block, 2 * block), ways));
  return out;
}
std::vector<Benchmark> interposed(Bench& bench) {
  return of_blocks(bench, one_way);
}
std::vector<Benchmark> both_ways(Bench& bench) {
  return of_blocks(bench, both_ways_at_once);
}

// Measures the application patterns of bench_dtype that are one MPI datatype.
std::vector<Benchmark> patterns(Bench& bench) {
  std::vector<Benchmark> out;
  for (const auto& layout : dtype::bench::patterns(bench.options())) {
    if (layout.parts.size() != 1 || layout.mode == dtype::bench::Mode::by_rule) continue;
    out.push_back(beside_mpi(bench, layout.name, layout.parts[0], one_way));
    out.push_back(
        beside_mpi(bench, layout.name + "-both-ways", layout.parts[0], both_ways_at_once));
  }
  return out;
}

// Measures the cost of a loaded interposer for a program without derived types. A process that runs
// this group alone never has a derived type.
std::vector<Benchmark> plain(Bench& bench) {
  std::vector<Benchmark> out;
  const std::int64_t largest = bench.options().smoke ? 8 : 1 << 22;
  for (std::int64_t bytes = 8; bytes <= largest; bytes *= 8)
    out.push_back({dtype::bench::name_of_bytes(bytes), [bytes, &b = bench] {
                     const auto memory = b.memory({dtype::named("double"), bytes / 8}, false);
                     return measure(b, memory,
                                    {b.by_mpi<MPI_Send, MPI_Recv>("interposed", memory),
                                     *b.vendor(memory, false)},
                                    0.5, "interposed");
                   }});
  return out;
}

std::string text_of_regrets(const std::vector<double>& regrets) {
  if (regrets.empty()) return {};
  const auto at = [&](double fraction) { return percentile(regrets, fraction); };
  char text[160];
  std::snprintf(text, sizeof text,
                "regret of the choice over %zu cases: median %.3f, 95 %% below %.3f, at most %.3f",
                regrets.size(), at(0.5), at(0.95), at(1));
  return text;
}

constexpr const char* kInterposedColumns =
    "blocks interposed_ns interposed_p10_ns interposed_p90_ns vendor_ns vendor_p10_ns "
    "vendor_p90_ns vs_vendor";

Program program() {
  const auto bench = std::make_shared<std::optional<Bench>>();
  const auto regrets = std::make_shared<std::vector<double>>();
  const auto of = [=](std::vector<Benchmark> (*make)(Bench&)) {
    return [=](const Options&) {
      auto all = make(**bench);
      for (auto& one : all)
        one.run = [=, run = std::move(one.run)] {
          auto row = run();
          if (const auto regret = row.value("regret"); !std::isnan(regret))
            regrets->push_back(regret);
          return row;
        };
      return all;
    };
  };
  return {
      .what = "Typed messages between two ranks, ours beside MPI's own: mpirun -n 2.",
      .groups = {{"fig9",
                  "messages of bytes, and copies between device and host; staged: the sum of three "
                  "[PEA21 figure 9]",
                  "host_ns", "bytes host_ns device_ns d2h_ns h2d_ns staged_ns", of(fig9)},
                 {"fig11",
                  "2-D objects in the memory of a device, pitch 512 bytes; vendor: MPI's own "
                  "([PEA21 figure 11]: auto is up to 59,000 x as fast)",
                  "auto_ns",
                  "blocks device_ns one-shot_ns staged_ns auto_ns vendor_ns vs_vendor regret",
                  of(fig11)},
                 {"host", "the same objects in ordinary memory", "ours_ns",
                  "blocks ours_ns ours_p10_ns ours_p90_ns vendor_ns vs_vendor", of(host)},
                 {"long", "blocks of 64 bytes, 128 apart: one message, and chunks", "whole_ns",
                  "bytes whole_ns 64KiB_ns 256KiB_ns 1MiB_ns vendor_ns", of(long_messages)},
                 {"interposed",
                  "blocks with gaps of their length, by MPI_Send and MPI_Recv: start with "
                  "LD_PRELOAD=libhalocline_mpi.so",
                  "interposed_ns", kInterposedColumns, of(interposed)},
                 {"both-ways",
                  "the same by MPI_Irecv, MPI_Isend and MPI_Waitall, from both ranks at once",
                  "interposed_ns", kInterposedColumns, of(both_ways)},
                 {"patterns", "application patterns of bench_dtype, one way and both ways at once",
                  "interposed_ns", kInterposedColumns, of(patterns)},
                 {"plain", "doubles, by MPI_Send and MPI_Recv, in a process without derived types",
                  "interposed_ns", kInterposedColumns, of(plain)}},
      .start = [bench](const Options& options) -> Facts {
        int ranks = 0;
        HALOCLINE_MPI(MPI_Comm_size(MPI_COMM_WORLD, &ranks));
        if (ranks != 2)
          throw ConfigError("messages go between two ranks (there are " + std::to_string(ranks) +
                            "): start with mpirun -n 2");
        bench->emplace(options);
        const auto device = (*bench)->device();
        return {"2 ranks, " + device, {{"device", device}}};
      },
      .closing = [regrets] { return text_of_regrets(*regrets); },
      .takes_model = true};
}

}  // namespace

}  // namespace halocline::comm::bench

int main(int argc, char** argv) {
  return halocline::dtype::bench::bench_main("bench_messages", argc, argv,
                                             halocline::comm::bench::program);
}
