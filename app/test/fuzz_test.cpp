// SPDX-License-Identifier: BSD-3-Clause
// Feeds damaged input to every parser of the program. A parser returns, or throws a ConfigError of
// one line. Anything else ends the test and prints the input.
//
//   app_fuzz_test [--inputs N] [--seed S] [--gtest_filter=Fuzz.Models]
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "config.hpp"
#include "dtype/model/system_model.hpp"
#include "dtype/type_expr.hpp"
#include "flags.hpp"
#include "inspect.hpp"
#include "random_call.hpp"
#include "record.hpp"
#include "sequence_file.hpp"
#include "support/error.hpp"

#ifdef __SANITIZE_ADDRESS__
extern "C" void __sanitizer_set_death_callback(void (*callback)());
#endif

namespace halocline::app {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

// ---- The input is printed as a C++ string if the program ends or hangs.

const std::string* current = nullptr;

void print_current() {
  if (current == nullptr) return;
  static constexpr char kDigits[] = "01234567";
  static std::array<char, 1 << 16> text;
  std::size_t at = 0;
  const auto put = [&](char c) {
    if (at < text.size()) text[at++] = c;
  };
  for (const char c : std::string_view("\nthe input was: \"")) put(c);
  for (const char c : *current) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= ' ' && byte < 127 && c != '"' && c != '\\') {
      put(c);
    } else {
      put('\\');
      for (const int shift : {6, 3, 0}) put(kDigits[byte >> shift & 7]);
    }
  }
  for (const char c : std::string_view("\"\n")) put(c);
  static_cast<void>(!write(STDERR_FILENO, text.data(), at));
}

void end(int signal) {
  print_current();
  std::signal(signal, SIG_DFL);
  raise(signal);
}

// Limits processor time, so that other programs on the machine do not matter.
void start_clock(int seconds) {
  const itimerval limit{{0, 0}, {seconds, 0}};
  setitimer(ITIMER_PROF, &limit, nullptr);
}

#ifdef __SANITIZE_ADDRESS__
constexpr int kSeconds = 20;
#else
constexpr int kSeconds = 5;
#endif

void watch() {
  std::signal(SIGPROF, end);
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_set_death_callback(print_current);
#else
  static std::array<std::byte, 1 << 16> stack;  // the program's own stack may have overflowed
  const stack_t other{stack.data(), 0, stack.size()};
  sigaltstack(&other, nullptr);
  struct sigaction action {};
  action.sa_handler = end;
  action.sa_flags = SA_ONSTACK;
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT})
    sigaction(signal, &action, nullptr);
#endif
}

// ---- Inputs

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  std::size_t below(std::size_t n) { return n == 0 ? 0 : engine_() % n; }
  bool one_in(std::size_t n) { return below(n) == 0; }
  template <class List>
  const auto& of(const List& list) {
    return list[below(std::size(list))];
  }

 private:
  std::mt19937_64 engine_;
};

constexpr std::array kNumbers{"0",
                              "1",
                              "2",
                              "3",
                              "8",
                              "17",
                              "255",
                              "4096",
                              "65537",
                              "1000001",
                              "2147483647",
                              "2147483648",
                              "-2147483649",
                              "2305843009213693952",
                              "-2305843009213693952",
                              "9223372036854775807",
                              "-9223372036854775808",
                              "18446744073709551616",
                              "-1",
                              "-2",
                              "1e999",
                              "0.5",
                              "-0",
                              "nan"};
constexpr std::array kPieces{"[",
                             "]",
                             "{",
                             "}",
                             "(",
                             ")",
                             ",",
                             ":",
                             "=",
                             "#",
                             "\"",
                             "\\",
                             "\n",
                             "\r\n",
                             " ",
                             "\t",
                             "\0",
                             "\xff",
                             "\xe2\x80\xa8",
                             "\\u0000",
                             "null",
                             "true",
                             "false",
                             "//",
                             "'",
                             "-",
                             "--",
                             "."};

// Returns a seed with a few changes: bits, pieces, numbers, words of the parser's language, parts
// of other seeds, and repeated parts.
std::string mutated(Random& random, const Words& seeds, const Words& words) {
  constexpr std::size_t kLongest = 1 << 16;
  auto text = random.of(seeds);
  const auto insert = [&](std::string_view piece) {
    text.insert(random.below(text.size() + 1), piece);
  };
  for (auto changes = 1 + random.below(6); changes > 0; --changes) {
    const auto at = random.below(text.size());
    const auto length = std::min(1 + random.below(random.one_in(4) ? 400 : 8), text.size() - at);
    switch (random.below(10)) {
      case 0:
        if (!text.empty()) text[at] ^= static_cast<char>(1u << random.below(8));
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        insert(random.of(kPieces));
        break;
      case 3:
        insert(random.of(kNumbers));
        break;
      case 4:
        insert(random.of(words));
        break;
      case 5: {  // replaces a number
        const auto first = text.find_first_of("0123456789", at);
        if (first == std::string::npos) break;
        const auto last = std::min(text.find_first_not_of("0123456789", first), text.size());
        text.replace(first, last - first, random.of(kNumbers));
        break;
      }
      case 6: {
        const auto& other = random.of(seeds);
        const auto from = random.below(other.size());
        text.replace(at, length, other, from, 1 + random.below(other.size() - from));
        break;
      }
      case 7:
        insert(text.substr(at, length));
        break;
      case 8:
        text.resize(at);
        break;
      default: {  // nests deeply or makes the text long
        if (!random.one_in(20)) break;
        const std::string part = random.one_in(2) ? random.of(kPieces) : text.substr(at, length);
        std::string many;
        for (auto n = random.below(5000); n > 0 && many.size() < kLongest; --n) many += part;
        insert(many);
      }
    }
  }
  text.resize(std::min(text.size(), kLongest));
  return text;
}

// Returns a constructor with arbitrary numbers, around another constructor.
std::string wild_type(Random& random, int depth) {
  constexpr std::array kSmall{"0", "1", "2", "3", "5", "64", "1000"};
  const auto number = [&] {
    return std::string(random.one_in(4) ? random.of(kNumbers) : random.of(kSmall));
  };
  const auto list = [&](std::size_t n, const std::function<std::string()>& item) {
    std::string out = "{";
    for (std::size_t i = 0; i < n; ++i) out += (i == 0 ? "" : ",") + item();
    return out + "}";
  };
  const auto inner = [&] { return wild_type(random, depth - 1); };
  if (depth == 0) return random.of(std::array{"double", "int", "byte", "double_int", "short_int"});
  const auto n = random.below(4);
  switch (random.below(18)) {
    case 0:
      return "contiguous(" + number() + "," + inner() + ")";
    case 1:
      return "vector(" + number() + "," + number() + "," + number() + "," + inner() + ")";
    case 2:
      return "hvector(" + number() + "," + number() + "," + number() + "," + inner() + ")";
    case 3:
      return "indexed(" + list(n, number) + "," + list(n, number) + "," + inner() + ")";
    case 4:
      return "hindexed(" + list(n, number) + "," + list(n, number) + "," + inner() + ")";
    case 5:
      return "indexed_block(" + number() + "," + list(n, number) + "," + inner() + ")";
    case 6:
      return "hindexed_block(" + number() + "," + list(n, number) + "," + inner() + ")";
    case 7:
      return "struct(" + list(n, number) + "," + list(n, number) + "," + list(n, inner) + ")";
    case 8:
    case 9: {  // a legal subarray
      std::string sizes = "{", starts = "{";
      for (std::size_t i = 0; i <= n; ++i) {
        sizes += (i == 0 ? "" : ",") + number();
        starts += i == 0 ? "0" : ",0";
      }
      return std::string("subarray(") + (random.one_in(2) ? "C," : "F,") + sizes + "}," + sizes +
             "}," + starts + "}," + inner() + ")";
    }
    case 10:
    case 11: {
      const auto ranks = number();
      const std::array kinds{"block", "cyclic"};
      return "darray(" + ranks + "," + (random.one_in(2) ? "0" : number()) + ",{" + number() +
             "},{" + random.of(kinds) + "},{" + (random.one_in(2) ? "default" : number()) + "},{" +
             ranks + "}," + (random.one_in(2) ? "C," : "F,") + inner() + ")";
    }
    case 12:
      return "resized(" + inner() + "," + number() + "," + number() + ")";
    case 13:
      return "bounded_vector(" + number() + "," + number() + "," + number() + "," + number() + "," +
             inner() + ")";
    case 14:
      return "circular_vector(" + number() + "," + number() + "," + number() + "," + number() +
             "," + number() + "," + inner() + ")";
    case 15:
      return "bucket(" + number() + "," + list(n, number) + "," + inner() + ")";
    case 16:
      return "stretched_vector(" + number() + "," + number() + "," + list(n, number) + "," +
             inner() + ")";
    default:
      return "triangular(" + number() + "," + number() + "," + number() + "," + number() + "," +
             inner() + ")";
  }
}

// Returns types that MPI takes, and arbitrary ones.
Words type_seeds(std::uint64_t seed) {
  Words out;
  dtype::test::CallGenerator calls(seed);
  Random random(seed);
  while (out.size() < 400)
    if (auto text = to_string(*calls.next().expr); text.size() < 2000) out.push_back(text);
  while (out.size() < 4000) out.push_back(wild_type(random, static_cast<int>(random.below(5))));
  return out;
}

const Words kTypeWords{"contiguous(",
                       "vector(",
                       "hvector(",
                       "indexed({",
                       "hindexed({",
                       "struct({",
                       "indexed_block(",
                       "hindexed_block(",
                       "subarray(C,{",
                       "darray(",
                       "resized(",
                       "dup(",
                       "bounded_vector(",
                       "circular_vector(",
                       "bucket(",
                       "triangular(",
                       "stretched_vector(",
                       "f90_real(",
                       "f90_integer(",
                       "undefined",
                       "MPI_DOUBLE",
                       "double_int",
                       "cyclic",
                       "block",
                       "none",
                       "default",
                       "},{",
                       "double)"};

std::string contents(const fs::path& path) {
  std::ostringstream out;
  out << std::ifstream(path).rdbuf();
  return out.str();
}

Words files(const char* folder, const char* extension) {
  Words out;
  for (const auto& entry : fs::directory_iterator(fs::path(HALOCLINE_SOURCE) / folder))
    if (entry.path().extension() == extension) out.push_back(contents(entry.path()));
  std::sort(out.begin(), out.end());
  return out;
}

std::variant<std::string, Config> read_words(const Words& words) {
  std::vector<const char*> argv;
  for (const auto& word : words) argv.push_back(word.c_str());
  return read_arguments(static_cast<int>(argv.size()), argv.data());
}

// Returns every flag of the help text with its two dashes.
Words flags() {
  Words out;
  std::istringstream help(std::get<std::string>(read_words({"halocline", "help", "all"})));
  for (std::string word; help >> word;)
    if (word.starts_with("--") && word.size() > 2) out.push_back(word.substr(0, word.find(',')));
  return out;
}

// ---- The tests

class Fuzz : public ::testing::Test {
 protected:
  Fuzz() : trials_(halocline::test::read_trials("--inputs", 10'000, 2'000)) {
    std::string name =
        (fs::temp_directory_path() / ("halocline-fuzz-" + std::string(6, 'X'))).string();
    folder_ = mkdtemp(name.data());
    watch();
  }
  ~Fuzz() override {
    close(memory_);
    fs::remove_all(folder_);
  }

  // Returns the path of a file with this name and content. The file is in memory, since disks are
  // slow.
  std::string file(const char* name, const std::string& text) const {
    const auto path = folder_ / name;
    if (!fs::is_symlink(path)) fs::create_symlink("/proc/self/fd/" + std::to_string(memory_), path);
    const auto size = static_cast<ssize_t>(text.size());
    if (ftruncate(memory_, 0) != 0 || pwrite(memory_, text.data(), text.size(), 0) != size)
      throw std::runtime_error("no memory for a file");
    return path;
  }

  // Calls parse(input) for every input.
  template <class Parse>
  void run(const Words& seeds, const Words& words, Parse parse) const {
    ASSERT_FALSE(seeds.empty());
    Random random(trials_.seed);
    std::int64_t accepted = 0;
    for (std::int64_t i = 0; i < trials_.count && !HasFailure(); ++i) {
      const auto input =
          static_cast<std::size_t>(i) < seeds.size() ? seeds[i] : mutated(random, seeds, words);
      current = &input;
      start_clock(kSeconds);
      try {
        parse(input);
        ++accepted;
      } catch (const ConfigError& error) {
        const std::string_view message = error.what();
        const bool is_one_line =
            !message.empty() &&
            std::none_of(message.begin(), message.end(), [](unsigned char c) { return c < ' '; });
        if (!is_one_line || message.size() > 4000) {
          ADD_FAILURE() << "no message of one line: " << message;
          print_current();
        }
      } catch (const std::exception& error) {
        ADD_FAILURE() << "not a ConfigError: " << error.what();
        print_current();
      }
      start_clock(0);
      current = nullptr;
    }
    RecordProperty("accepted", std::to_string(accepted));
    EXPECT_GT(accepted, 0);
    EXPECT_LT(accepted, trials_.count);
    if (HasFailure()) ADD_FAILURE() << "again with --seed " << trials_.seed;
  }

  halocline::test::Trials trials_;
  fs::path folder_;
  int memory_ = memfd_create("fuzz", MFD_CLOEXEC);
};

TEST_F(Fuzz, ConfigFiles) {
  auto seeds = files("configs", ".toml");
  for (const auto* subcommand : {"run", "gather"})
    seeds.push_back(std::get<std::string>(read_words({"halocline", subcommand, "--print-config"})));
  seeds.push_back("output = \"" + std::string(30, 'x') + "\" # \\\"\n[gather]\nsizes = [1, [2]]\n");
  Words words;
  for (const auto& flag : flags()) words.push_back("\n" + flag.substr(2) + " = ");
  run(seeds, words, [&](const std::string& input) {
    read_words({"halocline", "run", "--config", file("fuzz.toml", input)});
  });
}

TEST_F(Fuzz, CommandLines) {
  // Words are separated by bars.
  Words seeds{"run",
              "compare|--config|none.toml",
              "inspect|vector(5,4,4,double)",
              "run|--radius|3|--local|8|8|8",
              "compare|--methods|p2p,shared|--shape|direct,axes",
              "gather|--sizes|1024,1048576|--order|random",
              "--help",
              "help|all",
              "help|json",
              "inspect|--help",
              "run|--version",
              "predict|--nodes=1,2|--model|m.json|--quiet",
              "run|--print-config|--global|9|9|9",
              "info|--json|--threads|1",
              "--|run|--radius|3",
              "inspect|--displacements|x|--json"};
  auto words = flags();
  for (auto& word : words) word += "|";
  for (const auto& word : flags()) words.push_back("|" + word + "=");
  for (const auto& word : words) seeds.push_back("run|" + word + "|2");
  run(seeds, words, [](const std::string& input) {
    Words arguments{"halocline", ""};
    for (const char c : input) {
      if (c == '|')
        arguments.emplace_back();
      else if (c != '\0')
        arguments.back() += c;
    }
    read_words(arguments);
  });
}

TEST_F(Fuzz, TypeExpressions) {
  run(type_seeds(trials_.seed), kTypeWords, [](const std::string& input) {
    const auto text = to_string(*dtype::parse_type(input));
    ASSERT_EQ(to_string(*dtype::parse_type(text)), text);
  });
}

TEST_F(Fuzz, InspectedTypes) {
  run(type_seeds(trials_.seed), kTypeWords, [](const std::string& input) {
    ASSERT_FALSE(
        inspect_expression(input, input.size() % 2 == 0 ? View::json : View::verbose).empty());
  });
}

TEST_F(Fuzz, TypeMaps) {
  const Words seeds{"double 0\nMPI_INT 8\ndouble 16\nint 24\n", "double_int 0\ndouble_int 16",
                    "# nothing\n\nbyte +3 # more\nshort -4\n", "char 2305843009213693952\n"};
  run(seeds, {"double ", "\nint ", "2int ", "MPI_SHORT_INT 0\n", "# ", "f90_real(6,30) "},
      [&](const std::string& input) {
        const auto found = read_type_map(file("fuzz.map", input));
        ASSERT_FALSE(
            inspect_sequence(found, input.size() % 2 == 0 ? View::json : View::verbose).empty());
      });
}

TEST_F(Fuzz, Displacements) {
  std::string many;
  for (int i = 0; i < 300; ++i) many += std::to_string(i * i % 97 + i / 30 * 400) + "\n";
  const Words seeds{"0\n1\n2\n", "# Figure 2\n0\n+1\n-7\n100\n102\n", many, "5"};
  const auto inspect = [&](const char* name, const std::string& input) {
    const auto found = read_displacements(file(name, input));
    ASSERT_FALSE(
        inspect_sequence(found, input.size() % 2 == 0 ? View::json : View::verbose).empty());
  };
  run(seeds, {"\n7\n", "#", " "}, [&](const std::string& input) { inspect("fuzz.txt", input); });
  run({std::string(24, '\0'), std::string("\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0", 16)},
      {std::string(8, '\0'), std::string("\0\0\0\0\0\0\0\x20", 8)},
      [&](const std::string& input) { inspect("fuzz.i64", input); });
}

TEST_F(Fuzz, Models) {
  const auto seeds = files("configs/models", ".json");
  run(seeds,
      {"\"messages\": ", "\"bytes\": [1, 2], ", "\"packing\": {", "\"schema\": ", "[[[", "}"},
      [](const std::string& input) {
        const auto text = to_json(dtype::parse_model(input, "FILE.json"));
        ASSERT_EQ(to_json(dtype::parse_model(text, "again")), text);
      });
}

// Damages the header of a CSV file, since the program reads nothing else of it.
TEST_F(Fuzz, CsvHeaders) {
  Config config;
  config.csv = folder_ / "out.csv";
  const Record record;
  ResultWriter<Record>(config, {}).write(record);
  const auto seed = contents(config.csv);
  fs::remove(config.csv);
  run({seed}, {"schema", ",kind"}, [&](const std::string& input) {
    file("out.csv", input);
    ResultWriter<Record>(config, {});
  });
}

}  // namespace
}  // namespace halocline::app
