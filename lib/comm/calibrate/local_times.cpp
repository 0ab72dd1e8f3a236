// SPDX-License-Identifier: BSD-3-Clause
#include "comm/calibrate/local_times.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dtype/pack/host/host_packer.hpp"

namespace halocline::comm::detail {

namespace {

using dtype::MemoryKind;

// A model holds times above 0 only, also if the clock is too coarse to see them.
constexpr double kLeastTime = 1e-9;

double less(double seconds, double part) {
  return std::max(seconds - part, kLeastTime);
}

std::vector<double> less(std::vector<double> times, double part) {
  for (auto& seconds : times) seconds = less(seconds, part);
  return times;
}

// Makes a trial of calls of `work`, one after the other.
template <class Work>
Trial trial_of(Work work) {
  return [work = std::move(work)](std::int64_t calls) {
    work();
    const auto start = steady_seconds();
    for (auto i = calls; i > 0; --i) work();
    return (steady_seconds() - start) / static_cast<double>(calls);
  };
}

// Returns value `i` of every layer.
std::vector<double> column(const std::vector<std::vector<double>>& layers, std::size_t i) {
  std::vector<double> out;
  for (const auto& layer : layers) out.push_back(layer[i]);
  return out;
}

// Reports layers that were not measured for lack of time.
void tell_of_end(const std::vector<std::int64_t>& bytes, std::size_t layers, const Effort& effort) {
  if (layers < bytes.size()) effort.cut(bytes[layers - 1], bytes.back());
}

template <class T>
std::vector<T> first(std::vector<T> values, std::size_t count) {
  values.resize(count);
  return values;
}

// Measures packing and unpacking of every shape, between `fields` and `packed`. Subtracts `part`
// seconds.
dtype::PackTimes measure_packer(const dtype::Packer& packer, std::byte* fields, std::byte* packed,
                                const Grid& grid, double part, const Effort& effort) {
  const auto& axes = grid.packs;
  std::vector<PackLayer> layers;
  for (const auto bytes : axes.bytes) layers.push_back(pack_layer(axes, bytes));
  const auto trials = [&](std::size_t i) {
    std::vector<Trial> out;
    for (const auto& shape : layers[i].shapes) {
      const auto plan = dtype::make_plan(*type_of(shape, field_bytes(grid.packs)));
      out.push_back(trial_of([&packer, plan, fields, packed] {
        packer.pack(plan, fields, 1, packed);
        packer.fence();
      }));
      out.push_back(trial_of([&packer, plan, fields, packed] {
        packer.unpack(plan, packed, fields, 1);
        packer.fence();
      }));
    }
    return out;
  };
  const auto growth = static_cast<double>(grid.bytes_growth);
  // The point before has the same blocks and fewer bytes.
  const auto lesser = [&](std::size_t i, std::size_t point) -> std::vector<Lesser> {
    if (i == 0) return {};
    const auto& shapes = layers[i].shape_at;
    const auto place = std::find(shapes.begin(), shapes.end(), point / 2) - shapes.begin();
    const auto shape = layers[i - 1].shape_at[static_cast<std::size_t>(place)];
    return {{i - 1, 2 * shape + point % 2,
             static_cast<double>(axes.bytes[i]) / static_cast<double>(axes.bytes[i - 1])}};
  };
  const auto [times, noisy] = measure({axes.bytes.size(), growth, trials, lesser}, effort.seconds,
                                      steady_seconds, effort.done);
  tell_of_end(axes.bytes, times.size(), effort);
  for (const auto& [layer, point] : noisy) {
    const auto& shape = layers[layer].shapes[point / 2];
    effort.noisy(dtype::text_of_bytes(shape.bytes) + " in blocks of " +
                 dtype::text_of_bytes(shape.block_bytes) + ", " +
                 dtype::text_of_bytes(shape.stride_bytes) + " apart" +
                 (point % 2 == 0 ? "" : " (unpacking)"));
  }
  auto measured = axes;
  measured.bytes.resize(times.size());
  const auto table = [&](std::size_t direction) {
    std::vector<double> seconds;
    for (std::size_t i = 0; i < times.size(); ++i)
      for (const auto shape : layers[i].shape_at)
        seconds.push_back(less(times[i][2 * shape + direction], part));
    return dtype::PackTable(measured, std::move(seconds), "calibration");
  };
  return {table(0), table(1)};
}

}  // namespace

void TouchedMemory::Free::operator()(std::byte* memory) const noexcept {
  std::free(memory);
}

TouchedMemory::TouchedMemory(dtype::ResourceCache* resources, MemoryKind kind, std::int64_t bytes) {
  constexpr std::size_t kPage = 4096;
  const auto size = (static_cast<std::size_t>(bytes) + kPage - 1) / kPage * kPage;
  if (kind == MemoryKind::host) {
    host_.reset(static_cast<std::byte*>(std::aligned_alloc(kPage, size)));
    if (!host_)
      throw EnvironmentError("no memory (" + std::to_string(size) +
                             " bytes to measure in): free some of this node");
  } else {
    buffer_ = resources->buffer(kind, size);
  }
  if (host_can_address(kind)) std::memset(data(), 1, size);
}

LaunchTimes measure_launch(dtype::ResourceCache& resources, const Effort& effort) {
  auto& device = resources.device();
  const auto stream = resources.stream();
  const std::array trials{trial_of([&] { device.synchronize(stream.get()); }), trial_of([&] {
                            device.launch_nothing(stream.get());
                            device.synchronize(stream.get());
                          })};
  const auto times = take_turns(trials, effort.seconds, steady_seconds);
  effort.done(trials.size());
  const auto synchronize = times[0].seconds;
  if (!times[0].settled) effort.noisy("synchronization");
  if (!times[1].settled) effort.noisy("launch");
  return {less(times[1].seconds, synchronize), std::max(synchronize, kLeastTime)};
}

CopyTimes measure_copies(dtype::ResourceCache& resources, const Grid& grid,
                         const LaunchTimes& launch, const Effort& effort) {
  auto& device = resources.device();
  const auto stream = resources.stream();
  const auto& sizes = grid.copy_bytes;
  const TouchedMemory there(&resources, MemoryKind::device, sizes.back());
  const TouchedMemory here(&resources, MemoryKind::pinned, sizes.back());
  const auto trials = [&](std::size_t i) {
    const auto copy = [&, bytes = static_cast<std::size_t>(sizes[i])](const TouchedMemory& to,
                                                                      const TouchedMemory& from) {
      return trial_of([&device, &stream, &to, &from, bytes] {
        device.copy(to.data(), from.data(), bytes, stream.get());
        device.synchronize(stream.get());
      });
    };
    return std::vector{copy(here, there), copy(there, here)};
  };
  const auto growth = static_cast<double>(grid.bytes_growth);
  const auto lesser = [&](std::size_t i, std::size_t point) -> std::vector<Lesser> {
    if (i == 0) return {};
    return {{i - 1, point, growth}};
  };
  const auto [found, noisy] =
      measure({sizes.size(), growth, trials, lesser}, effort.seconds, steady_seconds, effort.done);
  const auto& times = found;
  tell_of_end(sizes, times.size(), effort);
  for (const auto& [layer, point] : noisy)
    effort.noisy(dtype::text_of_bytes(sizes[layer]) +
                 (point == 0 ? " to the host" : " to the device"));
  const auto curve = [&](std::size_t direction) {
    return dtype::Curve(first(sizes, times.size()),
                        less(column(times, direction), launch.synchronize), "calibration");
  };
  return {curve(0), curve(1)};
}

dtype::PackTimes measure_packing(dtype::ResourceCache& resources, MemoryKind packed,
                                 const Grid& grid, const LaunchTimes& launch,
                                 const Effort& effort) {
  const auto stream = resources.stream();
  const auto packer = resources.device().make_packer(stream.get());
  const TouchedMemory fields(&resources, MemoryKind::device, field_bytes(grid.packs));
  const TouchedMemory bytes(&resources, packed, grid.packs.bytes.back());
  return measure_packer(*packer, fields.data(), bytes.data(), grid,
                        launch.launch + launch.synchronize, effort);
}

dtype::PackTimes measure_host_packing(const Grid& grid, const Effort& effort) {
  const TouchedMemory fields(nullptr, MemoryKind::host, field_bytes(grid.packs));
  const TouchedMemory bytes(nullptr, MemoryKind::host, grid.packs.bytes.back());
  return measure_packer(dtype::HostPacker(), fields.data(), bytes.data(), grid, 0, effort);
}

}  // namespace halocline::comm::detail
