// SPDX-License-Identifier: BSD-3-Clause
// Large jobs shared by the threads of Kokkos' host execution space, and small ones that stay on the
// calling thread; the loop by hand and MPI_Pack use one thread.
#include <string>
#include <utility>
#include <vector>

#include "harness.hpp"

namespace halocline::dtype::bench {

std::vector<Case> threads(const Options& options) {
  std::vector<Case> cases;
  for (auto& one : patterns(options)) {
    for (const char* name : {"nas-lu-y", "nas-mg-x", "lammps-full", "specfem3d-oc",
                             "struct-particle", "transpose-1024"})
      if (one.name == name || one.name == std::string(name) + "-small") {
        one.mode = Mode::threads;
        cases.push_back(std::move(one));
        break;
      }
  }
  return cases;
}

}  // namespace halocline::dtype::bench
