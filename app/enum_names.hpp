// SPDX-License-Identifier: BSD-3-Clause
// Enumerators and how the user spells them: one table per enum, and everything else follows from
// it.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace halocline::app {

/// Specialised for each enum E of the configuration: a constexpr array of (enumerator, spelling)
/// pairs called `table`, in the order in which help texts list them. Every enumerator stands in it
/// once.
template <class E>
struct EnumNames;

template <class E>
concept NamedEnum = requires {
  EnumNames<E>::table;
};

/// The spelling of `value`: the same on the command line, in config files and in results.
template <NamedEnum E>
constexpr std::string_view to_string(E value) {
  for (const auto& [enumerator, spelling] : EnumNames<E>::table)
    if (enumerator == value) return spelling;
  return "?";
}

/// The enumerator with that spelling, if there is one.
template <NamedEnum E>
constexpr std::optional<E> from_string(std::string_view text) {
  for (const auto& [enumerator, spelling] : EnumNames<E>::table)
    if (spelling == text) return enumerator;
  return std::nullopt;
}

/// All spellings, with `separator` between them.
template <NamedEnum E>
std::string all_names(std::string_view separator) {
  std::string out;
  for (const auto& [enumerator, spelling] : EnumNames<E>::table)
    out.append(out.empty() ? "" : separator).append(spelling);
  return out;
}

/// All enumerators.
template <NamedEnum E>
std::vector<E> all_of() {
  std::vector<E> out;
  for (const auto& [enumerator, spelling] : EnumNames<E>::table) out.push_back(enumerator);
  return out;
}

}  // namespace halocline::app
