# shellcheck shell=bash disable=SC2034
# Describes a Slurm cluster: nodes with 64 cores and 4 GPUs, one rank for each GPU. Copy this
# example and fill in your site's values. A site file is sourced twice. On the login node, its
# exports are the options of sbatch:
#   source jobs/sites/slurm-4gpu.sh && sbatch jobs/slurm/study.sbatch weak
# In the job, jobs/studies/run.sh reads these variables and calls launch: nodes (their number),
# ranks_per_node, memory (host or device, for the fields), launcher. With device it starts the
# program of build/release-cuda. Options of sbatch override exports.
HALOCLINE_SITE=$(realpath -- "${BASH_SOURCE[0]}"); export HALOCLINE_SITE
export SBATCH_ACCOUNT=myproject SBATCH_PARTITION=gpu SBATCH_GPUS_PER_NODE=4 SBATCH_EXCLUSIVE=
if command -v module >/dev/null; then module load gcc cuda openmpi; fi
export OMP_PROC_BIND=close OMP_PLACES=cores

nodes=${SLURM_JOB_NUM_NODES:-} ranks_per_node=4 memory=device launcher=srun

# launch NODES RANKS_PER_NODE COMMAND...: uses the first nodes of the allocation. All ranks of a
# node see all of its GPUs and choose by their number on the node. With --gpus-per-task GPUs would
# be hidden from other ranks, and could not read each other's memory. 64 is the number of cores;
# ranks use one hardware thread of each.
launch() {
  local count=$1 ranks=$2; shift 2
  srun --nodes="$count" --ntasks=$((count * ranks)) --ntasks-per-node="$ranks" --cpus-per-task=$((64 / ranks)) \
    --threads-per-core=1 --cpu-bind=cores --mpi=pmix "$@"
}
