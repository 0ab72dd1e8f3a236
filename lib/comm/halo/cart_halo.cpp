// SPDX-License-Identifier: BSD-3-Clause
// Finds the neighbours in a Cartesian communicator, and the regions that they exchange.
#include "comm/halo/cart_halo.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "comm/mpi/communicator.hpp"
#include "support/mpi_check.hpp"
#include "support/narrow.hpp"

namespace halocline::comm {

namespace {

using Values = std::vector<std::int64_t>;
// Holds -1, 0 or 1 for each axis.
using Steps = std::array<int, kMostCartAxes>;

/// Holds the place of this rank in the grid.
struct Grid {
  MPI_Comm comm;
  std::size_t axes = 0;
  std::array<int, kMostCartAxes> ranks{}, periodic{}, here{};

  explicit Grid(MPI_Comm cart) : comm(cart) {
    int kind = MPI_UNDEFINED, dimensions = 0;
    HALOCLINE_MPI(MPI_Topo_test(cart, &kind));
    if (kind != MPI_CART)
      throw ConfigError("the communicator has no Cartesian topology: make one by MPI_Cart_create");
    HALOCLINE_MPI(MPI_Cartdim_get(cart, &dimensions));
    if (dimensions < 1 || dimensions > kMostCartAxes)
      throw ConfigError("the communicator has " + std::to_string(dimensions) +
                        " dimensions: make one of 1 to " + std::to_string(kMostCartAxes));
    axes = static_cast<std::size_t>(dimensions);
    HALOCLINE_MPI(MPI_Cart_get(cart, dimensions, ranks.data(), periodic.data(), here.data()));
  }

  // Returns the number of directions, with the one that leads nowhere.
  int directions() const { return axes == 1 ? 3 : axes == 2 ? 9 : axes == 3 ? 27 : 81; }

  // Returns the rank beside this one; MPI_PROC_NULL beyond an open side.
  int neighbor(const Steps& steps) const {
    auto at = here;
    for (std::size_t axis = 0; axis < axes; ++axis) {
      at[axis] += steps[axis];
      const bool is_outside = at[axis] < 0 || at[axis] >= ranks[axis];
      if (is_outside && periodic[axis] == 0) return MPI_PROC_NULL;
      at[axis] = (at[axis] + ranks[axis]) % ranks[axis];
    }
    int rank = 0;
    HALOCLINE_MPI(MPI_Cart_rank(comm, at.data(), &rank));
    return rank;
  }
  bool has_neighbor(std::size_t axis, int step) const {
    Steps steps{};
    steps[axis] = step;
    return neighbor(steps) != MPI_PROC_NULL;
  }
};

std::string place_of(std::size_t field, std::size_t axis) {
  return "field " + std::to_string(field) + " along axis " + std::to_string(axis);
}

// Throws ConfigError unless this rank's own description of a field can be used.
void check(const Grid& grid, const CartField& field, std::size_t number) {
  const auto name = "field " + std::to_string(number);
  if (field.buffer == nullptr)
    throw ConfigError(name + " has no buffer: give the address of its first point");
  if (field.element == MPI_DATATYPE_NULL)
    throw ConfigError(name + " has no element: give the MPI datatype of a point");
  if (field.order != MPI_ORDER_C && field.order != MPI_ORDER_FORTRAN)
    throw ConfigError(name + " has no order: give MPI_ORDER_C or MPI_ORDER_FORTRAN");
  for (std::size_t axis = 0; axis < grid.axes; ++axis) {
    const auto owned = field.owned[axis], low = field.low[axis], high = field.high[axis];
    if (owned < 0 || low < 0 || high < 0)
      throw ConfigError(place_of(number, axis) +
                        " has a negative number of points: give 0 or more");
    checked_int(checked_add(checked_add(low, owned), high), "length of an axis");
    // The neighbour above has its low ghosts from here.
    const auto needed = std::max(grid.has_neighbor(axis, 1) ? low : 0,  //
                                 grid.has_neighbor(axis, -1) ? high : 0);
    if (owned < needed)
      throw ConfigError(place_of(number, axis) + " owns " + std::to_string(owned) +
                        " points, and a neighbour needs " + std::to_string(needed) +
                        " of them: use fewer ghosts, fewer ranks or more points");
  }
}

// Returns what all ranks have to give alike for a field: three numbers, then two for each axis.
Values common_part(const Grid& grid, const CartField& field) {
  MPI_Count bytes = 0;
  HALOCLINE_MPI(MPI_Type_size_x(field.element, &bytes));
  Values out{field.order, static_cast<std::int64_t>(bytes), field.swapped != nullptr};
  for (std::size_t axis = 0; axis < grid.axes; ++axis) {
    out.push_back(field.low[axis]);
    out.push_back(field.high[axis]);
  }
  return out;
}

// Throws ConfigError on all ranks unless they describe the same fields as rank 0. Collective.
void agree_on_fields(const Grid& grid, const std::vector<CartField>& fields, int most_axes) {
  int rank = 0;
  HALOCLINE_MPI(MPI_Comm_rank(grid.comm, &rank));
  const auto require_same = [&](std::int64_t mine, std::int64_t first, const std::string& what) {
    if (mine != first)
      throw ConfigError(what + " differs (" + std::to_string(mine) + " on rank " +
                        std::to_string(rank) + ", " + std::to_string(first) +
                        " on rank 0): give the same on all ranks");
  };
  const std::array<int, 2> mine{static_cast<int>(fields.size()), most_axes};
  auto first = mine;
  HALOCLINE_MPI(MPI_Bcast(first.data(), 2, MPI_INT, 0, grid.comm));
  Values all;
  collectively(grid.comm, [&] {
    require_same(mine[0], first[0], "number of fields");
    require_same(mine[1], first[1], "`most_axes`");
    for (const auto& field : fields) {
      const auto part = common_part(grid, field);
      all.insert(all.end(), part.begin(), part.end());
    }
  });
  auto of_first = all;
  HALOCLINE_MPI(MPI_Bcast(of_first.data(), checked_int(std::ssize(all), "number of fields"),
                          MPI_INT64_T, 0, grid.comm));
  collectively(grid.comm, [&] {
    std::size_t at = 0;
    const auto require_next = [&](const std::string& what) {
      require_same(all[at], of_first[at], what);
      ++at;
    };
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const auto name = "field " + std::to_string(i);
      require_next("order of " + name);
      require_next("bytes of an element of " + name);
      require_next("number of swapped arrays of " + name);
      for (std::size_t axis = 0; axis < grid.axes; ++axis) {
        require_next("number of low ghost points of " + place_of(i, axis));
        require_next("number of high ghost points of " + place_of(i, axis));
      }
    }
  });
}

// Throws ConfigError on all ranks unless the regions of neighbours have the same extents.
// Collective.
void agree_on_owned(const Grid& grid, const std::vector<CartField>& fields) {
  Values mine;
  for (const auto& field : fields) mine.insert(mine.end(), field.owned.begin(), field.owned.end());
  // MPI leaves the place of a neighbour that does not exist as it is.
  Values theirs;
  for (std::size_t i = 0; i < 2 * grid.axes; ++i)
    theirs.insert(theirs.end(), mine.begin(), mine.end());
  const auto count = checked_int(std::ssize(mine), "number of fields");
  HALOCLINE_MPI(MPI_Neighbor_allgather(mine.data(), count, MPI_INT64_T, theirs.data(), count,
                                       MPI_INT64_T, grid.comm));
  collectively(grid.comm, [&] {
    for (std::size_t side = 0; side < 2 * grid.axes; ++side)
      for (std::size_t i = 0; i < fields.size(); ++i) {
        const auto towards = side / 2;
        if (fields[i].low[towards] == 0 && fields[i].high[towards] == 0) continue;
        for (std::size_t axis = 0; axis < grid.axes; ++axis) {
          const auto own = fields[i].owned[axis];
          const auto other = theirs[side * mine.size() + i * kMostCartAxes + axis];
          if (axis != towards && own != other)
            throw ConfigError(place_of(i, axis) + " owns " + std::to_string(own) +
                              " points, and a neighbour along axis " + std::to_string(towards) +
                              " owns " + std::to_string(other) +
                              ": cut the whole array at the same points on all ranks");
        }
      }
  });
}

// Returns the type of a region of a field, a null handle if the region is empty. Ghosts are those
// towards `steps`. Otherwise, the region is what the neighbour there needs.
dtype::Datatype region(const Grid& grid, const CartField& field, const Steps& steps, bool ghosts) {
  std::array<int, kMostCartAxes> stored{}, extent{}, begin{};
  for (std::size_t axis = 0; axis < grid.axes; ++axis) {
    const auto owned = field.owned[axis], low = field.low[axis], high = field.high[axis];
    // check() has made sure that all of them fit.
    const auto set = [&](std::int64_t first, std::int64_t points) {
      stored[axis] = static_cast<int>(low + owned + high);
      begin[axis] = static_cast<int>(first);
      extent[axis] = static_cast<int>(points);
    };
    if (steps[axis] == 0)
      set(low, owned);
    else if (steps[axis] < 0)
      ghosts ? set(0, low) : set(low, high);
    else
      ghosts ? set(low + owned, high) : set(owned, low);
    if (extent[axis] == 0) return {};
  }
  MPI_Datatype type = MPI_DATATYPE_NULL;
  HALOCLINE_MPI(MPI_Type_create_subarray(static_cast<int>(grid.axes), stored.data(), extent.data(),
                                         begin.data(), field.order, field.element, &type));
  return dtype::Datatype(type);
}

// Holds the steps to a neighbour, and the number of their direction.
struct NumberedSteps {
  int number;  // the opposite direction has the opposite number, counted from the end
  Steps steps;
};

// Returns the directions along at most `most_axes` axes: faces, then edges, then corners. Faces are
// in the order of MPI's neighbours: along axis 0 down and up, along axis 1 down and up, and so on.
std::vector<NumberedSteps> directions(const Grid& grid, int most_axes) {
  const auto axes_of = [](const Steps& steps) {
    return std::count_if(steps.begin(), steps.end(), [](int step) { return step != 0; });
  };
  std::vector<NumberedSteps> out;
  for (int number = 0; number < grid.directions(); ++number) {
    NumberedSteps to{number, {}};
    for (std::size_t axis = 0, rest = static_cast<std::size_t>(number); axis < grid.axes;
         ++axis, rest /= 3)
      to.steps[axis] = static_cast<int>(rest % 3) - 1;
    if (const auto axes = axes_of(to.steps); axes > 0 && axes <= most_axes) out.push_back(to);
  }
  const auto comes_first = [&](const Steps& a, const Steps& b) {
    if (axes_of(a) != axes_of(b)) return axes_of(a) < axes_of(b);
    for (std::size_t axis = 0; axis < grid.axes; ++axis)
      if ((a[axis] == 0) != (b[axis] == 0)) return a[axis] != 0;
    return a < b;
  };
  std::sort(out.begin(), out.end(),
            [&](const auto& a, const auto& b) { return comes_first(a.steps, b.steps); });
  return out;
}

}  // namespace

CartHaloJobs cart_halo_jobs(MPI_Comm cart, const std::vector<CartField>& fields, int most_axes) {
  std::optional<Grid> found;
  collectively(cart, [&] {
    found.emplace(cart);
    if (most_axes < 1)
      throw ConfigError("ghosts along " + std::to_string(most_axes) +
                        " axes at most are none: give 1 or more");
    for (std::size_t i = 0; i < fields.size(); ++i) check(*found, fields[i], i);
  });
  const auto& grid = *found;
  most_axes = std::min(most_axes, static_cast<int>(grid.axes));
  agree_on_fields(grid, fields, most_axes);
  agree_on_owned(grid, fields);

  CartHaloJobs out;
  collectively(cart, [&] {
    const int number = checked_int(std::ssize(fields), "number of fields", 1 << 20);
    for (const auto& [direction, steps] : directions(grid, most_axes)) {
      const auto partner = grid.neighbor(steps);
      for (int i = 0; i < number; ++i) {
        const auto& field = fields[static_cast<std::size_t>(i)];
        auto sent = region(grid, field, steps, false), ghosts = region(grid, field, steps, true);
        const auto count = [](const auto& type) { return type.get() == MPI_DATATYPE_NULL ? 0 : 1; };
        out.jobs.push_back({.partner = partner,
                            .send_buffer = field.buffer,
                            .send_count = count(sent),
                            .send_type = sent.get(),
                            .send_tag = direction * number + i,
                            .receive_buffer = field.buffer,
                            .receive_count = count(ghosts),
                            .receive_type = ghosts.get(),
                            .receive_tag = (grid.directions() - 1 - direction) * number + i});
        out.types.push_back(std::move(sent));
        out.types.push_back(std::move(ghosts));
      }
    }
  });
  return out;
}

void CartHalo::swap() {
  if (plans_.size() == 1)
    throw ConfigError(
        "no field of this halo has a second array: give it as `swapped`, or do not swap");
  now_ = 1 - now_;
}

CartHalo::CartHalo(MPI_Comm cart, const std::vector<CartField>& fields, const Method& method,
                   int most_axes, const ExchangePlan::Options& options) {
  plans_.emplace_back(cart, cart_halo_jobs(cart, fields, most_axes).jobs, method, options);
  auto swapped = fields;
  bool any = false;
  for (auto& field : swapped) {
    if (field.swapped == nullptr) continue;
    field.buffer = field.swapped;
    any = true;
  }
  if (any)
    plans_.emplace_back(cart, cart_halo_jobs(cart, swapped, most_axes).jobs, method, options);
}

}  // namespace halocline::comm
