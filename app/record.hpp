// SPDX-License-Identifier: BSD-3-Clause
// Results: one record per measured method, written as one line of JSON and one line of CSV.
// results/records.md explains the fields, results/schema.json is their schema.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "config.hpp"
#include "provenance.hpp"

namespace halocline::app {

/// Of a sample of times; percentiles interpolate linearly between the closest ranks.
struct Statistics {
  double median = 0, p10 = 0, p90 = 0, min = 0, max = 0;
};

/// Precondition: `samples` is not empty. O(n log n).
Statistics statistics(std::span<const double> samples);

/// Seconds, one sample per iteration, each already the maximum over all ranks. Empty: the method
/// has no such phase.
struct Phases {
  std::vector<double> pack, transfer, unpack, compute, total;
  std::vector<double> post, interior, wait, boundary;  ///< with overlap: total is made of these
  std::vector<double> plain_exchange, plain_compute,
      plain_total;  ///< of the substeps that take turns with those that overlap
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

/// What one rank does in a substep with overlap: medians over its own substeps, in seconds.
struct Timeline {
  double post = 0, interior = 0, wait = 0, boundary = 0;
};

/// One measured method. What differs between ranks is the largest over all ranks.
struct Record {
  std::string kind;  ///< subcommand: "run", "compare"
  std::string method;
  std::string exchange;  ///< `method` without its transfer
  std::string chosen;    ///< `exchange`, or what "auto" stood for
  std::string transfer = "host";
  std::string memory = "host";      ///< where the fields are, as configured
  std::string storage = "private";  ///< of the fields: "private", "shared-window", "device"
  int ranks = 0;
  int nodes = 0;
  bool nodes_emulated = false;
  std::array<int, 3> decomposition{};
  std::string reorder = "none";          ///< positions of the ranks in it, as configured
  std::array<std::int64_t, 3> local{};   ///< points
  std::array<std::int64_t, 3> global{};  ///< points
  int fields = 0;
  std::string layout;
  int radius = 0;
  bool periodic = false;
  std::string stencil;                   ///< as configured; compare computes none
  std::string describe;                  ///< how regions are written as MPI datatypes
  std::string packer;                    ///< which of our packers packs, as configured
  std::string shape = "direct";          ///< in which the halo travels: "direct", "axes"
  int neighbors = 26;                    ///< how many of the 26 directions' ghosts are needed
  std::string messages_per = "partner";  ///< what one holds: all for a partner, "region", "field"
  int element_bytes = 0;
  std::int64_t bytes_to_others = 0;         ///< per rank and exchange
  std::int64_t bytes_to_self = 0;           ///< per rank and exchange
  std::int64_t messages = 0;                ///< to other ranks, per rank and exchange
  std::int64_t bytes_off_node = 0;          ///< of bytes_to_others, those to other nodes
  std::int64_t bytes_off_node_of_node = 0;  ///< of all ranks of the node that sends most
  std::int64_t bytes_off_node_total = 0;    ///< of all ranks
  std::int64_t messages_off_node = 0;       ///< of messages, those to other nodes
  std::int64_t iterations = 0;
  int threads = 0;                    ///< per rank
  std::optional<double> predicted_s;  ///< of an exchange, by the system model
  bool overlap = false;
  std::optional<std::int64_t> progress;  ///< calls meanwhile; none without overlap
  Phases phases;
  std::vector<Timeline> timeline;  ///< by rank; empty without overlap
  bool verified = false;
  std::optional<std::uint64_t> state_hash;
  std::optional<std::string> baseline;          ///< the method that ratio_to_baseline compares with
  std::optional<std::string> baseline_storage;  ///< and its fields' storage
  std::optional<std::string> baseline_shape;    ///< and its shape
  std::optional<double>
      ratio_to_baseline;  ///< median total of the baseline / median total of this one
  std::optional<double>
      overlap_ratio;  ///< median total / the larger of plain_compute's, plain_exchange's
  std::vector<std::string> notes;  ///< what a reader of the numbers must know
};

/// The record as a JSON object of schema halocline/1, in the order of results/records.md.
nlohmann::ordered_json to_json(const Record& record, const Provenance& provenance);

/// What all ranks together send in a gather, and its root moves.
struct GatherTraffic {
  std::int64_t messages_on_node = 0, bytes_on_node = 0;
  std::int64_t messages_off_node = 0, bytes_off_node = 0;
  std::int64_t copied_bytes = 0, reordered_bytes = 0;
};

/// One variant of a gather, in one order of the ranks, for one size.
struct GatherRecord {
  std::string variant;
  std::string order;
  std::int64_t bytes_per_rank = 0;
  int root = 0;
  int ranks = 0;
  int nodes = 0;
  bool nodes_emulated = false;
  std::optional<std::string> local_form, bridge_form;  ///< none: the MPI's own business
  std::optional<GatherTraffic> traffic;                ///< likewise
  std::int64_t iterations = 0;
  double setup_s = 0;                 ///< of making the plan, once, on the slowest rank
  std::vector<double> samples;        ///< seconds of a gather on the slowest rank
  std::optional<double> predicted_s;  ///< by the alpha-beta model of the run
  bool verified = false;
  std::optional<std::string> baseline;
  std::optional<double> ratio_to_baseline;
  std::vector<std::string> notes;
};

/// The record as a JSON object of schema halocline/1 and kind "gather", in the order of
/// results/records.md.
nlohmann::ordered_json to_json(const GatherRecord& record, const Provenance& provenance);

/// The exchange of a configuration on nodes that need not be there, by a system model. What differs
/// between ranks is the largest over all ranks.
struct PredictRecord {
  std::string method, exchange, transfer;
  std::string memory;
  int nodes = 0;
  int ranks = 0;
  std::array<int, 3> decomposition{};
  std::string reorder;
  std::array<std::int64_t, 3> local{};   ///< points
  std::array<std::int64_t, 3> global{};  ///< points
  int fields = 0;
  std::string layout;
  int radius = 0;
  bool periodic = false;
  std::string shape;
  int neighbors = 26;
  int element_bytes = 0;
  std::int64_t messages = 0;  ///< to other ranks, per rank and exchange
  double bytes_off_node_of_node = 0;
  double bytes_off_node_total = 0;
  std::optional<double> pack_s, transfer_s, unpack_s, total_s;  ///< none: not in the model
  bool injection_limits = false;  ///< the rate of a node, not that of its ranks
  std::string unknown;            ///< why there is no total_s; empty if there is one
};

/// The record as a JSON object of schema halocline/1 and kind "predict", in the order of
/// results/records.md.
nlohmann::ordered_json to_json(const PredictRecord& record, const Provenance& provenance);

/// Appends records to config.output (JSON lines) and config.csv, either, both or none of them. Used
/// on one rank only.
class ResultWriter {
 public:
  /// For records of one type. Checks that both files and config.plot can be written, without
  /// leaving a trace of that. Throws ConfigError that names the flag if one cannot, if both are one
  /// file, or if the CSV file has columns other than theirs.
  static ResultWriter for_records(const Config& config, const Provenance& provenance);
  static ResultWriter for_gathers(const Config& config, const Provenance& provenance);
  static ResultWriter for_predictions(const Config& config, const Provenance& provenance);

  /// Appends one record, whole or not at all: each line is one write on a locked, append-only
  /// descriptor, and what a failing write has left is cut off again in both files. A file whose
  /// last line has no end gets one first. Throws EnvironmentError.
  void write(const Record& record) const;
  void write(const GatherRecord& record) const;
  void write(const PredictRecord& record) const;

 private:
  ResultWriter(const Config& config, const Provenance& provenance,
               const nlohmann::ordered_json& example);
  void append(const nlohmann::ordered_json& json) const;

  std::string output_;
  std::string csv_;
  Provenance provenance_;
};

}  // namespace halocline::app
