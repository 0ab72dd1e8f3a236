// SPDX-License-Identifier: BSD-3-Clause
// Defines the same calls for Fortran's mpif.h and `use mpi`.
//
// MPI's functions for Fortran call its profiling interface, so the calls for C do not see them.
// Here arguments are replaced as in the calls for C. Then MPI's function for Fortran is called. The
// names are those of compilers that append an underscore. MPI's functions are looked up at the
// first call, so programs in C need no Fortran library.
#include <dlfcn.h>
#include <link.h>
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "comm/interpose/collectives.hpp"
#include "comm/interpose/messages.hpp"

using namespace halocline;
using namespace halocline::interpose;

namespace {

static_assert(sizeof(MPI_Fint) == sizeof(int), "counts are handed on as they are");

#ifdef MPI_F_STATUS_SIZE
constexpr int kStatusSize = MPI_F_STATUS_SIZE;
#else
constexpr int kStatusSize = sizeof(MPI_Status) / sizeof(MPI_Fint);
#endif

// Returns MPI's function `name`. Looks in all libraries of the process, also in those that were
// loaded without showing their names.
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

// Returns MPI's function with the name of `ours`.
template <class... Arguments>
using Function = void (*)(Arguments...);
template <class... Arguments>
Function<Arguments...> behind(const char* name, Function<Arguments...> ours) {
  return reinterpret_cast<Function<Arguments...>>(
      find_behind(name, reinterpret_cast<const void*>(ours)));
}
#define HALOCLINE_BEHIND(name) static const auto mpi_function = behind(#name, name)

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
// Tells if an address is that of a buffer. If no special address is known, the answer is false, and
// no argument is replaced.
bool is_buffer(const void* address) {
  const auto& [known, variables] = special_addresses();
  if (known.empty() && variables.empty()) return false;
  return std::find(known.begin(), known.end(), address) == known.end() &&
         std::none_of(variables.begin(), variables.end(), [address](const void* const* variable) {
           return *variable == nullptr || *variable == address;
         });
}

// Describes what Fortran sends or receives.
Content content(const void* buffer, const MPI_Fint* count, const MPI_Fint* type,
                const MPI_Fint* partner) {
  return {buffer, *count, PMPI_Type_f2c(*type), *partner, !is_buffer(buffer)};
}

// Returns the `by_mpi` of carry(). It calls `call` with addresses of the count and the type, and
// returns the `error` that `call` sets.
template <class Call>
auto by_fortran(const MPI_Fint* error, Call call) {
  return [=](const void* data, MPI_Fint count, MPI_Datatype type) {
    auto handle = PMPI_Type_c2f(type);
    call(const_cast<void*>(data), &count, &handle);
    return *error;
  };
}

auto watch_fortran(const MPI_Fint* request, Way way) {
  return [=](PackedMessage& packed) { watch(PMPI_Request_f2c(*request), std::move(packed), way); };
}
auto watch_persistent_fortran(const MPI_Fint* request, Way way) {
  return [=](PackedMessage& packed) {
    watch_persistent(PMPI_Request_f2c(*request), std::move(packed), way);
  };
}

// Holds the requests of a call that completes some of them.
class FortranRequests {
 public:
  FortranRequests(int count, const MPI_Fint* requests)
      : requests_(requests), in_c_(static_cast<std::size_t>(count)) {
    read();
  }
  const MPI_Request* in_c() const { return in_c_.data(); }
  // Reads the requests again, as the call has left them.
  void read() {
    for (auto& request : in_c_) request = PMPI_Request_f2c(requests_[&request - in_c_.data()]);
  }

 private:
  const MPI_Fint* requests_;
  std::vector<MPI_Request> in_c_;
};

std::vector<MPI_Datatype> types_in_c(const MPI_Fint* types, int count) {
  std::vector<MPI_Datatype> out;
  for (int i = 0; i < count; ++i) out.push_back(PMPI_Type_f2c(types[i]));
  return out;
}

// Holds the statuses of a call: the caller's or, if it wants none, the library's own.
class FortranStatuses {
 public:
  FortranStatuses(int count, MPI_Fint* wanted, const MPI_Fint* none)
      : own_(wanted == none ? static_cast<std::size_t>(count * kStatusSize) : 0),
        list_(own_.empty() ? wanted : own_.data()) {}
  MPI_Fint* list() const { return list_; }
  std::vector<MPI_Status> in_c(int count) const {
    std::vector<MPI_Status> out(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i)
      PMPI_Status_f2c(list_ + i * kStatusSize, &out[static_cast<std::size_t>(i)]);
    return out;
  }
  MPI_Status one_in_c() const { return in_c(1).front(); }
  // Sets the status to nothing received, until MPI says what was received.
  void empty() const {
    MPI_Status nothing{};
    PMPI_Status_set_elements(&nothing, MPI_PACKED, 0);
    PMPI_Status_c2f(&nothing, list_);
  }

 private:
  std::vector<MPI_Fint> own_;
  MPI_Fint* list_;
};

// Ends the requests that a call completed. Fortran counts them from 1.
void end_some(int completed, const MPI_Fint* indices, const FortranStatuses& got,
              CompletingRequests& taken, MPI_Fint* error) {
  if (completed == MPI_UNDEFINED) return;
  std::vector<int> from_zero(indices, indices + completed);
  for (auto& index : from_zero) --index;
  *error = end_several(*error, completed, got.in_c(completed).data(), taken, from_zero.data());
}

}  // namespace

extern "C" {

void mpi_type_commit_(MPI_Fint* type, MPI_Fint* error) {
  HALOCLINE_BEHIND(mpi_type_commit_);
  mpi_function(type, error);
  if (*error == MPI_SUCCESS) committed(PMPI_Type_f2c(*type));
}

void mpi_type_dup_(MPI_Fint* old_type, MPI_Fint* new_type, MPI_Fint* error) {
  HALOCLINE_BEHIND(mpi_type_dup_);
  mpi_function(old_type, new_type, error);
  if (*error == MPI_SUCCESS && known_type(PMPI_Type_f2c(*old_type)) != nullptr)
    committed(PMPI_Type_f2c(*new_type));
}

void mpi_pack_(void* buffer, MPI_Fint* count, MPI_Fint* type, void* packed, MPI_Fint* size,
               MPI_Fint* position, MPI_Fint* comm, MPI_Fint* error) {
  HALOCLINE_BEHIND(mpi_pack_);
  const DeliveryAfterCall after;
  if (known_type(PMPI_Type_f2c(*type)) == nullptr || !is_buffer(buffer) || !is_buffer(packed))
    return mpi_function(buffer, count, type, packed, size, position, comm, error);
  *error =
      MPI_Pack(buffer, *count, PMPI_Type_f2c(*type), packed, *size, position, PMPI_Comm_f2c(*comm));
}

void mpi_unpack_(void* packed, MPI_Fint* size, MPI_Fint* position, void* buffer, MPI_Fint* count,
                 MPI_Fint* type, MPI_Fint* comm, MPI_Fint* error) {
  HALOCLINE_BEHIND(mpi_unpack_);
  const DeliveryAfterCall after;
  if (known_type(PMPI_Type_f2c(*type)) == nullptr || !is_buffer(buffer) || !is_buffer(packed))
    return mpi_function(packed, size, position, buffer, count, type, comm, error);
  *error = MPI_Unpack(packed, *size, position, buffer, *count, PMPI_Type_f2c(*type),
                      PMPI_Comm_f2c(*comm));
}

void mpi_send_(void* buffer, MPI_Fint* count, MPI_Fint* type, MPI_Fint* to, MPI_Fint* tag,
               MPI_Fint* comm, MPI_Fint* error) {
  HALOCLINE_BEHIND(mpi_send_);
  const auto by_mpi = by_fortran(error, [=](void* data, MPI_Fint* n, MPI_Fint* of) {
    mpi_function(data, n, of, to, tag, comm, error);
  });
  carry(Call::send, content(buffer, count, type, to), by_mpi, kPack, kNothing);
}

void mpi_recv_(void* buffer, MPI_Fint* count, MPI_Fint* type, MPI_Fint* from, MPI_Fint* tag,
               MPI_Fint* comm, MPI_Fint* status, MPI_Fint* error) {
  HALOCLINE_BEHIND(mpi_recv_);
  const FortranStatuses got(1, status, MPI_F_STATUS_IGNORE);
  const auto by_mpi = by_fortran(error, [&](void* data, MPI_Fint* n, MPI_Fint* of) {
    if (*of != *type) got.empty();
    mpi_function(data, n, of, from, tag, comm, got.list(), error);
  });
  carry(Call::recv, content(buffer, count, type, from), by_mpi, kNothing,
        [&](const PackedMessage& packed) { packed.unpack(got.one_in_c()); });
}

void mpi_sendrecv_(void* send_buffer, MPI_Fint* send_count, MPI_Fint* send_type, MPI_Fint* to,
                   MPI_Fint* send_tag, void* buffer, MPI_Fint* count, MPI_Fint* type,
                   MPI_Fint* from, MPI_Fint* tag, MPI_Fint* comm, MPI_Fint* status,
                   MPI_Fint* error) {
  HALOCLINE_BEHIND(mpi_sendrecv_);
  const FortranStatuses got(1, status, MPI_F_STATUS_IGNORE);
  const auto by_mpi = by_fortran(error, [&](void* data, MPI_Fint* n, MPI_Fint* of) {
    const auto both = by_fortran(error, [&](void* room, MPI_Fint* m, MPI_Fint* as) {
      if (*as != *type) got.empty();
      mpi_function(data, n, of, to, send_tag, room, m, as, from, tag, comm, got.list(), error);
    });
    carry(Call::sendrecv_recv, content(buffer, count, type, from), both, kNothing,
          [&](const PackedMessage& packed) { packed.unpack(got.one_in_c()); });
  });
  carry(Call::sendrecv, content(send_buffer, send_count, send_type, to), by_mpi, kPack, kNothing);
}

void mpi_isend_(void* buffer, MPI_Fint* count, MPI_Fint* type, MPI_Fint* to, MPI_Fint* tag,
                MPI_Fint* comm, MPI_Fint* request, MPI_Fint* error) {
  HALOCLINE_BEHIND(mpi_isend_);
  *request = PMPI_Request_c2f(MPI_REQUEST_NULL);  // stays so if an error is handled
  const auto by_mpi = by_fortran(error, [=](void* data, MPI_Fint* n, MPI_Fint* of) {
    mpi_function(data, n, of, to, tag, comm, request, error);
  });
  carry(Call::isend, content(buffer, count, type, to), by_mpi, kPack,
        watch_fortran(request, Way::send));
}

void mpi_irecv_(void* buffer, MPI_Fint* count, MPI_Fint* type, MPI_Fint* from, MPI_Fint* tag,
                MPI_Fint* comm, MPI_Fint* request, MPI_Fint* error) {
  HALOCLINE_BEHIND(mpi_irecv_);
  *request = PMPI_Request_c2f(MPI_REQUEST_NULL);  // stays so if an error is handled
  const auto by_mpi = by_fortran(error, [=](void* data, MPI_Fint* n, MPI_Fint* of) {
    mpi_function(data, n, of, from, tag, comm, request, error);
  });
  carry(Call::irecv, content(buffer, count, type, from), by_mpi, kNothing,
        watch_fortran(request, Way::receive));
}

void mpi_send_init_(void* buffer, MPI_Fint* count, MPI_Fint* type, MPI_Fint* to, MPI_Fint* tag,
                    MPI_Fint* comm, MPI_Fint* request, MPI_Fint* error) {
  HALOCLINE_BEHIND(mpi_send_init_);
  *request = PMPI_Request_c2f(MPI_REQUEST_NULL);  // stays so if an error is handled
  const auto by_mpi = by_fortran(error, [=](void* data, MPI_Fint* n, MPI_Fint* of) {
    mpi_function(data, n, of, to, tag, comm, request, error);
  });
  carry(Call::send_init, content(buffer, count, type, to), by_mpi, kNothing,
        watch_persistent_fortran(request, Way::send));
}

void mpi_recv_init_(void* buffer, MPI_Fint* count, MPI_Fint* type, MPI_Fint* from, MPI_Fint* tag,
                    MPI_Fint* comm, MPI_Fint* request, MPI_Fint* error) {
  HALOCLINE_BEHIND(mpi_recv_init_);
  *request = PMPI_Request_c2f(MPI_REQUEST_NULL);  // stays so if an error is handled
  const auto by_mpi = by_fortran(error, [=](void* data, MPI_Fint* n, MPI_Fint* of) {
    mpi_function(data, n, of, from, tag, comm, request, error);
  });
  carry(Call::recv_init, content(buffer, count, type, from), by_mpi, kNothing,
        watch_persistent_fortran(request, Way::receive));
}

void mpi_start_(MPI_Fint* request, MPI_Fint* error) {
  HALOCLINE_BEHIND(mpi_start_);
  const DeliveryAfterCall after;
  auto* const entry = look() ? watched(PMPI_Request_f2c(*request)) : nullptr;
  if (entry != nullptr) entry->before_start();
  mpi_function(request, error);
}

void mpi_startall_(MPI_Fint* count, MPI_Fint* requests, MPI_Fint* error) {
  HALOCLINE_BEHIND(mpi_startall_);
  const DeliveryAfterCall after;
  if (look())
    for (int i = 0; i < *count; ++i)
      if (auto* const entry = watched(PMPI_Request_f2c(requests[i]))) entry->before_start();
  mpi_function(count, requests, error);
}

void mpi_wait_(MPI_Fint* request, MPI_Fint* status, MPI_Fint* error) {
  HALOCLINE_BEHIND(mpi_wait_);
  const DeliveryAfterCall after;
  if (!look()) return mpi_function(request, status, error);
  FortranRequests all(1, request);
  CompletingRequests taken(1, all.in_c());
  const FortranStatuses got(1, status, MPI_F_STATUS_IGNORE);
  mpi_function(request, got.list(), error);
  all.read();
  taken.end(0, *error, got.one_in_c());
}

void mpi_test_(MPI_Fint* request, MPI_Fint* flag, MPI_Fint* status, MPI_Fint* error) {
  HALOCLINE_BEHIND(mpi_test_);
  const DeliveryAfterCall after;
  if (!look()) return mpi_function(request, flag, status, error);
  FortranRequests all(1, request);
  CompletingRequests taken(1, all.in_c());
  const FortranStatuses got(1, status, MPI_F_STATUS_IGNORE);
  mpi_function(request, flag, got.list(), error);
  all.read();
  if (*error != MPI_SUCCESS || *flag != 0) taken.end(0, *error, got.one_in_c());
}

void mpi_waitany_(MPI_Fint* count, MPI_Fint* requests, MPI_Fint* index, MPI_Fint* status,
                  MPI_Fint* error) {
  HALOCLINE_BEHIND(mpi_waitany_);
  const DeliveryAfterCall after;
  if (!look() || *count <= 0) return mpi_function(count, requests, index, status, error);
  FortranRequests all(*count, requests);
  CompletingRequests taken(*count, all.in_c());
  const FortranStatuses got(1, status, MPI_F_STATUS_IGNORE);
  *index = MPI_UNDEFINED;
  mpi_function(count, requests, index, got.list(), error);
  all.read();
  if (*index != MPI_UNDEFINED) taken.end(*index - 1, *error, got.one_in_c());
}

void mpi_testany_(MPI_Fint* count, MPI_Fint* requests, MPI_Fint* index, MPI_Fint* flag,
                  MPI_Fint* status, MPI_Fint* error) {
  HALOCLINE_BEHIND(mpi_testany_);
  const DeliveryAfterCall after;
  if (!look() || *count <= 0) return mpi_function(count, requests, index, flag, status, error);
  FortranRequests all(*count, requests);
  CompletingRequests taken(*count, all.in_c());
  const FortranStatuses got(1, status, MPI_F_STATUS_IGNORE);
  *index = MPI_UNDEFINED;
  mpi_function(count, requests, index, flag, got.list(), error);
  all.read();
  if (*index != MPI_UNDEFINED) taken.end(*index - 1, *error, got.one_in_c());
}

void mpi_waitall_(MPI_Fint* count, MPI_Fint* requests, MPI_Fint* statuses, MPI_Fint* error) {
  HALOCLINE_BEHIND(mpi_waitall_);
  const DeliveryAfterCall after;
  if (!look() || *count <= 0) return mpi_function(count, requests, statuses, error);
  FortranRequests all(*count, requests);
  CompletingRequests taken(*count, all.in_c());
  const FortranStatuses got(*count, statuses, MPI_F_STATUSES_IGNORE);
  mpi_function(count, requests, got.list(), error);
  all.read();
  *error = end_several(*error, *count, got.in_c(*count).data(), taken);
}

void mpi_testall_(MPI_Fint* count, MPI_Fint* requests, MPI_Fint* flag, MPI_Fint* statuses,
                  MPI_Fint* error) {
  HALOCLINE_BEHIND(mpi_testall_);
  const DeliveryAfterCall after;
  if (!look() || *count <= 0) return mpi_function(count, requests, flag, statuses, error);
  FortranRequests all(*count, requests);
  CompletingRequests taken(*count, all.in_c());
  const FortranStatuses got(*count, statuses, MPI_F_STATUSES_IGNORE);
  mpi_function(count, requests, flag, got.list(), error);
  all.read();
  if (*error == MPI_SUCCESS && *flag == 0) return;
  *error = end_several(*error, *count, got.in_c(*count).data(), taken);
}

void mpi_waitsome_(MPI_Fint* count, MPI_Fint* requests, MPI_Fint* completed, MPI_Fint* indices,
                   MPI_Fint* statuses, MPI_Fint* error) {
  HALOCLINE_BEHIND(mpi_waitsome_);
  const DeliveryAfterCall after;
  if (!look() || *count <= 0)
    return mpi_function(count, requests, completed, indices, statuses, error);
  FortranRequests all(*count, requests);
  CompletingRequests taken(*count, all.in_c());
  const FortranStatuses got(*count, statuses, MPI_F_STATUSES_IGNORE);
  *completed = MPI_UNDEFINED;
  mpi_function(count, requests, completed, indices, got.list(), error);
  all.read();
  end_some(*completed, indices, got, taken, error);
}

void mpi_testsome_(MPI_Fint* count, MPI_Fint* requests, MPI_Fint* completed, MPI_Fint* indices,
                   MPI_Fint* statuses, MPI_Fint* error) {
  HALOCLINE_BEHIND(mpi_testsome_);
  const DeliveryAfterCall after;
  if (!look() || *count <= 0)
    return mpi_function(count, requests, completed, indices, statuses, error);
  FortranRequests all(*count, requests);
  CompletingRequests taken(*count, all.in_c());
  const FortranStatuses got(*count, statuses, MPI_F_STATUSES_IGNORE);
  *completed = MPI_UNDEFINED;
  mpi_function(count, requests, completed, indices, got.list(), error);
  all.read();
  end_some(*completed, indices, got, taken, error);
}

void mpi_request_get_status_(MPI_Fint* request, MPI_Fint* flag, MPI_Fint* status, MPI_Fint* error) {
  HALOCLINE_BEHIND(mpi_request_get_status_);
  const DeliveryAfterCall after;
  auto* const entry = look() ? watched(PMPI_Request_f2c(*request)) : nullptr;
  if (entry == nullptr || !entry->active) return mpi_function(request, flag, status, error);
  const FortranStatuses got(1, status, MPI_F_STATUS_IGNORE);
  mpi_function(request, flag, got.list(), error);
  if (*error != MPI_SUCCESS || *flag == 0) return;
  entry->deliver(got.one_in_c());
}

// Defines the calls of arrivals.cpp for Fortran. `parameters` are addresses; the last one is that
// of the error code.
#define HALOCLINE_FORTRAN(name, parameters, arguments) \
  void name parameters {                               \
    HALOCLINE_BEHIND(name);                            \
    const DeliveryAfterCall after;                     \
    mpi_function arguments;                            \
  }
#define HALOCLINE_2(name) HALOCLINE_FORTRAN(name, (void* a, void* b), (a, b))
#define HALOCLINE_3(name) HALOCLINE_FORTRAN(name, (void* a, void* b, void* c), (a, b, c))
#define HALOCLINE_5(name) \
  HALOCLINE_FORTRAN(name, (void* a, void* b, void* c, void* d, void* e), (a, b, c, d, e))
#define HALOCLINE_6(name)                                                         \
  HALOCLINE_FORTRAN(name, (void* a, void* b, void* c, void* d, void* e, void* f), \
                    (a, b, c, d, e, f))
#define HALOCLINE_7(name)                                                                  \
  HALOCLINE_FORTRAN(name, (void* a, void* b, void* c, void* d, void* e, void* f, void* g), \
                    (a, b, c, d, e, f, g))
#define HALOCLINE_8(name)                                                                     \
  HALOCLINE_FORTRAN(name,                                                                     \
                    (void* a, void* b, void* c, void* d, void* e, void* f, void* g, void* h), \
                    (a, b, c, d, e, f, g, h))
#define HALOCLINE_9(name)                                                                      \
  HALOCLINE_FORTRAN(                                                                           \
      name, (void* a, void* b, void* c, void* d, void* e, void* f, void* g, void* h, void* i), \
      (a, b, c, d, e, f, g, h, i))
#define HALOCLINE_10(name)                                                                        \
  HALOCLINE_FORTRAN(                                                                              \
      name,                                                                                       \
      (void* a, void* b, void* c, void* d, void* e, void* f, void* g, void* h, void* i, void* j), \
      (a, b, c, d, e, f, g, h, i, j))

HALOCLINE_2(mpi_barrier_)
HALOCLINE_2(mpi_win_wait_)
HALOCLINE_2(mpi_win_complete_)
HALOCLINE_2(mpi_win_unlock_all_)
HALOCLINE_2(mpi_win_flush_all_)
HALOCLINE_3(mpi_win_flush_)
HALOCLINE_3(mpi_win_lock_all_)
HALOCLINE_3(mpi_win_test_)
HALOCLINE_3(mpi_comm_dup_)
HALOCLINE_5(mpi_comm_split_)
HALOCLINE_8(mpi_neighbor_allgather_)
HALOCLINE_8(mpi_neighbor_alltoall_)
HALOCLINE_9(mpi_neighbor_allgatherv_)
HALOCLINE_10(mpi_neighbor_alltoallv_)
HALOCLINE_3(mpi_win_fence_)
HALOCLINE_3(mpi_win_unlock_)
HALOCLINE_5(mpi_win_lock_)
HALOCLINE_5(mpi_probe_)
HALOCLINE_6(mpi_iprobe_)
HALOCLINE_6(mpi_mprobe_)
HALOCLINE_7(mpi_improbe_)
HALOCLINE_6(mpi_mrecv_)
HALOCLINE_6(mpi_bcast_)
HALOCLINE_7(mpi_allreduce_)
HALOCLINE_7(mpi_reduce_scatter_)
HALOCLINE_7(mpi_reduce_scatter_block_)
HALOCLINE_7(mpi_scan_)
HALOCLINE_7(mpi_exscan_)
HALOCLINE_7(mpi_ssend_)
HALOCLINE_7(mpi_bsend_)
HALOCLINE_7(mpi_rsend_)
HALOCLINE_8(mpi_reduce_)
HALOCLINE_8(mpi_allgather_)
HALOCLINE_8(mpi_alltoall_)
HALOCLINE_9(mpi_allgatherv_)
HALOCLINE_9(mpi_gather_)
HALOCLINE_9(mpi_scatter_)
HALOCLINE_10(mpi_gatherv_)
HALOCLINE_10(mpi_scatterv_)
HALOCLINE_10(mpi_sendrecv_replace_)

void mpi_request_free_(MPI_Fint* request, MPI_Fint* error) {
  HALOCLINE_BEHIND(mpi_request_free_);
  const DeliveryAfterCall after;
  if (!look() || !abandon(PMPI_Request_f2c(*request))) return mpi_function(request, error);
  *request = PMPI_Request_c2f(MPI_REQUEST_NULL);
  *error = MPI_SUCCESS;
}

void mpi_alltoallv_(void* send_buffer, MPI_Fint* send_counts, MPI_Fint* send_displacements,
                    MPI_Fint* send_type, void* buffer, MPI_Fint* counts, MPI_Fint* displacements,
                    MPI_Fint* type, MPI_Fint* comm, MPI_Fint* error) {
  HALOCLINE_BEHIND(mpi_alltoallv_);
  const DeliveryAfterCall after;
  const auto sent = PMPI_Type_f2c(*send_type), received = PMPI_Type_f2c(*type);
  if ((known_type(sent) == nullptr && known_type(received) == nullptr) || !is_buffer(send_buffer) ||
      !is_buffer(buffer))
    return mpi_function(send_buffer, send_counts, send_displacements, send_type, buffer, counts,
                        displacements, type, comm, error);
  *error = MPI_Alltoallv(send_buffer, send_counts, send_displacements, sent, buffer, counts,
                         displacements, received, PMPI_Comm_f2c(*comm));
}

void mpi_alltoallw_(void* send_buffer, MPI_Fint* send_counts, MPI_Fint* send_displacements,
                    MPI_Fint* send_types, void* buffer, MPI_Fint* counts, MPI_Fint* displacements,
                    MPI_Fint* types, MPI_Fint* comm, MPI_Fint* error) {
  HALOCLINE_BEHIND(mpi_alltoallw_);
  const DeliveryAfterCall after;
  const auto in_c_comm = PMPI_Comm_f2c(*comm);
  const auto* const group =
      changes_of_senders != 0 && in_c_comm != MPI_COMM_NULL ? group_of(in_c_comm) : nullptr;
  if (group == nullptr || !is_buffer(send_buffer) || !is_buffer(buffer))
    return mpi_function(send_buffer, send_counts, send_displacements, send_types, buffer, counts,
                        displacements, types, comm, error);
  const auto partners = group->ranks.sources.count;
  *error = MPI_Alltoallw(send_buffer, send_counts, send_displacements,
                         types_in_c(send_types, partners).data(), buffer, counts, displacements,
                         types_in_c(types, partners).data(), in_c_comm);
}

void mpi_neighbor_alltoallw_(void* send_buffer, MPI_Fint* send_counts, MPI_Aint* send_displacements,
                             MPI_Fint* send_types, void* buffer, MPI_Fint* counts,
                             MPI_Aint* displacements, MPI_Fint* types, MPI_Fint* comm,
                             MPI_Fint* error) {
  HALOCLINE_BEHIND(mpi_neighbor_alltoallw_);
  const DeliveryAfterCall after;
  const auto in_c_comm = PMPI_Comm_f2c(*comm);
  const auto* const group =
      changes_of_senders != 0 && in_c_comm != MPI_COMM_NULL ? group_of(in_c_comm) : nullptr;
  if (group == nullptr || !is_buffer(send_buffer) || !is_buffer(buffer))
    return mpi_function(send_buffer, send_counts, send_displacements, send_types, buffer, counts,
                        displacements, types, comm, error);
  const auto& [sources, destinations] = group->neighbors;
  *error =
      MPI_Neighbor_alltoallw(send_buffer, send_counts, send_displacements,
                             types_in_c(send_types, destinations.count).data(), buffer, counts,
                             displacements, types_in_c(types, sources.count).data(), in_c_comm);
}

}  // extern "C"
