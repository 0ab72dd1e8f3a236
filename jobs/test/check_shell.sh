#!/usr/bin/env bash
# No script in jobs/ that shellcheck has something to say of, but that functions are called by traps and words (SC2317) and that text
# in single quotes is for another shell (SC2016). Exit code 77: the version that counts is not here.
set -euo pipefail
cd "$(dirname "$0")/../.."
shellcheck=.deps/tools/bin/shellcheck
[[ -x $shellcheck ]] || { echo "shellcheck 0.10.0 is not installed: jobs/local/test.sh does that"; exit 77; }
find jobs \( -name '*.sh' -o -name '*.sbatch' -o -name '*.lsf' \) -exec "$shellcheck" --exclude=SC2317,SC2016 -x {} +
