# SPDX-License-Identifier: BSD-3-Clause
"""Tests jobs/simgrid/replay.sh: times of single messages, fair shares, trees of many sizes, and refusals."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BINARY = os.environ["HALOCLINE_BINARY"]
REPLAY = SOURCE / "jobs" / "simgrid" / "replay.sh"
ON, OFF, INJECTION = 40e9, 12e9, 20e9
ON_LATENCY, OFF_LATENCY = 2e-6, 5e-6


def platform(nodes, ranks_per_node, on_node="message", off_node="rank", radix=36):
    return {
        "nodes": nodes, "ranks_per_node": ranks_per_node, "rounds": 1,
        "on_node": {"latency_s": ON_LATENCY, "bytes_per_s": ON, "bandwidth_of": on_node},
        "off_node": {"latency_s": OFF_LATENCY, "bytes_per_s": OFF, "bandwidth_of": off_node},
        "overhead_s": 0, "injection_bytes_per_s": INJECTION, "radix": radix,
    }


def trace(ranks, messages, exchanges=1):
    """Returns the trace of messages (from, to, bytes)."""
    lines = []
    for rank in range(ranks):
        lines.append(f"{rank} init")
        for _ in range(exchanges):
            lines += [f"{rank} irecv {sender} 0 {size}" for sender, to, size in messages if to == rank]
            lines += [f"{rank} isend {to} 0 {size}" for sender, to, size in messages if sender == rank]
            lines.append(f"{rank} waitall")
        lines.append(f"{rank} finalize")
    return "\n".join(lines) + "\n"


class Replay(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.directory = pathlib.Path(folder.name)
        self.output = self.directory / "out.jsonl"

    def replay(self, *arguments):
        return subprocess.run([REPLAY, "--output", self.output, *arguments], capture_output=True, text=True, timeout=300)

    def folder(self, name, parameters, text):
        path = self.directory / name
        path.mkdir()
        (path / "platform.json").write_text(parameters if isinstance(parameters, str) else json.dumps(parameters))
        (path / "trace.txt").write_text(text)
        return path

    def seconds(self, *cases):
        """Simulates cases (platform, messages, exchanges) and returns the seconds of an exchange for each."""
        folders = [self.folder(f"case{number}", parameters, trace(parameters["nodes"] * parameters["ranks_per_node"], *what))
                   for number, (parameters, *what) in enumerate(cases)]
        run = self.replay(*folders)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.records = [json.loads(line) for line in self.output.read_text().splitlines()]
        self.assertEqual([record["platform"] for record in self.records], [case[0] for case in cases])
        return [record["seconds"] for record in self.records]

    def test_a_message_alone_takes_latency_and_bytes_by_bandwidth(self):
        cases, expected = [], []
        for size in (8, 100_000, 12_582_912):
            for on_node in ("message", "rank", "node"):
                cases.append((platform(1, 2, on_node=on_node), [(0, 1, size)]))
                expected.append(ON_LATENCY + size / ON)
            for off_node in ("message", "rank"):
                cases.append((platform(2, 1, off_node=off_node), [(0, 1, size), (1, 0, size)]))  # the way back costs nothing
                expected.append(OFF_LATENCY + size / OFF)
        slow = platform(2, 1)
        slow["off_node"]["latency_s"] = 1e-3  # no TCP window keeps a message from using its whole bandwidth
        cases.append((slow, [(0, 1, 100_000_000)]))
        expected.append(1e-3 + 100_000_000 / OFF)
        for case, took, should in zip(cases, self.seconds(*cases), expected):
            self.assertAlmostEqual(took / should, 1, delta=0.01, msg=case)

    def test_messages_share_what_they_should(self):
        size = 10_000_000
        one_by_one = [(0, 1, size), (0, 2, size)]
        cases = [
            (platform(1, 3, on_node="message"), one_by_one, size / ON),
            (platform(1, 3, on_node="rank"), one_by_one, 2 * size / ON),
            (platform(1, 4, on_node="rank"), [(0, 1, size), (2, 3, size)], size / ON),
            (platform(1, 4, on_node="node"), [(0, 1, size), (2, 3, size)], 2 * size / ON),
            (platform(3, 1, off_node="message"), one_by_one, 2 * size / INJECTION),
            (platform(3, 1, off_node="rank"), one_by_one, 2 * size / OFF),
            (platform(2, 3), [(rank, rank + 3, size) for rank in range(3)], 3 * size / INJECTION),
            (platform(8, 1, radix=4), [(0, 4, size), (1, 6, size)], 2 * size / INJECTION),  # same way up
            (platform(8, 1, radix=8), [(0, 4, size), (1, 6, size)], size / OFF),
            (platform(4, 3), [(3 * node, rank, size) for rank, node in enumerate((1, 2, 3))], 3 * size / INJECTION),
        ]
        for case, took in zip(cases, self.seconds(*(case[:2] for case in cases))):
            self.assertAlmostEqual(took / case[2], 1, delta=0.01, msg=case)

    def test_overheads_of_a_rank_add_up(self):
        parameters = dict(platform(2, 4), overhead_s=3e-6)
        one, from_one, to_one = self.seconds(
            (parameters, [(0, 4, 8)]),
            (parameters, [(0, to, 8) for to in range(4, 8)]),
            (parameters, [(sender, 4, 8) for sender in range(4)]))
        self.assertAlmostEqual(one / (3e-6 + OFF_LATENCY), 1, delta=0.01)
        self.assertAlmostEqual(from_one / (4 * 3e-6 + OFF_LATENCY), 1, delta=0.01)
        self.assertAlmostEqual(to_one, one, delta=0.01 * one)

    def test_seconds_are_those_of_one_exchange(self):
        ring = [(rank, (rank + 1) % 4, 1_000_000) for rank in range(4)]
        one, four = self.seconds((platform(2, 2), ring, 1), (platform(2, 2), ring, 4))
        self.assertAlmostEqual(four / one, 1, delta=0.001)
        self.assertEqual([(r["kind"], r["nodes"], r["ranks"], r["exchanges"]) for r in self.records],
                         [("simulation", 2, 4, 1), ("simulation", 2, 4, 4)])

    def test_what_the_program_writes_takes_what_it_predicts(self):
        for shape, rounds in (("direct", 1), ("axes", 3)):
            with self.subTest(shape=shape):
                folder, record = self.directory / f"traces-{shape}", self.directory / f"{shape}.jsonl"
                model = SOURCE / "configs" / "models" / "summit.json"
                predict = [BINARY, "predict", "--model", model, "--memory", "device", "--methods", "alltoallv:device", "--nodes", "8",
                           "--ranks-per-node", "2", "--shape", shape, "--iterations", "2", "--quiet"]  # fmt: skip
                subprocess.run([*predict, "--traces", folder, "--output", record], check=True)
                self.assertEqual(json.loads((folder / "platform.json").read_text())["rounds"], rounds)
                run = self.replay(folder)
                self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
                simulated, predicted = (json.loads(path.read_text()) for path in (self.output, record))
                self.assertEqual(simulated["exchanges"], 2)
                self.assertAlmostEqual(simulated["seconds"] / predicted["transfer_s"], 1, delta=0.05)

    def test_trees_of_many_sizes_have_the_same_latency_and_full_bisection(self):
        cases = []
        for nodes, radix in ((2, 4), (4, 4), (5, 4), (8, 4), (9, 4), (33, 4), (37, 36), (64, 36), (700, 36), (1100, 36)):
            half = nodes // 2
            cases.append((platform(nodes, 1, radix=radix), [(node, node + half, 1_000_000) for node in range(half)]))
        for case, took in zip(cases, self.seconds(*cases)):
            self.assertAlmostEqual(took / (OFF_LATENCY + 1_000_000 / OFF), 1, delta=0.01, msg=case[0])

    def test_bad_input_is_refused(self):
        good, text = platform(2, 1), trace(2, [(0, 1, 8)])
        bad_path = dict(good["on_node"], bandwidth_of="socket")
        for number, (parameters, text, words) in enumerate((
                (dict(good, nodes=0), text, "nodes must be a whole number"),
                (dict(good, ranks_per_node=2), text, "from 0 to 1 rounds"),
                (dict(good, rounds=2), text, "of whole exchanges of 2"),
                (dict(good, overhead_s=-1), text, "overhead_s must be a number, at least 0"),
                (dict(good, radix=5), text, "radix must be an even number"),
                (dict(good, injection_bytes_per_s="fast"), text, "injection_bytes_per_s must be a number above 0"),
                (dict(good, on_node=bad_path), text, "on_node: bandwidth_of must be message or rank or node"),
                (dict(good, off_node=7), text, "off_node: takes an object with latency_s"),
                (dict(good, colour=1), text, "takes an object with nodes"),
                ("{", text, "is not JSON"),
                (good, trace(3, []), "line 7 is not an action of one of the 2 ranks"),
                (good, "0 init\n", "from 0 to 0 rounds"),
        )):
            run = self.replay(self.folder(f"bad{number}", parameters, text))
            self.assertEqual((run.returncode, run.stderr.count("\n")), (2, 1), run.stderr)
            self.assertIn(words, run.stderr)
        run = self.replay(self.directory / "nowhere")
        self.assertEqual(run.returncode, 2)
        self.assertIn("cannot be read (No such file or directory): give folders that halocline predict --traces wrote", run.stderr)
        self.assertFalse(self.output.exists())

    def test_what_simgrid_refuses_leaves_old_results_alone(self):
        self.output.write_text("old\n")
        good = self.folder("good", platform(2, 1), trace(2, [(0, 1, 8)]))
        bad = self.folder("bad", platform(2, 1), trace(2, [(0, 1, 8)]).replace("isend", "sendd"))
        run = self.replay(good, bad)
        self.assertEqual(run.returncode, 3, run.stdout + run.stderr)
        self.assertIn("SimGrid failed", run.stderr)
        self.assertEqual(self.output.read_text(), "old\n")
        self.assertEqual(sorted(path.name for path in self.directory.iterdir()), ["bad", "good", "out.jsonl"])


if __name__ == "__main__":
    if not shutil.which("smpirun"):
        print("test_simgrid.py: no smpirun in PATH: SimGrid is not installed (Debian: libsimgrid-dev)")
        sys.exit(77)
    unittest.main()
