// SPDX-License-Identifier: BSD-3-Clause
// Fakes the one function of CUDA's driver that kind_of_memory() calls. The thousands of an address
// say its kind. `halocline_device_bytes` bytes from `halocline_device_begin` belong to a device.
#include <cstdint>

extern "C" {
std::uint64_t halocline_device_begin = 0, halocline_device_bytes = 0;
}

extern "C" int cuPointerGetAttribute(void* value, int attribute, std::uint64_t address) {
  constexpr int kInvalidValue = 1, kMemoryType = 2, kIsManaged = 8;
  constexpr unsigned kHost = 1, kDevice = 2;
  const auto kind = address - halocline_device_begin < halocline_device_bytes ? 2 : address / 1000;
  if (kind < 1 || kind > 3) return kInvalidValue;
  auto& out = *static_cast<unsigned*>(value);
  if (attribute == kMemoryType)
    out = kind == 1 ? kHost : kDevice;
  else if (attribute == kIsManaged)
    out = kind == 3 ? 1 : 0;
  else
    return kInvalidValue;
  return 0;
}
