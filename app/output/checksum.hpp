// SPDX-License-Identifier: BSD-3-Clause
// Computes the checksum of a file, each rank of a part of it.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string>

namespace halocline::app {

/// Returns a CRC-32 as text: 0x and 8 digits.
std::string crc32_text(std::uint32_t crc);

/// Returns the CRC-32 of a file of `bytes` bytes, as zlib and gzip have it. Collective; each rank
/// reads an equal part.
/// \throws EnvironmentError on all ranks if some rank cannot read its part
std::uint32_t crc32_of_file(const std::string& path, std::int64_t bytes, MPI_Comm comm);

}  // namespace halocline::app
