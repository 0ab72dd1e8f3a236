// SPDX-License-Identifier: BSD-3-Clause
// Tests MPI's interface with the interposer in front. Messages and collectives of random types must
// follow their type maps, gaps included. All other behaviour must be that of MPI alone. Some ranks
// may run with HALOCLINE_MPI=off.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "comm/interpose/test/layout.hpp"
#include "dtype/test/random_call.hpp"

namespace halocline {
namespace {

using namespace interpose::test;

#ifdef __SANITIZE_ADDRESS__
constexpr int kRandomTypes = 100, kCommits = 10000, kMessages = 1000;
#else
constexpr int kRandomTypes = 1000, kCommits = 1000000, kMessages = 20000;
#endif

bool some_rank_without_it() {
  const auto* const mode = std::getenv("HALOCLINE_MPI");
  int without = mode != nullptr && std::string(mode) == "engine" ? 0 : 1;
  MPI_Allreduce(MPI_IN_PLACE, &without, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  return without != 0;
}

// Calls f(layout, i) for random layouts that may be received, the same on all ranks. If MPI has to
// pack some of them, all are layouts that it packs rightly.
void for_random_layouts(int count, const std::function<void(const Layout&, int)>& f) {
  const bool mpi_too = some_rank_without_it();
  dtype::test::CallGenerator generator(20251123);
  for (int i = 0; i < count;) {
    const auto call = generator.next();
    // MPIs need not move the padding of long doubles.
    if (to_string(*call.expr).find("long_double") != std::string::npos) continue;
    const Layout layout(dtype::test::lowered(call.expr), call.count);
    // MPICH 5.0 divides by zero when it receives types without data from another rank.
    if (layout.bytes() == 0 || !layout.disjoint()) continue;
    if ((mpi_too || layout.is_one_run()) && !layout.mpi_is_right()) continue;
    f(layout, i++);
    if (testing::Test::HasFailure()) FAIL() << "at type " << i << ": " << to_string(*call.expr);
  }
}

// ---- Messages around the ring of all ranks

enum class Completion {
  sendrecv,
  waitall,
  waitall_ignore,
  waitany,
  waitsome,
  testall,
  testany,
  testsome,
  wait,
  test,
  get_status,
  free_send,
  persistent,
  persistent_single
};
constexpr int kCompletions = static_cast<int>(Completion::persistent_single) + 1;

// Completes both requests in that way. Returns the status of the receive, which is the first
// request.
MPI_Status complete(std::array<MPI_Request, 2>& requests, Completion how) {
  std::array<MPI_Status, 2> statuses{};
  int done = 0, index = 0;
  std::array<int, 2> indices{};
  switch (how) {
    case Completion::waitall_ignore:
      MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);
      break;
    case Completion::waitany:
      for (int i = 0; i < 2; ++i) {
        MPI_Status status;
        MPI_Waitany(2, requests.data(), &index, &status);
        statuses[static_cast<std::size_t>(index)] = status;
      }
      break;
    case Completion::waitsome:
    case Completion::testsome:
      for (int left = 2; left > 0; left -= done) {
        std::array<MPI_Status, 2> some{};
        if (how == Completion::waitsome)
          MPI_Waitsome(2, requests.data(), &done, indices.data(), some.data());
        else
          MPI_Testsome(2, requests.data(), &done, indices.data(), some.data());
        for (int i = 0; i < done; ++i)
          statuses[static_cast<std::size_t>(indices[static_cast<std::size_t>(i)])] =
              some[static_cast<std::size_t>(i)];
      }
      break;
    case Completion::testall:
      while (done == 0) MPI_Testall(2, requests.data(), &done, statuses.data());
      break;
    case Completion::testany:
      for (int left = 2; left > 0; left -= done) {
        MPI_Status status;
        MPI_Testany(2, requests.data(), &index, &done, &status);
        if (done != 0) statuses[static_cast<std::size_t>(index)] = status;
      }
      break;
    case Completion::wait:
    case Completion::persistent_single:
      MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
      MPI_Wait(&requests[0], &statuses[0]);
      break;
    case Completion::test:
      while (done == 0) MPI_Test(&requests[0], &done, &statuses[0]);
      for (done = 0; done == 0;) MPI_Test(&requests[1], &done, MPI_STATUS_IGNORE);
      break;
    default:
      MPI_Waitall(2, requests.data(), statuses.data());
  }
  return statuses[0];
}

void check_status(const MPI_Status& status, const Layout& layout, int tag) {
  int count = -1;
  MPI_Get_count(&status, layout.type(), &count);
  if (layout.bytes() > 0) {
    EXPECT_EQ(count, layout.count());
  }
  EXPECT_EQ(status.MPI_SOURCE, previous_rank());
  EXPECT_EQ(status.MPI_TAG, tag);
}

void around_the_ring(const Layout& layout, Completion how, int tag) {
  const auto comm = MPI_COMM_WORLD;
  auto sent = layout.filled(world_rank()), received = layout.poisoned();
  auto *const from = layout.buffer(sent), *const to = layout.buffer(received);
  const auto type = layout.type();
  const int count = layout.count();
  const auto expected = layout.received_from(previous_rank());
  // Every third receive is from any source.
  const int source = tag % 3 == 0 ? MPI_ANY_SOURCE : previous_rank();
  std::array<MPI_Request, 2> requests{};
  MPI_Status status{};

  if (how == Completion::sendrecv) {
    MPI_Sendrecv(from, count, type, next_rank(), tag, to, count, type, source, tag, comm, &status);
    EXPECT_PRED2(same, received, expected);
    return check_status(status, layout, tag);
  }
  if (how == Completion::persistent || how == Completion::persistent_single) {
    MPI_Recv_init(to, count, type, source, tag, comm, &requests[0]);
    MPI_Send_init(from, count, type, next_rank(), tag, comm, &requests[1]);
    for (int round = 0; round < 3; ++round) {
      std::fill(received.begin(), received.end(), kPoison);
      if (how == Completion::persistent)
        MPI_Startall(2, requests.data());
      else
        for (auto& request : requests) MPI_Start(&request);
      check_status(complete(requests, how), layout, tag);
      EXPECT_PRED2(same, received, expected);
      MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);  // both are inactive
      EXPECT_PRED2(same, received, expected);
    }
    for (auto& request : requests) {
      MPI_Request_free(&request);
      EXPECT_EQ(request, MPI_REQUEST_NULL);
    }
    return;
  }
  MPI_Irecv(to, count, type, source, tag, comm, &requests[0]);
  MPI_Isend(from, count, type, next_rank(), tag, comm, &requests[1]);
  if (how == Completion::free_send) {
    MPI_Request_free(&requests[1]);
    EXPECT_EQ(requests[1], MPI_REQUEST_NULL);
  }
  if (how == Completion::get_status) {
    for (int flag = 0; flag == 0;) MPI_Request_get_status(requests[0], &flag, &status);
    EXPECT_PRED2(same, received, expected);
    std::fill(received.begin(), received.end(), kPoison);  // the wait must leave it alone
  }
  const auto got = complete(requests, how);
  EXPECT_PRED2(same, received, how == Completion::get_status ? layout.poisoned() : expected);
  if (how != Completion::waitall_ignore) check_status(got, layout, tag);
  for (const auto request : requests) EXPECT_EQ(request, MPI_REQUEST_NULL);
}

TEST(Interposer, IsInFrontOfMpi) {
  Dl_info unpack{}, profiling{};
  ASSERT_NE(dladdr(dlsym(RTLD_DEFAULT, "MPI_Unpack"), &unpack), 0);
  ASSERT_NE(dladdr(dlsym(RTLD_DEFAULT, "PMPI_Unpack"), &profiling), 0);
  EXPECT_NE(unpack.dli_fbase, profiling.dli_fbase);
}

TEST(Packs, OfRandomTypesAreTheTypeMaps) {
  for_random_layouts(kRandomTypes, [](const Layout& layout, int i) {
    constexpr int kBefore = 5, kBehind = 7;
    auto memory = layout.filled(i);
    Memory expected(kBefore, kPoison);
    for (const auto byte : layout.packed(i)) expected.push_back(byte);
    expected.insert(expected.end(), kBehind, kPoison);
    const int size = kBefore + layout.bytes();
    for (int use = 0; use < enough_uses(); ++use) {
      Memory packed(expected.size(), kPoison);
      int position = kBefore;
      MPI_Pack(layout.buffer(memory), layout.count(), layout.type(), packed.data(), size, &position,
               MPI_COMM_WORLD);
      EXPECT_EQ(position, size);
      EXPECT_PRED2(same, packed, expected);
    }
    for (int use = 0; use < enough_uses(); ++use) {
      auto unpacked = layout.poisoned();
      int position = kBefore;
      MPI_Unpack(expected.data(), size, &position, layout.buffer(unpacked), layout.count(),
                 layout.type(), MPI_COMM_WORLD);
      EXPECT_EQ(position, size);
      EXPECT_PRED2(same, unpacked, layout.received_from(i));
    }
  });
}

// MPIs write what overlaps in orders of their own. A program must not see the order change.
TEST(Unpacks, OfInstancesThatOverlapAreThoseOfTheMpi) {
  // MPI calls such unpacks erroneous. In memory of a device kernels write the bytes, in no order
  // (safety.md). The runs with ordinary memory test it.
  if (Allocator<std::byte>::kind()) GTEST_SKIP() << "kernels write what overlaps in no order";
  constexpr int kRows = 128;
  MPI_Datatype column, shifted, type;
  MPI_Type_vector(kRows, 1, 2 * kRows, MPI_C_DOUBLE_COMPLEX, &column);
  MPI_Type_create_resized(column, 0, sizeof(std::complex<double>), &shifted);
  MPI_Type_contiguous(kRows, shifted, &type);
  MPI_Type_commit(&type);
  MPI_Aint lb, extent, true_lb, true_extent;
  MPI_Type_get_extent(type, &lb, &extent);
  MPI_Type_get_true_extent(type, &true_lb, &true_extent);
  for (const int count : {3, 5}) {
    Memory packed(static_cast<std::size_t>(count) * kRows * kRows * sizeof(std::complex<double>));
    for (std::size_t i = 0; i < packed.size(); ++i)
      packed[i] = static_cast<Memory::value_type>(7 * i + i / 251);
    const int size = static_cast<int>(packed.size());
    const auto unpacked_by = [&](auto&& unpack) {
      Memory out(static_cast<std::size_t>(true_extent + (count - 1) * extent), kPoison);
      int position = 0;
      unpack(packed.data(), size, &position, out.data(), count, type, MPI_COMM_WORLD);
      EXPECT_EQ(position, size);
      return out;
    };
    const auto expected = unpacked_by(PMPI_Unpack);
    for (int use = 0; use < enough_uses(); ++use)
      ASSERT_PRED2(same, unpacked_by(MPI_Unpack), expected) << "use " << use << " of " << count;
  }
  MPI_Type_free(&type);
  MPI_Type_free(&shifted);
  MPI_Type_free(&column);
}

TEST(Messages, OfRandomTypesAreTheTypeMaps) {
  for_random_layouts(kRandomTypes, [](const Layout& layout, int i) {
    for (int use = 0; use < enough_uses(); ++use)
      around_the_ring(layout, static_cast<Completion>((i + use) % kCompletions), i);
  });
}

// The message is so long that MPI waits for the receiver.
TEST(Messages, ThatAreLongAreTheTypeMaps) {
  const Layout layout("hvector(3000,1,80,vector(4,1,2,double))", 2);
  for (int how = 0; how < kCompletions; ++how)
    around_the_ring(layout, static_cast<Completion>(how), how);
}

TEST(Messages, MatchPackedOnes) {
  for_random_layouts(kRandomTypes / 10, [](const Layout& layout, int i) {
    auto sent = layout.filled(world_rank()), received = layout.poisoned();
    auto packed = layout.packed(world_rank());
    const auto expected = layout.packed(previous_rank());
    Memory arrived(expected.size());
    // Typed to packed, then packed to typed.
    MPI_Sendrecv(layout.buffer(sent), layout.count(), layout.type(), next_rank(), i, arrived.data(),
                 layout.bytes(), MPI_PACKED, previous_rank(), i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    EXPECT_PRED2(same, arrived, expected);
    MPI_Sendrecv(packed.data(), layout.bytes(), MPI_PACKED, next_rank(), i, layout.buffer(received),
                 layout.count(), layout.type(), previous_rank(), i, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    EXPECT_PRED2(same, received, layout.received_from(previous_rank()));
  });
}

TEST(Messages, MayBeShorterThanTheirReceive) {
  const Layout room("vector(5,2,3,int)", 4);
  for (int ints = 0; ints <= 40; ++ints) {
    std::vector<int> sent(40);
    std::iota(sent.begin(), sent.end(), 100 * world_rank());
    auto received = room.poisoned();
    MPI_Status status;
    MPI_Sendrecv(sent.data(), ints, MPI_INT, next_rank(), 0, room.buffer(received), room.count(),
                 room.type(), previous_rank(), 0, MPI_COMM_WORLD, &status);
    std::iota(sent.begin(), sent.end(), 100 * previous_rank());
    Memory packed(160);
    std::copy_n(reinterpret_cast<const std::byte*>(sent.data()), packed.size(), packed.begin());
    EXPECT_PRED2(same, received, room.received(packed, 4 * ints)) << ints;
    int count = -1, elements = -1;
    MPI_Get_count(&status, room.type(), &count);
    MPI_Get_elements(&status, room.type(), &elements);
    EXPECT_EQ(count, ints % 10 == 0 ? ints / 10 : MPI_UNDEFINED);
    EXPECT_EQ(elements, ints);
  }
}

TEST(Messages, ToAndFromNobodyChangeNothing) {
  const Layout layout("vector(5,2,3,int)", 4);
  auto memory = layout.filled(1);
  const auto before = memory;
  MPI_Status status;
  MPI_Send(layout.buffer(memory), layout.count(), layout.type(), MPI_PROC_NULL, 0, MPI_COMM_WORLD);
  MPI_Recv(layout.buffer(memory), layout.count(), layout.type(), MPI_PROC_NULL, 0, MPI_COMM_WORLD,
           &status);
  EXPECT_PRED2(same, memory, before);
  EXPECT_EQ(status.MPI_SOURCE, MPI_PROC_NULL);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Irecv(layout.buffer(memory), layout.count(), layout.type(), MPI_PROC_NULL, 0, MPI_COMM_WORLD,
            &request);
  MPI_Wait(&request, &status);
  EXPECT_PRED2(same, memory, before);
}

TEST(Messages, ThatAreProbedHaveTheirLength) {
  const Layout layout("vector(5,2,3,int)", 4);
  auto sent = layout.filled(world_rank()), received = layout.poisoned();
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Isend(layout.buffer(sent), layout.count(), layout.type(), next_rank(), 7, MPI_COMM_WORLD,
            &request);
  MPI_Status status;
  MPI_Probe(MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &status);
  check_status(status, layout, 7);
  MPI_Recv(layout.buffer(received), layout.count(), layout.type(), status.MPI_SOURCE, 7,
           MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  EXPECT_PRED2(same, received, layout.received_from(previous_rank()));
}

TEST(Messages, OutliveTheirTypes) {
  auto layout = std::make_optional<Layout>("hvector(3000,1,80,vector(4,1,2,double))", 2);
  auto sent = layout->filled(world_rank()), received = layout->poisoned();
  const auto expected = layout->received_from(previous_rank());
  std::array<MPI_Request, 2> requests{};
  MPI_Irecv(layout->buffer(received), 2, layout->type(), previous_rank(), 0, MPI_COMM_WORLD,
            &requests[0]);
  MPI_Isend(layout->buffer(sent), 2, layout->type(), next_rank(), 0, MPI_COMM_WORLD, &requests[1]);
  layout.reset();
  const Layout other("hvector(3000,1,88,vector(4,1,2,double))", 2);  // perhaps gets the same handle
  MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);
  EXPECT_PRED2(same, received, expected);
}

// The buffer is MPI_BOTTOM: the type has the addresses.
TEST(Messages, OfAbsoluteAddressesAreTheTypeMaps) {
  const Layout layout("vector(500,3,5,double)", 2);
  auto sent = layout.filled(world_rank()), received = layout.poisoned();
  const auto at = [&](Memory& memory) {
    MPI_Aint address = 0;
    const int one = 1;
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Get_address(layout.buffer(memory), &address);
    MPI_Type_create_hindexed(1, &one, &address, layout.type(), &type);
    const dtype::Datatype inner(type);
    MPI_Type_create_resized(type, 0, 0, &type);  // a second instance would be at the same place
    MPI_Type_commit(&type);
    return dtype::Datatype(type);
  };
  const auto from = at(sent), to = at(received);
  const auto expected = layout.received(layout.packed(previous_rank()), layout.bytes() / 2);
  for (int use = 0; use < 4; ++use) {
    std::fill(received.begin(), received.end(), kPoison);
    MPI_Sendrecv(MPI_BOTTOM, 1, from.get(), next_rank(), 0, MPI_BOTTOM, 1, to.get(),
                 previous_rank(), 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    EXPECT_PRED2(same, received, expected);
  }
  Memory packed(static_cast<std::size_t>(layout.bytes() / 2));
  int position = 0;
  MPI_Pack(MPI_BOTTOM, 1, from.get(), packed.data(), layout.bytes() / 2, &position, MPI_COMM_SELF);
  auto whole = layout.packed(world_rank());
  whole.resize(packed.size());
  EXPECT_PRED2(same, packed, whole);
  std::fill(received.begin(), received.end(), kPoison);
  position = 0;
  MPI_Unpack(packed.data(), layout.bytes() / 2, &position, MPI_BOTTOM, 1, to.get(), MPI_COMM_SELF);
  EXPECT_PRED2(same, received, layout.received(packed, layout.bytes() / 2));
}

// Waits for other requests return while a watched request is pending. Its message arrives later.
TEST(Messages, ArriveAfterOthersThatWereWaitedFor) {
  const Layout layout("vector(500,2,3,int)", 4);
  auto sent = layout.filled(world_rank()), received = layout.poisoned();
  MPI_Request ours = MPI_REQUEST_NULL;
  MPI_Irecv(layout.buffer(received), 4, layout.type(), previous_rank(), 1, MPI_COMM_WORLD, &ours);
  for (int i = 0; i < 1000; ++i) {
    const int mine = 1000 * world_rank() + i;
    int others = -1;
    std::array<MPI_Request, 2> requests{};
    MPI_Irecv(&others, 1, MPI_INT, previous_rank(), 2, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(&mine, 1, MPI_INT, next_rank(), 2, MPI_COMM_WORLD, &requests[1]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);
    ASSERT_EQ(others, 1000 * previous_rank() + i);
  }
  EXPECT_PRED2(same, received, layout.poisoned());
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Send(layout.buffer(sent), 4, layout.type(), next_rank(), 1, MPI_COMM_WORLD);
  MPI_Wait(&ours, MPI_STATUS_IGNORE);
  EXPECT_PRED2(same, received, layout.received_from(previous_rank()));
}

TEST(Messages, ThatAreCancelledLeaveTheBufferAlone) {
  const Layout layout("vector(5,2,3,int)", 4);
  auto memory = layout.poisoned();
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Irecv(layout.buffer(memory), layout.count(), layout.type(), MPI_ANY_SOURCE, 99,
            MPI_COMM_WORLD, &request);
  MPI_Cancel(&request);
  MPI_Status status;
  MPI_Wait(&request, &status);
  int cancelled = 0;
  MPI_Test_cancelled(&status, &cancelled);
  EXPECT_NE(cancelled, 0);
  EXPECT_PRED2(same, memory, layout.poisoned());
}

TEST(Messages, LeaveNothingBehind) {
  const auto use_messages = [](int times) {
    for (int i = 0; i < times; ++i) {
      const Layout layout("vector(40,2,3,int)", 1 + i % 50);
      auto sent = layout.filled(world_rank()), received = layout.poisoned();
      std::array<MPI_Request, 2> requests{};
      MPI_Irecv(layout.buffer(received), layout.count(), layout.type(), previous_rank(), 0,
                MPI_COMM_WORLD, &requests[0]);
      MPI_Isend(layout.buffer(sent), layout.count(), layout.type(), next_rank(), 0, MPI_COMM_WORLD,
                &requests[1]);
      MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);
    }
  };
  expect_no_growth(kMessages, use_messages);
}

TEST(Messages, ThatPersistArriveAgainAfterTheirStatusWasSeen) {
  const Layout layout("vector(500,2,3,int)", 4);
  auto sent = layout.filled(world_rank()), received = layout.poisoned();
  std::array<MPI_Request, 2> requests{};
  MPI_Recv_init(layout.buffer(received), 4, layout.type(), previous_rank(), 0, MPI_COMM_WORLD,
                &requests[0]);
  MPI_Send_init(layout.buffer(sent), 4, layout.type(), next_rank(), 0, MPI_COMM_WORLD,
                &requests[1]);
  for (int round = 0; round < 3; ++round) {
    std::fill(received.begin(), received.end(), kPoison);
    MPI_Startall(2, requests.data());
    for (int flag = 0; flag == 0;) MPI_Request_get_status(requests[0], &flag, MPI_STATUS_IGNORE);
    EXPECT_PRED2(same, received, layout.received_from(previous_rank()));
    std::fill(received.begin(), received.end(), kPoison);
    MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);
    EXPECT_PRED2(same, received, layout.poisoned());
  }
  for (auto& request : requests) MPI_Request_free(&request);
}

#ifdef HALOCLINE_HAS_GET_STATUS_SOME
// When a call of MPI 4.1 reports a receive as complete, its data may be read. The later wait must
// leave them alone.
TEST(Messages, AreThereOnceAnyStatusSaysSo) {
  const Layout layout("vector(500,2,3,int)", 4);
  for (int how = 0; how < 3; ++how) {
    auto sent = layout.filled(world_rank()), received = layout.poisoned();
    MPI_Request send = MPI_REQUEST_NULL;
    std::array<MPI_Request, 2> requests{MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    std::array<MPI_Status, 2> statuses{};
    std::array<int, 2> indices{};
    MPI_Irecv(layout.buffer(received), 4, layout.type(), previous_rank(), 0, MPI_COMM_WORLD,
              &requests[1]);
    MPI_Isend(layout.buffer(sent), 4, layout.type(), next_rank(), 0, MPI_COMM_WORLD, &send);
    for (int done = 0; done == 0 || done == MPI_UNDEFINED;) {
      if (how == 0)
        MPI_Request_get_status_any(2, requests.data(), indices.data(), &done, statuses.data());
      if (how == 1) MPI_Request_get_status_all(2, requests.data(), &done, statuses.data());
      if (how == 2)
        MPI_Request_get_status_some(2, requests.data(), &done, indices.data(), statuses.data());
    }
    EXPECT_PRED2(same, received, layout.received_from(previous_rank())) << how;
    std::fill(received.begin(), received.end(), kPoison);
    MPI_Wait(&requests[1], statuses.data());
    EXPECT_PRED2(same, received, layout.poisoned()) << how;
    MPI_Wait(&send, MPI_STATUS_IGNORE);
  }
}
#endif

// After the send, only these calls follow. They deliver what has arrived.
TEST(Messages, ArriveWhoseRequestWasFreed) {
  const Layout layout("hvector(300,1,80,vector(4,1,2,double))", 2);
  auto sent = layout.filled(world_rank()), received = layout.poisoned();
  const auto expected = layout.received_from(previous_rank());
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Irecv(layout.buffer(received), 2, layout.type(), previous_rank(), 0, MPI_COMM_WORLD,
            &request);
  MPI_Request_free(&request);
  EXPECT_EQ(request, MPI_REQUEST_NULL);
  MPI_Send(layout.buffer(sent), 2, layout.type(), next_rank(), 0, MPI_COMM_WORLD);
  for (int i = 0; i < 1000000 && !same(received, expected); ++i) {
    int done = 0;
    MPI_Request none = MPI_REQUEST_NULL;
    MPI_Test(&none, &done, MPI_STATUS_IGNORE);
    MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &done, MPI_STATUS_IGNORE);
  }
  EXPECT_PRED2(same, received, expected);
}

// The receiver may be MPI alone. Open MPI 4.1 writes beyond its stack if packed bytes end inside of
// an element of 32 bytes.
TEST(Messages, OfLongElementsArrive) {
  // An MPI may be built without C's complex numbers: then no program can send them.
  if (MPI_C_LONG_DOUBLE_COMPLEX == MPI_DATATYPE_NULL) GTEST_SKIP() << "this MPI lacks the type";
  using Number = std::complex<long double>;
  for (const int blocks : {3, 300, 1000, 3001}) {
    const auto type = dtype::make_datatype(
        *dtype::parse_type("vector(" + std::to_string(blocks) + ",1,2,c_long_double_complex)"));
    const auto values = 2 * static_cast<std::size_t>(blocks);
    std::vector<Number, Allocator<Number>> sent(values), received(values);
    for (std::size_t i = 0; i < values; ++i)
      sent[i] = {static_cast<long double>(i), static_cast<long double>(world_rank())};
    for (int use = 0; use < 200; ++use) {
      std::array<MPI_Request, 2> requests{};
      MPI_Irecv(received.data(), 1, type.get(), previous_rank(), 0, MPI_COMM_WORLD, &requests[0]);
      MPI_Isend(sent.data(), 1, type.get(), next_rank(), 0, MPI_COMM_WORLD, &requests[1]);
      MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);
    }
    for (std::size_t i = 0; i < values; i += 2)
      ASSERT_EQ(received[i],
                Number(static_cast<long double>(i), static_cast<long double>(previous_rank())))
          << blocks;
  }
}

// Another message or a barrier may tell a program that a message has arrived whose receive it
// freed.
TEST(Messages, ArriveWhoseRequestWasFreedWithTheNextCall) {
  // MPICH alone may deliver such a message later than any of these calls.
  if (some_rank_without_it()) GTEST_SKIP() << "for the engine on all ranks";
  const Layout layout("hvector(300,1,80,vector(4,1,2,double))", 2);
  auto sent = layout.filled(world_rank());
  const auto expected = layout.received_from(previous_rank());
  const int next = next_rank(), previous = previous_rank();
  int number = 0, got = 0;
  const std::pair<const char*, std::function<void()>> calls[] = {
      {"barrier", [] { MPI_Barrier(MPI_COMM_WORLD); }},
      {"sendrecv",
       [&] {
         MPI_Sendrecv(&number, 1, MPI_INT, next, 1, &got, 1, MPI_INT, previous, 1, MPI_COMM_WORLD,
                      MPI_STATUS_IGNORE);
       }},
      {"wait",
       [&] {
         std::array<MPI_Request, 2> requests{};
         PMPI_Irecv(&got, 1, MPI_INT, previous, 1, MPI_COMM_WORLD, &requests[0]);
         PMPI_Isend(&number, 1, MPI_INT, next, 1, MPI_COMM_WORLD, &requests[1]);
         PMPI_Wait(&requests[1], MPI_STATUS_IGNORE);
         MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
       }},
      {"start",
       [&] {
         MPI_Request request_to_nobody = MPI_REQUEST_NULL;
         PMPI_Send_init(&number, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &request_to_nobody);
         MPI_Start(&request_to_nobody);
         PMPI_Wait(&request_to_nobody, MPI_STATUS_IGNORE);
         PMPI_Request_free(&request_to_nobody);
       }},
      {"ssend",
       [&] {
         MPI_Request request = MPI_REQUEST_NULL;
         PMPI_Irecv(&got, 1, MPI_INT, previous, 1, MPI_COMM_WORLD, &request);
         MPI_Ssend(&number, 1, MPI_INT, next, 1, MPI_COMM_WORLD);
         PMPI_Wait(&request, MPI_STATUS_IGNORE);
       }},
      {"iprobe",
       [&] {
         int flag = 0;
         MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
       }},
      {"pack",
       [&] {
         int position = 0;
         MPI_Pack(&number, 1, MPI_INT, &got, sizeof got, &position, MPI_COMM_WORLD);
       }},
      {"unpack",
       [&] {
         int position = 0;
         MPI_Unpack(&number, sizeof number, &position, &got, 1, MPI_INT, MPI_COMM_WORLD);
       }},
      {"bcast", [&] { MPI_Bcast(&number, 1, MPI_INT, 0, MPI_COMM_WORLD); }},
      {"allreduce", [&] { MPI_Allreduce(&number, &got, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD); }},
      {"reduce", [&] { MPI_Reduce(&number, &got, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD); }},
      {"scan", [&] { MPI_Scan(&number, &got, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD); }},
      {"gather",
       [&] {
         std::vector<int> all(static_cast<std::size_t>(world_size()));
         MPI_Gather(&number, 1, MPI_INT, all.data(), 1, MPI_INT, 0, MPI_COMM_WORLD);
       }},
      {"allgather",
       [&] {
         std::vector<int> all(static_cast<std::size_t>(world_size()));
         MPI_Allgather(&number, 1, MPI_INT, all.data(), 1, MPI_INT, MPI_COMM_WORLD);
       }},
      {"alltoall",
       [&] {
         std::vector<int> all(static_cast<std::size_t>(world_size())), from(all);
         MPI_Alltoall(all.data(), 1, MPI_INT, from.data(), 1, MPI_INT, MPI_COMM_WORLD);
       }},
      {"alltoallv", [&] {
         const auto ranks = static_cast<std::size_t>(world_size());
         std::vector<int> none(ranks), at(ranks);
         MPI_Alltoallv(&number, none.data(), at.data(), MPI_INT, &got, none.data(), at.data(),
                       MPI_INT, MPI_COMM_WORLD);
       }}};
  for (const auto& [name, call] : calls) {
    auto received = layout.poisoned();
    MPI_Request request = MPI_REQUEST_NULL, send = MPI_REQUEST_NULL;
    MPI_Irecv(layout.buffer(received), 2, layout.type(), previous, 0, MPI_COMM_WORLD, &request);
    MPI_Request_free(&request);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Isend(layout.buffer(sent), 2, layout.type(), next, 0, MPI_COMM_WORLD, &send);
    constexpr int kCalls = 50;  // MPI may need some calls to move a long message
    for (int i = 0; i < kCalls; ++i) {
      PMPI_Barrier(MPI_COMM_WORLD);  // afterwards, all ranks have sent
      call();
    }
    EXPECT_PRED2(same, received, expected) << name;
    MPI_Wait(&send, MPI_STATUS_IGNORE);
  }
}

// Each call that is only watched moves one number from this rank to itself.
TEST(Calls, ThatAreOnlyWatchedReachTheMpi) {
  const MPI_Comm self = MPI_COMM_SELF;
  const int number = 7, one = 1, zero = 0;
  int got = 0, flag = 0;
  const auto expect = [&](const char* name) {
    EXPECT_EQ(got, number) << name;
    got = 0;
  };
  MPI_Allreduce(&number, &got, 1, MPI_INT, MPI_SUM, self), expect("allreduce");
  MPI_Reduce(&number, &got, 1, MPI_INT, MPI_SUM, 0, self), expect("reduce");
  MPI_Reduce_scatter(&number, &got, &one, MPI_INT, MPI_SUM, self), expect("reduce_scatter");
  MPI_Reduce_scatter_block(&number, &got, 1, MPI_INT, MPI_SUM, self), expect("..._block");
  MPI_Scan(&number, &got, 1, MPI_INT, MPI_SUM, self), expect("scan");
  MPI_Exscan(&number, &got, 1, MPI_INT, MPI_SUM, self);
  got = number, MPI_Bcast(&got, 1, MPI_INT, 0, self), expect("bcast");
  MPI_Gather(&number, 1, MPI_INT, &got, 1, MPI_INT, 0, self), expect("gather");
  MPI_Gatherv(&number, 1, MPI_INT, &got, &one, &zero, MPI_INT, 0, self), expect("gatherv");
  MPI_Scatter(&number, 1, MPI_INT, &got, 1, MPI_INT, 0, self), expect("scatter");
  MPI_Scatterv(&number, &one, &zero, MPI_INT, &got, 1, MPI_INT, 0, self), expect("scatterv");
  MPI_Allgather(&number, 1, MPI_INT, &got, 1, MPI_INT, self), expect("allgather");
  MPI_Allgatherv(&number, 1, MPI_INT, &got, &one, &zero, MPI_INT, self), expect("allgatherv");
  MPI_Alltoall(&number, 1, MPI_INT, &got, 1, MPI_INT, self), expect("alltoall");

  MPI_Comm line = MPI_COMM_NULL, part = MPI_COMM_NULL;
  MPI_Dist_graph_create_adjacent(self, 1, &zero, MPI_UNWEIGHTED, 1, &zero, MPI_UNWEIGHTED,
                                 MPI_INFO_NULL, 0, &line);
  MPI_Neighbor_allgather(&number, 1, MPI_INT, &got, 1, MPI_INT, line), expect("n. allgather");
  MPI_Neighbor_allgatherv(&number, 1, MPI_INT, &got, &one, &zero, MPI_INT, line),
      expect("n. allgatherv");
  MPI_Neighbor_alltoall(&number, 1, MPI_INT, &got, 1, MPI_INT, line), expect("n. alltoall");
  MPI_Neighbor_alltoallv(&number, &one, &zero, MPI_INT, &got, &one, &zero, MPI_INT, line),
      expect("n. alltoallv");
  MPI_Comm_free(&line);
  MPI_Comm_split(self, 0, 0, &part);
  MPI_Comm_dup(part, &line);
  MPI_Barrier(line);
  MPI_Comm_free(&part);
  MPI_Comm_free(&line);

  const auto receive = [&](const char* name, auto&& send) {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Irecv(&got, 1, MPI_INT, 0, 3, self, &request);
    send();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect(name);
  };
  receive("ssend", [&] { MPI_Ssend(&number, 1, MPI_INT, 0, 3, self); });
  receive("rsend", [&] { MPI_Rsend(&number, 1, MPI_INT, 0, 3, self); });
  std::array<char, 100 + MPI_BSEND_OVERHEAD> room{};
  MPI_Buffer_attach(room.data(), static_cast<int>(room.size()));
  receive("bsend", [&] { MPI_Bsend(&number, 1, MPI_INT, 0, 3, self); });
  void* detached = nullptr;
  int size = 0;
  MPI_Buffer_detach(static_cast<void*>(&detached), &size);
  got = number;
  MPI_Sendrecv_replace(&got, 1, MPI_INT, 0, 3, 0, 3, self, MPI_STATUS_IGNORE);
  expect("sendrecv_replace");

  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Message message = MPI_MESSAGE_NULL;
  MPI_Status status;
  for (const bool waits : {true, false}) {
    MPI_Isend(&number, 1, MPI_INT, 0, 5, self, &request);
    MPI_Probe(0, 5, self, &status);
    EXPECT_EQ(status.MPI_TAG, 5);
    for (flag = 0; flag == 0;) MPI_Iprobe(0, 5, self, &flag, &status);
    if (waits)
      MPI_Mprobe(0, 5, self, &message, &status);
    else
      for (flag = 0; flag == 0;) MPI_Improbe(0, 5, self, &flag, &message, &status);
    MPI_Mrecv(&got, 1, MPI_INT, &message, &status);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect("mrecv");
  }

  MPI_Win window = MPI_WIN_NULL;
  int* memory = nullptr;  // from MPI, since Open MPI cannot make windows of other memory everywhere
  MPI_Win_allocate(sizeof *memory, sizeof *memory, MPI_INFO_NULL, self, static_cast<void*>(&memory),
                   &window);
  *memory = 0;
  const auto put = [&] { MPI_Put(&number, 1, MPI_INT, 0, 0, 1, MPI_INT, window); };
  MPI_Win_fence(0, window), put(), MPI_Win_fence(0, window);
  EXPECT_EQ(std::exchange(*memory, 0), number);
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window), put(), MPI_Win_flush(0, window);
  MPI_Win_flush_local(0, window);
  MPI_Win_unlock(0, window);
  EXPECT_EQ(std::exchange(*memory, 0), number);
  MPI_Win_lock_all(0, window), put(), MPI_Win_flush_all(window);
  MPI_Win_flush_local_all(window), MPI_Win_unlock_all(window);
  EXPECT_EQ(std::exchange(*memory, 0), number);
  MPI_Group group = MPI_GROUP_NULL;
  MPI_Comm_group(self, &group);
  for (const bool waits : {true, false}) {
    MPI_Win_post(group, 0, window), MPI_Win_start(group, 0, window), put();
    MPI_Win_complete(window);
    flag = 0;
    if (!waits) MPI_Win_test(window, &flag);  // Open MPI 4.1 moves nothing in it
    if (flag == 0) MPI_Win_wait(window);
    EXPECT_EQ(std::exchange(*memory, 0), number);
  }
  MPI_Group_free(&group);
  MPI_Win_free(&window);
}

#if MPI_VERSION >= 4
// Calls that count by ints are errors for such a type.
TEST(Types, OfLargeCountsArePackedAsAllOthers) {
  const Layout layout("vector(64,1,3,double)", 2);
  auto memory = layout.filled(0);
  for (int i = 0; i < 60; ++i) {
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Type_vector_c(64, 1, 3, MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    for (int use = 0; use < 5; ++use) {
      Memory packed(static_cast<std::size_t>(layout.bytes()));
      int position = 0;
      MPI_Pack(layout.buffer(memory), 2, type, packed.data(), layout.bytes(), &position,
               MPI_COMM_WORLD);
      ASSERT_PRED2(same, packed, layout.packed(0)) << i << ' ' << use;
    }
    MPI_Type_free(&type);
  }
}
#endif

// ---- Errors

int handled = 0;
void count_error(MPI_Comm*, int*, ...) {
  ++handled;
}

TEST(Errors, GoToTheHandlerOfTheCommunicator) {
  // If a rank sends to itself, Open MPI 4.1 does not notice a message that is too long. The runs
  // with two ranks and more test it.
  if (world_size() == 1) GTEST_SKIP() << "for two ranks and more";
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_create_errhandler(count_error, &handler);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, handler);
  const Layout longer("vector(6,2,3,int)", 4), shorter("vector(5,2,3,int)", 4);
  auto sent = longer.filled(world_rank()), received = shorter.poisoned();
  const auto errors_of = [&](auto* receive) {
    MPI_Request send = MPI_REQUEST_NULL;
    MPI_Isend(longer.buffer(sent), 4, longer.type(), next_rank(), 0, comm, &send);
    handled = 0;
    const int code = receive(shorter.buffer(received), 4, shorter.type(), previous_rank(), 0, comm,
                             MPI_STATUS_IGNORE);
    const std::pair out(class_of(code), handled);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    return out;
  };
  const auto of_mpi = errors_of(&PMPI_Recv), ours = errors_of(&MPI_Recv);
  EXPECT_EQ(ours, of_mpi);  // MPICH returns success once the handler has returned
  EXPECT_GT(ours.second, 0);
  MPI_Comm_free(&comm);
  MPI_Errhandler_free(&handler);
}

TEST(Errors, OfMessagesThatAreTooLongAreMpis) {
  // Open MPI 4.1 does not notice it if a rank sends packed bytes to itself. Two ranks test it.
  if (world_size() == 1) GTEST_SKIP() << "for two ranks and more";
  const ErrorsReturn errors_return;
  // If this is one run of 4 KiB or more, Open MPI 4.1 lets the kernel copy it all to a shorter one.
  const std::vector<int> sent(100000);
  const Layout shorter("vector(5,2,3,int)", 4);
  auto received = shorter.poisoned();
  // MPI_Waitall is not used: Open MPI 4.1 may hang in it with a request that has failed before.
  MPI_Request send = MPI_REQUEST_NULL, receive = MPI_REQUEST_NULL;
  MPI_Status status;
  const auto start = [&] {
    MPI_Isend(sent.data(), static_cast<int>(sent.size()), MPI_INT, next_rank(), 0, MPI_COMM_WORLD,
              &send);
  };
  // Returns the class of the receive's error, from the call or from the status.
  const auto complete = [&](int how) {
    int index = 0, done = 0, code = MPI_SUCCESS;
    status.MPI_ERROR = MPI_SUCCESS;
    while (code == MPI_SUCCESS && done == 0) {
      if (how == 0) code = MPI_Wait(&receive, &status);
      if (how == 1) code = MPI_Test(&receive, &done, &status);
      if (how == 2) code = MPI_Testall(1, &receive, &done, &status);
      if (how == 3) code = MPI_Waitany(1, &receive, &index, &status);
      if (how == 4) code = MPI_Testany(1, &receive, &index, &done, &status);
      if (how == 5) code = MPI_Waitsome(1, &receive, &done, &index, &status);
      if (how == 6) code = MPI_Testsome(1, &receive, &done, &index, &status);
    }
    return class_of(class_of(code) == MPI_ERR_IN_STATUS ? status.MPI_ERROR : code);
  };
  for (int how = 0; how < 7; ++how) {
    MPI_Irecv(shorter.buffer(received), 4, shorter.type(), previous_rank(), 0, MPI_COMM_WORLD,
              &receive);
    start();
    EXPECT_EQ(complete(how), MPI_ERR_TRUNCATE) << how;
    EXPECT_EQ(receive, MPI_REQUEST_NULL) << how;
    EXPECT_EQ(MPI_Wait(&send, MPI_STATUS_IGNORE), MPI_SUCCESS);
  }
  start();
  EXPECT_EQ(class_of(MPI_Recv(shorter.buffer(received), 4, shorter.type(), previous_rank(), 0,
                              MPI_COMM_WORLD, &status)),
            MPI_ERR_TRUNCATE);
  EXPECT_EQ(MPI_Wait(&send, MPI_STATUS_IGNORE), MPI_SUCCESS);
}

// The communicator's handler is called, and no request is left to be waited for.
TEST(Errors, OfNonblockingCallsAreMpis) {
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_create_errhandler(count_error, &handler);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, handler);
  const Layout layout("vector(5,2,3,int)", 4);
  auto memory = layout.filled(0);
  const auto errors_of = [&](auto* start) {
    handled = 0;
    MPI_Request request = MPI_REQUEST_NULL;
    const int code =
        start(layout.buffer(memory), 4, layout.type(), world_size() + 5, 0, comm, &request);
    return std::tuple(class_of(code), handled, request == MPI_REQUEST_NULL);
  };
  EXPECT_EQ(errors_of(&MPI_Isend), errors_of(&PMPI_Isend));
  EXPECT_EQ(errors_of(&MPI_Irecv), errors_of(&PMPI_Irecv));
  EXPECT_EQ(errors_of(&MPI_Send_init), errors_of(&PMPI_Send_init));
  EXPECT_EQ(errors_of(&MPI_Recv_init), errors_of(&PMPI_Recv_init));
  EXPECT_PRED2(same, memory, layout.filled(0));
  MPI_Comm_free(&comm);
  MPI_Errhandler_free(&handler);
}

// This holds also while watched requests are pending.
TEST(Errors, OfWrongCountsOfRequestsAreMpis) {
  const ErrorsReturn errors_return;
  const Layout layout("vector(5,2,3,int)", 4);
  auto memory = layout.poisoned();
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Irecv(layout.buffer(memory), 4, layout.type(), MPI_ANY_SOURCE, 98, MPI_COMM_WORLD, &request);
  int done = 0;
  EXPECT_NE(MPI_Waitall(-1, &request, MPI_STATUSES_IGNORE), MPI_SUCCESS);
  EXPECT_NE(MPI_Testall(-1, &request, &done, MPI_STATUSES_IGNORE), MPI_SUCCESS);
  EXPECT_EQ(MPI_Waitall(0, nullptr, MPI_STATUSES_IGNORE), MPI_SUCCESS);
  MPI_Cancel(&request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

// Requests that were started can be waited for, and all requests can be started again.
TEST(Errors, OfStartsLeaveRequestsUsable) {
  const ErrorsReturn errors_return;
  const Layout layout("vector(500,2,3,int)", 4);
  auto sent = layout.filled(world_rank()), received = layout.poisoned();
  std::array<MPI_Request, 3> requests{MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  MPI_Recv_init(layout.buffer(received), 4, layout.type(), previous_rank(), 0, MPI_COMM_WORLD,
                &requests[0]);
  MPI_Send_init(layout.buffer(sent), 4, layout.type(), next_rank(), 0, MPI_COMM_WORLD,
                &requests[1]);
  EXPECT_NE(MPI_Startall(3, requests.data()), MPI_SUCCESS);
  MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);
  for (int round = 0; round < 2; ++round) {
    std::fill(received.begin(), received.end(), kPoison);
    ASSERT_EQ(MPI_Startall(2, requests.data()), MPI_SUCCESS);
    MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);
    EXPECT_PRED2(same, received, layout.received_from(previous_rank()));
  }
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
}

// MPIs notice different errors: MPICH says nothing of a packed buffer that is too short.
TEST(Errors, OfWrongArgumentsAreMpis) {
  const ErrorsReturn errors_return;
  const Layout layout("vector(5,2,3,int)", 4);
  auto memory = layout.filled(0);
  Memory packed(1000);
  const auto pack = [&](auto* function, int count, MPI_Datatype type, int size, MPI_Comm comm) {
    int position = 8;
    const int code =
        function(layout.buffer(memory), count, type, packed.data(), size, &position, comm);
    return std::pair(class_of(code), position);
  };
  const auto as_mpi_packs = [&](int count, MPI_Datatype type, int size, MPI_Comm comm) {
    const auto got = pack(&MPI_Pack, count, type, size, comm);
    EXPECT_EQ(got, pack(&PMPI_Pack, count, type, size, comm));
    return got.first;
  };
  EXPECT_EQ(as_mpi_packs(4, layout.type(), 1000, MPI_COMM_WORLD), MPI_SUCCESS);
  as_mpi_packs(4, layout.type(), 8 + layout.bytes() - 1, MPI_COMM_WORLD);
  EXPECT_EQ(as_mpi_packs(-1, layout.type(), 1000, MPI_COMM_WORLD), MPI_ERR_COUNT);
  EXPECT_EQ(as_mpi_packs(4, MPI_DATATYPE_NULL, 1000, MPI_COMM_WORLD), MPI_ERR_TYPE);
  EXPECT_EQ(as_mpi_packs(4, layout.type(), 1000, MPI_COMM_NULL), MPI_ERR_COMM);
  const auto unpack = [&](auto* function, int size) {
    int position = 8;
    const int code = function(packed.data(), size, &position, layout.buffer(memory), 4,
                              layout.type(), MPI_COMM_WORLD);
    return std::pair(class_of(code), position);
  };
  for (const int size : {8 + layout.bytes(), 8 + layout.bytes() - 1, 0})
    EXPECT_EQ(unpack(&MPI_Unpack, size), unpack(&PMPI_Unpack, size)) << size;
  const auto send = [&](int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
    return class_of(MPI_Send(layout.buffer(memory), count, type, to, tag, comm));
  };
  EXPECT_EQ(send(4, layout.type(), world_size(), 0, MPI_COMM_WORLD), MPI_ERR_RANK);
  EXPECT_EQ(send(4, layout.type(), 0, -5, MPI_COMM_WORLD), MPI_ERR_TAG);
  EXPECT_EQ(send(4, layout.type(), 0, 0, MPI_COMM_NULL), MPI_ERR_COMM);
  EXPECT_EQ(send(-4, layout.type(), 0, 0, MPI_COMM_WORLD), MPI_ERR_COUNT);
  EXPECT_EQ(send(4, MPI_DATATYPE_NULL, 0, 0, MPI_COMM_WORLD), MPI_ERR_TYPE);
}

// Errors go to the communicator of the call, also if the type was asked for something before.
TEST(Errors, OfTypesOfCollectivesGoToTheirCommunicator) {
  MPI_Errhandler counter = MPI_ERRHANDLER_NULL;
  MPI_Comm_create_errhandler(count_error, &counter);
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_SELF, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Errhandler of_world = MPI_ERRHANDLER_NULL;
  MPI_Comm_get_errhandler(MPI_COMM_WORLD, &of_world);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, counter);
  const Layout layout("vector(5,2,3,int)", 1);
  auto memory = layout.filled(0), received = layout.poisoned();
  const int one = 1, at = 0;
  const MPI_Datatype null = MPI_DATATYPE_NULL, type = layout.type();
  handled = 0;
  for (const bool is_sent : {true, false}) {
    const auto& sent = is_sent ? null : type;
    const auto& got = is_sent ? type : null;
    EXPECT_EQ(class_of(MPI_Alltoallv(layout.buffer(memory), &one, &at, sent,
                                     layout.buffer(received), &one, &at, got, comm)),
              MPI_ERR_TYPE);
    EXPECT_EQ(class_of(MPI_Alltoallw(layout.buffer(memory), &one, &at, &sent,
                                     layout.buffer(received), &one, &at, &got, comm)),
              MPI_ERR_TYPE);
  }
  EXPECT_EQ(handled, 0);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, of_world);
  MPI_Errhandler_free(&of_world);
  MPI_Errhandler_free(&counter);
  MPI_Comm_free(&comm);
}

// A type that was not committed is an error, before and after another type of its handle was
// committed.
TEST(Errors, OfTypesThatAreNotCommittedAreMpis) {
  const ErrorsReturn errors_return;
  std::array<int, 20> memory{}, packed{};
  for (int i = 0; i < 10; ++i) {
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Type_vector(5, 2, 3, MPI_INT, &type);
    if (i % 2 == 0) MPI_Type_commit(&type);
    int position = 0;
    EXPECT_EQ(MPI_Pack(memory.data(), 1, type, packed.data(), sizeof(packed), &position,
                       MPI_COMM_WORLD) == MPI_SUCCESS,
              i % 2 == 0);
    MPI_Type_free(&type);
  }
}

// ---- Types

TEST(Types, OfOneHandleAreNotMistakenForEachOther) {
  std::array<int, 400> memory{}, packed{};
  std::iota(memory.begin(), memory.end(), 0);
  for (int i = 0; i < 1000; ++i) {
    const int stride = 2 + i % 7;
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Type_vector(50, 1, stride, MPI_INT, &type);
    MPI_Type_commit(&type);
    int position = 0;
    MPI_Pack(memory.data(), 1, type, packed.data(), sizeof(packed), &position, MPI_COMM_WORLD);
    ASSERT_EQ(position, 200);
    for (int k = 0; k < 50; ++k) ASSERT_EQ(packed[static_cast<std::size_t>(k)], k * stride);
    MPI_Type_free(&type);
  }
}

TEST(Types, ThatAreCopiedAreKnown) {
  std::array<int, 40> memory{}, packed{};
  std::iota(memory.begin(), memory.end(), 0);
  MPI_Datatype type = MPI_DATATYPE_NULL, copy = MPI_DATATYPE_NULL;
  MPI_Type_vector(10, 1, 3, MPI_INT, &type);
  MPI_Type_commit(&type);
  MPI_Type_dup(type, &copy);
  MPI_Type_free(&type);
  int position = 0;
  MPI_Pack(memory.data(), 1, copy, packed.data(), sizeof(packed), &position, MPI_COMM_WORLD);
  for (int k = 0; k < 10; ++k) EXPECT_EQ(packed[static_cast<std::size_t>(k)], 3 * k);
  MPI_Type_free(&copy);
}

TEST(Types, LeaveNothingBehind) {
  std::array<int, 40> memory{}, packed{};
  const auto use_types = [&](int times) {
    for (int i = 0; i < times; ++i) {
      MPI_Datatype type = MPI_DATATYPE_NULL;
      MPI_Type_vector(10, 1, 3 + i % 2, MPI_INT, &type);
      MPI_Type_commit(&type);
      int position = 0;
      MPI_Pack(memory.data(), 1, type, packed.data(), sizeof(packed), &position, MPI_COMM_WORLD);
      MPI_Type_free(&type);
    }
  };
  expect_no_growth(kCommits, use_types);
}

}  // namespace
}  // namespace halocline
