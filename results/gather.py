#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes tables and a plot of hierarchical gathers: the counterpart of Figure 3 of [TR14].

    mpirun -n 4 halocline gather --config configs/gather-fig3.toml --ranks-per-node 2 --output results/raw/gather.jsonl
    results/gather.py                       # results/raw/gather.jsonl -> results/mine/gather/gather.md, .svg and .png
    results/gather.py FILE NAME             # FILE -> results/mine/gather/NAME.md, ...; NAME: that of FILE without its end

FILE holds records of kind gather (results/records.md). Several records of one experiment count as their median. The
plot needs matplotlib, the tables do not.
Exit codes: 0 ok, 2 bad input (then nothing is written), or no place for results."""
import argparse
import collections
import pathlib
import statistics

from records import PLACE, RESULTS, BadInput, clear_ending, end, fault, json_lines, log_scale, prefer_matplotlib, pyplot, shown

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

NOTHING_REORDERED = "Nothing is reordered: all of ours but the forced variants are the same code here, and what their speeds differ by is noise."


def what_is_common(record):
    """Returns the properties that all records of an experiment have in common."""
    run = [record[key] for key in ("ranks", "nodes", "nodes_emulated", "root")]
    return run + [record["provenance"][key] for key in ("mpi_library", "cpus", "git", "dirty")]


def read(path):
    """Returns order -> variant -> size -> records, and the first record, for the properties that all have in common."""
    hint = "give what halocline gather wrote with --output"
    out = collections.defaultdict(lambda: collections.defaultdict(lambda: collections.defaultdict(list)))
    first = None
    for number, record in json_lines(path, hint):
        wrong = fault(record, "gather.schema.json")
        if wrong:
            raise BadInput(f"line {number} of {path} is no record of a gather ({wrong}): {hint}")
        out[record["order"]][record["variant"]][record["bytes_per_rank"]].append(record)
        first = first or record
        if what_is_common(record) != what_is_common(first):
            raise BadInput(
                f"{path} holds gathers of different ranks, nodes, roots, machines, MPIs or commits (line {number}): give one experiment"
            )
    if first is None:
        raise BadInput(f"{path} is empty: {hint}")
    return out, first


def median(records, field="median_s"):
    values = [record[field] for record in records if record[field] is not None]
    return statistics.median(values) if values and all(record["verified"] for record in records) else None


def size_text(size):
    for unit, bytes_ in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= bytes_:
            return f"{size / bytes_:g} {unit}"
    return f"{size} B"


def cell(value, scale=1e6, digits=1):
    return "-" if value is None else f"{value * scale:.{digits}f}"


def ratio(a, b):
    return "-" if not a or not b else f"{a / b:.2f}"


def order_text(order, variants):
    """Says how the ranks are ordered. In an `ordered` communicator they are in the order of their nodes, unless the
    launcher dealt them out otherwise."""
    plans = [record for of_size in variants.get("hier-unpack", {}).values() for record in of_size]
    dealt_out = order == "ordered" and any(record["reordered_bytes"] for record in plans)
    return "in the launcher's order, which is not that of their nodes" if dealt_out else order


def nothing_reordered(variants):
    """Tells if the ranks are in the order of their nodes: the variants that can reorder have reordered nothing."""
    would = [record for name in ("hier-unpack", "hier-sendrecv", "hier-plan") for of_size in variants.get(name, {}).values() for record in of_size]
    moved = [record["reordered_bytes"] for record in would if record["bytes_per_rank"] > 0]
    return bool(moved) and not any(moved)


def heading(first):
    nodes = f"{first['nodes']} {'emulated ' if first['nodes_emulated'] else ''}node{'s' if first['nodes'] != 1 else ''}"
    return f"{first['ranks']} ranks on {nodes}, root {first['root']}"


def source(first):
    origin = first["provenance"]
    dirty = " and changes" if origin["dirty"] else ""
    return f"{origin['mpi_library'].split(',')[0]}, {'; '.join(origin['cpus'])}, commit {origin['git'][:12]}{dirty}, {origin['time']}"


def notes(gathers):
    """Returns the notes of all records, by size."""
    records = [record for variants in gathers.values() for sizes in variants.values() for of_size in sizes.values() for record in of_size]
    return sorted({f"{size_text(record['bytes_per_rank'])}: {note}." for record in records for note in record["notes"]})


def tables(gathers, level="##"):
    """Returns a table for each order, with headings of this level."""
    out = [
        "Medians in microseconds of the slowest rank; variants took turns, and each was verified before it was timed. `-`: not measured. Model: the"
        " messages alone, by latency and rate of a link as measured in the same run. Set-up: making a plan again, its communicators kept.",
        *notes(gathers),
    ]
    for order, variants in gathers.items():
        sizes = sorted({size for of_variant in variants.values() for size in of_variant})
        ours, unpack = variants.get("zero-copy", {}), variants.get("hier-unpack", {})
        columns = ["bytes per rank", *variants]
        rows = []
        for size in sizes:
            row = [size_text(size), *(cell(median(of_variant.get(size, []))) for of_variant in variants.values())]
            mine = median(ours.get(size, []))
            row.append(ratio(median(unpack.get(size, [])), mine))
            row.append(ratio(median(variants.get("mpi-gather", {}).get(size, [])), mine))
            row.append(cell(median(ours.get(size, []), "predicted_s")))
            row.append(cell(median(ours.get(size, []), "setup_s")))
            rows.append(row)
        columns += ["zero-copy, x as fast as hier-unpack", "zero-copy, x as fast as mpi-gather", "zero-copy, model", "zero-copy, set-up"]
        out += ["", f"{level} Ranks {order_text(order, variants)}", ""]
        if nothing_reordered(variants):
            out += [NOTHING_REORDERED, ""]
        out += ["| " + " | ".join(columns) + " |", "|" + "---:|" * len(columns)]
        out += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(out) + "\n"


def draw(gathers, first, path, ends=("svg", "png"), note=""):
    """Draws the plot; returns the files PATH.END. `note` follows the place of the measurement."""
    timed = lambda variants: any(size and median(records) for sizes in variants.values() for size, records in sizes.items())  # noqa: E731
    gathers = {order: variants for order, variants in gathers.items() if timed(variants)}
    plots = pyplot("gather.py") if gathers else None
    if plots is None:
        return []
    heights = (3, 2) if any(timed({"": variants.get("zero-copy", {})}) for variants in gathers.values()) else (3,)
    figure, axes = plots.subplots(
        len(heights), len(gathers), figsize=(6.2 * len(gathers), 1.6 * sum(heights)), sharex=True, squeeze=False, height_ratios=heights
    )
    lines = {}
    for (times, *ratios), (order, variants) in zip(axes.T, gathers.items()):
        ours = {size: median(records) for size, records in variants.get("zero-copy", {}).items()}
        for variant, sizes in variants.items():
            points = sorted((size, median(records)) for size, records in sizes.items() if size and median(records))
            color, marker = STYLES.get(variant, ("#56b4e9", "."))
            line = "--" if variant == "mpi-gather" else "-"
            style = {"color": color, "marker": marker, "markersize": 4, "label": variant, "linestyle": line}
            at = [size for size, _ in points]
            times.plot(at, [seconds * 1e6 for _, seconds in points], **style)
            low, high = ([statistics.median(record[field] for record in sizes[size]) * 1e6 for size in at] for field in ("p10_s", "p90_s"))
            times.fill_between(at, low, high, color=color, alpha=0.1, linewidth=0)
            common = [(size, seconds / ours[size]) for size, seconds in points if ours.get(size)]
            for axis in ratios:
                axis.plot([size for size, _ in common], [ratio_ for _, ratio_ in common], **style)
        times.set(title=f"ranks {order_text(order, variants)}" + (" (nothing is reordered)" if nothing_reordered(variants) else ""))
        times.set_xscale("log", base=2)
        sizes = sorted({size for of_variant in variants.values() for size in of_variant if size})
        times.set_xticks(sizes[:: -(-len(sizes) // 8)])
        times.xaxis.set_major_formatter(lambda size, _: size_text(round(size)) if size >= 1 else "")
        lines |= {line.get_label(): line for line in times.lines}
        [times, *ratios][-1].set(xlabel="bytes of each rank")
        for axis in (times, *ratios):
            axis.grid(alpha=0.3)
            axis.tick_params(axis="x", labelsize=8)
    for row, formatter in zip(axes, ("{:g}".format, "{:g}x".format)):
        log_scale(row, "y", formatter)
    axes[0][-1].legend(handles=list(lines.values()), fontsize=8, loc="upper left", bbox_to_anchor=(1.01, 1), borderaxespad=0)
    axes[0][0].set_ylabel("time of a gather, microseconds (median, p10 to p90)")
    if len(axes) > 1:
        axes[1][0].set_ylabel("zero-copy is N x as fast")
    figure.suptitle(f"Gather of {heading(first)}")
    figure.text(0.5, 0.005, source(first) + note, ha="center", fontsize=7)
    figure.tight_layout(rect=(0, 0.02, 1, 1))
    written = []
    for end in ends:
        metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(end)
        figure.savefig(path.with_suffix(f".{end}"), metadata=metadata, dpi=130)
        written.append(path.with_suffix(f".{end}"))
    plots.close(figure)
    return written


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", metavar="FILE", type=pathlib.Path, nargs="?", default=RESULTS / "raw" / "gather.jsonl")
    parser.add_argument("name", metavar="NAME", nargs="?", help="of the files that are written")
    parser.add_argument("--note", default="", help="what the records do not tell and a reader must know: a sentence")
    parser.add_argument("--out", metavar="FOLDER", type=pathlib.Path, default=PLACE / "gather", help="default: results/mine/gather")
    arguments = parser.parse_args()
    name = arguments.name or arguments.file.stem
    if pathlib.Path(name).name != name or name.startswith("."):
        parser.error(f"NAME is a name, not '{name}': say --out FOLDER if it is to be elsewhere than in results/mine/gather")
    path = arguments.out / f"{name}.md"
    with clear_ending("gather.py", "give another folder with --out"):
        gathers, first = read(arguments.file)
        path.parent.mkdir(parents=True, exist_ok=True)
        note = f" {arguments.note}" if arguments.note else ""
        path.write_text(f"# Hierarchical gather: {heading(first)}\n\n{source(first)}.{note}\n\n{tables(gathers)}", encoding="utf-8")
        written = [path, *draw(gathers, first, path, note=f".{note}" if note else "")]
    for each in written:
        print(shown(each))
    return 0


if __name__ == "__main__":
    prefer_matplotlib()
    end("gather.py", main)
