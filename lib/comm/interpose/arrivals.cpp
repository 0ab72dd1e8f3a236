// SPDX-License-Identifier: BSD-3-Clause
// Defines calls after which a program may know that a message has arrived whose request it freed.
// They unpack such a message before they return.
#include "comm/interpose/languages.hpp"

namespace halocline::interpose {
namespace {

int deliver(const auto& mpi, auto... arguments) {
  const DeliveryAfterCall after;
  return mpi(arguments...);
}

}  // namespace
}  // namespace halocline::interpose

#define HALOCLINE_ARRIVAL HALOCLINE_ENTRY_POINTS
#include "comm/interpose/calls.def"
