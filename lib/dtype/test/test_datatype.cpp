// SPDX-License-Identifier: BSD-3-Clause
// Tests making MPI datatypes from expressions, and reading them back.
#include "dtype/datatype.hpp"

#include <gtest/gtest.h>

#include <mpi.h>
#include <array>

#include <cstdlib>
#include <string>
#include <utility>

#include "byte_displacements.hpp"
#include "dtype/mpi_bounds.hpp"
#include "dtype/type_map.hpp"
#include "dtype/type_tree.hpp"
#include "support/mpi_check.hpp"

namespace halocline::dtype::test {

namespace {

// Every combiner that is read. Contents hand out derived types, named types, and both in one list.
constexpr const char* kEveryCombiner[] = {
    "double",
    "short_int",
    "dup(int)",
    "contiguous(3,dup(int))",
    "vector(5,4,-4,contiguous(2,double))",
    "hvector(3,1,53,contiguous(13,byte))",
    "indexed({2,0,2},{0,4,-8},vector(2,1,2,int))",
    "hindexed({2,1},{8,-24},dup(float))",
    "indexed_block(2,{0,9,4},resized(char,0,3))",
    "hindexed_block(1,{0,24,48},contiguous(2,float))",
    "struct({1,2,1},{0,8,-64},{int,dup(double),struct({1},{4},{byte})})",
    "subarray(C,{16,15,14},{1,8,7},{5,2,3},vector(2,1,2,int))",
    "subarray(F,{16,15},{1,8},{5,2},double)",
    "darray(6,4,{5,7},{cyclic,block},{2,default},{2,3},C,dup(int))",
    "darray(3,0,{5,7},{none,cyclic},{default,default},{1,3},F,short)",
    "resized(vector(2,1,2,int),-8,100)",
    "contiguous(0,int)",
    "struct({},{},{})",
    "indexed({},{},int)",
    "hindexed_block(0,{1,2},int)",
};

#if MPI_VERSION >= 4
// Every constructor that takes numbers, with a number that exceeds an int.
constexpr const char* kLargeCounts[] = {
    "contiguous(3000000000,byte)",
    "vector(2,1,-3000000000,byte)",
    "hvector(3000000000,1,7,byte)",
    "hvector(2,3000000000,4000000000,byte)",
    "indexed({1,1},{0,3000000000},short)",
    "indexed({1,3000000000},{7,0},vector(2,1,2,byte))",
    "hindexed({3000000000,1},{0,-8},byte)",
    "indexed_block(1,{0,-3000000000},byte)",
    "hindexed_block(3000000000,{0,24},byte)",
    "struct({1,3000000000},{0,8},{int,dup(byte)})",
    "subarray(C,{16,3000000000},{1,8},{5,2},double)",
    "darray(2,1,{3000000000,4},{block,none},{default,default},{2,1},C,int)",
    "resized(contiguous(3000000000,byte),0,1)",
};
#endif

std::string decoded(MPI_Datatype handle) {
  auto result = decode(handle);
  if (const auto* reason = std::get_if<UnsupportedDatatype>(&result)) return reason->what();
  return to_string(*std::get<TypeExprPtr>(result));
}

}  // namespace

TEST(Datatype, EveryCombinerIsReadBack) {
  for (const auto* text : kEveryCombiner)
    EXPECT_EQ(decoded(make_datatype(*parse_type(text)).get()), text);
}

// Open MPI takes a stride of -1 for no stride, and gives the first type other true bounds.
TEST(Datatype, IsLeftToAnMpiThatHasItsDataElsewhere) {
  for (const std::string inner :
       {"hvector(2,1,-1,resized(int,0,-26))", "hvector(2,1,-1,resized(int,0,-4000))"})
    for (const auto& text : {inner, "contiguous(2," + inner + ")", "resized(" + inner + ",0,9)"}) {
      const auto handle = make_datatype(*parse_type(text));
      const auto mpis = mpi_bounds(make_datatype(*parse_type(inner)).get());
      const bool is_in_place = mpis.true_lb == -1 && mpis.true_extent == 5;
      EXPECT_EQ(std::holds_alternative<TypeExprPtr>(decode(handle.get())), is_in_place) << text;
      EXPECT_EQ(std::holds_alternative<TypeTree>(translate(handle.get())), is_in_place) << text;
    }
}

// Some MPI gives each of these types, or a type inside, another extent than MPI's rule.
TEST(Datatype, HasTheBoundsThatThisMpiGivesToItAndToTypesInside) {
  const auto in_mpi = [](const TypeExprPtr& expr) {
    return mpi_bounds(make_datatype(*expr).get());
  };
  for (const std::string inner :
       {"hvector(3,1,9,struct({1,1},{0,1},{char,double}))",
        "struct({1,1,1},{8,40,0},{double,contiguous(0,double),int})",
        "struct({1,1},{0,5},{char,hvector(200,1,9,int)})",
        "hindexed({1,1},{0,803},struct({1,1},{0,8},{double,int}))", "hvector(4,1,7,float)"}) {
    const auto extent = in_mpi(parse_type(inner)).extent;
    for (const auto& text : {inner, "contiguous(3," + inner + ")", "vector(3,2,4," + inner + ")",
                             "resized(contiguous(3," + inner + "),0,4096)",
                             "struct({2,3},{0,1000},{" + inner + ",int})"}) {
      SCOPED_TRACE(text);
      const auto handle = make_datatype(*parse_type(text));
      const auto read = decode(handle.get());
      ASSERT_TRUE(std::holds_alternative<TypeExprPtr>(read));
      const auto bounds = type_bounds(*std::get<TypeExprPtr>(read)),
                 mpis = mpi_bounds(handle.get());
      EXPECT_EQ(bounds.lb, mpis.lb);
      EXPECT_EQ(bounds.extent, mpis.extent);
      EXPECT_EQ(bounds, std::get<TypeTree>(translate(handle.get())).bounds);
      // The second element of a block is one extent, as MPI computes it, behind the first element.
      const auto places = byte_displacements(type_map(*std::get<TypeExprPtr>(read)), 1);
      const auto one = static_cast<std::size_t>(type_bounds(*parse_type(inner)).size);
      if (text != inner) {
        EXPECT_EQ(places[one] - places[0], extent);
      }
    }
  }
}

TEST(Datatype, IsCommitted) {
  const auto handle = make_datatype(*parse_type("vector(2,1,2,int)"));
  const int memory[] = {1, 2, 3};
  int packed[2] = {}, position = 0;
  HALOCLINE_MPI(MPI_Pack(memory, 1, handle.get(), packed, sizeof packed, &position, MPI_COMM_SELF));
  EXPECT_EQ(packed[0], 1);
  EXPECT_EQ(packed[1], 3);
}

// Handles that are never freed show as growing Fortran indices. A type keeps its index until MPI
// has forgotten it, and new types get free indices nearby. Open MPI gives an index only on request.
// Leak checkers do not see such a type, since MPI's own table refers to it.
TEST(Datatype, HandlesAreFreed) {
  const auto make_indexed = [] {
    auto out = make_datatype(*parse_type("dup(int)"));
    MPI_Type_c2f(out.get());
    return out;
  };
  const auto index = [&] { return MPI_Type_c2f(make_indexed().get()); };
  const auto first = index();
  constexpr int kRounds = 50;
  for (int i = 0; i < kRounds; ++i) {
    for (const auto* text : kEveryCombiner) decode(make_datatype(*parse_type(text)).get());
    MPI_Datatype raw = MPI_DATATYPE_NULL;
    {
      const auto a = make_indexed(), b = make_indexed();
      const MPI_Datatype olds[] = {a.get(), b.get(), a.get(), MPI_INT};
      const int lengths[] = {1, 1, 1, 1};
      const MPI_Aint displacements[] = {0, 4, 8, 12};
      HALOCLINE_MPI(MPI_Type_create_struct(4, lengths, displacements, olds, &raw));
    }
    const Datatype members(raw);
    HALOCLINE_MPI(MPI_Type_contiguous(2, members.get(), &raw));
    EXPECT_EQ(decoded(Datatype(raw).get()),
              "contiguous(2,struct({1,1,1,1},{0,4,8,12},{dup(int),dup(int),dup(int),int}))");
  }
  EXPECT_LT(std::abs(index() - first), kRounds);
}

TEST(Datatype, OwnershipMoves) {
  Datatype a = make_datatype(*parse_type("contiguous(2,int)"));
  const auto handle = a.get();
  Datatype b = std::move(a);
  EXPECT_EQ(a.get(), MPI_DATATYPE_NULL);
  EXPECT_EQ(b.get(), handle);
  a = std::move(b);
  EXPECT_EQ(a.get(), handle);
}

TEST(Datatype, PredefinedHandlesAreLeftAlone) {
  { const Datatype owner(MPI_INT); }
  int size = 0;
  HALOCLINE_MPI(MPI_Type_size(MPI_INT, &size));
  EXPECT_EQ(size, 4);
}

TEST(Datatype, EveryPredefinedTypeIsReadBack) {
  for (const auto& named_type : named_types()) {
    EXPECT_EQ(decoded(named_type.handle), named_type.name);
    MPI_Aint lb = 0, extent = 0;
    HALOCLINE_MPI(MPI_Type_get_extent(named_type.handle, &lb, &extent));
    const auto bounds = type_bounds(TypeExpr{Named{&named_type}});
    EXPECT_EQ(bounds.lb, lb) << named_type.name;
    EXPECT_EQ(bounds.extent, extent) << named_type.name;
    if (named_type.name == "complex4") continue;  // MPICH aligns it like a float
    // A byte behind the type moves the end of a struct by the alignment.
    const auto padded =
        type(Struct{{1, 1}, {0, bounds.true_extent}, {named(named_type), named("byte")}});
    HALOCLINE_MPI(MPI_Type_get_extent(make_datatype(*padded).get(), &lb, &extent));
    EXPECT_EQ(type_bounds(*padded).extent, extent) << named_type.name;
  }
}

TEST(Datatype, FortranTypesHaveMpisSize) {
  if (find_named_type("integer") == nullptr) {  // an MPI built without Fortran
    EXPECT_THROW(named("integer"), ConfigError);
    return;
  }
  for (const auto* name : {"integer", "real", "double_precision", "complex", "double_complex",
                           "logical", "character", "2integer", "2real", "2double_precision"}) {
    ASSERT_NE(find_named_type(name), nullptr) << name;
    int size = 0;
    HALOCLINE_MPI(MPI_Type_size(find_named_type(name)->handle, &size));
    EXPECT_EQ(type_bounds(*named(name)).size, size) << name;
  }
}

// These predefined types have their own combiner. Contents hand them out, and freeing one would be
// an error.
TEST(Datatype, ParametrizedFortranTypesAreReadBackAndNeverFreed) {
  if (find_f90_type(F90Kind::real, 15, 307) == nullptr) {  // an MPI built without Fortran
    EXPECT_THROW(parse_type("f90_real(15,307)"), ConfigError);
    return;
  }
  for (const auto* text :
       {"f90_real(15,307)", "f90_real(6,undefined)", "f90_complex(6,37)", "f90_integer(9)",
        "struct({1,2},{0,8},{f90_integer(4),f90_real(15,307)})"}) {
    const auto expr = parse_type(text);
    for (int i = 0; i < 1000; ++i) {
      const auto pair = make_datatype(TypeExpr{Contiguous{2, expr}});
      ASSERT_EQ(decoded(pair.get()), "contiguous(2," + std::string(text) + ")") << i;
    }
    MPI_Count size = 0;
    HALOCLINE_MPI(MPI_Type_size_x(make_datatype(*expr).get(), &size));
    EXPECT_EQ(type_bounds(*expr).size, size) << text;
  }
  EXPECT_EQ(type_bounds(*parse_type("struct({1,1},{0,8},{f90_real(15,307),byte})")).extent, 16);
}

// The type is not in the standard, so some MPIs have nothing to test here.
#ifdef MPI_2COMPLEX
TEST(Datatype, PredefinedTypesThatAreNotKnownAreUnsupported) {
  EXPECT_NE(decoded(MPI_2COMPLEX).find("MPI_2COMPLEX"), std::string::npos);
  MPI_Datatype raw = MPI_DATATYPE_NULL;
  HALOCLINE_MPI(MPI_Type_contiguous(2, MPI_2COMPLEX, &raw));
  const Datatype nested(raw);
  EXPECT_TRUE(std::holds_alternative<UnsupportedDatatype>(decode(nested.get())));
  EXPECT_TRUE(std::holds_alternative<UnsupportedDatatype>(translate(nested.get())));
}
#endif

#if MPI_VERSION >= 4
TEST(Datatype, LargeCountsAreReadBack) {
  for (const auto* text : kLargeCounts) {
    const auto expr = parse_type(text);
    const auto handle = make_datatype(*expr);
    EXPECT_EQ(decoded(handle.get()), text);
    const auto ours = type_bounds(*expr), theirs = mpi_bounds(handle.get());
    EXPECT_EQ(ours.size, theirs.size) << text;
    EXPECT_EQ(ours.lb, theirs.lb) << text;
    EXPECT_EQ(ours.extent, theirs.extent) << text;
  }
}

// Small numbers are read back, too.
TEST(Datatype, WhatConstructorsForLargeCountsMadeIsReadBack) {
  const MPI_Count lengths[] = {1, 2}, displacements[] = {0, 8}, sizes[] = {4, 5},
                  subsizes[] = {2, 3}, starts[] = {1, 2};
  MPI_Datatype raw = MPI_DATATYPE_NULL;
  HALOCLINE_MPI(MPI_Type_create_hindexed_c(2, lengths, displacements, MPI_INT, &raw));
  const Datatype hindexed(raw);
  EXPECT_EQ(decoded(hindexed.get()), "hindexed({1,2},{0,8},int)");
  HALOCLINE_MPI(MPI_Type_create_subarray_c(2, sizes, subsizes, starts, MPI_ORDER_FORTRAN,
                                           hindexed.get(), &raw));
  const Datatype subarray(raw);
  EXPECT_EQ(decoded(subarray.get()), "subarray(F,{4,5},{2,3},{1,2},hindexed({1,2},{0,8},int))");
  HALOCLINE_MPI(MPI_Type_create_resized_c(subarray.get(), -8, 800, &raw));
  const Datatype resized(raw);
  EXPECT_EQ(decoded(resized.get()),
            "resized(subarray(F,{4,5},{2,3},{1,2},hindexed({1,2},{0,8},int)),-8,800)");
}
#else
TEST(Datatype, WhatDoesNotFitAnIntIsAConfigError) {
  EXPECT_THROW(make_datatype(*parse_type("contiguous(3000000000,byte)")), ConfigError);
  EXPECT_THROW(make_datatype(*parse_type("vector(2,1,-3000000000,byte)")), ConfigError);
  EXPECT_THROW(make_datatype(*parse_type("indexed({1},{3000000000},byte)")), ConfigError);
}
#endif

TEST(Datatype, WhatMpiRefusesIsAnMpiError) {
  const TypeExpr negative{Contiguous{-1, named("int")}};
  EXPECT_THROW(make_datatype(negative), MpiError);
}

TEST(Decode, DoesNotReadTypesNestedTooDeep) {
  std::vector<Datatype> types;
  MPI_Datatype inner = MPI_INT, outer = MPI_DATATYPE_NULL;
  for (int depth = 1; depth <= 2000; ++depth) {
    MPI_Type_contiguous(1, inner, &outer);
    types.emplace_back(outer);
    inner = outer;
    if (depth == 1000) {
      EXPECT_TRUE(std::holds_alternative<TypeExprPtr>(decode(outer)));
    }
  }
  EXPECT_TRUE(std::holds_alternative<UnsupportedDatatype>(decode(outer)));
}

// Many MPIs hand out copies of the types inside, and each copy is read.
TEST(Decode, DoesNotReadTypesForEver) {
  std::vector<Datatype> types;
  MPI_Datatype inner = MPI_INT, outer = MPI_DATATYPE_NULL;
  const std::array blocklengths{1, 0, 0};
  const std::array<MPI_Aint, 3> displacements{0, 0, 0};
  for (int depth = 1; depth <= 40; ++depth) {
    const std::array members{inner, MPI_DOUBLE, inner};
    MPI_Type_create_struct(3, blocklengths.data(), displacements.data(), members.data(), &outer);
    types.emplace_back(outer);
    inner = outer;
    if (depth == 8) {
      EXPECT_TRUE(std::holds_alternative<TypeExprPtr>(decode(outer)));
    }
  }
  EXPECT_TRUE(std::holds_alternative<UnsupportedDatatype>(decode(outer)));
}

}  // namespace halocline::dtype::test
