// SPDX-License-Identifier: BSD-3-Clause
// Finds MPI's functions and special addresses of Fortran. The names are those of compilers that
// append an underscore. MPI's functions are looked up at the first call, so programs in C need no
// Fortran library.
#include "comm/interpose/languages.hpp"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>

// Is defined in completion.cpp.
extern "C" void mpi_waitany_f08_(void* count, void* requests, void* index, void* status,
                                 MPI_Fint* error);

namespace halocline::interpose {

// Looks in all libraries of the process, also in those that were loaded without showing their
// names.
void* find_behind(const char* name, const void* ours) {
  if (auto* const next = dlsym(RTLD_NEXT, name)) return next;
  std::vector<std::string> libraries;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* out) {
        static_cast<std::vector<std::string>*>(out)->emplace_back(info->dlpi_name);
        return 0;
      },
      &libraries);
  for (const auto& path : libraries) {
    void* const library = dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (library == nullptr) continue;
    void* const found = dlsym(library, name);
    dlclose(library);
    if (found != nullptr && found != ours) return found;
  }
  std::fprintf(stderr, "halocline: %s was called, but no MPI for Fortran is there\n", name);
  PMPI_Abort(MPI_COMM_WORLD, 3);
  return nullptr;
}

constinit thread_local const void* passed_on = nullptr;

namespace {

// Holds addresses that stand for MPI_BOTTOM and MPI_IN_PLACE. Open MPI exports them under its own
// names. MPICH exports variables with the addresses, and sets these at its first call.
struct SpecialAddresses {
  std::vector<const void*> known;
  std::vector<const void* const*> variables;
};
const SpecialAddresses& special_addresses() {
  // Never destroyed: a program may send while it ends.
  static const auto& value = *new auto([] {
    SpecialAddresses out;
    for (const char* name : {"mpi_fortran_bottom_", "mpi_fortran_in_place_"})
      if (const auto* address = dlsym(RTLD_DEFAULT, name)) out.known.push_back(address);
    for (const char* name : {"MPIR_F_MPI_BOTTOM", "MPIR_F_MPI_IN_PLACE"})
      if (const auto* address = dlsym(RTLD_DEFAULT, name))
        out.variables.push_back(static_cast<const void* const*>(address));
    return out;
  }());
  return value;
}

// Tells if an address stands for MPI_STATUS_IGNORE or MPI_STATUSES_IGNORE. With Open MPI, mpi_f08
// has those of `use mpi`. MPICH has objects of their own for it.
bool is_ignored(const void* status) {
  static const auto& objects =
      *new std::array{dlsym(RTLD_DEFAULT, "MPIR_F08_MPI_STATUS_IGNORE_OBJ"),
                      dlsym(RTLD_DEFAULT, "MPIR_F08_MPI_STATUSES_IGNORE_OBJ")};
  return status == MPI_F_STATUS_IGNORE || status == MPI_F_STATUSES_IGNORE ||
         std::find(objects.begin(), objects.end(), status) != objects.end();
}

}  // namespace

bool is_special(Given<void*> buffer) {
  const auto& [known, variables] = special_addresses();
  if (known.empty() && variables.empty()) return true;
  return std::find(known.begin(), known.end(), buffer.address) != known.end() ||
         std::any_of(variables.begin(), variables.end(), [&](const void* const* variable) {
           return *variable == nullptr || *variable == buffer.address;
         });
}

// Asks MPI which index a request has that is complete.
int Fortran08::first_index() {
  if (!kFortranCallsC) return 1;
  static const int value = [] {
    static const auto wait_any = behind("mpi_waitany_f08_", mpi_waitany_f08_);
    MPI_Request done = MPI_REQUEST_NULL;
    PMPI_Grequest_start(
        [](void*, MPI_Status* status) { return PMPI_Status_set_elements(status, MPI_PACKED, 0); },
        [](void*) { return MPI_SUCCESS; }, [](void*, int) { return MPI_SUCCESS; }, nullptr, &done);
    PMPI_Grequest_complete(done);
    MPI_Fint count = 1, request = PMPI_Request_c2f(done), index = 1, error = MPI_SUCCESS;
    std::array<MPI_Fint, kStatusSize> status;
    wait_any(&count, &request, &index, status.data(), &error);
    return index == 0 ? 0 : 1;
  }();
  return value;
}

bool Fortran::Requests::has_read() {
  if (count_ <= 0) return false;
  in_c_ = std::vector<MPI_Request>(static_cast<std::size_t>(count_));
  read();
  return true;
}

void Fortran::Requests::read() {
  for (auto& request : in_c_) request = PMPI_Request_f2c(list_[&request - in_c_.data()]);
}

MPI_Fint* Fortran::Status::needed() {
  if (is_ignored(list_)) list_ = own_.data();
  return list_;
}

void Fortran::Status::empty() {
  MPI_Status nothing{};
  PMPI_Status_set_elements(&nothing, MPI_PACKED, 0);
  PMPI_Status_c2f(&nothing, needed());
}

MPI_Status Fortran::Status::in_c() const {
  MPI_Status out;
  PMPI_Status_f2c(list_, &out);
  return out;
}

Fortran::Statuses::Statuses(int count, Given<MPI_Status*> wanted)
    : own_(is_ignored(wanted.address) ? static_cast<std::size_t>(count * kStatusSize) : 0),
      list_(own_.empty() ? static_cast<MPI_Fint*>(wanted.address) : own_.data()) {}

const MPI_Status* Fortran::Statuses::in_c(int count) {
  in_c_ = std::vector<MPI_Status>(static_cast<std::size_t>(count));
  for (auto& status : in_c_)
    PMPI_Status_f2c(list_ + (&status - in_c_.data()) * kStatusSize, &status);
  return in_c_.data();
}

}  // namespace halocline::interpose
