// SPDX-License-Identifier: BSD-3-Clause
#include "verify.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "environment.hpp"
#include "field_views.hpp"
#include "support/mpi_check.hpp"
#include "table.hpp"

namespace halocline::app {

namespace {

template <class T>
struct BitsOf;
template <>
struct BitsOf<double> {
  using type = std::uint64_t;
  static constexpr type one = 0x3ff0'0000'0000'0000, poison = 0x7ff8'dead'beef'0000;
  static constexpr int mantissa = 52;
};
template <>
struct BitsOf<float> {
  using type = std::uint32_t;
  static constexpr type one = 0x3f80'0000, poison = 0x7fc0'dead;
  static constexpr int mantissa = 23;
};

template <class T>
using Bits = typename BitsOf<T>::type;

// Each rank has its own poison, which shows if poison has travelled.
constexpr int kPoisons = 4096;
template <class T>
Bits<T> poison_of(int rank) {
  return BitsOf<T>::poison + static_cast<Bits<T>>(rank % kPoisons);
}
template <class T>
KOKKOS_INLINE_FUNCTION bool is_poison(Bits<T> bits) {
  return bits >= BitsOf<T>::poison && bits - BitsOf<T>::poison < kPoisons;
}

// Maps numbers one to one and spreads every bit over all bits (the finaliser of SplitMix64).
KOKKOS_INLINE_FUNCTION std::uint64_t mix(std::uint64_t x) {
  x += 0x9e37'79b9'7f4a'7c15;
  x = (x ^ (x >> 30)) * 0xbf58'476d'1ce4'e5b9;
  x = (x ^ (x >> 27)) * 0x94d0'49bb'1331'11eb;
  return x ^ (x >> 31);
}

// Hashes a value and its place.
KOKKOS_INLINE_FUNCTION std::uint64_t hash(std::uint64_t global_index, std::uint64_t bits) {
  return mix(mix(global_index) ^ bits);
}

// Returns the bits of a number in [1, 2) that belongs to one point of one field. `salt` is a mixed
// seed.
template <class T>
KOKKOS_INLINE_FUNCTION Bits<T> pattern(std::uint64_t global_index, std::uint64_t salt) {
  return BitsOf<T>::one |
         static_cast<Bits<T>>(mix(global_index ^ salt) >> (64 - BitsOf<T>::mantissa));
}

// Computes the value of a unit wave at a point from global coordinates alone.
struct WaveValue {
  double number[3], period[3], phase;

  WaveValue(const Wave& wave, const comm::Int3& global) : phase(wave.phase) {
    for (std::size_t axis = 0; axis < 3; ++axis) {
      number[axis] = static_cast<double>(wave.number[axis]);
      period[axis] = static_cast<double>(global[axis]);
    }
  }

  KOKKOS_INLINE_FUNCTION double operator()(const ElementMap::Place& p) const {
    const double turns = number[0] * static_cast<double>(p.x) / period[0] +
                         number[1] * static_cast<double>(p.y) / period[1] +
                         number[2] * static_cast<double>(p.z) / period[2] + phase;
    return Kokkos::cos(2 * std::numbers::pi * (turns - Kokkos::floor(turns)));
  }
};

// Holds a field's wave and its amplitude after some substeps.
struct FieldWave {
  WaveValue value;
  double amplitude;
};
using FieldWaves = Kokkos::View<const FieldWave*, HostSpace::memory_space>;

FieldWaves field_waves(const Domain& domain, const StencilSpec& spec, double diffusion_number,
                       std::int64_t substeps) {
  Kokkos::View<FieldWave*, HostSpace::memory_space> waves(
      Kokkos::view_alloc(Kokkos::WithoutInitializing, "halocline::field_waves"),
      static_cast<std::size_t>(domain.fields));
  const auto& global = domain.decomposition.global();
  for (int field = 0; field < domain.fields; ++field) {
    const auto wave = field_wave(field, domain.fields);
    waves[static_cast<std::size_t>(field)] = {
        WaveValue(wave, global),
        std::pow(damping(spec, wave, global, diffusion_number), static_cast<double>(substeps))};
  }
  return waves;
}

using Policy = Kokkos::MDRangePolicy<HostSpace, Kokkos::Rank<3>, Kokkos::IndexType<std::int64_t>>;

// Calls body(element, place) for every stored element of every array.
template <class T, class Body>
void for_each_element(const char* label, const Domain& domain, const FieldSet<T>& fields,
                      Body body) {
  for (int a = 0; a < fields.arrays(); ++a) {
    const auto view = array_of(fields, a);
    const ElementMap map(domain, a);
    Kokkos::parallel_for(
        label, Policy({0, 0, 0}, {view.extent_int(0), view.extent_int(1), view.extent_int(2)}),
        [=](std::int64_t z, std::int64_t y, std::int64_t e) { body(view(z, y, e), map(z, y, e)); });
  }
  HostSpace().fence(label);
}

// Reduces one array over its elements. The caller combines arrays and ranks.
template <class T, class Reducer, class Body>
typename Reducer::value_type reduce_array(const char* label, const ArrayView<T>& view, Body body) {
  typename Reducer::value_type result{};
  Kokkos::parallel_reduce(
      label, Policy({0, 0, 0}, {view.extent_int(0), view.extent_int(1), view.extent_int(2)}), body,
      Reducer(result));
  return result;
}

}  // namespace

std::string Verification::name() const {
  return number > kBeforeTiming ? "exchange after the timed ones"
                                : "exchange " + std::to_string(number);
}

template <class T>
std::optional<std::string> check_exchange(const Domain& domain, const FieldSet<T>& fields,
                                          comm::HaloShape shape, std::uint64_t seed,
                                          const std::function<void()>& exchange, MPI_Comm comm) {
  const auto salt = mix(seed);
  const auto needed = domain.needed.bits();
  const auto filled = comm::filled_directions(domain.needed, shape).bits();
  const auto poison = poison_of<T>(domain.rank);
  const auto is_right = [=](const ElementMap& map, const ElementMap::Place& place, Bits<T> bits) {
    const auto is_in = [&](std::uint32_t set) { return (set >> place.ghost & 1) != 0; };
    if (!place.owned && (place.outside || !is_in(filled))) return bits == poison;
    return bits == pattern<T>(map.global_index(place), salt) ||
           (!place.owned && !is_in(needed) && is_poison<T>(bits));
  };
  const ElementMap any_map(domain, 0);  // global_index() is the same for all arrays
  for_each_element("halocline::check_exchange::fill", domain, fields,
                   [=](T& element, const ElementMap::Place& place) {
                     element = std::bit_cast<T>(
                         place.owned ? pattern<T>(any_map.global_index(place), salt) : poison);
                   });

  exchange();

  std::int64_t wrong = 0;
  std::string first;
  for (int a = 0; a < fields.arrays(); ++a) {
    const auto view = array_of(fields, a);
    const ElementMap map(domain, a);
    const auto is_wrong = [=](std::int64_t z, std::int64_t y, std::int64_t e) {
      return !is_right(map, map(z, y, e), std::bit_cast<Bits<T>>(view(z, y, e)));
    };
    const auto count = reduce_array<T, Kokkos::Sum<std::int64_t>>(
        "halocline::check_exchange::count", view,
        [=](std::int64_t z, std::int64_t y, std::int64_t e, std::int64_t& sum) {
          sum += is_wrong(z, y, e);
        });
    wrong += count;
    if (count == 0 || !first.empty()) continue;
    // Only a failure takes this slow scan for the first wrong element.
    const std::int64_t rows = view.extent_int(1), row = view.extent_int(2);
    std::int64_t i = 0;
    while (!is_wrong(i / (rows * row), i / row % rows, i % row)) ++i;
    const auto place = map(i / (rows * row), i / row % rows, i % row);
    const auto got = view(i / (rows * row), i / row % rows, i % row);
    first = "rank " + std::to_string(domain.rank) + (place.owned ? ", owned" : ", ghost of") +
            " point (" + std::to_string(place.x) + ", " + std::to_string(place.y) + ", " +
            std::to_string(place.z) + ") of field " + std::to_string(place.field) +
            (std::isnan(got) ? " was never filled" : " holds another value");
  }

  std::int64_t all_wrong = 0;
  HALOCLINE_MPI(MPI_Allreduce(&wrong, &all_wrong, 1, MPI_INT64_T, MPI_SUM, comm));
  if (all_wrong == 0) return std::nullopt;
  int witness = wrong > 0 ? domain.rank : domain.decomposition.size();
  HALOCLINE_MPI(MPI_Allreduce(MPI_IN_PLACE, &witness, 1, MPI_INT, MPI_MIN, comm));
  int length = static_cast<int>(first.size());
  HALOCLINE_MPI(MPI_Bcast(&length, 1, MPI_INT, witness, comm));
  first.resize(static_cast<std::size_t>(length));
  HALOCLINE_MPI(MPI_Bcast(first.data(), length, MPI_CHAR, witness, comm));
  return std::to_string(all_wrong) + " elements are wrong; the first: " + first;
}

template <class T>
bool ghosts_match(const Domain& domain, const FieldSet<T>& fields, MPI_Comm comm) {
  std::uint64_t difference = 0;
  for (int a = 0; a < fields.arrays(); ++a) {
    const auto view = array_of(fields, a);
    const ElementMap map(domain, a);
    const auto hash_of = [&](const comm::Box& box) {
      const auto& [x, y, z] = box.begin;
      const std::int64_t each = domain.elements_per_point();
      std::uint64_t sum = 0;
      Kokkos::parallel_reduce(
          "halocline::ghosts_match",
          Policy({z, y, x * each},
                 {z + box.extent[2], y + box.extent[1], (x + box.extent[0]) * each}),
          [=](std::int64_t k, std::int64_t j, std::int64_t e, std::uint64_t& part) {
            part += hash(map.global_index(map(k, j, e)), std::bit_cast<Bits<T>>(view(k, j, e)));
          },
          sum);
      return sum;
    };
    comm::for_each_direction([&](comm::Direction direction) {
      if (!domain.decomposition.neighbor(domain.rank, direction)) return;
      if (domain.needed.contains(direction))
        difference += hash_of(domain.halo.ghost_box(direction));
      if (domain.needed.contains(direction.opposite()))
        difference -= hash_of(domain.halo.send_box(direction));
    });
  }
  HALOCLINE_MPI(MPI_Allreduce(MPI_IN_PLACE, &difference, 1, MPI_UINT64_T, MPI_SUM, comm));
  return difference == 0;
}

template <class T>
void set_wave(const Domain& domain, const FieldSet<T>& fields) {
  const auto waves = field_waves(domain, stencil_spec(Stencil::heat3), 0, 0);
  for_each_element("halocline::set_wave", domain, fields,
                   [=](T& element, const ElementMap::Place& place) {
                     element = place.owned ? static_cast<T>(waves(place.field).value(place))
                                           : std::bit_cast<T>(BitsOf<T>::poison);
                   });
}

template <class T>
void set_outer_ghosts(const Domain& domain, const FieldSet<T>& fields, const StencilSpec& spec,
                      double diffusion_number, std::int64_t substeps) {
  if (domain.decomposition.periodic()) return;
  const auto waves = field_waves(domain, spec, diffusion_number, substeps);
  for_each_element(
      "halocline::set_outer_ghosts", domain, fields,
      [=](T& element, const ElementMap::Place& place) {
        if (place.outside)
          element = static_cast<T>(waves(place.field).amplitude * waves(place.field).value(place));
      });
}

template <class T>
WaveCheck check_wave(const Domain& domain, const FieldSet<T>& fields, const StencilSpec& spec,
                     double diffusion_number, std::int64_t substeps, MPI_Comm comm) {
  const auto waves = field_waves(domain, spec, diffusion_number, substeps);
  std::vector<double> deviation(static_cast<std::size_t>(domain.fields));
  const std::int64_t together = domain.elements_per_point();
  for (int field = 0; field < domain.fields; ++field) {
    const int a = domain.layout == Layout::soa ? field : 0;
    const auto view = array_of(fields, a);
    const ElementMap map(domain, a);
    // Each field takes only its own elements, so that all fields together take the time of one
    // pass.
    double worst_of_all = 0;
    Kokkos::parallel_reduce(
        "halocline::check_wave",
        Policy({0, 0, 0}, {view.extent_int(0), view.extent_int(1), view.extent_int(2) / together}),
        [=](std::int64_t z, std::int64_t y, std::int64_t x, double& worst) {
          const auto element = x * together + (field - a);
          const auto place = map(z, y, element);
          if (!place.owned) return;
          const double exact = waves(field).amplitude * waves(field).value(place);
          const double off = Kokkos::abs(static_cast<double>(view(z, y, element)) - exact);
          // This form counts a NaN as infinitely far off.
          if (!(off <= worst)) worst = off == off ? off : std::numeric_limits<double>::infinity();
        },
        Kokkos::Max<double>(worst_of_all));
    deviation[static_cast<std::size_t>(field)] = worst_of_all;
  }
  HALOCLINE_MPI(
      MPI_Allreduce(MPI_IN_PLACE, deviation.data(), domain.fields, MPI_DOUBLE, MPI_MAX, comm));

  double error = 0;
  for (int field = 0; field < domain.fields; ++field) {
    const auto f = static_cast<std::size_t>(field);
    error = std::max(error, deviation[f] / std::abs(waves(f).amplitude));
  }
  const double relative = sizeof(T) == sizeof(double) ? 1e-12 : 1e-5;
  const double roundings =
      2 * static_cast<double>(std::numeric_limits<T>::epsilon()) * static_cast<double>(substeps);
  return {error, std::max(relative, roundings)};
}

template <class T>
std::uint64_t state_hash(const Domain& domain, const FieldSet<T>& fields, MPI_Comm comm) {
  std::uint64_t total = 0;
  for (int a = 0; a < fields.arrays(); ++a) {
    const auto view = array_of(fields, a);
    const ElementMap map(domain, a);
    total += reduce_array<T, Kokkos::Sum<std::uint64_t>>(
        "halocline::state_hash", view,
        [=](std::int64_t z, std::int64_t y, std::int64_t e, std::uint64_t& sum) {
          const auto place = map(z, y, e);
          if (place.owned)
            sum += hash(map.global_index(place), std::bit_cast<Bits<T>>(view(z, y, e)));
        });
  }
  HALOCLINE_MPI(MPI_Allreduce(MPI_IN_PLACE, &total, 1, MPI_UINT64_T, MPI_SUM, comm));
  return total;
}

#define HALOCLINE_INSTANTIATE(T)                                                                \
  template std::optional<std::string> check_exchange(const Domain&, const FieldSet<T>&,         \
                                                     comm::HaloShape, std::uint64_t,            \
                                                     const std::function<void()>&, MPI_Comm);   \
  template bool ghosts_match(const Domain&, const FieldSet<T>&, MPI_Comm);                      \
  template void set_wave(const Domain&, const FieldSet<T>&);                                    \
  template void set_outer_ghosts(const Domain&, const FieldSet<T>&, const StencilSpec&, double, \
                                 std::int64_t);                                                 \
  template WaveCheck check_wave(const Domain&, const FieldSet<T>&, const StencilSpec&, double,  \
                                std::int64_t, MPI_Comm);                                        \
  template std::uint64_t state_hash(const Domain&, const FieldSet<T>&, MPI_Comm);
HALOCLINE_INSTANTIATE(double)
HALOCLINE_INSTANTIATE(float)
#undef HALOCLINE_INSTANTIATE

}  // namespace halocline::app
