// SPDX-License-Identifier: BSD-3-Clause
// Writes files all or nothing: under a draft's name first, and renamed when they are complete.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace halocline::app {

/// Throws EnvironmentError: the file at `path` cannot be written, for the reason `why`.
[[noreturn]] void refuse_to_write(const std::string& path, const std::string& why);

/// Is a new file that takes the place of `path` once it is committed. Until then, an older file at
/// `path` stays as it is. All members are local and throw EnvironmentError that names `path`.
class Draft {
 public:
  /// Creates the file name(), or empties one that an earlier process has left.
  explicit Draft(std::string path);
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;
  /// Removes the draft unless it was committed.
  ~Draft();

  /// Returns the path of the draft, which other processes may open.
  const std::string& name() const { return name_; }

  /// Takes `bytes` bytes of the disk now. A file system that cannot do that must have them free.
  /// So a full disk is noticed here: Open MPI 4.1.4 reports no error when it writes to a full disk.
  void reserve(std::int64_t bytes) const;

  /// Writes `text` at byte `at`.
  void write(std::string_view text, std::int64_t at) const;

  /// Renames the file to `path`, once everything is on the disk.
  void commit();

 private:
  std::string path_, name_;
  int descriptor_;
};

/// Writes a whole file, all or nothing. Local. Throws EnvironmentError.
void write_whole_file(const std::string& path, std::string_view text);

}  // namespace halocline::app
