#!/usr/bin/env bash
# Every source file formatted as .clang-format says, by the one version that counts. Exit code 77: that version is not here.
#   check_format.sh [--fix]
set -euo pipefail
# shellcheck source=jobs/local/script.sh
source "$(dirname "$0")/../../jobs/local/script.sh"
cd "$(dirname "$0")/../.."
format=$(echo .deps/tools/lib/python3*/site-packages/clang_format/data/bin/clang-format)  # its wrapper has a path in its first line
[[ -x $format ]] || { echo "clang-format 14.0.6 is not installed: jobs/local/test.sh does that"; exit 77; }
mapfile -t files < <(find app lib -name '*.hpp' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh')
if [[ ${1:-} == --fix ]]; then exec "$format" -i "${files[@]}"; fi
"$format" --dry-run --Werror "${files[@]}"
