// SPDX-License-Identifier: BSD-3-Clause
// What is known of a type because an equal one was measured, and what is made of the times.
#include <gtest/gtest.h>
#include <mpi.h>

#include <cstddef>
#include <string>
#include <vector>

#include "comm/interpose/choice.hpp"
#include "comm/interpose/findings.hpp"
#include "comm/interpose/test/layout.hpp"
#include "comm/interpose/types.hpp"

namespace halocline::interpose {
namespace {

PackTimes times_up_to(std::int64_t bytes, double ours = 1e-9, double mpi = 2e-9) {
  return {{0, ours}, {0, mpi}, bytes};
}

TEST(Findings, AreOfEqualExpressionsAlone) {
  const auto type = dtype::parse_type("vector(11,1,3,int)");
  EXPECT_FALSE(kept(*type));
  keep(*type, {.packing = times_up_to(100)});
  EXPECT_TRUE(is_anything_kept());
  const auto found = kept(*dtype::parse_type("vector(11,1,3,int)"));
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->plan);
  EXPECT_EQ(found->packing.up_to, 100);
  // The same type map by other calls, whose way through MPI is another.
  for (const auto* other : {"hvector(11,1,12,int)", "vector(11,1,3,float)", "vector(11,1,4,int)",
                            "dup(vector(11,1,3,int))"})
    EXPECT_FALSE(kept(*dtype::parse_type(other))) << other;
}

TEST(Findings, OfMoreBytesStay) {
  const auto type = dtype::parse_type("vector(12,1,3,int)");
  keep(*type, {.packing = times_up_to(100), .unpacking = times_up_to(70)});
  keep(*type, {.packing = times_up_to(300)});
  EXPECT_EQ(kept(*type)->packing.up_to, 300);
  EXPECT_EQ(kept(*type)->unpacking.up_to, 70);
  keep(*type, {.packing = times_up_to(200)});
  EXPECT_EQ(kept(*type)->packing.up_to, 300);
}

TEST(Findings, TakeNoMoreThanSoMuchMemory) {
  test::expect_no_growth(20000, [](int times) {
    for (int i = 0; i < times; ++i)
      keep(*dtype::parse_type("indexed({1,1,1},{0,2," + std::to_string(i) + "},int)"), {});
  });
}

// Uses of a type until it has a plan.
int uses_until_known(MPI_Datatype type, int count) {
  const std::vector<double> memory(20000, 1.5);
  std::vector<double> packed(20000);
  int uses = 0;
  for (; known_type(type)->plan() == nullptr && uses < 100; ++uses) {
    int position = 0;
    MPI_Pack(memory.data(), count, type, packed.data(),
             static_cast<int>(packed.size() * sizeof(double)), &position, MPI_COMM_WORLD);
  }
  return uses;
}
MPI_Datatype committed_vector(int count, int stride) {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_vector(count, 1, stride, MPI_DOUBLE, &type);
  MPI_Type_commit(&type);
  return type;
}
int uses_until_vector_is_known(int count, int stride, int instances = 1) {
  auto type = committed_vector(count, stride);
  const auto uses = uses_until_known(type, instances);
  MPI_Type_free(&type);
  return uses;
}

TEST(Findings, MakeEqualTypesKnownSooner) {
  EXPECT_EQ(uses_until_vector_is_known(13, 3), KnownType::kMpiUses + 1);
  EXPECT_EQ(uses_until_vector_is_known(13, 3), 3);
  EXPECT_EQ(uses_until_vector_is_known(13, 4), KnownType::kMpiUses + 1);
  // More bytes than what was measured is good for.
  EXPECT_EQ(uses_until_vector_is_known(13, 3, 100), KnownType::kMpiUses + 1);
  EXPECT_EQ(uses_until_vector_is_known(13, 3, 100), 3);
  // 64 KiB and more.
  EXPECT_EQ(uses_until_vector_is_known(8192, 2), KnownType::kMpiUses + 1);
  EXPECT_EQ(uses_until_vector_is_known(8192, 2), 1);
}

TEST(MessageTime, GoesByWhoPacksWhereAtOnce) {
  // One nanosecond for each byte and one microsecond for each message.
  const dtype::MessageTimes messages({{1, dtype::Curve({1, 1000001}, {1e-6, 1001e-6}, "")}}, "");
  const auto pays = [&](double ours, double mpi, Traffic traffic) {
    return message_time(messages, times_up_to(1 << 20, ours, mpi), 1 << 20, traffic).pays();
  };
  constexpr double kPacked = 1e-9;
  // What is packed three times as slow as it is moved: one way, both ends of MPI are busy at once.
  EXPECT_FALSE(pays(1.1 * kPacked, 3 * kPacked, Traffic::one_way));
  EXPECT_TRUE(pays(1.1 * kPacked, 3 * kPacked, Traffic::both_ways));
  EXPECT_TRUE(pays(0.1 * kPacked, 3 * kPacked, Traffic::one_way));
  // What MPI packs as fast as we do is never packed.
  for (const auto traffic : {Traffic::one_way, Traffic::both_ways})
    for (const double seconds : {0.1 * kPacked, kPacked, 10 * kPacked})
      EXPECT_FALSE(pays(seconds, seconds, traffic)) << seconds;
}

}  // namespace
}  // namespace halocline::interpose
