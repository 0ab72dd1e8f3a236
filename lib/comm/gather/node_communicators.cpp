// SPDX-License-Identifier: BSD-3-Clause
#include "comm/gather/node_communicators.hpp"

#include <algorithm>
#include <mutex>
#include <tuple>
#include <vector>

#include "support/mpi_check.hpp"

namespace halocline::comm {

namespace {

/// Holds what a communicator carries as an attribute.
struct Cached {
  std::shared_ptr<NodeCommunicators> real;
  std::vector<std::shared_ptr<NodeCommunicators>> others;
};

// Lists the attributes of all communicators, in the order in which all ranks have made them. The
// list is never destroyed, since MPI may call back after static objects are gone.
std::vector<Cached*>& all_cached() {
  static auto* const all = new std::vector<Cached*>;
  return *all;
}

// Guards the list and the keys, which threads may use with communicators of their own. No call
// under it waits for other ranks.
std::mutex& mutex() {
  static auto* const made = new std::mutex;
  return *made;
}

extern "C" int halocline_drop_node_communicators(MPI_Comm, int, void* value, void*) {
  {
    const std::lock_guard lock(mutex());
    std::erase(all_cached(), static_cast<Cached*>(value));
  }
  delete static_cast<Cached*>(value);
  return MPI_SUCCESS;
}

extern "C" int halocline_drop_all_node_communicators(MPI_Comm, int, void* keyval, void*) {
  for (auto* const cached : all_cached()) *cached = {};
  return MPI_Comm_free_keyval(static_cast<int*>(keyval));
}

int keyval() {
  static int key = MPI_KEYVAL_INVALID;
  if (key != MPI_KEYVAL_INVALID) return key;
  HALOCLINE_MPI(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, halocline_drop_node_communicators,
                                       &key, nullptr));
  // MPI_Finalize first deletes the attributes of MPI_COMM_SELF, while communicators can be freed.
  int at_finalize = MPI_KEYVAL_INVALID;
  HALOCLINE_MPI(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, halocline_drop_all_node_communicators,
                                       &at_finalize, nullptr));
  HALOCLINE_MPI(MPI_Comm_set_attr(MPI_COMM_SELF, at_finalize, &key));
  HALOCLINE_MPI(MPI_Comm_free_keyval(&at_finalize));
  return key;
}

Cached& cached(MPI_Comm comm) {
  int has_two_groups = 0;
  HALOCLINE_MPI(MPI_Comm_test_inter(comm, &has_two_groups));
  if (has_two_groups != 0)
    throw ConfigError(
        "an intercommunicator (its ranks are of two groups): merge them with "
        "MPI_Intercomm_merge");
  const std::lock_guard lock(mutex());
  void* value = nullptr;
  int found = 0;
  HALOCLINE_MPI(MPI_Comm_get_attr(comm, keyval(), &value, &found));
  if (found == 0) {
    auto made = std::make_unique<Cached>();
    HALOCLINE_MPI(MPI_Comm_set_attr(comm, keyval(), made.get()));
    all_cached().push_back(made.get());
    value = made.release();
  }
  return *static_cast<Cached*>(value);
}

}  // namespace

std::shared_ptr<NodeCommunicators> NodeCommunicators::of(MPI_Comm comm) {
  auto& real = cached(comm).real;
  if (!real) real.reset(new NodeCommunicators(comm, NodeHierarchy(comm)));
  return real;
}

std::shared_ptr<NodeCommunicators> NodeCommunicators::of(MPI_Comm comm,
                                                         const NodeHierarchy& nodes) {
  auto& others = cached(comm).others;
  const auto found = std::find_if(others.begin(), others.end(), [&](const auto& made) {
    return made->nodes().node_of_ranks() == nodes.node_of_ranks();
  });
  if (found != others.end()) return *found;
  others.push_back(std::shared_ptr<NodeCommunicators>(new NodeCommunicators(comm, nodes)));
  return others.back();
}

NodeCommunicators::NodeCommunicators(MPI_Comm comm, const NodeHierarchy& nodes)
    : nodes_(nodes), all_(comm), local_(comm, nodes.node_of(nodes.rank()), nodes.rank()) {}

int NodeCommunicators::leader(int node, int root) const {
  const auto& ranks = nodes_.ranks_of(node);
  const auto found = std::lower_bound(ranks.begin(), ranks.end(), root);
  return found != ranks.end() && *found == root ? static_cast<int>(found - ranks.begin()) : 0;
}

MPI_Comm NodeCommunicators::bridge(int root) {
  const int key = leader(nodes_.node_of(root), root) == 0 ? -1 : root;
  const auto found = bridges_.find(key);
  if (found != bridges_.end()) return found->second.get();
  const int node = nodes_.node_of(nodes_.rank());
  const bool leads = local_.rank() == leader(node, root);
  return bridges_
      .emplace(std::piecewise_construct, std::forward_as_tuple(key),
               std::forward_as_tuple(all_.get(), leads ? 0 : MPI_UNDEFINED, node))
      .first->second.get();
}

}  // namespace halocline::comm
