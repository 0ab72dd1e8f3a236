#!/usr/bin/env bash
# Builds the benchmarks and runs groups of them: our packing beside the loop by hand, MPI_Pack and
# memcpy. Every row is verified before it is timed. Exit code 1 if a row is not verified.
#   jobs/local/bench.sh                                     lists the groups
#   jobs/local/bench.sh NAME... [--only CASE] [--json] [FLAG...]
#   jobs/local/bench.sh mhd [--only CASE] [--json] [--quick]       substeps of magnetohydrodynamics
#   jobs/local/bench.sh stencil [--only CASE] [--json] [--quick]   substeps of heat
# CASE is a name or a pattern such as '3d-*'. --json: one JSON object per row on stdout and nothing
# else; the table is on stderr. Other flags are passed to bench_dtype, see its --help: --quick (few
# samples), --points=N (edge of the block in groups halo and copy), --mode=MODE (how ours packs:
# segments, threads, or interposed, through MPI_Pack).
set -euo pipefail
# shellcheck source=jobs/local/script.sh
source "$(dirname "$0")/script.sh"
cd "$(dirname "$0")/../.."
flags=() program=lib/dtype/bench/bench_dtype
[[ ${1-} != mhd && ${1-} != stencil ]] || { program=app/bench/bench_$1; shift; set -- substep "$@"; }
while [[ $# -gt 0 ]]; do
  case $1 in
    -h|--help) header; exit 0 ;;
    --only) [[ $# -ge 2 ]] || { echo "bench.sh: --only needs the name of a case" >&2; exit 2; }; flags+=("--only=$2"); shift ;;
    --*) flags+=("$1") ;;
    *) flags+=("--group=$1") ;;
  esac
  shift
done
[[ ${#flags[@]} -gt 0 ]] || flags=(--list)

source jobs/local/env.sh
export OMP_WAIT_POLICY=passive  # threads that wait would take their core from what is timed next
# A new build leaves out the tests; a build that has them keeps them.
options=(-DHALOCLINE_BUILD_BENCHMARKS=ON)
[[ -e build/release/CMakeCache.txt ]] || options+=(-DHALOCLINE_BUILD_TESTS=OFF)
jobs/local/build.sh release "${options[@]}" >&2
exec mpirun -n 1 "build/release/$program" "${flags[@]}"
