# SPDX-License-Identifier: BSD-3-Clause
"""Checks that everything timed is verified: every method and subcommand reports faults that begin with a later
exchange.

faulty_mpi.cpp spoils the messages that MPI receives. Method shared sends no messages on a node: there, --inject
spoils the ghosts. All subcommands verify the first two exchanges of a plan, and one after the timed exchanges."""
import csv
import itertools
import json
import os
import pathlib
import tempfile
import unittest

from halocline_program import halocline, methods, several

LIBRARY = os.environ["HALOCLINE_FAULTY_MPI"]
KINDS = ("drop", "flip", "swap", "stale")
BEFORE = 2  # verified exchanges of a plan before it is timed
WARMUP, ITERATIONS = 1, 2
EXCHANGES = BEFORE + WARMUP + ITERATIONS + 1  # for each plan of compare; gathers for each plan of gather
LAST = "after the timed ones"
LAST_STEP = "exchange of the last step"  # message of run, which checks these ghosts before the exchange after it

HOST = ("env",)
DEVICE = ("env", "HALOCLINE_DEVICE=emulated")
SMALL = ("--local", "6", "6", "6", "--fields", "2")
MESSAGES = ("--ranks-per-node", "1")  # everything for another rank becomes a message
DEVICE_METHODS = (
    *(f"{method}:{transfer}" for method in ("alltoallv", "p2p") for transfer in ("device", "one-shot", "staged")),
    *("neighbor", "shared", "vendor-pack", "vendor-alltoallw", "vendor-neighbor", "vendor-p2p"),
)
COMPARE = ("compare", *SMALL, "--warmup", str(WARMUP), "--iterations", str(ITERATIONS))
ON_DEVICE = ("--memory", "device", "--methods", ",".join(DEVICE_METHODS))
# A step has one stage. The two plans of run, one for each set of fields, take turns.
STEPS = 4
RUN = ("run", *SMALL, "--steps", str(STEPS), "--stages", "1")
RUN_EXCHANGES = BEFORE + STEPS // 2 + 1  # for each plan
GATHER = ("gather", "--sizes", "512", "--order", "ordered,round-robin", "--ranks-per-node", "2", "--warmup", str(WARMUP))
GATHER = (*GATHER, "--iterations", str(ITERATIONS))


class Job:
    """Holds a run of the program, its records, and the counts of faulty_mpi.cpp: function -> (most receives of a
    target, spoilt)."""

    def __init__(self, *arguments, inside=HOST, fault=None, ranks=2):
        with tempfile.TemporaryDirectory() as folder:
            output, table, log = (pathlib.Path(folder) / name for name in ("output", "table", "log"))
            # Each rank starts env, so that only the program has the library.
            program = (*inside, f"LD_PRELOAD={LIBRARY}", f"HALOCLINE_FAULT_LOG={log}")
            if fault:
                program += (f"HALOCLINE_FAULT={fault}",)
            outcome = halocline(*arguments, "--output", output, "--csv", table, ranks=ranks, program=program)
            self.code, self.stdout, self.stderr, self.ours = outcome.code, outcome.stdout, outcome.stderr, outcome.ours
            self.records = [json.loads(line) for line in output.read_text().splitlines()] if output.exists() else []
            self.rows = list(csv.DictReader(table.read_text().splitlines())) if table.exists() else []
            counted = [line.split() for line in log.read_text().splitlines()] if log.exists() else []
            self.counts = {name: (int(most), int(spoilt)) for name, most, spoilt in counted}


def which(exchange):
    """Returns the program's name of the verified exchange that sees a fault from this exchange on."""
    return f"exchange {exchange}" if exchange <= BEFORE else f"exchange {LAST}"


class Faults(unittest.TestCase):
    def assert_right(self, job):
        self.assertEqual((job.code, job.ours), (0, []), job.stderr)
        self.assertTrue(job.records and all(record["verified"] for record in job.records))

    def assert_wrong(self, job, timed=False):
        """Checks that every record is wrong, in each file. `timed`: the records have times nevertheless."""
        self.assertEqual(job.code, 1, job.stderr)
        self.assertTrue(job.records)
        self.assertEqual([record["verified"] for record in job.records], [False] * len(job.records), job.stderr)
        self.assertEqual([row["verified"] for row in job.rows], ["false"] * len(job.records))
        for record in job.records:
            median = record["median_s"] if record["kind"] == "gather" else record["phases"]["total"]
            self.assertEqual((median is not None, record["iterations"] > 0), (timed, timed))

    def assert_compare_is_wrong(self, job, exchange):
        self.assert_wrong(job)
        self.assertEqual(len(job.ours), len(job.records), job.stderr)
        for line in job.ours:
            self.assertIn(f"{which(exchange)}: ", line)
        self.assertEqual(sum(line.split()[-9:-1].count("NO") for line in job.stdout.splitlines()), len(job.records), job.stdout)


class Compare(Faults):
    def where(self):
        return ((HOST, ("--shape", "direct,axes")), (DEVICE, ON_DEVICE))

    def test_all_is_right_without_a_fault(self):
        for case, job in several(lambda case: Job(*COMPARE, *MESSAGES, *case[1], inside=case[0]), self.where()):
            with self.subTest(case=case):
                self.assert_right(job)
                functions = {"MPI_Alltoallv", "MPI_Alltoallw", "MPI_Neighbor_alltoallv", "MPI_Neighbor_alltoallw", "MPI_Recv_init"}
                self.assertLessEqual(functions, set(job.counts))
                for function in functions:
                    self.assertEqual(job.counts[function], (EXCHANGES, 0), function)

    def test_every_fault_of_a_message_is_seen(self):
        def compare(case):
            (inside, options), kind, exchange = case
            return Job(*COMPARE, *MESSAGES, *options, inside=inside, fault=f"{kind}:{exchange}")

        cases = itertools.product(self.where(), KINDS, (2, 3, EXCHANGES))
        for case, job in several(compare, cases):
            with self.subTest(case=case):
                self.assert_compare_is_wrong(job, case[-1])

    def test_every_fault_of_the_ghosts_is_seen(self):
        """Checks faults within a node, too, on which shared sends nothing."""

        def compare(case):
            (inside, options), kind, verified = case
            return Job(*COMPARE, *options, "--inject", kind, "--inject-from", verified, inside=inside)

        for case, job in several(compare, itertools.product(self.where(), KINDS, (2, 3))):
            with self.subTest(case=case):
                self.assert_compare_is_wrong(job, case[-1])


class Gather(Faults):
    def test_all_is_right_without_a_fault(self):
        job = Job(*GATHER, ranks=4)
        self.assert_right(job)
        for function in ("MPI_Gather", "MPI_Recv_init", "MPI_Sendrecv"):
            self.assertEqual(job.counts[function], (EXCHANGES, 0), function)

    def test_every_fault_is_seen(self):
        def gather(case):
            way, kind, first = case
            if way == "message":
                return Job(*GATHER, fault=f"{kind}:{first}", ranks=4)
            return Job(*GATHER, "--inject", kind, "--inject-from", first, ranks=4)

        cases = list(itertools.product(("message",), KINDS, (2, 3, EXCHANGES)))
        cases += itertools.product(("inject",), KINDS, (2, 3))
        for case, job in several(gather, cases):
            with self.subTest(case=case):
                self.assert_wrong(job)
                self.assertEqual(len(job.ours), 1, job.stderr)
                self.assertIn("verification failed (gather, mpi-gather of 512 B ordered", job.ours[0])
                self.assertEqual(job.stdout.count("WRONG"), len(job.records))


class Run(Faults):
    def where(self):
        host = [(HOST, ("--methods", method)) for method in methods()]
        return host + [(DEVICE, ("--memory", "device", "--methods", method)) for method in DEVICE_METHODS]

    def assert_run_is_wrong(self, job, seen_in):
        self.assert_wrong(job, timed=seen_in in (LAST_STEP, which(RUN_EXCHANGES)))
        self.assertEqual(len(job.ours), 1, job.stderr)
        self.assertIn(f"{seen_in}: ", job.ours[0])
        self.assertNotIn("state hash", job.stdout)
        self.assertNotIn("times of a substep", job.stdout)

    def test_all_is_right_without_a_fault(self):
        for case, job in several(lambda case: Job(*RUN, *MESSAGES, *case[1], inside=case[0]), self.where()):
            with self.subTest(case=case):
                self.assert_right(job)
                self.assertEqual({most for most, _ in job.counts.values() if most > 1}, {RUN_EXCHANGES})

    def test_every_fault_of_a_message_is_seen(self):
        """Checks each method from each exchange on. The kinds take turns, so that each exchange has each kind."""

        def run(case):
            (inside, options), kind, exchange = case
            return Job(*RUN, *MESSAGES, *options, inside=inside, fault=f"{kind}:{exchange}")

        cases = []
        for number, (where, exchange) in enumerate(itertools.product(self.where(), (2, 3, RUN_EXCHANGES))):
            cases.append((where, KINDS[number % len(KINDS)], exchange))
        self.assertEqual(len({case[1:] for case in cases}), 3 * len(KINDS))
        for case, job in several(run, cases):
            with self.subTest(case=case):
                in_steps = BEFORE < case[-1] < RUN_EXCHANGES
                self.assert_run_is_wrong(job, LAST_STEP if in_steps else which(case[-1]))

    def test_every_fault_of_the_ghosts_is_seen(self):
        def run(case):
            (inside, options), kind, verified = case
            return Job(*RUN, *options, "--inject", kind, "--inject-from", verified, inside=inside)

        where = [case for case in self.where() if case[1][-1] == "shared"]
        for case, job in several(run, itertools.product(where, KINDS, (2, 3))):
            with self.subTest(case=case):
                self.assert_run_is_wrong(job, which(case[-1]))

    def test_a_fault_of_the_last_step_alone_is_seen(self):
        """Checks one wrong bit, which is far below the tolerance of the wave."""
        last = RUN_EXCHANGES - 1

        def run(options):
            return Job(*RUN, *MESSAGES, *options, inside=DEVICE, fault=f"flip:{last}-{last}")

        on_device = ("--memory", "device", "--methods", "p2p:staged")
        open_ends = ("--periodic", "false", "--layout", "aos")
        for case, job in several(run, ((), on_device, open_ends, (*on_device, *open_ends), ("--shape", "axes"))):
            with self.subTest(case=case):
                self.assert_run_is_wrong(job, LAST_STEP)

    def test_faults_are_seen_with_overlap(self):
        def run(case):
            return Job(*RUN, *MESSAGES, "--overlap", "--methods", "p2p", fault=f"flip:{case[0]}")

        cases = ((2, which(2)), (3, LAST_STEP), (RUN_EXCHANGES, which(RUN_EXCHANGES)))
        for case, job in several(run, cases):
            with self.subTest(case=case):
                self.assert_run_is_wrong(job, case[1])


if __name__ == "__main__":
    unittest.main()
