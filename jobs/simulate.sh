#!/usr/bin/env bash
# Runs a simulation in jobs of limited time: each job goes on where the one before ended.
#   jobs/simulate.sh FOLDER [FLAG...]       FLAG: those of `halocline run`, such as --config FILE
# The first job begins in FOLDER. Later ones, with the same words, go on from its newest good
# checkpoint. Give --steps the step to reach, and --checkpoint-every for jobs that are killed.
# SIGTERM or SIGUSR1 ends the job after the step that is computed, with a checkpoint. So does the file
# FOLDER/STOP, but no job follows then.
#
# $HALOCLINE_SITE: name of a file in jobs/sites, or the path of one; default: local. All nodes of the
# allocation are used. $HALOCLINE_BINARY: the program, if it is not in build/.
#
# Exit code: 0 if the last step is done, or STOP ended the run; 4 if a job has to follow; 3 if a signal
# came before there was a new checkpoint; else that of the program.
set -euo pipefail
# shellcheck source=jobs/local/script.sh
source "$(dirname "$0")/local/script.sh"
[[ $# -ge 1 && $1 != -* ]] || wrong_use "the first word is the output folder"
root=$(realpath -- "$(dirname "$0")/..")
site=${HALOCLINE_SITE:-local}
[[ $site == */* ]] || site=$root/jobs/sites/$site.sh
[[ -r $site ]] || wrong_use "there is no site $site (HALOCLINE_SITE)"
nodes='' ranks_per_node='' memory=''
set +u  # modules read what is not set
# shellcheck source=/dev/null
source "$site"
set -u
# A site may have variables of these names, too.
folder=$1; shift
root=$(realpath -- "$(dirname "$script")/..")
preset=release; [[ $memory != device ]] || preset=release-cuda
program=${HALOCLINE_BINARY:-$root/build/$preset/app/halocline}
flags=(--memory "$memory" --output-folder "$folder")
# A job that is done leaves its last step, so that the same command does not begin anew.
keeps=''
for word in "$@"; do
  file=${word#--config=}
  if [[ $word == --checkpoint-every* ]] || { [[ -f $file ]] && grep -qE '^[^#]*checkpoint-every"?[[:space:]]*=[[:space:]]*[1-9]' -- "$file"; }; then keeps=yes; fi
done
[[ $keeps ]] || flags+=(--checkpoint-every 1000000000)
# Checkpoints of another future are not counted: their names have one word more.
shopt -s extglob
checkpoints() { stat -c '%n %z' -- "$folder"/checkpoint-+([0-9])/checkpoint.json 2>/dev/null || true; }
before=$(checkpoints)
if [[ $before ]]; then
  flags+=(--restart "$folder")
elif [[ -e $folder/timeseries.csv || -e $folder/fields.pvd ]]; then
  aside=$folder.$(date -u +%Y%m%d-%H%M%S)
  echo "== no checkpoint in $folder: it is now $aside"
  mv -- "$folder" "$aside"
fi

# A launcher may not pass signals on, so the folder does. The signal may come to all processes of
# the job: all shells and tee live on until the program has ended.
signalled=''
ask() { touch "$folder/STOP" 2>/dev/null || true; }
trap '[[ $signalled ]] || echo "== a signal came: the file STOP passes it on"; signalled=yes; ask' TERM USR1
output=$(mktemp)
trap 'rm -f "$output"' EXIT
( trap : TERM USR1
  (trap : TERM USR1; launch "${nodes:-1}" "$ranks_per_node" "$program" run "$@" "${flags[@]}") |
    (trap '' TERM USR1; exec tee "$output")
) & job=$!
while kill -0 "$job" 2>/dev/null; do
  [[ $signalled ]] || wait "$job" || true
  [[ ! $signalled ]] || { ask; sleep 1 || true; }  # again, as a run that begins removes the file
done
wait "$job" && code=0 || code=$?
[[ ! $signalled ]] || rm -f -- "$folder/STOP"
[[ $code == 0 ]] || exit "$code"
grep -q '^stopped by ' "$output" || exit 0
if [[ ! $signalled ]] && ! grep -q '^stopped by SIG' "$output"; then
  echo "== the file STOP ended the simulation: the same command goes on"
  exit 0
fi
[[ $(checkpoints) == "$before" ]] || exit 4
echo "simulate.sh: the job was stopped before its first step: give it more time" >&2
exit 3
