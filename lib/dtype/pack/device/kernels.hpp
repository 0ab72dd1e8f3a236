// SPDX-License-Identifier: BSD-3-Clause
// Chooses the code that executes a table. Internal to the back ends that execute tables.
#pragma once

#include "dtype/pack/device/copy_words.hpp"

namespace halocline::dtype::device {

/// Wraps copy_thread() as an object.
template <int kLevels, CopyDirection kDirection, class Form>
struct Kernel {
  HALOCLINE_FUNCTION void operator()(const std::byte* table, const LaunchArguments& call,
                                     std::uint64_t block, std::uint32_t thread) const {
    copy_thread<kLevels, kDirection, Form>(table, call, block, thread);
  }
};

/// Holds a table that travels with a launch.
template <std::size_t kBytes>
struct Argument {
  alignas(16) std::byte table[kBytes];
};
/// Refers to a table in the memory of the device.
struct Resident {
  const std::byte* table;
};

/// Calls with(Kernel) with the kernel for `levels` strided loops.
template <CopyDirection kDirection, class With>
void with_unrolled_kernel(int levels, With with) {
  static_assert(kMaxUnrolledLevels == 4);
  switch (levels) {
    case 1:
      return with(Kernel<1, kDirection, Narrow>());
    case 2:
      return with(Kernel<2, kDirection, Narrow>());
    case 3:
      return with(Kernel<3, kDirection, Narrow>());
    default:
      return with(Kernel<4, kDirection, Narrow>());
  }
}

/// Calls with(std::integral_constant) for a direction that is known only when the program runs.
template <class With>
void with_direction(CopyDirection direction, With with) {
  if (direction == CopyDirection::pack)
    with(std::integral_constant<CopyDirection, CopyDirection::pack>());
  else
    with(std::integral_constant<CopyDirection, CopyDirection::unpack>());
}

/// Calls with(Kernel) with the kernel that executes `instances` instances of this table.
template <class With>
void with_kernel(const JobTable& table, std::int64_t instances, CopyDirection direction,
                 With with) {
  with_direction(direction, [&](auto d) {
    constexpr auto kDirection = decltype(d)::value;
    if (table.wide) return with(Kernel<0, kDirection, Wide>());
    const auto levels = table.unrolled_levels(instances);
    if (levels == 0) return with(Kernel<0, kDirection, Narrow>());
    with_unrolled_kernel<kDirection>(levels, with);
  });
}

}  // namespace halocline::dtype::device
