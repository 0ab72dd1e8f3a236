// SPDX-License-Identifier: BSD-3-Clause
#include "advance.hpp"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "field_views.hpp"

namespace halocline::app {

namespace {

constexpr std::size_t kBoxesPerLaunch = 4;
// Smallest number of elements of a step on the host. Short rows share a step, so that the loop's
// preparation is worth its time.
constexpr std::int64_t kElementsPerStep = 128;
constexpr std::int64_t kShortRow = 16;  // elements

// Describes the rows of a box in an array, plane by plane.
struct Rows {
  std::int64_t first, end;       // row numbers in a launch
  std::int64_t per_plane, z, y;  // z and y of the first row
  std::int64_t element;          // element at which rows begin
};

// Computes one step. On the host a step is one row of one array or a few short rows, on a device
// one element. Rows are contiguous in both layouts, so only the offsets differ: with aos a
// neighbour in x is elements_per_point elements away.
template <class T, int kLineCount, int kRadius, class ExecutionSpace>
struct Advance {
  struct Row {};
  struct Element {};
  ArrayView<T, ExecutionSpace> in, out;
  std::int64_t row_length;           // elements
  std::int64_t rows, rows_per_step;  // for Row
  Kokkos::Array<Rows, kBoxesPerLaunch> boxes;
  T centre;
  Kokkos::Array<T, kLineCount * kRadius> coefficients;
  Kokkos::Array<std::int64_t, kLineCount * kRadius>
      offsets;  // elements from a point to its neighbour on a line

  KOKKOS_FUNCTION void operator()(Element, std::int64_t i) const {
    const auto place = first_of(i / row_length) + i % row_length;
    out.data()[place] = value(in.data() + place, std::make_index_sequence<kLineCount * kRadius>());
  }

  void operator()(Row, std::int64_t step) const {
    const auto self = *this;  // a copy that `to` cannot point into
    const auto end = std::min(rows, (step + 1) * rows_per_step);
    for (auto row = step * rows_per_step; row < end; ++row) {
      const auto place = first_of(row);
      const T* from = in.data() + place;
      T* to = out.data() + place;
      if (row_length <= kShortRow) prefetch(from, to);
#pragma omp simd
      for (std::int64_t i = 0; i < row_length; ++i)
        to[i] = self.value(from + i, std::make_index_sequence<kLineCount * kRadius>());
    }
  }

  // Prefetches the cache lines that a later row is the first to read, and the line to which it
  // writes. Short rows are too far apart for the hardware to foresee the next one.
  void prefetch(const T* from, T* to) const {
    constexpr std::int64_t kAhead = 4;
    const auto next_row = offsets[kRadius], farthest_plane = offsets[3 * kRadius - 1];
    const T* later = from + farthest_plane + (kRadius + kAhead) * next_row;
    __builtin_prefetch(later - offsets[kRadius - 1]);
    __builtin_prefetch(later + row_length - 1 + offsets[kRadius - 1]);
    __builtin_prefetch(to + kAhead * next_row, 1);
  }

  // Returns the begin of a row, in elements from the array's begin.
  KOKKOS_FORCEINLINE_FUNCTION std::int64_t first_of(std::int64_t row) const {
    const Rows* box = boxes.data();
    while (row >= box->end) ++box;
    row -= box->first;
    const auto z = box->z + row / box->per_plane, y = box->y + row % box->per_plane;
    return &in(z, y, box->element) - in.data();
  }

  // Sums by a fold, so that the compiler sees one long expression and vectorises over i.
  template <std::size_t... kTerm>
  KOKKOS_FORCEINLINE_FUNCTION T value(const T* u, std::index_sequence<kTerm...>) const {
    T sum = centre * u[0];
    ((sum += coefficients[kTerm] * (u[offsets[kTerm]] + u[-offsets[kTerm]])), ...);
    return sum;
  }
};

// Moves the first boxes that one launch can take into `rows`; returns the number of their rows.
std::int64_t take_boxes(std::span<const comm::Box>& boxes, std::int64_t per_point,
                        Kokkos::Array<Rows, kBoxesPerLaunch>& rows) {
  const auto length = boxes.front().extent[0];
  std::int64_t count = 0;
  for (std::size_t i = 0; i < kBoxesPerLaunch; ++i) {
    if (boxes.empty() || boxes.front().extent[0] != length) break;
    const auto& [begin, extent] = boxes.front();
    const auto end = count + extent[1] * extent[2];
    rows[i] = {count, end, extent[1], begin[2], begin[1], begin[0] * per_point};
    count = end;
    boxes = boxes.subspan(1);
  }
  return count;
}

template <class ExecutionSpace, class T, int kLineCount, int kRadius>
void launch_on(const Domain& domain, const StencilSpec& spec, double diffusion_number,
               const FieldSet<T>& in, const FieldSet<T>& out, int array,
               std::span<const comm::Box> boxes) {
  const auto per_point = std::int64_t{domain.elements_per_point()};
  const auto extents = domain.extents_in_memory();
  const comm::Int3 stride{per_point, per_point * extents[0], per_point * extents[0] * extents[1]};
  using Kernel = Advance<T, kLineCount, kRadius, ExecutionSpace>;
  Kernel kernel{.in = working_array_of<ExecutionSpace>(in, array),
                .out = working_array_of<ExecutionSpace>(out, array),
                .row_length = 0,
                .rows = 0,
                .rows_per_step = 1,
                .boxes = {},
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
  while (!boxes.empty()) {
    kernel.row_length = boxes.front().extent[0] * per_point;
    kernel.rows = take_boxes(boxes, per_point, kernel.boxes);
    kernel.rows_per_step = std::max<std::int64_t>(1, kElementsPerStep / kernel.row_length);
    const auto steps = kRows ? (kernel.rows + kernel.rows_per_step - 1) / kernel.rows_per_step
                             : kernel.rows * kernel.row_length;
    Kokkos::parallel_for(
        "halocline::advance",
        Kokkos::RangePolicy<ExecutionSpace, Step, Kokkos::IndexType<std::int64_t>>(0, steps),
        kernel);
  }
}

template <class T, int kLineCount, int kRadius>
void launch(const Domain& domain, const StencilSpec& spec, double diffusion_number,
            const FieldSet<T>& in, const FieldSet<T>& out, int array,
            std::span<const comm::Box> boxes) {
  if constexpr (!std::is_same_v<DeviceSpace, HostSpace>) {
    if (in.on_device())
      return launch_on<DeviceSpace, T, kLineCount, kRadius>(domain, spec, diffusion_number, in, out,
                                                            array, boxes);
  }
  launch_on<HostSpace, T, kLineCount, kRadius>(domain, spec, diffusion_number, in, out, array,
                                               boxes);
}

}  // namespace

template <class T>
void start_advance(const Domain& domain, const StencilSpec& spec, double diffusion_number,
                   const FieldSet<T>& in, const FieldSet<T>& out, int array,
                   std::span<const comm::Box> boxes) {
  const auto with = [&](auto start) {
    start(domain, spec, diffusion_number, in, out, array, boxes);
  };
  if (spec.radius() == 1) return with(launch<T, 13, 1>);
  switch (spec.lines) {
    case 3:
      return with(launch<T, 3, 3>);
    case 9:
      return with(launch<T, 9, 3>);
    default:
      return with(launch<T, 13, 3>);
  }
}

template <class T>
void finish_advance(const FieldSet<T>& out) {
  if (out.on_device())
    DeviceSpace().fence("halocline::advance");
  else
    HostSpace().fence("halocline::advance");
}

template <class T>
void advance(const Domain& domain, const StencilSpec& spec, double diffusion_number,
             const FieldSet<T>& in, const FieldSet<T>& out) {
  const std::array whole{domain.halo.interior()};
  for (int array = 0; array < in.arrays(); ++array)
    start_advance(domain, spec, diffusion_number, in, out, array, whole);
  finish_advance(out);
}

#define HALOCLINE_INSTANTIATE(T)                                                             \
  template void advance(const Domain&, const StencilSpec&, double, const FieldSet<T>&,       \
                        const FieldSet<T>&);                                                 \
  template void start_advance(const Domain&, const StencilSpec&, double, const FieldSet<T>&, \
                              const FieldSet<T>&, int, std::span<const comm::Box>);          \
  template void finish_advance(const FieldSet<T>&);
HALOCLINE_INSTANTIATE(double)
HALOCLINE_INSTANTIATE(float)
#undef HALOCLINE_INSTANTIATE

}  // namespace halocline::app
