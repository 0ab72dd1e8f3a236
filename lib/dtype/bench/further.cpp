// SPDX-License-Identifier: BSD-3-Clause
// Measures the constructors that MPI does not have. They are packed by plans that keep their rules,
// and by plans of the types that MPI gets instead. The loop by hand follows the rule.
#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "harness.hpp"
#include "layouts.hpp"

namespace halocline::dtype::bench {

namespace {

std::vector<std::int64_t> random_lengths(int count, std::uint32_t below) {
  std::mt19937 random(1);
  std::vector<std::int64_t> out;
  for (int i = 0; i < count; ++i) out.push_back(static_cast<std::int64_t>(random() % below));
  return out;
}

void add_both(std::vector<Case>& cases, const std::string& name, const TypeExprPtr& expr,
              const Method& hand) {
  cases.push_back({name, {{expr}}, hand, Mode::by_rule});
  cases.push_back({name + "-listed", {{expr}}, hand});
}

// The lower triangle of a matrix of doubles, row by row.
void add_triangle(std::vector<Case>& cases, const std::string& name, int n) {
  add_both(cases, name, type(Triangular{n, 1, 1, n, named("double")}),
           by_hand<double>([n](auto move, double* __restrict memory, double* __restrict packed) {
             for (int i = 0; i < n; ++i)
               for (int k = 0; k <= i; ++k) move(memory[std::int64_t{i} * n + k], *packed++);
           }));
}

// Buckets of a size, filled at random.
void add_buckets(std::vector<Case>& cases, const std::string& name, int buckets, int size) {
  const auto counts = random_lengths(buckets, static_cast<std::uint32_t>(size) + 1);
  add_both(cases, name, type(Bucket{size, counts, named("double")}),
           by_hand<double>(
               [counts, size](auto move, double* __restrict memory, double* __restrict packed) {
                 for (std::size_t i = 0; i < counts.size(); ++i, memory += size)
                   for (std::int64_t k = 0; k < counts[i]; ++k) move(memory[k], *packed++);
               }));
}

// One of four stretched vectors.
void add_stretched(std::vector<Case>& cases, const std::string& name, int blocks, int longest) {
  constexpr std::int64_t kTypes = 4, kIndex = 1;
  const auto lengths = random_lengths(blocks, static_cast<std::uint32_t>(longest) + 1);
  add_both(
      cases, name, stretched_vectors(kTypes, lengths, named("double"))[kIndex],
      by_hand<double>([lengths](auto move, double* __restrict memory, double* __restrict packed) {
        for (const auto length : lengths) {
          for (std::int64_t k = 0; k < length; ++k) move(memory[kIndex * length + k], *packed++);
          memory += kTypes * length;
        }
      }));
}

// A round of Bruck's all-to-all: blocks of `bit` out of 2 * bit doubles, beginning behind the
// middle.
void add_round(std::vector<Case>& cases, const std::string& name, std::int64_t bit,
               std::int64_t n) {
  const auto start = n / 2 + bit;
  add_both(cases, name, type(CircularVector{start, bit, 2 * bit, n / 2 + n, n, named("double")}),
           by_hand<double>([=](auto move, double* __restrict memory, double* __restrict packed) {
             for (auto block = start; block < n / 2 + n; block += 2 * bit)
               for (auto at = block; at < std::min(block + bit, n / 2 + n); ++at)
                 move(memory[at < n ? at : at - n], *packed++);
           }));
}

}  // namespace

std::vector<Case> further(const Options& options) {
  std::vector<Case> cases;
  if (!options.smoke) {
    add_triangle(cases, "triangle-512", 512);
    add_buckets(cases, "buckets-of-64", 4096, 64);
    add_buckets(cases, "buckets-of-6", 43690, 6);
    add_stretched(cases, "stretched-64", 4096, 64);
    add_stretched(cases, "stretched-6", 43690, 6);
    add_round(cases, "bruck-round-16", 16, 262143);
  }
  add_triangle(cases, "triangle-64-small", 64);
  add_buckets(cases, "buckets-of-64-small", 64, 64);
  add_buckets(cases, "buckets-of-6-small", 682, 6);
  add_stretched(cases, "stretched-64-small", 64, 64);
  add_round(cases, "bruck-round-16-small", 16, 4095);
  return cases;
}

}  // namespace halocline::dtype::bench
