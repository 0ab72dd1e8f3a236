# SPDX-License-Identifier: BSD-3-Clause
"""Tests simulations that take several jobs: a job is stopped by a signal, or killed, and the next one goes on."""
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import unittest

from study_project import BINARY, SOURCE, TIMEOUT_S, wait_for

FLAGS = ("--physics", "mhd", "--global", "16", "16", "16", "--steps", "400", "--threads", "1", "--series-every", "1")


class Simulation(unittest.TestCase):
    def setUp(self):
        top = tempfile.TemporaryDirectory(prefix="hl", ignore_cleanup_errors=True)
        self.addCleanup(top.cleanup)
        self.folder = pathlib.Path(top.name) / "a folder"
        session = tempfile.TemporaryDirectory(prefix="hl", ignore_cleanup_errors=True)
        self.addCleanup(session.cleanup)
        self.environment = os.environ | {"HALOCLINE_BINARY": BINARY, "OMPI_MCA_orte_tmpdir_base": session.name}
        self.environment.pop("HALOCLINE_SITE", None)

    def start(self, *flags):
        command = [SOURCE / "jobs/simulate.sh", self.folder, *FLAGS, *flags]
        return subprocess.Popen(command, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)

    def rows(self):
        series = self.folder / "timeseries.csv"
        return series.read_text().count("\n") if series.exists() else 0

    def end(self, job, code):
        out, err = job.communicate(timeout=TIMEOUT_S)
        self.assertEqual(job.returncode, code, out + err)
        return out

    def whole(self):
        line = [BINARY, "run", *FLAGS[:-2], "--quiet"]
        return subprocess.run(line, env=self.environment, capture_output=True, text=True, check=True, timeout=TIMEOUT_S).stdout

    def test_goes_on_after_a_signal(self):
        for to in os.kill, os.killpg:  # to the script, as Slurm does, or to all of its processes
            with self.subTest(to=to.__name__):
                before = self.rows()
                job = self.start()
                wait_for(lambda: self.rows() > before + 5, "no step is computed")
                to(job.pid, signal.SIGUSR1)
                self.assertIn("stopped by ", self.end(job, 4))
        out = self.end(self.start(), 0)
        self.assertIn("goes on from ", out)
        self.assertIn(self.whole(), out)
        self.assertEqual(self.rows(), 402)

    def test_goes_on_after_a_kill(self):
        job = self.start("--checkpoint-every", "5")
        wait_for(lambda: len(list(self.folder.glob("checkpoint-*/checkpoint.json"))) > 1, "no checkpoint is written")
        os.killpg(job.pid, signal.SIGKILL)
        job.communicate()
        out = self.end(self.start(), 0)
        self.assertRegex(out, r"goes on from .*, step \d+\n")
        self.assertIn(self.whole(), out)

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
