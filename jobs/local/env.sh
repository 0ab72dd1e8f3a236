# shellcheck shell=bash
# Sets what Open MPI needs on a workstation or in a container, as root or not. Sourced by the local
# scripts. Variables that the caller has set keep their values. Batch jobs on a cluster do not use
# this file.
export OMPI_ALLOW_RUN_AS_ROOT="${OMPI_ALLOW_RUN_AS_ROOT:-1}"
export OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="${OMPI_ALLOW_RUN_AS_ROOT_CONFIRM:-1}"
# More ranks than cores are fine for correctness; ranks then yield instead of spinning.
export OMPI_MCA_rmaps_base_oversubscribe="${OMPI_MCA_rmaps_base_oversubscribe:-1}"
export PRTE_MCA_rmaps_default_mapping_policy="${PRTE_MCA_rmaps_default_mapping_policy:-:oversubscribe}"
