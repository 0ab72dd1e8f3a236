#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes tables and a plot of hierarchical gathers: the counterpart of Figure 3 of [TR14].

    mpirun -n 4 halocline gather --config configs/gather-fig3.toml --ranks-per-node 2 \\
      --output results/raw/gather.jsonl
    results/gather.py               # results/raw/gather.jsonl -> results/mine/gather/gather.md and .svg
    results/gather.py FILE NAME     # FILE -> results/mine/gather/NAME.md and .svg; NAME: by default FILE's

FILE holds records of kind gather (results/records.md). Several records of one experiment count as their
median.
Exit codes: 0 ok, 2 bad input (then nothing is written), or no place for results, 3 a package is missing."""
import pathlib

from records import PLACE, BadInput, clear_ending, end, fault, json_lines, shown
from reports import RAW, commit, log_scale, markdown, numbers, parser, pandas, pyplot, save

# The colours are of Okabe and Ito's palette, which the colour-blind can distinguish.
STYLES = {
    "mpi-gather": ("black", "o"),
    "hier-unpack": ("#d55e00", "v"),
    "hier-sendrecv": ("#e69f00", "^"),
    "hier-plan": ("#009e73", "s"),
    "hier-forced-contiguous": ("#777777", "+"),
    "hier-forced-indexed": ("#cc79a7", "x"),
    "zero-copy": ("#0072b2", "D"),
}
REORDERING = ("hier-unpack", "hier-sendrecv", "hier-plan")
TIMES = ["median_s", "p10_s", "p90_s", "predicted_s", "setup_s"]
NOTHING_REORDERED = (
    "Nothing is reordered: all of ours but the forced variants are the same code here, and what their speeds"
    " differ by is noise."
)
ABOVE = (
    "Medians in microseconds of the slowest rank; variants took turns, and each was verified before it was"
    " timed. `-`: not measured. Model: the messages alone, by latency and rate of a link as measured in the"
    " same run. Set-up: making a plan again, its communicators kept."
)


def what_is_common(record):
    """Returns the properties that all records of an experiment have in common."""
    run = [record[key] for key in ("ranks", "nodes", "nodes_emulated", "root")]
    return run + [record["provenance"][key] for key in ("mpi_library", "cpus", "git", "dirty")]


def read(path):
    """Returns a frame with a row for each record, in the order of the file."""
    hint = "give what halocline gather wrote with --output"
    records = []
    for number, record in json_lines(path, hint):
        wrong = fault(record, "gather.schema.json")
        if wrong:
            raise BadInput(f"line {number} of {path} is no record of a gather ({wrong}): {hint}")
        records.append(record)
        if what_is_common(record) != what_is_common(records[0]):
            what = "gathers of different ranks, nodes, roots, machines, MPIs or commits"
            raise BadInput(f"{path} holds {what} (line {number}): give one experiment")
    if not records:
        raise BadInput(f"{path} is empty: {hint}")
    return pandas.DataFrame(records)


def medians(gathers):
    """Returns the median of each time in seconds, by order, variant and size. It is missing unless all is
    verified."""
    numbers_alone = gathers.astype(dict.fromkeys(TIMES, float))
    groups = numbers_alone.groupby(["order", "variant", "bytes_per_rank"], sort=False)
    return groups[TIMES].median().where(groups.verified.all())


def size_text(size):
    for unit, bytes_ in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= bytes_:
            return f"{size / bytes_:g} {unit}"
    return f"{size} B"


def order_text(order, gathers):
    """Says how the ranks are ordered. In an `ordered` communicator they are in the order of their nodes,
    unless the launcher dealt them out otherwise."""
    dealt_out = order == "ordered" and gathers.reordered_bytes[gathers.variant == "hier-unpack"].any()
    return "in the launcher's order, which is not that of their nodes" if dealt_out else order


def nothing_reordered(gathers):
    """Tells if the ranks are in the order of their nodes: the variants that can reorder have reordered
    nothing."""
    moved = gathers.reordered_bytes[gathers.variant.isin(REORDERING) & (gathers.bytes_per_rank > 0)]
    return len(moved) > 0 and not moved.any()


def heading(gathers):
    first = gathers.iloc[0]
    emulated, several = "emulated " if first.nodes_emulated else "", "s" if first.nodes != 1 else ""
    return f"{first.ranks} ranks on {first.nodes} {emulated}node{several}, root {first.root}"


def source(gathers):
    origin = gathers.provenance.iloc[0]
    mpi, cpus = origin["mpi_library"].split(",")[0], "; ".join(origin["cpus"])
    return f"{mpi}, {cpus}, commit {commit(origin)}, {origin['time']}"


def tables(gathers, level="##"):
    """Returns a table for each order, with headings of this level."""
    noted = gathers[["bytes_per_rank", "notes"]].explode("notes").dropna()
    notes = {f"{size_text(size)}: {note}." for size, note in noted.itertuples(index=False)}
    out = [ABOVE, *sorted(notes)]
    of_all = medians(gathers)
    for order, of_order in gathers.groupby("order", sort=False):
        times = of_all.loc[order].unstack("variant").sort_index()
        of = lambda field, variant: times.reindex(columns=[(field, variant)])[field, variant]  # noqa: E731
        ours = of("median_s", "zero-copy")
        table = (1e6 * times["median_s"][of_order.variant.unique()]).apply(numbers, digits=1)
        table.insert(0, "bytes per rank", table.index.map(size_text))
        for variant in ("hier-unpack", "mpi-gather"):
            table[f"zero-copy, x as fast as {variant}"] = numbers(of("median_s", variant) / ours)
        for name, field in (("model", "predicted_s"), ("set-up", "setup_s")):
            table[f"zero-copy, {name}"] = numbers(1e6 * of(field, "zero-copy"), digits=1)
        out += ["", f"{level} Ranks {order_text(order, of_order)}", ""]
        out += [NOTHING_REORDERED, ""] if nothing_reordered(of_order) else []
        out.append(markdown(table, left=0)[:-1])
    return "\n".join(out) + "\n"


def draw(gathers, stem, formats=(), note=""):
    """Draws the plot; returns its files. `note` follows the place of the measurement."""
    times = 1e6 * medians(gathers).query("bytes_per_rank > 0 and median_s > 0")
    orders = [order for order in gathers.order.unique() if order in times.index]
    if not orders:
        return []
    heights = (3, 2) if "zero-copy" in times.index.get_level_values("variant") else (3,)
    size = 6.2 * len(orders), 1.6 * sum(heights)
    shape = {"sharex": True, "squeeze": False, "height_ratios": heights}
    figure, axes = pyplot.subplots(len(heights), len(orders), figsize=size, **shape)
    for order, (top, *below) in zip(orders, axes.T):
        of_order, rows = times.loc[order], gathers[gathers.order == order]
        for variant in of_order.index.unique("variant"):
            of_variant = of_order.loc[variant].sort_index()
            color, marker = STYLES.get(variant, ("#56b4e9", "."))
            style = {"color": color, "marker": marker, "markersize": 4, "label": variant}
            style["linestyle"] = "--" if variant == "mpi-gather" else "-"
            top.plot(of_variant.median_s, **style)
            spread = of_variant.p10_s, of_variant.p90_s
            top.fill_between(of_variant.index, *spread, color=color, alpha=0.1, linewidth=0)
            if "zero-copy" in of_order.index:
                for axis in below:
                    axis.plot((of_variant.median_s / of_order.median_s["zero-copy"]).dropna(), **style)
        same = " (nothing is reordered)" if nothing_reordered(rows) else ""
        top.set(title=f"ranks {order_text(order, rows)}{same}")
        top.set_xscale("log", base=2)
        sizes = sorted(set(rows.bytes_per_rank) - {0})
        top.set_xticks(sizes[:: -(-len(sizes) // 8)])
        top.xaxis.set_major_formatter(lambda size, _: size_text(round(size)) if size >= 1 else "")
        [top, *below][-1].set(xlabel="bytes of each rank")
        for axis in (top, *below):
            axis.grid(alpha=0.3)
            axis.tick_params(axis="x", labelsize=8)
    for row, formatter in zip(axes, ("{:g}".format, "{:g}x".format)):
        log_scale(row, "y", formatter)
    lines = {line.get_label(): line for axis in axes[0] for line in axis.lines}
    beside = {"loc": "upper left", "bbox_to_anchor": (1.01, 1), "borderaxespad": 0}
    axes[0][-1].legend(handles=list(lines.values()), fontsize=8, **beside)
    labels = "time of a gather, microseconds (median, p10 to p90)", "zero-copy is N x as fast"
    for row, label in zip(axes, labels):
        row[0].set_ylabel(label)
    figure.suptitle(f"Gather of {heading(gathers)}")
    figure.text(0.5, 0.005, source(gathers) + note, ha="center", fontsize=7)
    figure.tight_layout(rect=(0, 0.02, 1, 1))
    return save(figure, stem, formats)


def main():
    options = parser(__doc__)
    options.add_argument("file", metavar="FILE", type=pathlib.Path, nargs="?", default=RAW / "gather.jsonl")
    options.add_argument("name", metavar="NAME", nargs="?", help="of the files that are written")
    options.add_argument("--note", default="", help="what the records do not tell and a reader must know")
    folder = {"metavar": "FOLDER", "type": pathlib.Path, "default": PLACE / "gather"}
    options.add_argument("--out", help="default: results/mine/gather", **folder)
    arguments = options.parse_args()
    name = arguments.name or arguments.file.stem
    if pathlib.Path(name).name != name or name.startswith("."):
        options.error(f"NAME is a name, not '{name}': say --out FOLDER if it is to be in another folder")
    path = arguments.out / f"{name}.md"
    with clear_ending("gather.py", "give another folder with --out"):
        gathers = read(arguments.file)
        path.parent.mkdir(parents=True, exist_ok=True)
        note = f" {arguments.note}" if arguments.note else ""
        text = f"# Hierarchical gather: {heading(gathers)}\n\n{source(gathers)}.{note}\n\n{tables(gathers)}"
        path.write_text(text, encoding="utf-8")
        written = [path, *draw(gathers, path, arguments.formats, f".{note}" if note else "")]
    for each in written:
        print(shown(each))
    return 0


if __name__ == "__main__":
    end("gather.py", main)
