// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/datatype.hpp"

#include <gtest/gtest.h>
#include <mpi.h>

#include <string>
#include <utility>

#include "dtype/support/mpi_check.hpp"
#include "dtype/type_tree.hpp"

namespace halocline::dtype::test {

namespace {

// Every combiner that is read, nested so that contents hand out derived types, named types and both
// in one list.
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
    "resized(vector(2,1,2,int),-8,100)",
    "contiguous(0,int)",
    "struct({},{},{})",
};

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

TEST(Datatype, IsCommitted) {
  const auto handle = make_datatype(*parse_type("vector(2,1,2,int)"));
  const int memory[] = {1, 2, 3};
  int packed[2] = {}, position = 0;
  HALOCLINE_MPI(MPI_Pack(memory, 1, handle.get(), packed, sizeof packed, &position, MPI_COMM_SELF));
  EXPECT_EQ(packed[0], 1);
  EXPECT_EQ(packed[1], 3);
}

// MPI gives a new handle the lowest free Fortran index, so a handle that is never freed shows as a
// growing one. (Leak checkers do not see it: MPI's own table still refers to it.)
TEST(Datatype, HandlesAreFreed) {
  const auto index = [] { return MPI_Type_c2f(make_datatype(*parse_type("dup(int)")).get()); };
  const auto first = index();
  for (int i = 0; i < 50; ++i)
    for (const auto* text : kEveryCombiner) {
      const auto handle = make_datatype(*parse_type(text));
      EXPECT_EQ(decoded(handle.get()), text);
    }
  EXPECT_EQ(index(), first);
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

TEST(Datatype, DarrayIsUnsupported) {
  const int size = 8, distribution = MPI_DISTRIBUTE_BLOCK, argument = MPI_DISTRIBUTE_DFLT_DARG,
            processes = 2;
  MPI_Datatype raw = MPI_DATATYPE_NULL;
  HALOCLINE_MPI(MPI_Type_create_darray(2, 0, 1, &size, &distribution, &argument, &processes,
                                       MPI_ORDER_C, MPI_INT, &raw));
  const Datatype darray(raw);
  EXPECT_TRUE(std::holds_alternative<UnsupportedDatatype>(decode(darray.get())));
  EXPECT_NE(decoded(darray.get()).find("darray"), std::string::npos);
  // Also when it is nested.
  HALOCLINE_MPI(MPI_Type_contiguous(2, darray.get(), &raw));
  const Datatype outer(raw);
  EXPECT_TRUE(std::holds_alternative<UnsupportedDatatype>(translate(outer.get())));
}

TEST(Datatype, FortranTypesAreUnsupported) {
  if (MPI_INTEGER == MPI_DATATYPE_NULL) GTEST_SKIP() << "this MPI has no Fortran types";
  EXPECT_NE(decoded(MPI_INTEGER).find("MPI_INTEGER"), std::string::npos);
}

// Predefined types with a combiner of their own: contents hand them out, and freeing one would be
// an error.
TEST(Datatype, ParametrizedFortranTypesAreUnsupportedAndNeverFreed) {
  MPI_Datatype real = MPI_DATATYPE_NULL;
  if (MPI_Type_create_f90_real(15, 307, &real) != MPI_SUCCESS || real == MPI_DATATYPE_NULL)
    GTEST_SKIP() << "this MPI has no Fortran types";
  MPI_Datatype raw = MPI_DATATYPE_NULL;
  HALOCLINE_MPI(MPI_Type_contiguous(2, real, &raw));
  const Datatype pair(raw);
  for (int i = 0; i < 1000; ++i) {
    const Datatype owner(real);
    ASSERT_TRUE(std::holds_alternative<UnsupportedDatatype>(decode(real))) << i;
    ASSERT_TRUE(std::holds_alternative<UnsupportedDatatype>(decode(pair.get()))) << i;
    ASSERT_TRUE(std::holds_alternative<UnsupportedDatatype>(translate(pair.get()))) << i;
  }
  int size = 0;
  HALOCLINE_MPI(MPI_Type_size(real, &size));
  EXPECT_EQ(size, 8);
  HALOCLINE_MPI(MPI_Type_size(pair.get(), &size));
  EXPECT_EQ(size, 16);
}

TEST(Datatype, SizesBeyondTheLimitAreConfigErrors) {
  for (const auto* text :
       {"contiguous(2000000000,contiguous(2000000000,contiguous(2000000000,double)))",
        "hvector(2000000000,1,9000000000000000000,double)",
        "resized(int,-9223372036854775808,9223372036854775807)"}) {
    const auto expr = parse_type(text);
    EXPECT_THROW(type_bounds(*expr), ConfigError) << text;
    EXPECT_THROW(translate(*expr), ConfigError) << text;
  }
}

TEST(Datatype, WhatDoesNotFitAnIntIsAConfigError) {
  EXPECT_THROW(make_datatype(*parse_type("contiguous(3000000000,byte)")), ConfigError);
  EXPECT_THROW(make_datatype(*parse_type("vector(2,1,-3000000000,byte)")), ConfigError);
  EXPECT_THROW(make_datatype(*parse_type("indexed({1},{3000000000},byte)")), ConfigError);
}

TEST(Datatype, WhatMpiRefusesIsAnMpiError) {
  const TypeExpr outside{Subarray{Order::c, {2}, {3}, {0}, named("int")}};
  EXPECT_THROW(make_datatype(outside), MpiError);
}

}  // namespace halocline::dtype::test
