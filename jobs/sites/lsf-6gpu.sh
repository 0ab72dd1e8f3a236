# shellcheck shell=bash disable=SC2034
# Describes an LSF machine with jsrun, as Summit was: nodes with 42 cores for jobs and 6 GPUs, one
# rank for each GPU. Copy this example and fill in your site's values. slurm-4gpu.sh explains site
# files.
#   source jobs/sites/lsf-6gpu.sh && STUDY=weak bsub < jobs/lsf/study.lsf
HALOCLINE_SITE=$(realpath -- "${BASH_SOURCE[0]}"); export HALOCLINE_SITE
export LSB_DEFAULTPROJECT=myproject LSB_DEFAULTQUEUE=batch
if command -v module >/dev/null; then module load gcc cuda spectrum-mpi; fi
export OMP_PROC_BIND=close OMP_PLACES=cores

nodes=
if [[ -n ${LSB_DJOB_HOSTFILE:-} ]]; then  # a line for each core; the job's script runs on a node without ranks
  nodes=$(sort -u "$LSB_DJOB_HOSTFILE" | grep -cvE '^(batch|login)' || true)
fi
ranks_per_node=6 memory=device launcher=jsrun

# launch NODES RANKS_PER_NODE COMMAND...: makes one resource set of a whole node, so that its ranks
# can read each other's GPUs. Each rank has its share of the cores, in their order, and chooses its
# GPU by its number on the node.
launch() {
  local count=$1 ranks=$2 gpu=(); shift 2
  [[ $memory != device ]] || gpu=(--smpiargs="-gpu")
  jsrun -n "$count" -r 1 -a "$ranks" -c 42 -g 6 -b packed:$((42 / ranks)) -d packed -l gpu-cpu "${gpu[@]}" "$@"
}
