// SPDX-License-Identifier: BSD-3-Clause
// Declares the two kinds of memory that the ranks of a node can address.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "comm/node/paged_memory.hpp"

namespace halocline::comm::detail {

/// Holds memory of this rank that the ranks of its node can address, too.
class NodeMemory {
 public:
  virtual ~NodeMemory() = default;
  /// Orders loads and stores, as SharedWindow::sync() does.
  virtual void sync() const = 0;

  /// Holds the addresses here of the memory of each rank of the node's communicator.
  std::vector<std::byte*> begins;
};

/// Makes memory in a file without a name, which goes with the last process that has it mapped.
/// Returns nullptr on all ranks of the node if this is not possible on one of them. Collective over
/// `node`.
/// \param why is set to the reason if it is not possible
std::unique_ptr<NodeMemory> make_memory_file(MPI_Comm node, std::int64_t bytes, Pages pages,
                                             std::string& why);

/// Makes a shared window of MPI. Collective over `node`, and so is the destructor unless an
/// exception is under way. Returns nullptr on the ranks where MPI could not allocate it.
std::unique_ptr<NodeMemory> make_mpi_window(MPI_Comm node, std::int64_t bytes);

}  // namespace halocline::comm::detail
