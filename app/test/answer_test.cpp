// SPDX-License-Identifier: BSD-3-Clause
#include "answer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

namespace halocline::app {
namespace {

std::vector<double> around(double median, double spread, int n = 20) {
  std::vector<double> out;
  for (int i = 0; i < n; ++i) out.push_back(median + spread * (i - (n - 1) / 2.0) / n);
  return out;
}

TEST(EstimateMedian, HoldsTheMedianInNineteenOfTwentyCases) {
  constexpr int kTrials = 4000;
  std::mt19937 engine(36);
  std::exponential_distribution<double> distribution(1);
  for (const int n : {6, 7, 20, 51, 100}) {
    int held = 0;
    for (int trial = 0; trial < kTrials; ++trial) {
      std::vector<double> samples;
      for (int i = 0; i < n; ++i) samples.push_back(distribution(engine));
      held += estimate_median(samples).may_be(std::log(2.0)) ? 1 : 0;
    }
    EXPECT_GT(held, 0.945 * kTrials) << n;
    EXPECT_LT(held, 0.99 * kTrials) << n;
  }
}

TEST(EstimateMedian, HasNoIntervalFromFiveSamples) {
  EXPECT_FALSE(estimate_median({1, 2, 3, 4, 5}).low);
  EXPECT_TRUE(estimate_median({1, 2, 3, 4, 5}).may_be(100));
  EXPECT_EQ(estimate_median({3}).median, 3);
}

TEST(Speed, IsOfExchangesOfOneTurn) {
  // The machine becomes ten times as slow halfway; the ratio stays 2.
  const Candidate method{"p2p", "p2p", false, false, {1, 1, 1, 10, 10, 10}},
      baseline{"vendor-p2p", "vendor-p2p", true, false, {2, 2, 2, 20, 20, 20}};
  const auto found = speed(method, baseline);
  EXPECT_EQ(found.median, 2);
  EXPECT_EQ(found.low, 2);
  EXPECT_EQ(found.high, 2);
}

class Answer : public testing::Test {
 protected:
  std::string of(double shared, double p2p, double vendor, double spread = 0.01) const {
    const std::vector<Candidate> methods{
        {"shared", "shared", false, true, around(shared, spread)},
        {"p2p", "p2p", false, false, around(p2p, spread)},
        {"vendor-p2p", "vendor-p2p", true, false, around(vendor, spread)}};
    return answer(methods, &methods.back(), "Open MPI");
  }
};

TEST_F(Answer, NamesTheFastestAndWhatNeedsNoOtherAllocation) {
  const auto text = of(1, 2, 3);
  EXPECT_TRUE(text.starts_with(
      "Fastest: shared, 3.00 x as fast as Open MPI's fastest (vendor-p2p); 95 % interval "))
      << text;
  EXPECT_NE(text.find("\nWithout changing how you allocate: p2p, 1.50 x; 95 % interval "),
            std::string::npos)
      << text;
  EXPECT_TRUE(text.ends_with("\nIn code: app/methods.md#shared\n")) << text;
  EXPECT_TRUE(of(2, 1, 3).ends_with("\nIn code: app/methods.md#p2p\n"));
}

TEST_F(Answer, PrefersWhatNeedsNoOtherAllocationIfItIsLevel) {
  auto other_turns = around(1.02, 0.2);
  std::reverse(other_turns.begin(), other_turns.end());
  const std::vector<Candidate> methods{{"shared", "shared", false, true, around(1, 0.2)},
                                       {"p2p", "p2p", false, false, other_turns},
                                       {"vendor-p2p", "vendor-p2p", true, false, around(3, 0.01)}};
  const auto text = answer(methods, &methods.back(), "Open MPI");
  EXPECT_TRUE(text.starts_with("Fastest: p2p, 2.94 x as fast as Open MPI's")) << text;
  const auto* const level =
      "\nshared needs another allocation and is not clearly faster than p2p: 1.02 x; 95 % "
      "interval ";
  EXPECT_NE(text.find(level), std::string::npos) << text;
}

TEST_F(Answer, ClaimsNothingInDoubt) {
  EXPECT_TRUE(of(1, 1.1, 1).starts_with("No clear winner: shared is 1.00 x as fast as Open MPI's"));
  EXPECT_TRUE(of(3, 4, 1).starts_with("Fastest: vendor-p2p, Open MPI's own. shared is 0.33 x as"));
}

TEST_F(Answer, SaysThatExchangesAreTooFew) {
  const std::vector<Candidate> methods{{"shared", "shared", false, true, {1, 1, 1}},
                                       {"p2p", "p2p", false, false, {2, 2, 2}},
                                       {"vendor-p2p", "vendor-p2p", true, false, {3, 3, 3}}};
  const auto text = answer(methods, &methods.back(), "Open MPI");
  EXPECT_TRUE(text.starts_with("Fastest so far: shared; shared is 3.00 x as fast as Open MPI's"))
      << text;
  EXPECT_NE(text.find("measure again with --iterations 20"), std::string::npos) << text;
}

TEST_F(Answer, KeepsTheVendorsMethodWhereNothingElseGains) {
  EXPECT_NE(of(1, 4, 3).find("\nWithout changing how you allocate: keep vendor-p2p; p2p is 0.75 x "
                             "as fast; 95 % interval "),
            std::string::npos);
  const std::vector<Candidate> vendors{{"vendor-p2p", "vendor-p2p", true, false, around(1, 0.1)}};
  EXPECT_EQ(answer(vendors, &vendors.back(), "Open MPI"),
            "Fastest: vendor-p2p, Open MPI's own. No method of Halocline was timed beside it.\n");
}

TEST_F(Answer, NamesAutoOnlyByTheMethodThatItChose) {
  const std::vector<Candidate> methods{{"shared", "shared", false, true, around(1.1, 0.01)},
                                       {"auto", "auto", false, true, around(1, 0.01), true},
                                       {"vendor-p2p", "vendor-p2p", true, false, around(3, 0.01)}};
  EXPECT_TRUE(answer(methods, &methods.back(), "Open MPI").starts_with("Fastest: shared, 2.73 x"));
}

TEST_F(Answer, DoesWithoutTheVendor) {
  const std::vector<Candidate> methods{{"p2p", "p2p", false, false, around(1, 0.1)}};
  EXPECT_TRUE(answer(methods, nullptr, "Open MPI").starts_with("Fastest: p2p. No vendor method"));
  EXPECT_EQ(answer({}, nullptr, "Open MPI"), "");
}

TEST_F(Answer, DrawsABarForEachMethod) {
  const std::vector<Candidate> methods{{"a<b", "p2p", false, false, around(1, 0.1)},
                                       {"vendor-p2p", "vendor-p2p", true, false, around(2, 0.1)}};
  const auto picture = bars(methods, methods.back(), "A & B");
  EXPECT_TRUE(picture.starts_with("<svg ") && picture.ends_with("</svg>\n"));
  for (const auto* part : {"a&lt;b", "A &amp; B", ">2.00 x<", ">1.00 x<"})
    EXPECT_NE(picture.find(part), std::string::npos) << part;
}

}  // namespace
}  // namespace halocline::app
