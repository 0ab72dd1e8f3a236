# SPDX-License-Identifier: BSD-3-Clause
"""Makes 10,000 plans, memory and halos, and frees them. With `lose` it drops plans, with `nothing` it makes none. check_leaks.sh runs it."""

import os
import sys
import warnings

import halocline
import numpy as np
from mpi4py import MPI

COMM = MPI.COMM_WORLD
LEFT, RIGHT = (COMM.rank - 1) % COMM.size, (COMM.rank + 1) % COMM.size
PLANS = 10000 // COMM.size
METHODS = "auto", "p2p", "alltoallv", "shared"


def make_plan(number, u):
    return halocline.Plan(COMM, [(u[:, 1], RIGHT)], [(u[:, 0], LEFT)], method=METHODS[number % len(METHODS)])


def use_all(plans, u):
    """Makes `plans` plans in one array. Every tenth plan is of new memory, beside a halo and a mistake."""
    ring = COMM.Create_cart([COMM.size], [True])
    for number in range(plans):
        if number % 10 > 0:
            with make_plan(number, u) as plan:
                plan.exchange()
            continue
        v = halocline.empty(COMM, (16, 16))
        with make_plan(number, v) as plan:
            plan.exchange()
        halocline.free(v)
        with halocline.Halo(ring, np.zeros(16)) as halo:
            halo.exchange()
        try:
            halocline.Plan(COMM, [(u[:, 1], RIGHT)], [(5, LEFT)])
        except halocline.InputError:
            pass
    ring.Free()


def system_resources():
    """Returns how many mappings and open files this process has, of which the sanitizer knows nothing."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        return len(list(maps)), len(os.listdir("/proc/self/fd"))


def drop(plans, u):
    """Leaves `plans` plans to Python. They stay in the library's table, and their communicators with MPI."""
    warnings.simplefilter("ignore", ResourceWarning)
    for number in range(plans):
        plan = make_plan(number, u)
        plan.start()
        plan.finish()
        del plan


def main():
    u = halocline.empty(COMM, (16, 16))
    if "lose" in sys.argv:
        drop(PLANS // 2, u)
    if len(sys.argv) > 1:
        return
    use_all(PLANS // 10, u)
    before = system_resources()
    use_all(PLANS, u)
    after = system_resources()
    # The heap grows by a few mappings. One for each plan would be thousands.
    if after[0] > before[0] + PLANS // 20 or after[1] > before[1] + 5:
        sys.exit(f"rank {COMM.rank}: {before} mappings and open files became {after}")
    halocline.free(u)


main()
