// SPDX-License-Identifier: BSD-3-Clause
#include "halo_messages.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace halocline::app {

std::vector<comm::HaloShape> shapes_of(const Config& config) {
  if (config.subcommand == Subcommand::compare) return config.shape;
  return {config.shape.front()};
}

comm::HaloMessages halo_messages(const Domain& domain, comm::HaloShape shape) {
  return {shape, domain.needs};
}

std::function<int(int)> message_of_tag(const Config& config, const Domain& domain) {
  const int arrays = domain.arrays();
  switch (config.messages) {
    case Messages::region:
      return [arrays](int tag) { return comm::direction_of_tag(tag, arrays); };
    case Messages::field:
      return [arrays](int tag) { return comm::field_of_tag(tag, arrays); };
    case Messages::partner:
      break;
  }
  return nullptr;
}

Messages messages_of(const Config& config, const comm::Method& method) {
  return comm::has_several_messages(method.exchange) ? config.messages : Messages::partner;
}

namespace {

// Returns the different needs of arrays, each with the number of arrays that have them.
std::vector<std::pair<comm::DirectionSet, int>> arrays_by_needs(const Domain& domain) {
  std::vector<std::pair<comm::DirectionSet, int>> out;
  for (const auto& needs : domain.needs) {
    const auto known = std::find_if(out.begin(), out.end(),
                                    [&](const auto& entry) { return entry.first == needs; });
    if (known == out.end())
      out.emplace_back(needs, 1);
    else
      ++known->second;
  }
  return out;
}

}  // namespace

HaloTraffic halo_traffic(const Config& config, const Domain& domain,
                         const comm::Decomposition& decomposition, int rank,
                         comm::HaloShape shape) {
  const comm::HaloSpec halo{decomposition.owned(rank).extent, domain.halo.radius};
  const double bytes_per_point =
      static_cast<double>(domain.element_bytes) * domain.elements_per_point();
  HaloTraffic out;
  std::set<std::pair<int, int>> messages;           // partner and round
  std::set<std::pair<int, int>> regions_to_others;  // partner and direction
  for (const auto& [needs, arrays] : arrays_by_needs(domain)) {
    // All arrays with these needs have the same jobs, so one array is enough.
    const auto jobs = comm::halo_jobs(decomposition, rank, halo, 1,
                                      [&](int, const comm::Box& box) {
                                        return comm::Region{nullptr, box.points(), MPI_BYTE};
                                      },
                                      {shape, {needs}});
    std::set<std::pair<int, int>> of_array;
    for (const auto& job : jobs) {
      if (job.send_count == 0) continue;
      const bool own = job.partner == rank;
      const auto bytes = static_cast<double>(job.send_count) * bytes_per_point * arrays;
      (own ? out.bytes_to_self : out.bytes_to_others) += bytes;
      if (domain.nodes.node_of(job.partner) != domain.nodes.node_of(rank))
        out.bytes_off_node += bytes;
      out.regions += arrays;
      if (own) continue;
      of_array.emplace(job.partner, job.round);
      regions_to_others.emplace(job.partner, job.send_tag);
    }
    out.grouped_messages += std::ssize(of_array) * arrays;
    messages.merge(of_array);
  }
  out.messages = std::ssize(messages);
  if (config.messages == Messages::partner) out.grouped_messages = out.messages;
  if (config.messages == Messages::region) out.grouped_messages = std::ssize(regions_to_others);
  return out;
}

HaloTraffic largest_halo_traffic(const Config& config, const Domain& domain,
                                 comm::HaloShape shape) {
  const comm::Decomposition alone(domain.decomposition.largest_extent(), {1, 1, 1}, true);
  return halo_traffic(config, domain, alone, 0, shape);
}

}  // namespace halocline::app
