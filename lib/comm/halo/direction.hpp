// SPDX-License-Identifier: BSD-3-Clause
// Defines the 26 directions of a 3-D halo, and triples in x, y, z order.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>

namespace halocline::comm {

/// Holds extents, offsets or coordinates in x, y, z. x is the fastest axis in memory.
using Int3 = std::array<std::int64_t, 3>;

/// Holds a value for each of the axes x, y, z. One value alone stands for all of them.
template <class T>
struct PerAxis : std::array<T, 3> {
  constexpr PerAxis(T all) : PerAxis(all, all, all) {}
  constexpr PerAxis(T x, T y, T z) : std::array<T, 3>{x, y, z} {}
  constexpr PerAxis(const std::array<T, 3>& values) : std::array<T, 3>(values) {}

  /// Tells if all axes have the value of x.
  constexpr bool all_alike() const { return (*this)[1] == (*this)[0] && (*this)[2] == (*this)[0]; }
};

/// Is the direction to one of the 26 neighbours of a box: each component is -1, 0 or 1, not all are
/// 0.
class Direction {
 public:
  static constexpr int kCount = 26;

  /// Returns the direction number `index` in [0, 26), lexicographic in (z, y, x), without the
  /// centre.
  static constexpr Direction from_index(int index) {
    const int cell = index < kCount / 2 ? index : index + 1;
    return Direction({cell % 3 - 1, cell / 3 % 3 - 1, cell / 9 - 1});
  }

  constexpr int index() const {
    const int cell = static_cast<int>((step_[2] + 1) * 9 + (step_[1] + 1) * 3 + step_[0] + 1);
    return cell < 13 ? cell : cell - 1;
  }

  /// Returns the direction in which the neighbour sees this box.
  constexpr Direction opposite() const { return Direction({-step_[0], -step_[1], -step_[2]}); }

  /// Returns -1, 0 or 1, the component along `axis` (0 = x).
  constexpr std::int64_t operator[](std::size_t axis) const { return step_[axis]; }

  /// Returns the number of axes along which the direction leads: 1 to a face, 2 to an edge, 3 to a
  /// corner.
  constexpr int axes() const {
    return (step_[0] != 0 ? 1 : 0) + (step_[1] != 0 ? 1 : 0) + (step_[2] != 0 ? 1 : 0);
  }

  /// Returns this direction with `step` along `axis`. Precondition: not all components become 0.
  constexpr Direction with(std::size_t axis, std::int64_t step) const {
    Direction out = *this;
    out.step_[axis] = step;
    return out;
  }

  constexpr bool operator==(const Direction&) const = default;

 private:
  constexpr explicit Direction(Int3 step) : step_(step) {}
  Int3 step_;
};

/// Calls `body(Direction)` for all 26 directions, by ascending index.
template <class Body>
constexpr void for_each_direction(Body body) {
  for (int i = 0; i < Direction::kCount; ++i) body(Direction::from_index(i));
}

/// Holds a subset of the 26 directions.
class DirectionSet {
 public:
  static DirectionSet all() { return along_at_most(3); }
  /// Returns the directions that lead along at most `axes` axes: 6, 18 or 26.
  static DirectionSet along_at_most(int axes) {
    DirectionSet out;
    for_each_direction([&](Direction direction) {
      if (direction.axes() <= axes) out.insert(direction);
    });
    return out;
  }

  void insert(Direction direction) { bits_.set(static_cast<std::size_t>(direction.index())); }
  void erase(Direction direction) { bits_.reset(static_cast<std::size_t>(direction.index())); }
  bool contains(Direction direction) const {
    return bits_.test(static_cast<std::size_t>(direction.index()));
  }
  bool contains(const DirectionSet& others) const { return (others.bits_ & ~bits_).none(); }
  int size() const { return static_cast<int>(bits_.count()); }
  /// Returns a mask in which bit i stands for Direction::from_index(i).
  std::uint32_t bits() const { return static_cast<std::uint32_t>(bits_.to_ulong()); }
  bool operator==(const DirectionSet&) const = default;

 private:
  std::bitset<Direction::kCount> bits_;
};

}  // namespace halocline::comm
