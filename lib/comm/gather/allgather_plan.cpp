// SPDX-License-Identifier: BSD-3-Clause
#include "comm/gather/allgather_plan.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "dtype/type_tree.hpp"

namespace halocline::comm {

namespace {

/// Adds the messages of one rank to a schedule.
class Phases {
 public:
  Phases(const NodeCommunicators& communicators, const AllgatherBuffers& buffers,
         const GatherOptions& options, std::optional<Schedule>& schedule)
      : nodes_(communicators.nodes()), local_(communicators.local()), schedule_(schedule) {
    const int rank = nodes_.rank();
    collectively(communicators.all().get(), [&] {
      received_ = consecutive_blocks(buffers.recvbuf, buffers.recvtype, buffers.recv_elements,
                                     nodes_.ranks());
      own_ = of(rank);
      in_place_ = buffers.sendbuf == MPI_IN_PLACE;
      // The cast is safe, since the buffer is only sent.
      auto* const own = const_cast<void*>(buffers.sendbuf);  // NOLINT(*-const-cast)
      if (!in_place_) own_ = first_elements(own, buffers.sendtype, buffers.send_elements);
      own_.only_sent = !in_place_;
      check_match(rank, own_.elements(), of(rank).elements());
      const auto elements = received_.back().range.last;
      const auto all = element_ranges(*received_.front().type, {{0, elements}});
      bytes_ = dtype::type_bounds(*all).size;
      schedule_.emplace(elements_of_piece(elements, bytes_, options));
    });
  }

  std::int64_t bytes() const { return bytes_; }  // of all blocks together

  // Gathers to the first rank of the node.
  void gather(TreeForm form) {
    const auto steps = tree_steps(form, local_.size(), 0, local_.rank());
    for (const auto& child : steps.children) schedule_->receive(link(child.rank), at(child.blocks));
    if (!in_place_) schedule_->copy({own_}, {of(nodes_.rank())});
    if (steps.parent) {
      ElementBlocks own_first{own_};
      for (const auto& block : at({steps.blocks.first + 1, steps.blocks.last}))
        own_first.push_back(block);
      schedule_->send(link(*steps.parent), own_first);
    }
  }

  // Exchanges blocks among the first ranks of all nodes.
  void exchange(TreeForm form, MPI_Comm bridge) {
    const int nodes = nodes_.nodes(), node = nodes_.node_of(nodes_.rank());
    const auto partner = [&](int distance) {
      return Link{bridge, (node + distance + nodes) % nodes, true};
    };
    if (form == TreeForm::linear) {
      for (int distance = 1; distance < nodes; ++distance) {
        schedule_->receive(partner(-distance), of_nodes(node - distance, 1));
        schedule_->send(partner(distance), of_nodes(node, 1));
      }
      return;
    }
    // Blocks of the nodes [node, node + distance) are here. Each step doubles them, or brings the
    // rest.
    for (int distance = 1; distance < nodes; distance *= 2) {
      const int more = std::min(distance, nodes - distance);
      schedule_->receive(partner(distance), of_nodes(node + distance, more));
      schedule_->send(partner(-distance), of_nodes(node, more));
    }
  }

  // Broadcasts from the first rank of the node. A rank lacks the blocks that are not below it.
  void broadcast(TreeForm form) {
    const auto steps = tree_steps(form, local_.size(), 0, local_.rank());
    if (steps.parent) schedule_->receive(link(*steps.parent), but(steps.blocks));
    for (const auto& child : steps.children) schedule_->send(link(child.rank), but(child.blocks));
  }

 private:
  const ElementBlock& of(int rank) const { return received_[static_cast<std::size_t>(rank)]; }
  Link link(int local_rank) const { return {local_.get(), local_rank, false}; }
  const std::vector<int>& here() const { return nodes_.ranks_of(nodes_.node_of(nodes_.rank())); }

  // Returns the blocks of the ranks of this node at `positions`.
  ElementBlocks at(const Positions& positions) const {
    ElementBlocks out;
    for (auto i = positions.first; i < positions.last; ++i)
      out.push_back(of(here()[static_cast<std::size_t>(i)]));
    return out;
  }
  // Returns the blocks of all ranks but the ranks of this node at `positions`.
  ElementBlocks but(const Positions& positions) const {
    const auto begin = here().begin() + positions.first, end = here().begin() + positions.last;
    ElementBlocks out;
    for (int rank = 0; rank < nodes_.ranks(); ++rank)
      if (!std::binary_search(begin, end, rank)) out.push_back(of(rank));
    return out;
  }
  // Returns the blocks of all ranks of `count` nodes from `first` on, modulo the number of nodes.
  ElementBlocks of_nodes(int first, int count) const {
    ElementBlocks out;
    for (int i = 0; i < count; ++i)
      for (const int rank : nodes_.ranks_of((first + i + nodes_.nodes()) % nodes_.nodes()))
        out.push_back(of(rank));
    return out;
  }

  const NodeHierarchy& nodes_;
  const Communicator& local_;
  std::optional<Schedule>& schedule_;
  ElementBlocks received_;  // by rank
  ElementBlock own_;
  std::int64_t bytes_ = 0;
  bool in_place_ = false;
};

}  // namespace

AllgatherPlan::AllgatherPlan(std::shared_ptr<NodeCommunicators> communicators,
                             const AllgatherBuffers& buffers, const GatherOptions& options)
    : CollectivePlan(std::move(communicators)) {
  Phases phases(*communicators_, buffers, options, schedule_);
  forms_ = choose_forms(nodes(), phases.bytes(), options);
  const MPI_Comm bridge = communicators_->bridge(nodes().ranks_of(0).front());
  set_up([&] {
    phases.gather(forms_.in_node);
    if (bridge != MPI_COMM_NULL) phases.exchange(forms_.bridge, bridge);
    phases.broadcast(forms_.in_node);
  });
}

}  // namespace halocline::comm
