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

# Installs tools of exactly one version. Otherwise machines would format and warn differently.
install_tools() {
  lock_deps lock
  install_wheels .deps/tools tools
  install_wheels .deps/reframe reframe
  install_wheels .deps/reports reports
  exec 9>&-
}

# Installs packages for tests: one compiles Fortran, another starts a Slurm of its own. The policy
# keeps the packages from starting their daemons.
install_for_tests() (
  policy=/usr/sbin/policy-rc.d
  if [[ $(id -u) == 0 && ! -e $policy ]]; then
    trap 'rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' >"$policy"; chmod +x "$policy"
  fi
  install_packages gfortran munge slurmctld slurmd slurm-client libsimgrid-dev \
    python3-sphinx python3-myst-parser python3-breathe doxygen furo python3-selenium chromium chromium-driver
)

[[ $# -gt 0 ]] || set -- release asan
code=0
for preset in "$@"; do
  # Benchmarks check themselves in release. With sanitizers they only take long to build. Warnings
  # are errors in our CI alone: a user's compiler may know more of them.
  options=(-DHALOCLINE_BUILD_BENCHMARKS=ON)
  # Unity builds take three quarters of the time. The release build shows that each source compiles
  # alone.
  [[ $preset != asan ]] || options=(-DHALOCLINE_BUILD_BENCHMARKS=OFF -DCMAKE_UNITY_BUILD=ON)
  jobs/local/build.sh "$preset" -DHALOCLINE_BUILD_TESTS=ON "${options[@]}" ${CI:+-DHALOCLINE_WERROR=ON}
  install_tools  # the build has installed Python by now
  [[ $preset == asan ]] || install_for_tests
  printf '== testing preset %s\n' "$preset"
  # Tests run one at a time: concurrent mpiexecs of one user share a folder of Open MPI's, and
  # remove it.
  ctest --preset "$preset" || code=$?
done
exit "$code"
