// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/pack/host/segment.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "dtype/pack/host/copy_range.hpp"
#include "support/narrow.hpp"

namespace halocline::dtype {

Segment::Segment(PackPlan plan, const void* buffer, std::int64_t count, std::int64_t lookahead)
    : plan_(std::move(plan)), buffer_(buffer), count_(count), bytes_(plan_.packed_bytes(count)) {
  const auto& strided = plan_.program().entry(count).strided;
  if (strided.innermost_height == 0) return;
  // Steps of the innermost loop that share a cache line are a packed stride apart in the stream.
  const auto& level = strided.levels[0];
  const auto sharing = detail::kLineBytes / std::max<std::int64_t>(std::abs(level.stride), 1);
  const auto steps = std::min(sharing, lookahead / level.packed_stride);
  if (steps < 2) return;
  group_bytes_ = steps * level.packed_stride;
  group_span_ =
      strided.innermost_height == strided.top() ? bytes_ : level.count * level.packed_stride;
  kept_ = std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(group_bytes_));
}

void Segment::seek(std::int64_t position) {
  if (position < 0 || position > bytes_)
    throw ConfigError("segment position " + std::to_string(position) +
                      " is outside of the packed stream (it has " + std::to_string(bytes_) +
                      " bytes): seek within it");
  if (position != position_) leave();
  position_ = position;
}

// Kept bytes are valid only while packing or unpacking goes on in order: the user may change the
// buffer in between.
void Segment::leave() {
  flush();
  packed_ = {};
}

std::int64_t Segment::clip(std::int64_t bytes) const {
  return std::clamp<std::int64_t>(bytes, 0, bytes_ - position_);
}

template <host::CopyDirection kDirection>
void Segment::copy(std::int64_t first, std::int64_t last, const void* packed) {
  host::copy_range<kDirection>(plan_, reinterpret_cast<host::Address>(buffer_), count_, first, last,
                               reinterpret_cast<host::Address>(packed));
}

// Returns the end of the group that holds a position.
std::int64_t Segment::window_end(std::int64_t position) const {
  const auto inside = position % group_span_;
  const auto end = std::min(inside - inside % group_bytes_ + group_bytes_, group_span_);
  return std::min(position - inside + end, bytes_);
}

// Tells if the next piece continues the last piece and ends inside of a group. All other pieces are
// copied directly.
bool Segment::uses_window(std::int64_t bytes) const {
  return group_bytes_ > 0 && (position_ == resumed_at_ || position_ == 0) &&
         position_ + bytes < window_end(position_);
}

std::int64_t Segment::pack(void* packed, std::int64_t capacity) {
  flush();
  const auto bytes = clip(capacity);
  const auto end = position_ + bytes;
  auto* to = static_cast<std::byte*>(packed);
  while (position_ < end) {
    if (!packed_.holds(position_) && uses_window(end - position_)) {
      packed_ = {position_, window_end(position_), window_end(position_)};
      copy<host::CopyDirection::pack>(packed_.first, packed_.last, kept_.get());
    }
    auto part = end - position_;
    if (packed_.holds(position_)) {
      part = std::min(part, packed_.last - position_);
      std::memcpy(to, kept_.get() + (position_ - packed_.first), static_cast<std::size_t>(part));
    } else {
      if (group_bytes_ > 0) part = std::min(part, window_end(position_) - position_);
      copy<host::CopyDirection::pack>(position_, position_ + part, to);
    }
    to += part;
    resumed_at_ = position_ += part;
  }
  return bytes;
}

std::int64_t Segment::unpack(const void* packed, std::int64_t available) {
  packed_ = {};
  const auto bytes = clip(available);
  const auto end = position_ + bytes;
  const auto* from = static_cast<const std::byte*>(packed);
  while (position_ < end) {
    auto part = end - position_;
    if (unpacked_.first == unpacked_.last && uses_window(part))
      unpacked_ = {position_, position_, window_end(position_)};
    if (unpacked_.end > position_) {
      part = std::min(part, unpacked_.end - position_);
      std::memcpy(kept_.get() + (position_ - unpacked_.first), from,
                  static_cast<std::size_t>(part));
      unpacked_.last += part;
      if (unpacked_.last == unpacked_.end) flush();
    } else {
      if (group_bytes_ > 0) part = std::min(part, window_end(position_) - position_);
      copy<host::CopyDirection::unpack>(position_, position_ + part, from);
    }
    from += part;
    resumed_at_ = position_ += part;
  }
  return bytes;
}

void Segment::flush() {
  copy<host::CopyDirection::unpack>(unpacked_.first, unpacked_.last, kept_.get());
  unpacked_ = {};
}

}  // namespace halocline::dtype
