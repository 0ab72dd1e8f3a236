// SPDX-License-Identifier: BSD-3-Clause
#include "sequence_file.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "dtype/basic_type.hpp"
#include "dtype/type_map.hpp"
#include "support/error.hpp"
#include "support/text_file.hpp"

namespace halocline::app {

namespace {

constexpr std::string_view kSpace = " \t\r";
constexpr auto kLimit = std::int64_t{1} << 61;

constexpr FileKind displacements_file(bool is_binary) {
  return {"displacements", "give --displacements a file", 1 << 30, true, is_binary};
}
constexpr FileKind kTypeMap{"typemap", "give --typemap a file", 1 << 30, true};
// Limits the elements to the number in the largest binary file. A text of the same size could hold
// more.
constexpr auto kMostRead = std::int64_t{1} << 27;

ConfigError wrong(const std::string& path, std::int64_t line, const std::string& what,
                  const std::string& expected) {
  return ConfigError(what + " (line " + std::to_string(line) + " of " + path + "): " + expected);
}

// Removes the first word of a line and returns it.
std::string_view take_word(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(kSpace), line.size()));
  const auto word = line.substr(0, line.find_first_of(kSpace));
  line.remove_prefix(word.size());
  return word;
}

// Calls take(line without comment, line number) for every line that has a word.
template <class Take>
void for_each_line(std::string_view text, Take take) {
  for (std::int64_t number = 1; !text.empty(); ++number) {
    const auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const auto content = line.substr(0, line.find('#'));
    if (content.find_first_not_of(kSpace) != std::string_view::npos) take(content, number);
  }
}

// Reads a displacement from the rest of a line. `expected` ends the error message.
std::int64_t displacement(std::string_view line, const std::string& path, std::int64_t number,
                          const char* expected) {
  auto word = take_word(line);
  if (word.starts_with('+')) word.remove_prefix(1);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  const bool too_large = error == std::errc::result_out_of_range;
  if ((error != std::errc() && !too_large) || end != word.data() + word.size() ||
      !take_word(line).empty())
    throw wrong(path, number, "displacement is not an integer", std::string("give ") + expected);
  if (too_large || value > kLimit || value < -kLimit)
    throw wrong(path, number, "displacement is too large", "use at most 2^61 bytes");
  return value;
}

// Returns the predefined type of this name, as spelled in expressions; nullptr if there is none.
const dtype::NamedType* named_type(std::string_view name) {
  try {
    const auto expr = dtype::parse_type(name);
    const auto* named = std::get_if<dtype::Named>(&expr->node);
    return named == nullptr ? nullptr : named->type;
  } catch (const ConfigError&) {
    return nullptr;
  }
}

template <class Element>
void require_room(const std::vector<Element>& elements, const std::string& path) {
  if (std::ssize(elements) > kMostRead)
    throw ConfigError("sequence is too long (" + path + "): give at most " +
                      std::to_string(kMostRead) + " elements");
}

void require_elements(const dtype::TypedSequence& sequence, const std::string& path) {
  if (sequence.displacements.empty())
    throw ConfigError("sequence is empty (" + path + "): give at least one displacement");
}

}  // namespace

dtype::TypedSequence read_displacements(const std::string& path) {
  const bool is_binary = path.ends_with(".i64");
  const auto text = read_whole_file(path, displacements_file(is_binary));
  dtype::TypedSequence out{{}, {}, {{1}}};
  if (is_binary) {
    if (text.size() % sizeof(std::int64_t) != 0)
      throw ConfigError("file is cut off (" + path + ": " + std::to_string(text.size()) +
                        " bytes are no multiple of 8): write 64-bit integers");
    out.displacements.resize(text.size() / sizeof(std::int64_t));
    if (!text.empty()) std::memcpy(out.displacements.data(), text.data(), text.size());
    for (std::size_t i = 0; i < out.displacements.size(); ++i)
      if (const auto value = out.displacements[i]; value > kLimit || value < -kLimit)
        throw ConfigError("displacement is too large (number " + std::to_string(i + 1) + " of " +
                          path + "): use at most 2^61 bytes");
  } else {
    for_each_line(text, [&](std::string_view line, std::int64_t number) {
      out.displacements.push_back(displacement(line, path, number, "one per line"));
      require_room(out.displacements, path);
    });
  }
  require_elements(out, path);
  return out;
}

dtype::TypedSequence read_type_map(const std::string& path) {
  const auto text = read_whole_file(path, kTypeMap);
  dtype::TypeMap map;
  for_each_line(text, [&](std::string_view line, std::int64_t number) {
    const auto name = take_word(line);
    const auto* named = named_type(name);
    if (named == nullptr)
      throw wrong(path, number, "'" + excerpt(name, 40) + "' is no predefined type",
                  "give one of MPI's, such as double, and its displacement");
    const auto at = displacement(line, path, number, "a type and one displacement per line");
    for (const auto& member : named->members)
      map.entries.push_back({member.type, at + member.displacement});
    require_room(map.entries, path);
  });
  auto out = dtype::typed_sequence(map);
  require_elements(out, path);
  return out;
}

}  // namespace halocline::app
