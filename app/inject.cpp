// SPDX-License-Identifier: BSD-3-Clause
#include "inject.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "comm/mpi/communicator.hpp"
#include "environment.hpp"
#include "support/mpi_check.hpp"
#include "support/narrow.hpp"

namespace halocline::app {

namespace {

int packed_size(const comm::ExchangeJob& job) {
  int size = 0;
  HALOCLINE_MPI(MPI_Type_size(job.receive_type, &size));
  return checked_int(size * job.receive_count, "size of the message to spoil");
}

// Returns the bytes of the ghosts that a job fills, as MPI packs them.
std::vector<std::byte> read(const comm::ExchangeJob& job, MPI_Comm comm) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(packed_size(job)));
  int position = 0;
  HALOCLINE_MPI(MPI_Pack(job.receive_buffer, static_cast<int>(job.receive_count), job.receive_type,
                         bytes.data(), static_cast<int>(bytes.size()), &position, comm));
  return bytes;
}

void write(const comm::ExchangeJob& job, const std::vector<std::byte>& bytes, MPI_Comm comm) {
  int position = 0;
  HALOCLINE_MPI(MPI_Unpack(bytes.data(), static_cast<int>(bytes.size()), &position,
                           job.receive_buffer, static_cast<int>(job.receive_count),
                           job.receive_type, comm));
}

}  // namespace

FaultInjector::FaultInjector(Inject kind, std::int64_t from,
                             const std::vector<comm::ExchangeJob>& jobs, MPI_Comm comm)
    : kind_(kind), from_(from), comm_(comm) {
  if (kind == Inject::none || rank_of(comm) != 0) return;
  if (jobs.empty())
    throw ConfigError(
        "nothing to inject a fault into (rank 0 receives no message): use more ranks or periodic = "
        "true");
  // A real message is better than a copy from the rank to itself.
  const auto from_others = std::find_if(
      jobs.begin(), jobs.end(), [](const comm::ExchangeJob& job) { return job.partner != 0; });
  victim_ = from_others != jobs.end() ? &*from_others : &jobs.front();
  for (const auto& job : jobs)
    if (&job != victim_ && packed_size(job) == packed_size(*victim_)) twins_.push_back(&job);
}

void FaultInjector::around(std::int64_t number, const std::function<void()>& exchange) const {
  if (kind_ == Inject::none) return exchange();
  std::vector<std::byte> before;
  comm::collectively(comm_, [&] {
    if (victim_ != nullptr) before = read(*victim_, comm_);
  });
  exchange();
  comm::collectively(comm_, [&] {
    if (victim_ == nullptr) return;
    auto after = read(*victim_, comm_);
    if (number >= from_) spoil(before, after);
    last_ = std::move(after);
  });
}

void FaultInjector::spoil(const std::vector<std::byte>& before,
                          std::vector<std::byte> after) const {
  if (kind_ == Inject::drop) {
    write(*victim_, before, comm_);
  } else if (kind_ == Inject::stale) {
    if (!last_.empty()) write(*victim_, last_, comm_);
  } else if (kind_ == Inject::flip) {
    after[after.size() / 2] ^= std::byte{1};
    write(*victim_, after, comm_);
  } else {
    // On small grids some regions hold the same points. Swapping them would change nothing.
    const auto twin = std::find_if(twins_.begin(), twins_.end(),
                                   [&](const auto* job) { return read(*job, comm_) != after; });
    if (twin == twins_.end())
      throw ConfigError(
          "nothing to swap (no two different messages of one size reach rank 0): use --inject drop "
          "or flip");
    write(*victim_, read(**twin, comm_), comm_);
    write(**twin, after, comm_);
  }
}

}  // namespace halocline::app
