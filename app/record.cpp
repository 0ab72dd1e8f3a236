// SPDX-License-Identifier: BSD-3-Clause
#include "record.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "support/contract.hpp"
#include "support/error.hpp"

namespace halocline::app {

namespace {

using Json = nlohmann::ordered_json;

// Returns a result line. A line is UTF-8, but a path or a text from the environment need not be.
std::string line_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

// ---- CSV. A row has the record's scalars by name, triples by axis, statistics by phase, all notes
// in one cell, and the provenance that plots need. It has no numbers of single ranks or iterations.

using Cells = std::vector<std::pair<std::string, Json>>;

std::string joined(const Json& items, const char* between) {
  std::string out;
  for (const auto& item : items)
    out.append(out.empty() ? "" : between)
        .append(item.is_string() ? item.get<std::string>() : item.dump());
  return out;
}

Cells csv_cells(const Json& record) {
  static const auto statistic_names = statistics_as_json(Statistics{});
  Cells cells;
  for (const auto& [key, value] : record.items()) {
    if (key == "phases") {
      for (const auto& [phase, statistics] : value.items())
        for (const auto& [name, unused] : statistic_names.items())
          cells.emplace_back(phase + "_" + name,
                             statistics.is_null() ? Json() : statistics.at(name));
    } else if (key == "provenance") {
      for (const char* name : {"git", "dirty", "mpi_library", "time"})
        cells.emplace_back(name, value.at(name));
    } else if (key == "decomposition" || key == "local" || key == "global") {
      for (std::size_t axis = 0; axis < 3; ++axis)
        cells.emplace_back(key + "_" + "xyz"[axis], value.at(axis));
    } else if (key == "notes") {
      cells.emplace_back(key, joined(value, "; "));
    } else if (key != "timeline" && key != "samples_s") {
      cells.emplace_back(key, value.is_array() ? Json(joined(value, " ")) : value);
    }
  }
  return cells;
}

// Quotes a text by RFC 4180, if that is necessary.
std::string csv_text(const Json& value) {
  if (value.is_null()) return "";
  if (!value.is_string()) return value.dump();
  const auto text = value.get<std::string>();
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted.append(c == '"' ? 2 : 1, c);
  return quoted + "\"";
}

// Makes a line of the names or of the values of cells.
template <class Part>
std::string csv_line(const Cells& cells, Part part) {
  std::string line;
  for (const auto& cell : cells)
    line.append(&cell == &cells.front() ? "" : ",").append(csv_text(cell.*part));
  return line + "\n";
}

// ---- Files

std::string system_message() {
  return std::generic_category().message(errno);
}

bool is_link(const std::string& path) {
  struct stat status {};
  return lstat(path.c_str(), &status) == 0 && S_ISLNK(status.st_mode);
}

// Says what keeps `path` from being opened, after a call that set errno. Checks for a broken link
// first: depending on the call, the error is "not there" or "there".
std::string cause_at(const std::string& path) {
  const int error = errno;
  if ((error == ENOENT || error == EEXIST) && is_link(path))
    return "is a symbolic link to a file that does not exist";
  errno = error;
  return system_message();
}

// Is an append-only descriptor, locked while it lives so that jobs can share a file. Jobs may
// create the file, or take it back, at the same moment.
class Appender {
 public:
  explicit Appender(const std::string& path) : path_(path) {
    constexpr int kMostAttempts = 1000;  // each time another job has taken the file back
    for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
      if (!open_or_create()) continue;
      // Some parallel file systems have no locks. There, a single write per line has to be enough.
      locked_ = flock(descriptor_, LOCK_EX) == 0;
      struct stat ours {};
      struct stat there {};
      if (fstat(descriptor_, &ours) != 0) fail();
      length_ = ours.st_size;
      const bool is_there = stat(path_.c_str(), &there) == 0 && ours.st_ino == there.st_ino &&
                            ours.st_dev == there.st_dev;
      if (is_there) return;
      close(std::exchange(descriptor_, -1));
    }
    errno = ESTALE;
    fail();
  }
  Appender(const Appender&) = delete;
  Appender& operator=(const Appender&) = delete;
  ~Appender() { close(descriptor_); }

  bool empty() const { return length_ == 0; }

  // Appends a line in one write, or throws. The line stands alone even if the file did not end with
  // a newline.
  void append(const std::string& line) {
    const auto text = (ends_within_a_line() ? "\n" : "") + line;
    errno = ENOSPC;  // meaning of a short write
    const auto written = ::write(descriptor_, text.data(), text.size());
    if (written > 0) written_ = written;
    if (written != static_cast<ssize_t>(text.size())) fail();
    // Network file systems report only now that they are full. Devices have no disk.
    if (fsync(descriptor_) != 0 && (errno == ENOSPC || errno == EDQUOT || errno == EIO)) fail();
  }

  // Cuts the file back to its former length. Ignores errors: nobody is left to report them to.
  void undo() const {
    struct stat status {};
    // Without locks, other jobs may have written meanwhile.
    if (!locked_ && (fstat(descriptor_, &status) != 0 || status.st_size != length_ + written_))
      return;
    if (created_ && locked_ && length_ == 0)
      unlink(path_.c_str());  // a job that waits for the lock notices that and creates the file
                              // again
    else
      static_cast<void>(ftruncate(descriptor_, length_) == 0);
  }

 private:
  // Returns false if another job has taken the file back meanwhile.
  bool open_or_create() {
    constexpr int kFlags = O_APPEND | O_CLOEXEC;
    constexpr mode_t kMode = 0666;
    created_ = false;
    descriptor_ = open(path_.c_str(), kFlags | O_RDWR);
    if (descriptor_ < 0 && errno == EACCES) descriptor_ = open(path_.c_str(), kFlags | O_WRONLY);
    if (descriptor_ < 0 && errno == ENOENT) {
      descriptor_ = open(path_.c_str(), kFlags | O_RDWR | O_CREAT | O_EXCL, kMode);
      created_ = descriptor_ >= 0;
      if (!created_ && errno == EEXIST) {
        descriptor_ = open(path_.c_str(), kFlags | O_RDWR);
        if (descriptor_ < 0 && errno == ENOENT && !is_link(path_)) return false;
      }
    }
    if (descriptor_ < 0) fail();
    return true;
  }

  // Tells if the file ends within a line, as after a program that died while it wrote. False if the
  // file cannot be read.
  bool ends_within_a_line() const {
    char last = '\n';
    return length_ > 0 && pread(descriptor_, &last, 1, length_ - 1) == 1 && last != '\n';
  }

  [[noreturn]] void fail() const {
    const bool is_full = errno == ENOSPC || errno == EDQUOT || errno == EFBIG;
    throw EnvironmentError("result cannot be written (" + path_ + ": " + cause_at(path_) +
                           "): " + (is_full ? "free space there or " : "") +
                           "give another path with --output or --csv");
  }

  std::string path_;
  int descriptor_ = -1;
  bool created_ = false, locked_ = false;
  off_t length_ = 0, written_ = 0;
};

[[noreturn]] void refuse(const char* flag, const std::string& path, const std::string& cause) {
  throw ConfigError(std::string(flag) + " cannot be written (" + path + ": " + cause +
                    "): give a file in a directory that exists and that this user may write to");
}

// Checks that `path` can be appended to now, or created. Creates another file in its folder, since
// another job may create and use this one at the same moment.
void check_appendable(const char* flag, const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) == 0) {
    // A pipe would block until somebody reads.
    if (!S_ISREG(status.st_mode) && !S_ISCHR(status.st_mode))
      refuse(flag, path, S_ISDIR(status.st_mode) ? "is a directory" : "is not a regular file");
    if (access(path.c_str(), W_OK) == 0) return;
    // Another job may have taken its file back since.
    if (errno != ENOENT) refuse(flag, path, system_message());
  }
  if (errno != ENOENT || is_link(path)) refuse(flag, path, cause_at(path));
  auto folder = std::filesystem::path(path).parent_path();
  if (path.ends_with('/')) {
    errno = EISDIR;
    refuse(flag, path, system_message());
  }
  auto probe = (folder / ".halocline-XXXXXX").string();  // mkostemp() replaces the X
  const int descriptor = mkostemp(probe.data(), O_CLOEXEC);
  if (descriptor < 0) refuse(flag, path, system_message());
  close(descriptor);
  unlink(probe.c_str());
}

// Returns the first bytes of a file, at most `most`; nothing if it is no regular file. Waits while
// a job writes to it, since a failed write is cut off again.
std::string first_bytes(const std::string& path, std::size_t most) {
  std::string out;
  if (!std::filesystem::is_regular_file(path)) return out;
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return out;
  static_cast<void>(flock(descriptor, LOCK_SH));
  out.resize(most);
  const auto got = pread(descriptor, out.data(), most, 0);
  close(descriptor);
  out.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
  return out;
}

// Tells if two paths name the same file, even if it does not exist yet. Another job may create or
// remove either file meanwhile, so no call here may throw for that reason.
bool same_file(const std::string& a, const std::string& b) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (fs::equivalent(a, b, error)) return true;
  const auto place = [&](const std::string& name) {
    const auto path = fs::absolute(name, error);
    return fs::weakly_canonical(path.parent_path(), error) / path.filename();
  };
  return place(a) == place(b);
}

}  // namespace

template <class R>
ResultWriter<R>::ResultWriter(const Config& config, const Provenance& provenance)
    : output_(config.output), csv_(config.csv), provenance_(provenance) {
  if (!output_.empty()) check_appendable("output", output_);
  if (!config.plot.empty()) check_appendable("plot", config.plot);
  if (csv_.empty()) return;
  check_appendable("csv", csv_);
  if (!output_.empty() && same_file(output_, csv_))
    throw ConfigError("output and csv are one file (" + csv_ + "): give two");
  const R example;
  const auto expected =
      csv_line(csv_cells(record_as_json(example, provenance)), &Cells::value_type::first);
  const auto begin = first_bytes(csv_, expected.size() + 1);
  const auto header = begin.substr(0, begin.find('\n'));
  if (!header.empty() && header + "\n" != expected)
    throw ConfigError("csv has other columns than this version writes (" + csv_ +
                      "): give a new file");
}

template <class R>
void ResultWriter<R>::write(const R& record) const {
  const auto json = record_as_json(record, provenance_);
  std::deque<Appender> files;
  try {
    if (!output_.empty()) files.emplace_back(output_).append(line_of(json));
    if (!csv_.empty()) {
      const auto cells = csv_cells(json);
      auto& file = files.emplace_back(csv_);
      file.append((file.empty() ? csv_line(cells, &Cells::value_type::first) : "") +
                  csv_line(cells, &Cells::value_type::second));
    }
  } catch (...) {
    for (const auto& file : files) file.undo();
    throw;
  }
}

template class ResultWriter<Record>;
template class ResultWriter<GatherRecord>;
template class ResultWriter<PredictRecord>;

}  // namespace halocline::app
