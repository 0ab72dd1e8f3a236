#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes tables and plots of the measurements of jobs/local/interpose.sh, which calls this script.

    interpose.py [FOLDER [TARGET]]     FOLDER (results/raw/interpose) -> TARGET (results/mine/interpose)

It writes README.md, messages.svg and both-ways.svg.

`N x as fast`: above 1, it is faster through the interposer.
Exit codes: 0 ok, 2 bad input (then nothing is written, or the text without a plot), or no place
for results, 3 a package is missing."""
import pathlib
import re
import textwrap

from records import PLACE, clear_ending, damaged, end, lines_of, read_text, shown
from reports import RAW, column, commit, markdown, numbers, pandas, parser, pyplot, rows_of, save

MIB = 1 << 20
PLOTS = {"messages": "one way", "both-ways": "both ways at once"}  # titles by name
AGAIN = "measure with jobs/local/interpose.sh"
TITLE = "# What programs get that have libhalocline_mpi.so in front of their MPI\n"
ABOVE = (
    "Medians of interleaved samples, 10th to 90th percentile in brackets. `N x as fast`: above 1, it is"
    " faster through the interposer. Every row was verified byte by byte before it was timed."
    " `HALOCLINE_MPI` is `auto`: the engine takes over what the rule gives it. Model: that of this"
    " machine.\n"
)
PACKING = (
    "The rows of Table 1 of [RMG03], and packs below 4 KiB, where what counts is how much more a call takes"
    " than the loop by hand.\n"
)
PASSED_ON = (
    "Of MPI's own types (`named`), of a derived one that is contiguous (`derived`), and of one with gaps"
    " whose messages are MPI's by the model (`gaps`); to nobody or to the rank itself, which is its only"
    " neighbor on either side. The last two are what the rule costs: of a type when it is committed (made"
    " and freed, too), and with each use of the engine that a buffer is in the host's memory, here in a"
    " process without CUDA's driver; `bench_device` has it with one (`kind-of-*`) [PEA21 section 6.3].\n"
)
MESSAGES = "Half of the time there and back between two ranks of a node; blocks with gaps of their length.\n"
PATTERNS = (
    "The patterns of `bench_dtype --group=patterns` that are one datatype, one way and both ways at once. The"
    " rule was not made from them.\n"
)
BOTH_WAYS = (
    "The same messages, which both ranks send at once by `MPI_Irecv`, `MPI_Isend` and `MPI_Waitall`: the"
    " time of such an exchange.\n"
)
EXAMPLE = (
    "Parts of a block of 128^3 doubles, two ranks: without -> with (with it, N x as fast); medians of five"
    " runs in turns.\n"
)


def spread(rows, field, scale=1.0, digits=1):
    median, low, high = (numbers(rows[f"{field}{part}_ns"] / scale, digits) for part in ("", "_p10", "_p90"))
    return median + " (" + low + "-" + high + ")"


def verified(rows):
    return rows.verified.map({True: "yes", False: "**no**"})


def packs(rows):
    ratio = lambda name: numbers(column(rows, f"{name}_vs_hand"))  # noqa: E731
    more = lambda ours, hand: numbers((rows[ours] - rows[hand]) / rows.packs, 0)  # noqa: E731
    small = rows.bytes < 4096
    table = {
        "case": rows.case,
        "bytes": rows.bytes,
        "MPI_Pack through it, ns": spread(rows, "pack"),
        "x as fast as the loop by hand": ratio("pack") + "/" + ratio("unpack"),
        "MPI's own: x as fast as the loop": ratio("vendor_pack") + "/" + ratio("vendor_unpack"),
        "ns more for each pack": more("pack_ns", "hand_ns").where(small, ""),
        "unpack": more("unpack_ns", "hand_unpack_ns").where(small, ""),
        "verified": verified(rows),
    }
    return markdown(table)


def calls(rows):
    table = {
        "calls": rows.case,
        "intercepted": rows.calls,
        "by MPI, ns": spread(rows, "mpi"),
        "through the interposer, ns": spread(rows, "through"),
        "more for each, ns": numbers(rows.more_ns, 1),
        "at most": numbers(column(rows, "good_more_ns"), 0),
    }
    return markdown(table)


def messages(rows):
    table = {
        "message": rows.case,
        "bytes": rows.bytes,
        "blocks": rows.blocks,
        "through it, us": spread(rows, "interposed", 1e3, 2),
        "MPI, us": spread(rows, "vendor", 1e3, 2),
        "x as fast as MPI": numbers(column(rows, "vs_vendor")),
        "verified": verified(rows),
    }
    return markdown(table)


def example(folder, language):
    """Returns the times of each part in the median run, without and with the interposer. Empty if the program
    was not run."""
    found = []
    for which in ("without", "with"):
        for path in folder.glob(f"halo-{language}-{which}-*.txt"):
            for line in lines_of(read_text(path, AGAIN)):
                if row := re.fullmatch(r"(.+?) +\d+ +([\d.]+) +([\d.]+) +([\d.]+) +[\d.]+", line.strip()):
                    found.append([which, row[1], *map(float, row.groups()[1:])])
    if not found:
        return ""
    names = ["pack, us", "unpack, us", "exchange, us"]
    runs = pandas.DataFrame(found, columns=["which", "part", *names])
    medians = runs.groupby(["which", "part"], sort=False).median()
    before, after = medians.loc["without"], medians.loc["with"]
    ratios = before / after.clip(lower=1e-3)
    cells = before.apply(numbers) + " -> " + after.apply(numbers) + " (" + ratios.apply(numbers) + " x)"
    return markdown(cells.loc[before.index].reset_index())


def draw(rows, title, stem, formats):
    figure, axis = pyplot.subplots(figsize=(8, 4.5))
    timed = rows.assign(block=rows.bytes // rows.blocks).dropna(subset="vs_vendor").sort_values("bytes")
    for index, (block, of_block) in enumerate(timed.groupby("block")):
        marker = "os^vD*"[index % 6]
        axis.plot(of_block.bytes, of_block.vs_vendor, f"{marker}-", label=f"blocks of {block} bytes")
    axis.axhline(1, color="grey", linewidth=0.8)
    axis.set_xscale("log", base=2)
    sizes = sorted(set(rows.bytes))
    axis.set_xticks(sizes, [f"{size // MIB} MiB" if size >= MIB else f"{size // 1024} KiB" for size in sizes])
    axis.set_ylim(bottom=0)
    axis.set(xlabel="packed bytes of a message", ylabel="through the interposer: x as fast as MPI")
    axis.set_title(title, fontsize="small")
    axis.legend(fontsize="small")
    figure.tight_layout()
    save(figure, stem, formats)


def main():
    options = parser(__doc__)
    for name, place in (("folder", RAW), ("target", PLACE)):
        path = {"type": pathlib.Path, "default": place / "interpose"}
        options.add_argument(name, metavar=name.upper(), nargs="?", **path)
    arguments = options.parse_args()
    with clear_ending("interpose.py", "give another TARGET"):
        names = ("calls", "packs", "messages", "both-ways", "patterns", "plain")
        files = {name: rows_of(arguments.folder / f"{name}.jsonl", AGAIN) for name in names}
        with damaged(arguments.folder, AGAIN):
            facts, rows = files["calls"][0], {name: rows for name, (_, rows) in files.items()}
            text = document(arguments.folder, facts, rows)
        # The text comes first, so that it is there if a plot fails.
        arguments.target.mkdir(parents=True, exist_ok=True)
        (arguments.target / "README.md").write_text(text, encoding="utf-8")
        with damaged(arguments.folder, AGAIN):
            origin = f"{rows['calls'].iloc[0].mpi}, {facts['cpu']}, commit {commit(facts)}"
            for name, ways in PLOTS.items():
                draw(rows[name], f"{ways}: {origin}", arguments.target / name, arguments.formats)
    print(f"written: {shown(arguments.target)}/README.md")
    return 0


def document(folder, facts, rows):
    mpi, compiler = rows["calls"].iloc[0][["mpi", "compiler"]]
    lines = [TITLE, ABOVE, "## Packing\n", PACKING, packs(rows["packs"])]
    lines += ["## Calls that are passed on\n", PASSED_ON, calls(rows["calls"])]
    for heading, above, name, what in (
        ("Messages", MESSAGES, "messages", "messages"),
        ("Messages both ways at once", BOTH_WAYS, "both-ways", "exchanges"),
    ):
        plot = f"![{what} through the interposer: x as fast as MPI]({name}.svg)\n"
        lines += [f"## {heading}\n", above, plot, messages(rows[name])]
    lines += ["## Messages of application patterns\n", PATTERNS, messages(rows["patterns"])]
    above = "The same of doubles, in a process that never makes a type.\n"
    lines += ["## Programs without derived types\n", above, messages(rows["plain"])]
    for language, name in (("c", "C"), ("f90", "Fortran")):
        if table := example(folder, language):
            lines += [f"## The example in {name}\n", EXAMPLE, table]
    origin = [mpi, facts["cpu"], facts["time"], f"commit {commit(facts)}", f"compiler {compiler}"]
    lines += ["## Provenance\n", "; ".join([*origin, f"`{facts['command'].strip()}`"])]
    prose = lambda text: text.endswith("\n") and "\n" not in text[:-1]  # noqa: E731
    wrapped = [textwrap.fill(text, 110, break_on_hyphens=False, break_long_words=False) + "\n" if prose(text) else text for text in lines]
    return "\n".join(wrapped) + "\n"


if __name__ == "__main__":
    end("interpose.py", main)
