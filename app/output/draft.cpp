// SPDX-License-Identifier: BSD-3-Clause
#include "draft.hpp"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "support/error.hpp"
#include "support/text_file.hpp"

namespace halocline::app {

namespace {

[[noreturn]] void refuse_by_errno(const std::string& path) {
  refuse_to_write(path, std::generic_category().message(errno));
}

}  // namespace

void refuse_to_write(const std::string& path, const std::string& why) {
  throw EnvironmentError("output cannot be written (" + excerpt(path, 1000) + ": " + why +
                         "): give output-folder a folder on a disk with free space that this "
                         "user may write to");
}

Draft::Draft(std::string path)
    : path_(std::move(path)),
      name_(path_ + ".part"),
      descriptor_(open(name_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {
  if (descriptor_ < 0) refuse_by_errno(path_);
}

Draft::~Draft() {
  if (descriptor_ >= 0) close(descriptor_);
  if (!name_.empty()) unlink(name_.c_str());
}

void Draft::reserve(std::int64_t bytes) const {
  int code = 0;
  do {
    code = fallocate(descriptor_, 0, 0, bytes);
  } while (code != 0 && errno == EINTR);
  if (code == 0) return;
  if (errno != EOPNOTSUPP && errno != ENOSYS) refuse_by_errno(path_);
  struct statvfs disk {};
  if (fstatvfs(descriptor_, &disk) != 0) return;
  const auto free_blocks = static_cast<std::int64_t>(disk.f_bavail);
  if (free_blocks >= bytes / static_cast<std::int64_t>(disk.f_frsize)) return;
  errno = ENOSPC;
  refuse_by_errno(path_);
}

void Draft::write(std::string_view text, std::int64_t at) const {
  while (!text.empty()) {
    const auto written = pwrite(descriptor_, text.data(), text.size(), at);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) refuse_by_errno(path_);
    text.remove_prefix(static_cast<std::size_t>(written));
    at += written;
  }
}

void Draft::commit() {
  if (fsync(descriptor_) != 0) refuse_by_errno(path_);
  if (close(std::exchange(descriptor_, -1)) != 0) refuse_by_errno(path_);
  if (rename(name_.c_str(), path_.c_str()) != 0) refuse_by_errno(path_);
  name_.clear();
}

void write_whole_file(const std::string& path, std::string_view text) {
  Draft draft(path);
  draft.write(text, 0);
  draft.commit();
}

}  // namespace halocline::app
