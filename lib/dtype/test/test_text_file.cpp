// SPDX-License-Identifier: BSD-3-Clause
// Tests that files named by users end in a text or in one error, soon.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "support/error.hpp"
#include "support/text_file.hpp"

namespace halocline {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

class TextFile : public testing::Test {
 protected:
  TextFile() {
    std::string name = (fs::temp_directory_path() / "halocline-text-XXXXXX").string();
    folder_ = mkdtemp(name.data());
  }
  ~TextFile() override { fs::remove_all(folder_); }

  std::string path(const char* name) const { return folder_ / name; }
  std::string write(const char* name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
    return path(name);
  }
  std::string pipe() const {
    EXPECT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
    return path("pipe");
  }

  static std::string error_of(const std::string& path, const FileKind& kind) {
    try {
      read_whole_file(path, kind);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  }

  static constexpr FileKind kFile{"thing", "give --thing a file", 1 << 20};
  static constexpr FileKind kPipe{"thing", "give --thing a file", 1 << 20, true, false, 10s};
  static constexpr FileKind kShortPipe{"thing", "give --thing a file", 1 << 20, true, false, 20ms};
  fs::path folder_;
};

TEST_F(TextFile, IsReadWhole) {
  const std::string text("a b\n\xff");
  EXPECT_EQ(read_whole_file(write("short", text), kFile), text);
  EXPECT_EQ(read_whole_file(write("empty", ""), kFile), "");
  const std::string longest(1 << 20, 'x');
  EXPECT_EQ(read_whole_file(write("marked", "\xef\xbb\xbfradius"), kFile), "radius");
  EXPECT_EQ(read_whole_file(write("longest", longest), kFile), longest);
  // Files of the kernel report a size of 0 bytes.
  EXPECT_FALSE(read_whole_file("/proc/self/status", kFile).empty());
}

TEST_F(TextFile, IsRefusedIfItIsTooLong) {
  const auto message = error_of(write("long", std::string((1 << 20) + 1, 'x')), kFile);
  EXPECT_EQ(message, "thing cannot be read (" + path("long") +
                         ": is longer than 1 MiB): give --thing a file of at most 1 MiB that this "
                         "user may read");
  write("sparse", "");
  fs::resize_file(path("sparse"), std::uintmax_t{1} << 42);
  EXPECT_NE(error_of(path("sparse"), kFile).find("longer"), std::string::npos);
}

TEST_F(TextFile, IsNoFolderDeviceOrNothing) {
  for (const auto& [name, cause] :
       {std::pair{folder_.string(), "is a directory"}, std::pair{path("none"), "No such file"},
        std::pair{std::string("/dev/zero"), "is a device"}, std::pair{std::string(), "No such"},
        std::pair{std::string("/dev/null"), "is a device"},
        std::pair{pipe(), "is not a regular file"}}) {
    const auto message = error_of(name, kFile);
    EXPECT_TRUE(message.starts_with("thing cannot be read (" + name + ": " + cause)) << message;
  }
}

TEST_F(TextFile, HasNoZeroUnlessItIsBinary) {
  constexpr FileKind kBinary{"thing", "give --thing a file", 1 << 20, false, true};
  const std::string bytes(
      "\xef\xbb\xbf"
      "a\0b",
      6);
  EXPECT_EQ(read_whole_file(write("binary", bytes), kBinary), bytes);
  EXPECT_NE(error_of(path("binary"), kFile).find("is no text: it has a byte 0"), std::string::npos);
}

TEST_F(TextFile, MayBeAPipeThatSomebodyWritesTo) {
  const auto name = pipe();
  const std::string text(300'000, 'y');  // more than a pipe holds at once
  std::thread writer([&] {
    std::this_thread::sleep_for(20ms);  // the reader waits for it
    std::ofstream(name) << text;
  });
  EXPECT_EQ(read_whole_file(name, kPipe), text);
  writer.join();
}

TEST_F(TextFile, IsNotWaitedForForEver) {
  const auto name = pipe();
  EXPECT_NE(error_of(name, kShortPipe).find("is a pipe to which nobody has written for "),
            std::string::npos);
}

TEST_F(TextFile, DepthIsThatOfBracketsOutsideOfStrings) {
  EXPECT_FALSE(nests_deeper_than("[{}, [1], {\"a\": \"[[[[\\\"[[[\"}]", 2));
  EXPECT_TRUE(nests_deeper_than("[{}, [1, {}]]", 2));
  EXPECT_TRUE(nests_deeper_than(std::string(100'000, '['), 99'999));
  EXPECT_FALSE(nests_deeper_than("", 0));
}

TEST_F(TextFile, ExcerptIsAPartOnOneLine) {
  EXPECT_EQ(excerpt("a\nb\x7f"), "a?b?");
  EXPECT_EQ(excerpt("0123456789", 4), "0123...");
  EXPECT_EQ(excerpt("0123456789", 4, 5), "...3456...");
  EXPECT_EQ(excerpt("0123456789", 4, 10), "...6789");
  EXPECT_EQ(excerpt("0123456789", 10, 5), "0123456789");
}

}  // namespace
}  // namespace halocline
