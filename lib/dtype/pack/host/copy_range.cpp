// SPDX-License-Identifier: BSD-3-Clause
// Copies a range of the packed stream by a plan, on the host. HostPacker calls it for all bytes of
// a message. copy_range() finds one of these ways:
//
//     one run                                copy_bytes() in copy_widths.hpp
//     one nest, one or several instances     a kernel of nest.cpp, chosen at the plan's first use
//     a small body that repeats              Copy::repeated(): part after part for a chunk
//     one list                               Copy::entries(): the loops of copy_lists.hpp
//     a part of a stream, and all else       detail::walk(), which visits these loops in turn
//
#include "dtype/pack/host/copy_range.hpp"

#include <algorithm>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "dtype/pack/host/copy_lists.hpp"
#include "dtype/pack/walk.hpp"

namespace halocline::dtype::host {

namespace {

using detail::Op;
using detail::Program;
using detail::StridedOp;

// Counts are at least 2: 61 levels would exceed any memory.
constexpr std::size_t kMostLevels = 64;

// Tells if a copy of `steps` steps of the highest level may follow the order of execution. Packing
// always may. Unpacking may if no byte is written twice.
template <CopyDirection kDirection>
bool may_reorder(const StridedOp& op, std::int64_t steps) {
  return kDirection == CopyDirection::pack || steps <= op.free_steps;
}

// Holds the levels of a box without those of one step. They are in packed order if the runs must
// not be reordered.
class BoxLevels {
 public:
  BoxLevels(const StridedOp& op, int height, std::int64_t count, bool may_reorder) {
    const auto add = [&](int k) {
      const auto& level = op.level(k);
      const auto steps = k == height ? count : level.count;
      if (steps != 1) levels_[size_++] = {steps, level.stride, level.packed_stride};
    };
    const auto first = may_reorder && op.innermost_height <= height ? op.innermost_height : 0;
    if (height >= 0) add(first);
    for (int k = 0; k <= height; ++k)
      if (k != first) add(k);
  }
  operator std::span<const LoopLevel>() const { return {levels_, size_}; }

 private:
  std::size_t size_ = 0;
  LoopLevel levels_[kMostLevels];
};

// Unpacks the runs of a nest in the order of the packed bytes, whatever the order of its levels.
void unpack_in_order(const Nest& nest, Address memory, Address packed) {
  LoopLevel levels[kMostLevels];
  const auto end = std::copy(nest.levels.begin(), nest.levels.end(), levels);
  std::sort(levels, end,
            [](const auto& a, const auto& b) { return a.packed_stride < b.packed_stride; });
  copy_nest<CopyDirection::unpack>({nest.run, {levels, nest.levels.size()}}, memory, packed);
}

struct NestKernels {
  NestKernel pack = nullptr, unpack = nullptr;

  template <CopyDirection kDirection>
  NestKernel get() const {
    return kDirection == CopyDirection::pack ? pack : unpack;
  }
};

// Holds the kernels of a plan's strided ops.
class PlanKernels {
 public:
  explicit PlanKernels(const Program& program) {
    const auto kernels_of = [](const Op& op, std::span<const LoopLevel> levels) {
      if (op.kind != Op::Kind::strided) return NestKernels{};
      const auto& strided = op.strided;
      const bool in_order =
          !strided.levels.empty() &&
          !may_reorder<CopyDirection::unpack>(strided, strided.level(strided.top()).count);
      const Nest nest{strided.run, levels};
      return NestKernels{choose_kernel<CopyDirection::pack>(nest),
                         in_order ? unpack_in_order : choose_kernel<CopyDirection::unpack>(nest)};
    };
    const auto& one = program.entry(1);
    instance_ = {one.strided.run, program.instance_levels()};
    instance_kernels_ = kernels_of(one, instance_.levels);
    op_kernels_.reserve(program.ops.size() + 1);
    op_kernels_.push_back(kernels_of(program.root, program.root.strided.levels));
    for (const auto& op : program.ops) op_kernels_.push_back(kernels_of(op, op.strided.levels));
  }

  // Copies one instance, if its entry is strided.
  template <CopyDirection kDirection>
  void copy_instance(Address memory, Address packed) const {
    instance_kernels_.get<kDirection>()(instance_, memory, packed);
  }
  // Returns the kernel that copies all of a strided op.
  template <CopyDirection kDirection>
  NestKernel of(const Program& program, const Op& op) const {
    const auto place = &op == &program.root ? 0 : &op - program.ops.data() + 1;
    return op_kernels_[static_cast<std::size_t>(place)].get<kDirection>();
  }

 private:
  Nest instance_;
  NestKernels instance_kernels_;
  std::vector<NestKernels> op_kernels_;  // of the root, then of all other ops
};

const PlanKernels& kernels_of(const Program& program) {
  return program.attachment.get<PlanKernels>(detail::Attachment::Backend::host, [&] {
    return std::make_shared<const PlanKernels>(program);
  });
}

template <CopyDirection kDirection>
struct Copy {
  const Program& program;
  Address buffer;
  Address packed;  // address of the begin of the stream: `first` bytes before the range to copy

  Address memory_at(std::int64_t displacement) const {
    return buffer + static_cast<Address>(displacement);
  }
  Address packed_at(std::int64_t offset) const { return packed + static_cast<Address>(offset); }

  // Tells if `repetitions` repetitions are copied part by part. With few repetitions, the loops of
  // the child are as fast. Parts that overlap are unpacked repetition by repetition, in the order
  // of the type map.
  static bool takes_parts(const Op& op, std::int64_t repetitions) {
    constexpr std::int64_t kFew = 4;  // fewer: entering the parts costs more than the caches save
    if (kDirection == CopyDirection::unpack &&
        std::min(op.chunk, repetitions) > op.free_repetitions)
      return false;
    return repetitions >= kFew || op.groups.size() + op.parts.size() == 1;
  }

  bool strided(const Op& op, std::int64_t displacement, std::int64_t offset, std::int64_t first,
               std::int64_t last) const {
    if (first == 0 && last == op.size) {
      const auto kernel = kernels_of(program).of<kDirection>(program, op);
      kernel({op.strided.run, op.strided.levels}, memory_at(displacement), packed_at(offset));
      return true;
    }
    return cut(op.strided, displacement, offset, first, last);
  }

  [[gnu::noinline]] bool cut(const StridedOp& op, std::int64_t displacement, std::int64_t offset,
                             std::int64_t first, std::int64_t last) const {
    return detail::cut(
        op, first, last,
        [&](std::int64_t inside, std::int64_t at, int height, std::int64_t count) {
          const auto steps = height == op.top() ? count : 1;
          copy_nest<kDirection>(
              {op.run, BoxLevels(op, height, count, may_reorder<kDirection>(op, steps))},
              memory_at(displacement + inside), packed_at(offset + at));
          return true;
        },
        [&](std::int64_t inside, std::int64_t at, std::int64_t bytes) {
          copy_bytes<kDirection>(bytes, memory_at(displacement + inside), packed_at(offset + at));
          return true;
        });
  }

  bool listed(const Op& op, std::int64_t displacement, std::int64_t offset, std::int64_t first,
              std::int64_t last) const {
    const auto memory = memory_at(displacement);
    if (first == 0 && last == op.size) {
      entries(op, 0, op.count, 0, memory, packed_at(offset));
      return true;
    }
    return cut_list(op, memory, offset, first, last);
  }

  [[gnu::noinline]] bool cut_list(const Op& op, Address memory, std::int64_t offset,
                                  std::int64_t first, std::int64_t last) const {
    return detail::cut_list(
        op, first, last,
        [&](std::int64_t i, std::int64_t j, std::int64_t at) {
          entries(op, i, j, at, memory, packed_at(offset + at));
          return true;
        },
        [&](std::int64_t inside, std::int64_t at, std::int64_t bytes) {
          copy_bytes<kDirection>(bytes, memory + static_cast<Address>(inside),
                                 packed_at(offset + at));
          return true;
        });
  }

  // Copies the entries [i, j) of a list. The first of them is `at` bytes into the list's packed
  // bytes. The loops are out of line, so that each call saves only the registers that it uses.
  static void entries(const Op& op, std::int64_t i, std::int64_t j, std::int64_t at, Address memory,
                      Address packed) {
    if (op.rule)
      entries_by_rule(op, i, j, memory, packed);
    else if (op.kind == Op::Kind::runs)
      runs_of_list(op, i, j, at, memory, packed);
    else
      blocks_of_list(op, i, j, memory, packed);
  }

  [[gnu::noinline]] static void blocks_of_list(const Op& op, std::int64_t i, std::int64_t j,
                                               Address memory, Address packed) {
    if (!op.near_displacements.empty())
      copy_blocks<kDirection>(op.child_size, part_of(op.near_displacements, i, j), memory, packed);
    else
      copy_blocks<kDirection>(op.child_size, part_of(op.displacements, i, j), memory, packed);
  }

  [[gnu::noinline]] static void runs_of_list(const Op& op, std::int64_t i, std::int64_t j,
                                             std::int64_t at, Address memory, Address packed) {
    const auto* displacement = op.displacements.data() + i;
    const auto* end = op.ends.data() + i;
    copy_runs<kDirection>(
        j - i,
        [displacement, end, at]() mutable {
          const auto begin = at;
          at = *end++;
          return RunAt{*displacement++, at - begin};
        },
        memory, packed);
  }

  [[gnu::noinline]] static void entries_by_rule(const Op& op, std::int64_t i, std::int64_t j,
                                                Address memory, Address packed) {
    const auto& rule = *op.rule;
    const auto unit = op.child_size, distance = rule.distance, own = rule.own, before = rule.before;
    auto at = rule.start + i * distance + rule.begin(i) * before;
    if (rule.ends == nullptr) {
      auto bytes = rule.length(i) * unit;
      copy_runs<kDirection>(
          j - i,
          [&] {
            return RunAt{std::exchange(at, at + distance),
                         std::exchange(bytes, bytes + rule.change * unit)};
          },
          memory, packed);
      return;
    }
    const auto* end = rule.ends->data() + i;
    auto begin = rule.begin(i);
    copy_runs<kDirection>(
        j - i,
        [&, end, begin, at]() mutable {
          const auto length = *end - begin;
          const RunAt run{at + length * own, length * unit};
          at += distance + length * before;
          begin = *end++;
          return run;
        },
        memory, packed);
  }

  [[gnu::noinline]] bool repeated(const Op& op, std::int64_t displacement, std::int64_t offset,
                                  std::int64_t repetitions) const {
    for (std::int64_t i = 0; i < repetitions; i += op.chunk) {
      const auto steps = std::min(op.chunk, repetitions - i);
      const auto memory = memory_at(displacement + i * op.stride);
      const auto at = packed_at(offset + i * op.child_size);
      for (const auto& group : op.groups)
        copy_group<kDirection>(group, {steps, op.stride, op.child_size}, memory, at);
      for (const auto& part : op.parts) {
        const BoxLevels levels(part, part.top(), steps, may_reorder<kDirection>(part, steps));
        copy_nest<kDirection>({part.run, levels}, memory + static_cast<Address>(part.displacement),
                              at + static_cast<Address>(part.packed_offset));
      }
    }
    return true;
  }

 private:
  template <class T>
  static std::span<const T> part_of(const std::vector<T>& list, std::int64_t first,
                                    std::int64_t last) {
    return std::span(list).subspan(static_cast<std::size_t>(first),
                                   static_cast<std::size_t>(last - first));
  }
};

// Copies the bytes [first, last) of the stream loop by loop. Needed for parts of a stream, and for
// lists and structs around other loops.
template <CopyDirection kDirection>
[[gnu::noinline]] void copy_by_walk(const Program& program, Address buffer, std::int64_t count,
                                    std::int64_t first, std::int64_t last, Address packed) {
  detail::walk(program, count, first, last,
               Copy<kDirection>{program, buffer, packed - static_cast<Address>(first)});
}

// Copies `repetitions` repetitions of a root part by part. It is out of line, like the functions
// beside it, so that copy_range() needs no stack for short packs.
template <CopyDirection kDirection>
[[gnu::noinline]] void copy_repetitions(const Program& program, const Op& root,
                                        std::int64_t repetitions, Address buffer, Address packed) {
  Copy<kDirection>{program, buffer, packed}.repeated(root, program.start, 0, repetitions);
}

// Copies one instance that is a nest.
template <CopyDirection kDirection>
[[gnu::noinline]] void copy_instance(const Program& program, Address memory, Address packed) {
  kernels_of(program).copy_instance<kDirection>(memory, packed);
}

// Copies all of a nest of several instances.
template <CopyDirection kDirection>
[[gnu::noinline]] void copy_instances(const Program& program, std::int64_t count, Address memory,
                                      Address packed) {
  const auto& strided = program.root.strided;
  const auto steps = strided.level(strided.top()).count * count;
  const BoxLevels levels(strided, strided.top(), steps, true);
  const auto kernel = may_reorder<kDirection>(strided, steps)
                          ? kernels_of(program).of<kDirection>(program, program.root)
                          : unpack_in_order;
  kernel({strided.run, levels}, memory, packed);
}

}  // namespace

void prepare(const PackPlan& plan) {
  kernels_of(plan.program());
}

template <CopyDirection kDirection>
void copy_range(const PackPlan& plan, Address buffer, std::int64_t count, std::int64_t first,
                std::int64_t last, Address packed) {
  if (first >= last) return;
  const auto& program = plan.program();
  const auto& root = program.entry(count);
  const auto memory = buffer + static_cast<Address>(program.start);
  const auto is_whole = [&] { return last - first == root.size * count; };
  if (root.kind == Op::Kind::strided) {
    if (root.strided.levels.empty())
      return copy_bytes<kDirection>(last - first, memory + static_cast<Address>(first), packed);
    if (is_whole())
      return count == 1 ? copy_instance<kDirection>(program, memory, packed)
                        : copy_instances<kDirection>(program, count, memory, packed);
  } else if (root.kind == Op::Kind::repeat && is_whole()) {
    if (root.chunk > 0 && Copy<kDirection>::takes_parts(root, root.count * count))
      return copy_repetitions<kDirection>(program, root, root.count * count, buffer, packed);
  } else if (count == 1 && is_list(root) && is_whole()) {
    return Copy<kDirection>::entries(root, 0, root.count, 0, memory, packed);
  }
  copy_by_walk<kDirection>(program, buffer, count, first, last, packed);
}

template <CopyDirection kDirection>
void copy_range(const FusedPlan& plan, std::int64_t first, std::int64_t last, Address packed) {
  const auto& jobs = plan.jobs();
  auto job = std::upper_bound(jobs.begin(), jobs.end(), first,
                              [](std::int64_t at, const auto& j) { return at < j.end; });
  for (; first < last; ++job) {
    const auto begin = job->end - job->bytes();
    const auto end = std::min(last, job->end);
    copy_range<kDirection>(job->plan, reinterpret_cast<Address>(job->buffer), job->count,
                           first - begin, end - begin,
                           packed + static_cast<Address>(job->packed_offset + first - begin));
    first = end;
  }
}

template void copy_range<CopyDirection::pack>(const PackPlan&, Address, std::int64_t, std::int64_t,
                                              std::int64_t, Address);
template void copy_range<CopyDirection::unpack>(const PackPlan&, Address, std::int64_t,
                                                std::int64_t, std::int64_t, Address);
template void copy_range<CopyDirection::pack>(const FusedPlan&, std::int64_t, std::int64_t,
                                              Address);
template void copy_range<CopyDirection::unpack>(const FusedPlan&, std::int64_t, std::int64_t,
                                                Address);

}  // namespace halocline::dtype::host
