# SPDX-License-Identifier: BSD-3-Clause
"""Runs the program under test: HALOCLINE_BINARY, under HALOCLINE_MPIEXEC if there is more than one rank."""
import concurrent.futures
import contextlib
import json
import os
import re
import subprocess
import tempfile

BINARY = os.environ["HALOCLINE_BINARY"]
MPIEXEC = os.environ["HALOCLINE_MPIEXEC"]
TIMEOUT_S = 60  # far above the time of any test: a job that reaches it hangs


class Outcome:
    """Holds the exit code of a whole job, its stdout, and our lines on stderr."""

    def __init__(self, finished):
        self.code = finished.returncode
        self.stdout = finished.stdout
        self.stderr = finished.stderr
        self.ours = [line for line in finished.stderr.splitlines() if line.startswith("halocline:")]


def halocline(*arguments, ranks=1, cwd=None, inside=(), program=()):
    """Runs the program and returns its Outcome. One rank runs without mpiexec, as a user may do. `inside`: a command
    that runs the rest of its line. `program`: a command in which each rank runs the program."""
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
    """Yields an environment in which Open MPI keeps its files in a folder of this start alone.

    A program started without mpiexec leaves a daemon behind. The daemon removes the common folder a moment later,
    while the next start makes it again. So one of a thousand starts would fail.

    A system model of this user does not matter; tests name the model that they use."""
    with tempfile.TemporaryDirectory(prefix="hl", ignore_cleanup_errors=True) as folder:
        yield {"HALOCLINE_MODEL": os.path.join(folder, "no-model")} | os.environ | {"OMPI_MCA_orte_tmpdir_base": folder}


def several(function, cases):
    """Yields (case, function(case)) for each case, in order. Runs several at a time, since a start mostly waits."""
    cases = list(cases)  # a generator could be read only once
    with concurrent.futures.ThreadPoolExecutor(max_workers=12) as pool:
        yield from zip(cases, pool.map(function, cases))


def options():
    """Returns all flags of `halocline help json`: dicts with flag, argument, default, used_by and more."""
    return json.loads(halocline("help", "json").stdout)


def all_methods():
    """Returns the methods that the help names, in its order."""
    option = next(option for option in options() if option["flag"] == "methods")
    return re.fullmatch(r"exchange methods: ([a-z0-9, -]+)", option["meaning"]).group(1).split(", ")


def methods():
    """Returns the methods that the help names and that this MPI allows for fields in host memory."""
    option = next(option for option in options() if option["flag"] == "methods")
    names = all_methods()
    tiny = ("run", "--local", "6", "6", "6", "--steps", "1", "--quiet", "--methods")
    found = [method for method, outcome in several(lambda method: halocline(*tiny, method), names) if outcome.code != 2]
    if not set(option["default"].split(",")) <= set(found):
        raise AssertionError(f"of {names} only {found} are possible, which is not even the default")
    return found
