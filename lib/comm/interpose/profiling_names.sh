#!/usr/bin/env bash
# Makes a copy of a static library that calls MPI by the names of its profiling interface (PMPI_...). No interposer
# then sees these calls: neither this one nor another tool.
#   lib/comm/interpose/profiling_names.sh NM OBJCOPY LIBRARY.a RESULT.a
set -euo pipefail
# shellcheck source=jobs/local/script.sh
source "$(dirname "$0")/../../../jobs/local/script.sh"
nm=$1 objcopy=$2 library=$3 result=$4
names=$result.names
"$nm" --undefined-only --format=posix "$library" | sed -nE 's/^(MPI_[A-Z][a-z][A-Za-z0-9_]*) U.*/\1 P\1/p' | sort -u >"$names"
[[ -s $names ]] || { echo "${0##*/}: $library calls no function of MPI" >&2; exit 1; }
"$objcopy" --redefine-syms="$names" "$library" "$result"
