# SPDX-License-Identifier: BSD-3-Clause
"""Tests results/study.py: the report on a study's records, the records that it leaves out, and the files that it
refuses. The records were written by the program and are given other ranks, times and so on."""

import contextlib
import copy
import csv
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

from halocline_program import all_methods, halocline

SOURCE = pathlib.Path(os.environ["HALOCLINE_SOURCE"])
sys.path.insert(0, str(SOURCE / "results"))
import records  # noqa: E402
import headline  # noqa: E402 - starts this test again with a Python that has the packages
import reports  # noqa: E402
import study  # the module that the script starts
import study_data  # noqa: E402
import study_plots  # noqa: E402

GRID = ("--local", "8", "8", "8", "--iterations", "3", "--warmup", "0")
REAL = {}  # subcommand -> records


def setUpModule():
    with tempfile.TemporaryDirectory() as folder:
        for command, arguments in (
            ("compare", (*GRID, "--methods", "alltoallv,shared,vendor-pack,vendor-p2p")),
            ("run", (*GRID[:4], "--steps", "3", "--methods", "p2p")),
            ("gather", ("--sizes", "1,4096", "--iterations", "2", "--ranks-per-node", "1")),
        ):
            outcome = halocline(command, *arguments, "--quiet", "--output", f"{folder}/{command}", ranks=2)
            if outcome.code != 0:
                raise AssertionError(outcome.stderr)
            REAL[command] = [json.loads(line) for line in pathlib.Path(folder, command).read_text().splitlines()]


def statistics(median):
    return {"median_s": median, "p10_s": median * 0.9, "p90_s": median * 1.5, "min_s": median * 0.5, "max_s": median * 2}


def compare(ranks, totals, oversubscribed=None, **fields):
    """Returns records of methods with these median totals, a quarter of it packing. The first vendor method is the
    baseline."""
    out = []
    baseline = next((method for method in totals if method.startswith("vendor-")), None)
    for method, total in totals.items():
        record = copy.deepcopy(REAL["compare"][0])
        record |= {"method": method, "exchange": method, "chosen": method, "ranks": ranks, "storage": "private", "shape": "direct"}
        record |= {"baseline": baseline, "baseline_storage": "private", "baseline_shape": "direct", "notes": []}
        record["ratio_to_baseline"] = totals[baseline] / total if baseline else None
        record["phases"] |= {"pack": statistics(total / 4), "transfer": statistics(total / 2), "unpack": statistics(total / 4)}
        record["phases"]["total"] = statistics(total)
        record["provenance"]["environment"] = {} if oversubscribed is None else {"OMPI_MCA_mpi_oversubscribe": oversubscribed}
        out.append(record | fields)
    return out


def run(ranks, total):
    record = copy.deepcopy(REAL["run"][0]) | {"ranks": ranks}
    record["phases"] |= {"total": statistics(total), "compute": statistics(total / 2)}
    return [record]


class OfStudy(unittest.TestCase):
    """Makes studies of {name of a point: (group, ranks, command, records, or None if the point is not done)}."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.raw, self.out = self.folder / "raw", self.folder / "out"
        self.raw.mkdir()

    def weak(self):
        return {
            "a": ("weak", 2, "compare", compare(2, {"alltoallv": 1e-3, "p2p": 3e-3, "vendor-pack": 4e-3})),
            "b": ("weak", 4, "compare", compare(4, {"alltoallv": 2e-3, "p2p": 3e-3, "vendor-pack": 5e-3})),
        }

    def write(self, of, scaling="weak", **fields):
        names = list(dict.fromkeys(group for group, *_ in of.values()))
        content = {
            "schema": "halocline-study/1", "name": "mine", "title": "My study", "config": "", "site": "here", "launcher": "mpirun",
            "groups": [{"name": name, "title": f"title of {name}", "scaling": scaling} for name in names],
            "points": [
                {"name": name, "group": group, "nodes": 1, "ranks": ranks, "command": command}
                for name, (group, ranks, command, _) in of.items()
            ],
        }  # fmt: skip
        (self.raw / "study.json").write_text(json.dumps(content | fields))
        for name, (*_, of_point) in of.items():
            if of_point is not None:
                (self.raw / f"{name}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in of_point))

    def study(self, *arguments, plots=False):
        """Runs the script without starting Python again. Draws nothing unless `plots`, which takes most of the time."""
        out, err = io.StringIO(), io.StringIO()
        hidden = contextlib.nullcontext() if plots else mock.patch.object(study_plots, "draw", return_value={})
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), hidden:
            try:
                code = study.main(list(arguments) or ["mine", "--raw", str(self.raw), "--out", str(self.out)])
            except SystemExit as end:
                code = end.code
        return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())

    def made(self, *, code=0):
        """Returns (report, rows of data.csv)."""
        finished = self.study()
        self.assertEqual(finished.returncode, code, finished.stderr)
        with (self.out / "data.csv").open(newline="") as file:
            return (self.out / "REPORT.md").read_text(), list(csv.DictReader(file))

    def of_points(self, report, point):
        """Returns the cells of a point in the table of points."""
        found = re.search(rf"(?m)^\| {re.escape(point)} \| .*$", report.partition("\n## Points\n")[2])
        return [cell.strip() for cell in found.group().strip("|").split("|")]


class Numbers(OfStudy):
    def test_weak_efficiency(self):
        self.write(self.weak())
        report, _ = self.made()
        self.assertIn("### Weak scaling, title of weak\n", report)
        self.assertIn("| alltoallv | 1.00 ms; 1.00 | 2.00 ms; 0.50 |\n", report)
        self.assertIn("| p2p | 3.00 ms; 1.00 | 3.00 ms; 1.00 |\n", report)

    def test_strong_speed_up_and_efficiency(self):
        self.write(self.weak() | {"c": ("weak", 8, "compare", compare(8, {"alltoallv": 2.5e-4, "vendor-pack": 5e-3}))}, "strong")
        report, _ = self.made()
        self.assertIn("| alltoallv | 1.00 ms; 2.00x, 1.00 | 2.00 ms; 1.00x, 0.25 | 250 us; 8.00x, 1.00 |\n", report)
        self.assertIn("| p2p | 3.00 ms; 2.00x, 1.00 | 3.00 ms; 2.00x, 0.50 | - |\n", report)

    def test_efficiency_begins_where_something_is_sent(self):
        alone = compare(1, {"alltoallv": 1e-6, "p2p": 1e-6, "vendor-pack": 1e-6}, bytes_to_others=0)
        steps = {f"r{ranks}": ("weak", ranks, "run", run(ranks, total)) for ranks, total in ((1, 4e-3), (2, 8e-3))}
        self.write({"0": ("weak", 1, "compare", alone)} | self.weak() | steps)
        report, _ = self.made()
        self.assertIn("| alltoallv | 1.00 us | 1.00 ms; 1.00 | 2.00 ms; 0.50 |\n", report)
        self.assertIn("| run: p2p | 4.00 ms; 1.00 | 8.00 ms; 0.50 | - |\n", report)

    def test_noise_is_said(self):
        points = self.weak()
        for record in points["b"][3]:
            if record["method"] == "vendor-pack":
                record["phases"]["total"] |= {"p90_s": record["phases"]["total"]["p10_s"] * 3.1}
        self.write(points)
        report, _ = self.made()
        self.assertIn("fastest: b.**\n", report)
        self.assertEqual(self.of_points(report, "a")[3], "done, cores not known")
        self.assertEqual(self.of_points(report, "b")[3], "done, noisy, cores not known")

    def test_grids_that_should_be_the_same_and_are_not_are_two_curves(self):
        points = self.weak()
        for record in points["b"][3]:
            record["local"] = [9, 9, 9]
        self.write(points)
        loaded = study_data.Study(self.raw)
        curves = loaded.curves(loaded.groups["weak"], "compare")
        labels = sorted(curves.label[curves.method == "p2p"])
        self.assertEqual(labels, ["p2p, local 8 x 8 x 8", "p2p, local 9 x 9 x 9"])

    def test_best_of_ours_and_of_the_vendors(self):
        points = self.weak()
        points["b"][3].extend(compare(4, {"vendor-p2p": 1.5e-3}, ratio_to_baseline=None))
        self.write(points)
        report, _ = self.made()
        self.assertIn("| a | 2 ranks on 1 node | alltoallv: 1.00 ms | vendor-pack: 4.00 ms | 4.00x | 2.40x to 6.67x |\n", report)
        self.assertIn("| b | 4 ranks on 1 node | alltoallv: 2.00 ms | vendor-p2p: 1.50 ms | 0.75x | 0.45x to 1.25x |\n", report)

    def test_what_is_sent_to_nobody_is_compared_with_nothing(self):
        alone = compare(1, {"alltoallv": 1e-6, "vendor-pack": 1e-3}, bytes_to_others=0)
        self.write({"0": ("weak", 1, "compare", alone)} | self.weak())
        self.assertEqual(list(study_data.Study(self.raw).compared().point), ["a", "b"])

    def test_run_and_its_phases(self):
        self.write(self.weak() | {"r": ("weak", 2, "run", run(2, 8e-3)), "s": ("weak", 4, "run", run(4, 16e-3))})
        report, _ = self.made()
        self.assertIn("| run: p2p | 8.00 ms; 1.00 | 16.0 ms; 0.50 |\n", report)
        self.assertRegex(report, r"\| run: p2p \| 4 ranks on 1 node \|.* 8.00 ms \| 16.0 ms \|\n")
        self.assertIn("| alltoallv | 4 ranks on 1 node | 500 us | 1.00 ms | 500 us | - | 2.00 ms |\n", report)

    def test_the_fastest_variant_at_the_most_ranks_stands_for_a_method(self):
        points = self.weak()
        for name, total in (("a", 9e-3), ("b", 1e-3)):
            points[name][3].extend(compare(points[name][1], {"p2p": total}, shape="axes"))
        self.write(points)
        report, _ = self.made()
        self.assertIn("| p2p, axes | 9.00 ms; 1.00 | 1.00 ms; 9.00 |\n", report)
        self.assertNotIn("| p2p |", report)

    def test_the_same_input_gives_the_same_output(self):
        self.write(self.weak())
        self.made()
        before = {path.name: path.read_bytes() for path in self.out.iterdir()}
        self.made()
        self.assertEqual({path.name: path.read_bytes() for path in self.out.iterdir()}, before)


class Table(OfStudy):
    def test_a_row_for_each_point_method_and_phase(self):
        self.write(self.weak() | {"g": ("gathers", 2, "gather", REAL["gather"]), "r": ("weak", 2, "run", run(2, 8e-3))})
        _, rows = self.made()
        of = [(row["point"], row["method"], row["phase"]) for row in rows if row["command"] == "compare"]
        phases = ("pack", "transfer", "unpack", "total")
        self.assertEqual(
            of, [(point, method, phase) for point in "ab" for method in ("alltoallv", "p2p", "vendor-pack") for phase in phases]
        )
        gathers = [row for row in rows if row["point"] == "g"]
        self.assertEqual(len(gathers), len(REAL["gather"]))
        self.assertEqual({(row["phase"], row["nodes"], row["nodes_emulated"]) for row in gathers}, {("total", "2", "true")})
        self.assertEqual([float(row["median_s"]) for row in gathers], [record["median_s"] for record in REAL["gather"]])
        total = next(row for row in rows if (row["point"], row["method"], row["phase"]) == ("b", "alltoallv", "total"))
        for column, value in (
            ("study", "mine"), ("scaling", "weak"), ("ranks", "4"), ("ranks_per_node", "4"), ("local_y", "8"),
            ("median_s", "0.002"),
            ("ratio_to_baseline", "2.5"), ("baseline", "vendor-pack"), ("verified", "true"), ("oversubscribed", ""), ("order", ""),
        ):  # fmt: skip
            self.assertEqual(total[column], value, column)
        self.assertTrue(all(row["ratio_to_baseline"] == "" for row in rows if row["phase"] != "total"))

    def test_what_the_program_writes(self):
        self.write({command: ("of-" + command, 2, command, REAL[command]) for command in REAL}, "none")
        report, rows = self.made()
        self.assertEqual({row["command"] for row in rows}, set(REAL))
        self.assertIn("shared", {row["method"] for row in rows})
        self.assertIn("## Gathers", report)
        self.assertIn(REAL["compare"][0]["provenance"]["mpi_library"], report)

    def test_the_report_answers_first(self):
        self.write(self.weak())
        report, _ = self.made()
        place = "4 ranks on 1 node"
        self.assertIn(
            f"# My study\n\nWith {place}, `alltoallv` exchanges the halo **2.50 x as fast** as the MPI's fastest method, `vendor-pack`: "
            "in 2.00 ms instead of 5.00 ms. Over 2 points, our fastest method is 2.50 to 4.00 x as fast as the MPI's fastest. "
            "In weak scaling it keeps 50 % of its speed from 2 to 4 ranks.\n",
            report,
        )

    def test_the_answer_tells_of_more_ranks_than_cores(self):
        points = self.weak()
        for name, crowded in (("a", "0"), ("b", "1")):
            for record in points[name][3]:
                record["provenance"]["environment"] = {"OMPI_MCA_mpi_oversubscribe": crowded}
        self.write(points | {"c": ("other", 2, "compare", compare(2, {"alltoallv": 1e-3, "vendor-pack": 2e-3}, "0"))})
        report, _ = self.made()
        self.assertIn("\n\nWith 2 ranks on 1 node, ", report)
        self.assertIn("Over 2 points with a core for each rank, our fastest method is 2.00 to 4.00 x as fast as the MPI's fastest.", report)
        self.assertIn("50 % of its speed from 2 to 4 ranks, which are more than the cores.\n", report)

    def test_every_column_is_documented(self):
        section = (SOURCE / "results" / "studies.md").read_text(encoding="utf-8")
        for column in study.COLUMNS:
            name = re.sub("_[xyz]$", "", column)
            self.assertIn(f"`{name}`", section)


class Unverified(OfStudy):
    def test_what_is_not_verified_is_in_no_table_or_ratio(self):
        points = self.weak()
        points["b"][3][0]["verified"] = False  # though it has times
        self.write(points)
        finished = self.study()
        self.assertEqual(finished.returncode, 1)
        self.assertIn("study.py: not verified, and left out of plots and ratios: b\n", finished.stderr)
        report, rows = self.made(code=1)
        self.assertEqual(report.splitlines()[2], "**Not verified, and in no plot, table or ratio: b: alltoallv.**")
        self.assertIn("| alltoallv | 1.00 ms; 1.00 | - |\n", report)
        self.assertIn("| b | 4 ranks on 1 node | p2p: 3.00 ms |", report)
        self.assertEqual(self.of_points(report, "b")[3], "done, **NOT VERIFIED**, cores not known")
        wrong = [row for row in rows if row["verified"] == "false"]
        self.assertEqual({(row["point"], row["method"], row["ratio_to_baseline"]) for row in wrong}, {("b", "alltoallv", "")})

    def test_a_point_that_failed_is_not_begun_or_done(self):
        points = self.weak()
        wrong = points["b"][3]
        wrong[0]["verified"] = False
        self.write(points | {"b": (*points["b"][:3], None), "c": ("weak", 8, "compare", None)})
        (self.raw / "b.failed.jsonl").write_text("".join(json.dumps(record) + "\n" for record in wrong))
        for name, code in (("b", 1), ("c", 3)):
            (self.raw / f"{name}.log").write_text(f"# its header\nsome output\n# exit code {code}\n")
        report, _ = self.made(code=1)
        self.assertEqual(report.splitlines()[2], "**Not verified, and in no plot, table or ratio: b: alltoallv.**")
        self.assertIn("\n**Failed: b, c.**\n", report)
        self.assertEqual(self.of_points(report, "b")[3], "**failed**, **NOT VERIFIED**, cores not known")
        self.assertEqual(self.of_points(report, "c")[3], "**failed, exit code 3**: c.log")
        self.assertIn("| b | 4 ranks on 1 node | p2p: 3.00 ms |", report)

    def test_what_was_not_timed_has_a_row(self):
        points = self.weak()
        record = points["b"][3][0]
        record |= {"verified": False, "ratio_to_baseline": None, "phases": dict.fromkeys(record["phases"])}
        self.write(points)
        _, rows = self.made(code=1)
        wrong = [row for row in rows if row["verified"] == "false"]
        self.assertEqual([(row["method"], row["phase"], row["median_s"]) for row in wrong], [("alltoallv", "total", "")])

    def test_no_ratio_to_a_baseline_that_is_not_verified(self):
        points = self.weak()
        points["b"][3][2]["verified"] = False
        self.write(points)
        report, rows = self.made(code=1)
        self.assertEqual({row["ratio_to_baseline"] for row in rows if row["point"] == "b"}, {""})
        self.assertNotIn("| b | 4 ranks", report)


class Circumstances(OfStudy):
    def test_points_that_are_not_done(self):
        (self.raw / "d.log").write_text("")
        self.write(self.weak() | {"c": ("weak", 8, "compare", None), "d": ("weak", 16, "run", None)})
        (self.raw / "old.jsonl").write_text("")
        report, _ = self.made()
        self.assertIn("\n**Not done yet: 2 of 4 points.**\n", report)
        self.assertEqual(self.of_points(report, "a")[3], "done, cores not known")
        self.assertEqual(self.of_points(report, "c")[3], "not done")
        self.assertEqual(self.of_points(report, "d")[3], "begun, not finished: d.log")
        self.assertIn("Not of this study, and not used: old.jsonl.", report)

    def oversubscribed(self, records_of_point, session=""):
        (self.raw / "session-1.txt").write_text(session)
        self.write({"a": ("weak", 4, "compare", records_of_point)})
        report, rows = self.made()
        self.assertEqual("**More ranks than cores: a.**" in report, rows[0]["oversubscribed"] == "true")
        return rows[0]["oversubscribed"]

    def test_more_ranks_than_cores(self):
        times = {"p2p": 1e-3, "vendor-pack": 1e-3}
        cpus = (
            "CPU(s):                  {}\n  On-line CPU(s) list:   0,1\n    Thread(s) per core:  {}\n  NUMA node0 CPU(s):     0-1\n"
        )
        self.assertEqual(self.oversubscribed(compare(4, times)), "")
        self.assertEqual(self.oversubscribed(compare(4, times, "0")), "false")
        self.assertEqual(self.oversubscribed(compare(4, times, "1")), "true")
        self.assertEqual(self.oversubscribed(compare(4, times), cpus.format(4, 1)), "false")
        self.assertEqual(self.oversubscribed(compare(4, times), cpus.format(4, 2)), "true")
        self.assertEqual(self.oversubscribed(compare(4, times, "0"), cpus.format(2, 1)), "true")

    def test_emulated_nodes(self):
        """Checks nodes emulated by --ranks-per-node, and those of a batch system with several nodes on one machine."""
        for fields in ({"nodes": 2, "nodes_emulated": True}, {"nodes": 2, "nodes_emulated": False}):
            self.write({"a": ("weak", 4, "compare", compare(4, {"p2p": 1e-3, "vendor-pack": 1e-3}, **fields))})
            report, rows = self.made()
            self.assertEqual((rows[0]["nodes_emulated"], rows[0]["ranks_per_node"]), ("true", "2"))
            self.assertIn("emulated nodes", self.of_points(report, "a")[3])
            self.assertIn("4 ranks on 2 emulated nodes", report)

    def test_a_node_less_than_asked_for_is_said(self):
        self.write(self.weak(), points=[{"name": "a", "group": "weak", "nodes": 2, "ranks": 2, "command": "compare"}])
        report, _ = self.made()
        self.assertIn("asked for 2 nodes", self.of_points(report, "a")[3])
        self.assertEqual(self.of_points(report, "a")[5], "1")

    def test_other_commits(self):
        points = self.weak()
        points["b"][3][0]["provenance"] = points["b"][3][0]["provenance"] | {"git": "f" * 40, "dirty": False}
        self.write(points)
        report, _ = self.made()
        self.assertRegex(report, r"\*\*Points are of different commits \(.*; ffffffffffff\): compare no times across them\.\*\*")

    def test_notes_are_passed_on(self):
        self.write(self.weak() | {"c": ("weak", 8, "compare", compare(8, {"p2p": 1e-3}, notes=["stopped early"]))})
        report, rows = self.made()
        self.assertIn("\n- c: stopped early\n", report)
        self.assertEqual(rows[-1]["notes"], "stopped early")

    def test_a_system_model_alone(self):
        self.write({"m": ("models", 1, "calibrate", None)}, "none")
        (self.raw / "m.json").write_text('{"schema": "halocline-model/1"}')
        report, rows = self.made()
        self.assertEqual((rows, self.of_points(report, "m")[3]), ([], "done"))


class BadInput(OfStudy):
    def assert_refused(self, *names):
        """Checks that one line is printed, and that former results stay."""
        self.out.mkdir(exist_ok=True)
        (self.out / "data.csv").write_text("before")
        finished = self.study()
        self.assertEqual((finished.returncode, finished.stdout), (2, ""))
        self.assertRegex(finished.stderr, r"\Astudy\.py: .*\n\Z")
        for name in names:
            self.assertIn(name, finished.stderr)
        self.assertEqual([(path.name, path.read_text()) for path in self.out.iterdir()], [("data.csv", "before")])

    def test_records(self):
        line = json.dumps(self.weak()["a"][3][0])
        other = lambda **fields: json.dumps(json.loads(line) | fields)  # noqa: E731
        for content, *names in (
            (line + "\n" + line[:200], "line 2 of", "a.jsonl is cut off or damaged"),
            (line[:200] + "\n" + line, "line 1 of", "a.jsonl is damaged"),
            (line.replace('"median_s": 0.001', '"median_s": NaN'), "NaN is no JSON"),
            (re.sub('"p10_s": 0.0009[0-9]*', '"p10_s": 0', line), "phases.total is not 0 < p10_s"),
            (re.sub('"p90_s": 0.0015', '"p90_s": 0', line), "phases.total is not 0 < p10_s <= median_s <= p90_s"),
            (other(ranks=4), "no record of this point (ranks is 4, not 2)"),
            (other(kind="run"), "kind is run, not compare"),
            (other(schema="halocline/2"), 'schema is "halocline/2"'),
            ("[]", "the record is no object"),
            (line + "\n" + line, "lines 1 and 2 of", "same experiment"),
            ("", "a.jsonl has no records", "repeats point a alone"),
            (json.dumps(REAL["gather"][0]), "no record of this point"),
        ):
            with self.subTest(names=names):
                self.write(self.weak())
                (self.raw / "a.jsonl").write_text(content)
                self.assert_refused(*names)
        self.write(self.weak())
        (self.raw / "a.jsonl").write_bytes(b"\xff")
        self.assert_refused("a.jsonl cannot be read")

    def test_study(self):
        self.assert_refused("study.json cannot be read", "jobs/studies/run.sh")
        for fields, name in (
            ({"schema": "halocline-study/2"}, 'schema is "halocline-study/2"'),
            ({"groups": []}, "no group weak"),
            ({"points": [{"name": "a"}]}, "points[0] has no group, nodes, ranks, command"),
            ({"points": [{"name": "../a", "group": "weak", "nodes": 1, "ranks": 2, "command": "compare"}]}, "points[0].name"),
        ):
            with self.subTest(name=name):
                self.write(self.weak(), **fields)
                self.assert_refused("study.json cannot be used", name)
        (self.raw / "study.json").write_text("{")
        self.assert_refused("study.json is damaged")
        self.write({"a": ("weak", 2, "compare", None), "m": ("weak", 2, "calibrate", None)})
        (self.raw / "a.jsonl").unlink(missing_ok=True)
        self.assert_refused("has no results yet")
        for model in ("{", "[]", "{}"):
            (self.raw / "m.json").write_text(model)
            self.assert_refused("m.json is", "repeats point m alone")

    def test_arguments(self):
        for arguments in ((), ("a/b",), ("..",), ("mine", "--plots")):
            finished = self.study(*arguments) if arguments else self.study("")
            self.assertEqual((finished.returncode, finished.stdout), (2, ""), arguments)
        self.assertIn("study.json cannot be read", self.study("no-such-study").stderr)
        self.write(self.weak())
        self.out.write_text("a file")
        finished = self.study()
        self.assertEqual(finished.returncode, 2)
        self.assertRegex(finished.stderr, r"study\.py: .* cannot be written .*--out\n\Z")

    def test_nothing_is_half_written(self):
        self.write(self.weak())
        self.made()
        before = {path.name: path.read_bytes() for path in self.out.iterdir()}
        self.write(self.weak() | {"c": ("weak", 8, "compare", compare(8, {"p2p": 1e-3}))})
        with mock.patch.object(study, "report", side_effect=OSError(28, "No space left on device", "REPORT.md")):
            self.assertEqual(self.study().returncode, 2)
        self.assertEqual({path.name: path.read_bytes() for path in self.out.iterdir()}, before)


class Plots(OfStudy):
    def test_plots_of_an_earlier_report_are_removed(self):
        self.out.mkdir()
        for name in ("scaling.svg", "scaling.png", "mine.svg"):
            (self.out / name).write_text("of an earlier study")
        self.write(self.weak())
        finished = self.study()
        self.assertEqual((finished.returncode, finished.stderr), (0, "study.py: removed, not of these results: scaling.png, scaling.svg\n"))
        self.assertEqual(sorted(path.name for path in self.out.iterdir()), ["REPORT.html", "REPORT.md", "data.csv", "mine.svg"])
        self.assertNotIn("![", (self.out / "REPORT.md").read_text())

    def test_a_missing_package_is_said_before(self):
        finished = self.study("--check")
        self.assertEqual((finished.returncode, finished.stdout, finished.stderr), (0, "", ""))
        err = io.StringIO()
        with mock.patch.object(records, "PACKAGES", ("json", "no_such_package")), contextlib.redirect_stderr(err):
            with self.assertRaises(SystemExit) as end:
                records.need_packages()
        self.assertEqual(end.exception.code, 3)
        self.assertRegex(err.getvalue(), r"\A\S+: \S+ has no no_such_package: run jobs/local/reports\.sh, [^\n]+\n\Z")

    def test_all_of_them(self):
        self.write(self.weak() | {"g": ("gathers", 2, "gather", REAL["gather"]), "r": ("weak", 2, "run", run(2, 8e-3))})
        arguments = ("mine", "--raw", str(self.raw), "--out", str(self.out), "--formats", "png,pdf")
        finished = self.study(*arguments, plots=True)
        self.assertEqual((finished.returncode, finished.stderr), (0, ""))
        report = (self.out / "REPORT.md").read_text()
        for name in study_plots.NAMES:
            self.assertTrue((self.out / f"{name}.png").read_bytes().startswith(b"\x89PNG"), name)
            self.assertTrue((self.out / f"{name}.pdf").read_bytes().startswith(b"%PDF"), name)
            self.assertIn(f"]({name}.svg)", report)
        self.assertEqual(len(list(self.out.iterdir())), 3 + 3 * len(study_plots.NAMES))
        self.assertRegex(report, r"\A# My study\n\nWith [^\n]+\n\n!\[[^]]+\]\(fastest\.svg\)\n")
        page = (self.out / "REPORT.html").read_text()
        self.assertEqual(len(re.findall('<img src="data:image/svg', page)), len(study_plots.NAMES))
        self.assertIn("prefers-color-scheme: dark", page)
        self.assertEqual(page.count("<tr>"), len(re.findall(r"(?m)^\| ", report)))
        self.assertNotRegex(page, r'(src|href)="(?!data:)|url\(|@import|<link|<script')  # nothing is fetched
        self.assertIn("content=\"default-src 'none'; ", page)

    def test_the_page_shows_titles_as_they_are(self):
        self.write(self.weak(), title="A <script> & {b}")
        self.assertEqual(self.study().returncode, 0)
        page = (self.out / "REPORT.html").read_text()
        for tag in ("title", "h1"):
            self.assertIn(f"<{tag}>A &lt;script&gt; &amp; {{b}}</{tag}>", page)

    def test_empty_ones_are_not_drawn(self):
        self.write({"a": self.weak()["a"]})
        finished = self.study(plots=True)
        self.assertEqual((finished.returncode, finished.stderr), (0, ""))
        self.assertEqual({path.stem for path in self.out.glob("*.svg")}, {"fastest", "methods", "phases"})

    def test_axes_of_every_figure(self):
        """Checks that each panel has data, and that all panels of a figure have the same type of axis. An axis ends
        at a tick with a number."""
        alone = compare(1, {"p2p": 1e-6, "shared": 1e-6, "vendor-pack": 1e-6}, bytes_to_others=0)
        ranks = [2**power for power in range(1, 12)]
        for speed in (0.5, 3, 4e4):
            totals = [{"p2p": 1e-3 * at, "vendor-pack": 1e-3 * at * speed} for at in range(1, 12)]
            many = {f"c{r}": ("weak", r, "compare", compare(r, total, nodes=r // 2)) for r, total in zip(ranks, totals)}
            only = {f"s{r}": ("shared", r, "compare", compare(r, {"shared": 1e-3, "vendor-p2p": 2e-3})) for r in (2, 4)}
            for of_shared in only.values():
                for record in of_shared[3]:
                    record["phases"] |= dict.fromkeys(("pack", "unpack"))
            for scaling in ("weak", "strong"):
                self.write({"0": ("weak", 1, "compare", alone)} | many | only, scaling)
                self.check_axes(study_data.Study(self.raw))

    def check_axes(self, loaded):
        pyplot = reports.pyplot
        self.addCleanup(pyplot.close, "all")
        panels = {}
        for name in ("fastest", "figure12", "scaling", "methods", "phases"):
            figure = getattr(study_plots, f"draw_{name}")(loaded)
            axes = [axis for axis in figure.axes if axis.axison]
            panels[name] = len(axes)
            which = "x" if name in ("methods", "phases") else "y"
            kind = "linear" if name == "phases" else "log"
            for axis in axes:
                self.assertTrue(axis.lines or axis.patches)
                self.assertEqual(getattr(axis, f"get_{which}scale")(), kind)
                (low, high), ticks = getattr(axis, f"get_{which}lim")(), getattr(axis, f"get_{which}ticks")()
                self.assertLessEqual(high / ticks[-1], (ticks[-1] / ticks[0]) ** 0.031 if kind == "log" else 1)
                self.assertTrue(getattr(axis, f"get_{which}ticklabels")()[-1].get_text())
                self.assertLessEqual(len(ticks), 9)
                if kind == "log":
                    values = [value for line in axis.lines for value in getattr(line, f"get_{which}data")() if value]
                    self.assertTrue(low <= min(values) and max(values) <= high)
        self.assertEqual(panels, {"fastest": 1, "figure12": 3, "scaling": 4, "methods": 2, "phases": 6})
        pyplot.close("all")

    def test_ranks_and_nodes_in_words_do_not_overlap(self):
        pyplot = reports.pyplot
        self.addCleanup(pyplot.close, "all")
        for points in (3, 10, 16):
            ranks = [2**power for power in range(1, points + 1)]
            totals = {"p2p": 1e-3, "vendor-pack": 2e-3}
            self.write({f"c{r}": ("weak", r, "compare", compare(r, totals, nodes=r // 2)) for r in ranks})
            for function in (study_plots.draw_fastest, study_plots.draw_scaling):
                figure = function(study_data.Study(self.raw))
                figure.canvas.draw()
                labels = [label for label in figure.axes[0].get_xticklabels() if label.get_text()]
                self.assertGreaterEqual(len(labels), min(points, 8))
                self.assertEqual(labels[-1].get_text(), f"{ranks[-1]} ranks\n{ranks[-1] // 2} nodes*")
                ends = [label.get_window_extent() for label in labels]
                wide = figure.dpi * 0.3 if labels[0].get_rotation() else max(end.width for end in ends)
                self.assertGreater(min(after.x1 - before.x1 for before, after in zip(ends, ends[1:])), wide)

    def test_what_is_in_them(self):
        points = self.weak()
        points["b"] = (
            "weak",
            4,
            "compare",
            compare(4, {"alltoallv": 2e-3, "p2p": 3e-3, "vendor-pack": 5e-3}, "1", nodes=2, nodes_emulated=True),
        )
        points["b"][3][1]["verified"] = False
        self.write(points)
        loaded = study_data.Study(self.raw)
        pyplot = reports.pyplot
        figure = study_plots.draw_methods(loaded)
        self.addCleanup(pyplot.close, "all")
        self.assertEqual([text.get_text() for text in figure.axes[0].get_yticklabels()], ["alltoallv", "vendor-pack"])
        self.assertEqual(figure.axes[0].get_title("left"), "Weak scaling, title of weak: 4 ranks on 2 emulated nodes")
        self.assertEqual(figure.axes[0].patches[0].get_facecolor(), (1, 1, 1, 1))
        figure = study_plots.draw_fastest(loaded)
        bars, lines = figure.axes[0].patches, figure.axes[0].lines
        self.assertEqual([round(1 + bar.get_height(), 6) for bar in bars], [4, 2.5])
        self.assertEqual([[round(y, 3) for y in line.get_ydata()] for line in lines[:2]], [[2.4, 6.667], [1.5, 4.167]])
        self.assertEqual([bar.get_facecolor() == (1, 1, 1, 1) for bar in bars], [False, True])
        figure = study_plots.draw_scaling(loaded)
        axis = figure.axes[0]
        self.assertEqual([text.get_text() for text in axis.get_xticklabels()], ["2 ranks\n1 node", "4 ranks\n2 nodes*"])
        marks = [line for line in axis.lines if line.get_marker() in set("soX")]
        self.assertEqual(sorted(y for line in marks for y in line.get_ydata()), [1e-3, 2e-3, 3e-3, 4e-3, 5e-3])
        hollow = sorted(y for line in marks if line.get_markerfacecolor() == "white" for y in line.get_ydata())
        self.assertEqual(hollow, [2e-3, 5e-3])
        caption = figure._supxlabel.get_text().replace("\n", " ")
        for part in (
            "Hollow: more ranks than cores.",
            "emulated nodes",
            "1 record not verified, left out",
            REAL["compare"][0]["provenance"]["git"][:12],
        ):
            self.assertIn(part, caption)

    def test_every_exchange_has_a_style_of_its_own(self):
        names = all_methods()
        self.assertEqual(sorted(study_plots.STYLES), sorted(names))
        self.assertEqual(len(set(study_plots.STYLES.values())), len(names))
        self.assertEqual(len({color for color, _ in study_plots.STYLES.values()}), len(names))


class Schema(unittest.TestCase):
    def test_records_of_the_program(self):
        for command, of_command in REAL.items():
            for record in of_command:
                self.assertIsNone(records.fault(record, "gather.schema.json" if command == "gather" else "schema.json"))

    def test_what_differs_is_named(self):
        for path, value, text in (
            (("ranks",), 0, "ranks is 0"),
            (("ranks",), True, "ranks is no integer"),
            (("ranks",), 2.5, "ranks is no integer"),
            (("neighbors",), 27, "neighbors is 27"),
            (("ratio_to_baseline",), 0, "ratio_to_baseline is 0"),
            (("local",), [1, 2], "local has 2 items"),
            (("local", 1), 0, "local[1] is 0"),
            (("phases", "pack", "p10_s"), -1, "phases.pack.p10_s is -1"),
            (("phases", "pack"), 3, "phases.pack is no object or null"),
            (("phases", "other"), None, "phases has an unknown other"),
            (("provenance", "time"), "today", 'provenance.time is "today"'),
            (("provenance", "environment", "A"), 3, "provenance.environment.A is no string"),
            (("layout",), "soaos", 'layout is "soaos"'),
        ):
            with self.subTest(text=text):
                record = inner = copy.deepcopy(REAL["compare"][0])
                for key in path[:-1]:
                    inner = inner[key]
                inner[path[-1]] = value
                self.assertEqual(records.fault(record, "schema.json"), text)
        record = copy.deepcopy(REAL["compare"][0])
        del record["phases"]["pack"], record["phases"]["total"]
        self.assertEqual(records.fault(record, "schema.json"), "phases has no pack, total")


class Script(OfStudy):
    def test_help_teaches(self):
        finished = subprocess.run(
            [sys.executable, SOURCE / "results" / "study.py", "--help"], capture_output=True, text=True, timeout=60, check=False
        )
        self.assertEqual(finished.returncode, 0)
        for word in ("data.csv", "REPORT.md", "REPORT.html", "--raw", "--out", "Exit codes", *study_plots.NAMES):
            self.assertIn(word, finished.stdout)


class Headline(unittest.TestCase):
    """Tests the figure of README.md."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def headline(self, rows="| shared | 2.5 | 7.5 |\n| p2p | 2 | 1 |\n", figure="out.svg"):
        table = self.folder / "table.md"
        table.write_text("## Speed\n\n| method | A | B |\n|---|---:|---:|\n" + rows)
        err = io.StringIO()
        with contextlib.redirect_stderr(err):
            try:
                code = headline.main([str(table), str(self.folder / figure)])
            except SystemExit as end:
                code = end.code
        return code, err.getvalue()

    def test_every_bar_is_inside(self):
        with mock.patch("matplotlib.axes.Axes.set_ylim", autospec=True) as limits:
            self.assertEqual(self.headline(), (0, ""))
        self.assertGreater(limits.call_args[0][2], 7.5)
        self.assertIn("<svg", (self.folder / "out.svg").read_text())

    def test_what_cannot_be_drawn_is_one_line(self):
        for arguments, message in (
            ({"rows": "| shared | 2.5 | 3 |\n"}, "table.md has no row p2p with a speed for each MPI: name"),
            ({"rows": "| shared | 2.5 | 3 |\n| p2p | - | 3 |\n"}, "table.md is damaged (could not convert"),
            ({"figure": "none/out.svg"}, "out.svg cannot be written (No such file or directory): name another"),
        ):
            with self.subTest(message=message):
                code, said = self.headline(**arguments)
                self.assertEqual((code, said.count("\n")), (2, 1), said)
                self.assertIn(message, said)


if __name__ == "__main__":
    unittest.main(warnings="ignore")  # hides warnings of matplotlib's own code
