# SPDX-License-Identifier: BSD-3-Clause
"""Tests halocline gather: each variant in each order, records, tables, and refusals."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

from halocline_program import halocline, several

SOURCE = pathlib.Path(os.environ["HALOCLINE_SOURCE"])
QUICK = ("--iterations", "3", "--warmup", "1", "--ranks-per-node", "2")
FORCED = ["hier-forced-contiguous", "hier-forced-indexed"]


class Gather(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.directory = pathlib.Path(folder.name)

    def gather(self, *arguments, ranks=4):
        return halocline("gather", *arguments, ranks=ranks, cwd=self.directory)

    def records(self, *arguments, ranks=4):
        (self.directory / "out").unlink(missing_ok=True)
        outcome = self.gather(*arguments, "--output", "out", ranks=ranks)
        self.assertEqual(outcome.code, 0, outcome.stderr)
        return [json.loads(line) for line in (self.directory / "out").read_text().splitlines()]

    def test_every_variant_is_verified_in_every_order(self):
        records = self.records(*QUICK, "--order", "ordered,reversed,round-robin,random", "--sizes", "1,1000", "--root", "2")
        self.assertTrue(all(record["verified"] for record in records))
        variants = json.loads((SOURCE / "results" / "gather.schema.json").read_text())["properties"]["variant"]["enum"]
        expected = []
        for order in ("ordered", "reversed", "round-robin", "random"):
            nodes_in_order = order in ("ordered", "reversed")
            for size in (1, 1000):
                expected += [(order, size, v) for v in variants if v not in FORCED or nodes_in_order]
        self.assertEqual([(r["order"], r["bytes_per_rank"], r["variant"]) for r in records], expected)

    def test_records_follow_the_schema(self):
        schema = json.loads((SOURCE / "results" / "gather.schema.json").read_text())
        provenance = json.loads((SOURCE / "results" / "schema.json").read_text())["properties"]["provenance"]["required"]
        records = self.records(*QUICK, "--order", "round-robin", "--sizes", "4096", "--csv", "csv")
        for record in records:
            self.assertEqual(list(record), schema["required"])
            self.assertEqual(list(record["provenance"]), provenance)
            self.assertEqual((len(record["samples_s"]), record["iterations"]), (3, 3))
            self.assertEqual((record["kind"], record["nodes"], record["nodes_emulated"]), ("gather", 2, True))
        zero_copy = next(record for record in records if record["variant"] == "zero-copy")
        unpack = next(record for record in records if record["variant"] == "hier-unpack")
        self.assertEqual((zero_copy["messages_off_node"], zero_copy["bytes_off_node"]), (1, 8192))
        self.assertEqual((zero_copy["messages_on_node"], zero_copy["bytes_on_node"]), (2, 8192))
        self.assertEqual((zero_copy["copied_bytes"], zero_copy["reordered_bytes"]), (4096, 0))
        self.assertEqual(unpack["reordered_bytes"], 4 * 4096)
        self.assertGreater(zero_copy["predicted_s"], 0)
        self.assertAlmostEqual(zero_copy["ratio_to_baseline"], records[0]["median_s"] / zero_copy["median_s"])
        header = (self.directory / "csv").read_text().splitlines()[0].split(",")
        self.assertEqual(header, [key for key in schema["required"] if key not in ("samples_s", "provenance")] + ["git", "dirty", "mpi_library", "time"])

    def test_table_and_model(self):
        outcome = self.gather(*QUICK, "--sizes", "1,65536", "--order", "random")
        self.assertEqual(outcome.code, 0, outcome.stderr)
        self.assertIn("4 ranks, random on 2 emulated nodes (2 + 2)", outcome.stdout)
        self.assertRegex(outcome.stdout, r"(?m)^ +64\.0 KiB .*x .*x ")
        self.assertRegex(outcome.stdout, r"alpha-beta model: a message takes .* on a node, .* between nodes")
        self.assertRegex(outcome.stdout, r"(?m)^ 1024 +2046 +1023 ")

    def test_what_is_wrong_is_not_timed(self):
        for fault in ("drop", "swap", "flip"):
            outcome = self.gather(*QUICK, "--inject", fault, "--sizes", "1000", "--order", "ordered", "--output", fault, "--quiet")
            self.assertEqual(outcome.code, 1)
            self.assertEqual(len(outcome.ours), 1, outcome.stderr)
            self.assertIn("verification failed (gather, mpi-gather of 1000 B ordered, hier-unpack of 1000 B ordered", outcome.ours[0])
            records = [json.loads(line) for line in (self.directory / fault).read_text().splitlines()]
            self.assertEqual([(r["verified"], r["median_s"], r["samples_s"]) for r in records], [(False, None, [])] * 7)
        outcome = self.gather(*QUICK, "--inject", "flip", "--sizes", "1000")
        self.assertRegex(outcome.stdout, r"(?m)^ +1000 B +WRONG +WRONG ")

    def test_max_seconds_ends_warm_up_and_measurement(self):
        records = self.records("--ranks-per-node", "2", "--sizes", "1,64", "--max-seconds", "0.2", "--warmup", "100000000", "--iterations", "100000000")
        for record in records:
            self.assertGreaterEqual(record["iterations"], 1)
            self.assertEqual(len(record["samples_s"]), record["iterations"])
            self.assertIn("stopped by --max-seconds", record["notes"][0])
        self.assertTrue(all(record["iterations"] == 1 for record in records), "the warm-up took all the time")

    def test_uneven_nodes_and_one_rank(self):
        for arguments, ranks in ((("--ranks-per-node", "1,3"), 4), ((), 1), (("--root", "1"), 2)):
            records = self.records("--iterations", "1", "--sizes", "0,7", *arguments, ranks=ranks)
            self.assertTrue(records and all(record["verified"] for record in records), arguments)

    def test_random_orders_come_from_the_seed(self):
        def nodes(seed):
            outcome = self.gather("--dry-run", "--seed", seed, "--order", "random", "--ranks-per-node", "1,1,2")
            return re.search("nodes of the ranks: .*", outcome.stdout).group()

        self.assertEqual(nodes("1"), nodes("1"))
        self.assertGreater(len({nodes(str(seed)) for seed in range(6)}), 1)

    def test_dry_run_counts_and_measures_nothing(self):
        outcome = self.gather(*QUICK, "--dry-run", "--output", "out")
        self.assertEqual(outcome.code, 0, outcome.stderr)
        self.assertIn("messages between nodes: 1, in pieces of at most 256 KiB; of a linear gather that knows no nodes: 2\n", outcome.stdout)
        self.assertIn("nothing was measured", outcome.stdout)
        self.assertFalse((self.directory / "out").exists())

    def test_what_cannot_be_is_refused(self):
        cases = (
            (("--root", "4"), "no such root (4 of 4 ranks)"),
            (("--variants", "hier-forced-indexed", "--order", "round-robin", "--ranks-per-node", "2"), "no variant is left for order round-robin"),
            (("--sizes", "900000000000000", "--variants", "zero-copy"), "not enough memory"),
            (("--sizes", "1,600000000"), "sizes cannot be used with variant hier-forced-contiguous (600000000 bytes of each rank: MPI counts all"),
            (("--sizes", "1,600000000", "--variants", "zero-copy,hier-sendrecv", "--order", "round-robin", "--ranks-per-node", "2"),
             "sizes cannot be used with variant hier-sendrecv"),
            (("--sizes", "0,8", "--inject", "swap"), "nothing can be broken"),
            (("--sizes", "1,3000000000", "--variants", "mpi-gather"), "MPI counts them in MPI_Gather as an int"),
            (("--variants", "gather"), "variants cannot be used"),
            (("--order", "sorted"), "order cannot be used"),
            (("--sizes", "1,-2"), "sizes cannot be used"),
        )
        for (arguments, message), outcome in several(lambda case: self.gather(*case[0]), cases):
            with self.subTest(arguments=arguments):
                self.assertEqual(outcome.code, 2)
                self.assertEqual(len(outcome.ours), 1, outcome.stderr)
                self.assertIn(message, outcome.ours[0])

    def test_tables_are_made_of_records(self):
        self.records(*QUICK, "--sizes", "1,4096")
        script = self.directory / "results" / "gather.py"
        script.parent.mkdir()
        (self.directory / ".deps").symlink_to(SOURCE / ".deps")
        for name in ("gather.py", "records.py", "reports.py", "gather.schema.json", "schema.json"):
            (script.parent / name).write_bytes((SOURCE / "results" / name).read_bytes())
        script = [sys.executable, str(script)]
        finished = subprocess.run([*script, str(self.directory / "out"), "few"], capture_output=True, text=True, check=False)
        self.assertEqual(finished.returncode, 0, finished.stderr)
        text = (self.directory / "results" / "mine" / "gather" / "few.md").read_text()
        self.assertIn("# Hierarchical gather: 4 ranks on 2 emulated nodes, root 0\n", text)
        self.assertEqual(len(re.findall(r"(?m)^\| 4 KiB \|", text)), 2)
        self.assertEqual(text.count("Nothing is reordered"), 1)
        lines = (self.directory / "out").read_text().splitlines()
        of_other_mpi = json.loads(lines[1])
        of_other_mpi["provenance"]["mpi_library"] = "another one"
        without_median = json.loads(lines[0])
        del without_median["median_s"]
        for bad, message in (
            ('{"kind": "run"}', "line 1 of"),
            (json.dumps(without_median), "no record of a gather (the record has no median_s)"),
            (lines[0] + "\n" + lines[1][:100], "line 2 of"),
            (lines[0] + "\n" + json.dumps(of_other_mpi), "MPIs or commits (line 2)"),
        ):
            (self.directory / "bad").write_text(bad + "\n")
            finished = subprocess.run([*script, str(self.directory / "bad")], capture_output=True, text=True, check=False)
            self.assertEqual((finished.returncode, finished.stdout), (2, ""))
            self.assertIn(message, finished.stderr)
            self.assertEqual(len(finished.stderr.splitlines()), 1)
        self.assertEqual((self.directory / "results" / "mine" / "gather" / "few.md").read_text(), text)


if __name__ == "__main__":
    unittest.main()
