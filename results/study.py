#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes a table, plots and a report of a scaling study.

    results/study.py --check      # ends with a line if a package is missing
    jobs/local/study.sh local     # or a batch job of jobs/slurm, lsf or pbs; each ends with this script
    results/study.py STUDY        # results/raw/STUDY -> results/mine/STUDY

Works with the points that are done. results/raw/STUDY has study.json, which lists the points, and POINT.jsonl
of each point that is done. Call it again when more points are done. It writes:
  data.csv    a row for each point, method and phase, for pandas or R; results/studies.md has the columns
  REPORT.md   the answer, the machines, the points, tables of efficiencies, ratios and phases, and the plots
  REPORT.html the same as one file, plots included, to pass on
  fastest     the speed of our fastest method relative to the MPI's fastest, by ranks
  figure12    phases of an exchange, and speed relative to the MPI's fastest method: as Figure 12 of [PEA21]
  scaling     weak scaling: time and efficiency; strong scaling: speed-up and efficiency
  methods     every method at the most ranks: its speed relative to the MPI's fastest
  phases      the phases of each method, stacked
  gathers     gathers by size (results/gather.py)
A plot is made as .svg, and with --formats in others, if there is something to plot. Records that are not
verified are in no plot and no ratio, and the report begins with them. HALOCLINE_RESULTS=results writes to
results/STUDY, which is kept with the project.

Exit codes:
  0  ok
  1  something is not verified: all is written, without it
  2  bad input: nothing is written or changed
  3  a package is missing"""

import os
import pathlib
import tempfile

import gather
import study_page
import study_plots
from diff import seconds
from records import PLACE, clear_ending, end, shown, tell
from reports import RAW, markdown, numbers, pandas, parser
from study_data import NOISY, PHASES, STATISTICS, TRIPLES, Study, ratio_text

AS_RECORDED = (
    "fields", "layout", "pad", "pages", "radius", "periodic", "physics", "stencil", "boundary", "element_bytes", "complex", "memory", "storage", "method",
    "exchange", "chosen", "transfer", "shape", "neighbors", "needs_by_field", "messages_per", "describe", "packer", "reorder",
    "wide", "overlap", "progress", "threads", "order", "bytes_per_rank", "root", "bytes_to_others", "bytes_to_self",
    "messages", "bytes_off_node", "messages_off_node", "bytes_off_node_total",
)  # fmt: skip
OF_TOTAL = ("baseline", "baseline_storage", "baseline_shape", "ratio_to_baseline", "predicted_s")
ORIGIN = ("git", "dirty", "compiler", "mpi_library", "cpus", "gpus", "hosts", "time")
COLUMNS = (
    "study", "group", "scaling", "point", "command", "ranks", "nodes", "ranks_per_node", "nodes_emulated",
    "oversubscribed", *(f"{triple}_{axis}" for triple in TRIPLES for axis in "xyz"), *AS_RECORDED, "phase",
    *STATISTICS, "iterations", "verified", *OF_TOTAL, *ORIGIN, "notes",
)  # fmt: skip


def write_csv(study, path):
    frame, origins = study.frame, study.frame.get("provenance", pandas.Series(dtype=object))
    new = {name: origins.map(lambda origin, name=name: origin[name]) for name in ORIGIN}
    new |= {
        "study": study.name,
        "scaling": frame.group.map({name: group.scaling for name, group in study.groups.items()}),
        "command": frame.kind,
        "ranks_per_node": (frame.ranks / frame.nodes).map("{:g}".format),
        "nodes_emulated": frame.emulated,
        "oversubscribed": frame.crowded,
        "ratio_to_baseline": frame.ratio,
        "hosts": new["hosts"].map(len),
    }
    wanted = [*COLUMNS, *(f"{phase}.{name}" for phase in PHASES for name in STATISTICS)]
    cells, parts = frame.assign(**new).reindex(columns=wanted).apply(lambda values: values.map(cell)), []
    for phase in PHASES:
        times = {name: cells[f"{phase}.{name}"] for name in STATISTICS}
        part = cells.assign(phase=phase, **times)
        if phase != "total":  # which has a row even without times
            part = part[part.median_s != ""].assign(**dict.fromkeys(OF_TOTAL, ""))
        parts.append(part)
    rows = pandas.concat(parts).sort_index(kind="stable")
    rows[list(COLUMNS)].to_csv(path, index=False, lineterminator="\n")


def cell(value):
    if isinstance(value, list):
        return "; ".join(map(cell, value))
    return "" if pandas.isna(value) else str(value).lower() if isinstance(value, bool) else str(value)


def unverified(study):
    """Returns {point: its methods that are not verified}."""
    return study.frame[~study.frame.verified].groupby("point", sort=False).said.agg(list).to_dict()


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
    for what, values in (
        ("commits", study.commits()),
        ("MPIs", study.origins("mpi_library")),
        ("CPUs", study.origins("cpus")),
        ("GPUs", study.origins("gpus")),
    ):
        if len(values) > 1:
            which = "; ".join(values)
            out.append(f"**Points are of different {what} ({which}): compare no times across them.**")
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
    noisy = study.noisy()
    for what, names in (
        (
            f"Noisy, p90 more than {NOISY} times p10 of our or the MPI's fastest",
            [point.name for point in study.points if point.name in noisy],
        ),
        ("More ranks than cores", [point.name for point in study.points if point.crowded]),
    ):
        if names:
            out.append(f"**{what}: {', '.join(names)}.**")
    return "\n\n".join(out)


def answer(study):
    """Returns at most three sentences: the fastest method and its place, the range over all points, and the
    scaling."""
    every = study.compared()
    compared = every[every.crowded != True]  # noqa: E712 - None is not known
    compared = compared if len(compared) else every
    if not len(compared):
        return ""
    fast = lambda value: f"{ratio_text(value)[:-1]} x"  # noqa: E731
    ours = compared.loc[compared.ranks.idxmax()]
    sentences = [
        f"With {ours.place}, `{ours.said}` exchanges the halo **{fast(ours.ratio)} as fast** as the MPI's"
        f" fastest method, `{ours.said_theirs}`: in {seconds(ours.seconds)} instead of"
        f" {seconds(ours.seconds_theirs)}."
    ]
    if len(compared) > 1:
        cores = " with a core for each rank" if len(compared) < len(every) else ""
        ratios = f"{ratio_text(compared.ratio.min())[:-1]} to {fast(compared.ratio.max())}"
        points = f"Over {len(compared)} points{cores}"
        sentences.append(f"{points}, our fastest method is {ratios} as fast as the MPI's fastest.")
    for group in study.groups.values():
        curves = study.fastest_curves(group, "compare") if group.scaling == "weak" else []
        found = next((curve[curve.sent] for curve in curves if curve.label.iloc[0] == ours.said), ())
        if len(found) > 1:
            last = found.iloc[-1]
            cores = ", which are more than the cores" if last.crowded else ""
            ranks = f"from {found.ranks.iloc[0]} to {last.ranks} ranks{cores}"
            sentences.append(f"In weak scaling it keeps {100 * last.efficiency:.0f} % of its speed {ranks}.")
            break
    return " ".join(sentences) + "\n"


def facts(study):
    every = lambda key: "; ".join(study.origins(key))  # noqa: E731
    times, count = study.origins("time"), len(study.origins("hosts"))
    hosts = f"{count} host{'s' if count > 1 else ''} in all"
    config = f", `{study.config}`" if study.config else ""
    table = {
        "study": f"`{study.name}`, site {study.site}, launcher {study.launcher}{config}",
        "machine": f"{every('cpus')}; {every('gpus') or 'no GPU'}; {hosts}",
        "binding": every("binding"),
        "MPI": every("mpi_library"),
        "program": f"commit {', '.join(study.commits())}; {every('compiler')}, {every('build_type')}",
        "measured": f"{min(times)} to {max(times)}",
    }
    return markdown(pandas.DataFrame(table.items(), columns=["what", "which"]), left=2)


def state(point, noisy):
    if not point.done and not point.records:
        how = "begun, not finished" if point.exit_code is None else f"**failed, exit code {point.exit_code}**"
        return f"{how}: {point.name}.log" if point.begun else "not done"
    words = ["done" if point.done else "**failed**"]
    if point.records:
        words += ["**NOT VERIFIED**"] * any(not record["verified"] for record in point.records)
        if point.nodes != point.nodes_asked and not point.records[0]["nodes_emulated"]:
            words.append(f"asked for {point.nodes_asked} node{'s' if point.nodes_asked > 1 else ''}")
        words += ["emulated nodes"] * ("emulated" in point.place)
        words += ["noisy"] * (point.name in noisy)
        words += {True: ["more ranks than cores"], None: ["cores not known"], False: []}[point.crowded]
    return ", ".join(words)


def points_table(study):
    noisy = study.noisy()
    points = pandas.DataFrame(map(vars, study.points)).rename(columns={"name": "point"})
    points["state"] = [state(point, noisy) for point in study.points]
    text = markdown(points[["point", "group", "command", "state", "ranks", "nodes"]], left=4)
    if study.strangers:
        text += f"\nNot of this study, and not used: {', '.join(study.strangers)}.\n"
    notes = study.frame.reindex(columns=["point", "notes"]).explode("notes").dropna().drop_duplicates()
    names = notes.groupby("notes", sort=False).point.agg(", ".join)
    return text + "".join(f"\n- {points}: {note}" for note, points in names.items()) + "\n" * (len(names) > 0)


ABOVE = {
    "weak": "Median; efficiency: T(first) / T.",
    "strong": "Median; speed-up: T(first) / T, times the ranks of the first; efficiency: that by the ranks.",
}
FIRST = (
    "First: that with the fewest ranks that have something to send to others; of steps, with the fewest ranks."
)


def scaling_tables(study):
    for group in study.groups.values():
        curves = study.fastest_curves(group, "compare", "run") if group.scaling != "none" else []
        places = study.timed(group, "compare", "run").place.unique()
        if not curves or len(places) < 2:
            continue
        rows = pandas.concat(curves)
        text = rows.seconds.map(seconds)
        faster = (rows.efficiency * rows.ranks).map(ratio_text) + ", " if group.scaling == "strong" else ""
        text += ("; " + faster + numbers(rows.efficiency)).where(rows.efficiency.notna(), "")
        table = text.groupby([rows.curve, rows.place], sort=False).last().unstack()[places]
        table.insert(0, "method", rows.groupby("curve").label.first())
        yield f"### {group.heading}\n\n{ABOVE[group.scaling]} {FIRST}\n\n{markdown(table)}"


def best_table(study):
    found = study.compared()
    if not len(found):
        return ""
    table = {
        "point": found.point,
        "where": found.place,
        "ours, fastest": found.said + ": " + found.seconds.map(seconds),
        "the MPI's, fastest": found.said_theirs + ": " + found.seconds_theirs.map(seconds),
        "ours is N x as fast": found.ratio.map(ratio_text),
        "by p10 and p90": found.low.map(ratio_text) + " to " + found.high.map(ratio_text),
    }
    return markdown(table, left=4)


def phases_tables(study):
    phases = [*study_plots.PHASES, "total"]
    for group in study.groups.values():
        curves = study.fastest_curves(group, "compare", "run")
        if curves:
            last = pandas.concat([curve.tail(1) for curve in curves])
            table = {"method": last.label, "where": last.place}
            table |= {phase: last[f"{phase}.median_s"].map(seconds, na_action="ignore") for phase in phases}
            yield f"### {group.heading}\n\n{markdown(table, left=2)}"


def gather_tables(study):
    for group, point, gathers in study.gathers():
        above = f"### {group.title}: {gather.heading(gathers)}\n\nPoint {point.name}. "
        yield above + gather.tables(gathers, "####")


def report(study, figures):
    """Returns REPORT.md. `figures`: {name of each plot that was drawn: its caption}."""
    image = lambda name: f"![{figures[name]}]({name}.svg)\n" if name in figures else ""  # noqa: E731
    answers = list(filter(None, [answer(study), image("fastest")]))
    warnings = [first_of_all(study) + "\n"]
    parts = [f"# {study.title}\n", *(warnings + answers if unverified(study) else answers + warnings)]
    if study.records:
        parts.append(facts(study))
    parts += ["## Points\n", points_table(study)]
    fastest = (
        "Of each method the variant (memory, shape, transfer) that is fastest at the most ranks; `methods`"
        " and data.csv have all."
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
    parts.append("results/studies.md explains the columns of `data.csv`.\n")
    return "\n".join(parts)


def write(study, folder, formats):
    """Writes all files into `folder`, after all have been made. Removes plots that this study no longer
    has."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".study-", dir=folder) as name:
        new = pathlib.Path(name)
        figures = study_plots.draw(study, new, formats)
        write_csv(study, new / "data.csv")
        text = report(study, figures)
        (new / "REPORT.md").write_text(text, encoding="utf-8")
        (new / "REPORT.html").write_text(study_page.page(study.title, text, new), encoding="utf-8")
        there = sorted(path.name for path in new.iterdir())
        for file in there:
            os.replace(new / file, folder / file)
    plots = [path for path in sorted(folder.iterdir()) if path.stem in study_plots.NAMES]
    outdated = [path for path in plots if path.name not in there]
    for path in outdated:
        path.unlink()
    if outdated:
        tell("study.py", f"removed, not of these results: {', '.join(path.name for path in outdated)}")
    return [folder / file for file in there]


def main(words=None):
    options = parser(__doc__)
    options.add_argument("study", metavar="STUDY", nargs="?", help="name of the study, such as local or weak")
    options.add_argument("--check", action="store_true", help="say if a package is missing, and write nothing")
    folder = {"metavar": "FOLDER", "type": pathlib.Path}
    options.add_argument("--raw", **folder, help="what the study left (default: results/raw/STUDY)")
    options.add_argument("--out", **folder, help="where to write (default: results/mine/STUDY)")
    arguments = options.parse_args(words)
    if arguments.check:
        return 0  # a missing package has ended the script by now
    if arguments.study is None:
        options.error("give the name of a study")
    if pathlib.Path(arguments.study).name != arguments.study or arguments.study.startswith("."):
        why = f"STUDY is a name, not '{arguments.study}'"
        options.error(f"{why}: say --raw FOLDER if it is elsewhere than in results/raw")
    with clear_ending("study.py", "give another folder with --out"):
        study = Study(arguments.raw or RAW / arguments.study)
        written = write(study, arguments.out or PLACE / arguments.study, arguments.formats)
    for path in written:
        print(shown(path))
    wrong = unverified(study)
    if wrong:
        tell("study.py", f"not verified, and left out of plots and ratios: {', '.join(wrong)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    end("study.py", main)
