// SPDX-License-Identifier: BSD-3-Clause
// Plans an exchange once and executes it many times. The methods that pack make a plan for each
// job's datatype by dtype::make_plan(), and lay the jobs out in messages: packed_messages.hpp.
//
// Best peer: GHEX builds a pattern once and returns a handle from exchange(), but packs with index
// lists of its own. Here the jobs are the user's own MPI datatypes. The vendor's way of moving the
// same jobs has the same handle.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "comm/exchange/job.hpp"
#include "comm/exchange/method.hpp"
#include "comm/node/node_hierarchy.hpp"
#include "dtype/device/resource_cache.hpp"
#include "dtype/model/system_model.hpp"
#include "dtype/pack/packer.hpp"

namespace halocline::comm {

/// Counts what one exchange moves from this rank.
struct Traffic {
  std::int64_t bytes_to_others = 0;
  std::int64_t bytes_to_self = 0;
  std::int64_t jobs = 0;               ///< regions sent, to the rank itself included
  std::int64_t messages = 0;           ///< messages to other ranks, each chunk counted
  std::int64_t bytes_off_node = 0;     ///< part of bytes_to_others that goes to other nodes
  std::int64_t messages_off_node = 0;  ///< part of messages that goes to other nodes

  Traffic& operator+=(const Traffic& more);
};

/// Holds the seconds that this rank spent in the phases of one exchange. A phase that the method
/// does not have is empty. With transfer `staged`, pack includes the copy from the device, and
/// unpack the copy to the device. Kernels and copy are timed together, since the stream is
/// waited for once.
struct PhaseTimes {
  std::optional<double> pack;
  std::optional<double> transfer;
  std::optional<double> unpack;
};

namespace detail {
/// Moves the jobs of a plan by one method. begin() and end() alternate.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual void begin() = 0;
  /// Does what can be done without waiting. Called between begin() and end(). Returns true if end()
  /// would wait for no message. It stays true then.
  virtual bool progress() { return true; }
  virtual PhaseTimes end() = 0;
  /// Tells if begin() never waits, and end() does not once progress() has returned true.
  virtual bool waits_in_progress_alone() const { return false; }
  /// Tells if begin() returns only after the data from the rank to itself are in place.
  virtual bool own_at_start() const { return false; }
  bool in_flight = false;
};
}  // namespace detail

class PendingExchange;
class SharedWindow;

/// Plans the exchange of the jobs of all ranks of a communicator. Move-only.
///
/// The constructor cuts jobs into pieces and orders them (wire_order.cpp). builder.cpp chooses the
/// method. A method's backend lays out the messages (packed_messages.cpp) and moves them, such as
/// packed_exchange.cpp.
///
/// Destroying a plan of exchange `shared` is collective if devices copy, unless an exception is
/// under way. After that, the fields may be freed.
class ExchangePlan {
 public:
  struct Options {
    /// Packs on the host for the methods that are ours. Must outlive the plan.
    const dtype::Packer* packer = nullptr;  ///< nullptr: the host packer
    /// Holds the streams and buffers of the device whose memory may hold the fields. Must outlive
    /// the plan. nullptr: the resources of current_device(), if there is one.
    dtype::ResourceCache* resources = nullptr;
    /// Tells if MPI takes device memory. Unset: probe_gpu_awareness() decides.
    std::optional<bool> gpu_aware_mpi = std::nullopt;
    /// Chooses the exchange and the transfer where the method leaves them open. nullptr: `shared`
    /// where it is possible, else p2p, and the defaults of select_transfer(). Read by the
    /// constructor alone.
    const dtype::SystemModel* model = nullptr;
    /// Says which ranks of the communicator share a node. Read by the constructor alone.
    const NodeHierarchy* nodes = nullptr;  ///< nullptr: the real ones
    /// Limits the counts and displacements that MPI gets. Longer messages are counted in larger
    /// units. Tests use lower limits.
    std::int64_t mpi_count_limit = INT32_MAX;
    /// Divides long messages of p2p from the host's memory into chunks, in bytes. Messages of
    /// `shared` to other nodes are divided, too. A chunk ends with the job that brings it to this
    /// length. 0: messages are not divided. Must be the same on all ranks. Smaller chunks cost more
    /// in handshakes than they gain (results/two-hosts).
    std::int64_t chunk_bytes = 1 << 20;
    /// Lists the shared memory that may hold buffers of exchange `shared`. Each window must have
    /// the plan's ranks in the same order. Must be the same list on all ranks, and outlive the
    /// plan. What a rank sends to itself need not be in a window.
    std::vector<const SharedWindow*> windows = {};
    /// Returns the number of the message that a tag belongs to, among the messages to one partner
    /// in one round. Must be the same function on all ranks. Unset: one message per partner and
    /// round. Methods without has_several_messages() ignore it.
    std::function<int(int tag)> message_of_tag = nullptr;
  };

  /// Builds the plan. `comm` is duplicated. The datatypes may be freed afterwards. Collective over
  /// `comm`. O(jobs) plus the translation of the types.
  ///
  /// \throws ConfigError on all ranks, in these cases:
  ///   - One rank sends other rounds, messages, tags or bytes than its partner expects.
  ///   - The methods of the ranks differ, or this MPI does not have the method.
  ///   - A job or an option is not valid.
  ///   - The method cannot handle a job (MPI_Pack: 2 GiB).
  ///   - The transfer is not possible for the buffers of some rank.
  ExchangePlan(MPI_Comm comm, const std::vector<ExchangeJob>& jobs, Method method,
               const Options& options);
  ExchangePlan(MPI_Comm comm, const std::vector<ExchangeJob>& jobs, Method method);
  ExchangePlan(ExchangePlan&&) noexcept;
  ExchangePlan& operator=(ExchangePlan&&) noexcept;
  ~ExchangePlan();

  /// Starts an exchange. From here until finish() of the returned handle, send buffers are read and
  /// receive buffers written.
  ///
  /// Methods of one collective call (all but p2p, partitioned, shared and vendor-p2p) make it here
  /// and wait for it. Then finish() only unpacks, copies the rank's own data, and does all rounds
  /// but the first. With the four other methods, messages are under way in between. With shared on
  /// a host, only messages to other nodes are. Its copies run in finish() of this rank and of its
  /// partners: from start() on, a partner may read what is sent and write what is received.
  ///
  /// Before start(), work of a device on the buffers must be complete.
  /// After finish(), any stream may use the buffers. The first exchange of a plan may take longer:
  /// a device records the work that repeats. Collective. Throws ConfigError while an exchange of
  /// this plan is in flight.
  [[nodiscard]] PendingExchange start();

  const Method& method() const { return method_; }

  /// Returns how packed bytes travel: the method's transfer, or the chosen one. The same on all
  /// ranks. For vendor methods: device if some rank has buffers that the host cannot address, else
  /// host.
  dtype::Transfer transfer() const { return transfer_; }

  /// Returns the exchange in use: the method's, or the one that `auto` stands for here. The same on
  /// all ranks.
  Exchange chosen() const { return chosen_; }

  /// Returns the seconds that an exchange takes by Options::model, the largest over the ranks.
  /// Returns nullopt for vendor methods, without a model, and if a needed part of the model was not
  /// measured.
  std::optional<double> predicted_seconds() const { return predicted_seconds_; }

  const Traffic& traffic() const { return traffic_; }
  /// Tells if start() returns only after the data from this rank to itself are in place. True for
  /// p2p and partitioned with transfer host and one round.
  bool own_at_start() const { return backend_->own_at_start(); }

  /// Returns why MPI packs some of this rank's types although the method is ours, each reason once.
  const std::vector<std::string>& packed_by_mpi() const { return packed_by_mpi_; }

 private:
  Method method_;
  dtype::Transfer transfer_ = dtype::Transfer::host;
  Exchange chosen_;
  std::optional<double> predicted_seconds_;
  Traffic traffic_;
  std::vector<std::string> packed_by_mpi_;
  std::shared_ptr<detail::Backend> backend_;  // shared with the handles
};

/// Is an exchange in flight. Must be finished; the destructor finishes it if need be. May outlive
/// its plan, but not the objects that the plan must not outlive.
class PendingExchange {
 public:
  PendingExchange(PendingExchange&& other) noexcept = default;
  PendingExchange& operator=(PendingExchange&&) = delete;
  ~PendingExchange();

  /// Completes the exchange: all receive buffers are filled, and send buffers may be written again.
  /// Throws ConfigError if it is finished already. Collective. If several plans are in flight,
  /// finish them in the same order on all ranks.
  PhaseTimes finish();

  /// Lets MPI and the method do what they can without waiting, between start() and finish(). Useful
  /// with an MPI that makes no progress by itself. Local.
  ///
  /// Returns true once finish() would wait for no message, and after finish(). So
  /// `while (!pending.progress()) compute();` ends if all ranks call it or finish(). Two kinds of
  /// methods return true before that, and finish() may then wait:
  ///   - Methods of one collective call return true at once. Their further rounds are in finish().
  ///   - `shared` returns true once all partners have started. They may still have to copy.
  bool progress();

 private:
  friend class ExchangePlan;
  explicit PendingExchange(std::shared_ptr<detail::Backend> backend)
      : backend_(std::move(backend)) {}
  std::shared_ptr<detail::Backend> backend_;
};

}  // namespace halocline::comm
