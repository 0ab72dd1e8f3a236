#!/usr/bin/env bash
# Installs what is missing, builds and tests; ends with ctest's summary and its exit code.
#   jobs/local/test.sh [PRESET...]     default: release asan
# On a fresh Debian 12, as root, nothing else is needed.
set -euo pipefail
cd "$(dirname "$0")/../.."
source jobs/local/env.sh

# The formatter of exactly one version, or every machine would format differently.
install_clang_format() {
  [[ -x .deps/tools/bin/clang-format ]] && return
  printf '== installing clang-format 14.0.6 from PyPI into .deps/tools\n'
  python3 -m venv .deps/tools
  .deps/tools/bin/pip install -q --disable-pip-version-check clang-format==14.0.6
}

[[ $# -gt 0 ]] || set -- release asan
code=0
for preset in "$@"; do
  # Benchmarks check themselves in release; with sanitizers they only take long to build. Warnings stop our own CI, not a user
  # whose compiler knows more of them.
  benchmarks=ON
  [[ $preset != asan ]] || benchmarks=OFF
  jobs/local/build.sh "$preset" -DHALOCLINE_BUILD_TESTS=ON -DHALOCLINE_BUILD_BENCHMARKS=$benchmarks ${CI:+-DHALOCLINE_WERROR=ON}
  install_clang_format  # the build has installed Python by now
  printf '== testing preset %s\n' "$preset"
  # One at a time: concurrent mpiexecs of one user share, and remove, a folder of Open MPI's.
  ctest --preset "$preset" || code=$?
done
exit "$code"
