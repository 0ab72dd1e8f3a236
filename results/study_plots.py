# SPDX-License-Identifier: BSD-3-Clause
"""The figures of a scaling study (study.py). Takes matplotlib 3.6 or later."""

import math
import textwrap

import gather
from diff import seconds
from records import pyplot
from study_data import at_the_most_ranks, is_emulated, ratio_text, seconds_of

# Colour, marker: the same everywhere. Of Okabe and Ito's palette for ours; dark ones for the vendor's, whose lines are dashed.
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
NAMES = ("figure12", "scaling", "methods", "phases", "gathers")
FASTEST = "Of each method the variant that is fastest at the most ranks."
CUT = "Error bars that leave a panel are cut."
INCHES_OF_LETTER = 0.058  # of a caption


def draw(study, folder, program):
    """Draws what there is to be drawn: {name: one line on what it shows}. Each is NAME.png and NAME.pdf in `folder`. None: nothing can
    be drawn here."""
    plots = pyplot(program)
    if plots is None:
        return None
    plots.rcParams.update(
        {"font.size": 9, "axes.titlesize": 9, "legend.fontsize": 8, "axes.grid": True, "grid.alpha": 0.3, "axes.axisbelow": True}
    )
    figures = {}
    for name, function in (
        ("figure12", draw_figure12),
        ("scaling", draw_scaling),
        ("methods", draw_methods),
        ("phases", draw_phases),
    ):
        drawn = function(plots, study)
        if drawn:
            figure, figures[name] = drawn
            for end, metadata in (("png", {}), ("pdf", {"CreationDate": None})):
                figure.savefig(folder / f"{name}.{end}", dpi=120, metadata=metadata)
            plots.close(figure)
    for _, point, (gathers, first) in list(study.gathers())[-1:]:
        note = "; more ranks than cores" if study.oversubscribed(point) else ""
        gather.draw(gathers, first, folder / "gathers", ("png", "pdf"), note)
        figures["gathers"] = f"Gathers of point {point.name} by size, order and variant, and their times by that of zero-copy."
    return figures


class Page:
    """A figure with a row for each group, a title above and a caption below."""

    def __init__(self, plots, study, title, heights, widths, points):
        self.study, self.points, self.by_ranks = study, points, False
        self.width = sum(widths)
        self.figure = plots.figure(figsize=(self.width, sum(heights) + 1.2), layout="constrained")
        self.figure.get_layout_engine().set(h_pad=0.08, w_pad=0.08)
        self.grid = self.figure.add_gridspec(len(heights), len(widths), height_ratios=heights, width_ratios=widths)
        self.figure.suptitle(f"{study.title}: {title}", fontsize=11, x=0.01, ha="left")

    def panel(self, row, column, title="", **shared):
        axis = self.figure.add_subplot(self.grid[row, column], **shared)
        axis.set_title(title, loc="left")
        return axis

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
    """`samples`: (point, y, lower, upper), from p10 to p90. Error bars of lines with another `place` stand beside each other."""
    at = [point.ranks * 2 ** (0.03 * place) for point, *_ in samples]
    y = [value for _, value, *_ in samples]
    axis.plot(at, y, **{**style, "marker": ""})
    for x, (point, value, low, high) in zip(at, samples):
        # A median is between them; rounding may say otherwise.
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


def rank_axis(page, axis, points):
    """Ranks at the points, and below them nodes."""
    page.by_ranks = True
    nodes = {}
    for point in points:
        mark = "*" if is_emulated(point.records[0]) else ""
        nodes.setdefault(point.ranks, []).append(f"{point.nodes}{mark}")
    axis.set_xscale("log", base=2)
    labels = [f"{ranks}\n{'/'.join(dict.fromkeys(of_ranks))}" for ranks, of_ranks in nodes.items()]
    step = math.ceil(len(labels) / 8)  # more do not fit
    axis.set_xticks(list(nodes), [label if (len(labels) - 1 - at) % step == 0 else "" for at, label in enumerate(labels)])
    axis.minorticks_off()
    axis.set_xlim(min(nodes) / 1.35, max(nodes) * 1.35)
    axis.set_xlabel("ranks, nodes below", fontsize=8)


def log_scale(plots, axis, which, formatter):
    """A logarithmic axis with enough numbers at it, whatever it spans."""
    axis.set(**{f"{which}scale": "log"})
    one = getattr(axis, f"{which}axis")
    low, high = one.get_view_interval()
    one.set_major_locator(plots.matplotlib.ticker.LogLocator(subs=(1, 2, 5) if high / low < 1000 else (1,)))
    one.set_major_formatter(plots.FuncFormatter(formatter))
    one.set_minor_locator(plots.NullLocator())


def short_seconds(value, _=None):
    """At an axis: no more digits than there are."""
    factor, unit = next(((f, u) for f, u in ((1, "s"), (1e3, "ms")) if value * f >= 0.999), (1e6, "us"))
    return f"{value * factor:g} {unit}"


def times(value, _=None):
    return f"{value:g}x"


def statistics(record, phase="total"):
    return tuple(seconds_of(record, phase, field) for field in ("median_s", "p10_s", "p90_s"))


def draw_figure12(plots, study):
    """The two panels of Figure 12 of [PEA21]."""
    groups = [group for group in study.groups if len({point.ranks for point in group.timed("compare")}) > 1]
    if not groups:
        return None
    points = [point for group in groups for point in group.timed("compare")]
    page = Page(plots, study, "phases and speed-up over the vendor's MPI", [3.3] * len(groups), [4.6, 4.6, 2.6], points)
    for row, group in enumerate(groups):
        curves = group.fastest_curves("compare")
        packing = [
            curve
            for curve in curves
            if all(seconds_of(record, phase) for _, record in curve.samples for phase in ("pack", "transfer", "unpack"))
        ]
        shown = [
            next(
                (curve for curve in sorted(packing, key=at_the_most_ranks) if curve.vendor == vendor),
                None,
            )
            for vendor in (False, True)
        ]
        left = page.panel(row, 0, f"{group.heading()}: phases")
        for curve in filter(None, shown):
            for place, phase in enumerate(("pack", "transfer", "unpack")):
                samples = [(point, *statistics(record, phase)) for point, record in curve.samples if record["bytes_to_others"]]
                add_line(left, study, samples, line_style(curve) | {"marker": PHASES[phase][1]}, place - 1)
        left.set_ylabel("time of an exchange (p10, median, p90)")
        log_scale(plots, left, "y", short_seconds)
        right = page.panel(row, 1, "speed-up of an exchange")
        ours = [curve for curve in curves if not curve.vendor]
        medians = [1]
        for place, curve in centered(ours):
            samples = []
            for point, record in curve.samples:
                ratio = point.ratio(record)
                if ratio:
                    spread = [ratio * seconds_of(record) / seconds_of(record, field=field) for field in ("p90_s", "p10_s")]
                    samples.append((point, ratio, *spread))
                    medians.append(ratio)
            if samples:
                add_line(right, study, samples, line_style(curve), place)
        right.axhline(1, color="black", linestyle="--", linewidth=0.8)
        right.set_ylabel("speed-up over the fastest vendor method")
        if max(medians) > 20:
            log_scale(plots, right, "y", times)
        else:
            right.set_ylim(0, 1.3 * max(medians))
        for axis in (left, right):
            rank_axis(page, axis, group.timed("compare"))
        side = page.legend(row, [handle(plots, curve.label, **line_style(curve)) for curve in ours], "speed-up")
        if any(shown):
            handles = [handle(plots, curve.label, **line_style(curve) | {"marker": ""}) for curve in shown if curve]
            handles += [
                handle(plots, phase, color="#444444", linestyle="", marker=PHASES[phase][1])
                for phase in ("pack", "transfer", "unpack")
            ]
            page.legend(row, handles, "phases", "lower left", side)
    text = f"As Figure 12 of [PEA21]. Phases: the fastest method of ours and of the vendor's that packs, where something is sent to others. {FASTEST} {CUT}"
    caption = "The two panels of Figure 12 of [PEA21]: phases of an exchange, and speed-up over the fastest vendor method, by ranks."
    return page.finish(text), caption


def draw_scaling(plots, study):
    rows = []
    for group in study.groups:
        points = group.timed("compare", "run") if group.scaling != "none" else []
        if len({point.ranks for point in points}) > 1:
            rows.append((group, points))
    if not rows:
        return None
    points = [point for _, of_group in rows for point in of_group]
    page = Page(plots, study, "scaling", [3.5] * len(rows), [4.6, 4.6, 2.6], points)
    for row, (group, of_group) in enumerate(rows):
        curves = group.fastest_curves("compare", "run")
        weak = group.scaling == "weak"
        left = page.panel(row, 0, f"{group.heading()}: {'time' if weak else 'speed-up'}")
        right = page.panel(row, 1, "efficiency")
        for place, curve in centered(curves):
            samples = [(point, *statistics(record)) for point, record in curve.samples]
            efficiencies = [(point, *values) for point, _, *values in curve.efficiencies(group.scaling)]
            if not weak:
                samples = [(point, *(value * point.ranks for value in values)) for point, *values in efficiencies]
            add_line(left, study, samples, line_style(curve), place)
            add_line(right, study, efficiencies, line_style(curve), place)
        ranks = sorted({point.ranks for point in of_group})
        if weak:
            left.set_ylabel("time (p10, median, p90)")
            log_scale(plots, left, "y", short_seconds)
        else:
            left.plot(ranks, ranks, color="black", linewidth=0.8)
            left.set_ylabel("speed-up: ranks(first) T(first) / T")
            log_scale(plots, left, "y", times)
        right.axhline(1, color="black", linewidth=0.8)
        best = [median for curve in curves for _, _, median, *_ in curve.efficiencies(group.scaling)]
        right.set_ylim(0, 1.15 * max([1, *best]))
        right.set_ylabel("T(first) / T" if weak else "speed-up / ranks")
        for axis in (left, right):
            rank_axis(page, axis, of_group)
        page.legend(
            row,
            [handle(plots, curve.label, **line_style(curve)) for curve in curves]
            + [handle(plots, "ideal", color="black", linewidth=0.8)],
        )
    text = f"{FASTEST} Run: a time step with its exchange and the stencil. First: the fewest ranks that send to others; of run, the fewest. {CUT}"
    caption = "Weak scaling: time and efficiency; strong scaling: speed-up and efficiency."
    return page.finish(text), caption


def draw_methods(plots, study):
    """Bars of all methods at the largest point of each group."""
    rows = []
    for group in study.groups:
        points = [point for point in group.timed("compare") if any(point.ratio(record) for record in point.timed())]
        if points:
            curves = [curve for curve in group.curves("compare") if curve.at(points[-1])]
            rows.append((group, points[-1], [(curve, curve.at(points[-1])) for curve in curves]))
    if not rows:
        return None
    page = Page(
        plots, study, "ours and the vendor's", [0.24 * len(bars) + 0.9 for *_, bars in rows], [9.5], [point for _, point, _ in rows]
    )
    for row, (group, point, bars) in enumerate(rows):
        axis = page.panel(row, 0, f"{group.heading()}: {point.place()}")
        ends = []
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
            ends += [low, high]
            axis.annotate(
                f"{ratio_text(ratio)}, {seconds(median)}", (1.01, y), xycoords=("axes fraction", "data"), va="center", fontsize=8
            )
        low, high = min(ends + [1]), max(ends + [1])
        axis.set_xlim(low / 1.15, high * 1.15)
        log_scale(plots, axis, "x", times)
        axis.axvline(1, color="black", linewidth=1)
        axis.set_yticks(range(len(bars)), [curve.label for curve, _ in bars])
        axis.set_ylim(len(bars) - 0.4, -0.6)
        axis.grid(axis="y", visible=False)
        axis.set_xlabel("speed of an exchange by that of the fastest vendor method (log scale; right of 1: faster)", fontsize=8)
    text = "At the most ranks of each group. Hatched: the vendor's. Lines: p10 to p90, by the median of the fastest vendor method."
    return page.finish(text), "All methods at the most ranks of each group: speed by that of the fastest vendor method."


def some(points, count):
    """At most so many of them: the first, the last, and between them evenly."""
    if len(points) <= count:
        return points
    return [points[round(at * (len(points) - 1) / (count - 1))] for at in range(count)]


def draw_phases(plots, study):
    """Stacked bars of each method's phases: a row for each group and subcommand, a column for each point."""
    rows = []
    for group in study.groups:
        for command in ("compare", "run"):
            points, curves = some(group.timed(command), 4), group.fastest_curves(command)
            if points:
                rows.append((group, command, points, curves))
    if not rows:
        return None
    columns = max(len(points) for _, _, points, _ in rows)
    heights = [0.24 * len(curves) + 1.0 for *_, curves in rows]
    page = Page(plots, study, "phases", heights, [11.5 / columns] * columns, [point for *_, points, _ in rows for point in points])
    used = []
    for row, (group, command, points, curves) in enumerate(rows):
        for column, point in enumerate(points):
            # Strong scaling takes other times at each point.
            limit = longest_bar(curves, [point] if group.scaling == "strong" else points)
            axis = page.panel(row, column)
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
            axis.set_xlim(0, 1.5 * limit)
            axis.xaxis.set_major_locator(plots.MaxNLocator(4))
            axis.xaxis.set_major_formatter(plots.FuncFormatter(lambda value, _: short_seconds(value) if value else "0"))
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


END = 1.25  # where what is longer is cut, by the longest bar that is shown whole


def longest_bar(curves, points):
    """So long that all of ours are there as a whole, and the vendor's if that is not much longer."""
    found = [(curve.vendor, seconds_of(curve.at(point))) for curve in curves for point in points if curve.at(point)]
    ours = [value for vendor, value in found if not vendor]
    longest = max(value for _, value in found)
    return min(longest, 3 * max(ours)) if ours else longest


def stack(axis, y, record, limit, hollow):
    """One bar, cut behind `limit`; returns the phases that it has."""
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
