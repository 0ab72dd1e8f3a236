// SPDX-License-Identifier: BSD-3-Clause
// Measures the machine that a job runs on: the system model by which transfers are chosen.
//
// Best peer: [PEA21 section 6.3] has a program of its own for two ranks on two nodes; here any job
// measures what it can, in a given time, and says what it cannot.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dtype/device/resource_cache.hpp"
#include "dtype/select/system_model.hpp"

namespace halocline::comm {

/// What can be measured with the ranks of a communicator, and then its measurement. Rank 0 measures
/// alone, or with one rank of its node or of another one, or with all ranks of two nodes; all
/// others sleep.
class Calibration {
 public:
  struct Options {
    /// Of this rank's device; must outlive this. nullptr: it has none.
    dtype::ResourceCache* resources = nullptr;
    /// Whether MPI takes device memory. Unset: probe_gpu_awareness().
    std::optional<bool> gpu_aware_mpi = std::nullopt;
    /// For all parts together. A few layers are always measured, about a tenth of a second each;
    /// much more than a minute is never needed. Below 10 the grid is coarse.
    double seconds = 60;
  };

  /// A part of the model.
  struct Part {
    std::string name;
    std::int64_t points = 0;  ///< of the grid, at most
    std::string why_not;      ///< empty: it is measured
  };

  /// Finds the partners. Collective over `comm`, which is duplicated. Throws EnvironmentError on
  /// all ranks alike if the device fails.
  Calibration(MPI_Comm comm, const Options& options);
  ~Calibration();

  /// The same on all ranks, but for the words of why_not.
  const std::vector<Part>& parts() const { return parts_; }

  /// The memory that a rank needs at most that measures, of the host and of the device each.
  std::int64_t memory_bytes() const;

  /// Of all parts together.
  std::int64_t points() const;

  /// Measures all parts and returns the model, without provenance, on rank 0; an empty one on the
  /// other ranks. The model says of itself what was cut short and what stayed noisy. `progress` is
  /// called on rank 0, with the number of points that are done. Collective. Throws
  /// EnvironmentError, on all ranks alike, if there is no memory or the device fails.
  dtype::SystemModel measure(const std::function<void(std::int64_t points)>& progress);

 private:
  struct State;
  std::unique_ptr<State> state_;
  std::vector<Part> parts_;
};

}  // namespace halocline::comm
