# SPDX-License-Identifier: BSD-3-Clause
"""Tests simulations that take several jobs: a job is stopped by a signal, or killed, and the next one goes on."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

from study_project import BINARY, SOURCE, TIMEOUT_S, wait_for

FLAGS = ("--physics", "mhd", "--global", "16", "16", "16", "--threads", "1", "--series-every", "1")


class Simulation(unittest.TestCase):
    def setUp(self):
        top = tempfile.TemporaryDirectory(prefix="hl", ignore_cleanup_errors=True)
        self.addCleanup(top.cleanup)
        self.folder = pathlib.Path(top.name) / "a folder"
        session = tempfile.TemporaryDirectory(prefix="hl", ignore_cleanup_errors=True)
        self.addCleanup(session.cleanup)
        self.environment = os.environ | {"HALOCLINE_BINARY": BINARY, "OMPI_MCA_orte_tmpdir_base": session.name}
        self.environment.pop("HALOCLINE_SITE", None)

    def start(self, *flags, steps="400", program=BINARY):
        command = [SOURCE / "jobs/simulate.sh", self.folder, *FLAGS, "--steps", steps, *flags]
        self.environment["HALOCLINE_BINARY"] = str(program)
        return subprocess.Popen(command, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)

    def rows(self):
        series = self.folder / "timeseries.csv"
        return series.read_text().count("\n") if series.exists() else 0

    def end(self, job, code):
        out, err = job.communicate(timeout=TIMEOUT_S)
        self.assertEqual(job.returncode, code, out + err)
        return out

    def whole(self):
        line = [BINARY, "run", *FLAGS[:-2], "--steps", "400", "--quiet"]
        return subprocess.run(line, env=self.environment, capture_output=True, text=True, check=True, timeout=TIMEOUT_S).stdout

    def test_goes_on_after_a_signal(self):
        for to in os.kill, os.killpg:  # to the script, as Slurm does, or to all of its processes
            with self.subTest(to=to.__name__):
                before = self.rows()
                job = self.start("--quiet")
                wait_for(lambda: self.rows() > before + 5, "no step is computed")
                to(job.pid, signal.SIGUSR1)
                out = self.end(job, 4)
                self.assertIn("stopped by ", out)
                self.assertIn("== a signal came: the file STOP passes it on\n", out)
        out = self.end(self.start(), 0)
        self.assertIn("goes on from ", out)
        self.assertIn(self.whole(), out)
        self.assertEqual(self.rows(), 402)
        self.assertIn("step 400", self.end(self.start(), 0))  # there is nothing left to do
        self.assertEqual(self.rows(), 402)

    def test_a_file_ends_the_chain(self):
        job = self.start()
        wait_for(lambda: self.rows() > 5, "no step is computed")
        (self.folder / "STOP").touch()
        self.assertIn("== the file STOP ended the simulation: the same command goes on\n", self.end(job, 0))
        out = self.end(self.start(), 0)
        self.assertIn("goes on from ", out)
        self.assertIn(self.whole(), out)

    def program(self, text):
        path = self.folder.parent / "program"
        path.write_text("#!/bin/sh\n" + text)
        path.chmod(0o755)
        return path

    def test_a_signal_before_the_run_begins_is_not_lost(self):
        self.folder.mkdir()
        stop, begun = self.folder / "STOP", self.folder / "begun"
        job = self.start(steps="100000", program=self.program(f"""
            touch '{begun}'
            while ! [ -e '{stop}' ]; do sleep 0.1; done
            exec '{BINARY}' "$@"\n"""))  # fmt: skip
        wait_for(begun.exists, "the program does not begin")
        job.send_signal(signal.SIGUSR1)
        self.end(job, 4)
        self.assertFalse(stop.exists())

    def test_no_job_follows_without_a_step(self):
        program = self.program("echo 'stopped by SIGUSR1 after step 0 of 400; go on with --restart a'\n")
        out, err = self.start(program=program).communicate(timeout=TIMEOUT_S)
        self.assertEqual(err, "simulate.sh: the job was stopped before its first step: give it more time\n", out)

    def test_goes_on_after_a_kill(self):
        job = self.start("--checkpoint-every", "5")
        wait_for(lambda: len(list(self.folder.glob("checkpoint-*/checkpoint.json"))) > 1, "no checkpoint is written")
        os.killpg(job.pid, signal.SIGKILL)
        job.communicate()
        out = self.end(self.start(), 0)
        self.assertRegex(out, r"goes on from .*, step \d+\n")
        self.assertIn(self.whole(), out)

    def test_a_config_file_says_how_often_checkpoints_are_written(self):
        config = self.folder.parent / "run.toml"
        for text, kept in (("\t\"checkpoint-every\" = 30", ["30", "40"]), ("checkpoint-every = 0", ["40"]), ("# checkpoint-every = 30", ["40"])):
            with self.subTest(text=text):
                config.write_text(f"[run]\n{text}\n")
                self.end(self.start("--config", str(config), steps="40"), 0)
                self.assertEqual([path.name.lstrip("checkpoint-0") for path in sorted(self.folder.glob("checkpoint-*"))], kept)
                shutil.rmtree(self.folder)

    def test_begins_anew_without_a_checkpoint(self):
        self.folder.mkdir()
        (self.folder / "timeseries.csv").write_text("step,t,dt\n")
        out = self.end(self.start(), 0)
        (aside,) = self.folder.parent.glob("a folder.*")
        self.assertIn(f"no checkpoint in {self.folder}: it is now {aside}\n", out)
        self.assertIn(self.whole(), out)

    def test_faults_are_those_of_the_program(self):
        job = self.start("--radius", "2")
        out, err = job.communicate(timeout=TIMEOUT_S)
        self.assertEqual(job.returncode, 2, out + err)
        self.assertIn("radius is too small for the stencil", err)
        for words, text in (((), "the first word is the output folder"), (("--steps", "3"), "the first word is the output folder")):
            done = subprocess.run([SOURCE / "jobs/simulate.sh", *words], env=self.environment, capture_output=True, text=True)
            self.assertEqual(done.returncode, 2)
            self.assertTrue(re.fullmatch(rf"simulate.sh: {text}: --help shows the usage\n", done.stderr), done.stderr)


if __name__ == "__main__":
    unittest.main()
