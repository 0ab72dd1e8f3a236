// SPDX-License-Identifier: BSD-3-Clause
#include "comm/gather/alltoall_plan.hpp"

#include <numeric>
#include <string>
#include <utility>

#include "comm/gather/slots.hpp"
#include "dtype/reconstruct/signature.hpp"
#include "support/mpi_check.hpp"

namespace halocline::comm {

// ---- Common to all plans

AlltoallPlan::AlltoallPlan(std::shared_ptr<NodeCommunicators> communicators,
                           const AlltoallBuffers& buffers)
    : CollectivePlan(std::move(communicators)) {
  std::vector<std::int64_t> sent, arriving(static_cast<std::size_t>(ranks()));
  collectively(comm(), [&] {
    if (buffers.sendbuf == MPI_IN_PLACE || buffers.recvbuf == MPI_IN_PLACE)
      throw ConfigError("MPI_IN_PLACE in an all-to-all (rank " + std::to_string(rank()) +
                        "): give two buffers");
    if (buffers.most_elements < 1 || buffers.most_elements > Schedule::kMostElements)
      throw ConfigError("messages cannot be divided so (" + std::to_string(buffers.most_elements) +
                        " elements): give 1 to " + std::to_string(Schedule::kMostElements));
    auto* const sendbuf = const_cast<void*>(buffers.sendbuf);  // NOLINT(*-const-cast): only sent
    sends_ = consecutive_blocks(sendbuf, buffers.sendtype, buffers.send_elements, ranks());
    receives_ =
        consecutive_blocks(buffers.recvbuf, buffers.recvtype, buffers.recv_elements, ranks());
    for (auto& block : sends_) {
      block.only_sent = true;
      sent.push_back(block.elements());
    }
  });
  HALOCLINE_MPI(MPI_Alltoall(sent.data(), 1, MPI_INT64_T, arriving.data(), 1, MPI_INT64_T, comm()));
  collectively(comm(), [&] {
    for (int from = 0; from < ranks(); ++from) {
      const auto at = static_cast<std::size_t>(from);
      check_match(from, arriving[at], receives_[at].elements());
    }
  });
  schedule_.emplace(buffers.most_elements);
}

void AlltoallPlan::copy_own() {
  const auto own = static_cast<std::size_t>(rank());
  schedule_->copy({sends_[own]}, {receives_[own]});
}

Link AlltoallPlan::link(std::int64_t rank) const {
  const auto partner = static_cast<int>((rank + ranks()) % ranks());
  return {comm(), partner, !nodes().same_node(partner)};
}

Contributions AlltoallPlan::one_block() const {
  dtype::TypeExprPtr first;
  collectively(comm(), [&] {
    const auto& type = *sends_.front().type;
    const auto elements = sends_.front().elements();
    const auto cut = [&](std::int64_t i) {
      return element_ranges(type, {{i * elements, (i + 1) * elements}});
    };
    first = cut(0);
    const auto signature = dtype::signature_hash(*first);
    // Blocks that begin at the same element of an instance have the same signature.
    const auto each = dtype::basic_element_count(type);
    const auto phases = elements == 0 ? 1 : each / std::gcd(each, elements);
    for (std::int64_t i = 0; i < ranks(); ++i)
      if (sends_[static_cast<std::size_t>(i)].elements() != elements ||
          (i < phases && dtype::signature_hash(*cut(i)) != signature))
        throw ConfigError("blocks are not alike (those for rank 0 and rank " + std::to_string(i) +
                          "): use a plan for irregular all-to-all");
  });
  auto out = Contributions::exchanged(comm(), *first);
  if (!out.all_same())
    throw ConfigError(
        "blocks are not alike (ranks differ in theirs): use a plan for irregular all-to-all");
  return out;
}

// ---- Direct

DirectAlltoallPlan::DirectAlltoallPlan(std::shared_ptr<NodeCommunicators> communicators,
                                       const AlltoallBuffers& buffers)
    : AlltoallPlan(std::move(communicators), buffers) {
  set_up([&] {
    copy_own();
    for (int distance = 1; distance < ranks(); ++distance) {
      const auto to = link(rank() + distance), from = link(rank() - distance);
      schedule_->receive(from, {receives_[static_cast<std::size_t>(from.rank)]});
      schedule_->send(to, {sends_[static_cast<std::size_t>(to.rank)]});
    }
  });
}

// ---- Through the first rank of each node

namespace {

ElementBlocks of(const ElementBlocks& blocks, const std::vector<int>& ranks) {
  ElementBlocks out;
  for (const int rank : ranks) out.push_back(blocks[static_cast<std::size_t>(rank)]);
  return out;
}

}  // namespace

HierarchicalAlltoallPlan::HierarchicalAlltoallPlan(std::shared_ptr<NodeCommunicators> communicators,
                                                   const AlltoallBuffers& buffers)
    : AlltoallPlan(std::move(communicators), buffers) {
  const auto block = one_block();
  set_up([&] {
    copy_own();
    const auto& here = nodes().ranks_of(nodes().node_of(rank()));
    if (rank() == here.front())
      lead({here.begin() + 1, here.end()}, block);
    else
      follow(here);
  });
}

// Adds the messages of a rank that is not the first of `here`, the ranks of its node.
void HierarchicalAlltoallPlan::follow(const std::vector<int>& here) {
  const int leader = here.front(), node = nodes().node_of(rank());
  const auto with_leader = [&](const ElementBlocks& blocks) {
    auto out = of(blocks, {leader});
    for (int other = 0; other < nodes().nodes(); ++other)
      if (other != node) append(out, of(blocks, nodes().ranks_of(other)));
    return out;
  };
  schedule_->send(link(leader), with_leader(sends_));
  for (auto other = here.begin() + 1; other != here.end(); ++other) {
    if (*other == rank()) continue;
    schedule_->receive(link(*other), of(receives_, {*other}));
    schedule_->send(link(*other), of(sends_, {*other}));
  }
  schedule_->receive(link(leader), with_leader(receives_));
}

// Adds the messages of the first rank of a node. `outgoing` holds a row of blocks for each pair of
// another node and a follower: from the follower for the node's ranks. `incoming` holds a row for
// each rank of other nodes: its blocks for all followers.
void HierarchicalAlltoallPlan::lead(const std::vector<int>& followers, const Contributions& block) {
  std::vector<int> others;          // other nodes
  std::vector<std::int64_t> sizes;  // ranks of each of these nodes
  for (int other = 0; other < nodes().nodes(); ++other)
    if (!nodes().same_node(nodes().ranks_of(other).front())) {
      others.push_back(other);
      sizes.push_back(std::ssize(nodes().ranks_of(other)));
    }
  const auto rows = std::ssize(followers);
  const auto elsewhere = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
  const Slots outgoing(kept_.emplace_back(), rows * elsewhere, block.sequence({0}), block.bytes(0));
  const Slots incoming(kept_.emplace_back(), rows * elsewhere, block.sequence({0}), block.bytes(0));
  const auto stretched = rows == 0 ? std::vector<dtype::TypeExprPtr>{}
                                   : dtype::stretched_vectors(rows, sizes, outgoing.slot());
  for (std::int64_t row = 0; row < rows; ++row) {
    const int from = followers[static_cast<std::size_t>(row)];
    auto blocks = of(receives_, {from});
    blocks.push_back(outgoing.from(0, stretched[static_cast<std::size_t>(row)]));
    schedule_->receive(link(from), blocks);
  }

  // A message to a node has this rank's blocks, then the followers' blocks for the node's first
  // rank. The followers' blocks for the node's other ranks come last.
  std::int64_t before = 0;  // ranks of the nodes before this node
  for (std::size_t i = 0; i < others.size(); ++i) {
    const auto& ranks = nodes().ranks_of(others[i]);
    const auto size = sizes[i];
    const auto to = link(ranks.front());
    auto sent = of(sends_, ranks);
    for (const auto& [first, count] :
         {std::pair{std::int64_t{0}, std::int64_t{1}}, std::pair{std::int64_t{1}, size - 1}})
      for (std::int64_t row = 0; row < rows; ++row)
        sent.push_back(outgoing.at(before * rows + row * size + first, count));
    schedule_->send(to, sent);

    auto received = of(receives_, {ranks.front()});
    received.push_back(incoming.at(before * rows, rows));
    append(received, of(receives_, {ranks.begin() + 1, ranks.end()}));
    received.push_back(incoming.at((before + 1) * rows, (size - 1) * rows));
    schedule_->receive(to, received);
    before += size;
  }

  for (std::int64_t row = 0; row < rows; ++row) {
    const int to = followers[static_cast<std::size_t>(row)];
    auto blocks = of(sends_, {to});
    for (std::int64_t from = 0; from < elsewhere; ++from)
      blocks.push_back(incoming.at(from * rows + row, 1));
    schedule_->send(link(to), blocks);
  }
}

}  // namespace halocline::comm
