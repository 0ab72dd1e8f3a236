// SPDX-License-Identifier: BSD-3-Clause
#include "kokkos_runtime.hpp"

#include <Kokkos_Core.hpp>

#include "dtype/pack/kokkos/kokkos_packer.hpp"

namespace halocline::app {

std::string kokkos_version() {
  return std::to_string(KOKKOS_VERSION / 10000) + "." + std::to_string(KOKKOS_VERSION / 100 % 100) +
         "." + std::to_string(KOKKOS_VERSION % 100);
}

std::vector<std::string> kokkos_spaces() {
  std::vector<std::string> spaces{Kokkos::DefaultExecutionSpace::name()};
  if (const std::string host = Kokkos::DefaultHostExecutionSpace::name(); host != spaces.front())
    spaces.push_back(host);
#ifdef KOKKOS_ENABLE_SERIAL
  if (const std::string serial = Kokkos::Serial::name(); serial != spaces.back())
    spaces.push_back(serial);
#endif
  return spaces;
}

int kokkos_threads() {
  return Kokkos::DefaultHostExecutionSpace().concurrency();
}

std::unique_ptr<dtype::Packer> make_kokkos_packer() {
  return std::make_unique<dtype::KokkosPacker<Kokkos::DefaultHostExecutionSpace>>();
}

}  // namespace halocline::app
