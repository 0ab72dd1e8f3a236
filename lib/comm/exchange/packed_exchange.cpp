// SPDX-License-Identifier: BSD-3-Clause
// Pack, MPI_Alltoallv, unpack: with our plans (method alltoallv) or with MPI_Pack (method
// vendor-pack).
#include <algorithm>
#include <map>
#include <utility>

#include "comm/exchange/backend.hpp"
#include "dtype/datatype.hpp"
#include "dtype/pack/fused_plan.hpp"
#include "dtype/support/mpi_check.hpp"
#include "dtype/support/narrow.hpp"

namespace halocline::comm::detail {

namespace {

/// A piece that MPI packs, and its place in the message buffer.
struct VendorPiece {
  Piece piece;
  std::int64_t offset;
  dtype::Datatype type;
};

/// Pieces that are packed into, or unpacked from, one message buffer together.
struct PackedPieces {
  dtype::FusedPlan fused;
  std::vector<VendorPiece> by_mpi;
};

/// All messages that leave or reach this rank, in one buffer; counts and displacements in units.
/// What stays on the rank and what goes through MPI are apart.
struct MessageBuffer {
  PackedPieces own, others;
  std::vector<std::byte> bytes;
  std::vector<int> counts, displacements;
};

class PackedExchange final : public Backend {
 public:
  PackedExchange(std::shared_ptr<const Communicator> comm, const Pieces& sends,
                 const Pieces& receives, Packing packing, const dtype::Packer& packer,
                 const CountUnits& units, std::vector<std::string>& packed_by_mpi)
      : comm_(std::move(comm)), packing_(packing), packer_(&packer) {
    MPI_Datatype type = MPI_DATATYPE_NULL;
    HALOCLINE_MPI(MPI_Type_contiguous(checked_int(units.bytes, "message unit"),
                                      packing == Packing::ours ? MPI_BYTE : MPI_PACKED, &type));
    unit_type_ = dtype::Datatype(type);
    HALOCLINE_MPI(MPI_Type_commit(&type));
    PlanCache plans;
    out_ = lay_out(sends, Side::send, units, plans, packed_by_mpi);
    in_ = lay_out(receives, Side::receive, units, plans, packed_by_mpi);
  }

  void begin() override {
    const double start = MPI_Wtime();
    pack(out_.own, out_.bytes.data());
    pack(out_.others, out_.bytes.data());
    packer_->fence();
    const double packed = MPI_Wtime();
    HALOCLINE_MPI(MPI_Alltoallv(out_.bytes.data(), out_.counts.data(), out_.displacements.data(),
                                unit_type_.get(), in_.bytes.data(), in_.counts.data(),
                                in_.displacements.data(), unit_type_.get(), comm_->get()));
    times_.pack = packed - start;
    times_.transfer = MPI_Wtime() - packed;
  }

  PhaseTimes end() override {
    const double start = MPI_Wtime();
    unpack(in_.own, out_.bytes.data());  // from where it was packed
    unpack(in_.others, in_.bytes.data());
    packer_->fence();
    times_.unpack = MPI_Wtime() - start;
    return times_;
  }

 private:
  bool stays_here(const Piece& piece) const {
    return packing_ == Packing::ours && piece.partner == comm_->rank();
  }

  // Fields share their types: each is planned once.
  using PlanCache = std::map<MPI_Datatype, Result<dtype::PackPlan>>;
  enum class Side { send, receive };

  // Messages stand in the order of the partners. The rank's own one comes first where it stays
  // here, at the same offsets on both sides, and takes room on the sending side alone.
  MessageBuffer lay_out(const Pieces& pieces, Side which, const CountUnits& units, PlanCache& plans,
                        std::vector<std::string>& packed_by_mpi) const {
    const auto ranks = static_cast<std::size_t>(comm_->size());
    MessageBuffer side{.own = {},
                       .others = {},
                       .bytes = {},
                       .counts = std::vector<int>(ranks),
                       .displacements = std::vector<int>(ranks)};
    std::vector<dtype::PackJob> jobs;
    std::int64_t end = 0;
    const auto place = [&](const Piece& piece, PackedPieces& pieces_here) {
      if (const auto* plan = plan_of(piece, plans, packed_by_mpi))
        jobs.push_back({*plan, piece.buffer, piece.count, end});
      else
        pieces_here.by_mpi.push_back({piece, end, vendor_type(piece)});
      end += piece.bytes;
    };
    const auto pad = [&] { end = (end + units.bytes - 1) / units.bytes * units.bytes; };
    const auto in_units = [&](std::int64_t bytes) {
      return checked_int(bytes / units.bytes, "message size or displacement", units.limit);
    };

    for (const auto& piece : pieces)
      if (stays_here(piece)) place(piece, side.own);
    side.own.fused = dtype::FusedPlan(std::exchange(jobs, {}));
    pad();
    if (which == Side::receive) end = 0;
    for (auto first = pieces.begin(); first != pieces.end();) {
      const auto last = std::find_if(first, pieces.end(),
                                     [&](const Piece& p) { return p.partner != first->partner; });
      if (!stays_here(*first)) {
        const auto partner = static_cast<std::size_t>(first->partner);
        const auto begin = end;
        std::for_each(first, last, [&](const Piece& piece) { place(piece, side.others); });
        pad();
        side.displacements[partner] = in_units(begin);
        side.counts[partner] = in_units(end - begin);
      }
      first = last;
    }
    side.others.fused = dtype::FusedPlan(jobs);
    side.bytes.resize(static_cast<std::size_t>(end));
    return side;
  }

  // The plan by which we pack a piece; nullptr: MPI does.
  const dtype::PackPlan* plan_of(const Piece& piece, PlanCache& plans,
                                 std::vector<std::string>& packed_by_mpi) const {
    if (packing_ == Packing::vendor) return nullptr;
    auto found = plans.find(piece.type);
    if (found == plans.end()) {
      found = plans.emplace(piece.type, dtype::make_plan(piece.type)).first;
      if (const auto* reason = std::get_if<UnsupportedDatatype>(&found->second))
        note(*reason, packed_by_mpi);
    }
    return std::get_if<dtype::PackPlan>(&found->second);
  }

  dtype::Datatype vendor_type(const Piece& piece) const {
    // A committed copy: the user may free the type, and need not have committed it.
    MPI_Datatype own = MPI_DATATYPE_NULL;
    HALOCLINE_MPI(MPI_Type_dup(piece.type, &own));
    dtype::Datatype type(own);
    HALOCLINE_MPI(MPI_Type_commit(&own));
    // MPI_Pack counts bytes and instances in int, and may add a header (no MPI we know does between
    // equal machines).
    int packed_size = 0;
    HALOCLINE_MPI(MPI_Pack_size(checked_int(piece.count, "count of a job that MPI packs"), own,
                                comm_->get(), &packed_size));
    if (packed_size != checked_int(piece.bytes, "size in bytes of a job that MPI packs"))
      throw ConfigError(
          "MPI_Pack needs " + std::to_string(packed_size) + " bytes for " +
          std::to_string(piece.bytes) +
          " (this MPI does not pack in native form): use another method or another description");
    return type;
  }

  static void note(const UnsupportedDatatype& reason, std::vector<std::string>& packed_by_mpi) {
    if (std::find(packed_by_mpi.begin(), packed_by_mpi.end(), reason.what()) == packed_by_mpi.end())
      packed_by_mpi.emplace_back(reason.what());
  }

  void pack(const PackedPieces& pieces, std::byte* message) const {
    packer_->pack(pieces.fused, message);
    for (const auto& [piece, offset, type] : pieces.by_mpi) {
      int position = 0;
      HALOCLINE_MPI(MPI_Pack(piece.buffer, static_cast<int>(piece.count), type.get(),
                             message + offset, static_cast<int>(piece.bytes), &position,
                             comm_->get()));
    }
  }

  void unpack(const PackedPieces& pieces, const std::byte* message) const {
    packer_->unpack(pieces.fused, message);
    for (const auto& [piece, offset, type] : pieces.by_mpi) {
      int position = 0;
      HALOCLINE_MPI(MPI_Unpack(message + offset, static_cast<int>(piece.bytes), &position,
                               piece.buffer, static_cast<int>(piece.count), type.get(),
                               comm_->get()));
    }
  }

  std::shared_ptr<const Communicator> comm_;
  Packing packing_;
  const dtype::Packer* packer_;
  dtype::Datatype unit_type_;
  MessageBuffer out_, in_;
  PhaseTimes times_;
};

}  // namespace

std::unique_ptr<Backend> make_packed_exchange(std::shared_ptr<const Communicator> comm,
                                              const Pieces& sends, const Pieces& receives,
                                              Packing packing, const dtype::Packer& packer,
                                              const CountUnits& units,
                                              std::vector<std::string>& packed_by_mpi) {
  return std::make_unique<PackedExchange>(std::move(comm), sends, receives, packing, packer, units,
                                          packed_by_mpi);
}

}  // namespace halocline::comm::detail
