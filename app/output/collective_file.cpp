// SPDX-License-Identifier: BSD-3-Clause
#include "collective_file.hpp"

#include <utility>

#include "comm/mpi/communicator.hpp"
#include "draft.hpp"

namespace halocline::app {

// A file that only some ranks have opened stays open: to close it would wait for the other ranks.
CollectiveFile::CollectiveFile(MPI_Comm comm, std::string path)
    : comm_(comm), path_(std::move(path)) {
  require(MPI_File_open(comm, path_.c_str(), MPI_MODE_WRONLY, MPI_INFO_NULL, &file_));
}

CollectiveFile::~CollectiveFile() {
  if (file_ != MPI_FILE_NULL) MPI_File_close(&file_);
}

void CollectiveFile::set_view(std::int64_t at, MPI_Datatype value, const dtype::Datatype& view) {
  require(MPI_File_set_view(file_, at, value, view.get(), "native", MPI_INFO_NULL));
}

void CollectiveFile::write(const void* values, int count, MPI_Datatype value) {
  require(MPI_File_write_all(file_, values, count, value, MPI_STATUS_IGNORE));
}

void CollectiveFile::close() {
  require(MPI_File_sync(file_));
  require(MPI_File_close(&file_));
}

// Throws on all ranks unless the call succeeded on all of them.
void CollectiveFile::require(int code) const {
  comm::collectively(comm_, [&] {
    if (code == MPI_SUCCESS) return;
    char text[MPI_MAX_ERROR_STRING] = "?";
    int length = 0;
    MPI_Error_string(code, text, &length);
    refuse_to_write(path_, text);
  });
}

}  // namespace halocline::app
