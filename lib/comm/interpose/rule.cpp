// SPDX-License-Identifier: BSD-3-Clause
#include "comm/interpose/rule.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include "comm/interpose/settings.hpp"
#include "dtype/pack/block_list.hpp"
#include "support/error.hpp"
#include "support/machine.hpp"
#include "support/overload.hpp"

namespace halocline::interpose {

namespace {

bool is_model_given() {
  const auto* const given = std::getenv("HALOCLINE_MODEL");
  return given != nullptr && *given != '\0';
}

std::optional<dtype::SystemModel> read_model_of_user() {
  const bool is_given = is_model_given();
  const bool is_logged = settings().log != Settings::Log::none;
  try {
    const auto path = dtype::default_model_path();
    if (!is_given && !std::filesystem::exists(path)) {
      if (is_logged && is_first_rank())
        std::fprintf(stderr,
                     "halocline: there is no system model (%s): messages are left to MPI until "
                     "'halocline calibrate' has measured one\n",
                     path.c_str());
      return std::nullopt;
    }
    auto out = dtype::read_model(path);
    auto here = out.provenance;  // the device is compared later, when one is found
    here.cpu = cpu_model();
    here.mpi = mpi_library();
    if (const auto differences = dtype::require_match(out.provenance, here, true);
        !differences.empty())
      throw ConfigError(path + ": the system model is of another machine (" + differences +
                        "): measure this one with 'halocline calibrate'");
    if (const auto flaws = flaws_of(out, path); !flaws.empty() && is_logged && is_first_rank())
      std::fprintf(stderr, "halocline: %s\n", flaws.c_str());
    return out;
  } catch (const std::exception& error) {
    // Without a log or HALOCLINE_MODEL, nobody has asked for a model.
    if ((is_given || is_logged) && is_first_rank())
      std::fprintf(stderr, "halocline: %s; goes on without a model%s\n", error.what(),
                   settings().mode == Settings::Mode::engine ? "" : ", messages are left to MPI");
    return std::nullopt;
  }
}

// Says what makes the blocks of a type.
enum class Kind { one_block, strided, listed };

Kind kind_of(const dtype::TypeExpr& expression) {
  using namespace dtype;
  auto out = Kind::one_block;
  const TypeExpr* last = nullptr;  // members of a struct often share one type
  for (const auto& inside : types_inside(expression)) {
    if (std::exchange(last, inside.get()) == inside.get()) continue;
    const auto kind = kind_of(*inside);
    if (out != Kind::strided && kind != Kind::one_block) out = kind;
  }
  if (out != Kind::one_block) return out;
  return std::visit(
      []<class Node>(const Node&) {
        if constexpr (kIsOneOf<Node, Indexed, Hindexed, IndexedBlock, HindexedBlock, Struct>)
          return Kind::listed;
        else if constexpr (kIsOneOf<Node, Vector, Hvector, Subarray, Darray>)
          return Kind::strided;
        else
          return Kind::one_block;
      },
      expression.node);
}

struct Distances {
  std::int64_t mean;  // bytes
  bool regular;       // more than three quarters of the distances are equal
};

// Measures the distances of the first blocks in packed order.
Distances distances_of(const dtype::PackPlan& plan) {
  std::array<dtype::MemoryBlock, 65> first;
  std::int64_t position = 0;
  const auto number = dtype::list_blocks(plan, 1, position, first);
  if (number < 2) return {0, true};
  std::vector<std::int64_t> all;
  double sum = 0;  // a sum of whole numbers could overflow
  for (std::size_t i = 1; i < number; ++i) {
    all.push_back(std::abs(first[i].offset - first[i - 1].offset));
    sum += static_cast<double>(all.back());
  }
  // A value that fills most of a sorted list stands in the middle.
  std::sort(all.begin(), all.end());
  const auto equal = std::count(all.begin(), all.end(), all[all.size() / 2]);
  return {static_cast<std::int64_t>(sum / static_cast<double>(all.size())),
          4 * equal > 3 * std::ssize(all)};
}

int number_in(const char* variable) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? -1 : std::atoi(text);
}

// Returns the times of messages between the ranks of this job; nullptr if none were measured.
const dtype::BlockTimes* block_times() {
  static const auto* const value = [] {
    const dtype::BlockTimes* none = nullptr;
    if (model() == nullptr) return none;
    const auto& times = all_ranks_are_near() ? model()->blocks_on_node : model()->blocks_off_node;
    if (times != dtype::BlockTimes()) return &times;
    if (settings().log != Settings::Log::none && is_first_rank())
      std::fprintf(stderr,
                   "halocline: the system model has no messages of blocks %s: they are left to MPI "
                   "until 'halocline calibrate' has measured them\n",
                   all_ranks_are_near() ? "on the node" : "between nodes");
    return none;
  }();
  return value;
}

}  // namespace

const dtype::SystemModel* model() {
  // Never destroyed: a program may send while it ends.
  static const auto& value = *new auto(read_model_of_user());
  return value ? &*value : nullptr;
}

bool is_model_missing() {
  std::error_code error;
  return is_model_given() && !std::filesystem::exists(dtype::default_model_path(), error);
}

bool all_ranks_are_near() {
  static const bool value = [] {
    int ranks = 0;
    PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
    // The variables are Open MPI's, that of MPICH and Intel MPI, and Slurm's without these
    // launchers.
    const int open_mpi = number_in("OMPI_COMM_WORLD_LOCAL_SIZE");
    const int near = open_mpi > 0 ? open_mpi : number_in("MPI_LOCALNRANKS");
    return ranks == 1 || near == ranks || (near < 0 && number_in("SLURM_STEP_NUM_NODES") == 1);
  }();
  return value;
}

bool has_message_times() {
  return block_times() != nullptr;
}

std::optional<MessageTime> message_time(const dtype::BlockTimes& times, const Blocks& blocks,
                                        std::int64_t bytes, MessagePattern pattern) {
  const auto& measured = blocks.listed ? times.listed : times.strided;
  const auto& [packed, typed] =
      pattern == MessagePattern::one_way ? measured.one_way : measured.both_ways;
  if (bytes > kLongestMessage || !packed || bytes < packed->axes().bytes.front())
    return std::nullopt;
  const auto& [block, stride] = blocks.shape;
  const auto ours = block_message_seconds(packed, blocks.shape, bytes);
  const auto mpi = block_message_seconds(typed, {block, std::max(stride, blocks.distance)}, bytes);
  return ours && mpi ? std::optional(MessageTime{*ours, *mpi}) : std::nullopt;
}

std::optional<MessageTime> message_time(const Blocks& blocks, std::int64_t bytes,
                                        MessagePattern pattern) {
  const auto* const times = block_times();
  return times != nullptr ? message_time(*times, blocks, bytes, pattern) : std::nullopt;
}

bool engine_sends(const Blocks& blocks, std::int64_t bytes, MessagePattern pattern) {
  if (!engine_packs(blocks, bytes) || blocks.shape.block_bytes >= kLongSentBlock) return false;
  const auto time = message_time(blocks, bytes, pattern);
  return time && time->pays();
}

bool lists_blocks(const dtype::TypeExpr& expression) {
  return kind_of(expression) == Kind::listed;
}

Blocks blocks_of(const dtype::TypeExpr& expression, const dtype::PackPlan& plan) {
  const auto distances = distances_of(plan);
  return {dtype::shape_of(plan), distances.mean, !distances.regular && lists_blocks(expression)};
}

}  // namespace halocline::interpose
