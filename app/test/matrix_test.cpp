// SPDX-License-Identifier: BSD-3-Clause
// Runs every method in every setting that must not change a bit. The settings are the need masks of
// a stencil, both shapes, periodic and open domains, real and emulated nodes, and uneven shares.
// The test runs on any number of ranks.
//
// All ghosts are NaN before the first exchange. So if the bits are those of one rank, all needed
// ghosts have arrived.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "physics/heat/advance.hpp"
#include "physics/heat/stencil.hpp"
#include "physics/heat/waves.hpp"
#include "session.hpp"
#include "verify.hpp"

namespace halocline::app {
namespace {

constexpr double kDiffusionNumber = 0.05;
constexpr int kSubsteps = 3;

// The stencils have masks of 6, 18 and 26 neighbours.
constexpr std::array kStencils{Stencil::heat3, Stencil::heat9, Stencil::heat13};
// These settings change no bit and take turns.
constexpr std::array kDescriptions{Describe::vector, Describe::subarray, Describe::hindexed,
                                   Describe::structure, Describe::hvector};
constexpr std::array kPeriodic{comm::PerAxis(true), comm::PerAxis(false),
                               comm::PerAxis(true, false, true)};
constexpr std::array kPads{Pad::none, Pad::by64, Pad::by32, Pad::by128};
constexpr std::array kFaults{Inject::drop, Inject::swap, Inject::flip};

// Returns a configuration in which no number of points is divisible by the number of ranks along
// its axis.
Config config_of(Stencil stencil, const comm::PerAxis<bool>& periodic) {
  Config config;
  config.global = {13, 7, 17};
  config.fields = 2;
  config.stencil = stencil;
  config.periodic = periodic;
  return config;
}

/// Holds fields, and the plan that exchanges them by one method.
class Exchanged {
 public:
  Exchanged(const Config& config, const Domain& domain, MPI_Comm comm)
      : config_(config),
        domain_(domain),
        fields_(config, domain, storage_for(config.methods.front(), Memory::host), comm),
        plan_(comm, fields_.jobs(shape()), config.methods.front(),
              {.nodes = &domain.nodes,
               .windows = fields_.windows(),
               .message_of_tag = message_of_tag(config, domain)}) {}

  const FieldSet<double>& fields() const { return fields_.fields(); }
  void exchange() { plan_.start().finish(); }
  std::optional<std::string> verify() {
    ++verified_;
    return fields_.verify(plan_, shape(), {verified_, static_cast<std::uint64_t>(verified_)});
  }

 private:
  comm::HaloShape shape() const { return config_.shape.front(); }

  const Config& config_;
  const Domain& domain_;
  HaloFields<double> fields_;
  comm::ExchangePlan plan_;
  int verified_ = 0;
};

/// Returns the hash of the state after some substeps, which begin with NaN in all ghosts.
std::uint64_t simulate(const Config& config, const Domain& domain, MPI_Comm comm, Exchanged& a,
                       Exchanged& b) {
  const auto spec = stencil_spec(config.stencil);
  set_wave(domain, a.fields());
  set_wave(domain, b.fields());
  auto *in = &a, *out = &b;
  for (int substep = 0; substep < kSubsteps; ++substep) {
    in->exchange();
    set_outer_ghosts(domain, in->fields(), spec, kDiffusionNumber, substep);
    advance(domain, spec, kDiffusionNumber, in->fields(), out->fields());
    std::swap(in, out);
  }
  EXPECT_TRUE(check_wave(domain, in->fields(), spec, kDiffusionNumber, kSubsteps, comm).passed());
  return state_hash(domain, in->fields(), comm);
}

/// Returns the hash of a rank that has the whole domain.
std::uint64_t expected_hash(Config config) {
  config.methods = {comm::Exchange::p2p};
  const auto domain = make_domain(config, comm::NodeHierarchy(MPI_COMM_SELF));
  Exchanged a(config, domain, MPI_COMM_SELF), b(config, domain, MPI_COMM_SELF);
  return simulate(config, domain, MPI_COMM_SELF, a, b);
}

void check(const Config& config, std::uint64_t expected, Inject fault) {
  const auto domain = make_domain(config, find_nodes(config, MPI_COMM_WORLD));
  {
    Exchanged a(config, domain, MPI_COMM_WORLD), b(config, domain, MPI_COMM_WORLD);
    EXPECT_EQ(a.verify(), std::nullopt);
    EXPECT_EQ(simulate(config, domain, MPI_COMM_WORLD, a, b), expected);
  }
  if (domain.decomposition.size() == 1 && config.periodic == comm::PerAxis(false))
    return;  // no message to spoil
  auto spoilt = config;
  spoilt.inject = fault;
  EXPECT_NE(Exchanged(spoilt, domain, MPI_COMM_WORLD).verify(), std::nullopt);
}

// Tells if the real node can emulate several nodes of `ranks_per_node` ranks.
bool can_emulate(int ranks_per_node) {
  const comm::NodeHierarchy real(MPI_COMM_WORLD);
  return real.nodes() == 1 && ranks_per_node < real.ranks();
}

class EveryMethod : public testing::TestWithParam<comm::Exchange> {};

TEST_P(EveryMethod, ChangesNoBitAndNoFaultIsMissed) {
  std::size_t cases = 0;
  for (const auto stencil : kStencils)
    for (const auto& periodic : kPeriodic) {
      auto config = config_of(stencil, periodic);
      const auto expected = expected_hash(config);
      config.methods = {GetParam()};
      for (const auto shape : {comm::HaloShape::direct, comm::HaloShape::axes})
        for (const auto& nodes : {std::vector<int>{}, {1}, {2}, {3}}) {
          if (!nodes.empty() && !can_emulate(nodes.front())) continue;
          SCOPED_TRACE(std::string(to_string(stencil)) + ", " + std::string(to_string(shape)) +
                       ", periodic " + testing::PrintToString(periodic) +
                       (nodes.empty() ? "" : ", nodes of " + std::to_string(nodes.front())));
          config.shape = {shape};
          config.ranks_per_node = nodes;
          const auto fault = kFaults[cases % kFaults.size()];
          const bool needs_twins = fault == Inject::swap;  // swap needs fields that travel apart
          config.layout = cases % 2 == 0 || needs_twins ? Layout::soa : Layout::aos;
          config.messages = cases % 5 < 3 ? Messages::partner : Messages::region;
          config.describe = kDescriptions[cases % kDescriptions.size()];
          config.pad = kPads[cases % kPads.size()];
          check(config, expected, fault);
          ++cases;
        }
    }
}

std::vector<comm::Exchange> possible_exchanges() {
  std::vector<comm::Exchange> out;
  for (const auto exchange : comm::all_exchanges())
    if (comm::why_not_available(exchange).empty()) out.push_back(exchange);
  return out;
}

INSTANTIATE_TEST_SUITE_P(Matrix, EveryMethod, testing::ValuesIn(possible_exchanges()),
                         [](const auto& test_info) {
                           std::string text(comm::name(test_info.param));
                           std::replace(text.begin(), text.end(), '-', '_');
                           return text;
                         });

}  // namespace
}  // namespace halocline::app
