// SPDX-License-Identifier: BSD-3-Clause
#include "inspect.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <variant>
#include <vector>

#include "commands.hpp"
#include "dtype/canonical/dataloop.hpp"
#include "dtype/datatype.hpp"
#include "dtype/mpi_bounds.hpp"
#include "dtype/pack/pack_plan.hpp"
#include "dtype/reconstruct/cost_model.hpp"
#include "dtype/reconstruct/normalize.hpp"
#include "dtype/reconstruct/reconstruct_tree.hpp"
#include "dtype/reconstruct/typed_sequence.hpp"
#include "dtype/type_expr.hpp"
#include "dtype/type_map.hpp"
#include "dtype/type_tree.hpp"
#include "emit.hpp"
#include "environment.hpp"
#include "sequence_file.hpp"
#include "support/overload.hpp"
#include "table.hpp"

namespace halocline::app {

namespace {

using Json = nlohmann::ordered_json;

Json to_json(const dtype::TypeBounds& bounds) {
  Json out;
  out["size"] = bounds.size;
  out["lb"] = bounds.lb;
  out["extent"] = bounds.extent;
  out["true_lb"] = bounds.true_lb;
  out["true_extent"] = bounds.true_extent;
  return out;
}

std::string to_text(const dtype::TypeBounds& bounds) {
  std::string out;
  const auto members = to_json(bounds);
  for (const auto& [name, value] : members.items())
    out += (out.empty() ? "" : ", ") + name + " " + value.dump();
  return out;
}

// Indents each line of a text to the column of the values. Shows only the first 40 lines.
std::string indented(const std::string& text) {
  constexpr int kShown = 40;
  std::string out;
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line); ++number)
    if (number < kShown) out += "            " + line + "\n";
  if (number > kShown)
    out += "            ... and " + std::to_string(number - kShown) + " lines more\n";
  return out;
}

// Limits the work on large types. A type above kMostReconstructed is not reconstructed at all,
// since it would have to be expanded.
constexpr std::int64_t kMostReconstructed = 1'000'000, kMostForTree = 10'000'000;

// Holds the cheapest representations of a sequence.
struct Reconstructed {
  std::int64_t elements = 0;
  bool of_one_kind = true;
  /// unset for elements of several kinds or for too many elements
  std::optional<dtype::Reconstruction> path, extended, with_rules, tree;
  std::int64_t comparisons = 0;  ///< comparisons of the search for the path, or for the tree if
                                 ///< there is no path
  double seconds = 0;            ///< time of the same search
};

Reconstructed reconstruct(const dtype::TypedSequence& sequence) {
  Reconstructed out;
  out.elements = std::ssize(sequence.displacements);
  out.of_one_kind = sequence.leaves.size() == 1;
  const auto timed = [&](auto&& make) {
    const auto start = std::chrono::steady_clock::now();
    auto result = make();
    out.comparisons = result.comparisons;
    out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return result;
  };
  const auto trees = [&] { return dtype::reconstruct_tree(sequence.view(), sequence.leaves); };
  if (out.of_one_kind) {
    const auto& leaf = sequence.leaves.front();
    out.path = timed([&] { return dtype::reconstruct_path(sequence.view(), leaf); });
    out.extended = dtype::reconstruct_path(sequence.view(), leaf, {.idxbuc = true});
    if (out.elements <= kMostReconstructed)
      out.with_rules = dtype::reconstruct_path(
          sequence.view(), leaf, {.idxbuc = true, .bucket = true, .triangular = true});
    if (out.elements <= kMostForTree) out.tree = trees();
  } else if (out.elements <= kMostForTree) {
    out.tree = timed(trees);
  }
  return out;
}

Json to_json(const Reconstructed& found) {
  Json out;
  const auto add = [&](const std::string& name, const std::string& cost_name,
                       const std::optional<dtype::Reconstruction>& one) {
    out[name] = one ? Json(dtype::to_string(*one->root)) : Json();
    out[cost_name] = one ? Json(one->cost) : Json();
  };
  out["elements"] = found.elements;
  add("path", "path_cost", found.path);
  add("extended_path", "extended_cost", found.extended);
  add("rule_path", "rule_cost", found.with_rules);
  add("tree", "tree_cost", found.tree);
  out["tree_optimal"] = found.tree ? Json(found.tree->optimal) : Json();
  out["comparisons"] = found.comparisons;
  out["seconds"] = found.seconds;
  return out;
}

// Shortens long lists and trees for people: they see begin and end.
std::string shortened(const std::string& text, std::size_t most = 800) {
  if (text.size() <= most) return text;
  return text.substr(0, most / 2) + " ... " + text.substr(text.size() - most / 2);
}

std::string line(const std::string& name, const dtype::Reconstruction& one) {
  return name + shortened(dtype::to_string(*one.root)) + ", cost " + std::to_string(one.cost) +
         "\n";
}

std::string to_text(const Reconstructed& found) {
  const auto left_out = [](const char* name, std::int64_t most) {
    return name + ("left out: more than " + std::to_string(most) + " elements\n");
  };
  std::string out;
  if (found.of_one_kind) {
    out += line("path        ", *found.path) + line("extended    ", *found.extended);
    if (!found.with_rules)
      out += left_out("beyond MPI  ", kMostReconstructed);
    else if (found.with_rules->cost < found.extended->cost)
      out += line("beyond MPI  ", *found.with_rules);
  } else {
    out += "path        none: elements of several types\n";
  }
  out += found.tree ? line(found.tree->optimal ? "optimum     " : "heuristic   ", *found.tree)
                    : left_out("heuristic   ", kMostForTree);
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%.3g", found.seconds);
  out += "            " + std::to_string(found.elements) + " elements, " +
         std::to_string(found.comparisons) + " comparisons, " + seconds + " s\n";
  return out;
}

// Tells if a type is made of equal elements without gaps. May miss some of these types.
bool is_run(const dtype::TypeExpr& expr) {
  if (const auto* contiguous = std::get_if<dtype::Contiguous>(&expr.node))
    return is_run(*contiguous->old);
  const auto* named = std::get_if<dtype::Named>(&expr.node);
  return named != nullptr && named->type->members.size() == 1;
}

// Estimates the work on an expression, here and in MPI. A type inside a list is copied for each
// entry of the list. The result is a double, since lists in lists would overflow an integer.
double work_of(const dtype::TypeExpr& expr) {
  constexpr double kMember = 8;  // a member of a struct has a type of its own
  const auto list = [](auto length, const dtype::TypeExprPtr& old) {
    return 1 + static_cast<double>(length) * work_of(*old);
  };
  // Blocks of several lengths become members, too, if their type has gaps.
  const auto blocks_of_lengths = [&](auto length, const dtype::TypeExprPtr& old) {
    return list(length, old) + (is_run(*old) ? 0 : kMember * static_cast<double>(length));
  };
  return std::visit(
      Overload{
          [](const dtype::Named& t) { return static_cast<double>(t.type->members.size()); },
          [&](const dtype::Indexed& t) { return blocks_of_lengths(t.displacements.size(), t.old); },
          [&](const dtype::Hindexed& t) {
            return blocks_of_lengths(t.displacements.size(), t.old);
          },
          [&](const dtype::IndexedBlock& t) { return list(t.displacements.size(), t.old); },
          [&](const dtype::HindexedBlock& t) { return list(t.displacements.size(), t.old); },
          [](const dtype::Struct& t) {
            double sum = 1;
            for (const auto& old : t.old) sum += kMember + work_of(*old);
            return sum;
          },
          [](const dtype::Subarray& t) {
            return static_cast<double>(t.sizes.size()) + work_of(*t.old);
          },
          [](const dtype::Darray& t) {
            auto work = work_of(*t.old);
            // A shorter last block has a type of its own.
            for (const auto psize : t.psizes) work = psize == 1 ? work + 1 : 2 * work + kMember;
            return work;
          },
          [](const dtype::BoundedVector& t) { return 1 + 2 * (kMember + work_of(*t.old)); },
          [](const dtype::CircularVector& t) {
            const auto length =
                std::max(static_cast<double>(t.end) - static_cast<double>(t.start), 0.0);
            const auto bound = static_cast<double>(t.bound);
            const auto blocks = length / static_cast<double>(t.stride) + 1;
            const auto turns_of_block = std::ceil(static_cast<double>(t.blocklength - 1) / bound);
            const auto members = std::min(3 * (length / bound + 1), blocks * (turns_of_block + 1));
            return 1 + members * (kMember + work_of(*t.old));
          },
          [&](const dtype::Bucket& t) { return blocks_of_lengths(t.counts.size(), t.old); },
          [&](const dtype::StretchedVector& t) { return blocks_of_lengths(t.ends->size(), t.old); },
          [&](const dtype::Triangular& t) {
            return blocks_of_lengths(t.change == 0 ? 1 : t.count, t.old);
          },
          [](const auto& t) { return 1 + work_of(*t.old); },
      },
      expr.node);
}

// Refuses expressions that would take minutes or all memory.
void require_little_work(const dtype::TypeExpr& expr) {
  constexpr double kMost = 1 << 23;
  if (work_of(expr) > kMost)
    throw ConfigError(
        "expression is too large to inspect (its lists, buckets or triangles have more than " +
        std::to_string(static_cast<std::int64_t>(kMost)) +
        " blocks, with what is inside of them): use smaller counts, shorter lists or fewer levels");
}

// Holds all findings about a type.
struct Findings {
  std::string expression;
  std::string decoded;      ///< expression as decoded from the MPI datatype
  std::string left_to_mpi;  ///< reason why the library does not plan this type; empty if it does
  dtype::TypeBounds bounds;
  dtype::TypeBounds mpi;
  std::string tree;
  std::int64_t tree_cost = 0;
  dtype::CanonicalForm form;
  dtype::Reconstruction normalized;
  std::int64_t leaves = 0;
  /// unset for types without data, and for those with more elements than kMostReconstructed
  std::optional<Reconstructed> reconstructed;
};

// Tells if two types are equal in bytes and bounds. Their trees may differ, since MPI lacks some
// constructors.
bool are_alike(const dtype::TypeTree& a, const dtype::TypeTree& b) {
  if (a.bounds != b.bounds) return false;
  if (dtype::to_string(*a.root) == dtype::to_string(*b.root)) return true;
  const auto places_of = [](const dtype::TypeTree& tree) {
    std::vector<std::int64_t> out;
    dtype::for_each_leaf(*dtype::normalize(tree.root).root, 0,
                         [&](const dtype::Leaf&, std::int64_t at) { out.push_back(at); });
    return out;
  };
  if (dtype::leaves_of(*a.root) > kMostReconstructed)
    return dtype::canonicalize(a) == dtype::canonicalize(b);
  return places_of(a) == places_of(b);
}

// Makes the MPI datatype of an expression that type_bounds() takes.
dtype::Datatype made(const dtype::TypeExpr& expr) {
  try {
    return dtype::make_datatype(expr);
  } catch (const MpiError& error) {  // rank 0 alone is here, and the expression is the cause
    throw ConfigError("the installed MPI does not make this type (" + std::string(error.what()) +
                      "): change the expression");
  }
}

Findings examine(const std::string& text) {
  const auto expr = dtype::parse_type(text);
  require_little_work(*expr);
  const auto bounds = dtype::type_bounds(*expr);  // refuses what would overflow inside of MPI
  const auto type = made(*expr);
  const auto decoded = dtype::decode(type.get());
  const auto* const known = std::get_if<dtype::TypeExprPtr>(&decoded);
  // MPI's bounds decide the places of the inner instances, so MPI's tree is used if it differs.
  auto tree = dtype::translate(*expr);
  if (known != nullptr)
    if (auto in_mpi = dtype::translate(**known); !are_alike(tree, in_mpi)) tree = std::move(in_mpi);
  Findings out{.expression = dtype::to_string(*expr),
               .decoded = known != nullptr ? dtype::to_string(**known) : "",
               .left_to_mpi = known != nullptr ? "" : std::get<UnsupportedDatatype>(decoded).what(),
               .bounds = bounds,
               .mpi = dtype::mpi_bounds(type.get()),
               .tree = dtype::to_string(*tree.root),
               .tree_cost = dtype::cost(*tree.root),
               .form = dtype::canonicalize(tree),
               .normalized = dtype::normalize(tree.root),
               .reconstructed = std::nullopt};
  out.leaves = dtype::leaves_of(*tree.root);
  if (out.leaves > 0 && out.leaves <= kMostReconstructed) {
    // The normalised tree has no loops over nothing.
    dtype::TypeMap map;
    dtype::for_each_leaf(*out.normalized.root, 0, [&](const dtype::Leaf& leaf, std::int64_t at) {
      map.entries.push_back({leaf.type, at});
    });
    out.reconstructed = reconstruct(dtype::typed_sequence(map));
  }
  return out;
}

std::string as_json(const Findings& findings) {
  const auto& form = findings.form;
  const auto nest = form.nest();
  const dtype::PackPlan plan(form);
  // Lists a property of each dimension of a StridedBlock [PEA21]. Dimension 0 is the run; the loops
  // follow from the inside out. Null if the type is not one nest of loops.
  const auto dimensions = [&](std::int64_t first, std::int64_t dtype::LoopLevel::*member) {
    if (!nest) return Json();
    auto list = Json::array({first});
    for (const auto& level : nest->levels) list.push_back(level.*member);
    return list;
  };
  Json out;
  out["expression"] = findings.expression;
  out["decoded"] = findings.decoded;
  out["supported"] = findings.left_to_mpi.empty();
  if (!findings.left_to_mpi.empty()) out["reason"] = findings.left_to_mpi;
  out.update(to_json(findings.bounds));
  out["contiguous"] = nest && nest->contiguous();
  out["start"] = form.start;
  out["counts"] = dimensions(nest ? nest->run : 0, &dtype::LoopLevel::count);
  out["strides"] = dimensions(1, &dtype::LoopLevel::stride);
  out["packed_strides"] = dimensions(1, &dtype::LoopLevel::packed_stride);
  out["blocks"] = form.runs();
  out["cost"] = dtype::cost(form);
  out["type_tree"] = findings.tree;
  out["normalized"] = dtype::to_string(*findings.normalized.root);
  out["normalized_cost"] = findings.normalized.cost;
  out["canonical"] = dtype::to_string(form.root);
  out["plan"] = dtype::to_string(plan);
  out["word_bytes"] = plan.word_bytes();
  out["metadata_bytes"] = plan.metadata_bytes();
  out["mpi"] = to_json(findings.mpi);
  if (findings.reconstructed) out.update(to_json(*findings.reconstructed));
  return out.dump() + "\n";
}

// Formats a number with commas between thousands.
std::string grouped(std::int64_t value) {
  auto out = std::to_string(value);
  for (auto at = std::ssize(out) - 3; at > (value < 0 ? 1 : 0); at -= 3)
    out.insert(static_cast<std::size_t>(at), ",");
  return out;
}

std::string bytes(std::int64_t value) {
  return grouped(value) + (value == 1 ? " byte" : " bytes");
}

constexpr std::size_t kCells = 64;  // width of a picture

// Draws a loop's stride as a bar. A # is full of data, or of inner loops.
std::string bar(std::int64_t full, std::int64_t step) {
  const auto share = static_cast<double>(full) / static_cast<double>(step);
  const auto cells = std::clamp<std::int64_t>(std::llround(share * kCells / 2), 1, kCells / 2);
  std::string out(kCells / 2, '.');
  out.replace(0, static_cast<std::size_t>(cells), static_cast<std::size_t>(cells), '#');
  return "[" + out + "]";
}

// Draws one line for each loop, the innermost first.
std::string picture(const dtype::LoopNest& nest) {
  std::string out;
  auto span = nest.run;
  for (const auto& level : nest.levels) {
    const auto step = std::abs(level.stride);
    const auto full = std::min(span, step);
    out += "  " + bar(std::max<std::int64_t>(full, 1), std::max<std::int64_t>(step, 1)) + "  " +
           (step == 0     ? "the same " + bytes(span)
            : span > step ? bytes(span) + " every " + bytes(step) + ", overlapping"
                          : grouped(full) + " of " + bytes(step)) +
           ", " + grouped(level.count) + " times\n";
    span += (level.count - 1) * step;
  }
  return out;
}

// Draws the places of all bytes of a type that is no nest of loops.
std::string picture(const dtype::TreeNode& tree, const dtype::TypeBounds& bounds) {
  const auto cell = (bounds.true_extent - 1) / static_cast<std::int64_t>(kCells) + 1;
  std::vector<std::int64_t> held(static_cast<std::size_t>((bounds.true_extent - 1) / cell + 1));
  dtype::for_each_leaf(tree, -bounds.true_lb, [&](const dtype::Leaf& leaf, std::int64_t at) {
    for (auto left = leaf.bytes; left > 0;) {
      const auto here = std::min(left, cell - at % cell);
      held[static_cast<std::size_t>(at / cell)] += here;
      at += here, left -= here;
    }
  });
  std::string out = "  [";
  for (const auto n : held) out += n >= cell ? '#' : 2 * n >= cell ? '+' : n > 0 ? '-' : '.';
  return out + "]\n  each sign is " + bytes(cell) + ": # full, + half and more, - less, . empty\n";
}

bool is_in_memory_order(const dtype::LoopNest& nest) {
  std::int64_t before = 0;
  for (const auto& level : nest.levels) {
    if (level.stride < 0 || level.packed_stride < before) return false;
    before = level.packed_stride;
  }
  return true;
}

// Says in words how the packer copies an instance.
std::string copied_as(const dtype::PackPlan& plan) {
  using Kind = dtype::detail::Op::Kind;
  const auto& op = plan.program().entry(1);
  switch (op.kind) {
    case Kind::strided:
      return (op.strided.innermost_height > 0 ? "tiles of " : "rows of ") + bytes(op.strided.run);
    case Kind::blocks:
      return "a list of blocks of " + bytes(op.child_size);
    case Kind::runs:
      return "a list of blocks of several lengths";
    case Kind::repeat:
    case Kind::buckets:
    case Kind::each:
      return "a pattern of " + bytes(op.child_size) + ", again and again";
    case Kind::members:
      return grouped(op.count) + " parts, one after the other";
  }
  return "";
}

// Returns the cheapest of some trees.
const dtype::Reconstruction& cheapest(const std::vector<const dtype::Reconstruction*>& found) {
  return **std::min_element(found.begin(), found.end(),
                            [](const auto* a, const auto* b) { return a->cost < b->cost; });
}

/// Holds a type in MPI's constructors and the cost of the tree that it is translated into.
struct InMpi {
  std::string text;
  std::int64_t cost;
};

// Returns a tree in MPI's constructors. Resizes the type only if MPI's own bounds would differ.
InMpi in_mpi(const dtype::TreeNodePtr& root, const dtype::TypeBounds& bounds) {
  auto expr = dtype::to_type_expr({root, bounds});
  if (const auto* resized = std::get_if<dtype::Resized>(&expr->node))
    if (dtype::mpi_bounds(made(*resized->old).get()) == bounds) expr = resized->old;
  return {dtype::to_string(*expr), dtype::cost(*dtype::translate(*expr).root)};
}

// Returns the bounds of a type that begins and ends with its data.
dtype::TypeBounds bounds_of(const dtype::TypedSequence& sequence) {
  if (sequence.displacements.empty()) return {};
  std::int64_t size = 0, lb = INT64_MAX, ub = INT64_MIN;
  for (std::size_t i = 0; i < sequence.displacements.size(); ++i) {
    const auto at = sequence.displacements[i];
    const auto& leaf =
        sequence.leaves[sequence.kinds.empty() ? 0 : static_cast<std::size_t>(sequence.kinds[i])];
    size += leaf.bytes, lb = std::min(lb, at), ub = std::max(ub, at + leaf.bytes);
  }
  return {.size = size, .lb = lb, .extent = ub - lb, .true_lb = lb, .true_extent = ub - lb};
}

// Returns the reconstructions that MPI has constructors for.
std::vector<const dtype::Reconstruction*> of_mpi(const Reconstructed& found) {
  std::vector<const dtype::Reconstruction*> out;
  for (const auto* one : {&found.path, &found.extended, &found.tree})
    if (*one) out.push_back(&**one);
  return out;
}

// Says if MPI has a cheaper or a shorter constructor for the type.
std::string verdict(const Findings& findings) {
  auto best = in_mpi(findings.normalized.root, findings.form.bounds);
  if (findings.reconstructed)
    for (const auto* one : of_mpi(*findings.reconstructed)) {
      if (one->cost > best.cost) continue;
      auto other = in_mpi(one->root, findings.form.bounds);
      if (std::pair(other.cost, other.text.size()) < std::pair(best.cost, best.text.size()))
        best = std::move(other);
    }
  // A short list costs less than a loop and a shift. Nobody rewrites a type for that, so a gain has
  // to be clear.
  const auto is_worth_it =
      4 * best.cost <= 3 * findings.tree_cost || best.text.size() <= findings.expression.size();
  const std::string found = findings.reconstructed ? ""
                                                   : " that was found (above " +
                                                         grouped(kMostReconstructed) + " elements)";
  if (best.cost < findings.tree_cost && is_worth_it)
    return "cheapest in MPI" + found + ": " + shortened(best.text) + "\n";
  if (best.cost == findings.tree_cost && best.text.size() < findings.expression.size())
    return "the same in fewer words: " + shortened(best.text) + "\n";
  return "MPI has nothing clearly cheaper" + found + "\n";
}

std::string summary(const Findings& findings) {
  const auto& form = findings.form;
  const auto& bounds = form.bounds;
  std::string out;
  if (bounds.size == 0) {
    out = "no data";
  } else if (const auto nest = form.nest(); nest && nest->contiguous()) {
    out = bytes(bounds.size) + " in one piece; copied by memcpy\n";
  } else {
    out = bytes(bounds.size) + " in " + grouped(form.runs()) + " runs of ";
    out += nest ? bytes(nest->run)
                : "about " + bytes(std::max<std::int64_t>(bounds.size / form.runs(), 1));
    if (nest && nest->levels.size() == 1)
      out += ", " + bytes(std::abs(nest->levels[0].stride)) + " apart,";
    out += " over " + bytes(bounds.true_extent);
    if (nest && !is_in_memory_order(*nest)) out += ", not in the order of memory";
    out += "\n";
    if (nest)
      out += picture(*nest);
    else if (findings.leaves <= kMostReconstructed)
      out += picture(*findings.normalized.root, bounds);
    out += "copied as " + copied_as(dtype::PackPlan(form)) + "\n";
  }
  if (bounds.size == 0) out += "\n";
  out += "extent " + bytes(bounds.extent);
  if (bounds.lb != 0) out += ", lower bound " + grouped(bounds.lb);
  if (bounds.true_lb != 0) out += "; data begin at byte " + grouped(bounds.true_lb);
  out += "\n";
  if (findings.mpi != findings.bounds)
    out += "the installed MPI has other bounds than the standard's rule, and plans follow it: " +
           to_text(findings.mpi) + "\n";
  if (!findings.left_to_mpi.empty())
    out += "left to MPI by the library: " + findings.left_to_mpi + "\n";
  if (bounds.size > 0) out += verdict(findings);
  return out;
}

std::string as_text(const Findings& findings) {
  std::string out = "expression  " + shortened(findings.expression) + "\n";
  if (findings.decoded != findings.expression && !findings.decoded.empty())
    out += "in MPI      " + shortened(findings.decoded) + "\n";
  if (!findings.left_to_mpi.empty())
    out += "in MPI      left to it by the library: " + findings.left_to_mpi + "\n";
  const auto& form = findings.form;
  const auto nest = form.nest();
  out += "tree        " + shortened(findings.tree) + "\n";
  out += line("normalized  ", findings.normalized);
  out += "canonical   " +
         (nest ? dtype::to_string(*nest)
               : "start " + std::to_string(form.start) + ", " + dtype::to_string(form.root)) +
         ", cost " + std::to_string(dtype::cost(form)) + "\n";
  out += "blocks      " + std::to_string(form.runs()) + " of " + std::to_string(form.bounds.size) +
         " bytes together\n";
  const dtype::PackPlan plan(form);
  out += "plan        words of " + std::to_string(plan.word_bytes()) + " bytes, " +
         std::to_string(plan.metadata_bytes()) + " bytes of tables; instance by instance:\n" +
         indented(dtype::to_string(plan));
  if (findings.reconstructed)
    out += to_text(*findings.reconstructed);
  else if (findings.leaves > kMostReconstructed)
    out += "path        left out: more than " + std::to_string(kMostReconstructed) + " elements\n";
  out += "bounds      " + to_text(findings.bounds) + "\n";
  if (findings.mpi != findings.bounds) out += "MPI reports " + to_text(findings.mpi) + "\n";
  return out;
}

}  // namespace

std::string inspect_expression(const std::string& expression, View view) {
  const auto findings = examine(expression);
  if (view == View::json) return as_json(findings);
  return summary(findings) + (view == View::verbose ? "\n" + as_text(findings) : "");
}

std::string inspect_sequence(const dtype::TypedSequence& sequence, View view) {
  const auto found = reconstruct(sequence);
  if (view == View::json) return to_json(found).dump() + "\n";
  const auto shown = of_mpi(found);
  std::string out = grouped(found.elements) + (found.elements == 1 ? " element\n" : " elements\n");
  if (!shown.empty())
    out += "cheapest in MPI: " + shortened(in_mpi(cheapest(shown).root, bounds_of(sequence)).text) +
           "\n";
  return out + (view == View::verbose ? "\n" + to_text(found) : "");
}

std::string emit_expression(const std::string& expression, Language language) {
  const auto expr = dtype::parse_type(expression);
  require_little_work(*expr);
  dtype::type_bounds(*expr);
  // The datatype that MPI holds has only MPI's own constructors.
  const auto decoded = dtype::decode(made(*expr).get());
  if (const auto* reason = std::get_if<UnsupportedDatatype>(&decoded))
    throw ConfigError("emit has no calls for this type (" + std::string(reason->what()) +
                      "): change the expression");
  return emitted(*std::get<dtype::TypeExprPtr>(decoded),
                 "Makes " + shortened(dtype::to_string(*expr), 60) + ".", language);
}

int inspect(const Config& config, MPI_Comm comm) {
  const auto given = (config.expression.empty() ? 0 : 1) + (config.displacements.empty() ? 0 : 1) +
                     (config.typemap.empty() ? 0 : 1);
  if (given == 0)
    throw ConfigError(
        "expression is missing (inspect): give a datatype in quotes, such as halocline inspect "
        "'vector(5,4,4,double)', or a file with --displacements or --typemap");
  if (given > 1)
    throw ConfigError(
        "expression, displacements and typemap exclude each other (inspect): give one of them");
  if ((config.emit != Language::none) + config.json + config.verbose > 1)
    throw ConfigError("emit, json and verbose exclude each other (inspect): give one of them");
  if (config.emit != Language::none && config.expression.empty())
    throw ConfigError(
        "emit is for expressions (inspect): give one in quotes; 'cheapest in MPI' of a list is "
        "one");
  const auto view = config.json ? View::json : config.verbose ? View::verbose : View::summary;
  run_on_root(comm, [&] {
    if (config.emit != Language::none)
      print(emit_expression(config.expression, config.emit));
    else if (!config.expression.empty())
      print(inspect_expression(config.expression, view));
    else
      print(inspect_sequence(config.typemap.empty() ? read_displacements(config.displacements)
                                                    : read_type_map(config.typemap),
                             view));
  });
  return 0;
}

}  // namespace halocline::app
