#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tests the interposer in front of the calls of test_fortran.F90, under any MPI whose wrapper compiles Fortran.

    fortran_calls.py NAME LIBRARY MPIEXEC [WRAPPER [FLAG...]]

Compiles the test by the wrapper and the flags, and runs it with LIBRARY preloaded. Prints a line for `use mpi` and one
for mpi_f08, after the MPI's NAME. Exit code: 0, or 1 if a test failed; 2 bad input."""
import collections
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
MODULES = ("mpi", "mpi_f08")
# These are the rows of the summary.
ROWS = ("MPI_Pack", "MPI_Unpack", "MPI_Send", "MPI_Recv", "MPI_Isend", "MPI_Irecv", "MPI_Sendrecv", "its receive", "MPI_Send_init",
        "MPI_Recv_init", "MPI_Alltoallv", "MPI_Alltoallw", "MPI_Neighbor_alltoallw")
TIMES = 5
TIMEOUT_S = 120


def run(*command):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, errors="replace", timeout=TIMEOUT_S)


def has_module(wrapper, module, folder, flags):
    """Tells if programs of the module can be compiled."""
    source = pathlib.Path(folder) / "module.f90"
    source.write_text(f"program module_is_there\n  use {module}\n  print *, mpi_version\nend program\n", encoding="utf-8")
    return run(wrapper, *flags, "-c", source, "-o", source.with_suffix(".o")).returncode == 0


def definitions(wrapper, module, library, folder, flags):
    """Returns the macros of test_fortran.F90 for this module, MPI and interposer."""
    source = pathlib.Path(folder) / "version.c"
    source.write_text("#include <mpi.h>\nversion MPI_VERSION\n", encoding="utf-8")
    version = re.search(r"^version (\d+)", run(wrapper, *flags, "-x", "c", "-E", source).stdout, re.M)
    out = ["-DHALOCLINE_F08"] if module == "mpi_f08" else []
    if version and int(version[1]) >= 4:
        out.append("-DHALOCLINE_HAS_LARGE_COUNTS")
    if " MPI_Request_get_status_some\n" in run("nm", "-D", "--defined-only", library).stdout:
        out.append("-DHALOCLINE_HAS_GET_STATUS_SOME")
    return out


def build(wrapper, module, library, folder, flags):
    """Compiles test_fortran.F90 for the module. Returns the program, and why there is none."""
    program = pathlib.Path(folder) / f"test_fortran_{module}.x"
    finished = run(wrapper, "-O2", *flags, *definitions(wrapper, module, library, folder, flags), HERE / "test_fortran.F90",
                   HERE / "other_languages.c", "-o", program)
    return program, finished.stderr if finished.returncode != 0 else ""


def counted(summary):
    """Returns how many calls each rank's summary counts, by the engine and by MPI together."""
    out = collections.defaultdict(collections.Counter)
    for rank, call, calls in re.findall(r"halocline\[(\d+)\]: +(MPI_\w+|its receive) +(?:engine|mpi) +(\d+) ", summary):
        out[int(rank)][call] += int(calls)
    return dict(out)


def expected(ranks):
    """Returns what `counted` gives after `test_fortran TIMES`."""
    return {rank: dict.fromkeys(ROWS, TIMES) for rank in range(ranks)}


def failure(mpiexec, program, library, ranks, mode):
    """Runs the whole test, and then counts calls. Returns what is wrong."""
    environment = ["env", f"LD_PRELOAD={library}", f"HALOCLINE_MPI={mode}", "HALOCLINE_MPI_LOG=summary"]
    for arguments in ((), (TIMES,)):
        try:
            finished = run(mpiexec, "-n", ranks, *environment, program, *arguments)
        except subprocess.TimeoutExpired:
            return f"did not end within {TIMEOUT_S} s"
        told = finished.stdout + finished.stderr
        if finished.returncode != 0 or "all points are right" not in told:
            return told + f"exit code {finished.returncode}"
        calls = counted(told)
        if arguments and calls != expected(ranks):
            return f"{told}of each of {len(ROWS)} calls, {TIMES} were made, and counted were {calls}"
        if mode == "engine" and not re.search(r"MPI_Isend +engine +[1-9]", told):
            return told + "no message was the engine's"
    return ""


def main(name, library, mpiexec, wrapper=None, *flags):
    code = 0
    with tempfile.TemporaryDirectory() as folder:
        flags = ("-w", "-J", folder, *flags)
        for module in MODULES:
            if wrapper is None or not has_module(wrapper, module, folder, flags):
                print(f"== {name}: Fortran, use {module}: not run: no Fortran here")
                continue
            program, why = build(wrapper, module, library, folder, flags)
            for ranks, mode in ((1, "engine"), (1, "auto"), (2, "engine"), (2, "auto")):
                why = why or failure(mpiexec, program, library, ranks, mode)
                if why:
                    print(f"{why}\n== {name}: Fortran, use {module}: FAILED ({ranks} rank(s), {mode})")
                    code = 1
                    break
            else:
                print(f"== {name}: Fortran, use {module}: passed, and each call was counted once")
    return code


if __name__ == "__main__":
    if sys.argv[1:2] in (["-h"], ["--help"]):
        print(__doc__)
    elif len(sys.argv) < 4:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    else:
        sys.exit(main(*sys.argv[1:]))
