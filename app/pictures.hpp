// SPDX-License-Identifier: BSD-3-Clause
// Writes what people look at while a run goes on: snapshots of fields, and slices as pictures.
#pragma once

#include <mpi.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "config.hpp"
#include "fields.hpp"

namespace halocline::app {

/// Tells if something is done after this step. \param every steps from one to the next; 0: never
inline bool is_due(std::int64_t step, std::int64_t every) {
  return every > 0 && step % every == 0;
}

/// Refuses names of fields that are not there, and slices from a program that cannot write them.
/// \param names names of all fields
/// \throws ConfigError
void check_pictures(const Config& config, const std::vector<std::string>& names);

/// Writes snapshots and slices of a run into a folder, as often as the configuration says.
template <class T>
class Pictures {
 public:
  /// Keeps a reference to the domain.
  /// \param names names of the fields
  /// \param spacing distances of points along x, y, z
  /// \throws ConfigError as check_pictures()
  Pictures(const Config& config, const Domain& domain, std::vector<std::string> names,
           std::array<double, 3> spacing, MPI_Comm comm);

  /// Writes what is due after `step` steps into the folder, which is there if something is due.
  /// Takes the fields as the device has them, if there is one. Copies them to host memory if
  /// something is due. Collective.
  /// \throws EnvironmentError on all ranks if a file cannot be written
  /// \throws ConfigError on all ranks if a list of snapshots is there that is not ours
  void after_step(const std::string& folder, std::int64_t step, double time,
                  const FieldSet<T>& fields);

 private:
  const Domain& domain_;
  std::vector<std::string> names_;  // of all fields
  std::array<double, 3> spacing_;
  MPI_Comm comm_;
  std::int64_t snapshot_every_, slice_every_;
  std::vector<int> snapshot_fields_, slice_fields_;
  Axis slice_axis_;
  std::int64_t slice_index_;
};

}  // namespace halocline::app
