#!/usr/bin/env bash
# Measures programs with build/release/lib/libhalocline_mpi.so in front of their MPI.
#   jobs/local/interpose.sh [--quick]       --quick: few samples, for a draft in results/raw/interpose/
# Builds the library and measures a model of this machine on two ranks. Then it measures:
# - packs beside loops by hand
# - calls that are passed on to the MPI
# - messages of derived types and of application patterns between two ranks, one way and both ways at
# once, with the library and without it
# - the two example programs, with the library and without it, in turns
# Writes tables and plots to results/mine/interpose/. Raw results stay in results/raw/interpose/.
# Exit codes: 0, 1 if a row is not verified, else that of the command that failed.
set -euo pipefail
# shellcheck source=jobs/local/script.sh
source "$(dirname "$0")/script.sh"
cd "$(dirname "$0")/../.."
quick=()
case ${1:-} in
  '') ;;
  --quick) quick=(--quick) ;;
  *) echo "interpose.sh: no argument is called '$1': --help tells the rest" >&2; exit 2 ;;
esac
source jobs/local/env.sh
source jobs/local/deps.sh
options=(-DHALOCLINE_BUILD_BENCHMARKS=ON)
[[ -e build/release/CMakeCache.txt ]] || options+=(-DHALOCLINE_BUILD_TESTS=OFF)
jobs/local/build.sh release "${options[@]}" >&2
install_reports >&2

raw=results/raw/interpose library=$PWD/build/release/lib/libhalocline_mpi.so
mkdir -p "$raw"
export HALOCLINE_MODEL=$PWD/$raw/model.json
mpirun -n 2 build/release/app/halocline calibrate >&2

code=0
# measure NAME RANKS PROGRAM ARGUMENT...: runs a program with the library in front. Writes a line of
# provenance and the rows.
measure() {
  local file=$raw/$1.jsonl ranks=$2 rc=0; shift 2
  results/tables.py provenance debian "jobs/local/interpose.sh${quick[*]:+ ${quick[*]}}" >"$file"
  mpirun -n "$ranks" env LD_PRELOAD="$library" "$@" --json "${quick[@]}" >>"$file" || rc=$?
  [[ $rc -le 1 ]] || { echo "interpose.sh: nothing was measured (exit code $rc of $1)" >&2; exit "$rc"; }
  [[ $rc == 0 ]] || code=1
}
measure calls 1 build/release/lib/dtype/bench/bench_dtype --group=calls
measure packs 1 build/release/lib/dtype/bench/bench_dtype --group=table1 --mode=interposed
measure messages 2 build/release/lib/comm/bench/bench_messages --groups=interposed
measure both-ways 2 build/release/lib/comm/bench/bench_messages --groups=both-ways
measure patterns 2 build/release/lib/comm/bench/bench_messages --groups=patterns
measure plain 2 build/release/lib/comm/bench/bench_messages --groups=plain

# Builds and starts the examples as their sources explain.
examples=lib/comm/interpose/examples
for language in c f90; do
  compiler=mpicc; [[ $language == c ]] || compiler=mpifort
  if ! "$compiler" -O2 "$examples/pack_halo.$language" -o "$raw/pack_halo_$language" 2>"$raw/compiler.log"; then
    echo "interpose.sh: $compiler cannot compile pack_halo.$language (see $raw/compiler.log): left out" >&2
    rm -f "$raw/halo-$language"-*
    continue
  fi
  rm -f "$raw/halo-$language"-*
  for turn in 1 2 3 4 5; do
    mpirun -n 2 "$raw/pack_halo_$language" >"$raw/halo-$language-without-$turn.txt"
    mpirun -n 2 env LD_PRELOAD="$library" "$raw/pack_halo_$language" >"$raw/halo-$language-with-$turn.txt"
  done
done

if [[ ${#quick[@]} -gt 0 ]]; then results/interpose.py "$raw" "$raw"; else results/interpose.py "$raw"; fi
exit "$code"
