// SPDX-License-Identifier: BSD-3-Clause
// Opens a file on all ranks for MPI-IO. Errors of any rank become errors of all ranks.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string>

#include "dtype/datatype.hpp"

namespace halocline::app {

/// Is a file that all ranks write or read together. All members are collective. They throw
/// EnvironmentError on all ranks if a call of MPI fails on some rank.
class CollectiveFile {
 public:
  enum class Use { write, read };

  /// Opens a file that is there.
  CollectiveFile(MPI_Comm comm, std::string path, Use use);
  CollectiveFile(const CollectiveFile&) = delete;
  CollectiveFile& operator=(const CollectiveFile&) = delete;
  /// Closes the file if close() was not called.
  ~CollectiveFile();

  /// Shows this rank the places of the file that `view` describes, from byte `at` on. write() and
  /// read() begin at the first of them.
  void set_view(std::int64_t at, MPI_Datatype value, const dtype::Datatype& view);

  /// Writes `count` values to the next places of the view.
  void write(const void* values, int count, MPI_Datatype value);

  /// Reads `count` values from the next places of the view.
  void read(void* values, int count, MPI_Datatype value);

  /// Closes the file. Written data have left this process then.
  void close();

 private:
  void require(int code) const;

  MPI_Comm comm_;
  std::string path_;
  Use use_;
  MPI_File file_ = MPI_FILE_NULL;
};

}  // namespace halocline::app
