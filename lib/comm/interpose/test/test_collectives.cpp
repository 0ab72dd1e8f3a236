// SPDX-License-Identifier: BSD-3-Clause
// Tests collectives with the interposer: all pairs of types, and all kinds of communicators.
#include <gtest/gtest.h>
#include <mpi.h>

#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include "comm/interpose/test/layout.hpp"
#include "dtype/test/random_call.hpp"

namespace halocline {
namespace {

using namespace interpose::test;

// Holds a layout for each pair of ranks, of types that may be received. Single runs of memory are
// left out: Open MPI's MPI_Alltoallw copies some of them wrongly to the rank itself.
class Pairs {
 public:
  Pairs() {
    dtype::test::CallGenerator generator(11);
    while (std::ssize(layouts_) < world_size() * world_size()) {
      const auto call = generator.next();
      Layout layout(dtype::test::lowered(call.expr), call.count);
      if (!layout.is_one_run() && layout.disjoint() && layout.mpi_is_right())
        layouts_.push_back(std::move(layout));
    }
  }
  const Layout& of(int from, int to) const {
    return layouts_[static_cast<std::size_t>(from * world_size() + to)];
  }

 private:
  std::vector<Layout> layouts_;
};

// Names the layout of a partner, and its first byte in the memory of a Room.
struct Place {
  const Layout* layout;
  std::size_t begin = 0;
};
// Holds one memory for all partners of a collective.
struct Room {
  std::vector<Place> places;
  Memory memory;
  std::vector<int> counts, displacements;
  std::vector<MPI_Aint> addresses;
  std::vector<MPI_Datatype> types;

  void add(const Layout& layout, Memory content) {
    places.push_back({&layout, memory.size()});
    counts.push_back(layout.count());
    displacements.push_back(static_cast<int>(
        memory.size() + static_cast<std::size_t>(layout.buffer(content) - content.data())));
    addresses.push_back(displacements.back());
    types.push_back(layout.type());
    memory.insert(memory.end(), content.begin(), content.end());
  }
  Memory part(std::size_t i) const {
    const auto end = i + 1 < places.size() ? places[i + 1].begin : memory.size();
    return {memory.begin() + static_cast<std::ptrdiff_t>(places[i].begin),
            memory.begin() + static_cast<std::ptrdiff_t>(end)};
  }
};

void alltoallw(const Room& sent, Room& received) {
  MPI_Alltoallw(sent.memory.data(), sent.counts.data(), sent.displacements.data(),
                sent.types.data(), received.memory.data(), received.counts.data(),
                received.displacements.data(), received.types.data(), MPI_COMM_WORLD);
}

TEST(Alltoallw, OfRandomTypesIsTheTypeMaps) {
  const Pairs pairs;
  Room sent, received;
  for (int rank = 0; rank < world_size(); ++rank) {
    sent.add(pairs.of(world_rank(), rank), pairs.of(world_rank(), rank).filled(world_rank()));
    received.add(pairs.of(rank, world_rank()), pairs.of(rank, world_rank()).poisoned());
  }
  const auto poisoned = received.memory;
  for (int use = 0; use < enough_uses(); ++use) {
    received.memory = poisoned;
    alltoallw(sent, received);
    for (int rank = 0; rank < world_size(); ++rank)
      EXPECT_PRED2(same, received.part(static_cast<std::size_t>(rank)),
                   pairs.of(rank, world_rank()).received_from(rank));
  }
}

// MPI is slow at this type, so the engine does some of it even if it is not forced.
TEST(Alltoallw, OfManyBlocksIsTheTypeMap) {
  const Layout layout("vector(5000,1,3,double)", 1);
  Room sent, received;
  for (int rank = 0; rank < world_size(); ++rank) {
    sent.add(layout, layout.filled(world_size() * world_rank() + rank));
    received.add(layout, layout.poisoned());
  }
  const auto poisoned = received.memory;
  for (int use = 0; use < 4 * enough_uses(); ++use) {
    received.memory = poisoned;
    alltoallw(sent, received);
    for (int rank = 0; rank < world_size(); ++rank)
      EXPECT_PRED2(same, received.part(static_cast<std::size_t>(rank)),
                   layout.received_from(world_size() * rank + world_rank()));
  }
}

TEST(Alltoallv, OfDerivedTypesIsTheTypeMap) {
  const Layout one("resized(vector(3,2,4,int),0,64)", 1);
  const auto ranks = static_cast<std::size_t>(world_size());
  // Rank r sends r + 1 instances to each rank, with a hole of one instance between them.
  const int mine = world_rank() + 1;
  std::vector<int> send_counts(ranks, mine), send_at(ranks), counts(ranks), at(ranks);
  for (std::size_t i = 0; i < ranks; ++i) {
    send_at[i] = static_cast<int>(i) * (mine + 1);
    counts[i] = static_cast<int>(i) + 1;
    at[i] = i == 0 ? 0 : at[i - 1] + counts[i - 1] + 1;
  }
  std::vector<int> sent(16 * ranks * static_cast<std::size_t>(mine + 1)),
      received(16 * static_cast<std::size_t>(at.back() + counts.back() + 1), -1);
  for (std::size_t i = 0; i < sent.size(); ++i)
    sent[i] = 1000000 * world_rank() + static_cast<int>(i);
  MPI_Alltoallv(sent.data(), send_counts.data(), send_at.data(), one.type(), received.data(),
                counts.data(), at.data(), one.type(), MPI_COMM_WORLD);
  std::vector<int> expected(received.size(), -1);
  for (std::size_t from = 0; from < ranks; ++from)
    for (int instance = 0; instance < counts[from]; ++instance)
      for (const int place : {0, 1, 4, 5, 8, 9})
        expected[static_cast<std::size_t>(16 * (at[from] + instance) + place)] =
            1000000 * static_cast<int>(from) + 16 * (world_rank() * (counts[from] + 1) + instance) +
            place;
  EXPECT_EQ(received, expected);
}

// The ranks form a line with two ends. Data beyond the ends must not be touched.
TEST(NeighborAlltoallw, LeavesWhatHasNoNeighborAlone) {
  const std::array dimensions = {world_size()};
  const std::array periods = {0};
  MPI_Comm line = MPI_COMM_NULL;
  MPI_Cart_create(MPI_COMM_WORLD, 1, dimensions.data(), periods.data(), 0, &line);
  const Layout layout("vector(50,3,5,double)", 2);
  Room sent, received;
  for (int side = 0; side < 2; ++side) {
    sent.add(layout, layout.filled(2 * world_rank() + side));
    received.add(layout, layout.poisoned());
  }
  MPI_Neighbor_alltoallw(sent.memory.data(), sent.counts.data(), sent.addresses.data(),
                         sent.types.data(), received.memory.data(), received.counts.data(),
                         received.addresses.data(), received.types.data(), line);
  EXPECT_PRED2(same, received.part(0),
               world_rank() == 0 ? layout.poisoned() : layout.received_from(2 * world_rank() - 1));
  EXPECT_PRED2(same, received.part(1),
               world_rank() == world_size() - 1 ? layout.poisoned()
                                                : layout.received_from(2 * world_rank() + 2));
  MPI_Comm_free(&line);
}

// MPI may copy whole buffers here. Bytes outside of all types must stay as MPI leaves them.
TEST(Alltoallw, InPlaceIsMpis) {
  const Layout layout("vector(50,3,5,double)", 2);
  const auto in_place = [&](auto* function) {
    Room room;
    for (int rank = 0; rank < world_size(); ++rank)
      room.add(layout, layout.filled(world_size() * world_rank() + rank));
    function(MPI_IN_PLACE, nullptr, nullptr, nullptr, room.memory.data(), room.counts.data(),
             room.displacements.data(), room.types.data(), MPI_COMM_WORLD);
    return room.memory;
  };
  const auto ours = in_place(&MPI_Alltoallw);
  EXPECT_PRED2(same, ours, in_place(&PMPI_Alltoallw));
}

TEST(Alltoallv, InPlaceIsMpis) {
  const Layout layout("resized(vector(50,3,5,double),0,2048)", 1);
  const auto ranks = static_cast<std::size_t>(world_size());
  const std::vector<int> counts(ranks, 1);
  std::vector<int> places(ranks);
  for (std::size_t i = 0; i < ranks; ++i) places[i] = static_cast<int>(i);
  const auto in_place = [&](auto* function) {
    std::vector<double> memory(256 * ranks);
    for (std::size_t i = 0; i < memory.size(); ++i)
      memory[i] = 1e6 * world_rank() + static_cast<double>(i);
    function(MPI_IN_PLACE, nullptr, nullptr, MPI_DATATYPE_NULL, memory.data(), counts.data(),
             places.data(), layout.type(), MPI_COMM_WORLD);
    return memory;
  };
  const auto ours = in_place(&MPI_Alltoallv);
  EXPECT_EQ(ours, in_place(&PMPI_Alltoallv));
}

// Some partners get nothing, with a predefined type. Other partners get predefined types.
TEST(Alltoallw, OfAllKindsAtOnce) {
  const Layout gaps("vector(500,3,5,double)", 2), plain("contiguous(7,int)", 1), named("int", 3);
  const auto layout_of = [&](int from, int to) -> const Layout& {
    return (from + to) % 3 == 0 ? gaps : (from + to) % 3 == 1 ? plain : named;
  };
  const auto is_nothing = [](int from, int to) { return (from + 2 * to) % 4 == 3; };
  Room sent, received;
  const auto add = [&](Room& room, int from, int to, Memory content) {
    room.add(layout_of(from, to), std::move(content));
    if (!is_nothing(from, to)) return;
    room.counts.back() = 0;
    room.types.back() = MPI_CHAR;
  };
  const int me = world_rank();
  for (int rank = 0; rank < world_size(); ++rank) {
    add(sent, me, rank, layout_of(me, rank).filled(me));
    add(received, rank, me, layout_of(rank, me).poisoned());
  }
  alltoallw(sent, received);
  for (int rank = 0; rank < world_size(); ++rank) {
    const auto& layout = layout_of(rank, me);
    EXPECT_PRED2(same, received.part(static_cast<std::size_t>(rank)),
                 is_nothing(rank, me) ? layout.poisoned() : layout.received_from(rank));
  }
}

// A derived type without data does not end the unpacking of the parts behind it.
TEST(Alltoallw, WithTypesWithoutData) {
  const Layout gaps("vector(500,3,5,double)", 2);
  dtype::Datatype nothing(dtype::make_datatype(*dtype::parse_type("contiguous(0,int)")));
  Room sent, received;
  const int me = world_rank();
  for (int rank = 0; rank < world_size(); ++rank) {
    sent.add(gaps, gaps.filled(me));
    received.add(gaps, gaps.poisoned());
    if (rank == 0) received.types.back() = nothing.get();
    if (me == 0) sent.types.back() = nothing.get();
  }
  alltoallw(sent, received);
  for (int rank = 0; rank < world_size(); ++rank)
    EXPECT_PRED2(same, received.part(static_cast<std::size_t>(rank)),
                 rank == 0 ? gaps.poisoned() : gaps.received_from(rank));
}

TEST(Alltoallw, BetweenGroupsIsWithTheOther) {
  // A single rank has no other group. The runs with two and three ranks test it.
  if (world_size() == 1) GTEST_SKIP() << "for two ranks and more";
  MPI_Comm half = MPI_COMM_NULL, both = MPI_COMM_NULL;
  const int side = world_rank() % 2;
  MPI_Comm_split(MPI_COMM_WORLD, side, 0, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - side, 0, &both);
  int others = 0;
  MPI_Comm_remote_size(both, &others);
  const Layout layout("vector(500,3,5,double)", 2);
  Room sent, received;
  for (int i = 0; i < others; ++i) {
    sent.add(layout, layout.filled(10 * world_rank() + i));
    received.add(layout, layout.poisoned());
  }
  MPI_Alltoallw(sent.memory.data(), sent.counts.data(), sent.displacements.data(),
                sent.types.data(), received.memory.data(), received.counts.data(),
                received.displacements.data(), received.types.data(), both);
  for (int i = 0; i < others; ++i)
    EXPECT_PRED2(same, received.part(static_cast<std::size_t>(i)),
                 layout.received_from(10 * (2 * i + 1 - side) + world_rank() / 2));
  MPI_Comm_free(&both);
  MPI_Comm_free(&half);
}

// Each rank sends to the next two ranks. One of these may be the rank itself.
TEST(NeighborAlltoallw, OfDistributedGraphsHasBothDirections) {
  const int ranks = world_size(), me = world_rank();
  const std::array sources{(me + ranks - 1) % ranks, (me + 2 * ranks - 2) % ranks},
      destinations{(me + 1) % ranks, (me + 2) % ranks};
  // With two ranks, both messages have the same ends, and MPI may swap them. The run with three
  // ranks tests it.
  if (ranks < 3) GTEST_SKIP() << "for three ranks: else two messages have the same ends";
  MPI_Comm graph = MPI_COMM_NULL;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, sources.data(), MPI_UNWEIGHTED, 2,
                                 destinations.data(), MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph);
  const Layout layout("vector(500,3,5,double)", 2);
  Room sent, received;
  for (int i = 0; i < 2; ++i) {
    sent.add(layout, layout.filled(2 * me + i));
    received.add(layout, layout.poisoned());
  }
  MPI_Neighbor_alltoallw(sent.memory.data(), sent.counts.data(), sent.addresses.data(),
                         sent.types.data(), received.memory.data(), received.counts.data(),
                         received.addresses.data(), received.types.data(), graph);
  for (std::size_t i = 0; i < 2; ++i)
    EXPECT_PRED2(same, received.part(i),
                 layout.received_from(2 * sources[i] + static_cast<int>(i)));
  MPI_Comm_free(&graph);
}

// The ranks form a line: the ends have one neighbor, all other ranks have two.
TEST(NeighborAlltoallw, OfGraphsHasTheirNeighbors) {
  // A single rank has no neighbor. The runs with two and three ranks test it.
  if (world_size() == 1) GTEST_SKIP() << "for two ranks and more";
  const int ranks = world_size(), me = world_rank();
  std::vector<int> ends, edges, neighbors;
  for (int rank = 0; rank < ranks; ++rank) {
    for (const int other : {rank - 1, rank + 1}) {
      if (other < 0 || other >= ranks) continue;
      edges.push_back(other);
      if (rank == me) neighbors.push_back(other);
    }
    ends.push_back(static_cast<int>(edges.size()));
  }
  MPI_Comm graph = MPI_COMM_NULL;
  MPI_Graph_create(MPI_COMM_WORLD, ranks, ends.data(), edges.data(), 0, &graph);
  const Layout layout("vector(500,3,5,double)", 2);
  Room sent, received;
  for (const int neighbor : neighbors) {
    sent.add(layout, layout.filled(10 * me + neighbor));
    received.add(layout, layout.poisoned());
  }
  MPI_Neighbor_alltoallw(sent.memory.data(), sent.counts.data(), sent.addresses.data(),
                         sent.types.data(), received.memory.data(), received.counts.data(),
                         received.addresses.data(), received.types.data(), graph);
  for (std::size_t i = 0; i < neighbors.size(); ++i)
    EXPECT_PRED2(same, received.part(i), layout.received_from(10 * neighbors[i] + me));
  MPI_Comm_free(&graph);
}

// A handle of a freed communicator may come again, with other neighbors.
TEST(Communicators, LeaveNothingBehind) {
  const Layout layout("vector(5,3,5,double)", 1);
  const auto use_grid = [&](int i) {
    const int dimensions_used = 1 + i % 2;
    const std::array dimensions{world_size(), 1}, periods{1, 1};
    MPI_Comm grid = MPI_COMM_NULL;
    MPI_Cart_create(MPI_COMM_WORLD, dimensions_used, dimensions.data(), periods.data(), 0, &grid);
    Room sent, received;
    for (int side = 0; side < 2 * dimensions_used; ++side) {
      sent.add(layout, layout.filled(world_rank()));
      received.add(layout, layout.poisoned());
    }
    MPI_Neighbor_alltoallw(sent.memory.data(), sent.counts.data(), sent.addresses.data(),
                           sent.types.data(), received.memory.data(), received.counts.data(),
                           received.addresses.data(), received.types.data(), grid);
    for (int side = 0; side < 2 * dimensions_used; ++side) {
      const int from = side == 0 ? previous_rank() : side == 1 ? next_rank() : world_rank();
      EXPECT_PRED2(same, received.part(static_cast<std::size_t>(side)), layout.received_from(from));
    }
    MPI_Comm_free(&grid);
  };
  expect_no_growth(2000, [&](int times) {
    for (int i = 0; i < times && !HasFailure(); ++i) use_grid(i);
  });
}

}  // namespace
}  // namespace halocline
