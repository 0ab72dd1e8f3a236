# SPDX-License-Identifier: BSD-3-Clause
"""Tests halocline predict: the messages of a real exchange, sums that a person can check, records, traces, and
refusals."""
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from halocline_program import halocline

SOURCE = pathlib.Path(os.environ["HALOCLINE_SOURCE"])
sys.path.insert(0, str(SOURCE / "results"))
from records import fault  # noqa: E402
SMALL = ("--local", "16", "16", "16", "--fields", "2")


def curve(latency, per_byte):
    return {"bytes": [1, 1048577], "seconds": [latency + per_byte, latency + per_byte * 1048577]}


def messages(latency, per_byte):
    return [{"messages": 1, **curve(latency, per_byte)}, {"messages": 64, **curve(latency, per_byte)}]


def packs(latency, per_byte):
    one = curve(latency, per_byte)
    return {"bytes": one["bytes"], "block_bytes": [8], "stride_bytes": [8], "seconds": [[[s]] for s in one["seconds"]]}


def model(**more):
    provenance = dict.fromkeys(("time", "cpu", "gpu", "driver", "mpi", "host", "git"), "elsewhere")
    return {"schema": "halocline-model/1", "provenance": {**provenance, "emulated": False},
            "messages": {"host": {"on_node": messages(1e-6, 1e-10), "off_node": messages(2e-6, 1e-9)}},
            "packing": {"host": {"pack": packs(0, 2e-10), "unpack": packs(0, 3e-10)}}, **more}


class Predict(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.directory = pathlib.Path(folder.name)
        self.write("m.json", model())

    def write(self, name, content):
        (self.directory / name).write_text(json.dumps(content), encoding="utf-8")

    def predict(self, *arguments, name="m.json", ranks=1):
        return halocline("predict", "--model", name, *arguments, ranks=ranks, cwd=self.directory)

    def records(self, *arguments, name="m.json"):
        (self.directory / "out").unlink(missing_ok=True)
        outcome = self.predict(*arguments, "--output", "out", name=name)
        self.assertEqual(outcome.code, 0, outcome.stderr)
        return [json.loads(line) for line in (self.directory / "out").read_text().splitlines()]

    def assert_refused(self, outcome, *words):
        self.assertEqual((outcome.code, len(outcome.ours)), (2, 1), outcome.stderr)
        self.assertRegex(outcome.ours[0], r"^halocline: .+ \(.+\): .+$")
        for word in words:
            self.assertIn(word, outcome.ours[0])

    def test_times_are_sums_of_what_is_sent(self):
        # There are two nodes of one rank, 1 x 1 x 2. The z faces leave with their edges and
        # corners; x and y stay.
        (record,) = self.records(*SMALL, "--nodes", "2", "--radius", "1")
        sent, kept = 2 * 18 * 18 * 16, (2 * 16 * 18 + 2 * 16 * 16) * 16
        self.assertEqual((record["ranks"], record["decomposition"], record["messages"]), (2, [1, 1, 2], 1))
        self.assertEqual((record["bytes_off_node_of_node"], record["bytes_off_node_total"]), (sent, 2 * sent))
        self.assertAlmostEqual(record["pack_s"], sent * 2e-10, delta=1e-12)
        self.assertAlmostEqual(record["transfer_s"], 2e-6 + sent * 1e-9, delta=1e-12)
        self.assertAlmostEqual(record["unpack_s"], sent * 3e-10 + kept * 2e-10, delta=1e-12)
        self.assertAlmostEqual(record["total_s"], record["pack_s"] + record["transfer_s"] + record["unpack_s"], delta=1e-12)
        self.assertEqual(record["limited_by"], "messages")

    def test_a_node_injects_what_all_its_ranks_send(self):
        self.write("slow.json", model(injection_bytes_per_second=1e8))
        arguments = (*SMALL, "--nodes", "8", "--ranks-per-node", "4")
        (free,), (limited,) = self.records(*arguments), self.records(*arguments, name="slow.json")
        self.assertEqual((free["limited_by"], limited["limited_by"]), ("messages", "injection"))
        self.assertAlmostEqual(limited["transfer_s"], 2e-6 + limited["bytes_off_node_of_node"] / 1e8, delta=1e-8)
        self.assertEqual(free["pack_s"], limited["pack_s"])

    def test_messages_are_those_of_a_dry_run(self):
        outcome = halocline("compare", *SMALL, "--dry-run", "--ranks-per-node", "2", ranks=8)
        (record,) = self.records(*SMALL, "--nodes", "4", "--ranks-per-node", "2")
        self.assertIn(f"{record['decomposition'][0]} x {record['decomposition'][1]} x {record['decomposition'][2]}", outcome.stdout)
        measured = halocline("compare", *SMALL, "--iterations", "1", "--ranks-per-node", "2", "--methods", "alltoallv",
                             "--output", self.directory / "c", ranks=8)
        self.assertEqual(measured.code, 0, measured.stderr)
        measured = json.loads((self.directory / "c").read_text())
        for key in ("decomposition", "messages", "bytes_off_node_of_node", "bytes_off_node_total", "local", "global"):
            self.assertEqual(record[key], measured[key], key)

    def test_records_follow_the_schema(self):
        schema = json.loads((SOURCE / "results" / "predict.schema.json").read_text())
        records = self.records(*SMALL, "--nodes", "1,4", "--csv", "csv", "--shape", "axes")
        for record in records + self.records(*SMALL, "--nodes", "2", "--memory", "device"):
            self.assertIsNone(fault(record, "predict.schema.json"))
        for record in records:
            self.assertEqual(list(record), schema["required"])
            self.assertEqual(record["shape"], "axes")
        self.assertEqual([record["nodes"] for record in records], [1, 4])
        self.assertEqual(len((self.directory / "csv").read_text().splitlines()), 3)

    def test_far_more_nodes_than_there_are(self):
        (record,) = self.records("--local", "256", "256", "256", "--nodes", "16384", "--ranks-per-node", "6")
        self.assertEqual((record["ranks"], record["messages"]), (98304, 26))

    def test_what_is_not_in_the_model_is_not_predicted(self):
        (record,) = self.records(*SMALL, "--nodes", "2", "--memory", "device", "--methods", "alltoallv:staged")
        self.assertEqual((record["method"], record["pack_s"], record["total_s"]), ("alltoallv:staged", None, None))
        self.assertIsNotNone(record["transfer_s"])
        self.assertEqual(len(self.records(*SMALL, "--nodes", "1,2", "--memory", "device")), 6)

    def test_goes_no_further_than_the_model(self):
        cut = model()
        cut["messages"]["host"]["off_node"] = [{"messages": 1, "bytes": [1, 64], "seconds": [9e-7, 9.46e-7]}]
        cut["incomplete"] = ["host messages between nodes: up to 64 B instead of 64 MiB"]
        self.write("cut.json", cut)
        (record,) = self.records(*SMALL, "--nodes", "2", name="cut.json")
        reason = "host messages between nodes: not measured beyond 64 B"
        self.assertEqual((record["transfer_s"], record["total_s"], record["limited_by"], record["unknown"]), (None, None, None, reason))
        self.assertIsNotNone(record["pack_s"])
        outcome = self.predict(*SMALL, "--nodes", "2", name="cut.json")
        self.assertIn("-: " + reason, outcome.stdout)
        self.assertEqual(len(outcome.ours), 1, outcome.stderr)
        self.assertRegex(outcome.ours[0], r"cut\.json .*up to 64 B instead of 64 MiB.*calibrate")
        traces = self.predict(*SMALL, "--nodes", "2", "--traces", "t", "--quiet", name="cut.json")
        self.assertEqual(traces.code, 2, traces.stderr)
        self.assertRegex(traces.ours[-1], r"^halocline: traces cannot be written \(.* between nodes end at 64 B.*\): .*calibrate")

    def test_models_of_a_disturbed_measurement_are_named(self):
        odd = model()
        odd["messages"]["host"]["on_node"][0] = {"messages": 1, "bytes": [1, 64, 1048577], "seconds": [0.084, 1e-6, 1e-4]}
        self.write("odd.json", odd)
        outcome = self.predict(*SMALL, "--nodes", "1", "--ranks-per-node", "2", name="odd.json")
        self.assertEqual((outcome.code, len(outcome.ours)), (0, 1), outcome.stderr)
        self.assertRegex(outcome.ours[0], r"odd\.json .*10 times as slow as their neighbours: host messages on_node, 1 at once: 1 B.*calibrate")

    def test_models_that_come_along_predict(self):
        models = sorted((SOURCE / "configs" / "models").glob("*.json"))
        self.assertTrue(models)
        for path in models:
            self.assertEqual(self.predict("--nodes", "1", name=path).ours, [])
            records = self.records("--nodes", "1,64", "--ranks-per-node", "6", "--memory", "device", name=path)
            self.assertTrue(any(record["total_s"] for record in records), path)

    def test_traces_send_what_others_receive(self):
        outcome = self.predict(*SMALL, "--nodes", "4", "--ranks-per-node", "3", "--traces", "t", "--iterations", "3", "--quiet")
        self.assertEqual((outcome.code, outcome.stdout), (0, ""), outcome.stderr)
        trace = [line.split() for line in (self.directory / "t" / "trace.txt").read_text().splitlines()]
        platform = json.loads((self.directory / "t" / "platform.json").read_text())
        self.assertEqual((platform["nodes"], platform["ranks_per_node"]), (4, 3))
        self.assertAlmostEqual(platform["off_node"]["latency_s"] + platform["overhead_s"], 2e-6, delta=2e-9)
        self.assertEqual({line[0] for line in trace}, {str(rank) for rank in range(12)})
        sent, received = collections.Counter(), collections.Counter()
        for rank in range(12):
            lines = [line for line in trace if line[0] == str(rank)]
            self.assertEqual((lines[0][1], lines[-1][1]), ("init", "finalize"))
            self.assertEqual(sum(line[1] == "waitall" for line in lines), 3)
            for _, action, *rest in lines:
                if action == "isend":
                    sent[rank, int(rest[0]), int(rest[2])] += 1
                if action == "irecv":
                    received[int(rest[0]), rank, int(rest[2])] += 1
        self.assertEqual(sent, received)
        self.assertEqual(set(sent.values()), {3})
        self.assertTrue(all(sender != receiver for sender, receiver, _ in sent))

    def test_tables_are_made_of_records(self):
        records = self.records(*SMALL, "--nodes", "2,4")
        simulated = [{"kind": "simulation", "nodes": 4, "ranks": 4, "seconds": 1.1 * records[1]["transfer_s"], "simgrid": "3.32"}]
        results = self.directory / "results"
        raw = results / "raw" / "predict"
        raw.mkdir(parents=True)
        (self.directory / ".deps").symlink_to(SOURCE / ".deps")
        for name in ("predict.py", "records.py", "reports.py"):
            (results / name).write_bytes((SOURCE / "results" / name).read_bytes())
        script = [sys.executable, str(results / "predict.py")]
        missing = subprocess.run([*script, "small"], capture_output=True, text=True, check=False)
        self.assertEqual((missing.returncode, missing.stdout), (2, ""))
        self.assertRegex(missing.stderr, r"^predict\.py: .*small\.jsonl cannot be read .*\n$")
        (raw / "small.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
        (raw / "small-simulated.jsonl").write_text(json.dumps(simulated[0]) + "\n")
        made = subprocess.run([*script, "small"], capture_output=True, text=True, check=False)
        self.assertEqual(made.returncode, 0, made.stderr)
        rows = [line for line in (results / "mine" / "predict" / "small.md").read_text().splitlines() if line.startswith("| ")]
        self.assertEqual(len(rows), 3)
        self.assertTrue(rows[1].endswith("| - | - |"), rows[1])
        self.assertTrue(rows[2].endswith("| 1.100 |"), rows[2])

    def test_what_cannot_be_is_refused(self):
        self.assert_refused(self.predict(*SMALL, name="none.json"), "none.json", "calibrate")
        self.assert_refused(self.predict(*SMALL, "--methods", "p2p"), "p2p", "alltoallv")
        self.assert_refused(self.predict(*SMALL, "--methods", "alltoallv:device"), "alltoallv:device")
        self.assert_refused(self.predict(*SMALL, "--ranks-per-node", "2,3"), "one number")
        self.assert_refused(self.predict(*SMALL, "--traces", "t"), "--nodes")
        self.assert_refused(self.predict("--global", "8", "8", "8", "--nodes", "4096"), "more ranks than points")
        self.assert_refused(self.predict(*SMALL, "--nodes", "2000000000", "--ranks-per-node", "4"), "too many ranks")
        (self.directory / "there").mkdir()
        self.assert_refused(self.predict(*SMALL, "--nodes", "1", "--traces", "there"), "there", "new folder")
        self.assertEqual([path.name for path in self.directory.iterdir() if path.suffix == ".new"], [])


if __name__ == "__main__":
    unittest.main()
