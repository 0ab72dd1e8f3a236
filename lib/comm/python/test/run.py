# SPDX-License-Identifier: BSD-3-Clause
"""Runs the tests of this folder on each rank. Ends with 1 on all ranks if one rank has a failure.

    mpirun -n 2 python3 lib/comm/python/test/run.py [NAME of unittest...]"""

import os
import pathlib
import sys
import unittest

from mpi4py import MPI


def main():
    folder, comm = pathlib.Path(__file__).parent, MPI.COMM_WORLD
    sys.path.insert(0, str(folder))
    loader = unittest.TestLoader()
    tests = loader.loadTestsFromNames(sys.argv[1:]) if sys.argv[1:] else loader.discover(str(folder))
    with open(os.devnull, "w", encoding="utf-8") if comm.rank else sys.stderr as stream:
        result = unittest.TextTestRunner(stream, verbosity=2, failfast=True).run(tests)
        for _, text in result.failures + result.errors:
            print(f"rank {comm.rank}: {text}", file=sys.__stdout__, flush=True)
    if not result.wasSuccessful():
        # Ranks may be in different tests by now.
        sys.__stdout__.flush()
        comm.Abort(1)


if __name__ == "__main__":
    main()
