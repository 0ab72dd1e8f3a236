// SPDX-License-Identifier: BSD-3-Clause
// Declares what the shared main of all MPI tests offers to the tests.
#pragma once

#include <span>

namespace halocline::test {

/// Returns the arguments that GoogleTest did not take, without the program's name.
std::span<char*> arguments();

}  // namespace halocline::test
