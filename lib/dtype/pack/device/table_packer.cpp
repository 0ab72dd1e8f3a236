// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/pack/device/table_packer.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "support/once.hpp"

namespace halocline::dtype {

namespace {

using device::Address;
using device::CopyDirection;
using device::JobTable;
using device::LaunchArguments;
using device::TableJob;

constexpr int kAlignments = 5;  // of 1, 2, 4, 8 and 16 bytes

Address address(const void* pointer) {
  return reinterpret_cast<Address>(pointer);
}

// Below this number of words, a thread copies one word, so that all of a device takes part. Above,
// a thread has several loads under way.
constexpr std::uint64_t kWordsForBatches = std::uint64_t{1} << 19;

}  // namespace

/// Holds a table that is made at its first use.
struct TablePacker::ResidentTable {
  mutable Once once;
  mutable JobTable table;
  mutable std::shared_ptr<const void> resident;
};

/// Holds a plan for any count. Each alignment of the buffers has tables for one instance or any
/// number of instances, narrow or wide.
struct TablePacker::PlanState {
  explicit PlanState(const PackPlan& plan) : form(plan) {}
  device::DevicePlan form;
  std::shared_ptr<const void> tables;
  std::array<std::array<std::array<ResidentTable, 2>, 2>, kAlignments> by_alignment;
};

/// Holds a table for each alignment of the packed bytes.
struct TablePacker::FusedState {
  std::vector<TableJob> jobs;
  std::array<ResidentTable, kAlignments> by_alignment;
};

/// Holds one table for the jobs that are copied directly, and a plan for each side of the windowed
/// jobs.
struct TablePacker::CopyState {
  ResidentTable table;
  FusedPlan from, to;
  std::shared_ptr<const void> window;  // memory of the device for the packed bytes of these plans
};

const TablePacker::PlanState& TablePacker::state_of(const PackPlan& plan) const {
  return plan.program().attachment.get<PlanState>(backend(), [&] {
    auto state = std::make_shared<PlanState>(plan);
    if (const auto tables = state->form.tables(); !tables.empty()) state->tables = upload(tables);
    return state;
  });
}

// Jobs of one plan and count are one table job if their packed bytes are equal distances apart,
// whatever their buffers.
const TablePacker::FusedState& TablePacker::state_of(const FusedPlan& plan) const {
  return plan.attachment().get<FusedState>(backend(), [&] {
    auto state = std::make_shared<FusedState>();
    std::vector<const FusedPlan::Job*> firsts;
    for (const auto& job : plan.jobs()) {
      const auto continues = [&](std::size_t i) {
        const auto& table_job = state->jobs[i];
        const auto step = job.packed_offset - table_job.packed_offset;
        return table_job.count == job.count && firsts[i]->plan == job.plan &&
               (table_job.buffers.size() == 1 ||
                step == table_job.packed_step * std::ssize(table_job.buffers));
      };
      std::size_t i = 0;
      while (i < firsts.size() && !continues(i)) ++i;
      if (i == firsts.size()) {
        const auto& plan_state = state_of(job.plan);
        firsts.push_back(&job);
        state->jobs.push_back({.plan = &plan_state.form,
                               .tables = address(plan_state.tables.get()),
                               .count = job.count,
                               .buffers = {},
                               .packed_offset = job.packed_offset});
      } else if (state->jobs[i].buffers.size() == 1) {
        state->jobs[i].packed_step = job.packed_offset - state->jobs[i].packed_offset;
      }
      state->jobs[i].buffers.push_back(address(job.buffer));
    }
    return state;
  });
}

const TablePacker::CopyState& TablePacker::state_of(const CopyPlan& plan) const {
  const auto& program = plan.program();
  return program.attachment.get<CopyState>(backend(), [&] {
    auto state = std::make_shared<CopyState>();
    // The alignment is not limited: the leaves hold all addresses.
    const device::DevicePlan leaves(program);
    const TableJob straight{.plan = &leaves, .tables = 0, .count = 1, .buffers = {0}};
    if (!leaves.leaves().empty())
      resident(state->table, [&] {
        return device::make_table({&straight, 1}, std::int64_t{1} << (kAlignments - 1));
      });
    std::vector<PackJob> from, to;
    for (const auto& job : program.windowed) {
      from.push_back({job.source_plan, const_cast<void*>(job.source), job.source_count});
      to.push_back({job.destination_plan, job.destination, job.destination_count});
    }
    state->from = FusedPlan(from), state->to = FusedPlan(to);
    if (!from.empty()) {
      const std::vector<std::byte> window(static_cast<std::size_t>(state->to.packed_bytes()));
      state->window = upload(window);
    }
    return state;
  });
}

template <class Make>
const TablePacker::ResidentTable& TablePacker::resident(const ResidentTable& slot,
                                                        Make make) const {
  slot.once([&] {
    slot.table = make();
    auto& bytes = slot.table.bytes;
    if (const auto carried = argument_bytes(bytes.size()); carried > 0)
      bytes.resize(carried);
    else
      slot.resident = upload(bytes);
  });
  return slot;
}

void TablePacker::launch(const ResidentTable& slot, LaunchArguments call,
                         CopyDirection direction) const {
  call.words = slot.table.words * static_cast<std::uint64_t>(call.instances);
  if (call.words == 0) return;
  call.per_thread = call.words < kWordsForBatches ? 1 : device::kMaxBatch;
  const auto tile = std::uint64_t{call.per_thread} * device::kBlockThreads;
  launch(Launch{.table = slot.table,
                .resident = slot.resident.get(),
                .call = call,
                .direction = direction,
                .blocks = (call.words + tile - 1) / tile});
}

const TablePacker::ResidentTable& TablePacker::table_of(const PackPlan& plan, Address memory,
                                                        std::int64_t count, Address packed) const {
  const auto& state = state_of(plan);
  const auto log2 = device::word_log2(memory | packed);
  // 2^31 bytes may be 2^31 words, too many for a narrow table.
  const bool one = count == 1, many = plan.packed_bytes(count) >= std::int64_t{1} << 31;
  const auto& slot = state.by_alignment[static_cast<std::size_t>(log2)][one ? 1 : 0][many ? 1 : 0];
  return resident(slot, [&] {
    const TableJob job{.plan = &state.form,
                       .tables = address(state.tables.get()),
                       .count = one ? 1 : 0,
                       .buffers = {0}};
    return device::make_table({&job, 1}, std::int64_t{1} << log2, many);
  });
}

void TablePacker::copy(const PackPlan& plan, Address memory, std::int64_t count, Address packed,
                       CopyDirection direction) const {
  if (plan.packed_bytes(count) == 0) return;
  launch(table_of(plan, memory, count, packed),
         {.memory = memory, .packed = packed, .instances = count, .words = 0, .per_thread = 0},
         direction);
}

void TablePacker::copy(const FusedPlan& plan, Address packed, CopyDirection direction) const {
  if (plan.packed_bytes() == 0) return;
  const auto& state = state_of(plan);
  const auto log2 = device::word_log2(packed);
  const auto& table = resident(state.by_alignment[static_cast<std::size_t>(log2)], [&] {
    return device::make_table(state.jobs, std::int64_t{1} << log2);
  });
  launch(table, {.memory = 0, .packed = packed, .instances = 1, .words = 0, .per_thread = 0},
         direction);
}

void TablePacker::pack(const PackPlan& plan, const void* buffer, std::int64_t count,
                       void* packed) const {
  copy(plan, address(buffer), count, address(packed), CopyDirection::pack);
}
void TablePacker::unpack(const PackPlan& plan, const void* packed, void* buffer,
                         std::int64_t count) const {
  copy(plan, address(buffer), count, address(packed), CopyDirection::unpack);
}
void TablePacker::pack(const FusedPlan& plan, void* packed) const {
  copy(plan, address(packed), CopyDirection::pack);
}
void TablePacker::unpack(const FusedPlan& plan, const void* packed) const {
  copy(plan, address(packed), CopyDirection::unpack);
}

void TablePacker::copy(const CopyPlan& plan) const {
  if (plan.bytes() == 0) return;
  const auto& state = state_of(plan);
  launch(state.table, {.memory = 0, .packed = 0, .instances = 1, .words = 0, .per_thread = 0},
         CopyDirection::pack);
  const auto window = address(state.window.get());
  copy(state.from, window, CopyDirection::pack);
  copy(state.to, window, CopyDirection::unpack);
}

void TablePacker::prepare(const PackPlan& plan, const void* buffer, std::int64_t count,
                          const void* packed) const {
  if (plan.packed_bytes(count) != 0) table_of(plan, address(buffer), count, address(packed));
}

// Makes the table for a message buffer with the alignment that every allocator provides.
void TablePacker::prepare(const FusedPlan& plan) const {
  if (plan.packed_bytes() == 0) return;
  const auto& state = state_of(plan);
  resident(state.by_alignment.back(),
           [&] { return device::make_table(state.jobs, std::int64_t{1} << (kAlignments - 1)); });
}

void TablePacker::prepare(const CopyPlan& plan) const {
  if (plan.bytes() == 0) return;
  const auto& state = state_of(plan);
  prepare(state.from);
  prepare(state.to);
}

}  // namespace halocline::dtype
