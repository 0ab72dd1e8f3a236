// SPDX-License-Identifier: BSD-3-Clause
// Spoils the messages that rank 0 receives. This library is loaded in front of MPI by LD_PRELOAD.
//
// HALOCLINE_FAULT=KIND:N spoils the N-th receive of each target and all receives after it; KIND:N-M
// ends with the M-th. A target is a persistent request, or a function with its communicator and
// receive buffer. The calls that set up a plan have their own targets and are made once, so N >= 2
// leaves them alone. Calls on MPI_COMM_WORLD are left alone, too, since plans have their own
// communicators. KIND is one of
//   drop   the buffer stays as it was before the call,
//   flip   one bit is wrong,
//   swap   the first half of the bytes and the second one change places,
//   stale  the data of the receive before arrive again.
// HALOCLINE_FAULT_LOG=PATH writes a line for each function: its name, the largest number of
// receives of one target, and the number of spoilt receives.
#include <mpi.h>

#include <algorithm>
#include <climits>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace {

using Bytes = std::vector<std::byte>;

/// Describes a part of the received data.
struct Part {
  void* buffer;
  int count;
  MPI_Datatype type;
};
using Parts = std::vector<Part>;

struct Settings {
  std::string kind;
  long from = 0, to = LONG_MAX;

  Settings() {
    const char* const text = std::getenv("HALOCLINE_FAULT");
    if (text == nullptr) return;
    const char* const colon = std::strchr(text, ':');
    kind.assign(text, colon);
    from = std::atol(colon + 1);
    if (const char* const dash = std::strchr(colon, '-')) to = std::atol(dash + 1);
  }
};

const Settings& settings() {
  static const Settings instance;
  return instance;
}

struct Counts {
  long most = 0, spoilt = 0;
};

std::map<std::string, Counts>& counts() {
  static std::map<std::string, Counts> instance;
  return instance;
}

bool is_victim() {
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank == 0;
}

Bytes read(const Parts& parts) {
  Bytes out;
  for (const auto& [buffer, count, type] : parts) {
    int size = 0, at = 0;
    PMPI_Pack_size(count, type, MPI_COMM_SELF, &size);
    Bytes bytes(static_cast<std::size_t>(size));
    PMPI_Pack(buffer, count, type, bytes.data(), size, &at, MPI_COMM_SELF);
    out.insert(out.end(), bytes.begin(), bytes.begin() + at);
  }
  return out;
}

void write(const Parts& parts, const Bytes& bytes) {
  int at = 0;
  for (const auto& [buffer, count, type] : parts)
    PMPI_Unpack(bytes.data(), static_cast<int>(bytes.size()), &at, buffer, count, type,
                MPI_COMM_SELF);
}

/// Counts and spoils the receives of one target.
class Target {
 public:
  void start(const Parts& parts) {
    ++receives_;
    before_ = read(parts);
  }

  void finish(const char* function, const Parts& parts) {
    auto arrived = read(parts);
    if (arrived.empty()) return;
    auto& count = counts()[function];
    count.most = std::max(count.most, receives_);
    const auto& kind = settings().kind;
    if (!kind.empty() && receives_ >= settings().from && receives_ <= settings().to) {
      ++count.spoilt;
      auto spoilt = arrived;
      const auto half = spoilt.size() / 2;
      if (kind == "drop") spoilt = before_;
      if (kind == "stale" && !last_.empty()) spoilt = last_;
      if (kind == "flip") spoilt[half] ^= std::byte{1};
      if (kind == "swap")
        std::swap_ranges(spoilt.begin(), spoilt.begin() + static_cast<std::ptrdiff_t>(half),
                         spoilt.end() - static_cast<std::ptrdiff_t>(half));
      write(parts, spoilt);
    }
    last_ = std::move(arrived);
  }

 private:
  long receives_ = 0;
  Bytes before_, last_;
};

using Place = std::tuple<MPI_Comm, std::string, const void*>;

std::map<Place, Target>& targets() {
  static std::map<Place, Target> instance;
  return instance;
}

/// Calls `receive`, which fills `parts`. `place` distinguishes the targets of a communicator.
template <class Receive>
int around(const char* function, MPI_Comm comm, const void* place, const Parts& parts,
           Receive receive) {
  if (comm == MPI_COMM_WORLD || !is_victim()) return receive();
  auto& target = targets()[{comm, function, place}];
  target.start(parts);
  const int code = receive();
  target.finish(function, parts);
  return code;
}

int size_of(MPI_Comm comm) {
  int size = 0;
  PMPI_Comm_size(comm, &size);
  return size;
}

int sources_of(MPI_Comm comm) {
  int sources = 0, destinations = 0, weighted = 0;
  PMPI_Dist_graph_neighbors_count(comm, &sources, &destinations, &weighted);
  return sources;
}

void* at(void* buffer, MPI_Aint offset) {
  return static_cast<std::byte*>(buffer) + offset;
}

Parts parts_of(int size, void* buffer, const int counts[], const int displacements[],
               MPI_Datatype type) {
  MPI_Aint lower = 0, extent = 0;
  PMPI_Type_get_extent(type, &lower, &extent);
  Parts out;
  for (int i = 0; i < size; ++i)
    out.push_back({at(buffer, displacements[i] * extent), counts[i], type});
  return out;
}

template <class Displacement>
Parts parts_of(int size, void* buffer, const int counts[], const Displacement displacements[],
               const MPI_Datatype types[]) {
  Parts out;
  for (int i = 0; i < size; ++i) out.push_back({at(buffer, displacements[i]), counts[i], types[i]});
  return out;
}

/// Keeps the arguments of MPI_Recv_init or MPI_Precv_init.
struct PersistentReceive {
  const char* function;
  Part part;
  Target target;
  bool active = false;
};

std::map<MPI_Request, PersistentReceive>& receives() {
  static std::map<MPI_Request, PersistentReceive> instance;
  return instance;
}

// Duplicates the type, since the caller may free it before it starts the request.
void add(const char* function, MPI_Request request, void* buffer, int count, MPI_Datatype type) {
  if (!is_victim() || count == 0) return;
  MPI_Datatype own = MPI_DATATYPE_NULL;
  PMPI_Type_dup(type, &own);
  receives()[request] = {function, {buffer, count, own}, {}};
}

void start(MPI_Request request) {
  const auto found = receives().find(request);
  if (found == receives().end()) return;
  found->second.active = true;
  found->second.target.start({found->second.part});
}

void finish(MPI_Request request) {
  const auto found = receives().find(request);
  if (found == receives().end() || !found->second.active) return;
  found->second.active = false;
  found->second.target.finish(found->second.function, {found->second.part});
}

}  // namespace

extern "C" {

int MPI_Alltoallv(const void* out, const int out_counts[], const int out_displacements[],
                  MPI_Datatype out_type, void* in, const int in_counts[],
                  const int in_displacements[], MPI_Datatype in_type, MPI_Comm comm) {
  return around("MPI_Alltoallv", comm, in,
                parts_of(size_of(comm), in, in_counts, in_displacements, in_type), [&] {
                  return PMPI_Alltoallv(out, out_counts, out_displacements, out_type, in, in_counts,
                                        in_displacements, in_type, comm);
                });
}

int MPI_Alltoallw(const void* out, const int out_counts[], const int out_displacements[],
                  const MPI_Datatype out_types[], void* in, const int in_counts[],
                  const int in_displacements[], const MPI_Datatype in_types[], MPI_Comm comm) {
  // The buffer may be MPI_BOTTOM, so the counts identify the target.
  return around("MPI_Alltoallw", comm, in_counts,
                parts_of(size_of(comm), in, in_counts, in_displacements, in_types), [&] {
                  return PMPI_Alltoallw(out, out_counts, out_displacements, out_types, in,
                                        in_counts, in_displacements, in_types, comm);
                });
}

int MPI_Neighbor_alltoallv(const void* out, const int out_counts[], const int out_displacements[],
                           MPI_Datatype out_type, void* in, const int in_counts[],
                           const int in_displacements[], MPI_Datatype in_type, MPI_Comm comm) {
  return around("MPI_Neighbor_alltoallv", comm, in,
                parts_of(sources_of(comm), in, in_counts, in_displacements, in_type), [&] {
                  return PMPI_Neighbor_alltoallv(out, out_counts, out_displacements, out_type, in,
                                                 in_counts, in_displacements, in_type, comm);
                });
}

int MPI_Neighbor_alltoallw(const void* out, const int out_counts[],
                           const MPI_Aint out_displacements[], const MPI_Datatype out_types[],
                           void* in, const int in_counts[], const MPI_Aint in_displacements[],
                           const MPI_Datatype in_types[], MPI_Comm comm) {
  return around("MPI_Neighbor_alltoallw", comm, in_counts,
                parts_of(sources_of(comm), in, in_counts, in_displacements, in_types), [&] {
                  return PMPI_Neighbor_alltoallw(out, out_counts, out_displacements, out_types, in,
                                                 in_counts, in_displacements, in_types, comm);
                });
}

int MPI_Gather(const void* out, int out_count, MPI_Datatype out_type, void* in, int in_count,
               MPI_Datatype in_type, int root, MPI_Comm comm) {
  int rank = 0;
  PMPI_Comm_rank(comm, &rank);
  const Parts parts = rank == root ? Parts{{in, in_count * size_of(comm), in_type}} : Parts{};
  return around("MPI_Gather", comm, in, parts, [&] {
    return PMPI_Gather(out, out_count, out_type, in, in_count, in_type, root, comm);
  });
}

int MPI_Sendrecv(const void* out, int out_count, MPI_Datatype out_type, int to, int out_tag,
                 void* in, int in_count, MPI_Datatype in_type, int from, int in_tag, MPI_Comm comm,
                 MPI_Status* status) {
  return around("MPI_Sendrecv", comm, in, {{in, in_count, in_type}}, [&] {
    return PMPI_Sendrecv(out, out_count, out_type, to, out_tag, in, in_count, in_type, from, in_tag,
                         comm, status);
  });
}

int MPI_Recv_init(void* buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                  MPI_Request* request) {
  const int code = PMPI_Recv_init(buffer, count, type, from, tag, comm, request);
  add("MPI_Recv_init", *request, buffer, count, type);
  return code;
}

#if MPI_VERSION >= 4
int MPI_Precv_init(void* buffer, int partitions, MPI_Count count, MPI_Datatype type, int from,
                   int tag, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  const int code = PMPI_Precv_init(buffer, partitions, count, type, from, tag, comm, info, request);
  add("MPI_Precv_init", *request, buffer, partitions * static_cast<int>(count), type);
  return code;
}
#endif

int MPI_Start(MPI_Request* request) {
  start(*request);
  return PMPI_Start(request);
}

int MPI_Startall(int count, MPI_Request requests[]) {
  std::for_each(requests, requests + count, start);
  return PMPI_Startall(count, requests);
}

int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[]) {
  const int code = PMPI_Waitall(count, requests, statuses);
  std::for_each(requests, requests + count, finish);
  return code;
}

int MPI_Waitsome(int count, MPI_Request requests[], int* done, int indices[],
                 MPI_Status statuses[]) {
  const int code = PMPI_Waitsome(count, requests, done, indices, statuses);
  for (int i = 0; *done != MPI_UNDEFINED && i < *done; ++i) finish(requests[indices[i]]);
  return code;
}

int MPI_Testsome(int count, MPI_Request requests[], int* done, int indices[],
                 MPI_Status statuses[]) {
  const int code = PMPI_Testsome(count, requests, done, indices, statuses);
  for (int i = 0; *done != MPI_UNDEFINED && i < *done; ++i) finish(requests[indices[i]]);
  return code;
}

int MPI_Request_free(MPI_Request* request) {
  const auto found = receives().find(*request);
  if (found != receives().end()) {
    PMPI_Type_free(&found->second.part.type);
    receives().erase(found);
  }
  return PMPI_Request_free(request);
}

// Forgets the targets of the communicator: the next one may get the same handle.
int MPI_Comm_free(MPI_Comm* comm) {
  std::erase_if(targets(), [&](const auto& entry) { return std::get<0>(entry.first) == *comm; });
  return PMPI_Comm_free(comm);
}

int MPI_Finalize(void) {
  const char* const path = std::getenv("HALOCLINE_FAULT_LOG");
  if (path != nullptr && is_victim()) {
    std::FILE* const file = std::fopen(path, "w");
    for (const auto& [function, count] : counts())
      std::fprintf(file, "%s %ld %ld\n", function.c_str(), count.most, count.spoilt);
    std::fclose(file);
  }
  return PMPI_Finalize();
}

}  // extern "C"
