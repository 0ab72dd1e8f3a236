// SPDX-License-Identifier: BSD-3-Clause
// What a back end derives from a plan at its first use and keeps with it.
#pragma once

#include <array>
#include <cstddef>
#include <memory>

#include "dtype/support/once.hpp"

namespace halocline::dtype::detail {

/// Room for one object of each back end that executes tables; made once, freed with the plan.
/// Thread-safe.
class Attachment {
 public:
  enum class Backend : std::size_t { emulated, cuda, kokkos };

  /// The object of `backend`; `make` returns it, as a shared_ptr, at the first call. All callers
  /// use one type. A `make` that throws leaves the place empty.
  template <class T, class Make>
  const T& get(Backend backend, Make make) const {
    auto& slot = slots_[static_cast<std::size_t>(backend)];
    slot.once([&] { slot.object = std::shared_ptr<const T>(make()); });
    return *static_cast<const T*>(slot.object.get());
  }

  /// What is derived from equal plans is equal.
  bool operator==(const Attachment&) const { return true; }

 private:
  struct Slot {
    Once once;
    std::shared_ptr<const void> object;
  };
  mutable std::array<Slot, 3> slots_;
};

}  // namespace halocline::dtype::detail
