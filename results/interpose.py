#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes tables and plots of the measurements of jobs/local/interpose.sh, which calls this script.

    interpose.py [FOLDER [TARGET]]     FOLDER (results/raw/interpose) -> TARGET/README.md, messages and both-ways (.png and .svg)
                                       (results/mine/interpose)

`N x as fast`: above 1, it is faster through the interposer. The plots need matplotlib, the tables do not.
Exit codes: 0 ok, 2 bad input (then nothing is written)."""
import pathlib
import re
import statistics
import sys

from records import PLACE, RESULTS, clear_ending, damaged, end, lines_of, load, prefer_matplotlib, pyplot, read_text, shown
from tables import markdown, number

MIB = 1 << 20
AGAIN = "measure with jobs/local/interpose.sh"


def read(path):
    """Returns provenance and rows of a file."""
    text = read_text(path, AGAIN)
    with damaged(path, AGAIN):
        lines = [load(line) for line in lines_of(text) if line.startswith("{")]
        return lines[0]["provenance"], lines[1:]


def spread(row, field, scale=1.0, digits=1):
    values = [row[f"{field}{part}_ns"] / scale for part in ("", "_p10", "_p90")]
    return f"{values[0]:.{digits}f} ({values[1]:.{digits}f}-{values[2]:.{digits}f})"


def packs(rows):
    table = [
        [
            row["case"],
            str(row["bytes"]),
            spread(row, "pack"),
            number(row["pack_vs_hand"]) + "/" + number(row["unpack_vs_hand"]),
            number(row.get("vendor_pack_vs_hand")) + "/" + number(row.get("vendor_unpack_vs_hand")),
            *(f"{(row[ours + '_ns'] - row[hand + '_ns']) / row['packs']:.0f}" if row["bytes"] < 4096 else "" for ours, hand in (("pack", "hand"), ("unpack", "hand_unpack"))),
            "yes" if row["verified"] else "**no**",
        ]
        for row in rows
    ]
    header = ["case", "bytes", "MPI_Pack through it, ns", "x as fast as the loop by hand", "MPI's own: x as fast as the loop", "ns more for each pack", "unpack", "verified"]
    return markdown(header, table)


def calls(rows):
    table = [
        [row["case"], str(row["calls"]), spread(row, "mpi"), spread(row, "through"), f"{row['more_ns']:.1f}", number(row.get("good_more_ns"), 0)]
        for row in rows
    ]
    return markdown(["calls", "intercepted", "by MPI, ns", "through the interposer, ns", "more for each, ns", "at most"], table)


def messages(rows):
    table = [
        [
            row["case"],
            str(row["bytes"]),
            str(row["blocks"]),
            spread(row, "interposed", 1e3, 2),
            spread(row, "vendor", 1e3, 2),
            number(row.get("vs_vendor")),
            "yes" if row["verified"] else "**no**",
        ]
        for row in rows
    ]
    return markdown(["message", "bytes", "blocks", "through it, us", "MPI, us", "x as fast as MPI", "verified"], table)


def example(folder, language):
    """Returns the times of each part in the median run, without and with the interposer. Empty if the program was not
    run."""
    runs = {}
    for which in ("without", "with"):
        for path in folder.glob(f"halo-{language}-{which}-*.txt"):
            for line in lines_of(read_text(path, AGAIN)):
                found = re.fullmatch(r"(.+?) +(\d+) +([\d.]+) +([\d.]+) +([\d.]+)", line.strip())
                if found:
                    runs.setdefault(found[1], {}).setdefault(which, []).append([float(found[i]) for i in (3, 4, 5)])
    if not runs:
        return ""
    table = []
    for part, of_part in runs.items():
        without, through = ([statistics.median(times) for times in zip(*of_part[which])] for which in ("without", "with"))
        table.append([part, *(f"{a:.2f} -> {b:.2f} ({a / max(b, 1e-3):.2f} x)" for a, b in zip(without, through))])
    return markdown(["part", "pack, us", "unpack, us", "exchange, us"], table)


def draw(rows, title, stem):
    prefer_matplotlib()
    plots = pyplot("interpose.py")
    if plots is None:
        return False
    figure, axis = plots.subplots(figsize=(8, 4.5))
    blocks = sorted({row["bytes"] // row["blocks"] for row in rows})
    for index, block in enumerate(blocks):
        points = sorted((row["bytes"], row["vs_vendor"]) for row in rows if row["bytes"] // row["blocks"] == block and row.get("vs_vendor"))
        axis.plot(*zip(*points), "os^vD*"[index % 6] + "-", label=f"blocks of {block} bytes")
    axis.axhline(1, color="grey", linewidth=0.8)
    axis.set_xscale("log", base=2)
    axis.set_xticks(sorted({row["bytes"] for row in rows}), [f"{b // MIB} MiB" if b >= MIB else f"{b // 1024} KiB" for b in sorted({row["bytes"] for row in rows})])
    axis.set_ylim(bottom=0)
    axis.set_xlabel("packed bytes of a message")
    axis.set_ylabel("through the interposer: x as fast as MPI")
    axis.set_title(title, fontsize="small")
    axis.legend(fontsize="small")
    figure.tight_layout()
    for end in (".png", ".svg"):
        figure.savefig(stem.with_suffix(end), dpi=150)
    return True


def main():
    if {"-h", "--help"} & set(sys.argv[1:]) or len(sys.argv) > 3:
        print(__doc__)
        return 0 if len(sys.argv) <= 3 else 2
    with clear_ending("interpose.py", "give another TARGET"):
        write()
    return 0


def write():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else RESULTS / "raw/interpose")
    target = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else PLACE / "interpose")
    facts, call_rows = read(folder / "calls.jsonl")
    pack_rows, message_rows, both_rows, plain_rows = (read(folder / f"{name}.jsonl")[1] for name in ("packs", "messages", "both-ways", "plain"))
    with damaged(folder, AGAIN):
        text = document(folder, target, facts, call_rows, pack_rows, message_rows, both_rows, plain_rows)
    (target / "README.md").write_text(text, encoding="utf-8")
    print(f"written: {shown(target)}/README.md")


def document(folder, target, facts, call_rows, pack_rows, message_rows, both_rows, plain_rows):
    mpi = call_rows[0]["mpi"]
    commit = facts["git"][:12] + (" with changes" if facts["dirty"] else "")
    target.mkdir(parents=True, exist_ok=True)
    title = f"{mpi}, {facts['cpu']}, commit {commit}"
    drawn = draw(message_rows, f"one way: {title}", target / "messages") and draw(both_rows, f"both ways at once: {title}", target / "both-ways")
    lines = [
        "# What programs get that have libhalocline_mpi.so in front of their MPI\n",
        "Medians of interleaved samples, 10th to 90th percentile in brackets. `N x as fast`: above 1, it is faster through the interposer. Every row was verified byte "
        "by byte before it was timed. `HALOCLINE_MPI` is `auto`: the engine takes over what it was measured to be faster at. Model: that of this machine.\n",
        "## Packing\n",
        "The rows of Table 1 of [RMG03], and packs below 4 KiB, where what counts is how much more a call takes than the loop by hand.\n",
        packs(pack_rows),
        "## Calls that are passed on\n",
        "Of MPI's own types (`named`), of a derived one that is contiguous (`derived`), and of one with gaps whose messages are MPI's by the model (`gaps`); to nobody or "
        "to the rank itself, which is its only neighbor on either side. The last two are what learning costs: of a type when it is committed (made and freed, too), and "
        "with each use of the engine that a buffer is in the host's memory, here in a process without CUDA's driver; `bench_device` has it with one (`kind-of-*`) [PEA21 section 6.3].\n",
        calls(call_rows),
        "## Messages\n",
        "Half of the time there and back between two ranks of a node; blocks with gaps of their length.\n",
        "![messages through the interposer: x as fast as MPI](messages.png)\n" if drawn else "",
        messages(message_rows),
        "## Messages both ways at once\n",
        "The same messages, which both ranks send at once by `MPI_Irecv`, `MPI_Isend` and `MPI_Waitall`: the time of such an exchange.\n",
        "![exchanges through the interposer: x as fast as MPI](both-ways.png)\n" if drawn else "",
        messages(both_rows),
        "## Programs without derived types\n",
        "The same of doubles, in a process that never makes a type.\n",
        messages(plain_rows),
    ]
    for language, name in (("c", "C"), ("f90", "Fortran")):
        table = example(folder, language)
        if table:
            lines += [f"## The example in {name}\n", "Parts of a block of 128^3 doubles, two ranks: without -> with (with it, N x as fast); medians of five runs in turns.\n", table]
    lines += ["## Provenance\n", f"{mpi}; {facts['cpu']}; {facts['time']}; commit {commit}; compiler {call_rows[0]['compiler']}; `{facts['command'].strip()}`"]
    return "\n".join(line for line in lines if line) + "\n"


if __name__ == "__main__":
    end("interpose.py", main)
