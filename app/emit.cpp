// SPDX-License-Identifier: BSD-3-Clause
#include "emit.hpp"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <limits>
#include <map>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "support/error.hpp"
#include "support/overload.hpp"
#include "table.hpp"

namespace halocline::app {

namespace {

// The namespace avoids collisions in builds that join source files.
namespace code {

using Words = std::vector<std::string>;

enum class Kind { integer, address, constant, type };

struct Argument {
  Kind kind;
  bool is_list = false;
  Words items;
};

struct Call {
  std::string name;  // what follows MPI_Type_ or MPI_Type_create_, such as "vector"
  std::vector<Argument> arguments;
};

Argument number(std::int64_t value) {
  constexpr std::int64_t kMost = std::numeric_limits<int>::max();
  if (value < -kMost || value > kMost)
    throw ConfigError("emit has no call for the number " + std::to_string(value) +
                      " (MPI's constructors take int): use a bytes constructor, such as hvector");
  return {Kind::integer, false, {std::to_string(value)}};
}

Argument address(std::int64_t value) {
  return {Kind::address, false, {std::to_string(value)}};
}

template <class Make>
Argument list(Kind kind, const std::vector<std::int64_t>& values, Make make) {
  constexpr std::size_t kMost = 1000;
  if (values.size() > kMost)
    throw ConfigError("emit has no room for a list of " + std::to_string(values.size()) +
                      " entries: fill an array of at most " + std::to_string(kMost) +
                      " in the expression, and enlarge it in your program");
  Argument out{kind, true, {}};
  for (const auto value : values) out.items.push_back(make(value).items.front());
  return out;
}
Argument numbers(const std::vector<std::int64_t>& values) {
  return list(Kind::integer, values, number);
}
Argument addresses(const std::vector<std::int64_t>& values) {
  return list(Kind::address, values, address);
}

Argument count_of(const std::vector<std::int64_t>& values) {
  return number(std::ssize(values));
}

Argument order(dtype::Order order) {
  return {Kind::constant, false, {order == dtype::Order::c ? "MPI_ORDER_C" : "MPI_ORDER_FORTRAN"}};
}

Argument distributions(const std::vector<dtype::Distribution>& values) {
  Argument out{Kind::integer, true, {}};
  for (const auto value : values)
    out.items.push_back(value == dtype::Distribution::block    ? "MPI_DISTRIBUTE_BLOCK"
                        : value == dtype::Distribution::cyclic ? "MPI_DISTRIBUTE_CYCLIC"
                                                               : "MPI_DISTRIBUTE_NONE");
  return out;
}

Argument dargs(const std::vector<std::int64_t>& values) {
  return list(Kind::integer, values, [](std::int64_t darg) {
    return darg == dtype::kDefaultDarg
               ? Argument{Kind::integer, false, {"MPI_DISTRIBUTE_DFLT_DARG"}}
               : number(darg);
  });
}

std::string upper(std::string_view text) {
  std::string out;
  for (const char c : text) out += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return out;
}

// Collects the calls that make an expression. Each type is made once.
class Calls {
 public:
  /// Returns the name of the type: that of a variable, or MPI's own.
  std::string name_of(const dtype::TypeExpr& expr) {
    const auto text = dtype::to_string(expr);
    if (const auto known = names_.find(text); known != names_.end()) return known->second;
    const auto* named = std::get_if<dtype::Named>(&expr.node);
    if (named != nullptr && named->type->index >= 0)
      return names_[text] = "MPI_" + upper(named->type->name);
    Call call = std::visit([this](const auto& t) { return call_of(t); }, expr.node);
    calls_.push_back(std::move(call));
    may_be_freed_.push_back(named == nullptr);
    return names_[text] = "t" + std::to_string(calls_.size());
  }

  const std::vector<Call>& calls() const { return calls_; }
  bool may_be_freed(std::size_t i) const { return may_be_freed_[i]; }

 private:
  Argument old(const dtype::TypeExprPtr& expr) { return {Kind::type, false, {name_of(*expr)}}; }

  // Makes the call of a parametrised Fortran type. Its name gives the call:
  // "f90_real(15,undefined)".
  static Call call_of(const dtype::Named& t) {
    const std::string_view text = t.type->name;
    const auto begin = text.find('(');
    Call out{"create_" + std::string(text.substr(0, begin)), {}};
    for (auto at = begin; text[at] != ')';) {
      const auto end = text.find_first_of(",)", at + 1);
      const auto word = text.substr(at + 1, end - at - 1);
      out.arguments.push_back(
          {Kind::integer, false, {word == "undefined" ? "MPI_UNDEFINED" : std::string(word)}});
      at = end;
    }
    return out;
  }
  Call call_of(const dtype::Contiguous& t) { return {"contiguous", {number(t.count), old(t.old)}}; }
  Call call_of(const dtype::Vector& t) {
    return {"vector", {number(t.count), number(t.blocklength), number(t.stride), old(t.old)}};
  }
  Call call_of(const dtype::Hvector& t) {
    return {"create_hvector",
            {number(t.count), number(t.blocklength), address(t.stride), old(t.old)}};
  }
  Call call_of(const dtype::Indexed& t) {
    return {
        "indexed",
        {count_of(t.displacements), numbers(t.blocklengths), numbers(t.displacements), old(t.old)}};
  }
  Call call_of(const dtype::Hindexed& t) {
    return {"create_hindexed",
            {count_of(t.displacements), numbers(t.blocklengths), addresses(t.displacements),
             old(t.old)}};
  }
  Call call_of(const dtype::IndexedBlock& t) {
    return {
        "create_indexed_block",
        {count_of(t.displacements), number(t.blocklength), numbers(t.displacements), old(t.old)}};
  }
  Call call_of(const dtype::HindexedBlock& t) {
    return {
        "create_hindexed_block",
        {count_of(t.displacements), number(t.blocklength), addresses(t.displacements), old(t.old)}};
  }
  Call call_of(const dtype::Struct& t) {
    Argument types{Kind::type, true, {}};
    for (const auto& expr : t.old) types.items.push_back(name_of(*expr));
    return {"create_struct",
            {count_of(t.displacements), numbers(t.blocklengths), addresses(t.displacements),
             std::move(types)}};
  }
  Call call_of(const dtype::Subarray& t) {
    return {"create_subarray",
            {count_of(t.sizes), numbers(t.sizes), numbers(t.subsizes), numbers(t.starts),
             order(t.order), old(t.old)}};
  }
  Call call_of(const dtype::Darray& t) {
    return {
        "create_darray",
        {number(t.size), number(t.rank), count_of(t.gsizes), numbers(t.gsizes),
         distributions(t.distribs), dargs(t.dargs), numbers(t.psizes), order(t.order), old(t.old)}};
  }
  Call call_of(const dtype::Resized& t) {
    return {"create_resized", {old(t.old), address(t.lb), address(t.extent)}};
  }
  Call call_of(const dtype::Dup& t) { return {"dup", {old(t.old)}}; }
  // Refuses constructors that MPI lacks. The precondition of emitted() excludes them.
  template <class T>
  Call call_of(const T&) {
    throw ConfigError("emit has no call for a type that MPI lacks: use its constructors");
  }

  std::vector<Call> calls_;
  std::vector<bool> may_be_freed_;
  std::map<std::string, std::string> names_;
};

constexpr std::size_t kColumns = 80;

std::string joined(const Words& words) {
  std::string out;
  for (const auto& word : words) out += (out.empty() ? "" : ", ") + word;
  return out;
}

// Breaks a statement behind commas; all lines but the first are indented.
std::string statement(const std::string& text, const std::string& indent, std::string_view mark) {
  std::string out;
  auto lines = wrapped(text, kColumns - indent.size() - 4 - mark.size());
  lines.pop_back();
  std::string first = indent;
  for (std::size_t at = 0; at != std::string::npos;) {
    const auto end = lines.find('\n', at);
    out += first + lines.substr(at, end == std::string::npos ? end : end - at);
    out += (end == std::string::npos ? "" : std::string(mark)) + "\n";
    first = indent + "    ";
    at = end == std::string::npos ? end : end + 1;
  }
  return out;
}

std::string variables(std::size_t calls) {
  Words out;
  for (std::size_t i = 0; i < calls; ++i) out.push_back("t" + std::to_string(i + 1));
  return joined(out);
}

// Frees the inner types at the end of the program: MPI keeps them as long as it needs them.
template <class Free>
std::string freed(const Calls& calls, const std::string& last, const Free& free) {
  std::string out;
  for (std::size_t i = 0; i < calls.calls().size(); ++i)
    if (const auto name = "t" + std::to_string(i + 1); name != last && calls.may_be_freed(i))
      out += free(name);
  return out;
}

std::string in_c(const Calls& calls, const std::string& last, const std::string& title) {
  std::string out = "#include <mpi.h>\n\n/* " + title +
                    "\n   The caller frees it with MPI_Type_free. */\n" +
                    "MPI_Datatype make_type(void) {\n" +
                    statement("MPI_Datatype " + variables(calls.calls().size()) + ";", "  ", "");
  std::string body;
  int arrays = 0;
  for (std::size_t i = 0; i < calls.calls().size(); ++i) {
    const auto& [name, arguments] = calls.calls()[i];
    Words words;
    for (const auto& [kind, is_list, items] : arguments) {
      if (!is_list || items.empty()) {
        words.push_back(is_list ? "NULL" : items.front());
        continue;
      }
      words.push_back("a" + std::to_string(++arrays));
      const std::string element = kind == Kind::address ? "MPI_Aint"
                                  : kind == Kind::type  ? "MPI_Datatype"
                                                        : "int";
      body += statement("const " + element + " " + words.back() + "[] = {" + joined(items) + "};",
                        "  ", "");
    }
    words.push_back("&t" + std::to_string(i + 1));
    body += statement("MPI_Type_" + name + "(" + joined(words) + ");", "  ", "");
  }
  return out + body + "  MPI_Type_commit(&" + last + ");\n" +
         freed(calls, last,
               [](const std::string& name) { return "  MPI_Type_free(&" + name + ");\n"; }) +
         "  return " + last + ";\n}\n";
}

std::string in_fortran(const Calls& calls, const std::string& last, const std::string& title) {
  std::string out = "! " + title + "\n! The caller frees it with MPI_Type_free.\n" +
                    "subroutine make_type(type)\n  use mpi\n  implicit none\n" +
                    "  integer, intent(out) :: type\n" +
                    statement("integer :: ierror, " + variables(calls.calls().size()), "  ", " &");
  for (std::size_t i = 0; i < calls.calls().size(); ++i) {
    const auto& [name, arguments] = calls.calls()[i];
    Words words;
    for (const auto& [kind, is_list, items] : arguments) {
      Words written = items;
      if (kind == Kind::address)
        for (auto& item : written) item += "_MPI_ADDRESS_KIND";
      const std::string element =
          kind == Kind::address ? "[integer(MPI_ADDRESS_KIND) :: " : "[integer :: ";
      words.push_back(is_list ? element + joined(written) + "]" : written.front());
    }
    words.push_back("t" + std::to_string(i + 1));
    words.push_back("ierror");
    const auto call = statement("call MPI_Type_" + name + "(" + joined(words) + ")", "  ", " &");
    // Fortran 2008 allows 255 continuation lines.
    if (std::count(call.begin(), call.end(), '\n') > 256)
      throw ConfigError(
          "emit has no room for a list in one statement of Fortran: use C, or fill a shorter list "
          "and enlarge it in your program");
    out += call;
  }
  return out + "  call MPI_Type_commit(" + last + ", ierror)\n" +
         freed(calls, last,
               [](const std::string& name) {
                 return "  call MPI_Type_free(" + name + ", ierror)\n";
               }) +
         "  type = " + last + "\nend subroutine make_type\n";
}

}  // namespace code
}  // namespace

std::string emitted(const dtype::TypeExpr& expr, const std::string& title, Language language) {
  code::Calls calls;
  auto last = calls.name_of(expr);
  // Predefined types must not be freed, so the caller gets a copy.
  if (std::holds_alternative<dtype::Named>(expr.node))
    last = calls.name_of(*dtype::type(dtype::Dup{std::make_shared<const dtype::TypeExpr>(expr)}));
  return language == Language::c ? code::in_c(calls, last, title)
                                 : code::in_fortran(calls, last, title);
}

}  // namespace halocline::app
