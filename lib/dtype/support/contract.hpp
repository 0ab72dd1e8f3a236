// SPDX-License-Identifier: BSD-3-Clause
// Contracts between our own functions: checked in debug and sanitizer builds, absent from release
// builds. What a user can get wrong is never a contract: it throws one of the classes in error.hpp.
#pragma once

#include <stdexcept>
#include <string>

#ifdef NDEBUG
#define HALOCLINE_EXPECT(condition) static_cast<void>(0)
#else
/// A precondition of this function.
#define HALOCLINE_EXPECT(condition)                                                                \
  do {                                                                                             \
    if (!(condition))                                                                              \
      throw std::logic_error(std::string("contract broken: " #condition " at ") + __FILE__ + ":" + \
                             std::to_string(__LINE__));                                            \
  } while (false)
#endif
