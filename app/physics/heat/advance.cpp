// SPDX-License-Identifier: BSD-3-Clause
#include "advance.hpp"

// Applies the stencil plane by plane.
//
// A sum over lines takes 117 operations a point: 39 pairs, each added, weighted and summed up. Here
// the sum goes over planes. At each distance k = 1, 2, 3 in a plane:
// - X_k is the sum of the 4 values at distance k along x and y.
// - D_k is the sum of the 4 values at distance k along both of the plane's diagonals.
// - P_k = axis_k u + face_k X_k + body_k D_k.
// - Q = centre u + sum_k (axis_k X_k + face_k D_k).
//
// A point adds Q of its own plane, and P_k of the planes k below and above. Q and P_k share X_k and
// D_k, and P_k serves two points. So a point takes 53 operations.
#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "field_views.hpp"
#include "physics/lanes.hpp"

namespace halocline::app {

namespace {

constexpr std::size_t kBoxesPerLaunch = 4;

// Describes the rows of a box in an array, plane by plane.
struct Rows {
  std::int64_t first, end;       // row numbers in a launch
  std::int64_t per_plane, z, y;  // z and y of the first row
  std::int64_t element;          // element at which rows begin
};

// Holds what a plane adds to the points at its own height, and to those 1, 2, ... planes away.
template <class V, int kRadius>
struct PlaneSums {
  V own, away[kRadius];
};

// Holds the weights of a stencil by distance, and the distances of neighbours in memory.
template <class T, int kLineCount, int kRadius>
struct PlaneStencil {
  T centre;
  T axis[kRadius], face[kRadius], body[kRadius];
  std::int64_t x, y, z;  // elements

  // Returns what the plane of `at` adds. Without kOwn, `own` is not set.
  template <bool kOwn, class V>
  KOKKOS_FORCEINLINE_FUNCTION PlaneSums<V, kRadius> plane(const T* at) const {
    constexpr bool kFaces = kLineCount >= 9, kBodies = kLineCount == 13;
    const V u = load<V>(at);
    PlaneSums<V, kRadius> out;
    if constexpr (kOwn) out.own = centre * u;
    for (int k = 1; k <= kRadius; ++k) {
      const T *low = at - k * y, *high = at + k * y;
      const T a = axis[k - 1], f = face[k - 1], b = body[k - 1];
      out.away[k - 1] = a * u;
      if constexpr (kOwn || kFaces) {
        const V straight =
            (load<V>(at - k * x) + load<V>(at + k * x)) + (load<V>(low) + load<V>(high));
        if constexpr (kOwn) out.own = out.own + a * straight;
        if constexpr (kFaces) out.away[k - 1] = out.away[k - 1] + f * straight;
      }
      if constexpr (kBodies || (kOwn && kFaces)) {
        const V diagonal = (load<V>(low - k * x) + load<V>(low + k * x)) +
                           (load<V>(high - k * x) + load<V>(high + k * x));
        if constexpr (kOwn) out.own = out.own + f * diagonal;
        if constexpr (kBodies) out.away[k - 1] = out.away[k - 1] + b * diagonal;
      }
    }
    return out;
  }

  // Returns the whole sum, from the lowest plane to the highest.
  template <class V>
  KOKKOS_FORCEINLINE_FUNCTION V value(const T* at) const {
    V sum = plane<false, V>(at - kRadius * z).away[kRadius - 1];
    for (int k = kRadius - 1; k > 0; --k) sum = sum + plane<false, V>(at - k * z).away[k - 1];
    sum = sum + plane<true, V>(at).own;
    for (int k = 1; k <= kRadius; ++k) sum = sum + plane<false, V>(at + k * z).away[k - 1];
    return sum;
  }
};

// Calls body(V(), x) for the vectors of a row, then body(T(), x) for the points that are left.
template <class V, class Body>
[[gnu::always_inline]] inline void for_each_vector(std::int64_t length, const Body& body) {
  using T = ScalarOf<V>;
  std::int64_t x = 0;
  for (; x + kLanes<V> <= length; x += kLanes<V>) body(V(), x);
  for (; x + kLanes<Lanes<T>> <= length; x += kLanes<Lanes<T>>) body(Lanes<T>(), x);
  for (; x < length; ++x) body(T(), x);
}

// Computes one step. On a device a step is one element. On the host it is a tile: the planes follow
// each other, and the sums of the 2 kRadius + 1 planes that are under way stay in the cache.
//
// Rows are contiguous in both layouts, so only the distances differ: with aos a neighbour in x is
// elements_per_point elements away.
template <class T, int kLineCount, int kRadius, class ExecutionSpace>
struct Advance {
  struct Tile {};
  struct Element {};
  // The sums of a tile should stay in a core's second cache. Long rows make few pages.
  static constexpr std::int64_t kTileRows = 16, kTileWidth = 256, kSums = 2 * kRadius + 1;

  PlaneStencil<T, kLineCount, kRadius> stencil;
  const T* in;
  T* out;
  std::int64_t row_length;                                // elements
  Kokkos::Array<Rows, kBoxesPerLaunch> boxes{};           // for Element
  std::int64_t extent[3]{}, tiles[3]{}, tile_planes = 0;  // for Tile; extent[0] is row_length

  KOKKOS_FUNCTION void operator()(Element, std::int64_t i) const {
    const auto place = first_of(i / row_length) + i % row_length;
    out[place] = stencil.template value<T>(in + place);
  }

  // Divides a box into tiles; returns their number.
  std::int64_t divide(const comm::Int3& box) {
    for (int axis = 0; axis < 3; ++axis) extent[axis] = box[static_cast<std::size_t>(axis)];
    if (extent[0] == 0 || extent[1] == 0 || extent[2] == 0) return 0;
    const auto parts = [](std::int64_t all, std::int64_t part) { return (all + part - 1) / part; };
    tiles[0] = parts(extent[0], kTileWidth);
    tiles[1] = parts(extent[1], kTileRows);
    // Each thread gets a few tiles, so that none waits long for the last one. Each tile computes
    // kRadius planes more at its low and at its high side, so it has as many planes as possible.
    constexpr std::int64_t kTilesPerThread = 4, kLeast = 8 * kRadius;
    const auto threads = HostSpace().concurrency();
    const auto wanted = threads == 1 ? 1 : parts(kTilesPerThread * threads, tiles[0] * tiles[1]);
    tile_planes = std::min(std::max(parts(extent[2], wanted), kLeast), extent[2]);
    tiles[2] = parts(extent[2], tile_planes);
    return tiles[0] * tiles[1] * tiles[2];
  }

  void operator()(Tile, std::int64_t tile) const {
#if defined(HALOCLINE_WIDE_LANES)
    if (has_wide_lanes()) return compute_wide(tile);
#endif
    compute<Lanes<T>>(tile);
  }

 private:
#if defined(HALOCLINE_WIDE_LANES)
  HALOCLINE_WIDE_LANES void compute_wide(std::int64_t tile) const {
    compute<WideLanes<T>>(tile);
  }
#endif

  // Computes a tile with vectors V. What it calls is inlined into it, also for WideLanes.
  template <class V>
  [[gnu::always_inline]] void compute(std::int64_t tile) const {
    const auto x = tile % tiles[0] * kTileWidth, y = tile / tiles[0] % tiles[1] * kTileRows;
    const auto z = tile / tiles[0] / tiles[1] * tile_planes;
    const auto width = std::min(kTileWidth, extent[0] - x);
    const auto rows = std::min(kTileRows, extent[1] - y);
    const auto planes = std::min(tile_planes, extent[2] - z);
    const auto place =
        boxes[0].element + (boxes[0].z + z) * stencil.z + (boxes[0].y + y) * stencil.y + x;
    // Few planes would mostly compute what serves other planes. Lines along the axes alone share
    // nothing.
    if (planes <= kRadius || kLineCount == 3)
      compute_points<V>(place, width, rows, planes);
    else
      compute_planes<V>(place, width, rows, planes);
  }

  template <class V>
  [[gnu::always_inline]] void compute_points(std::int64_t place, std::int64_t width,
                                             std::int64_t rows, std::int64_t planes) const {
    const auto self = stencil;  // a copy that `to` cannot point into
    for (std::int64_t z = 0; z < planes; ++z)
      for (std::int64_t y = 0; y < rows; ++y) {
        const T* from = in + place + z * self.z + y * self.y;
        T* to = out + (from - in);
        for_each_vector<V>(
            width, [&](auto vector, std::int64_t x) __attribute__((always_inline)) {
              using W = decltype(vector);
              store<W>(self.template value<W>(from + x), to + x);
            });
      }
  }

  template <class V>
  [[gnu::always_inline]] void compute_planes(std::int64_t place, std::int64_t width,
                                             std::int64_t rows, std::int64_t planes) const {
    constexpr std::size_t kLine = 64;
    alignas(kLine) T sums[kSums * kTileRows * kTileWidth];  // 224 KiB of doubles at most
    for (std::int64_t z = -kRadius; z < planes + kRadius; ++z)
      for (std::int64_t y = 0; y < rows; ++y) {
        const auto row = place + z * stencil.z + y * stencil.y;
        T* const of_row = sums + y * kTileWidth;
        if (z == -kRadius)
          add_row<false, true, V>(row, of_row, z, width);
        else if (z >= 0 && z < planes)
          add_row<true, false, V>(row, of_row, z, width);
        else
          add_row<false, false, V>(row, of_row, z, width);
      }
  }

  // Adds a row of plane z to the sums of the planes around it, and writes what is complete. kOwn:
  // the tile has this plane. kFirst: the sums hold nothing yet.
  template <bool kOwn, bool kFirst, class V>
  [[gnu::always_inline]] void add_row(std::int64_t row, T* sums, std::int64_t z,
                                      std::int64_t width) const {
    const auto self = stencil;  // a copy that `sums` cannot point into
    const T* from = in + row;
    T* to = z >= kRadius ? out + row - kRadius * self.z : nullptr;
    T* of[kSums];  // sums of plane z - kRadius + i
    for (int i = 0; i < kSums; ++i)
      of[i] = sums + (z + i + kSums) % kSums * (kTileRows * kTileWidth);
    for_each_vector<V>(
        width, [&](auto vector, std::int64_t x) __attribute__((always_inline)) {
          using W = decltype(vector);
          const auto add = self.template plane<kOwn, W>(from + x);
          const auto sum = [x](const T* of_plane, const W& more) __attribute__((always_inline)) {
            if constexpr (kFirst)
              return more;
            else
              return W(load<W>(of_plane + x) + more);
          };
          if (to != nullptr) store<W>(sum(of[0], add.away[kRadius - 1]), to + x);
          for (int i = 1; i < kRadius; ++i)
            store<W>(sum(of[i], add.away[kRadius - i - 1]), of[i] + x);
          if constexpr (kOwn) store<W>(sum(of[kRadius], add.own), of[kRadius] + x);
          for (int i = kRadius + 1; i < kSums - 1; ++i)
            store<W>(sum(of[i], add.away[i - kRadius - 1]), of[i] + x);
          store<W>(add.away[kRadius - 1], of[kSums - 1] + x);  // begins a plane
        });
  }

  // Returns the begin of a row, in elements from the array's begin.
  KOKKOS_FORCEINLINE_FUNCTION std::int64_t first_of(std::int64_t row) const {
    const Rows* box = boxes.data();
    while (row >= box->end) ++box;
    row -= box->first;
    const auto z = box->z + row / box->per_plane, y = box->y + row % box->per_plane;
    return z * stencil.z + y * stencil.y + box->element;
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

template <class T, int kLineCount, int kRadius>
PlaneStencil<T, kLineCount, kRadius> plane_stencil(const Domain& domain, const StencilSpec& spec,
                                                   double diffusion_number) {
  const auto [row, rows, planes] = domain.extents_in_memory();
  PlaneStencil<T, kLineCount, kRadius> out{};
  out.x = domain.elements_per_point();
  out.y = out.x * row;
  out.z = out.y * rows;
  double centre = 1;
  for (int line = 0; line < kLineCount; ++line)
    centre += diffusion_number * line_weight(spec, line) * spec.coefficients[0];
  out.centre = static_cast<T>(centre);
  for (int k = 0; k < kRadius; ++k) {
    const auto of_line = [&](double weight) {
      return static_cast<T>(diffusion_number * weight *
                            spec.coefficients[static_cast<std::size_t>(k) + 1]);
    };
    out.axis[k] = of_line(spec.weights.axis);
    out.face[k] = of_line(spec.weights.face);
    out.body[k] = of_line(spec.weights.body);
  }
  return out;
}

template <class ExecutionSpace, class T, int kLineCount, int kRadius>
void launch_on(const Domain& domain, const StencilSpec& spec, double diffusion_number,
               const FieldSet<T>& in, const FieldSet<T>& out, int array,
               std::span<const comm::Box> boxes) {
  const auto per_point = std::int64_t{domain.elements_per_point()};
  using Kernel = Advance<T, kLineCount, kRadius, ExecutionSpace>;
  Kernel kernel{.stencil = plane_stencil<T, kLineCount, kRadius>(domain, spec, diffusion_number),
                .in = in.working_address(array),
                .out = out.working_address(array),
                .row_length = 0};
  constexpr bool kTiles = std::is_same_v<ExecutionSpace, HostSpace>;
  using Step = std::conditional_t<kTiles, typename Kernel::Tile, typename Kernel::Element>;
  while (!boxes.empty()) {
    kernel.row_length = boxes.front().extent[0] * per_point;
    std::int64_t steps = 0;
    if constexpr (kTiles) {
      const auto extent = boxes.front().extent;
      auto first = boxes.first(1);
      take_boxes(first, per_point, kernel.boxes);
      steps = kernel.divide({kernel.row_length, extent[1], extent[2]});
      boxes = boxes.subspan(1);
    } else {
      steps = take_boxes(boxes, per_point, kernel.boxes) * kernel.row_length;
    }
    if (steps == 0) continue;
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
