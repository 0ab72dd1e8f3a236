# SPDX-License-Identifier: BSD-3-Clause
"""Tests more threads than Kokkos has room for: a flag is refused; an environment and a machine are limited, with a
line."""
import json
import os
import unittest

from halocline_program import halocline

MOST = 512
TINY = ("run", "--local", "6", "6", "6", "--steps", "1", "--fields", "1", "--quiet", "--packer", "kokkos")
UNSET = ("env", "-u", "OMP_NUM_THREADS", "-u", "KOKKOS_NUM_THREADS")
MACHINE = (*UNSET, f"LD_PRELOAD={os.environ['HALOCLINE_MANY_CORES']}")


class TooManyThreads(unittest.TestCase):
    def assert_limited(self, reason, wanted, inside):
        outcome = halocline(*TINY, inside=inside)
        self.assertEqual((outcome.code, len(outcome.ours)), (0, 1), outcome.stderr)
        self.assertRegex(outcome.ours[0], f"^halocline: {MOST} threads per rank instead of {wanted} .*{reason}.*--threads")
        facts = json.loads(halocline("info", "--json", inside=inside).stdout)
        self.assertEqual(facts["threads"], MOST)
        self.assertIn(f"has room for {MOST}", facts["threads_reason"])

    def test_a_flag_is_refused(self):
        for threads in (MOST + 1, 600, 1024):
            outcome = halocline(*TINY, "--threads", threads)
            self.assertEqual((outcome.code, len(outcome.ours)), (2, 1), outcome.stderr)
            self.assertRegex(outcome.ours[0], f"threads cannot be used .*from 0 to {MOST}")

    def test_an_environment_is_limited(self):
        for name in ("OMP_NUM_THREADS", "KOKKOS_NUM_THREADS"):
            with self.subTest(name=name):
                self.assert_limited(name, 100000, (*UNSET, f"{name}=100000"))

    def test_a_machine_is_limited(self):
        self.assert_limited("share of the node", 768, MACHINE)

    def test_what_fits_is_taken_without_a_word_and_no_number_refused(self):
        for inside in ((*UNSET, f"OMP_NUM_THREADS={MOST}"), (*UNSET, "OMP_NUM_THREADS=100000", "KOKKOS_NUM_THREADS=2")):
            outcome = halocline(*TINY, inside=inside)
            self.assertEqual((outcome.code, outcome.ours), (0, []), outcome.stderr)
        for text in ("-3", "0", "abc", "2.5", "5abc", "99999999999999999999"):
            outcome = halocline(*TINY, inside=(*UNSET, f"KOKKOS_NUM_THREADS={text}"))
            self.assertEqual((outcome.code, len(outcome.ours)), (2, 1), outcome.stderr)
            self.assertIn(f"KOKKOS_NUM_THREADS is '{text}'", outcome.ours[0])
            outcome = halocline(*TINY, "--threads", "2", inside=(*UNSET, f"KOKKOS_NUM_THREADS={text}"))
            self.assertEqual((outcome.code, outcome.ours), (0, []), outcome.stderr)
        # The flag wins over an environment with threads that nobody could start.
        outcome = halocline(*TINY, "--threads", "2", inside=(*UNSET, "OMP_NUM_THREADS=100000"))
        self.assertEqual((outcome.code, outcome.ours), (0, []), outcome.stderr)

    def test_environments_of_ranks_may_differ(self):
        outcome = halocline(*TINY, ranks=2, program=("sh", "-c", """[ "$OMPI_COMM_WORLD_RANK" = 0 ] || KOKKOS_NUM_THREADS=abc; export KOKKOS_NUM_THREADS; exec "$@" """, "sh"))
        self.assertEqual((outcome.code, len(outcome.ours)), (2, 1), outcome.stderr)
        self.assertIn("KOKKOS_NUM_THREADS is 'abc'", outcome.ours[0])


if __name__ == "__main__":
    unittest.main()
