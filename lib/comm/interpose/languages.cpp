// SPDX-License-Identifier: BSD-3-Clause
// Finds MPI's functions and special addresses of Fortran. The names are those of compilers that
// append an underscore. MPI's functions are looked up at the first call, so programs in C need no
// Fortran library.
#include "comm/interpose/languages.hpp"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstdio>
#include <string>

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

}  // namespace

bool is_special(Given<void*> buffer) {
  const auto& [known, variables] = special_addresses();
  if (known.empty() && variables.empty()) return true;
  return std::find(known.begin(), known.end(), buffer.address) != known.end() ||
         std::any_of(variables.begin(), variables.end(), [&](const void* const* variable) {
           return *variable == nullptr || *variable == buffer.address;
         });
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
  if (list_ == MPI_F_STATUS_IGNORE) list_ = own_.data();
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
    : own_(wanted.address == MPI_F_STATUSES_IGNORE ? static_cast<std::size_t>(count * kStatusSize)
                                                   : 0),
      list_(own_.empty() ? static_cast<MPI_Fint*>(wanted.address) : own_.data()) {}

const MPI_Status* Fortran::Statuses::in_c(int count) {
  in_c_ = std::vector<MPI_Status>(static_cast<std::size_t>(count));
  for (auto& status : in_c_)
    PMPI_Status_f2c(list_ + (&status - in_c_.data()) * kStatusSize, &status);
  return in_c_.data();
}

}  // namespace halocline::interpose
