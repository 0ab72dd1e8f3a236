#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes a table and a plot of the exchange on many nodes, by the model and by SimGrid, from the files of
jobs/simgrid/compare.sh.

    results/predict.py NAME     results/raw/predict/NAME.jsonl, NAME-simulated.jsonl -> results/mine/predict/NAME.md, .svg and .png

The plot needs matplotlib, the table does not."""
import pathlib
import sys

from records import PLACE, RESULTS, BadInput, clear_ending, damaged, end, json_lines, prefer_matplotlib, pyplot, shown

# [PEA21] section 6.4: the whole exchange is 1050 x as fast as Spectrum MPI's on 192 ranks and 917 x
# on 3072. The text has no times, and it lacks Figure 12. So these are TEMPI's speeds relative to
# 192 ranks, if Spectrum MPI takes equally long on both.
PAPER = {192: 1.0, 3072: 917 / 1050}


def read(path, kind):
    records = [record for _, record in json_lines(path, "run jobs/simgrid/compare.sh")]
    if not records or any(not isinstance(record, dict) or record.get("kind") != kind for record in records):
        raise BadInput(f"{path} holds other things than records of kind {kind}: run jobs/simgrid/compare.sh again")
    return records


def heading(first):
    local = " x ".join(map(str, first["local"]))
    return f"{first['method']}, {local} points of each rank, {first['ranks'] // first['nodes']} ranks on each node"


def source(first):
    origin = first["provenance"]
    return f"Model {pathlib.Path(origin['model']['path']).name}, commit {origin['git'][:12]}{' and changes' if origin['dirty'] else ''}"


def milliseconds(seconds):
    return "-" if seconds is None else f"{1e3 * seconds:.3g}"


def table(predicted, simulated, name):
    transfer = {record["nodes"]: record["seconds"] for record in simulated}
    out = [f"# Predicted exchange: {name}", "", f"{heading(predicted[-1])}. {source(predicted[0])}; SimGrid {simulated[0]['simgrid']}.", ""]
    out += ["Milliseconds of the slowest rank. Simulated: the transfer alone, on a fat tree.", ""]
    out += ["| nodes | ranks | off node, of a node (MB) | pack | transfer | unpack | total | limited by | simulated | model: x as fast as simulated |"]
    out += ["|---:|---:|---:|---:|---:|---:|---:|---|---:|---:|"]
    for record in predicted:
        phases = [milliseconds(record[f"{phase}_s"]) for phase in ("pack", "transfer", "unpack", "total")]
        seconds = transfer.get(record["nodes"])
        ratio = f"{seconds / record['transfer_s']:.3f}" if seconds and record["transfer_s"] else "-"
        row = [record["nodes"], record["ranks"], f"{record['bytes_off_node_of_node'] / 1e6:.1f}", *phases, record["limited_by"] or "-"]
        out.append("| " + " | ".join(map(str, [*row, milliseconds(seconds), ratio])) + " |")
    return "\n".join(out) + "\n"


def draw(predicted, simulated, name, path):
    plots = pyplot("predict.py")
    if plots is None:
        return []
    figure, (times, speeds) = plots.subplots(1, 2, figsize=(12.5, 5.2))
    for phase, color, marker in (("pack", "tab:green", "s"), ("transfer", "tab:blue", "o"), ("unpack", "tab:orange", "^"), ("total", "black", "D")):
        points = [(record["ranks"], 1e3 * record[f"{phase}_s"]) for record in predicted if record[f"{phase}_s"] is not None]
        times.plot(*zip(*points), color=color, marker=marker, markersize=4, label=f"{phase}, model")
    at, seconds = zip(*((record["ranks"], record["seconds"]) for record in simulated))
    style = {"color": "tab:red", "marker": "x", "markersize": 8, "linestyle": "none"}
    times.plot(at, [1e3 * each for each in seconds], **style, label="transfer, SimGrid")
    times.set(yscale="log", ylabel="milliseconds of the slowest rank", title="Phases of an exchange")

    total = {record["ranks"]: record["total_s"] for record in predicted}
    base = total.get(192)
    if base:
        several = [record["ranks"] for record in predicted if record["nodes"] > 1]
        speeds.plot(several, [base / total[each] for each in several], color="black", marker="D", markersize=4, label="total, model")
        rest = {record["ranks"]: record["total_s"] - record["transfer_s"] for record in predicted}
        simulated_total = [(each, base / (second + rest[each])) for each, second in zip(at, seconds) if each in rest]
        speeds.plot(*zip(*simulated_total), **style, label="total with SimGrid's transfer")
        speeds.plot(*zip(*PAPER.items()), color="tab:purple", marker="*", markersize=11, linestyle="--", label="[PEA21] 6.4, if Spectrum MPI takes equally long on both")
        speeds.set(ylabel="x as fast as on 192 ranks", title="Speed by the number of ranks", ylim=(0, None))
    for axis in (times, speeds):
        axis.set_xscale("log", base=2)
        axis.set_xlabel("ranks")
        axis.xaxis.set_major_formatter(lambda value, _: f"{round(value):,}")
        axis.tick_params(axis="x", rotation=45)
        axis.grid(alpha=0.3)
        axis.legend(fontsize=8)
    figure.suptitle(f"{name}: {heading(predicted[-1])}")
    figure.text(0.5, 0.005, f"{source(predicted[0])}; SimGrid {simulated[0]['simgrid']}", ha="center", fontsize=7)
    figure.tight_layout(rect=(0, 0.02, 1, 1))
    written = [path.with_suffix(".svg"), path.with_suffix(".png")]
    figure.savefig(written[0], metadata={"Date": None})
    figure.savefig(written[1], dpi=130)
    return written


def main(arguments):
    if len(arguments) != 1 or arguments[0] in ("-h", "--help"):
        print(__doc__.strip(), file=sys.stdout if arguments else sys.stderr)
        return 0 if arguments in (["-h"], ["--help"]) else 2
    (name,) = arguments
    raw, path = RESULTS / "raw" / "predict", PLACE / "predict" / f"{name}.md"
    with clear_ending("predict.py", f"make {path.parent} writable"):
        predicted = read(raw / f"{name}.jsonl", "predict")
        simulated = read(raw / f"{name}-simulated.jsonl", "simulation")
        path.parent.mkdir(parents=True, exist_ok=True)
        with damaged(raw / f"{name}.jsonl", "run jobs/simgrid/compare.sh again"):
            text = table(predicted, simulated, name)
            plots = draw(predicted, simulated, name, path)
        path.write_text(text, encoding="utf-8")
        written = [path, *plots]
    for each in written:
        print(shown(each))
    return 0


if __name__ == "__main__":
    prefer_matplotlib()
    end("predict.py", lambda: main(sys.argv[1:]))
