// SPDX-License-Identifier: BSD-3-Clause
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <variant>

#include "commands.hpp"
#include "dtype/dataloop.hpp"
#include "dtype/datatype.hpp"
#include "dtype/pack/pack_plan.hpp"
#include "dtype/type_expr.hpp"
#include "dtype/type_tree.hpp"
#include "dtype/vendor_check.hpp"
#include "environment.hpp"

namespace halocline::app {

namespace {

using Json = nlohmann::ordered_json;

Json to_json(const dtype::TypeBounds& bounds) {
  Json out;
  out["size"] = bounds.size;
  out["lb"] = bounds.lb;
  out["extent"] = bounds.extent;
  out["true_lb"] = bounds.true_lb;
  out["true_extent"] = bounds.true_extent;
  return out;
}

std::string to_text(const dtype::TypeBounds& bounds) {
  std::string out;
  const auto members = to_json(bounds);
  for (const auto& [name, value] : members.items())
    out += (out.empty() ? "" : ", ") + name + " " + value.dump();
  return out;
}

// Each line of a text under the column of the values.
std::string indented(const std::string& text) {
  std::string out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) out += "            " + line + "\n";
  return out;
}

// Everything there is to say about a type; `form` is the reason where there is none.
struct Findings {
  std::string expression;
  std::string decoded;  ///< as read back from the MPI datatype
  dtype::TypeBounds bounds;
  dtype::TypeBounds mpi;
  std::string tree;
  Result<dtype::CanonicalForm> form;
};

Findings examine(const std::string& text) {
  const auto expr = dtype::parse_type(text);
  const auto bounds = dtype::type_bounds(*expr);  // refuses what would overflow inside of MPI
  const auto type = [&] {
    try {
      return dtype::make_datatype(*expr);
    } catch (const MpiError& error) {  // rank 0 alone is here, and the expression is the cause
      throw ConfigError("the installed MPI does not make this type (" + std::string(error.what()) +
                        "): change the expression");
    }
  }();
  Findings out{dtype::to_string(*expr),       "", bounds,
               dtype::mpi_bounds(type.get()), "", UnsupportedDatatype("")};
  const auto decoded = dtype::decode(type.get());
  if (const auto* reason = std::get_if<UnsupportedDatatype>(&decoded)) {
    out.form = *reason;
    return out;
  }
  const auto& read_back = *std::get<dtype::TypeExprPtr>(decoded);
  out.decoded = dtype::to_string(read_back);
  const auto tree = dtype::translate(read_back);
  out.tree = dtype::to_string(*tree.root);
  out.form = dtype::canonicalize(tree);
  return out;
}

std::string as_json(const Findings& findings) {
  const auto* form = std::get_if<dtype::CanonicalForm>(&findings.form);
  const auto nest = form != nullptr ? form->nest() : std::nullopt;
  // Dimension 0 of a StridedBlock [PEA21] is the run, the loops follow from the inside out; null
  // for what is not strided as a whole.
  const auto dimensions = [&](std::int64_t first, std::int64_t dtype::LoopLevel::*member) {
    if (!nest) return Json();
    auto list = Json::array({first});
    for (const auto& level : nest->levels) list.push_back(level.*member);
    return list;
  };
  const auto if_supported = [&](auto value) { return form != nullptr ? Json(value()) : Json(); };
  Json out;
  out["expression"] = findings.expression;
  out["decoded"] = findings.decoded;
  out["supported"] = form != nullptr;
  if (form == nullptr) out["reason"] = std::get<UnsupportedDatatype>(findings.form).what();
  out.update(to_json(findings.bounds));
  out["contiguous"] = if_supported([&] { return nest && nest->contiguous(); });
  out["start"] = if_supported([&] { return form->start; });
  out["counts"] = dimensions(nest ? nest->run : 0, &dtype::LoopLevel::count);
  out["strides"] = dimensions(1, &dtype::LoopLevel::stride);
  out["packed_strides"] = dimensions(1, &dtype::LoopLevel::packed_stride);
  out["blocks"] = if_supported([&] { return form->runs(); });
  out["cost"] = if_supported([&] { return dtype::cost(*form); });
  out["tree"] = if_supported([&] { return findings.tree; });
  out["canonical"] = if_supported([&] { return dtype::to_string(form->root); });
  const auto plan = form != nullptr ? std::optional(dtype::PackPlan(*form)) : std::nullopt;
  out["plan"] = if_supported([&] { return dtype::to_string(*plan); });
  out["word_bytes"] = if_supported([&] { return plan->word_bytes(); });
  out["metadata_bytes"] = if_supported([&] { return plan->metadata_bytes(); });
  out["mpi"] = to_json(findings.mpi);
  return out.dump() + "\n";
}

std::string as_text(const Findings& findings) {
  std::string out = "expression  " + findings.expression + "\n";
  if (findings.decoded != findings.expression && !findings.decoded.empty())
    out += "read back   " + findings.decoded + "\n";
  if (const auto* form = std::get_if<dtype::CanonicalForm>(&findings.form)) {
    const auto nest = form->nest();
    out += "tree        " + findings.tree + "\n";
    out += "canonical   " +
           (nest ? dtype::to_string(*nest)
                 : "start " + std::to_string(form->start) + ", " + dtype::to_string(form->root)) +
           "\n";
    out += "blocks      " + std::to_string(form->runs()) + " of " +
           std::to_string(form->bounds.size) + " bytes together, cost " +
           std::to_string(dtype::cost(*form)) + "\n";
    const dtype::PackPlan plan(*form);
    out += "plan        words of " + std::to_string(plan.word_bytes()) + " bytes, " +
           std::to_string(plan.metadata_bytes()) + " bytes of tables; instance by instance:\n" +
           indented(dtype::to_string(plan));
  } else {
    out += "no plan     " + std::string(std::get<UnsupportedDatatype>(findings.form).what()) + "\n";
  }
  out += "bounds      " + to_text(findings.bounds) + "\n";
  if (findings.mpi != findings.bounds) out += "MPI reports " + to_text(findings.mpi) + "\n";
  return out;
}

}  // namespace

int inspect(const Config& config, MPI_Comm comm) {
  if (config.expression.empty())
    throw ConfigError(
        "expression is missing (inspect): give a datatype in quotes, such as halocline inspect "
        "'vector(5,4,4,double)'");
  on_root(comm, [&] {
    const auto findings = examine(config.expression);
    print(config.json ? as_json(findings) : as_text(findings));
  });
  return 0;
}

}  // namespace halocline::app
