// SPDX-License-Identifier: BSD-3-Clause
#include "answer.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "record.hpp"
#include "support/contract.hpp"
#include "table.hpp"

namespace halocline::app {

namespace {

std::string times(double value) {
  return format_fixed(value, value < 10 ? 2 : 1) + " x";
}

std::string text_of(const Estimate& estimate) {
  return "95 % interval " + format_fixed(*estimate.low, 2) + " to " +
         format_fixed(*estimate.high, 2);
}

double median_of(const Candidate& method) {
  return median(method.seconds);
}

// Returns the fastest of the methods for which `is_meant` is true; nullptr if there is none.
template <class IsMeant>
const Candidate* fastest(std::span<const Candidate> methods, IsMeant&& is_meant) {
  const Candidate* out = nullptr;
  for (const auto& method : methods)
    if (!method.is_alias && is_meant(method) &&
        (out == nullptr || median_of(method) < median_of(*out)))
      out = &method;
  return out;
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else
      out += c;
  }
  return out;
}

}  // namespace

Estimate estimate_median(std::vector<double> samples) {
  HALOCLINE_EXPECT(!samples.empty());
  Estimate out{statistics(samples).median, std::nullopt, std::nullopt};
  std::sort(samples.begin(), samples.end());
  // The number of samples below the median is binomial with probability 1/2. The interval leaves
  // out samples on both sides, with a probability of at most 5 % together.
  constexpr double kMost = 0.05;
  const auto n = static_cast<double>(samples.size());
  std::size_t kept_from = 0;  // number of the first sample that is kept, from 1; 0: no interval is
                              // possible
  double below = 0;
  for (double k = 0; k < n / 2; ++k) {
    below += std::exp(std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1) -
                      n * std::log(2.0));
    if (2 * below > kMost) break;
    ++kept_from;
  }
  if (kept_from == 0) return out;
  out.low = samples[kept_from - 1];
  out.high = samples[samples.size() - kept_from];
  return out;
}

Estimate speed(const Candidate& method, const Candidate& baseline) {
  std::vector<double> ratios;
  const auto n = std::min(method.seconds.size(), baseline.seconds.size());
  for (std::size_t i = 0; i < n; ++i) ratios.push_back(baseline.seconds[i] / method.seconds[i]);
  auto out = estimate_median(std::move(ratios));
  out.median = median_of(baseline) / median_of(method);
  if (out.low) out.low = std::min(*out.low, out.median);
  if (out.high) out.high = std::max(*out.high, out.median);
  return out;
}

std::string answer(std::span<const Candidate> methods, const Candidate* baseline,
                   const std::string& mpi) {
  const auto* const ours = fastest(methods, [](const auto& one) { return !one.is_vendor; });
  if (ours == nullptr)
    return baseline == nullptr ? ""
                               : "Fastest: " + baseline->label + ", " + mpi +
                                     "'s own. No method of Halocline was timed beside it.\n";
  const auto in_code = [](const Candidate& one) {
    return "In code: app/methods.md#" + one.anchor + "\n";
  };
  if (baseline == nullptr)
    return "Fastest: " + ours->label + ". No vendor method was timed to compare it with.\n" +
           in_code(*ours);
  // Memory in a window requires a change of the user's program, so it has to pay.
  const auto* const anywhere =
      fastest(methods, [](const auto& one) { return !one.is_vendor && !one.needs_window; });
  const auto advantage =
      ours->needs_window && anywhere != nullptr ? speed(*ours, *anywhere) : Estimate{};
  const bool is_level = advantage.low && advantage.may_be(1);
  const auto& named = is_level ? *anywhere : *ours;
  const auto gain = speed(named, *baseline);
  const std::string of_mpi = mpi + "'s fastest (" + baseline->label + ")";
  if (!gain.low)
    return "Fastest so far: " + (gain.median < 1 ? baseline->label : named.label) + "; " +
           named.label + " is " + times(gain.median) + " as fast as " + of_mpi + ". " +
           "Too few exchanges to be sure: measure again with --iterations 20.\n";
  if (gain.may_be(1))
    return "No clear winner: " + named.label + " is " + times(gain.median) + " as fast as " +
           of_mpi + "; " + text_of(gain) + ".\n";
  if (gain.median < 1)
    return "Fastest: " + baseline->label + ", " + mpi + "'s own. " + named.label + " is " +
           times(gain.median) + " as fast; " + text_of(gain) + ".\n";
  auto out = "Fastest: " + named.label + ", " + times(gain.median) + " as fast as " + of_mpi +
             "; " + text_of(gain) + ".\n";
  if (is_level) {
    out += ours->label + " needs another allocation and is not clearly faster than " + named.label +
           ": " + times(advantage.median) + "; " + text_of(advantage) + ".\n";
  } else if (ours->needs_window && anywhere != nullptr) {
    const auto without = speed(*anywhere, *baseline);
    const bool loses = !without.may_be(1) && without.median < 1;
    out += "Without changing how you allocate: " +
           (loses ? "keep " + baseline->label + "; " + anywhere->label + " is "
                  : anywhere->label + ", ") +
           times(without.median) + (loses ? " as fast" : "") + "; " + text_of(without) +
           (without.may_be(1) ? ": no clear gain.\n" : ".\n");
  }
  return out + in_code(named);
}

std::string bars(std::span<const Candidate> methods, const Candidate& baseline,
                 const std::string& title) {
  constexpr int kRow = 26, kLeft = 260, kWidth = 420, kTop = 50;
  double most = 1;
  std::vector<Estimate> speeds;
  for (const auto& method : methods) {
    speeds.push_back(speed(method, baseline));
    most = std::max(most, speeds.back().high.value_or(speeds.back().median));
  }
  const auto x = [&](double value) { return format_fixed(kLeft + value / most * kWidth, 1); };
  const auto height = kTop + kRow * static_cast<int>(methods.size()) + 40;
  std::string out =
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + std::to_string(kLeft + kWidth + 80) +
      "\" height=\"" + std::to_string(height) +
      "\" font-family=\"sans-serif\" font-size=\"13\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n<text x=\"10\" y=\"24\" "
      "font-size=\"13\">" +
      escaped(title) + "</text>\n";
  const auto line = [&](const std::string& x1, const std::string& x2, int y1, int y2,
                        const std::string& more) {
    out += "<line x1=\"" + x1 + "\" x2=\"" + x2 + "\" y1=\"" + std::to_string(y1) + "\" y2=\"" +
           std::to_string(y2) + "\" stroke=\"black\"" + more + "/>\n";
  };
  for (std::size_t i = 0; i < methods.size(); ++i) {
    const auto& [median, low, high] = speeds[i];
    const auto y = kTop + kRow * static_cast<int>(i);
    out += "<text x=\"" + std::to_string(kLeft - 8) + "\" y=\"" + std::to_string(y + 14) +
           "\" text-anchor=\"end\">" + escaped(methods[i].label) + "</text>\n<rect x=\"" +
           std::to_string(kLeft) + "\" y=\"" + std::to_string(y) + "\" width=\"" +
           format_fixed(median / most * kWidth, 1) + "\" height=\"18\" fill=\"" +
           (methods[i].is_vendor ? "#999999" : "#0072B2") + "\"/>\n";
    if (low) line(x(*low), x(*high), y + 9, y + 9, "");
    out += "<text x=\"" + format_fixed(kLeft + high.value_or(median) / most * kWidth + 6, 1) +
           "\" y=\"" + std::to_string(y + 14) + "\">" + times(median) + "</text>\n";
  }
  line(x(1), x(1), kTop - 6, height - 36, " stroke-dasharray=\"4 3\"");
  out += "<text x=\"" + std::to_string(kLeft) + "\" y=\"" + std::to_string(height - 12) +
         "\">times as fast as " + escaped(baseline.label) +
         " (lines: 95 % intervals)</text>\n</svg>\n";
  return out;
}

}  // namespace halocline::app
