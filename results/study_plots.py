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
PHASES = {"pack": ("#88ccee", "^"), "transfer": ("#ee8866", "o"), "unpack": ("#44bb99", "v"), "compute": ("#bbbbbb", "")}
NAMES = ("fastest", "figure12", "scaling", "methods", "phases", "gathers")
FASTEST = "Of each method the variant that is fastest at the most ranks."
SHADES = ("#08519c", "#6baed6", "#969696", "#c7c7c7")  # colours of groups; no method has one of them
INCHES_OF_LETTER = 0.058  # width of a letter of a caption
INCHES_OF_TICK = 0.075  # width of a letter below an axis, with room around the word
INCHES_OF_SLANTED = 0.36  # distance of two slanted labels


SIZES = {"font.size": 9, "axes.titlesize": 9, "legend.fontsize": 8, "axes.grid": True, "grid.alpha": 0.3, "axes.axisbelow": True}


def draw(study, folder, formats):
    """Draws all figures that the study has: {name: its caption in one line}. Each is NAME.svg in `folder`, and in other
    formats."""
    figures = {}
    with pyplot.rc_context(SIZES):
        for name in NAMES[:-1]:
            drawn = globals()[f"draw_{name}"](study)
            if drawn:
                figure, figures[name] = drawn
                save(figure, folder / name, formats)
        for _, point, gathers in list(study.gathers())[-1:]:
            note = "; more ranks than cores" if point.crowded else ""
            if gather.draw(gathers, folder / "gathers", formats, note):
                figures["gathers"] = f"Gathers of point {point.name} by size, order and variant, and how many times as fast zero-copy is."
    return figures


class Page:
    """Is a figure with a row of panels for each group, a title above and a caption below.

    `counts` has the number of panels of each row, which share `width` inches; `side` are inches for legends, right of
    them. `rows` are the records that it shows."""

    def __init__(self, study, title, heights, counts, width, rows, side=0.0):
        self.study, self.rows, self.by_ranks = study, rows, False
        self.panels, self.width = width, width + side
        self.figure = pyplot.figure(figsize=(self.width, sum(heights) + 1.2), layout="constrained")
        self.figure.get_layout_engine().set(h_pad=0.08, w_pad=0.08)
        self.columns = max(counts)
        widths = [width / self.columns] * self.columns + ([side] if side else [])
        self.grid = self.figure.add_gridspec(len(heights), len(widths), height_ratios=heights, width_ratios=widths)
        self.figure.suptitle(f"{study.title}: {title}", fontsize=11, x=0.01, ha="left")

    def row(self, row, count=1):
        """Returns the panels of a row."""
        full = count == self.columns  # such rows are aligned
        inner = [self.grid[row, at] for at in range(count)] if full else self.grid[row, : self.columns].subgridspec(1, count)
        return [self.figure.add_subplot(inner[at]) for at in range(count)]

    def legend(self, row, handles, title=None, place="upper left", axis=None):
        if axis is None:
            axis = self.figure.add_subplot(self.grid[row, -1])
            axis.axis("off")
        else:
            axis.add_artist(axis.get_legend())
        axis.legend(handles=handles, loc=place, title=title, frameon=False, borderaxespad=0, alignment="left")
        return axis

    def finish(self, *sentences):
        study, records = self.study, self.study.frame[self.study.frame.point.isin(self.rows.point)]
        notes = list(sentences)
        if is_crowded(records).any():
            notes.append("Hollow: more ranks than cores.")
        if self.by_ranks and records.emulated.any():
            notes.append("*: emulated nodes, which share a machine.")
        left_out = (~records.verified).sum()
        if left_out:
            notes.append(f"{left_out} record{'s' if left_out > 1 else ''} not verified, left out.")
        mpis = dict.fromkeys(" ".join(name.split(",")[0].split()) for name in study.origins("mpi_library"))
        machine = ", ".join([*mpis, *study.origins("cpus"), *study.origins("gpus")])
        where = f"{machine}; commit {', '.join(study.commits())}; measured from {min(study.origins('time'))} on."
        caption = "\n".join(textwrap.fill(part, int(self.width / INCHES_OF_LETTER)) for part in (" ".join(notes), where))
        self.figure.supxlabel(caption, fontsize=7.5, x=0.01, ha="left")
        return self.figure


def is_crowded(rows):
    return rows.crowded == True  # noqa: E712 - None is not known


def first(curve):
    return curve.iloc[0]


def line_style(curve):
    one = first(curve)
    color, marker = STYLES.get(one.family, ("#aa4499", "*"))
    run = one.kind == "run"
    style = {"color": color, "marker": "*" if run else marker, "linestyle": ":" if run else "--" if one.vendor else "-"}
    return style | {"markersize": 8 if run else 6, "markeredgewidth": 1, "linewidth": 1.3}


def handle(label, **style):
    return pyplot.Line2D([], [], label=label, **style)


def handles_of(curves):
    return [handle(first(curve).label, **line_style(curve)) for curve in curves]


def box(label, **style):
    return pyplot.Rectangle((0, 0), 1, 1, label=label, **style)


def line(rows, y, low, high, style, place):
    """Returns what add_line() draws: the rows with a value, from `low` to `high`. Error bars of lines with another
    `place` stand side by side."""
    rows = rows.assign(x=rows.ranks * 2 ** (0.03 * place), y=y, low=low, high=high)
    return rows.dropna(subset="y"), style


def add_line(axis, rows, style):
    axis.plot(rows.x, rows.y, **{**style, "marker": ""})
    # A median is between p10 and p90; rounding may contradict that.
    errors = [(rows.y - rows.low).clip(lower=0), (rows.high - rows.y).clip(lower=0)]
    axis.errorbar(rows.x, rows.y, errors, color=style["color"], alpha=0.6, elinewidth=0.8, capsize=1.5, linestyle="")
    hollow = is_crowded(rows)
    for some_rows, face in ((rows[~hollow], style["color"]), (rows[hollow], "white")):
        axis.plot(some_rows.x, some_rows.y, **{**style, "linestyle": ""}, markerfacecolor=face)


def centered(curves):
    return [(at - (len(curves) - 1) / 2, curve) for at, curve in enumerate(curves)]


def ranks_text(ranks, rows):
    """Returns two lines of text for below an axis."""
    nodes = list(dict.fromkeys(map(str, rows.nodes)))
    mark = "*" if rows.emulated.any() else ""
    return f"{ranks} rank{'s' if ranks > 1 else ''}\n{' or '.join(nodes)} node{'' if nodes == ['1'] else 's'}{mark}"


def set_ticks(axis, at, labels, gap):
    """Writes `labels` below the axis. If they stand too close, they are slanted and some are left out. `gap`: inches
    from one to the next."""
    wide = max(len(line) for label in labels for line in label.split("\n")) * INCHES_OF_TICK > gap
    step = math.ceil(INCHES_OF_SLANTED / gap) if wide else 1
    labels = [label if (len(labels) - 1 - place) % step == 0 else "" for place, label in enumerate(labels)]
    slanted = {"rotation": 55, "ha": "right", "rotation_mode": "anchor"} if wide else {}
    axis.set_xticks(at, labels, fontsize=8, **slanted)
    axis.minorticks_off()


def rank_axis(page, axis, rows, inches):
    """Writes ranks and nodes below the points, on an axis that is `inches` inches long."""
    page.by_ranks = True
    labels = {ranks: ranks_text(ranks, of_ranks) for ranks, of_ranks in rows.sort_values(["ranks", "nodes"]).groupby("ranks")}
    at = list(labels)
    axis.set_xscale("log", base=2)
    axis.set_xlim(at[0] / 1.35, at[-1] * 1.35)
    nearest = min(after / before for before, after in zip(at, at[1:]))
    gap = inches * math.log(nearest) / math.log(1.35**2 * at[-1] / at[0])
    set_ticks(axis, at, list(labels.values()), gap)


Panel = collections.namedtuple("Panel", "title label formatter lines ticks ideal", defaults=(DECIMAL, False))


def over_ranks(panels):
    """Keeps the panels that show at least two numbers of ranks."""
    return [panel for panel in panels if len(set().union(*(rows.ranks for rows, _ in panel.lines))) > 1]


def draw_row(page, row, panels):
    """Draws panels over ranks, all with logarithmic axes. A line shows the ideal: 1, or with `ideal` the ranks."""
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
    page = Page(study, "our fastest method and the MPI's fastest", [3.6], [1], 8, found, side=2.6)
    (axis,) = page.row(0)
    found["label"] = [ranks_text(row.ranks, found.loc[[row.Index]]) for row in found.itertuples()]
    labels = list(found.label.unique())
    page.by_ranks = True
    bars = found.groupby("label").point.transform("count")
    width = 0.8 / bars.max()
    upright = 7.1 / len(labels) * width < 0.4  # a number is wider than its bar
    found["x"] = found.label.map(labels.index) + width * (found.groupby("label").cumcount() - (bars - 1) / 2)
    for bar in found.itertuples():
        color = SHADES[groups.index(bar.group) % len(SHADES)]
        face = "white" if bar.crowded else color
        axis.bar(bar.x, bar.ratio - 1, width * 0.9, bottom=1, facecolor=face, edgecolor=color, linewidth=1.4)
        axis.plot([bar.x, bar.x], [bar.low, bar.high], color="#333333", linewidth=0.9, marker="_", markersize=5)
        axis.annotate(
            ratio_text(bar.ratio), (bar.x, max(bar.high, 1)), (0, 4), textcoords="offset points", ha="center", va="bottom",
            fontsize=8, rotation=90 if upright else 0,
        )  # fmt: skip
    axis.axhline(1, color="black", linewidth=1)
    axis.grid(axis="x", visible=False)
    axis.set_ylabel("ours is N x as fast")
    low, high = min(1, found.low.min()), max(1, found.high.max())
    axis.update_datalim([(0, high * (high / low) ** (0.17 if upright else 0.08))])  # room for the numbers
    log_scale([axis], "y", times)
    axis.set_xlim(-0.6, len(labels) - 0.4)
    set_ticks(axis, range(len(labels)), labels, 7.1 / (len(labels) + 0.2))
    headings = [textwrap.fill(study.groups[group].heading, 30) for group in groups]
    page.legend(0, [box(heading, facecolor=SHADES[at % len(SHADES)]) for at, heading in enumerate(headings)])
    text = "Bars: medians, up from 1x where ours is faster. Lines: from the MPI's p10 by our p90 to the MPI's p90 by our p10."
    return page.finish(text), "How many times as fast our fastest method is as the MPI's fastest, by ranks; lines: p10 to p90 of both."


def packs(curve):
    return (curve[["pack.median_s", "transfer.median_s", "unpack.median_s"]] > 0).all(axis=None)


def at_the_most_ranks(curve):
    """Returns a key: the curve with the smallest key is the fastest at the largest point."""
    return -curve.ranks.iloc[-1], curve.seconds.iloc[-1]


def draw_figure12(study):
    """Draws the two panels of Figure 12 of [PEA21]."""
    rows, phase_names = [], ("pack", "transfer", "unpack")
    for group in study.groups.values():
        curves = study.fastest_curves(group, "compare")
        packing = sorted(filter(packs, curves), key=at_the_most_ranks)
        both = [next((curve for curve in packing if first(curve).vendor == vendor), None) for vendor in (False, True)]
        phases = []
        for curve in filter(lambda curve: curve is not None, both):
            sent = curve[curve.sent]
            for place, phase in enumerate(phase_names):
                style = line_style(curve) | {"marker": PHASES[phase][1]}
                phases.append(line(sent, *(sent[f"{phase}.{field}"] for field in ("median_s", "p10_s", "p90_s")), style, place - 1))
        ours = [curve for curve in curves if not first(curve).vendor]
        speeds = []
        for place, curve in centered(ours):
            sent = curve[curve.sent]
            own = sent.ratio * sent.seconds
            speeds.append(line(sent, sent.ratio, own / sent.p90, own / sent.p10, line_style(curve), place))
        panels = over_ranks(
            [
                Panel(f"{group.heading}: phases", "time of an exchange (p10, median, p90)", short_seconds, phases),
                Panel(f"{group.heading}: speed", "N x as fast as the MPI's fastest method", times, speeds),
            ]
        )
        if panels:
            legends = []
            if any(panel.lines is speeds for panel in panels):
                legends.append(("speed", handles_of(ours)))
            if any(panel.lines is phases for panel in panels):
                handles = [handle(first(c).label, **line_style(c) | {"marker": ""}) for c in both if c is not None]
                marks = [handle(phase, color="#444444", linestyle="", marker=PHASES[phase][1]) for phase in phase_names]
                legends.append(("phases", handles + marks))
            rows.append((panels, legends, study.timed(group, "compare")))
    if not rows:
        return None
    counts = [len(panels) for panels, *_ in rows]
    shown = pandas.concat([timed for *_, timed in rows])
    page = Page(study, "phases, and speed beside the MPI's", [3.5] * len(rows), counts, 9.2, shown, side=2.6)
    for row, (panels, legends, _) in enumerate(rows):
        draw_row(page, row, panels)
        side = None
        for place, (title, handles) in zip(("upper left", "lower left"), legends):
            side = page.legend(row, handles, title, place, side)
    text = (
        "As Figure 12 of [PEA21], where something is sent to others. Phases: the fastest method of ours and of the MPI's that"
        f" packs. {FASTEST}"
    )
    caption = (
        "The two panels of Figure 12 of [PEA21]: phases of an exchange, and how many times as fast it is as the MPI's fastest"
        " method."
    )
    return page.finish(text), caption


def draw_scaling(study):
    rows = []
    for group in study.groups.values():
        if group.scaling == "none":
            continue
        curves = study.fastest_curves(group, "compare", "run")
        weak = group.scaling == "weak"
        main, efficiencies = [], []
        for place, curve in centered(curves):
            style = line_style(curve)
            values = [curve[name] for name in ("efficiency", "low_efficiency", "high_efficiency")]
            speed_ups = [value * curve.ranks for value in values]
            main.append(line(curve, *((curve.seconds, curve.p10, curve.p90) if weak else speed_ups), style, place))
            efficiencies.append(line(curve, *values, style, place))
        if weak:
            left = Panel(f"{group.heading}: time", "time (p10, median, p90)", short_seconds, main)
        else:
            left = Panel(f"{group.heading}: speed-up", "speed-up: ranks(first) T(first) / T", times, main, BINARY, True)
        label = "T(first) / T" if weak else "speed-up / ranks"
        panels = over_ranks([left, Panel("efficiency", label, percent, efficiencies)])
        if panels:
            rows.append((panels, curves, study.timed(group, "compare", "run")))
    if not rows:
        return None
    shown = pandas.concat([timed for *_, timed in rows])
    page = Page(study, "scaling", [3.7] * len(rows), [len(panels) for panels, *_ in rows], 9.2, shown, side=2.6)
    for row, (panels, curves, _) in enumerate(rows):
        draw_row(page, row, panels)
        page.legend(row, [*handles_of(curves), handle("ideal", color="black", linewidth=0.8)])
    text = f"{FASTEST} Run: a time step with its exchange and the stencil. First: the fewest ranks that send to others; of run, the fewest."
    return page.finish(text), "Weak scaling: time and efficiency; strong scaling: speed-up and efficiency."


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
    page = Page(study, "all methods beside the MPI's fastest", heights, [1], 9.5, pandas.concat([bars for _, bars in rows]))
    for row, (group, bars) in enumerate(rows):
        (axis,) = page.row(row)
        axis.set_title(f"{group.heading}: {first(bars).place}", loc="left")
        for y, bar in enumerate(bars.itertuples()):
            own = bar.ratio * bar.seconds
            color = STYLES.get(bar.family, ("#aa4499", "*"))[0]
            face, edge = ("white", color) if bar.crowded else (color, "white")
            style = {"height": 0.72, "linewidth": 1.2, "facecolor": face, "edgecolor": edge, "hatch": "///" if bar.vendor else None}
            axis.barh(y, bar.ratio - 1, left=1, **style)
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
    text = "At the most ranks of each group. Hatched: the MPI's. Lines: p10 to p90, by the median of the MPI's fastest method."
    return page.finish(text), "All methods at the most ranks of each group: how many times as fast as the MPI's fastest method."


def some(points, count):
    """Returns at most `count` of the points: the first, the last, and others evenly between them."""
    if len(points) <= count:
        return points
    return [points[round(at * (len(points) - 1) / (count - 1))] for at in range(count)]


def draw_phases(study):
    """Draws stacked bars of each method's phases: a row for each group and subcommand, a column for each point."""
    rows = []
    for group in study.groups.values():
        for command in ("compare", "run"):
            curves = study.fastest_curves(group, command)
            if curves:
                points = some(list(study.timed(group, command).point.unique()), 4)
                bars = pandas.concat(curves).assign(y=[y for y, curve in enumerate(curves) for _ in range(len(curve))])
                rows.append((group, command, points, [first(curve).label for curve in curves], bars[bars.point.isin(points)]))
    if not rows:
        return None
    heights = [0.24 * len(labels) + 1.0 for *_, labels, _ in rows]
    counts = [len(points) for _, _, points, *_ in rows]
    page = Page(study, "phases", heights, counts, 11.5, pandas.concat([bars for *_, bars in rows]))
    used = []
    for row, (group, command, points, labels, every) in enumerate(rows):
        for column, (axis, point) in enumerate(zip(page.row(row, len(points)), points)):
            bars = every[every.point == point]
            # With strong scaling, the times differ at each point.
            limit = longest_bar(bars if group.scaling == "strong" else every)
            what = {"compare": "exchange", "run": "time step"}[command]
            where = next(each.place for each in study.points if each.name == point)
            axis.set_title(f"{group.heading}\n{what}, {where}" if column == 0 else f"\n{where}", loc="left", fontsize=8)
            for _, bar in bars.iterrows():
                used += stack(axis, bar, limit)
            axis.set_yticks(range(len(labels)), labels if column == 0 else [""] * len(labels))
            around = 0.6 if len(labels) > 1 else 0.8
            axis.set_ylim(len(labels) - 1 + around, -around)
            ticks = pyplot.MaxNLocator(4).tick_values(0, 1.5 * limit)
            axis.set_xlim(0, ticks[-1])
            axis.set_xticks(ticks, [short_seconds(value) if value else "0" for value in ticks])
            axis.grid(axis="y", visible=False)
    patches = [box(phase, facecolor=PHASES[phase][0], edgecolor="#444444") for phase in PHASES if phase in used]
    page.figure.legend(handles=patches, loc="upper right", ncol=len(patches), frameon=False)
    text = (
        "Medians on the slowest rank, which may overlap and need not add up; the black mark (p10 to p90) and the number: the total."
        f" >: goes on beyond. With strong scaling each point has its own axis. {FASTEST}"
    )
    return page.finish(text), "Medians of the phases, stacked; the black mark is the total."


END = 1.25  # longer bars are cut here, relative to the longest bar that is shown whole


def longest_bar(bars):
    """Returns a limit at which all of our bars are whole. The vendor's bars are whole, too, if they are not much
    longer."""
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
        axis.plot([bar.p10] + [bar.p90] * (bar.p90 <= end), [y] * (1 + (bar.p90 <= end)), "|", color="black", markersize=4)
        axis.plot([bar.seconds], [y], "|", color="black", markersize=9)
    if bar.p90 > end:
        axis.plot([end], [y], ">", color="black", markersize=5)
    axis.text(max(left, min(bar.p90, end)) + 0.03 * limit, y, seconds(bar.seconds), va="center", fontsize=7.5)
    return phases
