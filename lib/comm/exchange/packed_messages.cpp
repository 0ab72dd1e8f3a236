// SPDX-License-Identifier: BSD-3-Clause
// Lays out messages in their buffer, and packs and unpacks them in parts.
#include "comm/exchange/packed_messages.hpp"

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "comm/messages/planned_buffer.hpp"
#include "support/contract.hpp"
#include "support/mpi_check.hpp"
#include "support/narrow.hpp"

namespace halocline::comm::detail {

namespace {

std::int64_t round_up(std::int64_t value, std::int64_t to) {
  return (value + to - 1) / to * to;
}

// Throws ConfigError unless the transport packs from the host's memory, where MPI can pack, too.
void require_host(const Transport& transport, const TypePlans& plans) {
  if (transport.transfer() == dtype::Transfer::host) return;
  throw ConfigError("a datatype is packed by MPI alone (" + plans.reasons().back() +
                    "): keep its data in memory of the host");
}

}  // namespace

const dtype::PackPlan* TypePlans::find(MPI_Datatype type) {
  auto found = plans_.find(type);
  if (found == plans_.end()) {
    found = plans_.emplace(type, dtype::make_plan(type)).first;
    const auto* reason = std::get_if<UnsupportedDatatype>(&found->second);
    if (reason != nullptr &&
        std::find(reasons_.begin(), reasons_.end(), reason->what()) == reasons_.end())
      reasons_.emplace_back(reason->what());
  }
  return std::get_if<dtype::PackPlan>(&found->second);
}

Span span_of(const Piece& piece, const dtype::PackPlan& plan) {
  const auto& bounds = plan.bounds();
  // With a negative extent, the last instance begins lowest.
  const auto others = bounds.extent * (piece.count - 1);
  const auto distance = bounds.true_lb + std::min<std::int64_t>(others, 0);
  return {byte_at(piece.buffer, distance), distance, bounds.true_extent + std::abs(others)};
}

PieceByMpi::PieceByMpi(const Piece& piece, std::byte* packed, MPI_Comm comm)
    : piece_(piece), packed_(packed), comm_(comm) {
  // The user may free the type, and need not have committed it.
  MPI_Datatype own = MPI_DATATYPE_NULL;
  HALOCLINE_MPI(MPI_Type_dup(piece.type, &own));
  type_ = dtype::Datatype(own);
  HALOCLINE_MPI(MPI_Type_commit(&own));
  // MPI_Pack counts bytes and instances in int, and may add a header. No MPI we know adds one
  // between equal machines.
  int packed_size = 0;
  HALOCLINE_MPI(MPI_Pack_size(checked_int(piece.count, "count of a job that MPI packs"), own, comm,
                              &packed_size));
  if (packed_size != checked_int(piece.bytes, "size in bytes of a job that MPI packs"))
    throw ConfigError(
        "MPI_Pack needs " + std::to_string(packed_size) + " bytes for " +
        std::to_string(piece.bytes) +
        " (this MPI does not pack in native form): use another method or another description");
}

void PieceByMpi::pack() const {
  int position = 0;
  HALOCLINE_MPI(MPI_Pack(piece_.buffer, static_cast<int>(piece_.count), type_.get(), packed_,
                         static_cast<int>(piece_.bytes), &position, comm_));
}

void PieceByMpi::unpack() const {
  int position = 0;
  HALOCLINE_MPI(MPI_Unpack(packed_, static_cast<int>(piece_.bytes), &position, piece_.buffer,
                           static_cast<int>(piece_.count), type_.get(), comm_));
}

PackedMessages::PackedMessages(const Communicator& comm, const Pieces& pieces, Role role,
                               Packing packing, const Transport& transport, Parts parts,
                               const CountUnits& units, TypePlans& plans)
    : role_(role), unit_bytes_(units.bytes) {
  buffer_ = transport.message(static_cast<std::size_t>(lay_out(pieces, units)));
  const auto part_of = divide(pieces, parts);
  std::vector<std::vector<dtype::PackJob>> jobs(parts_.size());
  auto message = messages_.begin();
  std::int64_t next = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const auto& piece = pieces[i];
    if (i > 0 && !same_message(pieces[i - 1], piece)) ++message;
    if (i == 0 || !same_message(pieces[i - 1], piece)) next = message->displacement * unit_bytes_;
    if (const auto* plan = packing == Packing::ours ? plans.find(piece.type) : nullptr) {
      jobs[part_of[i]].push_back({*plan, piece.buffer, piece.count, next});
    } else {
      if (packing == Packing::ours) require_host(transport, plans);
      parts_[part_of[i]].by_mpi.emplace_back(piece, buffer_.packed() + next, comm.get());
    }
    next += piece.bytes;
    parts_[part_of[i]].extent.end = next - message->displacement * unit_bytes_;
  }
  // The copy of a staged transport is that of the whole buffer.
  HALOCLINE_EXPECT(parts_.size() <= 1 || transport.transfer() != dtype::Transfer::staged);
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    auto& part = parts_[i];
    part.plan = dtype::FusedPlan(jobs[i]);
    transport.packer().prepare(part.plan);
    part.ours = role == Role::sender ? transport.packing(part.plan, buffer_)
                                     : transport.unpacking(part.plan, buffer_);
  }
}

// Places the messages in the order of the partners. Returns the bytes of all messages.
std::int64_t PackedMessages::lay_out(const Pieces& pieces, const CountUnits& units) {
  const auto in_units = [&](std::int64_t bytes) {
    return checked_int(bytes / units.bytes, "message size or displacement", units.limit);
  };
  const auto align = std::max(units.bytes, kMessageAlignment);
  std::int64_t end = 0;
  for (auto first = pieces.begin(); first != pieces.end();) {
    const auto last =
        std::find_if(first, pieces.end(), [&](const Piece& p) { return !same_message(p, *first); });
    const auto begin = round_up(end, align);
    std::int64_t bytes = 0;
    std::for_each(first, last, [&](const Piece& piece) { bytes += piece.bytes; });
    const auto size = round_up(bytes, units.bytes);
    end = begin + size;
    const bool follows = !messages_.empty() && messages_.back().partner == first->partner;
    messages_.push_back(
        {first->partner, follows ? messages_.back().tag + 1 : 0, in_units(begin), in_units(size)});
    first = last;
  }
  return end;
}

// Returns the number of the part of each piece. With Parts::one, there is a part even without
// pieces.
std::vector<std::size_t> PackedMessages::divide(const Pieces& pieces, Parts parts) {
  std::vector<std::size_t> out;
  if (parts == Parts::one) parts_.emplace_back().extent = {0, messages_.size(), 0};
  last_parts_.resize(messages_.size());
  std::size_t message = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const bool is_new = i == 0 || !same_message(pieces[i - 1], pieces[i]);
    if (i > 0 && is_new) ++message;
    if (parts == Parts::each_piece || (parts == Parts::each_message && is_new))
      parts_.emplace_back().extent = {message, message + 1, 0};
    last_parts_[message] = parts_.size() - 1;
    out.push_back(parts_.size() - 1);
  }
  return out;
}

void PackedMessages::start(std::size_t i) {
  auto& part = parts_[i];
  part.ours.start();
  for (const auto& piece : part.by_mpi) role_ == Role::sender ? piece.pack() : piece.unpack();
}

SelfCopies::SelfCopies(const Communicator& comm, const Pieces& sends, const Pieces& receives,
                       const Transport& transport, TypePlans& plans)
    : transport_(transport) {
  std::vector<dtype::CopyJob> jobs;
  std::vector<std::pair<const Piece*, const Piece*>> by_mpi;
  std::int64_t bytes = 0;
  auto to = receives.begin();
  for (const auto& from : sends) {
    if (from.partner != comm.rank()) continue;
    to = std::find_if(to, receives.end(), [&](const Piece& p) { return p.partner == comm.rank(); });
    const auto *source = plans.find(from.type), *destination = plans.find(to->type);
    if (source != nullptr && destination != nullptr) {
      jobs.push_back({*source, from.buffer, from.count, *destination, to->buffer, to->count});
    } else {
      require_host(transport, plans);
      by_mpi.emplace_back(&from, &*to);
      bytes += from.bytes;
    }
    ++to;
  }
  packed_.resize(static_cast<std::size_t>(bytes));
  auto* next = packed_.data();
  for (const auto& [source, destination] : by_mpi) {
    by_mpi_.push_back(
        {PieceByMpi(*source, next, comm.get()), PieceByMpi(*destination, next, comm.get())});
    next += source->bytes;
  }
  plan_ = dtype::CopyPlan(jobs);
  transport.packer().prepare(plan_);
}

void SelfCopies::start() const {
  transport_.packer().copy(plan_);
  for (const auto& [from, to] : by_mpi_) {
    from.pack();
    to.unpack();
  }
}

Pieces without_own(const Pieces& pieces, int rank) {
  Pieces out;
  std::copy_if(pieces.begin(), pieces.end(), std::back_inserter(out),
               [&](const Piece& piece) { return piece.partner != rank; });
  return out;
}

dtype::Datatype unit_type(const CountUnits& units, MPI_Datatype of) {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  HALOCLINE_MPI(MPI_Type_contiguous(checked_int(units.bytes, "message unit"), of, &type));
  dtype::Datatype out(type);
  HALOCLINE_MPI(MPI_Type_commit(&type));
  return out;
}

}  // namespace halocline::comm::detail
