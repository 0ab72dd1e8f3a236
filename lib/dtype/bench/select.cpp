// SPDX-License-Identifier: BSD-3-Clause
// Measures the choice of a transfer: found in the cache of a plan, by the model for one message,
// and by the model for the 26 messages of an exchange. [PEA21 section 6.3] reports 277 ns for one
// message. Its model has 24 sizes and 9 x 9 packs at one stride, and knows one message at a time.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "dtype/select/selection_cache.hpp"
#include "dtype/select/system_model.hpp"
#include "dtype/select/transfer_selector.hpp"
#include "harness.hpp"

namespace halocline::dtype::bench {

namespace {

std::vector<std::int64_t> powers_of_two(int first, int count, int step) {
  std::vector<std::int64_t> out;
  for (int i = 0; i < count; ++i) out.push_back(std::int64_t{1} << (first + step * i));
  return out;
}

Curve curve(double latency, double per_byte) {
  auto bytes = powers_of_two(0, 24, 1);
  std::vector<double> seconds;
  for (const auto n : bytes) seconds.push_back(latency + per_byte * static_cast<double>(n));
  return {std::move(bytes), std::move(seconds), "benchmark"};
}

MessageTimes messages(double latency, double per_byte) {
  std::vector<MessageTimes::AtOnce> measured;
  for (const auto n : powers_of_two(0, 6, 1)) {
    const auto many = static_cast<double>(n);
    measured.push_back({n, curve(latency * std::sqrt(many), per_byte * many)});
  }
  return {std::move(measured), "benchmark"};
}

PackTable packs(double latency, double per_byte) {
  PackTable::Axes axes{powers_of_two(6, 9, 2), powers_of_two(2, 9, 1), powers_of_two(3, 9, 2)};
  std::vector<double> seconds;
  for (const auto bytes : axes.bytes)
    for (const auto block : axes.block_bytes)
      for (const auto stride : axes.stride_bytes) {
        const auto gaps = static_cast<double>(stride) / static_cast<double>(block);
        seconds.push_back(latency + per_byte * static_cast<double>(bytes) * (1 + std::log1p(gaps)));
      }
  return {std::move(axes), std::move(seconds), "benchmark"};
}

SystemModel model() {
  SystemModel out;
  out.launch_seconds = 2e-6;
  out.synchronize_seconds = 3e-6;
  out.host_messages = {messages(1e-6, 1e-10), messages(2e-6, 8e-11)};
  out.device_messages = {messages(6e-6, 2e-11), messages(8e-6, 4e-11)};
  out.device_to_host = out.host_to_device = curve(5e-6, 2e-11);
  out.device_packing = {packs(2e-6, 1e-12), packs(3e-6, 2e-12)};
  out.mapped_packing = {packs(2e-6, 2e-11), packs(3e-6, 3e-11)};
  out.host_packing = {packs(1e-7, 1e-10), packs(1e-7, 1e-10)};
  return out;
}

// Returns the messages of the 26 regions of a block of doubles, radius 3. Neighbours at the same x
// share the node.
std::vector<Message> exchange(std::int64_t points) {
  constexpr std::int64_t kRadius = 3;
  std::vector<Message> out;
  for (int direction = 0; direction < 27; ++direction) {
    if (direction == 13) continue;
    const auto side = [&](int axis) { return axis == 1 ? points : kRadius; };
    const auto x = side(direction % 3), y = side(direction / 3 % 3), z = side(direction / 9);
    const BlockShape shape{8 * x, 8 * (points + 2 * kRadius)};
    out.push_back(
        {8 * x * y * z, shape, shape, direction % 3 == 1 ? Reach::on_node : Reach::off_node});
  }
  return out;
}

Row measure_choices(const Options& options) {
  const auto the_model = model();
  const auto all = exchange(options.points);
  const auto one = std::span(all).first(1);
  const auto possible =
      possible_transfers({.device_messages = true, .mapped_memory = true, .host_access = true});
  const auto choose = [&](std::span<const Message> parts) {
    return select_transfer(&the_model, parts, possible);
  };

  SelectionCache cache;
  std::int64_t amount = 0;
  const auto hit = [&] {
    amount = amount % 3 + 1;
    benchmark::DoNotOptimize(
        cache.find_or(one.front().bytes * amount, true, [&] { return choose(one).transfer; }));
  };

  const int calls = options.smoke ? 10 : 1000, samples = options.smoke ? 2 : 1000;
  std::vector<double> hit_ns, one_ns, exchange_ns;
  const auto sample = [calls](std::vector<double>& ns, int divisor, auto&& call) {
    using Clock = std::chrono::steady_clock;
    const auto start = Clock::now();
    for (int i = 0; i < calls / divisor; ++i) call();
    ns.push_back(std::chrono::duration<double, std::nano>(Clock::now() - start).count() /
                 (calls / divisor));
  };
  for (int i = 0; i < samples; ++i) {
    sample(hit_ns, 1, hit);
    sample(one_ns, 2, [&] { benchmark::DoNotOptimize(choose(one)); });
    sample(exchange_ns, 10, [&] { benchmark::DoNotOptimize(choose(all)); });
  }

  Row row;
  const auto chosen = choose(one);
  row.verified =
      std::all_of(chosen.seconds.begin(), chosen.seconds.end(),
                  [](const auto& seconds) { return seconds.has_value(); }) &&
      cache.find_or(one.front().bytes, true, [] { return Transfer::host; }) == chosen.transfer;
  row.fields.emplace_back("hit_ns", median(std::move(hit_ns)));
  row.fields.emplace_back("message_ns", median(std::move(one_ns)));
  row.fields.emplace_back("exchange_ns", median(std::move(exchange_ns)));
  return row;
}

}  // namespace

std::vector<Benchmark> select(const Options&) {
  return {{"transfer", measure_choices}};
}

}  // namespace halocline::dtype::bench
