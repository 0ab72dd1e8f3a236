# SPDX-License-Identifier: BSD-3-Clause
"""Tests fields in device memory on an emulated device: every transfer gives the same states, and faults are seen."""
import json
import os
import pathlib
import re
import tempfile
import unittest

from halocline_program import halocline, several

CORRECTNESS = pathlib.Path(os.environ["HALOCLINE_SOURCE"]) / "configs" / "correctness.toml"
TRANSFERS = ("device", "one-shot", "staged")
METHODS = ("alltoallv", *(f"alltoallv:{transfer}" for transfer in TRANSFERS), "shared", "vendor-pack", "vendor-alltoallw")


def on_device(*arguments, ranks=1):
    return halocline(*arguments, "--memory", "device", ranks=ranks, inside=("env", "HALOCLINE_DEVICE=emulated"))


def there():
    """Tells if this machine and this build have a device."""
    return not json.loads(halocline("info", "--json").stdout)["device"].startswith("none")


class GpuAwareMpi(unittest.TestCase):
    TINY = ("compare", "--local", "8", "8", "8", "--iterations", "1", "--quiet")

    @unittest.skipIf(os.environ["HALOCLINE_SANITIZED"] == "ON", "the sanitizers' library has to come first")
    def test_an_mpi_that_must_not_be_asked_is_not_asked(self):
        inside = ("env", f"LD_PRELOAD={os.environ['HALOCLINE_NO_CUDA_SUPPORT']}")
        for more, said in (((), "not asked (no device)"), (("HALOCLINE_DEVICE=emulated",), "yes (the device is emulated)")):
            if not more and there():
                continue
            outcome = halocline("info", "--json", inside=(*inside, *more))
            self.assertEqual(outcome.code, 0, outcome.stderr)
            self.assertEqual(json.loads(outcome.stdout)["gpu_aware_mpi"], said)

    def records(self, *arguments, inside=()):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "results.jsonl"
            command = ("env", "HALOCLINE_DEVICE=emulated", *inside)
            outcome = halocline(*self.TINY, *arguments, "--output", path, ranks=2, inside=command)
            self.assertEqual(outcome.code, 0, outcome.stderr)
            return [json.loads(line) for line in path.read_text().split("\n") if line]

    def test_flag_and_environment_overrule_the_mpi(self):
        device = ("--memory", "device")
        for arguments, inside, said in (
            (device, (), "yes (the device is emulated)"),
            ((*device, "--gpu-aware-mpi", "no"), (), "no (gpu-aware-mpi is no)"),
            ((*device, "--gpu-aware-mpi", "yes"), ("HALOCLINE_GPU_AWARE_MPI=no",), "yes (gpu-aware-mpi is yes)"),
            (device, ("HALOCLINE_GPU_AWARE_MPI=no",), "no (HALOCLINE_GPU_AWARE_MPI is no)"),
            (device, ("HALOCLINE_GPU_AWARE_MPI=ask",), "yes (the device is emulated)"),
            ((), ("HALOCLINE_GPU_AWARE_MPI=no",), None),
        ):
            with self.subTest(arguments=arguments, inside=inside):
                records = self.records(*arguments, inside=inside)
                self.assertEqual({record["provenance"]["gpu_aware_mpi"] for record in records}, {said})
                methods = {record["method"] for record in records}
                if said:
                    aware = {"vendor-alltoallw", "alltoallv:device"} <= methods
                    self.assertEqual(aware, said.startswith("yes"), methods)

    def test_an_unaware_mpi_gets_nothing_on_the_device(self):
        command = ("run", "--config", CORRECTNESS, "--steps", "1", "--gpu-aware-mpi", "no", "--quiet", "--methods")
        outcome = on_device(*command, "alltoallv:device")
        self.assertEqual((outcome.code, len(outcome.ours)), (2, 1), outcome.stderr)
        self.assertIn("does not take device memory", outcome.ours[0])
        outcome = on_device(*command, "alltoallv")
        self.assertEqual(outcome.code, 0, outcome.stderr)

    def test_another_word_is_refused(self):
        for arguments, inside in (
            (("--memory", "device"), ("HALOCLINE_GPU_AWARE_MPI=maybe",)),
            ((), ("HALOCLINE_GPU_AWARE_MPI=maybe",)),
            (("--gpu-aware-mpi", "maybe"), ()),
        ):
            outcome = halocline(*self.TINY, *arguments, ranks=2, inside=("env", "HALOCLINE_DEVICE=emulated", *inside))
            self.assertEqual((outcome.code, len(outcome.ours)), (2, 1), outcome.stderr)
            self.assertRegex(outcome.ours[0], "(?i)gpu.aware.mpi cannot be used")


class Device(unittest.TestCase):
    def state_hash(self, program, *arguments, ranks=1):
        outcome = program("run", "--config", CORRECTNESS, "--quiet", *arguments, ranks=ranks)
        self.assertEqual(outcome.code, 0, outcome.stderr)
        return outcome.stdout.split()[-1]

    def test_every_method_gives_the_state_of_the_host(self):
        expected = self.state_hash(halocline)
        for ranks, methods in ((1, METHODS[:1]), (2, METHODS), (4, METHODS[1:5])):
            for method in methods:
                with self.subTest(ranks=ranks, method=method):
                    self.assertEqual(self.state_hash(on_device, "--methods", method, ranks=ranks), expected)

    def test_open_boundaries_layouts_and_floats_too(self):
        for arguments in (
            ("--periodic", "false"),
            ("--layout", "aos"),
            ("--element", "float", "--describe", "hindexed"),
            ("--pad", "none"),
        ):
            with self.subTest(arguments=arguments):
                self.assertEqual(
                    self.state_hash(on_device, *arguments, ranks=2), self.state_hash(halocline, *arguments)
                )

    def test_overlap_changes_nothing(self):
        expected = self.state_hash(halocline)
        for method in ("p2p", "p2p:one-shot", "p2p:staged", "alltoallv:device", "shared"):
            with self.subTest(method=method):
                self.assertEqual(self.state_hash(on_device, "--overlap", "--methods", method, ranks=2), expected)
        open_ends = ("--periodic", "false")
        self.assertEqual(
            self.state_hash(on_device, "--overlap", "--methods", "p2p", *open_ends, ranks=2),
            self.state_hash(halocline, *open_ends),
        )

    def test_faults_are_seen_in_every_transfer(self):
        arguments = ("run", "--config", CORRECTNESS, "--inject", "flip", "--methods")
        for method, outcome in several(lambda method: on_device(*arguments, method, ranks=2), METHODS):
            with self.subTest(method=method):
                self.assertEqual((outcome.code, len(outcome.ours)), (1, 1), outcome.stderr)
                self.assertIn("verification failed", outcome.ours[0])

    def test_copies_on_a_node_and_messages_between_nodes_go_together(self):
        for nodes in ("1", "2"):
            outcome = on_device("compare", "--local", "8", "8", "8", "--iterations", "1", "--ranks-per-node", nodes, ranks=4)
            self.assertEqual(outcome.code, 0, outcome.stderr)
            self.assertRegex(outcome.stdout, r"(?m)^shared \(device\) +yes ")

    def test_compare_says_how_bytes_travelled(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "results.jsonl"
            outcome = on_device(
                "compare", "--local", "8", "8", "8", "--iterations", "2", "--methods", ",".join(METHODS), "--output", path, ranks=2
            )
            self.assertEqual(outcome.code, 0, outcome.stderr)
            records = [json.loads(line) for line in path.read_text().splitlines()]
        self.assertEqual([record["method"] for record in records], list(METHODS))
        self.assertEqual(
            [(record["exchange"], record["transfer"]) for record in records],
            [("alltoallv", "device")]
            + [("alltoallv", transfer) for transfer in TRANSFERS]
            + [("shared", "device"), ("vendor-pack", "device"), ("vendor-alltoallw", "device")],
        )
        for record in records:
            self.assertEqual(record["memory"], "device")
            self.assertEqual(record["provenance"]["gpus"], ["emulated device"])

    def test_compare_takes_all_that_is_possible(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "results.jsonl"
            outcome = on_device("compare", "--local", "8", "8", "8", "--iterations", "2", "--output", path, ranks=2)
            self.assertEqual(outcome.code, 0, outcome.stderr)
            records = [json.loads(line) for line in path.read_text().splitlines()]
        self.assertEqual([record["method"] for record in records], list(METHODS[1:]))
        phases = {record["method"]: [name for name, value in record["phases"].items() if value] for record in records}
        for method in METHODS[1:]:
            straight = method in ("shared", "vendor-alltoallw")
            expected = ["transfer", "total"] if straight else ["pack", "transfer", "unpack", "total"]
            self.assertEqual(phases[method], expected)
            self.assertEqual(records[0]["notes"], [])
        self.assertIn(records[0]["baseline"], METHODS[5:])

    def test_print_config_leaves_methods_to_the_run(self):
        printed = on_device("compare", "--print-config").stdout
        self.assertNotIn("methods", printed)
        self.assertIn('memory = "device"', printed)

    def test_dry_run_counts_both_memories(self):
        arguments = ("--local", "48", "48", "48", "--fields", "1", "--pad", "none", "--pages", "small", "--dry-run")
        fields = r"memory per rank: (\d+\.?\d*) MiB for fields, (\d+\.?\d*) MiB for messages; "
        host = re.search("\n" + fields, halocline("run", *arguments).stdout)
        emulated = re.search("\n" + fields, on_device("run", *arguments).stdout)  # its memory is the host's
        # Two plans have a buffer for each direction. Those of the host take whole huge pages.
        ghosts = (54**3 - 48**3) * 8 / 2**20
        for on_host, on_both, more in zip(host.groups(), emulated.groups(), (float(host.group(1)), 4 * ghosts)):
            self.assertAlmostEqual(float(on_both) - float(on_host), more, delta=0.02 * more)
        if not there():
            text = halocline("run", *arguments, "--memory", "device").stdout
            self.assertEqual(re.search("\n" + fields + "a node", text).group(1), host.group(1))
            self.assertEqual(re.search("\ndevice " + fields + "no device here", text).group(1), host.group(1))

    def test_what_compute_means_with_open_boundaries_is_noted(self):
        for periodic, noted in (("true", False), ("false", True)):
            outcome = on_device("run", "--local", "8", "8", "8", "--steps", "1", "--periodic", periodic)
            self.assertEqual("compute includes" in outcome.stdout, noted, outcome.stdout)

    def test_what_is_not_possible_is_refused(self):
        for arguments, words in (
            (("--methods", "alltoallv:host"), "alltoallv:host is not possible"),
            (("--methods", "vendor-pack:device"), "methods"),
            (("--methods", "alltoallv:gpu"), "methods"),
        ):
            with self.subTest(arguments=arguments):
                outcome = on_device("compare", "--local", "8", "8", "8", *arguments, ranks=2)
                self.assertEqual((outcome.code, len(outcome.ours)), (2, 1), outcome.stderr)
                self.assertIn(words, outcome.ours[0])

    def test_transfers_of_a_device_need_its_memory(self):
        outcome = halocline("compare", "--local", "8", "8", "8", "--methods", "alltoallv:staged")
        self.assertEqual((outcome.code, len(outcome.ours)), (2, 1), outcome.stderr)
        self.assertIn("alltoallv:staged is not possible", outcome.ours[0])

    def test_a_device_that_is_not_there_is_refused(self):
        if there():
            return
        outcome = halocline("run", "--memory", "device")
        self.assertEqual((outcome.code, len(outcome.ours)), (2, 1), outcome.stderr)
        self.assertIn("no device", outcome.ours[0])

    def test_only_known_devices_are_emulated(self):
        os.environ["HALOCLINE_DEVICE"] = "abacus"
        try:
            outcome = halocline("info")
        finally:
            del os.environ["HALOCLINE_DEVICE"]
        self.assertEqual((outcome.code, len(outcome.ours)), (2, 1), outcome.stderr)
        self.assertIn("HALOCLINE_DEVICE", outcome.ours[0])


if __name__ == "__main__":
    unittest.main()
