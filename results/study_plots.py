# SPDX-License-Identifier: BSD-3-Clause
"""Draws the figures of a scaling study (study.py). Needs matplotlib 3.6 or later."""

import collections
import math
import textwrap

import gather
from diff import seconds
from records import BINARY, DECIMAL, log_scale, pyplot
from study_data import at_the_most_ranks, is_emulated, ratio_text, seconds_of

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


def draw(study, folder, program):
    """Draws all figures that the study has: {name: its caption in one line}. Each is NAME.png, .pdf and .svg in
    `folder`. Returns None if nothing can be drawn here."""
    plots = pyplot(program)
    if plots is None:
        return None
    plots.rcParams.update(
        {"font.size": 9, "axes.titlesize": 9, "legend.fontsize": 8, "axes.grid": True, "grid.alpha": 0.3, "axes.axisbelow": True}
    )
    figures = {}
    for name, function in (
        ("fastest", draw_fastest),
        ("figure12", draw_figure12),
        ("scaling", draw_scaling),
        ("methods", draw_methods),
        ("phases", draw_phases),
    ):
        drawn = function(plots, study)
        if drawn:
            figure, figures[name] = drawn
            for end, metadata in (("png", {}), ("pdf", {"CreationDate": None}), ("svg", {"Date": None})):
                figure.savefig(folder / f"{name}.{end}", dpi=120, metadata=metadata)
            plots.close(figure)
    for _, point, (gathers, first) in list(study.gathers())[-1:]:
        note = "; more ranks than cores" if study.oversubscribed(point) else ""
        if gather.draw(gathers, first, folder / "gathers", ("png", "pdf", "svg"), note):
            figures["gathers"] = f"Gathers of point {point.name} by size, order and variant, and how many times as fast zero-copy is."
    return figures


class Page:
    """Is a figure with a row of panels for each group, a title above and a caption below.

    `counts` has the number of panels of each row, which share `width` inches; `side` are inches for legends, right of
    them."""

    def __init__(self, plots, study, title, heights, counts, width, points, side=0.0):
        self.study, self.points, self.by_ranks = study, points, False
        self.panels, self.width = width, width + side
        self.figure = plots.figure(figsize=(self.width, sum(heights) + 1.2), layout="constrained")
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
        study, records = self.study, [record for point in self.points for record in point.records]
        notes = list(sentences)
        if any(study.oversubscribed(point) for point in self.points):
            notes.append("Hollow: more ranks than cores.")
        if self.by_ranks and any(is_emulated(record) for record in records):
            notes.append("*: emulated nodes, which share a machine.")
        left_out = sum(not record["verified"] for record in records)
        if left_out:
            notes.append(f"{left_out} record{'s' if left_out > 1 else ''} not verified, left out.")
        machine = ", ".join([*study.mpis(), *study.origins("cpus"), *study.origins("gpus")])
        where = f"{machine}; commit {', '.join(study.commits())}; measured from {min(study.origins('time'))} on."
        caption = "\n".join(textwrap.fill(part, int(self.width / INCHES_OF_LETTER)) for part in (" ".join(notes), where))
        self.figure.supxlabel(caption, fontsize=7.5, x=0.01, ha="left")
        return self.figure


def line_style(curve):
    color, marker = STYLES.get(curve.exchange, ("#aa4499", "*"))
    style = ":" if curve.kind == "run" else "--" if curve.vendor else "-"
    return {
        "color": color,
        "marker": "*" if curve.kind == "run" else marker,
        "linestyle": style,
        "markersize": 8 if curve.kind == "run" else 6,
        "markeredgewidth": 1,
        "linewidth": 1.3,
    }


def handle(plots, label, **style):
    return plots.Line2D([], [], label=label, **style)


def add_line(axis, study, samples, style, place=0):
    """Adds a line of `samples`: (point, y, lower, upper), from p10 to p90. Error bars of lines with another `place`
    stand side by side."""
    at = [point.ranks * 2 ** (0.03 * place) for point, *_ in samples]
    y = [value for _, value, *_ in samples]
    axis.plot(at, y, **{**style, "marker": ""})
    for x, (point, value, low, high) in zip(at, samples):
        # A median is between p10 and p90; rounding may contradict that.
        axis.errorbar(
            [x],
            [value],
            [[max(0, value - low)], [max(0, high - value)]],
            color=style["color"],
            alpha=0.6,
            elinewidth=0.8,
            capsize=1.5,
        )
        axis.plot([x], [value], **style, markerfacecolor="white" if study.oversubscribed(point) else style["color"])


def centered(curves):
    return [(at - (len(curves) - 1) / 2, curve) for at, curve in enumerate(curves)]


def ranks_text(ranks, points):
    """Returns two lines of text for below an axis."""
    nodes = dict.fromkeys(str(point.nodes) for point in points)
    mark = "*" if any(is_emulated(point.records[0]) for point in points) else ""
    return f"{ranks} rank{'s' if ranks > 1 else ''}\n{' or '.join(nodes)} node{'' if list(nodes) == ['1'] else 's'}{mark}"


def set_ticks(axis, at, labels, gap):
    """Writes `labels` below the axis. If they stand too close, they are slanted and some are left out. `gap`: inches
    from one to the next."""
    wide = max(len(line) for label in labels for line in label.split("\n")) * INCHES_OF_TICK > gap
    step = math.ceil(INCHES_OF_SLANTED / gap) if wide else 1
    labels = [label if (len(labels) - 1 - place) % step == 0 else "" for place, label in enumerate(labels)]
    slanted = {"rotation": 55, "ha": "right", "rotation_mode": "anchor"} if wide else {}
    axis.set_xticks(at, labels, fontsize=8, **slanted)
    axis.minorticks_off()


def rank_axis(page, axis, points, inches):
    """Writes ranks and nodes below the points, on an axis that is `inches` inches long."""
    page.by_ranks = True
    of_ranks = {}
    for point in sorted(points, key=lambda point: (point.ranks, point.nodes)):
        of_ranks.setdefault(point.ranks, []).append(point)
    at = list(of_ranks)
    axis.set_xscale("log", base=2)
    axis.set_xlim(at[0] / 1.35, at[-1] * 1.35)
    nearest = min(after / before for before, after in zip(at, at[1:]))
    gap = inches * math.log(nearest) / math.log(1.35**2 * at[-1] / at[0])
    set_ticks(axis, at, [ranks_text(*item) for item in of_ranks.items()], gap)


Panel = collections.namedtuple("Panel", "title label formatter lines ticks ideal", defaults=(DECIMAL, False))


def over_ranks(panels):
    """Keeps the panels that show at least two numbers of ranks. `lines` of a panel: (samples, style, place)."""
    return [panel for panel in panels if len({point.ranks for samples, *_ in panel.lines for point, *_ in samples}) > 1]


def draw_row(page, row, panels):
    """Draws panels over ranks, all with logarithmic axes. A line shows the ideal: 1, or with `ideal` the ranks."""
    for axis, panel in zip(page.row(row, len(panels)), panels):
        axis.set_title(panel.title, loc="left")
        axis.set_ylabel(panel.label)
        for samples, style, place in panel.lines:
            add_line(axis, page.study, samples, style, place)
        points = [point for samples, *_ in panel.lines for point, *_ in samples]
        if panel.ideal:
            ends = [function(point.ranks for point in points) for function in (min, max)]
            axis.plot(ends, ends, color="black", linewidth=0.8)
        elif panel.formatter != short_seconds:
            axis.axhline(1, color="black", linewidth=0.8)
        log_scale([axis], "y", panel.formatter, panel.ticks)
        rank_axis(page, axis, points, page.panels / len(panels) - 0.9)


def short_seconds(value, _=None):
    """Formats seconds for an axis, without trailing zeros."""
    factor, unit = next(((f, u) for f, u in ((1, "s"), (1e3, "ms")) if value * f >= 0.999), (1e6, "us"))
    return f"{value * factor:g} {unit}"


def times(value):
    return f"{value:g}x"


def percent(value):
    return f"{100 * value:g} %"


def statistics(record, phase="total"):
    return tuple(seconds_of(record, phase, field) for field in ("median_s", "p10_s", "p90_s"))


def draw_fastest(plots, study):
    """Draws a bar for each point: the speed of our fastest method relative to the MPI's."""
    found = study.compared()
    if not found:
        return None
    points, groups = [point for point, *_ in found], list(dict.fromkeys(study.group(point) for point, *_ in found))
    page = Page(plots, study, "our fastest method and the MPI's fastest", [3.6], [1], 8, points, side=2.6)
    (axis,) = page.row(0)
    places = {}
    for one in sorted(found, key=lambda one: (one[0].ranks, one[0].nodes)):
        places.setdefault(ranks_text(one[0].ranks, [one[0]]), []).append(one)
    page.by_ranks = True
    width = 0.8 / max(map(len, places.values()))
    upright = 7.1 / len(places) * width < 0.4  # a number is wider than its bar
    for place, bars in enumerate(places.values()):
        for at, (point, _, _, ratio, low, high) in enumerate(bars):
            x, color = place + width * (at - (len(bars) - 1) / 2), SHADES[groups.index(study.group(point)) % len(SHADES)]
            face = "white" if study.oversubscribed(point) else color
            axis.bar(x, ratio - 1, width * 0.9, bottom=1, facecolor=face, edgecolor=color, linewidth=1.4)
            axis.plot([x, x], [low, high], color="#333333", linewidth=0.9, marker="_", markersize=5)
            axis.annotate(
                ratio_text(ratio), (x, max(high, 1)), (0, 4), textcoords="offset points", ha="center", va="bottom", fontsize=8,
                rotation=90 if upright else 0,
            )  # fmt: skip
    axis.axhline(1, color="black", linewidth=1)
    axis.grid(axis="x", visible=False)
    axis.set_ylabel("ours is N x as fast")
    low, high = (function(1, *(one[at] for one in found)) for function, at in ((min, -2), (max, -1)))
    axis.update_datalim([(0, high * (high / low) ** (0.17 if upright else 0.08))])  # room for the numbers
    log_scale([axis], "y", times)
    axis.set_xlim(-0.6, len(places) - 0.4)
    set_ticks(axis, range(len(places)), list(places), 7.1 / (len(places) + 0.2))
    patches = [
        plots.Rectangle((0, 0), 1, 1, facecolor=SHADES[at % len(SHADES)], label=textwrap.fill(group.heading(), 30))
        for at, group in enumerate(groups)
    ]
    page.legend(0, patches)
    text = "Bars: medians, up from 1x where ours is faster. Lines: from the MPI's p10 by our p90 to the MPI's p90 by our p10."
    return page.finish(text), "How many times as fast our fastest method is as the MPI's fastest, by ranks; lines: p10 to p90 of both."


def draw_figure12(plots, study):
    """Draws the two panels of Figure 12 of [PEA21]."""
    rows, points = [], []
    for group in study.groups:
        curves = group.fastest_curves("compare")
        packing = [
            curve
            for curve in curves
            if all(seconds_of(record, phase) for _, record in curve.samples for phase in ("pack", "transfer", "unpack"))
        ]
        shown = [
            next((curve for curve in sorted(packing, key=at_the_most_ranks) if curve.vendor == vendor), None)
            for vendor in (False, True)
        ]
        phases = [
            ([(point, *statistics(record, phase)) for point, record in curve.sent()], line_style(curve) | {"marker": PHASES[phase][1]}, place - 1)
            for curve in filter(None, shown)
            for place, phase in enumerate(("pack", "transfer", "unpack"))
        ]  # fmt: skip
        ours = [curve for curve in curves if not curve.vendor]
        speeds = []
        for place, curve in centered(ours):
            samples = []
            for point, record in curve.sent():
                ratio = point.ratio(record)
                if ratio:
                    spread = [ratio * seconds_of(record) / seconds_of(record, field=field) for field in ("p90_s", "p10_s")]
                    samples.append((point, ratio, *spread))
            speeds.append((samples, line_style(curve), place))
        panels = over_ranks(
            [
                Panel(f"{group.heading()}: phases", "time of an exchange (p10, median, p90)", short_seconds, phases),
                Panel(f"{group.heading()}: speed", "N x as fast as the MPI's fastest method", times, speeds),
            ]
        )
        if panels:
            legends = []
            if any(panel.lines is speeds for panel in panels):
                legends.append(("speed", [handle(plots, curve.label, **line_style(curve)) for curve in ours]))
            if any(panel.lines is phases for panel in panels):
                handles = [handle(plots, curve.label, **line_style(curve) | {"marker": ""}) for curve in shown if curve]
                handles += [
                    handle(plots, phase, color="#444444", linestyle="", marker=PHASES[phase][1])
                    for phase in ("pack", "transfer", "unpack")
                ]
                legends.append(("phases", handles))
            rows.append((panels, legends))
            points += group.timed("compare")
    if not rows:
        return None
    counts = [len(panels) for panels, _ in rows]
    page = Page(plots, study, "phases, and speed beside the MPI's", [3.5] * len(rows), counts, 9.2, points, side=2.6)
    for row, (panels, legends) in enumerate(rows):
        draw_row(page, row, panels)
        side = None
        for place, (title, handles) in zip(("upper left", "lower left"), legends):
            side = page.legend(row, handles, title, place, side)
    text = f"As Figure 12 of [PEA21], where something is sent to others. Phases: the fastest method of ours and of the MPI's that packs. {FASTEST}"
    caption = "The two panels of Figure 12 of [PEA21]: phases of an exchange, and how many times as fast it is as the MPI's fastest method."
    return page.finish(text), caption


def draw_scaling(plots, study):
    rows, points = [], []
    for group in study.groups:
        if group.scaling == "none":
            continue
        curves = group.fastest_curves("compare", "run")
        weak = group.scaling == "weak"
        main, efficiencies = [], []
        for place, curve in centered(curves):
            found = [(point, *values) for point, _, *values in curve.efficiencies(group.scaling)]
            samples = [(point, *(value * point.ranks for value in values)) for point, *values in found]
            if weak:
                samples = [(point, *statistics(record)) for point, record in curve.samples]
            main.append((samples, line_style(curve), place))
            efficiencies.append((found, line_style(curve), place))
        title, label = f"{group.heading()}: {'time' if weak else 'speed-up'}", "speed-up: ranks(first) T(first) / T"
        panels = over_ranks(
            [
                Panel(title, "time (p10, median, p90)", short_seconds, main) if weak else Panel(title, label, times, main, BINARY, True),
                Panel("efficiency", "T(first) / T" if weak else "speed-up / ranks", percent, efficiencies),
            ]
        )
        if panels:
            rows.append((panels, curves))
            points += group.timed("compare", "run")
    if not rows:
        return None
    page = Page(plots, study, "scaling", [3.7] * len(rows), [len(panels) for panels, _ in rows], 9.2, points, side=2.6)
    for row, (panels, curves) in enumerate(rows):
        draw_row(page, row, panels)
        handles = [handle(plots, curve.label, **line_style(curve)) for curve in curves]
        page.legend(row, [*handles, handle(plots, "ideal", color="black", linewidth=0.8)])
    text = f"{FASTEST} Run: a time step with its exchange and the stencil. First: the fewest ranks that send to others; of run, the fewest."
    caption = "Weak scaling: time and efficiency; strong scaling: speed-up and efficiency."
    return page.finish(text), caption


def draw_methods(plots, study):
    """Draws bars of all methods at the largest point of each group."""
    rows = []
    for group in study.groups:
        points = [point for point in group.timed("compare") if any(point.ratio(record) for record in point.timed())]
        if points:
            curves = [curve for curve in group.curves("compare") if curve.at(points[-1])]
            rows.append((group, points[-1], [(curve, curve.at(points[-1])) for curve in curves]))
    if not rows:
        return None
    heights = [0.24 * len(bars) + 0.9 for *_, bars in rows]
    page = Page(plots, study, "all methods beside the MPI's fastest", heights, [1], 9.5, [point for _, point, _ in rows])
    for row, (group, point, bars) in enumerate(rows):
        (axis,) = page.row(row)
        axis.set_title(f"{group.heading()}: {point.place()}", loc="left")
        for y, (curve, record) in enumerate(bars):
            ratio = point.ratio(record) or math.nan
            median, p10, p90 = statistics(record)
            low, high = ratio * median / p90, ratio * median / p10
            color = line_style(curve)["color"]
            face, edge = ("white", color) if study.oversubscribed(point) else (color, "white")
            axis.barh(
                y,
                ratio - 1,
                left=1,
                height=0.72,
                linewidth=1.2,
                facecolor=face,
                edgecolor=edge,
                hatch="///" if curve.vendor else None,
            )
            axis.errorbar(
                [ratio], [y], xerr=[[max(0, ratio - low)], [max(0, high - ratio)]], color="#444444", elinewidth=0.9, capsize=2
            )
            axis.annotate(
                f"{ratio_text(ratio)}, {seconds(median)}", (1.01, y), xycoords=("axes fraction", "data"), va="center", fontsize=8
            )
        log_scale([axis], "x", times)
        axis.axvline(1, color="black", linewidth=1)
        axis.set_yticks(range(len(bars)), [curve.label for curve, _ in bars])
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


def draw_phases(plots, study):
    """Draws stacked bars of each method's phases: a row for each group and subcommand, a column for each point."""
    rows = []
    for group in study.groups:
        for command in ("compare", "run"):
            points, curves = some(group.timed(command), 4), group.fastest_curves(command)
            if points:
                rows.append((group, command, points, curves))
    if not rows:
        return None
    heights = [0.24 * len(curves) + 1.0 for *_, curves in rows]
    counts = [len(points) for *_, points, _ in rows]
    page = Page(plots, study, "phases", heights, counts, 11.5, [point for *_, points, _ in rows for point in points])
    used = []
    for row, (group, command, points, curves) in enumerate(rows):
        for column, (axis, point) in enumerate(zip(page.row(row, len(points)), points)):
            # With strong scaling, the times differ at each point.
            limit = longest_bar(curves, [point] if group.scaling == "strong" else points)
            what = {"compare": "exchange", "run": "time step"}[command]
            where = point.place()
            axis.set_title(f"{group.heading()}\n{what}, {where}" if column == 0 else f"\n{where}", loc="left", fontsize=8)
            for y, curve in enumerate(curves):
                record = curve.at(point)
                if record:
                    used += stack(axis, y, record, limit, study.oversubscribed(point))
            axis.set_yticks(range(len(curves)), [curve.label for curve in curves] if column == 0 else [""] * len(curves))
            around = 0.6 if len(curves) > 1 else 0.8
            axis.set_ylim(len(curves) - 1 + around, -around)
            ticks = plots.MaxNLocator(4).tick_values(0, 1.5 * limit)
            axis.set_xlim(0, ticks[-1])
            axis.set_xticks(ticks, [short_seconds(value) if value else "0" for value in ticks])
            axis.grid(axis="y", visible=False)
    patches = [
        plots.Rectangle((0, 0), 1, 1, facecolor=PHASES[phase][0], edgecolor="#444444", label=phase)
        for phase in PHASES
        if phase in used
    ]
    page.figure.legend(handles=patches, loc="upper right", ncol=len(patches), frameon=False)
    text = (
        "Medians on the slowest rank, which may overlap and need not add up; the black mark (p10 to p90) and the number: the total."
        f" >: goes on beyond. With strong scaling each point has its own axis. {FASTEST}"
    )
    return page.finish(text), "Medians of the phases, stacked; the black mark is the total."


END = 1.25  # longer bars are cut here, relative to the longest bar that is shown whole


def longest_bar(curves, points):
    """Returns a limit at which all of our bars are whole. The vendor's bars are whole, too, if they are not much
    longer."""
    found = [(curve.vendor, seconds_of(curve.at(point))) for curve in curves for point in points if curve.at(point)]
    ours = [value for vendor, value in found if not vendor]
    longest = max(value for _, value in found)
    return min(longest, 3 * max(ours)) if ours else longest


def stack(axis, y, record, limit, hollow):
    """Draws one bar, cut behind `limit`; returns its phases."""
    left, phases = 0, [phase for phase in PHASES if seconds_of(record, phase)]
    for phase in phases:
        width = min(seconds_of(record, phase), max(0, END * limit - left))
        color = PHASES[phase][0]
        axis.barh(
            y,
            width,
            left=left,
            height=0.72,
            facecolor="white" if hollow else color,
            edgecolor=color if hollow else "#444444",
            linewidth=1.6 if hollow else 0.5,
        )
        left += width
    median, p10, p90 = statistics(record)
    end = END * limit
    if median <= end:
        axis.plot([p10, min(p90, end)], [y, y], color="black", linewidth=0.9)
        axis.plot([p10] + [p90] * (p90 <= end), [y] * (1 + (p90 <= end)), "|", color="black", markersize=4)
        axis.plot([median], [y], "|", color="black", markersize=9)
    if p90 > end:
        axis.plot([end], [y], ">", color="black", markersize=5)
    axis.text(max(left, min(p90, end)) + 0.03 * limit, y, seconds(median), va="center", fontsize=7.5)
    return phases
