// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

namespace halocline {

/// `text_of(item)` of each, with commas between them. O(characters).
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
