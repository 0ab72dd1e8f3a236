#!/usr/bin/env bash
# Makes a folder of at most 60 MB for a machine that has a CUDA driver and nothing else.
#   jobs/local/gpu-pack.sh [FOLDER]     default: build/gpu-pack.
# On that machine, run FOLDER/gpu-check.sh. The folder gets the programs of build/release-cuda
# (jobs/local/build.sh release-cuda) and Open MPI of .deps/openmpi-cuda
# (jobs/local/openmpi-cuda.sh), stripped. It also gets the libraries that they need, except glibc
# and the driver.
set -euo pipefail
# shellcheck source=jobs/local/script.sh
source "$(dirname "$0")/script.sh"
cd "$(dirname "$0")/../.."
folder=${1:-build/gpu-pack} build=build/release-cuda mpi=.deps/openmpi-cuda limit_mb=60
fail() { echo "gpu-pack.sh: $*" >&2; exit 3; }
[[ $# -le 1 ]] || wrong_use "it takes one folder, not $*"
programs=(app/halocline lib/dtype/test/dtype_device_packer lib/dtype/bench/bench_device lib/comm/bench/bench_messages
  lib/comm/interpose/test/comm_interpose_device)
for program in "${programs[@]}"; do
  [[ -x $build/$program ]] || fail "no $build/$program: run jobs/local/build.sh release-cuda first"
done
[[ -e $mpi/.complete ]] || fail "no Open MPI in $mpi: run jobs/local/openmpi-cuda.sh first"
[[ ! -e $folder || -e $folder/gpu-check.sh ]] || fail "$folder is there and is not of this script: give another folder"

rm -rf "$folder"; mkdir -p "$folder"/{bin,lib,configs}
for program in "${programs[@]}"; do strip -o "$folder/bin/${program##*/}" "$build/$program"; done
cp -a "$mpi" "$folder/openmpi"
# Copies the libraries that the loader finds here. Leaves out glibc and the driver, which must be
# the other machine's, and the MPI, which is copied as a whole.
ldd "$folder"/bin/* | sed -n 's/^\t\([^ ]*\) => \(\/[^ ]*\) .*/\1 \2/p' | sort -u | while read -r name path; do
  case $name in
    libc.so.*|libm.so.*|libdl.so.*|libpthread.so.*|librt.so.*|ld-linux*|libcuda.so.*) continue ;;
  esac
  [[ -e $folder/openmpi/lib/$name ]] || cp -L "$path" "$folder/lib/$name"
done
# Libraries that only this machine's MPI needs are copied, too; they do no harm.
cp configs/correctness.toml "$folder/configs/"
cp jobs/local/gpu-check.sh jobs/local/script.sh jobs/local/env.sh "$folder/"
git rev-parse HEAD >"$folder/revision" 2>/dev/null || echo unknown >"$folder/revision"
megabytes=$(du -sm "$folder" | cut -f1)
[[ $megabytes -le $limit_mb ]] || fail "$folder has $megabytes MB, more than $limit_mb"
printf '== %s: %s MB; copy it to the machine with the device and run gpu-check.sh in it\n' "$folder" "$megabytes"
