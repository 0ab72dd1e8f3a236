// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/bench/arguments.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

#include "support/error.hpp"

namespace halocline::dtype::bench {

std::optional<Arguments> parse_arguments(int argc, char** argv, const ArgumentsHelp& help,
                                         bool print) {
  Arguments out;
  CLI::App app(help.what);
  std::vector<std::string> groups;
  app.add_option("--groups", groups, "what is measured; all if not given")
      ->delimiter(',')
      ->check(CLI::IsMember(help.groups));
  app.add_option("--only", out.only, "cases by name, a pattern such as 'pack-*'");
  if (help.takes_model)
    app.add_option("--model", out.model, "what `halocline calibrate` has written: chooses");
  app.add_flag("--quick", out.quick, "few samples");
  app.add_flag("--smoke", out.smoke, "tiny sizes: does everything work, and verify?");
  app.add_flag("--json", out.json, "one JSON object per row on stdout, the table on stderr");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    if (print) std::fputs(app.help().c_str(), stdout);
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    throw ConfigError(std::string(error.what()) + ": see --help");
  }
  for (const auto& group : groups.empty() ? help.groups : groups)
    if (std::find(out.groups.begin(), out.groups.end(), group) == out.groups.end())
      out.groups.push_back(group);
  return out;
}

}  // namespace halocline::dtype::bench
