#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes a table and a plot of the exchange on many nodes, by the model and by SimGrid, from the files of
jobs/simgrid/compare.sh.

    results/predict.py NAME     results/raw/predict/NAME.jsonl, NAME-simulated.jsonl
                                -> results/mine/predict/NAME.md and .svg

Exit codes: 0 ok, 2 bad input, or no place for results, 3 a package is missing."""
import pathlib

from records import PLACE, BadInput, clear_ending, damaged, end, json_lines, shown
from reports import RAW, commit, markdown, numbers, pandas, parser, pyplot, save

# [PEA21] section 6.4: the whole exchange is 1050 x as fast as Spectrum MPI's on 192 ranks and 917 x
# on 3072. The text has no times, and it lacks Figure 12. So these are TEMPI's speeds relative to
# 192 ranks, if Spectrum MPI takes equally long on both.
PAPER = {192: 1.0, 3072: 917 / 1050}
PHASES = {
    "pack": ("tab:green", "s"), "transfer": ("tab:blue", "o"), "unpack": ("tab:orange", "^"),
    "total": ("black", "D"),
}  # fmt: skip
AGAIN = "run jobs/simgrid/compare.sh again"


def read(path, kind):
    records = [record for _, record in json_lines(path, "run jobs/simgrid/compare.sh")]
    if not records or any(not isinstance(record, dict) or record.get("kind") != kind for record in records):
        raise BadInput(f"{path} holds other things than records of kind {kind}: {AGAIN}")
    return pandas.DataFrame(records)


def both(predicted, simulated):
    """Returns the predictions, in milliseconds, with the simulated time of a transfer (`seconds`)."""
    times = {f"{phase}_ms": 1e3 * predicted[f"{phase}_s"].astype(float) for phase in PHASES}
    of_nodes = simulated.drop_duplicates("nodes", keep="last").set_index("nodes")
    return predicted.assign(**times).join(1e3 * of_nodes.seconds, "nodes")


def heading(predicted):
    last = predicted.iloc[-1]
    local = " x ".join(map(str, last.local))
    return f"{last.method}, {local} points of each rank, {last.ranks // last.nodes} ranks on each node"


def source(predicted, simulated):
    origin = predicted.provenance[0]
    model = pathlib.Path(origin["model"]["path"]).name
    return f"Model {model}, commit {commit(origin)}; SimGrid {simulated.simgrid[0]}"


def document(predicted, simulated, name):
    rows = both(predicted, simulated)
    sent = rows.transfer_ms.where(rows.transfer_ms > 0)
    milliseconds = lambda values: values.map("{:.3g}".format, na_action="ignore")  # noqa: E731
    table = {
        "nodes": rows.nodes,
        "ranks": rows.ranks,
        "off node, of a node (MB)": numbers(rows.bytes_off_node_of_node / 1e6, 1),
        **{phase: milliseconds(rows[f"{phase}_ms"]) for phase in PHASES},
        "limited by": rows.limited_by,
        "simulated": milliseconds(rows.seconds),
        "model: x as fast as simulated": numbers(rows.seconds / sent, 3),
    }
    return (
        f"# Predicted exchange: {name}\n\n{heading(predicted)}. {source(predicted, simulated)}.\n\n"
        "Milliseconds of the slowest rank. Simulated: the transfer alone, on a fat tree.\n\n"
        + markdown(table, left=0, text=["limited by"])
    )


def draw(predicted, simulated, name, stem, formats):
    rows = both(predicted, simulated).set_index("ranks")
    figure, (times, speeds) = pyplot.subplots(1, 2, figsize=(12.5, 5.2))
    for phase, (color, marker) in PHASES.items():
        style = {"color": color, "marker": marker, "markersize": 4}
        times.plot(rows[f"{phase}_ms"].dropna(), **style, label=f"{phase}, model")
    style = {"color": "tab:red", "marker": "x", "markersize": 8, "linestyle": "none"}
    times.plot(rows.seconds.dropna(), **style, label="transfer, SimGrid")
    times.set(yscale="log", ylabel="milliseconds of the slowest rank", title="Phases of an exchange")
    if 192 in rows.index:
        base = rows.total_ms[192]
        of_model = {"color": "black", "marker": "D", "markersize": 4}
        speeds.plot(base / rows.total_ms[rows.nodes > 1], **of_model, label="total, model")
        total = (rows.seconds + rows.total_ms - rows.transfer_ms).dropna()
        speeds.plot(base / total, **style, label="total with SimGrid's transfer")
        of_paper = {"color": "tab:purple", "marker": "*", "markersize": 11, "linestyle": "--"}
        label = "[PEA21] 6.4, if Spectrum MPI takes equally long on both"
        speeds.plot(*zip(*PAPER.items()), **of_paper, label=label)
        speeds.set(ylabel="x as fast as on 192 ranks", title="Speed by the number of ranks", ylim=(0, None))
    for axis in (times, speeds):
        axis.set_xscale("log", base=2)
        axis.set_xlabel("ranks")
        axis.xaxis.set_major_formatter(lambda value, _: f"{round(value):,}")
        axis.tick_params(axis="x", rotation=45)
        axis.grid(alpha=0.3)
        axis.legend(fontsize=8)
    figure.suptitle(f"{name}: {heading(predicted)}")
    figure.text(0.5, 0.005, source(predicted, simulated), ha="center", fontsize=7)
    figure.tight_layout(rect=(0, 0.02, 1, 1))
    return save(figure, stem, formats)


def main():
    options = parser(__doc__)
    options.add_argument("name", metavar="NAME")
    arguments = options.parse_args()
    raw, path = RAW / "predict" / f"{arguments.name}.jsonl", PLACE / "predict" / f"{arguments.name}.md"
    with clear_ending("predict.py", f"make {path.parent} writable"):
        predicted = read(raw, "predict")
        simulated = read(raw.with_name(f"{raw.stem}-simulated.jsonl"), "simulation")
        path.parent.mkdir(parents=True, exist_ok=True)
        with damaged(raw, AGAIN):
            text = document(predicted, simulated, arguments.name)
            plots = draw(predicted, simulated, arguments.name, path, arguments.formats)
        path.write_text(text, encoding="utf-8")
    for each in [path, *plots]:
        print(shown(each))
    return 0


if __name__ == "__main__":
    end("predict.py", main)
