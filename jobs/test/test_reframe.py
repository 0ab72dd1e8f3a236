# SPDX-License-Identifier: BSD-3-Clause
"""Tests jobs/reframe: the smoke point on this machine, reports of faults, and the job scripts of Slurm and LSF. Exit
code 77: no ReFrame."""

import json
import os
import sys
import tempfile
import unittest

from study_project import BINARY, REFRAME, SOURCE, Project

# Makes one method wrong.
WRONG = f"""#!/bin/sh
{BINARY} "$@"
sed '1s/"verified":true/"verified":false/' records.jsonl >new.$$ && mv new.$$ records.jsonl
"""


class ReFrame(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="hl", ignore_cleanup_errors=True)
        self.addCleanup(folder.cleanup)
        self.project = Project(folder.name)

    def reframe(self, *arguments, **environment):
        return self.project.run(*arguments, script=self.project.reframe(), **environment)

    def assert_failed(self, reason, finished):
        self.assertNotEqual(finished.returncode, 0, finished.stdout)
        self.assertIn(reason, finished.stdout + finished.stderr)

    def test_smoke_point(self):
        done = self.reframe("-r", "--tag=smoke", "--report-file=report.json")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        report = json.loads((self.project.folder / "report.json").read_text())
        case, two_nodes = sorted(report["runs"][0]["testcases"], key=lambda case: case["name"])
        self.assertEqual((case["result"], two_nodes["result"]), ("pass", "skip"))
        figures = {name.partition(":")[2].partition(":")[2]: values[0] for name, values in case["perfvalues"].items()}
        (path,) = self.project.raw("reframe").glob("output/**/records.jsonl")
        records = [json.loads(line) for line in path.read_text().splitlines()]
        self.assertGreater(len(records), 8)
        for record in records:
            if record["method"] == "p2p":
                for phase in ("pack", "transfer", "unpack", "total"):
                    self.assertEqual(figures[f"p2p {phase}"], record["phases"][phase]["median_s"])
                self.assertEqual(figures["p2p ratio"], record["ratio_to_baseline"])
        ours = [record["ratio_to_baseline"] for record in records if not record["exchange"].startswith("vendor-")]
        self.assertEqual(figures["fastest of ours, as fast as the MPI's fastest"], max(ours))

    def test_what_is_not_verified_fails(self):
        wrong = self.project.folder / "wrong"
        wrong.write_text(WRONG)
        wrong.chmod(0o755)
        self.assert_failed("not verified: alltoallv", self.reframe("-r", "--tag=smoke", HALOCLINE_BINARY=str(wrong)))

    def test_a_program_that_fails_fails(self):
        self.assert_failed("no records, see rfm_job.err", self.reframe("-r", "--tag=smoke", HALOCLINE_BINARY="/bin/false"))
        self.assert_failed("there is no program /nowhere: build it", self.reframe("-r", "--tag=smoke", HALOCLINE_BINARY="/nowhere"))

    def test_records_of_a_program_that_crashed_do_not_count(self):
        crash = self.project.folder / "crash"
        crash.write_text(f'#!/bin/sh\n{BINARY} "$@"\nexit 139\n')
        crash.chmod(0o755)
        self.assert_failed("the program failed", self.reframe("-r", "--tag=smoke", HALOCLINE_BINARY=str(crash)))
        crash.write_text("#!/bin/sh\n: >records.jsonl\n")
        self.assert_failed("no records", self.reframe("-r", "--tag=smoke", HALOCLINE_BINARY=str(crash)))

    def test_scripts_are_those_of_the_site(self):
        resources = {
            "slurm-4gpu": ("#SBATCH --nodes=2", "#SBATCH --ntasks-per-node=4", "launch 2 4 "),
            "lsf-6gpu": ("#BSUB -nnodes 2", "launch 2 6 "),
        }
        for site, expected in resources.items():
            with self.subTest(site=site):
                done = self.reframe("--dry-run", "--name=Exchange%nodes=2%edge=64", HALOCLINE_SITE=site)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                (script,) = self.project.raw("reframe").glob(f"stage/{site}/**/rfm_job.sh")
                text = script.read_text()
                for part in (*expected, f'source {self.project.folder}/jobs/sites/{site}.sh', "--memory device"):
                    self.assertIn(part, text)

    def test_a_folder_that_reframe_cannot_take_is_refused(self):
        with tempfile.TemporaryDirectory(prefix="h l(x)", ignore_cleanup_errors=True) as folder:
            project = Project(folder)
            self.assert_failed("ReFrame takes no folder with blanks", project.run("--list", script=project.reframe()))

    def test_without_a_site(self):
        self.assert_failed("nonsense.sh is no site", self.reframe("--list", HALOCLINE_SITE="nonsense"))


if __name__ == "__main__":
    if not os.access(REFRAME, os.X_OK):
        print(f"test_reframe.py: no ReFrame in {SOURCE / '.deps'}: jobs/local/test.sh installs it")
        sys.exit(77)
    unittest.main()
