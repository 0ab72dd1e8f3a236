# SPDX-License-Identifier: BSD-3-Clause
"""Tests that a Kokkos tool sees all parts of the work, in their order, each with its end."""
import os
import pathlib
import tempfile
import unittest

from halocline_program import halocline

EXCHANGE = ["pack", "transfer", "unpack"]


def regions(*arguments):
    """Returns the program's nested regions: (name, [regions inside])."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "regions.txt"
        os.environ |= {"KOKKOS_TOOLS_LIBS": os.environ["HALOCLINE_TOOL"], "HALOCLINE_REGIONS": str(path)}
        try:
            outcome = halocline(*arguments, "--quiet")
        finally:
            del os.environ["KOKKOS_TOOLS_LIBS"], os.environ["HALOCLINE_REGIONS"]
        if outcome.code != 0:
            raise AssertionError(outcome.stderr)
        lines = path.read_text().splitlines()
    open_regions = [("", [])]
    for line in lines:
        what, _, name = line.partition(" ")
        if what == "push":
            open_regions.append((name.removeprefix("halocline: "), []))
        else:
            ended = open_regions.pop()
            open_regions[-1][1].append(ended if ended[1] else ended[0])
    if len(open_regions) != 1:
        raise AssertionError(f"not ended: {open_regions}")
    return open_regions[0][1]


class Regions(unittest.TestCase):
    def test_run(self):
        verify = [("verify", EXCHANGE)] * 2  # for each set of fields
        before, after = verify * 2, verify
        found = regions("run", "--local", "8", "8", "8", "--steps", "2")
        self.assertEqual(found, before + (EXCHANGE + ["compute"]) * 2 + after)
        found = regions("run", "--local", "8", "8", "8", "--steps", "2", "--periodic", "false")
        self.assertEqual(found, before + (EXCHANGE + [("compute", ["boundaries"])]) * 2 + after)

    def test_overlap(self):
        exchange = ["pack", "unpack", "transfer", "unpack"]  # first the part that the rank has for itself
        overlapped = [*exchange[:2], "interior", *exchange[2:]]
        plain = [*exchange, "compute"]
        arguments = ("run", "--local", "8", "8", "8", "--steps", "4", "--overlap", "--methods", "p2p")
        found = regions(*arguments)
        verify = [("verify", exchange)] * 2
        steps = overlapped + ["boundary"] + plain * 2 + overlapped + ["boundary"]
        self.assertEqual(found, verify * 2 + steps + verify)
        found = regions(*arguments, "--periodic", "false")
        self.assertEqual(found[4:10], overlapped + [("boundary", ["boundaries"])])

    def test_compare(self):
        found = regions(
            "compare", "--local", "8", "8", "8", "--methods", "alltoallv,vendor-alltoallw", "--iterations", "2", "--warmup", "0"
        )
        ours, vendor = ("alltoallv", EXCHANGE), ("vendor-alltoallw", ["transfer"])
        verify_ours, verify_vendor = ("verify", EXCHANGE), ("verify", ["transfer"])
        before = [verify_ours] * 2 + [verify_vendor] * 2
        self.assertEqual(found, before + [ours, vendor, vendor, ours] + [verify_ours, verify_vendor])


if __name__ == "__main__":
    unittest.main()
