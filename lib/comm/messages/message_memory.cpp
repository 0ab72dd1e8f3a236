// SPDX-License-Identifier: BSD-3-Clause
#include "comm/messages/message_memory.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <utility>

#include "support/message_buffer.hpp"

namespace halocline::comm {

namespace {

using Allocator = HugePageAllocator<std::byte>;

constexpr std::size_t kSmallest = 256, kMore = 64;
// Sizes from here on take huge pages. One huge page is twice this size.
constexpr std::size_t kLong = std::size_t{1} << 20;

// Both kinds of memory are given back by std::free().
std::byte* allocate(std::size_t bytes, bool on_huge_pages) {
  if (on_huge_pages) return Allocator().allocate(bytes);
  auto* const out = std::malloc(std::max<std::size_t>(bytes, 1));
  if (out == nullptr) throw std::bad_alloc();
  return static_cast<std::byte*>(out);
}

}  // namespace

MessageMemory::MessageMemory(std::size_t most_kept, Users users)
    : most_kept_(most_kept), users_(users) {
  auto bytes = std::size_t{1};
  for (auto& shelf : shelves_) {
    const auto size = bytes + kMore;
    shelf.owner = this, shelf.size = size < kLong ? size : Allocator::allocated(size);
    bytes *= 2;
  }
}

void MessageMemory::release() noexcept {
  const auto guard = lock();
  for (auto& shelf : shelves_)
    while (shelf.spare != nullptr) std::free(std::exchange(shelf.spare, shelf.spare->next));
  kept_ = 0;
}

HostBytes::HostBytes(std::size_t bytes) : HostBytes() {
  memory_.reset(allocate(bytes, bytes >= kLong));
}

HostBytes::HostBytes(MessageMemory& from, std::size_t bytes) : HostBytes() {
  const auto size_class =
      static_cast<std::size_t>(std::bit_width(std::max(bytes, kSmallest + kMore) - kMore - 1));
  if (size_class >= from.shelves_.size()) throw std::bad_alloc();
  auto& shelf = from.shelves_[size_class];
  if (shelf.size <= from.most_kept_) {
    memory_.get_deleter().shelf = &shelf;
    const auto guard = from.lock();
    if (shelf.spare != nullptr) {
      memory_.reset(reinterpret_cast<std::byte*>(std::exchange(shelf.spare, shelf.spare->next)));
      from.kept_ -= shelf.size;
      return;
    }
    bytes = shelf.size;
  }
  memory_.reset(allocate(bytes, bytes >= kLong));
}

void HostBytes::GiveBack::operator()(std::byte* memory) const noexcept {
  if (shelf != nullptr) {
    auto& owner = *shelf->owner;
    const auto guard = owner.lock();
    if (owner.kept_ + shelf->size <= owner.most_kept_) {
      owner.kept_ += shelf->size;
      shelf->spare = new (memory) MessageMemory::Spare{shelf->spare};
      return;
    }
  }
  std::free(memory);
}

}  // namespace halocline::comm
