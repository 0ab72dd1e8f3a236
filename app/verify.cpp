// SPDX-License-Identifier: BSD-3-Clause
#include "verify.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
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
  const auto poison = poison_of<T>(domain.rank);
  const ElementMap any_map(domain, 0);       // global_index() is the same for all arrays
  for (int a = 0; a < fields.arrays(); ++a)  // the padding of rows, too
    Kokkos::deep_copy(array_of(fields, a), std::bit_cast<T>(poison));
  for_each_element("halocline::check_exchange::fill", domain, fields,
                   [=](T& element, const ElementMap::Place& place) {
                     if (place.owned)
                       element = std::bit_cast<T>(pattern<T>(any_map.global_index(place), salt));
                   });

  exchange();

  std::int64_t wrong = 0;
  std::string first;
  const auto stored_row = domain.halo.stored()[0] * domain.elements_per_point();
  for (int a = 0; a < fields.arrays(); ++a) {
    const auto view = array_of(fields, a);
    const ElementMap map(domain, a);
    const auto& needs = domain.needs[static_cast<std::size_t>(a)];
    const auto needed = needs.bits(), filled = comm::filled_directions(needs, shape).bits();
    const auto is_wrong = [=](std::int64_t z, std::int64_t y, std::int64_t e) {
      const auto place = map(z, y, e);
      const auto bits = std::bit_cast<Bits<T>>(view(z, y, e));
      if (e >= stored_row) return bits != poison;
      const auto is_in = [&](std::uint32_t set) { return (set >> place.ghost & 1) != 0; };
      if (!place.owned && (place.outside || !is_in(filled))) return bits != poison;
      return bits != pattern<T>(map.global_index(place), salt) &&
             (place.owned || is_in(needed) || !is_poison<T>(bits));
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
    const bool is_padding = i % row >= stored_row;
    const auto got = view(i / (rows * row), i / row % rows, i % row);
    first = "rank " + std::to_string(domain.rank) +
            (is_padding    ? ", padding near"
             : place.owned ? ", owned"
                           : ", ghost of") +
            " point (" + std::to_string(place.x) + ", " + std::to_string(place.y) + ", " +
            std::to_string(place.z) + ") of field " + std::to_string(place.field) +
            (std::isnan(got) && !is_padding ? " was never filled" : " holds another value");
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
          HostPolicy({z, y, x * each},
                     {z + box.extent[2], y + box.extent[1], (x + box.extent[0]) * each}),
          [=](std::int64_t k, std::int64_t j, std::int64_t e, std::uint64_t& part) {
            part += hash(map.global_index(map(k, j, e)), std::bit_cast<Bits<T>>(view(k, j, e)));
          },
          sum);
      return sum;
    };
    comm::for_each_direction([&](comm::Direction direction) {
      const auto& needs = domain.needs[static_cast<std::size_t>(a)];
      if (!domain.decomposition.neighbor(domain.rank, direction)) return;
      if (needs.contains(direction)) difference += hash_of(domain.halo.ghost_box(direction));
      if (needs.contains(direction.opposite()))
        difference -= hash_of(domain.halo.send_box(direction));
    });
  }
  HALOCLINE_MPI(MPI_Allreduce(MPI_IN_PLACE, &difference, 1, MPI_UINT64_T, MPI_SUM, comm));
  return difference == 0;
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

template <class T>
std::uint64_t part_of_state_hash(std::span<const T> values, std::int64_t first, int field,
                                 int fields) {
  std::uint64_t sum = 0;
  for (const auto value : values)
    sum +=
        hash(static_cast<std::uint64_t>(first++ * fields + field), std::bit_cast<Bits<T>>(value));
  return sum;
}

#define HALOCLINE_INSTANTIATE(T)                                                              \
  template std::optional<std::string> check_exchange(const Domain&, const FieldSet<T>&,       \
                                                     comm::HaloShape, std::uint64_t,          \
                                                     const std::function<void()>&, MPI_Comm); \
  template bool ghosts_match(const Domain&, const FieldSet<T>&, MPI_Comm);                    \
  template std::uint64_t state_hash(const Domain&, const FieldSet<T>&, MPI_Comm);             \
  template std::uint64_t part_of_state_hash(std::span<const T>, std::int64_t, int, int);
HALOCLINE_INSTANTIATE(double)
HALOCLINE_INSTANTIATE(float)
#undef HALOCLINE_INSTANTIATE

}  // namespace halocline::app
