// SPDX-License-Identifier: BSD-3-Clause
// Maps exchanges and methods to their names and back.
#include "comm/exchange/method.hpp"

#include <algorithm>
#include <array>

#include "support/error.hpp"

namespace halocline::comm {

namespace {

#ifdef HALOCLINE_HAS_PARTITIONED
constexpr bool kHasPartitioned = true;
#else
constexpr bool kHasPartitioned = false;
#endif

struct Entry {
  Exchange exchange;
  std::string_view name;
  bool is_vendor;
};
constexpr std::array kEntries{Entry{Exchange::alltoallv, "alltoallv", false},
                              Entry{Exchange::neighbor, "neighbor", false},
                              Entry{Exchange::p2p, "p2p", false},
                              Entry{Exchange::shared, "shared", false},
                              Entry{Exchange::partitioned, "partitioned", false},
                              Entry{Exchange::automatic, "auto", false},
                              Entry{Exchange::vendor_pack, "vendor-pack", true},
                              Entry{Exchange::vendor_alltoallw, "vendor-alltoallw", true},
                              Entry{Exchange::vendor_neighbor, "vendor-neighbor", true},
                              Entry{Exchange::vendor_p2p, "vendor-p2p", true}};

constexpr auto kExchanges = [] {
  std::array<Exchange, kEntries.size()> out{};
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = kEntries[i].exchange;
  return out;
}();

const Entry& entry(Exchange exchange) {
  return *std::find_if(kEntries.begin(), kEntries.end(),
                       [&](const Entry& e) { return e.exchange == exchange; });
}

}  // namespace

std::span<const Exchange> all_exchanges() {
  return kExchanges;
}

std::string_view name(Exchange exchange) {
  return entry(exchange).name;
}

std::string why_not_available(Exchange exchange) {
  if (exchange != Exchange::partitioned || kHasPartitioned) return "";
  return "this MPI has no partitioned sends; MPI 4 has";
}

bool is_vendor(Exchange exchange) {
  return entry(exchange).is_vendor;
}

bool has_several_messages(Exchange exchange) {
  return exchange == Exchange::p2p || exchange == Exchange::vendor_p2p;
}

std::string name(const Method& method) {
  auto text = std::string(name(method.exchange));
  if (method.transfer) text += ":" + std::string(dtype::name(*method.transfer));
  return text;
}

Method parse_method(std::string_view text) {
  const auto colon = text.find(':');
  const auto exchange = std::find_if(kExchanges.begin(), kExchanges.end(),
                                     [&](Exchange e) { return name(e) == text.substr(0, colon); });
  if (exchange == kExchanges.end()) {
    std::string names;
    for (const auto e : kExchanges) names += (names.empty() ? "" : ", ") + std::string(name(e));
    throw ConfigError("unknown method (" + std::string(text) + "): use one of " + names);
  }
  if (colon == std::string_view::npos) return *exchange;
  if (*exchange == Exchange::shared || *exchange == Exchange::automatic)
    throw ConfigError("no such method (" + std::string(text) +
                      "): on a node nothing may be packed, and elsewhere the transfer is chosen; "
                      "leave out '" +
                      std::string(text.substr(colon)) + "'");
  if (is_vendor(*exchange))
    throw ConfigError("no such method (" + std::string(text) + "): the transfers of " +
                      std::string(name(*exchange)) + " are the MPI's own; leave out '" +
                      std::string(text.substr(colon)) + "'");
  return {*exchange, dtype::parse_transfer(text.substr(colon + 1))};
}

}  // namespace halocline::comm
