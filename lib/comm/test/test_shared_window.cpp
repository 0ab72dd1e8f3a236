// SPDX-License-Identifier: BSD-3-Clause
// Tests memory on huge and small pages, private and shared.
#include "comm/node/shared_window.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "comm/node/node_hierarchy.hpp"
#include "support/error.hpp"
#include "world.hpp"

namespace halocline::comm {
namespace {

using Options = SharedWindow::Options;

std::uintptr_t number(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address);
}

TEST(PagedMemory, IsZeroedAndBeginsAtAPage) {
  for (const auto pages : {Pages::small, Pages::huge})
    for (const std::int64_t bytes : {1, 4097, 5 << 20}) {
      const PagedMemory memory(bytes, pages);
      const bool huge = pages == Pages::huge && bytes >= PagedMemory::kHugePage;
      const auto page = huge ? PagedMemory::kHugePage : sysconf(_SC_PAGESIZE);
      EXPECT_EQ(number(memory.data()) % static_cast<std::uintptr_t>(page), 0U);
      EXPECT_EQ(memory.bytes(), (bytes + page - 1) / page * page);
      EXPECT_EQ(memory.bytes(), PagedMemory::size(bytes, pages));
      EXPECT_TRUE(std::all_of(memory.data(), memory.data() + memory.bytes(),
                              [](std::byte b) { return b == std::byte(0); }));
      memory.data()[memory.bytes() - 1] = std::byte(1);
    }
  EXPECT_EQ(PagedMemory(0).data(), nullptr);
}

TEST(PagedMemory, Moves) {
  PagedMemory first(1), second(1);
  auto* const data = first.data();
  data[0] = std::byte(7);
  second = std::move(first);
  EXPECT_EQ(second.data(), data);
  const PagedMemory third(std::move(second));
  EXPECT_EQ(third.data()[0], std::byte(7));
  EXPECT_EQ(second.data(), nullptr);
}

TEST(PagedMemory, HasThePagesThatItAsksFor) {
  constexpr std::int64_t kBytes = 8 * PagedMemory::kHugePage;
  const PagedMemory small(kBytes, Pages::small), huge(kBytes);
  small.touch();
  huge.touch();
  EXPECT_EQ(share_on_huge_pages(small.data(), kBytes), 0);
  const auto share = share_on_huge_pages(huge.data(), kBytes);
  if (why_no_huge_pages().empty())
    EXPECT_GT(share, 0.5);
  else
    EXPECT_EQ(share, 0);
}

TEST(PagedMemory, SaysHowMuchItCannotGet) {
  try {
    const PagedMemory memory(std::int64_t{1} << 60);
    ADD_FAILURE() << "no error";
  } catch (const EnvironmentError& error) {
    EXPECT_TRUE(std::string(error.what()).starts_with("no memory for the fields (115292150"))
        << error.what();
  }
}

// Fills the memory of each rank, and looks at that of all ranks.
void check_contents(const SharedWindow& window, std::int64_t bytes) {
  std::fill_n(window.data(), bytes + 10 * world_rank(), std::byte(world_rank() + 1));
  window.sync();
  MPI_Barrier(MPI_COMM_WORLD);
  window.sync();
  const NodeHierarchy nodes(MPI_COMM_WORLD);
  for (int rank = 0; rank < world_size(); ++rank) {
    const auto* const data = window.data_of(rank);
    ASSERT_EQ(data != nullptr, nodes.same_node(rank));
    if (data == nullptr) continue;
    EXPECT_TRUE(std::all_of(data, data + bytes + 10 * rank,
                            [&](std::byte b) { return b == std::byte(rank + 1); }));
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST(SharedWindow, IsTheSameForAllRanks) {
  for (const auto& options : {Options{}, Options{.pages = Pages::small}, Options{.only_mpi = true}})
    for (const std::int64_t bytes : {1, 4096, 100'000, 5 << 20}) {
      const auto mine = bytes + 10 * world_rank();
      const SharedWindow window(MPI_COMM_WORLD, mine, options);
      EXPECT_EQ(number(window.data()) % SharedWindow::kAlignment, 0U);
      EXPECT_EQ(window.data_of(world_rank()), window.data());
      EXPECT_EQ(window.offset_of(window.data()), 0);
      EXPECT_EQ(window.offset_of(window.data() + mine - 1), mine - 1);
      EXPECT_EQ(window.offset_of(window.data() + mine), std::nullopt);
      EXPECT_EQ(window.offset_of(window.data() - 1), std::nullopt);
      EXPECT_EQ(window.kind() == SharedWindow::Kind::mpi_window,
                options.only_mpi || !window.why_mpi().empty());
      check_contents(window, bytes);
    }
}

TEST(SharedWindow, HasThePagesThatItAsksFor) {
  constexpr std::int64_t kBytes = 4 * PagedMemory::kHugePage;
  const SharedWindow huge(MPI_COMM_WORLD, kBytes),
      small(MPI_COMM_WORLD, kBytes, {.pages = Pages::small});
  check_contents(huge, kBytes - 10 * world_size());
  EXPECT_EQ(share_on_huge_pages(small.data(), kBytes), 0);
  if (huge.kind() == SharedWindow::Kind::mpi_window) GTEST_SKIP() << huge.why_mpi();
  if (share_on_huge_pages(huge.data(), kBytes) == 0)
    GTEST_SKIP() << "this kernel makes no huge pages of files";
  for (int rank = 0; rank < world_size(); ++rank)
    EXPECT_GT(share_on_huge_pages(huge.data_of(rank), kBytes), 0.5) << rank;
}

// A child that lives longer keeps its view of the memory, and nobody waits for it.
TEST(SharedWindow, CanBeSeenByAForkedChild) {
  int go[2];
  ASSERT_EQ(pipe(go), 0);
  pid_t child = -1;
  {
    const SharedWindow window(MPI_COMM_WORLD, 4096);
    check_contents(window, 4000);
    const auto* const next = window.data_of((world_rank() + 1) % world_size());
    child = fork();
    if (child == 0) {
      char word = 0;
      const bool woken = read(go[0], &word, 1) == 1;
      _exit(woken && next[0] == std::byte((world_rank() + 1) % world_size() + 1) ? 0 : 1);
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
  ASSERT_EQ(write(go[1], "g", 1), 1);
  int status = 1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  close(go[0]);
  close(go[1]);
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST(SharedWindow, SaysWhatItNeedsIfThereIsNoMemory) {
  for (const bool only_mpi : {false, true}) {
    try {
      const SharedWindow window(MPI_COMM_WORLD, std::int64_t{1} << 50, {.only_mpi = only_mpi});
      ADD_FAILURE() << "no error";
    } catch (const EnvironmentError& error) {
      const std::string text = error.what();
      EXPECT_TRUE(text.starts_with("no shared memory for the fields (a node's ranks need "))
          << text;
      EXPECT_NE(text.find("use smaller fields"), std::string::npos) << text;
    }
  }
}

}  // namespace
}  // namespace halocline::comm
