// SPDX-License-Identifier: BSD-3-Clause
// Keeps with a plan the object that a back end derives from it at its first use.
#pragma once

#include <array>
#include <cstddef>
#include <memory>

#include "support/once.hpp"

namespace halocline::dtype::detail {

/// Holds one object for each back end: its kernels or tables for the plan. Each is made once, and
/// freed with the plan. Thread-safe.
class Attachment {
 public:
  enum class Backend : std::size_t { host, emulated, cuda };

  /// Returns the object of `backend`. The first call makes it with make(), which returns a
  /// shared_ptr. All callers use the same type T for one back end. If make() throws, the place
  /// stays empty.
  template <class T, class Make>
  const T& get(Backend backend, Make make) const {
    auto& slot = slots_[static_cast<std::size_t>(backend)];
    if (!slot.once.is_done()) fill<T>(slot, make);
    return *static_cast<const T*>(slot.object.get());
  }

  /// Returns true: objects that are derived from equal plans are equal.
  bool operator==(const Attachment&) const { return true; }

 private:
  struct Slot {
    Once once;
    std::shared_ptr<const void> object;
  };

  // Is out of line: once the object is made, a caller only tests a flag.
  template <class T, class Make>
  [[gnu::noinline, gnu::cold]] static void fill(Slot& slot, Make make) {
    slot.once([&] { slot.object = std::shared_ptr<const T>(make()); });
  }

  mutable std::array<Slot, 3> slots_;
};

}  // namespace halocline::dtype::detail
