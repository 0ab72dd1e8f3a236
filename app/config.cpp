// SPDX-License-Identifier: BSD-3-Clause
#include "config.hpp"

#include <toml++/toml.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cmath>
#include <concepts>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <span>
#include <sstream>
#include <string_view>
#include <system_error>

#include "comm/device/gpu_awareness.hpp"
#include "dtype/pack/kokkos/kokkos_threads.hpp"
#include "dtype/support/error.hpp"
#include "dtype/support/text_file.hpp"
#include "environment.hpp"
#include "methods.hpp"
#include "provenance.hpp"
#include "table.hpp"

namespace halocline::app {

namespace {

using Json = nlohmann::ordered_json;
using Tokens = std::vector<std::string>;

// One line of bearable length, whatever the user has written.
[[noreturn]] void fail(const std::string& problem, const std::string& cause,
                       const std::string& remedy) {
  constexpr std::size_t kMost = 400;
  throw ConfigError(halocline::excerpt(problem, kMost) + " (" + halocline::excerpt(cause, kMost) +
                    "): " + remedy);
}

// A value as the user may have written it, for messages: one short line, whatever bytes are in it.
std::string excerpt(const Json& value) {
  constexpr std::size_t kMost = 60;
  const auto text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  return text.size() <= kMost ? text : text.substr(0, kMost) + "...";
}

// ---- Values. For each type of a member of Config: `expected` says what a user may write, `read`
// takes a value from a file or a broadcast (false if it is not one of these), `from_tokens` makes
// such a value from the command line's words.

struct Range {
  std::int64_t min = 0;
  std::int64_t max = INT_MAX;
};

std::string expected(const Range& range) {
  return "whole number from " + std::to_string(range.min) + " to " + std::to_string(range.max);
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

template <std::integral T, std::size_t N>
bool read(const Json& value, const Range& range, std::optional<std::array<T, N>>& out) {
  std::array<T, N> numbers{};
  if (!value.is_array() || value.size() != N) return false;
  for (std::size_t i = 0; i < N; ++i)
    if (!read(value[i], range, numbers[i])) return false;
  out = numbers;
  return true;
}

// A list, or one number alone.
template <std::integral T>
bool read(const Json& value, const Range& range, std::vector<T>& out) {
  const auto items = value.is_array() ? value : Json::array({value});
  std::vector<T> numbers(items.size());
  for (std::size_t i = 0; i < items.size(); ++i)
    if (!read(items[i], range, numbers[i])) return false;
  out = std::move(numbers);
  return !out.empty();
}

bool read(const Json& value, bool& out) {
  if (value.is_boolean()) out = value.get<bool>();
  return value.is_boolean();
}

// Positive seconds.
bool read(const Json& value, double& out) {
  if (!value.is_number()) return false;
  const auto number = value.get<double>();
  if (!std::isfinite(number) || number <= 0) return false;
  out = number;
  return true;
}

bool read(const Json& value, std::string& out) {
  if (value.is_string()) out = value.get<std::string>();
  return value.is_string();
}

// A name that is a number may be written as one.
template <NamedEnum E>
bool read(const Json& value, E& out) {
  const auto found = value.is_string()            ? from_string<E>(value.get<std::string>())
                     : value.is_number_unsigned() ? from_string<E>(value.dump())
                                                  : std::nullopt;
  if (found) out = *found;
  return found.has_value();
}

bool read(const Json& value, comm::Method& out) {
  if (!value.is_string()) return false;
  try {
    out = comm::parse_method(value.get<std::string>());
    return true;
  } catch (const ConfigError&) {
    return false;
  }
}

// One or more, each once.
template <class T>
bool read(const Json& value, std::vector<T>& out) {
  std::vector<T> items;
  if (!value.is_array() || value.empty()) return false;
  for (const auto& json : value) {
    T item{};
    if (!read(json, item) || std::count(items.begin(), items.end(), item) > 0) return false;
    items.push_back(item);
  }
  out = std::move(items);
  return true;
}

template <class T>
Json write(const T& value) {
  return value;
}
template <NamedEnum E>
Json write(const E& value) {
  return to_string(value);
}
template <class T>
Json write(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}
template <std::integral T>
Json write(const std::vector<T>& numbers) {
  if (numbers.empty()) return {};
  return numbers.size() == 1 ? Json(numbers.front()) : Json(numbers);
}
Json write(const comm::Method& method) {
  return comm::name(method);
}
template <class T>
Json write(const std::vector<T>& items) {
  if (items.empty()) return {};
  auto out = Json::array();
  for (const auto& item : items) out.push_back(write(item));
  return out;
}

template <class T>
constexpr bool kIsListOfNames = false;
template <class T>
constexpr bool kIsListOfNames<std::vector<T>> = !std::integral<T>;
template <class T>
constexpr bool kIsListOfNumbers = false;
template <std::integral T>
constexpr bool kIsListOfNumbers<std::vector<T>> = true;

// The number that `word` spells, all of it; otherwise the word itself, which no numeric option
// accepts.
template <class Number>
Json number(const std::string& word) {
  Number value{};
  const auto* end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data(), end, value);
  const bool whole =
      error == std::errc{} && stop == end && std::isfinite(static_cast<double>(value));
  return whole ? Json(value) : Json(word);
}

Tokens split(const std::string& word) {
  Tokens out{""};
  for (const char c : word)
    if (c == ',')
      out.emplace_back();
    else
      out.back() += c;
  return out;
}

template <class T>
Json from_tokens(const Tokens& tokens) {
  const auto& word = tokens.front();
  if constexpr (std::same_as<T, bool>)
    return word == "true" || word == "false" ? Json(word == "true") : Json(word);
  else if constexpr (std::integral<T>)
    return number<std::int64_t>(word);
  else if constexpr (std::floating_point<T>)
    return number<double>(word);
  else if constexpr (std::same_as<T, std::string> || NamedEnum<T>)
    return word;
  else {
    auto out = Json::array();  // "128 128 128", "128,128,128", "a,b"
    for (const auto& token : tokens)
      for (const auto& part : split(token))
        out.push_back(kIsListOfNames<T> ? Json(part) : number<std::int64_t>(part));
    return out;
  }
}

// ---- The flags

struct Option {
  std::string name;      ///< long flag without its dashes, and key in a file
  std::string group;     ///< heading in the help text; empty: hidden
  std::string argument;  ///< as shown in the help text; empty: a switch
  int words = 1;         ///< how many arguments the flag takes at most
  bool in_file = true;
  std::string expected;  ///< what a value may be, to follow "give "
  std::vector<Subcommand> users;
  std::string meaning;  ///< of a few words
  std::string details;  ///< whole sentences; may be empty
  std::string default_text;
  std::function<bool(const Json&, Config&)> read;
  std::function<Json(const Config&)> write;
  std::function<Json(const Tokens&)> from_tokens;

  bool is_used_by(Subcommand one) const {
    return std::find(users.begin(), users.end(), one) != users.end();
  }
};

class Options {
 public:
  Options() {
    using enum Subcommand;
    using Users = std::vector<Subcommand>;
    constexpr Range size{1, INT_MAX};  // MPI's subarray constructor takes int
    const Users both{run, compare}, halo{run, compare, predict};

    group_ = "Grid and fields";
    add("local", &Config::local, "N N N", size, halo, "points of each rank along x, y, z")
        .default_text = "64 64 64";
    add("global", &Config::global, "N N N", size, halo, "points of all ranks, instead of --local",
        "They need not divide evenly.");
    add("decomposition", &Config::decomposition, "N N N", size, halo, "ranks along x, y, z",
        "Default: the grid with the smallest halo surface between nodes, then between ranks.");
    add("reorder", &Config::reorder, "", halo, "places of the ranks in the grid",
        "none: in their order, x first. node: each node owns a compact part.");
    add("ranks-per-node", &Config::ranks_per_node, "N,...", size,
        {run, compare, gather, predict, info}, "emulate nodes of N consecutive ranks",
        "One number for all nodes, or one for each. Default: the real nodes. predict: ranks of "
        "each predicted node, 1 by default.");
    add("radius", &Config::radius, "N", size, halo, "ghost points on each side of each axis");
    add("fields", &Config::fields, "N", Range{1, 65536}, halo, "values per point");
    add("layout", &Config::layout, "", halo, "how the fields lie in memory",
        "soa: one array per field. aos: the fields of a point side by side.");
    add("element", &Config::element, "", halo, "type of a value");
    add("periodic", &Config::periodic, "true|false", halo, "whether opposite sides are neighbours");
    add("memory", &Config::memory, "", halo, "where the fields are and the stencil runs");
    add("gpu-aware-mpi", &Config::gpu_aware_mpi, "", {run, compare, calibrate, info},
        "whether MPI takes device memory",
        "ask: $HALOCLINE_GPU_AWARE_MPI (yes or no) if it is set; else the MPI is asked, and a "
        "message is tried.");

    group_ = "Stencil and time steps";
    add("stencil", &Config::stencil, "", {run}, "stencil of the time steps",
        "heat13: sixth order along 13 lines, 26 neighbours. heat9: 18 neighbours. heat3: 6 "
        "neighbours. point26: 27 points, radius 1.");
    add("steps", &Config::steps, "N", Range{0, INT_MAX}, {run}, "time steps");
    add("stages", &Config::stages, "N", size, {run}, "substeps of a step, each with an exchange");
    add("overlap", &Config::overlap, "", {run}, "compute the interior while messages travel",
        "Data move meanwhile only with p2p, partitioned, vendor-p2p, and shared between nodes or "
        "on devices; other methods block. Every second substep does not overlap, for comparison.");
    add("progress", &Config::progress, "N", Range{0, INT_MAX}, {run},
        "calls of MPI during the interior",
        "With --overlap, for MPIs that move nothing by themselves. 0: none.");

    group_ = "Exchange";
    auto& methods = add(
        "methods", &Config::methods, "NAME,...", halo, "exchange methods; run takes the first",
        "From " + method_names() +
            ". alltoallv, neighbor, p2p and partitioned may end in :device, :one-shot, :staged or "
            ":host, the way of the packed bytes of fields in device memory. Default there: all "
            "that are possible.");
    methods.default_text.clear();
    for (const auto& method : methods_on_host())
      methods.default_text.append(methods.default_text.empty() ? "" : ",").append(name(method));
    add("shape", &Config::shape, "SHAPE,...", halo, "shape of the halo: direct, axes",
        "direct: all regions at once. axes: at most 6 slabs, x before y before z, so that edges "
        "and corners travel with them, in rounds that wait for each other. run and predict take "
        "the first; compare measures each method in each shape.");
    add("neighbors", &Config::neighbors, "", halo, "whose points travel",
        "6: across faces. 18: across edges, too. 26: across corners, too. auto: what the stencil "
        "reads (run, which refuses fewer), 26 (compare, predict).");
    add("messages", &Config::messages, "", both, "what a message of p2p and vendor-p2p holds",
        "partner: all that goes to a partner (in a round of axes). region: one region of all "
        "fields. field: all regions of one field (layout soa). Other methods send one message to "
        "each partner.");
    add("chunk-bytes", &Config::chunk_bytes, "N", Range{0, INT64_MAX}, both,
        "p2p: bytes after which a message is cut",
        "Also of shared between nodes. A message ends with the region of a field that brings it "
        "to N bytes; the rest is packed while that one travels. 0: never cut.");
    add("describe", &Config::describe, "", both, "how regions are written as MPI datatypes");
    add("packer", &Config::packer, "", both, "which packer packs on the host");

    group_ = "Hierarchical gather";
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

    group_ = "Prediction";
    add("nodes", &Config::nodes, "N,...", size, {predict}, "numbers of nodes",
        "Each has --ranks-per-node ranks.");
    add("traces", &Config::traces, "FOLDER", {predict}, "write the messages for SimGrid",
        "--iterations exchanges on that number of nodes, in a new folder, for "
        "jobs/simgrid/replay.sh.");

    group_ = "Measurement";
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
        "Of another CPU, GPU, driver or MPI.");
    add("threads", &Config::threads, "N", Range{0, dtype::kMostKokkosThreads}, {run, compare, info},
        "threads per rank; 0: its share of the node",
        "0: $KOKKOS_NUM_THREADS or $OMP_NUM_THREADS if one is set, else the rank's share of its "
        "node. At most " +
            std::to_string(dtype::kMostKokkosThreads) + ".");
    add("seed", &Config::seed, "N", Range{0, INT64_MAX}, {run, compare, gather},
        "seed of field values and random orders");

    group_ = "Output";
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

    group_ = "General";
    add("config", &Config::config, "FILE", all_subcommands(), "TOML file with flags as keys",
        "Keys of one subcommand may stand in a section of its name, such as [compare]. Flags on "
        "the command line override the file.")
        .in_file = false;

    group_ = "";
    add("inject", &Config::inject, "", {run, compare, gather},
        "break one message, to see verification fail");
    add("inject-from", &Config::inject_from, "N", Range{1, INT_MAX}, {run, compare, gather},
        "break the N-th verified exchange of each method and those after it");
  }

  static std::vector<Subcommand> all_subcommands() { return all_of<Subcommand>(); }

  const std::vector<Option>& all() const { return options_; }

  const Option* find(std::string_view name) const {
    const auto found = std::find_if(options_.begin(), options_.end(),
                                    [&](const Option& o) { return o.name == name; });
    return found == options_.end() ? nullptr : &*found;
  }

  static std::string method_names() {
    std::string out;
    for (const auto exchange : comm::all_exchanges())
      out.append(out.empty() ? "" : ", ").append(comm::name(exchange));
    return out;
  }

 private:
  // Numbers: the range is part of what is expected.
  template <class T>
  Option& add(std::string name, T Config::*member, std::string argument, Range range,
              std::vector<Subcommand> users, std::string meaning, std::string details = "") {
    auto& option = common(std::move(name), member, std::move(argument), std::move(users),
                          std::move(meaning), std::move(details));
    option.read = [member, range](const Json& value, Config& config) {
      return app::read(value, range, config.*member);
    };
    if constexpr (std::integral<T>) {
      option.expected = "a " + app::expected(range);
    } else if constexpr (kIsListOfNumbers<T>) {
      option.expected = "one number or a list, each a " + app::expected(range);
    } else {
      option.words = 3;
      option.expected = "three numbers, each a " + app::expected(range);
    }
    return option;
  }

  // Everything else: what is expected follows from the type.
  template <class T>
  Option& add(std::string name, T Config::*member, std::string argument,
              std::vector<Subcommand> users, std::string meaning, std::string details = "") {
    if constexpr (NamedEnum<T>) argument = all_names<T>("|");
    auto& option = common(std::move(name), member, std::move(argument), std::move(users),
                          std::move(meaning), std::move(details));
    option.read = [member](const Json& value, Config& config) {
      return app::read(value, config.*member);
    };
    if constexpr (NamedEnum<T>) option.expected = "one of " + all_names<T>(", ");
    if constexpr (std::same_as<T, bool>) option.expected = "true or false";
    if constexpr (std::same_as<T, double>) option.expected = "a number of seconds > 0";
    if constexpr (std::same_as<T, std::string>) option.expected = "a path in UTF-8";
    if constexpr (std::same_as<T, std::vector<comm::Method>>)
      option.expected = "a list of one or more of " + method_names() +
                        ", each at most once; alltoallv, neighbor, p2p and partitioned may have "
                        ":device, :one-shot, :staged, :host or :auto behind it";
    return option;
  }

  // One or more names, each once.
  template <NamedEnum E>
  Option& add(std::string name, std::vector<E> Config::*member, std::string argument,
              std::vector<Subcommand> users, std::string meaning, std::string details = "") {
    auto& option = common(std::move(name), member, std::move(argument), std::move(users),
                          std::move(meaning), std::move(details));
    option.read = [member](const Json& value, Config& config) {
      return app::read(value, config.*member);
    };
    option.expected = "a list of one or more of " + all_names<E>(", ") + ", each at most once";
    return option;
  }

  template <class T>
  Option& common(std::string name, T Config::*member, std::string argument,
                 std::vector<Subcommand> users, std::string meaning, std::string details) {
    auto& option = options_.emplace_back();
    option.name = std::move(name);
    option.group = group_;
    option.argument = std::move(argument);
    option.users = std::move(users);
    option.meaning = std::move(meaning);
    option.details = std::move(details);
    option.write = [member](const Config& config) { return app::write(config.*member); };
    option.from_tokens = from_tokens<T>;
    option.default_text = default_text(option.write(Config{}));
    return option;
  }

  static std::string default_text(const Json& value) {
    if (value.is_null() || value == "") return "none";
    if (!value.is_array()) return value.is_string() ? value.get<std::string>() : value.dump();
    std::string out;
    for (const auto& item : value) out += (out.empty() ? "" : ",") + default_text(item);
    return out;
  }

  std::string group_;
  std::vector<Option> options_;
};

const Options& options() {
  static const Options instance;
  return instance;
}

constexpr const char* kCommandLine = "command line";

bool is_utf8(const Json& value) {
  try {
    return !value.dump().empty();
  } catch (const Json::type_error&) {
    return false;
  }
}

// Sets one member; `where` ends the message that a wrong value earns. Strings must be UTF-8, as
// JSON and TOML are.
void set(const Option& option, const Json& value, const std::string& where, Config& config) {
  // A variable of the shell that is not set would lose what is to be written.
  if (value == "" && where == kCommandLine)
    fail(option.name + " is empty", where, "give " + option.expected + ", or leave the flag out");
  if (!is_utf8(value) || !option.read(value, config))
    fail(option.name + " cannot be used", excerpt(value) + ", " + where, "give " + option.expected);
}

// ---- Names that were meant

// Counts the letters that differ: insertions, deletions and replacements.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    auto diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j)
      diagonal = std::exchange(row[j], std::min({diagonal + (a[i - 1] == b[j - 1] ? 0 : 1),
                                                 row[j] + 1, row[j - 1] + 1}));
  }
  return row.back();
}

// The name that is nearest to `word`; empty if none is near.
std::string nearest(std::string_view word, const std::vector<std::string>& names) {
  constexpr std::size_t kLongest = 40;
  if (word.empty() || word.size() > kLongest || names.empty()) return "";
  // Abbreviations come first, then swapped letters, then what differs least.
  const auto begins = [&](const auto& name) { return name.starts_with(word); };
  if (std::count_if(names.begin(), names.end(), begins) == 1)
    return *std::find_if(names.begin(), names.end(), begins);
  const auto is_swapped = [&](const auto& name) {
    return name.size() == word.size() &&
           std::is_permutation(name.begin(), name.end(), word.begin());
  };
  if (const auto swapped = std::find_if(names.begin(), names.end(), is_swapped);
      swapped != names.end())
    return *swapped;
  const auto found = std::min_element(
      names.begin(), names.end(),
      [&](const auto& a, const auto& b) { return distance(word, a) < distance(word, b); });
  return word.starts_with(*found) || distance(word, *found) <= 1 + word.size() / 4 ? *found : "";
}

std::vector<std::string> names_used_by(Subcommand subcommand) {
  std::vector<std::string> out;
  for (const auto& option : options().all())
    if (option.is_used_by(subcommand) && !option.group.empty()) out.push_back(option.name);
  return out;
}

std::string text_of(const std::vector<Subcommand>& subcommands) {
  std::string out;
  for (const auto one : subcommands) out.append(out.empty() ? "" : ", ").append(to_string(one));
  return out;
}

// Says what to do about a flag or key that a subcommand has not. `dashes` stand before flags.
std::string remedy_for(const std::string& name, Subcommand subcommand, const std::string& dashes) {
  const std::string help = "see halocline " + std::string(to_string(subcommand)) + " --help";
  if (const auto near = nearest(name, names_used_by(subcommand)); !near.empty() && near != name)
    return "did you mean " + dashes + near + "? (" + help + ")";
  return (options().find(name) != nullptr ? "leave it out, or " : "") + help;
}

// ---- The config file

using Values = std::map<std::string, std::pair<Json, std::string>>;  // key -> value and place

std::string line_of(const std::string& path, const toml::source_region& source) {
  return "line " + std::to_string(source.begin.line) + " of " + path;
}

std::string line_in(const std::string& text, std::size_t number) {
  std::istringstream lines(text);
  std::string out;
  for (std::size_t i = 0; i < number; ++i) std::getline(lines, out);
  return out;
}

// Returns the value as JSON, null for what no key may hold.
Json as_json(const toml::node& node, int depth = 0) {
  constexpr int kMostNested = 8;  // beyond every value that some key takes
  if (const auto* value = node.as_boolean()) return value->get();
  if (const auto* value = node.as_integer())
    return value->get() < 0 ? Json(value->get()) : Json(static_cast<std::uint64_t>(value->get()));
  if (const auto* value = node.as_floating_point()) return value->get();
  if (const auto* value = node.as_string()) return value->get();
  const auto* items = node.as_array();
  if (items == nullptr || depth == kMostNested) return {};
  auto out = Json::array();
  for (const auto& item : *items) {
    out.push_back(as_json(item, depth + 1));
    if (out.back().is_null()) return {};
  }
  return out;
}

std::string sections_of(const std::vector<Subcommand>& subcommands) {
  std::string out;
  for (const auto one : subcommands)
    out += (out.empty() ? "[" : ", [") + std::string(to_string(one)) + "]";
  return out;
}

// Reads the keys of `table`, each of which `subcommand` has to use.
void read_table(const toml::table& table, const std::string& path, Subcommand subcommand,
                Values& values) {
  for (const auto& [toml_key, node] : table) {
    const std::string key(toml_key.str());
    const auto where = line_of(path, node.source());
    if (node.is_table()) continue;
    const auto* option = options().find(key);
    if (option == nullptr || !option->in_file)
      fail("unknown key " + excerpt(key) + " in config file", where,
           remedy_for(key, subcommand, ""));
    if (!option->is_used_by(subcommand))
      fail("key " + key + " in config file is not used by " + std::string(to_string(subcommand)),
           where,
           "put it into a section, which " + std::string(to_string(subcommand)) +
               " does not read: " + sections_of(option->users));
    auto value = as_json(node);
    if (value.is_null())
      fail(key + " has no value that can be used", where, "give " + option->expected);
    values.insert_or_assign(key, std::pair{std::move(value), where});
  }
}

Values read_file(const std::string& path, Subcommand subcommand) {
  constexpr FileKind kind{"config file", "give --config a text file", 16 << 20, true};
  const auto text = read_whole_file(path, kind);
  // A key with tens of thousands of dots would take as many levels of the parser's stack.
  constexpr std::size_t kLongestLine = 8192;
  std::size_t number = 1;
  for (std::size_t begin = 0; begin < text.size(); ++number) {
    const auto end = std::min(text.find('\n', begin), text.size());
    if (end - begin > kLongestLine)
      fail("config file has a line of more than " + std::to_string(kLongestLine) + " bytes",
           "line " + std::to_string(number) + " of " + path + ": " +
               excerpt(text.substr(begin, kLongestLine)),
           "divide it");
    begin = end + 1;
  }
  toml::table file;
  try {
    file = toml::parse(text);
  } catch (const toml::parse_error& error) {
    fail("config file is no TOML",
         std::string(error.description()) + ", " + line_of(path, error.source()) + ": " +
             excerpt(line_in(text, error.source().begin.line)),
         "write lines such as radius = 3");
  }
  Values out;
  read_table(file, path, subcommand, out);
  for (const auto& [toml_key, node] : file) {
    const auto* section = node.as_table();
    if (section == nullptr) continue;
    const std::string key(toml_key.str());
    const auto named = from_string<Subcommand>(key);
    if (const auto* option = options().find(key); !named && option != nullptr)
      fail(key + " takes no keys of its own", line_of(path, node.source()),
           "give " + option->expected);
    if (!named)
      fail("config file has an unknown section " + excerpt(key), line_of(path, node.source()),
           "use the name of a subcommand: " + all_names<Subcommand>(", "));
    Values own;
    read_table(*section, path, *named, own);
    for (const auto& [inside, value] : *section)
      if (value.is_table())
        fail("section " + key + " of config file holds another section",
             line_of(path, value.source()), "use one level of sections");
    if (*named != subcommand) continue;
    // Its local replaces the file's global, and the other way round.
    if (own.contains("local")) out.erase("global");
    if (own.contains("global")) out.erase("local");
    for (auto& [name, value] : own) out.insert_or_assign(name, std::move(value));
  }
  return out;
}

// ---- Help

// `text` behind `head`, from column `indent` on.
std::string entry(const std::string& head, const std::string& text, std::size_t indent) {
  const auto width = columns_of_terminal();
  std::string out = head;
  auto column = head.size();
  if (column + 2 > indent) {
    out += '\n';
    column = 0;
  }
  out.append(indent - column, ' ');
  column = indent;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (column > indent && column + 1 + word.size() > width) {
      out += '\n' + std::string(indent, ' ');
      column = indent;
    }
    const bool is_first = column == indent;
    out += (is_first ? "" : " ") + word;
    column += word.size() + (is_first ? 0 : 1);
  }
  return out + '\n';
}

std::string head_of(const Option& option) {
  return "  --" + option.name + (option.argument.empty() ? "" : " " + option.argument);
}

struct About {
  Subcommand subcommand;
  const char* text;
  std::array<const char*, 2> examples;
};
constexpr std::array kAbout{
    About{Subcommand::run,
          "Runs the mini-app: exchange and stencil for a number of steps, verified, timed.",
          {"mpirun -n 8 halocline run --global 200 200 200 --steps 50",
           "mpirun -n 2 halocline run --methods p2p --overlap"}},
    About{Subcommand::compare,
          "Times the same exchange through several methods, in turns, beside the MPI's own.",
          {"mpirun -n 2 halocline compare --config configs/quickstart.toml",
           "mpirun -n 2 halocline compare --methods p2p,shared,vendor-p2p --neighbors 18"}},
    About{Subcommand::calibrate,
          "Measures messages, copies, launches and packing here, and writes a system model.",
          {"mpirun -n 2 halocline calibrate --dry-run",
           "mpirun -n 2 halocline calibrate --model model.json"}},
    About{Subcommand::gather,
          "Times hierarchical gathers that reorder blocks in several ways, beside MPI_Gather.",
          {"mpirun -n 4 halocline gather --ranks-per-node 2 --sizes 1024,1048576",
           "mpirun -n 4 halocline gather --config configs/gather-fig3.toml"}},
    About{Subcommand::predict,
          "Predicts the halo exchange on other numbers of nodes, by a system model.",
          {"halocline predict --model configs/models/summit.json --ranks-per-node 6",
           "halocline predict --model model.json --local 256 256 256 --nodes 1,8,64"}},
    About{Subcommand::inspect,
          "Shows what becomes of an MPI datatype: its loops, its plan, its cheapest form.",
          {"halocline inspect 'vector(5,4,8,double)'",
           "halocline inspect 'subarray(C,{16,16,16},{1,8,8},{5,2,3},double)'"}},
    About{Subcommand::info,
          "Shows build, MPI, Kokkos, threads and devices of this job, and the model.",
          {"mpirun -n 2 halocline info", "halocline info --json"}}};

const About& about(Subcommand subcommand) {
  return *std::find_if(kAbout.begin(), kAbout.end(),
                       [&](const auto& one) { return one.subcommand == subcommand; });
}

constexpr const char* kExitCodes =
    "\nExit codes: 0 ok, 1 verification failed, 2 bad input, 3 environment.\n";

constexpr const char* kNotation =
    R"(
EXPRESSION: a predefined type such as double, int, byte (or MPI_DOUBLE), or a
constructor. T is an expression, {...} or [...] a list.
  contiguous(count, T)                         dup(T)
  vector(count, blocklength, stride, T)        hvector(...)
  indexed({blocklengths}, {displs}, T)         hindexed(...)
  indexed_block(blocklength, {displs}, T)      hindexed_block(...)
  struct({blocklengths}, {displs}, {T,...})    resized(T, lb, extent)
  subarray({sizes}, {subsizes}, {starts}, C|F, T)      or the order first
  darray(size, rank, {gsizes}, {block|cyclic|none,...}, {dargs|default},
         {psizes}, C|F, T)
  f90_real(precision, range)  f90_complex(...)  f90_integer(range)
Proposed by papers: bounded_vector(start, blocklength, stride, bound, T),
  circular_vector(start, blocklength, stride, end, bound, T),
  bucket(size, {counts}, T), triangular(count, blocklength, change, stride, T),
  stretched_vector(types, index, {blocklengths}, T)
Numbers are in extents of T; in bytes where a name begins with h, in struct and
resized.
)";

std::string help_of(Subcommand subcommand) {
  constexpr std::size_t kIndent = 27;
  const std::string name(to_string(subcommand));
  const bool is_inspect = subcommand == Subcommand::inspect;
  const auto& told = about(subcommand);
  std::string out = wrapped(told.text, columns_of_terminal()) + "Usage: halocline " + name +
                    " [FLAG...]" + (is_inspect ? " EXPRESSION" : "") + "\n";
  std::string group;
  for (const auto& option : options().all()) {
    if (!option.is_used_by(subcommand) || option.group.empty()) continue;
    if (std::exchange(group, option.group) != option.group) out += "\n" + group + ":\n";
    const bool is_short = option.default_text != "none" && option.default_text.size() < kIndent &&
                          !option.argument.empty();
    out += entry(head_of(option),
                 option.meaning + (is_short ? " (" + option.default_text + ")" : ""), kIndent);
  }
  out += entry("  --print-config", "print the configuration as TOML", kIndent);
  out += entry("  --help, --version", "`halocline help all` explains each flag", kIndent);
  if (is_inspect) out += kNotation;
  out += "\nExamples:\n";
  for (const auto* const example : told.examples) out += std::string("  ") + example + "\n";
  return out;
}

std::string help_of_program() {
  constexpr std::size_t kIndent = 14;
  std::string out =
      entry("",
            "Halocline measures 3-D, 26-neighbour halo exchanges of strided data written as MPI "
            "datatypes, and compares its packing and exchange with the installed MPI's. Every "
            "result is verified before and after it is timed.",
            0) +
      "Usage: halocline SUBCOMMAND [FLAG...]\n\nSubcommands:\n";
  for (const auto& one : kAbout)
    out += entry("  " + std::string(to_string(one.subcommand)), one.text, kIndent);
  out += "\n" + entry("  halocline SUBCOMMAND --help", "its flags", 32) +
         entry("  halocline help all", "all flags with all details", 32) +
         entry("  halocline --version", "version and source revision", 32) + "\nExamples:\n";
  for (const auto& one : kAbout) out += std::string("  ") + one.examples[0] + "\n";
  return out + kExitCodes;
}

std::string help_on_all() {
  constexpr std::size_t kIndent = 6;
  auto out = help_of_program();
  std::string group;
  for (const auto& option : options().all()) {
    if (option.group.empty()) continue;
    if (std::exchange(group, option.group) != option.group) out += "\n" + group + ":\n";
    const bool is_for_all = option.users.size() == kAbout.size();
    out += head_of(option) + "  [" + (is_for_all ? "all" : text_of(option.users)) + "]\n" +
           entry("",
                 option.meaning +
                     (option.argument.empty() || option.default_text.empty()
                          ? "."
                          : "; default: " + option.default_text + ".") +
                     (option.details.empty() ? "" : " " + option.details),
                 kIndent);
  }
  return out + kNotation + kExitCodes;
}

// For programs that write tables of the flags.
std::string help_as_json() {
  auto out = Json::array();
  for (const auto& option : options().all()) {
    if (option.group.empty()) continue;
    Json one;
    one["flag"] = option.name;
    one["argument"] = option.argument;
    one["group"] = option.group;
    one["default"] = option.argument.empty() ? "" : option.default_text;
    one["meaning"] = option.meaning;
    one["details"] = option.details;
    for (const auto user : option.users) one["used_by"].push_back(to_string(user));
    out.push_back(one);
  }
  return out.dump(1) + "\n";
}

// ---- The command line

// Holds what the command line says, or the text that it asks for (help, --version).
struct CommandLine {
  std::string text;
  Config config;  ///< subcommand and expression only
  std::map<std::string, Json> values;
  bool print_config = false;
};

using Words = std::span<const char* const>;

bool is_help(std::string_view word) {
  return word == "--help" || word == "-h";
}

// The text of `halocline help ...`.
std::string help_on(const Words& words) {
  if (words.empty()) return help_of_program();
  const std::string_view what = words.front();
  if (what == "all") return help_on_all();
  if (what == "json") return help_as_json();
  if (const auto subcommand = from_string<Subcommand>(what)) return help_of(*subcommand);
  fail("no help on " + excerpt(std::string(what)), "command line",
       "use help all, or help with one of " + all_names<Subcommand>(", "));
}

Subcommand subcommand_of(const Words& words) {
  const auto names = all_names<Subcommand>(", ");
  if (words.empty()) fail("no subcommand", "command line", "use one of " + names);
  const std::string word = words.front();
  if (const auto found = from_string<Subcommand>(word)) return *found;
  if (word.starts_with("-"))
    fail("no subcommand in front of " + excerpt(word), "command line",
         "begin with one of " + names + "; flags follow");
  std::vector<std::string> known;
  for (const auto one : all_of<Subcommand>()) known.emplace_back(to_string(one));
  const auto near = nearest(word, known);
  fail("unknown subcommand " + excerpt(word), "command line",
       near.empty() ? "use one of " + names : "did you mean " + near + "?");
}

// CLI11 adds up or ignores repeated flags, depending on their kind, and takes the next word,
// whatever it is, as the value of `--flag` and of `--flag=`.
void check_flags(const Words& words, Subcommand subcommand) {
  std::set<std::string> seen;
  for (std::size_t i = 0; i < words.size() && std::string_view(words[i]) != "--"; ++i) {
    const std::string word(words[i]);
    const auto flag = word.substr(0, word.find('='));
    if (!flag.starts_with("--")) continue;
    if (!seen.insert(flag).second)
      fail(flag + " is given twice", "command line", "give each flag once");
    if (word.size() == flag.size() + 1)
      fail(flag + " has no value", "command line", "give one after the =");
    if (word == "--print-config") continue;
    const auto* option = options().find(flag.substr(2));
    if (option == nullptr || !option->is_used_by(subcommand))
      fail(option == nullptr ? "unknown flag " + excerpt(flag)
                             : flag + " is not used by " + std::string(to_string(subcommand)),
           "command line", remedy_for(flag.substr(2), subcommand, "--"));
    if (option->argument.empty() || word != flag) continue;
    if (i + 1 == words.size())
      fail(flag + " has no value", "end of the command line", "give " + option->expected);
    if (std::string_view(words[i + 1]).starts_with("--"))
      fail(flag + " has no value",
           excerpt(std::string(words[i + 1])) + " follows it on the command line",
           "give " + option->expected);
  }
}

CommandLine parse_command_line(int argc, const char* const* argv) {
  const auto words = Words(argv, static_cast<std::size_t>(argc)).subspan(argc > 0 ? 1 : 0);
  CommandLine out;
  if (!words.empty() && (is_help(words.front()) || std::string_view(words.front()) == "help")) {
    out.text = help_on(is_help(words.front()) ? Words() : words.subspan(1));
    return out;
  }
  const auto asks_for_version = [](const Words& some) {
    return std::any_of(some.begin(), some.end(),
                       [](std::string_view word) { return word == "--version"; });
  };
  if (!asks_for_version(words.first(std::min<std::size_t>(words.size(), 1))))
    out.config.subcommand = subcommand_of(words);
  if (asks_for_version(words)) {
    out.text = "halocline " + version_line() + "\n";
    return out;
  }
  const auto own = words.subspan(1);
  if (std::any_of(own.begin(), own.end(), is_help)) {
    out.text = help_of(out.config.subcommand);
    return out;
  }
  check_flags(own, out.config.subcommand);

  CLI::App cli("", "halocline");
  cli.set_help_flag();
  auto* const sub = cli.add_subcommand(std::string(to_string(out.config.subcommand)));
  sub->set_help_flag();
  std::string expression;
  if (out.config.subcommand == Subcommand::inspect) sub->add_option("expression", expression);
  std::map<std::string, CLI::Option*> known;
  for (const auto& option : options().all()) {
    if (!option.is_used_by(out.config.subcommand)) continue;
    known[option.name] = option.argument.empty()
                             ? sub->add_flag("--" + option.name)
                             : sub->add_option("--" + option.name)->expected(1, option.words);
  }
  const auto* const print_config = sub->add_flag("--print-config");
  try {
    cli.parse(argc, argv);
  } catch (const CLI::ExtrasError&) {
    std::string rest;
    for (const auto& word : cli.remaining(true)) rest += (rest.empty() ? "" : " ") + word;
    fail("unknown argument on the command line", rest,
         "see halocline " + std::string(to_string(out.config.subcommand)) + " --help");
  } catch (const CLI::ParseError& error) {
    fail("command line cannot be used", error.what(), "see halocline --help");
  }
  if (!is_utf8(expression))
    fail("expression cannot be used", excerpt(expression) + ", command line",
         "give a datatype in the notation of halocline inspect --help");
  out.config.expression = expression;
  out.print_config = print_config->count() > 0;
  for (const auto& [name, given] : known) {
    if (given->count() == 0) continue;
    const auto& option = *options().find(name);
    const auto given_words = given->results();
    if (!option.argument.empty())
      out.values[name] = option.from_tokens(given_words);
    else if (given_words.front() == "true")
      out.values[name] = true;
    else
      fail("--" + name + " takes no value", "command line", "leave out the = and what follows it");
  }
  return out;
}

// ---- Together

Config merge(const CommandLine& line) {
  comm::gpu_awareness_by_environment();  // throws if it cannot be used, also where no device is
  auto config = line.config;
  const auto exclude = [&](const std::string& where) {
    if (config.local && config.global)
      fail("local and global exclude each other", "both in " + where, "give one of them");
  };
  if (const auto path = line.values.find("config"); path != line.values.end()) {
    set(*options().find("config"), path->second, kCommandLine, config);
    for (const auto& [key, value] : read_file(config.config, config.subcommand))
      set(*options().find(key), value.first, value.second, config);
    exclude(config.config);
  }
  if (line.values.contains("global")) config.local.reset();
  if (line.values.contains("local")) config.global.reset();
  for (const auto& [key, value] : line.values)
    set(*options().find(key), value, kCommandLine, config);
  exclude("the command line");
  if (!config.local && !config.global) config.local = {64, 64, 64};
  return config;
}

Json as_json(const Config& config) {
  Json out;
  out["subcommand"] = to_string(config.subcommand);
  for (const auto& option : options().all()) out[option.name] = option.write(config);
  out["expression"] = config.expression;
  return out;
}

Config from_json(const Json& json) {
  Config config;
  config.subcommand = from_string<Subcommand>(json.at("subcommand").get<std::string>()).value();
  for (const auto& option : options().all())
    if (const auto& value = json.at(option.name); !value.is_null())
      set(option, value, "broadcast", config);
  config.expression = json.at("expression").get<std::string>();
  return config;
}

// Reads back to the same configuration: on one line, JSON's values are TOML's.
// JSON, but for the one character that TOML wants escaped and JSON does not.
std::string toml_text(const Json& value) {
  auto out = value.dump();
  for (auto at = out.find('\x7f'); at != std::string::npos; at = out.find('\x7f', at))
    out.replace(at, 1, "\\u007f");
  return out;
}

std::string as_toml(const Config& config) {
  std::string out = "# halocline " + std::string(to_string(config.subcommand)) + "\n";
  const Config defaults;
  for (const auto& option : options().all()) {
    const auto value = option.write(config);
    const bool hidden = option.group.empty() && value == option.write(defaults);
    const bool is_used = option.is_used_by(config.subcommand);
    if (is_used && option.in_file && !hidden && !value.is_null())
      out += option.name + " = " + toml_text(value) + "\n";
  }
  return out;
}

}  // namespace

std::variant<std::string, Config> read_arguments(int argc, const char* const* argv) {
  const auto line = parse_command_line(argc, argv);
  if (!line.text.empty()) return line.text;
  auto config = merge(line);
  if (line.print_config) return as_toml(config);
  return config;
}

std::optional<Config> parse_config(MPI_Comm comm, int argc, const char* const* argv) {
  std::string text;  // stays empty if there is nothing left to do
  on_root(comm, [&] {
    const auto asked = read_arguments(argc, argv);
    if (const auto* answer = std::get_if<std::string>(&asked))
      print(*answer);
    else
      text = effective_config_json(std::get<Config>(asked));
  });
  text = broadcast(std::move(text), comm);
  if (text.empty()) return std::nullopt;
  return from_json(Json::parse(text));
}

std::string effective_config_json(const Config& config) {
  return as_json(config).dump();
}

}  // namespace halocline::app
