// SPDX-License-Identifier: BSD-3-Clause
#include "support/text_file.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <system_error>
#include <utility>

#include "support/error.hpp"

namespace halocline {

namespace {

constexpr std::int64_t kMebibyte = 1 << 20;

// Owns a file descriptor and closes it.
struct Descriptor {
  int number;
  explicit Descriptor(int opened) : number(opened) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number >= 0) close(number);
  }
};

class Reader {
 public:
  Reader(const std::string& path, const FileKind& kind) : path_(path), kind_(kind) {}

  std::string whole() const {
    struct stat status {};
    if (stat(path_.c_str(), &status) != 0) refuse_by_errno();
    check(status.st_mode);
    // O_NONBLOCK: opening a pipe does not wait for a writer.
    const Descriptor file(open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (file.number < 0 || fstat(file.number, &status) != 0) refuse_by_errno();
    check(status.st_mode);  // another file may have taken the path
    if (status.st_size > kind_.most_bytes) refuse_length();
    try {
      return contents(file.number, S_ISREG(status.st_mode) ? status.st_size : 0);
    } catch (const std::bad_alloc&) {
      refuse("there is no memory for it");
    }
  }

  [[noreturn]] void refuse(const std::string& cause) const {
    throw ConfigError(std::string(kind_.name) + " cannot be read (" + excerpt(path_, 1000) + ": " +
                      cause + "): " + kind_.remedy + " of at most " +
                      std::to_string(kind_.most_bytes / kMebibyte) +
                      " MiB that this user may read");
  }

 private:
  void check(mode_t mode) const {
    if (S_ISDIR(mode)) refuse("is a directory");
    if (S_ISCHR(mode) || S_ISBLK(mode)) refuse("is a device");
    if (!S_ISREG(mode) && !kind_.may_be_a_pipe) refuse("is not a regular file");
  }

  // Reads the file to its end. `expected` is only a guess of the bytes: files of the kernel report
  // length 0.
  std::string contents(int file, std::int64_t expected) const {
    std::string text;
    std::size_t length = 0;
    text.resize(static_cast<std::size_t>(expected) + 1);
    for (;;) {
      const auto got = read(file, text.data() + length, text.size() - length);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && errno == EAGAIN) {
        wait_for_more(file);
        continue;
      }
      if (got < 0) refuse_by_errno();
      if (got == 0 && length == 0 && nobody_has_written(file)) continue;
      if (got == 0) break;
      length += static_cast<std::size_t>(got);
      if (std::cmp_greater(length, kind_.most_bytes)) refuse_length();
      if (length == text.size())
        text.resize(static_cast<std::size_t>(std::clamp<std::int64_t>(
            2 * static_cast<std::int64_t>(length), kMebibyte, kind_.most_bytes + 1)));
    }
    text.resize(length);
    return text;
  }

  void wait_for_more(int file) const {
    pollfd waited{file, POLLIN, 0};
    const auto ready = poll(&waited, 1, static_cast<int>(kind_.patience.count()));
    if (ready == 0)
      refuse("is a pipe to which nobody has written for " + std::to_string(kind_.patience.count()) +
             " ms");
  }

  // A pipe is also at its end before its first writer opens it. Waits for that writer. Returns
  // true if the pipe can be read again.
  bool nobody_has_written(int file) const {
    struct stat status {};
    if (fstat(file, &status) != 0 || !S_ISFIFO(status.st_mode)) return false;
    pollfd waited{file, POLLIN, 0};
    if (poll(&waited, 1, 0) > 0) return (waited.revents & POLLIN) != 0;  // else it was closed
    wait_for_more(file);
    return true;
  }

  [[noreturn]] void refuse_by_errno() const { refuse(std::generic_category().message(errno)); }
  [[noreturn]] void refuse_length() const {
    refuse("is longer than " + std::to_string(kind_.most_bytes / kMebibyte) + " MiB");
  }

  const std::string& path_;
  const FileKind& kind_;
};

}  // namespace

std::string read_whole_file(const std::string& path, const FileKind& kind) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";  // some editors begin UTF-8 with it
  const Reader reader(path, kind);
  auto out = reader.whole();
  if (kind.is_binary) return out;
  if (out.find('\0') != std::string::npos) reader.refuse("is no text: it has a byte 0");
  if (out.starts_with(kByteOrderMark)) out.erase(0, kByteOrderMark.size());
  return out;
}

bool nests_deeper_than(std::string_view json, int most) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > most) return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

std::string excerpt(std::string_view text, std::size_t most, std::size_t at) {
  const auto begin =
      text.size() <= most ? 0 : std::min(at - std::min(at, most / 2), text.size() - most);
  std::string out(text.substr(begin, most));
  for (auto& c : out)
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = '?';
  return (begin > 0 ? "..." : "") + out + (begin + most < text.size() ? "..." : "");
}

}  // namespace halocline
