# SPDX-License-Identifier: BSD-3-Clause
"""The mini-app end to end: one state hash whatever the run looks like, faults that are seen, and sizes that do not fit."""
import itertools
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time
import unittest

from halocline_program import BINARY, MPIEXEC, halocline, own_session, several

CORRECTNESS = pathlib.Path(os.environ["HALOCLINE_SOURCE"]) / "configs" / "correctness.toml"
RANKS = tuple(int(n) for n in os.environ["HALOCLINE_RANKS"].split())
LAYOUTS = ("soa", "aos")
DESCRIPTIONS = ("subarray", "vector", "hvector", "hindexed", "struct")
METHODS = ("alltoallv", "vendor-pack", "vendor-alltoallw")


def run(case):
    """`case`: (number of ranks, arguments)."""
    ranks, arguments = case
    return halocline("run", "--config", CORRECTNESS, *arguments, ranks=ranks)


def run_quietly(case):
    ranks, arguments = case
    return run((ranks, ("--quiet", *arguments)))


class Run(unittest.TestCase):
    def state_hash_in(self, outcome):
        self.assertEqual(outcome.code, 0, outcome.stderr)
        self.assertRegex(outcome.stdout, r"\Astate hash: 0x[0-9a-f]{16}\n\Z")
        return outcome.stdout.split()[-1]

    def assert_one_state_hash(self, cases):
        """`cases` as run() takes them; the first is what all others must agree with."""
        expected = None
        for (ranks, arguments), outcome in several(run_quietly, cases):
            with self.subTest(ranks=ranks, arguments=arguments):
                found = self.state_hash_in(outcome)
                expected = expected or found
                self.assertEqual(found, expected)


    def assert_refused(self, names, outcome):
        self.assertEqual((outcome.code, len(outcome.ours)), (2, 1), outcome.stderr)
        self.assertIn(names, outcome.ours[0])


class StateHash(Run):
    def test_same_for_every_rank_count_layout_and_description(self):
        cases = itertools.product(RANKS, LAYOUTS, DESCRIPTIONS)
        self.assert_one_state_hash(
            [(1, ())] + [(ranks, ("--layout", layout, "--describe", describe)) for ranks, layout, describe in cases]
        )

    def test_same_for_every_method_packer_thread_count_and_decomposition(self):
        self.assert_one_state_hash(
            [(1, ())]
            + [(3, ("--methods", method)) for method in METHODS]
            + [
                (4, arguments)
                for arguments in (
                    ("--packer", "kokkos"),
                    ("--packer", "kokkos", "--threads", "2"),
                    ("--threads", "2", "--layout", "aos"),
                    ("--decomposition", "4", "1", "1"),
                    ("--decomposition", "1", "4", "1"),
                    ("--radius", "4"),
                )
            ]
        )

    def test_open_boundaries_stencils_and_floats_too(self):
        for arguments in (
            ("--periodic", "false"),
            ("--element", "float"),
            ("--stencil", "heat9"),
            ("--stencil", "heat3"),
            ("--stencil", "point26"),
            ("--stencil", "point26", "--radius", "1", "--fields", "3"),
        ):
            self.assert_one_state_hash(
                [(1, arguments), (4, arguments + ("--layout", "aos")), (3, arguments + ("--packer", "kokkos"))]
            )

    def test_depends_on_the_state(self):
        cases = ((), ("--steps", "5"), ("--stages", "1"), ("--fields", "7"), ("--stencil", "heat3"))
        hashes = [
            self.state_hash_in(outcome) for _, outcome in several(run_quietly, [(1, arguments) for arguments in cases])
        ]
        self.assertEqual(len(set(hashes)), len(hashes))

    def test_the_wave_is_still_there_after_many_steps_on_few_points(self):
        for arguments in (
            ("--global", "12", "12", "12", "--steps", "300"),
            ("--global", "6", "6", "6", "--steps", "2000", "--stages", "1"),
            ("--global", "8", "8", "8", "--steps", "20", "--element", "float"),
        ):
            outcome = halocline("run", *arguments, ranks=2)
            self.assertEqual(outcome.code, 0, outcome.stderr)
            self.assertRegex(outcome.stdout, r"allowed 1\.0e-(12|05)\n")


class Inject(Run):
    def test_every_fault_is_seen_in_every_method(self):
        cases = [
            (ranks, ("--inject", kind, "--methods", method))
            for kind, method, ranks in itertools.product(("drop", "swap", "flip"), METHODS, (1, 2))
        ]
        for (ranks, arguments), outcome in several(run, cases):
            with self.subTest(ranks=ranks, arguments=arguments):
                self.assertEqual((outcome.code, len(outcome.ours)), (1, 1), outcome.stderr)
                self.assertIn("verification failed", outcome.ours[0])
                self.assertNotIn("state hash", outcome.stdout)

    def test_swaps_messages_that_differ_even_on_the_smallest_grid(self):
        outcome = halocline("run", "--local", "3", "3", "3", "--layout", "aos", "--inject", "swap", ranks=2)
        self.assertEqual(outcome.code, 1, outcome.stderr)

    def test_compare_times_nothing_that_is_wrong(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "out.jsonl"
            outcome = halocline(
                "compare", "--config", CORRECTNESS, "--inject", "flip", "--output", path, ranks=2
            )
            self.assertEqual((outcome.code, len(outcome.ours)), (1, len(METHODS)), outcome.stderr)
            for line in path.read_text(encoding="utf-8").splitlines():
                record = json.loads(line)
                self.assertFalse(record["verified"])
                self.assertIsNone(record["phases"]["total"])

    def test_nothing_to_spoil(self):
        outcome = halocline("run", "--local", "8", "8", "8", "--periodic", "false", "--inject", "flip")
        self.assert_refused("inject", outcome)


class Compare(Run):
    def test_table_and_records(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "out.jsonl"
            outcome = halocline("compare", "--config", CORRECTNESS, "--output", path, ranks=2)
            self.assertEqual(outcome.code, 0, outcome.stderr)
            for method in METHODS:
                self.assertRegex(outcome.stdout, rf"(?m)^{method} +yes .*[0-9]x$")
            records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        self.assertEqual([record["method"] for record in records], list(METHODS))
        baselines = {record["baseline"] for record in records}
        self.assertEqual(len(baselines), 1)
        for record in records:
            self.assertTrue(record["verified"])
            self.assertEqual(len(record["samples_s"]["total"]), record["iterations"])
            self.assertIn(record["baseline"], ("vendor-pack", "vendor-alltoallw"))
            if record["method"] == record["baseline"]:
                self.assertEqual(record["ratio_to_baseline"], 1)

    def test_paper_size_moves_the_paper_s_bytes(self):
        outcome = halocline("compare", "--local", "256", "256", "256", "--dry-run", ranks=2)
        self.assertEqual(outcome.code, 0, outcome.stderr)
        # 77,280,768 bytes (73.7 MiB) per rank and exchange; on two ranks, split in z, two thirds stay.
        self.assertRegex(outcome.stdout, r"256 x 256 x 256 +208 +1 +25\.1 MiB +48\.6 MiB")

    def test_nothing_is_left_to_mpi_to_pack(self):
        for describe in ("hindexed", "struct"):
            outcome = halocline("compare", "--config", CORRECTNESS, "--describe", describe, ranks=2)
            self.assertEqual(outcome.code, 0, outcome.stderr)
            self.assertNotIn("packed by MPI", outcome.stdout)

    def test_describing_and_packing_cost_no_correctness_in_open_domains(self):
        outcome = halocline("compare", "--config", CORRECTNESS, "--periodic", "false", ranks=4)
        self.assertEqual(outcome.code, 0, outcome.stderr)


class BadSizes(Run):
    def test_what_does_not_fit_is_refused_by_name(self):
        cases = (
            ("radius", 1, ("--local", "8", "8", "2")),
            ("radius", 2, ("--local", "8", "8", "8", "--radius", "9")),
            ("radius", 1, ("--local", "8", "8", "8", "--radius", "2")),
            ("radius", 8, ("--global", "5", "5", "5")),
            ("more ranks than points", 8, ("--global", "1", "1", "1", "--radius", "1", "--stencil", "point26")),
            ("decomposition", 2, ("--decomposition", "1", "1", "3")),
            ("local", 1, ("--local", "100000000", "8", "8")),
            ("global", 2, ("--global", "8", "8", "9000000000")),
            ("memory", 2, ("--local", "40000", "40000", "40000")),
            ("memory", 1, ("--local", "4000", "4000", "4000", "--fields", "1000")),
            ("decomposition", 2, ("--decomposition", "2147483647", "2147483647", "2147483647")),
            ("substeps", 1, ("--local", "8", "8", "8", "--steps", "2147483647", "--stages", "3")),
            ("swap", 1, ("--local", "3", "3", "3", "--layout", "aos", "--inject", "swap")),
        )
        for (names, ranks, arguments), outcome in several(lambda case: halocline("run", *case[2], ranks=case[1]), cases):
            with self.subTest(arguments=arguments, ranks=ranks):
                self.assert_refused(names, outcome)

    def test_dry_run_allocates_nothing(self):
        outcome = halocline("run", "--local", "20000", "20000", "20000", "--dry-run", ranks=2)
        self.assertEqual(outcome.code, 0, outcome.stderr)
        self.assertIn("nothing was allocated", outcome.stdout)
        self.assertIn("TOO MUCH", outcome.stdout)

    def test_dry_run_counts_padding_and_bookkeeping(self):
        # 50,000 arrays of 27 points: two sets, each array padded to 4 KiB; two plans of 1.3 million jobs each.
        outcome = halocline(
            "run", "--local", "1", "1", "1", "--radius", "1", "--stencil", "point26", "--fields", "50000", "--dry-run"
        )
        self.assertRegex(outcome.stdout, r"memory per rank: 411 MiB for fields, 1\.98 GiB for messages")

    def test_lost_output_is_an_error(self):
        with open("/dev/full", "w", encoding="utf-8") as full, own_session() as environment:
            code = subprocess.run(
                [BINARY, "run", "--local", "8", "8", "8", "--quiet"],
                env=environment,
                stdout=full,
                stderr=subprocess.DEVNULL,
                timeout=60,
            ).returncode
        self.assertEqual(code, 3)


def children(parent):
    """Process numbers, read from /proc since minimal systems have no ps."""
    found = []
    for status in pathlib.Path("/proc").glob("[0-9]*/status"):
        try:
            if f"\nPPid:\t{parent}\n" in status.read_text():
                found.append(int(status.parent.name))
        except OSError:
            pass  # it has ended meanwhile
    return found


class KilledRank(unittest.TestCase):
    def test_ends_the_job_with_an_error(self):
        job = subprocess.Popen(
            [MPIEXEC, "-n", "3", BINARY, "run", "--local", "16", "16", "16", "--steps", "1000000", "--quiet"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            deadline = time.monotonic() + 20
            ranks = []
            while len(ranks) < 3 and time.monotonic() < deadline:
                time.sleep(0.2)
                ranks = children(job.pid)
            self.assertEqual(len(ranks), 3)
            time.sleep(1)
            os.kill(ranks[1], signal.SIGKILL)
            self.assertNotEqual(job.wait(timeout=10), 0)
        finally:
            job.kill()
            job.wait()


if __name__ == "__main__":
    unittest.main()
