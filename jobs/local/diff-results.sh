#!/usr/bin/env bash
# Compares two result files of halocline run or compare, and exits with 1 if something has become slower.
#   jobs/local/diff-results.sh OLD NEW [--tolerance P] [--by-total]
# --help explains what is compared with what, and what decides. Takes Python 3 and nothing else.
set -euo pipefail
# shellcheck source=jobs/local/script.sh
source "$(dirname "$0")/script.sh"
command -v python3 >/dev/null || { echo "diff-results.sh: no python3 in PATH: install one" >&2; exit 2; }
exec "$(dirname "$0")/../../results/diff.py" "$@"
