// SPDX-License-Identifier: BSD-3-Clause
#include "config.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "checkpoint.hpp"
#include "comm/device/gpu_awareness.hpp"
#include "environment.hpp"
#include "given.hpp"
#include "messages.hpp"
#include "physics.hpp"

namespace halocline::app {

namespace {

// Tells if the settings of a checkpoint hold this option. The others are keys of their own there,
// or do not change the results of a run.
bool is_kept(const Option& option, const Config& config) {
  constexpr std::array kKept{"fields", "stencil", "periodic", "boundary", "stages", "seed"};
  if (config.physics != "heat" && (option.name == "stencil" || option.name == "stages"))
    return false;  // other physics have their own
  return option.group == kParametersOf + config.physics ||
         std::find(kKept.begin(), kKept.end(), option.name) != kKept.end();
}

// Returns the options that the newest readable checkpoint keeps. Refuses one of a later step than
// `steps`.
Given settings_of_checkpoint(const std::string& path, std::int64_t steps) {
  std::optional<Checkpoint> newest;
  std::optional<ConfigError> first;
  for (const auto& folder : checkpoints_of(path)) {
    try {
      newest = read_checkpoint(folder);
      break;
    } catch (const ConfigError& error) {
      if (!first) first = error;
    }
  }
  if (!newest) throw *first;
  const auto& checkpoint = *newest;
  if (checkpoint.step > steps)
    refuse("steps are done already",
           "steps " + std::to_string(steps) + ", " + checkpoint.folder + " has " +
               std::to_string(checkpoint.step),
           "give --steps the step to reach");
  const auto settings = Json::parse(checkpoint.settings);
  Given out;
  const auto where = checkpoint.folder + "/checkpoint.json";
  const auto add = [&](const std::string& name, const Json& value) {
    if (const auto* option = find_option(name)) out.add(*option, value, where);
  };
  add("physics", checkpoint.physics);
  add("global", checkpoint.global);
  add("element", to_string(checkpoint.element));
  for (const auto& [name, value] : settings.items()) {
    const auto* option = find_option(name);
    // A parameter that is overlooked would give other results.
    if (option == nullptr && name.starts_with(checkpoint.physics + "."))
      refuse(name + " is no parameter of " + checkpoint.physics, where,
             "correct it, or leave it out");
    if (option && is_kept(*option, out.values)) add(name, value);
  }
  return out;
}

// Refuses options that would change the equations or the meaning of a checkpoint.
void require_kept(const Given& saved, const Given& given) {
  for (const std::string name : {"stencil", "stages", "periodic", "boundary"}) {
    if (!saved.names.contains(name) || !given.names.contains(name)) continue;
    const auto& option = *find_option(name);
    const auto then = option.write(saved.values), now = option.write(given.values);
    if (then != now)
      refuse("restart has another " + name,
             then.dump() + " in " + given.values.restart + ", here " + now.dump(),
             "leave out " + name + ", which the checkpoint knows, or give another checkpoint");
  }
}

// Takes the number of fields from the physics, unless the user gives it.
void suit_physics(Config& config, const Given& given) {
  for (const auto& name : given.names)
    if (const auto& group = find_option(name)->group;
        group.starts_with(kParametersOf) && group != kParametersOf + config.physics)
      refuse(name + " is not used by physics " + config.physics, "physics " + config.physics,
             "leave " + name + " out, or use --physics " +
                 group.substr(std::string_view(kParametersOf).size()));
  const int own = physics_of(config).fields(config);
  if (own == 0) return;
  if (given.names.contains("fields") && config.fields != own)
    refuse("fields are not those of " + config.physics, "fields " + std::to_string(config.fields),
           "leave fields out, " + config.physics + " has " + std::to_string(own));
  config.fields = own;
}

// Returns what the config file and the command line give.
Given given_by_user(const CommandLine& line) {
  const auto& asked = line.given.values;
  auto given = line.given.names.contains("config")
                   ? read_config_file(asked.config, asked.subcommand)
                   : Given{};
  given.override_with(line.given);
  return given;
}

Config merge(const CommandLine& line) {
  comm::gpu_awareness_by_environment();  // throws for a bad value, even if there is no device
  const auto& asked = line.given.values;
  auto given = given_by_user(line);
  if (!given.values.restart.empty() && asked.subcommand == Subcommand::run) {
    auto saved = settings_of_checkpoint(given.values.restart, given.values.steps);
    // A physics with fields of its own knows them by its parameters.
    if (!physics_of(saved.values).info(saved.values).fields.empty()) saved.names.erase("fields");
    // The checkpoint will be refused, but not because of its own parameters.
    if (given.names.contains("physics") && given.values.physics != saved.values.physics)
      std::erase_if(saved.names, [&](const std::string& name) {
        const auto& option = *find_option(name);
        return is_kept(option, saved.values) && !is_kept(option, given.values);
      });
    require_kept(saved, given);
    Given all;
    all.override_with(saved);
    all.override_with(given);
    given = std::move(all);
  }
  auto config = given.values;
  config.subcommand = asked.subcommand;
  config.expression = asked.expression;
  if (!config.local && !config.global) config.local = {64, 64, 64};
  if (config.subcommand == Subcommand::run) suit_physics(config, given);
  return config;
}

Json as_json(const Config& config) {
  Json out;
  out["subcommand"] = to_string(config.subcommand);
  for (const auto& option : options()) out[option.name] = option.write(config);
  out["expression"] = config.expression;
  return out;
}

Config from_json(const Json& json) {
  Config config;
  config.subcommand = from_string<Subcommand>(json.at("subcommand").get<std::string>()).value();
  for (const auto& option : options())
    if (const auto& value = json.at(option.name); !value.is_null())
      set(option, value, "broadcast", config);
  config.expression = json.at("expression").get<std::string>();
  return config;
}

// Writes JSON on one line as TOML. They differ in one character, which only TOML wants escaped.
std::string toml_text(const Json& value) {
  auto out = value.dump();
  for (auto at = out.find('\x7f'); at != std::string::npos; at = out.find('\x7f', at))
    out.replace(at, 1, "\\u007f");
  return out;
}

// Writes a config file that reads back to the same configuration.
std::string as_toml(const Config& config) {
  std::string out = "# halocline " + std::string(to_string(config.subcommand)) + "\n";
  const Config defaults;
  for (const auto& option : options()) {
    const auto value = option.write(config);
    const bool is_of_other_physics =
        option.group.starts_with(kParametersOf) && option.group != kParametersOf + config.physics;
    const bool hidden =
        is_of_other_physics || (option.group.empty() && value == option.write(defaults));
    const bool is_used = option.is_used_by(config.subcommand);
    if (is_used && option.in_file && !hidden && !value.is_null())
      out += option.name + " = " + toml_text(value) + "\n";
  }
  return out;
}

std::vector<std::string> arguments_of_program;  // of the last parse_config()

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
  arguments_of_program.assign(argv, argv + argc);
  run_on_root(comm, [&] {
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

std::map<std::string, double> reread_parameters(const std::string& physics,
                                                const std::string& settings, MPI_Comm comm) {
  std::vector<const char*> words;
  for (const auto& word : arguments_of_program) words.push_back(word.c_str());
  std::string text;
  run_on_root(comm, [&] {
    const auto line = parse_command_line(static_cast<int>(std::ssize(words)), words.data());
    Given given;
    const auto first = Json::parse(settings);
    for (const auto& [name, value] : first.items())
      if (const auto* option = find_option(name)) given.add(*option, value, "checkpoint.json");
    given.override_with(given_by_user(line));
    Config config;
    for (const auto& name : given.names)
      if (const auto* option = find_option(name); option->group == kParametersOf + physics)
        option->copy(given.values, config);
    text = effective_config_json(config);
  });
  return from_json(Json::parse(broadcast(text, comm))).parameters;
}

std::string settings_json(const Config& config) {
  Json out = Json::object();
  for (const auto& option : options())
    if (const auto value = option.write(config); is_kept(option, config) && !value.is_null())
      out[option.name] = value;
  return out.dump();
}

std::string effective_config_json(const Config& config) {
  return as_json(config).dump();
}

}  // namespace halocline::app
