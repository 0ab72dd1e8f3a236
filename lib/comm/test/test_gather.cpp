// SPDX-License-Identifier: BSD-3-Clause
// Compares hierarchical collectives with the type maps of both ends, byte by byte, gaps included.
// MPI's own collectives are one of the variants. Messages and copies are counted where they enter
// MPI.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "comm/gather/allgather_plan.hpp"
#include "comm/gather/alltoall_plan.hpp"
#include "comm/gather/elements.hpp"
#include "comm/gather/gather_model.hpp"
#include "comm/gather/gather_plan.hpp"
#include "comm/gather/rank_order.hpp"
#include "dtype/datatype.hpp"
#include "dtype/type_map.hpp"
#include "mpi_calls.hpp"
#include "support/error.hpp"
#include "world.hpp"

namespace halocline::comm {
namespace {

using dtype::Datatype;
using dtype::TypeMap;
using Numbers = std::vector<std::int64_t>;

bool everywhere(bool here, MPI_Comm comm) {
  int all = here ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, comm);
  return all != 0;
}

// ---- Orders of the ranks and nodes

const NodeHierarchy& real_nodes() {
  static const NodeHierarchy nodes(MPI_COMM_WORLD);
  return nodes;
}

// Tells if nodes with these numbers of ranks can be emulated: no node may span real ones.
bool can_emulate(const std::vector<int>& ranks_per_node) {
  try {
    emulated_nodes(real_nodes().node_of_ranks(), ranks_per_node);
    return true;
  } catch (const ConfigError&) {
    return false;
  }
}

// Returns shapes of nodes for the whole world, as numbers of ranks per node. Empty: the real nodes.
std::vector<std::vector<int>> shapes() {
  const int ranks = world_size();
  std::vector<std::vector<int>> out{{}, {1}};
  if (ranks >= 4) out.push_back({2});
  if (ranks >= 4) out.push_back({ranks / 2, ranks - ranks / 2});
  if (ranks == 8) out.push_back({3, 5});
  if (ranks > 2) out.push_back({1, ranks - 1});
  std::erase_if(out, [](const auto& shape) { return !shape.empty() && !can_emulate(shape); });
  return out;
}

/// Is the world in a new order, with emulated nodes.
struct Scene {
  std::unique_ptr<Communicator> comm;
  std::shared_ptr<NodeCommunicators> communicators;

  Scene(const std::vector<int>& ranks_per_node, RankOrder order) {
    const auto nodes =
        ranks_per_node.empty() ? real_nodes() : NodeHierarchy(MPI_COMM_WORLD, ranks_per_node);
    const auto ranks = ranks_in_order(order, nodes, 7);
    const auto own = std::find(ranks.begin(), ranks.end(), world_rank()) - ranks.begin();
    comm = std::make_unique<Communicator>(MPI_COMM_WORLD, 0, static_cast<int>(own));
    communicators = NodeCommunicators::of(
        comm->get(), NodeHierarchy::by_color(comm->get(), nodes.node_of(world_rank())));
  }
  int rank() const { return comm->rank(); }
  int ranks() const { return comm->size(); }
};

template <class F>
void for_all_scenes(F f) {
  for (const auto& shape : shapes())
    for (const auto& [order, order_name] : kRankOrders) {
      const Scene scene(shape, order);
      std::string text;
      for (const int n : shape) text += std::to_string(n) + " ";
      SCOPED_TRACE("ranks per node: " + text + order_name);
      f(scene);
      if (!everywhere(!testing::Test::HasFailure(), MPI_COMM_WORLD)) return;
    }
}

// ---- Buffers that know what they must hold

/// Holds a type and its type map.
class Layout {
 public:
  explicit Layout(const char* text)
      : expr_(dtype::parse_type(text)),
        map_(dtype::type_map(*expr_)),
        type_(dtype::make_datatype(*expr_)) {}
  MPI_Datatype type() const { return type_.get(); }
  std::int64_t each() const { return std::ssize(map_.entries); }
  const TypeMap::Entry& entry(std::int64_t element) const {
    return map_.entries[static_cast<std::size_t>(element % each())];
  }
  std::int64_t displacement(std::int64_t element) const {
    return element / each() * map_.extent + entry(element).displacement;
  }
  const TypeMap& map() const { return map_; }

 private:
  dtype::TypeExprPtr expr_;
  TypeMap map_;
  Datatype type_;
};

std::byte content(int rank, std::int64_t offset) {
  auto x = static_cast<std::uint64_t>(rank + 1) * 0x9E3779B97F4A7C15u +
           static_cast<std::uint64_t>(offset) * 0xBF58476D1CE4E5B9u;
  x ^= x >> 29;
  return static_cast<std::byte>(x * 0x94D049BB133111EBu >> 56);
}

constexpr std::byte kPoison{0xA5};

/// Holds memory for `elements` elements of repeated instances of a layout, with room around them.
class Memory {
 public:
  Memory(const Layout& layout, std::int64_t elements) : layout_(&layout) {
    const auto instances = elements / layout.each() + 2;
    const auto& map = layout.map();
    const auto reach = std::abs(map.lb) + std::abs(map.true_lb) + std::abs(map.true_extent) +
                       instances * std::abs(map.extent) + 64;
    begin_ = reach;
    bytes_.assign(static_cast<std::size_t>(2 * reach), kPoison);
  }
  void* data() { return bytes_.data() + begin_; }
  void poison() { std::fill(bytes_.begin(), bytes_.end(), kPoison); }
  void fill(int rank) {
    for (std::size_t i = 0; i < bytes_.size(); ++i)
      bytes_[i] = content(rank, static_cast<std::int64_t>(i) - begin_);
  }
  /// Expects `count` elements from rank `rank`, received in this layout from element `to` on. The
  /// sender's layout is `from`, and its first element is `first`.
  void expect(const Layout& from, int rank, std::int64_t first, std::int64_t to,
              std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      const auto source = from.displacement(first + i);
      const auto destination = layout_->displacement(to + i);
      for (std::int64_t b = 0; b < from.entry(first + i).type->size; ++b)
        bytes_[static_cast<std::size_t>(begin_ + destination + b)] = content(rank, source + b);
    }
  }
  /// Returns the index of the first byte that differs from `expected`, or -1.
  std::int64_t difference(const Memory& expected) const {
    const auto [own, other] = std::mismatch(bytes_.begin(), bytes_.end(), expected.bytes_.begin());
    return own == bytes_.end() ? -1 : own - bytes_.begin();
  }

 private:
  const Layout* layout_;
  std::int64_t begin_;
  std::vector<std::byte> bytes_;
};

/// Names the types of a sender and of a receiver.
struct Pair {
  const char* send;
  const char* receive;
};
// Both types have equal signatures, and blocks are whole instances on both sides.
constexpr Pair kPairs[] = {
    {"resized(vector(3,1,2,int),0,28)", "resized(indexed({2,1},{4,1},int),-4,36)"},
    {"resized(struct({1,2},{0,8},{int,resized(double,0,16)}),0,40)",
     "resized(struct({1,1,1},{24,0,12},{int,double,double}),0,40)"},
};

Numbers starts_of(const Numbers& counts) {
  Numbers out(counts.size(), 0);
  std::partial_sum(counts.begin(), counts.end() - 1, out.begin() + 1);
  return out;
}

// Plans read buffers when they run, so the contents differ between runs.
int contents_in(int repeat, int rank) {
  return rank + 1000 * repeat;
}

// Notes the first difference. It is not returned at once, since other ranks run again.
void note(std::string& problem, std::int64_t where, int repeat) {
  if (problem.empty() && where >= 0)
    problem = "byte " + std::to_string(where) + " in run " + std::to_string(repeat);
}

// ---- Gather

std::string gather_once(const Scene& scene, const Layout& send, const Layout& receive,
                        const Numbers& counts, int root, GatherVariant variant,
                        const GatherOptions& options, bool same_signatures) {
  const auto own = counts[static_cast<std::size_t>(scene.rank())];
  const bool at_root = scene.rank() == root;
  const auto total = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  Memory sent(send, own), received(receive, at_root ? total : 0),
      expected(receive, at_root ? total : 0);
  const auto starts = starts_of(counts);
  GatherPlan plan(scene.communicators,
                  {sent.data(), own, send.type(), received.data(), counts, receive.type(), root,
                   same_signatures},
                  variant, options);
  std::string problem;
  for (int repeat = 0; repeat < 2; ++repeat) {
    sent.fill(contents_in(repeat, scene.rank()));
    for (int rank = 0; at_root && rank < scene.ranks(); ++rank) {
      const auto at = static_cast<std::size_t>(rank);
      expected.expect(send, contents_in(repeat, rank), 0, starts[at], counts[at]);
    }
    received.poison();
    plan.run();
    note(problem, received.difference(expected), repeat);
  }
  return problem;
}

std::string scatter_once(const Scene& scene, const Layout& send, const Layout& receive,
                         const Numbers& counts, int root, const GatherOptions& options,
                         bool in_place = false) {
  const auto at = static_cast<std::size_t>(scene.rank());
  const auto starts = starts_of(counts);
  Memory source(send, starts.back() + counts.back()), unchanged(source);
  Memory part(receive, counts[at]), expected(receive, counts[at]);
  const bool stays = in_place && scene.rank() == root;
  ScatterPlan plan(scene.communicators,
                   {stays ? MPI_IN_PLACE : part.data(), counts[at], receive.type(), source.data(),
                    counts, send.type(), root},
                   options);
  std::string problem;
  for (int repeat = 0; repeat < 2; ++repeat) {
    const int contents = contents_in(repeat, root);
    source.fill(contents);
    unchanged.fill(contents);
    if (!stays) expected.expect(send, contents, starts[at], 0, counts[at]);
    part.poison();
    plan.run();
    note(problem, part.difference(expected), repeat);
    if (source.difference(unchanged) >= 0) problem = "the source has changed";
  }
  return problem;
}

std::string allgather_once(const Scene& scene, const Layout& send, const Layout& receive,
                           const Numbers& counts, const GatherOptions& options,
                           bool in_place = false) {
  const auto own = static_cast<std::size_t>(scene.rank());
  const auto starts = starts_of(counts);
  const auto total = starts.back() + counts.back();
  Memory mine(send, counts[own]), whole(receive, total), expected(receive, total);
  AllgatherPlan plan(scene.communicators,
                     {in_place ? MPI_IN_PLACE : mine.data(), counts[own], send.type(), whole.data(),
                      counts, receive.type()},
                     options);
  std::string problem;
  for (int repeat = 0; repeat < 2; ++repeat) {
    const int contents = contents_in(repeat, scene.rank());
    mine.fill(contents);
    for (int rank = 0; rank < scene.ranks(); ++rank) {
      const auto at = static_cast<std::size_t>(rank);
      expected.expect(send, contents_in(repeat, rank), 0, starts[at], counts[at]);
    }
    whole.poison();
    if (in_place) whole.expect(send, contents, 0, starts[own], counts[own]);
    plan.run();
    note(problem, whole.difference(expected), repeat);
  }
  return problem;
}

TreeForm form_of(std::size_t number) {
  return kTreeForms[number % kTreeForms.size()].first;
}

// Returns all ranks; with many ranks, only the first one, one in the middle and the last one.
std::vector<int> roots_of(const Scene& scene) {
  constexpr int kFew = 4;
  if (scene.ranks() > kFew) return {0, scene.ranks() / 2, scene.ranks() - 1};
  std::vector<int> out(static_cast<std::size_t>(scene.ranks()));
  std::iota(out.begin(), out.end(), 0);
  return out;
}

bool applies(GatherVariant variant, const Scene& scene) {
  const auto& node_of = scene.communicators->nodes().node_of_ranks();
  return !is_forced(variant) || std::is_sorted(node_of.begin(), node_of.end());
}

TEST(Gather, OfEveryVariantIsTheTypeMaps) {
  for_all_scenes([](const Scene& scene) {
    int turn = 0;
    for (const auto& pair : kPairs) {
      const Layout send(pair.send), receive(pair.receive);
      for (const std::int64_t count : {0, 1, 7, 1000})
        for (const int root : roots_of(scene))
          for (const auto& [variant, name] : kGatherVariants) {
            if (!applies(variant, scene)) continue;
            const auto form_number = static_cast<std::size_t>(turn++) % 2;
            const Numbers counts(static_cast<std::size_t>(scene.ranks()), count * send.each());
            const auto problem = gather_once(
                scene, send, receive, counts, root, variant,
                {form_of(form_number), form_of(static_cast<std::size_t>(turn / 2))}, true);
            EXPECT_EQ(problem, "") << name << ", root " << root << ", " << count << " x "
                                   << pair.send << ", " << kTreeForms[form_number].second;
            if (!everywhere(problem.empty(), scene.comm->get())) return;
          }
    }
  });
}

// Blocks may begin and end anywhere in an instance of either type (errata C.2).
TEST(Gather, OfPartsOfInstances) {
  const Pair pairs[] = {{"vector(3,1,2,int)", "resized(vector(2,2,3,int),0,28)"},
                        {"int", "struct({3,1},{4,24},{int,int})"},
                        {"resized(short,0,6)", "indexed({3,2},{4,0},short)"}};
  for_all_scenes([&](const Scene& scene) {
    std::mt19937 random(11);
    for (const auto& pair : pairs) {
      const Layout send(pair.send), receive(pair.receive);
      for (int root = 0; root < scene.ranks(); ++root)
        for (const std::int64_t count : {0, 1, 5, 63}) {
          Numbers counts(static_cast<std::size_t>(scene.ranks()), count);
          if (root % 2 == 1)
            for (auto& of_rank : counts) of_rank = static_cast<std::int64_t>(random() % 40);
          for (const auto& [variant, name] : kGatherVariants) {
            if (variant != GatherVariant::hier_unpack && variant != GatherVariant::hier_plan &&
                variant != GatherVariant::zero_copy)
              continue;
            const auto problem = gather_once(scene, send, receive, counts, root, variant,
                                             {.chunk_bytes = root % 3 == 2 ? 124 : 0}, false);
            EXPECT_EQ(problem, "") << name << ", root " << root << ", " << pair.send;
            if (!everywhere(problem.empty(), scene.comm->get())) return;
          }
        }
    }
  });
}

// Ranks that lead nodes, or that pass blocks on, may have no block of their own.
TEST(Gather, OfRanksWithNothing) {
  const Layout send(kPairs[0].send), receive(kPairs[0].receive);
  for_all_scenes([&](const Scene& scene) {
    const auto& nodes = scene.communicators->nodes();
    for (const bool leaders_have : {false, true})
      for (const auto& [bridge, bridge_name] : kTreeForms) {
        Numbers counts;
        for (int rank = 0; rank < scene.ranks(); ++rank) {
          const bool leads = nodes.ranks_of(nodes.node_of(rank)).front() == rank;
          counts.push_back(leads == leaders_have ? 40 * send.each() : 0);
        }
        const GatherOptions options{form_of(counts.front() == 0 ? 0 : 1), bridge, 124};
        for (int root = 0; root < scene.ranks(); ++root) {
          EXPECT_EQ(gather_once(scene, send, receive, counts, root, GatherVariant::zero_copy,
                                options, false),
                    "")
              << "root " << root << ", " << bridge_name;
          EXPECT_EQ(scatter_once(scene, send, receive, counts, root, options), "");
          if (!everywhere(!testing::Test::HasFailure(), scene.comm->get())) return;
        }
        EXPECT_EQ(allgather_once(scene, send, receive, counts, options), "") << bridge_name;
      }
  });
}

// The root receives (int, double) instances, one int or one double of each rank. The type depends
// on the number of the rank, and only the root knows that.
TEST(Gather, OfDifferentSignatures) {
  const Layout ints("int"), doubles("double"), pairs("struct({1,1},{0,8},{int,double})");
  for_all_scenes([&](const Scene& scene) {
    const auto& send = scene.rank() % 2 == 0 ? ints : doubles;
    for (int root = 0; root < scene.ranks(); ++root) {
      const Numbers counts(static_cast<std::size_t>(scene.ranks()), 1);
      Memory sent(send, 1), received(pairs, scene.ranks()), expected(pairs, scene.ranks());
      sent.fill(scene.rank());
      for (int rank = 0; rank < scene.ranks(); ++rank)
        if (scene.rank() == root) expected.expect(rank % 2 == 0 ? ints : doubles, rank, 0, rank, 1);
      GatherPlan(scene.communicators,
                 {sent.data(), 1, send.type(), received.data(), counts, pairs.type(), root},
                 GatherVariant::zero_copy,
                 {.local_form = TreeForm::binomial, .bridge_form = TreeForm::binomial})
          .run();
      EXPECT_EQ(received.difference(expected), -1) << "root " << root;
    }
  });
}

TEST(Gather, InPlaceLeavesTheRootsBlockWhereItIs) {
  const Layout layout("resized(vector(3,1,2,int),0,28)");
  for_all_scenes([&](const Scene& scene) {
    for (int root = 0; root < scene.ranks(); ++root)
      for (const auto& [variant, name] : kGatherVariants) {
        if (!applies(variant, scene)) continue;
        const auto total = 3 * scene.ranks();
        Memory sent(layout, 3), received(layout, total), expected(layout, total);
        sent.fill(scene.rank());
        const bool at_root = scene.rank() == root;
        if (at_root) {
          received.fill(99);
          expected.fill(99);
          for (int rank = 0; rank < scene.ranks(); ++rank)
            if (rank != root) expected.expect(layout, rank, 0, 3 * rank, 3);
        }
        GatherPlan(scene.communicators,
                   {at_root ? MPI_IN_PLACE : sent.data(),
                    3,
                    layout.type(),
                    received.data(),
                    {3},
                    layout.type(),
                    root,
                    true},
                   variant)
            .run();
        EXPECT_EQ(received.difference(expected), -1) << name << ", root " << root;
      }
  });
}

// ---- The subjects of [TR14], by name

// Each of four ranks sends two ints, in the rank order 0, 2, 1, 3. With blocks of one receive type,
// as in [TR14 Figure 6], the root would have r0 r2 r0 r2 r1 r3 r1 r3.
TEST(ErrataC3, BlocksAreOfBasicElements) {
  // Each four ranks must form two nodes, so this runs with 4 and with 8 ranks.
  if (world_size() % 4 != 0 || !can_emulate({2})) GTEST_SKIP() << "for 4 or 8 ranks of one host";
  const Communicator four(MPI_COMM_WORLD, world_rank() / 4,
                          std::vector{0, 2, 1, 3}[static_cast<std::size_t>(world_rank() % 4)]);
  const auto communicators =
      NodeCommunicators::of(four.get(), NodeHierarchy::by_color(four.get(), world_rank() % 4 / 2));
  ASSERT_EQ(communicators->nodes().node_of_ranks(), (std::vector{0, 1, 0, 1}));
  const int sent[] = {four.rank(), four.rank()};
  std::vector<int> received(8, -1);
  GatherPlan plan(communicators,
                  {const_cast<int*>(sent), 2, MPI_INT, received.data(), {2}, MPI_INT, 0},
                  GatherVariant::zero_copy);
  plan.run();
  if (four.rank() == 0) {
    EXPECT_EQ(received, (std::vector{0, 0, 1, 1, 2, 2, 3, 3}));
  }
}

// The bridge of a root is split off once. All roots that are the first of their node share one
// bridge.
TEST(ErrataC4, BridgesAreCached) {
  for_all_scenes([](const Scene& scene) {
    const auto& nodes = scene.communicators->nodes();
    const int value = scene.rank();
    std::vector<int> received(static_cast<std::size_t>(scene.ranks()));
    const auto gather_to = [&](int root) {
      mpi_calls = {};
      GatherPlan(scene.communicators,
                 {const_cast<int*>(&value), 1, MPI_INT, received.data(), {1}, MPI_INT, root, true},
                 GatherVariant::zero_copy)
          .run();
      return mpi_calls.splits;
    };
    gather_to(0);
    for (int root = 0; root < scene.ranks(); ++root) {
      const bool first = nodes.ranks_of(nodes.node_of(root)).front() == root;
      EXPECT_EQ(gather_to(root), first ? 0 : 1) << root;
      EXPECT_EQ(gather_to(root), 0) << root;
    }
  });
}

TEST(NodeCommunicators, AreCachedOnTheirCommunicator) {
  const Communicator own(MPI_COMM_WORLD);
  const auto first = NodeCommunicators::of(own.get());
  mpi_calls = {};
  EXPECT_EQ(NodeCommunicators::of(own.get()), first);
  EXPECT_EQ(mpi_calls.splits, 0);
  const NodeHierarchy nodes(own.get(), {1});
  const auto emulated = NodeCommunicators::of(own.get(), nodes);
  EXPECT_EQ(NodeCommunicators::of(own.get(), nodes), emulated);
  EXPECT_EQ(emulated->local().size(), 1);
  EXPECT_EQ(NodeCommunicators::of(own.get()), first);
}

// ---- Messages and copies

std::int64_t sum(std::int64_t here, MPI_Comm comm) {
  MPI_Allreduce(MPI_IN_PLACE, &here, 1, MPI_INT64_T, MPI_SUM, comm);
  return here;
}

// Returns the messages that a tree sends between nodes. Each node sends once, after all blocks
// below it have arrived.
ScheduleTraffic::Messages off_node_of_tree(const NodeHierarchy& nodes, int root, TreeForm bridge,
                                           std::int64_t block_bytes, std::int64_t chunk_bytes) {
  ScheduleTraffic::Messages out;
  const int root_node = nodes.node_of(root);
  for (int node = 0; node < nodes.nodes(); ++node) {
    if (node == root_node) continue;
    const auto below = tree_steps(bridge, nodes.nodes(), root_node, node).blocks;
    std::int64_t bytes = 0;
    for (int at = below.first; at < below.last; ++at)
      bytes += block_bytes * std::ssize(nodes.ranks_of((root_node + at) % nodes.nodes()));
    out.bytes += bytes;
    out.messages += chunk_bytes == 0 ? 1 : (bytes + chunk_bytes - 1) / chunk_bytes;
  }
  return out;
}

std::int64_t bytes_between_nodes(const MpiCalls& calls, const Scene& scene) {
  std::int64_t out = 0;
  MPI_Group world, group;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Comm_group(scene.comm->get(), &group);
  for (const auto& [to, bytes] : calls.bytes_to) {
    int in_scene = 0;
    MPI_Group_translate_ranks(world, 1, &to, group, &in_scene);
    if (!scene.communicators->nodes().same_node(in_scene)) out += bytes;
  }
  MPI_Group_free(&world);
  MPI_Group_free(&group);
  return out;
}

TEST(Gather, SendsAndCopiesWhatTheAnalysisSays) {
  const Layout layout("resized(vector(3,1,2,int),0,28)");
  constexpr std::int64_t kCount = 5, kBytes = kCount * 12;
  constexpr GatherVariant kReordering[] = {GatherVariant::hier_unpack, GatherVariant::hier_sendrecv,
                                           GatherVariant::hier_plan, GatherVariant::zero_copy};
  for_all_scenes([&](const Scene& scene) {
    const auto& nodes = scene.communicators->nodes();
    const auto comm = scene.comm->get();
    const std::int64_t ranks = scene.ranks();
    int turn = 0;
    for (int root = 0; root < ranks; ++root)
      for (const auto variant : kReordering)
        for (const auto& [bridge, bridge_name] : kTreeForms) {
          const std::int64_t chunk_bytes = turn++ % 2 == 0 ? 0 : 64;
          const auto elements = kCount * layout.each();
          Memory sent(layout, elements), received(layout, ranks * elements);
          GatherPlan plan(scene.communicators,
                          {sent.data(),
                           elements,
                           layout.type(),
                           received.data(),
                           {elements},
                           layout.type(),
                           root,
                           true},
                          variant, {TreeForm::linear, bridge, chunk_bytes});
          mpi_calls = {};
          plan.run();
          const auto traffic = plan.traffic();

          // Both counts are taken where the calls enter MPI.
          EXPECT_EQ(mpi_calls.sends, traffic.on_node.messages + traffic.off_node.messages);
          EXPECT_EQ(bytes_between_nodes(mpi_calls, scene), traffic.off_node.bytes);
          const auto all_bytes = std::accumulate(
              mpi_calls.bytes_to.begin(), mpi_calls.bytes_to.end(), std::int64_t{0},
              [](std::int64_t total, const auto& entry) { return total + entry.second; });
          EXPECT_EQ(all_bytes, traffic.off_node.bytes + traffic.on_node.bytes);

          // Each node but the root's sends one message. Each rank that does not lead a node sends
          // one, too. Divided messages between nodes count more.
          const auto off_node = off_node_of_tree(nodes, root, bridge, kBytes, chunk_bytes);
          EXPECT_EQ(sum(traffic.off_node.messages, comm), off_node.messages);
          EXPECT_EQ(sum(traffic.off_node.bytes, comm), off_node.bytes);
          EXPECT_TRUE(chunk_bytes > 0 || off_node.messages == nodes.nodes() - 1);
          EXPECT_EQ(sum(traffic.on_node.messages, comm), ranks - nodes.nodes());
          EXPECT_EQ(sum(traffic.on_node.bytes, comm), (ranks - nodes.nodes()) * kBytes);
          if (ranks % nodes.nodes() == 0 && root == 0) {
            const RegularGather regular{nodes.nodes(), static_cast<int>(ranks / nodes.nodes()),
                                        kBytes};
            EXPECT_TRUE(std::ssize(nodes.ranks_of(0)) != regular.each ||
                        hierarchical_off_node(regular, bridge, chunk_bytes) == off_node);
          }

          // The root's own block is copied to its place. Nothing else is copied, unless ranks must
          // be reordered and the types do not do that.
          const bool at_root = scene.rank() == root;
          const auto& node_of = nodes.node_of_ranks();
          const bool reorders = at_root && variant != GatherVariant::zero_copy &&
                                !std::is_sorted(node_of.begin(), node_of.end());
          EXPECT_EQ(traffic.copied_bytes, at_root ? kBytes : 0);
          EXPECT_EQ(traffic.reordered_bytes, reorders ? ranks * kBytes : 0);
          EXPECT_EQ(mpi_calls.packs, reorders && variant == GatherVariant::hier_unpack ? 1 : 0);
          EXPECT_EQ(mpi_calls.sendrecvs,
                    reorders && variant == GatherVariant::hier_sendrecv ? 1 : 0);
        }
  });
}

TEST(Gather, PiecesAreNotTooMany) {
  const auto gibi = std::int64_t{1} << 30;
  const auto piece = elements_of_piece(gibi, gibi, {});
  EXPECT_LE((gibi + piece - 1) / piece, 1024);
  EXPECT_EQ(elements_of_piece(std::int64_t{1} << 60, std::int64_t{1} << 60, {}),
            Schedule::kMostElements);
  EXPECT_EQ(elements_of_piece(1 << 20, 1 << 23, {}), kChunkBytes / 8);
  EXPECT_EQ(elements_of_piece(1 << 20, 1 << 20, {.chunk_bytes = INT64_MAX}),
            Schedule::kMostElements);
  EXPECT_EQ(elements_of_piece(1, 1 << 20, {}), 1);
  EXPECT_EQ(elements_of_piece(1 << 20, 1 << 23, {.chunk_bytes = 0}), Schedule::kMostElements);
}

TEST(Gather, ChoosesFormsBySize) {
  const NodeHierarchy nodes(MPI_COMM_WORLD, {1});
  for (const std::int64_t bytes : {8, 1 << 20}) {
    const auto forms = choose_forms(nodes, bytes * nodes.ranks(), {});
    EXPECT_EQ(forms.in_node, TreeForm::linear);  // each node has one rank
    EXPECT_EQ(forms.bridge,
              nodes.nodes() > 2 && bytes == 8 ? TreeForm::binomial : TreeForm::linear);
  }
}

// A plan keeps what it needs of its types.
TEST(Gather, TypesMayBeFreedBeforeItRuns) {
  for_all_scenes([](const Scene& scene) {
    const auto n = static_cast<std::size_t>(scene.ranks());
    const int own[] = {scene.rank(), -1, scene.rank() + 100};
    for (const auto& [variant, name] : kGatherVariants) {
      if (!applies(variant, scene)) continue;
      std::vector<int> received(2 * n, -1), expected;
      std::optional<GatherPlan> plan;
      {
        const Layout send("vector(2,1,2,int)"), receive("contiguous(2,int)");
        plan.emplace(scene.communicators,
                     RootedBuffers{const_cast<int*>(own),
                                   2,
                                   send.type(),
                                   received.data(),
                                   {2},
                                   receive.type(),
                                   0,
                                   true},
                     variant);
      }
      plan->run();
      for (int rank = 0; rank < scene.ranks(); ++rank)
        expected.insert(expected.end(), {rank, rank + 100});
      EXPECT_TRUE(scene.rank() != 0 || received == expected) << name;
    }
  });
}

TEST(Gather, AsSingleCallsIsMpisToo) {
  const Layout send(kPairs[0].send), receive(kPairs[0].receive);
  const int root = world_size() - 1, ranks = world_size();
  Memory sent(send, 4 * send.each()), received(receive, 4 * ranks * receive.each()),
      expected(receive, 4 * ranks * receive.each());
  sent.fill(world_rank());
  MPI_Gather(sent.data(), 4, send.type(), expected.data(), 4, receive.type(), root, MPI_COMM_WORLD);
  hierarchical_gather(sent.data(), 4, send.type(), received.data(), 4, receive.type(), root,
                      MPI_COMM_WORLD);
  EXPECT_EQ(received.difference(expected), -1);
  EXPECT_EQ(basic_element_count(MPI_DOUBLE_INT), 2);
  EXPECT_EQ(basic_element_count(send.type()), 3);
}

TEST(Gather, WhatCannotBeIsRefusedOnAllRanks) {
  const Scene scene({1}, RankOrder::ordered);
  int value = 0;
  std::vector<int> received(static_cast<std::size_t>(scene.ranks()));
  const auto gather = [&](std::int64_t own, Numbers counts, int root, GatherVariant variant,
                          void* buffer) {
    GatherPlan(scene.communicators,
               {buffer, own, MPI_INT, received.data(), std::move(counts), MPI_INT, root}, variant);
  };
  const auto zero_copy = GatherVariant::zero_copy;
  EXPECT_THROW(gather(-1, {-1}, 0, zero_copy, &value), ConfigError);
  EXPECT_THROW(gather(1, {2}, 0, zero_copy, &value), ConfigError);
  EXPECT_THROW(
      gather(1, Numbers(static_cast<std::size_t>(scene.ranks() + 1), 1), 0, zero_copy, &value),
      ConfigError);
  EXPECT_THROW(gather(1, {1}, scene.ranks(), zero_copy, &value), ConfigError);
  // An error of one rank is thrown on all ranks.
  const bool last = scene.rank() == scene.ranks() - 1;
  EXPECT_THROW(gather(last ? -1 : 1, {1}, 0, zero_copy, &value), ConfigError);
  EXPECT_THROW(
      GatherPlan(scene.communicators, {&value, 1, MPI_INT, received.data(), {1}, MPI_INT, 0},
                 GatherVariant::mpi_gather, {.chunk_bytes = last ? -1 : 0}),
      ConfigError);
  EXPECT_THROW(ScatterPlan(scene.communicators,
                           {&value, last ? -1 : 1, MPI_INT, received.data(), {1}, MPI_INT, 0}),
               ConfigError);
  EXPECT_THROW(AllgatherPlan(scene.communicators,
                             {&value, last ? 2 : 1, MPI_INT, received.data(), {1}, MPI_INT}),
               ConfigError);
  EXPECT_THROW(gather(1, {1}, -1, zero_copy, &value), ConfigError);
  if (scene.ranks() > 1) {
    EXPECT_THROW(gather(1, {1}, 0, zero_copy, MPI_IN_PLACE), ConfigError);
  }
  EXPECT_THROW(
      GatherPlan(scene.communicators, {&value, 1, MPI_INT, received.data(), {1}, MPI_INT, 0},
                 zero_copy, {.chunk_bytes = -1}),
      ConfigError);
  const Layout pair("struct({1,1},{0,4},{int,int})");
  EXPECT_THROW(GatherPlan(scene.communicators,
                          {&value, 1, pair.type(), received.data(), {1}, pair.type(), 0},
                          GatherVariant::mpi_gather),
               ConfigError);
  if (!can_emulate({2}) || scene.ranks() < 4) return;
  const Scene alternating({2}, RankOrder::round_robin);
  EXPECT_THROW(
      GatherPlan(alternating.communicators, {&value, 1, MPI_INT, received.data(), {1}, MPI_INT, 0},
                 GatherVariant::hier_forced_indexed),
      ConfigError);
}

// ---- Counterparts

TEST(Gatherv, ScatterAndAllgatherAreTheTypeMaps) {
  for_all_scenes([](const Scene& scene) {
    std::mt19937 random(5);
    const auto comm = scene.comm->get();
    for (const auto& pair : kPairs) {
      const Layout send(pair.send), receive(pair.receive);
      for (const std::int64_t most : {0, 1, 7, 1000})
        for (const int root : roots_of(scene)) {
          Numbers counts;  // equal for even roots, random for odd ones
          for (int rank = 0; rank < scene.ranks(); ++rank) {
            const auto some = static_cast<std::int64_t>(random() % (most + 1));
            counts.push_back(send.each() * (root % 2 == 0 || rank == 0 ? most : some));
          }
          // Every third root divides blocks into small pieces.
          const GatherOptions options{form_of(random()), form_of(random()),
                                      root % 3 == 1 ? 200 + 2 * most : kChunkBytes};
          EXPECT_EQ(gather_once(scene, send, receive, counts, root, GatherVariant::mpi_gather,
                                options, false),
                    "");
          EXPECT_EQ(gather_once(scene, send, receive, counts, root, GatherVariant::zero_copy,
                                options, false),
                    "");
          const bool in_place = root % 4 == 3 || root == scene.ranks() - 1;
          EXPECT_EQ(scatter_once(scene, send, receive, counts, root, options, in_place), "");
          EXPECT_EQ(allgather_once(scene, send, receive, counts, options, in_place), "");
          if (!everywhere(!testing::Test::HasFailure(), comm)) return;
        }
    }
  });
}

TEST(Counterparts, AsSingleCallsAreMpisToo) {
  const int ranks = world_size();
  const auto n = static_cast<std::size_t>(ranks);
  std::vector<int> sent(3 * n), expected(3 * n), received(3 * n);
  for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = 1000 * world_rank() + static_cast<int>(i);
  const auto same = [&] {
    const bool out = received == expected;
    std::fill(received.begin(), received.end(), -1);
    std::fill(expected.begin(), expected.end(), -1);
    return out;
  };
  MPI_Scatter(sent.data(), 3, MPI_INT, expected.data(), 3, MPI_INT, 0, MPI_COMM_WORLD);
  elements::scatter(sent.data(), 3, MPI_INT, received.data(), 3, MPI_INT, 0, MPI_COMM_WORLD);
  EXPECT_TRUE(same());
  MPI_Allgather(sent.data(), 3, MPI_INT, expected.data(), 3, MPI_INT, MPI_COMM_WORLD);
  elements::allgather(sent.data(), 3, MPI_INT, received.data(), 3, MPI_INT, MPI_COMM_WORLD);
  EXPECT_TRUE(same());
  MPI_Gather(sent.data(), 3, MPI_INT, expected.data(), 3, MPI_INT, ranks - 1, MPI_COMM_WORLD);
  elements::gather(sent.data(), 3, MPI_INT, received.data(), 3, MPI_INT, ranks - 1, MPI_COMM_WORLD);
  EXPECT_TRUE(same());
  MPI_Alltoall(sent.data(), 3, MPI_INT, expected.data(), 3, MPI_INT, MPI_COMM_WORLD);
  elements::alltoallv(sent.data(), {3}, MPI_INT, received.data(), {3}, MPI_INT, MPI_COMM_WORLD);
  EXPECT_TRUE(same());
  // Rank i's block has i elements.
  Numbers counts(n);
  std::iota(counts.begin(), counts.end(), 0);
  const auto starts = starts_of(counts);
  const auto total = static_cast<std::size_t>(starts.back() + counts.back());
  const std::vector<int> int_counts(counts.begin(), counts.end()),
      int_starts(starts.begin(), starts.end());
  const auto own = counts[static_cast<std::size_t>(world_rank())];
  const auto own_count = static_cast<int>(own);
  sent.resize(std::max(sent.size(), total));
  received.assign(std::max(sent.size(), n * n), -1);
  expected = received;
  MPI_Gatherv(sent.data(), own_count, MPI_INT, expected.data(), int_counts.data(),
              int_starts.data(), MPI_INT, 0, MPI_COMM_WORLD);
  elements::gatherv(sent.data(), own, MPI_INT, received.data(), counts, MPI_INT, 0, MPI_COMM_WORLD);
  EXPECT_TRUE(same());
  MPI_Scatterv(sent.data(), int_counts.data(), int_starts.data(), MPI_INT, expected.data(),
               own_count, MPI_INT, 0, MPI_COMM_WORLD);
  elements::scatterv(sent.data(), counts, MPI_INT, received.data(), own, MPI_INT, 0,
                     MPI_COMM_WORLD);
  EXPECT_TRUE(same());
  MPI_Allgatherv(sent.data(), own_count, MPI_INT, expected.data(), int_counts.data(),
                 int_starts.data(), MPI_INT, MPI_COMM_WORLD);
  elements::allgatherv(sent.data(), own, MPI_INT, received.data(), counts, MPI_INT, MPI_COMM_WORLD);
  EXPECT_TRUE(same());
  std::vector<int> own_counts(n, own_count), own_starts;
  for (int rank = 0; rank < ranks; ++rank) own_starts.push_back(rank * own_count);
  MPI_Alltoallv(sent.data(), int_counts.data(), int_starts.data(), MPI_INT, expected.data(),
                own_counts.data(), own_starts.data(), MPI_INT, MPI_COMM_WORLD);
  elements::alltoallv(sent.data(), counts, MPI_INT, received.data(), {own}, MPI_INT,
                      MPI_COMM_WORLD);
  EXPECT_TRUE(same());
  sent.resize(3 * n);
  expected.resize(3 * n);
  std::vector<int> in_place(3 * n, -1);
  std::copy_n(sent.begin(), 3, in_place.begin() + 3 * world_rank());
  MPI_Allgather(sent.data(), 3, MPI_INT, expected.data(), 3, MPI_INT, MPI_COMM_WORLD);
  elements::allgather(MPI_IN_PLACE, 0, MPI_INT, in_place.data(), 3, MPI_INT, MPI_COMM_WORLD);
  EXPECT_EQ(in_place, expected);
}

// ---- All-to-all

// Holds in counts[i][j] the number of elements from rank i to rank j.
using Matrix = std::vector<Numbers>;

template <class Plan>
std::string alltoall_once(const Scene& scene, const Layout& send, const Layout& receive,
                          const Matrix& counts,
                          std::int64_t most_elements = Schedule::kMostElements) {
  const auto own = static_cast<std::size_t>(scene.rank());
  Numbers arriving;
  for (const auto& row : counts) arriving.push_back(row[own]);
  const auto to = starts_of(arriving);
  Memory sent(send, std::accumulate(counts[own].begin(), counts[own].end(), std::int64_t{0})),
      received(receive, to.back() + arriving.back()),
      expected(receive, to.back() + arriving.back());
  Plan plan(scene.communicators, {sent.data(), counts[own], send.type(), received.data(), arriving,
                                  receive.type(), most_elements});
  std::string problem;
  for (int repeat = 0; repeat < 2; ++repeat) {
    sent.fill(contents_in(repeat, scene.rank()));
    for (int rank = 0; rank < scene.ranks(); ++rank) {
      const auto at = static_cast<std::size_t>(rank);
      expected.expect(send, contents_in(repeat, rank), starts_of(counts[at])[own], to[at],
                      arriving[at]);
    }
    received.poison();
    plan.run();
    note(problem, received.difference(expected), repeat);
  }
  return problem;
}

Matrix counts_of(int ranks, auto count) {
  Matrix out(static_cast<std::size_t>(ranks));
  for (int i = 0; i < ranks; ++i)
    for (int j = 0; j < ranks; ++j) out[static_cast<std::size_t>(i)].push_back(count(i, j));
  return out;
}

TEST(Alltoall, OfEveryPlanIsTheTypeMaps) {
  for_all_scenes([](const Scene& scene) {
    const auto comm = scene.comm->get();
    for (const auto& pair : kPairs) {
      const Layout send(pair.send), receive(pair.receive);
      for (const std::int64_t count : {0, 1, 7, 1000}) {
        const auto counts = counts_of(scene.ranks(), [&](int, int) { return count * send.each(); });
        EXPECT_EQ(alltoall_once<DirectAlltoallPlan>(scene, send, receive, counts), "");
        EXPECT_EQ(alltoall_once<BruckAlltoallPlan>(scene, send, receive, counts), "");
        EXPECT_EQ(alltoall_once<HierarchicalAlltoallPlan>(scene, send, receive, counts), "");
        if (count == 7) {
          EXPECT_EQ(alltoall_once<DirectAlltoallPlan>(scene, send, receive, counts, 5), "");
          EXPECT_EQ(alltoall_once<BruckAlltoallPlan>(scene, send, receive, counts, 5), "");
          EXPECT_EQ(alltoall_once<HierarchicalAlltoallPlan>(scene, send, receive, counts, 5), "");
        }
        if (!everywhere(!testing::Test::HasFailure(), comm)) return;
      }
    }
  });
}

// Instances go backwards in memory. Blocks begin and end with instances.
TEST(Alltoall, OfNegativeExtentsIsTheTypeMaps) {
  const Layout send("resized(vector(2,1,2,int),4,-24)"), receive("resized(contiguous(2,int),0,-8)");
  for_all_scenes([&](const Scene& scene) {
    for (const std::int64_t count : {1, 2, 7}) {
      const auto counts = counts_of(scene.ranks(), [&](int, int) { return count * send.each(); });
      EXPECT_EQ(alltoall_once<DirectAlltoallPlan>(scene, send, receive, counts), "");
      EXPECT_EQ(alltoall_once<BruckAlltoallPlan>(scene, send, receive, counts), "");
      EXPECT_EQ(alltoall_once<BucketAlltoallPlan>(scene, send, receive, counts), "");
      EXPECT_EQ(alltoall_once<HierarchicalAlltoallPlan>(scene, send, receive, counts), "");
    }
  });
}

// Both buffers begin at one address: MPI_BOTTOM, or the address of a struct. The types say where
// the data are.
TEST(Alltoall, MayHaveBothBuffersAtOneAddress) {
  for_all_scenes([](const Scene& scene) {
    const auto n = static_cast<std::size_t>(scene.ranks());
    struct OutAndIn {
      double out, in;
    };
    std::vector<OutAndIn> fields(n + 1);
    const auto field = [&](std::size_t offset) {
      return Layout(
          ("resized(struct({1},{" + std::to_string(offset) + "},{double}),0,16)").c_str());
    };
    const Layout out = field(0), in = field(8);
    std::vector<int> sent(n), received(n);
    const auto absolute = [](std::vector<int>& where) {
      const auto at = reinterpret_cast<std::intptr_t>(where.data());
      return Layout(("resized(struct({1},{" + std::to_string(at) + "},{int}),0,4)").c_str());
    };
    const auto from = absolute(sent), to = absolute(received);
    const auto check = [&](auto make, const std::string& name) {
      for (std::size_t i = 0; i < n; ++i) {
        fields[i] = {100.0 * scene.rank() + static_cast<double>(i), -1};
        sent[i] = 100 * scene.rank() + static_cast<int>(i);
        received[i] = -1;
      }
      make(AlltoallBuffers{fields.data(), {1}, out.type(), fields.data(), {1}, in.type()});
      make(AlltoallBuffers{MPI_BOTTOM, {1}, from.type(), MPI_BOTTOM, {1}, to.type()});
      for (std::size_t i = 0; i < n; ++i) {
        EXPECT_EQ(fields[i].in, 100.0 * static_cast<double>(i) + scene.rank()) << name;
        EXPECT_EQ(received[i], 100 * static_cast<int>(i) + scene.rank()) << name;
      }
    };
    const auto& communicators = scene.communicators;
    check([&](const auto& buffers) { DirectAlltoallPlan(communicators, buffers).run(); }, "direct");
    check([&](const auto& buffers) { BruckAlltoallPlan(communicators, buffers).run(); }, "Bruck");
    check([&](const auto& buffers) { BucketAlltoallPlan(communicators, buffers).run(); }, "bucket");
    check([&](const auto& buffers) { HierarchicalAlltoallPlan(communicators, buffers).run(); },
          "hierarchical");
    sent[0] = scene.rank();
    for (const auto form : {TreeForm::linear, TreeForm::binomial}) {
      std::fill(received.begin(), received.end(), -1);
      AllgatherPlan(communicators, {MPI_BOTTOM, 1, from.type(), MPI_BOTTOM, {1}, to.type()},
                    {form, form})
          .run();
      for (std::size_t i = 0; i < n; ++i) EXPECT_EQ(received[i], static_cast<int>(i));
    }
  });
}

TEST(Alltoall, OfBlocksOfAnySizeIsTheTypeMaps) {
  const Pair pairs[] = {{"vector(3,1,2,int)", "resized(vector(2,2,3,int),0,28)"},
                        {"resized(short,0,6)", "indexed({3,2},{4,0},short)"},
                        {"struct({3,100},{0,16},{int,int})", "int"}};
  for_all_scenes([&](const Scene& scene) {
    const auto comm = scene.comm->get();
    std::mt19937 random(17);
    for (const auto& pair : pairs) {
      const Layout send(pair.send), receive(pair.receive);
      for (const unsigned most : {0u, 1u, 7u, 1000u}) {
        const auto counts = counts_of(scene.ranks(), [&](int, int) {
          return static_cast<std::int64_t>(random() % (most + 1));
        });
        EXPECT_EQ(alltoall_once<DirectAlltoallPlan>(scene, send, receive, counts), "");
        EXPECT_EQ(alltoall_once<BucketAlltoallPlan>(scene, send, receive, counts), "");
        if (most == 7) {
          EXPECT_EQ(alltoall_once<BucketAlltoallPlan>(scene, send, receive, counts, 2), "");
        }
        if (!everywhere(!testing::Test::HasFailure(), comm)) return;
      }
    }
  });
}

// Every other rank makes its type by other constructors: with an equal signature, or with another
// one.
TEST(Alltoall, SignaturesAreComparedNotTypes) {
  const Layout one("struct({1,2},{0,8},{int,double})"),
      other("struct({1,1,1,1},{0,8,16,24},{contiguous(1,int),double,contiguous(1,double),byte})"),
      same("resized(struct({1,1,1},{40,0,8},{int,double,contiguous(1,double)}),0,48)");
  for_all_scenes([&](const Scene& scene) {
    const auto of_rank = [&](const Layout& odd) -> const Layout& {
      return scene.rank() % 2 == 0 ? one : odd;
    };
    const auto once = [&](auto make, const Layout& send) {
      const auto elements = 2 * scene.ranks() * send.each();
      Memory sent(send, elements), received(one, elements);
      sent.fill(scene.rank());
      make({sent.data(),
            {2 * send.each()},
            send.type(),
            received.data(),
            {2 * send.each()},
            one.type()});
    };
    const auto bruck = [&](const AlltoallBuffers& buffers) {
      BruckAlltoallPlan(scene.communicators, buffers).run();
    };
    const auto hierarchical = [&](const AlltoallBuffers& buffers) {
      HierarchicalAlltoallPlan(scene.communicators, buffers).run();
    };
    EXPECT_NO_THROW(once(bruck, of_rank(same)));
    EXPECT_NO_THROW(once(hierarchical, of_rank(same)));
    if (scene.ranks() == 1) return;
    EXPECT_THROW(once(bruck, of_rank(other)), ConfigError);
    EXPECT_THROW(once(hierarchical, of_rank(other)), ConfigError);
  });
}

TEST(Alltoall, SendsAsManyMessagesAsItSays) {
  for_all_scenes([](const Scene& scene) {
    const auto& nodes = scene.communicators->nodes();
    const Layout layout("int");
    const std::int64_t ranks = scene.ranks();
    std::vector<int> sent(static_cast<std::size_t>(ranks)), received(sent.size());
    const AlltoallBuffers buffers{sent.data(), {1}, MPI_INT, received.data(), {1}, MPI_INT};
    DirectAlltoallPlan direct(scene.communicators, buffers);
    direct.run();
    EXPECT_EQ(direct.traffic().on_node.messages + direct.traffic().off_node.messages, ranks - 1);
    BruckAlltoallPlan bruck(scene.communicators, buffers);
    bruck.run();
    EXPECT_EQ(bruck.traffic().on_node.messages + bruck.traffic().off_node.messages,
              tree_rounds(TreeForm::binomial, scene.ranks()));
    HierarchicalAlltoallPlan hierarchical(scene.communicators, buffers);
    hierarchical.run();
    const std::int64_t others = nodes.nodes() - 1;
    EXPECT_EQ(sum(hierarchical.traffic().off_node.messages, scene.comm->get()),
              nodes.nodes() * others);
    std::int64_t crossing = 0;
    for (int rank = 0; rank < ranks; ++rank) crossing += nodes.same_node(rank) ? 0 : 4;
    EXPECT_EQ(sum(hierarchical.traffic().off_node.bytes, scene.comm->get()),
              sum(crossing, scene.comm->get()));
    EXPECT_EQ(sum(direct.traffic().off_node.bytes, scene.comm->get()),
              sum(crossing, scene.comm->get()));
    EXPECT_EQ(sum(direct.traffic().off_node.messages, scene.comm->get()),
              sum(crossing / 4, scene.comm->get()));
    // Each rank sends one message to every other rank of its node.
    const auto here = std::ssize(nodes.ranks_of(nodes.node_of(scene.rank())));
    EXPECT_EQ(hierarchical.traffic().on_node.messages, here - 1);
    mpi_calls = {};
    hierarchical.run();
    EXPECT_EQ(mpi_calls.sends,
              hierarchical.traffic().on_node.messages + hierarchical.traffic().off_node.messages);
    EXPECT_EQ(mpi_calls.packs + mpi_calls.sendrecvs, 0);
  });
}

TEST(Alltoall, WhatAPlanCannotDoIsRefusedOnAllRanks) {
  const Scene scene({1}, RankOrder::ordered);
  // A single rank has no partner whose counts could differ: the runs with 3 ranks and more test it.
  if (scene.ranks() == 1) GTEST_SKIP() << "for two ranks and more";
  const auto n = static_cast<std::size_t>(scene.ranks());
  std::vector<double> sent(2 * n), received(2 * n);
  const auto alltoall = [&](Numbers sends, Numbers receives) {
    return AlltoallBuffers{sent.data(),     std::move(sends),    MPI_DOUBLE,
                           received.data(), std::move(receives), MPI_DOUBLE};
  };
  const auto& communicators = scene.communicators;
  EXPECT_THROW(DirectAlltoallPlan(communicators, alltoall({1}, {2})), ConfigError);
  EXPECT_THROW(DirectAlltoallPlan(communicators, alltoall({-1}, {-1})), ConfigError);
  const auto last = scene.ranks() - 1;
  const auto on_last = [&](auto bad, auto good) { return scene.rank() == last ? bad : good; };
  EXPECT_THROW(DirectAlltoallPlan(communicators, alltoall(on_last(Numbers{-1}, Numbers{1}), {1})),
               ConfigError);
  auto in_place = alltoall({1}, {1});
  in_place.sendbuf = on_last(static_cast<const void*>(MPI_IN_PLACE), in_place.sendbuf);
  EXPECT_THROW(DirectAlltoallPlan(communicators, in_place), ConfigError);
  auto undivided = alltoall({1}, {1});
  undivided.most_elements = 0;
  EXPECT_THROW(DirectAlltoallPlan(communicators, undivided), ConfigError);
  Numbers uneven(n, 1), back(n, scene.rank() == 0 ? 2 : 1);
  uneven[0] = 2;
  EXPECT_THROW(BruckAlltoallPlan(communicators, alltoall(uneven, back)), ConfigError);
  EXPECT_THROW(HierarchicalAlltoallPlan(communicators, alltoall(uneven, back)), ConfigError);
  const Layout mixed("struct({1,1},{0,8},{int,double})");
  const AlltoallBuffers two_types{sent.data(),     {2}, mixed.type(),
                                  received.data(), {2}, mixed.type()};
  EXPECT_THROW(BucketAlltoallPlan(communicators, two_types), ConfigError);
  auto differing = alltoall({1}, {1});
  differing.sendtype = differing.recvtype = on_last(MPI_INT64_T, MPI_DOUBLE);
  EXPECT_THROW(BucketAlltoallPlan(communicators, differing), ConfigError);
}

// A rank without elements has no basic type, either.
TEST(Alltoall, OfBucketsTakesRanksWithNothing) {
  const Layout nothing("contiguous(0,int)");
  for_all_scenes([&](const Scene& scene) {
    const auto n = static_cast<std::size_t>(scene.ranks());
    const int value = 7;
    const bool sends = scene.rank() == scene.ranks() - 1;
    std::vector<int> sent(n, value), received(n, -1), expected(n, -1);
    Numbers arriving(n, 0);
    arriving.back() = 1;
    expected.front() = value;
    BucketAlltoallPlan(scene.communicators, {sent.data(),
                                             {sends ? 1 : 0},
                                             sends ? MPI_INT : nothing.type(),
                                             received.data(),
                                             arriving,
                                             MPI_INT})
        .run();
    EXPECT_EQ(received, expected);
    BucketAlltoallPlan(scene.communicators,
                       {sent.data(), {0}, nothing.type(), received.data(), {0}, nothing.type()})
        .run();
    EXPECT_EQ(received, expected);
  });
}

}  // namespace
}  // namespace halocline::comm
