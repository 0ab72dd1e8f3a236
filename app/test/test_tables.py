# SPDX-License-Identifier: BSD-3-Clause
"""Tests results/tables.py, reconstruct.py, interpose.py and derived_types.py: the tables that they make of rows of
benchmarks. Tests results/mhd.py, which makes tables of tests."""
import contextlib
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(os.environ["HALOCLINE_SOURCE"]) / "results"))
import tables  # noqa: E402 - starts this test again with a Python that has the packages
import derived_types  # noqa: E402
import interpose  # noqa: E402
import reconstruct  # noqa: E402
import records  # noqa: E402

FACTS = {"command": "bench", "git": "f" * 40, "dirty": False, "cpu": "a CPU", "time": "2026-01-01T00:00:00Z"}


def pack(case, ours, theirs, **fields):
    """Returns a row whose loop by hand takes 1000 ns in each direction."""
    row = {"group": "g", "case": case, "bytes": 8192, "packs": 1, "small_packs": 0, "verified": True, "note": "",
           "mpi": "An MPI (R) 1", "compiler": "GNU", "hand_ns": 1000.0, "hand_unpack_ns": 1000.0}  # fmt: skip
    for direction in ("pack", "unpack"):
        row |= {f"{direction}_vs_hand": ours, f"{direction}_ns": 1000 / ours}
        row |= {f"vendor_{direction}_vs_hand": theirs, f"vendor_{direction}_ns": 1000 / theirs}
    return row | fields


class Tables(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for module, name in ((tables, "RAW"), (tables, "PLACE"), (interpose, "PLACE"), (reconstruct, "PLACE")):
            patch = mock.patch.object(module, name, self.folder)
            patch.start()
            self.addCleanup(patch.stop)

    def write(self, name, *rows, library="debian"):
        lines = [{"provenance": FACTS | {"library": library}}, *rows]
        (self.folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))

    def made(self, group, *libraries, plots=False):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            tables.write(group, libraries, plots, ())
        return (self.folder / "vendors" / f"{group}.md").read_text(), out.getvalue()

    def test_packing_under_two_libraries(self):
        self.write("bench-g-debian", pack("a", 2, 1), pack("b", 0.5, 1), pack("c", 1, 1, verified=False, note="wrong"))
        slow = pack("s", 0.5, 1, bytes=8, small_packs=1, mpi="Other 2")
        self.write("bench-g-impi", pack("a", 1, 4, mpi="Other 2"), slow, library="impi")
        text, out = self.made("g", plots=True)
        head = "| case | bytes | An MPI 1 | Other 2 |\n|---|---:|---:|---:|\n"
        ours = "| a | 8192 | 2.00/2.00 | 1.00/1.00 |\n| b | 8192 | 0.50/0.50 | - |\n| c | 8192 | 1.00/1.00 | - |\n"
        self.assertIn(f"N x as fast as the loop by hand in the same run.\n\n{head}{ours}| s | 8 | - | 0.50/0.50 |\n", text)
        self.assertIn("| a | 8192 | 0.50/0.50 | 0.25/0.25 |\n", text.split("## Ours against the best MPI")[1])
        overhead = "| case | bytes | packs | An MPI 1 | Other 2 |\n|---|---:|---:|---:|---:|\n| s | 8 | 1 | - | 1000/1000; 0/0 |\n"
        self.assertIn(overhead, text)
        faults = text.split("## Slower")[1].split("## Provenance")[0].split("\n\n", 2)[2].strip().split("\n")
        slower = "0.50 x as fast as the loop by hand"
        self.assertEqual(
            faults,
            [f"- a (An MPI 1): {way} 0.50 x as fast as the best MPI" for way in ("pack", "unpack")]
            + [f"- b (An MPI 1): {way} {slower}" for way in ("pack", "unpack")]
            + [f"- b (An MPI 1): {way} 0.50 x as fast as the best MPI" for way in ("pack", "unpack")]
            + ["- c (An MPI 1): wrong"]
            + [f"- a (Other 2): {way} 0.25 x as fast as the best MPI" for way in ("pack", "unpack")]
            + [f"- s (Other 2): {way} {slower}, 1000 ns more for each pack" for way in ("pack", "unpack")]
            + [f"- s (Other 2): {way} 0.50 x as fast as the best MPI" for way in ("pack", "unpack")],
        )
        self.assertIn("- An MPI (R) 1 (`debian`): 2026-01-01T00:00:00Z, commit ffffffffffff, compiler GNU, a CPU; `bench`\n", text)
        self.assertIn("4 rows under 2 libraries", out)
        self.assertIn("<svg", (self.folder / "vendors" / "g.svg").read_text())

    def test_small_packs_may_take_a_little_more(self):
        row = pack("s", 0.5, 0.5, bytes=8, small_packs=1, hand_ns=20.0, pack_ns=40.0, hand_unpack_ns=20.0, unpack_ns=41.0)
        self.write("bench-g-debian", row)
        text, _ = self.made("g")
        self.assertIn("\n- s (An MPI 1): unpack 0.50 x as fast as the loop by hand, 21 ns more for each pack\n\n", text)
        self.assertNotIn("- s (An MPI 1): pack", text)

    def test_exchanges_and_their_fastest_method(self):
        times = {"shared": 3e6, "shared-axes": 2e6, "vendor-pack": 5e6, "p2p": 4e6, "rows": 6e6, "rows-fixed": 7e6, "lines": 1e6}
        row = {"group": "x", "case": "8", "verified": False, "note": "lost", "mpi": "M", "compiler": "GNU"}
        for name, value in times.items():
            row |= {f"{name}_ns": value, f"{name}_p10_ns": value / 2, f"{name}_p90_ns": value * 2}
        fields = ("shared_vs_vendor", "shared_vs_rows", "shared_vs_rows-fixed", "shared_vs_lines", "p2p_vs_vendor-pack")
        pages = {"window_on_huge_pages": 0.25, "private_on_huge_pages": -1, "vendor_ns": 5e6}
        self.write("bench-exchange-debian", row | pages | dict.fromkeys(fields, 1.5))
        text, _ = self.made("exchange", "debian")
        self.assertIn("between 2 ranks of a node", text)
        self.assertIn("(../benchmarks.md#exchanges-beside-twins-that-copy)", text)
        self.assertIn("| split, points | M |\n|---|---:|\n| x, 8 | 1.50 |\n", text)
        self.assertIn("| x, 8 | 5.00 |\n", text)
        self.assertIn("| x, 8 | 25%, - |\n", text)
        self.assertIn("| x, 8 | 2.000 (1.000-4.000) shared-axes |\n", text)
        self.assertIn("| x, 8 | 7.000 (3.500-14.000) rows-fixed |\n", text)
        self.assertIn("## Not verified\n\n- x, 8 (M): lost\n", text)

    def test_a_plan_without_blocks(self):
        row = {"group": "commit", "case": "a", "verified": True, "mpi": "M", "compiler": "GNU", "total_vs_vendor": 0.5}
        self.write("bench-commit-debian", row | dict.fromkeys(("create_ns", "commit_ns", "plan_ns", "total_ns", "lookup_ns"), 10.4))
        text, _ = self.made("commit")
        self.assertIn("| a | 10, 10, 10 (-), 10 (0.50 x) |\n", text)
        self.assertIn("| a | 10.4; - |\n", text)
        self.assertIn("## Not verified\n\nNothing.\n", text)

    def test_rows_that_cannot_be_used(self):
        for rows, message in (
            ([], "no rows in results/raw/bench-g-*.jsonl: measure again"),
            ([{"case": "a"}], "measure again"),
            ([pack("a", 1, 1), pack("b", 1, 1) | {"small_packs": None}], "of an earlier version of the benchmarks: measure again"),
        ):
            self.write("bench-g-debian", *rows)
            with self.assertRaisesRegex(records.BadInput, message.replace("*", r"\*")):
                self.made("g")
        with self.assertRaisesRegex(records.BadInput, "run jobs/local/vendors.sh first"):
            self.made("g", "debian", "impi")

    def test_reconstruction(self):
        rows = [{"case": f"{name}-1", "n": n, "compiler": "GNU", "comparisons": 8, "path_ns": 2e6, "path_cost": 3}
                for name, n in (("random", 2), ("contiguous", 4), ("contiguous", 2))]  # fmt: skip
        self.write("reconstruct", *rows)
        with mock.patch.object(reconstruct, "RAW", self.folder), mock.patch.object(sys, "argv", ["reconstruct.py"]):
            with contextlib.redirect_stdout(io.StringIO()):
                self.assertEqual(reconstruct.main(), 0)
        lines = (self.folder / "reconstruct" / "reconstruct.md").read_text().split("\n")
        found = [line for line in lines if line.startswith("| ")][1:]
        tail = " | - | {} | - | - | - | 2.000 | - | - | - | 3 | - | - |"
        expected = (("contiguous", 2, "4.00"), ("contiguous", 4, "2.00"), ("random", 2, "4.00"))
        self.assertEqual(found, [f"| {name} | {n}" + tail.format(each) for name, n, each in expected])
        self.assertTrue((self.folder / "reconstruct" / "reconstruct.svg").exists())

    def derived_types(self, *rows):
        """Returns the exit code and the page for rows of one library."""
        (self.folder / "derived-types").mkdir(exist_ok=True)
        self.write("derived-types/debian", *rows)
        argv = mock.patch.object(sys, "argv", ["derived_types.py", "debian"])
        places = [mock.patch.object(derived_types, name, self.folder) for name in ("RAW", "PLACE")]
        with argv, places[0], places[1], contextlib.redirect_stdout(io.StringIO()):
            code = derived_types.main()
        return code, (self.folder / "derived-types" / "README.md").read_text()

    def test_derived_types(self):
        def rows(by_hand, types, through, call="isend", checksum="ab", ranks=2):
            times = {("hand", False): by_hand, ("types", False): types, ("hand", True): by_hand + 1, ("types", True): through}
            row = {"mpi": "An MPI (R) 1", "case": "life", "ranks": ranks, "call": call, "checksum": checksum, "step_us": 1.0}
            return [row | {"way": way, "interposed": through, "exchange_us": time} for (way, through), time in times.items()]

        turns = [*rows(10, 20, 8), *rows(30, 20, 15), *rows(12, 20, 10)]
        code, text = self.derived_types(*turns, *rows(40, 20, 10, "neighbor"), *rows(1, 1, 1, ranks=4))
        self.assertEqual(code, 0)
        # Each run gives a ratio of its own: 10/8, 30/15, 12/10 and, with neighbor, 40/10.
        self.assertIn("| life | isend | 12.0 | 20.0 | 13.0 | 10.0 | 1.25 | 1.25 |", text)
        self.assertIn("| life | neighbor | 40.0 | 20.0 | 41.0 | 10.0 | 2.00 | 4.00 |", text)
        # types: the mean of 12/20 and 40/20; with the interposer, that of 1.25 and 4.
        self.assertIn("| An MPI 1 | 1.10 x | 2.24 x | 1.25 to 4.00 x | 2.00 x | 1.25 to 2.00 x |", text)
        self.assertIn("All 20 results", text)
        # By hand takes 1 us more with the interposer: medians of 10/11, 30/31, 12/13, and 40/41.
        bounds = " ".join(text.split())
        self.assertIn("these are: 1 of 1 with `isend`, 1 of 1 with `neighbor`.", bounds)
        self.assertIn("by hand is 0.95 x as fast with the interposer in front (0.92 to 0.98 x)", bounds)
        code, text = self.derived_types(*turns, *rows(1, 1, 1, checksum="cd", ranks=4))
        self.assertEqual(code, 1)
        self.assertIn("**THE PROGRAMS GAVE DIFFERENT RESULTS.**", text)

    def test_the_interposer(self):
        spread = lambda name, ns: {f"{name}_ns": ns, f"{name}_p10_ns": ns / 2, f"{name}_p90_ns": ns * 2}  # noqa: E731
        facts = {"case": "a", "bytes": 2048, "verified": True, "mpi": "M", "compiler": "GNU"}
        message = facts | {"blocks": 4, "vs_vendor": 2.0} | spread("interposed", 1e3) | spread("vendor", 2e3)
        self.write("messages", message, message | {"case": "b", "verified": False, "bytes": 4096})
        self.write("both-ways", message)
        self.write("patterns", message)
        self.write("plain", message)
        self.write("calls", facts | {"calls": 3, "more_ns": 1.0} | spread("mpi", 4) | spread("through", 5))
        small = pack("p", 2, 1, bytes=8, packs=10) | spread("pack", 500)
        self.write("packs", small, small | {"case": "q", "bytes": 4096, "verified": False})
        for which, time in (("without", 3), ("with", 2), ("without", 5), ("with", 2), ("without", 4), ("with", 2)):
            (self.folder / f"halo-c-{which}-{time}.txt").write_text(f"x face  26 {time}.0 {time}.0 1.0 1.00\n")
        out = self.folder / "out"
        with mock.patch.object(sys, "argv", ["interpose.py", str(self.folder), str(out)]):
            with contextlib.redirect_stdout(io.StringIO()):
                self.assertEqual(interpose.main(), 0)
        text = (out / "README.md").read_text()
        for line in (
            "| p | 8 | 500.0 (250.0-1000.0) | 2.00/2.00 | 1.00/1.00 | -50 | -50 | yes |",
            "| q | 4096 | 500.0 (250.0-1000.0) | 2.00/2.00 | 1.00/1.00 |  |  | **no** |",
            "| a | 3 | 4.0 (2.0-8.0) | 5.0 (2.5-10.0) | 1.0 | - |",
            "| b | 4096 | 4 | 1.00 (0.50-2.00) | 2.00 (1.00-4.00) | 2.00 | **no** |",
            "## Messages of application patterns",
            "![messages through the interposer: x as fast as MPI](messages.svg)",
            "| x face | 4.00 -> 2.00 (2.00 x) | 4.00 -> 2.00 (2.00 x) | 1.00 -> 1.00 (1.00 x) |",
        ):
            self.assertIn(f"\n{line}\n", text)
        self.assertNotIn("## The example in Fortran", text)
        self.assertEqual(sorted(path.name for path in out.iterdir()), ["README.md", "both-ways.svg", "messages.svg"])
        other = self.folder / "other"
        with mock.patch.object(sys, "argv", ["interpose.py", str(self.folder), str(other)]), mock.patch.object(interpose, "draw", side_effect=ValueError):
            with contextlib.redirect_stderr(io.StringIO()), self.assertRaisesRegex(SystemExit, "2"):
                interpose.main()
        self.assertEqual((other / "README.md").read_text(), text)


class Mhd(unittest.TestCase):
    def run_script(self, test):
        """Returns the finished script and the folder of its results."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        command = [sys.executable, records.RESULTS / "mhd.py", test, "--points", "16"]
        variables = os.environ | {"HALOCLINE_RESULTS": folder.name}
        done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
        return done, pathlib.Path(folder.name) / "mhd"

    def test_makes_tables_of_tests(self):
        done, folder = self.run_script(pathlib.Path(os.environ["HALOCLINE_BINARY"]).parent / "test/app_mhd_test")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        text = (folder / "tests.md").read_text(encoding="utf-8")
        self.assertIn("| density | 8 | 8.618e-04 | - | - |\n| density | 16 | 1.538e-05 | 1.538e-05 | 5.81 |\n", text)
        self.assertIn("| no diffusion | 16 | -2.000e-06 | -2e-06 |\n", text)
        self.assertTrue((folder / "errors.svg").stat().st_size)

    def test_makes_nothing_if_a_test_fails(self):
        for test, why in (("/bin/false", "fails"), ("/bin/true", "cannot be read"), ("/absent", "cannot be run")):
            done, folder = self.run_script(test)
            self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)
            self.assertIn(why, done.stderr)
            self.assertFalse(list(folder.glob("*")))


if __name__ == "__main__":
    unittest.main()
