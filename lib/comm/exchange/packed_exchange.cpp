// SPDX-License-Identifier: BSD-3-Clause
// Pack, MPI_Alltoallv, unpack: with our plans (method alltoallv) or with MPI_Pack (method
// vendor-pack).
#include <algorithm>
#include <optional>

#include "comm/exchange/backend.hpp"
#include "dtype/datatype.hpp"
#include "dtype/support/mpi_check.hpp"
#include "dtype/support/narrow.hpp"

namespace halocline::comm::detail {

namespace {

/// A piece and its place in the message buffer.
struct PackedPiece {
  Piece piece;
  std::int64_t offset;
  std::optional<dtype::PackPlan> plan;  // none: MPI packs with `type`
  dtype::Datatype type;
};

/// All messages that leave or reach this rank, in one buffer; counts and displacements in units.
struct MessageBuffer {
  std::vector<PackedPiece> pieces;
  std::vector<std::byte> bytes;
  std::vector<int> counts, displacements;
};

class PackedExchange final : public Backend {
 public:
  PackedExchange(std::shared_ptr<const Communicator> comm, const Pieces& sends,
                 const Pieces& receives, Packing packing, const dtype::Packer& packer,
                 std::int64_t unit, std::vector<std::string>& packed_by_mpi)
      : comm_(std::move(comm)), packing_(packing), packer_(&packer) {
    MPI_Datatype type = MPI_DATATYPE_NULL;
    HALOCLINE_MPI(MPI_Type_contiguous(checked_int(unit, "message unit"),
                                      packing == Packing::ours ? MPI_BYTE : MPI_PACKED, &type));
    unit_type_ = dtype::Datatype(type);
    HALOCLINE_MPI(MPI_Type_commit(&type));
    out_ = lay_out(sends, unit, packed_by_mpi);
    in_ = lay_out(receives, unit, packed_by_mpi);
  }

  void begin() override {
    const double start = MPI_Wtime();
    for (const auto& item : out_.pieces) pack(item, out_.bytes.data() + item.offset);
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
    for (const auto& item : in_.pieces) {
      // What goes to the rank itself is unpacked from where it was packed, unless it went through
      // MPI.
      const auto& from = stays_here(item.piece) ? out_ : in_;
      unpack(item, from.bytes.data() + item.offset);
    }
    packer_->fence();
    times_.unpack = MPI_Wtime() - start;
    return times_;
  }

 private:
  bool stays_here(const Piece& piece) const {
    return packing_ == Packing::ours && piece.partner == comm_->rank();
  }

  // Messages stand in the order of the partners; the rank's own one comes first where it stays
  // here, so that it has the same offsets on both sides.
  MessageBuffer lay_out(const Pieces& pieces, std::int64_t unit,
                        std::vector<std::string>& packed_by_mpi) const {
    const auto ranks = static_cast<std::size_t>(comm_->size());
    MessageBuffer side{.pieces = {},
                       .bytes = {},
                       .counts = std::vector<int>(ranks),
                       .displacements = std::vector<int>(ranks)};
    std::int64_t end = 0;
    const auto place = [&](const Piece& piece) {
      side.pieces.push_back({piece, end, std::nullopt, {}});
      choose_packing(side.pieces.back(), packed_by_mpi);
      end += piece.bytes;
    };
    const auto pad = [&] { end = (end + unit - 1) / unit * unit; };

    for (const auto& piece : pieces)
      if (stays_here(piece)) place(piece);
    pad();
    for (auto first = pieces.begin(); first != pieces.end();) {
      const auto last = std::find_if(first, pieces.end(),
                                     [&](const Piece& p) { return p.partner != first->partner; });
      if (!stays_here(*first)) {
        const auto partner = static_cast<std::size_t>(first->partner);
        const auto begin = end;
        std::for_each(first, last, place);
        pad();
        side.displacements[partner] = checked_int(begin / unit, "message displacement");
        side.counts[partner] = checked_int((end - begin) / unit, "message size");
      }
      first = last;
    }
    side.bytes.resize(static_cast<std::size_t>(end));
    return side;
  }

  void choose_packing(PackedPiece& item, std::vector<std::string>& packed_by_mpi) const {
    const auto& piece = item.piece;
    if (packing_ == Packing::ours) {
      auto plan = dtype::make_plan(piece.type);
      if (auto* found = std::get_if<dtype::PackPlan>(&plan)) {
        item.plan = std::move(*found);
        return;
      }
      const std::string reason = std::get<UnsupportedDatatype>(plan).what();
      if (std::find(packed_by_mpi.begin(), packed_by_mpi.end(), reason) == packed_by_mpi.end())
        packed_by_mpi.push_back(reason);
    }
    // MPI_Pack counts bytes and instances in int, and may add a header (no MPI we know does between
    // equal machines).
    int packed_size = 0;
    HALOCLINE_MPI(MPI_Pack_size(checked_int(piece.count, "count of a job that MPI packs"),
                                piece.type, comm_->get(), &packed_size));
    if (packed_size != checked_int(piece.bytes, "size in bytes of a job that MPI packs"))
      throw ConfigError(
          "MPI_Pack needs " + std::to_string(packed_size) + " bytes for " +
          std::to_string(piece.bytes) +
          " (this MPI does not pack in native form): use another method or another description");
    MPI_Datatype own = MPI_DATATYPE_NULL;
    HALOCLINE_MPI(MPI_Type_dup(piece.type, &own));
    item.type = dtype::Datatype(own);
  }

  void pack(const PackedPiece& item, std::byte* to) const {
    const auto& piece = item.piece;
    if (item.plan) return packer_->pack(*item.plan, piece.buffer, piece.count, to);
    int position = 0;
    HALOCLINE_MPI(MPI_Pack(piece.buffer, static_cast<int>(piece.count), item.type.get(), to,
                           static_cast<int>(piece.bytes), &position, comm_->get()));
  }

  void unpack(const PackedPiece& item, const std::byte* from) const {
    const auto& piece = item.piece;
    if (item.plan) return packer_->unpack(*item.plan, from, piece.buffer, piece.count);
    int position = 0;
    HALOCLINE_MPI(MPI_Unpack(from, static_cast<int>(piece.bytes), &position, piece.buffer,
                             static_cast<int>(piece.count), item.type.get(), comm_->get()));
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
                                              std::int64_t unit,
                                              std::vector<std::string>& packed_by_mpi) {
  return std::make_unique<PackedExchange>(std::move(comm), sends, receives, packing, packer, unit,
                                          packed_by_mpi);
}

}  // namespace halocline::comm::detail
