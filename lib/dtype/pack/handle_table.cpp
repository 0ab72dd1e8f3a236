// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/pack/handle_table.hpp"

#include "dtype/datatype.hpp"
#include "support/mpi_check.hpp"

namespace halocline::dtype::detail {

namespace {

extern "C" int halocline_free_type_keyval(MPI_Comm, int, void* keyval, void*) {
  return MPI_Type_free_keyval(static_cast<int*>(keyval));
}
extern "C" int halocline_free_comm_keyval(MPI_Comm, int, void* keyval, void*) {
  return MPI_Comm_free_keyval(static_cast<int*>(keyval));
}

}  // namespace

int HandleTableBase::on_free_type(MPI_Datatype handle, int, void*, void* table) {
  static_cast<HandleTableBase*>(table)->erase(key_of(handle));
  return MPI_SUCCESS;
}
int HandleTableBase::on_free_communicator(MPI_Comm handle, int, void*, void* table) {
  static_cast<HandleTableBase*>(table)->erase(key_of(handle));
  return MPI_SUCCESS;
}

void HandleTableBase::attach_to_type(MPI_Datatype handle) {
  if (is_predefined(handle)) return;
  make_keyval();
  if (keyval_ == MPI_KEYVAL_INVALID) throw EnvironmentError("no entries of types in MPI_Finalize");
  HALOCLINE_MPI(MPI_Type_set_attr(handle, keyval_, nullptr));
}
void HandleTableBase::attach_to_communicator(MPI_Comm handle) {
  make_keyval();
  if (keyval_ == MPI_KEYVAL_INVALID)
    throw EnvironmentError("no entries of communicators in MPI_Finalize");
  HALOCLINE_MPI(MPI_Comm_set_attr(handle, keyval_, nullptr));
}

void HandleTableBase::make_keyval() {
  once_([this] {
    // MPI_Finalize first deletes the attributes of MPI_COMM_SELF. That deletes our keyval.
    int at_finalize = MPI_KEYVAL_INVALID;
    const bool of_types = of_ == HandlesOf::datatypes;
    HALOCLINE_MPI(MPI_Comm_create_keyval(
        MPI_COMM_NULL_COPY_FN, of_types ? halocline_free_type_keyval : halocline_free_comm_keyval,
        &at_finalize, nullptr));
    if (of_types)
      HALOCLINE_MPI(MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, on_free_type, &keyval_, this));
    else
      HALOCLINE_MPI(
          MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_free_communicator, &keyval_, this));
    HALOCLINE_MPI(MPI_Comm_set_attr(MPI_COMM_SELF, at_finalize, &keyval_));
    HALOCLINE_MPI(MPI_Comm_free_keyval(&at_finalize));
  });
}

}  // namespace halocline::dtype::detail
