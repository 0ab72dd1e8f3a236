// SPDX-License-Identifier: BSD-3-Clause
// An exchange, planned once and executed many times.
//
// Best peer: GHEX builds a pattern once and returns a handle from exchange(), but packs with index
// lists of its own; here the jobs are the user's own MPI datatypes, and the vendor's way of moving
// the same jobs hides behind the same handle.
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
#include "dtype/pack/packer.hpp"
#include "dtype/select/system_model.hpp"

namespace halocline::comm {

/// What one exchange moves from this rank.
struct Traffic {
  std::int64_t bytes_to_others = 0;
  std::int64_t bytes_to_self = 0;
  std::int64_t jobs = 0;               ///< regions sent, those to the rank itself included
  std::int64_t messages = 0;           ///< to other ranks, chunks counted each
  std::int64_t bytes_off_node = 0;     ///< of bytes_to_others, those to ranks on other nodes
  std::int64_t messages_off_node = 0;  ///< of messages, likewise
};

/// Seconds that this rank spent in the phases of one exchange; a method without such a phase leaves
/// it empty. Of transfer `staged`, the copy from the device belongs to pack and that to it to
/// unpack: they share the wait for the stream.
struct PhaseTimes {
  std::optional<double> pack;
  std::optional<double> transfer;
  std::optional<double> unpack;
};

namespace detail {
/// How a method moves the jobs; begin() and end() alternate.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual void begin() = 0;
  /// Between the two: does what can be done without waiting.
  virtual void progress() {}
  virtual PhaseTimes end() = 0;
  virtual bool own_at_start() const { return false; }
  bool in_flight = false;
};
}  // namespace detail

class PendingExchange;
class SharedWindow;

/// Plans for the jobs of all ranks of a communicator. Move-only. Destroying a plan of exchange
/// `shared` is collective on devices, unless an exception is under way: afterwards the fields may
/// be freed.
class ExchangePlan {
 public:
  struct Options {
    /// Packs on the host for the methods that are ours; must outlive the plan.
    const dtype::Packer* packer = nullptr;  ///< nullptr: the host packer
    /// Of the device whose memory may hold the buffers; must outlive the plan. nullptr: those of
    /// current_device(), if there is one.
    dtype::ResourceCache* resources = nullptr;
    /// Whether MPI takes device memory. Unset: probe_gpu_awareness().
    std::optional<bool> gpu_aware_mpi = std::nullopt;
    /// Chooses what the method leaves open; read by the constructor alone.
    const dtype::SystemModel* model = nullptr;  ///< nullptr: defaults, also of select_transfer()
    /// Which ranks of the communicator share a node; read by the constructor alone.
    const NodeHierarchy* nodes = nullptr;  ///< nullptr: the real ones
    /// Largest count or displacement handed to MPI; beyond it, messages are counted in larger
    /// units. Lowered by tests.
    std::int64_t mpi_count_limit = INT32_MAX;
    /// Of p2p (and what `shared` sends to other nodes), from the host's memory: a message ends with
    /// the job that brings it to so many bytes, and what is left of it follows in another. 0:
    /// never. The same on all ranks. Smaller chunks cost more in handshakes than they gain
    /// (results/two-hosts).
    std::int64_t chunk_bytes = 1 << 20;
    /// Shared memory that buffers may be in, for `shared`, made for the same ranks in the same
    /// order; the same list on all ranks. Must outlive the plan.
    std::vector<const SharedWindow*> windows = {};
    /// The number of a tag's message among those of its partner and round, the same function on
    /// all ranks. Unset: all are in one. Methods without has_several_messages() ignore it.
    std::function<int(int tag)> message_of_tag = nullptr;
  };

  /// Builds the plan. Collective over `comm`, which is duplicated. The datatypes may be freed
  /// afterwards.
  ///
  /// Throws, on all ranks alike: ConfigError if what one rank sends is not what its partner expects
  /// (rounds, messages, tags and bytes are compared) or the methods differ, if a method cannot
  /// handle a job (MPI_Pack: 2 GiB), or if its transfer is not possible for these buffers on some
  /// rank. O(jobs) plus the translation of the types.
  ExchangePlan(MPI_Comm comm, const std::vector<ExchangeJob>& jobs, Method method,
               const Options& options);
  ExchangePlan(MPI_Comm comm, const std::vector<ExchangeJob>& jobs, Method method);
  ExchangePlan(ExchangePlan&&) noexcept;
  ExchangePlan& operator=(ExchangePlan&&) noexcept;
  ~ExchangePlan();

  /// Starts an exchange: send buffers are read and receive buffers written from here on until
  /// finish() of the returned handle. A device must be done with the buffers before, and may use
  /// them in any stream after finish(). The first exchange of a plan may take longer: a device
  /// records then what it is given each time. Collective. Throws ConfigError while an exchange of
  /// this plan is in flight.
  [[nodiscard]] PendingExchange start();

  const Method& method() const { return method_; }

  /// How packed bytes travel, the same on all ranks: the method's transfer or the one that was
  /// chosen. Of vendor methods, device if some rank has buffers that the host cannot address, else
  /// host.
  dtype::Transfer transfer() const { return transfer_; }

  /// What is done: the method's exchange, or what `auto` stands for here. The same on all ranks.
  Exchange chosen() const { return chosen_; }

  /// How long an exchange takes by Options::model: the largest over the ranks; nullopt for vendor
  /// methods, without a model, and if something that it needs was not measured.
  std::optional<double> predicted_seconds() const { return predicted_seconds_; }

  const Traffic& traffic() const { return traffic_; }
  /// Whether start() returns when what this rank has for itself is in place: with p2p on the host.
  bool own_at_start() const { return backend_->own_at_start(); }

  /// Why some of this rank's types are packed by MPI although the method is ours; each reason once.
  const std::vector<std::string>& packed_by_mpi() const { return packed_by_mpi_; }

 private:
  Method method_;
  dtype::Transfer transfer_ = dtype::Transfer::host;
  Exchange chosen_;
  std::optional<double> predicted_seconds_;
  Traffic traffic_;
  std::vector<std::string> packed_by_mpi_;
  std::shared_ptr<detail::Backend> backend_;  // a handle keeps it, too
};

/// An exchange in flight. Must be finished; the destructor does it if need be. Its plan may be
/// gone by then, what the plan must not outlive may not.
class PendingExchange {
 public:
  PendingExchange(PendingExchange&& other) noexcept = default;
  PendingExchange& operator=(PendingExchange&&) = delete;
  ~PendingExchange();

  /// Completes the exchange: all receive buffers are filled, send buffers may be written again.
  /// Throws ConfigError if it is finished already. Collective; of several plans in flight, in the
  /// same order on all ranks.
  PhaseTimes finish();

  /// Lets MPI and the method do what they can without waiting, between start() and finish(): for
  /// MPIs that make no progress by themselves. Local.
  void progress();

 private:
  friend class ExchangePlan;
  explicit PendingExchange(std::shared_ptr<detail::Backend> backend)
      : backend_(std::move(backend)) {}
  std::shared_ptr<detail::Backend> backend_;
};

}  // namespace halocline::comm
