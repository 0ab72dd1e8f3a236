#!/usr/bin/env bash
# Fails if an object file registers a destructor that runs when the process ends.
#   check_no_exit_destructors.sh NM FILE...
set -euo pipefail
# shellcheck source=jobs/local/script.sh
source "$(dirname "$0")/../../../../jobs/local/script.sh"
nm=$1; shift
symbols=$("$nm" -A --undefined-only "$@") || { echo "check_no_exit_destructors.sh: $nm does not read the objects" >&2; exit 3; }
[[ -n $symbols ]] || { echo "check_no_exit_destructors.sh: $nm finds no symbols" >&2; exit 3; }
# Undefined symbols that registrations need; a function of one line's attribute is not one.
if found=$(grep -E ' U (__cxa_atexit|atexit|__cxa_thread_atexit)$' <<<"$symbols"); then
  printf 'objects with static storage that are destroyed at exit; make them live for ever (static auto& x = *new T):\n%s\n' "$found" >&2
  exit 1
fi
