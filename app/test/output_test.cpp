// SPDX-License-Identifier: BSD-3-Clause
// Tests the files of snapshots byte for byte, and what becomes of them if they cannot be written.
// Slices are read by test_vtk.py.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "environment.hpp"
#include "field_views.hpp"
#include "output/collective_file.hpp"
#include "output/colours.hpp"
#include "output/draft.hpp"
#include "output/snapshot.hpp"
#include "pictures.hpp"
#include "support/error.hpp"

namespace halocline::app {
namespace {

namespace fs = std::filesystem;

/// Is an empty folder of all ranks.
class Folder {
 public:
  Folder() {
    const auto name = "halocline-output-" + std::to_string(getpid());
    path_ = broadcast((fs::temp_directory_path() / name).string(), MPI_COMM_WORLD);
    run_on_root(MPI_COMM_WORLD, [&] { fs::create_directory(path_); });
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank_of(MPI_COMM_WORLD) == 0) fs::remove_all(path_);
  }
  const std::string& path() const { return path_; }

  std::string text(const std::string& file) const {
    std::ifstream in(path_ + "/" + file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::vector<std::string> files() const {
    std::vector<std::string> out;
    for (const auto& one : fs::directory_iterator(path_)) out.push_back(one.path().filename());
    std::sort(out.begin(), out.end());
    return out;
  }

 private:
  std::string path_;
};

// No extent is divisible by a number of ranks.
Config config_of(Layout layout, Element element) {
  Config config;
  config.global = {13, 7, 17};
  config.radius = {2, 1, 3};
  config.fields = 3;
  config.stencil = Stencil::point26;
  config.layout = layout;
  config.element = element;
  config.pad = element == Element::float64 ? Pad::by64 : Pad::none;
  return config;
}

double value_at(std::int64_t x, std::int64_t y, std::int64_t z, int field) {
  return static_cast<double>(x + 100 * y + 10'000 * z) * (field == 1 ? -1 : 1) + field / 4.0;
}

/// Holds fields whose values follow from field and global point. Ghosts are NaN.
template <class T>
struct Scene {
  Config config;
  Domain domain;
  FieldSet<T> fields;

  explicit Scene(Layout layout)
      : config(config_of(layout, sizeof(T) == 8 ? Element::float64 : Element::float32)),
        domain(make_domain(config, find_nodes(config, MPI_COMM_WORLD))),
        fields(domain, nullptr) {
    for_each_element("fill", domain, fields, [](T& element, const ElementMap::Place& p) {
      element = static_cast<T>(p.owned ? value_at(p.x, p.y, p.z, p.field) : NAN);
    });
  }
};

template <class T>
class Written : public testing::Test {};
using Elements = testing::Types<double, float>;
TYPED_TEST_SUITE(Written, Elements);

TYPED_TEST(Written, EveryByteFollowsFromTheGlobalPoint) {
  using T = TypeParam;
  for (const auto layout : {Layout::soa, Layout::aos})
    for (const std::int64_t most_packed : {1, 200, 700, 1 << 20}) {
      SCOPED_TRACE(std::string(to_string(layout)) + ", " + std::to_string(most_packed));
      const Folder folder;
      const Scene<T> scene(layout);
      const Snapshot snapshot{folder.path(), 42, 0.75, {1, 2, 0.5}, {"b", "c"}, {1, 2}};
      write_snapshot(snapshot, scene.domain, scene.fields, MPI_COMM_WORLD, most_packed);
      if (scene.domain.rank != 0) continue;

      EXPECT_EQ(folder.files(),
                (std::vector<std::string>{"fields-00000042.vti", "fields.pvd", "fields.xmf"}));
      const auto& global = scene.domain.decomposition.global();
      const auto layout_of_file = lay_out(snapshot, global, sizeof(T));
      auto expected = layout_of_file.head;
      for (const int field : snapshot.fields) {
        expected += layout_of_file.length();
        for (std::int64_t z = 0; z < global[2]; ++z)
          for (std::int64_t y = 0; y < global[1]; ++y)
            for (std::int64_t x = 0; x < global[0]; ++x) {
              const auto value = static_cast<T>(value_at(x, y, z, field));
              expected.append(reinterpret_cast<const char*>(&value), sizeof value);
            }
      }
      expected += layout_of_file.tail;
      EXPECT_TRUE(folder.text("fields-00000042.vti") == expected);
    }
}

Snapshot snapshot_of(const Folder& folder, std::int64_t step, double time) {
  return {folder.path(), step, time, {1, 1, 1}, {"a"}, {0}};
}

// A run that goes on from an earlier step has other snapshots than the run that it leaves.
TEST(Series, KeepsEarlierSnapshotsAlone) {
  const Folder folder;
  const Scene<double> scene(Layout::soa);
  const auto write = [&](std::int64_t step, double time) {
    write_snapshot(snapshot_of(folder, step, time), scene.domain, scene.fields, MPI_COMM_WORLD);
  };
  write(10, 1);
  write(20, 2);
  write(30, 3);
  write(20, 2.5);
  write(123456789, 4);
  if (scene.domain.rank != 0) return;
  EXPECT_EQ(
      folder.text("fields.pvd"),
      "<?xml version=\"1.0\"?>\n<VTKFile type=\"Collection\" version=\"1.0\">\n <Collection>\n"
      "  <DataSet timestep=\"1\" file=\"fields-00000010.vti\"/>\n"
      "  <DataSet timestep=\"2.5\" file=\"fields-00000020.vti\"/>\n"
      "  <DataSet timestep=\"4\" file=\"fields-123456789.vti\"/>\n"
      " </Collection>\n</VTKFile>\n");
  const auto xmf = folder.text("fields.xmf");
  EXPECT_EQ(std::count(xmf.begin(), xmf.end(), '\n'), 4 + 3 + 3);
  EXPECT_EQ(folder.files().size(), 6U);
}

// Returns the message of the error that every rank must have.
template <class Error>
std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(broadcast(error.what(), MPI_COMM_WORLD), error.what());
    return error.what();
  }
  ADD_FAILURE() << "nothing is thrown";
  return "";
}

TEST(Series, RefusesListsOfOthers) {
  const Folder folder;
  const Scene<double> scene(Layout::soa);
  run_on_root(MPI_COMM_WORLD, [&] { std::ofstream(folder.path() + "/fields.pvd") << "mine"; });
  const auto message = message_of<ConfigError>([&] {
    write_snapshot(snapshot_of(folder, 1, 0), scene.domain, scene.fields, MPI_COMM_WORLD);
  });
  EXPECT_NE(message.find("fields.pvd: not written by this program): move"), std::string::npos);
  EXPECT_EQ(folder.text("fields.pvd"), "mine");
}

TEST(Faults, AFolderThatIsNotThere) {
  const Folder folder;
  const Scene<double> scene(Layout::soa);
  auto snapshot = snapshot_of(folder, 1, 0);
  snapshot.folder += "/none";
  const auto message = message_of<EnvironmentError>(
      [&] { write_snapshot(snapshot, scene.domain, scene.fields, MPI_COMM_WORLD); });
  EXPECT_NE(message.find("/none/fields-00000001.vti: No such file"), std::string::npos) << message;
}

TEST(Faults, AFileThatTheRanksCannotOpen) {
  const auto message = message_of<EnvironmentError>(
      [] { CollectiveFile(MPI_COMM_WORLD, "none/x.part", CollectiveFile::Use::write); });
  EXPECT_NE(message.find("output cannot be written (none/x.part: MPI_ERR"), std::string::npos)
      << message;
}

TEST(Faults, ADiskThatIsTooSmall) {
  const Folder folder;
  message_of<EnvironmentError>([&] {
    run_on_root(MPI_COMM_WORLD, [&] { Draft(folder.path() + "/x").reserve(INT64_MAX / 4); });
  });
  EXPECT_TRUE(folder.files().empty());
}

// A limit on the length of files stands for a full disk.
TEST(Faults, AFullDiskLeavesTheOlderFileAndNoDraft) {
  const Folder folder;
  const Scene<double> scene(Layout::soa);
  const auto snapshot = snapshot_of(folder, 1, 0);
  const auto write = [&] { write_snapshot(snapshot, scene.domain, scene.fields, MPI_COMM_WORLD); };
  write();
  const auto before = folder.text(snapshot.file());
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit usual {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &usual), 0);
  auto low = usual;
  low.rlim_cur = 4096;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &low), 0);
  const auto message = message_of<EnvironmentError>(write);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &usual), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_NE(message.find("fields-00000001.vti: File too large): give output-folder"),
            std::string::npos)
      << message;
  EXPECT_EQ(folder.files().size(), 3U);
  EXPECT_EQ(folder.text(snapshot.file()), before);
}

TEST(Pictures, AreWrittenWhenTheyAreDue) {
  const Folder folder;
  Scene<float> scene(Layout::aos);
  scene.config.snapshot_every = 4;
  scene.config.slice_every = has_png() ? 3 : 0;
  scene.config.slice_fields = {"b"};
  Pictures<float> pictures(scene.config, scene.domain, {"a", "b", "c"}, {1, 1, 1}, MPI_COMM_WORLD);
  for (std::int64_t step = 1; step <= 7; ++step)
    pictures.after_step(folder.path(), step, 0, scene.fields);
  MPI_Barrier(MPI_COMM_WORLD);
  std::vector<std::string> expected{"fields-00000004.vti", "fields.pvd", "fields.xmf"};
  if (has_png())
    expected.insert(expected.end(), {"slice-b-z-00000003.png", "slice-b-z-00000006.png"});
  EXPECT_EQ(folder.files(), expected);
  EXPECT_NE(folder.text("fields-00000004.vti").find("Name=\"c\""), std::string::npos);
}

TEST(Pictures, RefuseNamesThatAreNotThere) {
  Scene<double> scene(Layout::soa);
  const auto make = [&](const std::vector<std::string>& names) {
    return message_of<ConfigError>([&] {
      Pictures<double>(scene.config, scene.domain, names, {1, 1, 1}, MPI_COMM_WORLD);
    });
  };
  scene.config.snapshot_fields = {"lnrho", "entropie"};
  EXPECT_EQ(make({"lnrho", "ux", "entropy"}),
            "snapshot-fields cannot be used (there is no field entropie): did you mean entropy?");
  scene.config.snapshot_fields = {};
  scene.config.slice_fields = {"temperature"};
  EXPECT_EQ(make({"field0", "field1", "field2"}),
            "slice-fields cannot be used (there is no field temperature): give some of field0, "
            "field1, field2");
}

TEST(Colours, ZeroIsGreyBetweenBothSigns) {
  const auto both = colour_scale(-1, 4);
  EXPECT_EQ(both.palette[both.colour(0)], (Colour{221, 221, 221}));
  EXPECT_EQ(both.colour(4), ColourScale::kLast);
  EXPECT_EQ(both.colour(-4), 0);
  EXPECT_EQ(both.colour(NAN), ColourScale::kNotFinite);
  const auto positive = colour_scale(2, 4);
  EXPECT_EQ(positive.palette[positive.colour(2)], (Colour{68, 1, 84}));
  EXPECT_EQ(positive.palette[positive.colour(4)], (Colour{253, 231, 37}));
  EXPECT_EQ(colour_scale(3, 3).colour(3), ColourScale::kLast / 2);
  EXPECT_EQ(colour_scale(-1.7e308, 1.7e308).colour(0), ColourScale::kLast / 2);
}

}  // namespace
}  // namespace halocline::app
