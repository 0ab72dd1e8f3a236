#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measures one exchange for several substeps (--wide) between two emulated hosts, with and without a late wire.

    results/mhd/wide.py [--rounds N]     -> results/mine/mhd/wide.csv (seconds per substep) and wide.md
    results/mhd/wide.py --csv FILE       -> wide.md of the runs in FILE

Each round runs all cases in turns, in less than a minute. It needs root, and a build in build/release.
Exit codes: 0 ok, 2 bad input, 3 a run fails, 77 no hosts can be emulated here."""
import argparse
import csv
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLACE = ROOT / "results/mine/mhd"
COLUMNS = ("delay_ms", "physics", "points", "wide", "median_s", "p10_s", "min_s")
STEPS = {("heat", 0): 300, ("heat", 1): 60, ("mhd", 0): 60, ("mhd", 1): 20}


def cases():
    """Returns (delay, physics, points, wide) of all runs. Ghosts must fit into a box, and mhd has three substeps."""
    out = []
    for delay in (0, 1):
        for physics in ("heat", "mhd"):
            for points in (12, 18, 24, 32):
                wides = (1, 3) if physics == "mhd" else (1, 2, 3)
                six = (6,) if points >= 18 and (delay == 0 or points == 18) else ()
                out += [(delay, physics, points, wide) for wide in wides + six]
    return out


def measured(delay, physics, points, wide):
    """Returns the median, tenth percentile and least time of a substep in seconds. Ends the program if a run fails."""
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as file:
        command = ["jobs/local/two-hosts.sh"] + (["results/mhd/late_wire.py", str(delay)] if delay else [])
        command += ["mpirun", "-n", "2", "build/release/app/halocline", "run", "--physics", physics, "--methods", "p2p"]
        command += ["--local", *[str(points)] * 3, "--decomposition", "1", "1", "2", "--threads", "1", "--quiet"]
        command += ["--steps", str(STEPS[physics, delay]), "--wide", str(wide), "--output", file.name]
        finished = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if finished.returncode:
            print(f"wide.py: a run fails: {' '.join(command)}\n{finished.stderr[-2000:]}", file=sys.stderr)
            sys.exit(77 if finished.returncode == 77 else 3)
        total = json.loads(pathlib.Path(file.name).read_text(encoding="utf-8"))["phases"]["total"]
        return [total[key] / wide for key in ("median_s", "p10_s", "min_s")]


def tables(rows):
    """Returns a table for each delay: the time with --wide 1, and how many times as fast larger values are."""
    times = {}
    for row in rows:
        key = (int(row["delay_ms"]), row["physics"], int(row["points"]), int(row["wide"]))
        times.setdefault(key, []).append(float(row["median_s"]))
    out = ""
    for delay, title in ((1, "Each frame takes 1 ms more:"), (0, "No delay:")):
        out += f"{title}\n\n| physics, box | `--wide 1`, ms | 2 | 3 | 6 |\n|---|---:|---:|---:|---:|\n"
        for physics in ("heat", "mhd"):
            for points in (12, 18, 24, 32):
                ones = times.get((delay, physics, points, 1))
                if not ones:
                    continue
                cells = [f"{physics}, {points}^3"]
                cells.append(f"{1e3 * statistics.median(ones):.2f} ({1e3 * min(ones):.2f}-{1e3 * max(ones):.2f})")
                for wide in (2, 3, 6):
                    ratios = [one / many for one, many in zip(ones, times.get((delay, physics, points, wide), []))]
                    wins = sum(ratio > 1 for ratio in ratios)
                    cells.append(f"{statistics.median(ratios):.2f}, {wins} of {len(ratios)}" if ratios else "-")
                out += "| " + " | ".join(cells) + " |\n"
        out += "\n"
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9, metavar="N")
    parser.add_argument("--csv", type=pathlib.Path, metavar="FILE")
    chosen = parser.parse_args()
    if chosen.rounds < 1:
        parser.error("--rounds: there has to be one at least")
    if chosen.csv and not chosen.csv.is_file():
        parser.error(f"--csv: there is no file {chosen.csv}")
    PLACE.mkdir(parents=True, exist_ok=True)
    source = chosen.csv or PLACE / "wide.csv"
    if not chosen.csv:
        with source.open("w", encoding="utf-8", newline="") as file:
            print(*COLUMNS, sep=",", file=file)
            for number in range(chosen.rounds):
                print(f"round {number + 1} of {chosen.rounds}", file=sys.stderr)
                for case in cases():
                    print(*case, *(f"{seconds:.3e}" for seconds in measured(*case)), sep=",", file=file, flush=True)
    with source.open(encoding="utf-8", newline="") as file:
        text = tables(csv.DictReader(file))
    (PLACE / "wide.md").write_text(text, encoding="utf-8")
    print(text, end="")


if __name__ == "__main__":
    main()
