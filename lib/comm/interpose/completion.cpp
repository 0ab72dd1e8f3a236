// SPDX-License-Identifier: BSD-3-Clause
// Defines the calls that start, complete and free requests.
#include <dlfcn.h>

#include <cstdio>
#include <utility>

#include "comm/interpose/languages.hpp"
#include "comm/interpose/settings.hpp"

// Declares the entry points for Fortran, which are defined below.
#define HALOCLINE_COMPLETION(Name, name, count, body)                                              \
  extern "C" void mpi_##name##_(HALOCLINE_EACH_##count(HALOCLINE_ADDRESS, Name), MPI_Fint* error); \
  extern "C" void mpi_##name##_f08_(HALOCLINE_EACH_##count(HALOCLINE_ADDRESS, Name),               \
                                    MPI_Fint* error);
#include "comm/interpose/calls.def"

namespace halocline::interpose {

bool sees_completions() {
  static const bool value = [] {
    const std::pair<const char*, void*> functions[] = {
#define HALOCLINE_COMPLETION(Name, name, ...)                      \
  {"MPI_" #Name, reinterpret_cast<void*>(&MPI_##Name)},            \
      {"mpi_" #name "_", reinterpret_cast<void*>(&mpi_##name##_)}, \
      {"mpi_" #name "_f08_", reinterpret_cast<void*>(&mpi_##name##_f08_)},
#include "comm/interpose/calls.def"
    };
    for (const auto& [name, ours] : functions)
      if (dlsym(RTLD_DEFAULT, name) != ours) {
        if (settings().log != Settings::Log::none)
          std::fprintf(stderr, "halocline: %s is another tool's: messages are left to MPI\n", name);
        return false;
      }
    return true;
  }();
  return value;
}

namespace {

// Packs what the requests send that a call is about to start.
void before_start(auto requests) {
  if (!requests.look()) return;
  for (int i = 0; i < requests.count(); ++i)
    if (auto* const entry = watched(requests.in_c()[i])) entry->before_start();
}

template <class Mpi>
int start(const Mpi& mpi, auto request) {
  const DeliveryAfterCall after;
  before_start(typename Mpi::Requests(1, request));
  return mpi(request);
}

template <class Mpi>
int startall(const Mpi& mpi, auto count, auto requests) {
  const DeliveryAfterCall after;
  before_start(typename Mpi::Requests(in_c(count), requests));
  return mpi(count, requests);
}

// Tells if all flags are true. A call that waits has none.
bool are_true(auto... flags) {
  return (... && (*in_c(flags) != 0));
}

// Makes a call that may complete one request. `flag` is that of a test.
template <class Mpi>
int complete_one(const Mpi& mpi, auto request, auto status, auto... flag) {
  const DeliveryAfterCall after;
  typename Mpi::Requests list(1, request);
  if (!list.look()) return mpi(request, flag..., status);
  CompletingRequests taken(1, list.in_c());
  typename Mpi::Status got(status);
  const int code = mpi(request, flag..., got.needed());
  list.read();
  if (code != MPI_SUCCESS || are_true(flag...)) taken.end(0, code, got.in_c());
  return code;
}
int wait(const auto& mpi, auto request, auto status) {
  return complete_one(mpi, request, status);
}
int test(const auto& mpi, auto request, auto flag, auto status) {
  return complete_one(mpi, request, status, flag);
}

// Makes a call that may complete any one of several requests.
template <class Mpi>
int complete_any(const Mpi& mpi, auto count, auto requests, auto index, auto status, auto... flag) {
  const DeliveryAfterCall after;
  typename Mpi::Requests list(in_c(count), requests);
  if (!list.look()) return mpi(count, requests, index, flag..., status);
  CompletingRequests taken(list.count(), list.in_c());
  typename Mpi::Status got(status);
  *in_c(index) = MPI_UNDEFINED;
  const int code = mpi(count, requests, index, flag..., got.needed());
  list.read();
  const int completed = *in_c(index) - Mpi::first_index();
  // Fortran of some MPICH counts MPI_UNDEFINED from 1, too.
  if (completed >= 0 && completed < list.count()) taken.end(completed, code, got.in_c());
  return code;
}
int waitany(const auto& mpi, auto count, auto requests, auto index, auto status) {
  return complete_any(mpi, count, requests, index, status);
}
int testany(const auto& mpi, auto count, auto requests, auto index, auto flag, auto status) {
  return complete_any(mpi, count, requests, index, status, flag);
}

// Makes a call that may complete all of several requests.
template <class Mpi>
int complete_all(const Mpi& mpi, auto count, auto requests, auto statuses, auto... flag) {
  const DeliveryAfterCall after;
  typename Mpi::Requests list(in_c(count), requests);
  if (!list.look()) return mpi(count, requests, flag..., statuses);
  CompletingRequests taken(list.count(), list.in_c());
  typename Mpi::Statuses got(list.count(), statuses);
  const int code = mpi(count, requests, flag..., got.list());
  list.read();
  if (code == MPI_SUCCESS && !are_true(flag...)) return code;
  return end_several(code, list.count(), got.in_c(list.count()), taken);
}
int waitall(const auto& mpi, auto count, auto requests, auto statuses) {
  return complete_all(mpi, count, requests, statuses);
}
int testall(const auto& mpi, auto count, auto requests, auto flag, auto statuses) {
  return complete_all(mpi, count, requests, statuses, flag);
}

// Makes a call that may complete some of several requests.
template <class Mpi>
int complete_some(const Mpi& mpi, auto count, auto requests, auto completed, auto indices,
                  auto statuses) {
  const DeliveryAfterCall after;
  typename Mpi::Requests list(in_c(count), requests);
  if (!list.look()) return mpi(count, requests, completed, indices, statuses);
  CompletingRequests taken(list.count(), list.in_c());
  typename Mpi::Statuses got(list.count(), statuses);
  const int& number = *in_c(completed);
  *in_c(completed) = MPI_UNDEFINED;
  const int code = mpi(count, requests, completed, indices, got.list());
  list.read();
  if (number == MPI_UNDEFINED) return code;
  return end_several(code, number, got.in_c(number), taken, in_c(indices), Mpi::first_index());
}

// Unpacks a receive that MPI reports as complete before the program waits for it: the program may
// read the data.
void seen(MPI_Request request, const MPI_Status& status) {
  auto* const entry = watched(request);
  if (entry != nullptr && entry->active) entry->deliver(status);
}

template <class Mpi>
int get_status(const Mpi& mpi, auto request, auto flag, auto status) {
  const DeliveryAfterCall after;
  typename Mpi::Requests list(request);
  if (!list.look()) return mpi(request, flag, status);
  typename Mpi::Status got(status);
  const int code = mpi(request, flag, got.needed());
  if (code == MPI_SUCCESS && are_true(flag)) seen(list.in_c()[0], got.in_c());
  return code;
}

#ifdef HALOCLINE_HAS_GET_STATUS_SOME
// Makes a call on several requests. If `has_found()` tells that MPI has reported complete ones,
// does as seen() for all that are. The indices that MPI gives are not used: in Fortran, Intel MPI
// 2021.18 counts them from 0.
template <class Mpi>
int get_status_of_several(const Mpi& mpi, auto has_found, auto count, auto requests, auto... out) {
  const DeliveryAfterCall after;
  typename Mpi::Requests list(in_c(count), requests);
  const bool look = list.look();
  const int code = mpi(count, requests, out...);
  if (!look || code != MPI_SUCCESS || !has_found()) return code;
  for (int i = 0; i < list.count(); ++i) {
    const auto request = list.in_c()[i];
    int is_complete = 0;
    MPI_Status status;
    if (watched(request) != nullptr &&
        PMPI_Request_get_status(request, &is_complete, &status) == MPI_SUCCESS && is_complete != 0)
      seen(request, status);
  }
  return code;
}

template <class Mpi>
int get_status_any(const Mpi& mpi, auto count, auto requests, auto index, auto flag, auto status) {
  const auto has_found = [&] { return are_true(flag); };
  return get_status_of_several(mpi, has_found, count, requests, index, flag, status);
}

template <class Mpi>
int get_status_all(const Mpi& mpi, auto count, auto requests, auto flag, auto statuses) {
  const auto has_found = [&] { return are_true(flag); };
  return get_status_of_several(mpi, has_found, count, requests, flag, statuses);
}

template <class Mpi>
int get_status_some(const Mpi& mpi, auto count, auto requests, auto completed, auto indices,
                    auto statuses) {
  const auto has_found = [&] { return *in_c(completed) > 0; };  // MPI_UNDEFINED is below 0
  return get_status_of_several(mpi, has_found, count, requests, completed, indices, statuses);
}
#endif

template <class Mpi>
int request_free(const Mpi& mpi, auto request) {
  const DeliveryAfterCall after;
  typename Mpi::Requests list(1, request);
  if (!list.look() || !abandon(list.in_c()[0])) return mpi(request);
  set_null(request);
  return MPI_SUCCESS;
}

}  // namespace
}  // namespace halocline::interpose

#define HALOCLINE_COMPLETION HALOCLINE_ENTRY_POINTS
#include "comm/interpose/calls.def"
