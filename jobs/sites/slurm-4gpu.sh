# shellcheck shell=bash disable=SC2034
# Example of a Slurm cluster: nodes with 64 cores and 4 GPUs, one rank for each GPU. Copy it and fill in what is your site's.
# A site file is sourced twice: on the login node, where what it exports is what sbatch goes by
#   source jobs/sites/slurm-4gpu.sh && sbatch jobs/slurm/weak.sbatch
# and in the job, where jobs/studies/run.sh reads nodes (how many there are), ranks_per_node, memory (of the fields: host or device;
# device takes the program of build/release-cuda), launcher, and calls launch. Options of sbatch override what is exported.
HALOCLINE_SITE=$(realpath -- "${BASH_SOURCE[0]}"); export HALOCLINE_SITE
export SBATCH_ACCOUNT=myproject SBATCH_PARTITION=gpu SBATCH_GPUS_PER_NODE=4 SBATCH_EXCLUSIVE=
if command -v module >/dev/null; then module load gcc cuda openmpi; fi
export OMP_PROC_BIND=close OMP_PLACES=cores

nodes=${SLURM_JOB_NUM_NODES:-} ranks_per_node=4 memory=device launcher=srun

# launch NODES RANKS_PER_NODE COMMAND...: on the first nodes of the allocation. All ranks of a node see all of its GPUs and choose by
# their number there: GPUs that are hidden from others (--gpus-per-task) cannot read each other's memory. 64: cores, of each one
# hardware thread.
launch() {
  local count=$1 ranks=$2; shift 2
  srun --nodes="$count" --ntasks=$((count * ranks)) --ntasks-per-node="$ranks" --cpus-per-task=$((64 / ranks)) \
    --threads-per-core=1 --cpu-bind=cores --mpi=pmix "$@"
}
