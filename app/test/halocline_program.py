# SPDX-License-Identifier: BSD-3-Clause
"""Runs the program under test: HALOCLINE_BINARY, under HALOCLINE_MPIEXEC where there is more than one rank."""
import concurrent.futures
import contextlib
import json
import os
import re
import subprocess
import tempfile

BINARY = os.environ["HALOCLINE_BINARY"]
MPIEXEC = os.environ["HALOCLINE_MPIEXEC"]
TIMEOUT_S = 60  # far above what any of these takes: reaching it is a hang


class Outcome:
    """Exit code of the whole job, its stdout, and the lines on stderr that are ours."""

    def __init__(self, finished):
        self.code = finished.returncode
        self.stdout = finished.stdout
        self.stderr = finished.stderr
        self.ours = [line for line in finished.stderr.splitlines() if line.startswith("halocline:")]


def halocline(*arguments, ranks=1, cwd=None, inside=(), program=()):
    """One rank runs without mpiexec, which a user may do as well. `inside`: a command that runs the rest of its line;
    `program`: a command in which each rank runs the program."""
    launcher = [*inside] if ranks == 1 else [*inside, MPIEXEC, "-n", str(ranks)]
    command = launcher + [*program, BINARY] + [str(argument) for argument in arguments]
    with own_session() as environment:
        return Outcome(
            subprocess.run(
                command,
                cwd=cwd,
                env=environment,
                timeout=TIMEOUT_S,
                capture_output=True,
                text=True,
                errors="replace",
            )
        )


@contextlib.contextmanager
def own_session():
    """An environment in which Open MPI keeps its files in a folder of this start alone.

    A program started without mpiexec leaves a daemon behind that removes the common folder a moment later, while the
    next start makes it again: one of a thousand starts then fails.

    A system model that this user has does not matter; tests say which one does.
    """
    with tempfile.TemporaryDirectory(prefix="hl", ignore_cleanup_errors=True) as folder:
        yield {"HALOCLINE_MODEL": os.path.join(folder, "no-model")} | os.environ | {"OMPI_MCA_orte_tmpdir_base": folder}


def several(function, cases):
    """(case, function(case)) of each case, in order; several at a time, since a start mostly waits."""
    cases = list(cases)  # they are gone through twice
    with concurrent.futures.ThreadPoolExecutor(max_workers=12) as pool:
        yield from zip(cases, pool.map(function, cases))


def options():
    """All flags, as `halocline help json` tells them: dicts with flag, argument, default, used_by and more."""
    return json.loads(halocline("help", "json").stdout)


def methods():
    """Returns the methods that the help names and that are possible with this MPI, for fields in the memory of the host."""
    option = next(option for option in options() if option["flag"] == "methods")
    names = re.match(r"From ([a-z0-9, -]+)\.", option["details"]).group(1).split(", ")
    tiny = ("run", "--local", "6", "6", "6", "--steps", "1", "--quiet", "--methods")
    found = [method for method, outcome in several(lambda method: halocline(*tiny, method), names) if outcome.code != 2]
    if not set(option["default"].split(",")) <= set(found):
        raise AssertionError(f"of {names} only {found} are possible, which is not even the default")
    return found
