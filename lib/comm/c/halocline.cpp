// SPDX-License-Identifier: BSD-3-Clause
#include "comm/c/halocline.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "comm/c/errors.hpp"
#include "comm/c/handles.hpp"
#include "comm/c/memory.hpp"
#include "comm/exchange/exchange_plan.hpp"
#include "comm/mpi/communicator.hpp"
#include "dtype/model/system_model.hpp"
#include "dtype/pack/host/host_packer.hpp"
#include "dtype/pack/plan_table.hpp"
#include "support/mpi_check.hpp"

namespace halocline::c {

namespace {

// Has no destructor: the text must outlive all other objects of the thread.
thread_local char last_error[2048];

}  // namespace

int fail(int code, const char* text) noexcept {
  std::snprintf(last_error, sizeof last_error, "%s", text);
  return code;
}

void require_mpi() {
  int is_initialized = 0, is_finalized = 0;
  MPI_Initialized(&is_initialized);
  MPI_Finalized(&is_finalized);
  require(is_initialized != 0 && is_finalized == 0,
          "MPI is not running: call between MPI_Init and MPI_Finalize");
}

namespace {

// Duplicates a communicator so that its errors are returned.
class OwnCommunicator {
 public:
  explicit OwnCommunicator(MPI_Comm comm) : comm_(comm) {
    HALOCLINE_MPI(MPI_Comm_set_errhandler(comm_.get(), MPI_ERRORS_RETURN));
  }
  MPI_Comm get() const { return comm_.get(); }

 private:
  comm::Communicator comm_;
};

// Copies the members that the caller's header and this library both know. Members that only the
// library knows keep their defaults.
template <class Struct>
void copy_known(Struct& to, const Struct* from, const char* name) {
  require(from->size >= sizeof(std::size_t),
          (std::string(name) + ".size is not set: initialise the struct with its macro").c_str());
  require(from->size <= sizeof(Struct),
          (std::string(name) + " has more members than this library knows: use a library that is "
                               "as new as its header")
              .c_str());
  std::memcpy(static_cast<void*>(&to), from, from->size);
}

struct Plan {
  std::vector<std::shared_ptr<const comm::SharedWindow>> windows;
  comm::ExchangePlan plan;
  std::optional<comm::PendingExchange> pending;
};

Handles<Plan>& plans() {
  static auto* const all = new Handles<Plan>;
  return *all;
}

std::uintptr_t number_of(halocline_plan plan) {
  return reinterpret_cast<std::uintptr_t>(plan);
}

Plan& plan_of(halocline_plan plan) {
  auto* const found = plans().find(number_of(plan));
  if (found == nullptr)
    throw ConfigError(plan == nullptr
                          ? "the plan is NULL: make it with halocline_plan_create()"
                          : "the plan was freed: make a new one with halocline_plan_create()");
  return *found;
}

void check(int number, const halocline_message* messages, const char* what) {
  require(number >= 0,
          ("the number of " + std::string(what) + " is negative: give 0 or more").c_str());
  require(number == 0 || messages != nullptr,
          ("the array of " + std::string(what) + " is NULL: give as many as their number").c_str());
}

std::vector<comm::ExchangeJob> jobs_of(int sends, const halocline_message* send, int receives,
                                       const halocline_message* receive) {
  std::vector<comm::ExchangeJob> out;
  for (int i = 0; i < sends; ++i)
    out.push_back({.partner = send[i].partner,
                   .round = send[i].round,
                   .send_buffer = send[i].buffer,
                   .send_count = send[i].count,
                   .send_type = send[i].datatype,
                   .send_tag = send[i].tag});
  for (int i = 0; i < receives; ++i)
    out.push_back({.partner = receive[i].partner,
                   .round = receive[i].round,
                   .receive_buffer = receive[i].buffer,
                   .receive_count = receive[i].count,
                   .receive_type = receive[i].datatype,
                   .receive_tag = receive[i].tag});
  return out;
}

// Describes how a datatype is packed: by a plan, or by MPI.
const dtype::PackPlan* pack_plan_of(MPI_Datatype datatype) {
  require_mpi();
  require(datatype != MPI_DATATYPE_NULL,
          "the datatype is MPI_DATATYPE_NULL: give one that is made");
  return std::get_if<dtype::PackPlan>(&dtype::cached_plan(datatype));
}

std::int64_t packed_bytes(std::int64_t count, MPI_Datatype datatype) {
  require(count >= 0, "the count is negative: give 0 or more");
  if (const auto* const plan = pack_plan_of(datatype)) return plan->packed_bytes(count);
  MPI_Count size = 0;
  HALOCLINE_MPI(MPI_Type_size_x(datatype, &size));
  return count * size;
}

// Checks that the packed bytes of `count` instances fit behind `*position`. Returns their number.
std::int64_t checked_room(std::int64_t count, MPI_Datatype datatype, const void* packed,
                          std::int64_t bytes, const std::int64_t* position) {
  require(position != nullptr, "`position` is NULL: give the address of a number");
  const auto needed = packed_bytes(count, datatype);
  require(needed == 0 || packed != nullptr, "`packed` is NULL: give a buffer");
  if (*position < 0 || *position > bytes || needed > bytes - *position)
    throw ConfigError(std::to_string(needed) + " packed bytes do not fit behind position " +
                      std::to_string(*position) + " of " + std::to_string(bytes) +
                      " bytes: ask halocline_packed_bytes() for the length of the buffer");
  return needed;
}

int as_int(std::int64_t number) {
  require(number <= std::numeric_limits<int>::max(),
          "MPI packs this datatype, and takes less than 2 GiB at a time: pack fewer instances");
  return static_cast<int>(number);
}

}  // namespace
}  // namespace halocline::c

using namespace halocline;
using namespace halocline::c;

int halocline_version(void) {
  return HALOCLINE_VERSION;
}

const char* halocline_last_error(void) {
  return last_error;
}

int halocline_plan_create(MPI_Comm comm, const char* method, int sends,
                          const halocline_message* send, int receives,
                          const halocline_message* receive, const halocline_plan_options* options,
                          halocline_plan* plan) {
  return guarded([&] {
    require_mpi();
    require(comm != MPI_COMM_NULL, "the communicator is MPI_COMM_NULL: give one of all ranks");
    halocline_plan_options wanted = HALOCLINE_PLAN_OPTIONS;
    comm::Method chosen;
    std::vector<comm::ExchangeJob> jobs;
    std::optional<dtype::SystemModel> model;
    comm::collectively(comm, [&] {
      require(plan != nullptr, "`plan` is NULL: give the address of a handle");
      *plan = nullptr;
      require(method != nullptr, "`method` is NULL: give a name such as \"auto\"");
      chosen = comm::parse_method(method);
      if (options != nullptr) copy_known(wanted, options, "halocline_plan_options");
      if (wanted.model != nullptr)
        model = dtype::read_model(*wanted.model == '\0' ? dtype::default_model_path()
                                                        : std::string(wanted.model));
      check(sends, send, "sends");
      check(receives, receive, "receives");
      jobs = jobs_of(sends, send, receives, receive);
    });
    auto windows = windows_of(comm);
    comm::ExchangePlan::Options with;
    with.chunk_bytes = wanted.chunk_bytes;
    with.model = model ? &*model : nullptr;
    for (const auto& window : windows) with.windows.push_back(window.get());
    const OwnCommunicator own(comm);
    auto made = std::make_unique<Plan>(
        Plan{std::move(windows), comm::ExchangePlan(own.get(), jobs, chosen, with), std::nullopt});
    *plan = reinterpret_cast<halocline_plan>(plans().insert(std::move(made)));
  });
}

int halocline_start(halocline_plan plan) {
  return guarded([&] {
    auto& of = plan_of(plan);
    require(!of.pending, "an exchange of this plan is under way: finish it first");
    of.pending.emplace(of.plan.start());
  });
}

int halocline_progress(halocline_plan plan) {
  return guarded([&] {
    auto& of = plan_of(plan);
    if (of.pending) of.pending->progress();
  });
}

int halocline_finish(halocline_plan plan) {
  return guarded([&] {
    auto& of = plan_of(plan);
    require(of.pending.has_value(), "no exchange of this plan is under way: start it first");
    of.pending->finish();
    of.pending.reset();
  });
}

int halocline_test(halocline_plan plan, int* done) {
  return guarded([&] {
    require(done != nullptr, "`done` is NULL: give the address of a number");
    *done = 0;
    auto& of = plan_of(plan);
    require(of.pending.has_value(), "no exchange of this plan is under way: start it first");
    if (!of.pending->progress()) return;
    of.pending->finish();
    of.pending.reset();
    *done = 1;
  });
}

int halocline_plan_free(halocline_plan* plan) {
  return guarded([&] {
    require(plan != nullptr, "`plan` is NULL: give the address of a handle");
    if (*plan == nullptr) return;
    require_mpi();
    plan_of(*plan);
    plans().take(number_of(std::exchange(*plan, nullptr)));
  });
}

int halocline_plan_inform(halocline_plan plan, halocline_plan_info* info) {
  return guarded([&] {
    const auto& of = plan_of(plan).plan;
    require(info != nullptr, "`info` is NULL: give the address of a struct");
    halocline_plan_info all{
        .size = info->size,
        .method = comm::name(of.chosen()).data(),
        .transfer = dtype::name(of.transfer()).data(),
        .predicted_seconds = of.predicted_seconds().value_or(std::nan("")),
        .bytes_to_others = of.traffic().bytes_to_others,
        .bytes_to_self = of.traffic().bytes_to_self,
        .messages = of.traffic().messages,
    };
    std::memcpy(static_cast<void*>(info), &all, std::min(info->size, sizeof all));
  });
}

int halocline_packed_bytes(std::int64_t count, MPI_Datatype datatype, std::int64_t* bytes) {
  return guarded([&] {
    require(bytes != nullptr, "`bytes` is NULL: give the address of a number");
    *bytes = packed_bytes(count, datatype);
  });
}

int halocline_pack(const void* buffer, std::int64_t count, MPI_Datatype datatype, void* packed,
                   std::int64_t bytes, std::int64_t* position) {
  return guarded([&] {
    const auto needed = checked_room(count, datatype, packed, bytes, position);
    if (needed == 0) return;
    auto* const to = static_cast<std::byte*>(packed) + *position;
    if (const auto* const plan = pack_plan_of(datatype)) {
      dtype::HostPacker().pack(*plan, buffer, count, to);
    } else {
      int inside = 0;
      HALOCLINE_MPI(
          MPI_Pack(buffer, as_int(count), datatype, to, as_int(needed), &inside, MPI_COMM_SELF));
    }
    *position += needed;
  });
}

int halocline_unpack(const void* packed, std::int64_t bytes, std::int64_t* position, void* buffer,
                     std::int64_t count, MPI_Datatype datatype) {
  return guarded([&] {
    const auto needed = checked_room(count, datatype, packed, bytes, position);
    if (needed == 0) return;
    const auto* const from = static_cast<const std::byte*>(packed) + *position;
    if (const auto* const plan = pack_plan_of(datatype)) {
      dtype::HostPacker().unpack(*plan, from, buffer, count);
    } else {
      int inside = 0;
      HALOCLINE_MPI(MPI_Unpack(from, as_int(needed), &inside, buffer, as_int(count), datatype,
                               MPI_COMM_SELF));
    }
    *position += needed;
  });
}
