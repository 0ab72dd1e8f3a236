// SPDX-License-Identifier: BSD-3-Clause
#include "comm/calibrate/calibration.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <thread>
#include <utility>

#include "comm/calibrate/block_messages.hpp"
#include "comm/calibrate/grid.hpp"
#include "comm/calibrate/injection.hpp"
#include "comm/calibrate/local_times.hpp"
#include "comm/calibrate/ping_pong.hpp"
#include "comm/calibrate/turns.hpp"
#include "comm/device/gpu_awareness.hpp"
#include "comm/mpi/communicator.hpp"
#include "comm/node/node_hierarchy.hpp"
#include "support/mpi_check.hpp"

namespace halocline::comm {

namespace {

using detail::BlockGrid;
using detail::Effort;
using dtype::MemoryKind;
using dtype::MessagePaths;
using dtype::SystemModel;

BlockGrid strided_grid(const detail::Grid& grid) {
  return {grid.strided_blocks, grid.bytes_growth, false};
}
BlockGrid listed_grid(const detail::Grid& grid) {
  return {grid.listed_blocks, grid.bytes_growth, true};
}

constexpr int kNobody = -1;

// Waits for all ranks, and leaves the cores to the measuring ranks.
void join(MPI_Comm comm) {
  MPI_Request request = MPI_REQUEST_NULL;
  HALOCLINE_MPI(MPI_Ibarrier(comm, &request));
  for (int done = 0;;) {
    HALOCLINE_MPI(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
    if (done != 0) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// Runs `measure` on rank 0 while all other ranks sleep. Its exception is thrown on all ranks.
template <class Measure>
void alone(const Communicator& comm, Measure measure) {
  std::exception_ptr error;
  if (comm.rank() == 0) {
    try {
      measure();
    } catch (...) {
      error = std::current_exception();
    }
  }
  join(comm.get());
  collectively(comm.get(), [&] {
    if (error) std::rethrow_exception(error);
  });
}

// Tells what a rank has for messages in device memory.
struct Abilities {
  int device = 0, aware = 0;
};

std::vector<Abilities> gather(const Communicator& comm, const Abilities& mine) {
  std::vector<Abilities> all(static_cast<std::size_t>(comm.size()));
  HALOCLINE_MPI(MPI_Allgather(&mine, 2, MPI_INT, all.data(), 2, MPI_INT, comm.get()));
  return all;
}

// Says why rank 0 measures nothing of a device; never empty. Another rank may have a device, or
// rank 0 may have one that it does not use.
std::string why_no_device() {
  const auto& why = dtype::why_no_device();
  return why.empty() ? "rank 0 has no device" : why;
}

// Holds rank 0's partners on its node and on another node; kNobody if there is none.
struct Partners {
  int on_node = kNobody, off_node = kNobody;
};

Partners find_partners(const NodeHierarchy& nodes) {
  Partners out;
  for (int rank = nodes.ranks() - 1; rank > 0; --rank)
    (nodes.node_of(rank) == nodes.node_of(0) ? out.on_node : out.off_node) = rank;
  return out;
}

// Returns pairs of a rank of the first node and a rank of the second node, until one node has no
// more.
std::vector<std::pair<int, int>> pairs_of_two_nodes(const NodeHierarchy& nodes) {
  std::vector<std::pair<int, int>> out;
  if (nodes.nodes() < 2) return out;
  const auto &near = nodes.ranks_of(0), &far = nodes.ranks_of(1);
  for (std::size_t i = 0; i < std::min(near.size(), far.size()); ++i)
    out.emplace_back(near[i], far[i]);
  return out;
}

// Lists the first few of `points` and the number of further points.
std::string few_of(const std::vector<std::string>& points) {
  constexpr std::size_t kMost = 4;
  std::string out;
  for (std::size_t i = 0; i < std::min(points.size(), kMost); ++i)
    out.append(out.empty() ? "" : ", ").append(points[i]);
  if (points.size() > kMost) out += " and " + std::to_string(points.size() - kMost) + " more";
  return out;
}

}  // namespace

struct Calibration::State {
  State(MPI_Comm parent, const Options& given)
      : comm(parent),
        options(given),
        grid(detail::make_grid(given.seconds)),
        nodes(comm.get()),
        partners(find_partners(nodes)),
        pairs(pairs_of_two_nodes(nodes)) {}

  // Measures a part; called on all ranks.
  using Measure = std::function<void(const Effort&, SystemModel&)>;

  struct Task {
    Part part;
    Measure measure;
  };

  // Describes the memory of messages, and their place in the model.
  struct Messages {
    MemoryKind memory;
    MessagePaths SystemModel::*out;
  };

  std::vector<Task> tasks();
  Task of_device(std::string name, std::int64_t points, Measure measure);
  Task of_messages(std::string name, const Messages& messages, int partner, std::string nobody,
                   std::optional<dtype::MessageTimes> MessagePaths::*path);
  void exchange(const Messages& messages, int partner, const Effort& effort,
                std::optional<dtype::MessageTimes>& out);
  // Says which messages of blocks are measured, and their place in the model.
  struct Blocks {
    detail::BlockGrid grid;
    dtype::BlockTraffic dtype::BlockTimes::*order;
    dtype::BlockTimes SystemModel::*place;
  };
  Task of_blocks(std::string name, int partner, std::string nobody, const Blocks& blocks);
  Task of_injection();
  void inject(const Effort& effort, std::optional<double>& out);

  std::int64_t message_points() const {
    std::size_t out = 0;
    for (const auto bytes : grid.message_bytes) out += numbers_for(grid, bytes);
    return static_cast<std::int64_t>(out);
  }
  std::int64_t pack_points() const {
    std::size_t out = 0;
    for (const auto bytes : grid.packs.bytes)
      out += 2 * detail::pack_layer(grid.packs, bytes).shapes.size();
    return static_cast<std::int64_t>(out);
  }

  Communicator comm;
  Options options;
  detail::Grid grid;
  NodeHierarchy nodes;
  Partners partners;
  std::vector<std::pair<int, int>> pairs;  // partners for injection
  std::vector<Abilities> abilities;
  std::string why_not_aware;
  detail::LaunchTimes launch;     // set on rank 0 once measured
  std::vector<Measure> measures;  // in the order of parts
};

Calibration::State::Task Calibration::State::of_device(std::string name, std::int64_t points,
                                                       Measure measure) {
  const bool there = abilities.front().device != 0;
  return {{std::move(name), points, there ? "" : why_no_device()}, std::move(measure)};
}

Calibration::State::Task Calibration::State::of_messages(
    std::string name, const Messages& messages, int partner, std::string nobody,
    std::optional<dtype::MessageTimes> MessagePaths::*path) {
  Part part{std::move(name), message_points(), ""};
  const auto memory = messages.memory;
  const auto device = [&](int rank) { return abilities[static_cast<std::size_t>(rank)]; };
  if (memory == MemoryKind::device && device(0).device == 0)
    part.why_not = why_no_device();
  else if (partner == kNobody)
    part.why_not = comm.size() == 1 ? "messages need two ranks" : std::move(nobody);
  else if (memory == MemoryKind::device && device(partner).device == 0)
    part.why_not = "rank " + std::to_string(partner) + " has no device";
  else if (memory == MemoryKind::device && (device(0).aware == 0 || device(partner).aware == 0))
    part.why_not = "this MPI does not take device memory" + why_not_aware;
  return {std::move(part),
          [this, messages, partner, path](const Effort& effort, SystemModel& model) {
            exchange(messages, partner, effort, (model.*messages.out).*path);
          }};
}

void Calibration::State::exchange(const Messages& messages, int partner, const Effort& effort,
                                  std::optional<dtype::MessageTimes>& out) {
  const bool busy = comm.rank() == 0 || comm.rank() == partner;
  // Messages of a device go through pinned memory on the host.
  const auto memory = messages.memory == MemoryKind::host && options.resources != nullptr
                          ? MemoryKind::pinned
                          : messages.memory;
  detail::TouchedMemory sent, received;
  collectively(comm.get(), [&] {
    if (!busy) return;
    const auto bytes = message_memory(grid);
    sent = {options.resources, memory, bytes};
    received = {options.resources, memory, bytes};
  });
  if (comm.rank() == 0)
    out = detail::measure_ping_pong(comm.get(), partner, sent, received, grid, effort);
  else if (busy)
    detail::serve_ping_pong(comm.get(), 0, sent, received);
  join(comm.get());
}

Calibration::State::Task Calibration::State::of_blocks(std::string name, int partner,
                                                       std::string nobody, const Blocks& blocks) {
  Part part{std::move(name), block_points(blocks.grid), ""};
  if (partner == kNobody)
    part.why_not = comm.size() == 1 ? "messages need two ranks" : std::move(nobody);
  return {std::move(part), [this, partner, blocks](const Effort& effort, SystemModel& model) {
            std::optional<detail::BlockMemory> memory;
            collectively(comm.get(), [&] {
              if (comm.rank() == 0 || comm.rank() == partner) memory.emplace(blocks.grid);
            });
            if (comm.rank() == 0)
              model.*blocks.place.*blocks.order =
                  measure_block_messages(comm.get(), partner, *memory, blocks.grid, effort);
            else if (comm.rank() == partner)
              detail::serve_block_messages(comm.get(), 0, *memory, blocks.grid);
            join(comm.get());
          }};
}

Calibration::State::Task Calibration::State::of_injection() {
  Part part{"injection of a node", 1, ""};
  if (pairs.empty())
    part.why_not = comm.size() == 1 ? "messages need two ranks" : "all ranks are on one node";
  else if (pairs.size() == 1)
    part.why_not = "there are no two nodes of two ranks or more";
  return {std::move(part), [this](const Effort& effort, SystemModel& model) {
            inject(effort, model.injection_bytes_per_second);
          }};
}

void Calibration::State::inject(const Effort& effort, std::optional<double>& out) {
  int color = MPI_UNDEFINED, place = 0, partner = 0;  // ranks 2 i and 2 i + 1 of `busy` are a pair
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const auto [near, far] = pairs[i];
    if (comm.rank() != near && comm.rank() != far) continue;
    color = 0;
    place = static_cast<int>(2 * i) + (comm.rank() == far ? 1 : 0);
    partner = place ^ 1;
  }
  const Communicator busy(comm.get(), color, place);
  const auto memory = options.resources != nullptr ? MemoryKind::pinned : MemoryKind::host;
  detail::TouchedMemory sent, received;
  collectively(comm.get(), [&] {
    if (busy.get() == MPI_COMM_NULL) return;
    sent = {options.resources, memory, detail::kInjectionBytes};
    received = {options.resources, memory, detail::kInjectionBytes};
  });
  if (busy.get() != MPI_COMM_NULL) {
    const auto rate = detail::measure_injection(busy.get(), partner, sent, received, effort);
    if (comm.rank() == 0) out = rate;
  }
  join(comm.get());
}

std::vector<Calibration::State::Task> Calibration::State::tasks() {
  const auto messages = [&](const std::string& which, const Messages& what) {
    return std::array{of_messages(which + " messages on the node", what, partners.on_node,
                                  "rank 0 is alone on its node", &MessagePaths::on_node),
                      of_messages(which + " messages between nodes", what, partners.off_node,
                                  "all ranks are on one node", &MessagePaths::off_node)};
  };
  const auto packing = [&](std::string name, MemoryKind packed,
                           dtype::PackTimes SystemModel::*out) {
    return of_device(std::move(name), pack_points(),
                     [this, packed, out](const Effort& effort, SystemModel& model) {
                       alone(comm, [&] {
                         model.*out =
                             measure_packing(*options.resources, packed, grid, launch, effort);
                       });
                     });
  };
  auto [host_near, host_far] = messages("host", {MemoryKind::host, &SystemModel::host_messages});
  auto [device_near, device_far] =
      messages("device", {MemoryKind::device, &SystemModel::device_messages});
  struct Order {
    std::string name;
    detail::BlockGrid grid;
    dtype::BlockTraffic dtype::BlockTimes::*member;
  };
  const Order strided{"strided", strided_grid(grid), &dtype::BlockTimes::strided};
  const Order listed{"listed", listed_grid(grid), &dtype::BlockTimes::listed};
  const auto blocks_near = [&](const Order& order) {
    return of_blocks("messages of " + order.name + " blocks on the node", partners.on_node,
                     "rank 0 is alone on its node",
                     {order.grid, order.member, &SystemModel::blocks_on_node});
  };
  const auto blocks_far = [&](const Order& order) {
    return of_blocks("messages of " + order.name + " blocks between nodes", partners.off_node,
                     "all ranks are on one node",
                     {order.grid, order.member, &SystemModel::blocks_off_node});
  };
  return {of_device("launch and synchronization", 2,
                    [this](const Effort& effort, SystemModel& model) {
                      alone(comm, [&] {
                        launch = measure_launch(*options.resources, effort);
                        model.launch_seconds = launch.launch;
                        model.synchronize_seconds = launch.synchronize;
                      });
                    }),
          std::move(host_near),
          std::move(host_far),
          blocks_near(strided),
          blocks_far(strided),
          blocks_near(listed),
          blocks_far(listed),
          std::move(device_near),
          std::move(device_far),
          of_injection(),
          of_device("copies", 2 * std::ssize(grid.copy_bytes),
                    [this](const Effort& effort, SystemModel& model) {
                      alone(comm, [&] {
                        auto times = measure_copies(*options.resources, grid, launch, effort);
                        model.device_to_host = std::move(times.device_to_host);
                        model.host_to_device = std::move(times.host_to_device);
                      });
                    }),
          packing("packing to device memory", MemoryKind::device, &SystemModel::device_packing),
          packing("packing to mapped memory", MemoryKind::pinned, &SystemModel::mapped_packing),
          {{"packing by the host", pack_points(), ""},
           [this](const Effort& effort, SystemModel& model) {
             alone(comm, [&] { model.host_packing = measure_host_packing(grid, effort); });
           }}};
}

Calibration::Calibration(MPI_Comm comm, const Options& options)
    : state_(std::make_unique<State>(comm, options)) {
  auto& state = *state_;
  Abilities mine;
  collectively(state.comm.get(), [&] {
    if (options.resources == nullptr) return;
    mine.device = 1;
    mine.aware = options.gpu_aware_mpi.value_or(false);
    if (options.gpu_aware_mpi) return;
    const auto found = probe_gpu_awareness(options.resources->device());
    mine.aware = found.aware;
    state.why_not_aware = "; " + found.source;
  });
  state.abilities = gather(state.comm, mine);
  for (auto& [part, measure] : state.tasks()) {
    parts_.push_back(std::move(part));
    state.measures.push_back(std::move(measure));
  }
}

Calibration::~Calibration() = default;

std::int64_t Calibration::memory_bytes() const {
  const auto& grid = state_->grid;
  return 2 * message_memory(grid) +
         std::max(detail::block_memory(strided_grid(grid)),
                  detail::block_memory(listed_grid(grid))) +
         grid.copy_bytes.back() + detail::field_bytes(grid.packs) + 2 * grid.packs.bytes.back();
}

std::int64_t Calibration::points() const {
  std::int64_t out = 0;
  for (const auto& part : parts_)
    if (part.why_not.empty()) out += part.points;
  return out;
}

SystemModel Calibration::measure(const std::function<void(std::int64_t points)>& progress) {
  auto parts_left = std::count_if(parts_.begin(), parts_.end(),
                                  [](const Part& part) { return part.why_not.empty(); });
  std::int64_t ended = 0;
  const auto end = detail::steady_seconds() + state_->options.seconds;
  SystemModel model;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (!parts_[i].why_not.empty()) continue;
    // A part that took less than its share leaves the rest to all later parts.
    const auto left = std::max(end - detail::steady_seconds(), 0.0);
    auto done = ended;
    std::vector<std::string> noisy;
    state_->measures[i](
        {left / static_cast<double>(parts_left--),
         [&](std::size_t more) {
           done += static_cast<std::int64_t>(more);
           progress(done);
         },
         [&](std::int64_t reached, std::int64_t wanted) {
           model.incomplete.push_back(parts_[i].name + ": up to " + dtype::text_of_bytes(reached) +
                                      " instead of " + dtype::text_of_bytes(wanted));
         },
         [&](const std::string& point) { noisy.push_back(point); }},
        model);
    if (!noisy.empty()) model.noisy.push_back(parts_[i].name + ": " + few_of(noisy));
    ended += parts_[i].points;
    if (state_->comm.rank() == 0) progress(ended);
  }
  return model;
}

}  // namespace halocline::comm
