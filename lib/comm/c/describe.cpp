// SPDX-License-Identifier: BSD-3-Clause
// Describes datatypes to programs in other languages: a part of what `halocline inspect --json`
// prints.
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <variant>

#include "comm/c/errors.hpp"
#include "comm/c/halocline.h"
#include "dtype/canonical/dataloop.hpp"
#include "dtype/datatype.hpp"
#include "dtype/mpi_bounds.hpp"
#include "dtype/pack/pack_plan.hpp"
#include "dtype/type_expr.hpp"
#include "dtype/type_tree.hpp"

namespace halocline::c {

namespace {

using Json = nlohmann::ordered_json;

// Adds the loops of a type and its plan.
void add_plan(Json& out, const dtype::TypeTree& tree) {
  const auto form = dtype::canonicalize(tree);
  const auto nest = form.nest();
  // Lists the run and then each loop from the inside out. Null if the type is not one nest of
  // loops.
  const auto dimensions = [&](std::int64_t first, std::int64_t dtype::LoopLevel::*member) {
    if (!nest) return Json();
    auto list = Json::array({first});
    for (const auto& level : nest->levels) list.push_back(level.*member);
    return list;
  };
  const dtype::PackPlan plan(form);
  out["contiguous"] = nest && nest->contiguous();
  out["start"] = form.start;
  out["counts"] = dimensions(nest ? nest->run : 0, &dtype::LoopLevel::count);
  out["strides"] = dimensions(1, &dtype::LoopLevel::stride);
  out["packed_strides"] = dimensions(1, &dtype::LoopLevel::packed_stride);
  out["blocks"] = form.runs();
  out["cost"] = dtype::cost(form);
  out["canonical"] = dtype::to_string(form.root);
  out["plan"] = dtype::to_string(plan);
  out["word_bytes"] = plan.word_bytes();
  out["metadata_bytes"] = plan.metadata_bytes();
}

std::string described(MPI_Datatype datatype) {
  const auto decoded = dtype::decode(datatype);
  const auto* const expr = std::get_if<dtype::TypeExprPtr>(&decoded);
  const auto bounds = dtype::mpi_bounds(datatype);
  Json out;
  out["decoded"] = expr != nullptr ? dtype::to_string(**expr) : "";
  out["supported"] = expr != nullptr;
  if (expr == nullptr) out["reason"] = std::get<UnsupportedDatatype>(decoded).what();
  out["size"] = bounds.size;
  out["lb"] = bounds.lb;
  out["extent"] = bounds.extent;
  out["true_lb"] = bounds.true_lb;
  out["true_extent"] = bounds.true_extent;
  if (expr != nullptr) add_plan(out, dtype::translate(**expr));
  return out.dump();
}

}  // namespace
}  // namespace halocline::c

using namespace halocline;
using namespace halocline::c;

int halocline_describe(MPI_Datatype datatype, char* text, std::int64_t bytes,
                       std::int64_t* needed) {
  return guarded([&] {
    require_mpi();
    require(datatype != MPI_DATATYPE_NULL,
            "the datatype is MPI_DATATYPE_NULL: give one that is made");
    require(needed != nullptr, "`needed` is NULL: give the address of a number");
    const auto description = described(datatype);
    *needed = static_cast<std::int64_t>(description.size()) + 1;
    if (text == nullptr) return;
    if (bytes < *needed)
      throw ConfigError("the description takes " + std::to_string(*needed) +
                        " bytes: give a buffer of as many");
    std::memcpy(text, description.c_str(), description.size() + 1);
  });
}
