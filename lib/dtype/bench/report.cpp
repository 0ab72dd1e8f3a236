// SPDX-License-Identifier: BSD-3-Clause
#include "report.hpp"

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "harness.hpp"

namespace halocline::dtype::bench {

namespace {

using Run = benchmark::BenchmarkReporter::Run;

std::pair<std::string, std::string> group_and_case(const Run& run) {
  const auto& name = run.run_name.function_name;
  const auto slash = name.find('/');
  return {name.substr(0, slash), name.substr(slash + 1)};
}

// Returns NaN if there is no such field.
double field(const Run& run, const std::string& name) {
  const auto found = run.counters.find(name);
  return found == run.counters.end() ? std::nan("") : found->second.value;
}

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
                                     {"MPI ns/block", "vendor_ns_per_block", 14, 2}};
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
constexpr Column kLookupColumns[] = {{"first ns", "first_ns", 11, 0},
                                     {"look-up ns", "lookup_ns", 11, 1},
                                     {"attribute ns", "attribute_ns", 13, 1}};
constexpr Column kCallsColumns[] = {{"calls", "calls", 6, 0},
                                    {"MPI ns", "mpi_ns", 11, 1},
                                    {"through ns", "through_ns", 11, 1},
                                    {"more ns", "more_ns", 9, 1},
                                    {"at most", "good_more_ns", 8, 0}};
constexpr Column kSelectColumns[] = {{"hit ns", "hit_ns", 11, 1},
                                     {"message ns", "message_ns", 11, 0},
                                     {"exchange ns", "exchange_ns", 12, 0}};

Table table_of(const std::string& group) {
  if (group == "commit")
    return {
        "trimeans; plan: ours by handle, compile: alone, of a type that was read before; "
        "vs MPI: all three are N x as fast as create and commit alone",
        kCommitColumns};
  if (group == "copy")
    return {
        "medians of interleaved samples, ns per call; hand: row by row; vs: our copy is N x as "
        "fast",
        kCopyColumns};
  if (group == "lookup") return {"trimeans", kLookupColumns};
  if (group == "calls")
    return {"medians of interleaved samples; more: through the interposer, per call",
            kCallsColumns};
  if (group == "select")
    return {"medians; hit: chosen before; by the model: one message, and the 26 of an exchange",
            kSelectColumns};
  if (group == "reconstruct")
    return {"medians; plain: the search over all divisors; M/s: displacements for the path",
            kReconstructColumns};
  return {"medians of interleaved samples, ns per call; vs: ours is N x as fast", kPackColumns};
}

}  // namespace

Reporter::Reporter(bool json, int name_width)
    : json_(json), name_width_(name_width), mpi_(mpi_library()) {}

bool Reporter::ReportContext(const Context&) {
  if (!json_) std::printf("%s\n", mpi_.c_str());
  return true;
}

void Reporter::ReportRuns(const std::vector<Run>& runs) {
  for (const auto& run : runs) {
    const bool verified = field(run, "verified") == 1;
    ++rows_;
    if (!verified) ++unverified_;
    if (json_) {
      print_json(run, verified);
    } else {
      print_table_row(run, verified);
      note_if_slower(run, "pack", "hand");
      note_if_slower(run, "unpack", "hand_unpack");
      note_if_slower(run, "copy", "hand");
    }
    std::fflush(stdout);
  }
}

void Reporter::note_if_slower(const Run& run, const std::string& ours, const std::string& hand) {
  const double ratio = field(run, ours + "_vs_hand");
  const double overhead = field(run, ours + "_ns") - field(run, hand + "_ns");
  const double good_overhead_ns = field(run, "good_overhead_ns");
  if (std::isnan(ratio) || ratio >= 0.995 || overhead <= good_overhead_ns) return;
  const auto [group, name] = group_and_case(run);
  char text[64];
  std::snprintf(text, sizeof text, ": %s %.2f x as fast", ours.c_str(), ratio);
  slower_.push_back(
      group + "/" + name + text +
      (good_overhead_ns > 0 ? ", " + std::to_string(std::lround(overhead)) + " ns more" : ""));
}

void Reporter::Finalize() {
  if (json_) return;
  std::printf("\n%d rows, %d not verified\n", rows_, unverified_);
  if (!slower_.empty())
    std::printf(
        "slower than the loop by hand (packs of less than %lld bytes: over %.0f ns more for each, "
        "%.0f through MPI_Pack):\n",
        static_cast<long long>(kOverheadBelowBytes), kGoodOverheadNs, kGoodInterposedNs);
  for (const auto& row : slower_) std::printf("  %s\n", row.c_str());
}

void Reporter::print_json(const Run& run, bool verified) const {
  const auto [group, name] = group_and_case(run);
  nlohmann::ordered_json row = {{"group", group}, {"case", name}};
  for (const char* known : {"bytes", "hand_ns", "pack_ns", "unpack_ns", "pack_vs_hand",
                            "unpack_vs_hand", "pack_vs_vendor", "unpack_vs_vendor"})
    row[known] = number(field(run, known));
  row["verified"] = verified;
  for (const auto& [key, counter] : run.counters)
    if (!row.contains(key)) row[key] = number(counter.value);
  row["note"] = run.report_label;
  row["mpi"] = mpi_;
  row["compiler"] = __VERSION__;
  std::printf("%s\n", row.dump().c_str());
}

void Reporter::print_table_row(const Run& run, bool verified) {
  const auto [group, name] = group_and_case(run);
  const auto table = table_of(group);
  if (group != group_) {
    print_head(stdout, group, table, name_width_);
    group_ = group;
  }
  print_row(
      stdout, name, table, name_width_, [&](const char* name_of) { return field(run, name_of); },
      verified, run.report_label);
}

}  // namespace halocline::dtype::bench
