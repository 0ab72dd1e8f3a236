// SPDX-License-Identifier: BSD-3-Clause
// Tests the packer of the current device, emulated or real, in all kinds of memory that it can
// reach. Takes random types, misaligned and backward types, distant places, and many jobs in one
// launch.
//
//   dtype_device_packer [--types N] [--seed S]
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstring>

#include "byte_displacements.hpp"
#include "dtype/device/device.hpp"
#include "dtype/pack/host/host_packer.hpp"
#include "dtype/type_map.hpp"
#include "emulated.hpp"
#include "flags.hpp"
#include "layout.hpp"
#include "scene.hpp"

namespace halocline::dtype::test {

namespace {

constexpr std::array kKinds = {MemoryKind::pinned, MemoryKind::device, MemoryKind::managed};

std::size_t size(std::int64_t bytes) {
  return static_cast<std::size_t>(bytes);
}

// Holds memory of a device, and copies its bytes.
class Block {
 public:
  Block(Device& device, MemoryKind kind, std::int64_t bytes)
      : device_(device),
        memory_(static_cast<unsigned char*>(device.allocate(kind, size(bytes))),
                [&device, kind](unsigned char* memory) { device.release(kind, memory); }) {}

  unsigned char* data() const { return memory_.get(); }
  void write(std::int64_t at, const unsigned char* bytes, std::int64_t length) const {
    device_.copy(data() + at, bytes, size(length), nullptr);
    device_.synchronize(nullptr);
  }
  void write(std::int64_t at, const Bytes& bytes) const {
    write(at, bytes.data(), std::ssize(bytes));
  }
  Bytes read(std::int64_t at, std::int64_t length) const {
    Bytes bytes(size(length));
    device_.copy(bytes.data(), data() + at, bytes.size(), nullptr);
    device_.synchronize(nullptr);
    return bytes;
  }

 private:
  Device& device_;
  std::shared_ptr<unsigned char> memory_;
};

// Takes the bytes of a call to device memory, and back when the packer is done. The bytes keep
// their misalignment and lie between guards.
class Window {
 public:
  static constexpr std::int64_t kGuard = 128;

  explicit Window(Block block) : block_(std::move(block)) {}

  void take(const void* bytes, std::int64_t length) {
    first_ = kGuard + static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(bytes) % kAligned);
    around_.assign(size(first_ + length + kGuard), kMark);
    if (length > 0) std::memcpy(around_.data() + first_, bytes, size(length));
    block_.write(0, around_);
  }
  unsigned char* data() const { return block_.data() + first_; }
  void give_back(void* bytes, std::int64_t length, const char* what) {
    auto found = block_.read(0, std::ssize(around_));
    if (length > 0) std::memcpy(bytes, found.data() + first_, size(length));
    std::copy_n(around_.begin() + first_, length, found.begin() + first_);
    if (found != around_)
      throw EnvironmentError(std::string(what) + " writes outside of its bytes");
  }

 private:
  static constexpr std::uintptr_t kAligned = 64;
  static constexpr unsigned char kMark = 0x3C;
  Block block_;
  std::int64_t first_ = 0;
  Bytes around_;
};

// Packs host buffers by the device's packer.
class StagedPacker {
 public:
  StagedPacker(Device& device, const Packer& packer, MemoryKind memory, MemoryKind packed)
      : packer_(packer), memory_(room(device, memory)), packed_(room(device, packed)) {}

  // Packs each instance by its own job if `fused`.
  void fuse(bool fused) { fused_ = fused; }

  void pack(const PackPlan& plan, const void* buffer, std::int64_t count, void* packed) {
    if (plan.packed_bytes(count) == 0) return;
    const auto call = take(plan, buffer, count, packed);
    const auto jobs = fused_ ? as_jobs(plan, call.buffer, count) : FusedPlan();
    if (fused_)
      packer_.pack(jobs, packed_.data());
    else
      packer_.pack(plan, call.buffer, count, packed_.data());
    packer_.fence();
    packed_.give_back(packed, plan.packed_bytes(count), "pack");
  }
  void unpack(const PackPlan& plan, const void* packed, void* buffer, std::int64_t count) {
    if (plan.packed_bytes(count) == 0) return;
    const auto call = take(plan, buffer, count, packed);
    const auto jobs = fused_ ? as_jobs(plan, call.buffer, count) : FusedPlan();
    if (fused_)
      packer_.unpack(jobs, packed_.data());
    else
      packer_.unpack(plan, packed_.data(), call.buffer, count);
    packer_.fence();
    memory_.give_back(call.bytes, call.length, "unpack");
  }
  void fence() const {}

 private:
  struct Staged {
    void* bytes;  // on the host: the bytes that the call may touch
    std::int64_t length;
    void* buffer;  // argument for the device
  };

  static Window room(Device& device, MemoryKind kind) {
    return Window(Block(device, kind, CallGenerator::kMaxSpan + 4 * Window::kGuard));
  }

  Staged take(const PackPlan& plan, const void* buffer, std::int64_t count, const void* packed) {
    const auto& bounds = plan.bounds();
    const auto last = bounds.extent * (count - 1);
    const auto first = bounds.true_lb + std::min<std::int64_t>(last, 0);
    const auto length = bounds.true_extent + std::abs(last);
    // The address is computed as an integer, since the buffer argument may lie outside of the
    // bytes.
    const auto at = reinterpret_cast<std::uintptr_t>(buffer) + static_cast<std::uintptr_t>(first);
    auto* bytes = reinterpret_cast<void*>(at);
    memory_.take(bytes, length);
    packed_.take(packed, plan.packed_bytes(count));
    const auto there = reinterpret_cast<std::uintptr_t>(memory_.data());
    return {bytes, length, reinterpret_cast<void*>(there - static_cast<std::uintptr_t>(first))};
  }

  const Packer& packer_;
  Window memory_, packed_;
  bool fused_ = false;
};

class DevicePacker : public testing::Test {
 protected:
  void SetUp() override {
    // CTest runs all tests on the emulated device. By hand, on a machine without a device, there is
    // nothing to test.
    if (current_device() == nullptr) GTEST_SKIP() << "no device: " << why_no_device();
    stream_ = device().create_stream();
    packer_ = device().make_packer(stream_);
    for (const auto memory : kKinds)
      for (const auto packed : kKinds)
        routes_.push_back({std::string(name(memory)) + " memory, " + name(packed) + " stream",
                           StagedPacker(device(), *packer_, memory, packed)});
  }
  void TearDown() override {
    if (stream_ != nullptr) device().destroy_stream(stream_);
  }

  Device& device() const { return *current_device(); }

  // Returns the first mistake; nothing if there is none.
  std::optional<std::string> wrong(const Call& call) {
    const auto displacements = byte_displacements(type_map(*call.expr), call.count);
    const auto plan = make_plan(*call.expr);
    const Scene scene(call, displacements, noise_);
    try {
      for (auto& [route, packer] : routes_)
        for (const bool fused : {false, true}) {
          packer.fuse(fused);
          if (auto bad = scene.wrong(packer, route + (fused ? ", fused" : ""), plan, call))
            return bad;
        }
    } catch (const Error& error) {
      return error.what();
    }
    return std::nullopt;
  }

  void expect_right(const Call& call) {
    const auto bad = wrong(call);
    EXPECT_FALSE(bad) << describe(call) << "\n" << *bad;
  }

  struct Route {
    std::string name;
    StagedPacker packer;
  };
  const halocline::test::Trials trials_ = halocline::test::read_trials("--types", 20000, 2000);
  const Noise noise_{trials_.seed};
  Device::Stream stream_ = nullptr;
  std::unique_ptr<Packer> packer_;
  std::vector<Route> routes_;
};

}  // namespace

TEST_F(DevicePacker, PacksAndUnpacksRandomTypesByTheTypeMap) {
  std::printf("%s, seed %llu, %lld types\n", device().properties().name.c_str(),
              static_cast<unsigned long long>(trials_.seed), static_cast<long long>(trials_.count));
  CallGenerator calls(trials_.seed);
  for (std::int64_t i = 0; i < trials_.count; ++i) {
    const auto call = calls.next();
    const auto bad = wrong(call);
    if (!bad) continue;
    const auto smallest = shrink(call, [&](const Call& c) { return wrong(c).has_value(); });
    FAIL() << "type " << i << " of seed " << trials_.seed << ": " << describe(call) << "\n"
           << *bad << "\nsmallest call that fails: " << describe(smallest) << "\n"
           << wrong(smallest).value_or("nothing: it failed before");
  }
}

TEST_F(DevicePacker, TakesAnyAlignment) {
  for (const auto* text :
       {"contiguous(100,byte)", "vector(9,4,6,float)", "hvector(5,16,48,byte)",
        "subarray(C,{9,8,8},{5,4,6},{1,2,2},double)", "hvector(16,1,8,vector(16,1,16,double))",
        "indexed_block(2,{0,5,7,9,20,33,50},double)"})
    for (std::int64_t memory = 0; memory <= 16; ++memory)
      for (const std::int64_t packed : {0, 1, 2, 4, 7, 8, 12, 16})
        expect_right({parse_type(text), 3, memory, packed});
}

TEST_F(DevicePacker, GoesBackwards) {
  for (const auto* text :
       {"vector(7,1,-1,byte)", "vector(7,2,-3,int)", "hvector(300,3,-40,double)",
        "hvector(5,1,-4096,vector(11,1,3,double))", "resized(vector(5,2,4,float),0,-96)",
        "hvector(9,1,1024,hvector(60,1,-16,double))", "vector(33,1,0,double)"})
    for (const std::int64_t count : {1, 2, 5}) expect_right({parse_type(text), count, 0, 0});
}

// Packs three pieces that are 3 GiB apart.
TEST_F(DevicePacker, ReachesBeyondFourGiB) {
  constexpr std::int64_t kStride = std::int64_t{3} << 30, kMargin = 4096;
  const std::string inner = "vector(1000,3,5,double)";
  const auto one = plan_of(inner);
  const auto bytes = one.packed_bytes(1), length = one.bounds().true_extent + 2 * kMargin;
  std::optional<Block> memory;
  try {
    memory.emplace(device(), MemoryKind::device, 2 * kStride + length);
  } catch (const EnvironmentError& error) {
    // Some devices have less than 6 GiB free. The emulated device of CTest always has them.
    GTEST_SKIP() << error.what();
  }
  const Block packed(device(), MemoryKind::device, 3 * bytes);
  for (const int sign : {1, -1}) {
    const auto plan = plan_of("hvector(3,1," + std::to_string(sign * kStride) + "," + inner + ")");
    auto* buffer = memory->data() + kMargin + (sign < 0 ? 2 * kStride : 0);
    const auto place = [&](int i) { return (sign > 0 ? i : 2 - i) * kStride; };

    Bytes expected(size(3 * bytes));
    for (int i = 0; i < 3; ++i) {
      const auto* piece = noise_.bytes.data() + 1000 * i;
      memory->write(place(i), piece, length);
      HostPacker().pack(one, piece + kMargin, 1, expected.data() + i * bytes);
    }
    packer_->pack(plan, buffer, 1, packed.data());
    packer_->fence();
    EXPECT_TRUE(packed.read(0, 3 * bytes) == expected) << "sign " << sign;

    packed.write(0, noise_.complement.data(), 3 * bytes);
    packer_->unpack(plan, packed.data(), buffer, 1);
    packer_->fence();
    for (int i = 0; i < 3; ++i) {
      Bytes piece(noise_.bytes.begin() + 1000 * i, noise_.bytes.begin() + 1000 * i + length);
      HostPacker().unpack(one, noise_.complement.data() + i * bytes, piece.data() + kMargin, 1);
      EXPECT_TRUE(memory->read(place(i), length) == piece) << "sign " << sign << ", piece " << i;
    }
  }
}

// Records what exchanges record: few jobs travel with the launch, more jobs in a larger launch,
// many do not. Memory changes in between.
TEST_F(DevicePacker, ReplaysPacksAndCopies) {
  const auto plan = plan_of("vector(30,3,5,double)");
  const auto bytes = plan.packed_bytes(1), slot = plan.bounds().true_extent + 8;
  for (const std::int64_t count : {1, 20, 3000, 6000}) {
    const Block memory(device(), MemoryKind::device, count * slot),
        packed(device(), MemoryKind::device, count * bytes),
        sent(device(), MemoryKind::pinned, count * bytes);
    Bytes here(size(count * slot)), expected(size(count * bytes));
    std::vector<PackJob> jobs, on_host;
    for (std::int64_t i = 0; i < count; ++i) {
      const auto offset = i * slot + i % 2 * 8;  // not one job with many instances
      jobs.push_back({plan, memory.data() + offset, 1});
      on_host.push_back({plan, here.data() + offset, 1});
    }
    const FusedPlan fused(jobs), expected_plan(on_host);
    std::mt19937_64 engine(trials_.seed);
    const auto fill = [&](Bytes& all) {
      for (auto& byte : all) byte = static_cast<unsigned char>(engine());
    };
    const auto out = [&] {
      packer_->pack(fused, packed.data());
      device().copy(sent.data(), packed.data(), size(count * bytes), stream_);
    };
    const auto in = [&] {
      device().copy(packed.data(), sent.data(), size(count * bytes), stream_);
      packer_->unpack(fused, packed.data());
    };
    std::unique_ptr<Device::Recording> packing, unpacking;
    for (int round = 0; round < 3; ++round) {
      fill(here);
      memory.write(0, here);
      HostPacker().pack(expected_plan, expected.data());
      round == 0 ? out() : packing->replay();
      if (round == 0) packing = device().record(stream_, out);
      packer_->fence();
      ASSERT_TRUE(sent.read(0, count * bytes) == expected) << count << " jobs, round " << round;

      fill(expected);
      sent.write(0, expected);
      HostPacker().unpack(expected_plan, expected.data());
      round == 0 ? in() : unpacking->replay();
      if (round == 0) unpacking = device().record(stream_, in);
      packer_->fence();
      ASSERT_TRUE(memory.read(0, count * slot) == here) << count << " jobs, round " << round;
    }
  }
}

// Packs jobs in all kinds of memory at once. Few jobs travel with the launch, many do not.
TEST_F(DevicePacker, FusesJobsInMemoryOfAllKinds) {
  const char* const types[] = {"vector(30,3,5,double)",
                               "subarray(C,{30,4,9},{11,3,3},{1,1,3},float)",
                               "indexed_block(2,{0,5,7,9,20,33,50},short)",
                               "contiguous(1000,byte)",
                               "struct({1,1,3},{0,8,24},{char,double,int})",
                               "hvector(33,1,8,vector(4,1,33,double))"};
  constexpr std::int64_t kSlot = 10000;  // more than two instances of any
  std::mt19937_64 engine(trials_.seed);
  for (const std::int64_t slots : {1, 5, 20, 100, 2001}) {
    std::vector<PackPlan> plans;
    for (const auto* text : types) plans.push_back(plan_of(text));
    std::vector<Block> there;
    for (const auto kind : kKinds) there.emplace_back(device(), kind, slots * kSlot);
    Bytes here(size(std::ssize(kKinds) * slots * kSlot));
    for (auto& byte : here) byte = static_cast<unsigned char>(engine());
    for (std::size_t k = 0; k < there.size(); ++k)
      there[k].write(0, here.data() + static_cast<std::int64_t>(k) * slots * kSlot, slots * kSlot);

    std::vector<PackJob> jobs, on_host;
    std::int64_t end = 0;
    for (std::int64_t i = 0; i < slots; ++i)
      for (std::int64_t k = 0; k < std::ssize(there); ++k) {
        const auto& plan = plans[engine() % plans.size()];
        const auto offset =
            i * kSlot + (slots % 2 == 0 ? 0 : static_cast<std::int64_t>(engine() % 9));
        end += static_cast<std::int64_t>(engine() % 3);
        jobs.push_back({plan, there[size(k)].data() + offset, 2, end});
        on_host.push_back({plan, here.data() + k * slots * kSlot + offset, 2, end});
        end += plan.packed_bytes(2);
      }
    const FusedPlan fused(jobs), expected_plan(on_host);
    Bytes expected(size(end), 0x5A);
    for (const auto kind : kKinds) {
      const Block packed(device(), kind, end);
      packed.write(0, Bytes(size(end), 0x5A));
      HostPacker().pack(expected_plan, expected.data());
      packer_->pack(fused, packed.data());
      packer_->fence();
      ASSERT_TRUE(packed.read(0, end) == expected) << slots << " slots, to " << name(kind);

      Bytes stream(size(end));
      for (auto& byte : stream) byte = static_cast<unsigned char>(engine());
      packed.write(0, stream);
      HostPacker().unpack(expected_plan, stream.data());
      packer_->unpack(fused, packed.data());
      packer_->fence();
      for (std::int64_t k = 0; k < std::ssize(there); ++k) {
        const auto begin = here.begin() + k * slots * kSlot;
        ASSERT_TRUE(there[size(k)].read(0, slots * kSlot) == Bytes(begin, begin + slots * kSlot))
            << slots << " slots, from " << name(kind) << " to " << name(kKinds[size(k)]);
      }
    }
  }
}

// One plan has nests that take turns, pieces, and copies through a window.
TEST_F(DevicePacker, CopiesFromLayoutToLayout) {
  constexpr std::int64_t kBytes = 200000;
  std::string list = "0";
  for (int i = 1; i < 500; ++i) list += "," + std::to_string(3 * i + i * i % 7);
  struct Copy {
    std::string from, to;
    std::int64_t at, to_at;
  };
  const Copy copies[] = {
      {"vector(300,3,7,double)", "vector(300,3,6,double)", 24, 0},
      {"vector(300,3,7,double)", "vector(300,3,6,double)", 48, 24},
      {"subarray(F,{30,4,9},{11,3,3},{1,1,3},float)", "hvector(9,11,100,float)", 4, 20000},
      {"contiguous(1001,byte)", "contiguous(1001,byte)", 20001, 40007},
      {"indexed_block(1,{" + list + "},double)", "vector(500,1,2,double)", 30000, 50000}};
  for (const auto from : kKinds)
    for (const auto to : kKinds) {
      const Block source(device(), from, kBytes), destination(device(), to, kBytes);
      const Bytes before(noise_.bytes.begin(), noise_.bytes.begin() + kBytes);
      Bytes expected(noise_.complement.begin(), noise_.complement.begin() + kBytes);
      source.write(0, before);
      destination.write(0, expected);
      std::vector<CopyJob> jobs;
      for (const auto& copy : copies) {
        const auto a = plan_of(copy.from), b = plan_of(copy.to);
        jobs.push_back({a, source.data() + copy.at, 1, b, destination.data() + copy.to_at, 1});
        HostPacker().copy(
            CopyPlan({{a, before.data() + copy.at, 1, b, expected.data() + copy.to_at, 1}}));
      }
      const CopyPlan plan(jobs);
      EXPECT_EQ(plan.program().windowed.size(), 1u);
      packer_->prepare(plan);
      packer_->copy(plan);
      packer_->fence();
      EXPECT_TRUE(destination.read(0, kBytes) == expected) << name(from) << " to " << name(to);
    }
}

}  // namespace halocline::dtype::test
