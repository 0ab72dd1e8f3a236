// SPDX-License-Identifier: BSD-3-Clause
// Finds the width of a run from which the C library's memcpy is faster. Runs of one length have
// gaps of the same length. The loop by hand calls memcpy for each run, as most MPIs do.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "harness.hpp"

namespace halocline::dtype::bench {

namespace {

Case runs_of(std::int64_t run, std::int64_t bytes) {
  const auto count = bytes / run;
  return {"run-" + std::to_string(run),
          {{parse_type("hvector(" + std::to_string(count) + "," + std::to_string(run) + "," +
                       std::to_string(2 * run) + ",byte)")}},
          by_hand<std::byte>(
              [run, count](auto move, std::byte* __restrict memory, std::byte* __restrict packed) {
                for (std::int64_t i = 0; i < count; ++i)
                  move.bytes(memory + 2 * run * i, packed + run * i, static_cast<std::size_t>(run));
              })};
}

}  // namespace

std::vector<Case> widths(const Options& options) {
  std::vector<Case> cases;
  for (const auto run : {1,  2,  3,  4,   6,   8,   12,  16,  20,  24,  32,  40,   48,
                         63, 64, 96, 100, 128, 200, 256, 384, 500, 512, 768, 1024, 2048})
    cases.push_back(runs_of(run, options.smoke ? 4096 : 32768));
  return cases;
}

}  // namespace halocline::dtype::bench
