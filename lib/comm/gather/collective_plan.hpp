// SPDX-License-Identifier: BSD-3-Clause
// What all collectives of this folder have in common once they are set up.
//
// Best peer: MPI-4's persistent collectives, which leave open what a start may still allocate,
// decide or ask other ranks; here a run only starts messages and waits for them.
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
#include "dtype/support/message_buffer.hpp"

namespace halocline::comm {

/// Neither copied nor moved. The user's buffers must stay where they are; types may be freed.
class CollectivePlan {
 public:
  CollectivePlan(const CollectivePlan&) = delete;
  CollectivePlan& operator=(const CollectivePlan&) = delete;

  /// Does it with what is in the buffers now; returns when this rank's are free. Collective; plans
  /// of one communicator run in one order on all ranks.
  ///
  /// If it throws, which only MPI's errors make it do, messages may be under way: the user's
  /// buffers are then not free before MPI_Finalize, and the plan cannot run again.
  void run() {
    traffic_ = {};
    try {
      if (schedule_) schedule_->run(traffic_);
    } catch (...) {
      new auto(std::move(kept_));  // where they may still arrive
      throw;
    }
    if (last_) last_();
  }
  /// Of the last run of this rank.
  const ScheduleTraffic& traffic() const { return traffic_; }

 protected:
  explicit CollectivePlan(std::shared_ptr<NodeCommunicators> communicators)
      : communicators_(std::move(communicators)) {}
  ~CollectivePlan() = default;

  const NodeHierarchy& nodes() const { return communicators_->nodes(); }
  MPI_Comm comm() const { return communicators_->all().get(); }

  /// Runs `add`, which adds messages and copies to the schedule, and finishes it. What fails on one
  /// rank is thrown on all. Collective.
  template <class F>
  void set_up(F&& add) {
    collectively(comm(), [&] {
      std::forward<F>(add)();
      schedule_->finish();
    });
  }

  const std::shared_ptr<NodeCommunicators> communicators_;
  std::deque<dtype::MessageBuffer> kept_;  // what the schedule sends and receives beside buffers
  std::optional<Schedule> schedule_;       // once its size of pieces is known
  std::function<void()> last_;             // what follows the schedule
  ScheduleTraffic traffic_;
};

}  // namespace halocline::comm
