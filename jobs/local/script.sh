# shellcheck shell=bash
# Sourced first by every script that is started: answers --help, and keeps cd from going elsewhere.
unset CDPATH  # with it, cd may go to another folder of that name, and prints where
script=$(realpath -- "$0")

# header: prints the comment that the script begins with.
header() { awk 'NR > 1 && !/^#/ { exit } NR > 1 { sub(/^# ?/, ""); print }' "$script"; }

# cores: prints how many hardware threads this process may use. nproc alone obeys OMP_NUM_THREADS, which is not meant for make.
cores() { env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc; }

case ${1:-} in
  -h|--help) header; exit 0 ;;
esac
