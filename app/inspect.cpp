// SPDX-License-Identifier: BSD-3-Clause
#include <nlohmann/json.hpp>
#include <string>
#include <variant>

#include "commands.hpp"
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

// Where the instances of a call with a count go.
std::string instances(const dtype::PackPlan& plan) {
  const auto& nest = plan.nest();
  if (nest.run == 0) return "nothing to copy";
  const auto loops = plan.loops(2);
  if (loops.run != nest.run) return "a count lengthens the run";
  if (loops.levels.size() == nest.levels.size()) return "a count continues the outermost loop";
  return "a count is a loop of its own";
}

// Everything there is to say about a type; `plan` is the reason where there is none.
struct Findings {
  std::string expression;
  std::string decoded;  ///< as read back from the MPI datatype
  dtype::TypeBounds bounds;
  dtype::TypeBounds mpi;
  std::string tree;
  Result<dtype::PackPlan> plan;
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
    out.plan = *reason;
    return out;
  }
  const auto& read_back = *std::get<dtype::TypeExprPtr>(decoded);
  out.decoded = dtype::to_string(read_back);
  const auto tree = dtype::translate(read_back);
  out.tree = dtype::to_string(*tree.root);
  const auto nest = dtype::strided_nest(tree);
  if (const auto* reason = std::get_if<UnsupportedDatatype>(&nest))
    out.plan = *reason;
  else
    out.plan = dtype::PackPlan(std::get<dtype::LoopNest>(nest));
  return out;
}

std::string as_json(const Findings& findings) {
  const auto* plan = std::get_if<dtype::PackPlan>(&findings.plan);
  const auto or_null = [&](auto value) { return plan != nullptr ? Json(value(*plan)) : Json(); };
  // Dimension 0 of a StridedBlock [PEA21] is the run, the loops follow from the inside out.
  const auto dimensions = [&](std::int64_t run, std::int64_t dtype::LoopLevel::*member) {
    return or_null([&](const dtype::PackPlan& p) {
      auto list = Json::array({run < 0 ? p.nest().run : run});
      for (const auto& level : p.nest().levels) list.push_back(level.*member);
      return list;
    });
  };
  Json out;
  out["expression"] = findings.expression;
  out["decoded"] = findings.decoded;
  out["supported"] = plan != nullptr;
  if (plan == nullptr) out["reason"] = std::get<UnsupportedDatatype>(findings.plan).what();
  out.update(to_json(findings.bounds));
  out["contiguous"] = or_null([](const dtype::PackPlan& p) { return p.nest().contiguous(); });
  out["start"] = or_null([](const dtype::PackPlan& p) { return p.nest().start; });
  out["counts"] = dimensions(-1, &dtype::LoopLevel::count);
  out["strides"] = dimensions(1, &dtype::LoopLevel::stride);
  out["packed_strides"] = dimensions(1, &dtype::LoopLevel::packed_stride);
  out["blocks"] = or_null([](const dtype::PackPlan& p) { return p.nest().runs(); });
  out["word_bytes"] = or_null([](const dtype::PackPlan& p) { return p.word_bytes(); });
  out["tree"] = findings.tree.empty() ? Json() : Json(findings.tree);
  out["mpi"] = to_json(findings.mpi);
  return out.dump() + "\n";
}

std::string as_text(const Findings& findings) {
  std::string out = "expression  " + findings.expression + "\n";
  if (findings.decoded != findings.expression && !findings.decoded.empty())
    out += "read back   " + findings.decoded + "\n";
  if (!findings.tree.empty()) out += "tree        " + findings.tree + "\n";
  if (const auto* plan = std::get_if<dtype::PackPlan>(&findings.plan)) {
    out += "canonical   " + dtype::to_string(plan->nest()) + "\n";
    out += "plan        " + std::to_string(plan->nest().runs()) + " x " +
           std::to_string(plan->nest().run) + " bytes, words of " +
           std::to_string(plan->word_bytes()) + "; " + instances(*plan) + "\n";
  } else {
    out += "no plan     " + std::string(std::get<UnsupportedDatatype>(findings.plan).what()) + "\n";
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
