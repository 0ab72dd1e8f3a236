// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/device/device.hpp"

#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string_view>

#include "dtype/device/cuda_device.hpp"
#include "dtype/device/emulated_device.hpp"

namespace halocline::dtype {

namespace {

bool device_is_named() {
  static const bool value = [] {
    const char* const name = std::getenv("HALOCLINE_DEVICE");
    return name != nullptr && *name != '\0';
  }();
  return value;
}

// Asks the CUDA driver that the process has loaded, even if this library was built without CUDA.
// The function cuPointerGetAttribute and its numbers are those of cuda.h.
using AttributeQuery = int(void* value, int attribute, std::uint64_t address);
constexpr int kSuccess = 0, kMemoryType = 2, kIsManaged = 8;
constexpr unsigned kTypeDevice = 2;

std::atomic<AttributeQuery*> known{nullptr};

// Returns the number of the present period of 31 ms; kNoPeriod without a clock. Reading this clock
// takes 5 ns.
constexpr std::int64_t kNoPeriod = -1;
std::int64_t period() {
  timespec now{};
  if (clock_gettime(CLOCK_MONOTONIC_COARSE, &now) != 0) return kNoPeriod;
  constexpr std::int64_t kPeriods = 32;  // of a second
  return now.tv_sec * kPeriods + now.tv_nsec * kPeriods / 1'000'000'000;
}

// Finds cuPointerGetAttribute in a driver that is loaded already; nullptr if none is. The driver
// may have been loaded by any of its names, and all of them begin alike. dlopen() gets the path: by
// a name alone it looks through all folders, which takes longer than most packs.
//
// Looks once a period: a look takes 30 ns and a lock, and 2 us if the caches hold other data. No
// memory of a device is missed: a driver that was loaded makes a context first, which takes longer.
AttributeQuery* loaded_query() {
  static std::atomic<unsigned long long> looked_after{0};  // count of loads at the last search
  static std::atomic<std::int64_t> looked_at{kNoPeriod};   // period of the last search
  struct Loaded {
    unsigned long long libraries = 0;
    char* driver = nullptr;
    char path[4096];  // driver's path; uninitialized, since most calls find nothing new
  };
  if (auto* const query = known.load(std::memory_order_acquire)) return query;
  const auto now = period();
  if (now != kNoPeriod && looked_at.load(std::memory_order_relaxed) == now) return nullptr;
  Loaded loaded;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* out) {
        auto& [libraries, driver, copy] = *static_cast<Loaded*>(out);
        if (libraries == 0 && looked_after.load(std::memory_order_acquire) == info->dlpi_adds)
          return 1;
        libraries = info->dlpi_adds;
        const std::string_view path(info->dlpi_name);
        if (path.substr(path.rfind('/') + 1).starts_with("libcuda.so") &&
            path.size() < sizeof copy) {
          driver = copy;
          copy[path.copy(copy, path.size())] = '\0';
        }
        return 0;
      },
      &loaded);
  looked_at.store(now, std::memory_order_relaxed);
  if (loaded.libraries == 0) return nullptr;
  if (void* const driver =
          loaded.driver == nullptr ? nullptr : dlopen(loaded.driver, RTLD_LAZY | RTLD_NOLOAD))
    known = reinterpret_cast<AttributeQuery*>(dlsym(driver, "cuPointerGetAttribute"));
  looked_after.store(loaded.libraries, std::memory_order_release);
  return known.load(std::memory_order_acquire);
}

MemoryKind kind_by_driver(const void* address) {
  auto* const query = loaded_query();
  unsigned type = 0, managed = 0;
  const auto at = reinterpret_cast<std::uint64_t>(address);
  if (query == nullptr || query(&type, kMemoryType, at) != kSuccess) return MemoryKind::host;
  if (query(&managed, kIsManaged, at) == kSuccess && managed != 0) return MemoryKind::managed;
  return type == kTypeDevice ? MemoryKind::device : MemoryKind::pinned;
}

struct Current {
  std::string why_not;
  std::unique_ptr<Device> device;

  Current() {
    const char* wanted = std::getenv("HALOCLINE_DEVICE");
    if (!device_is_named())
      device = detail::make_cuda_device(why_not);
    else if (std::string_view(wanted) == "emulated")
      device = std::make_unique<EmulatedDevice>();
    else
      throw ConfigError(std::string("no such device (HALOCLINE_DEVICE is '") + wanted +
                        "'): leave it unset, or set it to 'emulated'");
  }
};

// Never destroyed: plans and buffers that live until the end of the program refer to it.
const Current& current() {
  static const auto* const instance = new Current;
  return *instance;
}

}  // namespace

const char* name(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::host:
      return "host";
    case MemoryKind::pinned:
      return "pinned";
    case MemoryKind::device:
      return "device";
    case MemoryKind::managed:
      return "managed";
  }
  return "unknown";
}

Device* current_device() {
  return current().device.get();
}

MemoryKind kind_of_memory(const void* address) noexcept {
  if (!device_is_named()) return kind_by_driver(address);
  static const Device* const named = [] {
    const Device* device = nullptr;
    try {
      device = current_device();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "halocline: %s\n", error.what());
    }
    return device;
  }();
  try {
    return named != nullptr ? named->kind_of(address) : MemoryKind::host;
  } catch (const std::exception&) {
    return MemoryKind::host;
  }
}

bool has_device_memory() noexcept {
  return known.load(std::memory_order_relaxed) != nullptr || device_is_named();
}

const std::string& why_no_device() {
  return current().why_not;
}

}  // namespace halocline::dtype
