#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Draws the figure of README.md from results/vendors/compare.md: the speed relative to the fastest method of
each MPI.

    results/headline.py [TABLE [FIGURE]]   default: results/vendors/compare.md, results/vendors/headline.svg

Exit codes: 0 ok, 2 the table cannot be read or the figure cannot be written, 3 a package is missing."""
import pathlib

from records import RESULTS, BadInput, clear_ending, damaged, end, read_text
from reports import pandas, parser, pyplot, save

METHODS = {"shared": "shared (arrays in a shared window)", "p2p": "p2p (arrays anywhere)"}
HINT = "name results/vendors/compare.md or its like"


def speeds(path):
    """Returns the speed of each method (columns) under each MPI, from the table below the heading Speed."""
    text = read_text(path, HINT)
    with damaged(path, HINT):
        table = text.split("## Speed")[1].split("##")[0]
        lines = [line for line in table.split("\n") if line.startswith("|")]
        header, _, *rows = [line.strip("| ").split(" | ") for line in lines]
        frame = pandas.DataFrame(rows, columns=header).set_index(header[0]).T
        for method in METHODS:
            if method not in frame:
                raise BadInput(f"{path} has no row {method} with a speed for each MPI: {HINT}")
        return frame[list(METHODS)].astype(float).rename(columns=METHODS)


def draw(speeds_of_mpis, path, formats):
    figure, axes = pyplot.subplots(figsize=(7, 2.6), layout="constrained")
    speeds_of_mpis.plot.bar(ax=axes, width=0.76, rot=0, color=("#0072B2", "#56B4E9"))
    for bars in axes.containers:
        axes.bar_label(bars, fmt="%.1f")
    axes.axhline(1, color="black", linewidth=1, linestyle="--")
    axes.set_ylabel("times as fast as the\nMPI's fastest method")
    axes.set_ylim(0, max(4, 1.25 * speeds_of_mpis.to_numpy().max()))  # room for the legend
    axes.legend(loc="upper left", frameon=False, ncols=2)
    axes.spines[["top", "right"]].set_visible(False)
    save(figure, path, formats)


def main(words=None):
    options = parser(__doc__)
    for name, default in (("table", "compare.md"), ("figure", "headline.svg")):
        path = {"type": pathlib.Path, "default": RESULTS / "vendors" / default}
        options.add_argument(name, metavar=name.upper(), nargs="?", **path)
    arguments = options.parse_args(words)
    with clear_ending("headline.py", "name another FIGURE"):
        draw(speeds(arguments.table), arguments.figure, arguments.formats)
    return 0


if __name__ == "__main__":
    end("headline.py", main)
