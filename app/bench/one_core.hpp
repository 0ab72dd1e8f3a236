// SPDX-License-Identifier: BSD-3-Clause
// Shares code between the benchmarks of kernels: fields in a box, one core, and the twin that moves
// the least memory.
#pragma once

#include <mpi.h>
#include <sched.h>

#include <Kokkos_Core.hpp>
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "dtype/bench/program.hpp"
#include "fields.hpp"

namespace halocline::app::bench {

/// Holds two sets of fields in a box that one rank owns.
template <class T>
struct Box {
  Domain domain;
  FieldSet<T> in, out;

  /// \param config has the extents and the fields
  explicit Box(Config config)
      : domain(domain_of(config)), in(domain, nullptr), out(domain, nullptr) {
    for (const auto* set : {&in, &out})
      for (std::int64_t i = 0; i < elements(); ++i)
        set->address(0)[i] = static_cast<T>(0.1 * std::sin(0.01 * static_cast<double>(i)));
  }
  static Domain domain_of(Config& config) {
    config.subcommand = Subcommand::compare;
    config.element = sizeof(T) == 8 ? Element::float64 : Element::float32;
    return make_domain(config, comm::NodeHierarchy(MPI_COMM_SELF));
  }
  /// Counts from the first stored point of the first array to the end of the last one.
  std::int64_t elements() const {
    return FieldSet<T>::bytes(domain) / static_cast<std::int64_t>(sizeof(T)) -
           domain.left_padding();
  }
  /// Returns the number of values of all owned points.
  std::int64_t values() const { return domain.halo.interior().points() * domain.fields; }
};

/// Tells if compute(box, boxes) has the same bits in planes of one point, which are not computed in
/// vectors.
template <class T, class Compute>
bool is_verified(const Config& config, Compute compute) {
  const Box<T> whole(config), parts(config);
  const std::array all{whole.domain.halo.interior()};
  std::vector<comm::Box> planes;
  for (std::int64_t x = 0; x < all[0].extent[0]; ++x) {
    planes.push_back(all[0]);
    planes.back().begin[0] += x;
    planes.back().extent[0] = 1;
  }
  compute(whole, std::span<const comm::Box>(all));
  compute(parts, std::span<const comm::Box>(planes));
  const auto bytes = static_cast<std::size_t>(whole.elements()) * sizeof(T);
  return std::memcmp(whole.out.address(0), parts.out.address(0), bytes) == 0 &&
         std::isfinite(static_cast<double>(*whole.out.address(0)));
}

/// Reads as many values as the owned points have of both sets, and writes one.
template <class T>
void read_and_write(const Box<T>& box) {
  const T* const in = box.in.address(0);
  T* const out = box.out.address(0);
  const auto count = box.values();
  for (std::int64_t i = 0; i < count; ++i) out[i] = T(0.5) * in[i] + T(0.5) * out[i];
  asm volatile("" : : "r"(out) : "memory");
}

/// Starts Kokkos with one thread, and keeps that on its core.
inline std::shared_ptr<void> one_thread() {
  auto kokkos = std::make_shared<Kokkos::ScopeGuard>(
      Kokkos::InitializationSettings().set_num_threads(1).set_disable_warnings(true));
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<unsigned>(std::max(sched_getcpu(), 0)), &one);
  sched_setaffinity(0, sizeof one, &one);
  return kokkos;
}

/// Returns a program that measures on one thread.
inline dtype::bench::Program program_on_one_core(const char* what,
                                                 std::vector<dtype::bench::Group> groups) {
  const auto kokkos = std::make_shared<std::shared_ptr<void>>();
  return {.what = what,
          .groups = std::move(groups),
          .start = [kokkos](const dtype::bench::Options&) -> dtype::bench::Facts {
            *kokkos = one_thread();
            return {"one thread", {}};
          }};
}

}  // namespace halocline::app::bench
