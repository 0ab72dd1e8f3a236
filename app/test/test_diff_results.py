# SPDX-License-Identifier: BSD-3-Clause
"""Tests jobs/local/diff-results.sh: the changes that it reports as regressions, and the files that it refuses. The
files are made of records that were measured once."""
import contextlib
import copy
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

SOURCE = pathlib.Path(os.environ["HALOCLINE_SOURCE"])
SCRIPT = SOURCE / "jobs" / "local" / "diff-results.sh"
sys.path.insert(0, str(SOURCE / "results"))
import diff  # noqa: E402  # what the script starts

REFERENCE = SOURCE / "results" / "reference" / "compare-tempi-fig12-128-openmpi-4.1.4.jsonl"
RECORDS = [json.loads(line) for line in REFERENCE.read_text(encoding="utf-8").split("\n") if line]
for record in RECORDS:  # as from a quiet machine: every change is above the noise
    median = record["phases"]["total"]["median_s"]
    record["phases"]["total"] |= {"p10_s": 0.9999 * median, "p90_s": 1.0001 * median}
OURS, VENDOR_PACK, BASELINE = RECORDS


def changed(record, total=1.0, time=None, **fields):
    """Returns a copy with all totals multiplied by `total`, and with other fields."""
    record = copy.deepcopy(record) | fields
    if record["phases"].get("total"):
        for name in ("median_s", "p10_s", "p90_s"):
            record["phases"]["total"][name] *= total
    record["provenance"]["time"] = time or record["provenance"]["time"]
    return record


def all_changed(total=1.0, **fields):
    return [changed(record, total, **fields) for record in RECORDS]


def run_record(total=1.0, steps=10, **fields):
    record = changed(OURS, total, kind="run", baseline=None, ratio_to_baseline=None, **({"state_hash": "0x" + 16 * "0"} | fields))
    record["provenance"]["config"]["steps"] = steps
    return record


class DiffResults(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, content):
        path = self.folder / name
        if not isinstance(content, bytes):
            content = "".join(json.dumps(record) + "\n" for record in content).encode()
        path.write_bytes(content)
        return path

    def diff(self, old, new, *flags):
        """Compares contents: lists of records, or bytes."""
        return self.main(self.write("old", old), self.write("new", new), *flags)

    def test_a_pipe_is_not_waited_for_for_ever(self):
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        with mock.patch.object(sys.modules["records"], "PATIENCE_S", 0.1):
            finished = self.main(pipe, self.write("new", RECORDS))
        self.assertEqual(finished.returncode, 2, finished.stderr)
        self.assertIn("is a pipe to which nobody has written for 0.1 s", finished.stderr)

    def main(self, *arguments):
        """Runs the script without starting Python again."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = diff.main([str(argument) for argument in arguments])
            except SystemExit as end:
                code = end.code
        return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())

    def assert_worse(self, methods, finished):
        """Checks that exactly these methods, with their storage, are regressions."""
        self.assertEqual((finished.returncode, finished.stderr), (1 if methods else 0, ""), finished.stdout)
        last = finished.stdout.splitlines()[-1]
        self.assertEqual(last.partition(": ")[2], "; ".join(methods), finished.stdout)

    def assert_refused(self, names, finished):
        self.assertEqual((finished.returncode, finished.stdout), (2, ""))
        self.assertRegex(finished.stderr, r"\Adiff-results\.sh: .*\n\Z")
        self.assertIn(names, finished.stderr)


class Verdict(DiffResults):
    def test_a_file_is_no_worse_than_itself(self):
        self.assert_worse([], self.diff(RECORDS, RECORDS, "--tolerance", "0"))

    def test_slower_than_the_baseline_by_more_than_the_tolerance(self):
        new = [changed(OURS, 1.08), VENDOR_PACK, BASELINE]
        self.assert_worse(["alltoallv, private"], self.diff(RECORDS, new))
        self.assert_worse(["alltoallv, private"], self.diff(RECORDS, new, "--tolerance", "7.9"))
        self.assert_worse([], self.diff(RECORDS, new, "--tolerance", "8.1"))
        self.assertRegex(self.diff(new, RECORDS).stdout, r"alltoallv, private .* ratio +faster")

    def test_a_slow_machine_is_no_regression_unless_times_decide(self):
        self.assert_worse([], self.diff(RECORDS, all_changed(1.5)))
        everything = ["alltoallv, private", "vendor-pack, private", "vendor-alltoallw, private"]
        self.assert_worse(everything, self.diff(RECORDS, all_changed(1.5), "--by-total"))

    def test_a_slow_machine_hides_no_regression(self):
        self.assert_worse(["alltoallv, private"], self.diff(RECORDS, [changed(OURS, 1.8), changed(VENDOR_PACK, 1.6), changed(BASELINE, 1.6)]))

    def verdict(self, old, new, *flags):
        """Returns the last word of our row. Checks that there is no regression."""
        finished = self.diff(old, new, *flags)
        self.assert_worse([], finished)
        return next(line.split()[-1] for line in finished.stdout.split("\n") if line.startswith("alltoallv"))

    def test_no_verdict_where_time_and_ratio_disagree(self):
        """Checks a case in which our time is less than half, but the vendor's time is even less."""
        new = [changed(OURS, 0.45), changed(VENDOR_PACK, 0.2), changed(BASELINE, 0.2)]
        self.assertEqual(self.verdict(RECORDS, new), "contradicting")
        self.assertEqual(self.verdict(RECORDS, new, "--by-total"), "faster")
        self.assertEqual(self.verdict(new, RECORDS), "contradicting")

    def test_no_verdict_where_the_times_overlap(self):
        for total, low, high, word in ((1.3, 0.9, 1.4, "noise"), (0.7, 0.6, 1.1, "noise"), (1.3, 1.2, 1.4, None), (0.7, 0.6, 0.8, "faster")):
            with self.subTest(total=total, low=low, high=high):
                ours = changed(OURS)
                median = OURS["phases"]["total"]["median_s"]
                ours["phases"]["total"] |= {"median_s": total * median, "p10_s": low * median, "p90_s": high * median}
                for flags in ((), ("--by-total",)):
                    if word:
                        self.assertEqual(self.verdict(RECORDS, [ours, VENDOR_PACK, BASELINE], *flags), word)
                    else:
                        self.assert_worse(["alltoallv, private"], self.diff(RECORDS, [ours, VENDOR_PACK, BASELINE], *flags))

    def test_another_baseline_in_new_changes_nothing(self):
        faster = changed(BASELINE, 0.5, method="vendor-p2p", exchange="vendor-p2p")
        new = [changed(record, baseline="vendor-p2p", ratio_to_baseline=0.1) for record in RECORDS] + [faster]
        finished = self.diff(RECORDS, new)
        self.assert_worse([], finished)
        self.assertRegex(finished.stdout, r"only in NEW:\n  .*method vendor-p2p")

    def test_without_a_common_baseline_times_decide(self):
        self.assert_worse([], self.diff([OURS], [changed(OURS, 1.04)]))
        self.assert_worse(["alltoallv, private"], self.diff([OURS], [changed(OURS, 1.06)]))
        self.assert_worse(["alltoallv, private"], self.diff([run_record()], [run_record(1.06)]))

    def test_no_longer_verified(self):
        phases = OURS["phases"] | {"total": None}
        wrong = changed(OURS, verified=False, phases=phases, baseline=None, ratio_to_baseline=None)
        self.assert_worse(["alltoallv, private"], self.diff(RECORDS, [wrong, VENDOR_PACK, BASELINE], "--tolerance", "1000"))
        self.assert_worse([], self.diff([wrong, BASELINE], [wrong, BASELINE]))
        self.assert_worse([], self.diff([wrong, BASELINE], RECORDS))

    def test_other_fields_after_the_same_steps(self):
        other = "0x" + 16 * "f"
        self.assert_worse(["alltoallv, private"], self.diff([run_record()], [run_record(state_hash=other)]))
        self.assert_worse([], self.diff([run_record()], [run_record(state_hash=other, steps=20)]))

    def test_medians_of_several_runs(self):
        runs = [all_changed(time=f"2026-11-21T20:0{minute}:00Z") for minute in range(3)]
        runs[1][0] = changed(runs[1][0], 9)
        self.assert_worse([], self.diff(RECORDS, sum(runs, [])))
        runs[2][0] = changed(runs[2][0], 9)
        self.assert_worse(["alltoallv, private"], self.diff(RECORDS, sum(runs, [])))


class Matching(DiffResults):
    def test_by_what_was_asked_for(self):
        others = {
            "kind": "run", "method": "p2p", "memory": "device", "storage": "shared-window", "ranks": 4, "nodes": 2, "nodes_emulated": True,
            "decomposition": [2, 1, 1], "reorder": "node", "local": [64, 64, 64], "global": [64, 64, 64], "fields": 7, "layout": "aos", "pad": "64", "radius": 2,
            "periodic": False, "describe": "struct", "packer": "kokkos", "shape": "axes", "neighbors": 18, "messages_per": "field",
            "physics": "mhd", "boundary": ["fixed"] * 6, "complex": True, "wide": 2, "needs_by_field": True, "pages": "huge",
            "element_bytes": 4, "threads": 2, "overlap": True, "progress": 16,
        }  # fmt: skip
        self.assertEqual({"stencil", *others}, set(diff.IDENTITY))
        for name, value in others.items():
            with self.subTest(name=name):
                self.assert_refused(f"differ in {name}", self.diff([OURS], [changed(OURS, **{name: value})]))

    def test_the_memory_of_older_versions(self):
        self.assertNotIn("storage", OURS)
        newer = [changed(record, memory="host", storage="private", baseline_storage="private") for record in RECORDS]
        in_window = [changed(record, memory="host", storage="shared-window", baseline_storage="private") for record in RECORDS]
        finished = self.diff(RECORDS, in_window + newer)
        self.assert_worse([], finished)
        self.assertEqual(finished.stdout.count("storage shared-window"), len(RECORDS))

    def test_the_stencil_that_compare_does_not_use(self):
        self.assert_worse([], self.diff(RECORDS, all_changed(stencil="heat3")))
        self.assert_refused("stencil", self.diff([run_record()], [run_record(stencil="heat3")]))

    def test_another_machine_is_a_warning(self):
        other = all_changed()
        for record in other:
            record["provenance"] |= {"mpi_library": "Another MPI"}
        finished = self.diff(RECORDS, other)
        self.assert_worse([], finished)
        self.assertIn("WARNING: mpi_library", finished.stdout)
        # Two MPIs in one file are two experiments.
        finished = self.diff(RECORDS, [changed(record, 2) for record in other] + RECORDS, "--by-total")
        self.assert_worse([], finished)
        self.assertEqual(finished.stdout.count("mpi_library Another MPI"), len(RECORDS))

    def test_the_line_of_provenance_of_vendors_sh(self):
        lines = [{"provenance": {"library": "debian"}}, *RECORDS]
        self.assert_worse([], self.diff(lines, lines))


class BadInput(DiffResults):
    def test_files(self):
        missing = self.folder / "missing"
        good = self.write("good", RECORDS)
        self.assert_refused(str(missing), self.main(missing, good))
        self.assert_refused(str(self.folder), self.main(good, self.folder))
        for names, content in (
            ("no records", b""),
            ("damaged", b"{"),
            ("damaged", b"3\n"),
            ("damaged", b'{"schema": "halocline/1"}\n'),
            ("cannot be read", b"\xff\xfe"),
            ("line 2", REFERENCE.read_bytes().splitlines()[0] + b"\n[]\n"),
            ("schema halocline/2", [changed(OURS, schema="halocline/2")]),
            ("schema none", [{"group": "table1", "case": "vector"}]),
            ("damaged", [changed(OURS, 0)]),
            ("damaged", [changed(OURS, layout={})]),
            ("damaged", [changed(OURS, local=[[1]])]),
            ("damaged", [changed(OURS, phases={})]),
            ("damaged", [dict.fromkeys(OURS) | {"schema": "halocline/1"}]),
            ("damaged", [changed(OURS, method=["alltoallv"])]),
            ("damaged", [changed(OURS, baseline={})]),
            ("damaged", [changed(OURS, verified="yes")]),
            ("damaged", [changed(OURS, state_hash=[])]),
            ("damaged", [changed(OURS, provenance=OURS["provenance"] | {"config": []})]),
            ("damaged", [changed(OURS, provenance=OURS["provenance"] | {"config": {"steps": []}})]),
            ("damaged", [changed(OURS, provenance=OURS["provenance"] | {"time": {}})]),
            ("damaged", [changed(OURS, provenance=OURS["provenance"] | {"cpus": [[]]})]),
            ("damaged", json.dumps(OURS).replace('"median_s": ', '"median_s": 1e999, "a": ').encode()),
            ("damaged", json.dumps(OURS).replace('"ranks": ', '"ranks": 1' + 5000 * "0").encode()),
            ("damaged", json.dumps(OURS).replace('"method": "', '"method": "\\ud800').encode()),
            ("damaged", 100000 * b"["),
        ):
            with self.subTest(content=str(content)[:40]):
                self.assert_refused(names, self.main(good, self.write("bad", content)))

    def test_lines_end_at_a_line_feed_alone(self):
        ends = "\u2028\u2029\x85\x0b\x0c\x1c"
        kept = ends[:3]  # JSON allows these unescaped in strings
        records = [changed(OURS, notes=[kept], provenance=OURS["provenance"] | {"hosts": [kept]}), VENDOR_PACK, BASELINE]
        content = "".join(json.dumps(record, ensure_ascii=False) + "\r\n" for record in records).encode()
        self.assert_worse([], self.diff(content, content))

    def test_a_device_is_no_file(self):
        self.assert_refused("it is no file", self.main("/dev/zero", REFERENCE))

    def test_no_script_splits_lines_at_other_ends(self):
        scripts = [*(SOURCE / "results").glob("*.py"), *(SOURCE / "jobs").glob("*/*.py")]
        found = [path.name for path in scripts if path.parent.name != "test" and re.search(r"\.splitlines\(", path.read_text(encoding="utf-8"))]
        self.assertEqual(found, [])

    def test_arguments(self):
        for arguments in ((), (REFERENCE,), (REFERENCE, REFERENCE, "--tolerance", "-1"), (REFERENCE, REFERENCE, "--tolerance", "x")):
            with self.subTest(arguments=arguments):
                finished = self.main(*arguments)
                self.assertEqual((finished.returncode, finished.stdout), (2, ""))
                self.assertIn("usage:", finished.stderr)

class Script(DiffResults):
    def script(self, *arguments):
        return subprocess.run([SCRIPT, *arguments], capture_output=True, text=True, timeout=60, cwd=self.folder)

    def test_exit_codes(self):
        self.assert_worse([], self.script(REFERENCE, REFERENCE))
        self.assert_worse(["alltoallv, private"], self.script(REFERENCE, self.write("new", [changed(OURS, 2), BASELINE]), "--tolerance", "99"))
        self.assert_refused("cannot be read", self.script(REFERENCE, "missing"))

    def test_a_full_disk_is_one_line(self):
        scripts = [SOURCE / "results" / f"{name}.py" for name in ("diff", "gather", "import_astaroth_conf", "interpose", "predict", "reconstruct", "study", "tables")]
        for command in ((SCRIPT, REFERENCE, REFERENCE), *((script, "--help") for script in scripts), (SOURCE / "jobs" / "simgrid" / "replay.py", "--help")):
            with self.subTest(command=command), open("/dev/full", "w", encoding="utf-8") as full:
                finished = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, cwd=self.folder)
                self.assertEqual(finished.returncode, 3)
                self.assertRegex(finished.stderr, r"\A[a-z._-]+: stdout cannot be written \(No space left on device\): .*\n\Z")

    def test_help_teaches(self):
        finished = self.script("--help")
        self.assertEqual(finished.returncode, 0)
        for word in ("--tolerance", "--by-total", "ratio", "total", "Exit codes", "halocline compare"):
            self.assertIn(word, finished.stdout)


if __name__ == "__main__":
    unittest.main()
