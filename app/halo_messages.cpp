// SPDX-License-Identifier: BSD-3-Clause
#include "halo_messages.hpp"

#include <set>
#include <utility>

namespace halocline::app {

std::vector<comm::HaloShape> shapes_of(const Config& config) {
  if (config.subcommand == Subcommand::compare) return config.shape;
  return {config.shape.front()};
}

comm::HaloMessages halo_messages(const Domain& domain, comm::HaloShape shape) {
  return {shape, std::vector(static_cast<std::size_t>(domain.arrays()), domain.needed)};
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

HaloTraffic halo_traffic(const Config& config, const Domain& domain,
                         const comm::Decomposition& decomposition, int rank,
                         comm::HaloShape shape) {
  const comm::HaloSpec halo{decomposition.owned(rank).extent, domain.halo.radius};
  const auto bytes_per_point = static_cast<double>(domain.fields) * domain.element_bytes;
  // All arrays have the same jobs, so one array is enough.
  const auto jobs = comm::halo_jobs(decomposition, rank, halo, 1,
                                    [&](int, const comm::Box& box) {
                                      return comm::Region{nullptr, box.points(), MPI_BYTE};
                                    },
                                    {shape, {domain.needed}});
  HaloTraffic out;
  std::set<std::pair<int, int>> messages;
  std::int64_t regions_to_others = 0;
  for (const auto& job : jobs) {
    const bool own = job.partner == rank;
    const auto bytes = static_cast<double>(job.send_count) * bytes_per_point;
    (own ? out.bytes_to_self : out.bytes_to_others) += bytes;
    if (domain.nodes.node_of(job.partner) != domain.nodes.node_of(rank))
      out.bytes_off_node += bytes;
    out.regions += domain.arrays();
    if (own) continue;
    messages.emplace(job.partner, job.round);
    ++regions_to_others;
  }
  out.messages = std::ssize(messages);
  out.grouped_messages = config.messages == Messages::region  ? regions_to_others
                         : config.messages == Messages::field ? out.messages * domain.arrays()
                                                              : out.messages;
  return out;
}

HaloTraffic largest_halo_traffic(const Config& config, const Domain& domain,
                                 comm::HaloShape shape) {
  const comm::Decomposition alone(domain.decomposition.largest_extent(), {1, 1, 1}, true);
  return halo_traffic(config, domain, alone, 0, shape);
}

}  // namespace halocline::app
