// SPDX-License-Identifier: BSD-3-Clause
#include "comm/node/paged_memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

#include "support/error.hpp"
#include "support/machine.hpp"

namespace halocline::comm {

namespace {

constexpr const char* kTransparentHugePages = "/sys/kernel/mm/transparent_hugepage/enabled";

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25  // Linux 6.1; older kernels refuse it
#endif

std::int64_t small_page() {
  static const std::int64_t bytes = sysconf(_SC_PAGESIZE);
  return bytes;
}

std::int64_t page_for(std::int64_t bytes, Pages pages) {
  const bool huge = pages == Pages::huge && bytes >= PagedMemory::kHugePage;
  return huge ? PagedMemory::kHugePage : small_page();
}

[[noreturn]] void throw_no_memory(std::int64_t bytes, const std::string& why,
                                  const std::string& remedy) {
  throw EnvironmentError("no memory for the fields (" + std::to_string(bytes) +
                         " bytes on one rank: " + why + "): " + remedy);
}

std::byte* map(void* place, std::int64_t bytes, int protection, int flags, int file) {
  void* const found = mmap(place, static_cast<std::size_t>(bytes), protection, flags, file, 0);
  if (found == MAP_FAILED)
    throw_no_memory(bytes, std::generic_category().message(errno),
                    "use a smaller local size or fewer fields");
  return static_cast<std::byte*>(found);
}

void unmap(std::byte* data, std::int64_t bytes) {
  if (bytes > 0) munmap(data, static_cast<std::size_t>(bytes));
}

}  // namespace

std::int64_t PagedMemory::size(std::int64_t bytes, Pages pages) {
  const auto page = page_for(bytes, pages);
  return (bytes + page - 1) / page * page;
}

PagedMemory::PagedMemory(std::int64_t bytes, Pages pages, int file) : bytes_(size(bytes, pages)) {
  if (bytes_ == 0) return;
  // More is reserved than needed, to find a multiple of the page in it.
  const auto page = page_for(bytes, pages);
  const auto reserved = bytes_ + page;
  if (static_cast<double>(reserved) + kAddressesOfMpi > addresses_left())
    throw_no_memory(bytes_, "no addresses are left for them",
                    "raise ulimit -v, or use a smaller local size or fewer fields");
  auto* const begin =
      map(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
  const auto address = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(begin));
  const auto skipped = (page - address % page) % page;
  data_ = begin + skipped;
  unmap(begin, skipped);
  unmap(data_ + bytes_, reserved - skipped - bytes_);
  try {
    map(data_, bytes_, PROT_READ | PROT_WRITE,
        MAP_FIXED | (file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED), file);
  } catch (const EnvironmentError&) {
    unmap(data_, bytes_);
    throw;
  }
  is_huge_ = page == kHugePage && why_no_huge_pages().empty();
  madvise(data_, static_cast<std::size_t>(bytes_), is_huge_ ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
}

PagedMemory::PagedMemory(PagedMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      is_huge_(other.is_huge_) {}

PagedMemory& PagedMemory::operator=(PagedMemory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(is_huge_, other.is_huge_);
  return *this;
}

PagedMemory::~PagedMemory() {
  unmap(data_, bytes_);
}

void PagedMemory::touch() const {
  const auto touch_each = [&](std::int64_t page) {
    for (std::int64_t at = 0; at < bytes_; at += page)
      *const_cast<volatile std::byte*>(data_ + at) = std::byte(0);
  };
  if (is_huge_) {
    // The kernel puts a huge page where its first small page is.
    touch_each(kHugePage);
    madvise(data_, static_cast<std::size_t>(bytes_), MADV_COLLAPSE);
  }
  touch_each(small_page());
}

std::optional<double> share_on_huge_pages(const void* data, std::int64_t bytes) {
  std::ifstream maps("/proc/self/smaps");
  const auto begin = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(data));
  const auto end = begin + static_cast<std::uint64_t>(bytes);
  double touched = 0, huge = 0;
  bool inside = false;
  for (std::string line; std::getline(maps, line);) {
    std::istringstream words(line);
    std::string key;
    words >> key;
    if (!key.ends_with(':')) {  // "BEGIN-END ..." begins the next mapping
      const auto dash = key.find('-');
      inside = dash != std::string::npos && std::stoull(key, nullptr, 16) < end &&
               std::stoull(key.substr(dash + 1), nullptr, 16) > begin;
      continue;
    }
    double kib = 0;
    if (!inside || !(words >> kib)) continue;
    if (key == "Rss:") touched += kib;
    if (key == "AnonHugePages:" || key == "ShmemPmdMapped:") huge += kib;
  }
  if (touched == 0) return std::nullopt;
  return huge / touched;
}

std::string why_no_huge_pages() {
  std::string choice;
  if (!std::getline(std::ifstream(kTransparentHugePages), choice))
    return "this system has no transparent huge pages";
  if (choice.find("[never]") != std::string::npos)
    return std::string(kTransparentHugePages) + " is never";
  return "";
}

}  // namespace halocline::comm
