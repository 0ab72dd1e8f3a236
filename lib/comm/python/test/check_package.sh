#!/usr/bin/env bash
# Installs the package for Python with the library of a build, and runs its tests and the example.
#   check_package.sh BUILD_DIR SOURCE_DIR WORK_DIR MPIEXEC TEST...
# Exit code 77: mpi4py and numpy are not installed in .deps/python.
set -euo pipefail
# shellcheck source=jobs/local/script.sh
source "$(dirname "$0")/../../../../jobs/local/script.sh"
build=$1 source=$2 work=$3 mpiexec=$4; shift 4
python=$source/.deps/python/bin/python3
[[ -x $python ]] || { echo "there is no .deps/python: jobs/local/test.sh installs it"; exit 77; }
rm -rf "$work"; mkdir -p "$work/lib/comm"
# pip writes beside what it installs, so it gets a copy.
cp -r "$source/lib/comm/python" "$work/lib/comm/python"
HALOCLINE_PREFIX=$build "$python" -m pip install -q --disable-pip-version-check --no-deps --no-index --no-build-isolation \
  --target "$work/package" "$work/lib/comm/python"
export PYTHONPATH=$work/package PYTHONDONTWRITEBYTECODE=1
for ranks in 1 2 3 4; do "$mpiexec" -n "$ranks" "$python" "$source/lib/comm/python/test/run.py" "$@"; done
"$mpiexec" -n 1 "$python" "$source/lib/comm/python/test/overhead.py"
for ranks in 1 2 3 4; do "$mpiexec" -n "$ranks" "$python" "$source/lib/examples/jacobi.py" 16 5; done
rm -rf "$work"
