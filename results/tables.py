#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tables with a column per MPI library from the raw files of jobs/local/vendors.sh, which calls this script.

    tables.py NAME [LIBRARY...] [--plots]    results/raw/bench-NAME-LIBRARY.jsonl -> results/vendors/NAME.md; compare: likewise
    tables.py provenance LIBRARY COMMAND     the line that every raw file begins with

NAME is a group of benchmarks (table1, halo, ...) or compare. Without libraries: all that have a raw file. Prints the rows in
which we are below 1.00. --plots also draws results/vendors/NAME.png, if matplotlib is installed. Standard library otherwise.
"""
import argparse
import datetime
import json
import pathlib
import platform
import subprocess
import sys

RESULTS = pathlib.Path(__file__).resolve().parent
LIBRARIES = ["debian", "openmpi", "mpich", "impi"]
# As in lib/dtype/bench/harness.hpp: how much more time a small pack may take.
GOOD_OVERHEAD_NS = 20
DIRECTIONS = (("pack", "hand"), ("unpack", "hand_unpack"))


def git(*arguments):
    return subprocess.run(["git", "-C", str(RESULTS), *arguments], capture_output=True, text=True, check=False).stdout.strip()


def cpu_model():
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.processor())


def provenance(library, command):
    return {
        "library": library,
        "command": command,
        "git": git("rev-parse", "HEAD") or "unknown",
        "dirty": bool(git("status", "--porcelain", "--untracked-files=no")),
        "cpu": cpu_model(),
        "time": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }


class Run:
    """What one library gave: its provenance, and its rows by name in their order."""

    def __init__(self, path, key):
        with path.open() as file:
            lines = [json.loads(line) for line in file if line.startswith("{")]
        self.provenance = lines[0]["provenance"]
        self.rows = {row[key]: row for row in lines[1:]}
        fields = {"commit": "create_ns", "lookup": "lookup_ns"}
        if any("group" in row and fields.get(row["group"], "small_packs") not in row for row in self.rows.values()):
            sys.exit(f"tables.py: {path} is of an earlier version of the benchmarks: measure again")

    def mpi(self):
        row = next(iter(self.rows.values()), {})
        return row.get("mpi") or row.get("provenance", {}).get("mpi_library", "?").split(",")[0].split("\n")[0]

    def title(self):
        name = self.mpi()
        for noise in ("(R)", " for Linux* OS", " Version:", " Library"):
            name = name.replace(noise, "")
        return " ".join(name.split())


def markdown(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|---" + "|---:" * (len(header) - 1) + "|"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def number(value, digits=2):
    return "-" if value is None else f"{value:.{digits}f}"


def pair(values, digits=2):
    return "/".join(number(value, digits) for value in values)


def per_run(runs, names, cell, extra=None):
    """One row per name: the name, what extra(row) adds, and cell(run, row) for each run."""
    rows = []
    for name in names:
        known = next(run.rows[name] for run in runs if name in run.rows)
        cells = [cell(run, run.rows[name]) if name in run.rows else "-" for run in runs]
        rows.append([name] + ([extra(known)] if extra else []) + cells)
    return rows


def ours_to_hand(row):
    return [row.get(f"{ours}_vs_hand") for ours, _ in DIRECTIONS]


def vendor_to_hand(row):
    return [row.get(f"vendor_{ours}_vs_hand") for ours, _ in DIRECTIONS]


def overhead(row, methods):
    pairs = [(row.get(f"{method}_ns"), row.get(f"{hand}_ns")) for method, hand in methods]
    return [None if method is None or hand is None else method - hand for method, hand in pairs]


def to_best_vendor(runs, row):
    """Our ratio to the loop by hand in this row's run by the best ratio that any MPI has to it in its own."""
    out = []
    for direction, ours in enumerate(ours_to_hand(row)):
        theirs = [vendor_to_hand(run.rows[row["case"]])[direction] for run in runs if row["case"] in run.rows]
        best = max((value for value in theirs if value is not None), default=None)
        out.append(None if ours is None or best is None else ours / best)
    return out


def shortfalls(runs):
    """(row, library, what) for everything that is not as good as the loop by hand, or as the best MPI."""
    for run in runs:
        for name, row in run.rows.items():
            if not row["verified"]:
                yield name, run.title(), row["note"] or "not verified"
                continue
            over = overhead(row, DIRECTIONS)
            small = row["small_packs"]
            for (direction, _), ratio, more in zip(DIRECTIONS, ours_to_hand(row), over):
                if ratio is not None and ratio < 0.995 and not (small and more <= GOOD_OVERHEAD_NS * small):
                    yield name, run.title(), f"{direction} {ratio:.2f} of the hand loop" + (f", {more:.0f} ns more" if small else "")
            for (direction, _), ratio in zip(DIRECTIONS, to_best_vendor(runs, row)):
                if ratio is not None and ratio < 0.995:
                    yield name, run.title(), f"{direction} {ratio:.2f} of the best MPI"


def pack_tables(runs, names):
    header = ["case", "bytes"] + [run.title() for run in runs]
    size = lambda row: str(row["bytes"])  # noqa: E731
    small = [name for name in names if any(run.rows[name]["small_packs"] for run in runs if name in run.rows)]
    yield "Ours", "rate of our packing, pack/unpack, by that of the loop by hand in the same run", markdown(
        header, per_run(runs, names, lambda run, row: pair(ours_to_hand(row)), size)
    )
    yield "MPI", "rate of MPI_Pack/MPI_Unpack by that of the loop by hand in the same run", markdown(
        header, per_run(runs, names, lambda run, row: pair(vendor_to_hand(row)), size)
    )
    yield "Ours to the best MPI", "the first table by the best of the second one's columns", markdown(
        header, per_run(runs, names, lambda run, row: pair(to_best_vendor(runs, row)), size)
    )
    if small:
        yield "Overhead of small calls", "nanoseconds over the loop by hand: ours, pack/unpack; then MPI", markdown(
            header,
            per_run(
                runs,
                small,
                lambda run, row: pair(overhead(row, DIRECTIONS), 0)
                + "; "
                + pair(overhead(row, [(f"vendor_{ours}", hand) for ours, hand in DIRECTIONS]), 0),
                size,
            ),
        )


def commit_tables(runs, names):
    header = ["case"] + [run.title() for run in runs]
    yield "Nanoseconds", "trimeans: create, commit, our plan (of it compiling), all three (times slower than without)", markdown(
        header,
        per_run(
            runs,
            names,
            lambda run, row: f"{row['create_ns']:.0f}, {row['commit_ns']:.0f}, {row['plan_ns']:.0f} ({number(row.get('compile_ns'), 0)}), "
            f"{row['total_ns']:.0f} ({row['slowdown']:.2f}x)",
        ),
    )
    blocks = [name for name in names if any("plan_ns_per_block" in run.rows.get(name, {}) for run in runs)]
    yield "Nanoseconds per block", "our plan; create and commit", markdown(
        header,
        per_run(runs, blocks, lambda run, row: f"{row['plan_ns_per_block']:.2f}; {row['vendor_ns_per_block']:.2f}"),
    )


def lookup_tables(runs, names):
    header = ["case"] + [run.title() for run in runs]
    yield "Nanoseconds", "trimeans: finding the plan of a handle; reading an attribute of a datatype", markdown(
        header, per_run(runs, names, lambda run, row: f"{row['lookup_ns']:.1f}; {row['attribute_ns']:.1f}")
    )


def compare_tables(runs, names):
    header = ["method"] + [run.title() for run in runs]
    yield "Rate", "by that of the fastest vendor method of the same run", markdown(
        header, per_run(runs, names, lambda run, row: number(row["ratio_to_baseline"]))
    )
    yield "Milliseconds", "median of an exchange, slowest rank", markdown(
        header, per_run(runs, names, lambda run, row: number(row["phases"]["total"]["median_s"] * 1e3, 3))
    )


def what_was_compared(row):
    sizes = " x ".join(str(n) for n in row["local"])
    return f"{row['ranks']} ranks, {sizes} points each, {row['fields']} fields ({row['layout']}), radius {row['radius']}"


def document(name, runs, tables, below):
    lines = [f"# {name}\n"]
    threads = {row["threads"] for run in runs for row in run.rows.values() if "threads" in row}
    if threads:
        lines.append(f"Ours on {'/'.join(map(str, sorted(threads)))} threads, the loop by hand and MPI on one.\n")
    if name == "compare":
        lines.append(what_was_compared(next(iter(runs[0].rows.values()))) + ".\n")
    for title, what, table in tables:
        lines += [f"## {title}\n", f"{what[0].upper()}{what[1:]}.\n", table]
    if below is not None:
        lines.append("## Below 1.00\n")
        lines.append("\n".join(f"- {case} ({library}): {what}" for case, library, what in below) + "\n" if below else "Nothing.\n")
    lines.append("## Provenance\n")
    for run in runs:
        facts = run.provenance
        row = next(iter(run.rows.values()), {})
        compiler = row.get("compiler") or row.get("provenance", {}).get("compiler", "?")
        lines.append(
            f"- {run.mpi()} (`{facts['library']}`): {facts['time']}, commit {facts['git'][:12]}{' with changes' if facts['dirty'] else ''}, "
            f"compiler {compiler}, {facts['cpu']}; `{facts['command']}`"
        )
    return "\n".join(lines) + "\n"


def draw(name, runs, names, path):
    try:
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot
    except ImportError:
        print("tables.py: no plots (matplotlib is not installed)", file=sys.stderr)
        return
    figure, axes = pyplot.subplots(2, 1, figsize=(max(8, 0.45 * len(names)), 8), sharex=True)
    for axis, (direction, _) in zip(axes, DIRECTIONS):
        for index, run in enumerate(runs):
            for field, marker in ((f"{direction}_vs_hand", "o"), (f"vendor_{direction}_vs_hand", "x")):
                points = [(x, run.rows[case][field]) for x, case in enumerate(names) if run.rows.get(case, {}).get(field)]
                label = ("ours, " if marker == "o" else "") + run.title()
                axis.plot(*zip(*points), marker, color=f"C{index}", label=label) if points else None
        axis.axhline(1, color="grey", linewidth=0.8)
        axis.set_yscale("log")
        axis.set_ylabel(f"{direction}: rate by the hand loop's")
    axes[0].legend(fontsize="small", ncols=2)
    axes[1].set_xticks(range(len(names)), names, rotation=60, ha="right", fontsize="small")
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    print(f"{path.relative_to(RESULTS.parent)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name")
    parser.add_argument("libraries", nargs="*")
    parser.add_argument("--plots", action="store_true")
    arguments = parser.parse_args()
    name = arguments.name
    if name == "provenance":
        print(json.dumps({"provenance": provenance(*arguments.libraries)}))
        return 0

    stem, key = ("compare", "method") if name == "compare" else (f"bench-{name}", "case")
    paths = {library: RESULTS / "raw" / f"{stem}-{library}.jsonl" for library in arguments.libraries or LIBRARIES}
    runs = [Run(path, key) for path in paths.values() if path.exists()]
    runs = [run for run in runs if run.rows]
    if not runs:
        print(f"tables.py: nothing to show (no results/raw/{stem}-*.jsonl): run jobs/local/vendors.sh first", file=sys.stderr)
        return 2
    names = list(dict.fromkeys(case for run in runs for case in run.rows))
    below = None
    if name == "compare":
        tables = compare_tables(runs, names)
    elif name in ("commit", "lookup"):
        tables = commit_tables(runs, names) if name == "commit" else lookup_tables(runs, names)
        below = [(case, run.title(), row["note"]) for run in runs for case, row in run.rows.items() if not row["verified"]]
    else:
        tables = pack_tables(runs, names)
        below = list(shortfalls(runs))
    (RESULTS / "vendors").mkdir(exist_ok=True)
    path = RESULTS / "vendors" / f"{name}.md"
    path.write_text(document(name, runs, tables, below))
    print(f"{path.relative_to(RESULTS.parent)}: {len(names)} rows under {len(runs)} libraries")
    for case, library, what in below or []:
        print(f"  {case} ({library}): {what}")
    if arguments.plots and name not in ("compare", "commit", "lookup"):
        draw(name, runs, names, path.with_suffix(".png"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
