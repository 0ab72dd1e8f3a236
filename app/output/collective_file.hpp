// SPDX-License-Identifier: BSD-3-Clause
// Opens a file on all ranks for MPI-IO. Errors of any rank become errors of all ranks.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string>

#include "dtype/datatype.hpp"

namespace halocline::app {

/// Is a file that all ranks write together. All members are collective.
class CollectiveFile {
 public:
  /// Opens a file that is there. Throws EnvironmentError on all ranks if some rank cannot.
  CollectiveFile(MPI_Comm comm, std::string path);
  CollectiveFile(const CollectiveFile&) = delete;
  CollectiveFile& operator=(const CollectiveFile&) = delete;
  /// Closes the file if close() was not called.
  ~CollectiveFile();

  /// Shows this rank the places of the file that `view` describes, from byte `at` on. write()
  /// begins at the first of them.
  void set_view(std::int64_t at, MPI_Datatype value, const dtype::Datatype& view);

  /// Writes `count` values to the next places of the view.
  void write(const void* values, int count, MPI_Datatype value);

  /// Closes the file, once all data have left this process.
  void close();

 private:
  void require(int code) const;

  MPI_Comm comm_;
  std::string path_;
  MPI_File file_ = MPI_FILE_NULL;
};

}  // namespace halocline::app
