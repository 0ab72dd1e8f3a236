// SPDX-License-Identifier: BSD-3-Clause
#include "collective_file.hpp"

#include <utility>

#include "comm/mpi/communicator.hpp"
#include "draft.hpp"
#include "support/error.hpp"
#include "support/text_file.hpp"

namespace halocline::app {

// A file that only some ranks have opened stays open: to close it would wait for the other ranks.
CollectiveFile::CollectiveFile(MPI_Comm comm, std::string path, Use use)
    : comm_(comm), path_(std::move(path)), use_(use) {
  const int mode = use == Use::write ? MPI_MODE_WRONLY : MPI_MODE_RDONLY;
  require(MPI_File_open(comm, path_.c_str(), mode, MPI_INFO_NULL, &file_));
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

void CollectiveFile::read(void* values, int count, MPI_Datatype value) {
  require(MPI_File_read_all(file_, values, count, value, MPI_STATUS_IGNORE));
}

void CollectiveFile::close() {
  if (use_ == Use::write) require(MPI_File_sync(file_));
  require(MPI_File_close(&file_));
}

// Throws on all ranks unless the call succeeded on all of them.
void CollectiveFile::require(int code) const {
  comm::collectively(comm_, [&] {
    if (code == MPI_SUCCESS) return;
    char text[MPI_MAX_ERROR_STRING] = "?";
    int length = 0;
    MPI_Error_string(code, text, &length);
    if (use_ == Use::write) refuse_to_write(path_, text);
    throw EnvironmentError("file cannot be read (" + excerpt(path_, 1000) + ": " + text +
                           "): check that all ranks may read it");
  });
}

}  // namespace halocline::app
