// SPDX-License-Identifier: BSD-3-Clause
// Compares packing on the host with our plans with the loop by hand, MPI_Pack and memcpy.
//
//   bench_dtype [--group=NAME...] [--mode=MODE] [--only=PATTERN] ...    --help shows all options
//
// Starts Kokkos with one thread, except for --mode=threads. jobs/local/bench.sh builds and runs it.
#include <memory>
#include <string>
#include <vector>

#include "dtype/bench/harness.hpp"

namespace halocline::dtype::bench {

namespace {

constexpr Column kPackColumns[] = {{"bytes", "bytes", 9, 0},
                                   {"hand ns", "hand_ns", 10, 1},
                                   {"pack ns", "pack_ns", 10, 1},
                                   {"MPI ns", "vendor_pack_ns", 10, 1},
                                   {"memcpy ns", "memcpy_ns", 10, 1},
                                   {"vs hand", "pack_vs_hand", 8, 2},
                                   {"vs MPI", "pack_vs_vendor", 7, 2},
                                   {"hand ns", "hand_unpack_ns", 11, 1},
                                   {"unpack ns", "unpack_ns", 10, 1},
                                   {"MPI ns", "vendor_unpack_ns", 10, 1},
                                   {"vs hand", "unpack_vs_hand", 8, 2},
                                   {"vs MPI", "unpack_vs_vendor", 7, 2},
                                   {"reruns", "reruns", 7, 0}};
constexpr Column kCopyColumns[] = {{"bytes", "bytes", 9, 0},
                                   {"hand ns", "hand_ns", 10, 0},
                                   {"copy ns", "copy_ns", 10, 0},
                                   {"p10", "copy_p10_ns", 10, 0},
                                   {"p90", "copy_p90_ns", 10, 0},
                                   {"packed ns", "packed_ns", 10, 0},
                                   {"memcpy ns", "memcpy_ns", 10, 0},
                                   {"vs hand", "copy_vs_hand", 8, 2},
                                   {"vs packed", "copy_vs_packed", 10, 2},
                                   {"vs memcpy", "copy_vs_memcpy", 10, 2}};
constexpr Column kCommitColumns[] = {{"bytes", "bytes", 9, 0},
                                     {"create ns", "create_ns", 13, 0},
                                     {"commit ns", "commit_ns", 13, 0},
                                     {"plan ns", "plan_ns", 13, 0},
                                     {"compile ns", "compile_ns", 13, 0},
                                     {"together ns", "total_ns", 13, 0},
                                     {"vs MPI", "total_vs_vendor", 9, 2},
                                     {"plan ns/block", "plan_ns_per_block", 14, 2},
                                     {"MPI ns/block", "vendor_ns_per_block", 14, 2},
                                     {"look-up ns", "lookup_ns", 11, 1},
                                     {"attribute ns", "attribute_ns", 13, 1}};
constexpr Column kReconstructColumns[] = {{"prefixes", "prefixes", 9, 0},
                                          {"comparisons", "comparisons", 12, 0},
                                          {"plain ones", "plain_comparisons", 12, 0},
                                          {"prefixes ns", "prefixes_ns", 12, 0},
                                          {"plain ns", "plain_ns", 12, 0},
                                          {"path ns", "path_ns", 12, 0},
                                          {"M/s", "path_mega_per_s", 7, 1},
                                          {"extended ns", "extended_ns", 12, 0},
                                          {"tree ns", "tree_ns", 13, 0},
                                          {"path cost", "path_cost", 10, 0},
                                          {"extended", "extended_cost", 10, 0},
                                          {"tree", "tree_cost", 10, 0}};
constexpr Column kCallsColumns[] = {{"calls", "calls", 6, 0},
                                    {"MPI ns", "mpi_ns", 11, 1},
                                    {"through ns", "through_ns", 11, 1},
                                    {"more ns", "more_ns", 9, 1},
                                    {"at most", "good_more_ns", 8, 0}};

template <auto cases>
std::vector<Benchmark> packs(const Options& options) {
  return measured(cases(options), options);
}

Program program() {
  const auto threads = std::make_shared<std::shared_ptr<void>>();
  return {
      .what = "Packing with our plans beside the loop by hand, MPI_Pack and memcpy.",
      .groups =
          {{"table1", "Ross et al. 2003, Table 1, and packs below 4 KiB; vs: ours is N x as fast",
            kPackColumns, packs<table1>},
           {"halo",
            "the 26 slabs of a 256^3 block, radius 3, one by one and fused; vs: ours is N x as "
            "fast",
            kPackColumns, packs<halo>},
           {"patterns",
            "application patterns around 1 MiB and, -small, 4 to 64 KiB; vs: ours is N x as fast",
            kPackColumns, packs<patterns>},
           {"copy",
            "halos of 128^3 and 256^3 blocks into another one's ghosts; hand: row by row; vs: our "
            "copy is N x as fast",
            kCopyColumns, copy},
           {"commit",
            "trimeans; plan: ours by handle, compile: alone, of a type that was read before; vs "
            "MPI: all three are N x as fast as create and commit alone",
            kCommitColumns, commit},
           {"reconstruct",
            "the cheapest type path of displacements; plain: the search over all divisors; M/s: "
            "displacements for the path",
            kReconstructColumns, reconstruct},
           {"calls",
            "calls that the interposer passes on: start with LD_PRELOAD=libhalocline_mpi.so; more: "
            "through it, per call",
            kCallsColumns, calls}},
      .start = [threads](const Options& options) -> Facts {
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
