# shellcheck shell=bash
# Answers --help, and keeps cd from going elsewhere. Sourced first by every script that users start.
unset CDPATH  # with CDPATH, cd may go to another folder of the same name and prints its path
script=$(realpath -- "$0")

# header: prints the comment at the begin of the script.
header() { awk 'NR > 1 && !/^#/ { exit } NR > 1 { sub(/^# ?/, ""); print }' "$script"; }

# cores: prints the number of hardware threads that this process may use. nproc alone obeys
# OMP_NUM_THREADS, which is not meant for make.
cores() { env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc; }

# wrong_use TEXT: says in a line what is wrong with the arguments, and ends the script with 2.
wrong_use() { echo "${script##*/}: $*: --help shows the usage" >&2; exit 2; }

case ${1:-} in
  -h|--help) header; exit 0 ;;
esac
