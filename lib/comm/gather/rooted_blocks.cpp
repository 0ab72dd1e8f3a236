// SPDX-License-Identifier: BSD-3-Clause
#include "comm/gather/rooted_blocks.hpp"

#include <string>

#include "support/mpi_check.hpp"

namespace halocline::comm::detail {

RootedBlocks::RootedBlocks(const NodeCommunicators& communicators, const RootedBuffers& buffers)
    : is_root_(communicators.nodes().rank() == buffers.root) {
  const int rank = communicators.nodes().rank(), ranks = communicators.nodes().ranks();
  const MPI_Comm comm = communicators.all().get();
  dtype::TypeExprPtr contribution;
  int first_root = buffers.root;
  HALOCLINE_MPI(MPI_Bcast(&first_root, 1, MPI_INT, 0, comm));
  collectively(comm, [&] {
    if (buffers.root != first_root)
      throw ConfigError("the root differs (" + std::to_string(buffers.root) + " on rank " +
                        std::to_string(rank) + ", " + std::to_string(first_root) +
                        " on rank 0): give the same on all ranks");
    if (buffers.root < 0 || buffers.root >= ranks)
      throw ConfigError("no such root (" + std::to_string(buffers.root) + " of " +
                        std::to_string(ranks) + " ranks): give the number of a rank");
    const bool in_place = buffers.buffer == MPI_IN_PLACE;
    if (in_place && !is_root_)
      throw ConfigError("MPI_IN_PLACE on a rank that is not the root (rank " +
                        std::to_string(rank) + "): give it there alone");
    if (is_root_) {
      at_root_ =
          consecutive_blocks(buffers.root_buffer, buffers.root_type, buffers.root_elements, ranks);
      each_at_root_ = dtype::basic_element_count(*at_root_.front().type);
    }
    own_ =
        in_place ? at_root(rank) : first_elements(buffers.buffer, buffers.type, buffers.elements);
    contribution = dtype::element_ranges(*own_.type, {own_.range});
  });
  contributions_ = buffers.same_signatures ? Contributions::same(ranks, *contribution)
                                           : Contributions::exchanged(comm, *contribution);
  collectively(comm, [&] {
    for (int other = 0; is_root_ && other < ranks; ++other)
      check_match(other, contributions_.elements(other), at_root(other).elements());
  });
}

void RootedBlocks::place(const std::vector<int>& ranks, MessageBuffer& passed_on) {
  if (is_root_) {
    for (const int rank : ranks) places_[rank] = at_root(rank);
  } else {
    place_in({ranks.begin() + 1, ranks.end()}, passed_on);
    places_[ranks.front()] = own_;
  }
}

void RootedBlocks::place_in(const std::vector<int>& ranks, MessageBuffer& buffer) {
  std::int64_t bytes = 0, elements = 0;
  for (const int rank : ranks) bytes += contributions_.bytes(rank);
  buffer.resize(static_cast<std::size_t>(bytes));
  const auto sequence = contributions_.sequence(ranks);
  for (const int rank : ranks) {
    const auto end = elements + contributions_.elements(rank);
    places_[rank] = {buffer.data(), sequence, {elements, end}};
    elements = end;
  }
}

ElementBlocks RootedBlocks::of(const std::vector<int>& ranks) const {
  ElementBlocks out;
  for (const int rank : ranks) out.push_back(places_.at(rank));
  return out;
}

}  // namespace halocline::comm::detail
