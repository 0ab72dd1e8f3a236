#!/usr/bin/env bash
# Checks that every source file is formatted by .clang-format and clang-format 14.0.6. Exit code 77:
# that version is not installed.
#   check_format.sh [--fix]
set -euo pipefail
# shellcheck source=jobs/local/script.sh
source "$(dirname "$0")/../../jobs/local/script.sh"
cd "$(dirname "$0")/../.."
format=$(echo .deps/tools/lib/python3*/site-packages/clang_format/data/bin/clang-format)  # the wrapper script has a path in its first line
[[ -x $format ]] || { echo "clang-format 14.0.6 is not installed: jobs/local/test.sh does that"; exit 77; }
mapfile -t files < <(find app lib -name '*.hpp' -o -name '*.cpp' -o -name '*.h' -o -name '*.c' -o -name '*.cu' -o -name '*.cuh')
if [[ ${1:-} == --fix ]]; then exec "$format" -i "${files[@]}"; fi
"$format" --dry-run --Werror "${files[@]}"
