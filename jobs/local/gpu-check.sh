#!/usr/bin/env bash
# Tests and measures Halocline on a machine with a CUDA device. Ends within eight minutes.
#   gpu-check.sh [FOLDER]     default: results/raw/gpu-check; in a folder of gpu-pack.sh: gpu-check beside this script.
# Runs the programs of gpu-pack.sh. In the source tree it runs build/release-cuda with the mpirun in
# $PATH. FOLDER gets gpu-check.json (everything in one object), gpu-check.md (for people) and a log
# of each step.
# Exit code: 0, 1 if a step failed, 3 if nothing can be run here.
set -uo pipefail
# shellcheck source=jobs/local/script.sh
source "$(dirname "$0")/script.sh"
[[ $# -le 1 ]] || wrong_use "it takes one folder, not $*"
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=jobs/local/env.sh
source "$here/env.sh"
if [[ -d $here/bin ]]; then
  root=$here programs=$here/bin out=${1:-$here/gpu-check}
  export OPAL_PREFIX=$here/openmpi PATH=$here/openmpi/bin:$PATH LD_LIBRARY_PATH=$here/openmpi/lib:$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  revision=$(cat "$here/revision")
else
  root=$(cd "$here/../.." && pwd) build=${HALOCLINE_GPU_BUILD:-build/release-cuda}
  out=${1:-$root/results/raw/gpu-check} programs=$(mktemp -d)
  trap 'rm -rf "$programs"' EXIT
  ln -s "$root/$build"/{app/halocline,lib/dtype/test/dtype_device_packer,lib/dtype/bench/bench_device,lib/comm/bench/bench_messages,lib/comm/interpose/test/comm_interpose_device} "$programs/"
  revision=$(git -C "$root" rev-parse HEAD 2>/dev/null || echo unknown)
fi
command -v mpirun >/dev/null || { echo "gpu-check.sh: no mpirun in PATH: load an MPI, or use the folder of gpu-pack.sh" >&2; exit 3; }
[[ -x $programs/halocline ]] || { echo "gpu-check.sh: no $programs/halocline: run jobs/local/build.sh release-cuda first" >&2; exit 3; }
mkdir -p "$out" || exit 3
rm -f "$out"/*.log "$out"/*.jsonl "$out"/model.json "$out"/gpu-check.*
begin=$SECONDS budget=470 steps=() failed=0

# step NAME LIMIT-SECONDS COMMAND...: runs the command within the limit and the rest of the budget.
# Its output goes to NAME.log. NAME with a trailing "...": measures until the limit, which is no failure.
step() {
  local asked=$1 name=${1%...} limit=$2 start=$SECONDS code=0 said; shift 2
  local left=$((budget - (SECONDS - begin)))
  if ((left < 5)); then code=skipped; else
    timeout -k 5 "$((limit < left ? limit : left))" bash -c '"$@"' - "$@" >"$out/$name.log" 2>&1 || code=$?
  fi
  [[ $code == 124 && $asked == *... ]] && code="cut off"
  case $code in 0) said=ok ;; "cut off") said=$code ;; *) said="exit $code" failed=1 ;; esac
  steps+=("{\"step\": \"$name\", \"exit\": \"$code\", \"seconds\": $((SECONDS - start))}")
  printf '%-28s %-8s %4d s\n' "$name" "$said" "$((SECONDS - start))"
  [[ $code == 0 || $code == "cut off" ]] || tail -n 3 "$out/$name.log" 2>/dev/null | cut -c1-200 | sed 's/^/    /'
  [[ $code == 0 || $code == "cut off" ]]
}
run() { mpirun -n "$1" --bind-to none "${@:2}"; }

# Checks that each way of packed bytes gives the same state as the host.
same_state() {
  local ranks=$1 method=$2 expected found
  expected=$(run "$ranks" "$programs/halocline" run --config "$root/configs/correctness.toml" --quiet) || return
  found=$(run "$ranks" "$programs/halocline" run --config "$root/configs/correctness.toml" --quiet --memory device --methods "$method") || return
  echo "$method on $ranks ranks: device $found, host $expected"
  [[ -n $found && $found == "$expected" ]]
}

export -f run same_state  # timeout starts programs
export programs root
step info 60 run 1 "$programs/halocline" info || { echo "gpu-check.sh: the program does not start here, see $out/info.log" >&2; exit 3; }
grep -q '^device *none' "$out/info.log" && { echo "gpu-check.sh: no device: $(grep '^device' "$out/info.log")" >&2; exit 3; }
step packer 60 run 1 "$programs/dtype_device_packer" --types 20000
for ranks in 1 2; do
  for method in alltoallv alltoallv:one-shot alltoallv:staged; do
    step "state-$method-np$ranks" 30 same_state "$ranks" "$method"
  done
done
methods=alltoallv:one-shot,alltoallv:staged
# `shared` needs processes that can open each other's device memory.
is_possible() {
  local code=0
  timeout -k 5 30 bash -c 'run 2 "$@"' - "$programs/halocline" run --config "$root/configs/correctness.toml" --steps 1 --quiet \
    --memory device --methods shared >"$out/possible.log" 2>&1 || code=$?
  [[ $code == 0 ]] || grep -q 'is not possible' "$out/possible.log" || step possible 30 false
  return $code
}
is_possible && step state-shared-np2 30 same_state 2 shared && methods+=,shared
aware=$(grep -c '^gpu_aware_mpi *yes' "$out/info.log")
[[ $aware == 0 ]] || { step state-alltoallv:device-np2 30 same_state 2 alltoallv:device && methods+=,alltoallv:device; }
step halo 60 bash -c '"$1" --groups=halo,graph --quick --json >"$2" && test -s "$2"' - "$programs/bench_device" "$out/halo.jsonl"
if step calibrate 60 run 2 "$programs/halocline" calibrate --max-seconds 30 --model "$out/model.json"; then
  step messages... 60 bash -c 'run 2 "$1" --groups=fig9,fig11,host,long --quick --json --model="$2" >"$3" && test -s "$3"' - "$programs/bench_messages" "$out/model.json" "$out/messages.jsonl"
  step choice-64-np2 30 run 2 "$programs/halocline" compare --local 64 64 64 --memory device --model "$out/model.json" \
    --methods "alltoallv,$methods" --max-seconds 5 --output "$out/compare.jsonl"
fi
for points in 32 128 256; do
  step "compare-$points-np2" 40 run 2 "$programs/halocline" compare --local $points $points $points --memory device \
    --methods "$methods" --max-seconds 10 --output "$out/compare.jsonl"
done
# Counters of the first launch show which limit of the device slows the packing of a halo. Not every
# machine lets users read them.
profiler=$(command -v ncu || ls /usr/local/cuda/bin/ncu 2>/dev/null)
counters=gpu__time_duration.sum,dram__bytes_read.sum,dram__bytes_write.sum,lts__t_sectors_op_read.sum,lts__t_sectors_op_write.sum
counters+=,smsp__inst_executed.sum,smsp__inst_executed_pipe_adu.sum,idc__requests.sum,smsp__issue_active.avg.pct_of_peak_sustained_active
sections=(SpeedOfLight Occupancy WarpStateStats MemoryWorkloadAnalysis ComputeWorkloadAnalysis LaunchStats)
[[ -z $profiler ]] || for halo in pack-256 unpack-256; do
  step "limits-$halo" 30 "$profiler" --clock-control none --kernel-name regex:copy_kernel --launch-count 1 --kill yes \
    "${sections[@]/#/--section=}" --metrics "$counters" "$programs/bench_device" --groups=halo --quick --only="$halo"
done
# MPI asks the driver about each pointer. Answers such as "not of a device" are no errors.
sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null)
[[ -z $sanitizer ]] || step sanitizer 60 "$sanitizer" --report-api-errors no --error-exitcode 9 "$programs/dtype_device_packer" --types 200
# The MPI's own handling of device memory takes seconds for each exchange, so it comes last.
[[ $aware == 0 ]] || step vendor-16-np2... 60 run 2 "$programs/halocline" compare --local 16 16 16 --memory device --iterations 6 --warmup 0 \
  --max-seconds 40 --output "$out/compare.jsonl"
step bench... 60 bash -c '"$1" --groups=fig8,fig10,lists --quick --json >"$2" && test -s "$2"' - "$programs/bench_device" "$out/bench.jsonl"
# Tests messages through the interposer, in memory that the test can read, too. That includes the
# MPI's own handling.
step interposer-np1 150 env HALOCLINE_TEST_MEMORY=managed mpirun -n 1 --bind-to none "$programs/comm_interpose_device"

# Writes one object, whole or not at all.
lines() { [[ ! -e $1 ]] || paste -sd, "$1"; }
gpu=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -n1)
printf '{"schema": "halocline-gpu-check/1", "git": "%s", "time": "%s", "gpu": "%s", "seconds": %d,\n"steps": [%s],\n"bench": [%s],\n"messages": [%s],\n"compare": [%s],\n"model": %s}\n' \
  "$revision" "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$gpu" "$((SECONDS - begin))" "$(IFS=,; echo "${steps[*]}")" \
  "$(lines <(cat "$out"/{halo,bench}.jsonl 2>/dev/null))" "$(lines "$out/messages.jsonl")" "$(lines "$out/compare.jsonl")" \
  "$(cat "$out/model.json" 2>/dev/null || echo null)" >"$out/gpu-check.json.new" && mv "$out/gpu-check.json.new" "$out/gpu-check.json"
{
  echo "# gpu-check: ${gpu:-no nvidia-smi}, revision $revision"
  for log in info halo bench calibrate messages {choice-64,compare-32,compare-128,compare-256,vendor-16}-np2 \
             limits-{pack-256,unpack-256}; do
    [[ ! -s $out/$log.log ]] || printf '\n## %s\n\n```\n%s\n```\n' "$log" "$(cat "$out/$log.log")"
  done
} >"$out/gpu-check.md"
printf '== %d s, %s; %s\n' "$((SECONDS - begin))" "$([[ $failed == 0 ]] && echo "all steps ok" || echo "SOME STEPS FAILED")" "$out/gpu-check.json"
exit $failed
