// SPDX-License-Identifier: BSD-3-Clause
#include "support/machine.hpp"

#include <dlfcn.h>
#include <mpi.h>
#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <string_view>

#include "support/mpi_check.hpp"

namespace halocline {

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  std::string implementer, part;
  for (std::string line; std::getline(file, line);) {
    const auto colon = line.find(": ");
    if (colon == std::string::npos) continue;
    const auto value = line.substr(colon + 2);
    if (line.starts_with("model name") || line.starts_with("cpu\t")) return value;
    if (line.starts_with("CPU implementer")) implementer = value;
    if (line.starts_with("CPU part")) part = value;
  }
  if (!part.empty()) return "implementer " + implementer + " part " + part;
  utsname system{};
  return uname(&system) == 0 ? system.machine : "unknown";
}

std::string mpi_library() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  HALOCLINE_MPI(MPI_Get_library_version(text.data(), &length));
  const std::string_view all = text.data();
  return std::string(all.substr(0, all.find('\n')));
}

bool is_interposed(std::span<const char* const> functions) {
  const auto file = [](const std::string& name) -> const void* {
    Dl_info info{};
    void* const function = dlsym(RTLD_DEFAULT, name.c_str());
    return function != nullptr && dladdr(function, &info) != 0 ? info.dli_fbase : nullptr;
  };
  return std::any_of(functions.begin(), functions.end(),
                     [&](const std::string& name) { return file(name) != file("P" + name); });
}

}  // namespace halocline
