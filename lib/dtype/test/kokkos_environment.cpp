// SPDX-License-Identifier: BSD-3-Clause
// Starts Kokkos for the tests that are linked with it: before the tests, and ends it before MPI is
// finalized.
#include <gtest/gtest.h>

#include <Kokkos_Core.hpp>

#include "dtype/pack/kokkos/kokkos_threads.hpp"

namespace {

class KokkosEnvironment final : public testing::Environment {
 public:
  void SetUp() override {
    // Two threads on any machine: enough to see a race, few enough for several ranks on a small
    // machine.
    Kokkos::initialize(Kokkos::InitializationSettings()
                           .set_num_threads(halocline::dtype::limit_kokkos_threads(2))
                           .set_disable_warnings(true));
  }
  void TearDown() override { Kokkos::finalize(); }
};

// GoogleTest owns it.
[[maybe_unused]] const auto* const environment =
    testing::AddGlobalTestEnvironment(new KokkosEnvironment);

}  // namespace
