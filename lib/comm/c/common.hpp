// SPDX-License-Identifier: BSD-3-Clause
// Holds what the functions of halocline.h share: handles, structs that may grow, communicators.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "comm/c/errors.hpp"
#include "comm/c/handles.hpp"
#include "comm/mpi/communicator.hpp"
#include "comm/mpi/null_buffer.hpp"
#include "support/mpi_check.hpp"
#include "support/narrow.hpp"

namespace halocline::c {

/// Duplicates a communicator so that its errors are returned. A Cartesian topology stays.
class OwnCommunicator {
 public:
  explicit OwnCommunicator(MPI_Comm comm) : comm_(comm) {
    HALOCLINE_MPI(MPI_Comm_set_errhandler(comm_.get(), MPI_ERRORS_RETURN));
  }
  MPI_Comm get() const { return comm_.get(); }
  int size() const { return comm_.size(); }

 private:
  comm::Communicator comm_;
};

/// Throws ConfigError unless MPI is running and there is a communicator.
inline void require_communicator(MPI_Comm comm) {
  require_mpi();
  require(comm != MPI_COMM_NULL, "the communicator is MPI_COMM_NULL: give one of all ranks");
  int has_two_groups = 0;
  HALOCLINE_MPI(MPI_Comm_test_inter(comm, &has_two_groups));
  require(has_two_groups == 0,
          "the communicator is an intercommunicator: merge its groups with MPI_Intercomm_merge");
}

/// Returns the bytes of `count` instances of a datatype without their gaps. Throws ConfigError if a
/// number or the datatype cannot be.
inline std::int64_t bytes_of(std::int64_t count, MPI_Datatype datatype) {
  require(count >= 0, "the count is negative: give 0 or more");
  require(datatype != MPI_DATATYPE_NULL,
          "the datatype is MPI_DATATYPE_NULL: give one that is made");
  MPI_Count size = 0;
  HALOCLINE_MPI(MPI_Type_size_x(datatype, &size));
  require(size >= 0, "MPI knows no size of the datatype: give one that is made and not freed");
  return checked_multiply(count, size);
}

/// Throws ConfigError unless `count` instances of a datatype can be at `buffer`. Returns
/// bytes_of().
inline std::int64_t require_data(const void* buffer, std::int64_t count, MPI_Datatype datatype) {
  const auto bytes = bytes_of(count, datatype);
  require(count == 0 || !comm::is_null_by_mistake(buffer, datatype),
          "the buffer is NULL: give the address of the data");
  return bytes;
}

/// Copies the members that the caller's header and this library both know. Members that only the
/// library knows keep their defaults.
template <class Struct>
void copy_known(Struct& to, const Struct* from, const char* name) {
  require(from->size >= sizeof(std::size_t),
          (std::string(name) + ".size is not set: initialise the struct with its macro").c_str());
  require(from->size <= sizeof(Struct),
          (std::string(name) + " has more members than this library knows: use a library that is "
                               "as new as its header")
              .c_str());
  std::memcpy(static_cast<void*>(&to), from, from->size);
}

/// Returns the objects of one kind. They are never destroyed, since programs may forget to free.
template <class T>
Handles<T>& objects() {
  static auto* const all = new Handles<T>;
  return *all;
}

/// Returns the number behind a handle of halocline.h.
template <class Handle>
std::uintptr_t number_of(Handle handle) {
  return reinterpret_cast<std::uintptr_t>(handle);
}

/// Keeps an object, and returns its handle of halocline.h.
template <class Handle, class T>
Handle keep(std::unique_ptr<T> object) {
  return reinterpret_cast<Handle>(objects<T>().insert(std::move(object)));
}

/// Throws ConfigError for a handle without an object.
[[noreturn]] inline void throw_no_object(bool is_null, const std::string& what,
                                         const std::string& maker) {
  if (is_null) throw ConfigError("the " + what + " is NULL: make it with " + maker);
  throw ConfigError("the " + what + " was freed or never made: make one with " + maker);
}

/// Returns the object of a handle. Throws ConfigError if it is NULL or was freed. `what` names the
/// object, and `maker` the function that makes one. No string is made before there is an error.
template <class T, class Handle>
T& object_of(Handle handle, const char* what, const char* maker) {
  auto* const found = objects<T>().find(number_of(handle));
  if (found == nullptr) throw_no_object(handle == nullptr, what, maker);
  return *found;
}

/// Returns true for a handle whose object was not freed.
bool is_live(halocline_plan plan);
bool is_live(halocline_messages messages);
bool is_live(halocline_request request);
bool is_live(halocline_collective collective);

}  // namespace halocline::c
