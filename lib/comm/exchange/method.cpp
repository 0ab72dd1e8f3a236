// SPDX-License-Identifier: BSD-3-Clause
#include "comm/exchange/method.hpp"

#include <algorithm>
#include <array>

#include "dtype/support/error.hpp"

namespace halocline::comm {

namespace {

constexpr std::array kExchanges{Exchange::alltoallv, Exchange::shared, Exchange::vendor_pack,
                                Exchange::vendor_alltoallw};

}  // namespace

std::span<const Exchange> all_exchanges() {
  return kExchanges;
}

std::string_view name(Exchange exchange) {
  switch (exchange) {
    case Exchange::alltoallv:
      return "alltoallv";
    case Exchange::shared:
      return "shared";
    case Exchange::vendor_pack:
      return "vendor-pack";
    case Exchange::vendor_alltoallw:
      break;
  }
  return "vendor-alltoallw";
}

bool is_vendor(Exchange exchange) {
  return exchange == Exchange::vendor_pack || exchange == Exchange::vendor_alltoallw;
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
  if (*exchange == Exchange::shared)
    throw ConfigError("no such method (" + std::string(text) +
                      "): shared packs nothing that could be transferred; leave out '" +
                      std::string(text.substr(colon)) + "'");
  if (is_vendor(*exchange))
    throw ConfigError("no such method (" + std::string(text) + "): the transfers of " +
                      std::string(name(*exchange)) + " are the MPI's own; leave out '" +
                      std::string(text.substr(colon)) + "'");
  return {*exchange, dtype::parse_transfer(text.substr(colon + 1))};
}

}  // namespace halocline::comm
