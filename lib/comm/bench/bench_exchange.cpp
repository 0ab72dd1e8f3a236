// SPDX-License-Identifier: BSD-3-Clause
// Measures a halo exchange between the ranks of a node: 8 fields of doubles with radius 3. All
// methods take turns with twins in plain MPI. Each is first verified by global coordinates.
//
//   mpirun -n 2 bench_exchange [--groups=x,y,z,interfaces] [--only=PATTERN] ...    --help lists all
//   options
//
// The twins copy once through a shared window, region after region and row by row. `rows` copies
// rows of any length. In `rows-fixed`, the compiler knows the length of rows of ghosts. `lines`
// copies consecutive cache lines, as many as an exchange must move: the limit of the memory.
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/bench/interfaces.hpp"
#include "comm/exchange/exchange_plan.hpp"
#include "comm/halo/halo_spec.hpp"
#include "comm/mpi/communicator.hpp"
#include "comm/node/node_hierarchy.hpp"
#include "comm/node/shared_window.hpp"
#include "dtype/bench/program.hpp"
#include "dtype/datatype.hpp"
#include "support/mpi_check.hpp"
#include "support/narrow.hpp"

namespace halocline::comm::bench {

namespace {

using dtype::bench::Benchmark;
using dtype::bench::Facts;
using dtype::bench::Options;
using dtype::bench::Program;
using dtype::bench::Row;

constexpr int kFields = 8;
constexpr std::int64_t kRadius = 3;

int world_rank() {
  int rank = 0;
  HALOCLINE_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  return rank;
}

int world_size() {
  int size = 0;
  HALOCLINE_MPI(MPI_Comm_size(MPI_COMM_WORLD, &size));
  return size;
}

/// Holds the fields of this rank, each aligned to 4 KiB, in a shared window or in private memory.
class Fields {
 public:
  Fields(const HaloSpec& spec, bool shared) : spec_(spec) {
    const auto stored = spec.stored();
    field_ = (stored[0] * stored[1] * stored[2] + kPage - 1) / kPage * kPage;
    const auto bytes = kFields * field_ * std::int64_t{sizeof(double)};
    if (shared)
      window_.emplace(MPI_COMM_WORLD, bytes);
    else
      private_ = PagedMemory(bytes);
    data_ = reinterpret_cast<double*>(shared ? window_->data() : private_.data());
  }

  const HaloSpec& spec() const { return spec_; }
  double* field(int i) const { return data_ + i * field_; }
  /// Returns the share of the memory that is on huge pages; -1 if the system does not say.
  double share_on_huge_pages() const {
    const auto bytes = kFields * field_ * std::int64_t{sizeof(double)};
    return comm::share_on_huge_pages(data_, bytes).value_or(-1);
  }
  const SharedWindow& window() const { return *window_; }
  std::vector<const SharedWindow*> windows() const {
    if (!window_) return {};
    return {&*window_};
  }
  /// Returns field `i` of another rank of this node, in the shared window.
  const double* field_of(int rank, int i) const {
    return reinterpret_cast<const double*>(window_->data_of(rank)) + i * field_;
  }
  std::int64_t offset(const Int3& at) const {
    const auto stored = spec_.stored();
    return (at[2] * stored[1] + at[1]) * stored[0] + at[0];
  }

 private:
  static constexpr std::int64_t kPage = 4096 / sizeof(double);
  HaloSpec spec_;
  std::int64_t field_;
  std::optional<SharedWindow> window_;
  PagedMemory private_;
  double* data_;
};

/// Describes the exchange: equal boxes, periodic.
struct Scene {
  Decomposition decomposition;
  HaloSpec spec;

  Scene(std::int64_t points, const Int3& ranks)
      : decomposition({points * ranks[0], points * ranks[1], points * ranks[2]}, ranks, true),
        spec{{points, points, points}, kRadius} {}

  // Calls body(value, number, owned) for all stored points of a field. `number` identifies the
  // point that a stored point owns or mirrors. `owned` is false for ghosts.
  template <class Body>
  void for_each_point(double* field, int index, Body body) const {
    const auto stored = spec.stored(), &global = decomposition.global();
    const auto begin = decomposition.owned(world_rank()).begin;
    Int3 at{};
    for (at[2] = 0; at[2] < stored[2]; ++at[2])
      for (at[1] = 0; at[1] < stored[1]; ++at[1])
        for (at[0] = 0; at[0] < stored[0]; ++at[0]) {
          Int3 point{};
          bool owned = true;
          for (std::size_t axis = 0; axis < 3; ++axis) {
            owned = owned && at[axis] >= kRadius && at[axis] < kRadius + spec.extent[axis];
            point[axis] = (begin[axis] + at[axis] - kRadius + global[axis]) % global[axis];
          }
          const auto number = (point[2] * global[1] + point[1]) * global[0] + point[0];
          body(*field++, static_cast<double>(number * kFields + index), owned);
        }
  }

  void fill(const Fields& fields) const {
    for (int i = 0; i < kFields; ++i)
      for_each_point(fields.field(i), i, [](double& value, double number, bool owned) {
        value = owned ? number : std::nan("");
      });
  }
  std::int64_t count_wrong(const Fields& fields) const {
    std::int64_t wrong = 0;
    for (int i = 0; i < kFields; ++i)
      for_each_point(fields.field(i), i, [&](const double& value, double number, bool) {
        wrong += value == number ? 0 : 1;
      });
    HALOCLINE_MPI(MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD));
    return wrong;
  }
};

/// Holds one of the methods that take turns.
struct Way {
  std::string name;
  const Fields* fields;
  std::function<void()> exchange;
  std::vector<double> seconds;  ///< maximum over the ranks, by iteration
};

// ---- Methods of Halocline and of the vendor MPI ----

/// Holds a plan and the types that make it.
class Planned {
 public:
  Planned(const Scene& scene, const Fields& fields, Exchange exchange, HaloShape shape)
      : plan_(MPI_COMM_WORLD, jobs(scene, fields, shape), exchange, {.windows = fields.windows()}) {
    types_.clear();
  }
  void exchange() { plan_.start().finish(); }

 private:
  std::vector<ExchangeJob> jobs(const Scene& scene, const Fields& fields, HaloShape shape) {
    return halo_jobs(scene.decomposition, world_rank(), scene.spec, kFields,
                     [&](int field, const Box& box) { return describe(fields, field, box); },
                     {.shape = shape});
  }
  Region describe(const Fields& fields, int field, const Box& box) {
    const auto stored = fields.spec().stored();
    const auto as_int = [](const Int3& t) {
      return std::array{checked_int(t[2], "extent"), checked_int(t[1], "extent"),
                        checked_int(t[0], "extent")};
    };
    MPI_Datatype type = MPI_DATATYPE_NULL;
    HALOCLINE_MPI(MPI_Type_create_subarray(3, as_int(stored).data(), as_int(box.extent).data(),
                                           as_int(box.begin).data(), MPI_ORDER_C, MPI_DOUBLE,
                                           &type));
    types_.emplace_back(type);
    return {fields.field(field), 1, type};
  }

  std::vector<dtype::Datatype> types_;
  ExchangePlan plan_;
};

// ---- Twins ----

enum class Rows { any, fixed };

template <Rows kRows>
void copy_box(const Int3& extent, const Int3& stored, const double* from, double* to) {
  const auto copy = [&](auto length) {
    for (std::int64_t z = 0; z < extent[2]; ++z)
      for (std::int64_t y = 0; y < extent[1]; ++y) {
        const auto row = (z * stored[1] + y) * stored[0];
        std::memcpy(to + row, from + row, static_cast<std::size_t>(length) * sizeof(double));
      }
  };
  if (kRows == Rows::fixed && extent[0] == kRadius)
    copy(std::integral_constant<std::int64_t, kRadius>{});
  else
    copy(extent[0]);
}

// Two barriers: all ranks must be ready before the copies, and done after them.
template <Rows kRows>
void copy_from_neighbors(const Scene& scene, const Fields& fields) {
  fields.window().sync();
  HALOCLINE_MPI(MPI_Barrier(MPI_COMM_WORLD));
  fields.window().sync();
  const auto stored = scene.spec.stored();
  for_each_direction([&](Direction direction) {
    const int neighbor = *scene.decomposition.neighbor(world_rank(), direction);
    const auto from = scene.spec.send_box(direction.opposite()),
               to = scene.spec.ghost_box(direction);
    for (int i = 0; i < kFields; ++i)
      copy_box<kRows>(to.extent, stored, fields.field_of(neighbor, i) + fields.offset(from.begin),
                      fields.field(i) + fields.offset(to.begin));
  });
  fields.window().sync();
  HALOCLINE_MPI(MPI_Barrier(MPI_COMM_WORLD));
}

// Counts the cache lines that an exchange must read and write at least. Rows of neighbouring boxes
// share lines.
class Lines {
 public:
  Lines(const Scene& scene, const Fields& fields) {
    for_each_direction([&](Direction direction) {
      const int neighbor = *scene.decomposition.neighbor(world_rank(), direction);
      for (int i = 0; i < kFields; ++i) {
        add(read_, fields, fields.field_of(neighbor, i), scene.spec.send_box(direction.opposite()));
        add(written_, fields, fields.field(i), scene.spec.ghost_box(direction));
      }
    });
    read_count_ = count(read_), written_count_ = count(written_);
    read_.insert(read_.end(), written_.begin(), written_.end());
    fetched_count_ = count(read_);
  }
  std::int64_t read() const { return read_count_; }
  std::int64_t written() const { return written_count_; }
  /// Returns the lines of a copy with the same traffic. A line that is written is fetched, too, but
  /// only once if it is also read.
  std::int64_t of_copy() const { return (fetched_count_ + written_count_ + 2) / 3; }

 private:
  static constexpr std::uintptr_t kLine = 64;
  using Numbers = std::vector<std::uintptr_t>;

  static void add(Numbers& lines, const Fields& fields, const double* field, const Box& box) {
    for (std::int64_t z = 0; z < box.extent[2]; ++z)
      for (std::int64_t y = 0; y < box.extent[1]; ++y) {
        const auto* row = field + fields.offset({box.begin[0], box.begin[1] + y, box.begin[2] + z});
        const auto begin = reinterpret_cast<std::uintptr_t>(row);
        const auto end = reinterpret_cast<std::uintptr_t>(row + box.extent[0]);
        for (auto line = begin / kLine; line * kLine < end; ++line) lines.push_back(line);
      }
  }
  // Counts different lines, and sorts them.
  static std::int64_t count(Numbers& lines) {
    std::sort(lines.begin(), lines.end());
    lines.erase(std::unique(lines.begin(), lines.end()), lines.end());
    return std::ssize(lines);
  }

  Numbers read_, written_;
  std::int64_t read_count_ = 0, written_count_ = 0, fetched_count_ = 0;
};

// Copies `lines` consecutive cache lines from the upper half of the next rank's window to the lower
// half of its own. Blocks are short, so that the C library does not write past the caches.
void copy_lines(const Fields& fields, std::int64_t lines) {
  constexpr std::int64_t kBlock = 4096, kLine = 64;
  const auto half = fields.window().bytes() / 2 / kBlock * kBlock;
  const auto* from = fields.window().data_of((world_rank() + 1) % world_size()) + half;
  auto* to = fields.window().data();
  HALOCLINE_MPI(MPI_Barrier(MPI_COMM_WORLD));
  for (std::int64_t at = 0; at < lines * kLine; at += kBlock)
    std::memcpy(to + at % half, from + at % half,
                static_cast<std::size_t>(std::min(kBlock, lines * kLine - at)));
  HALOCLINE_MPI(MPI_Barrier(MPI_COMM_WORLD));
}

// ---- Measuring ----

struct Effort {
  double seconds;
  int least, most;  // iterations
};

Effort effort_of(const Options& options) {
  if (options.smoke) return {0, 1, 1};
  if (options.quick) return {1, 5, 100};
  return {8, 15, 1000};
}

// Times the ways in turns; all ranks start each way together.
void take_turns(std::vector<Way>& ways, const Effort& effort) {
  const double begin = MPI_Wtime();
  int more = 1;
  for (int i = 0; more != 0; ++i) {
    for (const auto number : order_of_turn(ways.size(), i)) {
      auto& way = ways[number];
      HALOCLINE_MPI(MPI_Barrier(MPI_COMM_WORLD));
      const double start = MPI_Wtime();
      way.exchange();
      way.seconds.push_back(MPI_Wtime() - start);
    }
    more = i + 1 < effort.least || (i + 1 < effort.most && MPI_Wtime() - begin < effort.seconds);
    HALOCLINE_MPI(MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD));
  }
  for (auto& way : ways)
    HALOCLINE_MPI(MPI_Allreduce(MPI_IN_PLACE, way.seconds.data(),
                                static_cast<int>(way.seconds.size()), MPI_DOUBLE, MPI_MAX,
                                MPI_COMM_WORLD));
}

// Returns the median of the fastest way whose name begins like this. NaN if there is none.
double fastest(const std::vector<Way>& ways, const std::string& prefix) {
  double out = std::nan("");
  for (const auto& way : ways)
    if (way.name.starts_with(prefix)) out = std::fmin(out, median(way.seconds));
  return out;
}

Row measure(std::int64_t points, const Int3& ranks, const Options& options) {
  const Scene scene(points, ranks);
  const Fields in_window(scene.spec, true), in_private(scene.spec, false);
  std::vector<Way> ways;
  std::vector<std::unique_ptr<Planned>> plans;
  ways.push_back(
      {"rows", &in_window, [&] { copy_from_neighbors<Rows::any>(scene, in_window); }, {}});
  ways.push_back(
      {"rows-fixed", &in_window, [&] { copy_from_neighbors<Rows::fixed>(scene, in_window); }, {}});
  const auto add = [&](Exchange exchange, HaloShape shape, const Fields& fields) {
    auto* plan =
        plans.emplace_back(std::make_unique<Planned>(scene, fields, exchange, shape)).get();
    ways.push_back({std::string(name(exchange)) + (shape == HaloShape::axes ? "-axes" : "") +
                        (&fields == &in_private ? "-private" : ""),
                    &fields,
                    [plan] { plan->exchange(); },
                    {}});
  };
  for (const auto exchange : all_exchanges()) {
    // `auto` chooses one of the methods that are measured anyway.
    if (exchange == Exchange::automatic || !why_not_available(exchange).empty()) continue;
    add(exchange, HaloShape::direct, in_window);
    const bool has_axes = exchange == Exchange::shared || exchange == Exchange::p2p ||
                          exchange == Exchange::vendor_p2p;
    if (has_axes) add(exchange, HaloShape::axes, in_window);
    if (is_vendor(exchange)) add(exchange, HaloShape::direct, in_private);
  }

  const Lines lines(scene, in_window);

  Row row;
  for (auto& way : ways) {
    scene.fill(*way.fields);
    HALOCLINE_MPI(MPI_Barrier(MPI_COMM_WORLD));
    way.exchange();
    if (const auto wrong = scene.count_wrong(*way.fields); wrong > 0)
      row.add_note(way.name + ": " + std::to_string(wrong) + " elements are wrong");
  }
  row.verified = row.note.empty();
  if (!row.verified) return row;
  // Copies no ghosts, and overwrites the fields. So it is not among the ways to verify.
  ways.push_back({"lines", &in_window, [&] { copy_lines(in_window, lines.of_copy()); }, {}});
  take_turns(ways, effort_of(options));

  const auto stored = scene.spec.stored();
  row.add("bytes", kFields * 8 * (stored[0] * stored[1] * stored[2] - points * points * points));
  row.add("iterations", ways.front().seconds.size());
  row.add("window_on_huge_pages", in_window.share_on_huge_pages());
  row.add("private_on_huge_pages", in_private.share_on_huge_pages());
  for (const auto& way : ways) row.add_times(way.name, way.seconds, 1e9);
  const auto vendor = fastest(ways, "vendor-"), shared = fastest(ways, "shared");
  row.add("vendor_ns", 1e9 * vendor);
  row.add("shared_vs_vendor", vendor / shared);
  row.add("shared_vs_rows", 1e-9 * row.value("rows_ns") / shared);
  row.add("shared_vs_rows-fixed", 1e-9 * row.value("rows-fixed_ns") / shared);
  row.add("lines_read", lines.read());
  row.add("lines_written", lines.written());
  row.add("shared_vs_lines", 1e-9 * row.value("lines_ns") / shared);
  row.add("p2p_vs_vendor-pack", fastest(ways, "vendor-pack") / fastest(ways, "p2p"));
  return row;
}

// Puts all ranks along one axis.
Int3 split(char axis) {
  Int3 out{1, 1, 1};
  out[static_cast<std::size_t>(axis - 'x')] = world_size();
  return out;
}

std::vector<Benchmark> split_in(const char* axis, const Options& options) {
  const auto sizes =
      options.smoke ? std::vector<std::int64_t>{8} : std::vector<std::int64_t>{64, 128, 256};
  std::vector<Benchmark> out;
  for (const auto points : sizes)
    out.push_back(
        {std::to_string(points), [=, &options] { return measure(points, split(*axis), options); }});
  return out;
}

Program program() {
  Program out{.what = "Halo exchanges between the ranks of a node beside twins in plain MPI.",
              .groups = {},
              .start = [](const Options&) -> Facts {
                if (NodeHierarchy(MPI_COMM_WORLD).nodes() > 1)
                  throw ConfigError(
                      "ranks are on several nodes (the twins copy through memory that all share): "
                      "start them on one node");
                const auto ranks = std::to_string(world_size());
                return {ranks + " ranks", {{"ranks", ranks}}};
              }};
  for (const char* axis : {"x", "y", "z"})
    out.groups.push_back(
        {axis,
         "split in this axis; shared and p2p: in their faster shapes; vendor: the MPI's fastest",
         "shared_ns",
         "rows_ns rows-fixed_ns lines_ns shared_ns shared-axes_ns p2p_ns p2p-axes_ns alltoallv_ns "
         "vendor_ns shared_vs_vendor shared_vs_rows shared_vs_rows-fixed shared_vs_lines "
         "p2p_vs_vendor-pack",
         [axis](const Options& options) { return split_in(axis, options); }});
  out.groups.push_back({"interfaces",
                        "start and finish by halocline.h beside C++, 8 bytes to itself", "c_ns",
                        "cpp_ns c_ns more_ns", interfaces});
  return out;
}

}  // namespace

}  // namespace halocline::comm::bench

int main(int argc, char** argv) {
  return halocline::dtype::bench::bench_main("bench_exchange", argc, argv,
                                             halocline::comm::bench::program);
}
