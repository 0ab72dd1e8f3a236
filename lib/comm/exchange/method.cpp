// SPDX-License-Identifier: BSD-3-Clause
#include "comm/exchange/method.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "dtype/support/error.hpp"

namespace halocline::comm {

namespace {

constexpr std::array kMethods{Method::alltoallv, Method::vendor_pack, Method::vendor_alltoallw};

}  // namespace

std::span<const Method> all_methods() {
  return kMethods;
}

std::string_view name(Method method) {
  switch (method) {
    case Method::alltoallv:
      return "alltoallv";
    case Method::vendor_pack:
      return "vendor-pack";
    case Method::vendor_alltoallw:
      break;
  }
  return "vendor-alltoallw";
}

Method parse_method(std::string_view text) {
  const auto found =
      std::find_if(kMethods.begin(), kMethods.end(), [&](Method m) { return name(m) == text; });
  if (found != kMethods.end()) return *found;
  std::string names;
  for (const auto method : kMethods)
    names += (names.empty() ? "" : ", ") + std::string(name(method));
  throw ConfigError("unknown method (" + std::string(text) + "): use one of " + names);
}

bool is_vendor(Method method) {
  return method != Method::alltoallv;
}

}  // namespace halocline::comm
