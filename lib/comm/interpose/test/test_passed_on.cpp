// SPDX-License-Identifier: BSD-3-Clause
// Tests which calls are passed on because an equal call was, until something is learnt of a type.
#include <gtest/gtest.h>
#include <mpi.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "comm/interpose/collectives.hpp"
#include "comm/interpose/test/layout.hpp"
#include "comm/interpose/types.hpp"

namespace halocline::interpose {
namespace {

struct Exchanged {
  std::uintptr_t type;
  int count;
};
std::uint64_t hash_of(std::uint64_t changes_of_senders, const std::vector<Exchanged>& all) {
  ExchangeHash hash(changes_of_senders);
  for (const auto& [key, count] : all) {
    MPI_Datatype type{};  // a pointer or an integer
    std::memcpy(&type, &key, sizeof type);
    hash.add(type, count);
  }
  return hash.value();
}

TEST(ExchangeHash, GoesByTypesAndCountsTogether) {
  constexpr std::uintptr_t a = 0x4c000010, b = a + 0x40, c = b + 0x40;
  const auto hash = hash_of(3, {{a, 1}, {b, 2}, {b, 2}, {c, 0}});
  EXPECT_EQ(hash % 2, 0);
  EXPECT_EQ(hash_of(3, {{c, 0}, {b, 2}, {a, 1}, {b, 2}}), hash);
  EXPECT_NE(hash_of(4, {{a, 1}, {b, 2}, {b, 2}, {c, 0}}), hash);
  EXPECT_NE(hash_of(3, {{a, 2}, {b, 1}, {b, 2}, {c, 0}}), hash);
  // These have equal sums of types, of counts, of their squares, and of products.
  EXPECT_NE(hash_of(3, {{a, 2}, {b, 0}, {c, 1}}), hash_of(3, {{a, 1}, {b, 2}, {c, 0}}));
  EXPECT_NE(hash_of(3, {{a, 2}, {a, 2}, {a, 2}, {a, 0}}),
            hash_of(3, {{a, 3}, {a, 1}, {a, 1}, {a, 1}}));
  // A change of a type or a count must not hide a change of what is learnt.
  for (int more = 1; more < 5; ++more) {
    EXPECT_NE(hash_of(3 + static_cast<std::uint64_t>(more), {{a, 1}}), hash_of(3, {{a, 1 + more}}));
    EXPECT_NE(hash_of(3 + static_cast<std::uint64_t>(more), {{a, 2}, {a + 1, 1}}),
              hash_of(3, {{a, 1}, {a + 1, 2}}));
  }
}

TEST(PassedOn, FindsWhatWasInserted) {
  PassedOn calls;
  // These have different slots, which go by the highest bits.
  constexpr std::uint64_t kMpis = 0x2468u, kOnHost = 0xE000'0000'0000'1230u;
  calls.insert(kMpis, false);
  calls.insert(kOnHost, true);
  EXPECT_EQ(calls.find(kMpis), PassedOn::Found::mpis);
  EXPECT_EQ(calls.find(kOnHost), PassedOn::Found::mpis_on_host);
  for (const auto other : {kMpis + 2, kOnHost + 2, kMpis ^ kOnHost})
    EXPECT_EQ(calls.find(other), PassedOn::Found::not_yet) << std::hex << other;
  calls.insert(kMpis + 2, false);  // in the same slot as the first one
  EXPECT_EQ(calls.find(kMpis), PassedOn::Found::not_yet);
}

TEST(PassedOn, IsOverOnceATypeIsNewOrRead) {
  const auto before = changes_of_senders.load();
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_vector(10, 1, 2, MPI_INT, &type);
  MPI_Type_commit(&type);
  const auto committed = changes_of_senders.load();
  EXPECT_GT(committed, before);
  std::array<int, 20> memory{}, packed{};
  for (int i = 0; i < 20; ++i) memory[static_cast<std::size_t>(i)] = i;
  for (std::int64_t i = 0;
       i * (40 + CommittedType::kBytesPerUse) < CommittedType::kBytesBeforeReading; ++i) {
    EXPECT_EQ(changes_of_senders.load(), committed) << "after " << i << " uses";
    int position = 0;
    MPI_Pack(memory.data(), 1, type, packed.data(), sizeof packed, &position, MPI_COMM_WORLD);
  }
  EXPECT_GT(changes_of_senders.load(), committed);
  MPI_Type_free(&type);
}

// In memory of a device, the engine makes a plan as soon as it does a call.
TEST(PassedOn, IsNoCallOfOtherCountsOrOfATypeThatIsNew) {
  const test::Layout layout("vector(10,1,2,int)", 1);
  auto sent = layout.filled(1), received = layout.poisoned();
  const auto exchange = [&](MPI_Datatype type, int count) {
    constexpr int kHere = 0;
    MPI_Alltoallw(layout.buffer(sent), &count, &kHere, &type, layout.buffer(received), &count,
                  &kHere, &type, MPI_COMM_SELF);
  };
  // The type is committed out of sight, and so unknown.
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_vector(10, 1, 2, MPI_INT, &type);
  PMPI_Type_commit(&type);
  for (int i = 0; i < 2; ++i) exchange(type, 1);
  EXPECT_EQ(committed_type(type), nullptr);
  MPI_Type_commit(&type);
  ASSERT_NE(committed_type(type), nullptr);
  for (int i = 0; i < 2; ++i) exchange(type, 0);
  EXPECT_EQ(committed_type(type)->plan(), nullptr);
  exchange(type, 1);
  EXPECT_NE(committed_type(type)->plan(), nullptr);
  EXPECT_PRED2(test::same, received, layout.received_from(1));
  MPI_Type_free(&type);
}

}  // namespace
}  // namespace halocline::interpose
