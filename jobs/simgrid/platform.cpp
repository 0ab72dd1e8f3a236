// SPDX-License-Identifier: BSD-3-Clause
// Describes for SimGrid 3.32 the machine on which replay.sh runs traces: a fat tree of nodes with
// ranks. $HALOCLINE_PLATFORM names a file with its parameters, which replay.py has checked
// (--help).
//
// A platform in XML is not enough: it allows only single hosts below a fat tree, and all links of
// the tree are the same. Here a host is a rank. Below the tree hang nodes with the ranks' own
// links.
//
// Rank i of node n is host "node-n-i". A message within a node takes only its on_node links. A
// message to another node takes the sender's off_node link and the sending node's link into the
// tree (injection_bytes_per_s each way). Then it takes the links between switches, and those down
// to the receiver. The tree adds no latency, so the latency of two ranks does not depend on their
// places.
#include <simgrid/s4u.hpp>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace sg4 = simgrid::s4u;
using Links = std::vector<sg4::LinkInRoute>;
using Policy = sg4::Link::SharingPolicy;

namespace {

/// Makes the ranks' own links for messages of one kind: within a node, or to other nodes.
class Path {
 public:
  /// Begins the path of a node; `name` is the begin of its links' names.
  Path(sg4::NetZone* node, const std::string& name, const nlohmann::json& parameters)
      : node_(node),
        name_(name),
        latency_(parameters.at("latency_s")),
        bandwidth_(parameters.at("bytes_per_s")),
        of_(parameters.at("bandwidth_of")) {
    if (of_ == "message") {  // each message has such a link for itself
      const auto* link = node_->create_link(name, bandwidth_)
                             ->set_sharing_policy(Policy::FATPIPE)
                             ->set_latency(latency_ / 2)
                             ->seal();
      out_ = in_ = {sg4::LinkInRoute(link)};
    } else if (of_ == "node") {
      out_ = {
          sg4::LinkInRoute(node_->create_link(name, bandwidth_)->set_latency(latency_)->seal())};
    }
  }

  /// Adds the links of a rank: first those of messages from it, then those of messages to it.
  std::pair<Links, Links> add_rank(unsigned rank) {
    if (of_ != "rank") return {out_, in_};
    const auto* link =
        node_->create_split_duplex_link(name_ + "-" + std::to_string(rank), bandwidth_)
            ->set_latency(latency_ / 2)
            ->seal();
    return {{{link, sg4::LinkInRoute::Direction::UP}}, {{link, sg4::LinkInRoute::Direction::DOWN}}};
  }

 private:
  sg4::NetZone* node_;
  std::string name_;
  double latency_, bandwidth_;
  std::string of_;
  Links out_, in_;  ///< links that all ranks share
};

/// Adds a leaf of the tree; returns it and its way out. Leaves that only fill the tree have no
/// ranks.
std::pair<simgrid::kernel::routing::NetPoint*, simgrid::kernel::routing::NetPoint*> add_node(
    sg4::NetZone* tree, unsigned long id, unsigned ranks, const nlohmann::json& parameters) {
  const std::string name = "node-" + std::to_string(id);
  auto* node = sg4::create_full_zone(name);
  node->set_parent(tree);
  auto* way_out = node->create_router(name + "-out");
  if (ranks > 0) {
    Path on_node(node, name + "-on", parameters.at("on_node"));
    Path off_node(node, name + "-off", parameters.at("off_node"));
    std::vector<simgrid::kernel::routing::NetPoint*> hosts;
    std::vector<std::pair<Links, Links>> copies;
    for (unsigned rank = 0; rank < ranks; ++rank) {
      hosts.push_back(
          node->create_host(name + "-" + std::to_string(rank), 1e9)->seal()->get_netpoint());
      copies.push_back(on_node.add_rank(rank));
      const auto [out, in] = off_node.add_rank(rank);
      node->add_route(hosts.back(), way_out, nullptr, nullptr, out, false);
      node->add_route(way_out, hosts.back(), nullptr, nullptr, in, false);
    }
    for (unsigned from = 0; from < ranks; ++from)
      for (unsigned to = 0; to < ranks; ++to) {
        if (from == to) continue;
        Links links = copies[from].first;
        links.insert(links.end(), copies[to].second.begin(), copies[to].second.end());
        node->add_route(hosts[from], hosts[to], nullptr, nullptr, links, false);
      }
  }
  node->seal();
  return {node->get_netpoint(), way_out};
}

}  // namespace

extern "C" void load_platform(const sg4::Engine& /*engine*/) {
  const auto parameters = nlohmann::json::parse(std::ifstream(std::getenv("HALOCLINE_PLATFORM")));
  const unsigned nodes = parameters.at("nodes"), radix = parameters.at("radix");

  // Half of a switch's ports go up and half go down, so that no bandwidth is lost on the way up. At
  // the top all ports go down.
  std::vector<unsigned> down, up{1};
  unsigned below = 1;  // nodes below a switch of the current level
  while (nodes > below * radix) {
    down.push_back(radix / 2);
    up.push_back(radix / 2);
    below *= radix / 2;
  }
  down.push_back((nodes + below - 1) / below);
  const sg4::FatTreeParams shape(down.size(), down, up, std::vector<unsigned>(down.size(), 1));

  const auto add = [&](sg4::NetZone* tree, const std::vector<unsigned long>&, unsigned long id) {
    const unsigned ranks = parameters.at("ranks_per_node");
    return add_node(tree, id, id < nodes ? ranks : 0, parameters);
  };
  sg4::create_fatTree_zone("tree", nullptr, shape, sg4::ClusterCallbacks(add),
                           parameters.at("injection_bytes_per_s"), 0, Policy::SPLITDUPLEX)
      ->seal();
}
