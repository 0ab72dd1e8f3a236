// SPDX-License-Identifier: BSD-3-Clause
// Implements the all-to-all exchanges in ceil(log2 ranks) rounds.
//
// A message of round k, with d = 2^k, holds the blocks i with bit k set. First come the blocks that
// have not moved yet: i = d, d + 2d, d + 4d, ... Then, for each round j before, come the blocks
// that moved in round j last, from the slots of round j. These are i = d + 2^j, ..., d + 2^(j + 1)
// - 1, and again after every 2d. All of them are in ascending order.
//
// Each round has its own slots. A block leaves the slots of one round while the next block for the
// same i arrives. A block with i < 2d is in its place after round k.
#include <algorithm>
#include <string>
#include <utility>

#include "comm/gather/alltoall_plan.hpp"
#include "comm/gather/slots.hpp"
#include "comm/gather/tree_steps.hpp"
#include "dtype/reconstruct/signature.hpp"
#include "dtype/type_tree.hpp"
#include "support/mpi_check.hpp"
#include "support/narrow.hpp"

namespace halocline::comm {

namespace {

// Returns the blocks first <= i < last of `blocks`, which holds one block for each rank. Block i is
// for the rank i places after `rank` (direction 1), or from the rank i places before it (-1).
ElementBlocks in_turn(const ElementBlocks& blocks, int rank, int direction, std::int64_t first,
                      std::int64_t last) {
  const auto ranks = std::ssize(blocks);
  ElementBlocks out;
  for (auto i = first; i < std::min(last, ranks); ++i)
    out.push_back(blocks[static_cast<std::size_t>((rank + direction * i + ranks) % ranks)]);
  return out;
}

std::int64_t rounds(std::int64_t ranks) {
  return tree_rounds(TreeForm::binomial, static_cast<int>(ranks));
}

}  // namespace

// ---- Blocks of one size

BruckAlltoallPlan::BruckAlltoallPlan(std::shared_ptr<NodeCommunicators> communicators,
                                     const AlltoallBuffers& buffers)
    : AlltoallPlan(std::move(communicators), buffers) {
  const auto block = one_block();
  const auto& sent = sends_.front();
  set_up([&] {
    copy_own();
    const auto count = whole_instances(sent.elements(), dtype::basic_element_count(*sent.type),
                                       "use a plan for irregular all-to-all");
    // Blocks begin `count` extents apart. If that extent is negative, it is not the extent of a
    // block.
    const auto bounds = dtype::type_bounds(*sent.type);
    const auto own_block =
        dtype::type(dtype::Resized{dtype::type(dtype::Contiguous{count, sent.type}), bounds.lb,
                                   checked_multiply(count, bounds.extent)});
    const std::int64_t ranks = this->ranks();
    const Slots slots(kept_.emplace_back(), rounds(ranks) * ranks, block.sequence({0}),
                      block.bytes(0));
    // Selects slots of a round: `length` slots from `start` on, and again after every `stride`.
    const auto waiting = [&](std::int64_t round, std::int64_t start, std::int64_t length,
                             std::int64_t stride) {
      return slots.from(round * ranks, dtype::type(dtype::BoundedVector{start, length, stride,
                                                                        ranks, slots.slot()}));
    };
    for (std::int64_t round = 0; round < rounds(ranks); ++round) {
      const auto d = std::int64_t{1} << round;
      const auto leaving = dtype::type(
          dtype::CircularVector{rank() + d, 1, 2 * d, rank() + ranks, ranks, own_block});
      ElementBlocks to{{sent.buffer, leaving, {0, dtype::basic_element_count(*leaving)}, true}};
      auto from = in_turn(receives_, rank(), -1, d, d + 1);
      from.push_back(waiting(round, 3 * d, 1, 2 * d));
      for (std::int64_t before = 0; before < round; ++before) {
        const auto length = std::int64_t{1} << before;
        to.push_back(waiting(before, d + length, length, 2 * d));
        append(from, in_turn(receives_, rank(), -1, d + length, d + 2 * length));
        from.push_back(waiting(round, 3 * d + length, length, 2 * d));
      }
      schedule_->send(link(rank() + d), to);
      schedule_->receive(link(rank() - d), from);
    }
  });
}

// ---- Blocks of almost one size

namespace {

[[noreturn]] void throw_several_basic_types(const std::string& what) {
  throw ConfigError("elements of several basic types (" + what +
                    "): use the direct plan for irregular all-to-all");
}

// Returns the one basic type of all elements of `expr`, which has elements.
dtype::TypeExprPtr only_basic_type(const dtype::TypeExpr& expr) {
  const auto first = dtype::signature_type(*element_ranges(expr, {{0, 1}}));
  const auto as_many = dtype::type(dtype::Contiguous{dtype::basic_element_count(expr), first});
  if (dtype::signature_hash(*as_many) != dtype::signature_hash(expr))
    throw_several_basic_types(to_string(*dtype::signature_type(expr)));
  return first;
}

// Returns the basic type of all ranks that send something; MPI_BYTE if no rank does. Collective.
dtype::TypeExprPtr common_basic_type(const ElementBlocks& sends, MPI_Comm comm) {
  dtype::TypeExprPtr own;
  collectively(comm, [&] {
    if (elements_of(sends) > 0) own = only_basic_type(*sends.front().type);
  });
  const auto byte = dtype::parse_type("byte");
  const auto none = dtype::type(dtype::Contiguous{0, byte});
  const auto all = Contributions::exchanged(comm, own ? *own : *none);
  auto out = none;
  int ranks = 1;
  HALOCLINE_MPI(MPI_Comm_size(comm, &ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    if (all.elements(rank) == 0) continue;
    const auto type = all.sequence({rank});
    if (out != none && signature_hash(*type) != signature_hash(*out))
      throw_several_basic_types("ranks differ in theirs");
    out = type;
  }
  return out == none ? byte : out;
}

// Number of elements of each block i = 0, 1, ..., when it is sent or received in a round.
using Sizes = std::vector<std::int64_t>;

// Returns the sizes after a round, in which the blocks i with bit `d` move. Collective.
Sizes exchange_sizes(Sizes sizes, std::int64_t d, const Link& to, const Link& from) {
  Sizes sent;
  for (std::int64_t i = 0; i < std::ssize(sizes); ++i)
    if ((i & d) != 0) sent.push_back(sizes[static_cast<std::size_t>(i)]);
  Sizes received(sent.size());
  const int count = static_cast<int>(sent.size());
  HALOCLINE_MPI(MPI_Sendrecv(sent.data(), count, MPI_INT64_T, to.rank, 0, received.data(), count,
                             MPI_INT64_T, from.rank, 0, to.comm, MPI_STATUS_IGNORE));
  auto next = received.begin();
  for (std::int64_t i = 0; i < std::ssize(sizes); ++i)
    if ((i & d) != 0) sizes[static_cast<std::size_t>(i)] = *next++;
  return sizes;
}

}  // namespace

BucketAlltoallPlan::BucketAlltoallPlan(std::shared_ptr<NodeCommunicators> communicators,
                                       const AlltoallBuffers& buffers)
    : AlltoallPlan(std::move(communicators), buffers) {
  const std::int64_t ranks = this->ranks();
  const auto basic = common_basic_type(sends_, comm());
  Sizes sizes;
  for (const auto& block : in_turn(sends_, rank(), 1, 0, ranks)) sizes.push_back(block.elements());
  std::int64_t largest = *std::max_element(sizes.begin(), sizes.end());
  HALOCLINE_MPI(MPI_Allreduce(MPI_IN_PLACE, &largest, 1, MPI_INT64_T, MPI_MAX, comm()));

  // Entry k holds the sizes before round k; the last entry holds the sizes after the last round.
  std::vector<Sizes> in_round{sizes};
  for (std::int64_t round = 0; round < rounds(ranks); ++round) {
    const auto d = std::int64_t{1} << round;
    in_round.push_back(exchange_sizes(in_round.back(), d, link(rank() + d), link(rank() - d)));
  }
  set_up([&] {
    copy_own();
    const auto slot = dtype::type(dtype::Contiguous{largest, basic});
    const Slots slots(kept_.emplace_back(), rounds(ranks) * ranks, slot,
                      dtype::type_bounds(*slot).size);
    // Selects the filled parts of slots of a round: now[i] elements of slot i. Takes each i >=
    // first with begin <= i mod 2d < end.
    const auto waiting = [&](std::int64_t round, const Sizes& now, std::int64_t first,
                             std::int64_t begin, std::int64_t end, std::int64_t d) {
      dtype::Bucket bucket{largest, Sizes(now.size(), 0), basic};
      for (auto i = first; i < ranks; ++i)
        if (i % (2 * d) >= begin && i % (2 * d) < end)
          bucket.counts[static_cast<std::size_t>(i)] = now[static_cast<std::size_t>(i)];
      return slots.from(round * ranks, dtype::type(std::move(bucket)));
    };
    for (std::int64_t round = 0; round < rounds(ranks); ++round) {
      const auto d = std::int64_t{1} << round;
      const auto& leaving = in_round[static_cast<std::size_t>(round)];
      const auto& arriving = in_round[static_cast<std::size_t>(round + 1)];
      ElementBlocks sent;
      for (auto i = d; i < ranks; i += 2 * d) append(sent, in_turn(sends_, rank(), 1, i, i + 1));
      auto received = in_turn(receives_, rank(), -1, d, d + 1);
      received.push_back(waiting(round, arriving, 2 * d, d, d + 1, d));
      for (std::int64_t before = 0; before < round; ++before) {
        const auto length = std::int64_t{1} << before;
        sent.push_back(waiting(before, leaving, 0, d + length, d + 2 * length, d));
        append(received, in_turn(receives_, rank(), -1, d + length, d + 2 * length));
        received.push_back(waiting(round, arriving, 2 * d, d + length, d + 2 * length, d));
      }
      schedule_->send(link(rank() + d), sent);
      schedule_->receive(link(rank() - d), received);
    }
  });
}

}  // namespace halocline::comm
