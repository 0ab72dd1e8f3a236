// SPDX-License-Identifier: BSD-3-Clause
// Files and texts of users, read with limits: whatever a user names ends in a text or in one
// ConfigError, soon and in bounded memory.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace halocline {

/// Describes a file that a user names: its purpose, as messages say it, and the part that is read.
struct FileKind {
  const char* name;            ///< begins the message: "config file"
  const char* remedy;          ///< "give --config a text file"; its size and rights are added
  std::int64_t most_bytes;     ///< a whole number of MiB
  bool may_be_a_pipe = false;  ///< also a socket
  bool is_binary = false;      ///< else a text, in which no byte is 0
  /// The longest silence of a pipe before it is refused.
  std::chrono::milliseconds patience{10'000};
};

/// Reads the whole file. Throws ConfigError that names `kind` and `path` if the file is longer
/// than `kind` allows, is a folder or a device, or cannot be read. A pipe is read to its end; one
/// to which nobody writes for `patience` is refused. So is a text with a byte 0, since parsers
/// take that for its end. A text's byte order mark is left out. Allocates at
/// most twice the file's bytes.
std::string read_whole_file(const std::string& path, const FileKind& kind);

/// Returns whether the brackets [ and { of a JSON text, outside of its strings, nest deeper than
/// `most`. The parser's values are printed and copied by recursion, so ask before parsing. O(text).
bool nests_deeper_than(std::string_view json, int most);

/// Returns `text` as a part of a message: on one line, control characters as '?'. Of a longer text
/// only `most` bytes are shown, those around byte `at`, with "..." where something is left out.
std::string excerpt(std::string_view text, std::size_t most = 60, std::size_t at = 0);

}  // namespace halocline
