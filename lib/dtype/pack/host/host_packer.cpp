// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/pack/host/host_packer.hpp"

#include <cstring>

namespace halocline::dtype {

namespace {

// Addresses are integers here: with MPI_BOTTOM there is no array to stay inside of.
using Address = std::uintptr_t;

struct PackBytes {
  template <class Size>
  static void copy(Address memory, Address packed, Size size) {
    std::memcpy(reinterpret_cast<void*>(packed), reinterpret_cast<const void*>(memory), size);
  }
};
struct UnpackBytes {
  template <class Size>
  static void copy(Address memory, Address packed, Size size) {
    std::memcpy(reinterpret_cast<void*>(memory), reinterpret_cast<const void*>(packed), size);
  }
};

// A run length known to the compiler, which turns the copy into loads and stores.
template <std::size_t N>
struct FixedSize {
  constexpr operator std::size_t() const { return N; }
};

// Runs the innermost `depth` of `levels`, the last one of them `count` times.
template <class Action, class Size>
void walk(const LoopLevel* levels, int depth, std::int64_t count, Address memory, Address packed,
          Size run) {
  if (depth == 0) return Action::copy(memory, packed, run);
  const auto& level = levels[depth - 1];
  const auto stride = static_cast<Address>(level.stride),
             packed_stride = static_cast<Address>(level.packed_stride);
  if (depth == 1) {
    for (std::int64_t i = 0; i < count; ++i, memory += stride, packed += packed_stride)
      Action::copy(memory, packed, run);
  } else {
    for (std::int64_t i = 0; i < count; ++i, memory += stride, packed += packed_stride)
      walk<Action>(levels, depth - 1, levels[depth - 2].count, memory, packed, run);
  }
}

template <class Action>
void execute(const PackPlan& plan, Address buffer, std::int64_t count, Address packed) {
  const auto loops = plan.loops(count);
  if (loops.run == 0) return;
  const auto memory = buffer + static_cast<Address>(loops.start);
  const auto depth = static_cast<int>(loops.levels.size());
  const auto* levels = loops.levels.data();
  const auto with = [&](auto run) {
    walk<Action>(levels, depth, loops.outermost_count, memory, packed, run);
  };
  switch (loops.run) {
    case 1:
      return with(FixedSize<1>{});
    case 2:
      return with(FixedSize<2>{});
    case 4:
      return with(FixedSize<4>{});
    case 8:
      return with(FixedSize<8>{});
    case 12:
      return with(FixedSize<12>{});
    case 16:
      return with(FixedSize<16>{});
    case 24:
      return with(FixedSize<24>{});
    case 32:
      return with(FixedSize<32>{});
    case 48:
      return with(FixedSize<48>{});
    case 64:
      return with(FixedSize<64>{});
    default:
      return with(static_cast<std::size_t>(loops.run));
  }
}

Address address(const void* pointer) {
  return reinterpret_cast<Address>(pointer);
}

}  // namespace

void HostPacker::pack(const PackPlan& plan, const void* buffer, std::int64_t count,
                      void* packed) const {
  execute<PackBytes>(plan, address(buffer), count, address(packed));
}

void HostPacker::unpack(const PackPlan& plan, const void* packed, void* buffer,
                        std::int64_t count) const {
  execute<UnpackBytes>(plan, address(buffer), count, address(packed));
}

}  // namespace halocline::dtype
