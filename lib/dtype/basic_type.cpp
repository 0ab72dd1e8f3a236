// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/basic_type.hpp"

#include <algorithm>
#include <array>
#include <complex>
#include <cstddef>

namespace halocline::dtype {

namespace {

template <class T>
const BasicType* basic(std::string_view name) {
  static const BasicType type{name, sizeof(T), alignof(T)};
  return &type;
}

// Distinct MPI types of one C++ type (byte, char, uint8_t ...) share the BasicType's size but not
// its name, so the name takes part in the choice of the static object through the tag.
template <class Tag, class T>
const BasicType* tagged(std::string_view name) {
  static const BasicType type{name, sizeof(T), alignof(T)};
  return &type;
}

template <class First>
struct Pair {
  First first;
  int second;
};

template <class First>
NamedType pair(std::string_view name, MPI_Datatype handle, std::string_view first) {
  return {name,
          handle,
          {{basic<First>(first), 0},
           {basic<int>("int"), static_cast<std::int64_t>(offsetof(Pair<First>, second))}}};
}

#define HALOCLINE_NAMED(name, handle, ...)                  \
  NamedType {                                               \
    name, handle, {                                         \
      { tagged<struct Tag_##handle, __VA_ARGS__>(name), 0 } \
    }                                                       \
  }

std::vector<NamedType> make_named_types() {
  return {
      HALOCLINE_NAMED("byte", MPI_BYTE, std::byte),
      HALOCLINE_NAMED("char", MPI_CHAR, char),
      HALOCLINE_NAMED("signed_char", MPI_SIGNED_CHAR, signed char),
      HALOCLINE_NAMED("unsigned_char", MPI_UNSIGNED_CHAR, unsigned char),
      HALOCLINE_NAMED("wchar", MPI_WCHAR, wchar_t),
      HALOCLINE_NAMED("short", MPI_SHORT, short),
      HALOCLINE_NAMED("unsigned_short", MPI_UNSIGNED_SHORT, unsigned short),
      HALOCLINE_NAMED("int", MPI_INT, int),
      HALOCLINE_NAMED("unsigned", MPI_UNSIGNED, unsigned),
      HALOCLINE_NAMED("long", MPI_LONG, long),
      HALOCLINE_NAMED("unsigned_long", MPI_UNSIGNED_LONG, unsigned long),
      HALOCLINE_NAMED("long_long", MPI_LONG_LONG, long long),
      HALOCLINE_NAMED("unsigned_long_long", MPI_UNSIGNED_LONG_LONG, unsigned long long),
      HALOCLINE_NAMED("float", MPI_FLOAT, float),
      HALOCLINE_NAMED("double", MPI_DOUBLE, double),
      HALOCLINE_NAMED("long_double", MPI_LONG_DOUBLE, long double),
      HALOCLINE_NAMED("c_bool", MPI_C_BOOL, bool),
      HALOCLINE_NAMED("int8_t", MPI_INT8_T, std::int8_t),
      HALOCLINE_NAMED("int16_t", MPI_INT16_T, std::int16_t),
      HALOCLINE_NAMED("int32_t", MPI_INT32_T, std::int32_t),
      HALOCLINE_NAMED("int64_t", MPI_INT64_T, std::int64_t),
      HALOCLINE_NAMED("uint8_t", MPI_UINT8_T, std::uint8_t),
      HALOCLINE_NAMED("uint16_t", MPI_UINT16_T, std::uint16_t),
      HALOCLINE_NAMED("uint32_t", MPI_UINT32_T, std::uint32_t),
      HALOCLINE_NAMED("uint64_t", MPI_UINT64_T, std::uint64_t),
      HALOCLINE_NAMED("c_float_complex", MPI_C_FLOAT_COMPLEX, std::complex<float>),
      HALOCLINE_NAMED("c_double_complex", MPI_C_DOUBLE_COMPLEX, std::complex<double>),
      HALOCLINE_NAMED("c_long_double_complex", MPI_C_LONG_DOUBLE_COMPLEX,
                      std::complex<long double>),
      HALOCLINE_NAMED("aint", MPI_AINT, MPI_Aint),
      HALOCLINE_NAMED("offset", MPI_OFFSET, MPI_Offset),
      HALOCLINE_NAMED("count", MPI_COUNT, MPI_Count),
      pair<float>("float_int", MPI_FLOAT_INT, "float"),
      pair<double>("double_int", MPI_DOUBLE_INT, "double"),
      pair<long>("long_int", MPI_LONG_INT, "long"),
      pair<short>("short_int", MPI_SHORT_INT, "short"),
      pair<int>("2int", MPI_2INT, "int"),
      pair<long double>("long_double_int", MPI_LONG_DOUBLE_INT, "long_double"),
  };
}

#undef HALOCLINE_NAMED

template <class Predicate>
const NamedType* find_if(Predicate matches) {
  const auto& all = named_types();
  const auto it = std::find_if(all.begin(), all.end(), matches);
  return it == all.end() ? nullptr : &*it;
}

}  // namespace

const std::vector<NamedType>& named_types() {
  static const std::vector<NamedType> all = make_named_types();
  return all;
}

const NamedType* find_named_type(std::string_view name) {
  return find_if([&](const NamedType& type) { return type.name == name; });
}

const NamedType* find_named_type(MPI_Datatype handle) {
  return find_if([&](const NamedType& type) { return type.handle == handle; });
}

}  // namespace halocline::dtype
