// SPDX-License-Identifier: BSD-3-Clause
// Says on which machine this process runs: its processor, its memory and its MPI library. Results
// and system models carry the names.
#pragma once

#include <span>
#include <string>

namespace halocline {

/// Returns the name of the processor in /proc/cpuinfo: a model name on x86, numbers of its maker on
/// Arm. Without such a name, returns the architecture from uname().
std::string cpu_model();

/// Returns the bytes of memory that this node can still give; infinite if unknown. The number is
/// Linux's MemAvailable, or what a control group of this process has left if that is less.
double available_memory();

/// Returns the bytes of addresses that this process may still take (`ulimit -v`); infinite without
/// a limit.
double addresses_left();

/// Is what a rank leaves to MPI, in bytes of addresses. Open MPI hangs without them.
constexpr double kAddressesOfMpi = 16 << 20;

/// Tells what to do where an allocation throws std::bad_alloc.
constexpr char kNoMemory[] = "there is no memory left: raise ulimit -v, or use smaller fields";

/// Returns the first line of MPI_Get_library_version(). Throws MpiError if that call fails.
std::string mpi_library();

/// Tells if another library stands in front of MPI, for one of these functions. MPI_X and PMPI_X
/// are then not in the same file.
bool is_interposed(std::span<const char* const> functions);

}  // namespace halocline
