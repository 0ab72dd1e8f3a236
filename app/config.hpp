// SPDX-License-Identifier: BSD-3-Clause
// Holds the effective configuration: defaults, then the config file, then the command line.
#pragma once

#include <mpi.h>

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "comm/exchange/method.hpp"
#include "comm/gather/gather_plan.hpp"
#include "comm/gather/rank_order.hpp"
#include "comm/halo/halo_spec.hpp"
#include "comm/halo/placement.hpp"
#include "comm/node/paged_memory.hpp"
#include "comm/node/shared_window.hpp"
#include "enum_names.hpp"

namespace halocline::app {

enum class Subcommand { run, compare, calibrate, gather, predict, inspect, info };
enum class Layout { soa, aos };
enum class Element { float64, float32, complex64, complex32 };
/// Tells if a value has a real and an imaginary part.
constexpr bool is_complex(Element element) {
  return element == Element::complex64 || element == Element::complex32;
}
/// Tells if the parts of a value are doubles, not floats.
constexpr bool is_double(Element element) {
  return element == Element::float64 || element == Element::complex64;
}
/// Lists the bytes to a multiple of which the first owned point of each row is moved.
enum class Pad { automatic, none, by32, by64, by128 };
enum class Stencil { heat13, heat9, heat3, point26 };
enum class Memory { host, device };
enum class GpuAwareMpi { ask, yes, no };
enum class Neighbors { six, eighteen, all, automatic };
enum class Messages { partner, region, field };
enum class Describe { subarray, vector, hvector, hindexed, structure };
enum class PackerKind { host, kokkos };
enum class Inject { none, drop, swap, flip, stale };
enum class Axis { x, y, z };
enum class Language { none, c, fortran };
/// Lists what sets the ghosts beyond an open side: the physics, the mirrored points with their own
/// or the other sign, or the initial state.
enum class Boundary { exact, symmetric, antisymmetric, fixed };

template <>
struct EnumNames<comm::RankOrder> {
  static constexpr auto table = comm::kRankOrders;
};
template <>
struct EnumNames<comm::GatherVariant> {
  static constexpr auto table = comm::kGatherVariants;
};
template <>
struct EnumNames<comm::TreeForm> {
  static constexpr auto table = comm::kTreeForms;
};

/// Holds a value for each side, in the order x-, x+, y-, y+, z-, z+. One value alone stands for all
/// of them.
template <class T>
struct PerSide : std::array<T, 6> {
  constexpr PerSide(T all) : PerSide({all, all, all, all, all, all}) {}
  constexpr PerSide(const std::array<T, 6>& values) : std::array<T, 6>(values) {}
};

/// Holds one member for each long flag (dashes become underscores). The table in config/options.cpp
/// explains each member and lists the subcommands that use it. Extents and counts of three are in
/// the order x, y, z.
struct Config {
  Subcommand subcommand = Subcommand::run;

  // Unit: points. After parse_config() exactly one of these two members is set.
  std::optional<std::array<std::int64_t, 3>> local;   ///< points of each rank
  std::optional<std::array<std::int64_t, 3>> global;  ///< points of all ranks together
  comm::PerAxis<std::int64_t> radius = 3;             ///< ghost points on each side of each axis
  int fields = 8;
  Layout layout = Layout::soa;
  Element element = Element::float64;
  Pad pad = Pad::automatic;
  comm::Pages pages = comm::Pages::huge;
  comm::PerAxis<bool> periodic = true;
  PerSide<Boundary> boundary = Boundary::exact;  ///< of open sides
  Memory memory = Memory::host;
  GpuAwareMpi gpu_aware_mpi = GpuAwareMpi::ask;
  std::optional<std::array<int, 3>>
      decomposition;  ///< ranks along each axis; unset: chosen by the program
  /// Sets the ranks of each emulated node: one number for all nodes, or one for each node. Empty:
  /// the real nodes.
  std::vector<int> ranks_per_node;
  comm::Reorder reorder = comm::Reorder::none;

  std::string physics = "heat";  ///< name of a physics: see physics.hpp
  /// Holds the parameters of all physics that the user gives, by names such as "mhd.nu".
  std::map<std::string, double> parameters;
  bool force_dt = false;
  Stencil stencil = Stencil::heat13;
  std::int64_t steps = 10;
  int stages = 1;  ///< substeps of a step; each has its exchange
  int wide = 1;    ///< substeps for each exchange, whose halo is as many times as wide
  bool overlap = false;
  std::int64_t progress = 16;  ///< MPI calls between parts of the interior; 0: none

  std::int64_t iterations = 20;  ///< number of timed iterations
  std::int64_t warmup = 2;
  double max_seconds = 60;
  /// Lists the methods that the user names. Empty: the possible methods, which the program finds
  /// out when it runs.
  std::vector<comm::Method> methods;
  std::vector<comm::HaloShape> shape{comm::HaloShape::direct};
  Neighbors neighbors = Neighbors::automatic;
  Messages messages = Messages::partner;
  std::int64_t chunk_bytes = 1 << 20;  ///< 0: messages are not divided
  Describe describe = Describe::subarray;
  PackerKind packer = PackerKind::host;

  std::vector<comm::RankOrder> order{comm::RankOrder::ordered, comm::RankOrder::random};
  int root = 0;
  std::vector<comm::GatherVariant> variants = all_of<comm::GatherVariant>();
  std::vector<std::int64_t> sizes{1,       4,        16,       64,        256,    1 << 10,
                                  4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20};  ///< bytes

  std::vector<int> nodes{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384};
  std::string traces;  ///< path of a folder; empty: none

  std::string model;  ///< path; empty: the default place
  bool force_model = false;

  int threads = 0;  ///< per rank; 0: this rank's share of its node
  std::int64_t seed = 1;
  Inject inject = Inject::none;
  std::int64_t inject_from = 1;  ///< number of the first verified exchange of a plan that is broken

  std::int64_t snapshot_every = 0;           ///< steps; 0: no snapshots
  std::vector<std::string> snapshot_fields;  ///< empty: all
  std::int64_t slice_every = 0;              ///< steps; 0: no slices
  std::vector<std::string> slice_fields;     ///< empty: all
  Axis slice_axis = Axis::z;
  std::string output_folder;          ///< path; empty: a new folder, if the run writes something
  std::int64_t series_every = 0;      ///< steps; 0: no time series
  std::int64_t checkpoint_every = 0;  ///< steps; 0: no checkpoints
  std::string restart;                ///< path of a checkpoint or an output folder; empty: none
  double slice_at = 0.5;              ///< place on the axis, as a part of its length

  std::string output;  ///< path; empty: none
  std::string csv;     ///< path; empty: none
  std::string plot;    ///< path of a picture; empty: none
  std::string config;  ///< path; empty: none
  bool quiet = false;
  bool dry_run = false;

  bool json = false;
  bool verbose = false;
  Language emit = Language::none;
  std::string displacements;  ///< path; empty: none
  std::string typemap;        ///< path; empty: none
  std::string expression;
};

/// Returns the answer to the command line with its config file. The answer is a text to print
/// (--help, --version, --print-config) or the effective configuration. Local. \throws ConfigError
/// under the conditions of parse_config().
std::variant<std::string, Config> read_arguments(int argc, const char* const* argv);

/// Parses the command line and the config file on rank 0, broadcasts the effective configuration
/// and validates it on every rank. Collective over `comm`.
///
/// Returns nullopt if there is nothing left to do. Rank 0 has then printed the text of --help,
/// --version or --print-config. Checks that need the decomposition (radius against local extents,
/// ranks against points) are left to the commands.
/// \throws ConfigError with the same message on every rank; it names the key and its place.
std::optional<Config> parse_config(MPI_Comm comm, int argc, const char* const* argv);

/// Reads the config file and the command line of parse_config() again. Returns the parameters of
/// the physics that are given there, or else in `settings`, a result of settings_json().
/// Collective. \throws ConfigError on all ranks if they cannot be used
std::map<std::string, double> reread_parameters(const std::string& physics,
                                                const std::string& settings, MPI_Comm comm);

/// Returns the options that the results of a run depend on, as one line of JSON: names and values.
/// A checkpoint keeps them.
std::string settings_json(const Config& config);

/// Returns the effective configuration as one line of JSON: an object with the subcommand and the
/// long flags as keys. The value of an unset option is null.
std::string effective_config_json(const Config& config);

template <>
struct EnumNames<Subcommand> {
  static constexpr std::array table{std::pair{Subcommand::run, "run"},
                                    std::pair{Subcommand::compare, "compare"},
                                    std::pair{Subcommand::calibrate, "calibrate"},
                                    std::pair{Subcommand::gather, "gather"},
                                    std::pair{Subcommand::predict, "predict"},
                                    std::pair{Subcommand::inspect, "inspect"},
                                    std::pair{Subcommand::info, "info"}};
};
template <>
struct EnumNames<Layout> {
  static constexpr std::array table{std::pair{Layout::soa, "soa"}, std::pair{Layout::aos, "aos"}};
};
template <>
struct EnumNames<Memory> {
  static constexpr std::array table{std::pair{Memory::host, "host"},
                                    std::pair{Memory::device, "device"}};
};
template <>
struct EnumNames<GpuAwareMpi> {
  static constexpr std::array table{std::pair{GpuAwareMpi::ask, "ask"},
                                    std::pair{GpuAwareMpi::yes, "yes"},
                                    std::pair{GpuAwareMpi::no, "no"}};
};
template <>
struct EnumNames<Element> {
  static constexpr std::array table{
      std::pair{Element::float64, "double"}, std::pair{Element::float32, "float"},
      std::pair{Element::complex64, "complex"}, std::pair{Element::complex32, "complex-float"}};
};
template <>
struct EnumNames<Stencil> {
  static constexpr std::array table{
      std::pair{Stencil::heat13, "heat13"}, std::pair{Stencil::heat9, "heat9"},
      std::pair{Stencil::heat3, "heat3"}, std::pair{Stencil::point26, "point26"}};
};
template <>
struct EnumNames<comm::HaloShape> {
  static constexpr std::array table{std::pair{comm::HaloShape::direct, "direct"},
                                    std::pair{comm::HaloShape::axes, "axes"}};
};
template <>
struct EnumNames<Neighbors> {
  static constexpr std::array table{
      std::pair{Neighbors::six, "6"}, std::pair{Neighbors::eighteen, "18"},
      std::pair{Neighbors::all, "26"}, std::pair{Neighbors::automatic, "auto"}};
};
template <>
struct EnumNames<Pad> {
  static constexpr std::array table{std::pair{Pad::automatic, "auto"}, std::pair{Pad::none, "none"},
                                    std::pair{Pad::by32, "32"}, std::pair{Pad::by64, "64"},
                                    std::pair{Pad::by128, "128"}};
};
template <>
struct EnumNames<comm::Pages> {
  static constexpr std::array table{std::pair{comm::Pages::huge, "huge"},
                                    std::pair{comm::Pages::small, "small"}};
};
template <>
struct EnumNames<comm::SharedWindow::Kind> {
  static constexpr std::array table{std::pair{comm::SharedWindow::Kind::memory_file, "memory-file"},
                                    std::pair{comm::SharedWindow::Kind::mpi_window, "mpi-window"}};
};
template <>
struct EnumNames<Messages> {
  static constexpr std::array table{std::pair{Messages::partner, "partner"},
                                    std::pair{Messages::region, "region"},
                                    std::pair{Messages::field, "field"}};
};
template <>
struct EnumNames<comm::Reorder> {
  static constexpr std::array table{std::pair{comm::Reorder::none, "none"},
                                    std::pair{comm::Reorder::node, "node"}};
};
template <>
struct EnumNames<Describe> {
  static constexpr std::array table{
      std::pair{Describe::subarray, "subarray"}, std::pair{Describe::vector, "vector"},
      std::pair{Describe::hvector, "hvector"}, std::pair{Describe::hindexed, "hindexed"},
      std::pair{Describe::structure, "struct"}};
};
template <>
struct EnumNames<Language> {
  static constexpr std::array table{std::pair{Language::none, "none"}, std::pair{Language::c, "c"},
                                    std::pair{Language::fortran, "fortran"}};
};
template <>
struct EnumNames<PackerKind> {
  static constexpr std::array table{std::pair{PackerKind::host, "host"},
                                    std::pair{PackerKind::kokkos, "kokkos"}};
};
template <>
struct EnumNames<Axis> {
  static constexpr std::array table{std::pair{Axis::x, "x"}, std::pair{Axis::y, "y"},
                                    std::pair{Axis::z, "z"}};
};
template <>
struct EnumNames<Boundary> {
  static constexpr std::array table{
      std::pair{Boundary::exact, "exact"}, std::pair{Boundary::symmetric, "symmetric"},
      std::pair{Boundary::antisymmetric, "antisymmetric"}, std::pair{Boundary::fixed, "fixed"}};
};
template <>
struct EnumNames<Inject> {
  static constexpr std::array table{
      std::pair{Inject::none, "none"}, std::pair{Inject::drop, "drop"},
      std::pair{Inject::swap, "swap"}, std::pair{Inject::flip, "flip"},
      std::pair{Inject::stale, "stale"}};
};

}  // namespace halocline::app
