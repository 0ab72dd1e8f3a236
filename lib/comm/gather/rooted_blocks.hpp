// SPDX-License-Identifier: BSD-3-Clause
// Where the blocks of a gather or scatter are on each rank. Internal to lib/comm/gather.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "comm/gather/gather_plan.hpp"
#include "dtype/support/message_buffer.hpp"

namespace halocline::comm::detail {

/// The blocks that pass through one rank, by rank.
class RootedBlocks {
 public:
  /// Checks `buffers` on all ranks, see GatherPlan. Collective.
  RootedBlocks(const NodeCommunicators& communicators, const RootedBuffers& buffers);

  bool is_root() const { return is_root_; }
  const Contributions& contributions() const { return contributions_; }
  /// This rank's own, in its own buffer.
  const ElementBlock& own() const { return own_; }
  /// In the root's buffer. Precondition: is_root().
  const ElementBlock& at_root(int rank) const { return at_root_[static_cast<std::size_t>(rank)]; }
  /// Basic elements of one instance of the root's type.
  std::int64_t each_at_root() const { return each_at_root_; }

  /// Where `ranks` are for messages: at the root in their place, elsewhere in its own buffer, and
  /// those of others one behind the other in `passed_on`, which is made as long as that takes.
  void place(const std::vector<int>& ranks, dtype::MessageBuffer& passed_on);
  /// Where `ranks` are instead: all of them, one behind the other in this buffer.
  void place_in(const std::vector<int>& ranks, dtype::MessageBuffer& buffer);
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
