// SPDX-License-Identifier: BSD-3-Clause
// Turns exceptions into the codes of halocline.h.
#pragma once

#include <exception>
#include <new>
#include <utility>

#include "comm/c/halocline.h"
#include "support/error.hpp"

namespace halocline::c {

/// Keeps a text for halocline_last_error(), and returns `code`.
int fail(int code, const char* text) noexcept;

/// Calls `f()`. Returns HALOCLINE_SUCCESS, or the code of the exception that it threw.
template <class F>
int guarded(F&& f) noexcept {
  try {
    std::forward<F>(f)();
    return HALOCLINE_SUCCESS;
  } catch (const ConfigError& error) {
    return fail(HALOCLINE_ERR_ARGUMENT, error.what());
  } catch (const EnvironmentError& error) {
    return fail(HALOCLINE_ERR_ENVIRONMENT, error.what());
  } catch (const std::bad_alloc&) {
    return fail(HALOCLINE_ERR_ENVIRONMENT,
                "there is no memory left: use smaller boxes or more nodes");
  } catch (const std::exception& error) {
    return fail(HALOCLINE_ERR_INTERNAL, error.what());
  } catch (...) {
    return fail(HALOCLINE_ERR_INTERNAL, "unknown exception");
  }
}

/// Throws ConfigError unless `holds`.
inline void require(bool holds, const char* text) {
  if (!holds) throw ConfigError(text);
}

/// Throws ConfigError unless MPI is running.
void require_mpi();

}  // namespace halocline::c
