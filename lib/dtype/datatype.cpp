// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/datatype.hpp"

#include <algorithm>
#include <climits>
#include <memory>
#include <type_traits>

#include "dtype/lower.hpp"
#include "dtype/mpi_bounds.hpp"
#include "dtype/type_part.hpp"
#include "support/mpi_check.hpp"
#include "support/narrow.hpp"
#include "support/overload.hpp"

namespace halocline::dtype {

namespace {

// Predefined types are neither committed nor freed. The parametrised Fortran types are predefined,
// too, although they have a combiner of their own (MPI-3.1 section 17.2.5).
bool is_of_predefined(int combiner) {
  return combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_REAL ||
         combiner == MPI_COMBINER_F90_COMPLEX || combiner == MPI_COMBINER_F90_INTEGER;
}

// Lists MPI's constructors for numbers of type int and, since MPI 4, for numbers of type MPI_Count.
#define HALOCLINE_CONSTRUCTORS(name, count, bytes, suffix)                              \
  struct name {                                                                         \
    using Count = count;                                                                \
    using Bytes = bytes;                                                                \
    static constexpr auto type_contiguous = MPI_Type_contiguous##suffix;                \
    static constexpr auto type_vector = MPI_Type_vector##suffix;                        \
    static constexpr auto type_hvector = MPI_Type_create_hvector##suffix;               \
    static constexpr auto type_indexed = MPI_Type_indexed##suffix;                      \
    static constexpr auto type_hindexed = MPI_Type_create_hindexed##suffix;             \
    static constexpr auto type_indexed_block = MPI_Type_create_indexed_block##suffix;   \
    static constexpr auto type_hindexed_block = MPI_Type_create_hindexed_block##suffix; \
    static constexpr auto type_struct = MPI_Type_create_struct##suffix;                 \
    static constexpr auto type_subarray = MPI_Type_create_subarray##suffix;             \
    static constexpr auto type_darray = MPI_Type_create_darray##suffix;                 \
  }
HALOCLINE_CONSTRUCTORS(IntConstructors, int, MPI_Aint, );
#if MPI_VERSION >= 4
HALOCLINE_CONSTRUCTORS(CountConstructors, MPI_Count, MPI_Count, _c);
#endif
#undef HALOCLINE_CONSTRUCTORS

template <class To>
To narrow(std::int64_t value, const char* what) {
  if constexpr (std::is_same_v<To, int>)
    return checked_int(value, what);
  else
    return value;
}

template <class To>
std::vector<To> narrow(const std::vector<std::int64_t>& values, const char* what) {
  std::vector<To> out;
  out.reserve(values.size());
  for (const auto value : values) out.push_back(narrow<To>(value, what));
  return out;
}

int to_mpi(Order order) {
  return order == Order::c ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
}

int to_mpi(Distribution distribution) {
  switch (distribution) {
    case Distribution::block:
      return MPI_DISTRIBUTE_BLOCK;
    case Distribution::cyclic:
      return MPI_DISTRIBUTE_CYCLIC;
    default:
      return MPI_DISTRIBUTE_NONE;
  }
}

Order order_from_mpi(int order) {
  return order == MPI_ORDER_C ? Order::c : Order::fortran;
}

Distribution distribution_from_mpi(int distribution) {
  return distribution == MPI_DISTRIBUTE_BLOCK    ? Distribution::block
         : distribution == MPI_DISTRIBUTE_CYCLIC ? Distribution::cyclic
                                                 : Distribution::none;
}

Datatype build(const TypeExpr& expr);

// Makes one constructor call with the types of numbers that Mpi's functions take. Throws
// ConfigError for numbers that do not fit. Does not commit: only the outermost type of an
// expression is committed.
template <class Mpi>
struct Maker {
  using Count = typename Mpi::Count;
  using Bytes = typename Mpi::Bytes;

  static Count count(std::int64_t value) { return narrow<Count>(value, "count"); }
  static auto blocklength(const auto& value) { return narrow<Count>(value, "blocklength"); }
  static auto displacement(const auto& value) { return narrow<Count>(value, "displacement"); }
  static auto bytes(const auto& value) { return narrow<Bytes>(value, "displacement"); }

  Datatype operator()(const Named& t) const { return Datatype(t.type->handle); }

  Datatype operator()(const Contiguous& t) const {
    return make(t, [&](auto old, auto* out) {
      HALOCLINE_MPI(Mpi::type_contiguous(count(t.count), old, out));
    });
  }

  Datatype operator()(const Vector& t) const {
    return make(t, [&](auto old, auto* out) {
      HALOCLINE_MPI(Mpi::type_vector(count(t.count), blocklength(t.blocklength),
                                     narrow<Count>(t.stride, "stride"), old, out));
    });
  }

  Datatype operator()(const Hvector& t) const {
    return make(t, [&](auto old, auto* out) {
      HALOCLINE_MPI(
          Mpi::type_hvector(count(t.count), blocklength(t.blocklength), t.stride, old, out));
    });
  }

  Datatype operator()(const Indexed& t) const {
    return make(t, [&](auto old, auto* out) {
      HALOCLINE_MPI(Mpi::type_indexed(length(t), blocklength(t.blocklengths).data(),
                                      displacement(t.displacements).data(), old, out));
    });
  }

  Datatype operator()(const Hindexed& t) const {
    return make(t, [&](auto old, auto* out) {
      HALOCLINE_MPI(Mpi::type_hindexed(length(t), blocklength(t.blocklengths).data(),
                                       bytes(t.displacements).data(), old, out));
    });
  }

  Datatype operator()(const IndexedBlock& t) const {
    return make(t, [&](auto old, auto* out) {
      HALOCLINE_MPI(Mpi::type_indexed_block(length(t), blocklength(t.blocklength),
                                            displacement(t.displacements).data(), old, out));
    });
  }

  Datatype operator()(const HindexedBlock& t) const {
    return make(t, [&](auto old, auto* out) {
      HALOCLINE_MPI(Mpi::type_hindexed_block(length(t), blocklength(t.blocklength),
                                             bytes(t.displacements).data(), old, out));
    });
  }

  Datatype operator()(const Struct& t) const {
    std::vector<Datatype> olds;
    std::vector<MPI_Datatype> handles;
    for (const auto& old : t.old) handles.push_back(olds.emplace_back(build(*old)).get());
    MPI_Datatype out = MPI_DATATYPE_NULL;
    HALOCLINE_MPI(Mpi::type_struct(length(t), blocklength(t.blocklengths).data(),
                                   bytes(t.displacements).data(), handles.data(), &out));
    return Datatype(out);
  }

  Datatype operator()(const Subarray& t) const {
    return make(t, [&](auto old, auto* out) {
      HALOCLINE_MPI(Mpi::type_subarray(dimensions(t.sizes), narrow<Count>(t.sizes, "size").data(),
                                       narrow<Count>(t.subsizes, "subsize").data(),
                                       narrow<Count>(t.starts, "start").data(), to_mpi(t.order),
                                       old, out));
    });
  }

  Datatype operator()(const Darray& t) const {
    std::vector<int> distributions;
    for (const auto distribution : t.distribs) distributions.push_back(to_mpi(distribution));
    return make(t, [&](auto old, auto* out) {
      HALOCLINE_MPI(Mpi::type_darray(
          checked_int(t.size, "size"), checked_int(t.rank, "rank"), dimensions(t.gsizes),
          narrow<Count>(t.gsizes, "size").data(), distributions.data(),
          narrow<int>(t.dargs, "distribution argument").data(),
          narrow<int>(t.psizes, "number of processes").data(), to_mpi(t.order), old, out));
    });
  }

  Datatype operator()(const Resized& t) const {
    return make(t, [&](auto old, auto* out) {
      HALOCLINE_MPI(MPI_Type_create_resized(old, t.lb, t.extent, out));
    });
  }

  Datatype operator()(const Dup& t) const {
    return make(t, [](auto old, auto* out) { HALOCLINE_MPI(MPI_Type_dup(old, out)); });
  }

  // Builds a constructor that MPI does not have by those that it has.
  template <class Constructor>
  requires requires(const Constructor& t) { lower(t); }
  Datatype operator()(const Constructor& t) const { return build(*lower(t)); }

 private:
  static Count length(const auto& t) { return count(std::ssize(t.displacements)); }
  static int dimensions(const auto& sizes) {
    return checked_int(std::ssize(sizes), "number of dimensions");
  }

  template <class Constructor, class Call>
  static Datatype make(const Constructor& t, Call call) {
    const auto old = build(*t.old);
    MPI_Datatype out = MPI_DATATYPE_NULL;
    call(old.get(), &out);
    return Datatype(out);
  }
};

#if MPI_VERSION >= 4
bool exceeds_int(std::int64_t value) {
  return value > INT_MAX || value < -INT_MAX;
}
bool exceeds_int(const std::vector<std::int64_t>& values) {
  return std::any_of(values.begin(), values.end(), [](auto value) { return exceeds_int(value); });
}
// Tells if a number of the constructor exceeds the int that IntConstructors take for it.
bool exceeds_int(const TypeExpr& expr) {
  const auto any = [](const auto&... numbers) { return (exceeds_int(numbers) || ...); };
  return std::visit(Overload{
                        [&](const Contiguous& t) { return any(t.count); },
                        [&](const Vector& t) { return any(t.count, t.blocklength, t.stride); },
                        [&](const Hvector& t) { return any(t.count, t.blocklength); },
                        [&](const Indexed& t) { return any(t.blocklengths, t.displacements); },
                        [&](const Hindexed& t) { return any(t.blocklengths); },
                        [&](const IndexedBlock& t) { return any(t.blocklength, t.displacements); },
                        [&](const HindexedBlock& t) { return any(t.blocklength); },
                        [&](const Struct& t) { return any(t.blocklengths); },
                        [&](const Subarray& t) { return any(t.sizes, t.subsizes, t.starts); },
                        [&](const Darray& t) { return any(t.gsizes); },
                        [](const auto&) { return false; },
                    },
                    expr.node);
}
#endif

Datatype build(const TypeExpr& expr) {
#if MPI_VERSION >= 4
  if (exceeds_int(expr)) return std::visit(Maker<CountConstructors>{}, expr.node);
#endif
  return std::visit(Maker<IntConstructors>{}, expr.node);
}

// Counts the arguments of each kind that a constructor was called with.
struct Envelope {
#if MPI_VERSION >= 4
  using Number = MPI_Count;
#else
  using Number = int;
#endif
  Number integers = 0, addresses = 0, large_counts = 0, types = 0;
  int combiner = 0;

  explicit Envelope(MPI_Datatype handle) {
#if MPI_VERSION >= 4
    HALOCLINE_MPI(
        MPI_Type_get_envelope_c(handle, &integers, &addresses, &large_counts, &types, &combiner));
#else
    HALOCLINE_MPI(MPI_Type_get_envelope(handle, &integers, &addresses, &types, &combiner));
#endif
  }
};

void free_unless_predefined(MPI_Datatype handle) {
  if (!is_predefined(handle)) MPI_Type_free(&handle);
}

// Holds uninitialized scratch, on the stack if it is small.
template <class T, std::size_t N>
class Scratch {
 public:
  explicit Scratch(std::int64_t length)
      : heap_(length > std::ssize(stack_)
                  ? std::make_unique_for_overwrite<T[]>(static_cast<std::size_t>(length))
                  : nullptr) {}
  T* data() { return heap_ == nullptr ? stack_ : heap_.get(); }

 private:
  T stack_[N];
  std::unique_ptr<T[]> heap_;
};

// Reads the arguments of the constructor call behind a handle, each kind in order (MPI-3.1 section
// 4.1.13). Each argument is read once. A constructor for large counts has all counts and byte
// displacements in one array of their own, in argument order (MPI-4.0 section 5.1.13). Frees the
// types that MPI hands out.
class Contents {
 public:
  Contents(MPI_Datatype handle, const Envelope& envelope)
      : large_(envelope.large_counts > 0),
        type_count_(envelope.types),
        integers_(envelope.integers),
        addresses_(envelope.addresses),
        large_counts_(envelope.large_counts),
        types_(envelope.types) {
#if MPI_VERSION >= 4
    HALOCLINE_MPI(MPI_Type_get_contents_c(handle, envelope.integers, envelope.addresses,
                                          envelope.large_counts, envelope.types, integers_.data(),
                                          addresses_.data(), large_counts_.data(), types_.data()));
#else
    HALOCLINE_MPI(MPI_Type_get_contents(handle, envelope.integers, envelope.addresses,
                                        envelope.types, integers_.data(), addresses_.data(),
                                        types_.data()));
#endif
  }
  Contents(const Contents&) = delete;
  Contents& operator=(const Contents&) = delete;
  ~Contents() {
    for (std::int64_t i = 0; i < type_count_; ++i) free_unless_predefined(types_.data()[i]);
  }

  /// Returns the next argument that is an int in every constructor.
  int integer() {
    return *integer_++;
  }
  std::vector<std::int64_t> integers(std::int64_t n) {
    return take(integer_, n);
  }

  /// Returns the next argument that is an int or an MPI_Count.
  std::int64_t count() {
    return large_ ? *large_count_++ : *integer_++;
  }
  std::vector<std::int64_t> counts(std::int64_t n) {
    return large_ ? take(large_count_, n) : take(integer_, n);
  }

  /// Returns the next argument that is an MPI_Aint or an MPI_Count.
  std::int64_t bytes() {
    return large_ ? *large_count_++ : *address_++;
  }
  std::vector<std::int64_t> byte_list(std::int64_t n) {
    return large_ ? take(large_count_, n) : take(address_, n);
  }

  MPI_Datatype type(std::int64_t i) {
    return types_.data()[i];
  }

 private:
  template <class T>
  static std::vector<std::int64_t> take(const T*& at, std::int64_t n) {
    const auto* begin = std::exchange(at, at + n);
    return {begin, at};
  }

  bool large_;
  std::int64_t type_count_;
  Scratch<int, 32> integers_;
  Scratch<MPI_Aint, 8> addresses_;
  Scratch<MPI_Count, 16> large_counts_;
  Scratch<MPI_Datatype, 4> types_;
  const int* integer_ = integers_.data();
  const MPI_Aint* address_ = addresses_.data();
  const MPI_Count* large_count_ = large_counts_.data();
};

UnsupportedDatatype unread_combiner(int combiner) {
  return UnsupportedDatatype("combiner " + std::to_string(combiner) + " is not read by Halocline");
}

Subarray decode_subarray(Contents& contents, TypeExprPtr old) {
  Subarray out{};
  const auto n = contents.integer();
  out.sizes = contents.counts(n);
  out.subsizes = contents.counts(n);
  out.starts = contents.counts(n);
  out.order = order_from_mpi(contents.integer());
  out.old = std::move(old);
  return out;
}

Darray decode_darray(Contents& contents, TypeExprPtr old) {
  Darray out{};
  out.size = contents.integer();
  out.rank = contents.integer();
  const auto n = contents.integer();
  out.gsizes = contents.counts(n);
  for (int d = 0; d < n; ++d) out.distribs.push_back(distribution_from_mpi(contents.integer()));
  out.dargs = contents.integers(n);
  out.psizes = contents.integers(n);
  out.order = order_from_mpi(contents.integer());
  out.old = std::move(old);
  return out;
}

// Reads a type from its innermost types outwards. Each type gets the bounds that this MPI gives it,
// even if the standard's rule says otherwise: a program lays out its arrays by MPI's bounds.
class Reader {
 public:
  explicit Reader(bool with_trees) : with_trees_(with_trees) {}

  Result<TypeExprPtr> read_shared(MPI_Datatype handle) { return read_shared(handle, 0); }
  Result<detail::Part> read_part(MPI_Datatype handle) {
    auto made = constructor_call(handle, 0);
    if (auto* reason = std::get_if<UnsupportedDatatype>(&made)) return std::move(*reason);
    auto expr = std::get<TypeExpr>(std::move(made));
    const bool is_named = std::holds_alternative<Named>(expr.node);
    auto part = detail::part_of(std::move(expr), with_trees_, parts_);
    if (is_named) return part;
    const auto adopted = adopt_bounds(handle, part);
    if (const auto* reason = std::get_if<UnsupportedDatatype>(&adopted)) return *reason;
    return part;
  }

 private:
  // Reading recurses, so the depth of nesting has a limit.
  static constexpr int kMaxDepth = 1000;
  // Reading takes a few microseconds for each type inside. If each level holds the type below it
  // twice, the number of reads doubles with each level: many MPIs hand out copies of a type.
  static constexpr int kMaxTypes = 1 << 16;

  // Gives a part the lb and the extent that MPI reports for its type. Returns true if they differ
  // from the standard's rule. Unsupported if MPI's size or true bounds differ: then MPI has data
  // elsewhere.
  static Result<bool> adopt_bounds(MPI_Datatype handle, detail::Part& part) {
    const auto ours = part.shape.bounds(), mpis = mpi_bounds(handle);
    const bool is_in_place = mpis.true_lb == ours.true_lb && mpis.true_extent == ours.true_extent;
    if (mpis.size != ours.size || (ours.size != 0 && !is_in_place))
      return UnsupportedDatatype(
          "this MPI gives it, or a type inside, another size or other true bounds than its data "
          "have");
    if (mpis.lb == ours.lb && mpis.extent == ours.extent) return false;
    part.shape.resize(mpis.lb, mpis.extent);
    return true;
  }

  struct Bounded {
    TypeExpr expr;
    detail::Part part;
  };
  // Returns an expression with MPI's bounds, and its part.
  Result<Bounded> bounded(MPI_Datatype handle, TypeExpr made) const {
    auto part = detail::part_of(made, with_trees_, parts_);
    if (std::holds_alternative<Named>(made.node)) return Bounded{std::move(made), std::move(part)};
    const auto adopted = adopt_bounds(handle, part);
    if (const auto* reason = std::get_if<UnsupportedDatatype>(&adopted)) return *reason;
    if (!std::get<bool>(adopted)) return Bounded{std::move(made), std::move(part)};
    const auto bounds = part.shape.bounds();
    auto old = std::make_shared<const TypeExpr>(std::move(made));
    return Bounded{TypeExpr{Resized{std::move(old), bounds.lb, bounds.extent}}, std::move(part)};
  }

  Result<TypeExpr> constructor_call(MPI_Datatype handle, int depth);
  Result<TypeExpr> struct_call(Contents& contents, int depth);
  Result<TypeExprPtr> read_shared(MPI_Datatype handle, int depth);

  bool with_trees_;
  int types_ = 0;             // types read so far
  detail::KnownParts parts_;  // parts of the types inside
};

Result<TypeExpr> Reader::struct_call(Contents& contents, int depth) {
  const auto n = contents.count();
  Struct out;
  out.blocklengths = contents.counts(n);
  out.displacements = contents.byte_list(n);
  out.old.reserve(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) {
    // Neighbours of one type share its expression, and later its tree.
    if (i > 0 && contents.type(i) == contents.type(i - 1)) {
      out.old.push_back(out.old.back());
      continue;
    }
    auto old = read_shared(contents.type(i), depth + 1);
    if (auto* reason = std::get_if<UnsupportedDatatype>(&old)) return std::move(*reason);
    out.old.push_back(std::get<TypeExprPtr>(std::move(old)));
  }
  return TypeExpr{std::move(out)};
}

Result<TypeExpr> Reader::constructor_call(MPI_Datatype handle, int depth) {
  if (const auto* found = find_named_type(handle)) return TypeExpr{Named{found}};
  if (depth > kMaxDepth)
    return UnsupportedDatatype("datatype nested deeper than " + std::to_string(kMaxDepth) +
                               " constructors");
  if (++types_ > kMaxTypes)
    return UnsupportedDatatype("datatype of more than " + std::to_string(kMaxTypes) +
                               " types inside of each other");
  const Envelope envelope(handle);
  const auto combiner = envelope.combiner;
  if (combiner == MPI_COMBINER_NAMED) {
    char name[MPI_MAX_OBJECT_NAME] = "";
    int length = 0;
    HALOCLINE_MPI(MPI_Type_get_name(handle, name, &length));
    return UnsupportedDatatype("predefined type '" + std::string(name) +
                               "' is not one that Halocline knows");
  }

  Contents contents(handle, envelope);
  if (combiner == MPI_COMBINER_STRUCT) return struct_call(contents, depth);
  if (is_of_predefined(combiner)) {
    const auto kind = combiner == MPI_COMBINER_F90_REAL      ? F90Kind::real
                      : combiner == MPI_COMBINER_F90_COMPLEX ? F90Kind::complex
                                                             : F90Kind::integer;
    const int precision = kind == F90Kind::integer ? MPI_UNDEFINED : contents.integer();
    if (const auto* found = find_f90_type(kind, precision, contents.integer()))
      return TypeExpr{Named{found}};
  }
  if (envelope.types == 0) return unread_combiner(combiner);
  auto decoded = read_shared(contents.type(0), depth + 1);
  if (auto* reason = std::get_if<UnsupportedDatatype>(&decoded)) return std::move(*reason);
  auto old = std::get<TypeExprPtr>(std::move(decoded));
  // Braces evaluate from left to right: the arguments are read in MPI's order.
  switch (combiner) {
    case MPI_COMBINER_DUP:
      return TypeExpr{Dup{std::move(old)}};
    case MPI_COMBINER_CONTIGUOUS:
      return TypeExpr{Contiguous{contents.count(), std::move(old)}};
    case MPI_COMBINER_VECTOR:
      return TypeExpr{Vector{contents.count(), contents.count(), contents.count(), std::move(old)}};
    case MPI_COMBINER_HVECTOR:
      return TypeExpr{
          Hvector{contents.count(), contents.count(), contents.bytes(), std::move(old)}};
    case MPI_COMBINER_INDEXED: {
      const auto n = contents.count();
      return TypeExpr{Indexed{contents.counts(n), contents.counts(n), std::move(old)}};
    }
    case MPI_COMBINER_HINDEXED: {
      const auto n = contents.count();
      return TypeExpr{Hindexed{contents.counts(n), contents.byte_list(n), std::move(old)}};
    }
    case MPI_COMBINER_INDEXED_BLOCK: {
      const auto n = contents.count();
      return TypeExpr{IndexedBlock{contents.count(), contents.counts(n), std::move(old)}};
    }
    case MPI_COMBINER_HINDEXED_BLOCK: {
      const auto n = contents.count();
      return TypeExpr{HindexedBlock{contents.count(), contents.byte_list(n), std::move(old)}};
    }
    case MPI_COMBINER_SUBARRAY:
      return TypeExpr{decode_subarray(contents, std::move(old))};
    case MPI_COMBINER_DARRAY:
      return TypeExpr{decode_darray(contents, std::move(old))};
    case MPI_COMBINER_RESIZED:
      return TypeExpr{Resized{std::move(old), contents.bytes(), contents.bytes()}};
    default:
      return unread_combiner(combiner);
  }
}

Result<TypeExprPtr> Reader::read_shared(MPI_Datatype handle, int depth) {
  if (const auto* found = find_named_type(handle)) return named(*found);
  auto made = constructor_call(handle, depth);
  if (auto* reason = std::get_if<UnsupportedDatatype>(&made)) return std::move(*reason);
  auto with_bounds = bounded(handle, std::get<TypeExpr>(std::move(made)));
  if (auto* reason = std::get_if<UnsupportedDatatype>(&with_bounds)) return std::move(*reason);
  auto [expr, part] = std::get<Bounded>(std::move(with_bounds));
  auto out = std::make_shared<const TypeExpr>(std::move(expr));
  parts_.emplace(out.get(), std::move(part));
  return out;
}

}  // namespace

Datatype::~Datatype() {
  if (handle_ == MPI_DATATYPE_NULL) return;
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (!finalized) free_unless_predefined(handle_);
}

Datatype make_datatype(const TypeExpr& expr) {
  Datatype type = build(expr);
  if (std::holds_alternative<Named>(expr.node)) return type;
  MPI_Datatype handle = type.get();
  HALOCLINE_MPI(MPI_Type_commit(&handle));
  return type;
}

Result<TypeExprPtr> decode(MPI_Datatype handle) {
  return Reader(false).read_shared(handle);
}

bool is_predefined(MPI_Datatype handle) {
  return find_named_type(handle) != nullptr || is_of_predefined(Envelope(handle).combiner);
}

Result<detail::Part> detail::read_part(MPI_Datatype handle) {
  return Reader(true).read_part(handle);
}

}  // namespace halocline::dtype
