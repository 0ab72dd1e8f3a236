#!/usr/bin/env bash
# Checks all shell scripts by shellcheck. Two of its findings are allowed: functions called by traps
# and words (SC2317), and text in single quotes for another shell (SC2016). Exit code 77: the right
# version is not installed.
set -euo pipefail
# shellcheck source=jobs/local/script.sh
source "$(dirname "$0")/../local/script.sh"
cd "$(dirname "$0")/../.."
shellcheck=.deps/tools/bin/shellcheck
[[ -x $shellcheck ]] || { echo "shellcheck 0.10.0 is not installed: jobs/local/test.sh does that"; exit 77; }
find jobs lib .ci/run \( -name '*.sh' -o -name '*.sbatch' -o -name '*.lsf' -o -path .ci/run \) -exec "$shellcheck" --exclude=SC2317,SC2016 -x {} +
