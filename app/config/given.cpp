// SPDX-License-Identifier: BSD-3-Clause
#include "given.hpp"

#include "messages.hpp"

namespace halocline::app {

void Given::add(const Option& option, const Json& value, const std::string& where) {
  set(option, value, where, values);
  names.insert(option.name);
}

void Given::override_with(const Given& newer) {
  for (const auto& name : newer.names) {
    const auto& option = *find_option(name);
    if (names.erase(option.excludes) > 0) find_option(option.excludes)->copy({}, values);
    option.copy(newer.values, values);
    names.insert(name);
  }
}

void Given::refuse_excluded(const std::string& where) const {
  for (const auto& option : options())
    if (names.contains(option.name) && names.contains(option.excludes))
      refuse(option.name + " and " + option.excludes + " exclude each other", "both in " + where,
             "give one of them");
}

}  // namespace halocline::app
