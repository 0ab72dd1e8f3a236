#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Draws the figure of README.md from results/vendors/compare.md: how many times as fast as the fastest method of each MPI.

    results/headline.py [TABLE [FIGURE]]        default: results/vendors/compare.md, results/vendors/headline.svg

Exit codes: 0, 2 if the table cannot be read. Needs matplotlib (Debian: python3-matplotlib).
"""
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent
METHODS = {"shared": "shared (arrays in a shared window)", "p2p": "p2p (arrays anywhere)"}


def speeds(text):
    """Returns the MPIs, and for each method its speed under each of them: the table under the heading Speed."""
    rows = [line.strip("| ").split(" | ") for line in text.split("## Speed")[1].split("##")[0].split("\n") if line.startswith("|")]
    return rows[0][1:], {row[0]: [float(cell) for cell in row[1:]] for row in rows[2:] if row[0] in METHODS}


def draw(mpis, of_method, path):
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "halocline"  # the same figure each time
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 2.6), layout="constrained")
    width = 0.38
    for number, (method, label) in enumerate(METHODS.items()):
        bars = axes.bar([i + (number - 0.5) * width for i in range(len(mpis))], of_method[method], width, label=label, color=("#0072B2", "#56B4E9")[number])
        axes.bar_label(bars, fmt="%.1f")
    axes.axhline(1, color="black", linewidth=1, linestyle="--")
    axes.set_xticks(range(len(mpis)), mpis)
    axes.set_ylabel("times as fast as the\nMPI's fastest method")
    axes.set_ylim(0, 4)
    axes.legend(loc="upper left", frameon=False, ncols=2)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, metadata={"Date": None})


def main(arguments):
    if arguments and arguments[0] in ("-h", "--help"):
        print(__doc__)
        return 0
    table = pathlib.Path(arguments[0]) if arguments else ROOT / "vendors" / "compare.md"
    figure = pathlib.Path(arguments[1]) if len(arguments) > 1 else ROOT / "vendors" / "headline.svg"
    try:
        mpis, of_method = speeds(table.read_text(encoding="utf-8"))
    except (OSError, IndexError, ValueError) as error:
        print(f"headline.py: {table} holds no table of speeds ({error}): name results/vendors/compare.md or its like", file=sys.stderr)
        return 2
    draw(mpis, of_method, figure)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
