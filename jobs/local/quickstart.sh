#!/usr/bin/env bash
# Leads from a clean clone to the main job: installs what is missing, builds, runs the mini-app,
# compares our exchange with the vendor MPI's, and draws a picture of magnetohydrodynamics. Each exchange is verified before it is timed. On a
# fresh Debian 12, as root, nothing else is needed.
#   jobs/local/quickstart.sh [RANKS]     default: 2
set -euo pipefail
# shellcheck source=jobs/local/script.sh
source "$(dirname "$0")/script.sh"
cd "$(dirname "$0")/../.."
case ${1:-2} in *[!0-9]*|0) wrong_use "$1 is no number of ranks" ;; esac
ranks=${1:-2}
source jobs/local/env.sh
# A new build leaves out the tests, and compiles several sources as one, which takes half of the
# time. A build that is there keeps its options.
options=(-DHALOCLINE_BUILD_TESTS=OFF -DHALOCLINE_BUILD_BENCHMARKS=OFF -DCMAKE_UNITY_BUILD=ON)
[[ -e build/release/CMakeCache.txt ]] && options=()
jobs/local/build.sh release "${options[@]}"
for command in run compare; do
  printf '\n== mpirun -n %s build/release/app/halocline %s --config configs/quickstart.toml\n' "$ranks" "$command"
  mpirun -n "$ranks" build/release/app/halocline "$command" --config configs/quickstart.toml
done
printf '\n== mpirun -n %s build/release/app/halocline run --config configs/mhd-quickstart.toml\n' "$ranks"
mpirun -n "$ranks" build/release/app/halocline run --config configs/mhd-quickstart.toml | tee build/mhd-quickstart.txt
folder=$(sed -n 's/^writes to //p' build/mhd-quickstart.txt)
cat <<END

You have now:
  $folder/slice-az-z-00000100.png
                                             a picture: the magnetic field of decaying turbulence
  $folder/timeseries.csv
                                             its energies over time
  build/release/app/halocline                the program: --help shows its commands
  build/release/lib/libhalocline_mpi.so      for programs of your own, by LD_PRELOAD
In a new shell, first run: source jobs/local/env.sh
README.md says what to do next.
END
