# SPDX-License-Identifier: BSD-3-Clause
"""Measures what Python adds to start() and finish() of a plan: a rank sends 8 bytes to itself, in turns by Python
and by a loop in C. At most 3 us more are meant.

    mpirun -n 1 taskset -c 1 python3 lib/comm/python/test/overhead.py"""

import ctypes
import pathlib
import statistics
import subprocess
import tempfile
import time

import halocline
import numpy as np
from halocline import _library as library
from mpi4py import MPI

LOOP = """
typedef int (*call)(void*);
int loop(call start, call finish, void* plan, int times) {
  int code = 0;
  for (int i = 0; i < times; ++i) code |= start(plan) | finish(plan);
  return code;
}
"""
TIMES, TURNS = 5000, 41


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "loop.so")
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-xc", "-", "-o", path], input=LOOP, text=True, check=True)
        loop = ctypes.CDLL(path).loop
    start, finish = (ctypes.cast(library.function(name), ctypes.c_void_p) for name in ("start", "finish"))
    u, v = np.ones(1), np.zeros(1)
    seconds = {"C": [], "start and finish": [], "exchange": []}
    with halocline.Plan(MPI.COMM_SELF, [(u, 0)], [(v, 0)], method="p2p") as plan:

        def by_python():
            for _ in range(TIMES):
                plan.start()
                plan.finish()

        def by_exchange():
            for _ in range(TIMES):
                plan.exchange()

        for _ in range(TURNS):
            for name, run in (("C", lambda: loop(start, finish, plan._handle, TIMES)), ("start and finish", by_python), ("exchange", by_exchange)):
                begin = time.perf_counter()
                run()
                seconds[name].append((time.perf_counter() - begin) / TIMES)
    # The fastest turns say what the code takes, also on a machine that does other things.
    for name, values in seconds.items():
        print(f"{name}: fastest {min(values) * 1e6:.2f} us, median {statistics.median(values) * 1e6:.2f} us")
    added = (min(seconds["start and finish"]) - min(seconds["C"])) * 1e6
    print(f"Python adds {added:.2f} us")


if __name__ == "__main__":
    main()
