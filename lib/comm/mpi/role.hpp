// SPDX-License-Identifier: BSD-3-Clause
// Names the two roles of a rank in a message.
#pragma once

namespace halocline::comm {

/// Names the role of a rank in a message.
enum class Role { sender, receiver };

}  // namespace halocline::comm
