// SPDX-License-Identifier: BSD-3-Clause
// Times methods that take turns (support/measure.hpp): all benchmarks here are timed by it. Each
// round goes through all methods there and back, and ratios are of samples of one round.
//
// Each round begins with another method: for 4 MiB, the place in the round was worth 5 %.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "support/measure.hpp"

namespace halocline::dtype::bench {

/// Makes `calls` calls one after the other. All are done on return.
using Calls = std::function<void(std::int64_t calls)>;

/// Says how long to measure.
struct Effort {
  double seconds;      ///< least time of all contenders together
  double sample_ns;    ///< least time of the calls of a sample
  std::size_t rounds;  ///< least number of rounds
  /// Contenders whose call takes longer have the samples of one round only.
  double slow_ns = std::numeric_limits<double>::infinity();
};

/// Is one of the methods that take turns. Holds two samples of every round: there and back.
class Contender {
 public:
  Contender(std::string name, Calls run) : name_(std::move(name)), run_(std::move(run)) {}

  /// Chooses the calls of a sample, so that they take at least `sample_ns` nanoseconds.
  void calibrate(double sample_ns);
  void sample_once() { ns_.push_back(sample(calls_)); }

  const std::string& name() const { return name_; }
  const Calls& calls() const { return run_; }
  /// Returns the samples, in nanoseconds per call.
  const std::vector<double>& ns() const { return ns_; }

 private:
  double sample(std::int64_t calls) const;

  std::string name_;
  Calls run_;
  std::int64_t calls_ = 1;
  std::vector<double> ns_;
};

/// Adds to the samples of all contenders. The first call also calibrates them.
void take_turns(std::vector<Contender>& contenders, const Effort& effort);

/// Returns the rate of `a` divided by the rate of `b`: the median over the rounds of both.
double ratio(const Contender& a, const Contender& b);

/// Is a line of the result. Times are medians in nanoseconds per call, ratios are ratios of rates.
struct Row {
  bool verified = false;
  std::string note = {};
  std::vector<std::pair<std::string, double>> fields = {};
  std::vector<std::string> remarks = {};  ///< printed below all tables

  template <class Number>
  void add(std::string field, Number value) {
    fields.emplace_back(std::move(field), static_cast<double>(value));
  }
  /// Adds the fields NAME_ns, NAME_p10_ns and NAME_p90_ns: median and percentiles times `scale`.
  void add_times(const std::string& name, const std::vector<double>& ns, double scale = 1);
  void add_note(const std::string& text) { note += (note.empty() ? "" : "; ") + text; }
  /// Returns the value of a field; NaN if the row has no such field.
  double value(const std::string& field) const;
};

}  // namespace halocline::dtype::bench
