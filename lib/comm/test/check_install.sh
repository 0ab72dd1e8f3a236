#!/usr/bin/env bash
# Installs a build into a prefix of its own, builds the example against it as a user would, and runs it.
#   check_install.sh CMAKE GENERATOR BUILD_DIR SOURCE_DIR WORK_DIR MPIEXEC
set -euo pipefail
# shellcheck source=jobs/local/script.sh
source "$(dirname "$0")/../../../jobs/local/script.sh"
cmake=$1 generator=$2 build=$3 source=$4 work=$5 mpiexec=$6
rm -rf "$work"; mkdir -p "$work"
# The installed package must not lean on the source tree, so the example is built from a copy elsewhere.
cp -r "$source/lib/comm/example" "$work/example"
"$cmake" --install "$build" --prefix "$work/prefix" >"$work/install.log"
"$cmake" -G "$generator" -S "$work/example" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_BUILD_TYPE=Release
"$cmake" --build "$work/build"
"$mpiexec" -n 1 "$work/prefix/bin/halocline" --version
for ranks in 1 2 4; do "$mpiexec" -n "$ranks" "$work/build/own_array"; done
rm -rf "$work"
