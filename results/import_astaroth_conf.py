#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes a config file of Halocline of a configuration of Astaroth.

    results/import_astaroth_conf.py astaroth.conf >mine.toml
    mpirun -n 8 build/release/app/halocline run --config mine.toml

Takes over the mesh, the parameters of the equations, the helical force, the radial explosion and the number of steps.
A comment behind each number names where it comes from. Lists all other parameters on standard error, as what could not
be taken over. The switches of Astaroth's build, such as LFORCING, are not in its configuration: edit the result if
yours differ.

Exit codes: 0 ok, 2 bad input, 3 the result cannot be written. Standard library only."""
import argparse
import math
import pathlib
import re

from records import BadInput, end, tell

PROGRAM = "import_astaroth_conf.py"
LARGEST = 1 << 20  # of a configuration, in bytes
SIDES = ("AC_nx", "AC_ny", "AC_nz")
SPACINGS = ("AC_dsx", "AC_dsy", "AC_dsz")
# Names of Astaroth's parameters and of ours.
RENAMED = {
    "AC_nu_visc": "nu",
    "AC_zeta": "zeta",
    "AC_eta": "eta",
    "AC_mu0": "mu0",
    "AC_cs_sound": "cs0",
    "AC_cp_sound": "cp",
    "AC_gamma": "gamma",
    "AC_lnrho0": "lnrho0",
    "AC_K_heatcond": "conduction",
    "AC_ampl_uu": "amplitude",
    "AC_forcing_magnitude": "forcing",
    "AC_kmin": "forcing-k-min",
    "AC_kmax": "forcing-k-max",
    "AC_relhel": "forcing-helicity",
}
# Values that are those of Halocline, which has no parameter for them.
SILENT = {"AC_cdt": 0.4, "AC_start_step": 0, "AC_switch_accretion": 0, "AC_ampl_lnrho": 0, "AC_max_time": -1,
          "AC_unit_velocity": 1, "AC_unit_density": 1, "AC_unit_length": 1, "AC_rk_order": 3}  # fmt: skip


def read(path):
    """Returns the parameters of a configuration, as {name: text}, the last value of each."""
    try:
        data = pathlib.Path(path).read_bytes()[: LARGEST + 1]
    except OSError as error:
        raise BadInput(f"{path} cannot be read ({error.strerror}): give a configuration of Astaroth") from error
    if len(data) > LARGEST:
        raise BadInput(f"{path} has more than 1 MiB: give a configuration of Astaroth")
    text = re.sub(r"/\*.*?\*/", "", data.decode("utf-8", "replace"), flags=re.DOTALL)
    out = {}
    for line in re.sub(r"//[^\n]*", "", text).split("\n"):
        name, equals, value = (part.strip() for part in line.partition("="))
        if name and (not equals or not value or not re.fullmatch(r"AC_\w+", name)):
            raise BadInput(f'{path} has a line that is no "AC_name = value" ({line.strip()[:60]}): correct it')
        if name:
            out[name] = value
    if not out:
        raise BadInput(f"{path} has no parameters: give a configuration of Astaroth")
    return out


def numbers_of(text):
    """Returns the numbers of "3", "{1, 2, 3}" or "[1, 2, 3]"; an empty list if the text is something else."""
    try:
        found = [float(word) for word in text.strip("{}[]").split(",")]
    except ValueError:
        return []
    return found if all(map(math.isfinite, found)) else []


class Conversion:
    """Holds the lines of the result, and the parameters that are left."""

    def __init__(self, path):
        self.left = read(path)
        self.path = path

    def take(self, *names):
        """Takes parameters of one number each. Returns None, and leaves them, unless all are there. Refuses other values."""
        if any(name not in self.left for name in names):
            return None
        found = [numbers_of(self.left[name]) for name in names]
        for name, numbers in zip(names, found):
            if len(numbers) != 1:
                raise BadInput(f"{self.path}: {name} is no number ({self.left[name][:60]}): correct it")
        for name in names:
            del self.left[name]
        return [numbers[0] for numbers in found]

    def three(self, names, list_name):
        """Takes three numbers of three parameters, or of a list. Returns them and where they come from."""
        if (found := self.take(*names)) is not None:
            return found, ", ".join(names)
        found = numbers_of(self.left.get(list_name, ""))
        if len(found) != 3:
            raise BadInput(f"{self.path} has no mesh ({', '.join(names)} or {list_name}): add it")
        del self.left[list_name]
        return found, list_name

    def lines(self):
        points, source = self.three(SIDES, "AC_ngrid")
        if any(point != int(point) or point < 1 for point in points):
            raise BadInput(f"{self.path} has a mesh of {points} points ({source}): give whole numbers above 0")
        yield f"# Made of {pathlib.PurePath(self.path).name}, a configuration of Astaroth."
        yield f"global = {[int(point) for point in points]}   # {source}"
        yield 'physics = "mhd"'
        if (steps := self.take("AC_max_steps")) is not None:
            if steps[0] != int(steps[0]):
                raise BadInput(f"{self.path} has {steps[0]} steps (AC_max_steps): give a whole number")
            yield "\n[run]"
            yield f"steps = {int(steps[0])}   # AC_max_steps"
        yield "\n[mhd]"
        spacing, source = self.three(SPACINGS, "AC_ds")
        if len(set(spacing)) > 1 or spacing[0] <= 0:
            raise BadInput(f"{self.path} has unequal spacings ({source}): Halocline needs one, above 0, for all axes")
        yield f"spacing = {spacing[0]!r}   # {source}"
        kind = self.left.get("AC_init_type", "")
        if "GAUSSIAN_RADIAL_EXPL" in kind or (not kind and "AC_ampl_uu" in self.left):
            self.left.pop("AC_init_type", None)
            yield 'initial = "explosion"   # Astaroth\'s own'
        for name, ours in RENAMED.items():
            if (found := self.take(name)) is not None:
                yield f"{ours} = {found[0]!r}   # {name}"
        if (found := self.take("AC_lnT0")) is not None:
            yield f"t0 = {math.exp(found[0])!r}   # exp(AC_lnT0)"
        yield 'astaroth-bulk = "yes"   # its bulk viscosity has no force on density gradients'
        for name, value in SILENT.items():
            if numbers_of(self.left.get(name, "")) == [value]:
                del self.left[name]


def main(words=None):
    parser = argparse.ArgumentParser(prog=PROGRAM, description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("configuration", metavar="FILE", help="configuration of Astaroth, such as config/astaroth.conf")
    try:
        conversion = Conversion(parser.parse_args(words).configuration)
        print("\n".join(list(conversion.lines())))
    except BadInput as error:
        tell(PROGRAM, str(error))
        return 2
    if conversion.left:
        tell(PROGRAM, "not taken over: " + ", ".join(f"{name} = {value}" for name, value in conversion.left.items()))
    return 0


if __name__ == "__main__":
    end(PROGRAM, main)
