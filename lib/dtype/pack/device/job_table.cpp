// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/pack/device/job_table.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>

#include "support/contract.hpp"

namespace halocline::dtype::device {

namespace {

constexpr int kMaxWordLog2 = 4;
// Bytes that a device moves at least for an access, and bytes that a tile should have in a row.
constexpr std::int64_t kSectorBytes = 32, kTileBytes = 128;
// Words that a narrow table can number.
constexpr std::uint64_t kNarrowWords = std::uint64_t{1} << 31;

std::uint64_t bits(std::int64_t value) {
  return static_cast<std::uint64_t>(value);
}

// Holds a leaf in the order of its words, and the bitwise OR of all that moves the pointers.
struct Part {
  Leaf leaf;
  std::uint64_t alignment_bits;
  const TableJob* job;
  std::uint64_t words(int word_log2) const {
    auto words = static_cast<std::uint64_t>(leaf.run) >> word_log2;
    for (const auto& loop : leaf.loops) words *= static_cast<std::uint64_t>(loop.count);
    return words;
  }
};

std::uint64_t alignment_bits_of(const Leaf& leaf, const TableJob& job, std::int64_t alignment) {
  auto alignment_bits =
      bits(alignment) | bits(leaf.run) | bits(job.packed_offset + leaf.packed_offset);
  if (job.buffers.size() > 1) alignment_bits |= bits(job.packed_step);
  for (const auto buffer : job.buffers) alignment_bits |= buffer + bits(leaf.displacement);
  for (const auto& loop : leaf.loops)
    alignment_bits |= loop.alignment_bits | bits(loop.stride) | bits(loop.packed_stride);
  return alignment_bits;
}

// Splits `loop` into an inner loop of `inside` steps and an outer loop over these. `rest` is the
// number of steps that do not fill an inner loop.
struct Split {
  Loop inner, outer;
  std::int64_t rest;
};
Split split(const Loop& loop, std::int64_t inside) {
  auto inner = loop, outer = loop;
  inner.count = std::min(inside, loop.count);
  outer.count = loop.count / inner.count;
  outer.stride *= inner.count;
  outer.packed_stride *= inner.count;
  return {inner, outer, loop.count % inner.count};
}

Leaf cut_off(const Leaf& leaf, std::size_t loop, std::int64_t first, std::int64_t count) {
  auto out = leaf;
  auto& l = out.loops[loop];
  out.displacement += first * l.stride;
  out.packed_offset += first * l.packed_stride;
  l.count = count;
  if (count == 1) out.loops.erase(out.loops.begin() + static_cast<std::ptrdiff_t>(loop));
  return out;
}

// Adds a leaf, in tiles if packed order would make short accesses to memory. It would if the short
// stride belongs to another loop than the innermost one. Then words run in tiles of these two
// loops, with kTileBytes in a row on both sides. That is legal since loops carry their packed
// strides (errata B.1). Steps that do not fill tiles become a leaf of their own.
void add_tiled(const Leaf& leaf, bool any_count, std::vector<Leaf>& out) {
  const auto& loops = leaf.loops;
  // The count of the instances' loop is not known.
  const auto end = loops.size() - (any_count ? 1 : 0);
  std::size_t nearest = 0;
  for (std::size_t i = 0; i < end; ++i)
    if (loops[i].kind == LoopKind::strided &&
        std::abs(loops[i].stride) < std::abs(loops[nearest].stride))
      nearest = i;
  const bool tiles = nearest > 0 && loops[0].kind == LoopKind::strided && leaf.run < kSectorBytes &&
                     loops[nearest].stride != 0 && std::abs(loops[nearest].stride) < kSectorBytes;
  if (!tiles) return out.push_back(leaf);
  const auto side = [](std::int64_t stride) {
    return std::max<std::int64_t>(kTileBytes / std::abs(stride), 2);
  };
  const auto a = split(loops[0], side(loops[0].packed_stride));
  const auto b = split(loops[nearest], side(loops[nearest].stride));
  if (a.rest > 0) add_tiled(cut_off(leaf, 0, loops[0].count - a.rest, a.rest), any_count, out);
  const auto whole = a.rest > 0 ? cut_off(leaf, 0, 0, loops[0].count - a.rest) : leaf;
  if (b.rest > 0)
    add_tiled(cut_off(whole, nearest, loops[nearest].count - b.rest, b.rest), any_count, out);
  auto tiled = whole;
  tiled.loops = {a.inner, b.inner};
  for (std::size_t i = 0; i < loops.size(); ++i) {
    const auto& loop = i == 0 ? a.outer : i == nearest ? b.outer : loops[i];
    if (loop.count > 1 || (any_count && i + 1 == loops.size())) tiled.loops.push_back(loop);
  }
  out.push_back(std::move(tiled));
}

// Returns the leaves of a job in the order in which their words are numbered.
std::vector<Leaf> leaves_of(const TableJob& job) {
  const bool any_count = job.count == 0;
  std::vector<Leaf> out;
  for (auto leaf : job.plan->leaves()) {
    if (!any_count) leaf.loops.back().count *= job.count;
    // Drops loops of one step. A first loop that continues the run becomes part of the run.
    std::vector<Loop> loops;
    for (std::size_t i = 0; i < leaf.loops.size(); ++i) {
      auto& loop = leaf.loops[i];
      const bool open = any_count && i + 1 == leaf.loops.size();
      const bool strided = loop.kind == LoopKind::strided;
      const bool dense = strided && loop.stride == leaf.run && loop.packed_stride == leaf.run;
      if (strided && loop.count == 1 && !open) continue;
      if (loops.empty() && dense && !open)
        leaf.run *= loop.count;
      else
        loops.push_back(loop);
    }
    leaf.loops = std::move(loops);
    if (leaf.loops.empty())
      out.push_back(std::move(leaf));
    else
      add_tiled(leaf, any_count, out);
  }
  return out;
}

std::uint64_t words_of(const std::vector<Part>& parts) {
  std::uint64_t words = 0;
  for (const auto& part : parts)
    words += part.words(word_log2(part.alignment_bits)) * part.job->buffers.size();
  return words;
}

bool fits_narrow(const std::vector<Part>& parts) {
  using Near = std::numeric_limits<std::int32_t>;
  const auto near = [](std::int64_t stride) {
    return stride >= Near::min() && stride <= Near::max();
  };
  return std::all_of(parts.begin(), parts.end(), [&](const Part& part) {
    return std::all_of(part.leaf.loops.begin(), part.leaf.loops.end(), [&](const Loop& loop) {
      return near(loop.stride) && near(loop.packed_stride);
    });
  });
}

// Sets magic and shift so that n / count = n * magic >> shift for all n < 2^31. magic =
// ceil(2^shift / count) and 2^(shift - 31) >= count, so that the error is below 1 / count.
template <class Form>
void set_divisor(Level<Form>& level, std::int64_t count, bool last) {
  level.count = static_cast<typename Form::Index>(count);
  if (last) return;  // magic 0
  level.magic = 1;
  if constexpr (sizeof(typename Form::Index) == sizeof(std::uint32_t)) {
    const auto divisor = static_cast<std::uint64_t>(count);
    const auto log2 = static_cast<unsigned>(std::bit_width(divisor - 1));
    level.shift = static_cast<std::uint8_t>(31 + log2);
    level.magic =
        static_cast<std::uint32_t>(((std::uint64_t{1} << level.shift) + divisor - 1) / divisor);
  }
}

template <class Form>
class Writer {
 public:
  void add(const Part& part) {
    const auto& job = *part.job;
    const int log2 = word_log2(part.alignment_bits);
    Entry<Form> entry{};
    entry.displacement = part.leaf.displacement;
    entry.packed_offset = job.packed_offset + part.leaf.packed_offset;
    entry.packed_step = job.packed_step;
    words_ += part.words(log2) * job.buffers.size();
    entry.end = static_cast<typename Form::Index>(words_);
    entry.buffers = slots_of(job.buffers);
    entry.first_level = static_cast<std::uint32_t>(levels_.size());
    entry.word_log2 = static_cast<std::uint8_t>(log2);

    auto loops = part.leaf.loops;
    const auto word = std::int64_t{1} << log2;
    if (part.leaf.run > word || loops.empty())
      loops.insert(loops.begin(),
                   {.count = part.leaf.run / word, .stride = word, .packed_stride = word});
    const bool one_buffer = job.buffers.size() == 1;
    for (std::size_t i = 0; i < loops.size(); ++i)
      add_level(loops[i], one_buffer && i + 1 == loops.size(), job);
    entry.levels = static_cast<std::uint8_t>(loops.size());
    entry.is_linear = is_linear(loops, word, job);
    entries_.push_back(entry);
  }

  // Gives all entries the number of levels of the deepest entry.
  void even_out() {
    std::uint8_t most = 0;
    for (const auto& entry : entries_) most = std::max(most, entry.levels);
    std::vector<Level<Form>> levels;
    for (auto& entry : entries_) {
      const auto first = levels_.begin() + entry.first_level;
      entry.first_level = static_cast<std::uint32_t>(levels.size());
      levels.insert(levels.end(), first, first + entry.levels);
      Level<Form> none{};
      set_divisor(none, 1, false);
      levels.insert(levels.end(), static_cast<std::size_t>(most - entry.levels), none);
      entry.levels = most;
    }
    levels_ = std::move(levels);
  }

  // Tells if kernels can unroll the loops of these entries.
  bool can_unroll() const {
    const auto unrolled = [](const Entry<Form>& e) { return e.levels <= kMaxUnrolledLevels; };
    const auto strided = [](const Level<Form>& l) { return l.kind == LoopKind::strided; };
    return sizeof(typename Form::Index) == sizeof(std::uint32_t) &&
           std::all_of(entries_.begin(), entries_.end(), unrolled) &&
           std::all_of(levels_.begin(), levels_.end(), strided);
  }

  JobTable table() {
    JobTable out;
    out.wide = sizeof(typename Form::Index) > sizeof(std::uint32_t);
    out.words = words_;
    if (can_unroll()) {
      even_out();
      out.levels = entries_.front().levels;
    }
    for (std::size_t last = JobTable::kShortWalk; last < entries_.size(); ++last) {
      const auto first = last - JobTable::kShortWalk;
      out.words_of_walk =
          std::min<std::uint64_t>(out.words_of_walk, entries_[last].end - entries_[first].end);
    }
    Header header{static_cast<std::uint32_t>(entries_.size()), 0, 0};
    out.bytes.resize(kHeaderBytes);
    append(entries_, out.bytes);
    header.levels = append(levels_, out.bytes);
    header.slots = append(slots_, out.bytes);
    std::memcpy(out.bytes.data(), &header, sizeof(header));
    return out;
  }

 private:
  static constexpr std::size_t kHeaderBytes = 16;

  // Tells if word i of the entry is i words behind the first one in the packed bytes.
  static bool is_linear(const std::vector<Loop>& loops, std::int64_t word, const TableJob& job) {
    auto next = word;
    for (const auto& loop : loops) {
      if (loop.packed_stride != next) return false;
      next *= loop.count;
    }
    return job.buffers.size() == 1 || job.packed_step == next;
  }

  void add_level(const Loop& loop, bool last, const TableJob& job) {
    Level<Form> level{};
    level.stride = static_cast<typename Form::Offset>(loop.stride);
    level.packed_stride = static_cast<typename Form::Offset>(loop.packed_stride);
    level.kind = loop.kind;
    set_divisor(level, loop.count, last);
    const auto address = [&](std::int64_t offset) {
      return offset < 0 ? 0 : static_cast<std::int64_t>(job.tables) + offset;
    };
    switch (loop.kind) {
      case LoopKind::strided:
        break;
      case LoopKind::near_table:
      case LoopKind::far_table:
        level.slot = slots_of(std::vector{address(loop.table)});
        break;
      case LoopKind::runs:
        level.slot = slots_of(std::vector{loop.entries, address(loop.ends), address(loop.table)});
        break;
      case LoopKind::rule: {
        const auto& r = job.plan->rules()[static_cast<std::size_t>(loop.rule)];
        level.slot = slots_of(std::vector{loop.entries, address(loop.ends), r.first, r.change,
                                          r.start, r.distance, r.own, r.before});
        break;
      }
    }
    levels_.push_back(level);
  }

  // Returns the index of slots that hold these numbers one after the other. Regions of the same
  // fields share them.
  template <class T>
  std::uint32_t slots_of(const std::vector<T>& numbers) {
    const auto next = static_cast<std::uint32_t>(slots_.size());
    const auto [place, is_new] =
        slot_of_.try_emplace(std::vector<std::int64_t>(numbers.begin(), numbers.end()), next);
    if (is_new) slots_.insert(slots_.end(), numbers.begin(), numbers.end());
    return place->second;
  }

  // Returns the byte offset of the appended list.
  template <class T>
  static std::uint32_t append(const std::vector<T>& list, std::vector<std::byte>& bytes) {
    const auto begin = (bytes.size() + alignof(T) - 1) / alignof(T) * alignof(T);
    bytes.resize(begin + list.size() * sizeof(T));
    std::memcpy(bytes.data() + begin, list.data(), list.size() * sizeof(T));
    return static_cast<std::uint32_t>(begin);
  }

  std::uint64_t words_ = 0;
  std::vector<Entry<Form>> entries_;
  std::vector<Level<Form>> levels_;
  std::vector<std::int64_t> slots_;
  std::map<std::vector<std::int64_t>, std::uint32_t> slot_of_;
};

template <class Form>
JobTable write(const std::vector<Part>& parts) {
  Writer<Form> writer;
  for (const auto& part : parts) writer.add(part);
  return writer.table();
}

}  // namespace

int word_log2(std::uint64_t alignment_bits) {
  return std::min(std::countr_zero(alignment_bits), kMaxWordLog2);
}

JobTable make_table(std::span<const TableJob> jobs, std::int64_t alignment, bool wide) {
  std::vector<Part> parts;
  for (const auto& job : jobs)
    for (auto& leaf : leaves_of(job)) {
      const auto alignment_bits = alignment_bits_of(leaf, job, alignment);
      parts.push_back({std::move(leaf), alignment_bits, &job});
    }
  const bool narrow = !wide && words_of(parts) < kNarrowWords && fits_narrow(parts);
  return narrow ? write<Narrow>(parts) : write<Wide>(parts);
}

}  // namespace halocline::dtype::device
