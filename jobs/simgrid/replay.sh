#!/usr/bin/env bash
# Simulates exchanges by SimGrid: installs what is missing (Debian's packages, as root), builds the
# platform, and runs the traces.
#   jobs/simgrid/replay.sh [--output FILE] FOLDER...
# A FOLDER holds trace.txt and platform.json, written by halocline predict --traces FOLDER;
# replay.py --help explains them. FILE (default: results/raw/simulation/simulation.jsonl) gets a
# JSON line for each FOLDER. It is written when all are done.
# Exit code: 0; 2 bad input; 3 SimGrid is not there, or failed.
set -euo pipefail
# shellcheck source=jobs/local/script.sh
source "$(dirname "$0")/../local/script.sh"
[[ $# -gt 0 ]] || { header >&2; exit 2; }
caller=$PWD
cd "$(dirname "$0")/../.."
source jobs/local/deps.sh
install_packages g++ libsimgrid-dev nlohmann-json3-dev python3
version=$(smpirun -version 2>/dev/null | sed -n 's/^SimGrid version //p') || true
[[ -n $version ]] || { echo "replay.sh: no smpirun in PATH: install SimGrid (Debian: libsimgrid-dev)" >&2; exit 3; }
library=$PWD/build/simgrid/platform-$version.so
if [[ ! $library -nt jobs/simgrid/platform.cpp ]]; then
  say "building ${library#"$PWD"/}"
  mkdir -p build/simgrid
  "${CXX:-g++}" -std=c++17 -O1 -Wall -Wextra -shared -fPIC -o "$library.$$" jobs/simgrid/platform.cpp -lsimgrid ||
    { rm -f "$library.$$"; echo "replay.sh: the platform does not build with SimGrid $version" >&2; exit 3; }
  mv "$library.$$" "$library"
fi
export HALOCLINE_PLATFORM_LIBRARY=$library
replay=$PWD/jobs/simgrid/replay.py default=$PWD/results/raw/simulation/simulation.jsonl
cd "$caller"
exec python3 "$replay" --simgrid "$version" --output "$default" "$@"
