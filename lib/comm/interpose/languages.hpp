// SPDX-License-Identifier: BSD-3-Clause
// Makes the entry points of a call: MPI_Name for C, mpi_name_ for Fortran's mpif.h and `use mpi`,
// and mpi_name_f08_ for `use mpi_f08`. All hand their arguments to one body, a function template
// `body(mpi, arguments...)`.
//
// - In C, the arguments are as in mpi.h, and `mpi(arguments...)` calls PMPI_Name.
// - In Fortran, each argument is an address, Given<T>, and `mpi(arguments...)` calls MPI's function
//   for Fortran. That one calls MPI's function for C: PMPI_Name with Open MPI, and MPI_Name with
//   MPICH and what comes from it. The entry point for C lets the latter pass.
// - The handles of mpi_f08 are structs of one integer, and its statuses are those of `use mpi`.
//   MPICH has no mpi_name_f08_ for calls with a buffer: their mpi_name_f08ts_ calls MPI_Name.
//
// A body reads arguments by in_c() and at(). It passes them on as they are, or others in their
// place.
#pragma once

#include <mpi.h>

#include <array>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <vector>

#include "comm/interpose/requests.hpp"
#include "support/overload.hpp"

namespace halocline::interpose {

// ---- Arguments

/// Holds an argument that Fortran gives by its address. In C, it has type T.
template <class T>
struct Given {
  void* address;
};

static_assert(sizeof(MPI_Fint) == sizeof(int), "counts are handed on as they are");

/// Returns a number or handle of Fortran as C has it.
template <class T>
T from_fortran(MPI_Fint value) {
  if constexpr (std::is_same_v<T, int>) {
    return value;  // handles, too, if they are numbers
  } else if constexpr (std::is_same_v<T, MPI_Datatype>) {
    return PMPI_Type_f2c(value);
  } else if constexpr (std::is_same_v<T, MPI_Comm>) {
    return PMPI_Comm_f2c(value);
  } else {
    static_assert(std::is_same_v<T, MPI_Request>);
    return PMPI_Request_f2c(value);
  }
}

/// Returns an argument as C has it: a number, a handle, or the address of anything but handles.
template <class T>
const T& in_c(const T& argument) {
  return argument;
}
template <class T>
T in_c(Given<T> argument) {
  if constexpr (kIsOneOf<T, void*, const void*, int*, const int*, const MPI_Aint*>)
    return static_cast<T>(argument.address);
  else
    return from_fortran<T>(*static_cast<const MPI_Fint*>(argument.address));
}

/// Returns handle i of a list.
template <class T>
T at(T* list, int i) {
  return list[i];
}
template <class T>
std::remove_const_t<T> at(Given<T*> list, int i) {
  return from_fortran<std::remove_const_t<T>>(static_cast<const MPI_Fint*>(list.address)[i]);
}

/// Sets a request to MPI_REQUEST_NULL.
inline void set_null(MPI_Request* request) {
  *request = MPI_REQUEST_NULL;
}
inline void set_null(Given<MPI_Request*> request) {
  *static_cast<MPI_Fint*>(request.address) = PMPI_Request_c2f(MPI_REQUEST_NULL);
}

/// Tells if an address stands for Fortran's MPI_BOTTOM or MPI_IN_PLACE. If these are not known, the
/// answer is true, and no argument may be replaced. C's are known to the bodies.
bool is_special(Given<void*> buffer);
inline bool is_special(Given<const void*> buffer) {
  return is_special(Given<void*>{buffer.address});
}
inline bool is_special(const void* /*buffer*/) {
  return false;
}

// ---- C

/// Holds what the bodies use in C.
struct C {
  /// Returns the index of a list's first request.
  static constexpr int first_index() { return 0; }

  /// Holds the requests of a call.
  class Requests {
   public:
    Requests(int count, const MPI_Request* list) : count_(count), list_(list) {}
    explicit Requests(const MPI_Request& one) : Requests(1, &one) {}
    /// Tells if a call has to look for watched requests.
    bool look() const { return interpose::look(count_, list_); }
    int count() const { return count_; }
    /// Returns the requests. Call look() before.
    const MPI_Request* in_c() const { return list_; }
    /// Reads the requests again, as a call has left them.
    void read() const {}

   private:
    int count_;
    const MPI_Request* list_;
  };

  /// Holds the status of a call. If the caller wants none, it is the library's own once that needs
  /// it, since it says what was received.
  class Status {
   public:
    explicit Status(MPI_Status* wanted) : list_(wanted) {}
    /// Returns the status that MPI gets.
    MPI_Status* list() const { return list_; }
    /// Returns the status that MPI gets and the library needs.
    MPI_Status* needed() {
      if (list_ == MPI_STATUS_IGNORE) list_ = &own_;
      return list_;
    }
    /// Sets the status to nothing received, until MPI says what was received.
    void empty() { PMPI_Status_set_elements(needed(), MPI_PACKED, 0); }
    const MPI_Status& in_c() const { return *list_; }

   private:
    MPI_Status own_;
    MPI_Status* list_;
  };

  /// Holds the statuses of a call that completes several requests. They are the caller's or, if it
  /// wants none, the library's own.
  class Statuses {
   public:
    Statuses(int count, MPI_Status* wanted)
        : own_(wanted == MPI_STATUSES_IGNORE ? static_cast<std::size_t>(count) : 0),
          list_(own_.empty() ? wanted : own_.data()) {}
    MPI_Status* list() const { return list_; }
    const MPI_Status* in_c(int /*count*/) const { return list_; }

   private:
    std::vector<MPI_Status> own_;
    MPI_Status* list_;
  };
};

/// Calls MPI's function for C.
template <auto* function>
struct InC : C {
  int operator()(auto... arguments) const { return function(arguments...); }
  /// Returns a type as an argument of the function.
  static MPI_Datatype argument(MPI_Datatype type) { return type; }
};

// ---- Fortran

/// Holds what the bodies use in Fortran. The members are as those of C.
struct Fortran {
  static constexpr int first_index() { return 1; }

  class Requests {
   public:
    template <class T>  // list of requests, constant or not
    Requests(int count, Given<T> list)
        : count_(count), list_(static_cast<const MPI_Fint*>(list.address)) {}
    explicit Requests(Given<MPI_Request> one) : Requests(1, one) {}
    bool look() { return interpose::look() && has_read(); }
    int count() const { return count_; }
    const MPI_Request* in_c() const { return in_c_.data(); }
    void read();

   private:
    // Reads the requests. Returns false if there are none.
    bool has_read();

    int count_;
    const MPI_Fint* list_;
    std::vector<MPI_Request> in_c_;
  };

#ifdef MPI_F_STATUS_SIZE
  static constexpr int kStatusSize = MPI_F_STATUS_SIZE;
#else
  static constexpr int kStatusSize = sizeof(MPI_Status) / sizeof(MPI_Fint);
#endif

  class Status {
   public:
    explicit Status(Given<MPI_Status*> wanted) : list_(static_cast<MPI_Fint*>(wanted.address)) {}
    MPI_Fint* list() const { return list_; }
    MPI_Fint* needed();
    void empty();
    MPI_Status in_c() const;

   private:
    std::array<MPI_Fint, kStatusSize> own_;
    MPI_Fint* list_;
  };

  class Statuses {
   public:
    Statuses(int count, Given<MPI_Status*> wanted);
    MPI_Fint* list() const { return list_; }
    /// Returns the first `count` statuses, as MPI has left them.
    const MPI_Status* in_c(int count);

   private:
    std::vector<MPI_Fint> own_;
    MPI_Fint* list_;
    std::vector<MPI_Status> in_c_;
  };
};

/// Holds what the bodies use in mpi_f08.
struct Fortran08 : Fortran {
  /// Returns the index of a list's first request. MPICH 4.0 counts from 0. O(1) after the first
  /// call.
  static int first_index();
};

#if defined(MPICH_VERSION) || defined(I_MPI_VERSION)
/// Tells if MPI's functions for Fortran call the entry points for C.
inline constexpr bool kFortranCallsC = true;
#else
inline constexpr bool kFortranCallsC = false;
#endif
/// Is the function for C that a function for Fortran is about to call in this thread; nullptr:
/// none.
#ifdef __GNUC__
[[gnu::tls_model("initial-exec")]]
#endif
extern constinit thread_local const void* passed_on;
/// Tells if a call of `function` comes from MPI's function for Fortran, and was seen there.
inline bool was_seen_in_fortran(const void* function) {
  if (!kFortranCallsC || passed_on != function) return false;
  passed_on = nullptr;
  return true;
}

/// Calls MPI's function for Fortran, which sets `error`. `in_c` is MPI's function for C. `Language`
/// is Fortran or Fortran08.
template <class Language, class... Addresses>
class InFortran : public Language {
 public:
  InFortran(void (*function)(Addresses...), const void* in_c, MPI_Fint* error)
      : function_(function), in_c_(in_c), error_(error) {}
  int operator()(const auto&... arguments) const {
    if constexpr (kFortranCallsC) passed_on = in_c_;
    function_(address_of(arguments)..., error_);
    if constexpr (kFortranCallsC) passed_on = nullptr;
    return *error_;
  }
  static MPI_Fint argument(MPI_Datatype type) { return PMPI_Type_c2f(type); }

 private:
  template <class T>
  static void* address_of(const Given<T>& argument) {
    return argument.address;
  }
  static void* address_of(const MPI_Fint& value) { return const_cast<MPI_Fint*>(&value); }
  static void* address_of(const void* data) { return const_cast<void*>(data); }

  void (*function_)(Addresses...);
  const void* in_c_;
  MPI_Fint* error_;
};

/// Returns the function `name` that comes after `ours`, in any library of the process. Ends the job
/// if there is none: MPI has no Fortran then.
void* find_behind(const char* name, const void* ours);
template <class... Addresses>
auto behind(const char* name, void (*ours)(Addresses...)) {
  return reinterpret_cast<void (*)(Addresses...)>(
      find_behind(name, reinterpret_cast<const void*>(ours)));
}

template <class Language, class... Addresses>
InFortran<Language, Addresses...> in_fortran(void (*function)(Addresses...), const void* in_c,
                                             MPI_Fint* error) {
  return {function, in_c, error};
}

// ---- Entry points

template <class Function>
struct ParametersOf;
template <class... T>
struct ParametersOf<int(T...)> {
  using Types = std::tuple<T...>;
};
/// Is the type of parameter i of a function.
template <class Function, std::size_t i>
using Parameter = std::tuple_element_t<i, typename ParametersOf<Function>::Types>;

}  // namespace halocline::interpose

// Lists `m(call, i)` for the arguments 0, 1, ... of a call.
#define HALOCLINE_EACH_1(m, call) m(call, 0)
#define HALOCLINE_EACH_2(m, call) HALOCLINE_EACH_1(m, call), m(call, 1)
#define HALOCLINE_EACH_3(m, call) HALOCLINE_EACH_2(m, call), m(call, 2)
#define HALOCLINE_EACH_4(m, call) HALOCLINE_EACH_3(m, call), m(call, 3)
#define HALOCLINE_EACH_5(m, call) HALOCLINE_EACH_4(m, call), m(call, 4)
#define HALOCLINE_EACH_6(m, call) HALOCLINE_EACH_5(m, call), m(call, 5)
#define HALOCLINE_EACH_7(m, call) HALOCLINE_EACH_6(m, call), m(call, 6)
#define HALOCLINE_EACH_8(m, call) HALOCLINE_EACH_7(m, call), m(call, 7)
#define HALOCLINE_EACH_9(m, call) HALOCLINE_EACH_8(m, call), m(call, 8)
#define HALOCLINE_EACH_10(m, call) HALOCLINE_EACH_9(m, call), m(call, 9)
#define HALOCLINE_EACH_11(m, call) HALOCLINE_EACH_10(m, call), m(call, 10)
#define HALOCLINE_EACH_12(m, call) HALOCLINE_EACH_11(m, call), m(call, 11)

#define HALOCLINE_TYPE(call, i) halocline::interpose::Parameter<decltype(MPI_##call), i>
#define HALOCLINE_PARAMETER(call, i) HALOCLINE_TYPE(call, i) a##i
#define HALOCLINE_ARGUMENT(call, i) a##i
#define HALOCLINE_ADDRESS(call, i) void* a##i
#define HALOCLINE_GIVEN(call, i)                         \
  halocline::interpose::Given<HALOCLINE_TYPE(call, i)> { \
    a##i                                                 \
  }

/// Defines all entry points of a call of calls.def.
#define HALOCLINE_ENTRY_POINTS(Name, name, count, body)                                  \
  int MPI_##Name(HALOCLINE_EACH_##count(HALOCLINE_PARAMETER, Name)) {                    \
    using namespace halocline::interpose;                                                \
    if (was_seen_in_fortran(reinterpret_cast<const void*>(&PMPI_##Name)))                \
      return PMPI_##Name(HALOCLINE_EACH_##count(HALOCLINE_ARGUMENT, Name));              \
    return halocline::interpose::body(InC<&PMPI_##Name>(),                               \
                                      HALOCLINE_EACH_##count(HALOCLINE_ARGUMENT, Name)); \
  }                                                                                      \
  HALOCLINE_ENTRY_POINT_IN_FORTRAN(Name, mpi_##name##_, Fortran, count, body)            \
  HALOCLINE_ENTRY_POINT_IN_FORTRAN(Name, mpi_##name##_f08_, Fortran08, count, body)

// In mpi_f08, `error` is optional: a null address.
#define HALOCLINE_ENTRY_POINT_IN_FORTRAN(Name, symbol, Language, count, body)                \
  extern "C" void symbol(HALOCLINE_EACH_##count(HALOCLINE_ADDRESS, Name), MPI_Fint* error) { \
    using namespace halocline::interpose;                                                    \
    static const auto function = behind(#symbol, symbol);                                    \
    MPI_Fint own_error = MPI_SUCCESS;                                                        \
    if (error == nullptr) error = &own_error;                                                \
    *error = halocline::interpose::body(                                                     \
        in_fortran<Language>(function, reinterpret_cast<const void*>(&PMPI_##Name), error),  \
        HALOCLINE_EACH_##count(HALOCLINE_GIVEN, Name));                                      \
  }
