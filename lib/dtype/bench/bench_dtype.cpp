// SPDX-License-Identifier: BSD-3-Clause
// Compares packing on the host with our plans with the loop by hand, MPI_Pack and memcpy.
//
//   bench_dtype [--group=NAME...] [--mode=MODE] [--only=PATTERN] ...    --help shows all options
//
// Starts Kokkos with one thread, except for --mode=threads. jobs/local/bench.sh builds and runs it.
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "dtype/bench/harness.hpp"
#include "support/machine.hpp"

namespace halocline::dtype::bench {

namespace {

constexpr const char* kPackColumns =
    "bytes hand_ns pack_ns vendor_pack_ns memcpy_ns pack_vs_hand pack_vs_vendor hand_unpack_ns "
    "unpack_ns vendor_unpack_ns unpack_vs_hand unpack_vs_vendor reruns";

template <auto cases>
std::vector<Benchmark> packs(const Options& options) {
  return measured(cases(options), options);
}

Program program() {
  const auto threads = std::make_shared<std::shared_ptr<void>>();
  return {
      .what = "Packing with our plans beside the loop by hand, MPI_Pack and memcpy.",
      .groups =
          {{"table1", "Ross et al. 2003, Table 1, and packs below 4 KiB", "pack_ns", kPackColumns,
            packs<table1>},
           {"halo", "the 26 slabs of a block of --points^3 (256^3), radius 3, one by one and fused",
            "pack_ns", kPackColumns, packs<halo>},
           {"patterns", "application patterns around 1 MiB and, -small, 4 to 64 KiB", "pack_ns",
            kPackColumns, packs<patterns>},
           {"copy",
            "halos of blocks of 128^3 and --points^3 (256^3) into another one's ghosts; hand: row "
            "by row",
            "copy_ns",
            "bytes hand_ns copy_ns copy_p10_ns copy_p90_ns packed_ns memcpy_ns copy_vs_hand "
            "copy_vs_packed copy_vs_memcpy",
            copy},
           {"commit",
            "trimeans; plan: ours by handle, compile: of a type that was read before; total: MPI's "
            "create and commit (vendor) and our plan",
            "total_ns",
            "bytes create_ns commit_ns plan_ns compile_ns total_ns total_vs_vendor "
            "plan_ns_per_block vendor_ns_per_block lookup_ns attribute_ns",
            commit},
           {"reconstruct",
            "the cheapest type path of displacements; plain: the search over all divisors",
            "path_ns",
            "prefixes comparisons plain_comparisons prefixes_ns plain_ns path_ns path_mega_per_s "
            "extended_ns tree_ns path_cost extended_cost tree_cost",
            reconstruct},
           {"calls",
            "calls that the interposer passes on: start with LD_PRELOAD=libhalocline_mpi.so; more: "
            "through it, per call",
            "through_ns", "calls mpi_ns through_ns more_ns good_more_ns", calls}},
      .start = [threads](const Options& options) -> Facts {
        constexpr std::array kPack{"MPI_Pack"};
        if (options.mode == "interposed" && !is_interposed(kPack))
          throw ConfigError(
              "--mode=interposed measures the interposer (there is no other library in front of "
              "MPI): start with LD_PRELOAD=libhalocline_mpi.so");
        const bool whole = options.mode == "whole";
        for (const auto& group : options.groups)
          if (!whole && group != "table1" && group != "halo" && group != "patterns")
            throw ConfigError("--mode=" + options.mode +
                              " is for groups table1, halo and patterns: name them by --group");
        *threads = start_threads(options.mode == "threads");
        if (whole) return {};
        return {options.mode, {{"mode", options.mode}}};
      },
      .modes = {"whole", "segments", "threads", "interposed"},
      .takes_points = true};
}

}  // namespace

}  // namespace halocline::dtype::bench

int main(int argc, char** argv) {
  using namespace halocline::dtype::bench;
  return bench_main("bench_dtype", argc, argv, program);
}
