// SPDX-License-Identifier: BSD-3-Clause
#include "support/machine.hpp"

#include <dlfcn.h>
#include <mpi.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <limits>
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

namespace {

// Returns the number behind `key` in a file of lines "KEY NUMBER"; 0 if it is not there.
double number_behind(const std::string& key, const std::string& path) {
  std::ifstream file(path);
  std::string word;
  for (double number = 0; file >> word >> number;)
    if (word == key) return number;
  return 0;
}

// Returns the bytes that a control group can still give, with its cached files; infinite if it has
// no limit.
double left_in_group(const std::string& folder, bool is_v2) {
  double limit = 0, used = 0;
  std::ifstream(folder + (is_v2 ? "/memory.max" : "/memory.limit_in_bytes")) >> limit;
  std::ifstream(folder + (is_v2 ? "/memory.current" : "/memory.usage_in_bytes")) >> used;
  if (limit <= 0) return std::numeric_limits<double>::infinity();
  const auto cached =
      number_behind(is_v2 ? "inactive_file" : "total_inactive_file", folder + "/memory.stat");
  return std::max(limit - used + cached, 0.0);
}

}  // namespace

double available_memory() {
  double available = std::numeric_limits<double>::infinity();
  std::ifstream meminfo("/proc/meminfo");
  for (std::string key, rest; meminfo >> key && std::getline(meminfo, rest);)
    if (key == "MemAvailable:") available = std::stod(rest) * 1024;
  // A batch system limits a job by a group, or by one above it. Lines are "0::/GROUP", or
  // "4:memory:/GROUP" of older systems.
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const bool is_v2 = line.starts_with("0::");
    if (!is_v2 && line.find(":memory:") == std::string::npos) continue;
    auto folder = std::string(is_v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory");
    const auto top = folder.size();
    folder += line.substr(line.rfind(':') + 1);
    for (; folder.size() >= top; folder.resize(folder.rfind('/')))
      available = std::min(available, left_in_group(folder, is_v2));
  }
  return available;
}

double addresses_left() {
  constexpr double kNoLimit = std::numeric_limits<double>::infinity();
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kNoLimit;
  double pages = 0;
  if (!(std::ifstream("/proc/self/statm") >> pages)) return kNoLimit;
  const auto taken = pages * static_cast<double>(sysconf(_SC_PAGESIZE));
  return std::max(static_cast<double>(limit.rlim_cur) - taken, 0.0);
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
