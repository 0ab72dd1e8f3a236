// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/pack/plan_table.hpp"

#include <memory>

#include "dtype/pack/handle_table.hpp"

namespace halocline::dtype {

const Result<PackPlan>& cached_plan(MPI_Datatype handle) {
  using Entry = Result<PackPlan>;
  static auto* const table = new HandleTable<Entry>;
  if (const auto* found = table->find(handle)) return *found;
  return *table->insert(handle, std::make_unique<Entry>(make_plan(handle)));
}

}  // namespace halocline::dtype
