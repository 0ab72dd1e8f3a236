// SPDX-License-Identifier: BSD-3-Clause
// Reads the flags of randomised tests.
#pragma once

#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "mpi_main.hpp"
#include "support/error.hpp"

namespace halocline::test {

/// Calls take(flag, value) for every pair of arguments. Throws ConfigError for a flag for which
/// take() returns false.
template <class Take>
void read_flags(Take take) {
  const auto all = arguments();
  for (std::size_t i = 0; i < all.size(); i += 2) {
    const std::string_view flag = all[i];
    if (i + 1 == all.size()) throw ConfigError(std::string(flag) + ": needs a value");
    if (!take(flag, std::string_view(all[i + 1])))
      throw ConfigError(std::string(flag) + ": unknown flag");
  }
}

/// Returns the value of a flag as a number. Throws ConfigError if it is no number.
template <class T>
T number(std::string_view flag, std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size())
    throw ConfigError(std::string(flag) + " is '" + std::string(text) + "': give a number");
  return value;
}

/// Returns another seed every day. Print the seed, so that a failure can be repeated.
inline std::uint64_t seed_of_today() {
  return static_cast<std::uint64_t>(
      std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now())
          .time_since_epoch()
          .count());
}

/// Holds the number of random cases and the seed of the first one.
struct Trials {
  std::int64_t count;
  std::uint64_t seed = seed_of_today();
};

/// Reads `count_flag` and --seed. By default, takes today's seed and `count` cases. Takes
/// `sanitized` cases under a sanitizer, which is far slower.
inline Trials read_trials(std::string_view count_flag, std::int64_t count,
                          [[maybe_unused]] std::int64_t sanitized) {
#ifdef __SANITIZE_ADDRESS__
  count = sanitized;
#endif
  Trials trials{count};
  read_flags([&](std::string_view flag, std::string_view value) {
    if (flag == count_flag)
      trials.count = number<std::int64_t>(flag, value);
    else if (flag == "--seed")
      trials.seed = number<std::uint64_t>(flag, value);
    else
      return false;
    return true;
  });
  return trials;
}

}  // namespace halocline::test
