// SPDX-License-Identifier: BSD-3-Clause
#include "messages.hpp"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "support/error.hpp"
#include "support/text_file.hpp"

namespace halocline::app {

namespace {

// Counts the letters in which two words differ: insertions, deletions and replacements.
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

std::vector<std::string> names_used_by(Subcommand subcommand) {
  std::vector<std::string> out;
  for (const auto& option : options())
    if (option.is_used_by(subcommand) && !option.group.empty()) out.push_back(option.name);
  return out;
}

// The names in a value as JSON shows it.
std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> out{""};
  for (const char c : text)
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_')
      out.back() += c;
    else if (!out.back().empty())
      out.emplace_back();
  return out;
}

}  // namespace

void refuse(const std::string& problem, const std::string& cause, const std::string& remedy) {
  constexpr std::size_t kMost = 400;
  throw ConfigError(excerpt(problem, kMost) + " (" + excerpt(cause, kMost) + "): " + remedy);
}

void refuse_value(const Option& option, const std::string& value, const std::string& where) {
  for (const auto& word : words_of(value))
    if (const auto near = nearest(word, option.names); !near.empty() && near != word)
      refuse(option.name + " cannot be used", value + ", " + where, "did you mean " + near + "?");
  refuse(option.name + " cannot be used", value + ", " + where, "give " + option.expected);
}

std::string shown(const Json& value) {
  constexpr std::size_t kMost = 60;
  const auto text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  return text.size() <= kMost ? text : text.substr(0, kMost) + "...";
}

bool is_utf8(const std::string& text) {
  try {
    return !Json(text).dump().empty();
  } catch (const Json::type_error&) {
    return false;
  }
}

std::string nearest(std::string_view word, const std::vector<std::string>& names) {
  constexpr std::size_t kLongest = 40;
  if (word.empty() || word.size() > kLongest || names.empty()) return "";
  // Abbreviations come first, then swapped letters, then the smallest distance.
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

std::string remedy_for(const std::string& name, Subcommand subcommand, const std::string& dashes) {
  const std::string help =
      "see halocline " +
      (subcommand == Subcommand::run ? "help all" : std::string(to_string(subcommand)) + " --help");
  // A parameter of a physics may be written without the physics.
  for (const auto& option : options())
    if (option.group.starts_with(kParametersOf) && option.is_used_by(subcommand) &&
        option.name.ends_with("." + name))
      return "did you mean " + dashes + option.name + "? (" + help + ")";
  if (const auto near = nearest(name, names_used_by(subcommand)); !near.empty() && near != name)
    return "did you mean " + dashes + near + "? (" + help + ")";
  return (find_option(name) != nullptr ? "leave it out, or " : "") + help;
}

}  // namespace halocline::app
