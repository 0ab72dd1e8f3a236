// SPDX-License-Identifier: BSD-3-Clause
// Reads files and texts of users within limits. Any path ends in a text or in one ConfigError, soon
// and in bounded memory.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace halocline {

/// Describes a file that a user names: its purpose, as messages say it, and the part that is read.
struct FileKind {
  const char* name;            ///< first words of a message: "config file"
  const char* remedy;          ///< advice: "give --config a text file"; size and rights are added
  std::int64_t most_bytes;     ///< largest file that is read; a whole number of MiB
  bool may_be_a_pipe = false;  ///< pipes and sockets are allowed
  bool is_binary = false;      ///< bytes 0 are allowed; a text has none
  /// Is the longest silence of a pipe before it is refused.
  std::chrono::milliseconds patience{10'000};
};

/// Reads the whole file, a pipe to its end. Leaves out the byte order mark of a text. Allocates at
/// most twice the file's bytes.
///
/// \throws ConfigError that names `kind` and `path` if the file cannot be read, is a folder or a
///   device, or is longer than `kind` allows. Also if nobody writes to a pipe for `patience`, and
///   if a text has a byte 0, since parsers take that for its end.
std::string read_whole_file(const std::string& path, const FileKind& kind);

/// Tells if the brackets [ and { of a JSON text, outside of its strings, nest deeper than `most`.
/// The parser prints and copies its values by recursion, so ask before parsing. O(text).
bool nests_deeper_than(std::string_view json, int most);

/// Returns `text` as a part of a message: on one line, with '?' for control characters. A longer
/// text is cut to `most` bytes around byte `at`, with "..." where bytes are left out.
std::string excerpt(std::string_view text, std::size_t most = 60, std::size_t at = 0);

}  // namespace halocline
