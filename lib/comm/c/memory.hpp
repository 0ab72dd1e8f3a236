// SPDX-License-Identifier: BSD-3-Clause
// Keeps the memory of halocline_alloc(), for the plans that use it.
#pragma once

#include <mpi.h>

#include <memory>
#include <vector>

#include "comm/node/paged_memory.hpp"
#include "comm/node/shared_window.hpp"

namespace halocline::c {

/// Returns the shared windows whose ranks are those of `comm`, in the order in which they were
/// allocated: the same on all ranks. Local.
std::vector<std::shared_ptr<const comm::SharedWindow>> windows_of(MPI_Comm comm);

/// Returns the memory of halocline_alloc() that is in no window. Local.
std::vector<std::shared_ptr<const comm::PagedMemory>> ordinary_memory();

}  // namespace halocline::c
