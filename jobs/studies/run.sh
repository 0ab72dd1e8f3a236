#!/usr/bin/env bash
# Runs the points of a study that are not done yet, inside an allocation or on this machine.
#   jobs/studies/run.sh STUDY [--dry-run] [--max-nodes N]     STUDY: jobs/studies/STUDY.sh, or the path of such a file
# --dry-run lists each point: if it is done, nodes, ranks, GiB a node (if the program is built),
# minutes, node-hours and command. It takes no allocation. Exit code 2 if a node has less memory
# than a point needs ($node_gib of the site). --max-nodes leaves out points with more nodes.
#
# Results go to results/raw/STUDY. Each point has its records POINT.jsonl (calibrate: the model
# POINT.json) and its output POINT.log. POINT.jsonl exists only if the point has finished and is
# verified; otherwise there is POINT.failed.jsonl. study.json lists all points. session-TIME.txt
# describes the machine of each session. A point that needs more nodes than there are is left for a
# larger allocation.
#
# At the end results/study.py makes tables and plots of all results, in results/mine/STUDY. If a
# package for that is missing, this script ends before it measures.
#
# $HALOCLINE_SITE: name of a file in jobs/sites, or the path of one. $HALOCLINE_BINARY: the program,
# if it is not in build/. $HALOCLINE_CONFIG: a config instead of the study's, for example with small
# grids. Then the results are those of study draft-STUDY.
#
# Exit code: 0; else that of the first point that failed (1 verification failed, 2 bad input, 3
# environment). If a signal ended it: 128 plus the signal; the same command again does the rest.
set -euo pipefail
# shellcheck source=jobs/local/script.sh
source "$(dirname "$0")/../local/script.sh"
usage() { header; exit "$1"; }
bad_input() { echo "run.sh: $*" >&2; exit 2; }
cannot() { echo "run.sh: $*" >&2; exit 3; }

study='' dry_run='' max_nodes=
while [[ $# -gt 0 ]]; do
  argument=$1; shift
  case $argument in
    -h|--help) usage 0 ;;
    --dry-run) dry_run=yes ;;
    --max-nodes)
      [[ ${1:-} =~ ^[1-9][0-9]*$ ]] || bad_input "--max-nodes takes a number of nodes, not '${1:-}'"
      max_nodes=$1; shift ;;
    -*) bad_input "there is no option '$argument' (--help tells)" ;;
    *) [[ -z $study ]] || bad_input "one study at a time, not '$study' and '$argument'"; study=$argument ;;
  esac
done
[[ -n $study ]] || usage 2 >&2
[[ $study != */* ]] || study=$(realpath -- "$study")
site=${HALOCLINE_SITE:-}
[[ $site != */* ]] || site=$(realpath -- "$site")
root=$(realpath -- "$(dirname "$0")/../..")
# Makes paths that are relative to the caller's folder independent of it.
[[ ${HALOCLINE_BINARY:-} != */* ]] || HALOCLINE_BINARY=$(realpath --no-symlinks -- "$HALOCLINE_BINARY")
for variable in HALOCLINE_CONFIG HALOCLINE_MODEL; do
  [[ ${!variable:-} != */* || ! -e ${!variable} ]] || printf -v "$variable" %s "$(realpath --no-symlinks --relative-base="$root" -- "${!variable}")"
done
cd "$root"

# list FOLDER: prints the names that may be given, in one line. run.sh is no study.
list() { local names; names=$(cd "jobs/$1" && printf '%s\n' *.sh | sed -n '/^run\.sh$/d; s/\.sh$//p'); echo "${names//$'\n'/, }"; }
[[ $study == */* ]] || study=jobs/studies/$study.sh
[[ -f $study && -r $study && $study != jobs/studies/run.sh ]] || bad_input "there is no study $study: use $(list studies), or the path of one"
[[ -n $site ]] || bad_input "HALOCLINE_SITE is not set: source one of jobs/sites ($(list sites)) before the job is submitted"
[[ $site == */* ]] || site=jobs/sites/$site.sh
[[ -f $site && -r $site ]] || bad_input "there is no site $site: set HALOCLINE_SITE to $(list sites), or to the path of one"

# A site sets the number of nodes (nodes), the share of a study (ranks_per_node, memory), and the
# start of programs (launcher, launch). node_gib: memory of a node in GiB, if the site sets it.
nodes='' ranks_per_node='' memory='' launcher='' node_gib=
set +u  # modules read what is not set
trap 'echo "run.sh: site $site ended with exit code $?: see what it says above, or run bash -ex $site" >&2; exit 3' EXIT
# shellcheck source=/dev/null
source "$site"
trap - EXIT
set -u
[[ $ranks_per_node =~ ^[1-9][0-9]*$ && $memory =~ ^(host|device)$ && -n $launcher && $(declare -F launch) ]] ||
  bad_input "$site has to set ranks_per_node, memory (host or device) and launcher, and to define launch"
[[ -z $node_gib || $node_gib =~ ^[0-9]+(\.[0-9]+)?$ ]] || bad_input "$site has to set node_gib to a number of GiB, not '$node_gib'"
site=$(basename "$site" .sh)
if [[ -n ${HALOCLINE_BINARY:-} ]]; then
  program=$HALOCLINE_BINARY
else
  program=build/release/app/halocline
  [[ $memory != device ]] || program=build/release-cuda/app/halocline
fi

# These functions are called by a study: group NAME weak|strong|none TITLE; point GROUP NODES
# RANKS_PER_NODE SUBCOMMAND [FLAG...]
title='' config='' point_minutes=3 groups=() points=()
declare -A group_titles=() group_scaling=() point_group=() point_nodes=() point_ranks=() point_line=()
group() {
  [[ $# == 3 && $2 =~ ^(weak|strong|none)$ ]] || bad_input "$study: group takes NAME weak|strong|none TITLE, not '$*'"
  groups+=("$1"); group_scaling[$1]=$2 group_titles[$1]="$3${HALOCLINE_CONFIG:+ (draft: the grid may be another)}"
}
point() {
  [[ -z ${HALOCLINE_CONFIG:-} || -z $config ]] || config=$HALOCLINE_CONFIG
  [[ $# -ge 4 && $2 =~ ^[1-9][0-9]*$ && $3 =~ ^[1-9][0-9]*$ && $4 =~ ^(compare|run|gather|calibrate)$ ]] ||
    bad_input "$study: point takes GROUP NODES RANKS_PER_NODE compare|run|gather|calibrate [FLAG...], not '$*'"
  [[ $4 == calibrate || -z ${HALOCLINE_MODEL:-} || -r $HALOCLINE_MODEL ]] ||
    bad_input "there is no model $HALOCLINE_MODEL (HALOCLINE_MODEL): run study calibrate first, or unset it"
  [[ -n ${group_scaling[$1]:-} ]] || bad_input "$study: there is no group '$1' for '$*'"
  local name=$1-$4-${2}x$3
  [[ -z ${point_line[$name]:-} ]] || bad_input "$study: two points are $name; put one of them into a group of its own"
  points+=("$name"); point_group[$name]=$1 point_nodes[$name]=$2 point_ranks[$name]=$3
  shift 3
  local line=("$@")
  [[ -z $config ]] || line=("$1" --config "$config" "${@:2}")
  point_line[$name]=${line[*]}
}
# shellcheck source=/dev/null
source "$study"
[[ -n $title && ${#points[@]} -gt 0 ]] || bad_input "$study has no title, or no points"
[[ -z $config || -r $config ]] || bad_input "there is no config $config for $study"
[[ $config != *[[:space:]]* ]] || bad_input "the config's path has a space ($config): give it another name"
name=$(basename "$study" .sh)
[[ -z ${HALOCLINE_CONFIG:-} ]] || name=draft-$name title="$title (draft)"
folder=results/raw/$name

result() { if [[ ${point_line[$1]} == calibrate* ]]; then echo "$folder/$1.json"; else echo "$folder/$1.jsonl"; fi; }
# header POINT: prints the first line of a log. A result belongs to a point only if this line is the
# same, hence the config, launch and model.
of_all=$({ [[ -z $config ]] || cat "$config"; declare -f launch; } | cksum)
of_model=$([[ ! -r ${HALOCLINE_MODEL:-} ]] || cksum <"$HALOCLINE_MODEL")
header() {
  local sum=${of_all%% *}
  [[ ${point_line[$1]} == calibrate* || -z $of_model ]] || sum+=-${of_model%% *}
  echo "# $site, ${point_nodes[$1]} x ${point_ranks[$1]} ranks: halocline ${point_line[$1]} [$sum]"
}
left_out=0 todo=() begun=() already=() larger=() failed=()
for point in "${points[@]}"; do
  if [[ -s $(result "$point") ]]; then
    logged=$(head -n1 "$folder/$point.log" 2>/dev/null) || true
    [[ $logged == "$(header "$point")" ]] ||
      bad_input "$(result "$point") is not of '$(header "$point")' (its log tells of what; [] sums config, launch and model): remove it, or move $folder away"
    already+=("$point")
  elif [[ -n $max_nodes && ${point_nodes[$point]} -gt $max_nodes ]]; then left_out=$((left_out + 1))
  elif [[ -n $nodes && ${point_nodes[$point]} -gt $nodes ]]; then larger+=("$point")
  elif [[ -e $folder/$point.log ]]; then begun+=("$point")
  else todo+=("$point"); fi
done
todo+=("${begun[@]}")  # a point that hangs does not come first again

# launch_arguments POINT RESULT: sets `arguments` to the arguments of launch.
arguments=()
launch_arguments() {
  local to=--output line
  [[ ${point_line[$1]} != calibrate* ]] || to=--model
  read -ra line <<<"${point_line[$1]}"
  arguments=("${point_nodes[$1]}" "${point_ranks[$1]}" "$program" "${line[@]}" "$to" "$2")
}
count=" node" ; [[ $nodes == 1 ]] || count=" nodes"
echo "== study $name: $title; site $site, ${nodes:-any number of}$count; $folder"
[[ ${#already[@]} == 0 ]] || echo "done already: ${already[*]}"
[[ $left_out == 0 ]] || echo "left out: $left_out points of more than $max_nodes nodes"
[[ ${#larger[@]} == 0 ]] || echo "left for a larger allocation: ${larger[*]}"
if [[ -n $dry_run ]]; then
  # Replaces the launcher by a function that prints the command.
  show() { echo "  $launcher $*"; }
  eval "$launcher() { show \"\$@\"; }"
  # node_memory POINT: sets `needed` to the GiB that a node needs, by the program's answer for one
  # rank; empty if unknown. A rank's share of --global counts as a cube.
  declare -A of_one_rank=()
  refusal=
  node_memory() {
    local line words told rc=0
    needed=
    [[ -x $program && -z $refusal && ${point_line[$1]} =~ ^(compare|run)\  && $memory == host ]] || return 0
    line=$(awk -v ranks=$((point_nodes[$1] * point_ranks[$1])) '{
      for (i = 1; i <= NF; ++i) if ($i == "--global") {
        edge = ($(i + 1) * $(i + 2) * $(i + 3) / ranks) ^ (1 / 3)
        $i = "--local"; $(i + 1) = $(i + 2) = $(i + 3) = int(edge + 0.999)
      }
      print }' <<<"${point_line[$1]}")
    if [[ -z ${of_one_rank[$line]+known} ]]; then
      read -ra words <<<"$line"
      # This keeps Open MPI from starting a daemon for one rank.
      told=$(OMPI_MCA_ess_singleton_isolated=1 "$program" "${words[@]}" --dry-run 2>&1) || rc=$?
      if [[ $rc != 0 ]]; then
        refusal=$(tail -n 1 <<<"$told")
        echo "run.sh: the memory of $1 is not known, nor is that of later points ($program ends with exit code $rc: $refusal):" \
          "build the program anew" >&2
      fi
      of_one_rank[$line]=$(sed -nE 's/.*a node needs ([0-9.]+) ([KMGT]iB).*/\1 \2/p' <<<"$told" |
        awk '{ split("KiB MiB GiB TiB", unit, " "); for (i in unit) if (unit[i] == $2) printf "%.6f", $1 * 1024 ^ (i - 3) }')
    fi
    [[ -z ${of_one_rank[$line]} ]] || needed=$(awk -v gib="${of_one_rank[$line]}" -v ranks="${point_ranks[$1]}" 'BEGIN { all = gib * ranks; printf(all < 0.1 ? "%.2g" : "%.1f", all) }')
  }
  hours() { awk -v minutes="$1" 'BEGIN { printf "%.1f", minutes / 60 }'; }
  code=0 minutes=0
  for point in "${points[@]}"; do
    count=${point_nodes[$point]}
    [[ -z $max_nodes || $count -le $max_nodes ]] || continue
    state='to do'
    [[ ! " ${already[*]} " == *" $point "* ]] || state='done'
    [[ ! " ${larger[*]} " == *" $point "* ]] || state="needs $count nodes"
    node_memory "$point"
    echo "$point: $state; nodes $count, ranks $((count * point_ranks[$point]))${needed:+, about $needed GiB a node}," \
      "$point_minutes minutes, $(hours $((point_minutes * count))) node-hours"
    if [[ $state == 'to do' ]]; then
      minutes=$((minutes + point_minutes * count))
      if [[ -n $needed && -n $node_gib && $(awk -v a="$needed" -v b="$node_gib" 'BEGIN { print (a > b) }') == 1 ]]; then
        echo "run.sh: $point needs about $needed GiB a node, and $site has $node_gib: use fewer ranks a node, fewer methods or a smaller grid" >&2
        code=2
      fi
    fi
    launch_arguments "$point" "$(result "$point")"
    launch "${arguments[@]}"
  done
  echo "== about $(hours "$minutes") node-hours to do, if each point takes $point_minutes minutes"
  exit "$code"
fi
[[ $nodes =~ ^[1-9][0-9]*$ ]] || bad_input "site $site sees no nodes: submit one of the batch scripts, or give --dry-run"
[[ -x $program ]] || cannot "there is no program $program: build it (README.md), or set HALOCLINE_BINARY"
mkdir -p "$folder" 2>/dev/null || true
[[ -d $folder && -w $folder ]] || bad_input "cannot write to $folder in $PWD: use a clone of your own"
exec 8>"$folder/.lock"
rc=0; flock --nonblock --conflict-exit-code 75 8 2>/dev/null || rc=$?  # anything else: a file system without locks
[[ $rc != 75 ]] || cannot "another session goes through study $name: wait for it (sbatch -d singleton, bsub -w 'ended(NAME)')"
locked=$rc
[[ $locked == 0 ]] || echo "run.sh: no locks in $folder: see to it that no other session goes through study $name" >&2
# A missing tool for the report is found now, not after hours of measuring.
if command -v python3 >/dev/null; then
  results/study.py --check || cannot "results/study.py does not run here (see above)"
else
  echo "run.sh: no report of this session (no python3 in PATH): run results/study.py $name where there is one" >&2
fi

text() { local escaped=${1//\\/\\\\}; printf '"%s"' "${escaped//\"/\\\"}"; }  # as JSON
write_study() {
  local separator='' item
  printf '{"schema": "halocline-study/1", "name": %s, "title": %s, "config": %s, "site": %s, "launcher": %s,\n "groups": [' \
    "$(text "$name")" "$(text "$title")" "$(text "$config")" "$(text "$site")" "$(text "$launcher")"
  for item in "${groups[@]}"; do
    printf '%s\n  {"name": %s, "title": %s, "scaling": "%s"}' "$separator" "$(text "$item")" "$(text "${group_titles[$item]}")" "${group_scaling[$item]}"
    separator=,
  done
  printf '],\n "points": ['; separator=
  for item in "${points[@]}"; do
    printf '%s\n  {"name": %s, "group": %s, "nodes": %d, "ranks": %d, "command": "%s"}' "$separator" "$(text "$item")" \
      "$(text "${point_group[$item]}")" "${point_nodes[$item]}" $((point_nodes[$item] * point_ranks[$item])) "${point_line[$item]%% *}"
    separator=,
  done
  printf ']}\n'
}
part=$folder/study.json.$$
trap 'rm -f "$part"' EXIT
write_study >"$part" || cannot "cannot write $part"
mv "$part" "$folder/study.json"

# run_launch LOG COMMAND...: calls launch in a process group of its own, so that a signal can end
# all of it. Sets rc.
child=''
run_launch() {
  local log=$1; shift
  set -m
  launch "$@" >>"$log" 2>&1 </dev/null 8>&- &  # a process that outlives the session does not hold its lock
  child=$!
  set +m
  rc=0; wait "$child" || rc=$?
  child=
}
# stop SIGNAL: ends the session if the scheduler's time is over, or a user stops it.
stop() {
  trap '' HUP INT TERM USR1 USR2
  if [[ -n $child ]]; then
    kill -TERM -- "-$child" 2>/dev/null || true
    wait "$child" 2>/dev/null || true
  fi
  echo "run.sh: stopped by SIG$1${point:+ in point $point}; the same command again runs what is left" >&2
  exit $((128 + $(kill -l "$1")))
}
for signal in HUP INT TERM USR1 USR2; do
  # shellcheck disable=SC2064  # which signal it is
  trap "stop $signal" "$signal"
done

# provenance: prints the facts of this session. Of the environment it shows what tunes a run, and no
# secrets.
provenance() {
  local revision
  revision=$(git rev-parse HEAD 2>/dev/null) || revision=unknown
  [[ $revision == unknown || -z $(git status --porcelain --untracked-files=no) ]] || revision+=" with changes"
  printf 'time: %s\nstudy: %s (%s)\nsite: %s\nnodes: %s\nrevision of the scripts: %s\nprogram: %s\n' \
    "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$name" "$title" "$site" "$nodes" "$revision" "$program"
  printf 'job: %s\nnode list: %s\nmodules: %s\n' "${SLURM_JOB_ID:-${LSB_JOBID:-${PBS_JOBID:-none}}}" \
    "${SLURM_JOB_NODELIST:-${LSB_MCPU_HOSTS:-${PBS_NODEFILE:+$(sort -u "$PBS_NODEFILE" | paste -sd,)}}}" "${LOADEDMODULES:-none}"
  printf '\n== environment\n'
  env | grep -E '^(SLURM_|SRUN_|LSB_|PBS_|OMPI_|PRTE_|I_MPI_|FI_|MPICH_|UCX_|OMP_|KOKKOS_|HALOCLINE_|CUDA_VISIBLE_DEVICES)' |
    grep -vE '^[A-Z0-9_]*(JWT|TOKEN|SECRET|PASSWORD|KEY)[A-Z0-9_]*=|^LSB_HOSTS=' | sort || true
  printf '\n== launch\n'; declare -f launch
  printf '\n== on a node: halocline info --json, lscpu, nvidia-smi -L\n'
}
code=0 point=
if [[ ${#todo[@]} -gt 0 ]]; then
  part=$folder/session-$(date -u +%Y%m%dT%H%M%SZ)-$$.txt
  session=$part
  provenance >"$session"
  run_launch "$session" 1 1 bash -c '"$1" info --json; lscpu; ! command -v nvidia-smi >/dev/null || nvidia-smi -L' bash "$program"
  [[ $rc == 0 ]] || echo "run.sh: what the nodes are is not known (exit code $rc, see $session)" >&2
  part=
fi
for point in "${todo[@]}"; do
  result=$(result "$point") log=$folder/$point.log
  [[ ! -s $result ]] || { echo "$point: done by somebody else meanwhile"; continue; }
  [[ $locked != 0 ]] || rm -f "$folder/.$point."*  # left by sessions that were killed
  rm -f "$folder/$point.failed.jsonl"
  part=$folder/.$point.$$
  launch_arguments "$point" "$part"
  header "$point" >"$log"
  begin=$SECONDS
  run_launch "$log" "${arguments[@]}"
  if [[ $rc == 0 && ! -s $part ]]; then echo "run.sh: $point wrote no results" >>"$log"; rc=3; fi
  if [[ $rc == 0 ]]; then
    mv "$part" "$result"
    echo "$point: done in $((SECONDS - begin)) s"
  else
    # The exit code is the launcher's, unless the program has reported an error.
    [[ $rc -le 3 ]] && grep -q '^halocline: ' "$log" || rc=3
    if [[ $rc == 1 && -s $part ]]; then mv "$part" "$folder/$point.failed.jsonl"; else rm -f "$part"; fi
    echo "# exit code $rc" >>"$log"
    [[ $code != 0 ]] || code=$rc
    failed+=("$point")
    reason=$(grep -m1 '^halocline: ' "$log") || reason="see $log"
    echo "$point: FAILED after $((SECONDS - begin)) s (exit code $rc): $reason"
  fi
  part=
done
point=
if command -v python3 >/dev/null && compgen -G "$folder/*-*x*.json*" >/dev/null; then
  rc=0; results/study.py "$name" || rc=$?
  [[ $rc == 0 || $code != 0 ]] || code=$rc
fi
[[ ${#failed[@]} == 0 ]] || echo "run.sh: ${#failed[@]} of ${#points[@]} points failed: ${failed[*]} (see $folder/POINT.log)" >&2
exit "$code"
