// SPDX-License-Identifier: BSD-3-Clause
// Orders pieces, checks that both sides of each message match, and counts traffic.
#include "comm/exchange/wire_order.hpp"

#include <string>
#include <tuple>

#include "comm/mpi/null_buffer.hpp"
#include "support/mpi_check.hpp"
#include "support/narrow.hpp"

namespace halocline::comm {

Traffic& Traffic::operator+=(const Traffic& more) {
  bytes_to_others += more.bytes_to_others;
  bytes_to_self += more.bytes_to_self;
  jobs += more.jobs;
  messages += more.messages;
  bytes_off_node += more.bytes_off_node;
  messages_off_node += more.messages_off_node;
  return *this;
}

}  // namespace halocline::comm

namespace halocline::comm::detail {

namespace {

std::int64_t total_bytes(const Pieces& pieces) {
  std::int64_t sum = 0;
  for (const auto& piece : pieces) sum = checked_add(sum, piece.bytes);
  return sum;
}

// Returns the pieces that carry data, in wire order. `what` is "send" or "receive".
Pieces in_wire_order(Pieces all, int ranks, const char* what) {
  Pieces pieces;
  for (auto& piece : all) {
    if (piece.count < 0)
      throw ConfigError(std::string("negative ") + what + " count (" + std::to_string(piece.count) +
                        "): a job's counts must be 0 or more");
    if (piece.count == 0 || piece.partner == MPI_PROC_NULL) continue;
    if (piece.partner < 0 || piece.partner >= ranks)
      throw ConfigError(std::string("no such partner (") + what + " job names rank " +
                        std::to_string(piece.partner) + " of " + std::to_string(ranks) +
                        "): name MPI_PROC_NULL where there is no partner");
    if (piece.round < 0)
      throw ConfigError("negative round (" + std::to_string(piece.round) + " of a " + what +
                        " job): count rounds from 0");
    if (piece.type == MPI_DATATYPE_NULL)
      throw ConfigError(std::string("null datatype (") + what + " job for rank " +
                        std::to_string(piece.partner) + "): give every job an MPI datatype");
    MPI_Count size = 0;
    HALOCLINE_MPI(MPI_Type_size_x(piece.type, &size));
    if (size < 0)
      throw ConfigError(std::string("no datatype (MPI knows no size of that of a ") + what +
                        " job for rank " + std::to_string(piece.partner) +
                        "): give one that is made and not freed");
    piece.bytes = checked_multiply(size, piece.count);
    if (piece.bytes == 0) continue;
    if (is_null_by_mistake(piece.buffer, piece.type))
      throw ConfigError(std::string("null buffer (") + what + " job for rank " +
                        std::to_string(piece.partner) + "): give every job with data a buffer");
    pieces.push_back(piece);
  }
  const auto key = [](const Piece& p) { return std::tie(p.partner, p.round, p.message, p.tag); };
  std::stable_sort(pieces.begin(), pieces.end(),
                   [&](const Piece& a, const Piece& b) { return key(a) < key(b); });
  const auto twin =
      std::adjacent_find(pieces.begin(), pieces.end(),
                         [&](const Piece& a, const Piece& b) { return key(a) == key(b); });
  if (twin != pieces.end())
    throw ConfigError(std::string("two ") + what + " jobs with one tag (tag " +
                      std::to_string(twin->tag) + ", partner " + std::to_string(twin->partner) +
                      "): make tags unique per partner and round");
  total_bytes(pieces);  // throws if there are too many
  return pieces;
}

// Describes a piece to the other side of its message.
struct Announcement {
  std::int64_t round, message, tag, bytes;
  bool operator==(const Announcement&) const = default;
};

Announcement announcement_of(const Piece& piece) {
  return {piece.round, piece.message, piece.tag, piece.bytes};
}

// Announces to every partner what it will get. Returns the announcements of all partners, by
// partner. Collective.
std::vector<std::vector<Announcement>> announce(const Communicator& comm, const Pieces& sends) {
  const auto ranks = static_cast<std::size_t>(comm.size());
  std::vector<Announcement> out;
  std::vector<int> out_counts(ranks), in_counts(ranks), out_starts(ranks), in_starts(ranks);
  constexpr int kInts = sizeof(Announcement) / sizeof(std::int64_t);
  for (const auto& piece : sends) {
    out.push_back(announcement_of(piece));
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
  return std::to_string(a.bytes) + " bytes with tag " + std::to_string(a.tag) +
         (a.round > 0 ? " in round " + std::to_string(a.round) : "") +
         (a.message > 0 ? " in message " + std::to_string(a.message) : "");
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
      if (announcement_of(*piece) != a) mismatch(describe(a), describe(announcement_of(*piece)));
      ++piece;
    }
    if (piece != receives.end() && piece->partner == partner)
      mismatch("nothing more", describe(announcement_of(*piece)));
  }
}

}  // namespace

std::vector<int> partners_of(const Pieces& pieces) {
  std::vector<int> out;
  for (const auto& piece : pieces)
    if (out.empty() || out.back() != piece.partner) out.push_back(piece.partner);
  return out;
}

SendsAndReceives sides_of(const std::vector<ExchangeJob>& jobs, int ranks,
                          const std::function<int(int)>& message_of_tag) {
  Pieces out, in;
  const auto message = [&](int tag) { return message_of_tag ? message_of_tag(tag) : 0; };
  for (const auto& job : jobs) {
    out.push_back({job.partner, job.round, message(job.send_tag), job.send_tag,
                   const_cast<void*>(job.send_buffer), job.send_count, job.send_type, 0});
    in.push_back({job.partner, job.round, message(job.receive_tag), job.receive_tag,
                  job.receive_buffer, job.receive_count, job.receive_type, 0});
  }
  return {in_wire_order(std::move(out), ranks, "send"),
          in_wire_order(std::move(in), ranks, "receive")};
}

void require_match(const Communicator& comm, const SendsAndReceives& sides) {
  const auto announced = announce(comm, sides.sends);
  collectively(comm.get(), [&] { check_expected(sides.receives, announced, comm.rank()); });
}

Traffic count_traffic(const Pieces& sends, const NodeHierarchy& nodes) {
  Traffic traffic;
  traffic.jobs = std::ssize(sends);
  const Piece* before = nullptr;
  for (const auto& piece : sends) {
    const bool to_self = piece.partner == nodes.rank();
    const bool off_node = !nodes.same_node(piece.partner);
    const bool continues = before != nullptr && same_message(*before, piece);
    (to_self ? traffic.bytes_to_self : traffic.bytes_to_others) += piece.bytes;
    if (off_node) traffic.bytes_off_node += piece.bytes;
    if (!to_self && !continues) ++traffic.messages;
    if (off_node && !continues) ++traffic.messages_off_node;
    before = &piece;
  }
  return traffic;
}

Pieces in_chunks(const Pieces& pieces, const std::function<bool(const Piece&)>& divides,
                 std::int64_t chunk_bytes) {
  auto out = pieces;
  int message = 0;
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const bool is_full = divides(pieces[i]) && bytes >= chunk_bytes;
    if (i > 0 && (is_full || !same_message(pieces[i - 1], pieces[i]))) {
      ++message;
      bytes = 0;
    }
    out[i].message = message;
    bytes += out[i].bytes;
  }
  return out;
}

int count_rounds(const Communicator& comm, const SendsAndReceives& sides) {
  int rounds = 1;
  for (const auto* pieces : {&sides.sends, &sides.receives})
    for (const auto& piece : *pieces) rounds = std::max(rounds, piece.round + 1);
  HALOCLINE_MPI(MPI_Allreduce(MPI_IN_PLACE, &rounds, 1, MPI_INT, MPI_MAX, comm.get()));
  return rounds;
}

CountUnits agree_on_units(const Communicator& comm, const SendsAndReceives& sides,
                          std::int64_t limit) {
  // There are at most as many messages as pieces. Each message may need padding and one unit more.
  const auto messages = std::max(std::ssize(sides.sends), std::ssize(sides.receives));
  const auto bytes = std::max(total_bytes(sides.sends), total_bytes(sides.receives)) +
                     messages * kMessageAlignment;
  std::int64_t unit = 1;
  while (bytes / unit + messages + 1 > limit && unit <= bytes) unit *= 2;
  HALOCLINE_MPI(MPI_Allreduce(MPI_IN_PLACE, &unit, 1, MPI_INT64_T, MPI_MAX, comm.get()));
  return {unit, limit};
}

}  // namespace halocline::comm::detail
