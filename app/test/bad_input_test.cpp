// SPDX-License-Identifier: BSD-3-Clause
// Tests that mistakes in command lines and config files are refused, each in one clear line.
#include <gtest/gtest.h>
#include <mpi.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "commands.hpp"
#include "config.hpp"
#include "support/error.hpp"

namespace halocline::app {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

std::string repeated(const std::string& text, int times = 100'000) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

// Returns a short text for 2^levels entries: each level doubles its content.
std::string doubled(int levels) {
  std::string out = "byte";
  for (int level = 0; level < levels; ++level)
    out = "hindexed({1,1},{0," + std::to_string(std::int64_t{1} << level) + "}," + out + ")";
  return out;
}

struct BadFile {
  std::string named;  // a part of the message
  std::string text;
};

const std::vector<BadFile> kBadFiles{
    {"tpyo", "tpyo = 3"},
    {"memory", "memory = \"gpu\""},
    {"radius", "radius = \"three\""},
    {"radius", "radius = \"3\""},
    {"radius", "radius = three"},
    {"radius", "radius = 3.7"},
    {"radius", "radius = 3 4"},
    {"radius", "radius = 3]"},
    {"radius", "radius ="},
    {"radius", "radius = null"},
    {"radius", "radius = 0"},
    {"give one value or three, each a whole number from 1 to", "radius = [1, 2]"},
    {"radius", "radius = [1, 2, 0]"},
    {"radius", "radius = -1"},
    {"radius", "radius = 99999999999"},
    {"radius", "radius = 99999999999999999999999"},
    {"radius", "radius = 3\nradius = 3"},
    {"fields", "fields = 0"},
    {"steps", "steps = -1"},
    {"stages", "stages = 0"},
    {"overlap", "overlap = 1"},
    {"snapshot-every", "snapshot-every = -1"},
    {"series-every", "series-every = -1"},
    {"checkpoint-every", "checkpoint-every = -1"},
    {"from 1 to 64", "wide = 0"},
    {"from 1 to 64", "wide = 65"},
    {"restart finds no checkpoint", "restart = \"/nonexist\""},
    {"names of fields", "snapshot-fields = []"},
    {"each at most once", "slice-fields = [\"s\", \"s\"]"},
    {"one of x, y, z", "slice-axis = 2"},
    {"a number from 0 to 1", "slice-at = 1.5"},
    {"progress", "progress = -1"},
    {"iterations", "iterations = 0"},
    {"warmup", "warmup = -1"},
    {"max-seconds", "max-seconds = 0"},
    {"threads", "threads = -1"},
    {"threads", "threads = 100000000"},
    {"threads", "threads = 513"},
    {"from 1 to 65536", "fields = 65537"},
    {"from 0 to 2147483647", "steps = 2147483648"},
    {"from 1 to 2147483647", "iterations = 2147483648"},
    {"warmup", "warmup = 2147483648"},
    {"seed", "seed = 18446744073709551615"},
    {"local", "local = [8, 8]"},
    {"local", "local = [8, 8, 8, 8]"},
    {"local", "local = [8, 0, 8]"},
    {"local", "local = [8, -8, 8]"},
    {"local", "local = [8, 8, 8.5]"},
    {"local", "local = [8, 8,"},
    {"local", "local = [8, 8, 8] 8"},
    {"local", "local = 8"},
    {"sizes", "sizes = " + repeated("[") + repeated("]")},
    {"more than 8192 bytes", repeated("a.", 50'000) + "a = 1"},
    {"radius takes no keys of its own", "radius = {a=1}"},
    {"quiet", "quiet = " + repeated("{\"a\":") + "1" + repeated("}")},
    {"local", "local = [8, 8, 8]\nglobal = [8, 8, 8]"},
    {"decomposition", "decomposition = [0, 1, 1]"},
    {"reorder", "reorder = \"auto\""},
    {"ranks-per-node", "ranks-per-node = 0"},
    {"ranks-per-node", "ranks-per-node = []"},
    {"ranks-per-node", "ranks-per-node = [2, 0]"},
    {"ranks-per-node", "ranks-per-node = [2, [2]]"},
    {"ranks-per-node", "ranks-per-node = \"2\""},
    {"periodic", "periodic = maybe"},
    {"periodic", "periodic = 1"},
    {"one value or three, each true or false", "periodic = [true, false]"},
    {"periodic", "periodic = [true]"},
    {"periodic", "periodic = [true, false, 1]"},
    {"quiet", "quiet = 3"},
    {"layout", "layout = \"aosoa\""},
    {"element", "element = \"half\""},
    {"stencil", "stencil = [\"heat13\"]"},
    {"shape", "shape = []"},
    {"shape", "shape = \"axes\""},
    {"shape", "shape = [\"axes\", \"axes\"]"},
    {"direct, axes", "shape = [\"diagonal\"]"},
    {"neighbors", "neighbors = 12"},
    {"neighbors", "neighbors = -6"},
    {"neighbors", "neighbors = \"most\""},
    {"messages", "messages = \"byte\""},
    {"describe", "describe = 3"},
    {"packer", "packer = host"},
    {"methods", "methods = []"},
    {"methods", "methods = \"alltoallv\""},
    {"methods", "methods = [\"alltoallv\", \"alltoallv\"]"},
    {"methods", "methods = [\"carrier-pigeon\"]"},
    {"output", "output = a b"},
    {"model", "model = 3"},
    {"force-model", "force-model = \"yes\""},
    {"unknown section", "[grid]\nradius = 3"},
    {"calibrate, gather, predict, inspect, info, heat, mhd", "[MHD]\nnu = 3"},
    {"section run of config file holds another section", "[run]\nmhd.nu = 3"},
    {"write [mhd] as a section of its own", "[run.mhd]\nnu = 3"},
    {"use one level of sections", "[run.grid]\nradius = 3"},
    {"section mhd of config file holds another section", "[mhd]\nmhd.nu = 3"},
    {"did you mean radius?", "raduis = 3"},
    {"did you mean mhd.nu?", "[run]\nnu = 3"},
    {"did you mean radius?", "[run]\nraduis = 3"},
    {"sizes in config file is not used by run", "sizes = [1]"},
    {"move it below the section of a subcommand that uses it: [gather]", "sizes = [1]"},
    {"iterations in config file is not used by run", "[run]\niterations = 3"},
    {"radius cannot be used (1979-05-27, line 1 of bad.toml)", "radius = 1979-05-27"},
    {"radius cannot be used (nan, line 1 of bad.toml)", "radius = nan"},
    {"local cannot be used ([8,nan,8], line 1 of bad.toml)", "local = [8, nan, 8]"},
    {"max-seconds cannot be used (-inf, line 1 of bad.toml)", "max-seconds = -inf"},
    {"output cannot be used (inf, line 1 of bad.toml)", "output = inf"},
    {"shape cannot be used ([], line 1 of bad.toml)", "shape = []"},
    {"radius cannot be used (0, line 3 of bad.toml)", "radius = 1\n[compare]\nradius = 0"},
    {"both in bad.toml", "[compare]\nlocal = [8, 8, 8]\nglobal = [8, 8, 8]"},
    {"no TOML", "a line without a setting"},
    {"no TOML", "= 3"},
    {"config", "config = \"other.toml\""},
};

struct BadCommandLine {
  std::string named;  // a part of the message
  Words words;
};

const std::vector<BadCommandLine> kBadCommandLines{
    {"subcommand", {}},
    {"frobnicate", {"frobnicate"}},
    {"did you mean compare?", {"comparee"}},
    {"did you mean --fields?", {"run", "--fieldz", "3"}},
    {"did you mean --steps?", {"run", "--step", "3"}},
    {"--radius is not used by inspect",
     {"inspect", "int", "--radius", "99", "--steps", "5", "--overlap", "--traces", "/nonexist"}},
    {"--steps is not used by compare", {"compare", "--steps", "5"}},
    {"no subcommand in front of", {"--radius", "3", "run"}},
    {"no subcommand in front of", {"--", "run", "--radius"}},
    {"no help on", {"help", "me"}},
    {"unknown argument on the command line (\"compare\")", {"help", "run", "compare"}},
    {"unknown argument on the command line (\"bogus\")", {"--version", "bogus"}},
    {"(\"bogus\")", {"--help", "bogus"}},
    {"(\"extra\"): see halocline run --help", {"run", "--version", "extra"}},
    {"--version takes no value", {"run", "--version=3"}},
    {"compare", {"run", "compare"}},
    {"--foo", {"run", "--foo"}},
    {"-radius", {"run", "-radius", "3"}},
    {"trailing", {"run", "--radius", "3", "trailing"}},
    {"radius", {"run", "--radius"}},
    {"radius", {"run", "--radius", "--quiet"}},
    {"periodic has no value", {"run", "--periodic"}},
    {"periodic has no value", {"run", "--periodic", "--quiet"}},
    {"radius", {"run", "--radius="}},
    {"radius", {"run", "--radius", "three"}},
    {"radius", {"run", "--radius", "3x"}},
    {"radius", {"run", "--radius", "-1"}},
    {"--radius is given twice", {"run", "--radius", "3", "--radius", "3"}},
    {"--local is given twice", {"run", "--local", "8", "--local", "8", "8"}},
    {"--local is given twice", {"run", "--local", "8,8,8", "--local=8,8,8"}},
    {"--quiet is given twice", {"run", "--quiet", "--quiet"}},
    {"--inject is given twice", {"run", "--inject", "drop", "--inject", "drop"}},
    {"--print-config is given twice", {"run", "--print-config", "--print-config"}},
    {"--quiet takes no value", {"run", "--quiet=maybe"}},
    {"--print-config takes no value", {"run", "--print-config=false"}},
    {"--quiet takes no value", {"run", "--quiet="}},
    {"output has no value", {"run", "--output", "-h"}},
    {"unknown flag \"--foo", {"run", "--foo="}},
    {"unknown argument", {"run", "--", "--radius"}},
    {"unknown argument", {"run", "++", "--radius", "2"}},
    {"unknown argument", {"run", "--", "run"}},
    {"unknown argument on the command line (\"\")", {"run", ""}},
    {"did you mean shared?", {"compare", "--methods", "p2p,share"}},
    {"did you mean double?", {"run", "--element", "dubble"}},
    {"end of the command line", {"run", "--quiet", "--radius"}},
    {"periodic", {"run", "--periodic", "maybe"}},
    {"periodic cannot be used ([true,false]", {"run", "--periodic", "true", "false"}},
    {"max-seconds", {"run", "--max-seconds", "inf"}},
    {"local", {"run", "--local", "8", "8"}},
    {"8", {"run", "--local", "8", "8", "8", "8"}},
    {"local cannot be used (-8, command line)", {"run", "--local", "8", "-8", "8"}},
    {"local and global exclude each other",
     {"run", "--local", "8", "8", "8", "--global", "8", "8", "8"}},
    {"radius is empty", {"run", "--radius", ""}},
    {"ranks-per-node", {"run", "--ranks-per-node", "2,"}},
    {"ranks per node do not fit", {"run", "--ranks-per-node", "2,2"}},
    {"ranks per node do not fit", {"compare", "--ranks-per-node", "1,2", "--dry-run"}},
    {"ranks per node do not fit", {"info", "--ranks-per-node", "1,2"}},
    {"methods", {"run", "--methods", "alltoallv,"}},
    {"methods", {"run", "--methods", "alltoallv,alltoallv"}},
    {"output", {"run", "--output", "--quiet"}},
    {"nowhere.toml", {"run", "--config", "nowhere.toml"}},
    {"config", {"run", "--config", "."}},
    {"config", {"run", "--config", "/dev/zero"}},
    {"displacements cannot be read", {"inspect", "--displacements", "/dev/zero"}},
    {"typemap cannot be read", {"inspect", "--typemap", "/dev/zero"}},
    {"system model cannot be read", {"predict", "--model", "/dev/zero"}},
    {"expression", {"inspect"}},
    {"1000 nested", {"inspect", repeated("dup(", 20'000)}},
    {"1000 nested",
     {"inspect", "subarray(C,{3" + repeated(",3", 1000) + "},{2" + repeated(",2", 1000) + "},{0" +
                     repeated(",0", 1000) + "},int)"}},
    {"too large to inspect", {"inspect", "triangular(60000000,0,1,60000000,int)"}},
    {"too large to inspect", {"inspect", "circular_vector(0,2,3,7000000,7,int)"}},
    {"output is empty", {"run", "--output", ""}},
    {"exclude each other", {"inspect", "double", "--emit", "c", "--json"}},
    {"plot has nothing to compare with", {"compare", "--methods", "p2p", "--plot", "a.svg"}},
    {"plot cannot be written (no/a.svg", {"compare", "--plot", "no/a.svg"}},
    {"did you mean --iterations", {"compare", "--iter", "5"}},
    {"did you mean run?", {"rnu"}},
    {"too large to inspect", {"inspect", "triangular(1000001,1,1,5,short_int)"}},
    {"too large to inspect", {"inspect", doubled(40)}},
    {"byt", {"inspect", "vector(3,1,-1,byt)"}},
    {"expression", {"inspect", "vector(3,1"}},
    {"expression", {"inspect", "contiguous(-1,byte)"}},
    {"double", {"inspect", "int", "double"}},
    {"such as double, int, byte", {"inspect", "duble"}},
    {"\\ufffd", {"inspect", "\xff"}},
    {"datatype",
     {"inspect", "contiguous(2000000000,contiguous(2000000000,contiguous(2000000000,double)))"}},
};

// Runs a command line as main() does. All ranks call it.
int run_program(Words words) {
  words.insert(words.begin(), "halocline");
  std::vector<const char*> argv;
  for (const auto& word : words) argv.push_back(word.c_str());
  const auto config = parse_config(MPI_COMM_WORLD, static_cast<int>(argv.size()), argv.data());
  if (!config) return 0;
  switch (config->subcommand) {
    case Subcommand::compare:
      return compare(*config, MPI_COMM_WORLD);
    case Subcommand::info:
      return info(*config, MPI_COMM_WORLD);
    case Subcommand::inspect:
      return inspect(*config, MPI_COMM_WORLD);
    case Subcommand::predict:
      return predict(*config, MPI_COMM_WORLD);
    case Subcommand::run:
      return run(*config, MPI_COMM_WORLD);
    default:
      return 0;
  }
}

// Each test runs in an empty folder of its rank's own.
class BadInput : public testing::Test {
 protected:
  BadInput() {
    auto name = (fs::temp_directory_path() / "halocline-config-XXXXXX")
                    .string();  // mkdtemp() replaces the X
    folder_ = mkdtemp(name.data());
    fs::current_path(folder_);
  }
  ~BadInput() override {
    fs::current_path("/");
    fs::remove_all(folder_);
  }

  // Fails unless every rank refuses the command line in one line that says what is wrong, where it
  // is and what to do.
  static void expect_refused(const Words& words, const std::string& named) {
    try {
      run_program(words);
      ADD_FAILURE() << "not refused";
    } catch (const ConfigError& error) {
      const std::string message = error.what();
      EXPECT_NE(message.find(named), std::string::npos) << message << " does not name " << named;
      EXPECT_TRUE(is_clear(message)) << message;
    }
  }

  // Tells if the message has the form `what is wrong (its place): what to do`.
  static bool is_clear(const std::string& message) {
    const auto place = message.find(" ("), remedy = message.rfind("): ");
    return message.find('\n') == std::string::npos && place > 0 && remedy != std::string::npos &&
           place + 2 < remedy && remedy + 3 < message.size();
  }

  static bool folder_holds(const std::vector<fs::path>& names) {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(".")) found.push_back(entry.path().filename());
    return found == names;
  }

 private:
  fs::path folder_;
};

TEST_F(BadInput, FilesAreRefused) {
  for (const auto& [named, text] : kBadFiles) {
    SCOPED_TRACE(text.substr(0, 80));
    std::ofstream("bad.toml") << text << "\n";
    const auto key = text.substr(0, text.find(' '));
    const bool is_unused = named.find("is not used") != std::string::npos;
    Words words{"run", "--config", "bad.toml", "--output", "out", "--csv", "csv"};
    if (text == "sizes = [1]") words.resize(3);
    if (!is_unused && (key == "iterations" || key == "warmup" || key == "max-seconds"))
      words.front() = "compare";
    if (key == "sizes" && text != "sizes = [1]") words.front() = "gather";
    expect_refused(words, named);
    EXPECT_TRUE(folder_holds({"bad.toml"}));
  }
}

TEST_F(BadInput, CommandLinesAreRefused) {
  for (const auto& [named, words] : kBadCommandLines) {
    std::string line;
    for (const auto& word : words) line += " " + word.substr(0, 80);
    SCOPED_TRACE(line);
    expect_refused(words, named);
    EXPECT_TRUE(folder_holds({}));
  }
}

}  // namespace
}  // namespace halocline::app
