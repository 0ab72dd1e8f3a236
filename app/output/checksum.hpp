// SPDX-License-Identifier: BSD-3-Clause
// Computes the checksum of a file, each rank of a part of it.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "collective_file.hpp"

namespace halocline::app {

/// Returns a CRC-32 as text: 0x and 8 digits.
std::string crc32_text(std::uint32_t crc);

/// Sees bytes of a file that begin at byte `at`, a multiple of 8.
using SeeBytes = std::function<void(std::int64_t at, std::span<const char> bytes)>;

/// Returns the CRC-32 of a file of `bytes` bytes, as zlib and gzip have it. Collective; each rank
/// reads an equal part.
/// \param use tells if the file is new, so that a short file could not be written
/// \param see is called on each rank for all bytes that the rank reads
/// \throws EnvironmentError on all ranks if some rank cannot read its part
std::uint32_t crc32_of_file(const std::string& path, std::int64_t bytes, MPI_Comm comm,
                            CollectiveFile::Use use = CollectiveFile::Use::read,
                            const SeeBytes& see = {});

}  // namespace halocline::app
