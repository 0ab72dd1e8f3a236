// SPDX-License-Identifier: BSD-3-Clause
// Runs `halocline gather`: hierarchical gathers side by side [TR14 section 4].
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "comm/calibrate/ping_pong.hpp"
#include "comm/gather/gather_model.hpp"
#include "comm/gather/gather_plan.hpp"
#include "commands.hpp"
#include "domain.hpp"
#include "environment.hpp"
#include "progress.hpp"
#include "provenance.hpp"
#include "record.hpp"
#include "support/message_buffer.hpp"
#include "support/mpi_check.hpp"
#include "support/region.hpp"
#include "table.hpp"
#include "verify.hpp"

namespace halocline::app {

namespace {

using comm::GatherVariant;
using Bytes = MessageBuffer;

/// Holds the ranks in one order, and their nodes.
struct Arrangement {
  comm::RankOrder order;
  std::unique_ptr<comm::Communicator> comm;
  std::shared_ptr<comm::NodeCommunicators> communicators;

  const comm::NodeHierarchy& nodes() const { return communicators->nodes(); }
  bool in_node_order() const {
    const auto& node_of = nodes().node_of_ranks();
    return std::is_sorted(node_of.begin(), node_of.end());
  }
};

Arrangement arrange(const Config& config, comm::RankOrder order, const comm::NodeHierarchy& nodes,
                    MPI_Comm comm) {
  const auto ranks = comm::ranks_in_order(order, nodes, config.seed);
  const auto rank = std::find(ranks.begin(), ranks.end(), nodes.rank()) - ranks.begin();
  auto ordered = std::make_unique<comm::Communicator>(comm, 0, static_cast<int>(rank));
  auto communicators = comm::NodeCommunicators::of(
      ordered->get(), comm::NodeHierarchy::by_color(ordered->get(), nodes.node_of(nodes.rank())));
  return {order, std::move(ordered), std::move(communicators)};
}

// Returns those of config.variants that are possible for this order of ranks.
std::vector<GatherVariant> variants_for(const Config& config, const Arrangement& arrangement) {
  auto out = config.variants;
  if (!arrangement.in_node_order()) std::erase_if(out, comm::is_forced);
  return out;
}

// Returns word number `word` (eight bytes) of the contribution of rank `rank`. `gather` is the
// number of the gather; each byte differs from that of the gather before.
std::uint64_t content(std::int64_t seed, int rank, std::int64_t word, std::uint64_t gather) {
  auto x = static_cast<std::uint64_t>(seed) +
           static_cast<std::uint64_t>(rank) * 0x9E3779B97F4A7C15u +
           static_cast<std::uint64_t>(word) * 0xBF58476D1CE4E5B9u;
  x ^= x >> 31;
  x *= 0x94D049BB133111EBu;
  return (x ^ x >> 31) + gather * 0x0101010101010101u;
}

/// Holds the buffers for gathers of one size.
class Buffers {
 public:
  Buffers(const Config& config, const Arrangement& arrangement, std::int64_t bytes)
      : config_(config),
        rank_(arrangement.nodes().rank()),
        ranks_(arrangement.nodes().ranks()),
        bytes_(bytes),
        sent_(static_cast<std::size_t>(bytes)) {
    if (rank_ == config.root) received_.resize(static_cast<std::size_t>(bytes * ranks_));
  }

  comm::RootedBuffers get() {
    return {sent_.data(), bytes_,   MPI_BYTE,     received_.data(),
            {bytes_},     MPI_BYTE, config_.root, true};
  }

  // Runs `plan` with new bytes into poisoned memory, and applies config.inject. `number` is the
  // number of this gather among the plan's verified ones. Tells if the root has received the right
  // bytes.
  bool verify(comm::GatherPlan& plan, int number, MPI_Comm comm) {
    ++gathers_;
    for_each_word(rank_, [&](std::size_t offset, auto length, const void* expected) {
      std::memcpy(sent_.data() + offset, expected, length);
    });
    std::fill(received_.begin(), received_.end(), kPoison);
    plan.run();
    if (!received_.empty()) inject(number);
    bool all_right = true;
    const auto* block = received_.data();
    for (int rank = 0; !received_.empty() && rank < ranks_; ++rank, block += bytes_)
      for_each_word(rank, [&](std::size_t offset, auto length, const void* expected) {
        if (std::memcmp(block + offset, expected, length) != 0) all_right = false;
      });
    int right = all_right ? 1 : 0;
    HALOCLINE_MPI(MPI_Allreduce(MPI_IN_PLACE, &right, 1, MPI_INT, MPI_MIN, comm));
    return right == 1;
  }

 private:
  static constexpr std::byte kPoison{0xA5};

  // Calls body(offset, length, bytes) for all bytes that a rank contributes, eight at a time.
  template <class Body>
  void for_each_word(int rank, Body body) const {
    for (std::int64_t offset = 0; offset < bytes_; offset += 8) {
      const auto value = content(config_.seed, rank, offset / 8, gathers_);
      const auto at = static_cast<std::size_t>(offset);
      if (offset + 8 <= bytes_)
        body(at, std::integral_constant<std::size_t, 8>(), &value);  // a constant length makes this
                                                                     // fast
      else
        body(at, static_cast<std::size_t>(bytes_ - offset), &value);
    }
  }

  void inject(int number) {
    if (config_.inject == Inject::none) return;
    Bytes arrived(received_.end() - bytes_, received_.end());
    if (number >= config_.inject_from) spoil();
    last_ = std::move(arrived);
  }

  // Spoils what has arrived from the last rank.
  void spoil() {
    const auto block = received_.end() - bytes_;
    switch (config_.inject) {
      case Inject::none:
        return;
      case Inject::drop:
        std::fill(block, received_.end(), kPoison);
        return;
      case Inject::swap:
        std::swap_ranges(block, received_.end(), received_.begin());
        return;
      case Inject::flip:
        *block ^= std::byte{1};
        return;
      case Inject::stale:
        std::copy(last_.begin(), last_.end(), block);
        return;
    }
  }

  const Config& config_;
  int rank_, ranks_;
  std::int64_t bytes_;
  std::uint64_t gathers_ = 0;  // verified gathers
  Bytes sent_, received_;
  Bytes last_;  // data of the last rank in the last verified gather
};

struct GatherContender {
  std::unique_ptr<comm::GatherPlan> plan;
  GatherRecord record;
  std::string region;  // for profilers
};

double largest(double here, MPI_Comm comm) {
  HALOCLINE_MPI(MPI_Allreduce(MPI_IN_PLACE, &here, 1, MPI_DOUBLE, MPI_MAX, comm));
  return here;
}

void add_traffic(GatherRecord& record, const comm::ScheduleTraffic& traffic, MPI_Comm comm) {
  std::array<std::int64_t, 6> sums{traffic.on_node.messages,  traffic.on_node.bytes,
                                   traffic.off_node.messages, traffic.off_node.bytes,
                                   traffic.copied_bytes,      traffic.reordered_bytes};
  HALOCLINE_MPI(MPI_Allreduce(MPI_IN_PLACE, sums.data(), 6, MPI_INT64_T, MPI_SUM, comm));
  std::tie(record.messages_on_node, record.bytes_on_node, record.messages_off_node,
           record.bytes_off_node, record.copied_bytes, record.reordered_bytes) =
      std::tuple_cat(sums);
}

// Makes the plan of a variant twice. The first one also makes what the communicator keeps, which
// the time of the second leaves out.
GatherContender prepare(GatherVariant variant, const Arrangement& arrangement, Buffers& buffers,
                        std::int64_t bytes, const Config& config) {
  const MPI_Comm comm = arrangement.comm->get();
  GatherContender out;
  const auto make = [&] {
    out.plan =
        std::make_unique<comm::GatherPlan>(arrangement.communicators, buffers.get(), variant);
  };
  make();
  out.plan.reset();
  HALOCLINE_MPI(MPI_Barrier(comm));
  const double start = MPI_Wtime();
  make();
  auto& record = out.record;
  record.setup_s = largest(MPI_Wtime() - start, comm);
  record.variant = variant;
  record.order = arrangement.order;
  record.bytes_per_rank = bytes;
  record.root = config.root;
  record.ranks = arrangement.nodes().ranks();
  record.nodes = arrangement.nodes().nodes();
  record.nodes_emulated = arrangement.nodes().emulated();
  record.verified = true;
  for (int number = 1; number <= Verification::kBeforeTiming && record.verified; ++number)
    record.verified = buffers.verify(*out.plan, number, comm);
  if (variant != GatherVariant::mpi_gather) {
    record.local_form = out.plan->forms().in_node;
    record.bridge_form = out.plan->forms().bridge;
    add_traffic(record, out.plan->traffic(), comm);
  }
  out.region = "halocline: gather " + std::string(to_string(variant));
  return out;
}

// Runs the variants in turns. Stops when any rank's clock reaches `end`, but runs each variant
// once.
void measure(const Config& config, const std::vector<GatherContender*>& contenders, double end,
             MPI_Comm comm) {
  for (std::int64_t i = 0; i < config.warmup + config.iterations; ++i) {
    for (const auto number : order_of_turn(contenders.size(), i)) {
      auto* const contender = contenders[number];
      HALOCLINE_MPI(MPI_Barrier(comm));
      const ProfileRegion region(contender->region.c_str());
      const double start = MPI_Wtime();
      contender->plan->run();
      const double seconds = MPI_Wtime() - start;
      if (i >= config.warmup) contender->record.samples.push_back(seconds);
    }
    if (largest(MPI_Wtime() > end ? 1 : 0, comm) == 0) continue;
    if (i >= config.warmup) break;
    i = config.warmup - 1;  // no more warm-up
  }
  for (auto* contender : contenders) {
    auto& record = contender->record;
    record.samples = max_over_ranks(std::move(record.samples), comm);
    record.iterations = std::ssize(record.samples);
    if (record.iterations < config.iterations)
      record.notes.push_back("stopped by --max-seconds after " +
                             format_count(record.iterations, "timed gather") + " of " +
                             std::to_string(config.iterations));
  }
}

// Verifies a plan after the timed gathers, and drops their times if the result is wrong.
void verify_again(GatherContender& contender, Buffers& buffers, const Arrangement& arrangement) {
  auto& record = contender.record;
  record.verified =
      buffers.verify(*contender.plan, Verification::kBeforeTiming + 1, arrangement.comm->get());
  if (record.verified) return;
  record.samples.clear();
  record.iterations = 0;
}

void set_ratios(std::vector<GatherContender>& contenders) {
  const auto baseline =
      std::find_if(contenders.begin(), contenders.end(), [](const GatherContender& contender) {
        return contender.record.variant == GatherVariant::mpi_gather &&
               !contender.record.samples.empty();
      });
  if (baseline == contenders.end()) return;
  const double time = median(baseline->record.samples);
  for (auto& [plan, record, region] : contenders) {
    if (record.samples.empty()) continue;
    record.baseline = to_string(baseline->record.variant);
    record.ratio_to_baseline = time / median(record.samples);
  }
}

// ---- The alpha-beta model

// Measures messages between rank 0 and the first rank on its node, or on another node. Returns
// nullopt if there is no such rank, or if there is too much noise. Collective.
std::optional<dtype::LinkCost> measure_link(const comm::NodeHierarchy& nodes, bool on_node,
                                            MPI_Comm comm) {
  for (int other = 1; other < nodes.ranks(); ++other)
    if ((nodes.node_of(other) == nodes.node_of(0)) == on_node)
      return comm::measure_link(comm, other);
  return std::nullopt;
}

/// Holds the cost of messages here, as far as it could be measured.
struct Links {
  std::optional<dtype::LinkCost> on_node, off_node;

  // Uses the one measured cost for both if the other is missing.
  std::optional<comm::MachineCost> cost() const {
    if (!on_node && !off_node) return std::nullopt;
    return comm::MachineCost{on_node ? *on_node : *off_node, off_node ? *off_node : *on_node};
  }
};

// Returns the number of ranks of each node; nullopt if nodes differ.
std::optional<int> ranks_of_each_node(const comm::NodeHierarchy& nodes) {
  const int each = nodes.ranks() / nodes.nodes();
  for (int node = 0; node < nodes.nodes(); ++node)
    if (std::ssize(nodes.ranks_of(node)) != each) return std::nullopt;
  return each;
}

// Predicts the time of the variants that the model covers. The model counts messages alone, for
// ranks in the order of their nodes, from the first.
void predict(GatherRecord& record, const comm::TreeForms& forms, const Arrangement& arrangement,
             const std::optional<comm::MachineCost>& cost) {
  const auto each = ranks_of_each_node(arrangement.nodes());
  if (!each || !cost) return;
  const comm::RegularGather gather{record.nodes, *each, record.bytes_per_rank};
  if (record.variant == GatherVariant::zero_copy)
    record.predicted_s = hierarchical_gather_seconds(gather, *cost, forms);
  if (record.variant == GatherVariant::mpi_gather)
    record.predicted_s = flat_gather_seconds(gather, *cost, comm::TreeForm::linear,
                                             arrangement.nodes().node_of_ranks());
}

std::string format_link(const dtype::LinkCost& link) {
  return format_seconds(link.at(0)) + " + " + format_rate(1 / link.seconds_per_byte);
}

std::string describe_model(const Links& links, const comm::NodeHierarchy& nodes) {
  if (!links.cost()) return "";
  std::string out = "\nalpha-beta model: a message takes ";
  if (links.on_node) out += format_link(*links.on_node) + " on a node";
  if (links.off_node)
    out += (links.on_node ? ", " : "") + format_link(*links.off_node) + " between nodes";
  out += "; each rank handles one at a time\n";
  const auto each = ranks_of_each_node(nodes);
  if (!links.off_node || !each || *each == 1) return out;
  constexpr std::int64_t kSmallest = 1, kLargest = 1 << 30;
  Table table({{"nodes"},
               {"messages between nodes: flat"},
               {"hierarchical"},
               {"wins over a linear gather"},
               {"over a binomial one"}});
  const auto up_to = [&](int n, comm::TreeForm flat) {
    const auto bytes = wins_up_to(*links.cost(), n, *each, flat, kSmallest, kLargest);
    if (!bytes) return std::string("never");
    return *bytes == kLargest ? "always" : "up to " + format_bytes(static_cast<double>(*bytes));
  };
  for (int n = 2; n <= 1024; n *= n < 64 ? 2 : 4) {
    const comm::RegularGather gather{n, *each, 1};
    table.add_row({std::to_string(n), std::to_string(flat_off_node(gather).messages),
                   std::to_string(hierarchical_off_node(gather, comm::TreeForm::linear).messages),
                   up_to(n, comm::TreeForm::linear), up_to(n, comm::TreeForm::binomial)});
  }
  return out + "by these, with " + format_count(*each, "rank") +
         " on each node, in order, and bytes of each rank up to which the best hierarchical gather "
         "wins:\n" +
         table.str();
}

// ---- Tables

std::string headline(const Config& config, const Arrangement& arrangement) {
  const auto& nodes = arrangement.nodes();
  std::string sizes;
  for (int node = 0; node < nodes.nodes() && node < 8; ++node)
    sizes += (sizes.empty() ? "" : " + ") + std::to_string(nodes.ranks_of(node).size());
  if (nodes.nodes() > 8) sizes += " + ...";
  return "\ngather at rank " + std::to_string(config.root) + " of " +
         format_count(nodes.ranks(), "rank") + ", " + std::string(to_string(arrangement.order)) +
         " on " + format_nodes(nodes.nodes(), nodes.emulated()) + " (" + sizes + ")\n";
}

std::string note_of(const Arrangement& arrangement) {
  if (arrangement.in_node_order())
    return "ranks are in the order of their nodes: nothing is reordered, and all hier- variants "
           "but the forced ones are zero-copy\n";
  return "";
}

// Returns a table with a row for each size and a column for each variant.
std::string times_table(const std::vector<std::vector<GatherContender>>& by_size) {
  std::vector<Column> columns{{"bytes per rank"}};
  for (const auto& contender : by_size.front())
    columns.push_back({std::string(to_string(contender.record.variant))});
  const auto place = [&](GatherVariant variant) {
    const auto& row = by_size.front();
    return std::find_if(row.begin(), row.end(),
                        [&](const GatherContender& c) { return c.record.variant == variant; }) -
           row.begin();
  };
  const auto ours = place(GatherVariant::zero_copy);
  const auto count = std::ssize(by_size.front());
  std::vector<std::pair<std::ptrdiff_t, std::string>> twins;
  for (const auto twin : {GatherVariant::mpi_gather, GatherVariant::hier_unpack})
    if (ours < count && place(twin) < count)
      twins.emplace_back(place(twin), "vs " + std::string(to_string(twin)));
  for (const auto& [at, title] : twins) columns.push_back({title});
  const bool predicted =
      by_size.front().front().record.predicted_s.has_value() ||
      (ours < count && by_size.front()[static_cast<std::size_t>(ours)].record.predicted_s);
  if (predicted) columns.push_back({"model"});
  Table table(columns);
  for (const auto& contenders : by_size) {
    const auto at = [&](std::ptrdiff_t i) -> const GatherRecord& {
      return contenders[static_cast<std::size_t>(i)].record;
    };
    std::vector<std::string> row{format_bytes(static_cast<double>(at(0).bytes_per_rank))};
    for (const auto& [plan, record, region] : contenders)
      row.push_back(!record.verified         ? "WRONG"
                    : record.samples.empty() ? "-"
                                             : format_seconds(median(record.samples)));
    for (const auto& [twin, title] : twins)
      row.push_back(at(twin).samples.empty() || at(ours).samples.empty()
                        ? "-"
                        : format_fixed(median(at(twin).samples) / median(at(ours).samples), 2) +
                              "x");
    if (predicted) {
      const auto& of = at(ours < count ? ours : 0).predicted_s;
      row.push_back(of ? format_seconds(*of) : "-");
    }
    table.add_row(row);
  }
  std::string out = table.str();
  if (!twins.empty()) out += "vs NAME: zero-copy is so many times as fast as NAME\n";
  if (predicted)
    out += "model: " +
           std::string(ours < count ? "zero-copy"
                                    : to_string(by_size.front().front().record.variant)) +
           " by the alpha-beta model below\n";
  std::set<std::string> notes;
  for (const auto& contenders : by_size)
    for (const auto& contender : contenders)
      for (const auto& note : contender.record.notes)
        notes.insert(format_bytes(static_cast<double>(contender.record.bytes_per_rank)) + ": " +
                     note);
  for (const auto& note : notes) out += note + "\n";
  return out;
}

// Returns the bytes that this rank needs: for its buffers, and for the blocks of other ranks in all
// plans of a size. Collective.
double bytes_needed(const Config& config, const Arrangement& arrangement) {
  const auto& nodes = arrangement.nodes();
  const auto size = *std::max_element(config.sizes.begin(), config.sizes.end());
  const auto all = static_cast<double>(size) * nodes.ranks();
  const auto forms =
      comm::choose_forms(nodes, static_cast<std::int64_t>(std::min(all, std::ldexp(1, 62))), {});
  const auto tree = comm::rooted_tree(*arrangement.communicators, config.root, forms);
  const auto variants = variants_for(config, arrangement);
  const auto count = [&](auto keeps) {
    return static_cast<double>(std::count_if(variants.begin(), variants.end(), keeps));
  };
  const auto allocated = [](double bytes) {
    const auto whole = static_cast<std::size_t>(std::min(bytes, std::ldexp(1, 62)));
    return static_cast<double>(Bytes::allocator_type::allocated(whole));
  };
  const auto own = allocated(static_cast<double>(size));
  if (nodes.rank() == config.root)
    return own + allocated(all) * (1 + count([&](GatherVariant variant) {
                                     return comm::reorders(variant, arrangement.in_node_order());
                                   }));
  const auto plans = count([](auto variant) { return variant != GatherVariant::mpi_gather; });
  return own +
         plans * allocated(static_cast<double>(size) * static_cast<double>(tree.ranks.size() - 1));
}

// Refuses sizes that MPI cannot count. Otherwise measuring would end at the first size that is too
// large.
void check_sizes(const Config& config, const Arrangement& arrangement) {
  for (const auto size : config.sizes)
    for (const auto variant : variants_for(config, arrangement)) {
      const bool counts_all = comm::reorders(variant, arrangement.in_node_order()) &&
                              variant != GatherVariant::hier_plan;
      if (variant != GatherVariant::mpi_gather && !counts_all) continue;
      const auto most =
          std::numeric_limits<int>::max() / (counts_all ? arrangement.nodes().ranks() : 1);
      if (size > most)
        throw ConfigError("sizes cannot be used with variant " + std::string(to_string(variant)) +
                          " (" + std::to_string(size) + " bytes of each rank: MPI counts " +
                          (counts_all ? "all of them together" : "them in MPI_Gather") +
                          " as an int): use at most " + std::to_string(most) +
                          ", or --variants without it");
    }
}

// Returns the memory of the order of ranks that comes closest to its limit.
SharedMemory memory_for(const Config& config, const std::vector<Arrangement>& arrangements,
                        MPI_Comm comm) {
  std::optional<SharedMemory> out;
  for (const auto& arrangement : arrangements) {
    const auto one = tightest_node({0, bytes_needed(config, arrangement)}, comm);
    if (!out || one.needed - one.available > out->needed - out->available) out = one;
  }
  return *out;
}

std::string describe_dry_run(const Config& config, const std::vector<Arrangement>& arrangements,
                             const SharedMemory& memory) {
  std::string out;
  for (const auto& arrangement : arrangements) {
    out += headline(config, arrangement) + note_of(arrangement) + "nodes of the ranks:";
    constexpr std::size_t kShown = 64;
    const auto& node_of = arrangement.nodes().node_of_ranks();
    for (std::size_t rank = 0; rank < std::min(node_of.size(), kShown); ++rank)
      out += " " + std::to_string(node_of[rank]);
    out += std::string(node_of.size() > kShown ? " ..." : "") + "\nvariants:";
    for (const auto variant : variants_for(config, arrangement))
      out += " " + std::string(to_string(variant));
    const auto& nodes = arrangement.nodes();
    const auto beside_root = std::ssize(nodes.ranks_of(nodes.node_of(config.root)));
    out +=
        "\nmessages between nodes: " + std::to_string(nodes.nodes() - 1) +
        ", in pieces of at most " + format_bytes(comm::kChunkBytes) +
        "; of a linear gather that knows no nodes: " + std::to_string(nodes.ranks() - beside_root) +
        "\n";
  }
  out += "\nsizes:";
  for (const auto size : config.sizes) out += " " + std::to_string(size);
  return out + "\n" + std::to_string(config.iterations) +
         " timed gathers of each variant and size; a node needs up to " +
         format_bytes(memory.needed) + " of " + format_bytes(memory.available) +
         (memory.fits() ? " available" : " available: TOO MUCH") + "; nothing was measured\n";
}

}  // namespace

int gather(const Config& config, MPI_Comm comm) {
  const auto nodes = find_nodes(config, comm);
  if (config.root >= nodes.ranks())
    throw ConfigError("no such root (" + std::to_string(config.root) + " of " +
                      format_count(nodes.ranks(), "rank") + "): give --root the number of a rank");
  std::vector<Arrangement> arrangements;
  for (const auto order : config.order) arrangements.push_back(arrange(config, order, nodes, comm));
  for (const auto& arrangement : arrangements)
    if (variants_for(config, arrangement).empty())
      throw ConfigError(
          "no variant is left for order " + std::string(to_string(arrangement.order)) +
          " (the forced ones need ranks in the order of their nodes): give --variants "
          "others, too, or --order ordered");
  for (const auto& arrangement : arrangements) check_sizes(config, arrangement);
  if (config.inject != Inject::none &&
      (nodes.ranks() == 1 || *std::min_element(config.sizes.begin(), config.sizes.end()) == 0))
    throw ConfigError(
        "nothing can be broken (one rank, or blocks of no bytes): use two ranks or "
        "more and --sizes above 0");
  const auto memory = memory_for(config, arrangements, comm);
  if (config.dry_run) {
    run_on_root(comm, [&] { print(describe_dry_run(config, arrangements, memory)); });
    return 0;
  }
  require_memory(memory, "node", "smaller --sizes, fewer --variants");
  const auto provenance = gather_provenance(config, comm);
  std::optional<ResultWriter<GatherRecord>> writer;
  run_on_root(comm, [&] { writer.emplace(config, provenance); });

  const Links links{measure_link(nodes, true, comm), measure_link(nodes, false, comm)};
  Progress progress(rank_of(comm) == 0 && !config.quiet, "gather",
                    std::ssize(arrangements) * std::ssize(config.sizes));
  const double end = MPI_Wtime() + config.max_seconds;
  std::string text;
  std::string wrong;
  std::vector<GatherRecord> records;
  std::int64_t done = 0;
  for (const auto& arrangement : arrangements) {
    std::vector<std::vector<GatherContender>> by_size;
    for (const auto bytes : config.sizes) {
      Buffers buffers(config, arrangement, bytes);
      auto& contenders = by_size.emplace_back();
      for (const auto variant : variants_for(config, arrangement)) {
        contenders.push_back(prepare(variant, arrangement, buffers, bytes, config));
        predict(contenders.back().record, contenders.back().plan->forms(), arrangement,
                links.cost());
      }
      std::vector<GatherContender*> verified;
      for (auto& contender : contenders)
        if (contender.record.verified) verified.push_back(&contender);
      if (!verified.empty()) measure(config, verified, end, arrangement.comm->get());
      for (auto* contender : verified) verify_again(*contender, buffers, arrangement);
      set_ratios(contenders);
      for (auto& contender : contenders) {
        if (!contender.record.verified)
          wrong += (wrong.empty() ? "" : ", ") + std::string(to_string(contender.record.variant)) +
                   " of " + format_bytes(static_cast<double>(bytes)) + " " +
                   std::string(to_string(contender.record.order));
        contender.plan.reset();  // frees its buffers
        records.push_back(contender.record);
      }
      progress.update(++done);
    }
    text += headline(config, arrangement) + note_of(arrangement) + times_table(by_size);
  }
  progress.finish();
  text += describe_model(links, nodes);
  const auto write = [&] {
    for (const auto& record : records) writer->write(record);
  };
  return write_and_show(comm, write, [&] {
    say(config, comm, text);
    if (!wrong.empty()) report_failure(comm, "gather, " + wrong + "): they have no times");
    return wrong.empty() ? 0 : 1;
  });
}

}  // namespace halocline::app
