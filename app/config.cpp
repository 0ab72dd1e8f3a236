// SPDX-License-Identifier: BSD-3-Clause
#include "config.hpp"

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
#include <set>
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
  std::string meaning;   ///< ends with the subcommands that use it
  std::string default_text;
  std::function<bool(const Json&, Config&)> read;
  std::function<Json(const Config&)> write;
  std::function<Json(const Tokens&)> from_tokens;
};

class Options {
 public:
  Options() {
    constexpr Range size{1, INT_MAX};  // MPI's subarray constructor takes int
    const std::string both = " [run, compare]", halo = " [run, compare, predict]";

    group_ = "Grid and fields";
    auto& local =
        add("local", &Config::local, "N N N", size, "points of each rank along x, y, z" + halo);
    local.default_text = "64 64 64";
    add("global", &Config::global, "N N N", size,
        "points of all ranks together, instead of local; need not divide evenly" + halo);
    add("decomposition", &Config::decomposition, "N N N", size,
        "ranks along x, y, z; none: chosen so that the nodes' surfaces are small, and then the "
        "ranks'" +
            halo);
    add("reorder", &Config::reorder, "",
        "positions of the ranks in the grid: none: in their order, x first; node: so that each "
        "node owns a compact part" +
            halo);
    add("ranks-per-node", &Config::ranks_per_node, "N,...", size,
        "emulate nodes of so many consecutive ranks each: one number, or one for each node; none: "
        "the real nodes [run, compare, gather, info]; nodes that predict has [predict]");
    add("radius", &Config::radius, "N", size, "ghost points on each side of each axis" + halo);
    add("fields", &Config::fields, "N", Range{1, 65536}, "values per point" + halo);
    add("layout", &Config::layout, "",
        "soa: one array per field; aos: the fields of a point side by side" + halo);
    add("element", &Config::element, "", "type of a value" + halo);
    add("periodic", &Config::periodic, "true|false",
        "whether opposite sides of the grid are neighbours" + halo);

    add("memory", &Config::memory, "", "where the fields are and the stencil runs" + halo);
    add("gpu-aware-mpi", &Config::gpu_aware_mpi, "",
        "whether MPI takes messages in device memory; ask: $HALOCLINE_GPU_AWARE_MPI (yes, no), "
        "else "
        "what MPI says and a message shows [run, compare, calibrate, info]");

    group_ = "Stencil and time steps";
    add("stencil", &Config::stencil, "",
        "heat13: sixth order along 13 lines, 26 neighbours; heat9: 18 neighbours; heat3: 6 "
        "neighbours; "
        "point26: 27 points, radius 1 [run]");
    add("steps", &Config::steps, "N", Range{0, INT_MAX}, "time steps [run]");
    add("stages", &Config::stages, "N", size, "substeps of a step, each with its exchange [run]");
    add("overlap", &Config::overlap, "",
        "compute what needs no ghosts while messages travel; every other substep stays as it is "
        "without, to compare with. Of p2p, partitioned, vendor-p2p, shared (with ranks of other "
        "nodes, and on "
        "devices) something travels meanwhile; of the others nothing does: collective calls of MPI "
        "block before the interior, and shared copies on a node after it [run]");
    add("progress", &Config::progress, "N", Range{0, INT_MAX},
        "with overlap, how often MPI is called meanwhile, for those that move nothing by "
        "themselves; 0: never [run]");

    group_ = "Exchange and measurement";
    auto& methods = add(
        "methods", &Config::methods, "NAME,...",
        "exchanges, from " + method_names() +
            "; alltoallv, neighbor, p2p, partitioned with :device, :one-shot, :staged or :host, "
            "how "
            "packed bytes travel, for fields in device memory, where the default is all possible; "
            "run: the first" +
            halo);
    methods.default_text.clear();
    for (const auto& method : methods_on_host())
      methods.default_text.append(methods.default_text.empty() ? "" : ",").append(name(method));
    add("shape", &Config::shape, "SHAPE,...",
        "direct: all regions of the halo at once; axes: at most 6 slabs, x before y before z, so "
        "that edges and corners travel along in fewer regions, but in rounds that wait for each "
        "other; run and predict use the first, compare each method in each of them" +
            halo);
    add("neighbors", &Config::neighbors, "",
        "whose points travel: 6: across faces; 18: across edges, too; 26: across corners, too; "
        "auto: what the stencil reads (run, which refuses less), 26 (compare, predict)" +
            halo);
    add("messages", &Config::messages, "",
        "what a message of p2p and vendor-p2p holds: all that goes to a partner (in a round of "
        "axes), one region of all fields, or all regions of one field (layout soa); other "
        "methods have one for each partner" +
            both);
    add("chunk-bytes", &Config::chunk_bytes, "N", Range{0, INT64_MAX},
        "p2p, and shared between nodes: a message ends with the region of a field that brings it "
        "to so many bytes, and the rest follows in others, packed while that one travels; 0: "
        "never" +
            both);
    add("describe", &Config::describe, "",
        "how the app writes its regions as MPI datatypes" + both);
    add("packer", &Config::packer, "", "which of our packers packs where the host does" + both);
    add("iterations", &Config::iterations, "N", Range{1, INT_MAX},
        "timed exchanges of each method, timed gathers of each variant and size, exchanges in "
        "traces "
        "[compare, gather, predict]");
    add("warmup", &Config::warmup, "N", Range{0, INT_MAX},
        "as many of each before the timed ones [compare, gather]");
    add("max-seconds", &Config::max_seconds, "SECONDS",
        "stop measuring after this time [compare, calibrate, gather]");
    add("model", &Config::model, "FILE",
        "system model: calibrate writes it, what methods leave open is chosen by it; "
        "none: $HALOCLINE_MODEL or $XDG_CONFIG_HOME/halocline/model.json or "
        "~/.config/halocline/model.json [run, compare, calibrate, predict, info]");
    add("force-model", &Config::force_model, "",
        "use a system model of another CPU, GPU, driver or MPI all the same" + both);
    add("threads", &Config::threads, "N", Range{0, dtype::kMostKokkosThreads},
        "threads per rank; 0: $KOKKOS_NUM_THREADS or $OMP_NUM_THREADS, else this rank's share of "
        "its "
        "node, at most " +
            std::to_string(dtype::kMostKokkosThreads) + " [run, compare, info]");
    add("seed", &Config::seed, "N", Range{0, INT64_MAX},
        "of the values that fill the fields, of random orders [run, compare, gather]");

    group_ = "Hierarchical gather";
    add("variants", &Config::variants, "NAME,...",
        "mpi-gather: MPI_Gather; hier-...: through one rank of each node, then reordered by "
        "MPI_Unpack, MPI_Sendrecv or our pack plan; forced: where nothing need be; zero-copy: "
        "by the types of the messages [gather]");
    add("order", &Config::order, "ORDER,...",
        "ranks of the communicator: ordered: as they are; reversed; round-robin over the nodes; "
        "random, by --seed [gather]");
    add("sizes", &Config::sizes, "N,...", Range{0, INT64_MAX}, "bytes of each rank [gather]");
    add("root", &Config::root, "N", Range{0, INT_MAX}, "rank that gathers, in each order [gather]");

    group_ = "Prediction";
    add("nodes", &Config::nodes, "N,...", size,
        "numbers of nodes, each with --ranks-per-node ranks (none: 1) [predict]");
    add("traces", &Config::traces, "FOLDER",
        "write the messages of --iterations exchanges on that many nodes to a new folder, as "
        "traces "
        "jobs/simgrid/replay.sh [predict]");

    group_ = "Output";
    add("output", &Config::output, "PATH",
        "append results to this file, one line of JSON each [run, compare, gather, predict]");
    add("csv", &Config::csv, "PATH",
        "append results to this file as CSV [run, compare, gather, predict]");
    add("quiet", &Config::quiet, "",
        "no progress line, no tables [run, compare, calibrate, gather, predict]");
    add("json", &Config::json, "",
        "print one JSON object and nothing else [calibrate, inspect, info]");
    add("displacements", &Config::displacements, "FILE",
        "instead of an expression: displacements of bytes, one integer per line; 64-bit integers "
        "if the name ends in .i64 [inspect]");
    add("typemap", &Config::typemap, "FILE",
        "instead of an expression: predefined type and displacement in bytes, a line each "
        "[inspect]");
    add("dry-run", &Config::dry_run, "",
        "print decomposition, messages, bytes and memory per rank, or what would be measured, and "
        "exit [run, compare, calibrate, gather]");

    group_ = "General";
    auto& config =
        add("config", &Config::config, "FILE",
            "flat TOML file (long flags as keys; values are numbers, true, false, \"strings\", "
            "[lists]); flags on the command line override it [all]");
    config.in_file = false;

    group_ = "";
    add("inject", &Config::inject, "",
        "break one message, to see verification fail [run, compare, gather]");
    add("inject-from", &Config::inject_from, "N", Range{1, INT_MAX},
        "break only the N-th verified exchange of each method and those after it "
        "[run, compare, gather]");
  }

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
              std::string meaning) {
    auto& option = common(std::move(name), member, std::move(argument), std::move(meaning));
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
  Option& add(std::string name, T Config::*member, std::string argument, std::string meaning) {
    if constexpr (NamedEnum<T>) argument = all_names<T>("|");
    auto& option = common(std::move(name), member, std::move(argument), std::move(meaning));
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
              std::string meaning) {
    auto& option = common(std::move(name), member, std::move(argument), std::move(meaning));
    option.read = [member](const Json& value, Config& config) {
      return app::read(value, config.*member);
    };
    option.expected = "a list of one or more of " + all_names<E>(", ") + ", each at most once";
    return option;
  }

  template <class T>
  Option& common(std::string name, T Config::*member, std::string argument, std::string meaning) {
    auto& option = options_.emplace_back();
    option.name = std::move(name);
    option.group = group_;
    option.argument = std::move(argument);
    option.meaning = std::move(meaning);
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
  if (!is_utf8(value) || !option.read(value, config))
    fail(option.name + " cannot be used", excerpt(value) + ", " + where, "give " + option.expected);
}

// ---- The config file. CLI11's own reader takes `radius =` for 0, `quiet = 3` for true and cuts "a
// # b" at the #; what a flat file may hold on the right of a `=` is what JSON and TOML have in
// common, so a JSON parser reads it strictly.

using Values = std::map<std::string, std::pair<Json, int>>;  // key -> value and line

std::string trimmed(std::string_view text) {
  constexpr std::string_view space = " \t\r";
  const auto begin = text.find_first_not_of(space);
  if (begin == std::string_view::npos) return "";
  return std::string(text.substr(begin, text.find_last_not_of(space) - begin + 1));
}

// The line up to a # that is not inside of a string.
std::string without_comment(const std::string& line) {
  bool in_string = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (in_string && line[i] == '\\')
      ++i;
    else if (line[i] == '"')
      in_string = !in_string;
    else if (line[i] == '#' && !in_string)
      return line.substr(0, i);
  }
  return line;
}

std::string line_of(const std::string& path, int line) {
  return "line " + std::to_string(line) + " of " + path;
}

Values read_file(const std::string& path) {
  constexpr FileKind kind{"config file", "give --config a text file", 16 << 20, true};
  constexpr int kMostNested = 8;  // beyond every value that some key takes
  std::istringstream file(read_whole_file(path, kind));

  Values values;
  std::string line;
  for (int at = 1; std::getline(file, line); ++at) {
    const auto text = trimmed(without_comment(line));
    if (text.empty()) continue;
    const auto where = line_of(path, at) + ": " + excerpt(text);
    if (text.front() == '[')
      fail("config file has a section", where, "use no sections, only lines such as radius = 3");
    const auto equals = text.find('=');
    const auto key = trimmed(std::string_view(text).substr(0, equals));
    if (equals == std::string::npos || key.empty())
      fail("config file has a line that is no setting", where,
           "write KEY = VALUE, such as radius = 3");
    const auto* option = options().find(key);
    if (option == nullptr || !option->in_file)
      fail("unknown key " + excerpt(key) + " in config file", line_of(path, at),
           "use the long flags that halocline --help lists, without their dashes");
    const auto written = trimmed(std::string_view(text).substr(equals + 1));
    if (nests_deeper_than(written, kMostNested))
      fail(key + " is nested too deep", where, "give " + option->expected);
    const auto value = Json::parse(written, nullptr, false);
    if (value.is_discarded() || value.is_null() || value.is_object())
      fail(key + " has no value that can be read", where,
           R"(write a number, true, false, a "string" or a [list, of, these], all on one line)");
    if (!values.emplace(key, std::pair{value, at}).second)
      fail(key + " stands twice in config file", line_of(path, at), "give each key once");
  }
  return values;
}

// ---- The command line

// Options with type, default and meaning on lines of their own; the rest is CLI11's.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option(const CLI::Option* option, bool /*is_positional*/) const override {
    std::string out = "  " + option->get_name(false, true);
    const auto* known = options().find(option->get_name().substr(2));
    if (known != nullptr)
      out += (known->argument.empty() ? "" : " " + known->argument) +
             "  (default: " + known->default_text + ")";
    return out + "\n" + wrapped(option->get_description());
  }

 private:
  static std::string wrapped(const std::string& text) {
    constexpr std::size_t kIndent = 8;
    constexpr std::size_t kWidth = 100;
    std::string out;
    std::size_t column = kWidth;
    std::istringstream words(text);
    for (std::string word; words >> word; column += word.size() + 1) {
      if (column + 1 + word.size() > kWidth) {
        out += (out.empty() ? "" : "\n") + std::string(kIndent, ' ') + word;
        column = kIndent;
      } else {
        out += " " + word;
      }
    }
    return out + "\n";
  }
};

// What the command line says, or the text that it asks for (--help, --version).
struct CommandLine {
  std::string text;
  Config config;  ///< subcommand and expression only
  std::map<std::string, Json> values;
  bool print_config = false;
};

constexpr const char* kSeeHelp = "see halocline --help";

// CLI11 adds up or ignores repeated flags, depending on their kind, and takes the next word,
// whatever it is, as the value of `--flag` and of `--flag=`.
void check_flags(int argc, const char* const* argv) {
  std::set<std::string> seen;
  for (int i = 1; i < argc && std::string_view(argv[i]) != "--"; ++i) {
    const std::string word(argv[i]);
    const auto flag = word.substr(0, word.find('='));
    if (!flag.starts_with("--")) continue;
    if (!seen.insert(flag).second)
      fail(flag + " is given twice", "command line", "give each flag once");
    if (word.size() == flag.size() + 1)
      fail(flag + " has no value", "command line", "give one after the =");
    const auto* option = options().find(flag.substr(2));
    if (option == nullptr || option->argument.empty() || word != flag) continue;
    if (i + 1 == argc)
      fail(flag + " has no value", "end of the command line", "give " + option->expected);
    if (std::string_view(argv[i + 1]).starts_with("--"))
      fail(flag + " has no value",
           excerpt(std::string(argv[i + 1])) + " follows it on the command line",
           "give " + option->expected);
  }
}

CommandLine parse_command_line(int argc, const char* const* argv) {
  check_flags(argc, argv);

  CLI::App cli(
      "Halocline measures 3-D, 26-neighbour halo exchanges of strided data written as MPI "
      "datatypes, and compares\n"
      "our packing and exchange with what the installed MPI does. Every result is verified before "
      "it is timed,\nand once more after that.",
      "halocline");
  cli.formatter(std::make_shared<HelpFormatter>());
  cli.fallthrough();
  cli.require_subcommand(0, 1);  // a missing one is reported below, in our words
  cli.footer(
      "\nEach option says which subcommands use it; the others ignore it. A config file holds the "
      "same long flags:\n"
      "  local = [128, 128, 128]\n"
      "  methods = [\"alltoallv\", \"vendor-pack\"]\n"
      "\nEXPRESSION for inspect: a predefined type such as double, int, byte, double_int (or "
      "MPI_DOUBLE), or a constructor of\n"
      "MPI's with its arguments in MPI's order, T being another expression and {...} a list:\n"
      "  contiguous(count, T)                       dup(T)\n"
      "  vector(count, blocklength, stride, T)      hvector(count, blocklength, stride, T)\n"
      "  indexed({blocklengths}, {displs}, T)       hindexed({blocklengths}, {displs}, T)\n"
      "  indexed_block(blocklength, {displs}, T)    hindexed_block(blocklength, {displs}, T)\n"
      "  struct({blocklengths}, {displs}, {T,...})  resized(T, lb, extent)\n"
      "  subarray(C|F, {sizes}, {subsizes}, {starts}, T)\n"
      "  darray(size, rank, {gsizes}, {block|cyclic|none,...}, {dargs|default}, {psizes}, C|F, T)\n"
      "  f90_real(precision, range)  f90_complex(precision, range)  f90_integer(range)\n"
      "and those that papers propose to add to MPI:\n"
      "  bounded_vector(start, blocklength, stride, bound, T)       blocks below bound, the last "
      "one cut; stride >= blocklength\n"
      "  circular_vector(start, blocklength, stride, end, bound, T) likewise below end, all modulo "
      "bound\n"
      "  bucket(size, {counts}, T)                                  counts[i] elements at i * "
      "size\n"
      "  triangular(count, blocklength, change, stride, T)          blocklength + i * change "
      "elements at i * stride\n"
      "  stretched_vector(types, index, {blocklengths}, T)          b[j] elements at index * b[j] "
      "+ types * (b[0] + ... + b[j-1])\n"
      "Numbers are in extents of T, but bytes where a name begins with h, in struct and in "
      "resized. Names are lower case.\n"
      "What inspect prints:\n"
      "  in MPI     the constructor calls that MPI remembers, if they are others\n"
      "  tree       the constructors as loops, all numbers in bytes: vec(count, stride, T), idx(n, "
      "<displacements>, T),\n"
      "             idxbuc(n, <lengths>, <displacements>, stride, T), strc(n, <displacements>, "
      "<T,...>), leaf(bytes), and\n"
      "             bucket(n, distance, <lengths>, stride, T), triangular(n, first length, change, "
      "distance, stride, T),\n"
      "             stretched(n, <lengths>, own, before, stride, T): buckets are a distance apart, "
      "their elements a stride; a\n"
      "             stretched one is at own * its length + before * all lengths before it\n"
      "  normalized the same leaves at the same displacements in a cheaper tree, found without "
      "expanding it\n"
      "  canonical  the fewest loops with the same packed bytes; levels [8 x 128 -> 64]: 8 steps "
      "of 128 bytes in\n"
      "             memory and of 64 in the packed stream. Costs, everywhere: 6 for a node or "
      "leaf, 1 for an entry of a list\n"
      "  blocks     contiguous runs of one instance\n"
      "  plan       what a packer executes; tables: the bytes it looks up; words: the widest "
      "access that is aligned\n"
      "  bounds     as MPI defines them, in bytes\n"
      "  path, extended, beyond MPI, optimum\n"
      "             the cheapest of the same leaves at the same displacements: over vec and idx; "
      "over idxbuc, too; over bucket\n"
      "             and triangular, too, which MPI does not have (shown if that is cheaper); over "
      "vec, idx, idxbuc and strc.\n"
      "             heuristic instead of optimum where that is not known (more than 128 elements); "
      "of a type if it has at\n"
      "             most a million elements. Comparisons and time are those of the path\n"
      "\nExamples:\n"
      "  mpirun -n 2 halocline compare --config configs/quickstart.toml --output results.jsonl\n"
      "  mpirun -n 8 halocline run --global 200 200 200 --steps 50\n"
      "  mpirun -n 2 halocline compare --methods p2p,shared --shape direct,axes --neighbors 18\n"
      "  mpirun -n 2 halocline calibrate\n"
      "  mpirun -n 4 halocline gather --ranks-per-node 2 --order random --sizes 1024,1048576\n"
      "  halocline predict --model model.json --ranks-per-node 6 --local 256 256 256\n"
      "  halocline inspect 'subarray(C,{16,16,16},{1,8,8},{5,2,3},double)'\n"
      "\nExit codes: 0 ok, 1 verification failed, 2 bad input, 3 environment.");

  constexpr std::array about{
      std::pair{Subcommand::run,
                "exchange and stencil for a number of steps, verified, timed per phase"},
      std::pair{Subcommand::compare,
                "the same exchange through several methods, interleaved, with ratios"},
      std::pair{Subcommand::calibrate,
                "measures messages, copies, launches and packing on this machine, for the choice "
                "between transfers"},
      std::pair{Subcommand::gather,
                "hierarchical gathers that reorder by MPI_Unpack, by datatypes alone, ..., beside "
                "MPI_Gather"},
      std::pair{Subcommand::predict,
                "what the halo exchange would take on other numbers of nodes, by a system model"},
      std::pair{Subcommand::inspect,
                "EXPRESSION, or --displacements FILE, or --typemap FILE: what becomes of an MPI "
                "datatype: "
                "tree, canonical form, plan; cheapest reconstruction"},
      std::pair{Subcommand::info, "build, MPI, Kokkos, threads and devices of this job"}};
  std::string expression;
  for (const auto& [subcommand, text] : about) {
    auto* sub = cli.add_subcommand(std::string(to_string(subcommand)), text);
    sub->fallthrough();
    sub->set_help_flag();  // so that `halocline run --help` shows the root's text, where all
                           // options are
    if (subcommand == Subcommand::inspect) sub->add_option("expression", expression);
  }
  std::map<std::string, CLI::Option*> known;
  for (const auto& option : options().all()) {
    auto* added = option.argument.empty()
                      ? cli.add_flag("--" + option.name)
                      : cli.add_option("--" + option.name)->expected(1, option.words);
    known[option.name] = added->description(option.meaning)->group(option.group);
  }
  const auto general = [&](CLI::Option* flag, const char* meaning) {
    return flag->description(meaning)->group("General");
  };
  const auto* print_config = general(cli.add_flag("--print-config"),
                                     "print the effective configuration as TOML and exit [all]");
  general(cli.set_version_flag("--version", "halocline " + version_line()),
          "print version and source revision and exit [all]");
  general(cli.set_help_flag("--help,-h"), "print this text and exit [all]");

  CommandLine out;
  try {
    cli.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    // Not cli.help(), which delegates to the subcommand, where no options are.
    out.text = HelpFormatter().make_help(&cli, cli.get_name(), CLI::AppFormatMode::Normal);
    return out;
  } catch (const CLI::CallForVersion& version) {
    out.text = std::string(version.what()) + "\n";
    return out;
  } catch (const CLI::ExtrasError&) {
    std::string words;
    for (const auto& word : cli.remaining(true)) words += (words.empty() ? "" : " ") + word;
    fail("unknown argument on the command line", words, kSeeHelp);
  } catch (const CLI::ParseError& error) {
    fail("command line cannot be used", error.what(), kSeeHelp);
  }

  const auto chosen = cli.get_subcommands();
  if (chosen.empty())
    fail("no subcommand", "command line",
         "use one of " + all_names<Subcommand>(", ") + ", or " + kSeeHelp);
  out.config.subcommand = from_string<Subcommand>(chosen.front()->get_name()).value();
  if (!is_utf8(expression))
    fail("expression cannot be used", excerpt(expression) + ", command line",
         std::string("give a datatype in the notation of inspect, ") + kSeeHelp);
  out.config.expression = expression;
  out.print_config = print_config->count() > 0;
  for (const auto& option : options().all()) {
    const auto* given = known.at(option.name);
    if (given->count() == 0) continue;
    const auto words = given->results();
    if (!option.argument.empty())
      out.values[option.name] = option.from_tokens(words);
    else if (words.front() == "true")
      out.values[option.name] = true;
    else
      fail("--" + option.name + " takes no value", "command line",
           "leave out the = and what follows it");
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
  constexpr const char* kCommandLine = "command line";
  if (const auto path = line.values.find("config"); path != line.values.end()) {
    set(*options().find("config"), path->second, kCommandLine, config);
    for (const auto& [key, value] : read_file(config.config))
      set(*options().find(key), value.first, line_of(config.config, value.second), config);
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
std::string as_toml(const Config& config) {
  std::string out = "# halocline " + std::string(to_string(config.subcommand)) + "\n";
  const Config defaults;
  for (const auto& option : options().all()) {
    const auto value = option.write(config);
    const bool hidden = option.group.empty() && value == option.write(defaults);
    if (option.in_file && !hidden && !value.is_null())
      out += option.name + " = " + value.dump() + "\n";
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
