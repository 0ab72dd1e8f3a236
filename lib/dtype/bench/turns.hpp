// SPDX-License-Identifier: BSD-3-Clause
// Methods that take turns: how everything here is timed.
//
// Best peer: OSU's and Google's benchmarks time one method after the other, so that clocks and
// neighbours that change in between count for one of them; here each round goes through all methods
// there and back, and ratios are of samples of one round. Each round begins with another method:
// the first and the last of a round follow themselves, not one that has cleared the caches, which
// alone was worth 5 % of 4 MiB.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "rows.hpp"

namespace halocline::dtype::bench {

/// That many calls one after the other; all are done on return.
using Calls = std::function<void(std::int64_t calls)>;

/// How long to measure.
struct Effort {
  double seconds;      ///< at least, all contenders together
  double sample_ns;    ///< a sample has as many calls as take so long
  std::size_t rounds;  ///< at least
  /// Whose call takes longer has the samples of one round only.
  double slow_ns = std::numeric_limits<double>::infinity();
};

/// One of the methods that take turns, and two samples of every round: on the way there and back.
class Contender {
 public:
  Contender(std::string name, Calls run) : name_(std::move(name)), run_(std::move(run)) {}

  /// As many calls to a sample as the clock needs.
  void calibrate(double sample_ns);
  void sample_once() { ns_.push_back(sample(calls_)); }

  const std::string& name() const { return name_; }
  const Calls& calls() const { return run_; }
  /// The samples, in nanoseconds per call.
  const std::vector<double>& ns() const { return ns_; }

 private:
  double sample(std::int64_t calls) const;

  std::string name_;
  Calls run_;
  std::int64_t calls_ = 1;
  std::vector<double> ns_;
};

/// Adds to the samples of all contenders.
void take_turns(std::vector<Contender>& contenders, const Effort& effort);

/// The median over the rounds that both were in of the rate of `a` divided by that of `b`.
double ratio(const Contender& a, const Contender& b);

/// NAME_ns, NAME_p10_ns and NAME_p90_ns.
void append_times(Row& row, const Contender& contender);

double median(std::vector<double> values);
/// Linear between the closest values; `values` must not be empty.
double percentile(std::vector<double> values, double fraction);

}  // namespace halocline::dtype::bench
