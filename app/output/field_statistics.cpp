// SPDX-License-Identifier: BSD-3-Clause
#include "field_statistics.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "field_views.hpp"
#include "support/mpi_check.hpp"

namespace halocline::app {

template <class T>
std::vector<FieldStatistics> field_statistics(const Domain& domain, const FieldSet<T>& fields,
                                              MPI_Comm comm) {
  const auto count = static_cast<std::size_t>(domain.fields);
  std::vector<double> least(count), largest(count), squares(count);
  const std::int64_t together = domain.elements_per_point();
  const auto box = domain.halo.interior();
  const auto& [x0, y0, z0] = box.begin;
  for (std::size_t field = 0; field < count; ++field) {
    const auto array = domain.layout == Layout::soa ? static_cast<int>(field) : 0;
    const std::int64_t first = domain.layout == Layout::soa ? 0 : static_cast<std::int64_t>(field);
    const auto view = array_of(fields, array);
    Kokkos::parallel_reduce(
        "halocline::field_statistics",
        HostPolicy({z0, y0, x0}, {z0 + box.extent[2], y0 + box.extent[1], x0 + box.extent[0]}),
        [=](std::int64_t z, std::int64_t y, std::int64_t x, double& low, double& high,
            double& sum) {
          const auto value = static_cast<double>(view(z, y, x * together + first));
          if (!Kokkos::isfinite(value)) return;
          low = Kokkos::min(low, value);
          high = Kokkos::max(high, value);
          sum += value * value;
        },
        Kokkos::Min<double>(least[field]), Kokkos::Max<double>(largest[field]),
        Kokkos::Sum<double>(squares[field]));
  }
  const auto all = [&](std::vector<double>& numbers, MPI_Op op) {
    HALOCLINE_MPI(MPI_Allreduce(MPI_IN_PLACE, numbers.data(), domain.fields, MPI_DOUBLE, op, comm));
  };
  all(least, MPI_MIN);
  all(largest, MPI_MAX);
  all(squares, MPI_SUM);
  const auto points = static_cast<double>(comm::Box{{}, domain.decomposition.global()}.points());
  std::vector<FieldStatistics> out;
  for (std::size_t field = 0; field < count; ++field)
    out.push_back({least[field], std::sqrt(squares[field] / points), largest[field]});
  return out;
}

template <class T>
std::optional<FieldPoint> find_not_finite(const Domain& domain, const FieldSet<T>& fields,
                                          MPI_Comm comm) {
  constexpr auto kNone = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t first = kNone;
  for (int a = 0; a < fields.arrays(); ++a) {
    const auto view = array_of(fields, a);
    const ElementMap map(domain, a);
    first = std::min(
        first, reduce_array<T, Kokkos::Min<std::uint64_t>>(
                   "halocline::find_not_finite", view,
                   [=](std::int64_t z, std::int64_t y, std::int64_t e, std::uint64_t& lowest) {
                     const auto place = map(z, y, e);
                     if (place.owned && !Kokkos::isfinite(view(z, y, e)))
                       lowest = Kokkos::min(lowest, map.global_index(place));
                   }));
  }
  HALOCLINE_MPI(MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_UINT64_T, MPI_MIN, comm));
  if (first == kNone) return std::nullopt;
  const auto& global = domain.decomposition.global();
  const auto fields_of_point = static_cast<std::uint64_t>(domain.fields);
  const auto point = static_cast<std::int64_t>(first / fields_of_point);
  return FieldPoint{
      static_cast<int>(first % fields_of_point),
      {point % global[0], point / global[0] % global[1], point / (global[0] * global[1])}};
}

#define HALOCLINE_INSTANTIATE(T)                                                            \
  template std::vector<FieldStatistics> field_statistics(const Domain&, const FieldSet<T>&, \
                                                         MPI_Comm);                         \
  template std::optional<FieldPoint> find_not_finite(const Domain&, const FieldSet<T>&, MPI_Comm);
HALOCLINE_INSTANTIATE(double)
HALOCLINE_INSTANTIATE(float)
#undef HALOCLINE_INSTANTIATE

}  // namespace halocline::app
