// SPDX-License-Identifier: BSD-3-Clause
// Makes messages from blocks of basic elements that are anywhere in memory.
//
// Best peer: none. MPI's collectives place all blocks by one type and a count. Hierarchical
// collectives therefore have to copy [TR14 section 3]. Here a message is any list of blocks of any
// layouts, and one derived type covers all of them.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <vector>

#include "dtype/reconstruct/element_range.hpp"
#include "dtype/type_expr.hpp"

namespace halocline::comm {

/// Describes the basic elements `range` of the endless repetition of `type` at `buffer` [TR14
/// section 6].
struct ElementBlock {
  void* buffer;
  dtype::TypeExprPtr type;
  dtype::ElementRange range;
  /// Says that the block is the user's, and that nothing is received there. Other blocks at the
  /// same `buffer`, such as MPI_BOTTOM, are then other memory.
  bool only_sent = false;

  std::int64_t elements() const { return range.last - range.first; }
};

/// Lists blocks that follow each other in a message.
using ElementBlocks = std::vector<ElementBlock>;

std::int64_t elements_of(const ElementBlocks& blocks);

void append(ElementBlocks& out, const ElementBlocks& more);

/// Describes one instance of `type` at `buffer`.
struct TypedBuffer {
  void* buffer;
  dtype::TypeExprPtr type;
};

/// Returns all elements of `blocks`, in their order, as one type. The type begins at the buffer of
/// the blocks if all blocks have the same buffer and type. Otherwise it begins at MPI_BOTTOM, with
/// absolute addresses. Blocks that continue each other are merged. O(blocks), and
/// dtype::element_ranges() for each buffer.
TypedBuffer join(const ElementBlocks& blocks);

/// Divides the elements of `blocks`, in their order, into pieces of at most `most` > 0 elements.
/// O(blocks + pieces).
std::vector<ElementBlocks> divide(const ElementBlocks& blocks, std::int64_t most);

/// Returns a block of the first `elements` elements of `type` at `buffer`.
/// \throws ConfigError for a negative number, or a type that Halocline does not know.
ElementBlock first_elements(void* buffer, MPI_Datatype type, std::int64_t elements);

/// Returns the number of instances in a block, for a type of `each` elements.
/// \throws ConfigError that ends with `who_can` if this is not a whole number.
std::int64_t whole_instances(std::int64_t elements, std::int64_t each, const char* who_can);

/// Returns a block for each of `ranks`, each behind the block before. Rank i's block has
/// elements[i] elements, or elements[0] if that is the only number.
/// \throws ConfigError for a negative number, for a type that Halocline does not know, and for any
/// other size of `elements`.
ElementBlocks consecutive_blocks(void* buffer, MPI_Datatype type,
                                 const std::vector<std::int64_t>& elements, int ranks);

/// Throws ConfigError if the block of `rank` has different numbers of elements at its two ends.
void check_match(int rank, std::int64_t sent, std::int64_t received);

/// Holds what each rank contributes to a collective: number and signature of the elements. Ranks
/// between a rank and its destination need the signature to pass the elements on.
class Contributions {
 public:
  /// Returns one instance of `type` from each of `ranks` ranks. Local.
  static Contributions same(int ranks, const dtype::TypeExpr& type);
  /// Returns one instance of the `type` of each rank; every rank learns all. O(ranks), and all
  /// signatures if they differ. Collective.
  static Contributions exchanged(MPI_Comm comm, const dtype::TypeExpr& type);

  std::int64_t elements(int rank) const { return of(rank).elements; }
  std::int64_t bytes(int rank) const { return of(rank).bytes; }
  std::int64_t elements_of_all() const;
  std::int64_t bytes_of_all() const;
  bool all_same() const { return distinct_.size() == 1; }
  /// Returns a type without gaps whose one instance holds the contributions of `ranks`, one behind
  /// the other.
  dtype::TypeExprPtr sequence(const std::vector<int>& ranks) const;

 private:
  struct Signature {
    std::int64_t elements, bytes;
    dtype::TypeExprPtr type;
  };
  const Signature& of(int rank) const {
    return distinct_[static_cast<std::size_t>(which_[static_cast<std::size_t>(rank)])];
  }

  std::vector<Signature> distinct_;
  std::vector<int> which_;  // index into distinct_, by rank
};

}  // namespace halocline::comm
