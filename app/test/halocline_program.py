# SPDX-License-Identifier: BSD-3-Clause
"""Runs the program under test: HALOCLINE_BINARY, under HALOCLINE_MPIEXEC where there is more than one rank."""
import os
import re
import subprocess

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


def halocline(*arguments, ranks=1, cwd=None):
    """One rank runs without mpiexec, which a user may do as well."""
    launcher = [] if ranks == 1 else [MPIEXEC, "-n", str(ranks)]
    command = launcher + [BINARY] + [str(argument) for argument in arguments]
    return Outcome(
        subprocess.run(command, cwd=cwd, timeout=TIMEOUT_S, capture_output=True, text=True, errors="replace")
    )


def options_in_help():
    """Flag -> default as --help shows it, None where it shows none; in the order of the help text."""
    found = {}
    for line in halocline("--help").stdout.splitlines():
        match = re.match(r"  (?:-\w,)?--([a-z-]+)(?: [^()]*)?(?:  \(default: (.*)\))?$", line)
        if match:
            found[match.group(1)] = match.group(2)
    return found
