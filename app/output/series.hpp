// SPDX-License-Identifier: BSD-3-Clause
// Lists the snapshots of a folder, for programs that open them as one series in time.
#pragma once

#include "comm/halo/direction.hpp"
#include "vti.hpp"

namespace halocline::app {

/// Adds a snapshot to fields.pvd (ParaView) and fields.xmf (XDMF) in its folder. Snapshots that are
/// listed there stay, but for one of the same step. Local.
/// \throws ConfigError if one of the files is there and was not written by this function
/// \throws EnvironmentError if a file cannot be written; the older file is still there then
void add_to_series(const Snapshot& snapshot, const VtiLayout& layout, const comm::Int3& global);

}  // namespace halocline::app
