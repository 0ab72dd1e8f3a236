// SPDX-License-Identifier: BSD-3-Clause
// Measures type reconstruction of sequences from regular to random: time and comparisons. Takes
// turns with the plain search over all divisors of their length [KT15 section 3].
#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "dtype/bench/harness.hpp"
#include "dtype/reconstruct/reconstruct_tree.hpp"
#include "dtype/reconstruct/repeated_prefixes.hpp"

namespace halocline::dtype::bench {

namespace {

using Displacements = std::vector<std::int64_t>;

// Families of displacement sequences; each function returns `n` displacements.
Displacements contiguous(std::int64_t n) {
  Displacements d;
  for (std::int64_t i = 0; i < n; ++i) d.push_back(8 * i);
  return d;
}
Displacements two_level(std::int64_t n) {
  Displacements d;
  for (std::int64_t i = 0; i < n; ++i) d.push_back(i / 720 * 10000 + i % 720 * 8);
  return d;
}
// Repeats a pattern of twelve at irregular distances.
Displacements irregular_over_12(std::int64_t n) {
  std::mt19937 random(1);
  Displacements pattern, d;
  for (std::int64_t i = 0; i < 12; ++i) pattern.push_back(24 * i + 8 * (random() % 3));
  for (std::int64_t i = 0, start = 0; i < n; ++i) {
    if (i > 0 && i % 12 == 0) start += 320 + 8 * static_cast<std::int64_t>(random() % 16);
    d.push_back(start + pattern[static_cast<std::size_t>(i % 12)]);
  }
  return d;
}
Displacements unordered(std::int64_t n) {
  std::mt19937_64 random(1);
  Displacements d;
  for (std::int64_t i = 0; i < n; ++i)
    d.push_back(static_cast<std::int64_t>(random() % (1U << 30)));
  return d;
}

// Tests every divisor q by itself, and finds how far it is strided.
RepeatedPrefixes plain_search(const Displacements& d) {
  RepeatedPrefixes out;
  const auto n = std::ssize(d);
  const auto* const at = d.data();
  for (std::int64_t q = 1; q <= n; ++q) {
    if (n % q != 0) continue;
    bool repeated = true;
    for (auto start = q; start < n && repeated; start += q)
      for (std::int64_t j = 1; j < q && repeated; ++j) {
        ++out.comparisons;
        repeated = at[start + j] - at[start] == at[j] - at[0];
      }
    if (!repeated) continue;
    auto end = q;
    for (; end < n; end += q) {
      ++out.comparisons;
      if (at[end] - at[end - q] != at[q] - at[0]) break;
    }
    out.prefixes.push_back({q, end});
  }
  return out;
}

Row measure_family(Displacements (*family)(std::int64_t), std::int64_t n, const Options& options) {
  const auto d = family(n);
  const Sequence sequence{d};
  const Leaf leaf{8};
  const auto ours = repeated_prefixes(sequence);
  const auto path = reconstruct_path(sequence, leaf);
  Row row;
  row.verified = flatten(*path.root) == d;
  row.add("n", n);
  row.add("prefixes", ours.prefixes.size());
  row.add("comparisons", ours.comparisons);
  row.add("path_cost", path.cost);
  std::vector<Contender> all;
  const auto add = [&all](const char* name, auto what) {
    all.emplace_back(name, [what](std::int64_t calls) {
      for (; calls > 0; --calls) benchmark::DoNotOptimize(what());
    });
  };
  add("prefixes", [&] { return repeated_prefixes(sequence).comparisons; });
  add("path", [&] { return reconstruct_path(sequence, leaf).cost; });
  // All other methods take too long for the longest sequences.
  constexpr std::int64_t kForAll = 2'000'000;
  if (n <= kForAll) {
    const auto plain = plain_search(d);
    const auto extended = reconstruct_path(sequence, leaf, {.idxbuc = true});
    const auto tree = reconstruct_tree(sequence, {&leaf, 1});
    row.verified = row.verified && ours.prefixes == plain.prefixes &&
                   flatten(*extended.root) == d && flatten(*tree.root) == d;
    row.add("plain_comparisons", plain.comparisons);
    row.add("extended_cost", extended.cost);
    row.add("tree_cost", tree.cost);
    add("plain", [&] { return plain_search(d).comparisons; });
    add("extended", [&] { return reconstruct_path(sequence, leaf, {.idxbuc = true}).cost; });
    add("tree", [&] { return reconstruct_tree(sequence, {&leaf, 1}).cost; });
  }
  if (!row.verified) {
    row.note = "differs from the sequence";
    return row;
  }
  constexpr double kSlowNs = 1e9;
  take_turns(all, effort_of(options, {2, 20e3, 2, kSlowNs}, {0.2, 20e3, 1, kSlowNs}));
  for (const auto& contender : all) row.add_times(contender.name(), contender.ns());
  row.add("path_mega_per_s", static_cast<double>(n) / row.value("path_ns") * 1e3);
  return row;
}

}  // namespace

std::vector<Benchmark> reconstruct(const Options& options) {
  struct Family {
    const char* name;
    Displacements (*make)(std::int64_t);
  };
  constexpr Family kFamilies[] = {{"contiguous", contiguous},
                                  {"two-level", two_level},
                                  {"irregular-over-12", irregular_over_12},
                                  {"random", unordered}};
  // Lengths with many divisors, and a prime.
  std::vector<std::int64_t> lengths = {720, 5040};
  if (!options.smoke) lengths.insert(lengths.end(), {50400, 720720, 1000003, 7207200});
  if (!options.smoke && !options.quick) lengths.push_back(100900800);
  std::vector<Benchmark> all;
  for (const auto& [name, make] : kFamilies)
    for (const auto n : lengths)
      all.push_back({name + ("-" + std::to_string(n)),
                     [make = make, n, &options] { return measure_family(make, n, options); }});
  return all;
}

}  // namespace halocline::dtype::bench
