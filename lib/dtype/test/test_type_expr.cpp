// SPDX-License-Identifier: BSD-3-Clause
// Tests type expressions and their text, damaged text included.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "dtype/type_expr.hpp"
#include "random_call.hpp"
#include "support/error.hpp"

namespace halocline::dtype::test {

namespace {

std::string error_of(const std::string& text) {
  try {
    parse_type(text);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "parsed";
}

// Parses `text`. The result must parse to itself, or ConfigError is thrown; any other exception
// fails the test.
void parse_anything(const std::string& text) {
  try {
    const auto parsed = to_string(*parse_type(text));
    EXPECT_EQ(to_string(*parse_type(parsed)), parsed) << text;
  } catch (const ConfigError&) {
  }
}

}  // namespace

TEST(TypeExpr, RoundTrips) {
  for (const auto* text :
       {"double", "2int", "contiguous(0,byte)", "vector(5,4,4,double)", "vector(3,1,-1,byte)",
        "hvector(3,1,53,contiguous(13,byte))", "indexed({2,2},{0,4},int)", "indexed({},{},int)",
        "hindexed({1,0},{-8,24},float)", "indexed_block(2,{0,9},char)",
        "hindexed_block(1,{0,24,48},float)", "struct({1,2},{0,8},{int,dup(double)})",
        "subarray(C,{16,16,16},{1,8,8},{5,2,3},double)", "subarray(F,{4},{2},{2},aint)",
        "darray(6,5,{5,7},{cyclic,block},{2,default},{2,3},C,dup(int))",
        "darray(1,0,{5},{none},{9},{1},F,packed)",
        "resized(dup(short),-9223372036854775808,9223372036854775807)"})
    EXPECT_EQ(to_string(*parse_type(text)), text);
}

TEST(TypeExpr, WhiteSpaceIsFree) {
  EXPECT_EQ(
      to_string(*parse_type("  struct ( {1 , 2},\t{ 0,8 },\n{int,resized( double,0 , 8)} ) ")),
      "struct({1,2},{0,8},{int,resized(double,0,8)})");
}

TEST(TypeExpr, IsReadAsMpiAndOtherLanguagesWriteIt) {
  const auto expected = parse_type("subarray(F,{4,4},{2,2},{0,1},int)");
  for (const auto* text : {"subarray({4,4},{2,2},{0,1},F,int)",
                           "subarray([4,4],[2,2],[0,1],MPI_ORDER_FORTRAN,MPI_INT)",
                           "subarray(MPI_ORDER_FORTRAN, [4, 4], {2, 2}, [0, 1], int)",
                           "subarray(2, [4,4], [2,2], [0,1], MPI_ORDER_FORTRAN, MPI_INT)"})
    EXPECT_EQ(to_string(*parse_type(text)), to_string(*expected)) << text;
  EXPECT_THROW(parse_type("subarray({4,4],{2,2},{0,1},F,int)"), ConfigError);
  EXPECT_THROW(parse_type("subarray(F,{4,4},{2,2},{0,1},F,int)"), ConfigError);
}

TEST(TypeExpr, EveryNamedTypeParses) {
  for (const auto& named_type : named_types())
    EXPECT_EQ(to_string(*parse_type(named_type.name)), named_type.name);
}

TEST(TypeExpr, PredefinedTypesMayBeWrittenAsMpiDoes) {
  EXPECT_EQ(to_string(*parse_type("MPI_DOUBLE")), "double");
  EXPECT_EQ(to_string(*parse_type("contiguous(2,DOUBLE)")), "contiguous(2,double)");
  EXPECT_EQ(to_string(*parse_type("struct({1,1},{0,8},{MPI_2INT,mpi_unsigned_long})")),
            "struct({1,1},{0,8},{2int,unsigned_long})");
  EXPECT_EQ(to_string(TypeExpr{Named{std::get<Named>(named("MPI_BYTE")->node).type}}), "byte");
  for (const auto* text : {"MPI_", "MPI_MPI_INT", "MPI_DUBLE", "MPI_contiguous(2,int)"})
    EXPECT_NE(error_of(text).find("unknown name"), std::string::npos) << text;
}

TEST(TypeExpr, ParametrizedFortranTypesAreNamed) {
  if (find_f90_type(F90Kind::real, 6, 37) == nullptr) {  // an MPI built without Fortran
    EXPECT_NE(error_of("f90_real(6,37)").find("digits and a range"), std::string::npos);
    return;
  }
  for (const auto* text : {"f90_real(6,37)", "f90_complex(15,undefined)", "f90_integer(9)",
                           "contiguous(2,f90_real(undefined,37))"})
    EXPECT_EQ(to_string(*parse_type(text)), text);
  EXPECT_EQ(std::get<Named>(parse_type("f90_integer(9)")->node).type,
            find_f90_type(F90Kind::integer, MPI_UNDEFINED, 9));
  for (const auto* text : {"f90_real(1000,1)", "f90_integer(1000)"})
    EXPECT_NE(error_of(text).find("digits and a range"), std::string::npos) << error_of(text);
  EXPECT_NE(error_of("f90_real(-1,1)").find("not negative"), std::string::npos);
  EXPECT_NE(error_of("f90_integer(99999999999)").find("too large"), std::string::npos);
}

TEST(TypeExpr, AreTheSameNumbersIfTheyAreTheSame) {
  // Each text differs from another text in one argument, in the order of two, or in the end of a
  // list.
  const char* const all[] = {"int",
                             "contiguous(2,int)",
                             "vector(1,2,3,int)",
                             "vector(1,2,3,float)",
                             "vector(1,3,2,int)",
                             "hvector(1,2,3,int)",
                             "indexed({1,2},{3,4},int)",
                             "indexed({1,3},{2,4},int)",
                             "hindexed({1,2},{3,4},int)",
                             "indexed_block(1,{2,3},int)",
                             "indexed_block(2,{1,3},int)",
                             "hindexed_block(1,{2,3},int)",
                             "struct({1,1},{0,8},{int,double})",
                             "struct({1,1},{0,8},{double,int})",
                             "struct({1,1},{0,8},{contiguous(2,int),double})",
                             "subarray(C,{4,4},{2,2},{0,1},int)",
                             "subarray(F,{4,4},{2,2},{0,1},int)",
                             "subarray(C,{4,4},{2,2},{1,0},int)",
                             "darray(2,0,{4},{block},{default},{2},C,int)",
                             "darray(2,0,{4},{cyclic},{default},{2},C,int)",
                             "darray(2,0,{4},{block},{2},{2},C,int)",
                             "resized(int,0,8)",
                             "resized(int,8,0)",
                             "dup(int)",
                             "dup(dup(int))",
                             "stretched_vector(2,0,{1,2},int)",
                             "stretched_vector(2,1,{1,2},int)",
                             "bucket(4,{1,2},int)",
                             "triangular(4,2,1,8,int)"};
  std::map<std::vector<std::int64_t>, std::string> seen;
  for (const auto* text : all) {
    const auto numbers = to_numbers(*parse_type(text), 100);
    ASSERT_TRUE(numbers);
    EXPECT_EQ(numbers, to_numbers(*parse_type(text), numbers->size()));
    EXPECT_FALSE(to_numbers(*parse_type(text), numbers->size() - 1));
    const auto [at, is_new] = seen.emplace(*numbers, text);
    EXPECT_TRUE(is_new) << text << " as " << at->second;
  }
}

TEST(TypeExpr, UnknownNamesAreAnsweredWithTheKnownOnes) {
  for (const auto* text : {"duble", "vektor(1,2,3,int)"})
    for (const auto* known :
         {"contiguous, vector, hvector", "or triangular", "halocline inspect --help"})
      EXPECT_NE(error_of(text).find(known), std::string::npos) << error_of(text);
  EXPECT_NE(error_of("duble").find("such as double, int, byte"), std::string::npos);
}

TEST(TypeExpr, ErrorsSayWhereAndWhatWasExpected) {
  const struct {
    const char *text, *position, *expected;
  } cases[] = {
      {"", "character 1 ", "a type name"},
      {"duble", "character 1 ", "unknown name 'duble'"},
      {"vektor(1,2,3,int)", "character 1 ", "unknown name 'vektor'"},
      {"contiguous(3 int)", "character 14 ", "','"},
      {"contiguous(-3,int)", "character 12 ", "not negative"},
      {"vector(1,-2,3,int)", "character 10 ", "not negative"},
      {"contiguous(99999999999999999999,int)", "character 12 ", "64-bit integer"},
      {"contiguous(x,int)", "character 12 ", "64-bit integer"},
      {"contiguous(3,int", "character 17 ", "')'"},
      {"int int", "character 5 ", "end of expression"},
      {"contiguous(3,int))", "character 18 ", "end of expression"},
      {"subarray(X,{1},{1},{0},int)", "character ", "C or F"},
      {"subarray(C,{},{},{},int)", "character ", "at least one dimension"},
      {"subarray(C,{4,4},{2},{0,0},int)", "character ", "lists of one length"},
      {"subarray(C,{4,4},{2,3},{0,2},int)", "character ", "dimension 1"},
      {"subarray(C,{4},{0},{0},int)", "character ", "dimension 0"},
      {"subarray(C,{4},{2},{9223372036854775807},int)", "character ", "dimension 0"},
      {"indexed({1,2},{0},int)", "character ", "lists of one length"},
      {"darray(0,0,{4},{block},{default},{1},C,int)", "character 12 ", "rank < size"},
      {"darray(2,2,{4},{block},{default},{2},C,int)", "character 12 ", "rank < size"},
      {"darray(1,0,{},{},{},{},C,int)", "character ", "at least one dimension"},
      {"darray(1,0,{4},{blok},{default},{1},C,int)", "character ", "block, cyclic or none"},
      {"darray(1,0,{4},{block,none},{default},{1},C,int)", "character ", "lists of one length"},
      {"darray(1,0,{4,4},{block,none},{default},{1,1},C,int)", "character ", "lists of one length"},
      {"darray(1,0,{0},{block},{default},{1},C,int)", "character ", "at least 1 in dimension 0"},
      {"darray(2,0,{4},{none},{default},{2},C,int)", "character ", "nothing is distributed"},
      {"darray(2,0,{4},{cyclic},{0},{2},C,int)", "character ", "or default, in dimension 0"},
      {"darray(2,0,{5},{block},{2},{2},C,int)", "character ", "cover the array in dimension 0"},
      {"darray(4,0,{5},{block},{default},{2},C,int)", "character ", "as many processes"},
      {"darray(2,0,{5,5},{block,block},{default,default},{2,2},C,int)", "character ",
       "as many processes"},
      {"struct({1,1},{0,8},{int})", "character ", "lists of one length"},
      {"bounded_vector(0,3,2,9,int)", "character ", "a stride of at least 1 and blocklength"},
      {"bounded_vector(0,0,0,9,int)", "character ", "a stride of at least 1 and blocklength"},
      {"circular_vector(0,1,2,9,0,int)", "character ", "a bound of at least 1"},
      {"bucket(4,{1,-1},int)", "character ", "not negative"},
      {"stretched_vector(2,2,{1},int)", "character ", "index < types"},
      {"triangular(3,1,-1,4,int)", "character ", "none is of a negative length"},
  };
  for (const auto& c : cases) {
    const auto message = error_of(c.text);
    EXPECT_NE(message.find(c.position), std::string::npos) << message;
    EXPECT_NE(message.find(c.expected), std::string::npos) << message;
  }
}

TEST(TypeExpr, NestingIsLimited) {
  const auto nested = [](int depth) {
    std::string text;
    for (int i = 0; i < depth; ++i) text += "dup(";
    return text + "int" + std::string(static_cast<std::size_t>(depth), ')');
  };
  EXPECT_EQ(to_string(*parse_type(nested(1000))), nested(1000));
  EXPECT_NE(error_of(nested(100000)).find("1000 nested"), std::string::npos);
}

TEST(TypeExpr, UnknownNamesAreConfigErrors) {
  EXPECT_THROW(named("float128"), ConfigError);
}

TEST(TypeExpr, DamagedTextNeverCrashesTheParser) {
  CallGenerator calls(1);
  std::mt19937_64 engine(2);
  constexpr std::string_view kAlphabet = "(){},-0123456789abcCFvector _\n";
  for (int i = 0; i < 500; ++i) {
    const auto text = to_string(*calls.next().expr);
    for (std::size_t length = 0; length < text.size(); ++length)
      parse_anything(text.substr(0, length));
    auto damaged = text;
    for (int k = 0; k < 3; ++k) {
      damaged[engine() % damaged.size()] = kAlphabet[engine() % kAlphabet.size()];
      parse_anything(damaged);
    }
  }
}

}  // namespace halocline::dtype::test
