# shellcheck shell=bash disable=SC2034
# Describes a PBS cluster of CPUs: nodes with 128 cores and 256 GiB. Copy this example and fill in
# your site's values. slurm-4gpu.sh explains site files.
#   source jobs/sites/pbs-cpu.sh && jobs/studies/run.sh weak --dry-run --max-nodes 64
#   qsub -A myproject -q normal -l select=64:ncpus=128:mpiprocs=128 -V -v STUDY=weak jobs/pbs/study.pbs
HALOCLINE_SITE=$(realpath -- "${BASH_SOURCE[0]}"); export HALOCLINE_SITE
if command -v module >/dev/null; then module load gcc openmpi; fi
export OMP_PROC_BIND=close OMP_PLACES=cores

cores=128 nodes='' ranks_per_node=32 memory=host node_gib=240 launcher=mpirun
if [[ -n ${PBS_NODEFILE:-} ]]; then nodes=$(sort -u "$PBS_NODEFILE" | wc -l); fi

# launch NODES RANKS_PER_NODE COMMAND...: uses the first nodes of the allocation, with Open MPI.
launch() {
  local count=$1 ranks=$2; shift 2
  mpirun -n $((count * ranks)) --map-by "ppr:$ranks:node:PE=$((cores / ranks))" --bind-to core "$@"
}
