// SPDX-License-Identifier: BSD-3-Clause
// Tests what is known of a type because an equal type was measured, and what follows from the
// times.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <mpi.h>
#include <sys/mman.h>

#include <cstddef>
#include <string>
#include <vector>

#include "comm/interpose/choice.hpp"
#include "comm/interpose/findings.hpp"
#include "comm/interpose/test/layout.hpp"
#include "comm/interpose/types.hpp"

// Makes MPI pack the last byte of several instances wrongly, while it is true.
static bool mpi_packs_otherwise = false;

int PMPI_Pack(const void* inbuf, int incount, MPI_Datatype datatype, void* outbuf, int outsize,
              int* position, MPI_Comm comm) {
  static const auto mpis = reinterpret_cast<decltype(&PMPI_Pack)>(dlsym(RTLD_NEXT, "PMPI_Pack"));
  const int code = mpis(inbuf, incount, datatype, outbuf, outsize, position, comm);
  if (mpi_packs_otherwise && incount > 1)
    static_cast<std::byte*>(outbuf)[*position - 1] ^= std::byte{1};
  return code;
}

namespace halocline::interpose {
namespace {

PackTimes times_up_to(std::int64_t bytes, double ours = 1e-9, double mpi = 2e-9) {
  return {{0, ours}, {0, mpi}, bytes};
}

TEST(Findings, AreOfEqualExpressionsAlone) {
  const auto type = dtype::parse_type("vector(11,1,3,int)");
  EXPECT_FALSE(meet(*type).findings);
  keep(*type, {.packing = times_up_to(100)});
  const auto [found, times] = meet(*dtype::parse_type("vector(11,1,3,int)"));
  ASSERT_TRUE(found);
  EXPECT_EQ(times, 2);
  EXPECT_FALSE(found->plan);
  EXPECT_EQ(found->packing.up_to, 100);
  // Other calls make the same type map, but MPI may handle these types in another way.
  for (const auto* other : {"hvector(11,1,12,int)", "vector(11,1,3,float)", "vector(11,1,4,int)",
                            "dup(vector(11,1,3,int))"})
    EXPECT_FALSE(meet(*dtype::parse_type(other)).findings) << other;
}

TEST(Findings, OfMoreBytesStay) {
  const auto type = dtype::parse_type("vector(12,1,3,int)");
  const auto plan = dtype::make_plan(*type);
  keep(*type, {.plan = plan, .packing = times_up_to(100), .unpacking = times_up_to(70)});
  keep(*type, {.plan = plan, .packing = times_up_to(300)});
  EXPECT_EQ(meet(*type).findings->packing.up_to, 300);
  EXPECT_EQ(meet(*type).findings->unpacking.up_to, 70);
  keep(*type, {.plan = plan, .packing = times_up_to(200)});
  EXPECT_EQ(meet(*type).findings->packing.up_to, 300);
  // Once MPI packs the type otherwise, that stays so.
  keep(*type, {});
  keep(*type, {.plan = plan, .packing = times_up_to(400)});
  EXPECT_FALSE(meet(*type).findings->compared);
  EXPECT_FALSE(meet(*type).findings->plan);
}

dtype::TypeExprPtr one_of_many(int i) {
  return dtype::parse_type("indexed({1,1,1},{0,2," + std::to_string(i) + "},int)");
}

TEST(Findings, TakeNoMoreThanSoMuchMemory) {
  test::expect_no_growth(20000, [](int times) {
    for (int i = 0; i < times; ++i) {
      meet(*one_of_many(2 * i));
      keep(*one_of_many(2 * i + 1), {});
    }
  });
}

TEST(Findings, StayWhereOthersAreOnlyMet) {
  for (int round = 0; round < 2; ++round) {  // in the first round, the table may be full already
    keep(*one_of_many(-1), {});
    for (int i = 0; i < 5000; ++i) meet(*one_of_many(-2 - i));
  }
  EXPECT_TRUE(meet(*one_of_many(-1)).findings);
}

void pack(MPI_Datatype type, int instances = 1) {
  static const std::vector<double> memory(40000, 1.5);
  static std::vector<double> packed(40000);
  int position = 0;
  MPI_Pack(memory.data(), instances, type, packed.data(),
           static_cast<int>(packed.size() * sizeof(double)), &position, MPI_COMM_WORLD);
}

MPI_Datatype new_vector(int count, int stride) {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_vector(count, 1, stride, MPI_DOUBLE, &type);
  MPI_Type_commit(&type);
  return type;
}

// Returns the uses of a new type until it has a plan, up to `at_most`.
int uses_until_known(int count, int stride, int instances, int at_most = 200) {
  auto type = new_vector(count, stride);
  int uses = 0;
  for (; known_type(type)->plan() == nullptr && uses < at_most; ++uses) pack(type, instances);
  MPI_Type_free(&type);
  return uses;
}

TEST(Findings, MakeEqualTypesKnownSooner) {
  EXPECT_EQ(uses_until_known(13, 3, 1), KnownType::kMostMpiUses + 1);
  EXPECT_EQ(uses_until_known(13, 3, 1), 3);
  EXPECT_EQ(uses_until_known(13, 4, 1), KnownType::kMostMpiUses + 1);
  // More bytes than the times hold for: known with the fourth look-up, or when measuring is due.
  EXPECT_EQ(uses_until_known(13, 3, 100), 3);
  EXPECT_EQ(uses_until_known(13, 3, 100), 3);
  EXPECT_EQ(uses_until_known(13, 3, 900), KnownType::kMpiUses + 1);
  EXPECT_EQ(uses_until_known(13, 3, 900), 2);  // a look-up 20 uses ago was in vain
  EXPECT_EQ(uses_until_known(13, 3, 900), 1);
  // Uses of 64 KiB and more.
  EXPECT_EQ(uses_until_known(8192, 2, 1), KnownType::kMpiUses + 1);
  EXPECT_EQ(uses_until_known(8192, 2, 1), 1);
}

// Returns a new vector of `count` doubles, packed three times, after many uses of equal types.
MPI_Datatype used_vector(int count) {
  uses_until_known(count, 3, 1, KnownType::kMpiUses);
  const auto type = new_vector(count, 3);
  for (int use = 0; use < 3; ++use) pack(type);
  return type;
}

TEST(Findings, OfUnpackingAreGoneByAtOnce) {
  for (const bool ours_is_faster : {true, false}) {
    const int count = ours_is_faster ? 31 : 32;
    const auto expression = dtype::parse_type("vector(" + std::to_string(count) + ",1,3,double)");
    keep(*expression, {.plan = dtype::make_plan(*expression),
                       .compared = true,
                       .packing = times_up_to(1000),
                       .unpacking = times_up_to(1000, 1e-9, ours_is_faster ? 2e-9 : 1e-9)});
    auto type = used_vector(count);
    std::vector<double> memory(1000), packed(1000);
    const auto by = known_type(type)->to_unpack(
        type, memory.data(), 1, reinterpret_cast<const std::byte*>(packed.data()), 8000);
    EXPECT_EQ(by.plan != nullptr, ours_is_faster);
    EXPECT_NE(known_type(type)->to_pack(type, memory.data(), 1).plan, nullptr);
    MPI_Type_free(&type);
  }
}

TEST(Findings, ThatMpiPacksOtherwiseAreGoneBy) {
  keep(*dtype::parse_type("vector(33,1,3,double)"), {});
  auto type = used_vector(33);
  EXPECT_FALSE(known_type(type)->is_one_run());
  EXPECT_EQ(known_type(type)->plan(), nullptr);
  MPI_Type_free(&type);
}

// The first question may be a pack, a collective that takes other types as well, or a device.
TEST(Findings, AreThatMpiPacksSeveralInstancesOtherwise) {
  const std::vector<double> memory(1000);
  const std::vector<double, test::Allocator<double>> on_device(1000);
  for (const bool otherwise : {false, true}) {
    mpi_packs_otherwise = otherwise;
    const int count = otherwise ? 41 : 40;
    EXPECT_EQ(uses_until_known(count, 3, 1) == 200, otherwise);
    auto type = new_vector(count, 4);
    const auto* const plan =
        known_type(type)->compared_plan(type, memory.data(), 1, KnownType::Access::reads);
    EXPECT_EQ(plan == nullptr, otherwise);
    EXPECT_FALSE(known_type(type)->is_one_run());
    MPI_Type_free(&type);
    type = new_vector(count, 5);
    EXPECT_EQ(known_type(type)->to_pack(type, on_device.data(), 1).plan == nullptr, otherwise);
    MPI_Type_free(&type);
    mpi_packs_otherwise = false;
  }
}

// MPIs write what overlaps in orders of their own.
TEST(Findings, LeaveToMpiWhatIsWrittenTwice) {
  std::vector<double> memory(1000);
  for (const auto* const text :
       {"resized(vector(40,1,4,double),0,8)", "resized(indexed({1,1,1},{0,4,12},double),0,8)"}) {
    const auto type = dtype::make_datatype(*dtype::parse_type(text));
    MPI_Datatype handle = type.get();
    MPI_Type_commit(&handle);
    auto* const known = known_type(handle);
    for (const auto access : {KnownType::Access::reads, KnownType::Access::writes})
      for (const int count : {4, 5}) {
        const bool is_mpis = count == 5;
        EXPECT_EQ(known->compared_plan(handle, memory.data(), count, access) == nullptr, is_mpis)
            << count << " of " << text;
      }
  }
}

TEST(Findings, AreMadeOfTypesThatLiveShortlyAgainAndAgain) {
  constexpr int kLife = 5;
  int lives = 0;
  while (lives < 20 && uses_until_known(17, 3, 1, kLife) == kLife) ++lives;
  EXPECT_GE(lives * kLife, KnownType::kMpiUses);
  EXPECT_LT(lives, 15);
  EXPECT_EQ(uses_until_known(17, 3, 1), 3);
  // The same with more bytes than the times hold for.
  for (lives = 0; lives < 20 && uses_until_known(17, 3, 100, kLife) == kLife;) ++lives;
  EXPECT_GT(lives, 0);
  EXPECT_LT(lives, 20);
  // Other types of the same size and extent, each different.
  for (int i = 0; i < 10; ++i) {
    MPI_Datatype type = MPI_DATATYPE_NULL;
    const int places[] = {0, 1 + i, 50};
    MPI_Type_create_indexed_block(3, 1, places, MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    for (int use = 0; use < 10; ++use) pack(type);
    EXPECT_EQ(known_type(type)->plan(), nullptr) << i;
    MPI_Type_free(&type);
  }
}

TEST(MessageTime, GoesByWhoPacksWhereAtOnce) {
  // A message takes one microsecond, and one nanosecond more for each byte.
  const dtype::MessageTimes messages({{1, dtype::Curve({1, 1000001}, {1e-6, 1001e-6}, "")}}, "");
  const auto pays = [&](double ours, double mpi, Traffic traffic) {
    return message_time(messages, times_up_to(1 << 20, ours, mpi), 1 << 20, traffic).pays();
  };
  constexpr double kPacked = 1e-9;
  // Packing takes three times as long as moving. One way, both ends of MPI work at once.
  EXPECT_FALSE(pays(1.1 * kPacked, 3 * kPacked, Traffic::one_way));
  EXPECT_TRUE(pays(1.1 * kPacked, 3 * kPacked, Traffic::both_ways));
  EXPECT_TRUE(pays(0.1 * kPacked, 3 * kPacked, Traffic::one_way));
  // If MPI packs as fast as the engine, the engine never packs a message.
  for (const auto traffic : {Traffic::one_way, Traffic::both_ways})
    for (const double seconds : {0.1 * kPacked, kPacked, 10 * kPacked})
      EXPECT_FALSE(pays(seconds, seconds, traffic)) << seconds;
}

// Instances may reach further than what is compared and timed. They are not measured at each use.
TEST(Findings, AreMadeOnceOfInstancesThatReachFar) {
  constexpr std::int64_t kExtent = std::int64_t{8} << 20;
  constexpr int kCount = 200;
  constexpr auto kRoom = static_cast<std::size_t>(kExtent * kCount);
  auto* const memory = ::mmap(nullptr, kRoom, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  const auto type =
      dtype::make_datatype(*dtype::parse_type("resized(vector(2,1,2,double),0,8388608)"));
  MPI_Datatype handle = type.get();
  MPI_Type_commit(&handle);
  std::vector<std::byte> packed(16 * kCount);
  const auto learnt = times_learnt.load();
  for (int use = 0; use < 400; ++use) {
    int position = 0;
    MPI_Pack(memory, kCount, handle, packed.data(), 16 * kCount, &position, MPI_COMM_SELF);
    position = 0;
    MPI_Unpack(packed.data(), 16 * kCount, &position, memory, kCount, handle, MPI_COMM_SELF);
  }
  EXPECT_LE(times_learnt - learnt, 4u);
  ::munmap(memory, kRoom);
}

// A face of a large field is compared, although two of its instances span more than a gigabyte. For
// a few bytes of such a field, the comparison would take longer than all their packs.
TEST(Findings, AreMadeOfFieldsThatReachFarIfThatPays) {
  constexpr std::size_t kRoom = std::size_t{450} * 450 * 450 * 8;
  auto* const memory = ::mmap(nullptr, kRoom, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  for (const bool pays : {true, false}) {
    const auto type = dtype::make_datatype(
        *dtype::parse_type("subarray(C,{450,450,450}," +
                           std::string(pays ? "{450,450,1}" : "{2,100,1}") + ",{0,0,0},double)"));
    MPI_Datatype handle = type.get();
    MPI_Type_commit(&handle);
    int bytes = 0;
    MPI_Type_size(handle, &bytes);
    std::vector<std::byte> packed(static_cast<std::size_t>(bytes));
    for (int use = 0; use < (pays ? 30 : 400); ++use) {
      int position = 0;
      MPI_Pack(memory, 1, handle, packed.data(), bytes, &position, MPI_COMM_SELF);
    }
    ASSERT_NE(known_type(handle), nullptr);
    EXPECT_EQ(known_type(handle)->plan() != nullptr, pays);
  }
  ::munmap(memory, kRoom);
}

}  // namespace
}  // namespace halocline::interpose
