// SPDX-License-Identifier: BSD-3-Clause
// Plans all-to-all exchanges by datatypes alone, set up once and run often. Three plans use the new
// constructors of [TR14 section 5]. The direct plan makes MPI_Alltoallw unnecessary [TR14 section
// 6].
//
// Best peer: MPI libraries rotate and pack blocks in temporary buffers, round by round. Here a
// block is never touched between two messages.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "comm/gather/collective_plan.hpp"
#include "comm/gather/node_communicators.hpp"
#include "comm/gather/schedule.hpp"

namespace halocline::comm {

/// Describes what a rank sends to and receives from every rank, in basic elements of endless
/// repetitions of types. The block of rank i has elements[i] elements, behind the blocks of the
/// ranks before it. A single number counts for every rank. The buffers do not overlap; MPI_IN_PLACE
/// is not allowed.
struct AlltoallBuffers {
  const void* sendbuf;
  std::vector<std::int64_t> send_elements;
  MPI_Datatype sendtype;
  void* recvbuf;
  std::vector<std::int64_t> recv_elements;
  MPI_Datatype recvtype;
  /// Divides messages of more elements into pieces that move on as they arrive. The same on all
  /// ranks.
  std::int64_t most_elements = Schedule::kMostElements;
};

/// Holds what all all-to-all plans share. Constructors are collective. Their cost is given in
/// blocks. Types are cut for each message; dtype::element_ranges() says at which cost.
/// \throws ConfigError on all ranks for numbers that are negative or do not match, and for types
/// that Halocline does not know.
class AlltoallPlan : public CollectivePlan {
 protected:
  AlltoallPlan(std::shared_ptr<NodeCommunicators> communicators, const AlltoallBuffers& buffers);
  ~AlltoallPlan() = default;

  int rank() const { return nodes().rank(); }
  int ranks() const { return nodes().ranks(); }
  /// Returns the link to a rank, modulo the number of ranks.
  Link link(std::int64_t rank) const;
  /// Returns the signature that all blocks of all ranks have. Collective.
  /// \throws ConfigError on all ranks if the blocks have several signatures.
  Contributions one_block() const;

  /// Copies the block of this rank to itself.
  void copy_own();

  ElementBlocks sends_, receives_;  // by rank
};

/// Exchanges blocks by one message to each other rank: MPI_Alltoallv counted in elements. With a
/// type whose repetition places every block, it does what MPI_Alltoallw does with arrays of types
/// [TR14 section 6]. O(ranks).
class DirectAlltoallPlan final : public AlltoallPlan {
 public:
  DirectAlltoallPlan(std::shared_ptr<NodeCommunicators> communicators,
                     const AlltoallBuffers& buffers);
};

/// Exchanges equal blocks in ceil(log2 ranks) rounds: MPI_Alltoall by Bruck et al., as cited by
/// [TR14]. Block i goes to the rank i places after this one. It moves on by 2^k ranks in round k if
/// bit k of i is set.
///
/// A block first leaves from the send buffer, where the blocks of a round are a circular vector. It
/// waits for further rounds in slot i of its last round. Slots have signature types, and the slots
/// of a round are bounded vectors. In the end it arrives in the receive buffer [TR14 section 5;
/// errata C.6].
///
/// All numbers must be equal. Blocks must be whole instances of their types and have one signature.
/// O(ranks log ranks) blocks and slots.
class BruckAlltoallPlan final : public AlltoallPlan {
 public:
  BruckAlltoallPlan(std::shared_ptr<NodeCommunicators> communicators,
                    const AlltoallBuffers& buffers);
};

/// Exchanges blocks of similar sizes ("not-quite-regular") in ceil(log2 ranks) rounds, as
/// BruckAlltoallPlan does with equal blocks. Each slot is as large as the largest block of any
/// rank, and is a bucket of a bucket type. All elements of all ranks must have one basic type. The
/// constructor sends the sizes ahead, by the same rounds. O(ranks log ranks) blocks and slots.
class BucketAlltoallPlan final : public AlltoallPlan {
 public:
  BucketAlltoallPlan(std::shared_ptr<NodeCommunicators> communicators,
                     const AlltoallBuffers& buffers);
};

/// Exchanges blocks through the first rank of each node: MPI_Alltoall where only first ranks talk
/// to other nodes, by one message to each. Ranks of one node exchange their own blocks directly.
///
/// A first rank receives the blocks of its node's ranks as stretched vectors, so that blocks for
/// one node lie together. Nodes may be of any sizes [TR14 section 5; errata C.6]. All numbers must
/// be equal, and all blocks have one signature. O(ranks) blocks; times the ranks of the node on a
/// first rank.
class HierarchicalAlltoallPlan final : public AlltoallPlan {
 public:
  HierarchicalAlltoallPlan(std::shared_ptr<NodeCommunicators> communicators,
                           const AlltoallBuffers& buffers);

 private:
  void follow(const std::vector<int>& here);
  void lead(const std::vector<int>& followers, const Contributions& block);
};

}  // namespace halocline::comm
