// SPDX-License-Identifier: BSD-3-Clause
// Calls that are passed on because they were before, until something new is known of their types.
#include <gtest/gtest.h>
#include <mpi.h>

#include <array>
#include <cstdint>

#include "comm/interpose/collectives.hpp"
#include "comm/interpose/types.hpp"

namespace halocline::interpose {
namespace {

TEST(PassedOn, FindsWhatWasInserted) {
  PassedOn calls;
  // Of different slots, which go by the highest bits.
  constexpr std::uint64_t kMpis = 0x2468u, kOnHost = 0xE000'0000'0000'1230u;
  calls.insert(kMpis, false);
  calls.insert(kOnHost, true);
  EXPECT_EQ(calls.find(kMpis), PassedOn::Found::mpis);
  EXPECT_EQ(calls.find(kOnHost), PassedOn::Found::mpis_on_host);
  for (const auto other : {kMpis + 2, kOnHost + 2, kMpis ^ kOnHost})
    EXPECT_EQ(calls.find(other), PassedOn::Found::not_yet) << std::hex << other;
  calls.insert(kMpis + 2, false);  // in the place of the first
  EXPECT_EQ(calls.find(kMpis), PassedOn::Found::not_yet);
}

TEST(PassedOn, IsOverOnceATypeIsNewOrMeasured) {
  const auto before = times_learnt.load();
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_vector(10, 1, 2, MPI_INT, &type);
  MPI_Type_commit(&type);
  const auto committed = times_learnt.load();
  EXPECT_GT(committed, before);
  std::array<int, 20> memory{}, packed{};
  for (int i = 0; i < 20; ++i) memory[static_cast<std::size_t>(i)] = i;
  for (int i = 0; i <= KnownType::kMpiUses; ++i) {
    EXPECT_EQ(times_learnt.load(), committed) << "after " << i << " uses";
    int position = 0;
    MPI_Pack(memory.data(), 1, type, packed.data(), sizeof packed, &position, MPI_COMM_WORLD);
  }
  EXPECT_GT(times_learnt.load(), committed);
  MPI_Type_free(&type);
}

}  // namespace
}  // namespace halocline::interpose
