// SPDX-License-Identifier: BSD-3-Clause
#include "ways.hpp"

#include <algorithm>
#include <cstring>

#include "comm/calibrate/ping_pong.hpp"
#include "dtype/bench/memory.hpp"
#include "dtype/pack/block_list.hpp"
#include "dtype/pack/host/host_packer.hpp"
#include "support/mpi_check.hpp"

namespace halocline::comm::bench {

namespace {

std::size_t size(std::int64_t bytes) {
  return static_cast<std::size_t>(bytes);
}

// Returns a rank's part of a message there and back.
detail::PingPong::Trip trip_of(const Way& way, bool first) {
  return first ? [&way] { way.send(), way.receive(); }
               : detail::PingPong::Trip([&way] { way.receive(), way.send(); });
}

bool is_right(MPI_Comm comm, const Way& way) {
  if (way.memory == nullptr) return true;
  int rank = 0;
  HALOCLINE_MPI(MPI_Comm_rank(comm, &rank));
  const auto trip = trip_of(way, rank == 0);
  int right = 1;
  for (int i = 0; i < 2; ++i) {  // the first message may take another path than all later ones
    way.memory->reset();
    trip();
    if (!way.memory->is_right()) right = 0;
  }
  HALOCLINE_MPI(MPI_Allreduce(MPI_IN_PLACE, &right, 1, MPI_INT, MPI_MIN, comm));
  return right == 1;
}

}  // namespace

MessageArrays::MessageArrays(const Part& part, dtype::ResourceCache* resources,
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

MessageArrays::Array MessageArrays::allocate(dtype::ResourceCache* resources,
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

void MessageArrays::copy(void* to, const void* from) const {
  if (device_ == nullptr) {
    std::memcpy(to, from, size(span_));
    return;
  }
  device_->copy(to, from, size(span_), nullptr);
  device_->synchronize(nullptr);
}

void MessageArrays::reset() const {
  copy(out_.data, out_host_.data());
  copy(in_.data, gaps_host_.data());
}

bool MessageArrays::is_right() const {
  std::vector<std::byte> found(size(span_)), packed(size(bytes_));
  copy(found.data(), in_.data);
  auto expected = gaps_host_;
  const dtype::HostPacker packer;
  packer.pack(plan_, out_host_.data() + kGuard, count_, packed.data());
  packer.unpack(plan_, packed.data(), expected.data() + kGuard, count_);
  return found == expected;
}

std::vector<Contender> measure_ways(MPI_Comm comm, const std::vector<Way>& ways,
                                    const Effort& effort, Row& row) {
  int rank = 0;
  HALOCLINE_MPI(MPI_Comm_rank(comm, &rank));
  std::vector<Way> right;
  for (const auto& way : ways) {
    if (is_right(comm, way))
      right.push_back(way);
    else
      row.add_note(way.name + " arrives wrong");
  }
  detail::PingPong pair(comm, 1 - rank, [&](const detail::PingPong::What& what) {
    return trip_of(right[size(what[0])], rank == 0);
  });
  if (rank != 0) {
    pair.follow();
    return {};
  }
  std::vector<Contender> all;
  for (std::int64_t i = 0; i < std::ssize(right); ++i)
    all.emplace_back(right[size(i)].name,
                     [&pair, i](std::int64_t calls) { pair.lead({i}, calls); });
  dtype::bench::take_turns(all, effort);
  pair.end();
  for (const auto& contender : all) row.add_times(contender.name(), contender.ns(), 0.5);
  return all;
}

}  // namespace halocline::comm::bench
