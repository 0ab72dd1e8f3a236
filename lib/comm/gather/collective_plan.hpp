// SPDX-License-Identifier: BSD-3-Clause
// Declares the base class of all collectives of this folder: plans that are set up once and run
// often.
//
// Best peer: MPI-4's persistent collectives. They leave open if a start still allocates, decides or
// asks other ranks. Here a run only starts messages and waits for them.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "comm/gather/node_communicators.hpp"
#include "comm/gather/schedule.hpp"
#include "support/message_buffer.hpp"

namespace halocline::comm {

/// Holds the schedule and the memory of one collective; the base of all plans of this folder. A
/// plan is neither copied nor moved. The user's buffers must stay where they are; the user's
/// datatypes may be freed.
class CollectivePlan {
 public:
  CollectivePlan(const CollectivePlan&) = delete;
  CollectivePlan& operator=(const CollectivePlan&) = delete;

  /// Runs the collective with the present contents of the buffers. Returns when the buffers of this
  /// rank may be used again. Collective; all ranks run the plans of one communicator in the same
  /// order.
  ///
  /// Only errors of MPI make it throw. Messages may then still be under way: the user's buffers are
  /// not free before MPI_Finalize, and the plan cannot run again.
  void run() {
    traffic_ = {};
    try {
      if (schedule_) schedule_->run(traffic_);
    } catch (...) {
      new auto(std::move(kept_));  // leaked, since messages may still arrive there
      throw;
    }
    if (last_) last_();
  }
  /// Returns what this rank sent and copied in the last run.
  const ScheduleTraffic& traffic() const { return traffic_; }

 protected:
  explicit CollectivePlan(std::shared_ptr<NodeCommunicators> communicators)
      : communicators_(std::move(communicators)) {}
  ~CollectivePlan() = default;

  const NodeHierarchy& nodes() const { return communicators_->nodes(); }
  MPI_Comm comm() const { return communicators_->all().get(); }

  /// Runs `add`, which adds messages and copies to the schedule, and then finishes the schedule. An
  /// error on one rank is thrown on all ranks. Collective.
  template <class F>
  void set_up(F&& add) {
    collectively(comm(), [&] {
      std::forward<F>(add)();
      schedule_->finish();
    });
  }

  const std::shared_ptr<NodeCommunicators> communicators_;
  std::deque<MessageBuffer> kept_;    // memory of the schedule beside the user's buffers
  std::optional<Schedule> schedule_;  // set once the size of a piece is known
  std::function<void()> last_;        // runs after the schedule
  ScheduleTraffic traffic_;
};

}  // namespace halocline::comm
