# shellcheck shell=bash disable=SC2034
# Describes a Slurm cluster of CPUs: nodes with 2 x 64 cores and 256 GiB, one rank for four cores.
# Copy this example and fill in your site's values. slurm-4gpu.sh explains site files.
#   source jobs/sites/slurm-cpu.sh && jobs/studies/run.sh weak --dry-run --max-nodes 64
#   sbatch -N 64 jobs/slurm/study.sbatch weak
HALOCLINE_SITE=$(realpath -- "${BASH_SOURCE[0]}"); export HALOCLINE_SITE
export SBATCH_ACCOUNT=myproject SBATCH_PARTITION=standard SBATCH_EXCLUSIVE=
if command -v module >/dev/null; then module load gcc openmpi; fi
export OMP_PROC_BIND=close OMP_PLACES=cores

# node_gib: memory of a node that jobs get, in GiB. The dry run refuses points that need more.
cores=128 nodes=${SLURM_JOB_NUM_NODES:-} ranks_per_node=32 memory=host node_gib=240 launcher=srun

# launch NODES RANKS_PER_NODE COMMAND...: uses the first nodes of the allocation; the ranks of a
# node share its cores.
launch() {
  local count=$1 ranks=$2; shift 2
  srun --nodes="$count" --ntasks=$((count * ranks)) --ntasks-per-node="$ranks" --cpus-per-task=$((cores / ranks)) \
    --threads-per-core=1 --cpu-bind=cores --mpi=pmix "$@"
}
