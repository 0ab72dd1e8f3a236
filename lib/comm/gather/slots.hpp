// SPDX-License-Identifier: BSD-3-Clause
// Holds blocks between two messages. Internal to lib/comm/gather.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "comm/gather/element_blocks.hpp"
#include "support/message_buffer.hpp"

namespace halocline::comm {

/// Describes consecutive slots of a buffer. Each slot has room for one instance of a type without
/// gaps.
class Slots {
 public:
  /// Makes room for `count` slots of `bytes` bytes each in `buffer`, which must outlive the slots.
  Slots(MessageBuffer& buffer, std::int64_t count, dtype::TypeExprPtr slot, std::int64_t bytes)
      : slot_(std::move(slot)), elements_(dtype::basic_element_count(*slot_)), bytes_(bytes) {
    buffer.resize(static_cast<std::size_t>(count * bytes));
    data_ = buffer.data();
  }

  /// Returns the block of `count` slots that begins at slot `first`.
  ElementBlock at(std::int64_t first, std::int64_t count) const {
    return {data_, slot_, {first * elements_, (first + count) * elements_}};
  }
  /// Returns the block that `type` selects among the slots; `type` begins at slot `first`.
  ElementBlock from(std::int64_t first, const dtype::TypeExprPtr& type) const {
    return {data_ + first * bytes_, type, {0, dtype::basic_element_count(*type)}};
  }
  const dtype::TypeExprPtr& slot() const { return slot_; }

 private:
  std::byte* data_;
  dtype::TypeExprPtr slot_;
  std::int64_t elements_, bytes_;
};

}  // namespace halocline::comm
