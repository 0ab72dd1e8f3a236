// SPDX-License-Identifier: BSD-3-Clause
// Defines contracts between our own functions. Debug and sanitizer builds check them; release
// builds leave them out. A mistake of a user is never a contract: it throws one of the classes in
// error.hpp.
#pragma once

#include <stdexcept>
#include <string>

#ifdef NDEBUG
#define HALOCLINE_EXPECT(condition) static_cast<void>(0)
#else
/// Checks a precondition of the function around it. Throws std::logic_error if `condition` is
/// false. Builds with NDEBUG do not evaluate `condition`.
#define HALOCLINE_EXPECT(condition)                                                                \
  do {                                                                                             \
    if (!(condition))                                                                              \
      throw std::logic_error(std::string("contract broken: " #condition " at ") + __FILE__ + ":" + \
                             std::to_string(__LINE__));                                            \
  } while (false)
#endif
