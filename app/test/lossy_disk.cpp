// SPDX-License-Identifier: BSD-3-Clause
// Loses what is written to a file, and says that it is written. The library is preloaded.
// HALOCLINE_LOST=KIND:NAME names the end of the file's path. KIND is one of
//   holes  the file gets its length, but no data,
//   short  the file stays empty.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <string_view>

namespace {

bool is_lost(int descriptor, std::string_view kind) {
  const char* const text = std::getenv("HALOCLINE_LOST");
  const std::string_view lost = text == nullptr ? "" : text;
  char path[4096];
  const auto link = "/proc/self/fd/" + std::to_string(descriptor);
  const auto length = readlink(link.c_str(), path, sizeof path);
  const auto colon = lost.find(':');
  return length > 0 && colon != lost.npos && lost.substr(0, colon).starts_with(kind) &&
         std::string_view(path, static_cast<std::size_t>(length)).ends_with(lost.substr(colon + 1));
}

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

ssize_t pwrite(int descriptor, const void* data, size_t bytes, off_t at) {
  if (is_lost(descriptor, "")) return static_cast<ssize_t>(bytes);
  return next<decltype(pwrite)>("pwrite")(descriptor, data, bytes, at);
}

ssize_t pwritev(int descriptor, const iovec* parts, int count, off_t at) {
  if (!is_lost(descriptor, ""))
    return next<decltype(pwritev)>("pwritev")(descriptor, parts, count, at);
  ssize_t bytes = 0;
  for (int i = 0; i < count; ++i) bytes += static_cast<ssize_t>(parts[i].iov_len);
  return bytes;
}

int fallocate(int descriptor, int mode, off_t at, off_t bytes) {
  if (is_lost(descriptor, "short")) return 0;
  return next<decltype(fallocate)>("fallocate")(descriptor, mode, at, bytes);
}

}  // extern "C"
