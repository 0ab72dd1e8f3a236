// SPDX-License-Identifier: BSD-3-Clause
// Reads the config file: TOML with flags as keys.
#include <toml++/toml.h>
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "given.hpp"
#include "messages.hpp"
#include "physics.hpp"
#include "support/text_file.hpp"

namespace halocline::app {

namespace {

std::string line_of(const std::string& path, const toml::source_region& source) {
  return "line " + std::to_string(source.begin.line) + " of " + path;
}

std::string line_in(const std::string& text, std::size_t number) {
  std::istringstream lines(text);
  std::string out;
  for (std::size_t i = 0; i < number; ++i) std::getline(lines, out);
  return out;
}

// Refuses long lines, since each dot of a key takes one level of the parser's stack.
void refuse_long_lines(const std::string& text, const std::string& path) {
  constexpr std::size_t kLongest = 8192;
  std::size_t number = 1;
  for (std::size_t begin = 0; begin < text.size(); ++number) {
    const auto end = std::min(text.find('\n', begin), text.size());
    if (end - begin > kLongest)
      refuse("config file has a line of more than " + std::to_string(kLongest) + " bytes",
             "line " + std::to_string(number) + " of " + path + ": " +
                 shown(text.substr(begin, kLongest)),
             "divide it");
    begin = end + 1;
  }
}

toml::table parse(const std::string& text, const std::string& path) {
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& error) {
    refuse("config file is no TOML",
           std::string(error.description()) + ", " + line_of(path, error.source()) + ": " +
               shown(line_in(text, error.source().begin.line)),
           "write lines such as radius = 3");
  }
}

// Returns the value as JSON, null for values that no key may hold.
Json as_json(const toml::node& node, int depth = 0) {
  constexpr int kMostNested = 8;  // deeper than every value that some key takes
  if (const auto* value = node.as_boolean()) return value->get();
  if (const auto* value = node.as_integer())
    return value->get() < 0 ? Json(value->get()) : Json(static_cast<std::uint64_t>(value->get()));
  if (const auto* value = node.as_floating_point())
    return std::isfinite(value->get()) ? Json(value->get()) : Json();
  if (const auto* value = node.as_string()) return value->get();
  const auto* items = node.as_array();
  if (items == nullptr || depth == kMostNested) return {};
  auto out = Json::array();
  for (const auto& item : *items) out.push_back(as_json(item, depth + 1));
  return out;
}

// Returns the value in one line, including dates, nan and inf, which JSON does not have.
std::string written(const toml::node& node) {
  std::ostringstream out;
  if (const auto* items = node.as_array()) {
    for (const auto& item : *items) out << (out.tellp() > 0 ? "," : "") << written(item);
    return "[" + out.str() + "]";
  }
  if (const auto json = as_json(node); !json.is_null()) return shown(json);
  node.visit([&](const auto& value) { out << value; });
  return out.str();
}

std::string sections_of(const std::vector<Subcommand>& subcommands) {
  std::string out;
  for (const auto one : subcommands)
    out += (out.empty() ? "[" : ", [") + std::string(to_string(one)) + "]";
  return out;
}

// Tells if a section holds the parameters of a physics.
bool is_physics(const std::string& key) {
  const auto all = all_physics();
  return std::any_of(all.begin(), all.end(), [&](const auto& kind) { return kind.name == key; });
}

// Reads the keys of `table` without its sections. `subcommand` has to use each of the keys.
// `prefix` stands before each key: the name of a physics with a dot, or nothing.
Given read_table(const toml::table& table, const std::string& path, Subcommand subcommand,
                 const std::string& prefix = "") {
  Given out;
  const std::string name(to_string(subcommand));
  for (const auto& [toml_key, node] : table) {
    const std::string key = prefix + std::string(toml_key.str());
    const auto where = line_of(path, node.source());
    if (node.is_table()) {  // a section, which read_config_file() reads
      if (prefix.empty()) continue;
      refuse("section " + prefix.substr(0, prefix.size() - 1) +
                 " of config file holds another section",
             where, "write its keys without " + prefix);
    }
    const auto* option = find_option(key);
    if (option == nullptr || !option->in_file)
      refuse("unknown key " + shown(key) + " in config file", where,
             remedy_for(key, subcommand, ""));
    if (!option->is_used_by(subcommand))
      refuse(
          "key " + key + " in config file is not used by " + name, where,
          "move it below the section of a subcommand that uses it: " + sections_of(option->users));
    if (!option->read(as_json(node), out.values))
      refuse_value(*option, excerpt(written(node)), where);
    out.names.insert(key);
  }
  out.refuse_excluded(path);
  return out;
}

// Reads a section. Faults of all sections are reported, even if the section is for another
// subcommand.
Given read_section(const std::string& key, const toml::table& section, const std::string& path) {
  const auto where = line_of(path, section.source());
  const auto named = from_string<Subcommand>(key);
  if (const auto* option = find_option(key); !named && option != nullptr)
    refuse(key + " takes no keys of its own", where, "give " + option->expected);
  if (!named) {
    std::string physics;
    for (const auto& kind : all_physics()) physics.append(", ").append(kind.name);
    refuse(
        "config file has an unknown section " + shown(key), where,
        "use the name of a subcommand or of a physics: " + all_names<Subcommand>(", ") + physics);
  }
  for (const auto& [inside, value] : section)
    if (value.is_table())
      refuse("section " + key + " of config file holds another section",
             line_of(path, value.source()),
             is_physics(std::string(inside.str()))
                 ? "write [" + std::string(inside.str()) + "] as a section of its own"
                 : "use one level of sections");
  return read_table(section, path, *named);
}

}  // namespace

Given read_config_file(const std::string& path, Subcommand subcommand) {
  constexpr FileKind kind{"config file", "give --config a text file", 16 << 20, true};
  const auto text = read_whole_file(path, kind);
  refuse_long_lines(text, path);
  const auto file = parse(text, path);
  auto out = read_table(file, path, subcommand);
  for (const auto& [toml_key, node] : file) {
    if (!node.is_table()) continue;
    const std::string key(toml_key.str());
    if (is_physics(key)) {
      out.override_with(read_table(*node.as_table(), path, Subcommand::run, key + "."));
      continue;
    }
    const auto own = read_section(key, *node.as_table(), path);
    if (key == to_string(subcommand)) out.override_with(own);
  }
  return out;
}

}  // namespace halocline::app
