// SPDX-License-Identifier: BSD-3-Clause
// Tests system models and their files, damaged files included.
#include "dtype/model/system_model.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "model.hpp"
#include "support/error.hpp"

namespace halocline::dtype::test {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// Holds a temporary folder of one test.
class Folder {
 public:
  Folder() {
    // mkdtemp replaces the X's.
    auto name = (fs::temp_directory_path() / "halocline-model-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = name;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { fs::remove_all(path_); }

  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  const fs::path& path() const { return path_; }
  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const auto& entry : fs::directory_iterator(path_)) out.push_back(entry.path().filename());
    return out;
  }

 private:
  fs::path path_;
};

// Returns the message of an E; any other exception fails the test.
template <class E>
std::string error_of(const std::function<void()>& what) {
  try {
    what();
  } catch (const E& error) {
    return error.what();
  }
  return "no error";
}

// Tells if a message is one line of the grammar "problem (cause): what to do".
bool is_clear(const std::string& message) {
  return message.find('\n') == std::string::npos && message.find(" (") != std::string::npos &&
         message.find("): ") != std::string::npos &&
         message.find("json.exception") == std::string::npos;
}

// Returns a model with a few numbers of each kind.
SystemModel small_model() {
  SystemModel model;
  model.launch_seconds = 2.1e-6;
  model.host_messages.on_node = MessageTimes({{1, linear_curve(1, 1)}}, "test");
  model.device_to_host = linear_curve(1, 1);
  model.mapped_packing.pack = linear_packs(1, 1);
  return model;
}

// Sets an environment variable during its lifetime; nullptr removes the variable.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    const char* before = std::getenv(name);
    if (before != nullptr) before_ = before;
    set(value);
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable() { set(before_ ? before_->c_str() : nullptr); }

 private:
  void set(const char* value) const {
    if (value == nullptr)
      unsetenv(name_);
    else
      setenv(name_, value, 1);
  }
  const char* name_;
  std::optional<std::string> before_;
};

}  // namespace

TEST(SystemModel, IsReadAsItWasWritten) {
  const Folder folder;
  const auto path = folder / "model.json";
  const auto model = whole_model();
  write_model(model, path);
  EXPECT_EQ(read_model(path), model);
  EXPECT_EQ(parse_model(to_json(model), "it"), model);
}

TEST(SystemModel, KeepsWhatIsWrongWithIt) {
  auto model = whole_model();
  EXPECT_EQ(to_json(model).find("incomplete"), std::string::npos);
  EXPECT_EQ(flaws_of(model, "it"), "");
  model.incomplete = {"host messages on the node: up to 64 B instead of 64 MiB"};
  model.noisy = {"copies: 64 B"};
  EXPECT_EQ(parse_model(to_json(model), "it"), model);
  const auto flaws = flaws_of(model, "it");
  EXPECT_TRUE(is_clear(flaws)) << flaws;
  EXPECT_NE(flaws.find("up to 64 B instead of 64 MiB"), std::string::npos);
  EXPECT_NE(flaws.find("copies: 64 B"), std::string::npos);
}

TEST(SystemModel, OlderOnesThatEndEarlyAreNamed) {
  SystemModel model;
  model.host_messages.on_node = MessageTimes({{1, {{1, 64}, {1e-6, 1.1e-6}, "test"}}}, "test");
  model.device_to_host = linear_curve(1, 1);
  const auto flaws = flaws_of(model, "it");
  EXPECT_TRUE(is_clear(flaws)) << flaws;
  EXPECT_NE(flaws.find("(cut short: host messages on_node: up to 64 B)"), std::string::npos)
      << flaws;
}

// A busy machine left such points in old models, which do not name them themselves.
TEST(SystemModel, PointsThatCannotBeAreFound) {
  SystemModel model;
  const std::vector<std::int64_t> bytes{1, 64, 256, 1024};
  const auto odd = [&](std::vector<double> seconds) {
    model.host_messages.on_node = MessageTimes({{1, {bytes, std::move(seconds), "test"}}}, "test");
    return odd_points(model);
  };
  using Odd = std::vector<std::string>;
  EXPECT_EQ(odd({4.06e-6, 4.4e-6, 4.8e-6, 6.8e-6}), Odd{});
  EXPECT_EQ(odd({4.06e-6, 4.36e-4, 4.8e-6, 6.8e-6}), Odd{"host messages on_node, 1 at once: 64 B"});
  EXPECT_EQ(odd({0.084, 4.4e-6, 4.8e-6, 6.8e-6}), Odd{"host messages on_node, 1 at once: 1 B"});
  EXPECT_EQ(odd({4.06e-6, 4.4e-6, 4.8e-6, 0.0157}), Odd{"host messages on_node, 1 at once: 1 KiB"});
  EXPECT_EQ(odd({4.06e-6, 4.4e-6, 4.8e-6, 13 * 4 * 4.8e-6}), Odd{});  // the end of a cache
  model = {};
  model.host_packing.pack = PackTable({bytes, {8}, {16, 64}}, {1, 1, 1, 50, 2, 2, 3, 3}, "test");
  EXPECT_EQ(odd_points(model), Odd{"host pack: 64 B in blocks of 8 B, 64 B apart"});
  model.device_to_host = Curve(bytes, {1, 1, 99, 1}, "test");
  EXPECT_EQ(odd_points(model).size(), 2u);
  EXPECT_TRUE(is_clear(flaws_of(model, "it")));
}

TEST(SystemModel, HoldsWhatWasMeasuredOnly) {
  const SystemModel nothing;
  EXPECT_EQ(parse_model(to_json(nothing), "it"), nothing);
  const auto whole = whole_model();
  EXPECT_NE(whole, nothing);
  auto model = nothing;
  const auto check = [&] {
    const auto json = to_json(model);
    EXPECT_EQ(parse_model(json, "it"), model) << json;
    EXPECT_NE(parse_model(json, "it"), nothing) << json;
    model = nothing;
  };
  model.launch_seconds = whole.launch_seconds, check();
  model.synchronize_seconds = whole.synchronize_seconds, check();
  model.host_messages.on_node = whole.host_messages.on_node, check();
  model.blocks_on_node.strided.both_ways.typed = whole.blocks_on_node.strided.both_ways.typed,
  check();
  model.blocks_off_node.listed.one_way.packed = whole.blocks_off_node.listed.one_way.packed,
  check();
  model.device_messages.off_node = whole.device_messages.off_node, check();
  model.device_to_host = whole.device_to_host, check();
  model.host_to_device = whole.host_to_device, check();
  model.device_packing.unpack = whole.device_packing.unpack, check();
  model.mapped_packing.pack = whole.mapped_packing.pack, check();
  model.host_packing = whole.host_packing, check();
}

// Other programs read the file by this schema.
TEST(SystemModel, IsWrittenInItsSchema) {
  const auto model = whole_model();
  const auto json = Json::parse(to_json(model));
  EXPECT_EQ(json["schema"], "halocline-model/1");
  EXPECT_EQ(json["provenance"]["driver"], "driver 1");
  EXPECT_EQ(json["provenance"]["emulated"], true);
  EXPECT_EQ(json["launch_seconds"], 2.1e-6);
  const auto& messages = json["messages"]["device"]["off_node"][1];
  const auto& measured = model.device_messages.off_node->measured()[1];
  EXPECT_EQ(messages["messages"], 2);
  EXPECT_EQ(messages["bytes"], measured.curve.bytes());
  EXPECT_EQ(messages["seconds"], measured.curve.seconds());
  EXPECT_EQ(json["copies"]["device_to_host"]["seconds"], model.device_to_host->seconds());
  const auto& table = json["packing"]["mapped"]["unpack"];
  EXPECT_EQ(table["block_bytes"], (std::vector{8, 128}));
  EXPECT_EQ(table["stride_bytes"], (std::vector{16, 256, 4096, 65536}));
  EXPECT_EQ(table["seconds"][2][1][3], model.mapped_packing.unpack->of(128, 65536).at(1 << 20));
}

TEST(SystemModel, TextsNeedNotBeUtf8) {
  SystemModel model;
  model.provenance.cpu = "caf\xE9 \"quoted\"\n";
  EXPECT_EQ(parse_model(to_json(model), "it").provenance.cpu, "caf\xEF\xBF\xBD \"quoted\"\n");
}

TEST(SystemModel, RefusesCorruptedFiles) {
  struct Corruption {
    const char* where;          // JSON pointer
    std::optional<Json> value;  // nullopt: the key is removed
    const char *key, *cause;
  };
  constexpr auto gone = std::nullopt;
  const auto too_large = std::numeric_limits<std::uint64_t>::max();
  const std::array corruptions{
      Corruption{"", Json::array(), "", "is not an object"},
      Corruption{"/schema", gone, "", "has no key \"schema\""},
      Corruption{"/schema", "halocline-model/2", ": schema", "is not \"halocline-model/1\""},
      Corruption{"/schema", 1, ": schema", "is not a string"},
      Corruption{"/shcema", "a\nb", "", "has the unknown key \"shcema\""},
      Corruption{"/new\nline", 1, "", "has the unknown key \"new\\nline\""},
      Corruption{"/provenance", gone, "", "has no key \"provenance\""},
      Corruption{"/provenance", "here", ": provenance", "is not an object"},
      Corruption{"/provenance/gpu", gone, ": provenance", "has no key \"gpu\""},
      Corruption{"/provenance/mpi", nullptr, ": provenance.mpi", "is not a string"},
      Corruption{"/provenance/emulated", 0, ": provenance.emulated", "is not true or false"},
      Corruption{"/provenance/x", 0, ": provenance", "has the unknown key \"x\""},
      Corruption{"/launch_seconds", "1", ": launch_seconds", "is not a number"},
      Corruption{"/launch_seconds", 0, ": launch_seconds", "is not a time above 0 s"},
      Corruption{"/synchronize_seconds", -1e-6, ": synchronize_seconds", "is not a time above 0 s"},
      Corruption{"/synchronize_seconds", 1e300, ": synchronize_seconds", "and up to 1e9 s"},
      Corruption{"/messages", Json::array(), ": messages", "is not an object"},
      Corruption{"/messages/gpu", Json::object(), ": messages", "has the unknown key \"gpu\""},
      Corruption{"/messages/host/on_node", nullptr, ": messages.host.on_node", "is not an array"},
      Corruption{"/messages/host/here", 1, ": messages.host", "has the unknown key \"here\""},
      Corruption{"/messages/host/on_node", Json::array(), ": messages.host.on_node",
                 "its first entry is not for 1 message"},
      Corruption{"/messages/host/on_node/0/messages", 2, ": messages.host.on_node",
                 "its first entry is not for 1 message"},
      Corruption{"/messages/host/on_node/1/messages", too_large, ": messages.host.on_node",
                 "[1].messages is not above [0].messages"},
      Corruption{"/messages/host/on_node/1/messages", 1.5, ": messages.host.on_node[1].messages",
                 "is not an integer"},
      Corruption{"/messages/device/off_node/2/messages", gone, ": messages.device.off_node[2]",
                 "has no key \"messages\""},
      Corruption{"/messages/device/off_node/2/extra", 1, ": messages.device.off_node[2]",
                 "has the unknown key \"extra\""},
      Corruption{"/messages/device/off_node/2/bytes/1", 64, ": messages.device.off_node[2]",
                 "bytes[1] is not above bytes[0]"},
      Corruption{"/messages/device/off_node/2", 7, ": messages.device.off_node[2]",
                 "is not an object"},
      Corruption{"/copies/device_to_host/bytes", 64, ": copies.device_to_host.bytes",
                 "is not an array"},
      Corruption{"/copies/device_to_host/bytes/0", 0, ": copies.device_to_host",
                 "bytes[0] is not from 1 to 2^40"},
      Corruption{"/copies/device_to_host/bytes/2", too_large, ": copies.device_to_host",
                 "bytes[2] is not from 1 to 2^40"},
      Corruption{"/copies/device_to_host/bytes/0", "64", ": copies.device_to_host.bytes[0]",
                 "is not an integer"},
      Corruption{"/copies/device_to_host/seconds", gone, ": copies.device_to_host",
                 "has no key \"seconds\""},
      Corruption{"/copies/device_to_host/seconds/3", 1, ": copies.device_to_host.seconds",
                 "has 4 values for 3 points"},
      Corruption{"/copies/host_to_device/seconds/1", 0, ": copies.host_to_device",
                 "seconds[1] is not a time above 0 s"},
      Corruption{"/copies/host_to_device/seconds/1", nullptr, ": copies.host_to_device.seconds[1]",
                 "is not a number"},
      Corruption{"/copies/host_to_device/bytes", Json::array(), ": copies.host_to_device.seconds",
                 "has 3 values for 0 points"},
      Corruption{"/copies/device_to_device", 1, ": copies",
                 "has the unknown key \"device_to_device\""},
      Corruption{"/packing/mapped/pack/stride_bytes", gone, ": packing.mapped.pack",
                 "has no key \"stride_bytes\""},
      Corruption{"/packing/mapped/pack/block_bytes/0", 200, ": packing.mapped.pack",
                 "block_bytes[1] is not above block_bytes[0]"},
      Corruption{"/packing/mapped/pack/seconds/2", gone, ": packing.mapped.pack.seconds",
                 "has 2 values for 3 points"},
      Corruption{"/packing/mapped/pack/seconds/1/1/4", 1.0, ": packing.mapped.pack.seconds[1][1]",
                 "has 5 values for 4 points"},
      Corruption{"/packing/mapped/pack/seconds/1/1", 1.0, ": packing.mapped.pack.seconds[1][1]",
                 "is not an array"},
      Corruption{"/packing/mapped/pack/seconds/1/1/2", false,
                 ": packing.mapped.pack.seconds[1][1][2]", "is not a number"},
      Corruption{"/packing/mapped/pack/seconds/0/1/2", -1.0, ": packing.mapped.pack",
                 "seconds[6] is not a time above 0 s"},
      Corruption{"/packing/device/repack", 1, ": packing.device", "has the unknown key \"repack\""},
      Corruption{"/packing/host/pack/x", 1, ": packing.host.pack", "has the unknown key \"x\""},
      Corruption{"/packing/kernel", 1, ": packing", "has the unknown key \"kernel\""},
  };
  const auto whole = Json::parse(to_json(whole_model()));
  for (const auto& [where, value, key, cause] : corruptions) {
    auto json = whole;
    const Json::json_pointer pointer(where);
    if (value)
      json[pointer] = *value;
    else if (auto& parent = json[pointer.parent_pointer()]; parent.is_array())
      parent.erase(parent.begin() + std::stoi(pointer.back()));
    else
      parent.erase(pointer.back());
    const auto message = error_of<ConfigError>([&] { parse_model(json.dump(), "FILE.json"); });
    EXPECT_NE(message.find("(FILE.json" + std::string(key) + ": "), std::string::npos)
        << where << ": " << message;
    EXPECT_NE(message.find(cause), std::string::npos) << where << ": " << message;
    EXPECT_TRUE(is_clear(message)) << message;
  }
}

TEST(SystemModel, RefusesWhatIsNoJson) {
  const auto refusal = [](const std::string& text) {
    return error_of<ConfigError>([&] { parse_model(text, "FILE.json"); });
  };
  EXPECT_EQ(refusal(""),
            "system model cannot be used (FILE.json: no JSON from byte 1 on): measure it again "
            "with 'halocline calibrate'");
  for (const auto* text : {"{\"schema\": 1e999}", "{\"a\": nan}", "\xFF\xFE", "{} {}", "null"})
    EXPECT_TRUE(is_clear(refusal(text))) << refusal(text);
  EXPECT_TRUE(is_clear(refusal(std::string(100000, '['))));
  // The text may be cut off anywhere.
  const auto text = to_json(small_model());
  for (std::size_t length = 0; length + 1 < text.size(); ++length)
    ASSERT_TRUE(is_clear(refusal(text.substr(0, length)))) << length;
}

// A flipped bit may give another valid model, but no other kind of error.
TEST(SystemModel, SurvivesFlippedBits) {
  std::mt19937 random(1);
  const auto text = to_json(small_model());
  for (int i = 0; i < 1000; ++i) {
    auto flipped = text;
    flipped[random() % flipped.size()] ^= static_cast<char>(1u << (random() % 8));
    try {
      parse_model(flipped, "FILE.json");
    } catch (const ConfigError& error) {
      ASSERT_TRUE(is_clear(error.what())) << error.what();
    }
  }
}

TEST(SystemModel, SaysWhichFileCannotBeRead) {
  const Folder folder;
  for (const auto& path : {folder / "none.json", folder.path().string(), std::string()}) {
    const auto message = error_of<ConfigError>([&] { read_model(path); });
    EXPECT_TRUE(message.starts_with("system model cannot be read (" + path + ": ")) << message;
    EXPECT_TRUE(is_clear(message)) << message;
  }
}

TEST(SystemModel, MakesItsFolderAndLeavesOneFile) {
  const Folder folder;
  const auto pipe = folder / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_NE(error_of<ConfigError>([&] { write_model({}, pipe); }).find("not a regular file"),
            std::string::npos);
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  write_model(whole_model(), folder / "new/folder/model.json");
  write_model({}, folder / "new/folder/model.json");
  EXPECT_EQ(read_model(folder / "new/folder/model.json"), SystemModel());
  EXPECT_EQ(std::distance(fs::directory_iterator(folder / "new/folder"), {}), 1);
}

TEST(SystemModel, IsWrittenBehindLinks) {
  const Folder folder;
  fs::create_symlink("second", folder / "first");
  fs::create_symlink("files/model.json", folder / "second");
  for (const auto& model : {whole_model(), SystemModel()}) {
    write_model(model, folder / "first");
    EXPECT_TRUE(fs::is_symlink(folder / "first") && fs::is_symlink(folder / "second"));
    EXPECT_EQ(read_model(folder / "files/model.json"), model);
  }
  fs::create_symlink("loop", folder / "loop");
  EXPECT_NE(error_of<ConfigError>([&] { write_model({}, folder / "loop"); }).find("symbolic links"),
            std::string::npos);
}

// Root may write everywhere, so this test becomes another user.
TEST(SystemModel, KeepsTheOldFileInAFolderThatCannotBeWrittenTo) {
  const Folder folder;
  const auto path = folder / "model.json";
  write_model(whole_model(), path);
  fs::permissions(folder.path(), fs::perms::owner_read | fs::perms::owner_exec |
                                     fs::perms::others_read | fs::perms::others_exec);
  const auto user = geteuid();
  constexpr uid_t kNobody = 65534;
  ASSERT_EQ(seteuid(user == 0 ? kNobody : user), 0);
  const auto message = error_of<ConfigError>([&] { write_model({}, path); });
  ASSERT_EQ(seteuid(user), 0);
  fs::permissions(folder.path(), fs::perms::owner_all);
  EXPECT_EQ(message, "system model cannot be written (" + path +
                         ": Permission denied): give a file in a folder that this user may write "
                         "to");
  EXPECT_EQ(read_model(path), whole_model());
  EXPECT_EQ(folder.names(), std::vector<std::string>{"model.json"});
}

TEST(SystemModel, SaysWhichPathCannotBeWritten) {
  const Folder folder;
  write_model({}, folder / "file");
  fs::create_directory(folder / "directory");
  for (const auto& path :
       {folder / "file/model.json", folder / "directory", folder / std::string(300, 'x')}) {
    const auto message = error_of<ConfigError>([&] { write_model(whole_model(), path); });
    EXPECT_TRUE(message.starts_with("system model cannot be written (" + path + ": ")) << message;
    EXPECT_TRUE(is_clear(message)) << message;
    EXPECT_EQ(error_of<ConfigError>([&] { require_writable_model(path); }), message);
  }
  EXPECT_EQ(folder.names().size(), 2u);
}

TEST(SystemModel, KnowsBeforeWhetherItCanBeWritten) {
  const Folder folder;
  const auto path = folder / "new/model.json";
  require_writable_model(path);
  EXPECT_TRUE(fs::is_empty(folder / "new"));
  write_model(whole_model(), path);
  require_writable_model(path);
  EXPECT_EQ(read_model(path), whole_model());
  EXPECT_EQ(std::distance(fs::directory_iterator(folder / "new"), {}), 1);
}

// A limit on the size of files acts like a full disk.
TEST(SystemModel, KeepsTheOldFileOnAFullDisk) {
  const Folder folder;
  const auto path = folder / "model.json";
  write_model({}, path);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{1024, before.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto message = error_of<EnvironmentError>([&] { write_model(whole_model(), path); });
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_TRUE(message.starts_with("system model cannot be written (" + path + ": ")) << message;
  EXPECT_TRUE(is_clear(message)) << message;
  EXPECT_EQ(read_model(path), SystemModel());
  EXPECT_EQ(folder.names(), std::vector<std::string>{"model.json"});
}

TEST(SystemModel, WritesNothingThatCouldNotBeRead) {
  const Folder folder;
  const auto path = folder / "model.json";
  write_model(whole_model(), path);
  SystemModel model;
  model.launch_seconds = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(is_clear(error_of<ConfigError>([&] { write_model(model, path); })));
  EXPECT_EQ(read_model(path), whole_model());
}

TEST(SystemModel, BelongsToAMachine) {
  const auto here = whole_model().provenance;
  EXPECT_EQ(require_match(here, here, false), "");
  auto elsewhere = here;
  elsewhere.time = elsewhere.host = elsewhere.git = "another";
  elsewhere.emulated = !here.emulated;
  EXPECT_EQ(require_match(elsewhere, here, false), "");

  using Text = std::string ModelProvenance::*;
  for (const auto& [name, member] :
       {std::pair<std::string, Text>{"cpu", &ModelProvenance::cpu},
        std::pair<std::string, Text>{"gpu", &ModelProvenance::gpu},
        std::pair<std::string, Text>{"driver", &ModelProvenance::driver},
        std::pair<std::string, Text>{"mpi", &ModelProvenance::mpi}}) {
    auto other = here;
    other.*member = "another";
    const auto difference = name + " 'another' instead of '" + here.*member + "'";
    EXPECT_EQ(error_of<ConfigError>([&] { require_match(other, here, false); }),
              "system model is of another machine (" + difference +
                  "): measure this one with 'halocline calibrate', or use it all the same with "
                  "--force-model");
    EXPECT_EQ(require_match(other, here, true), difference);
  }
  auto other = here;
  other.cpu = other.driver = "x";
  EXPECT_EQ(require_match(other, here, true),
            "cpu 'x' instead of 'a CPU', driver 'x' instead of 'driver 1'");
}

TEST(SystemModel, HasAPlace) {
  const Variable home("HOME", "/home/her");
  const Variable config("XDG_CONFIG_HOME", "/config");
  const Variable model("HALOCLINE_MODEL", "some/model");
  EXPECT_EQ(default_model_path(), "some/model");
  for (const char* empty : {static_cast<const char*>(nullptr), ""}) {
    const Variable no_model("HALOCLINE_MODEL", empty);
    EXPECT_EQ(default_model_path(), "/config/halocline/model.json");
    for (const char* none : {static_cast<const char*>(nullptr), "", "relative"}) {
      const Variable no_config("XDG_CONFIG_HOME", none);
      EXPECT_EQ(default_model_path(), "/home/her/.config/halocline/model.json");
      const Variable no_home("HOME", empty);
      EXPECT_TRUE(is_clear(error_of<ConfigError>([] { default_model_path(); })));
    }
  }
}

}  // namespace halocline::dtype::test
