// SPDX-License-Identifier: BSD-3-Clause
// Measures large jobs that the threads of Kokkos' host execution space share, and small jobs that
// stay on the calling thread. The loop by hand and MPI_Pack use one thread.
#include <algorithm>
#include <initializer_list>
#include <utility>
#include <vector>

#include "harness.hpp"

namespace halocline::dtype::bench {

std::vector<Case> threads(const Options& options) {
  std::vector<Case> cases;
  const auto add = [&](std::vector<Case> all, std::initializer_list<const char*> names) {
    for (auto& one : all)
      if (std::find(names.begin(), names.end(), one.name) != names.end()) {
        one.mode = Mode::threads;
        cases.push_back(std::move(one));
      }
  };
  add(table1(options), {"vector-double", "indexed-float", "indexed-double-2x", "flash-io"});
  add(patterns(options), {"transpose-1024", "nas-mg-x", "nas-mg-x-small"});
  return cases;
}

}  // namespace halocline::dtype::bench
