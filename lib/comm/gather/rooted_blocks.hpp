// SPDX-License-Identifier: BSD-3-Clause
// Finds the places of the blocks of a gather or scatter on each rank. Internal to lib/comm/gather.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "comm/gather/gather_plan.hpp"
#include "support/message_buffer.hpp"

namespace halocline::comm::detail {

/// Holds the blocks that pass through one rank, by the rank that they belong to.
class RootedBlocks {
 public:
  /// Checks `buffers` on all ranks; GatherPlan states the rules. Collective.
  RootedBlocks(const NodeCommunicators& communicators, const RootedBuffers& buffers);

  bool is_root() const { return is_root_; }
  const Contributions& contributions() const { return contributions_; }
  /// Returns this rank's block, in its own buffer.
  const ElementBlock& own() const { return own_; }
  /// Returns the block of `rank` in the root's buffer. Precondition: is_root().
  const ElementBlock& at_root(int rank) const { return at_root_[static_cast<std::size_t>(rank)]; }
  /// Returns the number of basic elements of one instance of the root's type.
  std::int64_t each_at_root() const { return each_at_root_; }

  /// Chooses where the blocks of `ranks` are for messages. On the root, each block is in its final
  /// place. On other ranks, the own block is in its own buffer. Blocks of other ranks follow each
  /// other in `passed_on`, which is resized to fit.
  void place(const std::vector<int>& ranks, MessageBuffer& passed_on);
  /// Places the blocks of all `ranks` one behind the other in `buffer`, which is resized to fit.
  void place_in(const std::vector<int>& ranks, MessageBuffer& buffer);
  /// Returns the blocks of `ranks` where place() or place_in() has put them.
  ElementBlocks of(const std::vector<int>& ranks) const;

 private:
  bool is_root_;
  ElementBlock own_;
  ElementBlocks at_root_;  // by rank
  std::int64_t each_at_root_ = 0;
  Contributions contributions_;
  std::unordered_map<int, ElementBlock> places_;
};

}  // namespace halocline::comm::detail
