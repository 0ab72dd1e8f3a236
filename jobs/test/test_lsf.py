# SPDX-License-Identifier: BSD-3-Clause
"""Tests the batch scripts for LSF with stubs of bsub and jsrun, which refuse what the real programs would refuse."""
import json
import os
import re
import subprocess
import tempfile
import unittest

from study_project import SOURCE, Project

STUBS = SOURCE / "jobs" / "test" / "stub"
STUDIES = ("calibrate", "gather", "methods", "strong", "weak")

# The test replaces only ranks and memory of the site.
SITE = """source jobs/sites/lsf-6gpu.sh
HALOCLINE_SITE=$PWD/site.sh ranks_per_node={ranks} memory={memory}
"""

# Replaces the program if there is no device: rank 0 writes down its arguments.
FAKE = """#!/bin/sh
[ "$1" != info ] || exec echo '{}'
asked=$*
while [ $# -gt 0 ]; do case $1 in --output|--model) to=$2 ;; esac; shift; done
[ "${OMPI_COMM_WORLD_RANK:-0}" != 0 ] || printf '{"asked": "%s"}\\n' "$asked" >"$to"
"""


class Lsf(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="hl", ignore_cleanup_errors=True)
        self.addCleanup(folder.cleanup)
        self.project = Project(folder.name)
        self.project.environment["PATH"] = f"{STUBS}:{os.environ['PATH']}"

    def submit(self, study, *options, script="study", ranks=6, memory="device", expect=0, **environment):
        """Submits a study and returns the text of bsub. The job's output is in self.output."""
        (self.project.folder / "site.sh").write_text(SITE.format(ranks=ranks, memory=memory))
        line = f"source ./site.sh && bsub {' '.join(options)} <jobs/lsf/{script}.lsf"
        job = self.project.start("bash", "-c", line, STUDY=study, **environment)
        out, err = job.communicate(timeout=120)
        self.assertEqual(job.returncode, expect, out + err)
        logs = list(self.project.folder.glob("*.out"))
        self.output = logs[0].read_text() if logs else ""
        return out + err

    def test_a_simulation_goes_on(self):
        flags = "--physics mhd --global 16 16 16 --threads 1 --checkpoint-every 2 --steps"
        for steps, text in ((2, ""), (4, "goes on from out/checkpoint-00000002, step 2\n")):
            self.submit("", "-nnodes", "2", script="simulate", ranks=2, memory="host", FOLDER="out", FLAGS=f"{flags} {steps}")
            self.assertIn(text, self.output)
            self.assertIn("exit code 0", self.output)
        self.assertTrue((self.project.folder / "out" / "checkpoint-00000004").exists())

    def test_weak_scaling_on_two_nodes(self):
        said = self.submit("weak", "-nnodes", "2", ranks=2, memory="host", HALOCLINE_CONFIG="configs/small.toml")
        self.assertIn("Job <4711> is submitted to queue <batch>", said)
        self.assertIn("exit code 0", self.output)
        names = [f"weak-{command}-{nodes}x2" for nodes in (1, 2) for command in ("compare", "run")]
        self.assertEqual(sorted(self.project.results("draft-weak")), sorted(names))
        for record in self.project.records("weak-compare-2x2", "draft-weak"):
            self.assertEqual((record["verified"], record["ranks"]), (True, 4))
        study = json.loads((self.project.raw("draft-weak") / "study.json").read_text())
        self.assertEqual((study["site"], study["launcher"]), ("site", "jsrun"))
        (session,) = self.project.raw("draft-weak").glob("session-*")
        self.assertIn("job: 4711\nnode list: batch5 1 h41n00 42 h41n01 42\n", session.read_text())

        results = self.project.results("draft-weak")
        self.submit("weak", "-nnodes", "2", ranks=2, memory="host", HALOCLINE_CONFIG="configs/small.toml")
        self.assertIn("done already: " + " ".join(names), self.output)
        self.assertEqual(self.project.results("draft-weak"), results)

    def test_every_study_on_nodes_with_gpus(self):
        fake = self.project.folder / "fake"
        fake.write_text(FAKE)
        fake.chmod(0o755)
        (self.project.folder / "results" / "study.py").write_text("")  # the real one would find no records
        for study in STUDIES:
            with self.subTest(study=study):
                self.submit(study, "-nnodes", "2", HALOCLINE_BINARY=str(fake))
                self.assertIn("exit code 0", self.output)
                results = self.project.results(study)
                self.assertTrue(results)
                paths = [path for ranks in (6, 16) for path in self.project.raw(study).glob(f"*-2x{ranks}.json*")]
                self.assertTrue(paths)
                for path in paths:
                    if study == "gather":
                        self.assertIn("gather --config", path.read_text())
                        continue
                    self.assertIn("--memory device" if path.suffix == ".jsonl" else "calibrate", path.read_text())
                for path in self.project.folder.glob("*.out"):
                    path.unlink()

    def test_what_the_stubs_refuse(self):
        text = (self.project.folder / "jobs" / "lsf" / "study.lsf").read_text()
        for name, old, new, message in (
            ("option", "#BSUB -W", "#BSUB -walltime", "-walltime: Illegal option"),
            ("time", "-W 2:00", "-W 2h", "-W: Bad argument"),
            ("nodes", "-nnodes 16", "", "-nnodes is missing"),
        ):
            (self.project.folder / "jobs" / "lsf" / f"{name}.lsf").write_text(text.replace(old, new))
            self.assertIn(message, self.submit("weak", script=name, expect=1))
        site = self.project.folder / "jobs" / "sites" / "lsf-6gpu.sh"
        site.write_text(site.read_text().replace("LSB_DEFAULTPROJECT=myproject ", ""))
        self.assertIn("specify the project", self.submit("weak", expect=1))
        jsrun = (
            ("-n 3 -r 1 -a 1 -c 42", "not possible"), ("-n 2 -r 2 -c 42", "not possible"), ("-n 1 -r 1 -g 7", "not possible"),
            ("-n 1 -a 6 -c 42 -b packed:8", "do not fit"), ("-n 1 -b core", "'core' is not"), ("-n 1 -d block", "'block' is not"),
            ("-n 1 --smpiargs=gpu", "expected one argument|'gpu' is not"), ("-a 1", "required"), ("-n 1 --map-by core", "unrecognized|no executable|not"),
        )  # fmt: skip
        hosts = self.project.folder / "hosts"
        hosts.write_text("batch5\nh1\nh2\n")
        for options, message in jsrun:
            with self.subTest(options=options):
                environment = self.project.environment | {"LSB_JOBID": "1", "LSB_DJOB_HOSTFILE": str(hosts)}
                finished = subprocess.run([STUBS / "jsrun", *options.split(), "true"], env=environment, capture_output=True, text=True)
                self.assertNotEqual(finished.returncode, 0)
                self.assertTrue(re.search(message, finished.stderr), finished.stderr)


if __name__ == "__main__":
    unittest.main()
