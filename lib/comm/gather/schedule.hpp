// SPDX-License-Identifier: BSD-3-Clause
// Runs what one rank does in a collective: messages and copies, set up once and run often.
//
// Best peer: libNBC and MPI libraries run collectives as rounds of packed messages between
// temporary buffers. Here each message is one derived type over its elements in their places. No
// element is copied on the way. A message leaves when its elements have arrived, not at the end of
// a round.
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

/// Names the other end of a message.
struct Link {
  MPI_Comm comm;
  int rank;       ///< in `comm`
  bool off_node;  ///< true: on another node, real or emulated
};

/// Counts what this rank sent and copied.
struct ScheduleTraffic {
  struct Messages {
    std::int64_t messages = 0, bytes = 0;
    bool operator==(const Messages&) const = default;
  };
  Messages on_node, off_node;
  std::int64_t copied_bytes = 0;     ///< bytes of its own block, copied to its place
  std::int64_t reordered_bytes = 0;  ///< bytes of received blocks that were moved again
  bool operator==(const ScheduleTraffic&) const = default;
};

/// Holds the messages and copies of one rank. Neither copied nor moved. All calls but run() are
/// local.
///
/// Two receives or copies must not write the same memory. A receive or copy may write memory that
/// is sent only if the send has to wait for it. A send of blocks that are not only_sent waits for
/// all receives and copies into its buffers. It does not wait for receives and copies of other
/// elements of the same type.
class Schedule {
 public:
  /// Limits the basic elements of a message, since MPI counts by int.
  static constexpr std::int64_t kMostElements = std::int64_t{1} << 30;
  /// Limits the messages from one rank to another one in a run. Every MPI has this number of tags.
  static constexpr std::int64_t kTags = 32768;

  /// Divides messages of more than `most_elements` > 0 basic elements into pieces. A piece is sent
  /// when its elements have arrived.
  explicit Schedule(std::int64_t most_elements = kMostElements) : most_elements_(most_elements) {}

  /// Adds a message to another rank. Blocks of both ends hold the same number of elements; without
  /// elements no message is sent. Both ranks add the messages between them in the same order.
  void send(const Link& to, const ElementBlocks& blocks);
  /// Adds a message from another rank, by the rules of send().
  void receive(const Link& from, const ElementBlocks& blocks);
  /// Adds a copy within this rank. It is divided into pieces like a message, so that messages
  /// progress between two pieces.
  void copy(const ElementBlocks& from, const ElementBlocks& to);

  /// Finds out which sends wait for which receives and copies. Nothing may be added afterwards.
  /// O(pieces log pieces).
  void finish();

  /// Runs all messages and copies, and returns when they are complete on this rank. Counts them in
  /// `traffic`. Call finish() before, if anything was added.
  void run(ScheduleTraffic& traffic);

 private:
  using Index = std::size_t;
  // The requests of the receives come first, those of the sends behind them.
  struct Piece {
    ElementBlocks blocks;
    Link link;
    int tag;
  };
  struct Send {
    std::int64_t bytes;
    bool off_node;
    int waits_for;  // number of receives and copies
  };
  // number of messages so far, by link and direction (true: send)
  using Tags = std::map<std::tuple<MPI_Comm, int, bool>, int>;

  void add(std::vector<Piece>& pieces, const Link& link, const ElementBlocks& blocks, bool sends);
  void start_if_ready(Index send, ScheduleTraffic& traffic);

  std::int64_t most_elements_;
  Tags tags_;
  std::vector<Piece> receives_, sends_;  // until finish()
  ElementBlocks copied_to_;              // until finish()
  std::vector<dtype::CopyPlan> copies_;
  PersistentRequests requests_;
  Index receive_count_ = 0;
  std::vector<Send> send_list_;
  std::vector<std::vector<Index>> dependents_{
      1};                     // sends, by receive; the last entry is for the copies
  std::vector<int> waiting_;  // number of open receives and copies of a run, by send
};

}  // namespace halocline::comm
