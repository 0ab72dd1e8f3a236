# SPDX-License-Identifier: BSD-3-Clause
"""Tests that a rank that is killed in mid-exchange ends the whole job soon, with a message, whatever other ranks wait
for."""
import contextlib
import itertools
import os
import pathlib
import pty
import select
import signal
import subprocess
import time
import unittest

from halocline_program import BINARY, MPIEXEC, TIMEOUT_S, methods, own_session, several

END_S = 10  # longest time in which a job has to end
ENDLESS = {
    "run": ("--steps", "2000000000"),
    "compare": ("--iterations", "2000000000", "--warmup", "0", "--max-seconds", "100000"),
}


class Terminal:
    """Is a terminal for the stderr of a program, on which the program shows its progress."""

    def __init__(self):
        self.ours, self.theirs = pty.openpty()
        self.text = ""

    def read(self, until=None):
        """Reads until the text `until` has come, or all writers have closed the terminal. Returns False after
        TIMEOUT_S."""
        deadline = time.monotonic() + TIMEOUT_S
        while until is None or until not in self.text:
            if not select.select([self.ours], [], [], max(0, deadline - time.monotonic()))[0]:
                return False
            try:
                self.text += os.read(self.ours, 65536).decode(errors="replace")
            except OSError:  # on Linux: all writers have closed it
                break
        return True


def processes():
    """Returns {process: (its parent, whether it runs the program)}. Reads /proc since minimal systems have no ps."""
    program = os.stat(BINARY)
    found = {}
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # the process has ended meanwhile
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            # The file is compared, not its name, which may differ in other mount namespaces.
            found[int(folder.name)] = parent, os.path.samestat((folder / "exe").stat(), program)
    return found


def ranks_below(job):
    """Returns the processes of the program below `job`, or below a daemon that the job has started."""
    found = processes()
    below, parents = [], [job]
    while parents:
        parents = [process for process, (parent, _) in found.items() if parent in parents]
        below += parents
    return sorted(process for process in below if found[process][1])


class Killed:
    """Holds the end of a job in which a rank was killed while it exchanged."""

    def __init__(self, case, ranks_of=ranks_below):
        """Kills the last process of ranks_of(process of the job's mpiexec)."""
        subcommand, method, ranks = case
        command = [MPIEXEC, "-n", str(ranks), BINARY, subcommand, "--methods", method, "--local", "16", "16", "16", *ENDLESS[subcommand]]
        terminal = Terminal()
        with own_session() as environment:
            job = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=terminal.theirs)
            os.close(terminal.theirs)
            self.ranks = []
            try:
                terminal.read(until=" left")
                self.ranks = ranks_of(job.pid)
                self.timing = " left" in terminal.text
                begin = time.monotonic()
                os.kill(self.ranks[-1], signal.SIGKILL)
                self.code = job.wait(timeout=TIMEOUT_S)
                terminal.read()
                self.message = terminal.text.rpartition(" left")[2]
                # Open MPI kills the remaining ranks and does not wait for their end. They still
                # belong to the job.
                while self.still_alive() and time.monotonic() - begin < END_S:
                    time.sleep(0.01)
                self.seconds = time.monotonic() - begin
                self.alive = self.still_alive()
            finally:
                job.kill()
                job.wait()
                os.close(terminal.ours)
                for rank in self.ranks:
                    with contextlib.suppress(OSError):
                        os.kill(rank, signal.SIGKILL)

    def still_alive(self):
        there = processes()
        return [rank for rank in self.ranks if rank in there]


class KilledRank(unittest.TestCase):
    def test_ends_the_job_with_a_message_in_every_method(self):
        cases = list(itertools.product(("run", "compare"), methods(), (2, 3)))
        for case, job in several(Killed, cases):
            with self.subTest(case=case):
                self.assertTrue(job.timing, job.message)
                self.assertEqual(len(job.ranks), case[-1])
                self.assertNotEqual(job.code, 0)
                self.assertLess(job.seconds, END_S)
                self.assertRegex(job.message, r"signal 9|[Kk]illed")
                self.assertEqual(job.alive, [])


if __name__ == "__main__":
    unittest.main()
