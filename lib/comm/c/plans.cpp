// SPDX-License-Identifier: BSD-3-Clause
// Exchanges of halocline.h: plans of messages, and halos of Cartesian communicators.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "comm/c/common.hpp"
#include "comm/c/memory.hpp"
#include "comm/exchange/exchange_plan.hpp"
#include "comm/halo/cart_halo.hpp"
#include "dtype/model/system_model.hpp"
#include "support/narrow.hpp"

namespace halocline::c {

namespace {

static_assert(HALOCLINE_MAX_AXES == comm::kMostCartAxes);

using Windows = std::vector<std::shared_ptr<const comm::SharedWindow>>;

// Holds the addresses of a buffer: [begin, end).
struct Range {
  std::intptr_t begin, end;
};
using Ranges = std::vector<Range>;

// Tells if one of the buffers is in `memory`, at least in part.
bool is_used(const auto& memory, const Ranges& used) {
  const auto first = reinterpret_cast<std::intptr_t>(memory.data());
  return std::ranges::any_of(used, [&](const Range& one) {
    return one.begin < first + memory.bytes() && first < one.end;
  });
}

// A plan keeps the memory of halocline_alloc() that it uses: ordinary memory, and windows of its
// ranks.
struct Plan {
  Windows windows;
  std::vector<std::shared_ptr<const comm::PagedMemory>> memory;
  std::variant<comm::ExchangePlan, comm::CartHalo> made;
  std::optional<comm::PendingExchange> pending;

  comm::ExchangePlan& now() {
    auto* const halo = std::get_if<comm::CartHalo>(&made);
    return halo != nullptr ? halo->plan() : std::get<comm::ExchangePlan>(made);
  }
  comm::PendingExchange& started() {
    require(pending.has_value(), "no exchange of this plan is under way: start it first");
    return *pending;
  }
  void finish() {
    auto ending = std::move(started());
    pending.reset();  // also if this throws
    ending.finish();
  }
};

Plan& plan_of(halocline_plan plan) {
  return object_of<Plan>(plan, "plan", "halocline_plan_create() or halocline_halo_create()");
}

// Holds what both kinds of plans are made with.
struct Choice {
  comm::Method method;
  std::int64_t chunk_bytes = 0;
  std::optional<dtype::SystemModel> model;
};

// Checks and reads what both kinds of plans are made with. Local.
Choice choice_of(const char* method, const halocline_plan_options* options, halocline_plan* plan) {
  require(plan != nullptr, "`plan` is NULL: give the address of a handle");
  *plan = nullptr;
  require(method != nullptr, "`method` is NULL: give a name such as \"auto\"");
  halocline_plan_options wanted = HALOCLINE_PLAN_OPTIONS;
  if (options != nullptr) copy_known(wanted, options, "halocline_plan_options");
  Choice out{.method = comm::parse_method(method), .chunk_bytes = wanted.chunk_bytes, .model = {}};
  if (wanted.model != nullptr)
    out.model = dtype::read_model(*wanted.model == '\0' ? dtype::default_model_path()
                                                        : std::string(wanted.model));
  return out;
}

// Returns the windows that messages of some rank use, in one order. All ranks know these: another
// thread may be making or freeing some. Collective.
Windows common_windows(MPI_Comm comm, const Ranges& used) {
  auto mine = windows_of(comm);
  auto most = std::ssize(mine);
  HALOCLINE_MPI(MPI_Bcast(&most, 1, MPI_INT64_T, 0, comm));
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(most));
  for (std::size_t i = 0; i < std::min(numbers.size(), mine.size()); ++i)
    numbers[i] = mine[i]->number();
  const int count = checked_int(most, "number of allocations");
  HALOCLINE_MPI(MPI_Bcast(numbers.data(), count, MPI_INT64_T, 0, comm));
  Windows found;
  std::vector<int> is_known, uses;
  for (const auto number : numbers) {
    const auto at = std::ranges::find(mine, number, [](const auto& one) { return one->number(); });
    found.push_back(at != mine.end() ? *at : nullptr);
    const auto* const window = found.back().get();
    is_known.push_back(window != nullptr);
    uses.push_back(window != nullptr && is_used(*window, used));
  }
  HALOCLINE_MPI(MPI_Allreduce(MPI_IN_PLACE, is_known.data(), count, MPI_INT, MPI_MIN, comm));
  HALOCLINE_MPI(MPI_Allreduce(MPI_IN_PLACE, uses.data(), count, MPI_INT, MPI_MAX, comm));
  Windows out;
  for (std::size_t i = 0; i < found.size(); ++i)
    if (is_known[i] != 0 && uses[i] != 0) out.push_back(std::move(found[i]));
  return out;
}

// Returns the handle of the plan that `make(communicator, options)` makes. `used` has the addresses
// of this rank's messages. Collective.
template <class Make>
halocline_plan made_by(MPI_Comm comm, const Choice& choice, const Ranges& used, Make make) {
  auto windows = common_windows(comm, used);
  auto memory = ordinary_memory();
  std::erase_if(memory, [&](const auto& one) { return !is_used(*one, used); });
  comm::ExchangePlan::Options options;
  options.chunk_bytes = choice.chunk_bytes;
  options.model = choice.model ? &*choice.model : nullptr;
  for (const auto& window : windows) options.windows.push_back(window.get());
  const OwnCommunicator own(comm);
  return keep<halocline_plan>(std::make_unique<Plan>(
      Plan{std::move(windows), std::move(memory), make(own.get(), options), std::nullopt}));
}

// Throws ConfigError unless there can be `number` entries at `array`.
void require_array(int number, const void* array, const std::string& what) {
  require(number >= 0, ("the number of " + what + " is negative: give 0 or more").c_str());
  require(number == 0 || array != nullptr,
          ("the array of " + what + " is NULL: give as many as their number").c_str());
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

// Adds the addresses of a message, unless its arguments are wrong: the plan says so later.
void add_range(Ranges& out, const void* buffer, std::int64_t count, MPI_Datatype type) {
  if (count <= 0 || type == MPI_DATATYPE_NULL) return;
  MPI_Count size = 0, lower = 0, extent = 0, begin = 0, length = 0;
  HALOCLINE_MPI(MPI_Type_size_x(type, &size));
  if (size <= 0) return;
  HALOCLINE_MPI(MPI_Type_get_extent_x(type, &lower, &extent));
  HALOCLINE_MPI(MPI_Type_get_true_extent_x(type, &begin, &length));
  const std::int64_t others = checked_multiply(count - 1, extent);
  const auto first = reinterpret_cast<std::intptr_t>(buffer) + begin;
  out.push_back({first + std::min<std::int64_t>(others, 0),
                 first + length + std::max<std::int64_t>(others, 0)});
}

// The first field says how long all of them are in the caller's header.
std::vector<comm::CartField> fields_of(int fields, const halocline_field* field) {
  std::vector<comm::CartField> out;
  for (int i = 0; i < fields; ++i) {
    const auto* const bytes = reinterpret_cast<const std::byte*>(field);
    const auto* const given =
        reinterpret_cast<const halocline_field*>(bytes + static_cast<std::size_t>(i) * field->size);
    require(i == 0 || given->size == field->size,
            "the sizes of two fields differ: initialise all of them with HALOCLINE_FIELD");
    halocline_field known = HALOCLINE_FIELD;
    copy_known(known, given, "halocline_field");
    auto& one = out.emplace_back(comm::CartField{.buffer = known.buffer,
                                                 .swapped = known.swapped,
                                                 .element = known.element,
                                                 .order = known.order});
    std::copy_n(known.owned, HALOCLINE_MAX_AXES, one.owned.begin());
    std::copy_n(known.low, HALOCLINE_MAX_AXES, one.low.begin());
    std::copy_n(known.high, HALOCLINE_MAX_AXES, one.high.begin());
  }
  return out;
}

}  // namespace

bool is_live(halocline_plan plan) {
  return objects<Plan>().find(number_of(plan)) != nullptr;
}

}  // namespace halocline::c

using namespace halocline;
using namespace halocline::c;

int halocline_plan_create(MPI_Comm comm, const char* method, int sends,
                          const halocline_message* send, int receives,
                          const halocline_message* receive, const halocline_plan_options* options,
                          halocline_plan* plan) {
  return guarded([&] {
    require_communicator(comm);
    Choice choice;
    std::vector<comm::ExchangeJob> jobs;
    Ranges used;
    comm::collectively(comm, [&] {
      choice = choice_of(method, options, plan);
      require_array(sends, send, "sends");
      require_array(receives, receive, "receives");
      jobs = jobs_of(sends, send, receives, receive);
      for (const auto& job : jobs) {
        if (job.partner == MPI_PROC_NULL) continue;  // its type need not be one
        add_range(used, job.send_buffer, job.send_count, job.send_type);
        add_range(used, job.receive_buffer, job.receive_count, job.receive_type);
      }
    });
    *plan = made_by(comm, choice, used, [&](MPI_Comm own, const comm::ExchangePlan::Options& with) {
      return comm::ExchangePlan(own, jobs, choice.method, with);
    });
  });
}

int halocline_halo_create(MPI_Comm cart, const char* method, int fields,
                          const halocline_field* field, int most_axes,
                          const halocline_plan_options* options, halocline_plan* plan) {
  return guarded([&] {
    require_communicator(cart);
    Choice choice;
    std::vector<comm::CartField> all;
    Ranges used;
    comm::collectively(cart, [&] {
      choice = choice_of(method, options, plan);
      require_array(fields, field, "fields");
      all = fields_of(fields, field);
      for (const auto& one : all)
        for (const void* const array : {one.buffer, one.swapped})
          add_range(used, array, 1, MPI_BYTE);
    });
    *plan = made_by(cart, choice, used, [&](MPI_Comm own, const comm::ExchangePlan::Options& with) {
      return comm::CartHalo(own, all, choice.method, most_axes, with);
    });
  });
}

int halocline_swap(halocline_plan plan) {
  return guarded([&] {
    auto& of = plan_of(plan);
    auto* const halo = std::get_if<comm::CartHalo>(&of.made);
    require(halo != nullptr,
            "only a halo can swap its arrays: make the plan with halocline_halo_create()");
    require(!of.pending, "an exchange of this plan is under way: finish it first");
    halo->swap();
  });
}

int halocline_start(halocline_plan plan) {
  return guarded([&] {
    require_mpi();
    auto& of = plan_of(plan);
    require(!of.pending, "an exchange of this plan is under way: finish it first");
    of.pending.emplace(of.now().start());
  });
}

int halocline_progress(halocline_plan plan) {
  return guarded([&] {
    require_mpi();
    auto& of = plan_of(plan);
    if (of.pending) of.pending->progress();
  });
}

int halocline_finish(halocline_plan plan) {
  return guarded([&] {
    require_mpi();
    plan_of(plan).finish();
  });
}

int halocline_test(halocline_plan plan, int* done) {
  return guarded([&] {
    require(done != nullptr, "`done` is NULL: give the address of a number");
    *done = 0;
    require_mpi();
    auto& of = plan_of(plan);
    if (!of.started().progress()) return;
    of.finish();
    *done = 1;
  });
}

int halocline_plan_free(halocline_plan* plan) {
  return guarded([&] {
    require(plan != nullptr, "`plan` is NULL: give the address of a handle");
    if (*plan == nullptr) return;
    require_mpi();
    plan_of(*plan);
    objects<Plan>().take(number_of(std::exchange(*plan, nullptr)));
  });
}

int halocline_plan_inform(halocline_plan plan, halocline_plan_info* info) {
  return guarded([&] {
    const auto& of = plan_of(plan).now();
    require(info != nullptr, "`info` is NULL: give the address of a struct");
    constexpr std::size_t kMost = 4096;  // a struct without its macro has any size
    require(info->size >= sizeof(std::size_t) && info->size <= kMost,
            "halocline_plan_info.size is not set: initialise the struct with HALOCLINE_PLAN_INFO");
    halocline_plan_info all{
        .size = info->size,
        .method = comm::name(of.chosen()).data(),
        .transfer = dtype::name(of.transfer()).data(),
        .predicted_seconds = of.predicted_seconds().value_or(std::nan("")),
        .bytes_to_others = of.traffic().bytes_to_others,
        .bytes_to_self = of.traffic().bytes_to_self,
        .messages = of.traffic().messages,
    };
    const auto size = info->size;
    std::memset(static_cast<void*>(info), 0, size);  // members that this library does not know
    std::memcpy(static_cast<void*>(info), &all, std::min(size, sizeof all));
  });
}
