// SPDX-License-Identifier: BSD-3-Clause
// Measures what the interface for C adds to an exchange.
#pragma once

#include <vector>

#include "dtype/bench/program.hpp"

namespace halocline::comm::bench {

/// Returns a benchmark of start and finish by halocline.h beside C++. Each rank sends 8 bytes to
/// itself.
std::vector<dtype::bench::Benchmark> interfaces(const dtype::bench::Options& options);

}  // namespace halocline::comm::bench
