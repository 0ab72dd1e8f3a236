# SPDX-License-Identifier: BSD-3-Clause
"""Tests the system model: quickly measured on an emulated device, read, refused if it is of another machine, and
obeyed."""
import copy
import json
import os
import pathlib
import tempfile
import unittest

from halocline_program import halocline, several

QUICK = ("calibrate", "--max-seconds", "0.2")
TINY = ("--local", "8", "8", "8", "--fields", "1")
COMPARE = ("compare", *TINY, "--iterations", "1", "--memory", "device")
OURS = ("--methods", "alltoallv")
CHOOSE = (*COMPARE, *OURS)


def reach(model):
    """Extends the curves of a short measurement to 1 GiB, which is enough for every test."""

    def lengthen(value):
        for key, child in value.items() if isinstance(value, dict) else enumerate(value):
            if key == "bytes":
                child[-1] = 1 << 30
            elif isinstance(child, (dict, list)):
                lengthen(child)

    lengthen(model)
    for flaw in ("incomplete", "noisy"):
        model.pop(flaw, None)


class InDirectory(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)

    def assert_refused(self, outcome, *words):
        self.assertEqual((outcome.code, len(outcome.ours)), (2, 1), outcome.stderr)
        self.assertRegex(outcome.ours[0], r"^halocline: .+ \(.+\): .+$")
        for word in words:
            self.assertIn(word, outcome.ours[0])

    def write(self, name, model):
        path = self.directory / name
        path.write_text(json.dumps(model), encoding="utf-8")
        return path


class Emulated(InDirectory):
    @classmethod
    def setUpClass(cls):
        os.environ["HALOCLINE_DEVICE"] = "emulated"
        cls.addClassCleanup(os.environ.pop, "HALOCLINE_DEVICE")
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "model.json"
            cls.outcome = halocline(*QUICK, "--model", path, ranks=2)
            assert cls.outcome.code == 0, cls.outcome.stderr
            cls.model = json.loads(path.read_text(encoding="utf-8"))
            cls.left = [entry.name for entry in path.parent.iterdir()]

    def changed(self, **provenance):
        model = self.fast_but()
        model["provenance"].update(provenance)
        return model

    def fast_but(self, *slow):
        """Returns a model in which everything takes a microsecond; the curves at the paths `slow` take a second."""
        model = copy.deepcopy(self.model)

        def fill(value, seconds):
            for key, child in value.items() if isinstance(value, dict) else enumerate(value):
                if isinstance(child, (dict, list)):
                    fill(child, seconds)
                elif key == "seconds" or isinstance(child, float):
                    value[key] = seconds

        fill({key: model[key] for key in ("messages", "block_messages", "copies", "packing")}, 1e-6)
        reach(model)
        for path in slow:
            part = model
            for key in path:
                part = part[key]
            fill(part, 1.0)
        return model

    def records(self, *arguments, methods=OURS):
        with tempfile.TemporaryDirectory(dir=self.directory) as folder:
            path = pathlib.Path(folder) / "results.jsonl"
            outcome = halocline(*COMPARE, *methods, "--output", path, *arguments, ranks=2)
            self.assertEqual(outcome.code, 0, outcome.stderr)
            return outcome, [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


class Calibrate(Emulated):
    def test_everything_is_measured_that_there_is(self):
        model = self.model
        self.assertEqual(self.left, ["model.json"])
        self.assertEqual(model["schema"], "halocline-model/1")
        self.assertEqual({place: list(paths) for place, paths in model["messages"].items()},
                         {"host": ["on_node"], "device": ["on_node"]})
        self.assertEqual(list(model["block_messages"]), ["on_node"])
        for order in ("strided", "listed"):
            self.assertEqual({traffic: list(tables) for traffic, tables in model["block_messages"]["on_node"][order].items()},
                             {traffic: ["packed", "typed"] for traffic in ("one_way", "both_ways")})
        for place in model["messages"].values():
            self.assertEqual([entry["messages"] for entry in place["on_node"]], [1, 4, 26])
        self.assertEqual(list(model["copies"]), ["device_to_host", "host_to_device"])
        self.assertEqual({place: list(table) for place, table in model["packing"].items()},
                         {place: ["pack", "unpack"] for place in ("device", "mapped", "host")})
        for key in ("launch_seconds", "synchronize_seconds"):
            self.assertGreater(model[key], 0)
        # The time was too short for the whole curve.
        self.assertRegex("\n".join(model["incomplete"]), r"(?m)^packing .*: up to \d+ \w+ instead of 1 MiB$")
        provenance = model["provenance"]
        self.assertEqual((provenance["gpu"], provenance["driver"], provenance["emulated"]), ("emulated device", "none", True))
        for key in ("cpu", "mpi", "host", "time", "git"):
            self.assertTrue(provenance[key])

    def test_tables_are_for_people(self):
        for words in ("not measured: host messages between nodes (all ranks are on one node)", "times mean nothing",
                      "device to device on the node", "copy from device to host", "mapped pack", "fastest transfer of a message"):
            self.assertIn(words, self.outcome.stdout)
        self.assertIn("model.json", self.outcome.stdout.splitlines()[-1])

    def test_says_what_was_cut_short(self):
        self.assertRegex(self.outcome.stdout, r"cut short: packing .*: up to \d+ \w+ instead of 1 MiB; longer ones count as not measured")
        self.assertIn("measure again while nothing else runs", self.outcome.stdout)
        path = self.write("cut.json", self.model)
        outcome = halocline(*QUICK, "--model", self.directory / "quiet.json", "--quiet")
        self.assertEqual((outcome.code, len(outcome.ours)), (0, 1), outcome.stderr)
        self.assertRegex(outcome.ours[0], r"quiet\.json .*cut short: .* up to .* instead of .*calibrate")
        for arguments in (("compare", *TINY, "--iterations", "1", "--memory", "device", *OURS), ("run", *TINY, "--steps", "1")):
            outcome = halocline(*arguments, "--model", path, ranks=2)
            self.assertEqual((outcome.code, len(outcome.ours)), (0, 1), outcome.stderr)
            self.assertRegex(outcome.ours[0], r"cut\.json .*cut short: .*goes by defaults")

    def test_one_rank_packs_alone(self):
        path = self.directory / "model.json"
        outcome = halocline(*QUICK, "--model", path)
        self.assertEqual(outcome.code, 0, outcome.stderr)
        self.assertIn("messages need two ranks", outcome.stdout)
        self.assertNotIn("fastest transfer", outcome.stdout)
        model = json.loads(path.read_text(encoding="utf-8"))
        self.assertNotIn("messages", model)
        self.assertEqual(list(model["packing"]), ["device", "mapped", "host"])

    def test_without_output_for_people(self):
        path = self.directory / "model.json"
        outcome = halocline(*QUICK, "--model", path, "--json")
        self.assertEqual((outcome.code, outcome.stdout), (0, path.read_text(encoding="utf-8")))
        outcome = halocline(*QUICK, "--model", path, "--quiet")
        self.assertEqual((outcome.code, outcome.stdout), (0, ""))

    def test_dry_run_writes_nothing(self):
        outcome = halocline("calibrate", "--dry-run", "--model", self.directory / "new" / "model.json", ranks=2)
        self.assertEqual(outcome.code, 0, outcome.stderr)
        self.assertRegex(outcome.stdout, r"(?m)^device messages on the node +\d+$")
        self.assertIn("nothing was measured", outcome.stdout)
        self.assertEqual(list(self.directory.iterdir()), [])

    def test_places_that_cannot_be_written_are_refused_before(self):
        (self.directory / "file").touch()
        # Measuring would take an hour, so the refusal has to come first.
        run = lambda case: halocline("calibrate", "--max-seconds", "3600", "--model", case[0], ranks=case[1])
        for (path, _), outcome in several(run, [(self.directory / "file" / "model.json", 2), (self.directory / "new" / "model.json", 1), (self.directory, 1)]):
            self.assert_refused(outcome, "cannot be written", str(path))
        self.assertEqual([entry.name for entry in self.directory.iterdir()], ["file"])


class Choice(Emulated):
    def test_the_fastest_transfer_is_used(self):
        cases = {
            "device": [("messages", "host")],
            "one-shot": [("messages", "device"), ("packing", "device")],
            "staged": [("messages", "device"), ("packing", "mapped")],
        }

        def run(transfer):
            path = self.write(transfer + ".json", self.fast_but(*cases[transfer]))
            return path, *self.records("--model", path)

        for transfer, (path, outcome, records) in several(run, list(cases)):
            with self.subTest(transfer=transfer):
                self.assertEqual([record["transfer"] for record in records], [transfer])
                used = records[0]["provenance"]["model"]
                self.assertEqual((used["path"], used["differences"]), (str(path), ""))
                self.assertEqual(used["time"], self.model["provenance"]["time"])
                self.assertIn(f"system model: {path} (measured ", outcome.stdout)
                self.assertIn(f"alltoallv ({transfer})", outcome.stdout)

    def test_run_obeys_as_well(self):
        path = self.write("model.json", self.fast_but(("messages", "device"), ("packing", "mapped")))
        results = self.directory / "results.jsonl"
        outcome = halocline("run", *TINY, "--steps", "1", "--memory", "device", "--model", path, "--output", results, ranks=2)
        self.assertEqual(outcome.code, 0, outcome.stderr)
        self.assertEqual(json.loads(results.read_text(encoding="utf-8"))["transfer"], "staged")

    def test_a_transfer_that_is_given_stays(self):
        path = self.write("model.json", self.fast_but(("messages", "host")))
        _, records = self.records("--model", path, methods=("--methods", "alltoallv:staged"))
        self.assertEqual((records[0]["transfer"], records[0]["provenance"]["model"]["path"]), ("staged", str(path)))
        self.assertGreater(records[0]["predicted_s"], 1)

    def test_of_another_machine_only_by_force(self):
        slow = self.fast_but(("messages", "device"), ("packing", "mapped"))
        keys = ("cpu", "gpu", "driver", "mpi")
        for key in keys:
            slow["provenance"][key] = "another " + key
            path = self.write(f"{key}.json", slow)
        cases = [("cpu", CHOOSE, 2)] + [(key, ("run", *TINY), 1) for key in keys]
        run = lambda case: halocline(*case[1], "--model", self.directory / f"{case[0]}.json", ranks=case[2])
        for (key, _, _), outcome in several(run, cases):
            self.assert_refused(outcome, f"{key} 'another {key}' instead of", "calibrate", "--force-model")
        outcome, records = self.records("--model", path, "--force-model")
        self.assertEqual(len(outcome.ours), 1, outcome.stderr)
        self.assertIn("mpi 'another mpi' instead of", outcome.ours[0])
        self.assertEqual(records[0]["transfer"], "staged")
        self.assertIn("cpu 'another cpu'", records[0]["provenance"]["model"]["differences"])

    def test_the_name_of_the_host_does_not_matter(self):
        outcome, records = self.records("--model", self.write("model.json", self.changed(host="elsewhere")))
        self.assertEqual((outcome.ours, records[0]["provenance"]["model"]["host"]), ([], "elsewhere"))

    def test_a_file_that_is_given_must_be_one(self):
        bad = self.directory / "bad.json"
        bad.write_text("{", encoding="utf-8")
        cases = [(path, arguments, ranks) for path in (self.directory / "missing.json", self.directory, bad)
                 for arguments, ranks in ((CHOOSE, 2), (("run", *TINY), 1))]
        for (path, arguments, _), outcome in several(lambda case: halocline(*case[1], "--model", case[0], ranks=case[2]), cases):
            with self.subTest(path=path, arguments=arguments):
                self.assert_refused(outcome, str(path), "calibrate")

    def test_the_default_place_is_used_if_there_is_a_file(self):
        path = self.directory / "halocline" / "model.json"
        path.parent.mkdir()
        info = lambda: json.loads(halocline("info", "--json").stdout)["model"]
        os.environ["HALOCLINE_MODEL"] = str(path)
        self.addCleanup(os.environ.pop, "HALOCLINE_MODEL")
        self.assertEqual(info(), f"{path} (none there: transfers are chosen by their defaults)")
        _, records = self.records()
        self.assertEqual((records[0]["transfer"], records[0]["provenance"]["model"]), ("device", None))

        self.write(path, self.fast_but(("messages", "device"), ("packing", "mapped")))
        self.assertTrue(info().startswith(f"{path} (of this machine, measured "))
        _, records = self.records()
        self.assertEqual((records[0]["transfer"], records[0]["provenance"]["model"]["path"]), ("staged", str(path)))

        self.write(path, self.changed(driver="older"))
        self.assertEqual(info(), f"{path} (of another machine: driver 'older' instead of 'none')")
        outcome, records = self.records()
        self.assertEqual(len(outcome.ours), 1, outcome.stderr)
        self.assertRegex(outcome.ours[0], r"driver 'older' instead of 'none'\): not used; .*calibrate")
        self.assertEqual((records[0]["transfer"], records[0]["provenance"]["model"]), ("device", None))
        path.write_text("{", encoding="utf-8")
        self.assertTrue(info().startswith(f"{path} (cannot be used: "))
        self.assert_refused(halocline(*CHOOSE), str(path))
        # This command leaves nothing to be chosen.
        self.assertEqual(halocline("run", *TINY, "--quiet").code, 0)


class WithoutDevice(InDirectory):
    def records(self, model):
        results = self.directory / "results.jsonl"
        arguments = ("compare", *TINY, "--iterations", "1", "--methods", "auto,p2p,vendor-p2p", "--model", model, "--output", results)
        outcome = halocline(*arguments, ranks=2)
        self.assertEqual(outcome.code, 0, outcome.stderr)
        return {record["method"]: record for record in map(json.loads, results.read_text(encoding="utf-8").splitlines())}

    def test_the_host_is_measured_alone(self):
        path = self.directory / "model.json"
        outcome = halocline(*QUICK, "--model", path, ranks=2)
        self.assertEqual(outcome.code, 0, outcome.stderr)
        model = json.loads(path.read_text(encoding="utf-8"))
        self.assertIn("host", model["messages"])
        self.assertIn("host", model["packing"])
        reach(model)
        path = self.write("reaching.json", model)
        records = self.records(path)
        self.assertEqual(set(records), {"auto", "p2p", "vendor-p2p"})
        self.assertEqual(records["auto"]["chosen"], "shared" if records["auto"]["storage"] == "shared-window" else "p2p")
        for method, record in records.items():
            self.assertEqual(record["provenance"]["model"]["path"], str(path))
            self.assertEqual(record["predicted_s"] is None, method == "vendor-p2p")
        if model["provenance"]["gpu"]:
            return  # there is a device
        self.assertEqual((list(model["messages"]), list(model["packing"])), (["host"], ["host"]))
        self.assertNotIn("copies", model)
        self.assertIn("not measured: packing to device memory", outcome.stdout)


if __name__ == "__main__":
    unittest.main()
