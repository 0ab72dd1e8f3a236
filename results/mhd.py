#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs tests of magnetohydrodynamics on ever more points, and makes tables and a plot of their errors.

    results/mhd.py [TEST] [--points N]     default: build/release/app/test/app_mhd_test, boxes up to 64^3 points
                                           -> results/mine/mhd/tests.md and errors.svg

The tests compare all numbers with those of an independent serial program. 64^3 points take a minute.
Exit codes: 0 ok, 2 bad input, a test fails, or no place for results, 3 a package is missing."""
import math
import os
import pathlib
import subprocess
import tempfile

from records import PLACE, RESULTS, BadInput, clear_ending, damaged, end, load, read_text, shown
from reports import commit, markdown, pandas, parser, pyplot, save
from tables import provenance

RATES = {"lnrho": "density", "ux": "velocity, x", "ax": "potential, x", "s": "entropy"}
GASES = {
    "ideal": "no diffusion",
    "diffusive": "nu, eta, K = 0.02",
    "corrected": "the same and zeta = 0.02",
    "astaroth": "the same, Astaroth's form",
}
STYLES = (("#0072b2", "o"), ("#d55e00", "s"), ("#009e73", "^"), ("#cc79a7", "D"))
TESTS = ("HasRatesOfSixthOrder", "ConservesMassAndEnergy", "IsOfThirdOrderInTime")
BUILD = "build it with ninja -C build/release app_mhd_test"


def measure(test, points):
    """Returns {name: {points: (our number, that of the serial program)}} of all tests."""
    out = {}
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "tests.json"
        names = ":".join(f"Mhd.{name}" for name in TESTS)
        command = [test, f"--gtest_filter={names}", f"--gtest_output=json:{path}"]
        variables = os.environ | {"HALOCLINE_MHD_POINTS": str(points)}
        try:
            code = subprocess.run(command, env=variables, stdout=subprocess.PIPE).returncode
        except OSError as error:
            raise BadInput(f"{test} cannot be run ({error.strerror}): {BUILD}") from error
        if code:
            raise BadInput(f"{test} fails: run it alone with HALOCLINE_MHD_POINTS={points}")
        with damaged(test, BUILD):
            for one in load(read_text(path, BUILD))["testsuites"][0]["testsuite"]:
                for name, _, size in (key.rpartition(" ") for key in one):
                    if name:
                        ours, theirs = one[f"{name} {size}"].split()
                        out.setdefault(name, {})[int(size)] = float(ours), float(theirs)
    return out


def order(errors, points):
    """Returns the order that the error has fallen with, from the size before to this one."""
    sizes = sorted(errors)
    at = sizes.index(points)
    if not at:
        return "-"
    before = sizes[at - 1]
    return f"{math.log(errors[before][0] / errors[points][0], points / before):.2f}"


def table(results, names, what, with_order):
    """Returns a table with a row for each name and size."""
    rows = []
    for name, title in names.items():
        errors = results[name]
        for points in sorted(errors):
            ours, theirs = errors[points]
            row = {what[0]: title, what[1]: points, "ours": f"{ours:.3e}", "serial": "-" if math.isnan(theirs) else f"{theirs:g}"}
            rows.append(row | ({"order": order(errors, points)} if with_order else {}))
    return markdown(pandas.DataFrame(rows))


def document(results):
    facts = provenance("", "")
    energy = {f"energy, {name}": title for name, title in GASES.items()}
    mass = {f"mass, {name}": title for name, title in GASES.items()}
    return f"""# Tests of magnetohydrodynamics on ever more points

Commit {commit(facts)}, {facts["time"]}, {facts["cpu"]}; `results/mhd.py`. "Serial" is an independent serial program.

## Rates of all equations

The largest error of a rate on N^3 points. All terms, against exact derivatives.

{table(results, RATES, ("rate", "N"), True)}
## Energy

The relative change of the total energy after 50 steps of 0.005.

{table(results, energy, ("gas", "N"), False)}
## Mass

The relative change of the mass in the same runs.

{table(results, mass, ("gas", "N"), False)}
## Order of the time steps

The largest difference of all fields at time 1 between N and 2 N steps, on 16^3 points.

{table(results, {"difference": "all equations"}, ("what", "N"), True)}"""


def draw(results, stem, formats):
    """Draws the errors of the rates, with the slope of sixth order, and the change of the energy."""
    figure, (rates, energy) = pyplot.subplots(1, 2, figsize=(9, 3.8), layout="constrained")

    def lines(axis, prefix, names):
        for (name, title), (color, marker) in zip(names.items(), STYLES):
            errors = results[prefix + name]
            sizes = sorted(errors)
            values = [abs(errors[size][0]) for size in sizes]
            axis.plot(sizes, values, color=color, marker=marker, markersize=5, label=title)
        axis.set_xscale("log", base=2)
        axis.set_yscale("log")
        axis.set_xticks(sizes, [str(size) for size in sizes])
        axis.set_xlabel("points along each side")
        axis.grid(alpha=0.3)
        return sizes, values

    sizes, values = lines(rates, "", RATES)
    slope = [2 * values[-1] * (size / sizes[-1]) ** -6 for size in sizes]
    rates.plot(sizes, slope, color="black", linestyle="--", label="slope of order 6")
    rates.set(title="Error of the rates", ylabel="largest error")
    lines(energy, "energy, ", GASES)
    energy.set(title="Change of the energy in 50 steps", ylabel="relative change")
    for axis in (rates, energy):
        axis.legend(fontsize=8)
    return save(figure, stem, formats)


def main():
    options = parser(__doc__)
    default = RESULTS.parent / "build/release/app/test/app_mhd_test"
    options.add_argument("test", metavar="TEST", nargs="?", type=pathlib.Path, default=default)
    options.add_argument("--points", type=int, choices=(16, 32, 64), default=64, help="default: 64")
    arguments = options.parse_args()
    folder = PLACE / "mhd"
    with clear_ending("mhd.py", f"make {folder} writable"):
        folder.mkdir(parents=True, exist_ok=True)
        results = measure(arguments.test.resolve(), arguments.points)
        with damaged(arguments.test, BUILD):
            text = document(results)
            plots = draw(results, folder / "errors", arguments.formats)
        page = folder / "tests.md"
        page.write_text(text, encoding="utf-8")
    for each in [page, *plots]:
        print(shown(each))
    return 0


if __name__ == "__main__":
    end("mhd.py", main)
