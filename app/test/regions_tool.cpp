// SPDX-License-Identifier: BSD-3-Clause
// Is a Kokkos tool that writes "push NAME" and "pop", one a line, to the file that
// HALOCLINE_REGIONS names.
#include <cstdio>
#include <cstdlib>

extern "C" {
void kokkosp_push_profile_region(const char* name);
void kokkosp_pop_profile_region();
}

namespace {

std::FILE* file() {
  static std::FILE* const instance = std::fopen(std::getenv("HALOCLINE_REGIONS"), "w");
  return instance;
}

}  // namespace

void kokkosp_push_profile_region(const char* name) {
  std::fprintf(file(), "push %s\n", name);
}

void kokkosp_pop_profile_region() {
  std::fprintf(file(), "pop\n");
}
