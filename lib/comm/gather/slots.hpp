// SPDX-License-Identifier: BSD-3-Clause
// Where blocks wait for their next message. Internal to lib/comm/gather.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "comm/gather/element_blocks.hpp"
#include "dtype/support/message_buffer.hpp"

namespace halocline::comm {

/// Slots one behind the other in a buffer, each of the size of one instance of a type without gaps.
class Slots {
 public:
  /// Makes `buffer` as long as `count` of them, which take `bytes` each; it must stay.
  Slots(dtype::MessageBuffer& buffer, std::int64_t count, dtype::TypeExprPtr slot,
        std::int64_t bytes)
      : slot_(std::move(slot)), elements_(dtype::basic_element_count(*slot_)), bytes_(bytes) {
    buffer.resize(static_cast<std::size_t>(count * bytes));
    data_ = buffer.data();
  }

  /// So many of them from the first one on.
  ElementBlock at(std::int64_t first, std::int64_t count) const {
    return {data_, slot_, {first * elements_, (first + count) * elements_}};
  }
  /// Those that a type over them selects, which begins at slot `first`.
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
