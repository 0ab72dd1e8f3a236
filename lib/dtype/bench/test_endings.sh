#!/usr/bin/env bash
# Tests how a benchmark program ends: exit codes, groups, patterns, JSON, Google Benchmark's flags.
#   test_endings.sh BENCH_DTYPE BENCH_DEVICE
set -uo pipefail
bench=$1 failed=0 file=$(mktemp)
trap 'rm -f "$file"' EXIT
# ends CODE TEXT ARGUMENT...: checks the exit code, and that stdout or stderr has TEXT.
ends() {
  local code=0 out; out=$("$bench" "${@:3}" 2>&1) || code=$?
  [[ $code == "$1" && $out == *"$2"* ]] || { echo "FAILED: '${*:3}' ends with $code, not $1, or without '$2':"$'\n'"$out"; failed=1; }
}
ends 0 reconstruct --list
ends 0 --groups --help
ends 2 'see --help' --group=none
ends 2 "no case is called 'none'" --smoke --group=commit --only=none
ends 2 'see --help' --points=2
ends 2 '--mode=segments is for' --smoke --group=copy --mode=segments
ends 0 $'\n2 rows, 0 not verified' --smoke --group=commit --only='indexed-*'
ends 0 $'\n2 rows, 0 not verified' --smoke --groups=table1,patterns --group=table1 --only='contig-[18]'
ends 0 $'\n1 rows, 0 not verified' --smoke --group=commit --only=indexed-regular --benchmark_min_warmup_time=0.01
ends 2 'start with LD_PRELOAD' --smoke --group=table1 --mode=interposed
all=$("$bench" --smoke --group=halo --mode=segments 2>&1)
[[ $all == *all-26-one-by-one* && $all != *all-26-fused* ]] || { echo "FAILED: --mode=segments has rows of another mode:"$'\n'"$all"; failed=1; }
ends 2 'see --help' --benchmark_none=1
ends 2 'see --help' --benchmark_out_format=none
ends 2 'use json' --benchmark_out_format=csv
ends 2 'no case is left' --smoke --group=commit --benchmark_filter=none
ends 3 'cannot be written' --smoke --group=commit --benchmark_out=/dev/null/none
ends 0 commit/indexed-regular/ --group=commit --benchmark_list_tests
ends 0 indexed-regular_mean --smoke --group=commit --benchmark_filter=indexed-regular --benchmark_repetitions=2
ends 0 $'\n1 rows, 0 not verified' --smoke --group=commit --benchmark_filter=indexed-regular --benchmark_out="$file"
awk -F'[:,]' '/"mpi"/ {mpi = 1} /"real_time"/ {time = $2} /"total_ns"/ {total = $2}
  END {exit !(mpi && total > 0 && time / total > 0.999 && time / total < 1.001)}' "$file" ||
  { echo "FAILED: --benchmark_out lacks the MPI, or its time is not ours:"; cat "$file"; failed=1; }
code=0; none=$(env -u HALOCLINE_DEVICE CUDA_VISIBLE_DEVICES= "$2" --smoke 2>&1) || code=$?
[[ $code == 77 && $none == *'nothing to measure'* ]] || { echo "FAILED: $2 without a device ends with $code, not 77:"$'\n'"$none"; failed=1; }
code=0; "$bench" --list >/dev/full 2>&1 || code=$?
[[ $code == 3 ]] || { echo "FAILED: --list to a full disk ends with $code, not 3"; failed=1; }
rows=$("$bench" --smoke --group=table1 --only=flash-io --json 2>/dev/null)
for text in '{"group":"table1","case":"flash-io","bytes":' '"pack_ns":' '"pack_p10_ns":' '"pack_vs_hand":' '"verified":true' '"mpi":'; do
  [[ $rows == *"$text"* ]] || { echo "FAILED: no $text in the JSON:"$'\n'"$rows"; failed=1; }
done
exit "$failed"
