#!/usr/bin/env bash
# What has become slower between two files of result records? Exits with 1 if something has.
#   jobs/local/diff-results.sh OLD NEW [--tolerance P] [--by-total]
# --help explains what is compared with what, and what decides. Takes Python 3 and nothing else.
set -euo pipefail
command -v python3 >/dev/null || { echo "diff-results.sh: no python3 in PATH: install one" >&2; exit 2; }
exec "$(dirname "$0")/../../results/diff.py" "$@"
