// SPDX-License-Identifier: BSD-3-Clause
// Measures the machine that a job runs on: the system model by which transfers are chosen.
//
// Best peer: [PEA21 section 6.3] has its own program for two ranks on two nodes. Here any job
// measures what it can in a given time, and says what it cannot measure.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dtype/device/resource_cache.hpp"
#include "dtype/model/system_model.hpp"

namespace halocline::comm {

/// Finds out what the ranks of a communicator can measure, and then measures it. Rank 0 measures
/// alone, with one rank of its node or of another node, or with all ranks of two nodes. All other
/// ranks sleep.
class Calibration {
 public:
  struct Options {
    /// Belongs to this rank's device; must outlive the calibration. nullptr: this rank has none.
    dtype::ResourceCache* resources = nullptr;
    /// Says if MPI takes device memory. Unset: probe_gpu_awareness().
    std::optional<bool> gpu_aware_mpi = std::nullopt;
    /// Limits the seconds of all parts together. A few layers are always measured, about 0.1 s
    /// each. More than a minute is never needed. Below 10 s, the grid is coarse.
    double seconds = 60;
  };

  /// Describes a part of the model.
  struct Part {
    std::string name;
    std::int64_t points = 0;  ///< upper limit of its points in the grid
    std::string why_not;      ///< why it is not measured; empty: it is measured
  };

  /// Finds the partners. Collective over `comm`, which is duplicated.
  /// \throws EnvironmentError on all ranks if the device fails.
  Calibration(MPI_Comm comm, const Options& options);
  ~Calibration();

  /// Returns the parts of the model. They are the same on all ranks, except for the words of
  /// why_not.
  const std::vector<Part>& parts() const { return parts_; }

  /// Returns the largest memory in bytes that a measuring rank needs, on the host and on the device
  /// each.
  std::int64_t memory_bytes() const;

  /// Returns the number of points of all parts that are measured.
  std::int64_t points() const;

  /// Measures all parts. Returns the model without provenance on rank 0, and an empty model on all
  /// other ranks. The model lists what was cut short and what stayed noisy. Collective.
  /// \param progress called on rank 0 with the number of points that are done
  /// \throws EnvironmentError on all ranks if memory is missing or the device fails.
  dtype::SystemModel measure(const std::function<void(std::int64_t points)>& progress);

 private:
  struct State;
  std::unique_ptr<State> state_;
  std::vector<Part> parts_;
};

}  // namespace halocline::comm
