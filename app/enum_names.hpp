// SPDX-License-Identifier: BSD-3-Clause
// Spells enumerators for the user. Everything follows from one table for each enum.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace halocline::app {

/// Is specialised for each enum E of the configuration. A specialisation has a constexpr array
/// `table` of pairs (enumerator, spelling), in the order of the help texts. Every enumerator occurs
/// in it once.
template <class E>
struct EnumNames;

template <class E>
concept NamedEnum = requires {
  EnumNames<E>::table;
};

/// Returns the spelling of `value`: the same on the command line, in config files and in results.
template <NamedEnum E>
constexpr std::string_view to_string(E value) {
  for (const auto& [enumerator, spelling] : EnumNames<E>::table)
    if (enumerator == value) return spelling;
  return "?";
}

/// Returns the enumerator with this spelling, if there is one.
template <NamedEnum E>
constexpr std::optional<E> from_string(std::string_view text) {
  for (const auto& [enumerator, spelling] : EnumNames<E>::table)
    if (spelling == text) return enumerator;
  return std::nullopt;
}

/// Returns all spellings, with `separator` between them.
template <NamedEnum E>
std::string all_names(std::string_view separator) {
  std::string out;
  for (const auto& [enumerator, spelling] : EnumNames<E>::table)
    out.append(out.empty() ? "" : separator).append(spelling);
  return out;
}

/// Returns all enumerators.
template <NamedEnum E>
std::vector<E> all_of() {
  std::vector<E> out;
  for (const auto& [enumerator, spelling] : EnumNames<E>::table) out.push_back(enumerator);
  return out;
}

}  // namespace halocline::app
