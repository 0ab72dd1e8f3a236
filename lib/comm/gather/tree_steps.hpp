// SPDX-License-Identifier: BSD-3-Clause
// Says who passes which blocks to whom when the ranks of one level are gathered at a root.
//
// Best peer: Open MPI chooses among linear, linear with synchronisation and binomial trees, with
// one function for each. Here a form is a list of steps. The analysis, the tests, gather and
// scatter read the same list.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace halocline::comm {

enum class TreeForm {
  linear,   ///< all ranks send to the root: no block travels twice
  binomial  ///< ceil(log2 n) rounds [TR14 section 2]
};

inline constexpr std::array kTreeForms{std::pair{TreeForm::linear, "linear"},
                                       std::pair{TreeForm::binomial, "binomial"}};

/// Chooses the form that costs less for `size` ranks and blocks of `block_bytes` bytes. Below
/// kBinomialBytes a block, latency decides. Above, no block should travel twice.
TreeForm choose_form(int size, std::int64_t block_bytes);
inline constexpr std::int64_t kBinomialBytes = 4096;

/// Describes blocks of consecutive positions. The position of a rank is its distance from the root,
/// (rank - root) mod size; the root has position 0.
struct Positions {
  int first, last;
  bool operator==(const Positions&) const = default;
};

/// Describes a rank's part in a gather. The rank receives from its children in this order, and then
/// sends all its blocks to its parent, its own block first.
struct TreeSteps {
  struct Child {
    int rank;
    Positions blocks;
  };
  std::vector<Child> children;  ///< their blocks follow the rank's own block, and each other
  std::optional<int> parent;    ///< none at the root
  Positions blocks;             ///< blocks of this rank and all ranks below it
};

/// Returns the part of `rank` in a tree of `size` ranks. Preconditions: 0 <= root, rank < size.
/// Local. O(log size), but O(size) at the root of a linear tree.
TreeSteps tree_steps(TreeForm form, int size, int root, int rank);

/// Returns the number of rounds until the root has all blocks, if a rank sends or receives one
/// message in each round.
int tree_rounds(TreeForm form, int size);

}  // namespace halocline::comm
