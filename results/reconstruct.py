#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes a table and a plot of type reconstruction: time and comparisons against the length of the sequence.

    jobs/local/bench.sh reconstruct --json >results/raw/reconstruct.jsonl
    results/reconstruct.py                  results/raw/reconstruct.jsonl -> results/mine/reconstruct/reconstruct.md and .svg

The plot needs matplotlib, the table does not."""
import sys

from records import PLACE, RESULTS, clear_ending, damaged, end, lines_of, load, pyplot, read_text, shown
from tables import markdown, provenance

RAW = RESULTS / "raw" / "reconstruct.jsonl"
FAMILIES = ("contiguous", "two-level", "irregular-over-12", "random")
COLUMNS = (
    ("n", "n", 0),
    ("repeated prefixes", "prefixes", 0),
    ("comparisons / n", "comparisons", 2),
    ("plain search / n", "plain_comparisons", 2),
    ("prefixes, ms", "prefixes_ns", 3),
    ("plain, ms", "plain_ns", 3),
    ("path, ms", "path_ns", 3),
    ("path, M/s", "path_mega_per_s", 0),
    ("extended, ms", "extended_ns", 3),
    ("tree, ms", "tree_ns", 3),
    ("path cost", "path_cost", 0),
    ("extended", "extended_cost", 0),
    ("tree", "tree_cost", 0),
)


def family(row):
    return row["case"].rsplit("-", 1)[0]


def cell(row, field, digits):
    value = row.get(field)
    if value is None:
        return "-"
    if field.endswith("comparisons"):
        value /= row["n"]
    if field.endswith("_ns"):
        value /= 1e6
    return f"{value:.{digits}f}"


def draw(rows, path):
    plots = pyplot("reconstruct.py")
    if plots is None:
        return
    figure, axes = plots.subplots(1, 2, figsize=(11, 4.5))
    for axis, unit, fields in (
        (axes[0], "seconds", (("path_ns", "o-", "path"), ("plain_ns", "x:", "plain search"))),
        (axes[1], "comparisons", (("comparisons", "o-", "repeated prefixes"), ("plain_comparisons", "x:", "plain search"))),
    ):
        for color, name in enumerate(FAMILIES):
            for field, style, label in fields:
                points = [(row["n"], row[field] * (1e-9 if unit == "seconds" else 1)) for row in rows if family(row) == name and row.get(field)]
                axis.plot(*zip(*points), style, color=f"C{color}", markersize=4, label=f"{name}, {label}")
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_xlabel("n")
        axis.set_ylabel(unit)
        axis.grid(alpha=0.3)
    axes[0].legend(fontsize="x-small")
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    print(shown(path))


def main():
    if len(sys.argv) > 1:
        print(__doc__, end="")
        return 0 if sys.argv[1] in ("-h", "--help") else 2
    with clear_ending("reconstruct.py", "make it writable, or name another place in HALOCLINE_RESULTS"):
        write()
    return 0


def write():
    again = "run jobs/local/bench.sh reconstruct --json"
    text = read_text(RAW, again)
    with damaged(shown(RAW), again):
        rows = [load(line) for line in lines_of(text) if line.startswith("{")]
        rows.sort(key=lambda row: (FAMILIES.index(family(row)), row["n"]))
        text = document(rows)
    directory = PLACE / "reconstruct"
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "reconstruct.md").write_text(text, encoding="utf-8")
    print(f"{shown(directory / 'reconstruct.md')}: {len(rows)} rows")
    with damaged(shown(RAW), again):
        draw(rows, directory / "reconstruct.svg")


def document(rows):
    table = markdown(["sequence"] + [title for title, _, _ in COLUMNS], [[family(row)] + [cell(row, field, digits) for _, field, digits in COLUMNS] for row in rows])
    facts = provenance("", "")
    return (
        "# reconstruct\n\nThe repeated prefixes of a sequence of n displacements beside the plain search over all divisors of n, and the\n"
        "cheapest path, extended path and tree. Medians; every row is verified. `-`: not measured.\n\n"
        f"{table}\n## Provenance\n\nCommit {facts['git'][:12]}{' with changes' if facts['dirty'] else ''}, {facts['time']}, compiler {rows[0]['compiler']}, "
        f"{facts['cpu']}; `jobs/local/bench.sh reconstruct --json`\n"
    )


if __name__ == "__main__":
    end("reconstruct.py", main)
