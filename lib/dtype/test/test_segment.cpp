// SPDX-License-Identifier: BSD-3-Clause
// Tests details of segments that random types do not show one by one. These are the position, and
// when kept bytes reach the buffer.
#include "dtype/pack/host/segment.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "dtype/pack/host/host_packer.hpp"
#include "layout.hpp"

namespace halocline::dtype::test {

namespace {

using Bytes = std::vector<unsigned char>;

Bytes counting_bytes(std::int64_t length) {
  Bytes bytes(static_cast<std::size_t>(length));
  std::iota(bytes.begin(), bytes.end(), static_cast<unsigned char>(1));
  return bytes;
}

Bytes packed_at_once(const PackPlan& plan, const Bytes& memory, std::int64_t count) {
  Bytes packed(static_cast<std::size_t>(plan.packed_bytes(count)));
  HostPacker().pack(plan, memory.data(), count, packed.data());
  return packed;
}

// 6 columns of 50 rows: a cache line holds the bytes of all columns.
constexpr const char* kColumns = "hvector(6,1,8,vector(50,1,8,double))";

}  // namespace

TEST(Segment, StopsInsideOfABasicElement) {
  const auto plan = plan_of("vector(3,1,2,double)");
  const auto memory = counting_bytes(40);
  const auto expected = packed_at_once(plan, memory, 1);
  Segment segment(plan, memory.data(), 1);
  Bytes packed(24);
  for (std::int64_t at = 0; at < 24; at += 5) {
    EXPECT_EQ(segment.position(), at);
    EXPECT_EQ(segment.pack(packed.data() + at, 5), std::min<std::int64_t>(5, 24 - at));
  }
  EXPECT_TRUE(segment.done());
  EXPECT_EQ(packed, expected);
  EXPECT_EQ(segment.pack(packed.data(), 5), 0);
}

TEST(Segment, GoesOnAnywhere) {
  const auto plan = plan_of("indexed({3,1,2,5},{0,7,4,20},int)");
  const auto memory = counting_bytes(plan.bounds().extent * 3);
  const auto expected = packed_at_once(plan, memory, 3);
  Segment segment(plan, memory.data(), 3);
  Bytes packed(expected.size());
  for (auto at = segment.bytes() - 7; at > -7; at -= 7) {
    const auto from = std::max<std::int64_t>(at, 0);
    segment.seek(from);
    segment.pack(packed.data() + from, at + 7 - from);
  }
  EXPECT_EQ(packed, expected);
  EXPECT_THROW(segment.seek(-1), ConfigError);
  EXPECT_THROW(segment.seek(segment.bytes() + 1), ConfigError);
}

TEST(Segment, LooksAheadInOrderOnly) {
  const auto plan = plan_of(kColumns);
  const auto memory = counting_bytes(plan.bounds().extent);
  const auto expected = packed_at_once(plan, memory, 1);
  auto changing = memory;
  Segment segment(plan, changing.data(), 1, 1 << 20);
  Bytes packed(expected.size());
  segment.pack(packed.data(), 100);
  std::fill(changing.begin(), changing.end(), static_cast<unsigned char>(0));
  segment.pack(packed.data() + 100, 100);
  EXPECT_TRUE(std::equal(packed.begin(), packed.begin() + 200, expected.begin())) << "kept";
  for (const std::int64_t at : {1000, 0}) {
    segment.seek(at);
    segment.pack(packed.data() + at, 10);
    EXPECT_EQ(packed[static_cast<std::size_t>(at)], 0) << "read again";
  }
  changing = memory;
  segment.seek(0);
  while (!segment.done()) segment.pack(packed.data() + segment.position(), 77);
  EXPECT_EQ(packed, expected);
}

TEST(Segment, UnpackedBytesArriveWhenDoneOrFlushed) {
  const auto plan = plan_of(kColumns);
  const auto packed = counting_bytes(plan.packed_bytes(1));
  Bytes expected(static_cast<std::size_t>(plan.bounds().extent));
  HostPacker().unpack(plan, packed.data(), expected.data(), 1);

  Bytes whole(expected.size());
  Segment segment(plan, whole.data(), 1, 1 << 20);
  while (!segment.done()) segment.unpack(packed.data() + segment.position(), 100);
  EXPECT_EQ(whole, expected) << "done";

  const auto unpack_half = [&](auto end) {
    Bytes half(expected.size());
    {
      Segment partial(plan, half.data(), 1, 1 << 20);
      while (partial.position() < 1200) partial.unpack(packed.data() + partial.position(), 100);
      end(partial);
    }
    Bytes wanted(expected.size());
    Segment(plan, wanted.data(), 1).unpack(packed.data(), 1200);
    return half == wanted;
  };
  EXPECT_TRUE(unpack_half([](Segment& partial) { partial.flush(); }));
  EXPECT_TRUE(unpack_half([](Segment&) {})) << "destroyed";

  Bytes jumping(expected.size());
  {
    Segment out_of_order(plan, jumping.data(), 1, 1 << 20);
    for (const std::int64_t at : {0, 100, 700, 800, 300, 200, 400, 500, 600}) {
      out_of_order.seek(at);
      out_of_order.unpack(packed.data() + at, 100);
    }
    out_of_order.seek(900);
    while (!out_of_order.done()) out_of_order.unpack(packed.data() + out_of_order.position(), 33);
  }
  EXPECT_EQ(jumping, expected);
}

TEST(Segment, PackingAndUnpackingTakeTurns) {
  const auto plan = plan_of(kColumns);
  const auto memory = counting_bytes(plan.bounds().extent);
  const auto expected = packed_at_once(plan, memory, 1);
  auto buffer = memory;
  Segment segment(plan, buffer.data(), 1, 1 << 20);
  Bytes packed(expected.size());
  const Bytes other(100, 0xEE);
  // Unpacked bytes are in the buffer when they are packed. Bytes kept for packing are not packed
  // again.
  segment.pack(packed.data(), 50);
  segment.unpack(other.data(), 100);
  segment.seek(50);
  segment.pack(packed.data() + 50, 150);
  auto wanted = expected;
  std::fill(wanted.begin() + 50, wanted.begin() + 150, static_cast<unsigned char>(0xEE));
  EXPECT_TRUE(std::equal(packed.begin(), packed.begin() + 200, wanted.begin()));

  segment.seek(0);
  segment.unpack(other.data(), 30);
  segment.seek(segment.bytes());
  EXPECT_EQ(buffer[0], 0xEE) << "moved away: nothing is kept";

  buffer = memory;
  segment.seek(0);
  segment.pack(packed.data(), 10);
  std::fill(buffer.begin(), buffer.end(), static_cast<unsigned char>(0));
  segment.seek(20);
  segment.pack(packed.data(), 10);
  EXPECT_EQ(packed[0], 0) << "moved away: read again";
}

}  // namespace halocline::dtype::test
