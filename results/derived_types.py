#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes the table of `jobs/local/vendors.sh derived-types`, which calls this script.

    derived_types.py LIBRARY...     results/raw/derived-types/LIBRARY.jsonl -> results/mine/derived-types/README.md

Exit codes: 0 ok, 1 if programs gave different results, 2 bad input, or no place for results, 3 a package is
missing."""
import textwrap

from records import PLACE, clear_ending, damaged, end, shown
from reports import RAW, commit, markdown, numbers, pandas, parser, rows_of

AGAIN = "measure with jobs/local/vendors.sh derived-types"
TITLE = "# Do derived datatypes help?\n"
TEXT = """\
A study of November 2025 (arXiv 2511.13804) asks if derived datatypes help. It finds that this depends on the
MPI. Here are three 2-D programs like its own: [Jacobi](../../lib/examples/study/jacobi.c) (doubles), the [Game
of Life](../../lib/examples/study/life.c) (bytes, with corners), and [an image found again from its
edges](../../lib/examples/study/image.c) (floats). Each packs by hand or describes its halo by types. It
exchanges by `MPI_Isend`, by persistent requests, or by `MPI_Neighbor_alltoallw`.
"""
WHY = """\
Life packs a column of 1536 bytes in 2 us, a small part of an exchange. The rest are calls of MPI whose code and
data are in no near cache, since a step reads and writes 2 to 19 MB. [The
interposer](../../lib/comm/interpose/inside.md#what-a-call-costs-in-a-program) adds code of its own to that.
It saves what an MPI needs longer for its types than for packing by hand.
"""
TABLE = """\
Two ranks of a node side by side, 1536 x 1536 points in all: columns of 1536 points travel. An exchange in
microseconds: maximum over the ranks, median of 150 steps, median of five runs. The last columns say how fast
types are with the interposer (`auto`, with a model): relative to the faster one of hand and types without it,
and to packing by hand without it. All ways take turns in each run, and each run gives its own ratios. Calls
without the interposer go by the names `PMPI_...`, which leave out a library in front of MPI.
"""
COLUMNS = ["case", "call"]
GOAL = 0.95  # of the better of hand and types


def speeds(rows):
    """Returns a frame with a row per program and call, for one library's rows on two ranks."""
    rows = rows[rows.ranks == 2].copy()
    keys = [*COLUMNS, "interposed", "way"]
    rows["turn"] = rows.groupby(keys).cumcount()
    timed = rows.set_index([*keys, "turn"]).exchange_us.unstack(["interposed", "way"])
    with_it, without = timed[True], timed[False]
    found = {
        "hand": without.hand,
        "types": without.types,
        "through": with_it.types,
        "hand_through": with_it.hand,
        "types_by_hand": without.hand / without.types,
        "through_by_types": without.types / with_it.types,
        "best": without.min(axis=1) / with_it.types,
        "by_hand": without.hand / with_it.types,
        "front": without.hand / with_it.hand,
    }
    return pandas.DataFrame(found).groupby(COLUMNS, sort=False).median()


def means(column, found):
    """Returns the geometric mean of a column of each frame, as text."""
    return [f"{frame[column].prod() ** (1 / len(frame)):.2f} x" for frame in found.values()]


def ranges(column, found):
    """Returns the least and the greatest value of a column of each frame, as text."""
    return [f"{frame[column].min():.2f} to {frame[column].max():.2f} x" for frame in found.values()]


def answer(found):
    """Returns a table with a row per MPI: means and ranges of all programs and calls."""
    table = {
        "MPI": list(found),
        "types": means("types_by_hand", found),
        "types with the interposer": means("by_hand", found),
        "by program and call": ranges("by_hand", found),
        "relative to types": means("through_by_types", found),
        "relative to the better": ranges("best", found),
    }
    note = "The last two columns are types with the interposer, relative to types and to the better of hand and types without it."
    return f"Speed of the exchange, relative to packing by hand, in the geometric mean:\n\n{markdown(table)}\n{note}\n"


def bounds(found):
    """Returns a paragraph on the goal, and on what bounds the speed of types with the interposer."""
    cells = pandas.concat(found.values()).reset_index()

    def reached(call):
        rows = cells[cells.call == call].best
        return f"{(rows >= GOAL).sum()} of {len(rows)} with `{call}`"

    mean = cells.front.prod() ** (1 / len(cells))
    return textwrap.fill(
        f"Types with the interposer are meant to be at least {GOAL} x as fast as the better of hand and types. Of the "
        f"rows below, these are: {', '.join(map(reached, cells.call.unique()))}. Two things bound that. A program that "
        f"packs by hand is {mean:.2f} x as fast with the interposer in front ({cells.front.min():.2f} to {cells.front.max():.2f} x), "
        "though none of its calls is taken over. And persistent requests keep all that can be kept between exchanges.",
        width=110, break_long_words=False, break_on_hyphens=False,
    ) + "\n"  # fmt: skip


def main():
    options = parser(__doc__)
    options.add_argument("libraries", metavar="LIBRARY", nargs="+")
    arguments = options.parse_args()
    with clear_ending("derived_types.py", "name the libraries that were measured"):
        found, origins, sums = {}, [], []
        for library in arguments.libraries:
            path = RAW / "derived-types" / f"{library}.jsonl"
            facts, rows = rows_of(path, AGAIN)
            with damaged(path, AGAIN):
                title = " ".join(rows.mpi.iloc[0].replace("(R)", "").replace(" Library", "").replace("Version:", "").split())
                found[title] = speeds(rows)
                origins.append(f"{title}; {facts['cpu']}; {facts['time']}; commit {commit(facts)}; `{facts['command'].strip()}`\n")
                sums.append(rows[["case", "checksum"]])
        sums = pandas.concat(sums)
        is_same = (sums.groupby("case").checksum.nunique() == 1).all()
        text = [TITLE, TEXT, "## Answer\n", answer(found)]
        runs = f"All {len(sums)} results, on 1 to 4 ranks, with and without the interposer, are the same bit by bit, program by program.\n"
        text.append(runs if is_same else "**THE PROGRAMS GAVE DIFFERENT RESULTS.**\n")
        text += ["## Why\n", WHY, bounds(found), "## Figures\n", TABLE]
        for title, frame in found.items():
            cells = frame.reset_index()
            table = {
                "program": cells.case,
                "call": cells.call,
                "by hand, us": numbers(cells.hand, 1),
                "types, us": numbers(cells.types, 1),
                "by hand with the interposer, us": numbers(cells.hand_through, 1),
                "types with the interposer, us": numbers(cells.through, 1),
                "x as fast as the better": numbers(cells.best),
                "x as fast as by hand": numbers(cells.by_hand),
            }
            text += [f"### {title}\n", markdown(table, left=2)]
        text += ["## Provenance\n", *origins]
        target = PLACE / "derived-types"
        target.mkdir(parents=True, exist_ok=True)
        (target / "README.md").write_text("\n".join(text), encoding="utf-8")
    print(f"written: {shown(target)}/README.md")
    return 0 if is_same else 1


if __name__ == "__main__":
    end("derived_types.py", main)
