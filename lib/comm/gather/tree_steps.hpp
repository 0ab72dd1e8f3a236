// SPDX-License-Identifier: BSD-3-Clause
// Who passes whose blocks to whom when the ranks of one level are gathered at a root.
//
// Best peer: Open MPI chooses among linear, linear with synchronisation and binomial trees inside
// of one function each; here a form is a list of steps, which the analysis, the tests and both
// directions (gather, scatter) read alike.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace halocline::comm {

enum class TreeForm {
  linear,   ///< everybody to the root: no block travels twice
  binomial  ///< ceil(log2 n) rounds [TR14 section 2]
};

inline constexpr std::array kTreeForms{std::pair{TreeForm::linear, "linear"},
                                       std::pair{TreeForm::binomial, "binomial"}};

/// The form that costs less for so many ranks and blocks of so many bytes: latency decides below
/// kBinomialBytes for a message, and above that nothing should travel twice.
TreeForm choose_form(int size, std::int64_t block_bytes);
inline constexpr std::int64_t kBinomialBytes = 4096;

/// Blocks of consecutive positions. The position of a rank is its distance from the root, (rank -
/// root) mod size: the root has 0.
struct Positions {
  int first, last;
  bool operator==(const Positions&) const = default;
};

/// A rank's part in a gather: it receives, in this order, and passes what it has then, its own
/// block first, to its parent.
struct TreeSteps {
  struct Child {
    int rank;
    Positions blocks;
  };
  std::vector<Child> children;  ///< their blocks follow each other, and the rank's own
  std::optional<int> parent;    ///< none: the root
  Positions blocks;             ///< of this rank and all below it
};

/// Preconditions: 0 <= root, rank < size. Local; O(log size), linear at the root O(size).
TreeSteps tree_steps(TreeForm form, int size, int root, int rank);

/// After how many rounds the root has all blocks, if a rank sends or receives one message in each.
int tree_rounds(TreeForm form, int size);

}  // namespace halocline::comm
