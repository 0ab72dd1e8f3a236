// SPDX-License-Identifier: BSD-3-Clause
// Joins lists into one text.
#pragma once

#include <string>
#include <vector>

namespace halocline {

/// Returns `text_of(item)` of every item of `list`, joined by commas. O(characters).
template <class T, class Text>
std::string comma_separated(const std::vector<T>& list, Text&& text_of) {
  std::string out;
  for (const auto& item : list) {
    if (&item != list.data()) out += ',';
    out += text_of(item);
  }
  return out;
}

}  // namespace halocline
