// SPDX-License-Identifier: BSD-3-Clause
// Finds checkpoints, and reads their checkpoint.json.
#include "checkpoint_json.hpp"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "checksum.hpp"
#include "provenance.hpp"
#include "support/error.hpp"
#include "support/text_file.hpp"
#include "table.hpp"

namespace halocline::app {

namespace {

namespace fs = std::filesystem;
using CheckpointJson = nlohmann::ordered_json;

constexpr const char* kFormat = "halocline-checkpoint/1";
constexpr std::string_view kPrefix = "checkpoint-";

constexpr const char* byte_order() {
  return std::endian::native == std::endian::little ? "little" : "big";
}

std::string as_hex(double value) {
  char out[40];
  std::snprintf(out, sizeof out, "%a", value);
  return out;
}

// Returns the number that a string holds, whole.
double number_in(const std::string& text) {
  char* end = nullptr;
  const double out = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0') throw ConfigError("");
  return out;
}

std::uint64_t hexadecimal_in(const std::string& text) {
  char* end = nullptr;
  const auto out = std::strtoull(text.c_str(), &end, 16);
  if (!text.starts_with("0x") || *end != '\0') throw ConfigError("");
  return out;
}

// Returns a whole number from `least` on.
std::int64_t count_in(const CheckpointJson& value, std::int64_t least) {
  if (!value.is_number_integer() || value.get<std::int64_t>() < least) throw ConfigError("");
  return value;
}

// Returns the value, which has to be a list.
const CheckpointJson& list_in(const CheckpointJson& value) {
  if (!value.is_array()) throw ConfigError("");
  return value;
}

}  // namespace

std::int64_t step_of_checkpoint(const std::string& name) {
  if (!name.starts_with(kPrefix) || name.size() < kPrefix.size() + 8 ||
      name.size() > kPrefix.size() + 18)
    return -1;
  const auto digits = name.substr(kPrefix.size());
  const bool is_number =
      std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
  return is_number ? std::atoll(digits.c_str()) : -1;
}

std::string checkpoint_name(std::int64_t step) {
  char digits[24];
  std::snprintf(digits, sizeof digits, "%08lld", static_cast<long long>(step));
  return std::string(kPrefix) + digits;
}

std::map<std::int64_t, std::string> checkpoints_in(const std::string& folder) {
  std::map<std::int64_t, std::string> out;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (const auto step = step_of_checkpoint(entry.path().filename().string()); step >= 0)
      out[step] = entry.path().string();
  return out;
}

std::vector<std::string> checkpoints_of(const std::string& path) {
  std::error_code error;
  if (fs::exists(path + "/checkpoint.json", error)) return {path};
  std::vector<std::string> out;
  for (const auto& [step, folder] : checkpoints_in(path)) out.insert(out.begin(), folder);
  if (out.empty())
    throw ConfigError("restart finds no checkpoint (" + excerpt(path, 1000) +
                      "): give --restart a folder with a checkpoint.json, or the output folder of "
                      "a run with --checkpoint-every");
  return out;
}

std::string checkpoint_json(const Checkpoint& checkpoint) {
  CheckpointJson out;
  out["format"] = kFormat;
  out["program"] = "halocline " + version_line();
  out["physics"] = checkpoint.physics;
  out["step"] = checkpoint.step;
  out["global"] = checkpoint.global;
  out["element"] = to_string(checkpoint.element);
  out["byte_order"] = byte_order();
  out["fields"] = CheckpointJson::array();
  for (const auto& [field, name, crc32] : checkpoint.files) {
    CheckpointJson file{{"name", field}, {"file", name}};
    if (crc32) file["crc32"] = crc32_text(*crc32);
    out["fields"].push_back(std::move(file));
  }
  if (checkpoint.foreign) out["foreign"] = true;
  out["state"] = CheckpointJson::array();
  for (const double number : checkpoint.state) out["state"].push_back(as_hex(number));
  if (checkpoint.state_hash) out["state_hash"] = format_hash(*checkpoint.state_hash);
  out["settings"] = CheckpointJson::parse(checkpoint.settings);
  return out.dump(1) + "\n";
}

Checkpoint parse_checkpoint(const std::string& text, const std::string& folder) {
  const auto refuse = [&](const std::string& why) {
    throw ConfigError("restart cannot be used (" + excerpt(folder, 1000) + "/checkpoint.json " +
                      why + "): give --restart another checkpoint");
  };
  CheckpointJson json;
  if (!nests_deeper_than(text, 16)) json = CheckpointJson::parse(text, nullptr, false);
  if (!json.is_object()) refuse("is damaged");
  const auto format = json.value("format", CheckpointJson());
  if (format != kFormat)
    refuse("has format " + excerpt(format.dump()) + ", this program reads " + kFormat);
  Checkpoint out;
  out.folder = folder;
  std::string member;  // that is read now
  const auto get = [&](const char* name) -> const CheckpointJson& {
    member = name;
    return json.at(name);
  };
  try {
    out.physics = get("physics");
    out.step = count_in(get("step"), 0);
    const auto& global = list_in(get("global"));
    if (global.size() != out.global.size()) throw ConfigError("");
    for (std::size_t axis = 0; axis < out.global.size(); ++axis)
      out.global[axis] = count_in(global.at(axis), 1);
    const auto element = from_string<Element>(get("element").get<std::string>());
    if (!element || is_complex(*element)) throw ConfigError("");
    out.element = *element;
    if (json.contains("byte_order") && get("byte_order") != byte_order())
      refuse("says that its numbers have another byte order than this machine");
    for (const auto& file : list_in(get("fields"))) {
      Checkpoint::File one{file.at("name"), file.at("file"), {}};
      if (one.name.find('/') != std::string::npos) throw ConfigError("");
      if (file.contains("crc32")) {
        const auto crc32 = hexadecimal_in(file.at("crc32"));
        if (crc32 > UINT32_MAX) throw ConfigError("");
        one.crc32 = static_cast<std::uint32_t>(crc32);
      }
      out.files.push_back(std::move(one));
    }
    if (json.contains("state"))
      for (const auto& number : list_in(get("state")))
        out.state.push_back(number_in(number.get<std::string>()));
    if (json.contains("foreign")) out.foreign = get("foreign").get<bool>();
    if (json.contains("state_hash")) out.state_hash = hexadecimal_in(get("state_hash"));
    if (json.contains("settings")) {
      if (!get("settings").is_object()) throw ConfigError("");
      out.settings = get("settings").dump();
    }
  } catch (const nlohmann::json::exception&) {
    refuse("lacks its " + member + ", or has one that cannot be used");
  } catch (const ConfigError& error) {
    if (*error.what() != '\0') throw;
    refuse("lacks its " + member + ", or has one that cannot be used");
  }
  return out;
}

bool same_parameters(const Checkpoint& checkpoint, const Config& config) {
  Config usual;
  usual.physics = config.physics;
  auto then = CheckpointJson::parse(settings_json(usual));
  then.update(CheckpointJson::parse(checkpoint.settings));
  const auto now = CheckpointJson::parse(settings_json(config));
  for (const auto& [key, value] : now.items()) {
    const bool is_parameter = key.find('.') != std::string::npos;
    if (is_parameter && then.at(key) != value) return false;
  }
  return true;
}

std::string text_of_checkpoint(const std::string& folder) {
  constexpr FileKind kKind{"checkpoint", "give --restart another checkpoint", 64 << 20};
  return read_whole_file(folder + "/checkpoint.json", kKind);
}

Checkpoint read_checkpoint(const std::string& folder) {
  return parse_checkpoint(text_of_checkpoint(folder), folder);
}

std::int64_t bytes_of_field(const Checkpoint& checkpoint) {
  return comm::Box{{}, checkpoint.global}.points() *
         (checkpoint.element == Element::float64 ? 8 : 4);
}

std::string fault_of_sizes(const Checkpoint& checkpoint) {
  const auto bytes = bytes_of_field(checkpoint);
  for (const auto& file : checkpoint.files) {
    std::error_code error;
    const auto found = fs::file_size(checkpoint.folder + "/" + file.name, error);
    if (error) return file.name + " cannot be read: " + error.message();
    if (static_cast<std::int64_t>(found) != bytes)
      return file.name + " has " + std::to_string(found) + " bytes, not " + std::to_string(bytes);
  }
  return "";
}

bool is_complete(const std::string& folder) {
  try {
    return fault_of_sizes(read_checkpoint(folder)).empty();
  } catch (const ConfigError&) {
    return false;
  }
}

}  // namespace halocline::app
