// SPDX-License-Identifier: BSD-3-Clause
#include "domain.hpp"

#include <algorithm>
#include <array>
#include <climits>
#include <cmath>
#include <cstdio>
#include <limits>
#include <numeric>
#include <string>

#include "boundaries.hpp"
#include "comm/halo/placement.hpp"
#include "comm/mpi/communicator.hpp"
#include "comm/node/shared_window.hpp"
#include "environment.hpp"
#include "halo_messages.hpp"
#include "physics.hpp"
#include "run_files.hpp"
#include "support/error.hpp"
#include "support/machine.hpp"
#include "support/message_buffer.hpp"
#include "support/mpi_check.hpp"
#include "table.hpp"

namespace halocline::app {

namespace {

using comm::Int3;

// Returns the bytes to a multiple of which the first owned point of each row is moved.
std::int64_t alignment_of(Pad pad) {
  switch (pad) {
    case Pad::by32:
      return 32;
    case Pad::by64:
      return 64;
    case Pad::by128:
      return 128;
    default:
      return 1;
  }
}

// Returns the padding that `auto` stands for. On a device, the three points of a face along x lie
// in one sector of 32 bytes. On the host, exchanges of rows without padding are faster.
Pad chosen_pad(const Config& config) {
  if (config.pad != Pad::automatic) return config.pad;
  const bool aligned =
      config.memory == Memory::device || physics_of(config).info(config).wants_aligned_rows;
  return aligned ? Pad::by32 : Pad::none;
}

// Returns the possible decompositions, best first. The user's decomposition is the only one if it
// is given.
std::vector<Int3> rank_grids(const Config& config, int ranks) {
  if (config.decomposition) {
    const auto& d = *config.decomposition;
    const bool fits = d[0] <= ranks && d[1] <= ranks &&
                      d[2] <= ranks &&  // so that no product overflows
                      std::int64_t{d[0]} * d[1] <= ranks && d[0] * d[1] * d[2] == ranks;
    if (!fits)
      throw ConfigError(
          "decomposition does not fit the number of ranks (" + format_extent(d) + " on " +
          std::to_string(ranks) +
          " ranks): make the product of --decomposition equal to the ranks of mpirun -n");
    return {{d[0], d[1], d[2]}};
  }
  return config.global ? comm::good_grids(ranks, *config.global, config.radius)
                       : comm::good_grids(ranks);
}

comm::DirectionSet union_of(const std::vector<comm::DirectionSet>& sets) {
  comm::DirectionSet out;
  comm::for_each_direction([&](comm::Direction direction) {
    for (const auto& set : sets)
      if (set.contains(direction)) out.insert(direction);
  });
  return out;
}

// Returns the name of what reads the ghosts: a stencil of the heat equations, or a physics.
std::string name_of_stencil(const Config& config) {
  return config.physics == "heat" ? std::string(to_string(config.stencil)) : config.physics;
}

// Returns the directions that `physics` reads, by array.
std::vector<comm::DirectionSet> needs_of(const PhysicsInfo& physics, const Config& config) {
  std::vector<comm::DirectionSet> by_field;
  for (int field = 0; field < config.fields; ++field) by_field.push_back(physics.needs(field));
  if (config.layout == Layout::aos) return {union_of(by_field)};
  return by_field;
}

// Returns the directions whose ghosts are exchanged, by array. Throws ConfigError if the physics
// reads more directions than the user allows.
std::vector<comm::DirectionSet> exchanged_directions(const Config& config) {
  // With a wide halo, ghosts are computed too, and read their own neighbours.
  const bool computes = config.subcommand == Subcommand::run && config.wide == 1;
  const auto info = physics_of(config).info(config);
  const auto arrays =
      config.layout == Layout::soa ? static_cast<std::size_t>(config.fields) : std::size_t{1};
  // The heat equations have no fields of their own: compare exchanges all that a user may need.
  const auto read = computes || (!info.fields.empty() && config.wide == 1)
                        ? needs_of(info, config)
                        : std::vector(arrays, comm::DirectionSet::all());
  if (config.neighbors == Neighbors::automatic) return read;
  const auto given =
      comm::DirectionSet::along_at_most(config.neighbors == Neighbors::six        ? 1
                                        : config.neighbors == Neighbors::eighteen ? 2
                                                                                  : 3);
  const auto all_read = union_of(read);
  if (computes && !given.contains(all_read))
    throw ConfigError("neighbors are too few for the stencil (neighbors " +
                      std::string(to_string(config.neighbors)) + ", " + name_of_stencil(config) +
                      " reads " + std::to_string(all_read.size()) +
                      "): use neighbors = \"auto\", or a stencil that reads fewer");
  return std::vector(arrays, given);
}

}  // namespace

comm::DirectionSet Domain::needed() const {
  return union_of(needs);
}

bool Domain::needs_differ() const {
  return std::any_of(needs.begin(), needs.end(),
                     [&](const auto& set) { return set != needs.front(); });
}

Int3 Domain::extents_in_memory(const comm::HaloSpec& of_rank) const {
  auto extents = of_rank.stored();
  const std::int64_t point_bytes = element_bytes * elements_per_point();
  const auto step = alignment_of(pad) / std::gcd(alignment_of(pad), point_bytes);
  extents[0] = (extents[0] + step - 1) / step * step;
  return extents;
}

std::int64_t Domain::left_padding() const {
  const auto ghosts = halo.radius[0] * elements_per_point() * element_bytes;
  const auto line = alignment_of(pad);
  return (line - ghosts % line) % line / element_bytes;
}

comm::NodeHierarchy find_nodes(const Config& config, MPI_Comm comm) {
  if (config.ranks_per_node.empty()) return comm::NodeHierarchy(comm);
  return {comm, config.ranks_per_node};
}

std::string format_nodes(int nodes, bool emulated) {
  return format_count(nodes, emulated ? "emulated node" : "node");
}

Domain make_domain(const Config& config, const comm::NodeHierarchy& nodes) {
  const int ranks = nodes.ranks();
  // The limit is far beyond any memory, and no product below overflows.
  constexpr std::int64_t kLargestExtent = 1'000'000;
  for (const auto extent : config.global ? *config.global : *config.local)
    if (extent > kLargestExtent)
      throw ConfigError(std::string(config.global ? "global" : "local") + " is too large (" +
                        std::to_string(extent) + " points in a dimension): use at most " +
                        std::to_string(kLargestExtent));
  if (config.global) {
    const auto& g = *config.global;
    if (g[0] * g[1] * g[2] < ranks)
      throw ConfigError("more ranks than points (" + std::to_string(ranks) + " ranks, global " +
                        format_extent(g) + "): use fewer ranks or a larger global");
  }

  if (config.messages == Messages::field && config.layout == Layout::aos)
    throw ConfigError(
        "messages cannot be by field (layout aos, where the fields of a point are side by side): "
        "use layout = \"soa\", or messages = \"region\" or \"partner\"");

  std::vector<comm::Decomposition> choices;
  for (const auto& grid : rank_grids(config, ranks)) {
    Int3 global{};
    for (std::size_t axis = 0; axis < 3; ++axis)
      global[axis] = config.global ? (*config.global)[axis] : (*config.local)[axis] * grid[axis];
    choices.emplace_back(global, grid, config.periodic);
  }
  const auto needs = exchanged_directions(config);
  const auto decomposition =
      comm::place(choices, config.radius, union_of(needs), nodes.node_of_ranks(), config.reorder);
  const auto &global = decomposition.global(), &grid = decomposition.ranks();

  for (std::size_t axis = 0; axis < 3; ++axis)
    if (const auto least = global[axis] / grid[axis]; least < config.radius[axis])
      throw ConfigError("radius is larger than the local extent (radius " +
                        std::to_string(config.radius[axis]) +
                        (config.wide > 1 ? " with wide " + std::to_string(config.wide) : "") +
                        ", some rank has " + std::to_string(least) + " points in " + "xyz"[axis] +
                        "): use a smaller " + (config.wide > 1 ? "wide" : "radius") +
                        ", fewer ranks or more points");
  if (config.subcommand == Subcommand::run) {
    const auto info = physics_of(config).info(config);
    for (std::size_t axis = 0; axis < 3; ++axis)
      if (info.radius > config.radius[axis])
        throw ConfigError(
            "radius is too small for the stencil (radius " + std::to_string(config.radius[axis]) +
            " in " + std::string(1, "xyz"[axis]) + ", " + name_of_stencil(config) + " reaches " +
            std::to_string(info.radius) + " points): use a larger radius" +
            (config.physics == "heat" ? ", or --stencil point26, which reaches 1" : ""));
    check_boundaries(config, info, decomposition);
    if (config.steps > INT_MAX / info.substeps)
      throw ConfigError("too many substeps (" + std::to_string(config.steps) + " steps of " +
                        std::to_string(info.substeps) + " stages): use at most " +
                        std::to_string(INT_MAX) + " in all");
  }

  const auto owned = decomposition.owned(nodes.rank());
  return {.nodes = nodes,
          .decomposition = decomposition,
          .rank = nodes.rank(),
          .owned = owned,
          .halo = {owned.extent, config.radius},
          .fields = config.fields,
          .element_bytes = is_double(config.element) ? 8 : 4,
          .parts = is_complex(config.element) ? 2 : 1,
          .layout = config.layout,
          .pad = chosen_pad(config),
          .pages = config.pages,
          .boundary = config.boundary,
          .needs = needs};
}

std::string describe_pad(const Domain& domain) {
  if (domain.pad == Pad::none) return "";
  return ", rows of " + std::to_string(domain.halo.stored()[0]) + " points padded to " +
         std::to_string(domain.extents_in_memory()[0]) + " (aligned to " +
         std::string(to_string(domain.pad)) + " bytes)";
}

std::string describe_blocks(const Domain& domain) {
  int blocks = 0;
  for (const auto& needs : domain.needs) blocks += needs.size() * (domain.fields / domain.arrays());
  return std::to_string(blocks) + " of " + std::to_string(comm::Direction::kCount * domain.fields) +
         " field-blocks";
}

namespace {

// Holds the memory for the messages of a rank. Unit: the bytes of both directions of travel. With
// `one-shot`, messages from a rank to itself stay in device memory between packing and unpacking.
struct MessageMemory {
  double host, device;
};

MessageMemory message_memory(const comm::Method& method) {
  if (comm::is_vendor(method.exchange)) return {0, 1};
  if (method.exchange == comm::Exchange::shared) return {0, 0};
  if (!method.transfer) return {1, 1};
  switch (*method.transfer) {
    case dtype::Transfer::device:
      return {0, 1};
    case dtype::Transfer::one_shot:
      return {1, 0.5};
    case dtype::Transfer::staged:
      return {1, 1};
    case dtype::Transfer::host:
      break;
  }
  return {1, 0};
}

Domain with_all_needs(Domain domain) {
  domain.needs.assign(domain.needs.size(), comm::DirectionSet::all());
  return domain;
}

// Returns the bytes of the ghosts that Boundaries keeps on the rank with most of them. `stored` are
// the extents of that rank.
double bytes_of_fixed_ghosts(const Domain& domain, const Int3& stored) {
  double points = 0;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (domain.decomposition.periodic()[axis]) continue;
    const auto* const sides = &domain.boundary[2 * axis];
    const auto fixed = std::count(sides, sides + 2, Boundary::fixed);
    const auto most =
        domain.decomposition.ranks()[axis] == 1 ? fixed : std::min<std::ptrdiff_t>(fixed, 1);
    double slab = static_cast<double>(most * domain.halo.radius[axis]);
    for (std::size_t other = 0; other < 3; ++other)
      if (other != axis) slab *= static_cast<double>(stored[other]);
    points += slab;
  }
  return points * domain.fields * domain.value_bytes();
}

constexpr double kHugePage = comm::PagedMemory::kHugePage;
constexpr double kLongMessage = HugePageAllocator<std::byte>::kLong;

// Returns the bytes of the huge pages that a buffer takes. One of fewer bytes than `least` takes
// small pages.
double whole_pages(double bytes, double least) {
  return bytes < least ? bytes : std::ceil(bytes / kHugePage) * kHugePage;
}

}  // namespace

MemoryEstimate estimate_memory(const Config& config, const Domain& domain, int copies,
                               const std::vector<comm::Method>& methods) {
  const comm::HaloSpec largest{domain.decomposition.largest_extent(), domain.halo.radius};
  double stored = 1;
  for (const auto extent : domain.extents_in_memory(largest)) stored *= static_cast<double>(extent);
  const double point = static_cast<double>(domain.fields) * domain.value_bytes();
  // Each array begins at a multiple of 4096 bytes, and before its first point there is padding.
  const auto left = static_cast<double>(domain.left_padding() * domain.element_bytes);
  const double padding = (4096 + left) * domain.arrays();
  const bool on_device = config.memory == Memory::device;
  const double set_bytes = stored * point + padding;
  MemoryEstimate out;
  out.host.fields =
      (domain.pages == comm::Pages::huge ? whole_pages(set_bytes, kHugePage) : set_bytes) * copies;
  if (on_device) out.device.fields = set_bytes * copies;
  const auto may_share = [](const comm::Method& method) {
    return method.exchange == comm::Exchange::shared ||
           method.exchange == comm::Exchange::automatic;
  };
  // compare has one set in windows, run has all sets there.
  if (!on_device && std::any_of(methods.begin(), methods.end(), may_share))
    out.windows = config.subcommand == Subcommand::run ? out.host.fields : out.host.fields / copies;
  double of_mpi = 0;
  const auto add_plan = [&](const comm::Method& method, const HaloTraffic& traffic) {
    const auto bytes = 2 * traffic.bytes_to_self;
    // Jobs and plans: 380 bytes for each side of a job, measured with 50,000 fields.
    const auto bookkeeping = 400.0 * 2 * static_cast<double>(traffic.regions);
    const auto share = on_device ? message_memory(method) : MessageMemory{1, 0};
    // A plan has a buffer for each direction of travel.
    const auto buffer = whole_pages(share.host * bytes / 2, kLongMessage);
    out.host.messages += 2 * buffer + bookkeeping;
    // To find a huge page, malloc takes addresses for one more. MPI has buffers of its own for one
    // exchange at a time.
    const auto taken = 2 * (buffer + (buffer < kHugePage ? 0 : kHugePage));
    const bool by_mpi =
        comm::is_vendor(method.exchange) && method.exchange != comm::Exchange::vendor_pack;
    out.addresses += bookkeeping + (by_mpi ? std::max(0.0, taken - of_mpi) : taken);
    if (by_mpi) of_mpi = std::max(of_mpi, taken);
    out.device.messages += share.device * bytes;
  };
  for (const auto shape : shapes_of(config)) {
    const auto traffic = largest_halo_traffic(config, domain, shape);
    for (const auto& method : methods) add_plan(method, traffic);
  }
  if (config.subcommand != Subcommand::run) return out;
  out.host.fields += bytes_of_fixed_ghosts(domain, largest.stored());
  if (const auto helper = physics_of(config).info(config).helper)
    for (const auto& needs : helper->needs)
      for (const auto& method : methods)
        add_plan(method, largest_halo_traffic(config, with_needs_of(domain, helper->field, needs),
                                              config.shape.front()));
  if (!writes_files(config) && config.restart.empty()) return out;
  // A time series, RELOAD and a restart may set the ghosts of all directions, in each set.
  const auto traffic =
      largest_halo_traffic(config, with_all_needs(domain), comm::HaloShape::direct);
  for (int set = 0; set < copies; ++set) add_plan(comm::Exchange::alltoallv, traffic);
  return out;
}

namespace {

// Returns the sum of `bytes` over all ranks of this node with this rank's `id`. Collective.
double sum_of_ranks_with(const std::string& id, double bytes, MPI_Comm comm) {
  constexpr std::size_t kLength = 64;
  MPI_Comm node = MPI_COMM_NULL;
  HALOCLINE_MPI(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
  std::array<char, kLength> mine{};
  id.copy(mine.data(), kLength);
  const auto ranks = static_cast<std::size_t>(size_of(node));
  std::vector<std::array<char, kLength>> ids(ranks);
  std::vector<double> numbers(ranks);
  HALOCLINE_MPI(MPI_Allgather(mine.data(), kLength, MPI_CHAR, ids.data(), kLength, MPI_CHAR, node));
  HALOCLINE_MPI(MPI_Allgather(&bytes, 1, MPI_DOUBLE, numbers.data(), 1, MPI_DOUBLE, node));
  HALOCLINE_MPI(MPI_Comm_free(&node));
  double sum = 0;
  for (std::size_t rank = 0; rank < ranks; ++rank) sum += ids[rank] == mine ? numbers[rank] : 0;
  return sum;
}

SharedMemory tightest(const SharedMemory& memory, MPI_Comm comm) {
  struct {
    double shortage;
    int rank;
  } mine{memory.needed - memory.available, rank_of(comm)}, most{};
  HALOCLINE_MPI(MPI_Allreduce(&mine, &most, 1, MPI_DOUBLE_INT, MPI_MAXLOC, comm));
  double both[2] = {memory.needed, memory.available};
  HALOCLINE_MPI(MPI_Bcast(both, 2, MPI_DOUBLE, most.rank, comm));
  return {.needed = both[0], .available = both[1]};
}

}  // namespace

SharedMemory tightest_node(const MemoryNeed& need, MPI_Comm comm) {
  return tightest({sum_of_ranks_with("", need.total(), comm), available_memory()}, comm);
}

SharedMemory tightest_device(const MemoryNeed& need, const dtype::Device& device, MPI_Comm comm) {
  double available = 0;
  comm::collectively(comm, [&] { available = static_cast<double>(device.free_bytes()); });
  return tightest({sum_of_ranks_with(device.properties().id, need.total(), comm), available}, comm);
}

SharedMemory tightest_addresses(double bytes, MPI_Comm comm) {
  return tightest({bytes, addresses_left()}, comm);
}

SharedMemory tightest_windows(double bytes, MPI_Comm comm) {
  const auto room = comm::SharedWindow::room(comm, static_cast<std::int64_t>(bytes));
  return tightest({static_cast<double>(room.needed), static_cast<double>(room.available)}, comm);
}

void require_memory(const SharedMemory& memory, const std::string& of, const std::string& remedy) {
  if (memory.fits()) return;
  throw ConfigError("not enough memory (a " + of + " needs " + format_bytes(memory.needed) +
                    " and has " + format_bytes(memory.available) + " available): use " + remedy +
                    ", or fewer ranks per " + of);
}

std::string describe_memory(const MemoryNeed& need, const SharedMemory& memory,
                            const std::string& of) {
  return "memory per rank: " + format_bytes(need.fields) + " for fields, " +
         format_bytes(need.messages) + " for messages; a " + of + " needs " +
         format_bytes(memory.needed) + " of " + format_bytes(memory.available) + " available" +
         (memory.fits() ? "" : ": TOO MUCH, a real run would refuse") + "\n";
}

namespace {

Table table_of_ranks(const Config& config, const Domain& domain, comm::HaloShape shape, int shown) {
  const bool several = domain.nodes.nodes() > 1, grouped = config.messages != Messages::partner;
  std::vector<Column> columns{{"rank"}, {"local extent", Align::left}, {"regions"}, {"messages"}};
  if (grouped) columns.push_back({"by " + std::string(to_string(config.messages))});
  columns.insert(columns.end(), {{"to others"}, {"to self"}});
  if (several) columns.insert(columns.end(), {{"off node"}, {"node"}, {"position", Align::left}});
  Table table(columns);
  for (int rank = 0; rank < shown; ++rank) {
    const auto sent = halo_traffic(config, domain, domain.decomposition, rank, shape);
    std::vector<std::string> row{std::to_string(rank),
                                 format_extent(domain.decomposition.owned(rank).extent),
                                 std::to_string(sent.regions), std::to_string(sent.messages)};
    if (grouped) row.push_back(std::to_string(sent.grouped_messages));
    row.insert(row.end(), {format_bytes(sent.bytes_to_others), format_bytes(sent.bytes_to_self)});
    if (several) {
      const auto at = domain.decomposition.coordinates(rank);
      row.insert(
          row.end(),
          {format_bytes(sent.bytes_off_node), std::to_string(domain.nodes.node_of(rank)),
           std::to_string(at[0]) + ", " + std::to_string(at[1]) + ", " + std::to_string(at[2])});
    }
    table.add_row(row);
  }
  return table;
}

}  // namespace

Domain with_needs_of(Domain domain, int field, const comm::DirectionSet& needs) {
  for (auto& of_array : domain.needs) of_array = {};
  domain.needs[domain.layout == Layout::soa ? static_cast<std::size_t>(field) : 0] = needs;
  return domain;
}

std::string describe_helper(const PhysicsInfo& info) {
  if (!info.helper) return "";
  const auto& rounds = info.helper->needs;
  std::string out = std::string(info.fields[static_cast<std::size_t>(info.helper->field)]) +
                    " takes " + format_count(std::ssize(rounds), "exchange") +
                    " more in each substep, with ";
  for (std::size_t i = 0; i < rounds.size(); ++i)
    out += (i == 0                   ? ""
            : i + 1 == rounds.size() ? " and "
                                     : ", ") +
           std::to_string(rounds[i].size());
  return out + " neighbours";
}

namespace {

// Compares what is exchanged with all ghosts of all fields.
std::string describe_needs(const Config& config, const Domain& domain) {
  const auto shape = shapes_of(config).front();
  const auto helper = config.subcommand == Subcommand::run
                          ? describe_helper(physics_of(config).info(config))
                          : std::string();
  const auto some = largest_halo_traffic(config, domain, shape).bytes_to_self;
  const auto all = largest_halo_traffic(config, with_all_needs(domain), shape).bytes_to_self;
  return "exchanged: " + describe_blocks(domain) + ", " + format_bytes(some) + " of " +
         format_bytes(all) + " of a rank with all neighbours (" + format_bytes(all - some) +
         " saved)\n" + (helper.empty() ? "" : helper + "\n");
}

// Returns "periodic", "open boundaries" or "periodic along x and y".
std::string describe_periodic(const comm::PerAxis<bool>& periodic) {
  if (periodic.all_alike()) return periodic[0] ? "periodic" : "open boundaries";
  std::string axes;
  for (std::size_t axis = 0; axis < 3; ++axis)
    if (periodic[axis]) axes += (axes.empty() ? "" : " and ") + std::string(1, "xyz"[axis]);
  return "periodic along " + axes;
}

// Returns the bytes that leave the nodes, with this mapping of ranks and with the natural order.
std::string describe_off_node(const Config& config, const Domain& domain, comm::HaloShape shape) {
  const auto& mapped = domain.decomposition;
  const comm::Decomposition natural(mapped.global(), mapped.ranks(), mapped.periodic());
  const auto sent = [&](const comm::Decomposition& decomposition) {
    std::vector<double> by_node(static_cast<std::size_t>(domain.nodes.nodes()));
    for (int rank = 0; rank < decomposition.size(); ++rank)
      by_node[static_cast<std::size_t>(domain.nodes.node_of(rank))] +=
          halo_traffic(config, domain, decomposition, rank, shape).bytes_off_node;
    return format_bytes(std::accumulate(by_node.begin(), by_node.end(), 0.0)) + " in all, " +
           format_bytes(*std::max_element(by_node.begin(), by_node.end())) +
           " by the node that sends most";
  };
  return "\nto other nodes per exchange, " +
         format_nodes(domain.nodes.nodes(), domain.nodes.emulated()) + ":\n  mapped as shown  " +
         sent(mapped) + "\n  natural order    " + sent(natural) + "\n";
}

}  // namespace

std::string describe_dry_run(const Config& config, const Domain& domain,
                             const std::string& memory) {
  const auto& decomposition = domain.decomposition;
  std::string out =
      "decomposition " + format_extent(decomposition.ranks()) + " ranks over " +
      format_extent(decomposition.global()) + " points, " +
      describe_periodic(decomposition.periodic()) + "; fields " + std::to_string(domain.fields) +
      " (" + std::string(to_string(domain.layout)) + "), " + std::to_string(domain.value_bytes()) +
      " bytes per element, radius " + format_radius(domain.halo.radius) + ", " +
      std::to_string(domain.needed().size()) + " neighbours" + describe_pad(domain) + "\n";
  out += describe_needs(config, domain) + memory;
  constexpr int kShown = 16;  // a table of thousands of ranks helps nobody
  for (const auto shape : shapes_of(config)) {
    out += "\nshape " + std::string(to_string(shape)) + "\n";
    out += table_of_ranks(config, domain, shape, std::min(decomposition.size(), kShown)).str();
    if (decomposition.size() > kShown)
      out += "... and " + std::to_string(decomposition.size() - kShown) + " ranks more\n";
    if (domain.nodes.nodes() > 1) out += describe_off_node(config, domain, shape);
  }
  if (config.messages != Messages::partner)
    out += "messages by " + std::string(to_string(config.messages)) +
           " are those of p2p and vendor-p2p; other methods have one for each partner\n";
  return out + "\ndry run: nothing was allocated or sent\n";
}

}  // namespace halocline::app
