// SPDX-License-Identifier: BSD-3-Clause
// Measures the cost of a datatype before its first use: create and commit of the MPI library, and
// our plan in addition.
//
// [PEA21] Figure 7: boxes of one to three dimensions, as trimeans of 30,000 executions. The boxes
// are a subarray, an hvector of a vector, an hvector of hvectors of vectors, and a subarray of a
// vector. In the third, rows are one block or single bytes. `compile` times the plan again without
// reading the type back from MPI. It copies the lists of a type, which make_plan moves.
//
// Further rows are index lists of 524,288 blocks, and look-ups of a plan that was made before.
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

#include "dtype/datatype.hpp"
#include "dtype/pack/plan_table.hpp"
#include "engine.hpp"
#include "harness.hpp"
#include "support/mpi_check.hpp"

namespace halocline::dtype::bench {

namespace {

using Clock = std::chrono::steady_clock;
using Create = std::function<MPI_Datatype()>;

struct Box {
  const char* name;
  int z, y, x;  // bytes out of rows of kRow and planes of kPlane
};
constexpr int kRow = 1024, kPlane = kRow * 256;
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
  const std::array sizes = {box.z, kPlane / kRow, kRow}, subsizes = {box.z, box.y, box.x},
                   starts = {0, 0, 0};
  MPI_Datatype out = MPI_DATATYPE_NULL;
  HALOCLINE_MPI(MPI_Type_create_subarray(3, sizes.data(), subsizes.data(), starts.data(),
                                         MPI_ORDER_C, MPI_BYTE, &out));
  return out;
}
MPI_Datatype hvector_of_vector(const Box& box) {
  return repeated(vector_of_bytes(box.y, box.x, kRow), box.z, kPlane);
}
MPI_Datatype hvector_of_hvector_of_row(const Box& box) {
  return repeated(repeated(vector_of_bytes(1, box.x, 1), box.y, kRow), box.z, kPlane);
}
MPI_Datatype hvector_of_hvector_of_bytes(const Box& box) {
  return repeated(repeated(vector_of_bytes(box.x, 1, 1), box.y, kRow), box.z, kPlane);
}
MPI_Datatype subarray_of_vector(const Box& box) {
  auto row = vector_of_bytes(box.x, 1, 1);
  MPI_Datatype resized = MPI_DATATYPE_NULL, out = MPI_DATATYPE_NULL;
  HALOCLINE_MPI(MPI_Type_create_resized(row, 0, kRow, &resized));
  const std::array sizes = {box.z, kPlane / kRow}, subsizes = {box.z, box.y}, starts = {0, 0};
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

// Measures the phases of a type. `blocks` is the number of blocks of an index list, or 0.
Row measure_commit(const Create& create, int blocks, const Options& options) {
  struct Phase {
    const char* name;
    std::vector<double> ns;
  };
  Phase create_phase{"create", {}}, commit_phase{"commit", {}}, plan_phase{"plan", {}},
      compile_phase{"compile", {}};
  TypeExprPtr read;  // expression that MPI gives back for the type
  const double clock = clock_ns();
  const auto timed = [&](Phase& phase, auto&& what) {
    const auto start = Clock::now();
    what();
    phase.ns.push_back(std::chrono::duration<double, std::nano>(Clock::now() - start).count() -
                       clock);
  };

  Row row;
  const auto repetitions = options.smoke ? 3 : options.quick ? 300 : 30000;
  constexpr auto kEnough = std::chrono::seconds(2);
  const auto begin = Clock::now();
  for (int i = 0; i <= repetitions && (i < 4 || Clock::now() - begin < kEnough); ++i) {
    MPI_Datatype handle = MPI_DATATYPE_NULL;
    timed(create_phase, [&] { handle = create(); });
    const Datatype owner(handle);
    timed(commit_phase, [&] { HALOCLINE_MPI(MPI_Type_commit(&handle)); });
    // Destroyed outside of the timed part, like the MPI library's type.
    std::optional<Result<PackPlan>> made;
    std::optional<PackPlan> compiled;
    timed(plan_phase, [&] { made.emplace(plan_of(handle)); });
    if (read) timed(compile_phase, [&] { compiled.emplace(canonicalize(translate(*read))); });
    if (i > 0) continue;
    // The first execution is verified and not measured.
    for (auto* phase : {&create_phase, &commit_phase, &plan_phase}) phase->ns.clear();
    if (const auto expr = decode(handle); std::holds_alternative<TypeExprPtr>(expr))
      read = std::get<TypeExprPtr>(expr);
    int size = 0;
    HALOCLINE_MPI(MPI_Type_size(handle, &size));
    row.fields.emplace_back("bytes", size);
    if (const auto* reason = std::get_if<UnsupportedDatatype>(&*made)) {
      row.note = std::string("unsupported: ") + reason->what();
    } else {
      row.verified = agrees_with_vendor(handle, 1);
      if (!row.verified) row.note = "differs from MPI_Pack";
    }
  }
  const double created = trimean(create_phase.ns), committed = trimean(commit_phase.ns),
               planned = trimean(plan_phase.ns);
  row.fields.emplace_back("create_ns", created);
  row.fields.emplace_back("commit_ns", committed);
  row.fields.emplace_back("plan_ns", planned);
  if (read) row.fields.emplace_back("compile_ns", trimean(compile_phase.ns));
  row.fields.emplace_back("total_ns", created + committed + planned);
  row.fields.emplace_back("total_vs_vendor",
                          (created + committed) / (created + committed + planned));
  row.fields.emplace_back("repetitions", static_cast<double>(plan_phase.ns.size()));
  if (blocks > 0) {
    row.fields.emplace_back("plan_ns_per_block", planned / blocks);
    row.fields.emplace_back("vendor_ns_per_block", (created + committed) / blocks);
  }
  return row;
}

// Measures plans by handle: the first call makes the plan, all others look it up. Compares with
// reading an attribute of the type, the least that MPI itself lets a library do.
Row measure_lookup(const Options& options) {
  const Datatype handle(subarray(kBoxes[2]));
  int key = MPI_KEYVAL_INVALID, flag = 0;
  HALOCLINE_MPI(
      MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, &key, nullptr));
  HALOCLINE_MPI(MPI_Type_set_attr(handle.get(), key, &flag));
  const int calls = options.smoke ? 10 : 1000, samples = options.smoke ? 2 : 1000;
  std::vector<double> lookup_ns, attribute_ns;
  const auto sample = [calls](std::vector<double>& ns, auto&& call) {
    const auto start = Clock::now();
    for (int i = 0; i < calls; ++i) call();
    ns.push_back(std::chrono::duration<double, std::nano>(Clock::now() - start).count() / calls);
  };
  const auto look_up = [&] { benchmark::DoNotOptimize(&cached_plan(handle.get())); };
  const auto get_attribute = [&] {
    void* value = nullptr;
    HALOCLINE_MPI(MPI_Type_get_attr(handle.get(), key, &value, &flag));
    benchmark::DoNotOptimize(value);
  };
  const auto start = Clock::now();
  look_up();
  Row row;
  row.fields.emplace_back("first_ns",
                          std::chrono::duration<double, std::nano>(Clock::now() - start).count());
  const auto& plan = cached_plan(handle.get());
  row.verified = std::holds_alternative<PackPlan>(plan) &&
                 std::get<PackPlan>(plan) == std::get<PackPlan>(plan_of(handle.get()));
  for (int i = 0; i < samples; i += 2) {
    sample(lookup_ns, look_up);
    sample(attribute_ns, get_attribute);
    sample(attribute_ns, get_attribute);
    sample(lookup_ns, look_up);
  }
  row.fields.emplace_back("lookup_ns", trimean(lookup_ns));
  row.fields.emplace_back("attribute_ns", trimean(attribute_ns));
  HALOCLINE_MPI(MPI_Type_delete_attr(handle.get(), key));
  HALOCLINE_MPI(MPI_Type_free_keyval(&key));
  return row;
}

Benchmark index_list(const char* name, int blocks, bool irregular) {
  const auto create = [list = displacements(blocks, irregular),
                       lengths = std::vector<int>(static_cast<std::size_t>(blocks), 1)] {
    MPI_Datatype out = MPI_DATATYPE_NULL;
    HALOCLINE_MPI(MPI_Type_indexed(static_cast<int>(list.size()), lengths.data(), list.data(),
                                   MPI_DOUBLE, &out));
    return out;
  };
  return {name, [create, blocks](const Options& options) {
            return measure_commit(create, blocks, options);
          }};
}

}  // namespace

std::vector<Benchmark> commit(const Options& options) {
  std::vector<Benchmark> all;
  for (const auto& construction : kConstructions)
    for (const auto& box : kBoxes)
      all.push_back({std::string(construction.name) + "-" + box.name,
                     [create = construction.create, box](const Options& effort) {
                       return measure_commit([&] { return create(box); }, 0, effort);
                     }});
  const int blocks = options.smoke ? 4096 : 524288;
  all.push_back(index_list("indexed-regular", blocks, false));
  all.push_back(index_list("indexed-irregular", blocks, true));
  return all;
}

std::vector<Benchmark> lookup(const Options&) {
  return {{"by-handle", measure_lookup}};
}

}  // namespace halocline::dtype::bench
