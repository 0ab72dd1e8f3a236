# SPDX-License-Identifier: BSD-3-Clause
"""Tests magnetohydrodynamics by every method, and on an emulated device: runs the tests of mhd_test.cpp on boxes of
up to 16 x 16 x 16 points."""
import os
import subprocess
import unittest

from halocline_program import MPIEXEC, TIMEOUT_S, methods, own_session

# Tests without an exchange are left out.
COMMAND = (os.environ["HALOCLINE_MHD_TEST"], "--gtest_filter=-Differences.*:Exponential*", "--gtest_brief=1")


class Mhd(unittest.TestCase):
    def check(self, ranks, **variables):
        with self.subTest(ranks=ranks, **variables), own_session() as environment:
            names = {f"HALOCLINE_{name}": value for name, value in variables.items()}
            command = [MPIEXEC, "-n", str(ranks), *COMMAND]
            finished = subprocess.run(command, env=environment | names | {"HALOCLINE_MHD_POINTS": "16"}, timeout=4 * TIMEOUT_S, capture_output=True, text=True)
            self.assertEqual(finished.returncode, 0, finished.stdout + finished.stderr)
            self.assertIn("[  PASSED  ]", finished.stdout)

    def test_every_method_gives_the_same_numbers(self):
        for method in methods():  # app_mhd_test has p2p on other numbers of ranks
            self.check(2, MHD_METHOD=method)

    def test_so_does_an_emulated_device(self):
        for ranks in 1, 2:
            self.check(ranks, MHD_METHOD="alltoallv", MHD_MEMORY="device", DEVICE="emulated")


if __name__ == "__main__":
    unittest.main()
