// SPDX-License-Identifier: BSD-3-Clause
// Writes results: one record per measured method, as one line of JSON and one line of CSV.
// record_fields.cpp explains the fields, results/records.md shows them.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config.hpp"
#include "provenance.hpp"
#include "support/measure.hpp"

namespace halocline::app {

/// Holds seconds: one sample per iteration, each already the maximum over all ranks. A phase is
/// empty if the method has no such phase.
struct Phases {
  std::vector<double> pack, transfer, unpack, compute, total;
  std::vector<double> post, interior, wait, boundary;  ///< with overlap: the parts of total
  std::vector<double> plain_exchange, plain_compute,
      plain_total;  ///< substeps without overlap, in turn with those that overlap
};

inline constexpr std::array kPhases{std::pair{"pack", &Phases::pack},
                                    std::pair{"transfer", &Phases::transfer},
                                    std::pair{"unpack", &Phases::unpack},
                                    std::pair{"compute", &Phases::compute},
                                    std::pair{"total", &Phases::total},
                                    std::pair{"post", &Phases::post},
                                    std::pair{"interior", &Phases::interior},
                                    std::pair{"wait", &Phases::wait},
                                    std::pair{"boundary", &Phases::boundary},
                                    std::pair{"plain_exchange", &Phases::plain_exchange},
                                    std::pair{"plain_compute", &Phases::plain_compute},
                                    std::pair{"plain_total", &Phases::plain_total}};

/// Holds the medians of one rank's own substeps with overlap, in seconds.
struct Timeline {
  double post = 0, interior = 0, wait = 0, boundary = 0;
};

/// Describes an exchange, measured or predicted. The tables in record_fields.cpp explain each
/// member of this and the following records, and name its unit.
struct HaloRecord {
  std::string method{};
  std::string exchange{};  ///< `method` without its transfer
  std::string transfer = "host";
  Memory memory = Memory::host;
  int ranks = 0;
  int nodes = 0;
  comm::Int3 decomposition{};
  comm::Reorder reorder = comm::Reorder::none;
  comm::Int3 local{}, global{};
  int fields = 0;
  Layout layout = Layout::soa;
  Pad pad = Pad::none;
  comm::PerAxis<std::int64_t> radius = 0;
  comm::PerAxis<bool> periodic = false;
  comm::HaloShape shape = comm::HaloShape::direct;
  bool needs_by_field = false;
  int neighbors = 26;
  int element_bytes = 0;
  std::int64_t messages = 0;
};

/// Describes one measured method. A number that differs between ranks is the largest over all
/// ranks.
struct Record : HaloRecord {
  Subcommand kind = Subcommand::run;
  std::string chosen;
  std::string storage = "private";
  std::optional<comm::SharedWindow::Kind> shared_memory;
  comm::Pages pages = comm::Pages::small;
  std::optional<double> on_huge_pages;
  bool nodes_emulated = false;
  std::string physics = "heat";
  Stencil stencil = Stencil::heat13;
  PerSide<Boundary> boundary = Boundary::exact;
  bool is_complex = false;
  Describe describe = Describe::subarray;
  PackerKind packer = PackerKind::host;
  Messages messages_per = Messages::partner;
  std::int64_t bytes_to_others = 0, bytes_to_self = 0;
  std::int64_t bytes_off_node = 0, bytes_off_node_of_node = 0, bytes_off_node_total = 0;
  std::int64_t messages_off_node = 0;
  std::int64_t iterations = 0;
  int threads = 0;
  std::optional<double> predicted_s;
  int wide = 1;
  bool overlap = false;
  std::optional<std::int64_t> progress;
  Phases phases;
  std::vector<Timeline> timeline;  ///< by rank; empty without overlap
  bool verified = false;
  std::optional<std::uint64_t> state_hash;
  std::optional<std::string> baseline, baseline_storage;
  std::optional<comm::HaloShape> baseline_shape;
  std::optional<double> ratio_to_baseline, overlap_ratio;
  std::vector<std::string> notes;
};

/// Describes one variant of a gather, in one order of the ranks, for one size.
struct GatherRecord {
  comm::GatherVariant variant = comm::GatherVariant::mpi_gather;
  comm::RankOrder order = comm::RankOrder::ordered;
  std::int64_t bytes_per_rank = 0;
  int root = 0;
  int ranks = 0;
  int nodes = 0;
  bool nodes_emulated = false;
  std::optional<comm::TreeForm> local_form, bridge_form;
  /// Counts what all ranks together send, and what the root copies or moves again. Unset: the MPI
  /// chooses.
  std::optional<std::int64_t> messages_on_node, bytes_on_node, messages_off_node, bytes_off_node,
      copied_bytes, reordered_bytes;
  std::int64_t iterations = 0;
  double setup_s = 0;
  std::vector<double> samples;
  std::optional<double> predicted_s;
  bool verified = false;
  std::optional<std::string> baseline;
  std::optional<double> ratio_to_baseline;
  std::vector<std::string> notes;
};

/// Describes the exchange of a configuration on nodes that need not exist, by a system model. A
/// number that differs between ranks is the largest over all ranks.
struct PredictRecord : HaloRecord {
  double bytes_off_node_of_node = 0, bytes_off_node_total = 0;
  std::optional<double> pack_s, transfer_s, unpack_s, total_s;  ///< unset: not in the model
  bool injection_limits = false;  ///< true if the node's rate limits the exchange, not the rate of
                                  ///< its ranks
  std::optional<std::string> unknown;
};

/// Returns a record as a JSON object of schema halocline/1, in the order of results/records.md.
template <class R>
nlohmann::ordered_json record_as_json(const R& record, const Provenance& provenance);

/// Returns an object with median_s, p10_s, p90_s, min_s and max_s.
nlohmann::ordered_json statistics_as_json(const Statistics& statistics);

/// Returns the JSON Schemas of all records by the names of their files in results/.
std::string schemas_as_json();

/// Appends records of type R to config.output (JSON lines) and config.csv: to one, both or none of
/// them. Used on one rank only.
template <class R>
class ResultWriter {
 public:
  /// Checks that both files and config.plot can be written, and leaves no trace of this check.
  /// \throws ConfigError that names the flag: a file cannot be written, both are the same file, or
  /// the CSV file has other columns.
  ResultWriter(const Config& config, const Provenance& provenance);

  /// Appends one record, whole or not at all. Each line is one write on a locked, append-only
  /// descriptor. After a failed write both files are cut back to their former length. If the last
  /// line of a file has no end, it gets one first.
  /// \throws EnvironmentError if a write fails.
  void write(const R& record) const;

 private:
  std::string output_;
  std::string csv_;
  Provenance provenance_;
};

}  // namespace halocline::app
