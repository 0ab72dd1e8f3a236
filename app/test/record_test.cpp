// SPDX-License-Identifier: BSD-3-Clause
// Tests results: statistics, and files that hold whole records or nothing.
#include "record.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "support/error.hpp"
#include "table.hpp"

namespace halocline::app {
namespace {

namespace fs = std::filesystem;

std::string contents(const fs::path& path) {
  std::ostringstream out;
  out << std::ifstream(path).rdbuf();
  return out.str();
}

class ResultFiles : public ::testing::Test {
 protected:
  ResultFiles() {
    std::string name =
        (fs::temp_directory_path() / ("halocline-record-" + std::string(6, 'X'))).string();
    directory_ = mkdtemp(name.data());
    config_.output = directory_ / "out.jsonl";
    config_.csv = directory_ / "out.csv";
    record_.method = "a \"quoted\", long name";
    record_.phases.total = {2, 1, 4, 3};
    record_.radius = {3, 1, 2};
    record_.periodic = {true, false, true};
    record_.stencil = Stencil::heat9;
    record_.is_complex = true;
    record_.pad = Pad::by64;
    record_.boundary.front() = Boundary::fixed;
    record_.describe = Describe::hvector;
    record_.packer = PackerKind::kokkos;
    record_.shape = comm::HaloShape::axes;
    record_.physics = "mhd";
    record_.needs_by_field = true;
    record_.neighbors = 18;
    record_.messages_per = Messages::region;
    record_.notes = {"one, with a comma", "two"};
  }
  ~ResultFiles() override { fs::remove_all(directory_); }

  fs::path directory_;
  Config config_;
  Record record_;
};

TEST(Statistics, InterpolatesBetweenTheClosestSamples) {
  const auto s = statistics(std::vector<double>{5, 1, 4, 2, 3});
  EXPECT_DOUBLE_EQ(s.median, 3);
  EXPECT_DOUBLE_EQ(s.p10, 1.4);
  EXPECT_DOUBLE_EQ(s.p90, 4.6);
  EXPECT_DOUBLE_EQ(s.min, 1);
  EXPECT_DOUBLE_EQ(s.max, 5);
  EXPECT_DOUBLE_EQ(statistics(std::vector<double>{1, 2}).median, 1.5);
}

TEST(Statistics, OfOneSampleAreThatSample) {
  const auto s = statistics(std::vector<double>{7});
  for (const double value : {s.median, s.p10, s.p90, s.min, s.max}) EXPECT_EQ(value, 7);
}

TEST(Format, KeepsThreeDigitsInTheUnitThatFits) {
  EXPECT_EQ(format_seconds(0), "0 ns");
  EXPECT_EQ(format_seconds(1.234e-9), "1.23 ns");
  EXPECT_EQ(format_seconds(45.67e-3), "45.7 ms");
  EXPECT_EQ(format_seconds(0.9996), "1.00 s");
  EXPECT_EQ(format_seconds(300), "300 s");
  EXPECT_EQ(format_bytes(24), "24 B");
  EXPECT_EQ(format_bytes(1536), "1.50 KiB");
  EXPECT_EQ(format_bytes(77280768), "73.7 MiB");
  EXPECT_EQ(format_rate(1.25e10), "12.5 GB/s");
}

TEST(Format, AlignsColumnsByCodePoints) {
  Table table({{"name", Align::left}, {"µs"}});
  table.add_row({"é", "1"});
  table.add_row({"longer", "100"});
  EXPECT_EQ(table.str(), "name     µs\n------  ---\né         1\nlonger  100\n");
}

TEST_F(ResultFiles, HoldOneLinePerRecord) {
  const ResultWriter<Record> writer(config_, {});
  EXPECT_FALSE(fs::exists(config_.output)) << "checking a path leaves no file";
  EXPECT_FALSE(fs::exists(config_.csv));
  writer.write(record_);
  writer.write(record_);
  std::istringstream lines(contents(config_.output));
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    const auto json = nlohmann::json::parse(line);
    EXPECT_EQ(json.at("schema"), "halocline/1");
    EXPECT_EQ(json.at("method"), record_.method);
    EXPECT_EQ(json.at("complex"), true);
    EXPECT_EQ(json.at("pad"), "64");
    EXPECT_EQ(json.at("radius"), nlohmann::json({3, 1, 2}));
    EXPECT_EQ(json.at("periodic"), nlohmann::json({true, false, true}));
    EXPECT_EQ(json.at("physics"), "mhd");
    EXPECT_EQ(json.at("stencil"), "heat9");
    EXPECT_EQ(json.at("boundary"),
              nlohmann::json({"fixed", "exact", "exact", "exact", "exact", "exact"}));
    EXPECT_EQ(json.at("describe"), "hvector");
    EXPECT_EQ(json.at("packer"), "kokkos");
    EXPECT_EQ(json.at("shape"), "axes");
    EXPECT_EQ(json.at("needs_by_field"), true);
    EXPECT_EQ(json.at("neighbors"), 18);
    EXPECT_EQ(json.at("messages_per"), "region");
    EXPECT_EQ(json.at("notes"), nlohmann::json(record_.notes));
    EXPECT_TRUE(json.at("phases").at("pack").is_null());
    EXPECT_TRUE(json.at("phases").at("plain_total").is_null());
    EXPECT_TRUE(json.at("timeline").is_null());
    EXPECT_TRUE(json.at("progress").is_null());
    EXPECT_TRUE(json.at("overlap_ratio").is_null());
    EXPECT_EQ(json.at("phases").at("total").at("median_s"), 2.5);
    EXPECT_EQ(json.at("samples_s").at("total"), nlohmann::json({2, 1, 4, 3}));
  }
  EXPECT_EQ(count, 2);
  const auto csv = contents(config_.csv);
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 3) << "one header, two rows";
  EXPECT_NE(csv.find(R"("a ""quoted"", long name")"), std::string::npos);
  EXPECT_NE(csv.find(",3 1 2,true false true,mhd,heat9,fixed exact exact exact exact "
                     "exact,hvector,kokkos,axes,true,18,region,"),
            std::string::npos)
      << csv;
  EXPECT_NE(csv.find(R"(,"one, with a comma; two",)"), std::string::npos) << csv;
}

TEST_F(ResultFiles, HoldWhatEachRankDoesWithOverlap) {
  const ResultWriter<Record> writer(config_, {});
  writer.write(record_);
  record_.overlap = true;
  record_.progress = 5;
  record_.phases.wait = {3, 1};
  record_.phases.plain_compute = {7};
  record_.timeline = {{.post = 1, .interior = 2, .wait = 3, .boundary = 4},
                      {.post = 5, .interior = 6, .wait = 7, .boundary = 8}};
  record_.overlap_ratio = 1.25;
  writer.write(record_);
  std::istringstream lines(contents(config_.output));
  std::string line;
  std::getline(lines, line);
  std::getline(lines, line);
  const auto json = nlohmann::json::parse(line);
  EXPECT_EQ(json.at("overlap"), true);
  EXPECT_EQ(json.at("progress"), 5);
  EXPECT_EQ(json.at("phases").at("wait").at("median_s"), 2);
  EXPECT_EQ(json.at("phases").at("plain_compute").at("max_s"), 7);
  EXPECT_EQ(json.at("samples_s").at("wait"), nlohmann::json({3, 1}));
  EXPECT_EQ(json.at("timeline").at("post_s"), nlohmann::json({1, 5}));
  EXPECT_EQ(json.at("timeline").at("boundary_s"), nlohmann::json({4, 8}));
  EXPECT_EQ(json.at("overlap_ratio"), 1.25);
  std::istringstream rows(contents(config_.csv));
  std::getline(rows, line);
  const auto columns = std::count(line.begin(), line.end(), ',');
  EXPECT_EQ(line.find("timeline"), std::string::npos);
  std::getline(rows, line);  // row of the record without overlap
  std::getline(rows, line);
  // The name and the notes of this record hold one comma each.
  EXPECT_EQ(std::count(line.begin(), line.end(), ','), columns + 2) << line;
  EXPECT_NE(line.find(",true,5,"), std::string::npos) << line;
  EXPECT_NE(line.find(",1.25,"), std::string::npos) << line;
}

TEST_F(ResultFiles, TornLastLineDoesNotSwallowARecord) {
  const ResultWriter<Record> writer(config_, {});
  writer.write(record_);
  const auto json = contents(config_.output);
  const auto csv = contents(config_.csv);
  const auto row = csv.substr(csv.find('\n') + 1);
  std::ofstream(config_.output, std::ios::app) << "{\"torn";
  std::ofstream(config_.csv, std::ios::app) << "halocline/1,torn";
  writer.write(record_);
  EXPECT_EQ(contents(config_.output), json + "{\"torn\n" + json);
  EXPECT_EQ(contents(config_.csv), csv + "halocline/1,torn\n" + row);
  writer.write(record_);
  EXPECT_EQ(contents(config_.output), json + "{\"torn\n" + json + json) << "no empty lines";
}

TEST_F(ResultFiles, WriteOnlyFileIsAppendedTo) {
  config_.csv.clear();
  std::ofstream(config_.output) << "before\n";
  fs::permissions(config_.output, fs::perms::owner_write);
  ResultWriter<Record>(config_, {}).write(record_);
  fs::permissions(config_.output, fs::perms::owner_all);
  const auto text = contents(config_.output);
  EXPECT_TRUE(text.starts_with("before\n{")) << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
}

TEST_F(ResultFiles, ThatCannotBeWrittenAreRefusedBeforehand) {
  const auto refused = [&](const std::string& output, const std::string& csv) {
    config_.output = output;
    config_.csv = csv;
    EXPECT_THROW(ResultWriter<Record>(config_, {}), ConfigError) << output << " " << csv;
  };
  refused(directory_ / "missing" / "out", "");
  refused("", directory_ / "missing" / "out");
  refused(directory_, "");
  refused(directory_ / "same", directory_ / "." / "same");
  std::ofstream(directory_ / "foreign.csv") << "x,y\n1,2\n";
  refused("", directory_ / "foreign.csv");
}

TEST_F(ResultFiles, FullDiskLeavesBothAsTheyWere) {
  config_.csv = "/dev/full";
  EXPECT_THROW(ResultWriter<Record>(config_, {}).write(record_), EnvironmentError);
  EXPECT_FALSE(fs::exists(config_.output)) << "a file that was not there is not left behind";
  std::ofstream(config_.output) << "before\n";
  EXPECT_THROW(ResultWriter<Record>(config_, {}).write(record_), EnvironmentError);
  EXPECT_EQ(contents(config_.output), "before\n");
}

TEST_F(ResultFiles, ShortWriteIsCutOffAgain) {
  std::ofstream(config_.output) << "before\n";
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit small{100, limit.rlim_max};  // less than the size of a record
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  EXPECT_THROW(ResultWriter<Record>(config_, {}).write(record_), EnvironmentError);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  EXPECT_EQ(contents(config_.output), "before\n");
  EXPECT_FALSE(fs::exists(config_.csv));
}

// Each job is a process. All start at once, before the file exists. Some have no room for their
// records; they must not remove the records of other jobs.
TEST_F(ResultFiles, JobsThatCreateThemAtOnceLoseNothing) {
  constexpr int kRounds = 40, kJobs = 8, kWithoutRoom = 2;
  std::signal(SIGXFSZ, SIG_IGN);
  for (int round = 0; round < kRounds; ++round) {
    int gate[2];
    ASSERT_EQ(pipe(gate), 0);
    std::vector<pid_t> jobs;
    for (int job = 0; job < kJobs; ++job) {
      jobs.push_back(fork());
      if (jobs.back() != 0) continue;
      close(gate[1]);
      char opened = 0;
      static_cast<void>(!read(gate[0], &opened, 1));  // waits until the other end is closed
      int code = 1;
      try {
        if (job < kWithoutRoom) {
          const rlimit small{1, 1};
          setrlimit(RLIMIT_FSIZE, &small);
        }
        ResultWriter<Record>(config_, {}).write(record_);
        code = 0;
      } catch (const EnvironmentError&) {
        code = 3;
      } catch (const std::exception& error) {  // this process must run no other test
        std::fprintf(stderr, "%s\n", error.what());
        code = 2;
      }
      _exit(code);
    }
    close(gate[0]);
    close(gate[1]);
    for (int job = 0; job < kJobs; ++job) {
      int status = 0;
      ASSERT_EQ(waitpid(jobs[static_cast<std::size_t>(job)], &status, 0),
                jobs[static_cast<std::size_t>(job)]);
      ASSERT_TRUE(WIFEXITED(status));
      ASSERT_EQ(WEXITSTATUS(status), job < kWithoutRoom ? 3 : 0);
    }
    const auto lines = [](const std::string& text) {
      return std::count(text.begin(), text.end(), '\n');
    };
    const auto json = contents(config_.output), csv = contents(config_.csv);
    ASSERT_EQ(lines(json), kJobs - kWithoutRoom) << "round " << round;
    ASSERT_EQ(lines(csv), 1 + kJobs - kWithoutRoom) << "round " << round;
    ASSERT_TRUE(csv.starts_with("schema,")) << csv;
    ASSERT_EQ(std::distance(fs::directory_iterator(directory_), {}), 2);
    fs::remove(config_.output);
    fs::remove(config_.csv);
  }
}

TEST_F(ResultFiles, SayWhatALinkIs) {
  const auto message = [&](const fs::path& path) -> std::string {
    config_.output = path;
    try {
      ResultWriter<Record>(config_, {});
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  const auto dangling = directory_ / "dangling", loop = directory_ / "loop";
  config_.csv.clear();
  fs::create_symlink("nowhere", dangling);
  fs::create_symlink("loop", loop);
  EXPECT_NE(message(dangling).find("is a symbolic link to a file that does not exist"),
            std::string::npos)
      << message(dangling);
  EXPECT_NE(message(loop).find("symbolic links"), std::string::npos) << message(loop);
  std::ofstream(directory_ / "nowhere") << "";
  EXPECT_EQ(message(dangling), "");
}

// The file is sparse, since only other machines have files of this size.
TEST_F(ResultFiles, CsvOfAnySizeIsReadToItsHeaderAlone) {
  std::ofstream(config_.csv) << "x,y";
  fs::resize_file(config_.csv, std::uintmax_t{1} << 40);
  EXPECT_THROW(ResultWriter<Record>(config_, {}), ConfigError);
}

}  // namespace
}  // namespace halocline::app
