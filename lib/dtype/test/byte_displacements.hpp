// SPDX-License-Identifier: BSD-3-Clause
// Expands a type map byte by byte.
#pragma once

#include <cstdint>
#include <vector>

#include "dtype/type_map.hpp"

namespace halocline::dtype::test {

/// Returns the displacement of every packed byte of `count` instances, in pack order. This list is
/// the whole contract of packing.
inline std::vector<std::int64_t> byte_displacements(const TypeMap& map, std::int64_t count) {
  std::vector<std::int64_t> bytes;
  bytes.reserve(static_cast<std::size_t>(map.size * count));
  for (std::int64_t i = 0; i < count; ++i)
    for (const auto& entry : map.entries)
      for (std::int64_t b = 0; b < entry.type->size; ++b)
        bytes.push_back(i * map.extent + entry.displacement + b);
  return bytes;
}

}  // namespace halocline::dtype::test
