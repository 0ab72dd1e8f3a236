#!/usr/bin/env bash
# Runs a study on this machine with its mpirun: installs what is missing, builds, runs the points,
# and makes tables and plots. On a fresh Debian 12, as root, nothing else is needed.
#   jobs/local/study.sh NAME [--dry-run]      NAME: local (minutes), or another of jobs/studies
# Results are in results/mine/NAME. Started again, it runs only the points that are not done yet.
# jobs/studies/run.sh --help explains the rest. $HALOCLINE_BINARY: a program that is already built;
# then nothing is installed or built.
set -euo pipefail
# shellcheck source=jobs/local/script.sh
source "$(dirname "$0")/script.sh"
[[ -n ${1:-} ]] || wrong_use "which study?"
here=$(cd "$(dirname "$0")/../.." && pwd)
export HALOCLINE_SITE=$here/jobs/sites/local.sh
if [[ -z ${HALOCLINE_BINARY:-} && " $* " != *" --dry-run "* ]]; then
  "$here/jobs/studies/run.sh" "$@" --dry-run >/dev/null  # fails if there is no such study
  cd "$here"
  source jobs/local/deps.sh
  # A new build leaves out the tests; a build that has them keeps them.
  options=(-DHALOCLINE_BUILD_TESTS=OFF -DHALOCLINE_BUILD_BENCHMARKS=OFF)
  [[ ! -e build/release/CMakeCache.txt ]] || options=()
  jobs/local/build.sh release "${options[@]}"
  install_reports
  cd "$OLDPWD"
fi
exec "$here/jobs/studies/run.sh" "$@"
