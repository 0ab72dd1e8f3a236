# SPDX-License-Identifier: BSD-3-Clause
"""A rank that is killed in mid-exchange ends the whole job soon, with a message, whatever the others wait for."""
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

END_S = 10  # what a job may take to end
ENDLESS = {
    "run": ("--steps", "2000000000"),
    "compare": ("--iterations", "2000000000", "--warmup", "0", "--max-seconds", "100000"),
}


class Terminal:
    """A terminal to be the stderr of a program, which then shows there how far it is."""

    def __init__(self):
        self.ours, self.theirs = pty.openpty()
        self.text = ""

    def read(self, until=None):
        """Until that text has come, or there is nobody left to write; False after TIMEOUT_S."""
        deadline = time.monotonic() + TIMEOUT_S
        while until is None or until not in self.text:
            if not select.select([self.ours], [], [], max(0, deadline - time.monotonic()))[0]:
                return False
            try:
                self.text += os.read(self.ours, 65536).decode(errors="replace")
            except OSError:  # Linux: all others have closed it
                break
        return True


def processes():
    """Process -> (its parent, whether it runs the program), read from /proc since minimal systems have no ps."""
    program = os.stat(BINARY)
    found = {}
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            # Not by name: those of other mount namespaces may have other ones.
            found[int(folder.name)] = parent, os.path.samestat((folder / "exe").stat(), program)
    return found


def ranks_below(job):
    """Processes of the program that `job`, or a daemon that it has started, is the parent of."""
    found = processes()
    below, parents = [], [job]
    while parents:
        parents = [process for process, (parent, _) in found.items() if parent in parents]
        below += parents
    return sorted(process for process in below if found[process][1])


class Killed:
    """What became of a job of which a rank was killed while it exchanged."""

    def __init__(self, case, ranks_of=ranks_below):
        """The last of ranks_of(process of the job's mpiexec) is killed."""
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
                # Open MPI kills the others and ends without waiting for them: they are part of the job all the same.
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
