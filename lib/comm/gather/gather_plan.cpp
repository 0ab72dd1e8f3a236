// SPDX-License-Identifier: BSD-3-Clause
#include "comm/gather/gather_plan.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "comm/gather/rooted_blocks.hpp"
#include "dtype/pack/host/host_packer.hpp"
#include "support/mpi_check.hpp"
#include "support/narrow.hpp"

namespace halocline::comm {

using detail::RootedBlocks;

namespace {

// Returns all ranks in the order of a gather over the nodes: node by node.
std::vector<int> ranks_by_node(const NodeHierarchy& nodes) {
  std::vector<int> out;
  for (int node = 0; node < nodes.nodes(); ++node) {
    const auto& ranks = nodes.ranks_of(node);
    out.insert(out.end(), ranks.begin(), ranks.end());
  }
  return out;
}

std::int64_t instances(std::int64_t elements, std::int64_t each) {
  return whole_instances(elements, each, "MPI_Gather cannot do that, zero-copy can");
}

// Returns one type for the blocks of `ranks` in the root's buffer, in this order. For whole
// instances, this is the type that users of MPI would write.
dtype::TypeExprPtr type_in_order(const RootedBlocks& blocks, const std::vector<int>& ranks) {
  const auto& type = blocks.at_root(ranks.front()).type;
  const auto each = std::max<std::int64_t>(blocks.each_at_root(), 1);
  std::vector<dtype::ElementRange> ranges;
  dtype::Indexed indexed{{}, {}, type};
  bool whole = true, equal = true;
  for (const int rank : ranks) {
    const auto& range = ranges.emplace_back(blocks.at_root(rank).range);
    whole = whole && range.first % each == 0 && range.last % each == 0;
    indexed.displacements.push_back(range.first / each);
    indexed.blocklengths.push_back((range.last - range.first) / each);
    equal = equal && indexed.blocklengths.back() == indexed.blocklengths.front();
  }
  if (!whole) return element_ranges(*type, ranges);
  if (!equal) return dtype::type(std::move(indexed));
  return dtype::type(
      dtype::IndexedBlock{indexed.blocklengths.front(), std::move(indexed.displacements), type});
}

// Collective.
std::int64_t piece_of(const RootedBlocks& blocks, const GatherOptions& options, MPI_Comm comm) {
  std::int64_t out = 0;
  collectively(comm, [&] {
    const auto& all = blocks.contributions();
    out = elements_of_piece(all.elements_of_all(), all.bytes_of_all(), options);
  });
  return out;
}

// Returns a call of the vendor MPI's own gather.
std::function<void()> vendor_gather(const NodeCommunicators& communicators,
                                    const RootedBuffers& buffers, const RootedBlocks& blocks) {
  const MPI_Comm comm = communicators.all().get();
  const bool in_place = blocks.is_root() && buffers.buffer == MPI_IN_PLACE;
  int count = 0;
  std::vector<int> counts, displacements;
  // The plan keeps duplicates, since the caller may free its types before a run.
  auto own_type = std::make_shared<dtype::Datatype>(), root_type = own_type;
  collectively(comm, [&] {
    if (!in_place) own_type = std::make_shared<dtype::Datatype>(make_datatype(*blocks.own().type));
    if (blocks.is_root())
      root_type = std::make_shared<dtype::Datatype>(make_datatype(*blocks.at_root(0).type));
    if (!in_place)
      count = checked_int(
          instances(buffers.elements, dtype::basic_element_count(*blocks.own().type)), "count");
    for (int rank = 0; blocks.is_root() && rank < communicators.nodes().ranks(); ++rank) {
      const auto& block = blocks.at_root(rank);
      displacements.push_back(
          checked_int(instances(block.range.first, blocks.each_at_root()), "displacement"));
      counts.push_back(checked_int(instances(block.elements(), blocks.each_at_root()), "count"));
    }
  });
  if (counts.empty()) counts.push_back(0);
  return [=, buffer = buffers.buffer, root_buffer = buffers.root_buffer, root = buffers.root,
          regular = buffers.same_signatures] {
    if (regular)
      HALOCLINE_MPI(MPI_Gather(buffer, count, own_type->get(), root_buffer, counts.front(),
                               root_type->get(), root, comm));
    else
      HALOCLINE_MPI(MPI_Gatherv(buffer, count, own_type->get(), root_buffer, counts.data(),
                                displacements.data(), root_type->get(), root, comm));
  };
}

}  // namespace

GatherPlan::GatherPlan(std::shared_ptr<NodeCommunicators> communicators,
                       const RootedBuffers& buffers, GatherVariant variant,
                       const GatherOptions& options)
    : CollectivePlan(std::move(communicators)) {
  RootedBlocks blocks(*communicators_, buffers);
  forms_ = choose_forms(nodes(), blocks.contributions().bytes_of_all(), options);
  const auto piece = piece_of(blocks, options, comm());
  if (variant == GatherVariant::mpi_gather) {
    last_ = vendor_gather(*communicators_, buffers, blocks);
    return;
  }
  const auto order = ranks_by_node(nodes());
  const bool in_order = std::is_sorted(order.begin(), order.end());
  if (is_forced(variant) && !in_order)
    throw ConfigError(
        "forced reordering of ranks that are not in the order of their nodes (it shows what that "
        "costs where none is needed): give an ordered communicator");
  const bool moves_again = reorders(variant, in_order);

  schedule_.emplace(piece);
  const auto tree = rooted_tree(*communicators_, buffers.root, forms_);
  set_up([&] {
    auto& kept = kept_.emplace_back();
    if (moves_again && blocks.is_root())
      blocks.place_in(order, kept);
    else
      blocks.place(tree.ranks, kept);
    for (const auto& child : tree.children) schedule_->receive(child.link, blocks.of(child.ranks));
    if (tree.parent) {
      schedule_->send(*tree.parent, blocks.of(tree.ranks));
    } else {
      if (moves_again || buffers.buffer != MPI_IN_PLACE)
        schedule_->copy({blocks.own()}, blocks.of({buffers.root}));
      if (moves_again) reorder_by(variant, blocks, order, kept);
    }
  });
}

void GatherPlan::reorder_by(GatherVariant variant, const RootedBlocks& blocks,
                            const std::vector<int>& order, const MessageBuffer& unordered) {
  auto* const buffer = blocks.at_root(0).buffer;
  auto to = type_in_order(blocks, order);
  if (variant == GatherVariant::hier_forced_contiguous)
    to = element_ranges(*blocks.at_root(0).type, {{0, blocks.at_root(order.back()).range.last}});
  const auto bytes = std::ssize(unordered);
  const auto* const from = unordered.data();
  if (bytes == 0) return;  // MPI_Unpack may refuse an empty message
  const auto count = [this, bytes] { traffic_.reordered_bytes += bytes; };

  if (variant == GatherVariant::hier_plan) {
    last_ = [=, this, plan = dtype::make_plan(*to)] {
      dtype::HostPacker().unpack(plan, from, buffer, 1);
      count();
    };
    return;
  }
  reorder_to_ = make_datatype(*to);
  if (variant == GatherVariant::hier_sendrecv) {
    reorder_from_ = make_datatype(*blocks.contributions().sequence(order));
    last_ = [=, this] {
      HALOCLINE_MPI(MPI_Sendrecv(from, 1, reorder_from_.get(), nodes().rank(), 0, buffer, 1,
                                 reorder_to_.get(), nodes().rank(), 0, comm(), MPI_STATUS_IGNORE));
      count();
    };
    return;
  }
  last_ = [=, this, size = checked_int(bytes, "size of all blocks")] {
    int position = 0;
    HALOCLINE_MPI(MPI_Unpack(from, size, &position, buffer, 1, reorder_to_.get(), comm()));
    count();
  };
}

ScatterPlan::ScatterPlan(std::shared_ptr<NodeCommunicators> communicators,
                         const RootedBuffers& buffers, const GatherOptions& options)
    : CollectivePlan(std::move(communicators)) {
  RootedBlocks blocks(*communicators_, buffers);
  forms_ = choose_forms(nodes(), blocks.contributions().bytes_of_all(), options);
  schedule_.emplace(piece_of(blocks, options, comm()));
  const auto tree = rooted_tree(*communicators_, buffers.root, forms_);
  set_up([&] {
    blocks.place(tree.ranks, kept_.emplace_back());
    if (tree.parent) schedule_->receive(*tree.parent, blocks.of(tree.ranks));
    for (const auto& child : tree.children) schedule_->send(child.link, blocks.of(child.ranks));
    if (blocks.is_root() && buffers.buffer != MPI_IN_PLACE)
      schedule_->copy(blocks.of({buffers.root}), {blocks.own()});
  });
}

}  // namespace halocline::comm
