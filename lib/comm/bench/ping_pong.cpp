// SPDX-License-Identifier: BSD-3-Clause
#include "ping_pong.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "dtype/bench/memory.hpp"
#include "dtype/pack/block_list.hpp"
#include "dtype/pack/host/host_packer.hpp"
#include "support/mpi_check.hpp"

namespace halocline::comm::bench {

namespace {

std::size_t size(std::int64_t bytes) {
  return static_cast<std::size_t>(bytes);
}

}  // namespace

MessageMemory::MessageMemory(const Part& part, dtype::ResourceCache* resources,
                             dtype::MemoryKind kind)
    : type_(dtype::make_datatype(*part.type)),
      plan_(dtype::make_plan(*part.type)),
      count_(part.count),
      bytes_(plan_.packed_bytes(part.count)),
      device_(resources != nullptr ? &resources->device() : nullptr) {
  blocks_ = dtype::count_blocks(plan_, count_, 0, bytes_);
  const auto& bounds = plan_.bounds();
  const auto data = bounds.extent * (count_ - 1) + bounds.true_lb + bounds.true_extent;
  span_ = (data + 2 * kGuard + 7) / 8 * 8;
  out_ = allocate(resources, kind);
  in_ = allocate(resources, kind);
  out_host_.resize(size(span_));
  gaps_host_.resize(size(span_));
  dtype::bench::fill_with_noise(out_host_.data(), out_host_.size(), 1);
  dtype::bench::fill_with_noise(gaps_host_.data(), gaps_host_.size(), 2);
}

MessageMemory::Array MessageMemory::allocate(dtype::ResourceCache* resources,
                                             dtype::MemoryKind kind) const {
  Array out;
  if (resources != nullptr) {
    out.device = resources->buffer(kind, size(span_));
    out.data = out.device.data();
  } else {
    out.host = std::make_unique<std::byte[]>(size(span_));
    out.data = out.host.get();
  }
  return out;
}

void MessageMemory::copy(void* to, const void* from) const {
  if (device_ == nullptr) {
    std::memcpy(to, from, size(span_));
    return;
  }
  device_->copy(to, from, size(span_), nullptr);
  device_->synchronize(nullptr);
}

void MessageMemory::reset() const {
  copy(out_.data, out_host_.data());
  copy(in_.data, gaps_host_.data());
}

bool MessageMemory::is_right() const {
  std::vector<std::byte> found(size(span_)), packed(size(bytes_));
  copy(found.data(), in_.data);
  auto expected = gaps_host_;
  const dtype::HostPacker packer;
  packer.pack(plan_, out_host_.data() + kGuard, count_, packed.data());
  packer.unpack(plan_, packed.data(), expected.data() + kGuard, count_);
  return found == expected;
}

PingPong::PingPong(MPI_Comm comm) : comm_(comm) {
  HALOCLINE_MPI(MPI_Comm_rank(comm, &rank_));
}

void PingPong::exchange(const Way& way) const {
  if (rank_ == 0) {
    way.send();
    way.receive();
  } else {
    way.receive();
    way.send();
  }
}

bool PingPong::is_right(const Way& way) const {
  if (way.memory == nullptr) return true;
  // Warms up before the check: a way that chooses by experience is then checked as it is measured.
  constexpr int kFirstTimes = 70;
  way.memory->reset();
  for (int i = 0; i < kFirstTimes; ++i) exchange(way);
  way.memory->reset();
  HALOCLINE_MPI(MPI_Barrier(comm_));
  exchange(way);
  int right = way.memory->is_right() ? 1 : 0;
  HALOCLINE_MPI(MPI_Allreduce(MPI_IN_PLACE, &right, 1, MPI_INT, MPI_MIN, comm_));
  return right == 1;
}

// Exchanges what rank 0 orders: a way and a number of calls. An order costs a broadcast for each
// sample.
void PingPong::serve(const std::vector<Way>& ways) const {
  while (true) {
    std::array<std::int64_t, 2> order{};
    HALOCLINE_MPI(MPI_Bcast(order.data(), 2, MPI_INT64_T, 0, comm_));
    const auto [way, calls] = order;
    if (way < 0) return;
    for (std::int64_t i = 0; i < calls; ++i) exchange(ways[size(way)]);
  }
}

std::vector<Contender> PingPong::measure(const std::vector<Way>& ways, const Effort& effort,
                                         Row& row) const {
  std::vector<Way> right;
  for (const auto& way : ways) {
    if (is_right(way))
      right.push_back(way);
    else
      row.add_note(way.name + " arrives wrong");
  }
  if (rank_ != 0) {
    serve(right);
    return {};
  }
  const auto order = [&](std::int64_t way, std::int64_t calls) {
    std::array both{way, calls};
    HALOCLINE_MPI(MPI_Bcast(both.data(), 2, MPI_INT64_T, 0, comm_));
  };
  std::vector<Contender> all;
  for (std::size_t i = 0; i < right.size(); ++i)
    all.emplace_back(right[i].name, [&, i](std::int64_t calls) {
      order(static_cast<std::int64_t>(i), calls);
      for (std::int64_t call = 0; call < calls; ++call) exchange(right[i]);
    });
  dtype::bench::take_turns(all, effort);
  order(-1, 0);
  for (const auto& contender : all) row.add_times(contender.name(), contender.ns(), 0.5);
  return all;
}

}  // namespace halocline::comm::bench
