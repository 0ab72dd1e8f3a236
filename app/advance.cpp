// SPDX-License-Identifier: BSD-3-Clause
#include "advance.hpp"

#include <type_traits>
#include <utility>

namespace halocline::app {

namespace {

// On the host one step computes one row of one array, on a device one element. A row is contiguous
// in both layouts, and with aos a neighbour in x is elements_per_point elements away: the offsets
// are all that differs.
template <class T, int kLineCount, int kRadius, class ExecutionSpace>
struct Advance {
  struct Row {};
  struct Element {};
  ArrayView<T, ExecutionSpace> in, out;
  std::int64_t radius, rows;           // ghosts; owned rows per plane
  std::int64_t row_begin, row_length;  // owned elements of a row
  T centre;
  Kokkos::Array<T, kLineCount * kRadius> coefficients;
  Kokkos::Array<std::int64_t, kLineCount * kRadius>
      offsets;  // elements from a point to its neighbour on a line

  KOKKOS_FUNCTION void operator()(Element, std::int64_t i) const {
    const auto row = i / row_length, element = row_begin + i % row_length;
    const auto z = radius + row / rows, y = radius + row % rows;
    out(z, y, element) =
        value(&in(z, y, element), std::make_index_sequence<kLineCount * kRadius>());
  }

  KOKKOS_FUNCTION void operator()(Row, std::int64_t row) const {
    const auto z = radius + row / rows, y = radius + row % rows;
    const T* from = &in(z, y, row_begin);
    T* to = &out(z, y, row_begin);
    const auto self = *this;  // a copy that `to` cannot point into
#pragma omp simd
    for (std::int64_t i = 0; i < row_length; ++i)
      to[i] = self.value(from + i, std::make_index_sequence<kLineCount * kRadius>());
  }

  // Written out by a fold so that the compiler sees one long expression and vectorises over i.
  template <std::size_t... kTerm>
  KOKKOS_FORCEINLINE_FUNCTION T value(const T* u, std::index_sequence<kTerm...>) const {
    T sum = centre * u[0];
    ((sum += coefficients[kTerm] * (u[offsets[kTerm]] + u[-offsets[kTerm]])), ...);
    return sum;
  }
};

template <class ExecutionSpace, class T, int kLineCount, int kRadius>
void launch_on(const Domain& domain, const StencilSpec& spec, double diffusion_number,
               const FieldSet<T>& in, const FieldSet<T>& out) {
  const auto per_point = std::int64_t{domain.elements_per_point()};
  const auto stored = domain.halo.stored(), extent = domain.halo.extent;
  const comm::Int3 stride{per_point, per_point * stored[0], per_point * stored[0] * stored[1]};
  using Kernel = Advance<T, kLineCount, kRadius, ExecutionSpace>;
  Kernel kernel{.in = {},
                .out = {},
                .radius = domain.halo.radius,
                .rows = extent[1],
                .row_begin = domain.halo.radius * per_point,
                .row_length = extent[0] * per_point,
                .centre = 0,
                .coefficients = {},
                .offsets = {}};
  double centre = 1;
  for (int line = 0; line < kLineCount; ++line) {
    const auto& step = kLines[static_cast<std::size_t>(line)];
    const double weight = diffusion_number * line_weight(spec, line);
    centre += weight * spec.coefficients[0];
    for (int k = 1; k <= kRadius; ++k) {
      const auto term = static_cast<std::size_t>(line * kRadius + k - 1);
      kernel.coefficients[term] =
          static_cast<T>(weight * spec.coefficients[static_cast<std::size_t>(k)]);
      kernel.offsets[term] = k * (step[0] * stride[0] + step[1] * stride[1] + step[2] * stride[2]);
    }
  }
  kernel.centre = static_cast<T>(centre);

  constexpr bool kRows = std::is_same_v<ExecutionSpace, HostSpace>;
  using Step = std::conditional_t<kRows, typename Kernel::Row, typename Kernel::Element>;
  const auto steps = extent[1] * extent[2] * (kRows ? 1 : kernel.row_length);
  for (int a = 0; a < in.arrays(); ++a) {
    kernel.in = in.template working_array<ExecutionSpace>(a);
    kernel.out = out.template working_array<ExecutionSpace>(a);
    Kokkos::parallel_for(
        "halocline::advance",
        Kokkos::RangePolicy<ExecutionSpace, Step, Kokkos::IndexType<std::int64_t>>(0, steps),
        kernel);
  }
  ExecutionSpace().fence("halocline::advance");
}

template <class T, int kLineCount, int kRadius>
void launch(const Domain& domain, const StencilSpec& spec, double diffusion_number,
            const FieldSet<T>& in, const FieldSet<T>& out) {
  if constexpr (!std::is_same_v<DeviceSpace, HostSpace>) {
    if (in.on_device())
      return launch_on<DeviceSpace, T, kLineCount, kRadius>(domain, spec, diffusion_number, in,
                                                            out);
  }
  launch_on<HostSpace, T, kLineCount, kRadius>(domain, spec, diffusion_number, in, out);
}

}  // namespace

template <class T>
void advance(const Domain& domain, const StencilSpec& spec, double diffusion_number,
             const FieldSet<T>& in, const FieldSet<T>& out) {
  if (spec.radius() == 1) return launch<T, 13, 1>(domain, spec, diffusion_number, in, out);
  switch (spec.lines) {
    case 3:
      return launch<T, 3, 3>(domain, spec, diffusion_number, in, out);
    case 9:
      return launch<T, 9, 3>(domain, spec, diffusion_number, in, out);
    default:
      return launch<T, 13, 3>(domain, spec, diffusion_number, in, out);
  }
}

template void advance(const Domain&, const StencilSpec&, double, const FieldSet<double>&,
                      const FieldSet<double>&);
template void advance(const Domain&, const StencilSpec&, double, const FieldSet<float>&,
                      const FieldSet<float>&);

}  // namespace halocline::app
