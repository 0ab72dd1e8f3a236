# SPDX-License-Identifier: BSD-3-Clause
"""Draws the figures of a scaling study (study.py)."""

import collections
import math
import textwrap

import gather
from diff import seconds
from reports import BINARY, DECIMAL, log_scale, pandas, pyplot, save
from study_data import ratio_text

# Each entry is (colour, marker), the same in all figures. Ours are of Okabe and Ito's palette. The
# vendor's are dark, and their lines are dashed.
STYLES = {
    "alltoallv": ("#009e73", "s"),
    "neighbor": ("#56b4e9", "^"),
    "p2p": ("#0072b2", "o"),
    "shared": ("#d55e00", "D"),
    "partitioned": ("#e69f00", "v"),
    "auto": ("#cc79a7", "P"),
    "vendor-pack": ("#000000", "X"),
    "vendor-alltoallw": ("#777777", "<"),
    "vendor-neighbor": ("#882255", ">"),
    "vendor-p2p": ("#8a7a1f", "d"),
}
PHASES = {
    "pack": ("#88ccee", "^"), "transfer": ("#ee8866", "o"), "unpack": ("#44bb99", "v"),
    "compute": ("#bbbbbb", ""),
}  # fmt: skip
FASTEST = "Of each method the variant that is fastest at the most ranks."
# Each entry is: title; text below the figure; caption in the report.
TEXTS = {
    "fastest": (
        "our fastest method and the MPI's fastest",
        "Bars: medians, up from 1x where ours is faster. Lines: from the MPI's p10 by our p90 to the MPI's"
        " p90 by our p10.",
        "How many times as fast our fastest method is as the MPI's fastest, by ranks; lines: p10 to p90 of"
        " both.",
    ),
    "figure12": (
        "phases, and speed beside the MPI's",
        "As Figure 12 of [PEA21], where something is sent to others. Phases: the fastest method of ours and"
        f" of the MPI's that packs. {FASTEST}",
        "The two panels of Figure 12 of [PEA21]: phases of an exchange, and how many times as fast it is as"
        " the MPI's fastest method.",
    ),
    "scaling": (
        "scaling",
        f"{FASTEST} Run: a time step with its exchange and the stencil. First: the fewest ranks that send to"
        " others; of run, the fewest.",
        "Weak scaling: time and efficiency; strong scaling: speed-up and efficiency.",
    ),
    "methods": (
        "all methods beside the MPI's fastest",
        "At the most ranks of each group. Hatched: the MPI's. Lines: p10 to p90, by the median of the MPI's"
        " fastest method.",
        "All methods at the most ranks of each group: how many times as fast as the MPI's fastest method.",
    ),
    "phases": (
        "phases",
        "Medians on the slowest rank, which may overlap and need not add up; the black mark (p10 to p90)"
        " and the number: the total. >: goes on beyond. With strong scaling each point has its own axis."
        f" {FASTEST}",
        "Medians of the phases, stacked; the black mark is the total.",
    ),
}
NAMES = (*TEXTS, "gathers")
SHADES = ("#08519c", "#6baed6", "#969696", "#c7c7c7")  # colours of groups; no method has one of them
INCHES_OF_LETTER = 0.058  # width of a letter of a caption
INCHES_OF_TICK = 0.075  # width of a letter below an axis, with room around the word
INCHES_OF_SLANTED = 0.36  # distance of two slanted labels


SIZES = {"font.size": 9, "axes.titlesize": 9, "legend.fontsize": 8}
STYLE = SIZES | {"axes.grid": True, "grid.alpha": 0.3, "axes.axisbelow": True}


def draw(study, folder, formats):
    """Draws all figures that the study has: {name: its caption in one line}. Each is NAME.svg in `folder`."""
    figures = {}
    with pyplot.rc_context(STYLE):
        for name, (*_, caption) in TEXTS.items():
            if figure := globals()[f"draw_{name}"](study):
                save(figure, folder / name, formats)
                figures[name] = caption
        for _, point, gathers in list(study.gathers())[-1:]:
            note = "; more ranks than cores" if point.crowded else ""
            if gather.draw(gathers, folder / "gathers", formats, note):
                what = f"Gathers of point {point.name} by size, order and variant"
                figures["gathers"] = f"{what}, and how many times as fast zero-copy is."
    return figures


class Page:
    """Is a figure with a row of panels for each group, a title above and a caption below.

    `counts` has the number of panels of each row, which share `width` inches; `side` are inches for legends,
    right of them. `rows` are the records that it shows."""

    def __init__(self, study, name, heights, counts, width, rows, side=0.0):
        self.study, self.rows, self.by_ranks = study, rows, False
        self.panels, self.width = width, width + side
        self.figure = pyplot.figure(figsize=(self.width, sum(heights) + 1.2), layout="constrained")
        self.figure.get_layout_engine().set(h_pad=0.08, w_pad=0.08)
        self.columns = max(counts)
        widths = [width / self.columns] * self.columns + ([side] if side else [])
        ratios = {"height_ratios": heights, "width_ratios": widths}
        self.grid = self.figure.add_gridspec(len(heights), len(widths), **ratios)
        title, self.text, _ = TEXTS[name]
        self.figure.suptitle(f"{study.title}: {title}", fontsize=11, x=0.01, ha="left")

    def row(self, row, count=1):
        """Returns the panels of a row."""
        full = count == self.columns  # such rows are aligned
        grid = self.grid[row, : self.columns].subgridspec(1, count)
        return [self.figure.add_subplot(self.grid[row, at] if full else grid[at]) for at in range(count)]

    def legend(self, row, handles, title=None, place="upper left", axis=None):
        if axis is None:
            axis = self.figure.add_subplot(self.grid[row, -1])
            axis.axis("off")
        else:
            axis.add_artist(axis.get_legend())
        axis.legend(handles=handles, loc=place, title=title, frameon=False, borderaxespad=0, alignment="left")
        return axis

    def finish(self):
        study, notes = self.study, [self.text]
        records = study.frame[study.frame.point.isin(self.rows.point)]
        if is_crowded(records).any():
            notes.append("Hollow: more ranks than cores.")
        if self.by_ranks and records.emulated.any():
            notes.append("*: emulated nodes, which share a machine.")
        left_out = (~records.verified).sum()
        if left_out:
            notes.append(f"{left_out} record{'s' if left_out > 1 else ''} not verified, left out.")
        mpis = dict.fromkeys(" ".join(name.split(",")[0].split()) for name in study.origins("mpi_library"))
        machine = ", ".join([*mpis, *study.origins("cpus"), *study.origins("gpus")])
        begin = min(study.origins("time"))
        where = f"{machine}; commit {', '.join(study.commits())}; measured from {begin} on."
        letters = int(self.width / INCHES_OF_LETTER)
        caption = [textwrap.fill(part, letters) for part in (" ".join(notes), where)]
        self.figure.supxlabel("\n".join(caption), fontsize=7.5, x=0.01, ha="left")
        return self.figure


def is_crowded(rows):
    return rows.crowded == True  # noqa: E712 - None is not known


def first(curve):
    return curve.iloc[0]


def line_style(curve):
    one = first(curve)
    color, marker = STYLES.get(one.family, ("#aa4499", "*"))
    style = {"color": color, "markeredgewidth": 1, "linewidth": 1.3}
    if one.kind == "run":
        return style | {"marker": "*", "linestyle": ":", "markersize": 8}
    return style | {"marker": marker, "linestyle": "--" if one.vendor else "-", "markersize": 6}


def handle(label, **style):
    return pyplot.Line2D([], [], label=label, **style)


def handles_of(curves):
    return [handle(first(curve).label, **line_style(curve)) for curve in curves]


def box(label, **style):
    return pyplot.Rectangle((0, 0), 1, 1, label=label, **style)


def line(rows, y, low, high, style, place):
    """Returns what add_line() draws: the rows with a value, from `low` to `high`. Error bars of lines with
    another `place` stand side by side."""
    rows = rows.assign(x=rows.ranks * 2 ** (0.03 * place), y=y, low=low, high=high)
    return rows.dropna(subset="y"), style


def add_line(axis, rows, style):
    axis.plot(rows.x, rows.y, **{**style, "marker": ""})
    # A median is between p10 and p90; rounding may contradict that.
    errors = [(rows.y - rows.low).clip(lower=0), (rows.high - rows.y).clip(lower=0)]
    bars = {"alpha": 0.6, "elinewidth": 0.8, "capsize": 1.5, "linestyle": ""}
    axis.errorbar(rows.x, rows.y, errors, color=style["color"], **bars)
    hollow = is_crowded(rows)
    for some_rows, face in ((rows[~hollow], style["color"]), (rows[hollow], "white")):
        axis.plot(some_rows.x, some_rows.y, **{**style, "linestyle": ""}, markerfacecolor=face)


def centered(curves):
    return [(at - (len(curves) - 1) / 2, curve) for at, curve in enumerate(curves)]


def ranks_text(ranks, rows):
    """Returns two lines of text for below an axis."""
    nodes = " or ".join(dict.fromkeys(map(str, rows.nodes)))
    mark = "*" if rows.emulated.any() else ""
    return f"{ranks} rank{'s' if ranks > 1 else ''}\n{nodes} node{'' if nodes == '1' else 's'}{mark}"


def set_ticks(axis, at, labels, gap):
    """Writes `labels` below the axis. If they stand too close, they are slanted and some are left out. `gap`:
    inches from one to the next."""
    wide = max(len(line) for label in labels for line in label.split("\n")) * INCHES_OF_TICK > gap
    step = math.ceil(INCHES_OF_SLANTED / gap) if wide else 1
    labels = [label if (len(labels) - 1 - place) % step == 0 else "" for place, label in enumerate(labels)]
    slanted = {"rotation": 55, "ha": "right", "rotation_mode": "anchor"} if wide else {}
    axis.set_xticks(at, labels, fontsize=8, **slanted)
    axis.minorticks_off()


def rank_axis(page, axis, rows, inches):
    """Writes ranks and nodes below the points, on an axis that is `inches` inches long."""
    page.by_ranks = True
    groups = rows.sort_values(["ranks", "nodes"]).groupby("ranks")
    labels = {ranks: ranks_text(ranks, of_ranks) for ranks, of_ranks in groups}
    at = list(labels)
    axis.set_xscale("log", base=2)
    axis.set_xlim(at[0] / 1.35, at[-1] * 1.35)
    nearest = min(after / before for before, after in zip(at, at[1:]))
    gap = inches * math.log(nearest) / math.log(1.35**2 * at[-1] / at[0])
    set_ticks(axis, at, list(labels.values()), gap)


Panel = collections.namedtuple("Panel", "title label formatter lines ticks ideal", defaults=(DECIMAL, False))


def over_ranks(panel):
    """Returns [panel] if it shows at least two numbers of ranks, else []."""
    return [panel] if len(set().union(*(rows.ranks for rows, _ in panel.lines))) > 1 else []


def draw_row(page, row, panels):
    """Draws panels over ranks, all with logarithmic axes. A line shows the ideal: 1, or with `ideal` the
    ranks."""
    for axis, panel in zip(page.row(row, len(panels)), panels):
        axis.set_title(panel.title, loc="left")
        axis.set_ylabel(panel.label)
        for rows, style in panel.lines:
            add_line(axis, rows, style)
        rows = pandas.concat([rows for rows, _ in panel.lines if len(rows)])
        if panel.ideal:
            ends = rows.ranks.min(), rows.ranks.max()
            axis.plot(ends, ends, color="black", linewidth=0.8)
        elif panel.formatter != short_seconds:
            axis.axhline(1, color="black", linewidth=0.8)
        log_scale([axis], "y", panel.formatter, panel.ticks)
        rank_axis(page, axis, rows, page.panels / len(panels) - 0.9)


def short_seconds(value, _=None):
    """Formats seconds for an axis, without trailing zeros."""
    factor, unit = next(((f, u) for f, u in ((1, "s"), (1e3, "ms")) if value * f >= 0.999), (1e6, "us"))
    return f"{value * factor:g} {unit}"


def times(value):
    return f"{value:g}x"


def percent(value):
    return f"{100 * value:g} %"


def draw_fastest(study):
    """Draws a bar for each point: the speed of our fastest method relative to the MPI's."""
    found = study.compared().sort_values(["ranks", "nodes"], kind="stable")
    if not len(found):
        return None
    groups = [group for group in study.groups if group in set(found.group)]
    page = Page(study, "fastest", [3.6], [1], 8, found, side=2.6)
    (axis,) = page.row(0)
    page.by_ranks = True
    found["label"] = [ranks_text(row.ranks, found.loc[[row.Index]]) for row in found.itertuples()]
    labels = list(found.label.unique())
    bars = found.groupby("label").point.transform("count")
    width = 0.8 / bars.max()
    upright = 7.1 / len(labels) * width < 0.4  # a number is wider than its bar
    found["x"] = found.label.map(labels.index) + width * (found.groupby("label").cumcount() - (bars - 1) / 2)
    for bar in found.itertuples():
        color = SHADES[groups.index(bar.group) % len(SHADES)]
        face = "white" if bar.crowded else color
        axis.bar(bar.x, bar.ratio - 1, width * 0.9, bottom=1, facecolor=face, edgecolor=color, linewidth=1.4)
        axis.plot([bar.x] * 2, [bar.low, bar.high], color="#333333", linewidth=0.9, marker="_", markersize=5)
        style = {"ha": "center", "va": "bottom", "rotation": 90 if upright else 0, "fontsize": 8}
        above = bar.x, max(bar.high, 1)
        axis.annotate(ratio_text(bar.ratio), above, (0, 4), textcoords="offset points", **style)
    axis.axhline(1, color="black", linewidth=1)
    axis.grid(axis="x", visible=False)
    axis.set_ylabel("ours is N x as fast")
    low, high = min(1, found.low.min()), max(1, found.high.max())
    axis.update_datalim([(0, high * (high / low) ** (0.17 if upright else 0.08))])  # room for the numbers
    log_scale([axis], "y", times)
    axis.set_xlim(-0.6, len(labels) - 0.4)
    set_ticks(axis, range(len(labels)), labels, 7.1 / (len(labels) + 0.2))
    headings = [textwrap.fill(study.groups[group].heading, 30) for group in groups]
    page.legend(0, [box(text, facecolor=SHADES[at % len(SHADES)]) for at, text in enumerate(headings)])
    return page.finish()


def draw_over_ranks(study, name, height, rows):
    """Draws a row of panels for each group. `rows`: (panels, legends, records); a legend is (title,
    handles)."""
    rows = [row for row in rows if row[0]]
    if not rows:
        return None
    counts, shown = [len(panels) for panels, *_ in rows], pandas.concat([records for *_, records in rows])
    page = Page(study, name, [height] * len(rows), counts, 9.2, shown, side=2.6)
    for row, (panels, legends, _) in enumerate(rows):
        draw_row(page, row, panels)
        side = None
        for place, (heading, handles) in zip(("upper left", "lower left"), legends):
            side = page.legend(row, handles, heading, place, side)
    return page.finish()


def packs(curve):
    return (curve[["pack.median_s", "transfer.median_s", "unpack.median_s"]] > 0).all(axis=None)


def draw_figure12(study):
    """Draws the two panels of Figure 12 of [PEA21]."""
    rows, phase_names = [], ("pack", "transfer", "unpack")
    marks = [handle(phase, color="#444444", linestyle="", marker=PHASES[phase][1]) for phase in phase_names]
    for group in study.groups.values():
        curves = study.fastest_curves(group, "compare")
        slowness = lambda curve: (-curve.ranks.iloc[-1], curve.seconds.iloc[-1])  # noqa: E731
        packing = sorted(filter(packs, curves), key=slowness, reverse=True)
        fastest = {first(curve).vendor: curve for curve in packing}
        both = [fastest[vendor] for vendor in (False, True) if vendor in fastest]
        phases, speeds = [], []
        for curve in both:
            sent = curve[curve.sent]
            for place, phase in enumerate(phase_names):
                values = [sent[f"{phase}.{field}"] for field in ("median_s", "p10_s", "p90_s")]
                style = line_style(curve) | {"marker": PHASES[phase][1]}
                phases.append(line(sent, *values, style, place - 1))
        ours = [curve for curve in curves if not first(curve).vendor]
        for place, curve in centered(ours):
            sent = curve[curve.sent]
            own = sent.ratio * sent.seconds
            speeds.append(line(sent, sent.ratio, own / sent.p90, own / sent.p10, line_style(curve), place))
        what = "time of an exchange (p10, median, p90)"
        phase = over_ranks(Panel(f"{group.heading}: phases", what, short_seconds, phases))
        what = "N x as fast as the MPI's fastest method"
        speed = over_ranks(Panel(f"{group.heading}: speed", what, times, speeds))
        legends = [("speed", handles_of(ours))] if speed else []
        if phase:
            lines = [handle(first(curve).label, **line_style(curve) | {"marker": ""}) for curve in both]
            legends.append(("phases", lines + marks))
        rows.append((phase + speed, legends, study.timed(group, "compare")))
    return draw_over_ranks(study, "figure12", 3.5, rows)


def draw_scaling(study):
    rows = []
    for group in study.groups.values():
        curves = study.fastest_curves(group, "compare", "run") if group.scaling != "none" else []
        weak = group.scaling == "weak"
        main, efficiencies = [], []
        for place, curve in centered(curves):
            values = [curve[name] for name in ("efficiency", "low_efficiency", "high_efficiency")]
            efficiencies.append(line(curve, *values, line_style(curve), place))
            speed_ups = [value * curve.ranks for value in values]
            values = [curve.seconds, curve.p10, curve.p90] if weak else speed_ups
            main.append(line(curve, *values, line_style(curve), place))
        title = f"{group.heading}: {'time' if weak else 'speed-up'}"
        if weak:
            left = Panel(title, "time (p10, median, p90)", short_seconds, main)
        else:
            left = Panel(title, "speed-up: ranks(first) T(first) / T", times, main, BINARY, True)
        right = Panel("efficiency", "T(first) / T" if weak else "speed-up / ranks", percent, efficiencies)
        legend = [*handles_of(curves), handle("ideal", color="black", linewidth=0.8)]
        panels = over_ranks(left) + over_ranks(right)
        rows.append((panels, [(None, legend)], study.timed(group, "compare", "run")))
    return draw_over_ranks(study, "scaling", 3.7, rows)


def draw_methods(study):
    """Draws bars of all methods at the largest point of each group."""
    rows = []
    for group in study.groups.values():
        timed = study.timed(group, "compare")
        if timed.ratio.notna().any():
            curves = study.curves(group, "compare")
            point = timed.point[timed.ratio.notna()].iloc[-1]
            rows.append((group, curves[curves.point == point].sort_values("curve")))
    if not rows:
        return None
    heights = [0.24 * len(bars) + 0.9 for _, bars in rows]
    page = Page(study, "methods", heights, [1], 9.5, pandas.concat([bars for _, bars in rows]))
    for row, (group, bars) in enumerate(rows):
        (axis,) = page.row(row)
        axis.set_title(f"{group.heading}: {first(bars).place}", loc="left")
        for y, bar in enumerate(bars.itertuples()):
            own = bar.ratio * bar.seconds
            color = STYLES.get(bar.family, ("#aa4499", "*"))[0]
            face, edge = ("white", color) if bar.crowded else (color, "white")
            style = {"height": 0.72, "linewidth": 1.2, "facecolor": face, "edgecolor": edge}
            axis.barh(y, bar.ratio - 1, left=1, hatch="///" if bar.vendor else None, **style)
            errors = [[max(0, bar.ratio - own / bar.p90)], [max(0, own / bar.p10 - bar.ratio)]]
            axis.errorbar([bar.ratio], [y], xerr=errors, color="#444444", elinewidth=0.9, capsize=2)
            text = f"{ratio_text(bar.ratio)}, {seconds(bar.seconds)}"
            axis.annotate(text, (1.01, y), xycoords=("axes fraction", "data"), va="center", fontsize=8)
        log_scale([axis], "x", times)
        axis.axvline(1, color="black", linewidth=1)
        axis.set_yticks(range(len(bars)), bars.label)
        axis.set_ylim(len(bars) - 0.4, -0.6)
        axis.grid(axis="y", visible=False)
        axis.set_xlabel("N x as fast as the MPI's fastest method", fontsize=8)
    return page.finish()


def some(points, count):
    """Returns at most `count` of the points: the first, the last, and others evenly between them."""
    if len(points) <= count:
        return points
    return [points[round(at * (len(points) - 1) / (count - 1))] for at in range(count)]


def draw_phases(study):
    """Draws stacked bars of each method's phases: a row for each group and subcommand, a column for each
    point."""
    rows = []
    for group in study.groups.values():
        for command, what in (("compare", "exchange"), ("run", "time step")):
            curves = study.fastest_curves(group, command)
            if curves:
                points = some(list(study.timed(group, command).point.unique()), 4)
                bars = pandas.concat([curve.assign(y=y) for y, curve in enumerate(curves)])
                labels = [first(curve).label for curve in curves]
                rows.append((group, what, points, labels, bars[bars.point.isin(points)]))
    if not rows:
        return None
    heights, counts = [0.24 * len(row[3]) + 1.0 for row in rows], [len(row[2]) for row in rows]
    page = Page(study, "phases", heights, counts, 11.5, pandas.concat([bars for *_, bars in rows]))
    places = {point.name: point.place for point in study.points}
    used = set()
    for row, (group, what, points, labels, every) in enumerate(rows):
        for column, (axis, point) in enumerate(zip(page.row(row, len(points)), points)):
            bars = every[every.point == point]
            # With strong scaling, the times differ at each point.
            limit = longest_bar(bars if group.scaling == "strong" else every)
            title = f"{group.heading}\n{what}, " if column == 0 else "\n"
            axis.set_title(title + places[point], loc="left", fontsize=8)
            for _, bar in bars.iterrows():
                used.update(stack(axis, bar, limit))
            axis.set_yticks(range(len(labels)), labels if column == 0 else [""] * len(labels))
            around = 0.6 if len(labels) > 1 else 0.8
            axis.set_ylim(len(labels) - 1 + around, -around)
            ticks = pyplot.MaxNLocator(4).tick_values(0, 1.5 * limit)
            axis.set_xlim(0, ticks[-1])
            axis.set_xticks(ticks, [short_seconds(value) if value else "0" for value in ticks])
            axis.grid(axis="y", visible=False)
    patches = [box(name, facecolor=PHASES[name][0], edgecolor="#444444") for name in PHASES if name in used]
    page.figure.legend(handles=patches, loc="upper right", ncol=len(patches), frameon=False)
    return page.finish()


END = 1.25  # longer bars are cut here, relative to the longest bar that is shown whole


def longest_bar(bars):
    """Returns a limit at which all of our bars are whole. The vendor's bars are whole, too, unless they are
    much longer."""
    ours = bars.seconds[~bars.vendor]
    return min(bars.seconds.max(), 3 * ours.max()) if len(ours) else bars.seconds.max()


def stack(axis, bar, limit):
    """Draws one bar, cut behind `limit`; returns its phases."""
    y, left, phases = bar.y, 0, [phase for phase in PHASES if bar[f"{phase}.median_s"] > 0]
    for phase in phases:
        width, color = min(bar[f"{phase}.median_s"], max(0, END * limit - left)), PHASES[phase][0]
        hollow = {"facecolor": "white", "edgecolor": color, "linewidth": 1.6}
        style = hollow if bar.crowded else {"facecolor": color, "edgecolor": "#444444", "linewidth": 0.5}
        axis.barh(y, width, left=left, height=0.72, **style)
        left += width
    end = END * limit
    if bar.seconds <= end:
        axis.plot([bar.p10, min(bar.p90, end)], [y, y], color="black", linewidth=0.9)
        ends = [bar.p10] + [bar.p90] * (bar.p90 <= end)
        axis.plot(ends, [y] * len(ends), "|", color="black", markersize=4)
        axis.plot([bar.seconds], [y], "|", color="black", markersize=9)
    if bar.p90 > end:
        axis.plot([end], [y], ">", color="black", markersize=5)
    axis.text(max(left, min(bar.p90, end)) + 0.03 * limit, y, seconds(bar.seconds), va="center", fontsize=7.5)
    return phases
