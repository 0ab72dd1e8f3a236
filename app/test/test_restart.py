# SPDX-License-Identifier: BSD-3-Clause
"""Tests runs that are watched, stopped and continued: checkpoints, the time series, STOP, RELOAD and signals."""
import array
import csv
import ctypes
import json
import math
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import tempfile
import time
import unittest
import zlib

from halocline_program import BINARY, MPIEXEC, TIMEOUT_S, halocline, own_session

GRID = ("--global", "14", "12", "10")
PHYSICS = {"heat": ("--physics", "heat", "--heat.diffusion", "0.05"), "mhd": ("--physics", "mhd")}
FIELDS = ("lnrho", "ux", "uy", "uz", "ax", "ay", "az", "s")


class OutputFolder(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.top = pathlib.Path(self.temporary.name)
        self.folder = self.top / "out"

    def hash_of(self, *arguments, ranks=1):
        outcome = halocline("run", *arguments, "--quiet", ranks=ranks)
        self.assertEqual(outcome.code, 0, outcome.stderr)
        self.assertRegex(outcome.stdout, r"\Astate hash: 0x[0-9a-f]{16}\n\Z")
        return outcome.stdout.split()[-1]

    def write(self, *arguments, ranks=1, physics="mhd", steps=6):
        """Runs with a checkpoint after every second step."""
        return self.hash_of(*PHYSICS[physics], *GRID, "--steps", str(steps), "--checkpoint-every", "2", "--output-folder", self.folder, *arguments, ranks=ranks)

    def checkpoints(self):
        return sorted(path.name for path in self.folder.glob("checkpoint-*"))

    def assert_refused(self, names, outcome, code=2):
        self.assertEqual((outcome.code, len(outcome.ours)), (code, 1), outcome.stderr)
        self.assertIn(names, outcome.ours[0])

    def rows(self):
        with open(self.folder / "timeseries.csv", newline="") as file:
            return list(csv.DictReader(file))


class Restart(OutputFolder):
    def test_same_bits_on_other_ranks_and_in_other_settings(self):
        cases = (
            (1, ()),
            (2, ("--layout", "aos", "--pad", "64")),
            (3, ("--methods", "p2p", "--overlap")),
            (4, ("--decomposition", "4", "1", "1", "--methods", "shared")),
            (8, ("--shape", "axes", "--radius", "4")),
        )
        for physics, arguments in PHYSICS.items():
            self.folder = self.top / physics
            whole = self.hash_of(*arguments, *GRID, "--steps", "13")
            half = self.write(physics=physics, steps=7, ranks=2)
            self.assertNotEqual(half, whole)
            self.assertEqual(self.checkpoints(), ["checkpoint-00000006", "checkpoint-00000007"])
            for ranks, settings in cases:
                for checkpoint in self.folder, self.folder / "checkpoint-00000006":
                    with self.subTest(physics=physics, ranks=ranks, settings=settings, checkpoint=checkpoint.name):
                        self.assertEqual(self.hash_of("--restart", checkpoint, "--steps", "13", *settings, ranks=ranks), whole)

    def test_floats_too(self):
        whole = self.hash_of(*PHYSICS["mhd"], *GRID, "--steps", "4", "--element", "float")
        self.write("--element", "float", "--layout", "aos", steps=2, ranks=3)
        self.assertEqual(self.hash_of("--restart", self.folder, "--steps", "4", ranks=2), whole)

    def test_shock_viscosity_too(self):
        shock = ("--mhd.shock", "1", "--mhd.amplitude", "0.5")
        whole = self.hash_of(*PHYSICS["mhd"], *GRID, *shock, "--steps", "5")
        self.write(*shock, steps=2, ranks=2)
        self.assertEqual(self.hash_of("--restart", self.folder, "--steps", "5", "--layout", "aos", ranks=4), whole)
        outcome = halocline("run", "--restart", self.folder, "--steps", "5", "--mhd.shock", "0")
        self.assert_refused("restart has other fields (9 in ", outcome)

    def test_a_run_with_local_points_too(self):
        local = ("--physics", "mhd", "--mhd.amplitude", "1", "--local", "12", "12", "12")
        for ranks in 1, 2:
            with self.subTest(ranks=ranks):
                self.folder = self.top / str(ranks)
                whole = self.hash_of(*local, "--steps", "12", ranks=ranks)
                self.hash_of(*local, "--steps", "6", "--checkpoint-every", "6", "--output-folder", self.folder, ranks=ranks)
                for given in (), local:
                    self.assertEqual(self.hash_of("--restart", self.folder, "--steps", "12", *given, ranks=ranks), whole)
                outcome = halocline("run", "--restart", self.folder, "--steps", "12", *local, ranks=4)
                self.assert_refused("restart has another global (", outcome)
                self.assertIn("): leave out local, which the checkpoint knows", outcome.ours[0])

    def test_settings_do_not_depend_on_the_run(self):
        """Settings of a checkpoint are parameters: no file, no number of ranks, no extent."""
        self.write(steps=2)
        description = self.folder / "checkpoint-00000002" / "checkpoint.json"
        content = json.loads(description.read_text())
        self.assertFalse({"physics", "global", "element"} & set(content["settings"]))
        content["settings"] |= {"output": str(self.top / "records"), "threads": 1000000, "heat.diffusion": 7, "stencil": "heat9", "global": [1, 1, 1]}
        description.write_text(json.dumps(content))
        whole = self.hash_of(*PHYSICS["mhd"], *GRID, "--steps", "4")
        self.assertEqual(self.hash_of("--restart", description.parent, "--steps", "4"), whole)
        self.assertFalse((self.top / "records").exists())

    def test_a_parameter_that_is_none_is_refused(self):
        self.write(steps=2)
        path = self.folder / "checkpoint-00000002" / "checkpoint.json"
        whole = json.loads(path.read_text())
        path.write_text(json.dumps(whole | {"settings": {"mhd.spacig": 0.1}}))
        outcome = halocline("run", "--restart", path.parent, "--steps", "4", ranks=2)
        self.assert_refused("mhd.spacig is no parameter of mhd (", outcome)
        shutil.copytree(path.parent, self.folder / "checkpoint-00000001")  # which must not take its place
        (self.folder / "checkpoint-00000001" / "checkpoint.json").write_text(json.dumps(whole))
        self.assert_refused("mhd.spacig is no parameter of mhd (", halocline("run", "--restart", self.folder, "--steps", "4"))

    def test_a_state_that_is_none_is_refused(self):
        self.write(physics="heat", steps=2)
        description = self.folder / "checkpoint-00000002" / "checkpoint.json"
        content = json.loads(description.read_text())
        for state in ["nan"], ["inf"], ["0x0p+0"], ["-0x1p-5"], ["0x1p-3"], ["0x1p-5", "0x1p-5"]:
            with self.subTest(state=state):
                description.write_text(json.dumps(content | {"state": state}))
                outcome = halocline("run", "--restart", description.parent, "--steps", "4", ranks=2)
                self.assert_refused(f"restart cannot be used ({description.parent} has a state that heat does not know): give", outcome)

    def test_goes_on_in_the_same_folder(self):
        self.write("--series-every", "1", "--snapshot-every", "2", steps=4)
        before = self.rows()
        outcome = halocline("run", "--restart", self.folder, "--output-folder", self.folder, "--steps", "8", "--checkpoint-every", "2", "--series-every", "1", ranks=2)
        self.assertEqual(outcome.code, 0, outcome.stderr)
        self.assertIn(f"goes on from {self.folder}/checkpoint-00000004, step 4\n", outcome.stdout)
        self.assertEqual([row["step"] for row in self.rows()], [str(step) for step in range(9)])
        self.assertEqual([row["lnrho_max"] for row in self.rows()[:5]], [row["lnrho_max"] for row in before])
        self.assertEqual(self.checkpoints(), ["checkpoint-00000006", "checkpoint-00000008"])

    def test_checkpoints_of_another_future_are_set_aside(self):
        self.write(steps=6)
        older, newer = (self.folder / name for name in self.checkpoints())
        shutil.copytree(newer, self.top / "newer")
        outcome = halocline("run", "--restart", older, "--output-folder", self.folder, "--mhd.nu", "0.03", "--steps", "5", "--checkpoint-every", "5", ranks=2)
        self.assertEqual(outcome.code, 0, outcome.stderr)
        self.assertIn(f"set aside checkpoints of later steps than this run: {newer}.abandoned\n", outcome.stderr)
        self.assertEqual(self.checkpoints(), [older.name, "checkpoint-00000005", f"{newer.name}.abandoned"])
        self.assertEqual((self.folder / f"{newer.name}.abandoned" / "s.raw").read_bytes(), (self.top / "newer" / "s.raw").read_bytes())
        outcome = halocline("run", "--restart", self.folder, "--output-folder", self.folder, "--steps", "6")
        self.assertIn("goes on from " + str(self.folder / "checkpoint-00000005"), outcome.stdout)
        self.assertNotIn("set aside", outcome.stderr)

    def test_another_future_is_set_aside_without_checkpoints_of_its_own(self):
        self.write(steps=6)
        older, newer = (self.folder / name for name in self.checkpoints())
        outcome = halocline("run", "--restart", older, "--output-folder", self.folder, "--mhd.nu", "0.03", "--steps", "5", "--quiet")
        self.assertEqual(outcome.code, 0, outcome.stderr)
        self.assertIn(f"set aside checkpoints of later steps than this run: {newer}.abandoned\n", outcome.stderr)
        self.assertEqual(self.checkpoints(), [older.name, f"{newer.name}.abandoned"])

    def test_a_dry_run_refuses_what_a_run_refuses(self):
        self.write(steps=6)
        mhd = (*PHYSICS["mhd"], *GRID)
        for words, text in (
            ((*mhd, "--output-folder", self.folder, "--series-every", "1"), "output-folder holds a run already"),
            ((*mhd, "--slice-every", "1", "--slice-fields", "q"), "slice-fields cannot be used (there is no field q)"),
            (("--restart", self.folder, "--steps", "5"), "steps are done already (steps 5, "),
            (("--restart", self.folder, "--steps", "7", "--periodic", "false"), "restart has another periodic (true in "),
        ):
            for dry in (), ("--dry-run",):
                with self.subTest(text=text, dry=dry):
                    self.assert_refused(text, halocline("run", *words, *dry, ranks=2))

    def test_a_run_that_is_refused_changes_nothing(self):
        self.write(steps=6)
        before, older = self.checkpoints(), self.folder / self.checkpoints()[0]
        for words, code in ((("--steps", "8", "--mhd.dt", "10"), 2), (("--steps", "4"), 0)):
            outcome = halocline("run", "--restart", older, "--output-folder", self.folder, *words, ranks=2)
            self.assertEqual(outcome.code, code, outcome.stderr)
            self.assertEqual(self.checkpoints(), before)

    def test_a_damaged_checkpoint_does_not_count(self):
        self.write(steps=4)
        older, newer = (self.folder / name for name in self.checkpoints())
        shutil.copytree(newer, self.folder / "mine")
        os.truncate(newer / "uz.raw", 8)
        self.hash_of("--restart", self.folder / "mine", "--output-folder", self.folder, "--steps", "6", "--checkpoint-every", "6")
        self.assertEqual(self.checkpoints(), [older.name, newer.name, "checkpoint-00000006"])

    def test_leftovers_of_killed_runs_are_removed(self):
        self.write(steps=4)
        older, newer = (self.folder / name for name in self.checkpoints())
        shutil.copytree(newer, f"{newer}.old")
        shutil.copytree(newer, f"{newer}.part")
        older.rename(f"{older}.old")
        kept = self.folder / "checkpoint-best.old", self.folder / "mine.part"
        for file in (*kept, self.folder / "fields-00000003.vti.part"):
            file.write_text("")
        self.hash_of("--restart", self.folder, "--output-folder", self.folder, "--steps", "5")
        self.assertEqual(set(self.folder.iterdir()), {older, newer, *kept})

    def test_takes_parameters_of_the_command_line(self):
        whole = self.hash_of(*PHYSICS["mhd"], *GRID, "--steps", "4", "--mhd.nu", "0.02")
        self.write("--mhd.nu", "0.02", steps=2)
        self.assertEqual(self.hash_of("--restart", self.folder, "--steps", "4"), whole)
        self.assertNotEqual(self.hash_of("--restart", self.folder, "--steps", "4", "--mhd.nu", "0.03"), whole)

    def test_a_fixed_step_is_checked_against_the_fields(self):
        step = ("--mhd.dt", "0.004")
        whole = self.hash_of(*PHYSICS["mhd"], *GRID, *step, "--steps", "6")
        self.write(*step, steps=4, ranks=2)
        self.assertEqual(self.hash_of("--restart", self.folder, "--steps", "6", "--overlap", ranks=2), whole)

        self.folder = self.top / "faster"
        driven = ("--mhd.initial", "uniform", "--mhd.forcing", "5", "--mhd.dt", "0.02")
        whole = self.hash_of(*PHYSICS["mhd"], *GRID, *driven, "--steps", "3")
        self.write(*driven, steps=2)
        outcome = halocline("run", "--restart", self.folder, "--steps", "3", ranks=2)
        self.assert_refused("mhd.dt is not stable (mhd.dt 0.02, some wave grows in steps above 0.0", outcome)
        self.assertEqual(self.hash_of("--restart", self.folder, "--steps", "3", "--force-dt", ranks=2), whole)

    def test_initial_state_of_another_program(self):
        """Writes the state in which `run` begins, as results/checkpoints.md describes it."""
        self.write("--snapshot-every", "1", steps=0)
        (snapshot,) = self.folder.glob("fields-*.vti")
        data = snapshot.read_bytes()
        data = data[data.index(b"_", data.index(b"<AppendedData")) + 1 :]
        state = self.top / "state"
        state.mkdir()
        for name in FIELDS:
            (bytes_of_field,) = struct.unpack_from("=Q", data)
            self.assertEqual(bytes_of_field, 14 * 12 * 10 * 8)
            (state / name).write_bytes(data[8 : 8 + bytes_of_field])
            data = data[8 + bytes_of_field :]
        description = {"format": "halocline-checkpoint/1", "physics": "mhd", "step": 0, "global": [14, 12, 10], "element": "double"}
        description["fields"] = [{"name": name, "file": name} for name in FIELDS]
        (state / "checkpoint.json").write_text(json.dumps(description))
        whole = self.hash_of(*PHYSICS["mhd"], *GRID, "--steps", "3")
        self.assertEqual(self.hash_of("--restart", state, "--steps", "3", ranks=2), whole)
        (state / "ux").write_bytes(struct.pack("<d", float("nan")) + (state / "ux").read_bytes()[8:])
        outcome = halocline("run", "--restart", state, "--steps", "0")
        self.assertEqual(outcome.code, 1, outcome.stderr)
        description["step"] = 1
        (state / "checkpoint.json").write_text(json.dumps(description))
        self.assert_refused("restart has no state", halocline("run", "--restart", state, "--steps", "3"))

    def test_description_is_that_of_the_page(self):
        self.write(ranks=2)
        newest = self.folder / "checkpoint-00000006"
        description = json.loads((newest / "checkpoint.json").read_text())
        self.assertEqual(description["global"], [14, 12, 10])
        self.assertEqual(description["step"], 6)
        for field in description["fields"]:
            data = (newest / field["file"]).read_bytes()
            self.assertEqual(len(data), 14 * 12 * 10 * 8)
            self.assertEqual(int(field["crc32"], 16), zlib.crc32(data))
        time_at_end = float.fromhex(description["state"][1])
        self.assertGreater(time_at_end, 0)

    def test_what_does_not_suit_is_refused(self):
        self.write(steps=2)
        for arguments, text in (
            (("--physics", "heat"), "restart has another physics (mhd in "),
            (("--global", "14", "12", "11"), "restart has another global (14 x 12 x 10 in "),
            (("--local", "14", "12", "11"), "restart has another global (14 x 12 x 10 in "),
            (("--element", "float"), "restart has another element (double in "),
            (("--steps", "1"), "steps are done already (steps 1, "),
            (("--restart", self.top), f"restart finds no checkpoint ({self.top}): give --restart"),
            (("--restart", self.top / "nowhere"), "restart finds no checkpoint"),
        ):
            with self.subTest(arguments=arguments):
                given = () if "--restart" in arguments else ("--restart", self.folder)
                self.assert_refused(text, halocline("run", *given, *arguments, ranks=2))
        heat = self.top / "heat"
        self.hash_of(*PHYSICS["heat"], *GRID, "--steps", "1", "--checkpoint-every", "1", "--output-folder", heat)
        stages = self.top / "stages"
        self.hash_of(*PHYSICS["heat"], *GRID, "--stages", "2", "--stencil", "heat9", "--steps", "1", "--checkpoint-every", "1", "--output-folder", stages)
        self.assert_refused("restart has another physics (heat in ", halocline("run", "--restart", stages, "--physics", "mhd", "--steps", "2"))
        for arguments, text in (
            (("--fields", "7"), "restart has other fields (8 in "),
            (("--stencil", "heat9"), 'restart has another stencil ("heat13" in '),
            (("--stages", "2"), "restart has another stages (1 in "),
            (("--periodic", "false"), "restart has another periodic (true in "),
        ):
            with self.subTest(arguments=arguments):
                self.assert_refused(text, halocline("run", "--restart", heat, *arguments))


class Device(OutputFolder):
    """Tests runs with fields in the memory of an emulated device."""

    # After some step each kind of file is the only one.
    ALL_FILES = ("--steps", "7", "--checkpoint-every", "5", "--series-every", "3", "--snapshot-every", "2", "--slice-every", "2", "--slice-fields", "ux,s")

    def run_in(self, memory, *arguments, ranks=1):
        outcome = halocline("run", "--memory", memory, *arguments, "--quiet", ranks=ranks, inside=("env", "HALOCLINE_DEVICE=emulated"))
        self.assertEqual(outcome.code, 0, outcome.stderr)
        return outcome.stdout.split()[-1]

    def files_of(self, memory, *arguments, ranks):
        """Returns the checksums of all files of a run, by name."""
        folder = self.top / f"{memory}-{ranks}"
        self.run_in(memory, *PHYSICS["mhd"], *GRID, *self.ALL_FILES, *arguments, "--output-folder", folder, ranks=ranks)
        return {str(path.relative_to(folder)): zlib.crc32(path.read_bytes()) for path in folder.rglob("*") if path.is_file()}

    def test_writes_the_files_of_the_host(self):
        for ranks, arguments in ((1, ()), (2, ("--layout", "aos", "--overlap"))):
            with self.subTest(ranks=ranks):
                on_host, on_device = (self.files_of(memory, *arguments, ranks=ranks) for memory in ("host", "device"))
                for name in ("checkpoint-00000005/checkpoint.json", "timeseries.csv", "fields-00000004.vti", "slice-ux-z-00000004.png"):
                    self.assertIn(name, on_host)
                self.assertEqual(on_device, on_host)

    def test_goes_on_from_the_host_and_back(self):
        for physics, arguments in PHYSICS.items():
            whole = self.hash_of(*arguments, *GRID, "--steps", "6")
            for first, second, ranks in (("host", "device", 4), ("device", "host", 1), ("device", "device", 1)):
                with self.subTest(physics=physics, first=first, second=second):
                    folder = self.top / f"{physics}-{first}-{second}"
                    self.run_in(first, *arguments, *GRID, "--steps", "3", "--checkpoint-every", "3", "--output-folder", folder, ranks=2)
                    self.assertEqual(self.run_in(second, "--restart", folder, "--steps", "6", ranks=ranks), whole)


class Damage(OutputFolder):
    def setUp(self):
        super().setUp()
        self.whole = self.hash_of(*PHYSICS["mhd"], *GRID, "--steps", "6")
        self.write(steps=4)
        self.older, self.newest = (self.folder / name for name in self.checkpoints())
        self.copy = self.top / "copy"
        shutil.copytree(self.folder, self.copy)

    def damage(self, change):
        shutil.rmtree(self.folder)
        shutil.copytree(self.copy, self.folder)
        change()

    def test_is_named_and_the_older_one_is_taken(self):
        ux, description = self.newest / "ux.raw", self.newest / "checkpoint.json"

        def flip():
            data = bytearray(ux.read_bytes())
            data[1000] ^= 1
            ux.write_bytes(data)

        def replaced(old, new):
            return lambda: description.write_text(description.read_text().replace(old, new))

        for change, text in (
            (flip, "ux.raw has checksum 0x"),
            (lambda: os.truncate(ux, 8), "ux.raw has 8 bytes, not 13440"),
            (ux.unlink, "ux.raw cannot be read: No such file or directory"),
            (lambda: os.truncate(description, 300), "checkpoint.json is damaged"),
            (lambda: description.write_bytes(b""), "checkpoint.json"),
            (lambda: description.write_text("[" * 100000), "checkpoint.json is damaged"),
            (replaced("checkpoint/1", "checkpoint/2"), 'has format "halocline-checkpoint/2", this program reads halocline-checkpoint/1'),
            (replaced('"element"', '"elements"'), "lacks its element, or has one that cannot be used"),
            (replaced('"0x', '"1x'), "lacks its fields, or has one that cannot be used"),
            (replaced("little", "big"), "another byte order"),
            (replaced('"state_hash": "0x', '"state_hash": "0xf'), "do not have its state_hash"),
        ):
            with self.subTest(text=text):
                self.damage(change)
                outcome = halocline("run", "--restart", self.newest, "--steps", "6", ranks=2)
                self.assert_refused(text, outcome)
                self.assertTrue(outcome.ours[0].endswith((f"give --restart {self.older}, which is older", "give --restart another checkpoint")), outcome.ours)
                outcome = halocline("run", "--restart", self.folder, "--steps", "6", ranks=2)
                self.assertEqual(outcome.code, 0, outcome.stderr)
                self.assertIn(text, outcome.stderr)
                self.assertIn(f"goes on from {self.older}, step 2\n", outcome.stdout)
                self.assertIn(self.whole, outcome.stdout)

    def test_values_of_another_type_are_refused(self):
        description = self.newest / "checkpoint.json"
        content = json.loads(description.read_text())
        fields = content["fields"]
        for wrong in (
            {"step": 4.5}, {"step": "4"}, {"step": -1}, {"step": 2**64 - 1}, {"global": [14.7, 12, 10]}, {"global": [14, 12, 10, 1]}, {"global": [14, 12]},
            {"global": [0, 12, 10]}, {"state": "0x1p0"}, {"settings": []}, {"settings": "seed"}, {"element": "complex"},
            {"fields": [fields[0] | {"crc32": "0x1" + fields[0]["crc32"][2:]}, *fields[1:]]},
        ):
            with self.subTest(wrong=wrong):
                description.write_text(json.dumps(content | wrong))
                self.assert_refused(f"restart cannot be used ({description} lacks its {next(iter(wrong))}, or has one that cannot be used): give", halocline("run", "--restart", self.newest, "--steps", "6"))

    def test_of_all_checkpoints(self):
        for checkpoint in self.older, self.newest:
            os.truncate(checkpoint / "s.raw", 0)
        self.assert_refused("is damaged: s.raw has 0 bytes, not 13440): give --restart another checkpoint", halocline("run", "--restart", self.folder, "--steps", "6"))


class Writing(OutputFolder):
    def test_a_run_that_is_killed_goes_on_from_a_good_checkpoint(self):
        """Kills runs at many moments, most of which lie in the writing of a checkpoint."""
        whole = self.hash_of(*PHYSICS["mhd"], *GRID, "--steps", "60")
        for moment in range(12):
            command = [BINARY, "run", *PHYSICS["mhd"], *GRID, "--steps", "60", "--checkpoint-every", "1", "--output-folder", self.folder, "--quiet"]
            with self.subTest(moment=moment), own_session() as environment:
                if self.folder.exists():
                    shutil.rmtree(self.folder)
                job = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                deadline = time.monotonic() + TIMEOUT_S
                while len(self.checkpoints()) < 3 and time.monotonic() < deadline:
                    time.sleep(0.001)
                time.sleep(0.0007 * moment)
                job.kill()
                job.wait()
                self.assertEqual(self.hash_of("--restart", self.folder, "--steps", "60"), whole)

    def test_a_full_disk_keeps_the_last_good_checkpoint(self):
        self.write(steps=2)
        before = {path: path.read_bytes() for path in self.folder.rglob("*") if path.is_file()}
        for ranks in 1, 2:
            limited = ["bash", "-c", 'ulimit -f 8; trap "" XFSZ; "$@"', "limited"]
            # By default Open MPI itself has files that are longer.
            outcome = halocline("run", "--restart", self.folder, "--steps", "4", "--checkpoint-every", "2", "--output-folder", self.folder, "--quiet", ranks=ranks, program=limited, inside=("env", "PMIX_MCA_gds=hash"))
            self.assert_refused("output cannot be written", outcome, code=3)
            self.assertEqual({path: path.read_bytes() for path in self.folder.rglob("*") if path.is_file()}, before)

    def test_lost_bytes_keep_the_last_good_checkpoint(self):
        """Loses what is written to a file, of which no call says anything."""
        self.write(steps=2)
        before = {path: path.read_bytes() for path in self.folder.rglob("*") if path.is_file()}
        for kind, why in (("holes", "its files do not hold what was written"), ("short", "it has come out too short")):
            for ranks in 1, 2:
                with self.subTest(kind=kind, ranks=ranks):
                    lossy = ("env", "LD_PRELOAD=" + os.environ["HALOCLINE_LOSSY_DISK"], f"HALOCLINE_LOST={kind}:uy.raw.part")
                    outcome = halocline("run", "--restart", self.folder, "--steps", "4", "--checkpoint-every", "2", "--output-folder", self.folder, "--quiet", ranks=ranks, program=lossy)
                    self.assert_refused("output cannot be written", outcome, code=3)
                    self.assertIn(why, outcome.ours[0])
                    self.assertEqual({path: path.read_bytes() for path in self.folder.rglob("*") if path.is_file()}, before)

    def test_folders_that_cannot_be_used(self):
        (self.top / "file").write_text("")
        outcome = halocline("run", *GRID, "--checkpoint-every", "1", "--output-folder", self.top / "file" / "out", ranks=2)
        self.assert_refused("output cannot be written", outcome, code=3)
        self.write(steps=2)
        before = self.checkpoints()
        outcome = halocline("run", *PHYSICS["mhd"], *GRID, "--steps", "1", "--checkpoint-every", "1", "--output-folder", self.folder, ranks=2)
        self.assert_refused("output-folder holds a run already", outcome)
        self.assertEqual(self.checkpoints(), before)

    def test_long_paths(self):
        for name in "a" * 200 + "/" + "b" * 200, "/".join("c" * 200 for _ in range(9)):
            self.folder = self.top / name
            self.write("--snapshot-every", "2", steps=2, ranks=2)
            self.write("--restart", self.folder, steps=4)

    def test_a_killed_program_does_not_stop_others(self):
        """Leaves the semaphore that Open MPI 4.1.4 has for every file of this name, as a killed program does."""
        library = ctypes.CDLL(None, use_errno=True)
        name = b"/OMPIO_fields-00000097.vti.part"
        library.sem_open.restype = ctypes.c_void_p
        if library.sem_open(name, os.O_CREAT, 0o600, 0) is None:
            self.skipTest("no semaphore: " + os.strerror(ctypes.get_errno()))
        self.addCleanup(library.sem_unlink, name)
        self.hash_of("--global", "6", "6", "6", "--fields", "1", "--steps", "97", "--snapshot-every", "97", "--output-folder", self.folder, ranks=2)

    def test_default_folder_is_new(self):
        for _ in range(2):
            outcome = halocline("run", *GRID, "--steps", "1", "--series-every", "1", cwd=self.top)
            self.assertEqual(outcome.code, 0, outcome.stderr)
        self.assertEqual(len(list((self.top / "results" / "mine").iterdir())), 2)
        self.assertFalse(list(self.top.glob("results/mine/*/checkpoint-*")))


class Control(OutputFolder):
    ENDLESS = ("--steps", "1000000")

    def start(self, *arguments, ranks=1, physics=PHYSICS["mhd"]):
        command = [MPIEXEC, "-n", str(ranks)] if ranks > 1 else []
        command += [BINARY, "run", *physics, *GRID, *self.ENDLESS, "--series-every", "1", "--output-folder", str(self.folder), *arguments]
        environment = self.enterContext(own_session()) if hasattr(self, "enterContext") else self.session()
        job = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + TIMEOUT_S
        series = self.folder / "timeseries.csv"
        while not (series.exists() and series.read_text().count("\n") > 3) and time.monotonic() < deadline:
            time.sleep(0.01)
        return job

    def session(self):
        context = own_session()
        environment = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        return environment

    def assert_stopped(self, job, by):
        out, err = job.communicate(timeout=TIMEOUT_S)
        self.assertEqual(job.returncode, 0, err)
        self.assertRegex(out, rf"stopped by {by} after step \d+ of 1000000; go on with --restart {self.folder}\n")
        self.assertIn("verified: every ghost bitwise", out)
        (checkpoint,) = self.checkpoints()
        step = int(checkpoint.rpartition("-")[2])
        whole = self.hash_of(*PHYSICS["mhd"], *GRID, "--steps", str(step + 2))
        self.assertEqual(self.hash_of("--restart", self.folder, "--steps", str(step + 2)), whole)

    def test_a_file_stops(self):
        job = self.start(ranks=2)
        (self.folder / "STOP").touch()
        self.assert_stopped(job, "file STOP")
        self.assertFalse((self.folder / "STOP").exists())

    def test_signals_stop(self):
        for number in signal.SIGTERM, signal.SIGUSR1:
            with self.subTest(signal=number.name):
                self.folder = self.top / number.name
                job = self.start()
                job.send_signal(number)
                self.assert_stopped(job, number.name)

    def test_a_signal_to_mpiexec_stops(self):
        job = self.start(ranks=2)
        job.send_signal(signal.SIGUSR1)
        self.assert_stopped(job, "SIGUSR1")

    def test_a_run_that_hangs_is_ended_by_a_second_signal(self):
        job = self.start(ranks=2)
        hanging, other = map(int, pathlib.Path(f"/proc/{job.pid}/task/{job.pid}/children").read_text().split())
        os.kill(hanging, signal.SIGSTOP)
        os.kill(other, signal.SIGTERM)
        time.sleep(0.2)
        os.kill(other, signal.SIGTERM)  # the same one, passed on
        time.sleep(2)
        self.assertIsNone(job.poll())
        os.kill(other, signal.SIGTERM)
        out, err = job.communicate(timeout=TIMEOUT_S)
        self.assertNotIn(job.returncode, (0, 1), out + err)

    def settings_after(self, texts, physics):
        """Runs with each text in the config file, one after the other. Returns the output and the settings at the end."""
        config = self.top / "c.toml"
        first, *others = texts
        config.write_text(first)
        job = self.start("--config", str(config), ranks=2, physics=("--physics", physics))
        for text in others:
            config.write_text(text)
            (self.folder / "RELOAD").touch()
            deadline = time.monotonic() + TIMEOUT_S
            while (self.folder / "RELOAD").exists() and time.monotonic() < deadline:
                time.sleep(0.01)
            self.assertFalse((self.folder / "RELOAD").exists())
        time.sleep(0.1)
        (self.folder / "STOP").touch()
        out, err = job.communicate(timeout=TIMEOUT_S)
        self.assertEqual(job.returncode, 0, err)
        (checkpoint,) = self.checkpoints()
        return out + err, json.loads((self.folder / checkpoint / "checkpoint.json").read_text())["settings"]

    def test_a_folder_takes_one_run_at_a_time(self):
        job = self.start("--checkpoint-every", "2")
        taken = f"output-folder is in use (another run writes to {self.folder}): give another"
        for words in (), ("--restart", self.folder):
            self.assert_refused(taken, halocline("run", *PHYSICS["mhd"], *GRID, *self.ENDLESS, *words, "--output-folder", self.folder, ranks=2))
        (self.folder / "STOP").touch()
        out, err = job.communicate(timeout=TIMEOUT_S)
        self.assertEqual(job.returncode, 0, out + err)
        steps = re.findall(r"stopped by file STOP after step (\d+) of", out)[0]
        self.hash_of("--restart", self.folder, "--output-folder", self.folder, "--steps", str(int(steps) + 1))

    def test_a_file_changes_parameters(self):
        out, settings = self.settings_after(["[mhd]\nnu = 0.01\n", "[mhd]\nnu = 0.5\n", "[mhd]\nnu = -1\n"], "mhd")
        self.assertRegex(out, r"(?m)^RELOAD after step \d+: mhd.nu 0.01 -> 0.5$")
        self.assertIn("kept the old parameters: mhd.nu cannot be used", out)
        self.assertEqual(settings["mhd.nu"], 0.5)

    def test_the_same_parameters_change_no_bits(self):
        out, _ = self.settings_after(["[mhd]\nnu = 0.01\n"] * 2, "mhd")
        self.assertRegex(out, r"(?m)^RELOAD after step \d+: no parameter has changed$")
        steps, = re.findall(r"stopped by file STOP after step (\d+) of", out)
        self.assertIn(self.hash_of(*PHYSICS["mhd"], *GRID, "--mhd.nu", "0.01", "--steps", steps), out)

    def test_parameters_that_do_not_suit_change_nothing(self):
        wrong = ("spacing = 0.2", "initial = 'random'", "forcing = 0.1\nforcing-k-min = 2.3\nforcing-k-max = 2.4", "shock = 1.0")
        out, settings = self.settings_after(["[mhd]\nnu = 0.01\n", *(f"[mhd]\nnu = 0.5\n{text}\n" for text in wrong)], "mhd")
        self.assertNotIn("->", out)
        for text in ("mhd.spacing cannot change (0.2, the run keeps ", 'mhd.initial cannot change ("random", the run keeps "waves")',
                     "mhd.forcing-k-max leaves", "mhd.shock cannot become 0 or more than 0 in a run"):
            self.assertIn(f"kept the old parameters: {text}", out)
        self.assertEqual((settings["mhd.nu"], settings["mhd.forcing"]), (0.01, 0.0))

    def test_parameters_change_after_their_checkpoint_is_gone(self):
        self.write("--mhd.eta", "0.02", steps=2)
        config = self.top / "c.toml"
        config.write_text("[mhd]\nnu = 0.01\n")
        job = self.start("--config", str(config), "--restart", str(self.folder), physics=())
        shutil.rmtree(self.folder / "checkpoint-00000002")
        config.write_text("[mhd]\nnu = 0.02\n")
        (self.folder / "RELOAD").touch()
        time.sleep(0.3)
        (self.folder / "STOP").touch()
        out, err = job.communicate(timeout=TIMEOUT_S)
        self.assertEqual(job.returncode, 0, err)
        self.assertRegex(out, r"(?m)^RELOAD after step \d+: mhd.nu 0.01 -> 0.02$")
        (checkpoint,) = self.checkpoints()
        settings = json.loads((self.folder / checkpoint / "checkpoint.json").read_text())["settings"]
        self.assertEqual((settings["mhd.nu"], settings["mhd.eta"]), (0.02, 0.02))

    def test_heat_keeps_its_parameter(self):
        out, settings = self.settings_after(["[heat]\ndiffusion = 0.0001\n", "[heat]\ndiffusion = 0.0002\n", ""], "heat")
        for given in "0.000200", "0.000000":
            self.assertIn(f"kept the old parameters: heat.diffusion cannot change ({given}, the run keeps 0.000100)", out)
        self.assertNotIn("->", out)
        self.assertEqual(settings["heat.diffusion"], 0.0001)
        restart = ("run", "--restart", self.folder, *self.ENDLESS, "--heat.diffusion")
        self.assert_refused("heat.diffusion cannot change (0.000200, the run keeps 0.000100)", halocline(*restart, "0.0002", ranks=2))


class Mended(OutputFolder):
    """Faults that a review of this code has found."""

    def test_a_stop_before_the_first_step_leaves_a_checkpoint(self):
        large = (*PHYSICS["mhd"], "--global", "80", "80", "80", "--quiet")  # its verification takes a while
        command = [BINARY, "run", *large, "--steps", "100000", "--output-folder", str(self.folder)]
        with own_session() as environment:
            job = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            while not self.folder.exists():
                time.sleep(0.001)
            time.sleep(0.05)  # a file that was there before would be removed
            (self.folder / "STOP").touch()
            _, err = job.communicate(timeout=TIMEOUT_S)
        self.assertEqual(job.returncode, 0, err)
        self.assertEqual(self.checkpoints(), ["checkpoint-00000000"])
        self.assertEqual(self.hash_of("--restart", self.folder, "--steps", "1"), self.hash_of(*large[:-1], "--steps", "1"))

    def test_a_run_in_another_folder_is_left_alone(self):
        other = self.top / "other"
        self.hash_of(*PHYSICS["mhd"], *GRID, "--steps", "2", "--checkpoint-every", "1", "--output-folder", other)
        self.write(steps=2)
        outcome = halocline("run", "--restart", self.folder, "--steps", "4", "--checkpoint-every", "1", "--output-folder", other)
        self.assert_refused(f"output-folder holds a run already ({other})", outcome)
        self.assertEqual(sorted(path.name for path in other.iterdir()), ["checkpoint-00000001", "checkpoint-00000002"])

    def test_no_checkpoint_holds_values_that_are_not_finite(self):
        broken = (*PHYSICS["mhd"], *GRID, "--mhd.dt", "1", "--force-dt", "--steps", "30", "--checkpoint-every", "1")
        outcome = halocline("run", *broken, "--output-folder", self.folder, "--quiet", ranks=2)
        self.assertEqual(outcome.code, 1, outcome.stderr)
        self.assertIn(" is not finite at step ", outcome.ours[0])
        for name in self.checkpoints():
            for path in (self.folder / name).glob("*.raw"):
                numbers = array.array("d", path.read_bytes())
                self.assertTrue(all(map(math.isfinite, numbers)), path)

    def test_a_run_keeps_what_made_its_fields(self):
        self.write(steps=2)
        for key, value in (("spacing", "0.3"), ("initial", "random"), ("amplitude", "0.3"), ("lnrho0", "0.5")):
            outcome = halocline("run", "--restart", self.folder, "--steps", "4", f"--mhd.{key}", value)
            self.assert_refused(f"mhd.{key} cannot change (", outcome)

    def test_the_state_of_another_program_stays_one(self):
        """No wave is known for it, also after a second restart."""
        self.write(physics="heat", steps=2)
        newest = self.folder / "checkpoint-00000002"
        description = json.loads((newest / "checkpoint.json").read_text())
        for key in ("state", "settings", "state_hash"):
            description.pop(key)
        description["step"] = 0
        state = self.top / "state"
        newest.rename(state)
        (state / "checkpoint.json").write_text(json.dumps(description))
        folder = self.top / "own"
        self.hash_of("--restart", state, "--physics", "heat", "--steps", "4", "--checkpoint-every", "2", "--output-folder", folder)
        self.hash_of("--restart", folder, "--steps", "6")

    def test_a_state_that_is_none_is_refused(self):
        self.write(steps=2)
        path = self.folder / "checkpoint-00000002" / "checkpoint.json"
        whole = json.loads(path.read_text())
        for state in (["0x1p0"], ["0x1p2", "nan", "0x1p0"], ["0x1p2", "0x1p0", "0x0p0"], ["-0x1p2", "0x1p0", "0x1p0"], ["0x1.8p0", "0x1p0", "0x1p0"]):
            with self.subTest(state=state):
                path.write_text(json.dumps(whole | {"state": state}))
                outcome = halocline("run", "--restart", path.parent, "--steps", "4", ranks=2)
                self.assert_refused("has a state that mhd does not know): give --restart another checkpoint", outcome)

    def test_nothing_that_moves_has_no_longest_step(self):
        still = [f"--mhd.{name}={0}" for name in ("cs0", "nu", "zeta", "eta", "conduction")]
        outcome = halocline("run", *PHYSICS["mhd"], *GRID, "--steps", "2", "--mhd.initial", "uniform", *still, ranks=2)
        self.assert_refused("mhd.dt cannot be chosen (no wave moves, and nothing diffuses): give mhd.dt", outcome)


class Series(OutputFolder):
    def test_has_the_range_of_each_field(self):
        expected = None
        for ranks, arguments in ((1, ()), (2, ("--layout", "aos")), (4, ())):
            self.folder = self.top / str(ranks)
            self.hash_of(*PHYSICS["mhd"], *GRID, "--steps", "4", "--series-every", "2", "--output-folder", self.folder, *arguments, ranks=ranks)
            rows = self.rows()
            self.assertEqual([row["step"] for row in rows], ["0", "2", "4"])
            exact = [{key: value for key, value in row.items() if key == "t" or key.endswith(("_min", "_max"))} for row in rows]
            expected = expected or exact
            self.assertEqual(exact, expected)
            for row in rows:
                for name in FIELDS:
                    low, rms, high = (float(row[f"{name}_{kind}"]) for kind in ("min", "rms", "max"))
                    self.assertTrue(low <= high and abs(rms) <= max(abs(low), abs(high)) + 1e-12, row)
        self.assertLess(abs(float(rows[0]["ux_max"]) - 0.4), 0.02)

    def test_a_run_that_breaks_down_ends_with_a_line(self):
        outcome = halocline("run", *PHYSICS["mhd"], *GRID, "--steps", "100", "--mhd.dt", "1", "--force-dt", "--series-every", "50", "--output-folder", self.folder, "--quiet", "--output", self.top / "records", ranks=2)
        self.assertEqual((outcome.code, len(outcome.ours)), (1, 1), outcome.stderr)
        self.assertFalse(json.loads((self.top / "records").read_text())["verified"])
        self.assertRegex(outcome.ours[0], rf"[a-z]+ is not finite at step \d+, point \(\d+, \d+, \d+\), written to {self.folder}/fields-\d+\.vti")
        self.assertEqual(len(list(self.folder.glob("fields-*.vti"))), 1)


if __name__ == "__main__":
    unittest.main()
