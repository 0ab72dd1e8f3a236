#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Draws slices of a field from snapshots of `halocline run --snapshot-every`. Several snapshots become an animation.

    results/show.py fields-00000010.vti                          -> NAME-z.png of the first field
    results/show.py fields-00000010.vti --field ux --axis x --at 0.25 -o ux.pdf
    results/show.py fields-*.vti --field lnrho -o lnrho.gif      -> one colour scale, in the order of steps

The name of OUT says the format: any of matplotlib for one snapshot, .gif for several. A field of both signs has
blue for negative and red for positive values.
Exit codes: 0 ok, 2 bad input (then nothing is written), or no place for OUT, 3 a package is missing."""
import argparse
import pathlib

from records import BadInput, clear_ending, end
from reports import pyplot
from matplotlib import animation
import numpy
import vti

AXES = "xyz"


class Plane:
    """Holds a slice of a snapshot: `values` by rows, its index on the axis, and the lengths of its sides."""

    def __init__(self, path, name, axis, at):
        snapshot = vti.read(path)
        name = name or next(iter(snapshot.fields))
        if name not in snapshot.fields:
            raise BadInput(f"{path} has no field {name}: give --field one of {', '.join(snapshot.fields)}")
        field, number = snapshot.fields[name], AXES.index(axis)
        points = field.shape[2 - number]
        self.name, self.step, self.time, self.axis = name, snapshot.step, snapshot.time, axis
        self.index = min(points - 1, int(at * points))
        self.values = numpy.array(field.take(self.index, 2 - number))
        self.place = self.index * snapshot.spacing[number]
        self.sides = [one for one in AXES if one != axis]
        self.lengths = [
            snapshot.spacing[AXES.index(side)] * size for side, size in zip(self.sides, self.values.shape[::-1])
        ]

    def title(self):
        return f"{self.name} at {self.axis} = {self.place:.4g}, step {self.step}, time {self.time:.6g}"


def scale_of(planes):
    """Returns the colours and the bounds that all planes have in common."""
    finite = [plane.values[numpy.isfinite(plane.values)] for plane in planes]
    low = min((values.min() for values in finite if values.size), default=0)
    high = max((values.max() for values in finite if values.size), default=0)
    if low < 0 < high:
        return {"cmap": "coolwarm", "vmin": -max(-low, high), "vmax": max(-low, high)}
    return {"cmap": "viridis", "vmin": low, "vmax": high}


def draw(planes):
    """Returns a figure of the first plane, and a function that shows another one in it."""
    first = planes[0]
    figure, axis = pyplot.subplots(figsize=(6.4, 5.6), layout="constrained")
    (right, up), (width, height) = first.sides, first.lengths
    style = {"origin": "lower", "interpolation": "nearest", "extent": (0, width, 0, height)}
    image = axis.imshow(first.values, **style, **scale_of(planes))
    axis.set(xlabel=right, ylabel=up)
    figure.colorbar(image)

    def show(plane):
        image.set_data(plane.values)
        axis.set_title(plane.title(), fontsize=10)

    show(first)
    return figure, show


def write(planes, out, rate):
    """Draws `out`, which is renamed when it is complete."""
    kinds = pyplot.figure().canvas.get_supported_filetypes()
    if len(planes) > 1:
        kinds = {"gif"}
    if out.suffix[1:] not in kinds:
        which = "an animation" if len(planes) > 1 else "a picture"
        raise BadInput(f"{out} cannot be {which}: give -o a name that ends in .{', .'.join(sorted(kinds))}")
    figure, show = draw(planes)
    draft = out.with_name(f"{out.stem}.part{out.suffix}")
    try:
        if len(planes) > 1:
            frames = animation.FuncAnimation(figure, show, planes)
            frames.save(draft, animation.PillowWriter(rate), dpi=100)
        else:
            figure.savefig(draft, dpi=130)
        draft.replace(out)
    finally:
        draft.unlink(missing_ok=True)


def part(word):
    try:
        if 0 <= float(word) <= 1:
            return float(word)
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"{word} (not a number from 0 to 1): give 0.5 for the middle")


def rate(word):
    if word.isdecimal() and 1 <= int(word) <= 50:
        return int(word)
    raise argparse.ArgumentTypeError(f"{word} (not a whole number from 1 to 50): give 10")


def main():
    form = argparse.RawDescriptionHelpFormatter
    options = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    options.add_argument("files", metavar="FILE", nargs="+", help="fields-STEP.vti")
    options.add_argument("--field", metavar="NAME", help="default: the first field")
    options.add_argument("--axis", choices=AXES, default="z", help="at right angles to the slice; default: z")
    options.add_argument("--at", metavar="X", type=part, default=0.5, help="place on the axis, 0 to 1; default: 0.5")
    options.add_argument("--fps", metavar="N", type=rate, default=10, help="snapshots per second; default: 10")
    options.add_argument("-o", "--out", metavar="OUT", type=pathlib.Path, help="default: NAME-AXIS.png or .gif")
    arguments = options.parse_args()
    with clear_ending("show.py", "give another place with -o"):
        planes = [Plane(path, arguments.field, arguments.axis, arguments.at) for path in arguments.files]
        planes.sort(key=lambda plane: plane.step)
        if len({(plane.name, plane.values.shape) for plane in planes}) > 1:
            raise BadInput("the snapshots differ in their points or first fields: give snapshots of one run")
        ending = "gif" if len(planes) > 1 else "png"
        out = arguments.out or pathlib.Path(f"{planes[0].name}-{arguments.axis}.{ending}")
        write(planes, out, arguments.fps)
    print(out)
    return 0


if __name__ == "__main__":
    end("show.py", main)
