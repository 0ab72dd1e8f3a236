// SPDX-License-Identifier: BSD-3-Clause
// Lets a process run on 768 hardware threads, as on a node of 2 x 192 cores with SMT. The library
// is preloaded.
#include <sched.h>

#include <cstring>

extern "C" int sched_getaffinity(pid_t, size_t bytes, cpu_set_t* set) noexcept {
  constexpr size_t kBytes = 768 / 8;
  std::memset(set, 0, bytes);
  std::memset(set, 0xff, bytes < kBytes ? bytes : kBytes);
  return 0;
}
