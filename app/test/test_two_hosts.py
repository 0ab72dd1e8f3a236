# SPDX-License-Identifier: BSD-3-Clause
"""Tests every method between two hosts, over TCP, and also between ranks that share a host.

jobs/local/two-hosts.sh starts this if it can. Ranks take turns between the hosts, so that of three ranks one host has
two."""
import itertools
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

from halocline_program import BINARY, MPIEXEC, TIMEOUT_S, halocline, methods, own_session, several
from test_killed import END_S, Killed, processes

CORRECTNESS = pathlib.Path(os.environ["HALOCLINE_SOURCE"]) / "configs" / "correctness.toml"
LATE_WIRE = pathlib.Path(os.environ["HALOCLINE_SOURCE"]) / "results" / "mhd" / "late_wire.py"
RANKS = (2, 3, 4)
PERIODIC = ("true", "false")
TRAVEL = ("p2p", "shared", "vendor-p2p")  # travel while something else is computed


def ranks_far_last(_job):
    """Returns all processes of the program, with those of the other host at the end. Their parents may have left the
    job's tree."""
    ranks = [process for process, (_, is_rank) in processes().items() if is_rank]
    here = os.readlink("/proc/self/ns/uts")
    return sorted(ranks, key=lambda process: os.readlink(f"/proc/{process}/ns/uts") != here)


def bytes_sent():
    """Returns the bytes that this host has sent over the network: the count of its only device beside the loopback."""
    lines = pathlib.Path("/proc/net/dev").read_text().splitlines()
    return sum(int(line.split()[9]) for line in lines if line.strip().startswith("wire:"))


class TwoHosts(unittest.TestCase):
    def measure(self, subcommand, ranks, *arguments):
        """Returns (stdout, records) of a job that must pass, on two nodes."""
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "out"
            outcome = halocline(subcommand, "--config", CORRECTNESS, "--output", path, *arguments, ranks=ranks)
            self.assertEqual(outcome.code, 0, f"{subcommand} on {ranks} ranks, {arguments}: {outcome.stderr}")
            records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        for record in records:
            self.assertEqual((record["ranks"], record["nodes"], record["verified"]), (ranks, min(ranks, 2), True), record["method"])
            self.assertEqual(len(record["provenance"]["hosts"]), min(ranks, 2))
        return outcome.stdout, records

    def test_every_ghost_of_every_method(self):
        wanted = set(methods())
        cases = list(itertools.product(RANKS, PERIODIC))
        jobs = several(lambda case: self.measure("compare", case[0], "--periodic", case[1], "--methods", ",".join(wanted)), cases)
        for (ranks, periodic), (_, records) in jobs:
            with self.subTest(ranks=ranks, periodic=periodic):
                self.assertEqual({record["method"] for record in records}, wanted)

    def test_the_state_is_that_of_one_host(self):
        expected = {periodic: self.measure("run", 1, "--periodic", periodic, "--quiet")[0] for periodic in PERIODIC}
        cases = list(itertools.product(methods(), RANKS, PERIODIC))
        jobs = several(lambda case: self.measure("run", case[1], "--periodic", case[2], "--methods", case[0], "--quiet"), cases)
        for (method, ranks, periodic), (printed, _) in jobs:
            with self.subTest(method=method, ranks=ranks, periodic=periodic):
                self.assertEqual(printed, expected[periodic])

    def test_all_bytes_to_the_other_host_go_over_the_network(self):
        for method in methods():
            with self.subTest(method=method):
                before = bytes_sent()
                _, (record, *_) = self.measure("compare", 2, "--methods", method, "--iterations", "20")
                self.assertGreater(bytes_sent() - before, record["iterations"] * record["bytes_to_others"])

    def test_messages_take_their_time_on_a_late_wire(self):
        with tempfile.TemporaryDirectory() as folder, own_session() as environment:
            path = pathlib.Path(folder) / "out"
            run = [MPIEXEC, "-n", "2", BINARY, "run", "--config", CORRECTNESS, "--output", path, "--quiet"]
            finished = subprocess.run([LATE_WIRE, "100", *run], env=environment, capture_output=True, text=True, timeout=TIMEOUT_S)
            if finished.returncode == 77:
                self.skipTest(finished.stderr)
            self.assertEqual(finished.returncode, 0, finished.stderr)
            record = json.loads(path.read_text(encoding="utf-8"))
        self.assertTrue(record["verified"])
        self.assertGreater(record["phases"]["total"]["min_s"], 0.1)

    def test_what_travels_during_the_computation_changes_no_bit(self):
        expected = self.measure("run", 1, "--quiet")[0]
        cases = list(itertools.product(TRAVEL, RANKS))
        jobs = several(lambda case: self.measure("run", case[1], "--methods", case[0], "--overlap", "--quiet"), cases)
        for (method, ranks), (printed, _) in jobs:
            with self.subTest(method=method, ranks=ranks):
                self.assertEqual(printed, expected)

    def test_a_killed_rank_of_the_other_host_ends_the_job(self):
        for method in TRAVEL:  # one after the other, since all processes of the program must belong to the job
            with self.subTest(method=method):
                job = Killed(("run", method, 2), ranks_far_last)
                self.assertTrue(job.timing, job.message)
                self.assertEqual(len(job.ranks), 2)
                self.assertNotEqual(job.code, 0)
                self.assertLess(job.seconds, END_S)
                self.assertRegex(job.message, r"signal 9|[Kk]illed")
                self.assertEqual(job.alive, [])

    def test_gathers_between_nodes_that_mpi_knows(self):
        for ranks in RANKS:
            with self.subTest(ranks=ranks), tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder) / "out"
                arguments = ("--sizes", "1,5000,800000", "--iterations", "2", "--order", "ordered,random", "--root", "1", "--output", path)
                outcome = halocline("gather", *arguments, ranks=ranks)
                self.assertEqual(outcome.code, 0, outcome.stderr)
                records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
                self.assertEqual({(r["nodes"], r["nodes_emulated"], r["verified"]) for r in records}, {(2, False, True)})
                sent = [(r["bytes_off_node"], r["messages_off_node"]) for r in records if r["variant"] == "zero-copy"]
                self.assertEqual(sent, [(size, -(-size // 262144)) for size, _ in sent])

    def test_what_mpi_programs_test_by_themselves(self):
        for ranks, program in itertools.product((2, 4), os.environ["HALOCLINE_MPI_TESTS"].split()):
            with self.subTest(ranks=ranks, program=program), own_session() as environment:
                finished = subprocess.run(
                    [MPIEXEC, "-n", str(ranks), program],
                    env=environment, capture_output=True, text=True, errors="replace", timeout=3 * TIMEOUT_S,
                )  # fmt: skip
                self.assertEqual(finished.returncode, 0, finished.stdout + finished.stderr)


if __name__ == "__main__":
    unittest.main()
