// SPDX-License-Identifier: BSD-3-Clause
// Lays out instances of a type in memory, by MPI_Type_get_extent. The type map gives the places of
// their bytes.
#pragma once

#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dtype/datatype.hpp"
#include "dtype/device/device.hpp"
#include "dtype/test/byte_displacements.hpp"
#include "dtype/test/random_call.hpp"
#include "dtype/type_map.hpp"

namespace halocline::interpose::test {

using dtype::TypeExprPtr;

inline constexpr std::byte kPoison{0xA5};

inline int world_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}
inline int world_size() {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}
inline int next_rank() {
  return (world_rank() + 1) % world_size();
}
inline int previous_rank() {
  return (world_rank() + world_size() - 1) % world_size();
}

// Returns a number of uses after which the rule decides about short types. If the engine is forced,
// that is 1.
inline int enough_uses() {
  const auto* const mode = std::getenv("HALOCLINE_MPI");
  return mode != nullptr && (std::string(mode) == "auto" || std::string(mode) == "verify") ? 40 : 1;
}

inline std::int64_t resident_bytes() {
  long long pages = 0;
  if (std::FILE* const file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%*d %lld", &pages) != 1) pages = 0;
    std::fclose(file);
  }
  return pages * 4096;
}

// Calls `action(times)`. Fails if the process then has grown by a mebibyte or more.
template <class F>
void expect_no_growth(int times, F&& action) {
  action(times / 10);
  const auto before = resident_bytes();
  action(times);
#ifndef __SANITIZE_ADDRESS__  // the sanitizer keeps freed memory for a while
  EXPECT_LT(resident_bytes() - before, 1 << 20);
#else
  (void)before;
#endif
}

// Makes MPI return errors instead of ending the program, while it lives.
class ErrorsReturn {
 public:
  ErrorsReturn() { set(MPI_ERRORS_RETURN); }
  ~ErrorsReturn() { set(MPI_ERRORS_ARE_FATAL); }

 private:
  static void set(MPI_Errhandler handler) {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
  }
};

inline int class_of(int code) {
  int out = MPI_SUCCESS;
  MPI_Error_class(code, &out);
  return out;
}

// Allocates memory of an emulated device, of the kind in HALOCLINE_TEST_MEMORY. This program may
// follow pointers to it. Allocates ordinary memory if the variable is unset.
template <class T>
struct Allocator {
  using value_type = T;
  Allocator() = default;
  template <class U>
  Allocator(const Allocator<U>&) noexcept {}  // NOLINT(google-explicit-constructor)

  static std::optional<dtype::MemoryKind> kind() {
    const auto* const text = std::getenv("HALOCLINE_TEST_MEMORY");
    if (text == nullptr) return std::nullopt;
    return std::string(text) == "managed" ? dtype::MemoryKind::managed : dtype::MemoryKind::device;
  }
  T* allocate(std::size_t n) {
    if (const auto of = kind())
      return static_cast<T*>(dtype::current_device()->allocate(*of, n * sizeof(T)));
    return std::allocator<T>().allocate(n);
  }
  void deallocate(T* array, std::size_t n) {
    if (const auto of = kind())
      dtype::current_device()->release(*of, array);
    else
      std::allocator<T>().deallocate(array, n);
  }
  bool operator==(const Allocator&) const = default;
};
using Memory = std::vector<std::byte, Allocator<std::byte>>;

// Tells if memories are equal. A failed EXPECT_PRED2 with it prints no bytes.
inline bool same(const Memory& a, const Memory& b) {
  return a == b;
}

// Holds instances of a type in an array of bytes, and the places of their data.
class Layout {
 public:
  Layout(const TypeExprPtr& expr, std::int64_t count)
      : count_(static_cast<int>(count)), type_(dtype::make_datatype(*expr)) {
    const auto in_mpi = dtype::test::with_mpi_bounds(expr);
    if (in_mpi == nullptr) return;  // this MPI has the data at other places
    places_ = dtype::test::byte_displacements(dtype::type_map(*in_mpi), count);
    if (places_.empty()) return;
    const auto [least, greatest] = std::minmax_element(places_.begin(), places_.end());
    origin_ = (-*least / 64 + 2) * 64;
    room_ = *greatest + origin_ + 64;
  }
  Layout(const char* text, std::int64_t count) : Layout(dtype::parse_type(text), count) {}

  int count() const { return count_; }
  MPI_Datatype type() const { return type_.get(); }
  int bytes() const { return static_cast<int>(places_.size()); }
  // Tells if no byte is held twice. Only such a type may be received.
  bool disjoint() const {
    auto sorted = places_;
    std::sort(sorted.begin(), sorted.end());
    return std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
  }

  // Tells if the data are one run of memory, which the engine leaves to MPI.
  bool is_one_run() const {
    for (std::size_t i = 1; i < places_.size(); ++i)
      if (places_[i] != places_[i - 1] + 1) return false;
    return true;
  }

  // Tells if MPI packs, unpacks and copies the type rightly. Open MPI packs some types of negative
  // strides wrongly. Open MPI 5.0 and Intel MPI copy some types wrongly to the rank itself.
  bool mpi_is_right() const {
    auto memory = filled(0), unpacked = poisoned();
    Memory there(static_cast<std::size_t>(bytes()) + 1);
    int position = 0;
    PMPI_Pack(buffer(memory), count_, type(), there.data(), bytes(), &position, MPI_COMM_WORLD);
    there.pop_back();
    if (there != packed(0)) return false;
    position = 0;
    PMPI_Unpack(there.data(), bytes(), &position, buffer(unpacked), count_, type(), MPI_COMM_WORLD);
    auto copied = poisoned();
    PMPI_Sendrecv(buffer(memory), count_, type(), 0, 0, buffer(copied), count_, type(), 0, 0,
                  MPI_COMM_SELF, MPI_STATUS_IGNORE);
    return unpacked == received_from(0) && copied == received_from(0);
  }

  Memory poisoned() const { return Memory(static_cast<std::size_t>(room_), kPoison); }
  // Returns the memory that rank `rank` sends from.
  Memory filled(int rank) const {
    auto out = poisoned();
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = static_cast<std::byte>(i * 31 + i / 256 + static_cast<std::size_t>(rank) * 101 + 7);
    return out;
  }
  // Returns the packed bytes of filled(rank).
  Memory packed(int rank) const {
    const auto memory = filled(rank);
    Memory out;
    for (const auto place : places_)
      out.push_back(memory[static_cast<std::size_t>(place + origin_)]);
    return out;
  }
  // Returns poisoned memory after the first `bytes` of `packed` have been received.
  Memory received(const Memory& packed, int bytes) const {
    return received(packed, bytes, poisoned());
  }
  // Returns the memory `out` after the first `bytes` of `packed` have been received.
  Memory received(const Memory& packed, int bytes, Memory out) const {
    for (int i = 0; i < bytes; ++i)
      out[static_cast<std::size_t>(places_[static_cast<std::size_t>(i)] + origin_)] =
          packed[static_cast<std::size_t>(i)];
    return out;
  }
  Memory received_from(int rank) const { return received(packed(rank), bytes()); }

  std::byte* buffer(Memory& memory) const { return memory.data() + origin_; }

 private:
  int count_;
  dtype::Datatype type_;
  std::vector<std::int64_t> places_;
  std::int64_t origin_ = 0, room_ = 0;
};

}  // namespace halocline::interpose::test
