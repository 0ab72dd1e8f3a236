// SPDX-License-Identifier: BSD-3-Clause
// Measures programs that have our interposer loaded: the extra cost of calls that are passed on to
// MPI. Functions of MPI itself are called by their names in the profiling interface.
#include <mpi.h>

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "dtype/bench/harness.hpp"
#include "dtype/datatype.hpp"
#include "dtype/device/device.hpp"

namespace halocline::dtype::bench {

namespace {

// Holds functions of MPI, by their own names or by those of the profiling interface.
struct Names {
  bool are_own;
  decltype(&MPI_Pack) pack;
  decltype(&MPI_Unpack) unpack;
  decltype(&MPI_Send) send;
  decltype(&MPI_Recv) recv;
  decltype(&MPI_Isend) isend;
  decltype(&MPI_Irecv) irecv;
  decltype(&MPI_Wait) wait;
  decltype(&MPI_Waitall) waitall;
  decltype(&MPI_Alltoallv) alltoallv;
  decltype(&MPI_Alltoallw) alltoallw;
  decltype(&MPI_Neighbor_alltoallw) neighbor_alltoallw;
  decltype(&MPI_Type_commit) commit;
};
constexpr Names kThrough{true,           MPI_Pack,      MPI_Unpack,    MPI_Send,
                         MPI_Recv,       MPI_Isend,     MPI_Irecv,     MPI_Wait,
                         MPI_Waitall,    MPI_Alltoallv, MPI_Alltoallw, MPI_Neighbor_alltoallw,
                         MPI_Type_commit};
constexpr Names kDirect{false,           PMPI_Pack,      PMPI_Unpack,    PMPI_Send,
                        PMPI_Recv,       PMPI_Isend,     PMPI_Irecv,     PMPI_Wait,
                        PMPI_Waitall,    PMPI_Alltoallv, PMPI_Alltoallw, PMPI_Neighbor_alltoallw,
                        PMPI_Type_commit};

// Holds the arguments of the calls. They send nothing, or a few bytes to the rank itself, which is
// its only neighbor on either side.
struct Arguments {
  Arguments() {
    const std::array dimensions{1}, periodic{1};
    MPI_Cart_create(MPI_COMM_SELF, 1, dimensions.data(), periodic.data(), 0, &neighbors);
  }
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;
  ~Arguments() {
    int is_over = 0;
    MPI_Finalized(&is_over);
    if (is_over == 0) MPI_Comm_free(&neighbors);
  }

  std::array<int, 8> memory{}, packed{};
  std::array<int, 2> counts{1, 1}, displacements{0, 0};
  std::array<MPI_Aint, 2> addresses{0, 16};
  std::array<MPI_Datatype, 2> types{};
  std::array<MPI_Request, 2> requests{};
  MPI_Comm neighbors = MPI_COMM_NULL;
  Datatype handle;
};

constexpr int kBytes = sizeof(Arguments::packed);

// calls(names) makes `intercepted` calls by these names. kNoTarget: there is none.
constexpr double kNoTarget = 0;
template <class Calls>
Benchmark benchmark_of(std::string name, double target_ns, int intercepted, const Options& options,
                       Calls calls) {
  return {
      std::move(name), [=, &options] {
        const auto repeated = [&calls](const Names& names) {
          return [&](std::int64_t times) {
            for (; times > 0; --times) calls(names);
          };
        };
        std::vector<Contender> both = {{"through", repeated(kThrough)}, {"mpi", repeated(kDirect)}};
        take_turns(both, effort_of(options, {0.5, 20e3, 100}, {0.1, 20e3, 20}));
        std::vector<double> more;
        for (std::size_t i = 0; i < both[0].ns().size(); ++i)
          more.push_back((both[0].ns()[i] - both[1].ns()[i]) / intercepted);
        Row row{.verified = true};
        for (const auto& contender : both) row.add_times(contender.name(), contender.ns());
        row.add("calls", intercepted);
        row.add("more_ns", median(more));
        if (target_ns != kNoTarget) row.add("good_more_ns", target_ns);
        return row;
      }};
}

enum class Which { all, messages };
void add_calls(std::vector<Benchmark>& out, const std::string& kind, double target_ns,
               const char* type_text, const Options& options, Which which = Which::all) {
  const auto all = std::make_shared<Arguments>();
  auto type = MPI_INT;
  if (type_text != nullptr) {
    all->handle = make_datatype(*parse_type(type_text));
    type = all->handle.get();
  }
  all->types = {type, type};
  const auto add = [&](const char* name, int intercepted, auto calls) {
    out.push_back(benchmark_of(name + ("-" + kind), target_ns, intercepted, options,
                               [=](const Names& names) { calls(names, *all, type); }));
  };
  if (which == Which::all) {
    add("pack", 1, [](const Names& mpi, Arguments& a, MPI_Datatype of) {
      int position = 0;
      mpi.pack(a.memory.data(), 1, of, a.packed.data(), kBytes, &position, MPI_COMM_SELF);
    });
    add("unpack", 1, [](const Names& mpi, Arguments& a, MPI_Datatype of) {
      int position = 0;
      mpi.unpack(a.packed.data(), kBytes, &position, a.memory.data(), 1, of, MPI_COMM_SELF);
    });
  }
  add("send", 1, [](const Names& mpi, Arguments& a, MPI_Datatype of) {
    mpi.send(a.memory.data(), 1, of, MPI_PROC_NULL, 0, MPI_COMM_SELF);
  });
  add("recv", 1, [](const Names& mpi, Arguments& a, MPI_Datatype of) {
    mpi.recv(a.memory.data(), 1, of, MPI_PROC_NULL, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
  });
  add("isend-wait", 2, [](const Names& mpi, Arguments& a, MPI_Datatype of) {
    mpi.isend(a.memory.data(), 1, of, MPI_PROC_NULL, 0, MPI_COMM_SELF, a.requests.data());
    mpi.wait(a.requests.data(), MPI_STATUS_IGNORE);
  });
  add("irecv-isend-waitall", 3, [](const Names& mpi, Arguments& a, MPI_Datatype of) {
    mpi.irecv(a.packed.data(), 1, of, 0, 0, MPI_COMM_SELF, a.requests.data());
    mpi.isend(a.memory.data(), 1, of, 0, 0, MPI_COMM_SELF, a.requests.data() + 1);
    mpi.waitall(2, a.requests.data(), MPI_STATUSES_IGNORE);
  });
  add("alltoallv", 1, [](const Names& mpi, Arguments& a, MPI_Datatype of) {
    mpi.alltoallv(a.memory.data(), a.counts.data(), a.displacements.data(), of, a.packed.data(),
                  a.counts.data(), a.displacements.data(), of, MPI_COMM_SELF);
  });
  add("alltoallw", 1, [](const Names& mpi, Arguments& a, MPI_Datatype) {
    mpi.alltoallw(a.memory.data(), a.counts.data(), a.displacements.data(), a.types.data(),
                  a.packed.data(), a.counts.data(), a.displacements.data(), a.types.data(),
                  MPI_COMM_SELF);
  });
  add("neighbor_alltoallw", 1, [](const Names& mpi, Arguments& a, MPI_Datatype) {
    mpi.neighbor_alltoallw(a.memory.data(), a.counts.data(), a.addresses.data(), a.types.data(),
                           a.packed.data(), a.counts.data(), a.addresses.data(), a.types.data(),
                           a.neighbors);
  });
}

}  // namespace

std::vector<Benchmark> calls(const Options& options) {
  std::vector<Benchmark> out;
  add_calls(out, "named", 10, nullptr, options);
  add_calls(out, "derived", 30, "contiguous(2,int)", options);
  // The engine would pack this type, but without a model its messages are left to MPI.
  add_calls(out, "gaps", 30, "vector(2,1,2,int)", options, Which::messages);
  // When MPI frees the type, it drops the entries of the type.
  out.push_back(benchmark_of("commit-and-free", kNoTarget, 1, options, [](const Names& mpi) {
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Type_vector(10, 1, 2, MPI_INT, &type);
    mpi.commit(&type);
    MPI_Type_free(&type);
  }));
  // Each use of the engine pays for knowing the kind of memory; MPI need not know it.
  out.push_back(
      benchmark_of("kind-of-host", kNoTarget, 1, options, [memory = 0](const Names& names) {
        benchmark::DoNotOptimize(&memory);  // otherwise there would be no loop
        if (names.are_own) benchmark::DoNotOptimize(kind_of_memory(&memory));
      }));
  return out;
}

}  // namespace halocline::dtype::bench
