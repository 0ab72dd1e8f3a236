// SPDX-License-Identifier: BSD-3-Clause
// Runs all MPI tests as their main. Every rank runs the same tests. A test that fails on any rank
// fails on all ranks. Rank 0 prints everything, other ranks print their failures alone.
//
// Reductions happen at the end of a test and at the end of the program. Both are collective, so a
// rank that leaves a test early does not leave other ranks waiting.
#include "mpi_main.hpp"

#include <gtest/gtest.h>
#include <mpi.h>

#include <cstdio>
#include <string>

namespace halocline::test {

namespace {

std::span<char*> remaining_arguments;

bool true_on_any_rank(bool mine) {
  int any = mine ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  return any != 0;
}

// Reports failures of other ranks on rank 0. The other ranks have printed their failures already.
class AgreeOnFailure final : public testing::EmptyTestEventListener {
 public:
  explicit AgreeOnFailure(int rank) : rank_(rank) {}

  void OnTestEnd(const testing::TestInfo& info) override {
    const bool mine = info.result()->Failed();
    if (true_on_any_rank(mine) && !mine && rank_ == 0) ADD_FAILURE() << "failed on another rank";
  }

 private:
  int rank_;
};

class PrintFailures final : public testing::EmptyTestEventListener {
 public:
  explicit PrintFailures(int rank) : rank_(rank) {}

  // The name is kept, since GoogleTest holds the lock of current_test_info() while it reports a
  // result.
  void OnTestStart(const testing::TestInfo& info) override {
    test_ = std::string(info.test_suite_name()) + "." + info.name();
  }

  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (!result.failed()) return;
    std::fprintf(stderr, "[rank %d] %s: %s:%d\n%s\n", rank_, test_.c_str(),
                 result.file_name() == nullptr ? "" : result.file_name(), result.line_number(),
                 result.message());
  }

 private:
  int rank_;
  std::string test_ = "environment";
};

int run(int argc, char** argv) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);

  testing::GTEST_FLAG(brief) = true;  // failures first; --gtest_brief=0 lists what passes
  testing::InitGoogleTest(&argc, argv);
  remaining_arguments = std::span(argv, static_cast<std::size_t>(argc)).subspan(1);
  auto& listeners = testing::UnitTest::GetInstance()->listeners();
  if (rank != 0) {
    delete listeners.Release(listeners.default_result_printer());
    delete listeners.Release(listeners.default_xml_generator());
    listeners.Append(new PrintFailures(rank));
  }
  listeners.Append(new AgreeOnFailure(rank));

  const int result = RUN_ALL_TESTS();
  const auto& tests = *testing::UnitTest::GetInstance();
  // A filter or a platform that leaves nothing to run must not look like success.
  const bool ran_none = !testing::GTEST_FLAG(list_tests) &&
                        tests.successful_test_count() + tests.failed_test_count() == 0;
  const bool skipped = ran_none && tests.skipped_test_count() > 0;
  if (ran_none && rank == 0)
    std::fprintf(stderr, "no test ran%s\n", skipped ? ": all were skipped" : ": that is a failure");
  if (true_on_any_rank(result != 0 || (ran_none && !skipped))) return 1;
  constexpr int kAllSkipped = 77;  // CTest takes it as skipped
  return skipped ? kAllSkipped : 0;
}

}  // namespace

std::span<char*> arguments() {
  return remaining_arguments;
}

}  // namespace halocline::test

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  const int result = halocline::test::run(argc, argv);
  MPI_Finalize();
  return result;
}
