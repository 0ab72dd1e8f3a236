// SPDX-License-Identifier: BSD-3-Clause
// Verifies and measures the cases of bench_dtype. A case is a memory layout, described as MPI
// datatypes and as the loop that a good programmer writes by hand.
//
// The harness checks our packer against that loop byte by byte. Then it times both, MPI_Pack and
// memcpy in turn within one run. Only ratios of such samples count.
#pragma once

#include <benchmark/benchmark.h>
#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "dtype/bench/program.hpp"

namespace halocline::dtype::bench {

/// Makes `calls` calls one after the other, on this memory and this packed stream.
using Batch = std::function<void(void* memory, void* packed, std::int64_t calls)>;

struct Method {
  Batch pack, unpack;
};

/// Returns a batch of body(memory, packed). The body is compiled into the loop over the calls, so
/// that a loop by hand pays for no call. The compiler knows neither the targets of the pointers nor
/// the readers of the written bytes.
template <class Body>
Batch batch(Body body) {
  return [body = std::move(body)](void* memory, void* packed, std::int64_t calls) {
    for (; calls > 0; --calls) {
      asm volatile("" : "+r"(memory), "+r"(packed));
      body(static_cast<std::byte*>(memory), static_cast<std::byte*>(packed));
      benchmark::ClobberMemory();
    }
  };
}

struct PackMove {
  template <class T>
  void operator()(T& memory, T& packed) const {
    packed = memory;
  }
  void bytes(const void* memory, void* packed, std::size_t n) const {
    std::memcpy(packed, memory, n);
  }
};
struct UnpackMove {
  template <class T>
  void operator()(T& memory, T& packed) const {
    memory = packed;
  }
  void bytes(void* memory, const void* packed, std::size_t n) const {
    std::memcpy(memory, packed, n);
  }
};

/// Returns both directions of a loop by hand, written once. loop(move, memory, packed) gets
/// pointers to T. It calls move(memory[i], packed[j]) for an element, or move.bytes(to, from, n).
template <class T, class Loop>
Method by_hand(Loop loop) {
  const auto with = [&loop](auto move) {
    return batch([loop, move](std::byte* memory, std::byte* packed) {
      loop(move, reinterpret_cast<T*>(memory), reinterpret_cast<T*>(packed));
    });
  };
  return {with(PackMove{}), with(UnpackMove{})};
}

/// Names the ways to pack a case. by_rule: with the plan of the expression, not of the type that
/// MPI made of it. interposed: through MPI_Pack, which is our interposer if it was loaded.
enum class Mode { whole, by_rule, segments, fused, threads, interposed };

/// Describes a layout. Its parts are packed one behind the other; one call of a method packs all of
/// them.
struct Case {
  std::string name;
  std::vector<Part> parts;
  Method hand;
  Mode mode = Mode::whole;  ///< way in which ours packs; all other methods are the same
};

/// Are the limits of good packing, compared with the loop by hand.
///
/// Packing is good from the ratio of rates kGoodRatio on; the rest is noise. Below it, a row is
/// measured for longer. Packs below kOverheadBelowBytes are nearly all overhead. They may take
/// kGoodOverheadNs more time each, or kGoodInterposedNs through MPI_Pack.
inline constexpr double kGoodRatio = 0.95, kGoodOverheadNs = 20, kGoodInterposedNs = 60;
inline constexpr std::int64_t kOverheadBelowBytes = 4096;

/// Returns the benchmarks of cases: each is verified, then measured. With a mode in the options,
/// cases of Mode::whole are packed in that mode, and all others are left out.
std::vector<Benchmark> measured(std::vector<Case> cases, const Options& options);

/// Adds a remark to a row whose method `ours` is slower than `hand`, by more than `good_ns`.
void remark_if_slower(Row& row, const Contender& ours, const Contender& hand, double good_ns = 0);

/// Tells if our plan of `handle` and MPI_Pack agree about `count` instances, packed and unpacked.
bool agrees_with_vendor(MPI_Datatype handle, std::int64_t count);

/// Starts Kokkos until the result is destroyed. Binds the calling thread to one of its cores.
/// \param many as many threads as OMP_NUM_THREADS says or there are cores, on any core; else one
std::shared_ptr<void> start_threads(bool many);

// Groups. If a case comes in two sizes, one is around 1 MiB. The other has 4 to 64 KiB, and its
// name ends in -small.
std::vector<Case> table1(const Options& options);
std::vector<Case> halo(const Options& options);
std::vector<Case> patterns(const Options& options);
std::vector<Benchmark> copy(const Options& options);
std::vector<Benchmark> commit(const Options& options);
std::vector<Benchmark> reconstruct(const Options& options);
std::vector<Benchmark> calls(const Options& options);

}  // namespace halocline::dtype::bench
