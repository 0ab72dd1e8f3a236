// SPDX-License-Identifier: BSD-3-Clause
// Fills the ghosts of arrays that lie on a Cartesian communicator.
//
// Best peer: MPI_Neighbor_alltoallw on such a communicator. It knows the neighbours at faces alone,
// and each rank has to make all types. Here edges and corners are filled, too, several arrays
// travel in one message, and any method moves them.
#pragma once

#include <mpi.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "comm/exchange/exchange_plan.hpp"
#include "dtype/datatype.hpp"

namespace halocline::comm {

/// Is the largest number of axes of a CartField.
inline constexpr int kMostCartAxes = 4;

/// Describes an array of this rank with ghost points around its owned points. Axis i of the array
/// lies along dimension i of the communicator. Further entries of `owned`, `low` and `high` are
/// ignored.
struct CartField {
  void* buffer = nullptr;   ///< first point in memory, a ghost if there are ghosts
  void* swapped = nullptr;  ///< array for every second step: CartHalo::swap(); may be null
  MPI_Datatype element = MPI_DOUBLE;  ///< type of a point
  int order = MPI_ORDER_C;            ///< C: the last axis is contiguous; or MPI_ORDER_FORTRAN
  std::array<std::int64_t, kMostCartAxes> owned{};  ///< points along each axis, without ghosts
  std::array<std::int64_t, kMostCartAxes> low{};    ///< ghost points below the owned points
  std::array<std::int64_t, kMostCartAxes> high{};   ///< ghost points above the owned points
};

/// Holds jobs and the types that they name. Keep it until the plan is made.
struct CartHaloJobs {
  std::vector<ExchangeJob> jobs;
  std::vector<dtype::Datatype> types;
};

/// Returns the jobs that fill the ghosts of `fields`, at their `buffer`, from the neighbours in
/// `cart`. `most_axes` limits the axes along which a neighbour may lie. In 3-D, 1 means 6
/// neighbours at faces, 2 adds 12 at edges, 3 and more adds 8 at corners.
///
/// Each direction has a job for each field. Faces come first, in the order of MPI_Neighbor calls
/// on `cart`: along axis 0 down and up, then along axis 1, and so on. Edges and corners follow. At
/// open sides the partner is MPI_PROC_NULL, and the job does nothing.
///
/// The low ghosts get the highest owned points of the neighbour below. The tags, direction * number
/// of fields + field, tell several regions for one neighbour apart. Collective over `cart`.
/// O(fields 3^axes).
///
/// \throws ConfigError on all ranks, in these cases:
///   - `cart` has no Cartesian topology, or not 1 to kMostCartAxes dimensions.
///   - A field has no buffer, element or order, or a number below 0.
///   - A neighbour needs more points than this rank owns.
///   - The fields of the ranks differ in more than their owned points and memory.
///   - Neighbours along one axis own different numbers of points along another one.
CartHaloJobs cart_halo_jobs(MPI_Comm cart, const std::vector<CartField>& fields,
                            int most_axes = kMostCartAxes);

/// Fills the ghosts of fields again and again. Has a plan for the arrays `buffer` and, if a field
/// has `swapped`, a second plan. Move-only.
class CartHalo {
 public:
  /// Makes the plans. The arguments are those of cart_halo_jobs() and ExchangePlan. Collective over
  /// `cart`.
  /// \throws ConfigError as both of them do
  CartHalo(MPI_Comm cart, const std::vector<CartField>& fields, const Method& method,
           int most_axes = kMostCartAxes, const ExchangePlan::Options& options = {});

  /// Starts an exchange, see ExchangePlan::start(). Collective.
  [[nodiscard]] PendingExchange start() { return plan().start(); }

  /// Makes the next start() exchange `swapped` in place of `buffer`, then `buffer` again. Fields
  /// without `swapped` stay. Local; call it on all ranks alike. Throws ConfigError if no field has
  /// `swapped`.
  void swap();

  /// Returns the plan that the next start() uses.
  ExchangePlan& plan() { return plans_[now_]; }
  const ExchangePlan& plan() const { return plans_[now_]; }

 private:
  std::vector<ExchangePlan> plans_;
  std::size_t now_ = 0;
};

}  // namespace halocline::comm
