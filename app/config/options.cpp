// SPDX-License-Identifier: BSD-3-Clause
#include "options.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <climits>
#include <cmath>
#include <concepts>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "dtype/pack/kokkos/kokkos_threads.hpp"
#include "messages.hpp"
#include "methods.hpp"
#include "physics.hpp"
#include "support/error.hpp"

namespace halocline::app {

namespace {

// ---- The types of Config's members: one item (a number, a name, a path), a list, a triple,
// or a value for each axis or side.

struct Range {
  std::int64_t min = 0;
  std::int64_t max = INT_MAX;
};

template <class T>
struct ItemOf {
  using type = T;
};
template <class T>
struct ItemOf<std::vector<T>> {
  using type = T;
};
template <class T>
struct ItemOf<std::optional<std::array<T, 3>>> {
  using type = T;
};
template <class T>
struct ItemOf<comm::PerAxis<T>> {
  using type = T;
};
template <class T>
struct ItemOf<PerSide<T>> {
  using type = T;
};
template <class T>
using Item = typename ItemOf<T>::type;
template <class T>
constexpr bool kIsList = std::same_as<T, std::vector<Item<T>>>;
template <class T>
constexpr bool kIsTriple = std::same_as<T, std::optional<std::array<Item<T>, 3>>>;
template <class T>
constexpr int kPlaces = std::same_as<T, comm::PerAxis<Item<T>>> ? 3
                        : std::same_as<T, PerSide<Item<T>>>     ? 6
                                                                : 0;  ///< axes or sides
template <class T>
constexpr bool kIsNumber = std::integral<Item<T>> && !std::same_as<Item<T>, bool>;

std::string method_names() {
  std::string out;
  for (const auto exchange : comm::all_exchanges())
    out.append(out.empty() ? "" : ", ").append(comm::name(exchange));
  return out;
}

// Returns the allowed values of an option.
template <class T>
std::string expected(const Range& range) {
  std::string item = "a path in UTF-8";
  if constexpr (std::same_as<Item<T>, bool>) item = "true or false";
  if constexpr (std::same_as<T, double>) item = "a number of seconds > 0";
  if constexpr (kIsNumber<T>)
    item = "a whole number from " + std::to_string(range.min) + " to " + std::to_string(range.max);
  if constexpr (NamedEnum<Item<T>>) item = "one of " + all_names<Item<T>>(", ");
  if constexpr (std::same_as<Item<T>, comm::Method>) item = "one of " + method_names();
  if constexpr (kIsTriple<T>) return "three numbers, each " + item;
  if constexpr (kPlaces < T >> 0)
    return "one value or " + std::string(kPlaces<T> == 3 ? "three" : "six") + ", each " + item;
  if constexpr (!kIsList<T>) return item;
  if constexpr (kIsNumber<T>) return "one number or a list, each " + item;
  item = "a list of one or more" + item.substr(3) + ", each at most once";
  if constexpr (std::same_as<Item<T>, comm::Method>)
    item +=
        "; alltoallv, neighbor, p2p and partitioned may have :device, :one-shot, :staged, :host or "
        ":auto behind it";
  return item;
}

// Each `read` takes a value from a file or a broadcast, and returns true if the value can be used.
bool read(const Json& value, const Range&, bool& out) {
  if (value.is_boolean()) out = value.get<bool>();
  return value.is_boolean();
}

template <std::integral T>
bool read(const Json& value, const Range& range, T& out) {
  if (!value.is_number_integer()) return false;
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > INT64_MAX) return false;
  const auto number = value.get<std::int64_t>();
  if (number < range.min || number > range.max) return false;
  out = static_cast<T>(number);
  return true;
}

// Takes positive seconds.
bool read(const Json& value, const Range&, double& out) {
  if (!value.is_number()) return false;
  const auto number = value.get<double>();
  if (!std::isfinite(number) || number <= 0) return false;
  out = number;
  return true;
}

// Takes only UTF-8, so that a JSON record can hold the text.
bool read(const Json& value, const Range&, std::string& out) {
  if (!value.is_string() || !is_utf8(value.get<std::string>())) return false;
  out = value.get<std::string>();
  return true;
}

// Takes a name. A name that is a number, such as 26, may be written as a number.
template <NamedEnum E>
bool read(const Json& value, const Range&, E& out) {
  const auto found = value.is_string()            ? from_string<E>(value.get<std::string>())
                     : value.is_number_unsigned() ? from_string<E>(value.dump())
                                                  : std::nullopt;
  if (found) out = *found;
  return found.has_value();
}

bool read(const Json& value, const Range&, comm::Method& out) {
  if (!value.is_string()) return false;
  try {
    out = comm::parse_method(value.get<std::string>());
    return true;
  } catch (const ConfigError&) {
    return false;
  }
}

// Takes a list of one item or more. One number may stand alone, and a name may occur only once.
template <class T>
bool read(const Json& value, const Range& range, std::vector<T>& out) {
  const auto items = std::integral<T> && !value.is_array() ? Json::array({value}) : value;
  if (!items.is_array() || items.empty()) return false;
  std::vector<T> found;
  for (const auto& json : items) {
    T item{};
    if (!read(json, range, item)) return false;
    if (!std::integral<T> && std::count(found.begin(), found.end(), item) > 0) return false;
    found.push_back(item);
  }
  out = std::move(found);
  return true;
}

template <class T>
bool read(const Json& value, const Range& range, std::optional<std::array<T, 3>>& out) {
  std::vector<T> numbers;
  if (!value.is_array() || value.size() != 3 || !read(value, range, numbers)) return false;
  out = {numbers[0], numbers[1], numbers[2]};
  return true;
}

// Takes one value for all places, or a list with one for each.
template <class T>
requires(kPlaces<T> > 0) bool read(const Json& value, const Range& range, T& out) {
  if (value.is_array() && value.size() != out.size()) return false;
  auto items = out;
  for (std::size_t i = 0; i < items.size(); ++i)
    if (!read(value.is_array() ? value[i] : value, range, items[i])) return false;
  out = items;
  return true;
}

template <class T>
Json write(const T& value) {
  if constexpr (NamedEnum<T>)
    return to_string(value);
  else if constexpr (std::same_as<T, comm::Method>)
    return comm::name(value);
  else
    return value;
}
template <class T>
requires(kPlaces<T> > 0) Json write(const T& value) {
  if (std::equal(value.begin() + 1, value.end(), value.begin())) return write(value.front());
  Json out;
  for (const auto item : value) out.push_back(write(item));
  return out;
}
template <class T>
Json write(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}
template <class T>
Json write(const std::vector<T>& items) {
  if (items.empty()) return {};
  if (std::integral<T> && items.size() == 1) return write(items.front());
  auto out = Json::array();
  for (const auto& item : items) out.push_back(write(item));
  return out;
}

// Makes JSON of a flag's word. A word that is no number stays a string, which no numeric option
// accepts.
template <class T>
Json from_word(const std::string& word) {
  if constexpr (std::same_as<T, bool>) {
    return word == "true" || word == "false" ? Json(word == "true") : Json(word);
  } else if constexpr (std::integral<T> || std::floating_point<T>) {
    std::conditional_t<std::integral<T>, std::int64_t, double> number{};
    const auto* end = word.data() + word.size();
    const auto [stop, error] = std::from_chars(word.data(), end, number);
    const bool is_whole =
        error == std::errc{} && stop == end && std::isfinite(static_cast<double>(number));
    return is_whole ? Json(number) : Json(word);
  } else {
    return word;
  }
}

// Splits words at commas: a list may be written as "128 128 128", "128,128,128" or "a,b".
template <class T>
Json from_tokens(const Tokens& tokens) {
  if constexpr (!kIsList<T> && !kIsTriple<T> && kPlaces<T> == 0)
    return from_word<T>(tokens.front());
  auto out = Json::array();
  for (const auto& token : tokens)
    for (std::size_t begin = 0, end = 0; end != std::string::npos; begin = end + 1) {
      end = token.find(',', begin);
      out.push_back(from_word<Item<T>>(token.substr(begin, end - begin)));
    }
  if (kPlaces < T >> 0 && out.size() == 1) return out.front();
  return out;
}

std::string default_text(const Json& value) {
  if (value.is_null()) return "";
  if (!value.is_array()) return value.is_string() ? value.get<std::string>() : value.dump();
  std::string out;
  for (const auto& item : value) out += (out.empty() ? "" : ",") + default_text(item);
  return out;
}

// ---- The table of options

struct OptionTable {
  OptionTable() {
    using enum Subcommand;
    using Users = std::vector<Subcommand>;
    constexpr Range size{1, INT_MAX};  // MPI's subarray constructor takes int
    const Users both{run, compare}, halo{run, compare, predict};

    group = "Grid and fields";
    auto& local =
        add("local", &Config::local, "N N N", size, halo, "points of each rank along x, y, z");
    local.default_text = "64 64 64";
    local.excludes = "global";
    add("global", &Config::global, "N N N", size, halo, "points of all ranks, instead of --local",
        "They need not divide evenly.")
        .excludes = "local";
    add("decomposition", &Config::decomposition, "N N N", size, halo, "ranks along x, y, z",
        "Default: the grid with the smallest halo surface between nodes, then between ranks.");
    add("reorder", &Config::reorder, "", halo, "places of the ranks in the grid",
        "none: in their order, x first. node: each node owns a compact part.");
    add("ranks-per-node", &Config::ranks_per_node, "N,...", size,
        {run, compare, gather, predict, info}, "emulate nodes of N consecutive ranks",
        "One number for all nodes, or one for each. Default: the real nodes. predict: ranks of "
        "each predicted node, 1 by default.");
    add("radius", &Config::radius, "N", size, halo, "ghost points on each side of each axis",
        "One number for all axes, or three: x, y, z.");
    add("fields", &Config::fields, "N", Range{1, 65536}, halo, "values per point");
    add("layout", &Config::layout, "", halo, "how the fields lie in memory",
        "soa: one array per field. aos: the fields of a point side by side.");
    add("element", &Config::element, "", halo, "type of a value",
        "double, float, complex or complex-float. mhd has no complex values.")
        .argument = "TYPE";
    add("periodic", &Config::periodic, "true|false", halo, "whether opposite sides are neighbours",
        "One value for all axes, or three: x, y, z.");
    add("memory", &Config::memory, "", halo, "where the fields are and the stencil runs");
    add("gpu-aware-mpi", &Config::gpu_aware_mpi, "", {run, compare, calibrate, info},
        "whether MPI takes device memory",
        "ask: $HALOCLINE_GPU_AWARE_MPI (yes or no) if it is set; else the MPI is asked, and a "
        "message is tried.");

    group = "Stencil and time steps";
    auto& physics = add("physics", &Config::physics, "NAME", both, "what is computed");
    physics.expected = "one of ";
    for (const auto& kind : all_physics()) {
      physics.names.emplace_back(kind.name);
      physics.details += physics.names.back() + ": " + std::string(kind.meaning) + ". ";
      physics.expected += (physics.names.size() > 1 ? ", " : "") + physics.names.back();
    }
    physics.details +=
        "`halocline help all` lists the parameters. compare exchanges the halos of mhd, or of heat "
        "all 26.";
    physics.read = [names = physics.names](const Json& value, Config& config) {
      if (!value.is_string() || std::find(names.begin(), names.end(), value) == names.end())
        return false;
      config.physics = value.get<std::string>();
      return true;
    };
    auto& stencil =
        add("stencil", &Config::stencil, "", {run}, "stencil of physics heat",
            "heat13: sixth order along 13 lines, 26 neighbours. heat9: 18 neighbours. heat3: 6 "
            "neighbours. point26: 27 points, radius 1.");
    stencil.argument = "NAME";
    add("steps", &Config::steps, "N", Range{0, INT_MAX}, {run}, "time steps");
    add("stages", &Config::stages, "N", size, {run}, "substeps of a step, each with an exchange");
    add("wide", &Config::wide, "N", Range{1, 64}, {run},
        "one exchange of N times the radius for N substeps",
        "Fewer, larger messages; the points near to neighbours are computed more than once.");
    add("overlap", &Config::overlap, "", {run}, "compute the interior while messages travel",
        "Data move meanwhile only with p2p, partitioned, vendor-p2p, and shared between nodes or "
        "on devices; other methods block. Every second substep does not overlap, for comparison.");
    add("progress", &Config::progress, "N", Range{0, INT_MAX}, {run},
        "calls of MPI during the interior",
        "With --overlap, for MPIs that move nothing by themselves. 0: none.");

    group = "Exchange";
    auto& methods =
        add("methods", &Config::methods, "NAME,...", halo, "exchange methods: " + method_names(),
            "run takes the first. alltoallv, neighbor, p2p and partitioned may end in :device, "
            ":one-shot, :staged or :host, the way of the packed bytes of fields in device memory. "
            "Default there: all that are possible.");
    methods.default_text = default_text(write(methods_on_host()));
    add("shape", &Config::shape, "SHAPE,...", halo, "shape of the halo: direct, axes",
        "direct: all regions at once. axes: at most 6 slabs, x before y before z, so that edges "
        "and corners travel with them, in rounds that wait for each other. run and predict take "
        "the first; compare measures each method in each shape.");
    add("neighbors", &Config::neighbors, "", halo, "whose points travel",
        "6: across faces. 18: across edges, too. 26: across corners, too. auto: of each field, "
        "what its stencil reads (run, which refuses fewer; compare of mhd), else 26.");
    add("messages", &Config::messages, "", both, "what a message of p2p and vendor-p2p holds",
        "partner: all that goes to a partner (in a round of axes). region: one region of all "
        "fields. field: all regions of one field (layout soa). Other methods send one message to "
        "each partner.")
        .argument = "NAME";
    add("chunk-bytes", &Config::chunk_bytes, "N", Range{0, INT64_MAX}, both,
        "p2p: bytes after which a message is cut",
        "Between nodes, shared cuts its messages, too. A message ends with the region of a field "
        "that brings it to N bytes; the rest is packed while that one travels. 0: never cut.");
    add("describe", &Config::describe, "", both, "how regions are written as MPI datatypes",
        "subarray, vector, hvector, hindexed or struct.")
        .argument = "NAME";
    add("packer", &Config::packer, "", both, "which packer packs on the host");

    group = "Hierarchical gather";
    add("variants", &Config::variants, "NAME,...", {gather},
        "who puts blocks into the order of ranks",
        "mpi-gather: MPI_Gather. hier-...: through one rank of each node, then reordered by "
        "MPI_Unpack, MPI_Sendrecv or our pack plan; forced: where nothing need be reordered. "
        "zero-copy: by the types of the messages.");
    add("order", &Config::order, "ORDER,...", {gather}, "order of the ranks in the communicator",
        "ordered: as they are. reversed. round-robin: over the nodes. random: by --seed.");
    add("sizes", &Config::sizes, "N,...", Range{0, INT64_MAX}, {gather}, "bytes of each rank");
    add("root", &Config::root, "N", Range{0, INT_MAX}, {gather}, "rank that gathers",
        "The same rank in each order.");

    group = "Prediction";
    add("nodes", &Config::nodes, "N,...", size, {predict}, "numbers of nodes",
        "Each has --ranks-per-node ranks.");
    add("traces", &Config::traces, "FOLDER", {predict}, "write the messages for SimGrid",
        "--iterations exchanges on that number of nodes, in a new folder, for "
        "jobs/simgrid/replay.sh.");

    group = "Measurement";
    add("iterations", &Config::iterations, "N", Range{1, INT_MAX}, {compare, gather, predict},
        "timed exchanges of each method",
        "gather: timed gathers of each variant and size. predict: exchanges in the traces.");
    add("warmup", &Config::warmup, "N", Range{0, INT_MAX}, {compare, gather},
        "untimed exchanges before them");
    add("max-seconds", &Config::max_seconds, "SECONDS", {compare, calibrate, gather},
        "stop measuring after this time");
    add("model", &Config::model, "FILE", {run, compare, calibrate, predict, info},
        "system model that chooses transfers",
        "calibrate writes it. Default: $HALOCLINE_MODEL, $XDG_CONFIG_HOME/halocline/model.json "
        "or ~/.config/halocline/model.json.");
    add("force-model", &Config::force_model, "", both, "use the model of another machine",
        "The other machine may have another CPU, GPU, driver or MPI.");
    add("threads", &Config::threads, "N", Range{0, dtype::kMostKokkosThreads}, {run, compare, info},
        "threads per rank",
        "0: $KOKKOS_NUM_THREADS or $OMP_NUM_THREADS if one is set, else the rank's share of its "
        "node. At most " +
            std::to_string(dtype::kMostKokkosThreads) + ".");
    add("seed", &Config::seed, "N", Range{0, INT64_MAX}, {run, compare, gather},
        "seed of field values and random orders");

    group = kBoundaries;
    add("boundary", &Config::boundary, "KIND", {run}, "what sets the ghosts beyond open sides",
        "One value, or six: x-, x+, y-, y+, z-, z+. exact: the solution of heat. symmetric, "
        "antisymmetric: the points mirrored at the last one, the latter with the other sign. "
        "fixed: the initial state.");

    group = kPadding;
    add("pad", &Config::pad, "", halo, "bytes to which rows are aligned",
        "The first owned point of each row begins at a multiple of N bytes. auto: 32 on a "
        "device and for mhd, else none.")
        .argument = "N";
    add("pages", &Config::pages, "", {run, compare}, "pages on which the fields lie",
        "huge: of 2 MiB, as far as the kernel has them. small: of 4 KiB, for comparison.");

    group = kFilesOfRun;
    add("output-folder", &Config::output_folder, "FOLDER", {run}, "folder of all that a run writes",
        "Default: a new folder in results/mine, if the run writes something. The files STOP and "
        "RELOAD there, SIGTERM and SIGUSR1 are obeyed after the step that is computed.");
    add("series-every", &Config::series_every, "N", Range{0, INT_MAX}, {run},
        "add a row to timeseries.csv after every N-th step", "0: never.");
    add("checkpoint-every", &Config::checkpoint_every, "N", Range{0, INT_MAX}, {run},
        "write a checkpoint after every N-th step", "The newest two stay. 0: never.");
    add("restart", &Config::restart, "FOLDER", {run}, "go on from a checkpoint",
        "Or from the newest good one of an output folder. --steps is the step to reach. Physics, "
        "points and parameters are the checkpoint's.");
    add("snapshot-every", &Config::snapshot_every, "N", Range{0, INT_MAX}, {run},
        "write the fields after every N-th step",
        "As VTK image data, with lists of the files for ParaView and XDMF. 0: never.");
    add_names("snapshot-fields", &Config::snapshot_fields, "fields of a snapshot");
    add("slice-every", &Config::slice_every, "N", Range{0, INT_MAX}, {run},
        "draw a slice after every N-th step", "One PNG for each field. 0: never.");
    add_names("slice-fields", &Config::slice_fields, "fields of which slices are drawn");
    add("slice-axis", &Config::slice_axis, "", {run}, "axis at right angles to a slice")
        .names.clear();  // every letter would be near to one of them
    auto& at = add("slice-at", &Config::slice_at, "X", {run}, "place of a slice on its axis",
                   "0: first point. 1: last point.");
    at.expected = "a number from 0 to 1";
    at.read = [](const Json& value, Config& config) {
      if (!value.is_number()) return false;
      const auto number = value.get<double>();
      if (!(number >= 0 && number <= 1)) return false;
      config.slice_at = number;
      return true;
    };

    group = "Output";
    add("output", &Config::output, "PATH", {run, compare, gather, predict},
        "append results, one JSON object a line");
    add("csv", &Config::csv, "PATH", {run, compare, gather, predict}, "append results as CSV");
    add("plot", &Config::plot, "FILE", {compare}, "draw the speeds as bars, in SVG");
    add("quiet", &Config::quiet, "", {run, compare, calibrate, gather, predict},
        "no progress line, no tables");
    add("json", &Config::json, "", {calibrate, inspect, info}, "print one JSON object alone");
    add("verbose", &Config::verbose, "", {inspect}, "show trees, plan and reconstructions, too");
    add("emit", &Config::emit, "", {inspect},
        "print the MPI calls that build the type, and no more");
    add("displacements", &Config::displacements, "FILE", {inspect},
        "displacements instead of EXPRESSION",
        "In bytes, one integer per line; 64-bit integers if the name ends in .i64.");
    add("typemap", &Config::typemap, "FILE", {inspect}, "a type map instead of EXPRESSION",
        "A predefined type and its displacement in bytes on each line.");
    add("dry-run", &Config::dry_run, "", {run, compare, calibrate, gather},
        "show what would be sent and needed");

    group = "General";
    add("config", &Config::config, "FILE", all_of<Subcommand>(), "TOML file with flags as keys",
        "Keys of one subcommand may stand in a section of its name, such as [compare]. Flags on "
        "the command line override the file.")
        .in_file = false;

    for (const auto& kind : all_physics())
      for (const auto& parameter : kind.parameters) add_parameter(kind, parameter);
    group = kParametersOf + std::string("mhd");
    add("force-dt", &Config::force_dt, "", {run}, "take mhd.dt even if it is not stable");

    group = "";
    add("inject", &Config::inject, "", {run, compare, gather},
        "break one message, to see verification fail");
    add("inject-from", &Config::inject_from, "N", Range{1, INT_MAX}, {run, compare, gather},
        "break the N-th verified exchange of each method and those after it");
  }

  template <class T>
  Option& add(std::string name, T Config::*member, std::string argument, Range range,
              std::vector<Subcommand> users, std::string meaning, std::string details = "") {
    auto& option = options.emplace_back();
    option.name = std::move(name);
    option.group = group;
    option.argument = std::move(argument);
    if constexpr (NamedEnum<T>) option.argument = all_names<T>("|");
    option.words = kIsTriple<T> ? 3 : std::max(kPlaces<T>, 1);
    option.expected = expected<T>(range);
    if constexpr (NamedEnum<Item<T>>)
      for (const auto one : all_of<Item<T>>()) option.names.emplace_back(to_string(one));
    if constexpr (std::same_as<Item<T>, comm::Method>)
      for (const auto exchange : comm::all_exchanges())
        option.names.emplace_back(comm::name(exchange));
    option.users = std::move(users);
    option.meaning = std::move(meaning);
    option.details = std::move(details);
    option.read = [member, range](const Json& value, Config& config) {
      return app::read(value, range, config.*member);
    };
    option.write = [member](const Config& config) { return app::write(config.*member); };
    option.from_tokens = from_tokens<T>;
    option.copy = [member](const Config& from, Config& to) { to.*member = from.*member; };
    option.default_text = default_text(option.write(Config{}));
    return option;
  }

  void add_names(std::string name, std::vector<std::string> Config::*member, std::string meaning) {
    auto& option = add(std::move(name), member, "NAME,...", {Subcommand::run}, std::move(meaning),
                       "mhd has lnrho, ux, uy, uz, ax, ay, az, s; heat has field0, field1, ... "
                       "Default: all.");
    option.expected = "a list of one or more names of fields, each at most once";
  }

  void add_parameter(const PhysicsKind& kind, const PhysicsParameter& parameter) {
    auto& option = options.emplace_back();
    option.name = std::string(kind.name) + "." + std::string(parameter.name);
    option.group = kParametersOf + std::string(kind.name);
    for (const auto name : parameter.choices) option.names.emplace_back(name);
    option.argument = "X";
    option.expected = "a number";
    if (std::isfinite(parameter.least))
      option.expected += parameter.least == 0 ? " from 0 on" : " above 0";
    if (!option.names.empty()) {
      option.argument = "NAME";
      option.expected = "one of ";
      for (const auto& name : option.names)
        option.expected += (&name == option.names.data() ? "" : ", ") + name;
    }
    option.users = {Subcommand::run};
    option.meaning = parameter.meaning;
    option.read = [name = option.name, least = parameter.least, choices = option.names](
                      const Json& value, Config& config) {
      if (!choices.empty()) {
        const auto found = std::find(choices.begin(), choices.end(), value);
        if (!value.is_string() || found == choices.end()) return false;
        config.parameters[name] = static_cast<double>(found - choices.begin());
        return true;
      }
      if (!value.is_number()) return false;
      const auto number = value.get<double>();
      if (!std::isfinite(number) || number < least) return false;
      config.parameters[name] = number;
      return true;
    };
    option.write = [name = option.name, usual = parameter.usual,
                    choices = option.names](const Config& config) {
      const auto found = config.parameters.find(name);
      const double value = found == config.parameters.end() ? usual : found->second;
      return choices.empty() ? Json(value) : Json(choices[static_cast<std::size_t>(value)]);
    };
    option.from_tokens = parameter.choices.empty() ? from_tokens<double> : from_tokens<std::string>;
    option.copy = [name = option.name](const Config& from, Config& to) {
      to.parameters[name] = from.parameters.at(name);
    };
    option.default_text = default_text(option.write(Config{}));
  }

  template <class T>
  Option& add(std::string name, T Config::*member, std::string argument,
              std::vector<Subcommand> users, std::string meaning, std::string details = "") {
    return add(std::move(name), member, std::move(argument), Range{}, std::move(users),
               std::move(meaning), std::move(details));
  }

  std::string group;
  std::vector<Option> options;
};

}  // namespace

bool Option::is_used_by(Subcommand one) const {
  return std::find(users.begin(), users.end(), one) != users.end();
}

const std::vector<Option>& options() {
  static const OptionTable table;
  return table.options;
}

const Option* find_option(std::string_view name) {
  const auto found = std::find_if(options().begin(), options().end(),
                                  [&](const Option& option) { return option.name == name; });
  return found == options().end() ? nullptr : &*found;
}

void set(const Option& option, const Json& value, const std::string& where, Config& config) {
  if (!option.read(value, config)) refuse_value(option, shown(value), where);
}

}  // namespace halocline::app
