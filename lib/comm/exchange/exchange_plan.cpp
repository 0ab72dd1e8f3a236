// SPDX-License-Identifier: BSD-3-Clause
// Checks that all ranks agree, builds plans, and starts and finishes exchanges.
#include "comm/exchange/exchange_plan.hpp"

#include <cstdint>
#include <cstdio>

#include "comm/exchange/builder.hpp"
#include "comm/node/shared_window.hpp"
#include "support/mpi_check.hpp"

namespace halocline::comm {

namespace {

// Throws ConfigError unless all ranks have the method of rank 0, and this MPI has it. Collective.
void agree_on_method(const Communicator& comm, const Method& method) {
  auto mine = name(method);
  mine.resize(64);
  auto first = mine;
  HALOCLINE_MPI(MPI_Bcast(first.data(), 64, MPI_CHAR, 0, comm.get()));
  collectively(comm.get(), [&] {
    if (const auto why = why_not_available(method.exchange); !why.empty())
      throw ConfigError("method " + name(method) + " is not possible (" + why +
                        "): use another method, such as p2p");
    if (first == mine) return;
    throw ConfigError("exchange plans do not match (rank 0 has method " +
                      std::string(first.c_str()) + ", rank " + std::to_string(comm.rank()) +
                      " has " + name(method) + "): use one method on all ranks");
  });
}

// Throws ConfigError unless all ranks divide messages alike. Collective.
void agree_on_chunks(const Communicator& comm, std::int64_t chunk_bytes) {
  auto first = chunk_bytes;
  HALOCLINE_MPI(MPI_Bcast(&first, 1, MPI_INT64_T, 0, comm.get()));
  collectively(comm.get(), [&] {
    if (chunk_bytes < 0 || chunk_bytes != first)
      throw ConfigError("exchange plans do not match (chunks of " + std::to_string(first) +
                        " bytes on rank 0, of " + std::to_string(chunk_bytes) + " on rank " +
                        std::to_string(comm.rank()) + "): use 0 or more, the same on all ranks");
  });
}

// Throws ConfigError unless all ranks list the windows of rank 0. A partner's buffers are named by
// the place of their window in the list. Collective.
void agree_on_windows(const Communicator& comm, const std::vector<const SharedWindow*>& windows) {
  std::uint64_t list = windows.size();
  for (const auto* window : windows)
    list = list * 0x100000001b3 + static_cast<std::uint64_t>(window->number());
  auto first = list;
  HALOCLINE_MPI(MPI_Bcast(&first, 1, MPI_UINT64_T, 0, comm.get()));
  collectively(comm.get(), [&] {
    if (list != first)
      throw ConfigError("exchange plans do not match (rank " + std::to_string(comm.rank()) +
                        " lists other shared windows than rank 0): list the same windows in the "
                        "same order on all ranks");
  });
}

}  // namespace

ExchangePlan::ExchangePlan(MPI_Comm parent, const std::vector<ExchangeJob>& jobs, Method method)
    : ExchangePlan(parent, jobs, method, Options{}) {}

ExchangePlan::ExchangePlan(MPI_Comm parent, const std::vector<ExchangeJob>& jobs, Method method,
                           const Options& options)
    : method_(method), chosen_(method.exchange) {
  const auto comm = std::make_shared<const Communicator>(parent);
  agree_on_method(*comm, method);
  agree_on_chunks(*comm, options.chunk_bytes);
  detail::SendsAndReceives all;
  collectively(comm->get(), [&] {
    if (options.nodes != nullptr && options.nodes->ranks() != comm->size())
      throw ConfigError("nodes are of another communicator (" +
                        std::to_string(options.nodes->ranks()) + " ranks, the plan has " +
                        std::to_string(comm->size()) + "): find those of the plan's communicator");
    for (const auto* window : options.windows)
      if (!window->has_ranks_of(comm->get()))
        throw ConfigError(
            "a shared window is of another communicator (other ranks, or another order of them): "
            "make it for the plan's");
    all =
        detail::sides_of(jobs, comm->size(),
                         has_several_messages(method.exchange) ? options.message_of_tag : nullptr);
  });
  agree_on_windows(*comm, options.windows);
  detail::require_match(*comm, all);
  const auto nodes = options.nodes != nullptr ? *options.nodes : NodeHierarchy(comm->get());
  auto built = detail::build(comm, method, all, options, nodes);
  backend_ = std::move(built.backend);
  traffic_ = built.traffic;
  chosen_ = built.chosen;
  transfer_ = built.transfer;
  predicted_seconds_ = built.predicted_seconds;
  packed_by_mpi_ = std::move(built.packed_by_mpi);
}

ExchangePlan::ExchangePlan(ExchangePlan&&) noexcept = default;
ExchangePlan& ExchangePlan::operator=(ExchangePlan&&) noexcept = default;
ExchangePlan::~ExchangePlan() = default;

PendingExchange ExchangePlan::start() {
  if (backend_->in_flight)
    throw ConfigError("exchange started twice (the plan has one in flight): finish it first");
  backend_->begin();
  backend_->in_flight = true;
  return PendingExchange(backend_);
}

PendingExchange::~PendingExchange() {
  if (backend_ == nullptr || mpi_is_over()) return;
  try {
    finish();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "halocline: an exchange could not be finished: %s\n", error.what());
  }
}

PhaseTimes PendingExchange::finish() {
  if (backend_ == nullptr)
    throw ConfigError("exchange finished twice (or moved from): call finish() once per start()");
  const auto backend = std::exchange(backend_, nullptr);
  backend->in_flight = false;
  return backend->end();
}

bool PendingExchange::progress() {
  return backend_ == nullptr || backend_->progress();
}

}  // namespace halocline::comm
