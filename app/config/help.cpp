// SPDX-License-Identifier: BSD-3-Clause
#include "help.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "options.hpp"
#include "table.hpp"

namespace halocline::app {

namespace {

struct About {
  Subcommand subcommand;
  const char* text;
  std::array<const char*, 2> examples;
};
constexpr std::array kAbout{
    About{Subcommand::run,
          "Runs the mini-app: exchange and stencil for a number of steps, verified, timed.",
          {"mpirun -n 8 halocline run --global 200 200 200 --steps 50",
           "mpirun -n 2 halocline run --methods p2p --overlap"}},
    About{Subcommand::compare,
          "Times the same exchange through several methods, in turns, beside the MPI's own.",
          {"mpirun -n 2 halocline compare --config configs/quickstart.toml",
           "mpirun -n 2 halocline compare --methods p2p,shared,vendor-p2p --neighbors 18"}},
    About{Subcommand::calibrate,
          "Measures messages, copies, launches and packing here, and writes a system model.",
          {"mpirun -n 2 halocline calibrate --dry-run",
           "mpirun -n 2 halocline calibrate --model model.json"}},
    About{Subcommand::gather,
          "Times hierarchical gathers that reorder blocks in several ways, beside MPI_Gather.",
          {"mpirun -n 4 halocline gather --ranks-per-node 2 --sizes 1024,1048576",
           "mpirun -n 4 halocline gather --config configs/gather-fig3.toml"}},
    About{Subcommand::predict,
          "Predicts the halo exchange on other numbers of nodes, by a system model.",
          {"halocline predict --model configs/models/summit.json --ranks-per-node 6",
           "halocline predict --model model.json --local 256 256 256 --nodes 1,8,64"}},
    About{Subcommand::inspect,
          "Shows what becomes of an MPI datatype: its loops, its plan, its cheapest form.",
          {"halocline inspect 'vector(5,4,8,double)'",
           "halocline inspect 'subarray(C,{16,16,16},{1,8,8},{5,2,3},double)'"}},
    About{Subcommand::info,
          "Shows build, MPI, Kokkos, threads and devices of this job, and the model.",
          {"mpirun -n 2 halocline info", "halocline info --json"}}};

constexpr const char* kProgram =
    "Halocline measures 3-D, 26-neighbour halo exchanges of strided data written as MPI "
    "datatypes, and compares its packing and exchange with the installed MPI's. Every result is "
    "verified before and after it is timed.";

constexpr const char* kExitCodes =
    "Exit codes: 0 ok, 1 verification failed or value not finite, 2 bad input, 3 environment.";

// Fits into the narrowest terminal.
constexpr const char* kNotation =
    R"(
EXPRESSION: a predefined type such as double, int, byte
(or MPI_DOUBLE), or a constructor. T is an expression,
{...} or [...] a list.
  contiguous(count, T)
  vector(count, blocklength, stride, T)  hvector(...)
  indexed({blocklengths}, {displs}, T)  hindexed(...)
  indexed_block(blocklength, {displs}, T)
  hindexed_block(...)
  struct({blocklengths}, {displs}, {T,...})
  subarray({sizes}, {subsizes}, {starts}, C|F, T)
  darray(size, rank, {gsizes}, {block|cyclic|none,...},
         {dargs|default}, {psizes}, C|F, T)
  resized(T, lb, extent)  dup(T)
  f90_real(precision, range)  f90_complex(...)
  f90_integer(range)
subarray takes the order C|F first, too.
Proposed by papers:
  bounded_vector(start, blocklength, stride, bound, T)
  circular_vector(start, blocklength, stride, end, bound, T)
  bucket(size, {counts}, T)
  triangular(count, blocklength, change, stride, T)
  stretched_vector(types, index, {blocklengths}, T)
Numbers are in extents of T; in bytes where a name begins
with h, in struct and resized.
)";

// Writes `head` and behind it `text`, from column `indent` on.
std::string entry(const std::string& head, const std::string& text, std::size_t indent) {
  const std::string margin(indent, ' ');
  auto out = head.size() + 2 > indent ? head + "\n" + margin
                                      : head + std::string(indent - head.size(), ' ');
  std::istringstream lines(wrapped(text, columns_of_terminal() - indent));
  std::string line;
  std::getline(lines, line);
  for (out += line; std::getline(lines, line);) out += "\n" + margin + line;
  return out + "\n";
}

// Writes a command; a backslash joins its lines if it takes several.
std::string example(const std::string& command) {
  const auto columns = columns_of_terminal();
  const std::size_t margin = command.size() + 2 <= columns ? 2 : 6;
  auto lines = wrapped(command, columns - margin);
  lines.pop_back();
  return "  " + CLI::detail::find_and_replace(lines, "\n", " \\\n    ") + "\n";
}

std::string head_of(const Option& option) {
  return "  --" + option.name + (option.argument.empty() ? "" : " " + option.argument);
}

// Explains each flag once, with the subcommands that use it.
std::string all_details() {
  constexpr std::size_t kIndent = 6;
  std::string out, group;
  for (const auto& option : options()) {
    if (option.group.empty()) continue;
    if (std::exchange(group, option.group) != option.group) out += "\n" + group + ":\n";
    std::string users, text = option.meaning;
    for (const auto user : option.users)
      users.append(users.empty() ? "" : ", ").append(to_string(user));
    if (option.users.size() == kAbout.size()) users = "all";
    if (option.group.starts_with(kParametersOf) && !option.names.empty())
      text += ": " + option.expected;
    if (!option.argument.empty() && !option.default_text.empty())
      text += "; default: " + CLI::detail::find_and_replace(option.default_text, ",", ", ");
    text += option.details.empty() ? "." : ". " + option.details;
    const auto head = head_of(option);
    const bool fits = head.size() + users.size() + 4 <= columns_of_terminal();
    out += entry(head, "[" + users + "]", fits ? head.size() + 2 : kIndent);
    out += entry("", text, kIndent);
  }
  return out;
}

class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    auto out = make_description(app) + make_usage(app, std::move(name)) +
               make_subcommands(app, CLI::AppFormatMode::Normal);
    if (mode == CLI::AppFormatMode::All) return out + all_details() + kNotation + app->get_footer();
    // CLI11 puts its help flag before all other flags.
    auto groups = app->get_groups();
    std::rotate(groups.begin(), groups.begin() + 1, groups.end());
    for (const auto& group : groups)
      if (!group.empty() && !group.starts_with(kParametersOf) && group != kFilesOfRun &&
          group != kBoundaries && group != kPadding)
        out += make_group(group, false, app->get_options([&](const CLI::Option* option) {
          return option->get_group() == group && option->nonpositional();
        }));
    return out + app->get_footer();
  }

  std::string make_description(const CLI::App* app) const override {
    return wrapped(app->get_description(), columns_of_terminal());
  }

  std::string make_usage(const CLI::App* app, std::string name) const override {
    auto out =
        "Usage: " + name + (app->get_parent() == nullptr ? " SUBCOMMAND" : "") + " [FLAG...]";
    for (const auto* option :
         app->get_options([](const CLI::Option* one) { return one->get_positional(); }))
      out += " " + option->get_single_name();
    return out + "\n";
  }

  std::string make_subcommand(const CLI::App* app) const override {
    return entry("  " + app->get_name(), app->get_description(), 14);
  }

  std::string make_option(const CLI::Option* option, bool) const override {
    constexpr std::size_t kIndent = 27;
    const auto argument = option->get_type_name();
    const auto usual = option->get_default_str();
    const bool is_short = !usual.empty() && usual.size() < kIndent;
    const auto names = CLI::detail::find_and_replace(option->get_name(false, true), ",", ", ");
    return entry("  " + names + (argument.empty() ? "" : " " + argument),
                 option->get_description() + (is_short ? " (" + usual + ")" : ""), kIndent);
  }
};

}  // namespace

std::string description_of(std::optional<Subcommand> subcommand) {
  for (const auto& one : kAbout)
    if (one.subcommand == subcommand) return one.text;
  return kProgram;
}

std::string footer_of(std::optional<Subcommand> subcommand) {
  std::string out = subcommand == Subcommand::inspect ? kNotation : "";
  out += "\nExamples:\n";
  for (const auto& one : kAbout) {
    if (!subcommand || one.subcommand == subcommand) out += example(one.examples[0]);
    if (one.subcommand == subcommand) out += example(one.examples[1]);
  }
  return subcommand ? out : out + "\n" + wrapped(kExitCodes, columns_of_terminal());
}

std::shared_ptr<CLI::FormatterBase> make_help_formatter() {
  return std::make_shared<HelpFormatter>();
}

std::string help_as_json() {
  auto out = Json::array();
  for (const auto& option : options()) {
    if (option.group.empty()) continue;
    Json one;
    one["flag"] = option.name;
    one["argument"] = option.argument;
    one["group"] = option.group;
    one["default"] = option.argument.empty() ? "" : option.default_text;
    one["meaning"] = option.meaning;
    one["details"] = option.details;
    for (const auto user : option.users) one["used_by"].push_back(to_string(user));
    out.push_back(one);
  }
  return out.dump(1) + "\n";
}

}  // namespace halocline::app
