#!/usr/bin/env bash
# Runs leaks.py with a library that was built with the address sanitizer. Fails if memory of the
# library leaks, or memory of whatever library with each plan.
#   check_leaks.sh LIBRARY SOURCE_DIR WORK_DIR MPIEXEC COMPILER
# Exit code 77: mpi4py and numpy are not installed in .deps/python.
set -euo pipefail
# shellcheck source=jobs/local/script.sh
source "$(dirname "$0")/../../../../jobs/local/script.sh"
library=$1 source=$2 work=$3 mpiexec=$4 compiler=$5
python=$source/.deps/python/bin/python3
[[ -x $python ]] || { echo "there is no .deps/python: jobs/local/test.sh installs it"; exit 77; }
asan=$(realpath "$("$compiler" -print-file-name=libasan.so)")
rm -rf "$work"; mkdir -p "$work"; cd "$work"  # the sanitizer's options have no room for a path with a colon
export HALOCLINE_LIBRARY=$library PYTHONPATH=$source/lib/comm/python PYTHONDONTWRITEBYTECODE=1 PYTHONMALLOC=malloc

# Prints leaks of the library, and those of 500 objects and more, at most five. Of each kind, leaks.py
# makes as many. MPI leaks some 1000 strings when it starts: `known` has those. Suppressions cannot do
# this: the frames of Python below the library's would match them.
find_leaks() {
  awk -v RS= '
    match($0, /leak of [0-9]+ byte\(s\) in [0-9]+ object/) {
      kind = substr($0, RSTART, RLENGTH); count = kind; sub(/.* in /, "", count)
      if (FILENAME == "known") { is_known[kind] = 1; next }
      stack = $0; gsub(/ in [^\n]*/, "", stack)  # functions alone: a path may have the name, too
      if (stack !~ /halocline/ && (count + 0 < 500 || kind in is_known)) next
      print $0 "\n"
      if (++shown == 5) exit
    }' known leaks.*
}

# run_plans RANKS [WORD]: runs leaks.py. Each rank writes its leaks to a file: Python, numpy and MPI
# always have some, so they do not fail the program. Other errors do. lsan_mpi.cpp explains use_tls.
run_plans() {
  rm -f leaks.*; touch known
  ASAN_OPTIONS=detect_leaks=1 \
    LSAN_OPTIONS="use_tls=0:exitcode=0:abort_on_error=1:log_path=leaks:stack_trace_format='    #%n %f in %S'" \
    "$mpiexec" -n "$1" env LD_PRELOAD="$asan" "$python" "$source/lib/comm/python/test/leaks.py" "${@:2}" ||
    { find_leaks; grep -h -A 40 'ERROR: AddressSanitizer' leaks.*; exit 1; }
  local reports; reports=$({ grep -l '^SUMMARY: AddressSanitizer: .* leaked' leaks.* || true; } | wc -l)
  [[ $reports == "$1" ]] || { cat leaks.*; echo "the leak sanitizer reported on $reports of $1 ranks"; exit 1; } >&2
}

run_plans 1 nothing
cat leaks.* >known
for ranks in 1 2; do
  run_plans "$ranks"
  found=$(find_leaks)
  [[ -z $found ]] || { printf 'on %s ranks, memory leaked:\n%s\n' "$ranks" "$found"; exit 1; }
done
# Communicators of plans that nobody frees are lost: they are found.
run_plans 1 lose
[[ -n $(find_leaks) ]] || { echo "the test does not see leaks"; exit 1; }
rm -rf "$work"
