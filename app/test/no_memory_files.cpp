// SPDX-License-Identifier: BSD-3-Clause
// Stands in front of the C library on a system without files that have no name. The library is
// preloaded.
#include <cerrno>

extern "C" int memfd_create(const char*, unsigned) {
  errno = ENOSYS;
  return -1;
}
