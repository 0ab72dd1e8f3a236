// SPDX-License-Identifier: BSD-3-Clause
// Gathers, scatters and allgathers of halocline.h. Counts there are instances of a type, and those
// of the plans are its basic elements.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "comm/c/common.hpp"
#include "comm/gather/allgather_plan.hpp"
#include "comm/gather/elements.hpp"

namespace halocline::c {

namespace {

struct Collective {
  std::shared_ptr<comm::NodeCommunicators> communicators;
  std::shared_ptr<comm::CollectivePlan> plan;
  bool failed = false;  // messages may be under way then
};

// Returns the communicators of `comm`, made once for all collectives. Their errors are returned.
// Collective.
std::shared_ptr<comm::NodeCommunicators> communicators_of(MPI_Comm comm) {
  auto out = comm::NodeCommunicators::of(comm);
  for (const auto* one : {&out->all(), &out->local()})
    HALOCLINE_MPI(MPI_Comm_set_errhandler(one->get(), MPI_ERRORS_RETURN));
  return out;
}

void prepare(halocline_collective* collective) {
  require(collective != nullptr, "the collective is NULL: give the address of a handle");
  *collective = nullptr;
}

// Returns the number of elements of the block of each of `ranks` ranks at `buffer`.
std::vector<std::int64_t> elements_of_all(const void* buffer, std::int64_t count,
                                          const std::int64_t* counts, MPI_Datatype datatype,
                                          int ranks) {
  require_data(buffer, 0, datatype);
  const auto each = comm::basic_element_count(datatype);
  std::vector<std::int64_t> out;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto number = counts != nullptr ? counts[rank] : count;
    require_data(buffer, number, datatype);
    out.push_back(checked_multiply(number, each));
  }
  return out;
}

// Returns the number of elements of this rank's own block; 0 if it is in its place already.
std::int64_t own_elements(const void* buffer, std::int64_t count, MPI_Datatype datatype) {
  if (buffer == MPI_IN_PLACE) return 0;
  require_data(buffer, count, datatype);
  return checked_multiply(count, comm::basic_element_count(datatype));
}

// Makes a gather or scatter: both have the arguments of one.
template <class Make>
int rooted(MPI_Comm comm, const void* buffer, std::int64_t count, MPI_Datatype datatype,
           const void* root_buffer, const std::int64_t* counts, MPI_Datatype root_datatype,
           int root, halocline_collective* collective, Make make) {
  return guarded([&] {
    require_communicator(comm);
    const auto communicators = communicators_of(comm);
    const int ranks = communicators->all().size();
    // A buffer that is only sent is not written. RootedBuffers has one member for both directions.
    comm::RootedBuffers buffers{
        const_cast<void*>(buffer), 0, datatype, nullptr, {}, MPI_BYTE, root};
    comm::collectively(communicators->all().get(), [&] {
      prepare(collective);
      require(root >= 0 && root < ranks, "there is no such root: give the number of a rank");
      const bool is_root = communicators->all().rank() == root;
      require(is_root || buffer != MPI_IN_PLACE,
              "MPI_IN_PLACE is on a rank that is not the root: give it there alone");
      buffers.elements = own_elements(buffer, count, datatype);
      if (!is_root) return;
      buffers.root_buffer = const_cast<void*>(root_buffer);
      buffers.root_elements = elements_of_all(root_buffer, count, counts, root_datatype, ranks);
      buffers.root_type = root_datatype;
    });
    *collective = keep<halocline_collective>(
        std::make_unique<Collective>(Collective{communicators, make(communicators, buffers)}));
  });
}

// Throws ConfigError on all ranks unless each rank contributes what all ranks expect of it.
// Collective.
void require_same_numbers(const comm::Communicator& all,
                          const std::vector<std::int64_t>& expected) {
  const auto mine = expected[static_cast<std::size_t>(all.rank())];
  std::vector<std::int64_t> sent(expected.size());
  HALOCLINE_MPI(MPI_Allgather(&mine, 1, MPI_INT64_T, sent.data(), 1, MPI_INT64_T, all.get()));
  comm::collectively(all.get(), [&] {
    for (std::size_t rank = 0; rank < sent.size(); ++rank)
      if (sent[rank] != expected[rank])
        throw ConfigError("rank " + std::to_string(rank) + " gives " + std::to_string(sent[rank]) +
                          " elements, and rank " + std::to_string(all.rank()) + " expects " +
                          std::to_string(expected[rank]) + ": give the same counts on all ranks");
  });
}

Collective& collective_of(halocline_collective collective) {
  return object_of<Collective>(collective, "collective", "halocline_gather_create(), for instance");
}

}  // namespace

bool is_live(halocline_collective collective) {
  return objects<Collective>().find(number_of(collective)) != nullptr;
}

}  // namespace halocline::c

using namespace halocline;
using namespace halocline::c;

int halocline_gather_create(MPI_Comm comm, const void* buffer, std::int64_t count,
                            MPI_Datatype datatype, void* root_buffer, const std::int64_t* counts,
                            MPI_Datatype root_datatype, int root, halocline_collective* gather) {
  return rooted(comm, buffer, count, datatype, root_buffer, counts, root_datatype, root, gather,
                [](const auto& communicators, const auto& buffers) {
                  return std::make_shared<comm::GatherPlan>(communicators, buffers,
                                                            comm::GatherVariant::zero_copy);
                });
}

int halocline_scatter_create(MPI_Comm comm, void* buffer, std::int64_t count, MPI_Datatype datatype,
                             const void* root_buffer, const std::int64_t* counts,
                             MPI_Datatype root_datatype, int root, halocline_collective* scatter) {
  return rooted(comm, buffer, count, datatype, root_buffer, counts, root_datatype, root, scatter,
                [](const auto& communicators, const auto& buffers) {
                  return std::make_shared<comm::ScatterPlan>(communicators, buffers);
                });
}

int halocline_allgather_create(MPI_Comm comm, const void* buffer, std::int64_t count,
                               MPI_Datatype datatype, void* all_buffer, const std::int64_t* counts,
                               MPI_Datatype all_datatype, halocline_collective* allgather) {
  return guarded([&] {
    require_communicator(comm);
    const auto communicators = communicators_of(comm);
    const auto& all = communicators->all();
    comm::AllgatherBuffers buffers{buffer, 0, datatype, all_buffer, {}, all_datatype};
    comm::collectively(all.get(), [&] {
      prepare(allgather);
      buffers.send_elements = own_elements(buffer, count, datatype);
      buffers.recv_elements = elements_of_all(all_buffer, count, counts, all_datatype, all.size());
    });
    require_same_numbers(all, buffers.recv_elements);
    *allgather = keep<halocline_collective>(std::make_unique<Collective>(
        Collective{communicators, std::make_shared<comm::AllgatherPlan>(communicators, buffers)}));
  });
}

int halocline_run(halocline_collective collective) {
  return guarded([&] {
    auto& of = collective_of(collective);
    require_mpi();
    require(!of.failed, "this collective has failed before: free it and make a new one");
    of.failed = true;
    of.plan->run();
    of.failed = false;
  });
}

int halocline_collective_free(halocline_collective* collective) {
  return guarded([&] {
    require(collective != nullptr, "the collective is NULL: give the address of a handle");
    if (*collective == nullptr) return;
    require_mpi();
    collective_of(*collective);
    objects<Collective>().take(number_of(std::exchange(*collective, nullptr)));
  });
}
