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

# Tools of exactly one version, or every machine would format and warn differently.
install_tools() {
  lock_deps lock
  install_wheels .deps/tools tools
  install_wheels .deps/reframe reframe
  exec 9>&-
}

# A test compiles Fortran; another starts a Slurm of its own: the daemons that these packages would start are not wanted.
install_for_tests() (
  policy=/usr/sbin/policy-rc.d
  if [[ $(id -u) == 0 && ! -e $policy ]]; then
    trap 'rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' >"$policy"; chmod +x "$policy"
  fi
  install_packages gfortran munge slurmctld slurmd slurm-client libsimgrid-dev python3-matplotlib python3-pandas \
    python3-markdown-it python3-sphinx python3-myst-parser python3-breathe doxygen furo python3-selenium chromium chromium-driver
)

[[ $# -gt 0 ]] || set -- release asan
code=0
for preset in "$@"; do
  # Benchmarks check themselves in release; with sanitizers they only take long to build. Warnings stop our own CI, not a user
  # whose compiler knows more of them.
  options=(-DHALOCLINE_BUILD_BENCHMARKS=ON)
  # Several sources as one take three quarters of the time; that each compiles alone is seen in release.
  [[ $preset != asan ]] || options=(-DHALOCLINE_BUILD_BENCHMARKS=OFF -DCMAKE_UNITY_BUILD=ON)
  jobs/local/build.sh "$preset" -DHALOCLINE_BUILD_TESTS=ON "${options[@]}" ${CI:+-DHALOCLINE_WERROR=ON}
  install_tools  # the build has installed Python by now
  [[ $preset == asan ]] || install_for_tests
  printf '== testing preset %s\n' "$preset"
  # One at a time: concurrent mpiexecs of one user share, and remove, a folder of Open MPI's.
  ctest --preset "$preset" || code=$?
done
exit "$code"
