// SPDX-License-Identifier: BSD-3-Clause
// Maps memory for fields, on huge pages where the system has them.
//
// Rows of ghosts are kilobytes apart. On pages of 4 KiB nearly each row takes another entry of the
// processor's table of pages; on pages of 2 MiB hundreds of rows share one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace halocline::comm {

/// Lists the pages that memory asks for.
enum class Pages {
  small,  ///< the smallest ones of the system: 4 KiB on x86
  huge,   ///< those of 2 MiB, as far as the kernel has them; else small ones
};

/// Owns memory that is mapped for it alone. Begins at a multiple of 4 KiB, with huge pages at a
/// multiple of 2 MiB. Memory of less than 2 MiB has small pages. Can be moved.
class PagedMemory {
 public:
  static constexpr std::int64_t kHugePage = 2 << 20;  ///< bytes

  PagedMemory() = default;
  /// Maps memory that is 0. The pages are not touched, so that the threads which write first have
  /// them near.
  /// \param bytes least number of bytes
  /// \param pages pages that are asked for
  /// \param file descriptor of a file of size() bytes that is mapped and shared; -1: private memory
  /// \throws EnvironmentError if there is no memory
  explicit PagedMemory(std::int64_t bytes, Pages pages = Pages::huge, int file = -1);
  PagedMemory(PagedMemory&& other) noexcept;
  PagedMemory& operator=(PagedMemory&& other) noexcept;
  ~PagedMemory();

  /// Returns the number of bytes that is mapped for `bytes` bytes: whole pages.
  static std::int64_t size(std::int64_t bytes, Pages pages);

  std::byte* data() const { return data_; }
  std::int64_t bytes() const { return bytes_; }

  /// Touches all pages, which must hold nothing yet. Makes the pages of a file huge, which a kernel
  /// does not do by itself. The memory is near this thread afterwards.
  void touch() const;

 private:
  std::byte* data_ = nullptr;
  std::int64_t bytes_ = 0;
  bool is_huge_ = false;
};

/// Returns the share of memory that is on huge pages, 0 to 1, of the pages that are touched.
/// Returns nullopt if the system does not say.
std::optional<double> share_on_huge_pages(const void* data, std::int64_t bytes);

/// Returns the reason why this system gives no huge pages; empty if it may give them.
std::string why_no_huge_pages();

}  // namespace halocline::comm
