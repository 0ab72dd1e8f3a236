// SPDX-License-Identifier: BSD-3-Clause
// Tests ways to end a program with the interposer: comm_interpose_end WAY. Exit code 0 if
// everything that arrived was right, and no code ran that was unloaded or destroyed by then.
#include <dlfcn.h>
#include <mpi.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>
#include <vector>

namespace {

constexpr int kBlocks = 3000, kStride = 3;

// Never destroyed: some ways to end use it after main().
std::vector<int>& memory() {
  static auto& all = *new std::vector<int>(std::size_t{4} * kBlocks * kStride);
  return all;
}

std::atomic<int> failures{0};

void expect(bool is_right, const char* what) {
  if (is_right) return;
  std::fprintf(stderr, "wrong: %s\n", what);
  ++failures;
}

MPI_Datatype make_type(int blocks = kBlocks) {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_vector(blocks, 1, kStride, MPI_INT, &type);
  MPI_Type_commit(&type);
  return type;
}

struct Ring {
  Ring() {
    int rank = 0, ranks = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    next = (rank + 1) % ranks, last = (rank + ranks - 1) % ranks;
  }
  int next, last;
};

// Sends to the next rank, receives from the last one, packs and unpacks, `times` times.
void exchange(MPI_Datatype type, int times, int tag = 0) {
  const Ring ring;
  MPI_Count size = 0;
  MPI_Type_size_x(type, &size);
  const auto values = static_cast<std::size_t>(size) / sizeof(int);
  std::vector<int> sent(values * kStride), received(sent.size()), packed(values);
  for (int time = 0; time < times; ++time) {
    for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<int>(i) + time;
    MPI_Request requests[2];
    MPI_Irecv(received.data(), 1, type, ring.last, tag, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(sent.data(), 1, type, ring.next, tag, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    int position = 0;
    const auto bytes = static_cast<int>(size);
    MPI_Pack(received.data(), 1, type, packed.data(), bytes, &position, MPI_COMM_WORLD);
    for (std::size_t i = 0; i < values; ++i)
      if (packed[i] != static_cast<int>(i * kStride) + time) return expect(false, "a message");
    position = 0;
    MPI_Unpack(packed.data(), bytes, &position, received.data(), 1, type, MPI_COMM_WORLD);
  }
}

// ---- The ways

MPI_Datatype kept = MPI_DATATYPE_NULL;

void with_types_that_are_never_freed() {
  exchange(kept, 150);
  for (int blocks = 1; blocks < 400; ++blocks) make_type(blocks);
  MPI_Finalize();
}

// Leaves sends and receives that MPI completes in MPI_Finalize, with types that are freed by then.
// Leaves other requests that MPI never completes.
void with_requests_that_nobody_waits_for() {
  const Ring ring;
  exchange(kept, 150);
  auto* const out = memory().data();
  auto* const in = out + std::size_t{2} * kBlocks * kStride;
  for (int i = 0; i < 8; ++i) {
    auto type = make_type(kBlocks / 8);
    MPI_Request requests[2];
    MPI_Irecv(in + i * kBlocks / 8 * kStride, 1, type, ring.last, i, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out, 1, type, ring.next, i, MPI_COMM_WORLD, &requests[1]);
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
    MPI_Type_free(&type);
  }
  MPI_Request never[4];
  MPI_Irecv(in, 1, kept, ring.last, 99, MPI_COMM_WORLD, &never[0]);
  MPI_Recv_init(in, 1, kept, ring.last, 98, MPI_COMM_WORLD, &never[1]);
  MPI_Send_init(out, 1, kept, ring.next, 98, MPI_COMM_WORLD, &never[2]);
  MPI_Irecv(in, 1, kept, ring.last, 97, MPI_COMM_WORLD, &never[3]);
  MPI_Request_free(&never[3]);
  MPI_Type_free(&kept);
  MPI_Finalize();
}

void finalize_at_exit() {
  exchange(kept, 40);
  auto longer = make_type(2 * kBlocks);  // nothing is known of it yet
  exchange(longer, 150);
  MPI_Type_free(&longer);
  MPI_Type_free(&kept);
  MPI_Finalize();
  if (failures != 0) std::_Exit(1);
}

int use_at_the_end(MPI_Comm, int, void*, void*) {
  exchange(kept, 3);
  auto another = make_type(100);
  exchange(another, 30);
  MPI_Type_free(&another);
  MPI_Type_free(&kept);
  return MPI_SUCCESS;
}

// The attribute that was set first is deleted last.
void with_calls_in_finalize() {
  int keyval = MPI_KEYVAL_INVALID;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, use_at_the_end, &keyval, nullptr);
  MPI_Comm_set_attr(MPI_COMM_SELF, keyval, nullptr);
  kept = make_type();
  exchange(kept, 150);
  MPI_Finalize();
}

// One thread goes on while the program ends.
void with_threads() {
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i)
    threads.emplace_back([i] {
      auto type = make_type(kBlocks + i);
      exchange(type, 150, i);
      if (i == 0) MPI_Type_free(&type);
    });
  for (auto& thread : threads) thread.join();
  static std::atomic<bool> is_running{false};
  // This thread calls no MPI: Open MPI may crash in MPI_Finalized while MPI_Finalize runs.
  std::thread([] {
    for (;;) {
      is_running = true;
      std::this_thread::yield();
    }
  }).detach();
  while (!is_running) std::this_thread::yield();
  MPI_Finalize();
}

// The library is loaded and closed again, but MPI still has its callbacks.
template <class Function>
Function* function(void* library, const char* name) {
  auto* const found = reinterpret_cast<Function*>(dlsym(library, name));
  if (found == nullptr) std::_Exit(2);
  return found;
}
void with_a_library_that_is_closed() {
  void* const library = dlopen(HALOCLINE_TEST_INTERPOSER, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    std::_Exit(2);
  }
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_vector(kBlocks, 1, kStride, MPI_INT, &type);
  function<decltype(MPI_Type_commit)>(library, "MPI_Type_commit")(&type);
  int position = 0;
  std::vector<int> packed(kBlocks);
  function<decltype(MPI_Pack)>(library, "MPI_Pack")(memory().data(), 1, type, packed.data(),
                                                    kBlocks * int{sizeof(int)}, &position,
                                                    MPI_COMM_WORLD);
  dlclose(library);
  MPI_Type_free(&type);
  MPI_Finalize();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view way = argc > 1 ? argv[1] : "";
  if (way == "at-exit") std::atexit(finalize_at_exit);
  int level = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, way == "threads" ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
  if (way == "calls-in-finalize") {
    with_calls_in_finalize();
  } else if (way == "closed") {
    with_a_library_that_is_closed();
  } else {
    kept = make_type();
    if (way == "types-kept") {
      with_types_that_are_never_freed();
    } else if (way == "requests-left") {
      with_requests_that_nobody_waits_for();
    } else if (way == "at-exit") {
      exchange(kept, 150);
    } else if (way == "threads") {
      with_threads();
    } else {
      std::fprintf(stderr, "unknown way to end: %s\n", argv[1]);
      return 2;
    }
  }
  return failures == 0 ? 0 : 1;
}
