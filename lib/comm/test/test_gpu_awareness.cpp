// SPDX-License-Identifier: BSD-3-Clause
// Tests which of MPI's two queries is used, and that the environment overrules both.
#include <gtest/gtest.h>
#include <mpi.h>

#include <cstdlib>

#include "comm/device/gpu_awareness.hpp"
#include "dtype/device/emulated_device.hpp"
#include "support/error.hpp"

namespace {

// Holds the answers of the functions below, and counts their calls.
struct FakeMpi {
  int gpu_code = MPI_SUCCESS;
  int gpu_support = 0;
  int cuda_support = 0;
  int gpu_questions = 0;
  int cuda_questions = 0;
} fake;

}  // namespace

// These functions of the program are found before the functions of the MPI.
extern "C" int MPIX_GPU_query_support(int type, int* supported) {
  ++fake.gpu_questions;
  *supported = type == 0 ? fake.gpu_support : 0;
  return fake.gpu_code;
}
extern "C" int MPIX_Query_cuda_support() {
  ++fake.cuda_questions;
  return fake.cuda_support;
}

namespace halocline::comm {
namespace {

class GpuAwarenessTest : public testing::Test {
 protected:
  void SetUp() override { fake = {}; }
  void TearDown() override { unsetenv("HALOCLINE_GPU_AWARE_MPI"); }
  static int questions() { return fake.gpu_questions + fake.cuda_questions; }
};

TEST_F(GpuAwarenessTest, TheQuestionForAnyDeviceGoesFirst) {
  for (const int supported : {0, 1}) {
    fake = {.gpu_support = supported, .cuda_support = 1 - supported};
    const auto found = ask_mpi_for_gpu_awareness();
    EXPECT_EQ(found.aware, supported == 1);
    EXPECT_EQ(found.source, "MPIX_GPU_query_support: " + std::to_string(supported));
    EXPECT_EQ(fake.cuda_questions, 0);
  }
}

TEST_F(GpuAwarenessTest, TheOlderQuestionIsAskedWhereTheOtherFails) {
  fake = {.gpu_code = MPI_ERR_ARG, .cuda_support = 1};
  const auto found = ask_mpi_for_gpu_awareness();
  EXPECT_TRUE(found.aware);
  EXPECT_EQ(found.source, "MPIX_Query_cuda_support: 1");
}

TEST_F(GpuAwarenessTest, NothingIsAskedOfAnEmulatedDevice) {
  dtype::EmulatedDevice device;
  EXPECT_TRUE(probe_gpu_awareness(device).aware);
  EXPECT_EQ(questions(), 0);
}

TEST_F(GpuAwarenessTest, TheEnvironmentOverrules) {
  dtype::EmulatedDevice device;
  for (const bool aware : {false, true}) {
    setenv("HALOCLINE_GPU_AWARE_MPI", aware ? "yes" : "no", 1);
    const auto found = probe_gpu_awareness(device);
    EXPECT_EQ(found.aware, aware);
    EXPECT_NE(found.source.find("HALOCLINE_GPU_AWARE_MPI"), std::string::npos);
  }
  for (const char* word : {"ask", ""}) {
    setenv("HALOCLINE_GPU_AWARE_MPI", word, 1);
    EXPECT_TRUE(probe_gpu_awareness(device).aware);
  }
  setenv("HALOCLINE_GPU_AWARE_MPI", "perhaps", 1);
  EXPECT_THROW(probe_gpu_awareness(device), ConfigError);
  EXPECT_EQ(questions(), 0);
}

}  // namespace
}  // namespace halocline::comm
