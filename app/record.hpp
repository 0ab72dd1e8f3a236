// SPDX-License-Identifier: BSD-3-Clause
// Writes results: one record per measured method, as one line of JSON and one line of CSV.
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

/// Describes one measured method. A number that differs between ranks is the largest over all
/// ranks.
struct Record {
  std::string kind;  ///< subcommand: "run", "compare"
  std::string method;
  std::string exchange;  ///< `method` without its transfer
  std::string chosen;    ///< `exchange`, or what "auto" stood for
  std::string transfer = "host";
  std::string memory = "host";      ///< place of the fields, as configured
  std::string storage = "private";  ///< of the fields: "private", "shared-window", "device"
  int ranks = 0;
  int nodes = 0;
  bool nodes_emulated = false;
  std::array<int, 3> decomposition{};
  std::string reorder = "none";          ///< mapping of ranks to positions in the decomposition, as
                                         ///< configured
  std::array<std::int64_t, 3> local{};   ///< points
  std::array<std::int64_t, 3> global{};  ///< points
  int fields = 0;
  std::string layout;
  int radius = 0;
  bool periodic = false;
  std::string stencil;                   ///< as configured; compare computes none
  std::string describe;                  ///< constructors that describe regions as MPI datatypes
  std::string packer;                    ///< our packer, as configured
  std::string shape = "direct";          ///< path of the halo: "direct", "axes"
  int neighbors = 26;                    ///< number of the 26 directions whose ghosts are needed
  std::string messages_per = "partner";  ///< content of a message: all for a "partner", a "region",
                                         ///< a "field"
  int element_bytes = 0;
  std::int64_t bytes_to_others = 0;         ///< per rank and exchange
  std::int64_t bytes_to_self = 0;           ///< per rank and exchange
  std::int64_t messages = 0;                ///< to other ranks, per rank and exchange
  std::int64_t bytes_off_node = 0;          ///< part of bytes_to_others that goes to other nodes
  std::int64_t bytes_off_node_of_node = 0;  ///< sum over the ranks of the node that sends most
  std::int64_t bytes_off_node_total = 0;    ///< sum over all ranks
  std::int64_t messages_off_node = 0;       ///< part of `messages` that goes to other nodes
  std::int64_t iterations = 0;
  int threads = 0;                    ///< per rank
  std::optional<double> predicted_s;  ///< time of an exchange, by the system model
  bool overlap = false;
  std::optional<std::int64_t> progress;  ///< MPI calls during the interior; unset without overlap
  Phases phases;
  std::vector<Timeline> timeline;  ///< by rank; empty without overlap
  bool verified = false;
  std::optional<std::uint64_t> state_hash;
  std::optional<std::string> baseline;          ///< method that ratio_to_baseline compares with
  std::optional<std::string> baseline_storage;  ///< storage of the baseline's fields
  std::optional<std::string> baseline_shape;    ///< shape of the baseline
  std::optional<double>
      ratio_to_baseline;  ///< median total of the baseline / median total of this method
  std::optional<double>
      overlap_ratio;  ///< median total / larger median of plain_compute and plain_exchange
  std::vector<std::string> notes;  ///< facts that a reader of the numbers must know
};

/// Returns the record as a JSON object of schema halocline/1, in the order of results/records.md.
nlohmann::ordered_json to_json(const Record& record, const Provenance& provenance);

/// Counts what all ranks together send in a gather, and the bytes that the root copies or moves
/// again.
struct GatherTraffic {
  std::int64_t messages_on_node = 0, bytes_on_node = 0;
  std::int64_t messages_off_node = 0, bytes_off_node = 0;
  std::int64_t copied_bytes = 0, reordered_bytes = 0;
};

/// Describes one variant of a gather, in one order of the ranks, for one size.
struct GatherRecord {
  std::string variant;
  std::string order;
  std::int64_t bytes_per_rank = 0;
  int root = 0;
  int ranks = 0;
  int nodes = 0;
  bool nodes_emulated = false;
  std::optional<std::string> local_form, bridge_form;  ///< unset: the MPI chooses
  std::optional<GatherTraffic> traffic;                ///< unset: the MPI chooses
  std::int64_t iterations = 0;
  double setup_s = 0;                 ///< time of making the plan once, on the slowest rank
  std::vector<double> samples;        ///< seconds of each gather on the slowest rank
  std::optional<double> predicted_s;  ///< by the alpha-beta model of the run
  bool verified = false;
  std::optional<std::string> baseline;
  std::optional<double> ratio_to_baseline;
  std::vector<std::string> notes;
};

/// Returns the record as a JSON object of schema halocline/1 and kind "gather", in the order of
/// results/records.md.
nlohmann::ordered_json to_json(const GatherRecord& record, const Provenance& provenance);

/// Describes the exchange of a configuration on nodes that need not exist, by a system model. A
/// number that differs between ranks is the largest over all ranks.
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
  std::optional<double> pack_s, transfer_s, unpack_s, total_s;  ///< unset: not in the model
  bool injection_limits = false;  ///< true if the node's rate limits the exchange, not the rate of
                                  ///< its ranks
  std::string unknown;            ///< reason why total_s is unset; else empty
};

/// Returns the record as a JSON object of schema halocline/1 and kind "predict", in the order of
/// results/records.md.
nlohmann::ordered_json to_json(const PredictRecord& record, const Provenance& provenance);

/// Appends records to config.output (JSON lines) and config.csv: to one, both or none of them. Used
/// on one rank only.
class ResultWriter {
 public:
  /// Makes a writer for records of one type. Checks that both files and config.plot can be written,
  /// and leaves no trace of this check.
  /// \throws ConfigError that names the flag: a file cannot be written, both are the same file, or
  /// the CSV file has other columns.
  static ResultWriter for_records(const Config& config, const Provenance& provenance);
  static ResultWriter for_gathers(const Config& config, const Provenance& provenance);
  static ResultWriter for_predictions(const Config& config, const Provenance& provenance);

  /// Appends one record, whole or not at all. Each line is one write on a locked, append-only
  /// descriptor. After a failed write both files are cut back to their former length. If the last
  /// line of a file has no end, it gets one first.
  /// \throws EnvironmentError if a write fails.
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
