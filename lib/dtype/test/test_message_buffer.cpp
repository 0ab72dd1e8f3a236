// SPDX-License-Identifier: BSD-3-Clause
// Tests the memory of messages.
#include "support/message_buffer.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace halocline::dtype {
namespace {

using Allocator = MessageBuffer::allocator_type;

TEST(MessageBuffer, IsOnWholeHugePagesIfLong) {
  EXPECT_EQ(Allocator::allocated(Allocator::kLong - 1), Allocator::kLong - 1);
  EXPECT_EQ(Allocator::allocated(Allocator::kLong), Allocator::kHugePage);
  EXPECT_EQ(Allocator::allocated(Allocator::kHugePage + 1), 2 * Allocator::kHugePage);
  for (const auto bytes : {Allocator::kLong, Allocator::kHugePage, 3 * Allocator::kHugePage + 1}) {
    const MessageBuffer buffer(bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % Allocator::kHugePage, 0u);
  }
}

TEST(MessageBuffer, KeepsItsContentAsItGrowsAndMoves) {
  MessageBuffer buffer(Allocator::kLong - 1, std::byte{7});
  buffer.resize(Allocator::kLong, std::byte{8});
  buffer.resize(2 * Allocator::kHugePage, std::byte{9});
  auto moved = std::move(buffer);
  const auto copy = moved;
  EXPECT_EQ(copy[Allocator::kLong - 2], std::byte{7});
  EXPECT_EQ(copy[Allocator::kLong - 1], std::byte{8});
  EXPECT_EQ(copy.back(), std::byte{9});
  EXPECT_EQ(moved, copy);
}

}  // namespace
}  // namespace halocline::dtype
