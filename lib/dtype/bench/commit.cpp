// SPDX-License-Identifier: BSD-3-Clause
// Measures the cost of a datatype before its first use: create and commit of the MPI library, and
// our plan in addition.
//
// [PEA21] Figure 7: boxes of one to three dimensions, as trimeans of 30,000 executions. The boxes
// are a subarray, an hvector of a vector, an hvector of hvectors of vectors, and a subarray of a
// vector. In the third, rows are one block or single bytes. `compile` times the plan again without
// reading the type back from MPI. It copies the lists of a type, which make_plan moves.
//
// Further rows are index lists of 524,288 blocks. `lookup` finds a plan that was made before.
#include <mpi.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "dtype/bench/harness.hpp"
#include "dtype/datatype.hpp"
#include "dtype/pack/plan_table.hpp"
#include "support/mpi_check.hpp"

namespace halocline::dtype::bench {

namespace {

using Clock = std::chrono::steady_clock;
using Create = std::function<MPI_Datatype()>;

struct Box {
  const char* name;
  int z, y, x;  // bytes out of rows of kRowBytes and planes of kPlaneBytes
};
constexpr int kRowBytes = 1024, kPlaneBytes = kRowBytes * 256;
constexpr Box kBoxes[] = {{"1d", 1, 1, 1024}, {"2d", 1, 64, 256}, {"3d", 8, 16, 64}};

// Returns `count` instances of `old`, `stride` bytes apart. Frees `old`.
MPI_Datatype repeated(MPI_Datatype old, int count, MPI_Aint stride) {
  MPI_Datatype out = MPI_DATATYPE_NULL;
  HALOCLINE_MPI(MPI_Type_create_hvector(count, 1, stride, old, &out));
  HALOCLINE_MPI(MPI_Type_free(&old));
  return out;
}

MPI_Datatype vector_of_bytes(int count, int blocklength, int stride) {
  MPI_Datatype out = MPI_DATATYPE_NULL;
  HALOCLINE_MPI(MPI_Type_vector(count, blocklength, stride, MPI_BYTE, &out));
  return out;
}

MPI_Datatype subarray(const Box& box) {
  const std::array sizes = {box.z, kPlaneBytes / kRowBytes, kRowBytes},
                   subsizes = {box.z, box.y, box.x}, starts = {0, 0, 0};
  MPI_Datatype out = MPI_DATATYPE_NULL;
  HALOCLINE_MPI(MPI_Type_create_subarray(3, sizes.data(), subsizes.data(), starts.data(),
                                         MPI_ORDER_C, MPI_BYTE, &out));
  return out;
}
MPI_Datatype hvector_of_vector(const Box& box) {
  return repeated(vector_of_bytes(box.y, box.x, kRowBytes), box.z, kPlaneBytes);
}
MPI_Datatype hvector_of_hvector_of_row(const Box& box) {
  return repeated(repeated(vector_of_bytes(1, box.x, 1), box.y, kRowBytes), box.z, kPlaneBytes);
}
MPI_Datatype hvector_of_hvector_of_bytes(const Box& box) {
  return repeated(repeated(vector_of_bytes(box.x, 1, 1), box.y, kRowBytes), box.z, kPlaneBytes);
}
MPI_Datatype subarray_of_vector(const Box& box) {
  auto row = vector_of_bytes(box.x, 1, 1);
  MPI_Datatype resized = MPI_DATATYPE_NULL, out = MPI_DATATYPE_NULL;
  HALOCLINE_MPI(MPI_Type_create_resized(row, 0, kRowBytes, &resized));
  const std::array sizes = {box.z, kPlaneBytes / kRowBytes}, subsizes = {box.z, box.y},
                   starts = {0, 0};
  HALOCLINE_MPI(MPI_Type_create_subarray(2, sizes.data(), subsizes.data(), starts.data(),
                                         MPI_ORDER_C, resized, &out));
  HALOCLINE_MPI(MPI_Type_free(&row));
  HALOCLINE_MPI(MPI_Type_free(&resized));
  return out;
}

struct Construction {
  const char* name;
  MPI_Datatype (*create)(const Box&);
};
constexpr Construction kConstructions[] = {{"subarray", subarray},
                                           {"hvector-vector", hvector_of_vector},
                                           {"hvector-hvector-row", hvector_of_hvector_of_row},
                                           {"hvector-hvector-bytes", hvector_of_hvector_of_bytes},
                                           {"subarray-vector", subarray_of_vector}};

// Returns [RMG03]'s Indexed pattern, or irregular gaps.
std::vector<int> displacements(int blocks, bool irregular) {
  constexpr std::array kPattern = {0, 2, 3, 5, 8};
  std::vector<int> list;
  std::uint32_t random = 1;
  for (int i = 0, at = 0; i < blocks; ++i) {
    random = random * 1664525 + 1013904223;
    at += 1 + static_cast<int>(random >> 30);
    list.push_back(irregular ? at : i / 5 * 10 + kPattern[static_cast<std::size_t>(i % 5)]);
  }
  return list;
}

double trimean(const std::vector<double>& values) {
  return (percentile(values, 0.25) + 2 * percentile(values, 0.5) + percentile(values, 0.75)) / 4;
}

// Returns the time of reading the clock twice: a good part of the shortest times here.
double clock_ns() {
  std::vector<double> samples;
  for (int i = 0; i < 1000; ++i) {
    const auto start = Clock::now();
    samples.push_back(std::chrono::duration<double, std::nano>(Clock::now() - start).count());
  }
  return median(std::move(samples));
}

// Measures the look-up of a plan that was made before. Takes turns with reading an attribute of the
// type, the least that MPI itself lets a library do.
void measure_lookup(Row& row, MPI_Datatype handle, const Options& options) {
  int key = MPI_KEYVAL_INVALID, flag = 0;
  HALOCLINE_MPI(
      MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, &key, nullptr));
  HALOCLINE_MPI(MPI_Type_set_attr(handle, key, &flag));
  std::vector<Contender> both;
  both.emplace_back("lookup", [&](std::int64_t calls) {
    for (; calls > 0; --calls) benchmark::DoNotOptimize(&cached_plan(handle));
  });
  both.emplace_back("attribute", [&](std::int64_t calls) {
    for (; calls > 0; --calls) {
      void* value = nullptr;
      HALOCLINE_MPI(MPI_Type_get_attr(handle, key, &value, &flag));
      benchmark::DoNotOptimize(value);
    }
  });
  take_turns(both, effort_of(options, {0.1, 20e3, 5}, {0.02, 20e3, 3}));
  for (const auto& contender : both) row.add_times(contender.name(), contender.ns());
  HALOCLINE_MPI(MPI_Type_delete_attr(handle, key));
  HALOCLINE_MPI(MPI_Type_free_keyval(&key));
}

// Measures the phases of a type. `blocks` is the number of blocks of an index list, or 0.
Row measure_commit(const Create& create, int blocks, const Options& options) {
  Row row;
  TypeExprPtr read;  // expression that MPI gives back for the type
  {
    auto handle = create();
    const Datatype owner(handle);
    HALOCLINE_MPI(MPI_Type_commit(&handle));
    int size = 0;
    HALOCLINE_MPI(MPI_Type_size(handle, &size));
    row.add("bytes", size);
    if (const auto expr = decode(handle); std::holds_alternative<TypeExprPtr>(expr))
      read = std::get<TypeExprPtr>(expr);
    const auto& found = cached_plan(handle);
    if (const auto* reason = std::get_if<UnsupportedDatatype>(&found)) {
      row.note = std::string("unsupported: ") + reason->what();
      return row;
    }
    row.verified = agrees_with_vendor(handle, 1) &&
                   std::get<PackPlan>(found) == std::get<PackPlan>(make_plan(handle));
    if (!row.verified) {
      row.note = "differs from MPI_Pack";
      return row;
    }
    measure_lookup(row, handle, options);
  }

  std::vector<double> create_ns, commit_ns, plan_ns, compile_ns;
  const double clock = clock_ns();
  const auto timed = [clock](std::vector<double>& ns, auto&& what) {
    const auto start = Clock::now();
    what();
    ns.push_back(std::chrono::duration<double, std::nano>(Clock::now() - start).count() - clock);
  };
  const auto repetitions = options.smoke ? 3 : options.quick ? 300 : 30000;
  constexpr auto kEnough = std::chrono::seconds(2);
  const auto begin = Clock::now();
  for (int i = 0; i < repetitions && (i < 3 || Clock::now() - begin < kEnough); ++i) {
    MPI_Datatype handle = MPI_DATATYPE_NULL;
    timed(create_ns, [&] { handle = create(); });
    const Datatype owner(handle);
    timed(commit_ns, [&] { HALOCLINE_MPI(MPI_Type_commit(&handle)); });
    // Destroyed outside of the timed part, like the MPI library's type.
    std::optional<Result<PackPlan>> made;
    std::optional<PackPlan> compiled;
    timed(plan_ns, [&] { made.emplace(make_plan(handle)); });
    if (read) timed(compile_ns, [&] { compiled.emplace(canonicalize(translate(*read))); });
  }
  const double created = trimean(create_ns), committed = trimean(commit_ns),
               planned = trimean(plan_ns);
  row.add("create_ns", created);
  row.add("commit_ns", committed);
  row.add("plan_ns", planned);
  if (read) row.add("compile_ns", trimean(compile_ns));
  row.add("total_ns", created + committed + planned);
  row.add("total_vs_vendor", (created + committed) / (created + committed + planned));
  row.add("repetitions", plan_ns.size());
  if (blocks > 0) {
    row.add("plan_ns_per_block", planned / blocks);
    row.add("vendor_ns_per_block", (created + committed) / blocks);
  }
  return row;
}

Benchmark index_list(const char* name, int blocks, bool irregular, const Options& options) {
  const auto create = [list = displacements(blocks, irregular),
                       lengths = std::vector<int>(static_cast<std::size_t>(blocks), 1)] {
    MPI_Datatype out = MPI_DATATYPE_NULL;
    HALOCLINE_MPI(MPI_Type_indexed(static_cast<int>(list.size()), lengths.data(), list.data(),
                                   MPI_DOUBLE, &out));
    return out;
  };
  return {name, [=, &options] { return measure_commit(create, blocks, options); }};
}

}  // namespace

std::vector<Benchmark> commit(const Options& options) {
  std::vector<Benchmark> all;
  for (const auto& construction : kConstructions)
    for (const auto& box : kBoxes)
      all.push_back({std::string(construction.name) + "-" + box.name, [&] {
                       return measure_commit([&] { return construction.create(box); }, 0, options);
                     }});
  const int blocks = options.smoke ? 4096 : 524288;
  all.push_back(index_list("indexed-regular", blocks, false, options));
  all.push_back(index_list("indexed-irregular", blocks, true, options));
  return all;
}

}  // namespace halocline::dtype::bench
