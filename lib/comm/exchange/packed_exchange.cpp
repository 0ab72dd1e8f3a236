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
#include "dtype/support/region.hpp"

namespace halocline::comm::detail {

namespace {

/// A piece that MPI packs, and where.
struct VendorPiece {
  Piece piece;
  std::byte* packed;
  dtype::Datatype type;
};

/// All pieces that leave or reach this rank: messages in one buffer, counts and displacements in
/// units, and what stays on the rank in another. One plan packs into both, or unpacks from both;
/// its packed offsets are from the begin of the messages.
struct Side {
  Transport::Message message;
  std::vector<int> counts, displacements;
  dtype::FusedPlan fused;
  std::vector<VendorPiece> by_mpi;
};

class PackedExchange final : public Backend {
 public:
  PackedExchange(std::shared_ptr<const Communicator> comm, const Pieces& sends,
                 const Pieces& receives, Packing packing, Transport transport,
                 const CountUnits& units, std::vector<std::string>& packed_by_mpi)
      : comm_(std::move(comm)), packing_(packing), transport_(std::move(transport)) {
    MPI_Datatype type = MPI_DATATYPE_NULL;
    HALOCLINE_MPI(MPI_Type_contiguous(checked_int(units.bytes, "message unit"),
                                      packing == Packing::ours ? MPI_BYTE : MPI_PACKED, &type));
    unit_type_ = dtype::Datatype(type);
    HALOCLINE_MPI(MPI_Type_commit(&type));
    PlanCache plans;
    std::int64_t own_bytes = 0;
    for (const auto& piece : sends) own_bytes += stays_here(piece) ? piece.bytes : 0;
    own_ = transport_.own_memory(static_cast<std::size_t>(own_bytes));
    out_ = lay_out(sends, units, plans, packed_by_mpi);
    in_ = lay_out(receives, units, plans, packed_by_mpi);
    pack_ = transport_.packing(out_.fused, out_.message);
    unpack_ = transport_.unpacking(in_.fused, in_.message);
  }

  // Memory goes back to where others get it from: after an error, the device may still use it.
  ~PackedExchange() override {
    try {
      transport_.packer().fence();
    } catch (const std::exception&) {
      // Whoever uses the device next is told, too.
    }
  }

  void begin() override {
    const double start = MPI_Wtime();
    {
      const Region region("halocline: pack");
      pack_.start();
      for (const auto& piece : out_.by_mpi) pack(piece);
      transport_.packer().fence();
    }
    const double packed = MPI_Wtime();
    const Region region("halocline: transfer");
    HALOCLINE_MPI(MPI_Alltoallv(out_.message.wire(), out_.counts.data(), out_.displacements.data(),
                                unit_type_.get(), in_.message.wire(), in_.counts.data(),
                                in_.displacements.data(), unit_type_.get(), comm_->get()));
    times_.pack = packed - start;
    times_.transfer = MPI_Wtime() - packed;
  }

  PhaseTimes end() override {
    const Region region("halocline: unpack");
    const double start = MPI_Wtime();
    unpack_.start();
    for (const auto& piece : in_.by_mpi) unpack(piece);
    transport_.packer().fence();
    times_.unpack = MPI_Wtime() - start;
    return times_;
  }

 private:
  bool stays_here(const Piece& piece) const {
    return packing_ == Packing::ours && piece.partner == comm_->rank();
  }

  // Fields share their types: each is planned once.
  using PlanCache = std::map<MPI_Datatype, Result<dtype::PackPlan>>;

  // Messages stand in the order of the partners; what stays here, in the order of the tags, at the
  // same place for both sides.
  Side lay_out(const Pieces& pieces, const CountUnits& units, PlanCache& plans,
               std::vector<std::string>& packed_by_mpi) const {
    const auto ranks = static_cast<std::size_t>(comm_->size());
    Side side{.message = {},
              .counts = std::vector<int>(ranks),
              .displacements = std::vector<int>(ranks),
              .fused = dtype::FusedPlan(),
              .by_mpi = {}};
    const auto in_units = [&](std::int64_t bytes) {
      return checked_int(bytes / units.bytes, "message size or displacement", units.limit);
    };
    const auto align = std::max(units.bytes, kMessageAlignment);
    std::int64_t end = 0;
    for (auto first = pieces.begin(); first != pieces.end();) {
      const auto last = std::find_if(first, pieces.end(),
                                     [&](const Piece& p) { return p.partner != first->partner; });
      if (!stays_here(*first)) {
        const auto partner = static_cast<std::size_t>(first->partner);
        const auto begin = end = (end + align - 1) / align * align;
        std::for_each(first, last, [&](const Piece& piece) { end += piece.bytes; });
        const auto size = (end - begin + units.bytes - 1) / units.bytes * units.bytes;
        end = begin + size;
        side.displacements[partner] = in_units(begin);
        side.counts[partner] = in_units(size);
      }
      first = last;
    }
    side.message = transport_.message(static_cast<std::size_t>(end));

    std::vector<dtype::PackJob> jobs;
    std::byte *next = nullptr, *next_own = own_.data();
    const auto* before = pieces.data();
    for (const auto& piece : pieces) {
      const bool here = stays_here(piece);
      if (&piece == pieces.data() || piece.partner != before->partner)
        next = side.message.packed() +
               side.displacements[static_cast<std::size_t>(piece.partner)] * units.bytes;
      auto& packed = here ? next_own : next;
      if (const auto* plan = plan_of(piece, plans, packed_by_mpi))
        jobs.push_back({*plan, piece.buffer, piece.count, distance(side.message.packed(), packed)});
      else if (packing_ == Packing::ours && transport_.transfer() != dtype::Transfer::host)
        throw ConfigError("a datatype is packed by MPI alone (" + packed_by_mpi.back() +
                          "): keep its data in memory of the host");
      else
        side.by_mpi.push_back({piece, packed, vendor_type(piece)});
      packed += piece.bytes;
      before = &piece;
    }
    side.fused = dtype::FusedPlan(jobs);
    transport_.packer().prepare(side.fused);
    return side;
  }

  // Between two allocations, perhaps.
  static std::int64_t distance(const std::byte* from, const std::byte* to) {
    return static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(to) -
                                     reinterpret_cast<std::uintptr_t>(from));
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

  void pack(const VendorPiece& p) const {
    int position = 0;
    HALOCLINE_MPI(MPI_Pack(p.piece.buffer, static_cast<int>(p.piece.count), p.type.get(), p.packed,
                           static_cast<int>(p.piece.bytes), &position, comm_->get()));
  }
  void unpack(const VendorPiece& p) const {
    int position = 0;
    HALOCLINE_MPI(MPI_Unpack(p.packed, static_cast<int>(p.piece.bytes), &position, p.piece.buffer,
                             static_cast<int>(p.piece.count), p.type.get(), comm_->get()));
  }

  std::shared_ptr<const Communicator> comm_;
  Packing packing_;
  Transport transport_;
  dtype::Datatype unit_type_;
  Transport::Memory own_;  // what stays on the rank, between packing and unpacking
  Side out_, in_;
  Transport::Repeated pack_, unpack_;  // all but by_mpi; refer to the members above
  PhaseTimes times_;
};

}  // namespace

std::unique_ptr<Backend> make_packed_exchange(std::shared_ptr<const Communicator> comm,
                                              const Pieces& sends, const Pieces& receives,
                                              Packing packing, Transport transport,
                                              const CountUnits& units,
                                              std::vector<std::string>& packed_by_mpi) {
  return std::make_unique<PackedExchange>(std::move(comm), sends, receives, packing,
                                          std::move(transport), units, packed_by_mpi);
}

}  // namespace halocline::comm::detail
