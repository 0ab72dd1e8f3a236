#!/usr/bin/env bash
# Runs a command on two emulated hosts, "near" and "far", to show what happens between nodes on a
# single machine.
#   jobs/local/two-hosts.sh [--rate RATE] COMMAND...
#   jobs/local/two-hosts.sh mpirun -n 4 build/release/app/halocline compare
#   jobs/local/two-hosts.sh bash                                     # for several; mpirun --map-by ppr:2:node, say, works there
#   jobs/local/two-hosts.sh --rate 5gbit mpirun -n 2 build/release/app/halocline run --overlap
# COMMAND runs on near. The ranks of its mpirun take turns between the hosts. They use TCP between
# the hosts, and shared memory within each.
#
# A host is a set of Linux namespaces. Name, network (a pair of virtual Ethernet devices), /dev/shm
# and System V IPC are its own. Cores, memory and other files are this machine's. Bytes between the
# hosts cost cores, as with the network inside of one machine. They travel as fast as memory. A RATE
# limits them, in bits per second each way, in the notation of tc(8).
#
# Needs Open MPI 4, iproute2 and util-linux; root or the right to make user namespaces. Everything
# ends with COMMAND, or with this script: the kernel stops every process, and nothing is left to
# clean up.
# Exit code: COMMAND's; 2 bad input; 77 if this is not possible, after a line that says why.
set -euo pipefail
# shellcheck source=jobs/local/script.sh
source "$(dirname "$0")/script.sh"
bad_input() { echo "two-hosts.sh: $*" >&2; exit 2; }
impossible() { echo "two-hosts.sh: two hosts cannot be emulated here ($*)" >&2; exit 77; }

# near COMMAND...: is the first process of its own namespaces. Makes the other host and a network
# between both, then runs the command.
near() {
  # Mounts stay invisible outside. In a chroot, / need not be a mount point.
  mount --make-rprivate / 2>/dev/null || { mount --make-private /proc && mount --make-private /dev/shm; } 2>/dev/null ||
    impossible "/proc or /dev/shm is not mounted"
  mount -t proc proc /proc || impossible "no /proc can be mounted"
  mount -t tmpfs tmpfs /dev/shm || impossible "no /dev/shm can be mounted"
  unshare --mount --propagation unchanged --net --uts --ipc sleep infinity &
  local far=$!
  # Writes the launch agent. It takes host and command as ssh does, and runs the command in far's
  # namespaces.
  printf '#!/bin/sh\nshift\nexec nsenter --target %d --mount --net --uts --ipc --root --wd -- sh -c "$*"\n' "$far" >/dev/shm/launch
  chmod +x /dev/shm/launch
  until [[ $(cat "/proc/$far/comm") == sleep ]]; do kill -0 "$far" || impossible "no namespaces for a second host"; sleep 0.01; done
  hostname near
  ip link set lo up
  ip link add wire type veth peer name wire netns "$far" || impossible "no virtual Ethernet devices"
  ip address add 192.0.2.1/24 dev wire
  ip link set wire up
  /dev/shm/launch far "set -e; hostname far; ip link set lo up; ip address add 192.0.2.2/24 dev wire
    ip link set wire up; mount -t tmpfs tmpfs /dev/shm
    cat >/dev/shm/launch; chmod +x /dev/shm/launch" </dev/shm/launch || impossible "the second host cannot be set up"
  if [[ -n $rate ]]; then  # the bucket holds one burst at high rates
    local shape="tc qdisc add dev wire root tbf rate $rate burst 300kb latency 50ms"
    { $shape && /dev/shm/launch far "$shape"; } || impossible "tc does not take the rate $rate"
  fi
  local slots=$((($(cores) + 1) / 2))
  printf '192.0.2.%d slots=%d\n' 1 "$slots" 2 "$slots" >/dev/shm/hosts
  # Neither host knows that the other host's ranks are on the same cores. If there are too few
  # cores, waiting ranks let others run.
  export OMPI_MCA_mpi_yield_when_idle="${OMPI_MCA_mpi_yield_when_idle:-1}"
  export OMPI_MCA_plm_rsh_agent=/dev/shm/launch OMPI_MCA_orte_default_hostfile=/dev/shm/hosts OMPI_MCA_orte_tmpdir_base=/dev/shm \
    OMPI_MCA_rmaps_base_mapping_policy=node OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_pml=ob1 OMPI_MCA_btl=self,vader,tcp \
    OMPI_MCA_btl_tcp_if_include=192.0.2.0/24 OMPI_MCA_oob_tcp_if_include=192.0.2.0/24
  local code=0; "$@" || code=$?
  exit "$code"
}

rate=
if [[ ${1:-} == --rate ]]; then
  rate=${2:-}
  [[ $rate =~ ^[0-9]+[kmgt]?bit$ ]] || bad_input "--rate takes bits per second, such as 2gbit, not '$rate'"
  shift 2
fi
case ${1:-} in
  -h|--help) header; exit 0 ;;
  '') wrong_use "which command?" ;;
  -*) bad_input "there is no option '$1' (--help tells)" ;;
esac
# shellcheck source=jobs/local/env.sh
source "$(dirname "$0")/env.sh"
PATH=$PATH:/usr/sbin:/sbin  # where some keep ip
mpiexec=${HALOCLINE_MPIEXEC:-mpirun}
for tool in ip:iproute2 unshare:util-linux nsenter:util-linux setpriv:util-linux hostname:hostname "$mpiexec:Open MPI 4"; do
  command -v "${tool%%:*}" >/dev/null || impossible "no ${tool%%:*}: install ${tool#*:}"
done
version=$("$mpiexec" --version 2>&1 | head -n1) || true
[[ $version =~ \((Open MPI|OpenRTE)\)\ 4\. ]] || impossible "it takes the launcher of Open MPI 4, not '$version'"
namespaces=(--mount --propagation unchanged --net --uts --ipc --pid --fork --kill-child)
[[ $(id -u) == 0 ]] || namespaces+=(--map-root-user)
reason=$(unshare "${namespaces[@]}" true 2>&1) || impossible "$reason"

# There are three processes: this script, unshare, and the first process of the namespaces. If one
# dies, by whatever signal, those below it die, too.
setpriv --pdeathsig KILL unshare "${namespaces[@]}" bash -c "set -euo pipefail; rate=${rate@Q}; $(declare -f impossible near cores); near \"\$@\"" two-hosts.sh "$@" <&0 &
trap 'kill -KILL $! 2>/dev/null; exit 143' HUP INT TERM
wait $!
