// SPDX-License-Identifier: BSD-3-Clause
#include "comm/gather/element_blocks.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <string>

#include "dtype/datatype.hpp"
#include "dtype/reconstruct/signature.hpp"
#include "dtype/type_tree.hpp"
#include "support/mpi_check.hpp"
#include "support/narrow.hpp"

namespace halocline::comm {

using dtype::ElementRange;
using dtype::TypeExprPtr;

namespace {

void check_count(std::int64_t elements) {
  if (elements < 0)
    throw ConfigError("negative number of elements (" + std::to_string(elements) +
                      "): count basic elements from 0 on");
}

TypeExprPtr expression_of(MPI_Datatype type) {
  auto expr = dtype::decode(type);
  if (const auto* unsupported = std::get_if<UnsupportedDatatype>(&expr))
    throw ConfigError(unsupported->what());
  return std::get<TypeExprPtr>(expr);
}

}  // namespace

std::int64_t elements_of(const ElementBlocks& blocks) {
  return std::accumulate(
      blocks.begin(), blocks.end(), std::int64_t{0},
      [](std::int64_t sum, const ElementBlock& block) { return sum + block.elements(); });
}

void append(ElementBlocks& out, const ElementBlocks& more) {
  out.insert(out.end(), more.begin(), more.end());
}

TypedBuffer join(const ElementBlocks& blocks) {
  std::vector<TypedBuffer> parts;
  for (std::size_t i = 0; i < blocks.size();) {
    const auto& first = blocks[i];
    std::vector<ElementRange> ranges;
    for (; i < blocks.size() && blocks[i].buffer == first.buffer && blocks[i].type == first.type;
         ++i) {
      const auto& range = blocks[i].range;
      if (!ranges.empty() && ranges.back().last == range.first)
        ranges.back().last = range.last;
      else
        ranges.push_back(range);
    }
    parts.push_back({first.buffer, element_ranges(*first.type, ranges)});
  }
  if (parts.size() == 1) return parts.front();
  dtype::Struct all;
  for (const auto& part : parts) {
    all.blocklengths.push_back(1);
    all.displacements.push_back(static_cast<std::int64_t>(
        reinterpret_cast<std::intptr_t>(part.buffer)));  // NOLINT(performance-no-int-to-ptr)
    all.old.push_back(part.type);
  }
  return {MPI_BOTTOM, dtype::type(std::move(all))};
}

std::vector<ElementBlocks> divide(const ElementBlocks& blocks, std::int64_t most) {
  std::vector<ElementBlocks> out;
  std::int64_t room = 0;
  for (auto block : blocks)
    while (block.elements() > 0) {
      if (room == 0) {
        out.emplace_back();
        room = most;
      }
      auto piece = block;
      piece.range.last = std::min(block.range.last, block.range.first + room);
      room -= piece.elements();
      block.range.first = piece.range.last;
      out.back().push_back(std::move(piece));
    }
  return out;
}

ElementBlock first_elements(void* buffer, MPI_Datatype type, std::int64_t elements) {
  check_count(elements);
  return {buffer, expression_of(type), {0, elements}};
}

std::int64_t whole_instances(std::int64_t elements, std::int64_t each, const char* who_can) {
  if (each == 0) return 0;
  if (elements % each != 0)
    throw ConfigError("a block is no whole number of instances (" + std::to_string(elements) +
                      " elements of a type of " + std::to_string(each) + "): " + who_can);
  return elements / each;
}

ElementBlocks consecutive_blocks(void* buffer, MPI_Datatype type,
                                 const std::vector<std::int64_t>& elements, int ranks) {
  if (elements.size() != 1 && std::ssize(elements) != ranks)
    throw ConfigError("numbers of elements for " + std::to_string(elements.size()) + " ranks (of " +
                      std::to_string(ranks) + "): give one, or one for each");
  ElementBlocks out;
  auto block = first_elements(buffer, type, 0);
  for (std::size_t rank = 0; std::ssize(out) < ranks; ++rank) {
    const auto own = elements[elements.size() == 1 ? 0 : rank];
    check_count(own);
    block.range = {block.range.last, checked_add(block.range.last, own)};
    out.push_back(block);
  }
  return out;
}

void check_match(int rank, std::int64_t sent, std::int64_t received) {
  if (sent != received)
    throw ConfigError("numbers of elements do not match (rank " + std::to_string(rank) + " sends " +
                      std::to_string(sent) + ", " + std::to_string(received) +
                      " are received): give the same at both ends");
}

Contributions Contributions::same(int ranks, const dtype::TypeExpr& type) {
  Contributions out;
  const auto signature = dtype::signature_type(type);
  out.distinct_.push_back(
      {dtype::basic_element_count(type), dtype::type_bounds(*signature).size, signature});
  out.which_.assign(static_cast<std::size_t>(ranks), 0);
  return out;
}

Contributions Contributions::exchanged(MPI_Comm comm, const dtype::TypeExpr& type) {
  int ranks = 1;
  HALOCLINE_MPI(MPI_Comm_size(comm, &ranks));
  auto own = same(ranks, type);
  const auto text = to_string(*own.distinct_.front().type);

  struct Summary {
    dtype::SignatureHash signature;
    std::int64_t length;
  };
  static_assert(sizeof(Summary) == 3 * sizeof(std::int64_t));
  const Summary summary{dtype::signature_hash(type), std::ssize(text)};
  std::vector<Summary> summaries(static_cast<std::size_t>(ranks));
  HALOCLINE_MPI(MPI_Allgather(&summary, 3, MPI_INT64_T, summaries.data(), 3, MPI_INT64_T, comm));
  if (std::all_of(summaries.begin(), summaries.end(),
                  [&](const Summary& other) { return other.signature == summary.signature; }))
    return own;

  std::vector<int> lengths, begins;
  std::int64_t end = 0;
  for (const auto& one : summaries) {
    begins.push_back(checked_int(end, "length of all signatures"));
    lengths.push_back(checked_int(one.length, "length of a signature"));
    end += one.length;
  }
  std::string texts(static_cast<std::size_t>(end), ' ');
  HALOCLINE_MPI(MPI_Allgatherv(text.data(), checked_int(std::ssize(text), "length of a signature"),
                               MPI_CHAR, texts.data(), lengths.data(), begins.data(), MPI_CHAR,
                               comm));
  Contributions out;
  std::map<dtype::SignatureHash, int> known;
  for (std::size_t rank = 0; rank < summaries.size(); ++rank) {
    const auto& signature = summaries[rank].signature;
    const auto [found, is_new] =
        known.try_emplace(signature, static_cast<int>(out.distinct_.size()));
    if (is_new) {
      const auto one = dtype::parse_type(texts.substr(static_cast<std::size_t>(begins[rank]),
                                                      static_cast<std::size_t>(lengths[rank])));
      out.distinct_.push_back({signature.elements, dtype::type_bounds(*one).size, one});
    }
    out.which_.push_back(found->second);
  }
  return out;
}

std::int64_t Contributions::elements_of_all() const {
  std::int64_t sum = 0;
  for (int rank = 0; rank < static_cast<int>(which_.size()); ++rank) sum += elements(rank);
  return sum;
}

std::int64_t Contributions::bytes_of_all() const {
  std::int64_t sum = 0;
  for (int rank = 0; rank < static_cast<int>(which_.size()); ++rank) sum += bytes(rank);
  return sum;
}

TypeExprPtr Contributions::sequence(const std::vector<int>& ranks) const {
  if (all_same()) return dtype::type(dtype::Contiguous{std::ssize(ranks), distinct_.front().type});
  dtype::Struct all;
  std::int64_t end = 0;
  for (const int rank : ranks) {
    all.blocklengths.push_back(1);
    all.displacements.push_back(end);
    all.old.push_back(of(rank).type);
    end += bytes(rank);
  }
  return dtype::type(std::move(all));
}

}  // namespace halocline::comm
