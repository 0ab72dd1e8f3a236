// SPDX-License-Identifier: BSD-3-Clause
#include "comm/exchange/exchange_plan.hpp"

#include <algorithm>
#include <cstdio>
#include <tuple>

#include "comm/exchange/backend.hpp"
#include "dtype/pack/host/host_packer.hpp"
#include "dtype/support/mpi_check.hpp"
#include "dtype/support/narrow.hpp"

namespace halocline::comm {

namespace {

using detail::Piece;
using detail::Pieces;

const dtype::HostPacker kHostPacker;

// The pieces that carry data, in wire order. `what` is "send" or "receive".
Pieces in_wire_order(Pieces all, int ranks, const char* what) {
  Pieces pieces;
  for (auto& piece : all) {
    if (piece.count < 0)
      throw ConfigError(std::string("negative ") + what + " count (" + std::to_string(piece.count) +
                        "): a job's counts must be 0 or more");
    if (piece.count == 0) continue;
    if (piece.partner < 0 || piece.partner >= ranks)
      throw ConfigError(std::string("no such partner (") + what + " job names rank " +
                        std::to_string(piece.partner) + " of " + std::to_string(ranks) +
                        "): leave jobs without a partner out of the list");
    if (piece.type == MPI_DATATYPE_NULL)
      throw ConfigError(std::string("null datatype (") + what + " job for rank " +
                        std::to_string(piece.partner) + "): give every job an MPI datatype");
    MPI_Count size = 0;
    HALOCLINE_MPI(MPI_Type_size_x(piece.type, &size));
    piece.bytes = static_cast<std::int64_t>(size) * piece.count;
    if (piece.bytes > 0) pieces.push_back(piece);
  }
  const auto key = [](const Piece& piece) { return std::tie(piece.partner, piece.tag); };
  std::stable_sort(pieces.begin(), pieces.end(),
                   [&](const Piece& a, const Piece& b) { return key(a) < key(b); });
  const auto twin =
      std::adjacent_find(pieces.begin(), pieces.end(),
                         [&](const Piece& a, const Piece& b) { return key(a) == key(b); });
  if (twin != pieces.end())
    throw ConfigError(std::string("two ") + what + " jobs with one tag (tag " +
                      std::to_string(twin->tag) + ", partner " + std::to_string(twin->partner) +
                      "): make tags unique per partner");
  return pieces;
}

std::int64_t total_bytes(const Pieces& pieces) {
  std::int64_t sum = 0;
  for (const auto& piece : pieces) sum += piece.bytes;
  return sum;
}

// What a piece looks like from the other side.
struct Announcement {
  std::int64_t tag, bytes;
};

// Tells every partner what it will get. Returns the announcements of all partners, by partner.
// Collective.
std::vector<std::vector<Announcement>> announce(const Communicator& comm, const Pieces& sends) {
  const auto ranks = static_cast<std::size_t>(comm.size());
  std::vector<Announcement> out;
  std::vector<int> out_counts(ranks), in_counts(ranks), out_starts(ranks), in_starts(ranks);
  constexpr int kInts = 2;  // int64 per announcement
  for (const auto& piece : sends) {
    out.push_back({piece.tag, piece.bytes});
    out_counts[static_cast<std::size_t>(piece.partner)] += kInts;
  }
  HALOCLINE_MPI(
      MPI_Alltoall(out_counts.data(), 1, MPI_INT, in_counts.data(), 1, MPI_INT, comm.get()));
  for (std::size_t r = 1; r < ranks; ++r) {
    out_starts[r] = out_starts[r - 1] + out_counts[r - 1];
    in_starts[r] = in_starts[r - 1] + in_counts[r - 1];
  }
  std::vector<Announcement> in(
      static_cast<std::size_t>((in_starts.back() + in_counts.back()) / kInts));
  HALOCLINE_MPI(MPI_Alltoallv(out.data(), out_counts.data(), out_starts.data(), MPI_INT64_T,
                              in.data(), in_counts.data(), in_starts.data(), MPI_INT64_T,
                              comm.get()));
  std::vector<std::vector<Announcement>> by_partner(ranks);
  for (std::size_t r = 0; r < ranks; ++r)
    by_partner[r].assign(in.begin() + in_starts[r] / kInts,
                         in.begin() + (in_starts[r] + in_counts[r]) / kInts);
  return by_partner;
}

std::string describe(const Announcement& a) {
  return std::to_string(a.bytes) + " bytes with tag " + std::to_string(a.tag);
}

// Throws ConfigError unless every announcement has its piece on this rank, in the same order.
void check_expected(const Pieces& receives, const std::vector<std::vector<Announcement>>& announced,
                    int rank) {
  auto piece = receives.begin();
  for (int partner = 0; partner < static_cast<int>(announced.size()); ++partner) {
    const auto mismatch = [&](const std::string& sent, const std::string& expected) {
      throw ConfigError("exchange plans do not match (rank " + std::to_string(partner) + " sends " +
                        sent + ", rank " + std::to_string(rank) + " expects " + expected +
                        "): list the same messages, with the same tags and sizes, on both sides");
    };
    for (const auto& a : announced[static_cast<std::size_t>(partner)]) {
      if (piece == receives.end() || piece->partner != partner)
        mismatch(describe(a), "nothing more");
      if (piece->tag != a.tag || piece->bytes != a.bytes)
        mismatch(describe(a), describe({piece->tag, piece->bytes}));
      ++piece;
    }
    if (piece != receives.end() && piece->partner == partner)
      mismatch("nothing more", describe({piece->tag, piece->bytes}));
  }
}

// The least power of two for which no rank's buffers need counts or displacements beyond `limit`.
// Collective.
std::int64_t agree_on_unit(const Communicator& comm, const Pieces& sends, const Pieces& receives,
                           std::int64_t limit) {
  const auto bytes =
      std::max(total_bytes(sends), total_bytes(receives)) + comm.size() * detail::kMessageAlignment;
  std::int64_t unit = 1;
  while (bytes / unit + comm.size() + 1 > limit && unit <= bytes) unit *= 2;
  HALOCLINE_MPI(MPI_Allreduce(MPI_IN_PLACE, &unit, 1, MPI_INT64_T, MPI_MAX, comm.get()));
  return unit;
}

Traffic count_traffic(const Pieces& sends, int rank) {
  Traffic traffic;
  traffic.jobs = std::ssize(sends);
  int last_partner = rank;
  for (const auto& piece : sends) {
    (piece.partner == rank ? traffic.bytes_to_self : traffic.bytes_to_others) += piece.bytes;
    if (piece.partner != rank && piece.partner != last_partner) ++traffic.messages;
    last_partner = piece.partner;
  }
  return traffic;
}

}  // namespace

ExchangePlan::ExchangePlan(MPI_Comm parent, const std::vector<ExchangeJob>& jobs, Method method)
    : ExchangePlan(parent, jobs, method, Options{}) {}

ExchangePlan::ExchangePlan(MPI_Comm parent, const std::vector<ExchangeJob>& jobs, Method method,
                           const Options& options)
    : method_(method) {
  const auto comm = std::make_shared<const Communicator>(parent);
  Pieces sends, receives;
  collectively(comm->get(), [&] {
    Pieces out, in;
    for (const auto& job : jobs) {
      out.push_back({job.partner, job.send_tag, const_cast<void*>(job.send_buffer), job.send_count,
                     job.send_type, 0});
      in.push_back({job.partner, job.receive_tag, job.receive_buffer, job.receive_count,
                    job.receive_type, 0});
    }
    sends = in_wire_order(std::move(out), comm->size(), "send");
    receives = in_wire_order(std::move(in), comm->size(), "receive");
  });
  const auto announced = announce(*comm, sends);
  collectively(comm->get(), [&] { check_expected(receives, announced, comm->rank()); });
  traffic_ = count_traffic(sends, comm->rank());

  const auto limit = options.mpi_count_limit;
  const detail::CountUnits units{agree_on_unit(*comm, sends, receives, limit), limit};
  auto* resources = options.resources;
  collectively(comm->get(), [&] {
    if (resources == nullptr && dtype::current_device() != nullptr)
      resources = &dtype::current_resources();
  });
  transfer_ = detail::choose_transfer(*comm, method, sends, receives, options, resources);
  const auto& packer = options.packer != nullptr ? *options.packer : kHostPacker;
  Transport transport(transfer_, packer, resources);
  switch (method.exchange) {
    case Exchange::alltoallv:
    case Exchange::vendor_pack:
      collectively(comm->get(), [&] {
        const auto packing = method.exchange == Exchange::alltoallv ? detail::Packing::ours
                                                                    : detail::Packing::vendor;
        backend_ = detail::make_packed_exchange(comm, sends, receives, packing,
                                                std::move(transport), units, packed_by_mpi_);
      });
      break;
    case Exchange::shared:
      backend_ = detail::make_shared_exchange(comm, sends, receives, std::move(transport),
                                              resources->device());
      break;
    case Exchange::vendor_alltoallw:
      collectively(comm->get(), [&] {
        backend_ = detail::make_alltoallw_exchange(comm, sends, receives,
                                                   transfer_ == dtype::Transfer::device);
      });
      break;
  }
}

ExchangePlan::ExchangePlan(ExchangePlan&&) noexcept = default;
ExchangePlan& ExchangePlan::operator=(ExchangePlan&&) noexcept = default;
ExchangePlan::~ExchangePlan() = default;

PendingExchange ExchangePlan::start() {
  if (backend_->in_flight)
    throw ConfigError("exchange started twice (the plan has one in flight): finish it first");
  backend_->begin();
  backend_->in_flight = true;
  return PendingExchange(backend_.get());
}

PendingExchange::~PendingExchange() {
  if (backend_ == nullptr) return;
  try {
    finish();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "halocline: an exchange could not be finished: %s\n", error.what());
  }
}

PhaseTimes PendingExchange::finish() {
  if (backend_ == nullptr)
    throw ConfigError("exchange finished twice (or moved from): call finish() once per start()");
  auto& backend = *std::exchange(backend_, nullptr);
  backend.in_flight = false;
  return backend.end();
}

}  // namespace halocline::comm
