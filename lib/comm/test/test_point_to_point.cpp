// SPDX-License-Identifier: BSD-3-Clause
// Tests messages between all pairs of layouts, kinds of memory, and transfers.
#include "comm/p2p/point_to_point.hpp"

#include <gtest/gtest.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "comm/messages/message_memory.hpp"
#include "comm/mpi/communicator.hpp"
#include "dtype/datatype.hpp"
#include "dtype/device/emulated_device.hpp"
#include "dtype/test/byte_displacements.hpp"
#include "dtype/test/random_call.hpp"
#include "dtype/type_map.hpp"
#include "support/mpi_check.hpp"
#include "world.hpp"

namespace halocline::comm {
namespace {

using dtype::Datatype;
using dtype::MemoryKind;
using dtype::Transfer;

int next_rank() {
  return (world_rank() + 1) % world_size();
}
int previous_rank() {
  return (world_rank() + world_size() - 1) % world_size();
}

// Emulates a device for which ordinary memory is memory of one kind.
struct Machine {
  explicit Machine(MemoryKind kind) : device(std::size_t(-1), kind), resources(device) {}
  dtype::EmulatedDevice device;
  dtype::ResourceCache resources;
};

// Describes `count` instances of a type in an array of ints, placed by MPI_Type_get_extent.
class Layout {
 public:
  Layout(const char* text, int count)
      : count_(count), type_(dtype::make_datatype(*dtype::parse_type(text))) {
    const auto in_mpi = dtype::test::with_mpi_bounds(dtype::parse_type(text));
    for (const auto byte : dtype::test::byte_displacements(dtype::type_map(*in_mpi), count))
      if (byte % 4 == 0) places_.push_back(byte / 4);
    const auto [least, greatest] = std::minmax_element(places_.begin(), places_.end());
    if (places_.empty()) return;
    origin_ = -*least + 3;
    room_ = *greatest + origin_ + 4;
  }

  int count() const { return count_; }
  MPI_Datatype type() const { return type_.get(); }
  std::vector<int> room(int fill) const {
    return std::vector<int>(static_cast<std::size_t>(room_), fill);
  }
  int* buffer(std::vector<int>& room) const { return room.data() + origin_; }
  std::size_t size() const { return places_.size(); }
  int& at(std::vector<int>& room, std::size_t i) const {
    return room[static_cast<std::size_t>(places_[i] + origin_)];
  }

  // Returns an array whose data are first, first + 1, ...
  std::vector<int> numbered(int first) const {
    auto out = room(-2);
    for (std::size_t i = 0; i < size(); ++i) at(out, i) = first++;
    return out;
  }
  // Returns an array of `gap` after it has received the first `items` numbers from `first` on.
  std::vector<int> received(int first, std::size_t items, int gap = -1) const {
    auto out = room(gap);
    for (std::size_t i = 0; i < items; ++i) at(out, i) = first++;
    return out;
  }

 private:
  int count_;
  Datatype type_;
  std::vector<std::int64_t> places_;
  std::int64_t origin_ = 0, room_ = 8;
};

// All have sixty ints, in one instance or several. The two contiguous layouts are one run.
const std::vector<std::pair<const char*, int>> kSixty {
  {"vector(20,3,7,int)", 1}, {"hvector(3,5,100,int)", 4}, {"vector(6,2,-5,int)", 5},
      {"hvector(6,1,4,vector(10,1,8,int))", 1},  // columns, packed in tiles
      {"subarray(C,{8,6,10},{3,5,4},{2,1,1},int)", 1}, {"indexed({1,4,7,8},{50,0,20,31},int)", 3},
      {"struct({3,2,1},{0,40,100},{int,vector(2,2,5,int),int})", 5},
      {"struct({40,4},{0,400},{int,vector(5,1,7,int)})", 1}, {"contiguous(15,int)", 4},
      {"resized(contiguous(60,int),-8,800)", 1},
// Open MPI gives these structs an extent of 40 bytes, the standard's rule 16.
#if !defined(MPICH_VERSION) && !defined(I_MPI_VERSION)
      {"contiguous(4,struct({2,1,1},{8,40,0},{int,contiguous(0,int),int}))", 5},
      {"struct({2,1,1},{8,40,0},{int,contiguous(0,int),int})", 20},
#endif
};

struct Case {
  MemoryKind kind;
  std::optional<Transfer> transfer;
  std::int64_t chunk_bytes;
};

class EveryWay : public testing::TestWithParam<Case> {
 protected:
  PointToPoint::Options options() {
    PointToPoint::Options out;
    out.resources = &machine_.resources;
    out.gpu_aware_mpi = true;
    out.transfer = GetParam().transfer;
    out.chunk_bytes = GetParam().chunk_bytes;
    return out;
  }
  Machine machine_{GetParam().kind};
};

// Sends between all pairs of layouts, and waits in another order than it starts.
TEST_P(EveryWay, CarriesOneLayoutToAnother) {
  PointToPoint p2p(MPI_COMM_WORLD, options());
  std::mt19937 random(20261122);
  for (const auto& [from, from_count] : kSixty) {
    const Layout source(from, from_count);
    std::vector<Layout> targets;
    std::vector<std::vector<int>> outs, ins;
    for (const auto& [to, to_count] : kSixty) {
      targets.emplace_back(to, to_count);
      outs.push_back(source.numbered(1000 * static_cast<int>(targets.size())));
      ins.push_back(targets.back().room(-1));
    }
    std::vector<PointToPoint::Request> requests;
    for (std::size_t i = 0; i < targets.size(); ++i)
      requests.push_back(p2p.irecv(targets[i].buffer(ins[i]), targets[i].count(), targets[i].type(),
                                   previous_rank(), 7));
    for (auto& out : outs)
      requests.push_back(
          p2p.isend(source.buffer(out), source.count(), source.type(), next_rank(), 7));
    std::vector<std::size_t> order(requests.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::shuffle(order.begin(), order.end(), random);
    for (const auto i : order) {
      const auto status = requests[i].wait();
      if (i < targets.size()) {
        EXPECT_EQ(status.source, previous_rank());
        EXPECT_EQ(status.tag, 7);
        EXPECT_EQ(status.bytes, 240);
      }
    }
    for (std::size_t i = 0; i < targets.size(); ++i)
      EXPECT_EQ(ins[i], targets[i].received(1000 * static_cast<int>(i + 1), 60))
          << from << " to " << kSixty[i].first;
  }
}

// A receive may have room for more data than arrive. The data may end within an instance.
TEST_P(EveryWay, ReceivesLessThanThereIsRoomFor) {
  PointToPoint p2p(MPI_COMM_WORLD, options());
  const Layout source("vector(13,1,2,int)", 3);
  for (const auto& [to, to_count] : kSixty) {
    const Layout target(to, to_count);
    auto out = source.numbered(1), in = target.room(-1);
    auto receive = p2p.irecv(target.buffer(in), target.count(), target.type(), MPI_ANY_SOURCE, 3);
    p2p.send(source.buffer(out), source.count(), source.type(), next_rank(), 3);
    EXPECT_EQ(receive.wait().bytes, 4 * 39);
    EXPECT_EQ(in, target.received(1, 39)) << to;
  }
}

// Sends long and short messages to receives with wildcards that were posted before.
TEST_P(EveryWay, KeepsTheOrderOfMessages) {
  PointToPoint p2p(MPI_COMM_WORLD, options());
  constexpr int kMessages = 9;
  const auto layout_of = [](int m) {
    return Layout("vector(2,1,3,int)", std::array{60, 2, 9}[static_cast<std::size_t>(m % 3)]);
  };
  const Layout room("vector(2,1,3,int)", 60);
  std::vector<std::vector<int>> ins(kMessages, room.room(-1)), outs;
  std::vector<PointToPoint::Request> receives, sends;
  for (auto& in : ins)
    receives.push_back(
        p2p.irecv(room.buffer(in), room.count(), room.type(), MPI_ANY_SOURCE, MPI_ANY_TAG));
  for (int m = 0; m < kMessages; ++m) {
    const auto layout = layout_of(m);
    outs.push_back(layout.numbered(100 * m));
    sends.push_back(
        p2p.isend(layout.buffer(outs.back()), layout.count(), layout.type(), next_rank(), m));
  }
  for (int m = 0; m < kMessages; ++m) {
    const auto status = receives[static_cast<std::size_t>(m)].wait();
    EXPECT_EQ(status.source, previous_rank());
    EXPECT_EQ(status.tag, m);
    EXPECT_EQ(ins[static_cast<std::size_t>(m)], room.received(100 * m, layout_of(m).size()));
  }
  for (auto& send : sends) send.wait();
}

// Several senders send long messages whose chunks have the same tags.
TEST_P(EveryWay, TellsSendersApart) {
  PointToPoint p2p(MPI_COMM_WORLD, options());
  const Layout layout("vector(2,1,3,int)", 200);
  auto out = layout.numbered(1000 * world_rank());
  auto send = p2p.isend(layout.buffer(out), layout.count(), layout.type(), 0, 5);
  if (world_rank() == 0) {
    std::vector<std::vector<int>> ins(static_cast<std::size_t>(world_size()), layout.room(-1));
    std::vector<PointToPoint::Request> receives;
    for (auto& in : ins)
      receives.push_back(
          p2p.irecv(layout.buffer(in), layout.count(), layout.type(), MPI_ANY_SOURCE, 5));
    for (std::size_t i = 0; i < ins.size(); ++i)
      EXPECT_EQ(ins[i], layout.received(1000 * receives[i].wait().source, layout.size()));
  }
  send.wait();
}

// Each rank waits for its send before it receives, so a wait must make progress for all requests.
TEST_P(EveryWay, CompletesSendsWhileReceivesArePending) {
  PointToPoint p2p(MPI_COMM_WORLD, options());
  const Layout layout("vector(5000,3,5,int)", 2);
  auto out = layout.numbered(1), in = layout.room(-1);
  auto receive = p2p.irecv(layout.buffer(in), 2, layout.type(), previous_rank(), 0);
  p2p.isend(layout.buffer(out), 2, layout.type(), next_rank(), 0).wait();
  while (!receive.test()) {
  }
  EXPECT_EQ(in, layout.received(1, layout.size()));
}

// Short messages are plain MPI messages, so MPI alone may be at the other end.
TEST_P(EveryWay, MeetsPlainMpiAtTheOtherEnd) {
  PointToPoint p2p(MPI_COMM_WORLD, options());
  for (const auto& [text, count] : kSixty) {
    if (GetParam().chunk_bytes == 64) break;  // all messages are long then
    // Open MPI 4.1.4 packs negative strides in the wrong order (results/vendor-bugs).
    if (std::string(text).find("-5") != std::string::npos) continue;
    const Layout layout(text, count);
    auto out = layout.numbered(5), in = layout.room(-1), in_plain = layout.room(-1);
    MPI_Request plain = MPI_REQUEST_NULL;
    MPI_Irecv(layout.buffer(in_plain), count, layout.type(), previous_rank(), 1, MPI_COMM_WORLD,
              &plain);
    p2p.send(layout.buffer(out), count, layout.type(), next_rank(), 1);
    MPI_Wait(&plain, MPI_STATUS_IGNORE);
    EXPECT_EQ(in_plain, layout.received(5, layout.size())) << text;
    MPI_Isend(layout.buffer(out), count, layout.type(), next_rank(), 2, MPI_COMM_WORLD, &plain);
    p2p.recv(layout.buffer(in), count, layout.type(), previous_rank(), 2);
    MPI_Wait(&plain, MPI_STATUS_IGNORE);
    EXPECT_EQ(in, in_plain) << text;
  }
}

// Tells if MPI reports truncation. Open MPI 4.1.4 does not for a message from a rank to itself.
bool mpi_tells_of_truncation() {
  const Communicator own(MPI_COMM_WORLD);
  MPI_Comm_set_errhandler(own.get(), MPI_ERRORS_RETURN);
  const int out[] = {1, 2};
  int in = 0;
  MPI_Request receive = MPI_REQUEST_NULL;
  MPI_Irecv(&in, 1, MPI_INT, previous_rank(), 0, own.get(), &receive);
  MPI_Send(out, 2, MPI_INT, next_rank(), 0, own.get());
  return MPI_Wait(&receive, MPI_STATUS_IGNORE) != MPI_SUCCESS;
}

// A short message is MPI's own. If MPI does not report that it was too long, neither can we. A long
// message has our header, so its length is always checked.
TEST_P(EveryWay, RefusesMessagesThatAreTooLong) {
  const bool told = GetParam().chunk_bytes == 64 || mpi_tells_of_truncation();
  ASSERT_TRUE(told || world_size() == 1) << "between ranks, MPIs tell";
  const Communicator own(MPI_COMM_WORLD);
  MPI_Comm_set_errhandler(own.get(), MPI_ERRORS_RETURN);
  PointToPoint p2p(own.get(), options());
  const int count = GetParam().chunk_bytes == 64 ? 2000 : 2;
  const Layout source("vector(30,1,2,int)", count), target("vector(29,1,2,int)", count);
  auto out = source.numbered(1), in = target.room(-1);
  auto receive = p2p.irecv(target.buffer(in), count, target.type(), previous_rank(), 0);
  auto send = p2p.isend(source.buffer(out), count, source.type(), next_rank(), 0);
  if (!told) {
    EXPECT_NO_THROW(receive.wait());
    send.wait();
    return;
  }
  try {
    receive.wait();
    ADD_FAILURE() << "no error";
  } catch (const MpiError& error) {
    int error_class = 0;
    MPI_Error_class(error.code(), &error_class);
    EXPECT_EQ(error_class, MPI_ERR_TRUNCATE);
  }
  EXPECT_THROW(receive.wait(), MpiError);
  send.wait();
}

TEST_P(EveryWay, CountsInLargerUnitsBeyondTheLimit) {
  auto with = options();
  with.chunk_bytes = 0;
  with.mpi_count_limit = 100;
  PointToPoint p2p(MPI_COMM_WORLD, with);
  for (const int count : {5, 25, 49}) {
    const Layout layout("vector(2,1,3,int)", count);
    auto out = layout.numbered(1), in = layout.room(-1);
    auto receive = p2p.irecv(layout.buffer(in), count, layout.type(), previous_rank(), 0);
    p2p.send(layout.buffer(out), count, layout.type(), next_rank(), 0);
    EXPECT_EQ(receive.wait().bytes, 8 * count);
    EXPECT_EQ(in, layout.received(1, layout.size()));
  }
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const std::int64_t chunk : {std::int64_t{0}, std::int64_t{64}, std::int64_t{1} << 20}) {
    cases.push_back({MemoryKind::host, std::nullopt, chunk});
    cases.push_back({MemoryKind::managed, Transfer::host, chunk});
    for (const auto transfer : {Transfer::device, Transfer::one_shot, Transfer::staged})
      cases.push_back({MemoryKind::device, transfer, chunk});
  }
  return cases;
}

std::string name_of(const testing::TestParamInfo<Case>& info) {
  const auto& [kind, transfer, chunk] = info.param;
  auto text = std::string(name(kind)) + "_" + (transfer ? std::string(name(*transfer)) : "open") +
              "_" + std::to_string(chunk);
  std::replace(text.begin(), text.end(), '-', '_');
  return text;
}

INSTANTIATE_TEST_SUITE_P(PointToPoint, EveryWay, testing::ValuesIn(all_cases()), name_of);

// Partners may use different kinds of memory and different transfers.
TEST(PointToPoint, ConnectsDifferentKindsOfMemory) {
  const std::array kinds{MemoryKind::host, MemoryKind::device, MemoryKind::managed};
  Machine machine(kinds[static_cast<std::size_t>(world_rank()) % kinds.size()]);
  PointToPoint::Options options;
  options.resources = &machine.resources;
  options.gpu_aware_mpi = world_rank() % 2 == 0;
  options.chunk_bytes = 1000;
  PointToPoint p2p(MPI_COMM_WORLD, options);
  for (const int count : {1, 10, 1000}) {
    const Layout layout("vector(2,2,3,int)", count);
    auto out = layout.numbered(1), in = layout.room(-1);
    auto receive = p2p.irecv(layout.buffer(in), count, layout.type(), previous_rank(), 0);
    p2p.send(layout.buffer(out), count, layout.type(), next_rank(), 0);
    receive.wait();
    EXPECT_EQ(in, layout.received(1, layout.size()));
  }
}

TEST(PointToPoint, ChoosesATransferForEachMessage) {
  const Layout small("vector(2,1,3,int)", 10), large("vector(2,1,3,int)", 200000),
      run("contiguous(10,int)", 10);
  auto buffer = large.room(0);
  const auto chosen = [&](const Layout& layout, MemoryKind kind, bool aware,
                          std::optional<Transfer> wanted = std::nullopt) {
    Machine machine(kind);
    PointToPoint::Options options;
    options.resources = &machine.resources;
    options.gpu_aware_mpi = aware;
    options.transfer = wanted;
    PointToPoint p2p(MPI_COMM_WORLD, options);
    for (int i = 0; i < 2; ++i)
      EXPECT_EQ(p2p.transfer(buffer.data(), layout.count(), layout.type(), next_rank()),
                p2p.transfer(buffer.data(), layout.count(), layout.type(), MPI_ANY_SOURCE));
    return p2p.transfer(buffer.data(), layout.count(), layout.type(), next_rank());
  };
  EXPECT_EQ(chosen(small, MemoryKind::host, true), Transfer::host);
  EXPECT_EQ(chosen(small, MemoryKind::host, true, Transfer::staged), Transfer::host);
  EXPECT_EQ(chosen(small, MemoryKind::device, true), Transfer::device);
  EXPECT_EQ(chosen(small, MemoryKind::device, false), Transfer::one_shot);
  EXPECT_EQ(chosen(large, MemoryKind::device, false), Transfer::staged);
  EXPECT_EQ(chosen(large, MemoryKind::device, false, Transfer::one_shot), Transfer::one_shot);
  EXPECT_EQ(chosen(run, MemoryKind::device, true), Transfer::device);
  EXPECT_EQ(chosen(run, MemoryKind::managed, true), Transfer::host);
  EXPECT_EQ(chosen(run, MemoryKind::device, false), Transfer::one_shot);
  EXPECT_THROW(chosen(small, MemoryKind::device, false, Transfer::device), ConfigError);
  EXPECT_THROW(chosen(small, MemoryKind::device, true, Transfer::host), ConfigError);
}

// Chooses the transfer that is faster in the model for the length of the message.
TEST(PointToPoint, ChoosesByTheModel) {
  const auto pack = [](double slope) {
    return dtype::PackTable({{1, 1000000}, {4, 64}, {16}}, {1e-6, 1e-6, slope, slope}, "test");
  };
  const auto message = [](double latency) {
    return dtype::MessageTimes({{1, dtype::Curve({1, 1000000}, {latency, latency + 1e-4}, "test")}},
                               "test");
  };
  dtype::SystemModel model;
  model.launch_seconds = model.synchronize_seconds = 1e-6;
  model.host_messages = {message(1e-6), message(1e-6)};
  model.device_messages = {message(1e-5), message(1e-5)};
  model.device_packing = {pack(1e-5), pack(1e-5)};
  model.mapped_packing = {pack(1e-3), pack(1e-3)};
  Machine machine(MemoryKind::device);
  PointToPoint::Options options;
  options.resources = &machine.resources;
  options.gpu_aware_mpi = true;
  options.model = &model;
  PointToPoint p2p(MPI_COMM_WORLD, options);
  const Layout layout("vector(2,1,3,int)", 1);
  auto buffer = layout.room(0);
  EXPECT_EQ(p2p.transfer(buffer.data(), 1, layout.type(), 0), Transfer::one_shot);
  EXPECT_EQ(p2p.transfer(buffer.data(), 100000, layout.type(), 0), Transfer::device);
}

TEST(PointToPoint, DoesNothingWithoutPartnerOrData) {
  PointToPoint p2p(MPI_COMM_WORLD);
  const Layout layout("vector(2,1,3,int)", 1);
  auto buffer = layout.room(-1);
  p2p.send(layout.buffer(buffer), 1, layout.type(), MPI_PROC_NULL, 0);
  auto status = p2p.recv(layout.buffer(buffer), 1, layout.type(), MPI_PROC_NULL, 0);
  EXPECT_EQ(status.source, MPI_PROC_NULL);
  EXPECT_EQ(status.tag, MPI_ANY_TAG);
  EXPECT_EQ(status.bytes, 0);
  auto receive = p2p.irecv(layout.buffer(buffer), 1, layout.type(), previous_rank(), 0);
  p2p.send(nullptr, 0, layout.type(), next_rank(), 0);
  EXPECT_EQ(receive.wait().bytes, 0);
  auto nothing = p2p.irecv(nullptr, 0, layout.type(), previous_rank(), 0);
  p2p.send(nullptr, 0, layout.type(), next_rank(), 0);
  EXPECT_EQ(nothing.wait().source, previous_rank());
  EXPECT_EQ(buffer, layout.room(-1));
}

TEST(PointToPoint, CompletesRequestsThatAreDropped) {
  PointToPoint::Options options;
  options.chunk_bytes = 64;
  PointToPoint p2p(MPI_COMM_WORLD, options);
  auto layout = std::make_unique<Layout>("vector(2,1,3,int)", 1000);
  auto out = layout->numbered(1), in = layout->room(-1);
  const auto expected = layout->received(1, layout->size());
  {
    const auto receive = p2p.irecv(layout->buffer(in), 1000, layout->type(), previous_rank(), 0);
    const auto send = p2p.isend(layout->buffer(out), 1000, layout->type(), next_rank(), 0);
    layout.reset();  // frees the type
  }
  EXPECT_EQ(in, expected);
}

TEST(PointToPoint, RefusesWhatIsOutOfRange) {
  const auto refused = [](auto change) {
    PointToPoint::Options options;
    change(options);
    EXPECT_THROW(PointToPoint(MPI_COMM_WORLD, options), ConfigError);
  };
  refused([](auto& options) { options.chunk_bytes = 63; });
  refused([](auto& options) { options.chunk_bytes = -1; });
  refused([](auto& options) { options.mpi_count_limit = options.chunk_bytes; });
  refused([](auto& options) { options.chunks = 1; });
  if (world_size() > 1) refused([](auto& options) { options.chunk_bytes += world_rank(); });
  PointToPoint p2p(MPI_COMM_WORLD);
  int value = 0;
  EXPECT_THROW(p2p.send(&value, -1, MPI_INT, next_rank(), 0), ConfigError);
}

#ifdef MPI_2COMPLEX
// This type is predefined in this MPI but not in the standard, so we have no plan for it.
TEST(PointToPoint, LetsMpiSendWhatHasNoPlan) {
  MPI_Datatype raw = MPI_DATATYPE_NULL;
  MPI_Type_vector(2, 1, 2, MPI_2COMPLEX, &raw);  // 2 of 3 elements of 4 floats
  MPI_Type_commit(&raw);
  const Datatype type(raw);
  std::vector<float> out(12), in(12, -1);
  std::iota(out.begin(), out.end(), 1.0F);
  PointToPoint::Options options;
  options.chunk_bytes = 64;
  Machine machine(MemoryKind::device);
  options.resources = &machine.resources;
  options.gpu_aware_mpi = true;
  {
    PointToPoint p2p(MPI_COMM_WORLD, options);
    auto receive = p2p.irecv(in.data(), 1, type.get(), previous_rank(), 0);
    p2p.send(out.data(), 1, type.get(), next_rank(), 0);
    EXPECT_EQ(receive.wait().bytes, 32);
    for (std::size_t i = 0; i < in.size(); ++i) EXPECT_EQ(in[i], i / 4 == 1 ? -1 : out[i]) << i;
    EXPECT_THROW(p2p.send(out.data(), 3, type.get(), next_rank(), 0), ConfigError);
  }
  options.gpu_aware_mpi = false;
  PointToPoint p2p(MPI_COMM_WORLD, options);
  EXPECT_THROW(p2p.send(out.data(), 1, type.get(), next_rank(), 0), ConfigError);
}
#endif

TEST(MessageMemory, KeepsMemoryUpToItsLimit) {
  MessageMemory memory(2 * (512 + 64), MessageMemory::Users::one_thread);
  const HostBytes first(memory, 300), second(memory, 512 + 64), third(memory, 320 + 1);
  const auto* const spare = HostBytes(memory, 512).data();
  EXPECT_EQ(HostBytes(memory, 400).data(), spare);
  const HostBytes longer(memory, 2048);  // it is never kept, and so is not longer than asked for
  std::fill_n(second.data(), 512 + 64, std::byte{1});
  std::fill_n(longer.data(), 2048, std::byte{1});
}

TEST(MessageMemory, RefusesWhatNoSystemHas) {
  MessageMemory memory(1 << 20, MessageMemory::Users::all_threads);
  EXPECT_THROW(HostBytes(memory, std::size_t{1} << 62), std::bad_alloc);
}

#ifdef __SANITIZE_ADDRESS__  // it knows which memory the system has got back
TEST(MessageMemory, FreesWhatIsAboveItsLimit) {
  MessageMemory memory(2 * (512 + 64), MessageMemory::Users::all_threads);
  std::array<const std::byte*, 3> given{};
  {
    const HostBytes first(memory, 512), second(memory, 512), third(memory, 512);
    given = {first.data(), second.data(), third.data()};
  }
  const auto is_freed = [](const std::byte* at) { return __asan_address_is_poisoned(at) != 0; };
  EXPECT_EQ(std::ranges::count_if(given, is_freed), 1);
  memory.release();
  EXPECT_EQ(std::ranges::count_if(given, is_freed), 3);
}
#endif

TEST(PointToPoint, GivesBackWhatItTookOfTheDevice) {
  Machine machine(MemoryKind::device);
  const Layout layout("vector(2,1,3,int)", 1000);
  for (const auto transfer : {Transfer::device, Transfer::one_shot, Transfer::staged}) {
    PointToPoint::Options options;
    options.resources = &machine.resources;
    options.gpu_aware_mpi = true;
    options.transfer = transfer;
    options.chunk_bytes = 256;
    PointToPoint p2p(MPI_COMM_WORLD, options);
    for (int i = 0; i < 10; ++i) {
      auto out = layout.numbered(1), in = layout.room(-1);
      auto receive = p2p.irecv(layout.buffer(in), 1000, layout.type(), previous_rank(), 0);
      p2p.send(layout.buffer(out), 1000, layout.type(), next_rank(), 0);
      receive.wait();
      // A send and a receive have three slots each, staged in two memories each: 12 buffers. There
      // are no more with more messages. A message has 8,000 bytes.
      EXPECT_GT(machine.resources.kept_bytes(), 0u);
      EXPECT_LE(machine.resources.kept_bytes(), 12u * (256 + 32));
    }
    machine.resources.release_kept();
  }
  EXPECT_EQ(machine.device.bytes(), 0u);
}

}  // namespace
}  // namespace halocline::comm
