// SPDX-License-Identifier: BSD-3-Clause
// Writes pictures of fields that follow from their global points, for test_vtk.py. Takes the flags
// of `halocline run`, and writes into the working folder.
#include <Kokkos_Core.hpp>
#include <cstdio>

#include "environment.hpp"
#include "field_views.hpp"
#include "physics.hpp"
#include "pictures.hpp"
#include "run_files.hpp"
#include "support/error.hpp"

namespace {

using namespace halocline::app;

template <class T>
void write_pictures(const Config& config) {
  const auto domain = make_domain(config, find_nodes(config, MPI_COMM_WORLD));
  const FieldSet<T> fields(domain, nullptr);
  const auto names = names_of_fields(physics_of(config).info(config), domain.fields);
  Pictures<T> pictures(config, domain, names, {0.5, 0.25, 2}, MPI_COMM_WORLD);
  for (std::int64_t step = 1; step <= config.steps; ++step) {
    for_each_element("fill", domain, fields, [=](T& element, const ElementMap::Place& p) {
      const auto point = static_cast<double>(p.x + 100 * p.y + 10'000 * p.z);
      element = static_cast<T>(p.owned ? point - 5000 * p.field + 0.5 * double(step) : NAN);
    });
    pictures.after_step(".", step, 0.125 * static_cast<double>(step), fields);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const MpiEnvironment mpi(&argc, &argv);
  const Kokkos::ScopeGuard kokkos(argc, argv);
  try {
    const auto config = parse_config(MPI_COMM_WORLD, argc, argv);
    if (config->element == Element::float64)
      write_pictures<double>(*config);
    else
      write_pictures<float>(*config);
    return 0;
  } catch (const halocline::Error& error) {
    if (rank_of(MPI_COMM_WORLD) == 0) std::fprintf(stderr, "halocline: %s\n", error.what());
    return 2;
  }
}
