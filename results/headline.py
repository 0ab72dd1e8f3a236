#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Draws the figure of README.md from results/vendors/compare.md: the speed relative to the fastest method of each
MPI.

    results/headline.py [TABLE [FIGURE]]        default: results/vendors/compare.md, results/vendors/headline.svg

Exit codes: 0, 2 if the table cannot be read, the figure cannot be written, or there is no matplotlib (Debian:
python3-matplotlib)."""
import argparse
import pathlib

from records import RESULTS, BadInput, clear_ending, damaged, end, prefer_matplotlib, pyplot, read_text

METHODS = {"shared": "shared (arrays in a shared window)", "p2p": "p2p (arrays anywhere)"}


def speeds(path):
    """Returns the MPIs, and {method: its speed under each MPI}, from the table below the heading Speed."""
    hint = "name results/vendors/compare.md or its like"
    text = read_text(path, hint)
    with damaged(path, hint):
        rows = [line.strip("| ").split(" | ") for line in text.split("## Speed")[1].split("##")[0].split("\n") if line.startswith("|")]
        mpis, of_method = rows[0][1:], {row[0]: [float(cell) for cell in row[1:]] for row in rows[2:] if row[0] in METHODS}
    for method in METHODS:
        if len(of_method.get(method, ())) != len(mpis):
            raise BadInput(f"{path} has no row {method} with a speed for each MPI: {hint}")
    return mpis, of_method


def draw(plots, mpis, of_method, path):
    figure, axes = plots.subplots(figsize=(7, 2.6), layout="constrained")
    width = 0.38
    for number, (method, label) in enumerate(METHODS.items()):
        bars = axes.bar([i + (number - 0.5) * width for i in range(len(mpis))], of_method[method], width, label=label, color=("#0072B2", "#56B4E9")[number])
        axes.bar_label(bars, fmt="%.1f")
    axes.axhline(1, color="black", linewidth=1, linestyle="--")
    axes.set_xticks(range(len(mpis)), mpis)
    axes.set_ylabel("times as fast as the\nMPI's fastest method")
    axes.set_ylim(0, max(4, 1.25 * max(map(max, of_method.values()))))  # room for the legend
    axes.legend(loc="upper left", frameon=False, ncols=2)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, format="svg", metadata={"Date": None})


def main(words=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", metavar="TABLE", nargs="?", type=pathlib.Path, default=RESULTS / "vendors" / "compare.md")
    parser.add_argument("figure", metavar="FIGURE", nargs="?", type=pathlib.Path, default=RESULTS / "vendors" / "headline.svg")
    arguments = parser.parse_args(words)
    with clear_ending("headline.py", "name another FIGURE"):
        mpis, of_method = speeds(arguments.table)
        plots = pyplot("headline.py")
        if plots is None:
            return 2
        draw(plots, mpis, of_method, arguments.figure)
    return 0


if __name__ == "__main__":
    prefer_matplotlib()
    end("headline.py", main)
