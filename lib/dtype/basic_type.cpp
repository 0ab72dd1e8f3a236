// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/basic_type.hpp"

#include <algorithm>
#include <array>
#include <complex>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>

#include "support/error.hpp"
#include "support/mpi_check.hpp"

namespace halocline::dtype {

namespace {

// Returns the size in bytes; 0 for a type that this MPI lacks. Its handle may be MPI_DATATYPE_NULL,
// or that of a type without data.
std::int64_t size_of(MPI_Datatype handle) {
  if (handle == MPI_DATATYPE_NULL) return 0;
  int size = 0;
  HALOCLINE_MPI(MPI_Type_size(handle, &size));
  return std::max(size, 0);
}

template <class First>
struct Pair {
  First first;
  int second;
};

// Holds the predefined types, and a table of open addressing to find them by handle.
class NamedTypes {
 public:
  NamedTypes() {
    int initialized = 0, finalized = 0;
    MPI_Initialized(&initialized);
    MPI_Finalized(&finalized);
    if (!initialized || finalized)
      throw EnvironmentError(
          "the predefined datatypes are not known (MPI is not running): use them between MPI_Init "
          "and MPI_Finalize");
    add_c_types();
    add_fortran_types();
    for (const auto& type : all_) {
      auto slot = slot_of(type.handle);
      while (slots_[slot] != nullptr) slot = (slot + 1) % kSlots;
      slots_[slot] = &type;
    }
  }

  const std::vector<NamedType>& all() const { return all_; }

  const NamedType* find(MPI_Datatype handle) const {
    for (auto slot = slot_of(handle); slots_[slot] != nullptr; slot = (slot + 1) % kSlots)
      if (slots_[slot]->handle == handle) return slots_[slot];
    return nullptr;
  }

 private:
  static constexpr std::size_t kSlots = 256;

  // Handles are addresses of equal objects in Open MPI and small numbers in MPICH. The product
  // brings the bits that differ to the top.
  static std::size_t slot_of(MPI_Datatype handle) {
    return (std::hash<MPI_Datatype>{}(handle)*0x9E3779B97F4A7C15u) >> 56;
  }

  void add_c_types();
  void add_fortran_types();

  void add(std::string_view name, MPI_Datatype handle, std::vector<NamedType::Member> members) {
    all_.push_back({name, handle, std::move(members), std::ssize(all_)});
  }

  const BasicType* basic(std::string_view name, std::int64_t size, std::int64_t alignment) {
    return &basics_.emplace_back(BasicType{name, size, alignment});
  }

  template <class T>
  void add_c(std::string_view name, MPI_Datatype handle) {
    if (size_of(handle) == sizeof(T)) add(name, handle, {{basic(name, sizeof(T), alignof(T)), 0}});
  }

  template <class First>
  void add_c_pair(std::string_view name, MPI_Datatype handle, std::string_view first) {
    if (size_of(handle) == sizeof(First) + sizeof(int))
      add(name, handle,
          {{basic(first, sizeof(First), alignof(First)), 0},
           {basic("int", sizeof(int), alignof(int)),
            static_cast<std::int64_t>(offsetof(Pair<First>, second))}});
  }

  // MPI does not report alignments. A Fortran type gets the size of one of its numbers.
  void add_fortran(std::string_view name, MPI_Datatype handle, int numbers = 1) {
    if (const auto size = size_of(handle); size != 0)
      add(name, handle, {{basic(name, size, size / numbers), 0}});
  }

  void add_fortran_pair(std::string_view name, MPI_Datatype handle, std::string_view member) {
    if (const auto size = size_of(handle) / 2; size != 0) {
      const auto* type = basic(member, size, size);
      add(name, handle, {{type, 0}, {type, size}});
    }
  }

  std::deque<BasicType> basics_;
  std::vector<NamedType> all_;
  std::array<const NamedType*, kSlots> slots_{};
};

void NamedTypes::add_c_types() {
  add_c<std::byte>("byte", MPI_BYTE);
  add_c<std::byte>("packed", MPI_PACKED);
  add_c<char>("char", MPI_CHAR);
  add_c<signed char>("signed_char", MPI_SIGNED_CHAR);
  add_c<unsigned char>("unsigned_char", MPI_UNSIGNED_CHAR);
  add_c<wchar_t>("wchar", MPI_WCHAR);
  add_c<short>("short", MPI_SHORT);
  add_c<unsigned short>("unsigned_short", MPI_UNSIGNED_SHORT);
  add_c<int>("int", MPI_INT);
  add_c<unsigned>("unsigned", MPI_UNSIGNED);
  add_c<long>("long", MPI_LONG);
  add_c<unsigned long>("unsigned_long", MPI_UNSIGNED_LONG);
  add_c<long long>("long_long", MPI_LONG_LONG);
  add_c<unsigned long long>("unsigned_long_long", MPI_UNSIGNED_LONG_LONG);
  add_c<float>("float", MPI_FLOAT);
  add_c<double>("double", MPI_DOUBLE);
  add_c<long double>("long_double", MPI_LONG_DOUBLE);
  add_c<bool>("c_bool", MPI_C_BOOL);
  add_c<std::int8_t>("int8_t", MPI_INT8_T);
  add_c<std::int16_t>("int16_t", MPI_INT16_T);
  add_c<std::int32_t>("int32_t", MPI_INT32_T);
  add_c<std::int64_t>("int64_t", MPI_INT64_T);
  add_c<std::uint8_t>("uint8_t", MPI_UINT8_T);
  add_c<std::uint16_t>("uint16_t", MPI_UINT16_T);
  add_c<std::uint32_t>("uint32_t", MPI_UINT32_T);
  add_c<std::uint64_t>("uint64_t", MPI_UINT64_T);
  add_c<std::complex<float>>("c_float_complex", MPI_C_FLOAT_COMPLEX);
  add_c<std::complex<double>>("c_double_complex", MPI_C_DOUBLE_COMPLEX);
  add_c<std::complex<long double>>("c_long_double_complex", MPI_C_LONG_DOUBLE_COMPLEX);
  add_c<bool>("cxx_bool", MPI_CXX_BOOL);
  add_c<std::complex<float>>("cxx_float_complex", MPI_CXX_FLOAT_COMPLEX);
  add_c<std::complex<double>>("cxx_double_complex", MPI_CXX_DOUBLE_COMPLEX);
  add_c<std::complex<long double>>("cxx_long_double_complex", MPI_CXX_LONG_DOUBLE_COMPLEX);
  add_c<MPI_Aint>("aint", MPI_AINT);
  add_c<MPI_Offset>("offset", MPI_OFFSET);
  add_c<MPI_Count>("count", MPI_COUNT);
  add_c_pair<float>("float_int", MPI_FLOAT_INT, "float");
  add_c_pair<double>("double_int", MPI_DOUBLE_INT, "double");
  add_c_pair<long>("long_int", MPI_LONG_INT, "long");
  add_c_pair<short>("short_int", MPI_SHORT_INT, "short");
  add_c_pair<int>("2int", MPI_2INT, "int");
  add_c_pair<long double>("long_double_int", MPI_LONG_DOUBLE_INT, "long_double");
}

// MPI may lack even the names of sizes beyond eight bytes, and of REAL and COMPLEX below four.
void NamedTypes::add_fortran_types() {
  add_fortran("character", MPI_CHARACTER);
  add_fortran("logical", MPI_LOGICAL);
  add_fortran("integer", MPI_INTEGER);
  add_fortran("integer1", MPI_INTEGER1);
  add_fortran("integer2", MPI_INTEGER2);
  add_fortran("integer4", MPI_INTEGER4);
  add_fortran("integer8", MPI_INTEGER8);
#ifdef MPI_INTEGER16
  add_fortran("integer16", MPI_INTEGER16);
#endif
  add_fortran("real", MPI_REAL);
#ifdef MPI_REAL2
  add_fortran("real2", MPI_REAL2);
#endif
  add_fortran("real4", MPI_REAL4);
  add_fortran("real8", MPI_REAL8);
#ifdef MPI_REAL16
  add_fortran("real16", MPI_REAL16);
#endif
  add_fortran("double_precision", MPI_DOUBLE_PRECISION);
  add_fortran("complex", MPI_COMPLEX, 2);
#ifdef MPI_COMPLEX4
  add_fortran("complex4", MPI_COMPLEX4, 2);
#endif
  add_fortran("complex8", MPI_COMPLEX8, 2);
  add_fortran("complex16", MPI_COMPLEX16, 2);
#ifdef MPI_COMPLEX32
  add_fortran("complex32", MPI_COMPLEX32, 2);
#endif
  add_fortran("double_complex", MPI_DOUBLE_COMPLEX, 2);
  add_fortran_pair("2integer", MPI_2INTEGER, "integer");
  add_fortran_pair("2real", MPI_2REAL, "real");
  add_fortran_pair("2double_precision", MPI_2DOUBLE_PRECISION, "double_precision");
}

// Never destroyed: a handle's owner may look it up while the process ends.
const NamedTypes& table() {
  static const NamedTypes& all = *new NamedTypes;
  return all;
}

// Holds a NamedType and everything that it refers to.
struct F90Type {
  std::string name;
  BasicType basic;
  NamedType type;
};

std::unique_ptr<F90Type> make_f90_type(F90Kind kind, int precision, int range) {
  const auto text = [](int value) {
    return value == MPI_UNDEFINED ? std::string("undefined") : std::to_string(value);
  };
  const auto both = "(" + text(precision) + "," + text(range) + ")";
  auto out = std::make_unique<F90Type>();
  MPI_Datatype handle = MPI_DATATYPE_NULL;
  int code = MPI_SUCCESS;
  switch (kind) {
    case F90Kind::real:
      out->name = "f90_real" + both;
      code = MPI_Type_create_f90_real(precision, range, &handle);
      break;
    case F90Kind::complex:
      out->name = "f90_complex" + both;
      code = MPI_Type_create_f90_complex(precision, range, &handle);
      break;
    case F90Kind::integer:
      out->name = "f90_integer(" + text(range) + ")";
      code = MPI_Type_create_f90_integer(range, &handle);
  }
  if (code != MPI_SUCCESS || size_of(handle) == 0) return nullptr;
  const auto size = size_of(handle);
  out->basic = {out->name, size, kind == F90Kind::complex ? size / 2 : size};
  out->type = {out->name, handle, {{&out->basic, 0}}, -1};
  return out;
}

}  // namespace

const std::vector<NamedType>& named_types() {
  return table().all();
}

const NamedType* find_named_type(std::string_view name) {
  const auto& all = named_types();
  const auto it =
      std::find_if(all.begin(), all.end(), [&](const auto& type) { return type.name == name; });
  return it == all.end() ? nullptr : &*it;
}

const NamedType* find_named_type(MPI_Datatype handle) {
  return table().find(handle);
}

const NamedType* find_f90_type(F90Kind kind, int precision, int range) {
  if (kind == F90Kind::integer) precision = MPI_UNDEFINED;
  static std::mutex mutex;
  static auto& known = *new std::map<std::tuple<F90Kind, int, int>, std::unique_ptr<F90Type>>;
  const std::lock_guard lock(mutex);
  auto& entry = known[{kind, precision, range}];
  if (entry == nullptr) entry = make_f90_type(kind, precision, range);
  return entry == nullptr ? nullptr : &entry->type;
}

}  // namespace halocline::dtype
