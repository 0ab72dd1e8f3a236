#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs a command on the hosts of two-hosts.sh, with a wire between them on which each frame takes a while.

    jobs/local/two-hosts.sh results/mhd/late_wire.py MILLISECONDS COMMAND...

MPI's messages take this wire. It does what `tc qdisc add dev wire root netem delay` does where the kernel has netem.
The frames pass through this process, so the rate is low, and they take a core.
Exit codes: that of COMMAND, 2 bad input, 77 not possible here."""
import argparse
import collections
import ctypes
import fcntl
import os
import pathlib
import select
import struct
import subprocess
import sys
import time

CLONE_NEWNET, TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x40000000, 0x400454CA, 2, 0x1000
NETWORK = "198.51.100"  # for examples, as that of two-hosts.sh
LARGEST = 65535


def make_end(host):
    """Returns the file of a network device that it makes in the network of this process."""
    end = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(end, TUNSETIFF, struct.pack("16sH", b"late", IFF_TAP | IFF_NO_PI))
    for words in (f"address add {NETWORK}.{host}/24 dev late", f"link set late mtu {LARGEST - 20} up"):
        subprocess.run(["ip", *words.split()], check=True)
    return end


def enter(network):
    if ctypes.CDLL(None, use_errno=True).setns(network, CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "cannot enter a network")


def make_wire():
    """Returns the files of both ends."""
    # The launch agent of two-hosts.sh names a process of the other host.
    process = pathlib.Path("/dev/shm/launch").read_text(encoding="utf-8").split("--target ")[1].split()[0]
    here, far = (os.open(f"/proc/{one}/ns/net", os.O_RDONLY) for one in ("self", process))
    ends = [make_end(1)]
    enter(far)
    ends.append(make_end(2))
    enter(here)
    return ends


def carry(ends, delay):
    """Writes each frame to the other end, `delay` seconds after it came. Never returns."""
    waiting = collections.deque()
    while True:
        patience = max(0, waiting[0][0] - time.monotonic()) if waiting else None
        for end in select.select(ends, [], [], patience)[0]:
            waiting.append((time.monotonic() + delay, ends[end == ends[0]], os.read(end, LARGEST)))
        while waiting and waiting[0][0] <= time.monotonic():
            os.write(*waiting.popleft()[1:])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("milliseconds", type=float, metavar="MILLISECONDS")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND")
    chosen = parser.parse_args()
    if not chosen.command:
        parser.error("give a COMMAND")
    try:
        ends = make_wire()
    except (OSError, LookupError, subprocess.SubprocessError) as error:
        print(f"late_wire.py: not possible here ({error}): start it by two-hosts.sh, with /dev/net/tun", file=sys.stderr)
        return 77
    carrier = os.fork()
    if not carrier:
        carry(ends, chosen.milliseconds / 1000)
    variables = os.environ | {"OMPI_MCA_btl_tcp_if_include": f"{NETWORK}.0/24"}
    try:
        return subprocess.run(chosen.command, env=variables).returncode
    finally:
        os.kill(carrier, 9)


if __name__ == "__main__":
    sys.exit(main())
