// SPDX-License-Identifier: BSD-3-Clause
// Tests what is known of types, and the rule that decides by it.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <mpi.h>
#include <sys/mman.h>

#include <cstddef>
#include <string>
#include <vector>

#include "comm/interpose/comparison.hpp"
#include "comm/interpose/facts.hpp"
#include "comm/interpose/rule.hpp"
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

// Is a new type of an expression. It is committed and known to the interposer.
class Type {
 public:
  explicit Type(const std::string& expression)
      : type_(dtype::make_datatype(*dtype::parse_type(expression))), handle_(type_.get()) {
    MPI_Type_commit(&handle_);
  }
  MPI_Datatype handle() const { return handle_; }
  CommittedType& known() const { return *committed_type(handle_); }

 private:
  dtype::Datatype type_;
  MPI_Datatype handle_;
};

TEST(Facts, AreSharedByEqualTypesAlone) {
  const Type type("vector(11,1,3,int)"), equal("vector(11,1,3,int)");
  const auto facts = facts_of(type.handle());
  EXPECT_EQ(facts_of(equal.handle()), facts);
  // Other calls make the same type map, but MPI may handle these types in another way.
  for (const auto* other : {"hvector(11,1,12,int)", "vector(11,1,3,float)", "vector(11,1,4,int)"})
    EXPECT_NE(facts_of(Type(other).handle()), facts) << other;
}

TEST(Facts, TakeNoMoreThanSoMuchMemory) {
  test::expect_no_growth(20000, [](int times) {
    for (int i = 0; i < times; ++i)
      facts_of(Type("indexed({1,1,1},{0,2," + std::to_string(4 + i) + "},int)").handle());
  });
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
  for (; committed_type(type)->plan() == nullptr && uses < at_most; ++uses) pack(type, instances);
  MPI_Type_free(&type);
  return uses;
}

TEST(Facts, AreReadOnceThatPays) {
  const auto uses_of = [](std::int64_t bytes) {
    const auto each = bytes + CommittedType::kBytesPerUse;
    return static_cast<int>((CommittedType::kBytesBeforeReading + each - 1) / each);
  };
  EXPECT_EQ(uses_until_known(13, 3, 1), uses_of(13 * 8));
  EXPECT_EQ(uses_until_known(13, 3, 1), uses_of(13 * 8));
  EXPECT_EQ(uses_until_known(13, 3, 100), uses_of(13 * 8 * 100));
  EXPECT_EQ(uses_until_known(2048, 2, 1), 1);
}

TEST(Facts, OfPersistentRequestsAreReadAtOnce) {
  const Type type("vector(14,1,3,double)");
  std::vector<double> memory(100);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Send_init(memory.data(), 1, type.handle(), 0, 0, MPI_COMM_SELF, &request);
  EXPECT_NE(type.known().plan(), nullptr);
  MPI_Request_free(&request);
}

// MPI packs long blocks as fast as the engine.
TEST(Facts, LeaveLongBlocksToMpi) {
  std::vector<std::byte> memory(20000), packed(20000);
  for (const std::int64_t block : {8, 504, 512, 4088, 4096, 8192}) {
    const Type type("hvector(2," + std::to_string(block) + ",10000,byte)");
    auto& known = type.known();
    const auto uses = CommittedType::kBytesBeforeReading / CommittedType::kBytesPerUse;
    PackDecision packs, unpacks;
    for (int use = 0; use < uses; ++use) {
      packs = known.to_pack(type.handle(), memory.data(), 1);
      unpacks = known.to_unpack(type.handle(), memory.data(), 1, packed.data(), 20000);
    }
    EXPECT_EQ(packs.plan != nullptr, block < kLongBlock) << block;
    EXPECT_EQ(unpacks.plan != nullptr, block < kLongBlock) << block;
  }
}

TEST(Facts, OfOneRunHaveNoPlan) {
  const Type type("contiguous(4096,double)");
  std::vector<double> memory(4096);
  EXPECT_EQ(type.known().to_pack(type.handle(), memory.data(), 1).plan, nullptr);
  EXPECT_TRUE(type.known().is_one_run());
}

TEST(Facts, LeaveSingleBlocksToMpi) {
  const std::vector<std::byte> memory(1000);
  const Type type("resized(contiguous(216,byte),0,400)");
  for (const int count : {1, 2}) {
    PackDecision packs;
    for (int use = 0; use < 100; ++use)
      packs = type.known().to_pack(type.handle(), memory.data(), count);
    EXPECT_EQ(packs.plan != nullptr, count == 2);
  }
}

// The first question may be a pack, a collective that takes other types as well, or a device.
TEST(Facts, AreThatMpiPacksSeveralInstancesOtherwise) {
  const std::vector<double> memory(1000);
  const std::vector<double, test::Allocator<double>> on_device(1000);
  for (const bool otherwise : {false, true}) {
    mpi_packs_otherwise = otherwise;
    const std::string blocks = otherwise ? "2049" : "2048";
    const auto is_engines = [](const Type& type, const auto& data, int count) {
      return type.known().to_pack(type.handle(), data.data(), count).plan != nullptr;
    };
    const Type first("resized(vector(" + blocks + ",1,2,byte),0,8)");
    for (const int count : {20, 1, 30})
      EXPECT_EQ(is_engines(first, memory, count), count == 1 || !otherwise);
    const Type second("vector(" + blocks + ",1,3,byte)");
    const auto* const plan =
        second.known().plan_beside_others(second.handle(), memory.data(), 1, Role::sender);
    EXPECT_NE(plan, nullptr);
    EXPECT_EQ(second.known().plan_beside_others(second.handle(), memory.data(), 2, Role::sender) ==
                  nullptr,
              otherwise);
    EXPECT_FALSE(second.known().is_one_run());
    const Type third("vector(" + blocks + ",1,3,byte)");
    EXPECT_EQ(is_engines(third, on_device, 2), !otherwise);
    mpi_packs_otherwise = false;
  }
}

// MPIs write what overlaps in orders of their own. Open MPI 5 also asks how a message was packed.
TEST(Facts, LeaveToMpiWhatIsWrittenTwice) {
  std::vector<double> memory(1000);
  for (const auto* const text :
       {"resized(vector(40,1,4,double),0,8)", "resized(indexed({1,1,1},{0,4,12},double),0,8)"}) {
    const Type type(text);
    for (const auto role : {Role::sender, Role::receiver})
      for (const int count : {4, 5}) {
        const bool is_mpis = count == 5;
        const auto* const plan =
            type.known().plan_beside_others(type.handle(), memory.data(), count, role);
        EXPECT_EQ(plan == nullptr, is_mpis) << count << " of " << text;
      }
  }
}

// Returns times of messages of blocks of 8 bytes, 16 bytes apart.
dtype::PackTable seconds_of_blocks(double seconds) {
  return {{{1024, 1 << 20}, {8}, {16}}, {seconds, seconds}, "test"};
}

TEST(Rule, GoesByTheTimesOfTheModel) {
  const auto time = [](double packed, double typed, std::int64_t bytes, bool listed = false) {
    dtype::BlockTimes times;
    times.strided.both_ways = {seconds_of_blocks(packed), seconds_of_blocks(typed)};
    return message_time(times, {{8, 16}, 16, listed}, bytes, MessagePattern::both_ways);
  };
  EXPECT_TRUE(time(1, 2, 4096)->pays());
  EXPECT_FALSE(time(1, 1, 4096)->pays());
  EXPECT_TRUE(time(0.94, 1, 4096)->pays());
  EXPECT_FALSE(time(0.96, 1, 4096)->pays());
  EXPECT_FALSE(time(1, 2, 1023));  // shorter than the model's messages
  EXPECT_FALSE(time(1, 2, kLongestMessage + 1));
  EXPECT_FALSE(time(1, 2, 4096, true));  // not measured
}

TEST(Rule, KnowsListsOfBlocks) {
  const auto lists = [](const char* type) { return lists_blocks(*dtype::parse_type(type)); };
  for (const auto* type : {"indexed({1,2},{0,4},double)", "contiguous(3,hindexed({1},{8},int))",
                           "struct({1,1},{0,8},{char,double})"})
    EXPECT_TRUE(lists(type)) << type;
  for (const auto* type :
       {"double", "contiguous(3,int)", "vector(3,1,2,double)", "vector(3,1,2,resized(double,0,16))",
        "struct({1,1},{0,800},{vector(3,1,2,int),subarray(C,{4},{2},{1},int)})"})
    EXPECT_FALSE(lists(type)) << type;
  EXPECT_TRUE(lists("vector(3,1,2,indexed({1,1},{0,3},int))"));
}

TEST(Rule, KnowsTheOrderOfTransposes) {
  const auto column = dtype::parse_type("contiguous(100,resized(vector(100,1,100,double),0,8))");
  const auto blocks = blocks_of(*column, dtype::make_plan(*column));
  EXPECT_EQ(blocks.distance, 800);
  EXPECT_LT(blocks.shape.stride_bytes, 16);
}

// MPI is faster at a list of equal distances than at any list.
TEST(Rule, TakesRegularListsForVectors) {
  const auto are_listed = [](const char* text) {
    const auto type = dtype::parse_type(text);
    return blocks_of(*type, dtype::make_plan(*type)).listed;
  };
  EXPECT_FALSE(are_listed("indexed_block(1,{0,2,4,6,8,90,92,94},double)"));
  EXPECT_TRUE(are_listed("indexed_block(1,{0,2,5,7,11,13,18},double)"));
  EXPECT_TRUE(are_listed("contiguous(9,struct({1,1,1},{0,8,16},{char,double,int}))"));
}

TEST(Verify, TellsOfBytesThatDiffer) {
  const Type type("vector(10,1,2,int)");
  std::vector<int> memory(20), packed(10);
  for (int i = 0; i < 20; ++i) memory[static_cast<std::size_t>(i)] = i;
  for (int i = 0; i < 10; ++i) packed[static_cast<std::size_t>(i)] = 2 * i;
  const auto told = [&] {
    testing::internal::CaptureStderr();
    verify(type.handle(), memory.data(), 1, reinterpret_cast<const std::byte*>(packed.data()), 40);
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(told(), "");
  packed[5] ^= 0x100;
  EXPECT_NE(told().find("byte 21 of 40 packed bytes differs from MPI's: vector(10,1,2,int)"),
            std::string::npos);
}

// A face of a large field is compared, although two of its instances span more than a gigabyte. For
// a few bytes of such a field, the comparison would take longer than all their packs.
TEST(Facts, AreReadOfFieldsThatReachFarIfThatPays) {
  constexpr std::size_t kRoom = std::size_t{450} * 450 * 450 * 8;
  auto* const memory = ::mmap(nullptr, kRoom, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  for (const bool pays : {true, false}) {
    const auto type = dtype::make_datatype(
        *dtype::parse_type("subarray(C,{450,450,450}," +
                           std::string(pays ? "{450,450,1}" : "{450,2,1}") + ",{0,0,0},double)"));
    MPI_Datatype handle = type.get();
    MPI_Type_commit(&handle);
    int bytes = 0;
    MPI_Type_size(handle, &bytes);
    std::vector<std::byte> packed(static_cast<std::size_t>(bytes));
    for (int use = 0; use < (pays ? 3 : 300); ++use) {
      int position = 0;
      MPI_Pack(memory, 1, handle, packed.data(), bytes, &position, MPI_COMM_SELF);
    }
    ASSERT_NE(committed_type(handle), nullptr);
    EXPECT_EQ(committed_type(handle)->plan() != nullptr, pays);
  }
  ::munmap(memory, kRoom);
}

}  // namespace
}  // namespace halocline::interpose
