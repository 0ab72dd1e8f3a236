// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/type_expr.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <numeric>
#include <optional>
#include <utility>

#include "dtype/lower.hpp"
#include "support/comma_separated.hpp"
#include "support/error.hpp"
#include "support/narrow.hpp"
#include "support/overload.hpp"
#include "support/text_file.hpp"

namespace halocline::dtype {

namespace {

std::string text(std::int64_t value) {
  return std::to_string(value);
}
std::string text(const TypeExprPtr& old) {
  return to_string(*old);
}
std::string text(Order order) {
  return order == Order::c ? "C" : "F";
}

std::string text(Distribution distribution) {
  switch (distribution) {
    case Distribution::block:
      return "block";
    case Distribution::cyclic:
      return "cyclic";
    default:
      return "none";
  }
}

template <class T>
std::string text(const std::vector<T>& list) {
  return "{" + comma_separated(list, [](const T& item) { return text(item); }) + "}";
}

// Is a list of distribution arguments, in which one number has a name.
struct Dargs {
  const std::vector<std::int64_t>& values;
};
std::string text(const Dargs& dargs) {
  return "{" +
         comma_separated(dargs.values,
                         [](std::int64_t darg) {
                           return darg == kDefaultDarg ? std::string("default") : text(darg);
                         }) +
         "}";
}

std::string call_text(std::string_view name) {
  return std::string(name);
}
template <class First, class... Rest>
std::string call_text(std::string_view name, const First& first, const Rest&... rest) {
  std::string out = std::string(name) + "(" + text(first);
  ((out += "," + text(rest)), ...);
  return out + ")";
}

std::vector<std::int64_t> blocklengths_of(const StretchedVector& t) {
  std::vector<std::int64_t> out(t.ends->size());
  std::adjacent_difference(t.ends->begin(), t.ends->end(), out.begin());
  return out;
}

// Calls `call` with the constructor's name and its arguments, and returns the result.
template <class Call>
auto with_arguments(const TypeExpr& expr, Call&& call) {
  return std::visit(
      Overload{
          [&](const Named& t) { return call(t.type->name); },
          [&](const Contiguous& t) { return call("contiguous", t.count, t.old); },
          [&](const Vector& t) { return call("vector", t.count, t.blocklength, t.stride, t.old); },
          [&](const Hvector& t) {
            return call("hvector", t.count, t.blocklength, t.stride, t.old);
          },
          [&](const Indexed& t) { return call("indexed", t.blocklengths, t.displacements, t.old); },
          [&](const Hindexed& t) {
            return call("hindexed", t.blocklengths, t.displacements, t.old);
          },
          [&](const IndexedBlock& t) {
            return call("indexed_block", t.blocklength, t.displacements, t.old);
          },
          [&](const HindexedBlock& t) {
            return call("hindexed_block", t.blocklength, t.displacements, t.old);
          },
          [&](const Struct& t) { return call("struct", t.blocklengths, t.displacements, t.old); },
          [&](const Subarray& t) {
            return call("subarray", t.order, t.sizes, t.subsizes, t.starts, t.old);
          },
          [&](const Darray& t) {
            return call("darray", t.size, t.rank, t.gsizes, t.distribs, Dargs{t.dargs}, t.psizes,
                        t.order, t.old);
          },
          [&](const Resized& t) { return call("resized", t.old, t.lb, t.extent); },
          [&](const Dup& t) { return call("dup", t.old); },
          [&](const BoundedVector& t) {
            return call("bounded_vector", t.start, t.blocklength, t.stride, t.bound, t.old);
          },
          [&](const CircularVector& t) {
            return call("circular_vector", t.start, t.blocklength, t.stride, t.end, t.bound, t.old);
          },
          [&](const Bucket& t) { return call("bucket", t.size, t.counts, t.old); },
          [&](const StretchedVector& t) {
            return call("stretched_vector", t.types, t.index, blocklengths_of(t), t.old);
          },
          [&](const Triangular& t) {
            return call("triangular", t.count, t.blocklength, t.change, t.stride, t.old);
          },
      },
      expr.node);
}

// Appends numbers that tell an expression from all other expressions, until there are more than
// `most`. The length of each list and name stands before it.
struct Numbers {
  std::vector<std::int64_t>& out;
  std::size_t most;

  bool are_too_many() const { return out.size() > most; }
  void add(std::int64_t value) const { out.push_back(value); }
  void add(Order order) const { add(static_cast<std::int64_t>(order)); }
  void add(Distribution distribution) const { add(static_cast<std::int64_t>(distribution)); }
  void add(const Dargs& dargs) const { add(dargs.values); }
  void add(const TypeExprPtr& old) const { add(*old); }
  void add(std::string_view name) const { add_all(name); }
  template <class T>
  void add(const std::vector<T>& list) const {
    add_all(list);
  }
  void add(const TypeExpr& expr) const {
    if (are_too_many()) return;
    with_arguments(expr, [this](std::string_view name, const auto&... all) {
      add(name);
      (add(all), ...);
    });
  }

 private:
  template <class List>
  void add_all(const List& list) const {
    add(static_cast<std::int64_t>(list.size()));
    for (const auto& item : list) {
      if (are_too_many()) return;
      add(item);
    }
  }
};

constexpr const char* kPredefined = "such as double, int, byte";
constexpr const char* kConstructors =
    "contiguous, vector, hvector, indexed, hindexed, indexed_block, hindexed_block, struct, "
    "subarray, darray, resized, dup, bounded_vector, circular_vector, bucket, stretched_vector or "
    "triangular";

// Finds a predefined type by NamedType::name or by MPI's name, in lower or upper case; nullptr if
// there is none.
const NamedType* find_predefined(std::string_view name) {
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  constexpr std::string_view kPrefix = "mpi_";
  if (lower.starts_with(kPrefix)) lower.erase(0, kPrefix.size());
  return find_named_type(lower);
}

std::shared_ptr<const std::vector<std::int64_t>> ends_of(
    const std::vector<std::int64_t>& blocklengths) {
  std::vector<std::int64_t> ends;
  ends.reserve(blocklengths.size());
  std::int64_t end = 0;
  for (const auto blocklength : blocklengths) ends.push_back(end = checked_add(end, blocklength));
  return std::make_shared<const std::vector<std::int64_t>>(std::move(ends));
}

// Parses the grammar in the header by recursive descent. Keeps the position for messages.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  TypeExprPtr whole() {
    auto result = type_expr();
    skip_space();
    if (at_ != text_.size()) fail("end of expression");
    return result;
  }

 private:
  static constexpr std::size_t kMaxDepth = 1000;

  TypeExprPtr type_expr() {
    skip_space();
    const auto begin = at_;
    const auto name = word();
    if (name.empty()) fail("a type name");
    if (!peek('(')) {
      if (find_predefined(name) == nullptr) {
        at_ = begin;
        fail("a predefined type " + std::string(kPredefined) +
             ", or a constructor: " + kConstructors + " (unknown name '" + excerpt(name) +
             "'; see halocline inspect --help)");
      }
      return named(name);
    }
    const auto* const known = find_constructor(name);
    if (known == nullptr) {
      at_ = begin;
      fail("a constructor: " + std::string(kConstructors) + " (unknown name '" + excerpt(name) +
           "'; see halocline inspect --help)");
    }
    const auto outside = depth_;
    const auto* const outer = std::exchange(constructor_, known);
    nest(1);
    expect('(');
    auto result = (this->*known->parse)();
    expect(')');
    depth_ = outside;
    constructor_ = outer;
    return result;
  }

  // Counts the levels around the part that is parsed next.
  void nest(std::size_t levels) {
    depth_ += levels;
    if (depth_ > kMaxDepth) fail("at most 1000 nested constructors and dimensions of arrays");
  }

  // Parsers are called through pointers, so that each has its own small frame: nesting is deep.
  struct Constructor {
    std::string_view name, arguments;
    TypeExprPtr (Parser::*parse)();
  };
  static const Constructor* find_constructor(std::string_view name) {
    static constexpr Constructor kAll[] = {
        {"contiguous", "count, T", &Parser::contiguous},
        {"vector", "count, blocklength, stride, T", &Parser::strided<Vector>},
        {"hvector", "count, blocklength, stride, T", &Parser::strided<Hvector>},
        {"indexed", "{blocklengths}, {displacements}, T", &Parser::indexed<Indexed>},
        {"hindexed", "{blocklengths}, {displacements}, T", &Parser::indexed<Hindexed>},
        {"indexed_block", "blocklength, {displacements}, T", &Parser::indexed_block<IndexedBlock>},
        {"hindexed_block", "blocklength, {displacements}, T",
         &Parser::indexed_block<HindexedBlock>},
        {"struct", "{blocklengths}, {displacements}, {T, ...}", &Parser::structure},
        {"subarray", "{sizes}, {subsizes}, {starts}, C|F, T", &Parser::subarray},
        {"darray", "size, rank, {gsizes}, {distribs}, {dargs}, {psizes}, C|F, T", &Parser::darray},
        {"resized", "T, lb, extent", &Parser::resized},
        {"dup", "T", &Parser::dup},
        {"bounded_vector", "start, blocklength, stride, bound, T", &Parser::bounded_vector},
        {"circular_vector", "start, blocklength, stride, end, bound, T", &Parser::circular_vector},
        {"bucket", "size, {counts}, T", &Parser::bucket},
        {"stretched_vector", "types, index, {blocklengths}, T", &Parser::stretched_vector},
        {"triangular", "count, blocklength, change, stride, T", &Parser::triangular},
        {"f90_real", "precision, range", &Parser::f90<F90Kind::real>},
        {"f90_complex", "precision, range", &Parser::f90<F90Kind::complex>},
        {"f90_integer", "range", &Parser::f90<F90Kind::integer>}};
    for (const auto& known : kAll)
      if (known.name == name) return &known;
    return nullptr;
  }

  TypeExprPtr contiguous() {
    Contiguous t{};
    t.count = natural(), expect(',');
    t.old = type_expr();
    return type(std::move(t));
  }

  TypeExprPtr structure() {
    Struct t;
    t.blocklengths = naturals(), expect(',');
    t.displacements = integers(), expect(',');
    t.old = list([&] { return type_expr(); });
    same_length(t.blocklengths.size(), t.displacements.size());
    same_length(t.blocklengths.size(), t.old.size());
    return type(std::move(t));
  }

  TypeExprPtr resized() {
    Resized t{};
    t.old = type_expr(), expect(',');
    t.lb = integer(), expect(',');
    t.extent = integer();
    return type(std::move(t));
  }

  TypeExprPtr dup() { return type(Dup{type_expr()}); }

  template <class T>
  TypeExprPtr strided() {
    T t{};
    t.count = natural(), expect(',');
    t.blocklength = natural(), expect(',');
    t.stride = integer(), expect(',');
    t.old = type_expr();
    return type(std::move(t));
  }

  template <class T>
  TypeExprPtr indexed() {
    T t;
    t.blocklengths = naturals(), expect(',');
    t.displacements = integers(), expect(',');
    same_length(t.blocklengths.size(), t.displacements.size());
    t.old = type_expr();
    return type(std::move(t));
  }

  template <class T>
  TypeExprPtr indexed_block() {
    T t;
    t.blocklength = natural(), expect(',');
    t.displacements = integers(), expect(',');
    t.old = type_expr();
    return type(std::move(t));
  }

  TypeExprPtr subarray() {
    Subarray t{};
    const auto dimensions = optional_dimensions();
    const bool is_first = !begins_list();  // else the order is behind the starts, as in MPI
    if (is_first) t.order = order(), expect(',');
    t.sizes = integers(), expect(',');
    if (dimensions) same_length(t.sizes.size(), static_cast<std::size_t>(*dimensions));
    t.subsizes = integers(), expect(',');
    t.starts = integers();
    if (!is_first) expect(','), t.order = order();
    same_length(t.sizes.size(), t.subsizes.size());
    same_length(t.sizes.size(), t.starts.size());
    if (t.sizes.empty()) fail("at least one dimension");
    for (std::size_t d = 0; d < t.sizes.size(); ++d)
      if (t.sizes[d] < 1 || t.subsizes[d] < 1 || t.starts[d] < 0 || t.subsizes[d] > t.sizes[d] ||
          t.starts[d] > t.sizes[d] - t.subsizes[d])
        fail("1 <= subsize and start + subsize <= size in dimension " + std::to_string(d));
    nest(t.sizes.size() - 1);
    expect(',');
    t.old = type_expr();
    return type(std::move(t));
  }

  TypeExprPtr darray() {
    Darray t{};
    t.size = natural(), expect(','), t.rank = natural(), expect(',');
    if (t.rank >= t.size) fail("rank < size");
    const auto dimensions = optional_dimensions();
    t.gsizes = integers(), expect(',');
    if (dimensions) same_length(t.gsizes.size(), static_cast<std::size_t>(*dimensions));
    t.distribs = list([&] { return distribution(); }), expect(',');
    t.dargs = list([&] { return distribution_argument(); }), expect(',');
    t.psizes = integers();
    same_length(t.gsizes.size(), t.distribs.size());
    same_length(t.gsizes.size(), t.dargs.size());
    same_length(t.gsizes.size(), t.psizes.size());
    if (t.gsizes.empty()) fail("at least one dimension");
    std::int64_t processes = t.size;
    for (std::size_t d = 0; d < t.gsizes.size(); ++d) {
      const auto dimension = " in dimension " + std::to_string(d);
      const auto darg = t.dargs[d], gsize = t.gsizes[d], psize = t.psizes[d];
      if (gsize < 1 || psize < 1) fail("sizes of at least 1" + dimension);
      if (t.distribs[d] == Distribution::none) {
        if (psize != 1) fail("one process where nothing is distributed," + dimension);
      } else if (darg != kDefaultDarg) {
        if (darg < 1) fail("a distribution argument of at least 1, or default," + dimension);
        if (t.distribs[d] == Distribution::block && darg < (gsize - 1) / psize + 1)
          fail("blocks that cover the array" + dimension);
      }
      if (processes % psize != 0) processes = 0;
      processes /= psize;
    }
    if (processes != 1) fail("as many processes in the grid as size says");
    nest(t.gsizes.size() - 1);
    expect(',');
    t.order = order(), expect(',');
    t.old = type_expr();
    return type(std::move(t));
  }

  // Checks the numbers of a constructor that MPI does not have, and parses the type behind them.
  template <class T>
  TypeExprPtr applied(T t) {
    if (const auto* expected = wrong_arguments(t)) fail(expected);
    expect(',');
    t.old = type_expr();
    return type(std::move(t));
  }

  TypeExprPtr bounded_vector() {
    BoundedVector t{};
    t.start = integer(), expect(',');
    t.blocklength = natural(), expect(',');
    t.stride = integer(), expect(',');
    t.bound = integer();
    return applied(std::move(t));
  }

  TypeExprPtr circular_vector() {
    CircularVector t{};
    t.start = integer(), expect(',');
    t.blocklength = natural(), expect(',');
    t.stride = integer(), expect(',');
    t.end = integer(), expect(',');
    t.bound = integer();
    return applied(std::move(t));
  }

  TypeExprPtr bucket() {
    Bucket t{};
    t.size = integer(), expect(',');
    t.counts = naturals();
    return applied(std::move(t));
  }

  TypeExprPtr stretched_vector() {
    StretchedVector t{};
    t.types = natural(), expect(',');
    t.index = natural(), expect(',');
    t.ends = ends_of(naturals());
    return applied(std::move(t));
  }

  TypeExprPtr triangular() {
    Triangular t{};
    t.count = natural(), expect(',');
    t.blocklength = natural(), expect(',');
    t.change = integer(), expect(',');
    t.stride = integer();
    return applied(std::move(t));
  }

  template <F90Kind kKind>
  TypeExprPtr f90() {
    const auto argument = [&] {
      return checked_int(integer_or("undefined", MPI_UNDEFINED), "number of digits");
    };
    int precision = MPI_UNDEFINED;
    if (kKind != F90Kind::integer) precision = argument(), expect(',');
    const int range = argument();
    const auto* found = find_f90_type(kKind, precision, range);
    if (found == nullptr) fail("digits and a range that a Fortran type of this MPI has");
    return named(*found);
  }

  Order order() {
    skip_space();
    const auto name = word();
    if (name == "C" || name == "MPI_ORDER_C") return Order::c;
    if (name == "F" || name == "MPI_ORDER_FORTRAN") return Order::fortran;
    fail("the order, C or F");
  }

  Distribution distribution() {
    skip_space();
    const auto name = word();
    if (name == "block" || name == "MPI_DISTRIBUTE_BLOCK") return Distribution::block;
    if (name == "cyclic" || name == "MPI_DISTRIBUTE_CYCLIC") return Distribution::cyclic;
    if (name == "none" || name == "MPI_DISTRIBUTE_NONE") return Distribution::none;
    fail("block, cyclic or none");
  }

  std::int64_t distribution_argument() {
    const auto* const name = peek('M') ? "MPI_DISTRIBUTE_DFLT_DARG" : "default";
    return integer_or(name, kDefaultDarg);
  }

  // Reads the number of dimensions, which MPI has in front of the lists; nullopt if it is absent.
  std::optional<std::int64_t> optional_dimensions() {
    skip_space();
    if (at_ == text_.size() || text_[at_] < '0' || text_[at_] > '9') return std::nullopt;
    const auto out = natural();
    expect(',');
    return out;
  }

  // Parses a natural number, or `name`, which stands for `value`.
  std::int64_t integer_or(std::string_view name, std::int64_t value) {
    skip_space();
    if (text_.substr(at_).starts_with(name)) {
      at_ += name.size();
      return value;
    }
    if (at_ == text_.size() || !(text_[at_] >= '0' && text_[at_] <= '9'))
      fail("a number, not negative, or " + std::string(name));
    return natural();
  }

  bool begins_list() { return peek('{') || peek('['); }

  // Parses a list between braces, or between brackets as in many languages.
  template <class Item>
  auto list(Item item) -> std::vector<decltype(item())> {
    std::vector<decltype(item())> items;
    const char end = peek('[') ? ']' : '}';
    expect(end == ']' ? '[' : '{');
    if (!peek(end)) {
      items.push_back(item());
      while (peek(',')) {
        expect(',');
        items.push_back(item());
      }
    }
    expect(end);
    return items;
  }

  std::vector<std::int64_t> integers() {
    return list([&] { return integer(); });
  }
  std::vector<std::int64_t> naturals() {
    return list([&] { return natural(); });
  }

  std::int64_t integer() {
    skip_space();
    std::int64_t value = 0;
    const auto* first = text_.data() + at_;
    const auto [end, error] = std::from_chars(first, text_.data() + text_.size(), value);
    if (error != std::errc{}) fail("a 64-bit integer");
    at_ += static_cast<std::size_t>(end - first);
    return value;
  }

  std::int64_t natural() {
    skip_space();
    const auto begin = at_;
    const auto value = integer();
    if (value < 0) {
      at_ = begin;
      fail("a count that is not negative");
    }
    return value;
  }

  std::string_view word() {
    const auto begin = at_;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_'))
      ++at_;
    return text_.substr(begin, at_ - begin);
  }

  void same_length(std::size_t a, std::size_t b) {
    if (a != b) fail("lists of one length");
  }

  bool peek(char c) {
    skip_space();
    return at_ < text_.size() && text_[at_] == c;
  }

  void expect(char c) {
    if (!peek(c)) fail(std::string("'") + c + "'");
    ++at_;
  }

  void skip_space() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }

  [[noreturn]] void fail(const std::string& wanted) const {
    constexpr std::size_t kShown = 120;
    throw ConfigError("type expression does not parse (at character " + std::to_string(at_ + 1) +
                      " of '" + excerpt(text_, kShown, at_) + "'): expected " + wanted +
                      (constructor_ == nullptr
                           ? ""
                           : "; it is " + std::string(constructor_->name) + "(" +
                                 std::string(constructor_->arguments) + ")"));
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t depth_ = 0;
  const Constructor* constructor_ = nullptr;  // the one that is being parsed
};

}  // namespace

TypeExprPtr named(std::string_view name) {
  const auto* found = find_predefined(name);
  if (found == nullptr)
    throw ConfigError("unknown predefined type (" + excerpt(name) + "): use one of MPI's, " +
                      kPredefined);
  return named(*found);
}

TypeExprPtr named(const NamedType& found) {
  static const auto& all = *new auto([] {
    std::vector<TypeExprPtr> out;
    for (const auto& each : named_types()) out.push_back(type(Named{&each}));
    return out;
  }());
  return found.index < 0 ? type(Named{&found}) : all[static_cast<std::size_t>(found.index)];
}

std::vector<TypeExprPtr> stretched_vectors(std::int64_t types,
                                           const std::vector<std::int64_t>& blocklengths,
                                           const TypeExprPtr& old) {
  std::vector<TypeExprPtr> out;
  StretchedVector t{types, 0, ends_of(blocklengths), old};
  check_arguments(t);
  for (; t.index < types; ++t.index) out.push_back(type(t));
  return out;
}

std::vector<TypeExprPtr> types_inside(const TypeExpr& expr) {
  return std::visit(
      [](const auto& constructor) -> std::vector<TypeExprPtr> {
        if constexpr (requires { std::vector<TypeExprPtr>(constructor.old); }) {
          return constructor.old;
        } else if constexpr (requires { TypeExprPtr(constructor.old); }) {
          return {constructor.old};
        } else {
          return {};
        }
      },
      expr.node);
}

std::string to_string(const TypeExpr& expr) {
  return with_arguments(expr, [](const auto&... all) { return call_text(all...); });
}

std::optional<std::vector<std::int64_t>> to_numbers(const TypeExpr& expr, std::size_t most) {
  std::vector<std::int64_t> out;
  const Numbers numbers{out, most};
  numbers.add(expr);
  if (numbers.are_too_many()) return std::nullopt;
  return out;
}

TypeExprPtr parse_type(std::string_view text) {
  return Parser(text).whole();
}

}  // namespace halocline::dtype
