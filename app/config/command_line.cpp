// SPDX-License-Identifier: BSD-3-Clause
// Reads the command line by CLI11.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "given.hpp"
#include "help.hpp"
#include "messages.hpp"
#include "provenance.hpp"
#include "record.hpp"

namespace halocline::app {

namespace {

constexpr const char* kCommandLine = "command line";

// ---- The program as CLI11 sees it. CLI11's own messages name no place and no remedy, so the
// validators throw our messages.

// Refuses an empty word, which an unset variable of the shell gives. Without this check the result
// would be lost.
void refuse_empty(const Option& option, const std::string& word) {
  if (word.empty())
    refuse(option.name + " is empty", kCommandLine,
           "give " + option.expected + ", or leave the flag out");
}

std::string check_word(const Option& option, const std::string& word) {
  // CLI11 takes the next word as the value, whatever that word is.
  if (word == "--help") throw CLI::CallForHelp();
  if (word.starts_with("--") || word == "-h")
    refuse("--" + option.name + " has no value", shown(word) + " begins like a flag, command line",
           "give " + option.expected);
  refuse_empty(option, word);
  Config unused;
  const auto value = option.from_tokens({word});
  if (option.words == 1) {
    set(option, value, kCommandLine, unused);
    return "";
  }
  // The items of an option may be in several words, so each item is checked as if it stood for all.
  for (const auto& item : value)
    if (!option.read(Json(static_cast<std::size_t>(option.words), item), unused))
      refuse_value(option, shown(item), kCommandLine);
  return "";
}

// Refuses a value behind the = of a switch, which CLI11 would accept.
CLI::Option* without_value(CLI::Option* flag) {
  return flag->check([name = flag->get_single_name()](const std::string& value) {
    if (value != "true")
      refuse("--" + name + " takes no value", kCommandLine, "leave out the = and what follows it");
    return "";
  });
}

// Adds the flag, which wins over the wrong values and unknown flags of its subcommand.
void add_help_flag(CLI::App& app, const std::string& meaning) {
  app.set_help_flag("-h,--help", meaning)->group("General")->each([](const std::string&) {
    throw CLI::CallForHelp();
  });
}

CLI::Option* add_option(CLI::App& app, const Option& option, Given& given) {
  const auto name = "--" + option.name;
  const auto read = [&option, &given](Tokens words) {
    // CLI11 ends an unfinished triple with an empty word.
    if (words.size() > 1 && words.back().empty()) words.pop_back();
    refuse_empty(option, words.front());  // CLI11 does not check it if there may be several words
    given.add(option, option.from_tokens(words), kCommandLine);
    return true;
  };
  if (option.argument.empty())
    return without_value(app.add_flag_callback(
                             name, [=] { read({"true"}); }, option.meaning))
        ->multi_option_policy(CLI::MultiOptionPolicy::Throw)
        ->group(option.group);
  // With type_size(), unlike with expected(), CLI11 notices a triple that is given twice.
  return app.add_option(name, read, option.meaning)
      ->group(option.group)
      ->type_name(option.argument)
      ->type_size(1, option.words)
      ->default_str(option.default_text)
      ->check([&option](const std::string& word) { return check_word(option, word); });
}

void add_subcommand(CLI::App& cli, Subcommand subcommand, CommandLine& line) {
  auto& app = *cli.add_subcommand(std::string(to_string(subcommand)), description_of(subcommand));
  app.footer(footer_of(subcommand));
  add_help_flag(
      app,
      "`halocline help all` explains each flag, and those of checkpoints, snapshots and physics");
  without_value(app.set_version_flag("--version", cli.version()))->group("");
  if (subcommand == Subcommand::inspect)
    app.add_option("EXPRESSION", line.given.values.expression)
        ->group("")
        ->check([](const std::string& text) {
          if (!is_utf8(text))
            refuse("expression cannot be used", shown(text) + ", command line",
                   "give a datatype in the notation of halocline inspect --help");
          return "";
        });
  for (const auto& option : options()) {
    if (!option.is_used_by(subcommand)) continue;
    auto* const flag = add_option(app, option, line.given);
    if (auto* const other = app.get_option_no_throw("--" + option.excludes)) flag->excludes(other);
  }
  without_value(
      app.add_flag("--print-config", line.print_config, "print the configuration as TOML"))
      ->multi_option_policy(CLI::MultiOptionPolicy::Throw)
      ->group("General");
  app.callback([&line, subcommand] { line.given.values.subcommand = subcommand; });
}

// ---- Errors that CLI11 finds, in our words

using Words = std::vector<std::string>;

// Refuses a word in the place of a subcommand.
[[noreturn]] void refuse_subcommand(const std::string& word) {
  const auto names = all_names<Subcommand>(", ");
  if (word.starts_with("-"))
    refuse("no subcommand in front of " + shown(word), kCommandLine,
           "begin with one of " + names + "; flags follow");
  Words known;
  for (const auto one : all_of<Subcommand>()) known.emplace_back(to_string(one));
  const auto near = nearest(word, known);
  refuse("unknown subcommand " + shown(word), kCommandLine,
         near.empty() ? "use one of " + names : "did you mean " + near + "?");
}

// Refuses words that no flag and no subcommand has taken. CLI11 has no "did you mean".
[[noreturn]] void refuse_rest(const CLI::App& cli, const std::string& first_word) {
  const auto chosen = cli.get_subcommands();
  const auto outside = cli.remaining();
  const bool is_outside = !outside.empty() && outside.front() == first_word;
  if (is_outside && (chosen.empty() || first_word.starts_with("-"))) refuse_subcommand(first_word);
  const auto rest = cli.remaining(true);
  const auto name = chosen.empty() ? "" : chosen.front()->get_name();
  const auto is_flag = [](const auto& word) { return word.starts_with("--") && word != "--"; };
  const auto found = std::find_if(rest.begin(), rest.end(), is_flag);
  if (const auto subcommand = from_string<Subcommand>(name); subcommand && found != rest.end()) {
    const auto flag = found->substr(0, found->find('='));
    const auto* const option = find_option(flag.substr(2));
    if (option == nullptr || !option->is_used_by(*subcommand))
      refuse(option != nullptr ? flag + " is not used by " + name : "unknown flag " + shown(flag),
             kCommandLine, remedy_for(flag.substr(2), *subcommand, "--"));
  }
  std::string shown_rest;
  for (const auto& word : rest) shown_rest += (shown_rest.empty() ? "" : " ") + shown(word);
  refuse("unknown argument on the command line", shown_rest,
         "see halocline " + (name.empty() || name == "help" ? "" : name + " ") + "--help");
}

// Refuses a flag that is given twice, or that ends the line without its value.
[[noreturn]] void refuse_count(const CLI::App& subcommand, const Words& words) {
  for (const auto* option : subcommand.get_options())
    if (static_cast<int>(option->count()) > std::max(option->get_items_expected_max(), 1))
      refuse("--" + option->get_single_name() + " is given twice", kCommandLine,
             "give each flag once");
  refuse(words.back() + " has no value", "end of the command line",
         "give " + find_option(words.back().substr(2))->expected);
}

// Refuses `--flag=`: CLI11 would take the next word as the value. Refuses CLI11's own `++`, too.
void refuse_nothing_behind(const Words& words) {
  for (const auto& word : words) {
    if (word == "--") return;
    if (word == "++") refuse("unknown argument on the command line", word, "leave it out");
    if (!word.starts_with("--") || word.find('=') != word.size() - 1) continue;
    const auto* const option = find_option(word.substr(2, word.size() - 3));
    if (option != nullptr)
      refuse(word.substr(0, word.size() - 1) +
                 (option->argument.empty() ? " takes no value" : " has no value"),
             kCommandLine,
             option->argument.empty() ? "leave out the =" : "give " + option->expected);
  }
}

}  // namespace

CommandLine parse_command_line(int argc, const char* const* argv) {
  const Words words(argv + std::min(argc, 1), argv + argc);
  refuse_nothing_behind(words);
  CommandLine line;
  CLI::App cli(description_of(std::nullopt), "halocline");
  cli.formatter(make_help_formatter());
  add_help_flag(cli, "this text; behind a subcommand, its flags");
  without_value(cli.set_version_flag("--version", "halocline " + version_line() + "\n",
                                     "version and source revision"))
      ->group("General");
  for (const auto one : all_of<Subcommand>()) add_subcommand(cli, one, line);
  std::string topic;
  auto& help = *cli.add_subcommand("help", "Explains a subcommand; help all: each flag of all.");
  help.set_help_flag();
  help.add_option("TOPIC", topic)->check([](const std::string& text) {
    if (text != "all" && text != "json" && text != "schema" && !from_string<Subcommand>(text))
      refuse("no help on " + shown(text), kCommandLine,
             "use help all, or help with one of " + all_names<Subcommand>(", "));
    return "";
  });
  cli.require_subcommand(1);
  cli.footer(footer_of(std::nullopt));

  const auto help_on_program = [&](CLI::AppFormatMode mode) {
    return cli.get_formatter()->make_help(&cli, cli.get_name(), mode);
  };
  try {
    cli.parse(Words(words.rbegin(), words.rend()));
    if (!help.parsed()) return line;
    if (topic == "json")
      line.text = help_as_json();
    else if (topic == "schema")
      line.text = schemas_as_json();
    else if (topic.empty() || topic == "all")
      line.text =
          help_on_program(topic.empty() ? CLI::AppFormatMode::Normal : CLI::AppFormatMode::All);
    else
      line.text = cli.get_subcommand(topic)->help(cli.get_name());
  } catch (const CLI::CallForHelp&) {
    if (!cli.remaining().empty()) refuse_rest(cli, words.front());
    line.text = cli.help();
  } catch (const CLI::CallForVersion& version) {
    if (!cli.remaining(true).empty()) refuse_rest(cli, words.front());
    line.text = version.what();
  } catch (const CLI::ExtrasError&) {
    refuse_rest(cli, words.front());
  } catch (const CLI::RequiredError&) {
    if (!cli.remaining().empty()) refuse_rest(cli, words.front());
    refuse("no subcommand", kCommandLine, "use one of " + all_names<Subcommand>(", "));
  } catch (const CLI::ArgumentMismatch&) {
    if (cli.get_subcommands().empty()) refuse_subcommand(words.front());  // behind a "--"
    refuse_count(*cli.get_subcommands().front(), words);
  } catch (const CLI::ExcludesError&) {
    line.given.refuse_excluded("the command line");
  } catch (const CLI::ParseError& error) {
    refuse("command line cannot be used", error.what(), "see halocline --help");
  }
  return line;
}

}  // namespace halocline::app
