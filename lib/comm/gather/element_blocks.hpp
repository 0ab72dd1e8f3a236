// SPDX-License-Identifier: BSD-3-Clause
// Messages put together from blocks of basic elements, wherever they are.
//
// Best peer: none. MPI's collectives place all blocks by one type and a count of it, which is what
// makes hierarchical ones copy [TR14 section 3]; here a message is any list of stretches of any
// layouts, and one derived type takes it from or to all of them.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <vector>

#include "dtype/reconstruct/element_range.hpp"
#include "dtype/type_expr.hpp"

namespace halocline::comm {

/// Basic elements `range` of the endless repetition of `type` at `buffer` [TR14 section 6].
struct ElementBlock {
  void* buffer;
  dtype::TypeExprPtr type;
  dtype::ElementRange range;
  /// The user's, and nothing is received there: whatever else begins at `buffer`, MPI_BOTTOM
  /// perhaps, is other memory.
  bool only_sent = false;

  std::int64_t elements() const { return range.last - range.first; }
};

/// Blocks that follow each other in a message.
using ElementBlocks = std::vector<ElementBlock>;

std::int64_t elements_of(const ElementBlocks& blocks);

void append(ElementBlocks& out, const ElementBlocks& more);

/// One instance of `type` at `buffer`.
struct TypedBuffer {
  void* buffer;
  dtype::TypeExprPtr type;
};

/// All elements of `blocks`, in their order: of one buffer, if all blocks are in it, else of
/// MPI_BOTTOM with absolute addresses. Blocks that continue each other are one. O(blocks), and
/// dtype::element_ranges() of each buffer.
TypedBuffer join(const ElementBlocks& blocks);

/// The same elements in pieces of at most `most`, which is positive. O(blocks + pieces).
std::vector<ElementBlocks> divide(const ElementBlocks& blocks, std::int64_t most);

/// `elements` of the type behind a handle. Throws ConfigError for a negative number and for a type
/// that Halocline does not know.
ElementBlock first_elements(void* buffer, MPI_Datatype type, std::int64_t elements);

/// How many instances of a type of `each` elements a block has. Throws ConfigError that ends with
/// `who_can` unless that is a whole number.
std::int64_t whole_instances(std::int64_t elements, std::int64_t each, const char* who_can);

/// A block for each of `ranks`, each behind the one before: rank i's has elements[i], or
/// elements[0] if that is all. Throws ConfigError likewise, and for any other number of numbers.
ElementBlocks consecutive_blocks(void* buffer, MPI_Datatype type,
                                 const std::vector<std::int64_t>& elements, int ranks);

/// Throws ConfigError if a rank's block has other numbers of elements at its two ends.
void check_match(int rank, std::int64_t sent, std::int64_t received);

/// What each rank contributes to a collective: how many elements, and of which signature, so that
/// ranks between it and its destination have a type for it.
class Contributions {
 public:
  /// One instance of `type` from each of so many ranks. Local.
  static Contributions same(int ranks, const dtype::TypeExpr& type);
  /// One instance of `type` from this rank: every rank asks all. O(ranks), and their signatures
  /// where they differ. Collective.
  static Contributions exchanged(MPI_Comm comm, const dtype::TypeExpr& type);

  std::int64_t elements(int rank) const { return of(rank).elements; }
  std::int64_t bytes(int rank) const { return of(rank).bytes; }
  std::int64_t elements_of_all() const;
  std::int64_t bytes_of_all() const;
  bool all_same() const { return distinct_.size() == 1; }
  /// The contributions of `ranks`, one behind the other, as one instance of a type without gaps.
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
  std::vector<int> which_;  // by rank
};

}  // namespace halocline::comm
