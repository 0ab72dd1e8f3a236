// SPDX-License-Identifier: BSD-3-Clause
// What one rank does in a collective: messages and copies, set up once, run again and again.
//
// Best peer: MPI libraries run collectives as schedules of rounds (libNBC), with packed messages
// from and to temporary buffers. Here each message is one derived type over wherever its elements
// are, so that none is copied on the way, and leaves as soon as these have arrived, not at the end
// of a round.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "comm/gather/element_blocks.hpp"
#include "comm/mpi/persistent_requests.hpp"
#include "dtype/pack/copy_plan.hpp"

namespace halocline::comm {

/// Where a message goes to or comes from.
struct Link {
  MPI_Comm comm;
  int rank;       ///< in `comm`
  bool off_node;  ///< whether it is on another node, real or emulated
};

/// What this rank sent and copied.
struct ScheduleTraffic {
  struct Messages {
    std::int64_t messages = 0, bytes = 0;
    bool operator==(const Messages&) const = default;
  };
  Messages on_node, off_node;
  std::int64_t copied_bytes = 0;     ///< of its own block, to where that has to be
  std::int64_t reordered_bytes = 0;  ///< of blocks that were received, and then moved again
  bool operator==(const ScheduleTraffic&) const = default;
};

/// Neither copied nor moved. All calls but run() are local.
///
/// Receives and copies must not write what anything else here writes, nor what is sent unless that
/// is to wait for it: a send of blocks that are not only_sent waits for all receives and copies
/// that share a buffer with it, but for those of the same type and other elements of it.
class Schedule {
 public:
  /// Of a message: what MPI's counts can bear.
  static constexpr std::int64_t kMostElements = std::int64_t{1} << 30;
  /// As many messages can a rank send to another one in a run: tags that every MPI has.
  static constexpr std::int64_t kTags = 32768;

  /// Messages of more than `most_elements` > 0 basic elements are divided into pieces, which are
  /// sent as their elements arrive.
  explicit Schedule(std::int64_t most_elements = kMostElements) : most_elements_(most_elements) {}

  /// A message. The blocks of both ends hold equally many elements; none: there is no message. Two
  /// ranks add those from one to the other in one order.
  void send(const Link& to, const ElementBlocks& blocks);
  void receive(const Link& from, const ElementBlocks& blocks);
  /// A copy within this rank, divided likewise, so that messages progress between its pieces.
  void copy(const ElementBlocks& from, const ElementBlocks& to);

  /// Finds out what waits for what; nothing is added any more. O(pieces log pieces).
  void finish();

  /// Everything; returns when it is complete here. Counts what it does in `traffic`. After
  /// finish(), if anything was added.
  void run(ScheduleTraffic& traffic);

 private:
  using Index = std::size_t;
  // Requests are those of the receives, then those of the sends.
  struct Piece {
    ElementBlocks blocks;
    Link link;
    int tag;
  };
  struct Send {
    std::int64_t bytes;
    bool off_node;
    int waits_for;  // receives and copies
  };
  // Link and direction -> messages so far.
  using Tags = std::map<std::tuple<MPI_Comm, int, bool>, int>;

  void add(std::vector<Piece>& pieces, const Link& link, const ElementBlocks& blocks, bool sends);
  void start_if_ready(Index send, ScheduleTraffic& traffic);

  std::int64_t most_elements_;
  Tags tags_;
  std::vector<Piece> receives_, sends_;  // until finish()
  ElementBlocks copied_to_;              // likewise
  std::vector<dtype::CopyPlan> copies_;
  PersistentRequests requests_;
  Index receive_count_ = 0;
  std::vector<Send> send_list_;
  std::vector<std::vector<Index>> dependents_{1};  // sends, by receive; those of the copies last
  std::vector<int> waiting_;                       // by send, in a run
};

}  // namespace halocline::comm
