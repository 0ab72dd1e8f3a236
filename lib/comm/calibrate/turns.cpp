// SPDX-License-Identifier: BSD-3-Clause
#include "comm/calibrate/turns.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <utility>

#include "support/contract.hpp"
#include "support/measure.hpp"

namespace halocline::comm::detail {

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Timed evaluate(std::vector<double> samples) {
  HALOCLINE_EXPECT(samples.size() >= 2);
  std::sort(samples.begin(), samples.end());
  const auto quarter = samples.size() / 4;
  return {samples[quarter],
          samples[std::max<std::size_t>(quarter, 1)] <= kSpread * samples.front()};
}

std::int64_t calls_per_trial(double seconds_per_call) {
  constexpr double kMost = 1e6;
  const auto calls = kTrialSeconds / std::max(seconds_per_call, kTrialSeconds / kMost);
  return std::max<std::int64_t>(static_cast<std::int64_t>(calls), 1);
}

double least_seconds(std::span<const double> seconds_per_call) {
  // Counts the trial that finds the time of a call, and the trials for samples, each with its
  // warm-up.
  double out = 0;
  for (const auto seconds : seconds_per_call)
    out += 2 * seconds + kLeastTrials * (seconds + std::max(seconds, kTrialSeconds));
  return out;
}

namespace {

// After a trial of kDisturbed times kTrialSeconds, the next one is shorter by this factor.
// Otherwise the next one is up to this factor longer, until it takes kTrialSeconds.
constexpr double kDisturbed = 10;
constexpr std::int64_t kShorter = 8;

}  // namespace

std::vector<Timed> take_turns(std::span<const Trial> trials, double seconds, const Clock& now) {
  const auto begin = now();
  struct Point {
    std::int64_t calls;
    std::vector<double> samples;
    Timed timed{};
  };
  std::vector<Point> points;
  for (const auto& trial : trials)
    points.push_back({std::min(calls_per_trial(trial(1)), kShorter), {}});
  const auto sample = [&](std::size_t i) {
    auto& [calls, samples, timed] = points[i];
    const auto each = trials[i](calls);
    samples.push_back(each);
    // Short trials may fit between two disturbances that every call of a long trial meets.
    if (each * static_cast<double>(calls) > kDisturbed * kTrialSeconds)
      calls = std::max<std::int64_t>(calls / kShorter, 1);
    else
      calls = std::max(calls, std::min(calls_per_trial(each), calls * kShorter));
  };
  const auto turn = [&](int number, auto takes_part) {
    for (const auto i : order_of_turn(points.size(), number))
      if (takes_part(points[i])) sample(i);
  };
  for (int i = 0; i < kMostTrials; ++i) {
    const auto start = now();
    turn(i, [](const Point&) { return true; });
    const auto end = now();
    const bool time_for_another = end - begin + (end - start) <= seconds;
    if (i + 1 >= kLeastTrials && !time_for_another) break;
  }
  for (auto& point : points) point.timed = evaluate(point.samples);
  const auto is_open = [](const Point& point) { return !point.timed.settled; };
  const auto last = std::max(now(), begin + seconds) + kExtraSeconds;
  for (int i = 0; i < kExtraTrials && std::any_of(points.begin(), points.end(), is_open); ++i) {
    if (now() > last) break;
    turn(i, is_open);
    for (auto& point : points) point.timed = evaluate(point.samples);
  }
  std::vector<Timed> out;
  for (const auto& point : points) out.push_back(point.timed);
  return out;
}

namespace {

// Holds all layers. Measures points of the last two layers again if they contradict other points.
class Checker {
 public:
  Checker(const Layers& layers, const Clock& now) : layers_(layers), now_(now) {}

  void add(std::vector<Trial> trials, std::vector<Timed> timed) {
    before_ = std::exchange(last_, std::move(trials));
    all_.push_back(std::move(timed));
  }

  void check(double seconds) {
    const auto end = now_() + seconds;
    for (int i = 0; i < kRemeasurements; ++i) {
      const auto found = offenders();
      if (found.empty()) return;
      std::vector<double> expected;
      for (const auto& [place, at_most] : found) expected.push_back(at_most);
      constexpr double kShort = 0.05;  // always allowed
      if (least_seconds(expected) > std::max(end - now_(), kShort)) return;
      std::vector<Trial> trials;
      for (const auto& [place, at_most] : found)
        trials.emplace_back(
            [&trial = trial_of(place)](std::int64_t calls) { return trial(calls); });
      const auto again = take_turns(trials, 0, now_);
      for (std::size_t j = 0; const auto& [place, at_most] : found) {
        auto& timed = at(place);
        timed = {std::min(timed.seconds, again[j].seconds), again[j].settled};
        ++j;
      }
    }
  }

  const std::vector<Timed>& last() const { return all_.back(); }

  Measured result() {
    Measured out;
    for (std::size_t layer = 0; layer < all_.size(); ++layer) {
      auto& seconds = out.seconds.emplace_back();
      for (std::size_t i = 0; i < all_[layer].size(); ++i) {
        seconds.push_back(all_[layer][i].seconds);
        if (!all_[layer][i].settled) noisy_.insert({layer, i});
        for (const auto& lesser : lessers({layer, i}))
          if (contradicts(lesser, {layer, i})) noisy_.insert({lesser.layer, lesser.point});
      }
    }
    for (const auto& [layer, point] : noisy_) out.noisy.push_back({layer, point});
    return out;
  }

 private:
  using Place = std::pair<std::size_t, std::size_t>;  // layer, point

  Timed& at(const Place& place) { return all_[place.first][place.second]; }
  const Trial& trial_of(const Place& place) const {
    return (place.first + 1 == all_.size() ? last_ : before_)[place.second];
  }
  std::vector<Lesser> lessers(const Place& place) const {
    return layers_.lesser ? layers_.lesser(place.first, place.second) : std::vector<Lesser>{};
  }
  bool contradicts(const Lesser& less, const Place& more) {
    return at({less.layer, less.point}).seconds > kContradiction * at(more).seconds;
  }

  // Returns the points that are too slow, with the most seconds that they should take.
  std::map<Place, double> offenders() {
    std::map<Place, double> out;
    const auto layer = all_.size() - 1;
    const auto add = [&](const Place& place, double at_most) {
      const auto [known, is_new] = out.emplace(place, at_most);
      if (!is_new) known->second = std::min(known->second, at_most);
    };
    for (std::size_t i = 0; i < all_[layer].size(); ++i)
      for (const auto& less : lessers({layer, i})) {
        const auto explained = less.work * at({less.layer, less.point}).seconds;
        if (contradicts(less, {layer, i}))
          add({less.layer, less.point}, at({layer, i}).seconds);
        else if (at({layer, i}).seconds > kJump * explained)
          add({layer, i}, kJump * explained);
      }
    return out;
  }

  const Layers& layers_;
  const Clock& now_;
  std::vector<std::vector<Timed>> all_;
  std::vector<Trial> before_, last_;  // trials of the last two layers
  std::set<Place> noisy_;
};

}  // namespace

Measured measure(const Layers& layers, double seconds, const Clock& now,
                 const std::function<void(std::size_t points)>& done) {
  const auto begin = now();
  const auto left = [&] { return seconds - (now() - begin); };
  Checker checker(layers, now);
  for (std::size_t i = 0; i < layers.count; ++i) {
    if (i >= 2) {
      std::vector<double> expected;
      for (const auto& timed : checker.last()) expected.push_back(timed.seconds * layers.growth);
      if (least_seconds(expected) > left()) break;
    }
    auto trials = layers.trials(i);
    const auto points = trials.size();
    auto timed = take_turns(trials, left() / static_cast<double>(layers.count - i), now);
    checker.add(std::move(trials), std::move(timed));
    checker.check(left() / static_cast<double>(layers.count - i));
    done(points);
  }
  return checker.result();
}

}  // namespace halocline::comm::detail
