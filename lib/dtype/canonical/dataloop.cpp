// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/canonical/dataloop.hpp"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <utility>

#include "dtype/reconstruct/type_path.hpp"
#include "support/overload.hpp"

namespace halocline::dtype {

namespace {

using Displacements = std::vector<std::int64_t>;

// Is a loop on its way up through the tree. Its first packed byte is at `start`. Size 0: no data.
struct Piece {
  std::int64_t start = 0;
  Dataloop loop{0, StridedLoop{0, {}}};

  bool empty() const { return loop.size == 0; }
  // Returns the length of the run if the whole piece is one run.
  std::optional<std::int64_t> as_run() const {
    const auto* strided = std::get_if<StridedLoop>(&loop.loop);
    if (strided == nullptr || !strided->levels.empty()) return std::nullopt;
    return strided->run;
  }
};

Piece run_piece(std::int64_t start, std::int64_t bytes) {
  return {start, {bytes, StridedLoop{bytes, {}}}};
}

constexpr std::size_t kUsualLevels = 4;  // one is for the instances: no second allocation

Piece repeat(std::int64_t count, std::int64_t stride, Piece body) {
  if (count == 0 || body.empty()) return {};
  if (count == 1) return body;
  const auto size = body.loop.size * count;
  if (auto* strided = std::get_if<StridedLoop>(&body.loop.loop)) {
    auto& levels = strided->levels;
    // Only neighbours in packed order can be folded, because only their packed bytes adjoin.
    if (levels.empty() && stride == strided->run) {
      strided->run *= count;
    } else if (!levels.empty() && stride == levels.back().count * levels.back().stride) {
      levels.back().count *= count;
    } else {
      if (levels.empty()) levels.reserve(kUsualLevels);
      levels.push_back({count, stride, body.loop.size});
    }
    body.loop.size = size;
    return body;
  }
  if (auto* vector = std::get_if<VectorLoop>(&body.loop.loop);
      vector != nullptr && stride == vector->count * vector->stride) {
    vector->count *= count;
    body.loop.size = size;
    return body;
  }
  return {
      body.start,
      {size, VectorLoop{count, stride, std::make_shared<const Dataloop>(std::move(body.loop))}}};
}

// Returns the length of the shortest prefix that repeats itself at one distance until the end of a
// list of n >= 2 entries; n if no prefix does. The last copy may be cut short if there are many
// copies and no pattern divides the list. `equal_step(i, j)` tells if entry i + 1 follows
// entry i as entry j + 1 follows entry j. The prefix function of Knuth, Morris and Pratt over the
// steps: O(n).
template <class EqualStep>
std::size_t shortest_pattern(std::size_t n, EqualStep equal_step) {
  if (n == 2) return 1;
  if (n > std::numeric_limits<std::uint32_t>::max()) return n;
  const auto steps = n - 1;
  // The first steps come again where the pattern does, at the latest in the middle. This check is
  // several times faster than the search below, and irregular lists end here.
  constexpr std::size_t kFirst = 16;
  if (n >= 4 * kFirst) {
    const auto comes_again = [&](std::size_t at) {
      std::size_t i = 0;
      while (i < kFirst && equal_step(at + i, i)) ++i;
      return i == kFirst;
    };
    std::size_t at = 1;
    while (at <= n / 2 && !comes_again(at)) ++at;
    if (at > n / 2) return n;
  }
  // border[i]: the prefix function of the first i steps. 32 bits halve the memory that a long list
  // costs here; 2^32 displacements are 32 GiB.
  std::vector<std::uint32_t> border(steps + 1, 0);
  for (std::uint32_t i = 1, k = 0; i < steps; ++i) {
    while (k > 0 && !equal_step(i, k)) k = border[k];
    if (equal_step(i, k)) ++k;
    border[i + 1] = k;
  }
  for (std::size_t k = border[steps]; k > 0; k = border[k])
    if (const auto period = steps - k; n % period == 0) return period;
  constexpr std::size_t kMany = 8;
  const auto period = steps - border[steps];
  return n / period >= kMany ? period : n;
}

void shift(Displacements& displacements, std::int64_t by) {
  for (auto& displacement : displacements) displacement += by;
}

// Makes the first displacement 0 and returns the old one.
std::int64_t take_start(Displacements& displacements) {
  const auto start = displacements.front();
  shift(displacements, -start);
  return start;
}

// Puts a body at each of at least two displacements that no loop can stand for.
Piece at_each(Displacements displacements, Piece body) {
  const auto start = take_start(displacements) + body.start;
  const auto size = body.loop.size * std::ssize(displacements);
  return {start,
          {size, BlockIndexedLoop{std::move(displacements),
                                  std::make_shared<const Dataloop>(std::move(body.loop))}}};
}

Piece indexed_runs(Displacements displacements, Displacements lengths);
Piece in_sequence(Piece first, Piece second);

// Puts a nest of bodies at some of the displacements, if it covers all of them. A nest must have at
// least kLeastBodies bodies: then entering its loops costs less than looking up all displacements.
// The nest is [KT15]'s path, if its root is one index. The search sees a leaf of 1 byte in place of
// the body. Its budget counts comparisons, two per nanosecond.
std::optional<Piece> nest_at_some(const Displacements& displacements, const Piece& body) {
  constexpr std::int64_t kNanosecondsPerBlock = 30, kLeastBodies = 32;
  const auto n = std::ssize(displacements);
  const auto path =
      reconstruct_path({displacements}, {1}, {.budget = 2 * kNanosecondsPerBlock * n});
  const auto* index = std::get_if<Idx>(&path.root->node);
  if (index == nullptr || kLeastBodies * std::ssize(index->displacements) > n) return std::nullopt;
  std::vector<const Vec*> loops;
  for (const auto* node = index->child.get(); !std::holds_alternative<Leaf>(node->node);) {
    const auto* loop = std::get_if<Vec>(&node->node);
    if (loop == nullptr) return std::nullopt;
    loops.push_back(loop);
    node = loop->child.get();
  }
  auto nest = body;
  for (auto loop = loops.rbegin(); loop != loops.rend(); ++loop)
    nest = repeat((*loop)->count, (*loop)->stride, std::move(nest));
  return at_each(index->displacements, std::move(nest));
}

// Puts a body at each displacement. The body's start is added to each displacement.
Piece block_indexed(Displacements displacements, Piece body) {
  if (displacements.empty() || body.empty()) return {};
  const auto n = displacements.size();
  if (n == 1) {
    body.start += displacements.front();
    return body;
  }
  const auto step = [&](std::size_t i) { return displacements[i + 1] - displacements[i]; };
  const auto pattern =
      shortest_pattern(n, [&](std::size_t i, std::size_t j) { return step(i) == step(j); });
  if (pattern < n) {
    const auto part = [&](std::size_t first, std::size_t last) {
      return block_indexed({displacements.begin() + static_cast<std::ptrdiff_t>(first),
                            displacements.begin() + static_cast<std::ptrdiff_t>(last)},
                           body);
    };
    const auto times = n / pattern;
    auto all = repeat(static_cast<std::int64_t>(times), displacements[pattern] - displacements[0],
                      part(0, pattern));
    return n % pattern == 0 ? all : in_sequence(std::move(all), part(times * pattern, n));
  }
  if (const auto run = body.as_run()) {
    for (std::size_t i = 0; i + 1 < n; ++i)
      if (step(i) == *run) {
        shift(displacements, body.start);
        return indexed_runs(std::move(displacements), Displacements(n, *run));
      }
  }
  if (auto nests = nest_at_some(displacements, body)) return std::move(*nests);
  return at_each(std::move(displacements), std::move(body));
}

// Joins runs that stand one behind the other in the packed bytes. No length is 0.
Piece indexed_runs(Displacements displacements, Displacements lengths) {
  if (displacements.empty()) return {};
  const auto n = displacements.size();
  // Look for a pattern before merging runs: merging across its end would hide it.
  if (n > 2 || (n == 2 && lengths[0] == lengths[1])) {
    const auto pattern = shortest_pattern(n, [&](std::size_t i, std::size_t j) {
      return lengths[i] == lengths[j] && lengths[i + 1] == lengths[j + 1] &&
             displacements[i + 1] - displacements[i] == displacements[j + 1] - displacements[j];
    });
    if (pattern < n) {
      const auto part = [&](std::size_t first, std::size_t last) {
        const auto piece_of = [&](const Displacements& list) {
          return Displacements(list.begin() + static_cast<std::ptrdiff_t>(first),
                               list.begin() + static_cast<std::ptrdiff_t>(last));
        };
        return indexed_runs(piece_of(displacements), piece_of(lengths));
      };
      const auto times = n / pattern;
      auto all = repeat(static_cast<std::int64_t>(times), displacements[pattern] - displacements[0],
                        part(0, pattern));
      return n % pattern == 0 ? all : in_sequence(std::move(all), part(times * pattern, n));
    }
  }
  std::size_t last = 0;
  for (std::size_t i = 1; i < n; ++i) {
    if (displacements[last] + lengths[last] == displacements[i]) {
      lengths[last] += lengths[i];
    } else {
      ++last;
      displacements[last] = displacements[i];
      lengths[last] = lengths[i];
    }
  }
  const bool merged = last + 1 < n;
  displacements.resize(last + 1);
  lengths.resize(last + 1);
  if (last == 0) return run_piece(displacements[0], lengths[0]);
  if (std::adjacent_find(lengths.begin(), lengths.end(), std::not_equal_to<>()) == lengths.end())
    return block_indexed(std::move(displacements), run_piece(0, lengths[0]));
  // Merged runs may repeat where the runs before did not.
  if (merged) return indexed_runs(std::move(displacements), std::move(lengths));
  const auto start = take_start(displacements);
  const auto size = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  return {start, {size, IndexedLoop{std::move(displacements), std::move(lengths)}}};
}

// Collects the members of a struct. Gathers runs that follow each other, and splices nested
// structs.
class StructBuilder {
 public:
  void add(Piece piece, std::int64_t displacement) {
    if (piece.empty()) return;
    const auto at = displacement + piece.start;
    if (const auto run = piece.as_run()) {
      add_run(at, *run);
      return;
    }
    if (auto* indexed = std::get_if<IndexedLoop>(&piece.loop.loop)) {
      for (std::size_t i = 0; i < indexed->lengths.size(); ++i)
        add_run(at + indexed->displacements[i], indexed->lengths[i]);
      return;
    }
    if (auto* nested = std::get_if<StructLoop>(&piece.loop.loop)) {
      for (std::size_t i = 0; i < nested->members.size(); ++i)
        add({0, std::move(nested->members[i])}, at + nested->displacements[i]);
      return;
    }
    flush();
    members_.push_back({at, std::move(piece.loop)});
  }

  Piece finish() {
    flush();
    if (members_.empty()) return {};
    if (members_.size() == 1) return std::move(members_.front());
    Displacements displacements;
    displacements.reserve(members_.size());
    for (const auto& member : members_) displacements.push_back(member.start);
    const bool equal = std::all_of(members_.begin() + 1, members_.end(), [&](const Piece& member) {
      return member.loop == members_.front().loop;
    });
    if (equal)
      return block_indexed(std::move(displacements), {0, std::move(members_.front().loop)});
    StructLoop out;
    std::int64_t size = 0;
    for (auto& member : members_) {
      size += member.loop.size;
      out.members.push_back(std::move(member.loop));
    }
    const auto start = take_start(displacements);
    out.displacements = std::move(displacements);
    return {start, {size, std::move(out)}};
  }

 private:
  void add_run(std::int64_t displacement, std::int64_t bytes) {
    displacements_.push_back(displacement);
    lengths_.push_back(bytes);
  }
  void flush() {
    if (displacements_.empty()) return;
    members_.push_back(
        indexed_runs(std::exchange(displacements_, {}), std::exchange(lengths_, {})));
  }

  std::vector<Piece> members_;
  Displacements displacements_, lengths_;  // runs since the last member that is no run
};

// Makes a struct of two pieces. Does not splice nested structs as fold() does: that would read the
// rest of a cut list once more for each cut.
Piece in_sequence(Piece first, Piece second) {
  StructLoop out;
  const auto size = first.loop.size + second.loop.size;
  out.displacements = {0, second.start - first.start};
  out.members.push_back(std::move(first.loop));
  out.members.push_back(std::move(second.loop));
  return {first.start, {size, std::move(out)}};
}

Piece reduce(const TreeNode& tree);

// Up to this number of buckets, a list is as good as the rule.
constexpr std::int64_t kFewBuckets = 8;

// Reduces buckets of children: runs if the children adjoin, else a vector per bucket.
Piece reduce_buckets(const IdxBuc& t) {
  const auto child = reduce(*t.child);
  if (child.empty()) return {};
  Displacements displacements, counts;
  displacements.reserve(t.displacements.size());
  counts.reserve(t.displacements.size());
  for (std::size_t i = 0; i < t.displacements.size(); ++i) {
    if (t.blocklengths[i] == 0) continue;
    if (!counts.empty() && t.displacements[i] == displacements.back() + counts.back() * t.stride) {
      counts.back() += t.blocklengths[i];  // continues the bucket before
    } else {
      displacements.push_back(t.displacements[i]);
      counts.push_back(t.blocklengths[i]);
    }
  }
  const auto run = child.as_run();
  if (run && *run == t.stride) {
    shift(displacements, child.start);
    for (auto& count : counts) count *= *run;
    return indexed_runs(std::move(displacements), std::move(counts));
  }
  StructBuilder members;
  for (std::size_t i = 0; i < counts.size(); ++i)
    members.add(repeat(counts[i], t.stride, child), displacements[i]);
  return members.finish();
}

// Tells if the lengths repeat themselves, or most buckets go on where the bucket before ends.
bool is_better_as_list(const RuleBuc& t) {
  const auto& rule = t.rule;
  std::int64_t continued = 0;
  for (std::int64_t i = 1; i < rule.count; ++i)
    if (rule.displacement(i) == rule.displacement(i - 1) + rule.length(i - 1) * t.stride)
      ++continued;
  if (2 * continued > rule.count) return true;
  const auto n = static_cast<std::size_t>(rule.count);
  const auto length = [&](std::size_t i) { return rule.length(static_cast<std::int64_t>(i)); };
  return shortest_pattern(n, [&](std::size_t i, std::size_t j) {
           return length(i) == length(j) && length(i + 1) == length(j + 1);
         }) < n;
}

// Reduces buckets with a rule.
Piece reduce_by_rule(const RuleBuc& t) {
  const auto child = reduce(*t.child);
  auto rule = t.rule;
  if (child.empty() || rule.elements() == 0) return {};
  if (rule.ends == nullptr && rule.change == 0)
    return repeat(rule.count, rule.distance, repeat(rule.first, t.stride, child));
  if (rule.nonempty() <= kFewBuckets || (rule.ends != nullptr && is_better_as_list(t)))
    return reduce_buckets(with_lists(t));
  const auto first = rule.displacement(rule.bucket_of(0));
  rule.start = -first;
  const auto size = rule.elements() * child.loop.size;
  return {
      first + child.start,
      {size, RuleLoop{std::move(rule), t.stride, std::make_shared<const Dataloop>(child.loop)}}};
}

Piece reduce(const TreeNode& tree) {
  return std::visit(Overload{
                        [](const Leaf& t) { return run_piece(0, t.bytes); },
                        [](const Vec& t) { return repeat(t.count, t.stride, reduce(*t.child)); },
                        [](const Idx& t) {
                          auto child = reduce(*t.child);
                          if (t.displacements.size() != 1 || child.empty())
                            return block_indexed(t.displacements, std::move(child));
                          child.start += t.displacements.front();  // a shift: no list to copy
                          return child;
                        },
                        [](const IdxBuc& t) { return reduce_buckets(t); },
                        [](const RuleBuc& t) { return reduce_by_rule(t); },
                        [](const Strc& t) {
                          StructBuilder members;
                          Piece child;
                          for (std::size_t i = 0; i < t.children.size(); ++i) {
                            // Neighbours that share their node are reduced once. Otherwise structs
                            // of two equal members, nested k deep, would take 2^k steps.
                            if (i == 0 || t.children[i] != t.children[i - 1])
                              child = reduce(*t.children[i]);
                            const bool again =
                                i + 1 < t.children.size() && t.children[i + 1] == t.children[i];
                            members.add(again ? child : std::move(child), t.displacements[i]);
                          }
                          return members.finish();
                        },
                    },
                    tree.node);
}

std::int64_t runs_of(const Dataloop& loop) {
  return std::visit(
      Overload{
          [](const StridedLoop& l) { return l.runs(); },
          [](const VectorLoop& l) { return l.count * runs_of(*l.body); },
          [](const BlockIndexedLoop& l) { return std::ssize(l.displacements) * runs_of(*l.body); },
          [](const IndexedLoop& l) { return std::int64_t{std::ssize(l.lengths)}; },
          [](const RuleLoop& l) {
            return l.is_of_runs() ? l.rule.nonempty() : l.rule.elements() * runs_of(*l.body);
          },
          [](const StructLoop& l) {
            std::int64_t sum = 0;
            for (const auto& member : l.members) sum += runs_of(member);
            return sum;
          },
      },
      loop.loop);
}

constexpr std::int64_t kNodeCost = 6, kLookupCost = 1;

std::int64_t cost_of(const Dataloop& loop) {
  return std::visit(Overload{
                        [](const StridedLoop& l) { return kNodeCost * (1 + std::ssize(l.levels)); },
                        [](const VectorLoop& l) { return kNodeCost + cost_of(*l.body); },
                        [](const BlockIndexedLoop& l) {
                          return kNodeCost + kLookupCost * std::ssize(l.displacements) +
                                 cost_of(*l.body);
                        },
                        [](const IndexedLoop& l) {
                          return 2 * kNodeCost + 2 * kLookupCost * std::ssize(l.lengths);
                        },
                        [](const RuleLoop& l) {
                          const auto lengths = l.rule.ends == nullptr ? 0 : l.rule.count;
                          return kNodeCost + kLookupCost * lengths + cost_of(*l.body);
                        },
                        [](const StructLoop& l) {
                          auto sum = kNodeCost + 2 * kLookupCost * std::ssize(l.members);
                          for (const auto& member : l.members) sum += cost_of(member);
                          return sum;
                        },
                    },
                    loop.loop);
}

std::string levels_text(const std::vector<LoopLevel>& levels) {
  std::string out = "[";
  for (std::size_t k = 0; k < levels.size(); ++k)
    out += (k == 0 ? "" : ", ") + std::to_string(levels[k].count) + " x " +
           std::to_string(levels[k].stride) + " -> " + std::to_string(levels[k].packed_stride);
  return out + "]";
}

}  // namespace

std::int64_t StridedLoop::runs() const {
  std::int64_t product = run == 0 ? 0 : 1;
  for (const auto& level : levels) product *= level.count;
  return product;
}

bool VectorLoop::operator==(const VectorLoop& other) const {
  return count == other.count && stride == other.stride && *body == *other.body;
}
bool BlockIndexedLoop::operator==(const BlockIndexedLoop& other) const {
  return displacements == other.displacements && *body == *other.body;
}
bool RuleLoop::operator==(const RuleLoop& other) const {
  return rule == other.rule && stride == other.stride && *body == *other.body;
}
bool RuleLoop::is_of_runs() const {
  const auto* run = std::get_if<StridedLoop>(&body->loop);
  return run != nullptr && run->levels.empty() && run->run == stride;
}
bool StructLoop::operator==(const StructLoop& other) const {
  return displacements == other.displacements && members == other.members;
}

std::optional<LoopNest> CanonicalForm::nest() const {
  const auto* strided = std::get_if<StridedLoop>(&root.loop);
  if (strided == nullptr) return std::nullopt;
  LoopNest nest{start, strided->run, strided->levels, bounds};
  std::sort(nest.levels.begin(), nest.levels.end(), [](const LoopLevel& a, const LoopLevel& b) {
    const auto x = std::abs(a.stride), y = std::abs(b.stride);
    return x != y ? x < y : a.packed_stride < b.packed_stride;
  });
  return nest;
}

std::int64_t CanonicalForm::runs() const {
  return runs_of(root);
}

CanonicalForm canonicalize(const TypeTree& tree) {
  auto piece = reduce(*tree.root);
  return {piece.start, std::move(piece.loop), tree.bounds};
}

std::int64_t cost(const CanonicalForm& form) {
  if (form.root.size == 0) return 0;
  return cost_of(form.root) + (form.start == 0 ? 0 : kNodeCost + kLookupCost);
}

std::string to_string(const LoopNest& nest) {
  return "start " + std::to_string(nest.start) + ", run " + std::to_string(nest.run) + ", levels " +
         levels_text(nest.levels);
}

std::string to_string(const Dataloop& loop) {
  const auto entries = [](std::size_t n, const char* what) {
    return std::to_string(n) + " " + what;
  };
  return std::visit(Overload{
                        [](const StridedLoop& l) {
                          return l.levels.empty() ? "contig(" + std::to_string(l.run) + " bytes)"
                                                  : "strided(run " + std::to_string(l.run) +
                                                        ", levels " + levels_text(l.levels) + ")";
                        },
                        [](const VectorLoop& l) {
                          return "vector(" + std::to_string(l.count) + " x " +
                                 std::to_string(l.stride) + ", " + to_string(*l.body) + ")";
                        },
                        [&](const BlockIndexedLoop& l) {
                          return "blockindexed(" +
                                 entries(l.displacements.size(), "displacements, ") +
                                 to_string(*l.body) + ")";
                        },
                        [&](const IndexedLoop& l) {
                          return "indexed(" + entries(l.lengths.size(), "runs, ") +
                                 std::to_string(std::accumulate(l.lengths.begin(), l.lengths.end(),
                                                                std::int64_t{0})) +
                                 " bytes)";
                        },
                        [](const RuleLoop& l) {
                          return std::string(l.rule.name()) + "(" + std::to_string(l.rule.count) +
                                 " buckets, " + std::to_string(l.rule.elements()) + " x " +
                                 std::to_string(l.stride) + ", " + to_string(*l.body) + ")";
                        },
                        [](const StructLoop& l) {
                          // Long structs show their first members and the last one.
                          constexpr std::size_t kShown = 8;
                          std::string out = "struct(";
                          for (std::size_t i = 0; i < l.members.size(); ++i) {
                            if (i >= kShown && i + 1 < l.members.size()) continue;
                            if (i + 1 == l.members.size() && i > kShown) out += ", ...";
                            out += (i == 0 ? "" : ", ") + to_string(l.members[i]) + " at " +
                                   std::to_string(l.displacements[i]);
                          }
                          return out + ")";
                        },
                    },
                    loop.loop);
}

}  // namespace halocline::dtype
