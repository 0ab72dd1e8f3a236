// SPDX-License-Identifier: BSD-3-Clause
// Tests the table of plans by MPI datatype.
#include "dtype/pack/plan_table.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "dtype/datatype.hpp"
#include "layout.hpp"

namespace halocline::dtype::test {

namespace {

const PackPlan& found(MPI_Datatype handle) {
  return std::get<PackPlan>(cached_plan(handle));
}

}  // namespace

TEST(PlanTable, FindsWhatItMade) {
  const auto type = make_datatype(*parse_type("vector(4,2,3,float)"));
  const auto* first = &cached_plan(type.get());
  EXPECT_EQ(found(type.get()), plan_of("vector(4,2,3,float)"));
  EXPECT_EQ(&cached_plan(type.get()), first);
  EXPECT_EQ(&cached_plan(MPI_INT), &cached_plan(MPI_INT));
}

// Open MPI gives the address of a freed type to the next type.
TEST(PlanTable, ForgetsFreedTypes) {
  for (int n = 1; n <= 1000; ++n) {
    const auto text = "vector(" + std::to_string(n + 1) + ",1,2,int)";
    const auto type = make_datatype(*parse_type(text));
    ASSERT_EQ(found(type.get()), plan_of(text)) << text;
  }
}

TEST(PlanTable, GrowsWithItsTypes) {
  std::vector<Datatype> types;
  std::vector<const Result<PackPlan>*> plans;
  for (int n = 1; n <= 2000; ++n) {
    types.push_back(make_datatype(*parse_type("vector(" + std::to_string(n + 1) + ",1,2,int)")));
    plans.push_back(&cached_plan(types.back().get()));
  }
  for (std::size_t i = 0; i < types.size(); ++i) {
    ASSERT_EQ(&cached_plan(types[i].get()), plans[i]);
    ASSERT_EQ(found(types[i].get()).packed_bytes(1), 4 * static_cast<std::int64_t>(i + 2));
  }
}

TEST(PlanTable, AnotherHandleIsAnotherPlan) {
  const auto type = make_datatype(*parse_type("vector(4,2,3,float)"));
  const auto* first = &cached_plan(type.get());
  MPI_Datatype copy = MPI_DATATYPE_NULL;
  MPI_Type_dup(type.get(), &copy);
  EXPECT_NE(&cached_plan(copy), first);
  MPI_Type_free(&copy);
  EXPECT_EQ(&cached_plan(type.get()), first);
}

// Threads only look up. Making a plan calls MPI, which the tests run on one thread.
TEST(PlanTable, IsReadByManyThreads) {
  std::vector<Datatype> types;
  for (int n = 1; n <= 100; ++n) {
    types.push_back(make_datatype(*parse_type("vector(" + std::to_string(n + 1) + ",1,2,int)")));
    cached_plan(types.back().get());
  }
  std::atomic<int> wrong = 0;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] {
        for (int repeat = 0; repeat < 100; ++repeat)
          for (std::size_t i = 0; i < types.size(); ++i)
            if (found(types[i].get()).packed_bytes(1) != 4 * static_cast<std::int64_t>(i + 2))
              ++wrong;
      });
  }
  EXPECT_EQ(wrong, 0);
}

}  // namespace halocline::dtype::test
