#!/usr/bin/env bash
# Builds and runs a copy of the project in a folder whose name has blanks, quotes, brackets and
# commands for a shell.
#   jobs/test/odd_folder.sh
# Uses the Kokkos of the site or of .deps/kokkos. Nothing is optimised, since only the success of
# the build matters: two minutes. Each source of library and program is compiled alone, unlike in test.sh.
# Exit code: 0; 1 if something does not work there; 3 if there is no place for the copy.
set -euo pipefail
# shellcheck source=jobs/local/script.sh
source "$(dirname "$0")/../local/script.sh"
cd "$(dirname "$0")/../.."
project=$PWD
work=$(mktemp -d) || exit 3
trap 'rm -rf "$work"' EXIT
ran=$work/ran
# The name has a hyphen, and characters that a shell or ninja would replace.
folder="$work/a b (c)'é \$HOME \$(touch \$ran) &"
export ran
mkdir "$folder" "$folder/.deps" || exit 3
# Copies the files that git tracks, and new ones. Without git it copies everything except builds and
# installed tools.
if git rev-parse --git-dir >/dev/null 2>&1; then
  git ls-files -z --cached --others --exclude-standard | tar -cf - --null --files-from=- --ignore-failed-read 2>/dev/null | tar -xf - -C "$folder"
else
  tar -cf - --exclude=./build --exclude=./.deps --exclude=./.vendors . | tar -xf - -C "$folder"
fi
[[ ! -e .deps/kokkos ]] || ln -s "$project/.deps/kokkos" "$folder/.deps/kokkos"

fail() { echo "odd_folder.sh: $* in $folder" >&2; exit 1; }
# Builds as a user would. CDPATH leads to folders of the same names.
mkdir -p "$work/elsewhere/jobs/local"
cd "$folder"
# The interposer's library is made by a custom command, and a header by a custom target.
CDPATH=$work/elsewhere OMP_NUM_THREADS=1 HALOCLINE_BUILD_TARGETS='halocline halocline_mpi app_record_test comm_interpose_finalize' jobs/local/build.sh release \
  -DHALOCLINE_BUILD_TESTS=ON -DHALOCLINE_BUILD_BENCHMARKS=OFF -DCMAKE_CXX_FLAGS_RELEASE='-O0 -DNDEBUG' ||
  fail "it does not build"
source jobs/local/env.sh
build/release/app/test/app_record_test --gtest_brief=1 || fail "a test fails"
HALOCLINE_MPI=engine mpirun -n 2 build/release/lib/comm/interpose/test/comm_interpose_finalize || fail "a test of the interposer fails"
mpirun -n 2 env LD_PRELOAD="$PWD/build/release/lib/libhalocline_mpi.so" build/release/app/halocline run --local 8 8 8 --steps 2 --output results/raw/a.jsonl ||
  fail "the program fails"
[[ ! -e $ran ]] || fail "a part of the folder's name was run"
jobs/local/diff-results.sh results/raw/a.jsonl "$PWD/results/raw/a.jsonl" >/dev/null || fail "diff-results.sh fails"
jobs/local/study.sh local --dry-run >/dev/null || fail "study.sh fails"

# CMake cannot use this folder: build.sh refuses it, in one line.
mkdir "$work/a;b"
cp -r CMakeLists.txt jobs "$work/a;b/"
rc=0; out=$(cd "$work/a;b" && jobs/local/build.sh release 2>&1) || rc=$?
[[ $rc == 2 && $out == "build.sh: the path "*"rename that folder" ]] || fail "a ';' is not refused: $out"
echo "odd_folder.sh: all works in $folder"
