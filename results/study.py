#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes a table, plots and a report of a scaling study.

    results/study.py --check                # says what a report of any study would lack here
    jobs/local/study.sh local               # or a batch job of jobs/slurm or jobs/lsf; each calls this script at its end
    results/study.py STUDY                  # results/raw/STUDY -> results/mine/STUDY: data.csv, REPORT.md, REPORT.html, and plots

Works with the points that are done. results/raw/STUDY has study.json, which lists the points, and POINT.jsonl of each
point that is done. Call it again when more points are done. It writes:
  data.csv    a row for each point, method and phase, for pandas or R; results/studies.md has the columns
  REPORT.md   the answer, the machines, the points that are done, tables of efficiencies, ratios and phases, and the plots
  REPORT.html the same as one file, plots included, to pass on
  fastest     the speed of our fastest method relative to the MPI's fastest, by ranks
  figure12    phases of an exchange, and speed relative to the MPI's fastest method, by ranks: the two panels of Figure 12 of [PEA21]
  scaling     weak scaling: time and efficiency; strong scaling: speed-up and efficiency
  methods     every method at the most ranks: its speed relative to the MPI's fastest
  phases      the phases of each method, stacked
  gathers     gathers by size (results/gather.py)
A plot is made as .png and .pdf if there is something to plot, and matplotlib 3.6 or later (Debian:
python3-matplotlib). REPORT.html needs markdown-it-py (Debian: python3-markdown-it). Everything else needs only the
standard library. Records that are not verified are in no plot and no ratio, and the report begins with them.

git ignores these files. HALOCLINE_RESULTS=results writes to results/STUDY, which is kept with the project. A plot or
REPORT.html that already exists stays if it cannot be made again here.

Exit codes: 0 ok, 1 something is not verified (all is written, without it), 2 bad input (then nothing is written or
changed)."""

import argparse
import csv
import os
import pathlib
import tempfile

import gather
import study_page
import study_plots
from diff import seconds
from records import PLACE, RESULTS, clear_ending, end, prefer_matplotlib, pyplot, shown, tell
from study_data import NOISY, STATISTICS, Study, is_emulated, ratio_text, seconds_of
from tables import markdown

PHASES = (
    "pack", "transfer", "unpack", "compute", "total", "post", "interior", "wait", "boundary",
    "plain_exchange", "plain_compute", "plain_total",
)  # fmt: skip
TRIPLES = ("decomposition", "local", "global")
AS_RECORDED = (
    "fields", "layout", "radius", "periodic", "stencil", "element_bytes", "memory", "storage", "method", "exchange", "chosen",
    "transfer", "shape", "neighbors", "messages_per", "describe", "packer", "reorder", "overlap", "progress", "threads", "order",
    "bytes_per_rank", "root", "bytes_to_others", "bytes_to_self", "messages", "bytes_off_node", "messages_off_node",
    "bytes_off_node_total",
)  # fmt: skip
COLUMNS = (
    "study", "group", "scaling", "point", "command", "ranks", "nodes", "ranks_per_node", "nodes_emulated", "oversubscribed",
    *(f"{triple}_{axis}" for triple in TRIPLES for axis in "xyz"), *AS_RECORDED, "phase", *STATISTICS, "iterations", "verified",
    "baseline", "baseline_storage", "baseline_shape", "ratio_to_baseline", "predicted_s",
    "git", "dirty", "compiler", "mpi_library", "cpus", "gpus", "hosts", "time", "notes",
)  # fmt: skip
OF_TOTAL = ("baseline", "baseline_storage", "baseline_shape", "predicted_s")


def rows(study):
    """Yields the rows of data.csv: {column: value}."""
    for point in study.points:
        group = study.group(point)
        for record in point.records:
            origin = record["provenance"]
            row = {
                "study": study.name,
                "group": group.name,
                "scaling": group.scaling,
                "point": point.name,
                "command": record["kind"],
            }
            row |= {name: record[name] for name in (*AS_RECORDED, "ranks", "nodes", "iterations", "verified") if name in record}
            row |= {"ranks_per_node": f"{record['ranks'] / record['nodes']:g}", "nodes_emulated": is_emulated(record)}
            row |= {
                "oversubscribed": study.oversubscribed(point),
                "hosts": len(origin["hosts"]),
                "notes": "; ".join(record["notes"]),
            }
            row |= {name: origin[name] for name in ("git", "dirty", "compiler", "mpi_library", "time")}
            row |= {name: "; ".join(origin[name]) for name in ("cpus", "gpus")}
            row |= {
                f"{triple}_{axis}": value for triple in TRIPLES if triple in record for axis, value in zip("xyz", record[triple])
            }
            if record["kind"] == "gather":
                row["method"] = record["variant"]
            for phase in PHASES:
                statistics = record["phases"][phase] if "phases" in record else record if phase == "total" else None
                if phase == "total":  # also for records without times
                    of_total = {name: record[name] for name in OF_TOTAL if name in record} | {
                        "ratio_to_baseline": point.ratio(record)
                    }
                    yield row | of_total | {"phase": phase} | {name: statistics and statistics[name] for name in STATISTICS}
                elif statistics:
                    yield row | {"phase": phase} | {name: statistics[name] for name in STATISTICS}


def cell(value):
    return "" if value is None else str(value).lower() if isinstance(value, bool) else value


def write_csv(study, path):
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for row in rows(study):
            writer.writerow([cell(row.get(column)) for column in COLUMNS])


def method_of(point, record):
    """Returns the method with the settings that distinguish it from another record of the same name at this point."""
    if record["kind"] == "gather":
        return f"{record['variant']} ({record['order']}, {gather.size_text(record['bytes_per_rank'])})"
    shape = "" if record["shape"] == "direct" else f", {record['shape']}"
    storages = {other["storage"] for other in point.records if other["method"] == record["method"]}
    return record["method"] + shape + (", private memory" if record["storage"] == "private" and len(storages) > 1 else "")


def unverified(study):
    """Returns {point: its methods that are not verified}."""
    found = {point.name: [method_of(point, record) for record in point.records if not record["verified"]] for point in study.points}
    return {name: methods for name, methods in found.items() if methods}


def first_of_all(study):
    """Returns the warnings that nobody may miss."""
    if not study.records:
        return "Nothing but system models here."
    out = [
        f"**Not verified, and in no plot, table or ratio: {name}: {', '.join(methods)}.**"
        for name, methods in unverified(study).items()
    ]
    if not out:
        out = ["Every record is verified: the program checks what it times, and times nothing else."]
    for what, values in (("commits", study.commits()), ("MPIs", study.origins("mpi_library")), ("CPUs", study.origins("cpus")), ("GPUs", study.origins("gpus"))):
        if len(values) > 1:
            out.append(f"**Points are of different {what} ({'; '.join(values)}): compare no times across them.**")
    missing = [point for point in study.points if not point.done]
    failed = [point.name for point in missing if point.exit_code is not None]
    if failed:
        out.append(f"**Failed: {', '.join(failed)}.**")
    largest = max(point.nodes_asked for point in study.points if point.path.exists())
    larger = sum(point.nodes_asked > largest for point in missing)
    if len(missing) > larger:
        out.append(f"**Not done yet: {len(missing) - larger} of {len(study.points)} points.**")
    if larger:
        out.append(f"{larger} points of the study have more nodes than the largest that ran.")
    noisy = [point.name for point in study.points if point.noisy()]
    if noisy:
        out.append(f"**Noisy, p90 more than {NOISY} times p10 of our or the MPI's fastest: {', '.join(noisy)}.**")
    crowded = [point.name for point in study.points if study.oversubscribed(point)]
    if crowded:
        out.append(f"**More ranks than cores: {', '.join(crowded)}.**")
    return "\n\n".join(out)


def answer(study):
    """Returns at most three sentences: the fastest method and its place, the range over all points, and the scaling."""
    every = study.compared()
    compared = [one for one in every if study.oversubscribed(one[0]) is not True] or every
    if not compared:
        return ""
    fast = lambda value: f"{ratio_text(value)[:-1]} x"  # noqa: E731
    point, ours, theirs, ratio, *_ = max(compared, key=lambda one: one[0].ranks)
    sentences = [
        f"With {point.place()}, `{method_of(point, ours)}` exchanges the halo **{fast(ratio)} as fast** as the MPI's fastest method, "
        f"`{method_of(point, theirs)}`: in {seconds(seconds_of(ours))} instead of {seconds(seconds_of(theirs))}."
    ]
    if len(compared) > 1:
        ratios = sorted(one[3] for one in compared)
        cores = " with a core for each rank" if len(compared) < len(every) else ""
        sentences.append(f"Over {len(compared)} points{cores}, our fastest method is {ratio_text(ratios[0])[:-1]} to {fast(ratios[-1])} as fast as the MPI's fastest.")
    for group in study.groups:
        curve = next((one for one in group.fastest_curves("compare") if one.label == method_of(point, ours)), None)
        found = list(curve.efficiencies("weak")) if curve and group.scaling == "weak" else []
        if len(found) > 1:
            first, last = found[0], found[-1]
            cores = ", which are more than the cores" if study.oversubscribed(last[0]) else ""
            sentences.append(
                f"In weak scaling it keeps {100 * last[2]:.0f} % of its speed from {first[0].ranks} to {last[0].ranks} ranks{cores}."
            )
            break
    return " ".join(sentences) + "\n"


def facts(study):
    every = lambda key: "; ".join(study.origins(key))  # noqa: E731
    times, hosts = study.origins("time"), len(study.origins("hosts"))
    config = f", `{study.config}`" if study.config else ""
    table = [
        ["study", f"`{study.name}`, site {study.site}, launcher {study.launcher}{config}"],
        ["machine", f"{every('cpus')}; {every('gpus') or 'no GPU'}; {hosts} host{'s' if hosts > 1 else ''} in all"],
        ["binding", every("binding")],
        ["MPI", every("mpi_library")],
        ["program", f"commit {', '.join(study.commits())}; {every('compiler')}, {every('build_type')}"],
        ["measured", f"{min(times)} to {max(times)}"],
    ]
    return markdown(["what", "which"], table, left=2)


def state(study, point):
    if not point.done and not point.records:
        how = "begun, not finished" if point.exit_code is None else f"**failed, exit code {point.exit_code}**"
        return f"{how}: {point.name}.log" if point.begun else "not done"
    words = ["done" if point.done else "**failed**"]
    if point.records:
        words += ["**NOT VERIFIED**"] * any(not record["verified"] for record in point.records)
        if point.nodes != point.nodes_asked and not point.records[0]["nodes_emulated"]:
            words.append(f"asked for {point.nodes_asked} node{'s' if point.nodes_asked > 1 else ''}")
        words += ["emulated nodes"] * is_emulated(point.records[0])
        words += ["noisy"] * point.noisy()
        words += {True: ["more ranks than cores"], None: ["cores not known"], False: []}[study.oversubscribed(point)]
    return ", ".join(words)


def points_table(study):
    table = [
        [point.name, point.group, point.command, state(study, point), str(point.ranks), str(point.nodes)] for point in study.points
    ]
    text = markdown(["point", "group", "command", "state", "ranks", "nodes"], table, left=4)
    if study.strangers:
        text += f"\nNot of this study, and not used: {', '.join(study.strangers)}.\n"
    notes = {}
    for point in study.points:
        for record in point.records:
            for note in record["notes"]:
                notes.setdefault(note, dict.fromkeys([])).setdefault(point.name)
    return text + "".join(f"\n- {', '.join(names)}: {note}" for note, names in notes.items()) + ("\n" if notes else "")


FIRST = "First: that with the fewest ranks that have something to send to others; of steps, with the fewest ranks."


def scaling_tables(study):
    for group in study.groups:
        curves = group.fastest_curves("compare", "run") if group.scaling != "none" else []
        columns = list(dict.fromkeys(point.place() for point in group.timed("compare", "run")))
        if not curves or len(columns) < 2:
            continue
        table = []
        for curve in curves:
            found = {}
            for point, record in curve.samples:
                found[point.place()] = seconds(seconds_of(record))
            for point, record, efficiency, *_ in curve.efficiencies(group.scaling):
                faster = f"{ratio_text(efficiency * point.ranks)}, " if group.scaling == "strong" else ""
                found[point.place()] = f"{seconds(seconds_of(record))}; {faster}{efficiency:.2f}"
            table.append([curve.label, *(found.get(column, "-") for column in columns)])
        what = {
            "weak": f"Median; efficiency: T(first) / T. {FIRST}",
            "strong": f"Median; speed-up: T(first) / T, times the ranks of the first; efficiency: that by the ranks. {FIRST}",
        }
        yield f"### {group.heading()}\n\n{what[group.scaling]}\n\n{markdown(['method', *columns], table)}"


def best_table(study):
    table = []
    for point, ours, theirs, *ratios in study.compared():
        names = [f"{method_of(point, record)}: {seconds(seconds_of(record))}" for record in (ours, theirs)]
        ratio, low, high = map(ratio_text, ratios)
        table.append([point.name, point.place(), *names, ratio, f"{low} to {high}"])
    header = ["point", "where", "ours, fastest", "the MPI's, fastest", "ours is N x as fast", "by p10 and p90"]
    return markdown(header, table, left=4) if table else ""


def phases_tables(study):
    shown = study_plots.PHASES
    for group in study.groups:
        table = []
        for curve in group.fastest_curves("compare", "run"):
            point, record = curve.samples[-1]
            cells = [seconds(seconds_of(record, phase)) for phase in (*shown, "total")]
            table.append([curve.label, point.place(), *cells])
        if table:
            yield f"### {group.heading()}\n\n{markdown(['method', 'where', *shown, 'total'], table, left=2)}"


def gather_tables(study):
    for group, point, (gathers, first) in study.gathers():
        yield f"### {group.title}: {gather.heading(first)}\n\nPoint {point.name}. " + gather.tables(gathers, "####")


def report(study, figures):
    """Returns REPORT.md. `figures`: {name of each plot that was drawn: its caption}."""
    image = lambda name: f"![{figures[name]}]({name}.png)\n" if name in figures else ""  # noqa: E731
    answers = list(filter(None, [answer(study), image("fastest")]))
    warnings = [first_of_all(study) + "\n"]
    parts = [f"# {study.title}\n", *(warnings + answers if unverified(study) else answers + warnings)]
    if study.records:
        parts.append(facts(study))
    parts += ["## Points\n", points_table(study)]
    fastest = (
        "Of each method the variant (memory, shape, transfer) that is fastest at the most ranks; `methods` and data.csv have all."
    )
    for title, above, tables, names in (
        ("Scaling", fastest, scaling_tables(study), ("figure12", "scaling")),
        (
            "Ours and the MPI's",
            "The fastest verified method of each, by median, at points where something is sent to others.",
            filter(None, [best_table(study)]),
            ("methods",),
        ),
        (
            "Phases",
            "Medians at the most ranks of each method; they may overlap and need not add up.",
            phases_tables(study),
            ("phases",),
        ),
        ("Gathers", "At the most ranks of each group; data.csv has all.", gather_tables(study), ("gathers",)),
    ):
        texts = [*tables, *(image(name) for name in names if name in figures)]
        if texts:
            parts += [f"## {title}\n", f"{above}\n", *texts]
    parts.append(
        "results/studies.md explains the columns of `data.csv`."
        + (" study.py also draws the plots as .pdf." if figures else " No plots were drawn.")
        + "\n"
    )
    return "\n".join(parts)


def write(study, folder):
    """Writes all files into `folder`, after all have been made. Removes plots that this study no longer has."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".study-", dir=folder) as name:
        new = pathlib.Path(name)
        figures = study_plots.draw(study, new, "study.py")
        write_csv(study, new / "data.csv")
        text = report(study, figures or {})
        (new / "REPORT.md").write_text(text, encoding="utf-8")
        parse = study_page.parser("study.py")
        if parse:
            (new / "REPORT.html").write_text(study_page.page(parse, study.title, text, new), encoding="utf-8")
        there = sorted(path.name for path in new.iterdir() if path.suffix != ".svg")
        for file in there:
            os.replace(new / file, folder / file)
    plots = [folder / f"{name}.{ending}" for name in study_plots.NAMES for ending in ("png", "pdf")]
    outdated = [path for path in (folder / "REPORT.html", *plots) if path.name not in there and path.exists()]
    kept = [path for path in outdated if (parse if path.suffix == ".html" else figures) is None]
    removed = [path for path in outdated if path not in kept]
    for path in removed:
        path.unlink()
    for what, paths in (("kept, of earlier results", kept), ("removed, not of these results", removed)):
        if paths:
            tell("study.py", f"{what}: {', '.join(path.name for path in paths)}")
    return [folder / file for file in there]


def main(words=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", metavar="STUDY", nargs="?", help="name of the study, such as local or weak")
    parser.add_argument("--check", action="store_true", help="say what a report would lack here, and write nothing")
    parser.add_argument("--raw", metavar="FOLDER", type=pathlib.Path, help="what the study left (default: results/raw/STUDY)")
    parser.add_argument("--out", metavar="FOLDER", type=pathlib.Path, help="where to write (default: results/mine/STUDY)")
    arguments = parser.parse_args(words)
    if arguments.check:
        pyplot("study.py")
        study_page.parser("study.py")
        return 0
    if arguments.study is None:
        parser.error("give the name of a study")
    if pathlib.Path(arguments.study).name != arguments.study or arguments.study.startswith("."):
        parser.error(f"STUDY is a name, not '{arguments.study}': say --raw FOLDER if it is elsewhere than in results/raw")
    with clear_ending("study.py", "give another folder with --out"):
        study = Study(arguments.raw or RESULTS / "raw" / arguments.study)
        written = write(study, arguments.out or PLACE / arguments.study)
    for path in written:
        print(shown(path))
    wrong = unverified(study)
    if wrong:
        tell("study.py", f"not verified, and left out of plots and ratios: {', '.join(wrong)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    prefer_matplotlib()
    end("study.py", main)
