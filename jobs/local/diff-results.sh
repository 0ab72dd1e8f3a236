#!/usr/bin/env bash
# Compares two files of result records and lists what has become slower.
# Exits with 1 if something has.
#   jobs/local/diff-results.sh OLD NEW [--tolerance P] [--by-total]
# --help explains which records are compared, and how the verdict is made. Needs Python 3 and
# nothing else.
set -euo pipefail
command -v python3 >/dev/null || { echo "diff-results.sh: no python3 in PATH: install one" >&2; exit 2; }
exec "$(dirname "$0")/../../results/diff.py" "$@"
