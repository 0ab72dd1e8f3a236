// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/pack/copy_plan.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iterator>
#include <numeric>
#include <optional>
#include <utility>

#include "dtype/pack/block_list.hpp"

namespace halocline::dtype {

namespace {

using detail::Address;
using detail::CopyNest;
using detail::CopyPiece;
using detail::CopyProgram;
using detail::CopyStep;
using detail::kLineBytes;
using detail::Op;

// Limits of a list: few pieces, or long pieces, and never too many. Reading such a list takes less
// time than a window.
constexpr std::int64_t kFewPieces = 64, kLongPieceBytes = 64, kMostPieces = 1 << 18;

std::int64_t distance(Address from, Address to) {
  return static_cast<std::int64_t>(to - from);
}

// ---- A pair of types: the loops that both have around a part of the packed stream ----

// Holds the outer loops of a layout, the outermost last. `of_runs`: these loops repeat a single
// run.
struct Chain {
  std::vector<LoopLevel> levels;
  bool of_runs;
};

Chain chain_of(const PackPlan& plan, std::int64_t count) {
  const auto& program = plan.program();
  std::vector<LoopLevel> repeats;
  const auto* op = &program.entry(count);
  while (op->kind == Op::Kind::repeat) {
    repeats.push_back({op->count * count, op->stride, op->child_size});
    count = 1;
    op = &program.ops[static_cast<std::size_t>(op->children[0])];
  }
  Chain chain{{}, op->kind == Op::Kind::strided};
  for (int height = 0; height <= op->strided.top(); ++height)
    chain.levels.push_back(op->strided.level(height));
  if (!chain.levels.empty()) chain.levels.back().count *= count;
  chain.levels.insert(chain.levels.end(), repeats.rbegin(), repeats.rend());
  std::erase_if(chain.levels, [](const LoopLevel& level) { return level.count == 1; });
  return chain;
}

// Holds loops around the first `stretch` bytes of the stream. `is_run`: these bytes are a run on
// both sides.
struct CommonLoops {
  std::vector<LoopLevel> levels;
  std::int64_t stretch;
  bool is_run;
};

// Finds the loops that both chains share, from the outside inwards. Outermost loops that repeat p
// and q packed bytes share a loop over lcm(p, q) bytes, the shortest step that is whole on both
// sides.
CommonLoops share_loops(Chain source, Chain destination, std::int64_t bytes) {
  CommonLoops shared{{}, bytes, false};
  auto &s = source.levels, &d = destination.levels;
  while (!s.empty() || !d.empty()) {
    if ((s.empty() && !source.of_runs) || (d.empty() && !destination.of_runs)) return shared;
    // A run counts as a loop over the steps of the other side.
    const auto as_loop = [&](const LoopLevel& other) {
      const auto step = other.packed_stride;
      return LoopLevel{shared.stretch / step, step, step};
    };
    if (s.empty()) s.push_back(as_loop(d.back()));
    if (d.empty()) d.push_back(as_loop(s.back()));
    auto &a = s.back(), &b = d.back();
    const auto step = std::lcm(a.packed_stride, b.packed_stride);
    a.count = step / a.packed_stride, b.count = step / b.packed_stride;
    shared.levels.push_back({shared.stretch / step, a.stride * a.count, b.stride * b.count});
    shared.stretch = step;
    const bool divides = a.count == 1 || b.count == 1;
    if (a.count == 1) s.pop_back();
    if (b.count == 1) d.pop_back();
    if (!divides) return shared;
  }
  shared.is_run = source.of_runs && destination.of_runs;
  return shared;
}

// Holds the blocks of a packed stream, and takes parts of them in order.
class Blocks {
 public:
  Blocks(const PackPlan& plan, const void* buffer, std::int64_t count)
      : plan_(plan), count_(count), buffer_(reinterpret_cast<Address>(buffer)) {}

  std::int64_t left() {
    if (next_ == end_) {
      end_ = list_blocks(plan_, count_, position_, blocks_);
      next_ = 0;
    }
    return blocks_[next_].length;
  }
  Address take(std::int64_t bytes) {
    auto& block = blocks_[next_];
    const auto at = buffer_ + static_cast<Address>(block.offset);
    block.offset += bytes;
    block.length -= bytes;
    if (block.length == 0) ++next_;
    return at;
  }

 private:
  const PackPlan& plan_;
  std::int64_t count_, position_ = 0;
  Address buffer_;
  std::array<MemoryBlock, 64> blocks_;
  std::size_t next_ = 0, end_ = 0;
};

// ---- Nests ----

bool folds(const LoopLevel& inner, const LoopLevel& outer) {
  return outer.stride == inner.count * inner.stride &&
         outer.packed_stride == inner.count * inner.packed_stride;
}

// Puts loops in ascending order of their strides at the destination, and folds them into as few as
// possible.
void normalize(CopyNest& nest) {
  auto& levels = nest.levels;
  std::erase_if(levels, [](const LoopLevel& level) { return level.count == 1; });
  for (auto& level : levels) {
    if (level.packed_stride >= 0) continue;
    nest.source += static_cast<Address>((level.count - 1) * level.stride);
    nest.destination += static_cast<Address>((level.count - 1) * level.packed_stride);
    level.stride = -level.stride, level.packed_stride = -level.packed_stride;
  }
  std::sort(levels.begin(), levels.end(),
            [](const auto& a, const auto& b) { return a.packed_stride < b.packed_stride; });
  while (!levels.empty() && levels[0].stride == nest.run && levels[0].packed_stride == nest.run) {
    nest.run *= levels[0].count;
    levels.erase(levels.begin());
  }
  for (std::size_t k = 1; k < levels.size();) {
    if (folds(levels[k - 1], levels[k])) {
      levels[k - 1].count *= levels[k].count;
      levels.erase(levels.begin() + static_cast<std::ptrdiff_t>(k));
    } else {
      ++k;
    }
  }
}

// Tells if `b` begins `source` and `destination` bytes behind `a`.
bool is_behind(const CopyNest& a, const CopyNest& b, std::int64_t source,
               std::int64_t destination) {
  return distance(a.source, b.source) == source &&
         distance(a.destination, b.destination) == destination;
}

// Makes `b` a part of `a` if it continues its runs or one of its loops.
bool join(CopyNest& a, const CopyNest& b) {
  if (a.levels == b.levels && is_behind(a, b, a.run, a.run)) {
    a.run += b.run;
    normalize(a);
    return true;
  }
  if (a.run != b.run || a.levels.size() != b.levels.size()) return false;
  std::optional<std::size_t> differs;
  for (std::size_t k = 0; k < a.levels.size(); ++k) {
    const auto &l = a.levels[k], &m = b.levels[k];
    if (l.stride != m.stride || l.packed_stride != m.packed_stride) return false;
    const bool continues = is_behind(a, b, l.count * l.stride, l.count * l.packed_stride);
    if (continues && !differs)
      differs = k;
    else if (l.count != m.count)
      return false;
  }
  if (!differs) return false;
  a.levels[*differs].count += b.levels[*differs].count;
  normalize(a);
  return true;
}

bool is_within_row(Address a, Address b, std::int64_t row) {
  return std::abs(distance(a, b)) < std::abs(row);
}

// Tells if two nests write to the same rows, or read from the same rows.
bool take_turns(const CopyNest& a, const CopyNest& b) {
  if (a.levels.empty() || a.levels.size() != b.levels.size()) return false;
  bool same_source = true;
  auto shortest = a.levels[0].stride;
  for (std::size_t k = 0; k < a.levels.size(); ++k) {
    const auto &l = a.levels[k], &m = b.levels[k];
    if (l.count != m.count || l.packed_stride != m.packed_stride) return false;
    if (l.stride != m.stride) same_source = false;
    if (std::abs(l.stride) < std::abs(shortest)) shortest = l.stride;
  }
  return is_within_row(a.destination, b.destination, a.levels[0].packed_stride) ||
         (same_source && is_within_row(a.source, b.source, shortest));
}

// Tells if `b` reads from the rows to which `a` writes, and writes to those from which `a` reads.
// So do the ghosts on both sides of a face: rows of a halo are beside the rows that are sent.
bool go_both_ways(const CopyNest& a, const CopyNest& b) {
  if (a.levels.size() != b.levels.size()) return false;
  for (std::size_t k = 0; k < a.levels.size(); ++k) {
    const auto &l = a.levels[k], &m = b.levels[k];
    if (l.count != m.count || l.stride != m.packed_stride || l.packed_stride != m.stride)
      return false;
  }
  return is_within_row(a.source, b.destination, a.levels[0].stride) &&
         is_within_row(a.destination, b.source, a.levels[0].packed_stride);
}

// ---- Steps ----

class CopyCompiler {
 public:
  explicit CopyCompiler(CopyProgram& program) : program_(program) {}

  void add(const CopyJob& job) {
    const auto shared =
        share_loops(chain_of(job.source_plan, job.source_count),
                    chain_of(job.destination_plan, job.destination_count), job.bytes());
    if (shared.is_run) {
      const auto start = [](const PackPlan& plan, const void* buffer) {
        return reinterpret_cast<Address>(buffer) + static_cast<Address>(plan.program().start);
      };
      return add(CopyNest{start(job.source_plan, job.source),
                          start(job.destination_plan, job.destination), shared.stretch,
                          shared.levels});
    }
    if (!fits_list(job, shared.stretch)) return add_windowed(job);
    Blocks from(job.source_plan, job.source, job.source_count),
        to(job.destination_plan, job.destination, job.destination_count);
    for (std::int64_t left = shared.stretch; left > 0;) {
      const auto bytes = std::min({from.left(), to.left(), left});
      add(CopyNest{from.take(bytes), to.take(bytes), bytes, shared.levels});
      left -= bytes;
    }
  }

  void compile() {
    std::stable_sort(parts_.begin(), parts_.end(), [](const Part& a, const Part& b) {
      return a.nest.destination < b.nest.destination;
    });
    join_parts();
    for (std::size_t i = 0; i < parts_.size();) i = parts_[i].taken ? i + 1 : add_step(i);
  }

 private:
  // Holds a nest or a windowed job, to be sorted by the begin of its destination.
  struct Part {
    CopyNest nest;
    std::optional<std::size_t> windowed;
    bool taken = false;  // is part of a step
  };

  static bool fits_list(const CopyJob& job, std::int64_t stretch) {
    const auto blocks_of = [&](const PackPlan& plan, std::int64_t count) {
      return count_blocks(plan, count, 0, std::min(stretch, plan.packed_bytes(count)));
    };
    const auto most = blocks_of(job.source_plan, job.source_count) +
                      blocks_of(job.destination_plan, job.destination_count);
    return most <= std::clamp(stretch / kLongPieceBytes, kFewPieces, kMostPieces);
  }

  void add(CopyNest nest) {
    normalize(nest);
    parts_.push_back({std::move(nest), std::nullopt});
  }

  void add_windowed(const CopyJob& job) {
    const auto& bounds = job.destination_plan.bounds();
    const auto first =
        bounds.true_lb + std::min<std::int64_t>(0, bounds.extent * (job.destination_count - 1));
    const auto at = reinterpret_cast<Address>(job.destination) + static_cast<Address>(first);
    parts_.push_back({{0, at, job.bytes(), {}}, program_.windowed.size()});
    program_.windowed.push_back(job);
  }

  // Joins neighbours. A nest that became longer may now continue the nest before it: the last two
  // are tried again.
  void join_parts() {
    std::vector<Part> joined;
    for (auto& part : parts_) {
      joined.push_back(std::move(part));
      while (joined.size() > 1) {
        auto &a = joined[joined.size() - 2], &b = joined.back();
        if (a.windowed || b.windowed || !join(a.nest, b.nest)) break;
        joined.pop_back();
      }
    }
    parts_ = std::move(joined);
  }

  // Makes a step of the i-th part and of the parts behind it that belong to the step. Returns the
  // index of the next part.
  std::size_t add_step(std::size_t i) {
    if (parts_[i].windowed) {
      program_.add({CopyStep::Kind::windowed, *parts_[i].windowed, *parts_[i].windowed + 1},
                   parts_[i].nest.run);
      return i + 1;
    }
    return parts_[i].nest.levels.empty() ? add_pieces(i) : add_nests(i);
  }

  std::size_t add_pieces(std::size_t i) {
    auto& pieces = program_.pieces;
    const auto first = pieces.size();
    std::int64_t end = 0;
    for (; i < parts_.size() && !parts_[i].windowed && parts_[i].nest.levels.empty(); ++i) {
      const auto& nest = parts_[i].nest;
      pieces.push_back({nest.source, nest.destination, end += nest.run});
    }
    program_.add({CopyStep::Kind::pieces, first, pieces.size()}, end);
    return i;
  }

  std::size_t add_nests(std::size_t i) {
    auto& nests = program_.nests;
    const auto first = nests.size();
    std::int64_t bytes = 0;
    const auto take = [&](Part& part) {
      bytes += part.nest.bytes();
      nests.push_back(part.nest);
      part.taken = true;
    };
    // Takes a part, and the parts behind it that write to the same rows. Returns the next part.
    const auto take_with_neighbors = [&](std::size_t part) {
      take(parts_[part]);
      const auto leader = nests.size() - 1;
      for (++part; part < parts_.size() && !parts_[part].windowed && !parts_[part].taken &&
                   take_turns(nests[leader], parts_[part].nest);
           ++part)
        take(parts_[part]);
      return part;
    };
    if (order_for_tiles(parts_[i].nest)) {
      take(parts_[i++]);
    } else {
      i = take_with_neighbors(i);
      for (auto k = first; k < nests.size(); ++k)
        if (const auto back = way_back(nests[k])) take_with_neighbors(*back);
    }
    program_.add({CopyStep::Kind::nests, first, nests.size()}, bytes);
    return i;
  }

  // Returns a part that copies between the same rows as `nest` in the other direction; nullopt if
  // there is none, or if too many parts may be it.
  std::optional<std::size_t> way_back(const CopyNest& nest) const {
    constexpr std::ptrdiff_t kMostTried = 64;
    const auto row = static_cast<Address>(std::abs(nest.levels[0].stride));
    const auto first =
        std::upper_bound(parts_.begin(), parts_.end(), nest.source - row,
                         [](Address at, const Part& part) { return at < part.nest.destination; });
    const auto end = first + std::min<std::ptrdiff_t>(kMostTried, parts_.end() - first);
    const auto found = std::find_if(first, end, [&](const Part& part) {
      return !part.windowed && !part.taken && go_both_ways(nest, part.nest);
    });
    if (found == end) return std::nullopt;
    return static_cast<std::size_t>(found - parts_.begin());
  }

  // Orders the loops for tiles, as a PackPlan does, where the rows of the source are not those of
  // the destination.
  static bool order_for_tiles(CopyNest& nest) {
    const auto innermost = detail::innermost_level(nest.run, nest.levels);
    if (innermost == 0) return false;
    std::rotate(nest.levels.begin(), nest.levels.begin() + innermost,
                nest.levels.begin() + innermost + 1);
    return true;
  }

  CopyProgram& program_;
  std::vector<Part> parts_;
};

// ---- Halves ----

// Adds the steps of one half of a program to another program.
class HalfCompiler {
 public:
  HalfCompiler(const CopyProgram& whole, CopyPlan::Half which, CopyProgram& out)
      : whole_(whole), is_first_(which == CopyPlan::Half::first), out_(out) {}

  void compile() {
    const auto middle = whole_.steps.empty() ? 0 : whole_.steps.back().end / 2;
    std::int64_t begin = 0;
    for (const auto& step : whole_.steps) {
      const auto bytes = step.end - begin;
      add_step(step, bytes, std::clamp<std::int64_t>(middle - begin, 0, bytes));
      begin = step.end;
    }
  }

 private:
  // Adds the half of a step. About `cut` of its `bytes` bytes are in the first half.
  void add_step(const CopyStep& step, std::int64_t bytes, std::int64_t cut) {
    switch (step.kind) {
      case CopyStep::Kind::nests:
        return add_nests(step, bytes, cut);
      case CopyStep::Kind::pieces:
        return add_pieces(step, cut);
      case CopyStep::Kind::windowed:
        if (is_first_ != (2 * cut >= bytes)) return;
        out_.windowed.push_back(whole_.windowed[step.first]);
        return out_.add({step.kind, out_.windowed.size() - 1, out_.windowed.size()}, bytes);
    }
  }

  // Cuts the longest of the nests' loops: their loops have equal counts.
  void add_nests(const CopyStep& step, std::int64_t bytes, std::int64_t cut) {
    const auto& levels = whole_.nests[step.first].levels;
    std::size_t longest = 0;  // the outermost one of several
    for (std::size_t k = 1; k < levels.size(); ++k)
      if (levels[k].count >= levels[longest].count) longest = k;
    const auto count = levels[longest].count, one = bytes / count;
    const auto middle = std::min((cut + one / 2) / one, count);
    const auto begin = is_first_ ? 0 : middle, end = is_first_ ? middle : count;
    if (begin == end) return;
    const auto first = out_.nests.size();
    for (auto i = step.first; i < step.last; ++i) {
      auto& nest = out_.nests.emplace_back(whole_.nests[i]);
      auto& level = nest.levels[longest];
      nest.source += static_cast<Address>(begin * level.stride);
      nest.destination += static_cast<Address>(begin * level.packed_stride);
      level.count = end - begin;
    }
    out_.add({step.kind, first, out_.nests.size()}, (end - begin) * one);
  }

  // Cuts a piece where a cache line of the destination begins.
  void add_pieces(const CopyStep& step, std::int64_t cut) {
    const auto first = out_.pieces.size();
    std::int64_t begin = 0, bytes = 0;
    for (auto i = step.first; i < step.last; ++i) {
      const auto& piece = whole_.pieces[i];
      auto middle = std::clamp<std::int64_t>(cut - begin, 0, piece.end - begin);
      const auto inside_line = static_cast<std::int64_t>(
          (piece.destination + static_cast<Address>(middle)) % kLineBytes);
      if (middle < piece.end - begin) middle = std::max<std::int64_t>(middle - inside_line, 0);
      const auto from = is_first_ ? 0 : middle, to = is_first_ ? middle : piece.end - begin;
      if (from < to)
        out_.pieces.push_back({piece.source + static_cast<Address>(from),
                               piece.destination + static_cast<Address>(from), bytes += to - from});
      begin = piece.end;
    }
    if (bytes > 0) out_.add({step.kind, first, out_.pieces.size()}, bytes);
  }

  const CopyProgram& whole_;
  const bool is_first_;
  CopyProgram& out_;
};

void check(const CopyJob& job, std::size_t i) {
  const auto there = job.destination_plan.packed_bytes(job.destination_count);
  if (job.bytes() == there) return;
  throw ConfigError("copy job " + std::to_string(i) + " has " + std::to_string(job.bytes()) +
                    " bytes at its source and " + std::to_string(there) +
                    " at its destination (instances times the size of the type): give both the "
                    "same signature");
}

}  // namespace

std::int64_t detail::CopyNest::bytes() const {
  auto bytes = run;
  for (const auto& level : levels) bytes *= level.count;
  return bytes;
}

void detail::CopyProgram::add(CopyStep step, std::int64_t bytes) {
  step.end = bytes + (steps.empty() ? 0 : steps.back().end);
  steps.push_back(step);
}

CopyPlan::CopyPlan(const std::vector<CopyJob>& jobs) {
  auto program = std::make_shared<CopyProgram>();
  CopyCompiler compiler(*program);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    check(jobs[i], i);
    if (jobs[i].bytes() > 0) compiler.add(jobs[i]);
  }
  compiler.compile();
  program_ = std::move(program);
}

CopyPlan CopyPlan::half(Half which) const {
  auto out = std::make_shared<CopyProgram>();
  HalfCompiler(*program_, which, *out).compile();
  return CopyPlan(std::move(out));
}

CopyPlan CopyPlan::joined(const std::vector<CopyPlan>& plans) {
  auto out = std::make_shared<CopyProgram>();
  const auto append = [](auto& to, const auto& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  for (const auto& plan : plans) {
    const auto& program = plan.program();
    const std::size_t before[] = {out->nests.size(), out->pieces.size(), out->windowed.size()};
    std::int64_t begin = 0;
    for (auto step : program.steps) {
      const auto shift = before[static_cast<std::size_t>(step.kind)];
      step.first += shift, step.last += shift;
      out->add(step, step.end - std::exchange(begin, step.end));
    }
    append(out->nests, program.nests);
    append(out->pieces, program.pieces);
    append(out->windowed, program.windowed);
  }
  return CopyPlan(std::move(out));
}

CopyPlan CopyPlan::moved(const std::function<Address(Address)>& address_of) const {
  auto out = std::make_shared<CopyProgram>();
  out->nests = program_->nests, out->pieces = program_->pieces;
  out->windowed = program_->windowed, out->steps = program_->steps;
  const auto move = [&](auto& copies) {
    for (auto& copy : copies)
      copy.source = address_of(copy.source), copy.destination = address_of(copy.destination);
  };
  move(out->nests);
  move(out->pieces);
  for (auto& job : out->windowed) {
    job.source = reinterpret_cast<void*>(address_of(reinterpret_cast<Address>(job.source)));
    job.destination =
        reinterpret_cast<void*>(address_of(reinterpret_cast<Address>(job.destination)));
  }
  return CopyPlan(std::move(out));
}

}  // namespace halocline::dtype
