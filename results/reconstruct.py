#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes a table and a plot of type reconstruction: time and comparisons against the length of the sequence.

    jobs/local/bench.sh reconstruct --json >results/raw/reconstruct.jsonl
    results/reconstruct.py      -> results/mine/reconstruct/reconstruct.md and .svg

Exit codes: 0 ok, 2 bad input, or no place for results, 3 a package is missing."""
from records import PLACE, clear_ending, damaged, end, shown
from reports import RAW, column, commit, markdown, numbers, parser, pyplot, rows_of, save
from tables import provenance

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


def draw(rows, stem, formats):
    figure, axes = pyplot.subplots(1, 2, figsize=(11, 4.5))
    times = {"path": "path_ns", "plain search": "plain_ns"}
    comparisons = {"repeated prefixes": "comparisons", "plain search": "plain_comparisons"}
    for axis, unit, scale, fields in zip(axes, ("seconds", "comparisons"), (1e-9, 1), (times, comparisons)):
        for color, name in enumerate(FAMILIES):
            of_family = rows[rows.family == name].set_index("n")
            for (label, field), style in zip(fields.items(), ("o-", "x:")):
                values = scale * column(of_family, field).dropna()
                axis.plot(values, style, color=f"C{color}", markersize=4, label=f"{name}, {label}")
        axis.set(xscale="log", yscale="log", xlabel="n", ylabel=unit)
        axis.grid(alpha=0.3)
    axes[0].legend(fontsize="x-small")
    figure.tight_layout()
    return save(figure, stem, formats)


def main():
    arguments = parser(__doc__).parse_args()
    raw, again = RAW / "reconstruct.jsonl", "run jobs/local/bench.sh reconstruct --json"
    path = PLACE / "reconstruct/reconstruct.md"
    with clear_ending("reconstruct.py", "make it writable, or name another place in HALOCLINE_RESULTS"):
        _, rows = rows_of(raw, again)
        with damaged(shown(raw), again):
            rows["family"] = rows["case"].str.rsplit("-", n=1).str[0]
            rows["place"] = rows.family.map(FAMILIES.index)
            rows = rows.sort_values(["place", "n"])
            text = document(rows)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(f"{shown(path)}: {len(rows)} rows")
        with damaged(shown(raw), again):
            print(shown(draw(rows, path, arguments.formats)[0]))
    return 0


def document(rows):
    cells, facts = {"sequence": rows.family}, provenance("", "")
    for title, field, digits in COLUMNS:
        scale = rows.n if field.endswith("comparisons") else 1e6 if field.endswith("_ns") else 1
        cells[title] = numbers(column(rows, field) / scale, digits)
    return (
        "# reconstruct\n\nThe repeated prefixes of a sequence of n displacements beside the plain search"
        " over all divisors of n, and the\ncheapest path, extended path and tree. Medians; every row is"
        f" verified. `-`: not measured.\n\n{markdown(cells)}\n## Provenance\n\nCommit {commit(facts)},"
        f" {facts['time']}, compiler {rows.compiler.iloc[0]}, {facts['cpu']}; `jobs/local/bench.sh"
        " reconstruct --json`\n"
    )


if __name__ == "__main__":
    end("reconstruct.py", main)
