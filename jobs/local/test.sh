#!/usr/bin/env bash
# Installs what is missing, builds and tests; ends with ctest's summary and its exit code.
#   jobs/local/test.sh [PRESET...]     default: release asan
# On a fresh Debian 12, as root, nothing else is needed.
set -euo pipefail
# shellcheck source=jobs/local/script.sh
source "$(dirname "$0")/script.sh"
cd "$(dirname "$0")/../.."
source jobs/local/env.sh
source jobs/local/deps.sh

[[ $# -gt 0 ]] || set -- release asan
install_packages gfortran  # the build compiles tests in Fortran
code=0
for preset in "$@"; do
  # Several sources are compiled as one, which takes half of the time. Benchmarks check themselves
  # in release. With sanitizers they only take long to build. Warnings are errors in our CI alone: a
  # user's compiler may know more of them.
  options=(-DCMAKE_UNITY_BUILD=ON -DHALOCLINE_BUILD_BENCHMARKS=ON)
  [[ $preset != asan ]] || options+=(-DHALOCLINE_BUILD_BENCHMARKS=OFF)
  jobs/local/build.sh "$preset" -DHALOCLINE_BUILD_TESTS=ON "${options[@]}" ${CI:+-DHALOCLINE_WERROR=ON}
  install_tools  # the build has installed Python by now
  [[ $preset == asan ]] || install_for_tests
  printf '== testing preset %s\n' "$preset"
  ctest --preset "$preset" -j "$(cores)" || code=$?
done
exit "$code"
