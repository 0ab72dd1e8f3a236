// SPDX-License-Identifier: BSD-3-Clause
#include "checksum.hpp"

#include <zlib.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <vector>

#include "comm/mpi/communicator.hpp"
#include "draft.hpp"
#include "environment.hpp"
#include "support/error.hpp"
#include "support/mpi_check.hpp"
#include "support/text_file.hpp"

namespace halocline::app {

namespace {

std::uint32_t crc32_of_part(const std::string& path, std::int64_t begin, std::int64_t bytes,
                            CollectiveFile::Use use, const SeeBytes& see) {
  constexpr std::int64_t kMostAtOnce = 1 << 20;
  std::ifstream file(path, std::ios::binary);
  file.seekg(begin);
  std::vector<char> buffer(static_cast<std::size_t>(std::min(bytes, kMostAtOnce)));
  auto crc = crc32(0, nullptr, 0);
  while (bytes > 0) {
    const auto now = std::min(bytes, kMostAtOnce);
    file.read(buffer.data(), now);
    if (!file && use == CollectiveFile::Use::write)
      refuse_to_write(path, file.eof() ? "it has come out too short" : "it cannot be read back");
    if (!file)
      throw EnvironmentError("file cannot be read (" + excerpt(path, 1000) +
                             "): check that all ranks may read it");
    crc = crc32(crc, reinterpret_cast<const Bytef*>(buffer.data()), static_cast<uInt>(now));
    if (see) see(begin, {buffer.data(), static_cast<std::size_t>(now)});
    begin += now;
    bytes -= now;
  }
  return static_cast<std::uint32_t>(crc);
}

}  // namespace

std::string crc32_text(std::uint32_t crc) {
  char out[16];
  std::snprintf(out, sizeof out, "0x%08x", crc);
  return out;
}

std::uint32_t crc32_of_file(const std::string& path, std::int64_t bytes, MPI_Comm comm,
                            CollectiveFile::Use use, const SeeBytes& see) {
  const std::int64_t ranks = size_of(comm), rank = rank_of(comm);
  const auto begin_of = [&](std::int64_t of) {
    constexpr std::int64_t kValue = 8;  // no value is cut
    return of == ranks ? bytes : bytes / kValue / ranks * of * kValue;
  };
  std::uint32_t mine = 0;
  comm::collectively(comm, [&] {
    mine = crc32_of_part(path, begin_of(rank), begin_of(rank + 1) - begin_of(rank), use, see);
  });
  std::vector<std::uint32_t> all(static_cast<std::size_t>(ranks));
  HALOCLINE_MPI(MPI_Allgather(&mine, 1, MPI_UINT32_T, all.data(), 1, MPI_UINT32_T, comm));
  auto out = crc32(0, nullptr, 0);
  for (std::int64_t of = 0; of < ranks; ++of)
    out = crc32_combine(out, all[static_cast<std::size_t>(of)],
                        static_cast<z_off_t>(begin_of(of + 1) - begin_of(of)));
  return static_cast<std::uint32_t>(out);
}

}  // namespace halocline::app
