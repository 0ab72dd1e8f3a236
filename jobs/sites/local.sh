# shellcheck shell=bash disable=SC2034
# Describes this machine alone: mpirun, one rank for each core, fields in host memory.
# jobs/local/study.sh uses it. slurm-4gpu.sh explains site files.
HALOCLINE_SITE=$(realpath -- "${BASH_SOURCE[0]}"); export HALOCLINE_SITE
# shellcheck source=jobs/local/env.sh
source "$(dirname "$HALOCLINE_SITE")/../local/env.sh"
export OMP_WAIT_POLICY=passive  # threads that wait would take their core from other ranks

nodes=1 ranks_per_node=$(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc) memory=host launcher=mpirun
launch() {
  local ranks=$(($1 * $2)); shift 2
  mpirun -n "$ranks" "$@"
}
