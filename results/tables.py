#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes tables with a column per MPI library from the raw files of jobs/local/vendors.sh, which calls this script.

    tables.py NAME [LIBRARY...] [--plots]    results/raw/bench-NAME-LIBRARY.jsonl -> results/mine/vendors/NAME.md (compare: raw/compare-LIBRARY.jsonl)
    tables.py draft-NAME ...                 results/raw/draft-NAME-LIBRARY.jsonl -> results/raw/draft-NAME.md
    tables.py provenance LIBRARY COMMAND     prints the first line of every raw file

NAME is a group of benchmarks (table1, halo, ...), compare or exchange. Without libraries: all that have a raw file.
Prints the rows in which we are slower, or which are not verified. --plots also draws NAME.png beside the table, if
matplotlib is installed. Everything else needs only the standard library."""
import argparse
import datetime
import json
import pathlib
import platform
import subprocess

from records import PLACE, RESULTS, BadInput, clear_ending, damaged, end, lines_of, load, pyplot, read_text, shown

LIBRARIES = ["debian", "openmpi", "mpich", "impi"]
# A small pack may take this much more time; lib/dtype/bench/harness.hpp has the same limit.
GOOD_OVERHEAD_NS = 20
DIRECTIONS = (("pack", "hand"), ("unpack", "hand_unpack"))
GROUPS = {
    "table1": "The access patterns of Ross, Miller and Gropp 2003, Table 1, each packed at once; packs below 4 KiB: what a call costs.",
    "halo": "The 26 slabs that a block of 256 x 256 x 256 doubles sends at radius 3, one by one and all in one pass.",
    "patterns": "Access patterns of applications; `-small` the same in caches near the core.",
    "commit": "What a datatype costs before its first use, and how long its plan is looked for later.",
    "compare": "The same halo exchange by several methods.",
    "exchange": "Halo exchanges of 8 fields of doubles, radius 3, periodic, between the ranks of a node, split in x, y or z; points per rank and axis.",
}
RATIOS = """`N x as fast` is a median over rounds in which all methods take turns. Every row is verified before it is timed. `-`: not measured."""

SLOWER = "Slower than the loop by hand or the best MPI"


def git(*arguments):
    return subprocess.run(["git", "-C", str(RESULTS), *arguments], capture_output=True, text=True, check=False).stdout.strip()


def cpu_model():
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text(errors="replace").split("\n")
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
    """Holds the measurements under one library: its provenance, and its rows by name in their order."""

    def __init__(self, path, key):
        text = read_text(path, "measure again")
        with damaged(path, "measure again"):
            lines = [load(line) for line in lines_of(text) if line.startswith("{")]
            self.provenance = lines[0]["provenance"]
            self.rows = {key(row): row for row in lines[1:]}
        fields = {"commit": "lookup_ns"} | dict.fromkeys("xyz", "shared_vs_vendor")
        if any("group" in row and fields.get(row["group"], "small_packs") not in row for row in self.rows.values()):
            raise BadInput(f"{path} is of an earlier version of the benchmarks: measure again")

    def mpi(self):
        row = next(iter(self.rows.values()), {})
        return row.get("mpi") or row.get("provenance", {}).get("mpi_library", "?").split(",")[0].split("\n")[0]

    def title(self):
        name = self.mpi()
        for noise in ("(R)", " for Linux* OS", " Version:", " Library"):
            name = name.replace(noise, "")
        return " ".join(name.split())


def markdown(header, rows, left=1):
    """Returns a table of Markdown. The first `left` columns hold text, the rest numbers."""
    lines = ["| " + " | ".join(header) + " |", "|---" * left + "|---:" * (len(header) - left) + "|"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def number(value, digits=2):
    return "-" if value is None else f"{value:.{digits}f}"


def pair(values, digits=2):
    return "/".join(number(value, digits) for value in values)


def per_run(runs, names, cell, extra=None):
    """Returns one row per name: the name, the cells of extra(row), and cell(run, row) for each run."""
    rows = []
    for name in names:
        known = next(run.rows[name] for run in runs if name in run.rows)
        cells = [cell(run, run.rows[name]) if name in run.rows else "-" for run in runs]
        rows.append([name] + (extra(known) if extra else []) + cells)
    return rows


def ours_to_hand(row):
    return [row.get(f"{ours}_vs_hand") for ours, _ in DIRECTIONS]


def vendor_to_hand(row):
    return [row.get(f"vendor_{ours}_vs_hand") for ours, _ in DIRECTIONS]


def overhead(row, methods):
    """Returns the nanoseconds more than the loop by hand, for each pack."""
    pairs = [(row.get(f"{method}_ns"), row.get(f"{hand}_ns")) for method, hand in methods]
    return [None if method is None or hand is None else (method - hand) / row["packs"] for method, hand in pairs]


def to_best_vendor(runs, row):
    """Returns our ratio to the loop by hand in this row's run, divided by the best ratio of any MPI to it in its own
    run."""
    out = []
    for direction, ours in enumerate(ours_to_hand(row)):
        theirs = [vendor_to_hand(run.rows[row["case"]])[direction] for run in runs if row["case"] in run.rows]
        best = max((value for value in theirs if value is not None), default=None)
        out.append(None if ours is None or best is None else ours / best)
    return out


def shortfalls(runs):
    """Yields (row, library, fault) for all rows that are slower than the loop by hand or the best MPI, or are not
    verified."""
    for run in runs:
        for name, row in run.rows.items():
            if not row["verified"]:
                yield name, run.title(), row["note"] or "not verified"
                continue
            over = overhead(row, DIRECTIONS)
            small = row["small_packs"]
            for (direction, _), ratio, more in zip(DIRECTIONS, ours_to_hand(row), over):
                if ratio is not None and ratio < 0.995 and not (small and more * row["packs"] <= GOOD_OVERHEAD_NS * small):
                    yield name, run.title(), f"{direction} {ratio:.2f} x as fast as the loop by hand" + (f", {more:.0f} ns more for each pack" if small else "")
            for (direction, _), ratio in zip(DIRECTIONS, to_best_vendor(runs, row)):
                if ratio is not None and ratio < 0.995:
                    yield name, run.title(), f"{direction} {ratio:.2f} x as fast as the best MPI"


def pack_tables(runs, names):
    rows = [row for run in runs for row in run.rows.values()]
    extra = ["bytes", "threads"] if any("threads" in row for row in rows) else ["bytes"]
    header = ["case", *extra] + [run.title() for run in runs]
    facts = lambda row: [str(row.get(field, "-")) for field in extra]  # noqa: E731
    small = [name for name in names if any(row["case"] == name and 0 < row["packs"] == row["small_packs"] for row in rows)]
    yield "Ours against the loop by hand", "our pack/unpack is N x as fast as the loop by hand in the same run", markdown(
        header, per_run(runs, names, lambda run, row: pair(ours_to_hand(row)), facts)
    )
    yield "MPI against the loop by hand", "MPI_Pack/MPI_Unpack is N x as fast as the loop by hand in the same run", markdown(
        header, per_run(runs, names, lambda run, row: pair(vendor_to_hand(row)), facts)
    )
    yield "Ours against the best MPI", "our pack/unpack is N x as fast as the best MPI; each is compared with the loop by hand of its own run", markdown(
        header, per_run(runs, names, lambda run, row: pair(to_best_vendor(runs, row)), facts)
    )
    if small:
        yield "Overhead of small packs", "nanoseconds over the loop by hand for each pack: ours, pack/unpack; then MPI", markdown(
            ["case", "bytes", "packs"] + [run.title() for run in runs],
            per_run(
                runs,
                small,
                lambda run, row: pair(overhead(row, DIRECTIONS), 0)
                + "; "
                + pair(overhead(row, [(f"vendor_{ours}", hand) for ours, hand in DIRECTIONS]), 0),
                lambda row: [str(row["bytes"]), str(row["packs"])],
            ),
        )


def commit_tables(runs, names):
    header = ["case"] + [run.title() for run in runs]
    what = (
        "trimeans: create, commit, our plan (compiling alone, of a type that was read before), all three; with our plan, a type is made N x as fast as without"
    )
    yield "Nanoseconds", what, markdown(
        header,
        per_run(
            runs,
            names,
            lambda run, row: f"{row['create_ns']:.0f}, {row['commit_ns']:.0f}, {row['plan_ns']:.0f} ({number(row.get('compile_ns'), 0)}), "
            f"{row['total_ns']:.0f} ({row['total_vs_vendor']:.2f} x)",
        ),
    )
    blocks = [name for name in names if any("plan_ns_per_block" in run.rows.get(name, {}) for run in runs)]
    yield "Nanoseconds per block", "our plan; create and commit", markdown(
        header,
        per_run(runs, blocks, lambda run, row: f"{row['plan_ns_per_block']:.2f}; {row['vendor_ns_per_block']:.2f}"),
    )
    yield "Nanoseconds of a look-up", "finding the plan of a handle; reading an attribute of a datatype", markdown(
        header, per_run(runs, names, lambda run, row: f"{number(row.get('lookup_ns'), 1)}; {number(row.get('attribute_ns'), 1)}")
    )


def compare_tables(runs, names):
    header = ["method"] + [run.title() for run in runs]
    yield "Speed", "each method is N x as fast as the MPI's fastest method of the same run", markdown(
        header, per_run(runs, names, lambda run, row: number(row["ratio_to_baseline"]))
    )
    yield "Milliseconds", "median of an exchange, slowest rank", markdown(
        header, per_run(runs, names, lambda run, row: number(row["phases"]["total"]["median_s"] * 1e3, 3))
    )


def exchange_tables(runs, names):
    header = ["split, points"] + [run.title() for run in runs]
    times = lambda row: {field.removesuffix("_ns"): value for field, value in row.items() if field.endswith("_ns") and "_p" not in field}  # noqa: E731

    def milliseconds(methods):
        def cell(_, row):
            found = {name: times(row)[name] for name in methods(row)}
            best = min(found, key=found.get)
            spread = pair([row[f"{best}_p10_ns"] / 1e6, row[f"{best}_p90_ns"] / 1e6], 3).replace("/", "-")
            return f"{found[best] / 1e6:.3f} ({spread}) {best}"

        return markdown(header, per_run(runs, names, cell))

    def starting(prefix):
        return milliseconds(lambda row: [name for name in times(row) if name.startswith(prefix)])

    for title, what, field in (
        ("shared against the MPI's fastest method", "`shared`, in its faster shape, is N x as fast as the MPI's fastest method in any memory", "shared_vs_vendor"),
        ("shared against the one-copy twin", "`shared` is N x as fast as a plain row-by-row copy through the same windows", "shared_vs_rows"),
        ("shared against the twin with fixed lengths", "`shared` is N x as fast as that copy where the compiler knows the length of the ghosts", "shared_vs_rows-fixed"),
        (
            "p2p against vendor-pack",
            "`p2p`, in its faster shape, is N x as fast as MPI_Pack, MPI_Alltoallv and MPI_Unpack in their faster memory",
            "p2p_vs_vendor-pack",
        ),
    ):
        yield title, what, markdown(header, per_run(runs, names, lambda run, row, field=field: number(row[field])))
    of_what = "milliseconds of the median exchange, slowest rank; 10th to 90th percentile; which it is"
    yield "shared", of_what, starting("shared")
    yield "The MPI's fastest method", of_what, starting("vendor-")
    yield "p2p", of_what, starting("p2p")
    yield "The twin", of_what, milliseconds(lambda row: ["rows"])
    yield "The twin with fixed lengths", of_what, milliseconds(lambda row: ["rows-fixed"])


def what_was_compared(row):
    sizes = " x ".join(str(n) for n in row["local"])
    return f"{row['ranks']} ranks, {sizes} points each, {row['fields']} fields ({row['layout']}), radius {row['radius']}"


def document(name, runs, tables, below):
    lines = [f"# {name}\n", GROUPS.get(name.removeprefix("draft-"), "") + "\n"]
    if name == "compare":
        lines.append(what_was_compared(next(iter(runs[0].rows.values()))) + ".\n")
    if any("small_packs" in row or "method" in row for run in runs for row in run.rows.values()):
        lines.append(RATIOS + "\n")
    for title, what, table in tables:
        lines += [f"## {title}\n", f"{what[0].upper()}{what[1:]}.\n", table]
    if below is not None:
        slower = any("small_packs" in row for run in runs for row in run.rows.values())
        lines.append(f"## {SLOWER}\n" if slower else "## Not verified\n")
        if slower:
            lines.append(f"Packs below 4 KiB are here if they take over {GOOD_OVERHEAD_NS} ns more than the loop by hand.\n")
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
    plots = pyplot("tables.py")
    if plots is None:
        return
    figure, axes = plots.subplots(2, 1, figsize=(max(8, 0.45 * len(names)), 8), sharex=True)
    for axis, (direction, _) in zip(axes, DIRECTIONS):
        for index, run in enumerate(runs):
            for field, marker in ((f"{direction}_vs_hand", "o"), (f"vendor_{direction}_vs_hand", "x")):
                points = [(x, run.rows[case][field]) for x, case in enumerate(names) if run.rows.get(case, {}).get(field)]
                label = ("ours, " if marker == "o" else "") + run.title()
                axis.plot(*zip(*points), marker, color=f"C{index}", label=label) if points else None
        axis.axhline(1, color="grey", linewidth=0.8)
        axis.set_yscale("log")
        axis.set_ylabel(f"{direction}: x as fast as the loop by hand")
    axes[0].legend(fontsize="small", ncols=2)
    axes[1].set_xticks(range(len(names)), names, rotation=60, ha="right", fontsize="small")
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    print(shown(path))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name")
    parser.add_argument("libraries", nargs="*", default=[])  # the default keeps it optional in messages
    parser.add_argument("--plots", action="store_true")
    arguments = parser.parse_args()
    name = arguments.name
    if name == "provenance":
        if len(arguments.libraries) != 2:
            parser.error("provenance needs a library and a command")
        print(json.dumps({"provenance": provenance(*arguments.libraries)}))
        return 0

    with clear_ending("tables.py", "make it writable, or name another place in HALOCLINE_RESULTS"):
        write(name, arguments.libraries, arguments.plots)
    return 0


def write(name, libraries, plots):
    """Makes the tables of one group."""
    draft = name.startswith("draft-")
    group = name.removeprefix("draft-")
    stem, key = (name if draft else f"bench-{name}"), lambda row: row["case"]
    if group == "exchange":
        key = lambda row: f"{row['group']}, {row['case']}"  # noqa: E731
    if name == "compare":
        stem, key = name, lambda row: row["method"] + {"axes": ", axes"}.get(row.get("shape"), "") + {"private": ", private memory"}.get(row.get("storage"), "")
    paths = [RESULTS / "raw" / f"{stem}-{library}.jsonl" for library in libraries or LIBRARIES]
    missing = [path for path in paths if not path.exists()]
    if len(missing) == len(paths) or (missing and libraries):
        raise BadInput(f"no {shown(missing[0])}: run jobs/local/vendors.sh first")
    runs = [run for run in (Run(path, key) for path in paths if path.exists()) if run.rows]
    if not runs:
        raise BadInput(f"no rows in results/raw/{stem}-*.jsonl: measure again")
    with damaged(f"results/raw/{stem}-*.jsonl", "measure again"):
        names = list(dict.fromkeys(case for run in runs for case in run.rows))
        below = None
        if name == "compare":
            tables = compare_tables(runs, names)
        elif group == "exchange":
            tables = exchange_tables(runs, names)
            below = [(case, run.title(), row["note"]) for run in runs for case, row in run.rows.items() if not row["verified"]]
        elif group == "commit":
            tables = commit_tables(runs, names)
            below = [(case, run.title(), row["note"]) for run in runs for case, row in run.rows.items() if not row["verified"]]
        else:
            tables = pack_tables(runs, names)
            below = list(shortfalls(runs))
        text = document(name, runs, tables, below)
    directory = RESULTS / "raw" if draft else PLACE / "vendors"
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{name}.md"
    path.write_text(text, encoding="utf-8")
    print(f"{shown(path)}: {len(names)} rows under {len(runs)} libraries")
    for case, library, what in below or []:
        print(f"  {case} ({library}): {what}")
    if plots and group not in ("compare", "commit", "exchange"):
        with damaged(f"results/raw/{stem}-*.jsonl", "measure again"):
            draw(name, runs, names, path.with_suffix(".png"))


if __name__ == "__main__":
    end("tables.py", main)
