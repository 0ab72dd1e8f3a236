// SPDX-License-Identifier: BSD-3-Clause
// Defines the calls that start, complete and free requests.
#include <dlfcn.h>
#include <mpi.h>

#include <cstdio>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "comm/interpose/requests.hpp"
#include "comm/interpose/settings.hpp"

namespace halocline::interpose {

bool sees_completions() {
  static const bool value = [] {
    const std::pair<const char*, void*> functions[] = {
#define HALOCLINE_OURS(name) {#name, reinterpret_cast<void*>(&name)}
        HALOCLINE_OURS(MPI_Start),
        HALOCLINE_OURS(MPI_Startall),
        HALOCLINE_OURS(MPI_Wait),
        HALOCLINE_OURS(MPI_Waitall),
        HALOCLINE_OURS(MPI_Waitany),
        HALOCLINE_OURS(MPI_Waitsome),
        HALOCLINE_OURS(MPI_Test),
        HALOCLINE_OURS(MPI_Testall),
        HALOCLINE_OURS(MPI_Testany),
        HALOCLINE_OURS(MPI_Testsome),
        HALOCLINE_OURS(MPI_Request_get_status),
#ifdef HALOCLINE_HAS_GET_STATUS_SOME
        HALOCLINE_OURS(MPI_Request_get_status_any),
        HALOCLINE_OURS(MPI_Request_get_status_all),
        HALOCLINE_OURS(MPI_Request_get_status_some),
#endif
        HALOCLINE_OURS(MPI_Request_free)};
#undef HALOCLINE_OURS
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

}  // namespace halocline::interpose

using namespace halocline::interpose;

namespace {

// Unpacks a receive that MPI_Request_get_status_* reports as complete. The program may read the
// data before it waits.
[[maybe_unused]] void seen(MPI_Request request, const MPI_Status& status) {
  auto* const entry = watched(request);
  if (entry != nullptr && entry->active) entry->deliver(status);
}

}  // namespace

int MPI_Start(MPI_Request* request) {
  const DeliveryAfterCall after;
  auto* const entry = look(1, request) ? watched(*request) : nullptr;
  if (entry == nullptr) return PMPI_Start(request);
  entry->before_start();
  return PMPI_Start(request);
}

int MPI_Startall(int count, MPI_Request requests[]) {
  const DeliveryAfterCall after;
  if (look(count, requests))
    for (int i = 0; i < count; ++i)
      if (auto* const entry = watched(requests[i])) entry->before_start();
  return PMPI_Startall(count, requests);
}

int MPI_Wait(MPI_Request* request, MPI_Status* status) {
  const DeliveryAfterCall after;
  if (!look(1, request)) return PMPI_Wait(request, status);
  CompletingRequests taken(1, request);
  MPI_Status own;
  auto& got = status == MPI_STATUS_IGNORE ? own : *status;
  const int code = PMPI_Wait(request, &got);
  taken.end(0, code, got);
  return code;
}

int MPI_Test(MPI_Request* request, int* flag, MPI_Status* status) {
  const DeliveryAfterCall after;
  if (!look(1, request)) return PMPI_Test(request, flag, status);
  CompletingRequests taken(1, request);
  MPI_Status own;
  auto& got = status == MPI_STATUS_IGNORE ? own : *status;
  const int code = PMPI_Test(request, flag, &got);
  if (code != MPI_SUCCESS || *flag != 0) taken.end(0, code, got);
  return code;
}

int MPI_Waitany(int count, MPI_Request requests[], int* index, MPI_Status* status) {
  const DeliveryAfterCall after;
  if (!look(count, requests)) return PMPI_Waitany(count, requests, index, status);
  CompletingRequests taken(count, requests);
  MPI_Status own;
  auto& got = status == MPI_STATUS_IGNORE ? own : *status;
  *index = MPI_UNDEFINED;
  const int code = PMPI_Waitany(count, requests, index, &got);
  if (*index != MPI_UNDEFINED) taken.end(*index, code, got);
  return code;
}

int MPI_Testany(int count, MPI_Request requests[], int* index, int* flag, MPI_Status* status) {
  const DeliveryAfterCall after;
  if (!look(count, requests)) return PMPI_Testany(count, requests, index, flag, status);
  CompletingRequests taken(count, requests);
  MPI_Status own;
  auto& got = status == MPI_STATUS_IGNORE ? own : *status;
  *index = MPI_UNDEFINED;
  const int code = PMPI_Testany(count, requests, index, flag, &got);
  if (*index != MPI_UNDEFINED) taken.end(*index, code, got);
  return code;
}

int MPI_Waitall(int count, MPI_Request requests[], MPI_Status* statuses) {
  const DeliveryAfterCall after;
  if (!look(count, requests)) return PMPI_Waitall(count, requests, statuses);
  CompletingRequests taken(count, requests);
  const Statuses got(count, statuses);
  const int code = PMPI_Waitall(count, requests, got.list());
  return end_several(code, count, got.list(), taken);
}

int MPI_Testall(int count, MPI_Request requests[], int* flag, MPI_Status* statuses) {
  const DeliveryAfterCall after;
  if (!look(count, requests)) return PMPI_Testall(count, requests, flag, statuses);
  CompletingRequests taken(count, requests);
  const Statuses got(count, statuses);
  const int code = PMPI_Testall(count, requests, flag, got.list());
  if (code == MPI_SUCCESS && *flag == 0) return code;
  return end_several(code, count, got.list(), taken);
}

int MPI_Waitsome(int incount, MPI_Request requests[], int* outcount, int indices[],
                 MPI_Status* statuses) {
  const DeliveryAfterCall after;
  if (!look(incount, requests))
    return PMPI_Waitsome(incount, requests, outcount, indices, statuses);
  CompletingRequests taken(incount, requests);
  const Statuses got(incount, statuses);
  *outcount = MPI_UNDEFINED;
  const int code = PMPI_Waitsome(incount, requests, outcount, indices, got.list());
  if (*outcount == MPI_UNDEFINED) return code;
  return end_several(code, *outcount, got.list(), taken, indices);
}

int MPI_Testsome(int incount, MPI_Request requests[], int* outcount, int indices[],
                 MPI_Status* statuses) {
  const DeliveryAfterCall after;
  if (!look(incount, requests))
    return PMPI_Testsome(incount, requests, outcount, indices, statuses);
  CompletingRequests taken(incount, requests);
  const Statuses got(incount, statuses);
  *outcount = MPI_UNDEFINED;
  const int code = PMPI_Testsome(incount, requests, outcount, indices, got.list());
  if (*outcount == MPI_UNDEFINED) return code;
  return end_several(code, *outcount, got.list(), taken, indices);
}

int MPI_Request_get_status(MPI_Request request, int* flag, MPI_Status* status) {
  const DeliveryAfterCall after;
  auto* const entry = look(1, &request) ? watched(request) : nullptr;
  if (entry == nullptr || !entry->active) return PMPI_Request_get_status(request, flag, status);
  MPI_Status own;
  auto& got = status == MPI_STATUS_IGNORE ? own : *status;
  const int code = PMPI_Request_get_status(request, flag, &got);
  if (code == MPI_SUCCESS && *flag != 0) entry->deliver(got);
  return code;
}

#ifdef HALOCLINE_HAS_GET_STATUS_SOME
// Intel MPI declares `requests` without the standard's const.
using Requests = std::conditional_t<std::is_invocable_v<decltype(PMPI_Request_get_status_all), int,
                                                        const MPI_Request*, int*, MPI_Status*>,
                                    const MPI_Request*, MPI_Request*>;

int MPI_Request_get_status_any(int count, Requests requests, int* index, int* flag,
                               MPI_Status* status) {
  const DeliveryAfterCall after;
  if (!look(count, requests))
    return PMPI_Request_get_status_any(count, requests, index, flag, status);
  MPI_Status own;
  auto& got = status == MPI_STATUS_IGNORE ? own : *status;
  const int code = PMPI_Request_get_status_any(count, requests, index, flag, &got);
  if (code == MPI_SUCCESS && *flag != 0 && *index != MPI_UNDEFINED) seen(requests[*index], got);
  return code;
}

int MPI_Request_get_status_all(int count, Requests requests, int* flag, MPI_Status* statuses) {
  const DeliveryAfterCall after;
  if (!look(count, requests)) return PMPI_Request_get_status_all(count, requests, flag, statuses);
  const Statuses got(count, statuses);
  const int code = PMPI_Request_get_status_all(count, requests, flag, got.list());
  for (int i = 0; code == MPI_SUCCESS && *flag != 0 && i < count; ++i)
    seen(requests[i], got.list()[i]);
  return code;
}

int MPI_Request_get_status_some(int incount, Requests requests, int* outcount, int indices[],
                                MPI_Status* statuses) {
  const DeliveryAfterCall after;
  if (!look(incount, requests))
    return PMPI_Request_get_status_some(incount, requests, outcount, indices, statuses);
  const Statuses got(incount, statuses);
  const int code = PMPI_Request_get_status_some(incount, requests, outcount, indices, got.list());
  for (int i = 0; code == MPI_SUCCESS && *outcount != MPI_UNDEFINED && i < *outcount; ++i)
    seen(requests[indices[i]], got.list()[i]);
  return code;
}
#endif

int MPI_Request_free(MPI_Request* request) {
  const DeliveryAfterCall after;
  if (!look(1, request) || !abandon(*request)) return PMPI_Request_free(request);
  *request = MPI_REQUEST_NULL;
  return MPI_SUCCESS;
}
