// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/device/device.hpp"

#include <cstdlib>
#include <string_view>

#include "dtype/device/cuda_device.hpp"
#include "dtype/device/emulated_device.hpp"

namespace halocline::dtype {

namespace {

bool device_is_named() {
  const char* const name = std::getenv("HALOCLINE_DEVICE");
  return name != nullptr && *name != '\0';
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
  static const bool emulated = device_is_named();
  if (!emulated) return detail::kind_by_cuda_driver(address);
  try {
    return current_device()->kind_of(address);
  } catch (const std::exception&) {
    return MemoryKind::host;
  }
}

const std::string& why_no_device() {
  return current().why_not;
}

}  // namespace halocline::dtype
