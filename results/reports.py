# SPDX-License-Identifier: BSD-3-Clause
"""Shares code between the reports: finds their packages, reads rows into frames, writes Markdown tables and
saves plots."""

import argparse
import math

from records import RESULTS, damaged, lines_of, load, need_packages, read_text

need_packages()
import matplotlib  # noqa: E402
import pandas  # noqa: E402

matplotlib.use("Agg")
matplotlib.rcParams["svg.hashsalt"] = "halocline"
from matplotlib import pyplot  # noqa: E402

RAW = RESULTS / "raw"


def parser(description):
    """Returns a parser of arguments with the option that every script with plots has."""
    form = argparse.RawDescriptionHelpFormatter
    out = argparse.ArgumentParser(description=description, formatter_class=form)

    def split(words):
        formats = tuple(words.split(","))
        if not {"png", "pdf"}.issuperset(formats):
            raise argparse.ArgumentTypeError(f"{words} (not png, pdf or both): give --formats png,pdf")
        return formats

    out.add_argument("--formats", metavar="png,pdf", type=split, default=(), help="draw plots in these, too")
    return out


def save(figure, stem, formats=()):
    """Writes a figure as STEM.svg and in other formats. Returns the paths."""
    paths = [stem.with_suffix(f".{end}") for end in ("svg", *formats)]
    for path in paths:
        metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(path.suffix)
        figure.savefig(path, metadata=metadata, dpi=130)
    pyplot.close(figure)
    return paths


def rows_of(path, again):
    """Returns the provenance, None without, and a frame of the other lines of a file of benchmark rows."""
    text = read_text(path, again)
    with damaged(path, again):
        lines = [load(line) for line in lines_of(text) if line.startswith("{")]
        provenance = lines.pop(0)["provenance"] if lines and lines[0].keys() == {"provenance"} else None
        return provenance, pandas.DataFrame(lines)


def commit(origin):
    return origin["git"][:12] + (" with changes" if origin["dirty"] else "")


def column(frame, name):
    """Returns a column of numbers; without this column, one of missing values."""
    return frame[name] if name in frame else pandas.Series(math.nan, frame.index)


def number(value, digits=2):
    return "-" if pandas.isna(value) else f"{value:.{digits}f}"


def numbers(values, digits=2):
    """Returns the texts of a column of numbers; that of a missing value is "-"."""
    return values.map(lambda value: number(value, digits)).astype(object)


def markdown(frame, left=1, text=()):
    """Returns a table of Markdown. The first `left` columns and those named in `text` hold text, the rest
    numbers. `frame` may be a dictionary of columns."""
    frame = pandas.DataFrame(frame)
    ends = ["---|" if at < left or name in text else "---:|" for at, name in enumerate(frame)]
    rows = frame.astype(object).where(frame.notna(), "-").astype(str).values.tolist()
    head, *lines = ["| " + " | ".join(cells) + " |\n" for cells in [list(frame), *rows]]
    return head + "|" + "".join(ends) + "\n" + "".join(lines)


# Each entry gives ticks of logarithmic axes, from many to few: (base, ticks from one of its powers
# to the next).
DECIMAL = ((10, (1, 1.5, 2, 3, 5, 7)), (10, (1, 2, 5)), (10, (1,)), (1000, (1,)))
BINARY = ((4, (1, 2)), (4, (1,)), (64, (1,)))


def log_scale(axes, which, formatter, series=DECIMAL):
    """Gives all `axes` the same logarithmic scale on axis `which`. The scale ends at ticks, and every tick
    has its text."""
    every = [getattr(axis, f"{which}axis") for axis in axes]
    low = min(max(one.get_data_interval()[0], one.get_minpos()) for one in every)
    high = max(one.get_data_interval()[1] for one in every)
    for base, steps in series:
        powers = range(math.floor(math.log(low, base)) - 1, math.ceil(math.log(high, base)) + 2)
        ticks = [step * base**power for power in powers for step in steps]
        first = max(at for at, tick in enumerate(ticks) if tick <= low * 1.001)
        last = min(at for at, tick in enumerate(ticks) if tick >= high * 0.999)
        ticks = ticks[first : last + 1] if first < last else ticks[first - 1 : last + 2]
        if len(ticks) <= 8:
            break
    around = (ticks[-1] / ticks[0]) ** 0.03
    for axis, one in zip(axes, every):
        axis.set(**{f"{which}scale": "log", f"{which}lim": (ticks[0] / around, ticks[-1] * around)})
        one.set_ticks(ticks, [formatter(tick) for tick in ticks])
        one.set_ticks([], minor=True)
