# SPDX-License-Identifier: BSD-3-Clause
"""Tests jobs/studies/run.sh and jobs/local/study.sh: finished points stay, interrupted points are done later,
failures are named."""
import json
import os
import pathlib
import re
import signal
import tempfile
import unittest

from study_project import SOURCE, Project, wait_for

STUDIES = sorted(path.stem for path in (SOURCE / "jobs" / "studies").glob("*.sh") if path.stem != "run")
SITES = sorted(path.stem for path in (SOURCE / "jobs" / "sites").glob("*.sh"))


def processes_with(text):
    """Returns the processes whose command line contains `text`, in the form of /proc: a NUL behind each argument."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if text.encode() in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
        except OSError:  # the process has ended meanwhile
            pass
    return found


class Studies(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="hl", ignore_cleanup_errors=True)
        self.addCleanup(folder.cleanup)
        self.project = Project(folder.name)

    def assert_code(self, code, finished):
        self.assertEqual(finished.returncode, code, finished.stdout + finished.stderr)

    def assert_refused(self, code, message, finished):
        self.assert_code(code, finished)
        self.assertEqual(len(finished.stderr.splitlines()), 1, finished.stderr)
        self.assertIn(message, finished.stderr)

    def test_a_missing_package_is_said_before_anything_is_measured(self):
        self.project.study("1 1 compare")
        script = self.project.folder / "results" / "records.py"
        script.write_text(script.read_text().replace('PACKAGES = ("pandas"', 'PACKAGES = ("no_such_package"'))
        finished = self.project.run("tiny")
        self.assert_code(3, finished)
        lacking, refused = finished.stderr.splitlines()
        self.assertRegex(lacking, r"^study\.py: \S+ has no no_such_package\b[^:]*: run jobs/local/reports\.sh, ")
        self.assertRegex(refused, r"^run\.sh: results/study\.py does not run here")
        self.assertFalse((self.project.raw() / "study.json").exists())

    def test_points_are_run_once(self):
        self.project.study("1 1 compare", "1 2 run", "1 2 gather --ranks-per-node 1", "1 1 calibrate --max-seconds 1", "2 2 compare")
        finished = self.project.run("tiny")
        self.assert_code(0, finished)
        self.assertRegex(finished.stdout, r"(?m)^left for a larger allocation: g-compare-2x2$")
        names = ["g-compare-1x1", "g-run-1x2", "g-gather-1x2", "g-calibrate-1x1"]
        for name in names:
            self.assertRegex(finished.stdout, rf"(?m)^{name}: done in \d+ s$")
        results = self.project.results()
        self.assertEqual(sorted(results), sorted(names))
        self.assertEqual(results["g-calibrate-1x1"][0], "g-calibrate-1x1.json")
        json.loads(results["g-calibrate-1x1"][2])
        for name, ranks in zip(names[:3], (1, 2, 2)):
            records = self.project.records(name)
            self.assertTrue(records and all(record["verified"] and record["ranks"] == ranks for record in records), name)
        # Results go beside those that are kept with the project, not over them.
        self.assertTrue((self.project.folder / "results" / "mine" / "tiny" / "REPORT.md").exists())
        self.assertFalse((self.project.folder / "results" / "tiny").exists())
        log = (self.project.raw() / "g-run-1x2.log").read_text()
        self.assertTrue(log.startswith("# local, 1 x 2 ranks: halocline run --config configs/small.toml ["), log)

        study = json.loads((self.project.raw() / "study.json").read_text())
        self.assertEqual(
            study,
            {
                "schema": "halocline-study/1", "name": "tiny", "title": 'A "tiny" study', "config": "configs/small.toml", "site": "local",
                "launcher": "mpirun", "groups": [{"name": "g", "title": "small grids", "scaling": "weak"}],
                "points": [
                    {"name": name, "group": "g", "nodes": nodes, "ranks": ranks, "command": command}
                    for name, nodes, ranks, command in (
                        ("g-compare-1x1", 1, 1, "compare"), ("g-run-1x2", 1, 2, "run"), ("g-gather-1x2", 1, 2, "gather"),
                        ("g-calibrate-1x1", 1, 1, "calibrate"), ("g-compare-2x2", 2, 4, "compare"),
                    )
                ],
            },
        )  # fmt: skip
        (session,) = self.project.raw().glob("session-*.txt")
        text = session.read_text()
        for part in (r"time: 20\d\d-", "study: tiny", "OMPI_ALLOW_RUN_AS_ROOT=1", r'mpirun -n "\$ranks"', r'^\{.*"mpi_library":', "Architecture:"):
            self.assertRegex(text, re.compile(part, re.MULTILINE))

        finished = self.project.run("tiny")
        self.assert_code(0, finished)
        self.assertRegex(finished.stdout, rf"(?m)^done already: {' '.join(names)}$")
        self.assertNotIn("done in", finished.stdout)
        self.assertEqual(self.project.results(), results)
        self.assertEqual(len(list(self.project.raw().glob("session-*"))), 1)
        self.assertEqual([path.name for path in self.project.raw().iterdir() if path.name.startswith(".")], [".lock"])

    def killed(self, how, whom=lambda job: [job.pid]):
        """Kills the study in its second point. The next run does that point and the third, and leaves the first
        alone."""
        self.project.study("1 1 compare", "1 2 compare", "1 2 gather")
        self.project.wait.write_text("g-compare-1x2")
        job = self.project.start("jobs/studies/run.sh", "tiny")
        self.project.begun("g-compare-1x2")
        before = self.project.results()
        wait_for(lambda: len(processes_with(f"/bin/sh\0{self.project.folder}/slow")) == 2, "no ranks")
        for process in whom(job):
            os.kill(process, how)
        _, err = job.communicate(timeout=30)
        after = sorted(path.name for path in self.project.raw().iterdir() if "compare-1x2" in path.name)
        self.project.wait.unlink()
        self.assertEqual(list(before), ["g-compare-1x1"])
        finished = self.project.run("tiny")
        self.assert_code(0, finished)
        self.assertRegex(finished.stdout, r"(?m)^done already: g-compare-1x1$")
        results = self.project.results()
        self.assertEqual(results["g-compare-1x1"], before["g-compare-1x1"])
        self.assertEqual(sorted(results), ["g-compare-1x1", "g-compare-1x2", "g-gather-1x2"])
        return job.returncode, err, after

    def test_what_was_ended_is_completed(self):
        for number in (signal.SIGTERM, signal.SIGUSR2):  # Slurm's and LSF's
            with self.subTest(signal=number):
                code, err, after = self.killed(number)
                self.assertEqual(code, 128 + number)
                self.assertIn(f"stopped by {number.name} in point g-compare-1x2", err)
                self.assertEqual(after, ["g-compare-1x2.log"])
                wait_for(lambda: not processes_with(str(self.project.folder / "slow")), "ranks outlive the study", 10)
                for path in self.project.raw().iterdir():
                    path.unlink()

    def test_two_sessions_do_not_mix(self):
        self.project.study("1 1 compare", "1 2 compare")
        self.project.wait.write_text("g-compare-1x1")
        first = self.project.start("jobs/studies/run.sh", "tiny")
        self.project.begun("g-compare-1x1")
        self.assert_refused(3, "another session goes through study tiny", self.project.run("tiny"))
        self.assert_code(0, self.project.run("tiny", "--dry-run"))
        self.project.wait.unlink()
        out, err = first.communicate(timeout=120)
        self.assertEqual(first.returncode, 0, out + err)
        self.assertEqual(sorted(self.project.results()), ["g-compare-1x1", "g-compare-1x2"])

    def test_what_was_killed_is_completed(self):
        def everybody(job):
            return [job.pid, *processes_with(str(self.project.folder / "slow"))]

        code, _, after = self.killed(signal.SIGKILL, whom=everybody)
        self.assertEqual(code, -signal.SIGKILL)
        self.assertIn("g-compare-1x2.log", after)
        self.assertNotIn("g-compare-1x2.jsonl", after)

    def test_others_go_on_when_a_point_fails(self):
        self.project.study("1 1 compare --inject flip", "1 2 compare", "1 2 run --radius 0")
        results = []
        for _ in range(2):
            finished = self.project.run("tiny")
            self.assert_code(1, finished)
            self.assertRegex(finished.stdout, r"(?m)^g-compare-1x1: FAILED after \d+ s \(exit code 1\): halocline: verification failed")
            self.assertRegex(finished.stdout, r"(?m)^g-run-1x2: FAILED after \d+ s \(exit code 2\): halocline: ")
            self.assertIn("2 of 3 points failed: g-compare-1x1 g-run-1x2", finished.stderr)
            results.append(self.project.results())
            self.assertEqual(list(results[-1]), ["g-compare-1x2"])
            (failed,) = self.project.raw().glob("*.failed.jsonl")
            self.assertEqual(failed.name, "g-compare-1x1.failed.jsonl")
            self.assertEqual((self.project.raw() / "g-run-1x2.log").read_text().splitlines()[-1], "# exit code 2")
            self.assertIn("halocline: ", (self.project.raw() / "g-run-1x2.log").read_text())
        self.assertEqual(results[0], results[1])

    def test_a_launcher_that_fails_is_the_environment(self):
        self.project.study("1 1 compare")
        for code in (1, 2, 213):  # srun itself ends with 1, too
            with self.subTest(code=code):
                finished = self.project.run("tiny", PATH=f"{self.bin('mpirun', f'echo no daemon; exit {code}')}:{os.environ['PATH']}")
                self.assert_code(3, finished)
                self.assertIn(f"what the nodes are is not known (exit code {code}", finished.stderr)
                self.assertIn("g-compare-1x1.log", finished.stdout)
                self.assertEqual(self.project.results(), {})

    def test_a_point_that_hangs_does_not_keep_others_waiting(self):
        self.project.study("1 1 compare", "1 2 compare")
        self.project.wait.write_text("g-compare-1x1")
        for what in (lambda: (self.project.raw() / "g-compare-1x1.log").exists(), self.project.results):
            job = self.project.start("jobs/studies/run.sh", "tiny")
            wait_for(what, "the point does not come")
            job.send_signal(signal.SIGTERM)
            job.communicate(timeout=60)
        self.assertEqual(list(self.project.results()), ["g-compare-1x2"])

    def test_a_site_that_ends_the_script_is_named(self):
        self.project.study("1 1 compare")
        site = self.project.folder / "jobs" / "sites" / "broken.sh"
        for text, code in (("exit 7", 7), ("false", 1)):
            site.write_text(text + "\n")
            self.assert_refused(3, f"site jobs/sites/broken.sh ended with exit code {code}", self.project.run("tiny", HALOCLINE_SITE="broken"))

    def test_results_of_another_config_or_launch_or_model_are_not_mixed(self):
        self.project.study("1 1 compare")
        self.assert_code(0, self.project.run("tiny"))
        config, site = (self.project.folder / name for name in ("configs/small.toml", "jobs/sites/local.sh"))
        model = self.project.folder / "model.json"
        model.write_text("{}")
        self.assert_refused(2, "is not of", self.project.run("tiny", HALOCLINE_MODEL=str(model)))
        self.assert_refused(2, "there is no model", self.project.run("tiny", HALOCLINE_MODEL="nowhere.json"))
        for path, old, new in ((config, "8, 8, 8", "9, 9, 9"), (site, "mpirun -n", "mpirun -np")):
            before = path.read_text()
            path.write_text(before.replace(old, new))
            self.assert_refused(2, "is not of", self.project.run("tiny"))
            path.write_text(before)
        self.assert_code(0, self.project.run("tiny"))

    def test_a_point_without_results_is_not_done(self):
        self.project.study("1 1 compare")
        self.assert_code(3, self.project.run("tiny", PATH=f"{self.bin('mpirun', 'exit 0')}:{os.environ['PATH']}"))
        self.assertIn("g-compare-1x1 wrote no results", (self.project.raw() / "g-compare-1x1.log").read_text())
        self.assertEqual(self.project.results(), {})

    def bin(self, name, text):
        folder = self.project.folder / "bin"
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
        return folder

    def test_what_is_secret_is_not_kept(self):
        self.project.study("1 1 compare")
        self.assert_code(0, self.project.run("tiny", SLURM_JWT="let-me-in", LSB_TOKEN="let-me-in", UCX_TLS="self"))
        (session,) = self.project.raw().glob("session-*.txt")
        self.assertIn("UCX_TLS=self", session.read_text())
        self.assertNotIn("let-me-in", session.read_text())

    def test_results_of_another_study_are_not_mixed(self):
        self.project.study("1 1 compare")
        self.assert_code(0, self.project.run("tiny"))
        results = self.project.results()
        self.project.study("1 1 compare --radius 2")
        self.assert_refused(2, "is not of '# local, 1 x 1 ranks: halocline compare --config configs/small.toml --radius 2 [", self.project.run("tiny"))
        self.assertEqual(self.project.results(), results)

    def test_another_config_makes_a_draft(self):
        self.project.study("1 1 compare", config="configs/tempi-fig12.toml")
        self.assert_code(0, self.project.run("tiny", HALOCLINE_CONFIG="configs/small.toml"))
        self.assertEqual(list(self.project.results("draft-tiny")), ["g-compare-1x1"])
        self.assertEqual(self.project.records("g-compare-1x1", "draft-tiny")[0]["local"], [8, 8, 8])
        self.assertFalse(self.project.raw().exists())

    def test_dry_run_writes_nothing(self):
        self.project.study("1 2 compare --radius 1", "4 2 compare")
        finished = self.project.run("tiny", "--dry-run")
        self.assert_code(0, finished)
        self.assertIn("g-compare-4x2: needs 4 nodes; nodes 4, ranks 8, ", finished.stdout)
        command = f"mpirun -n 2 {self.project.folder}/slow compare --config configs/small.toml --radius 1 --output results/raw/tiny/g-compare-1x2.jsonl"
        self.assertIn(f", 3 minutes, 0.1 node-hours\n  {command}\n", finished.stdout)
        self.assertFalse((self.project.folder / "results" / "raw").exists())

    def test_all_studies_on_all_sites(self):
        for site in SITES:
            for study in STUDIES:
                with self.subTest(site=site, study=study):
                    finished = self.project.run(study, "--dry-run", HALOCLINE_SITE=site)
                    self.assert_code(0, finished)
                    self.assertEqual(finished.stderr, "")
                    launcher = {"local": "mpirun", "slurm-4gpu": "srun", "lsf-6gpu": "jsrun", "slurm-cpu": "srun", "pbs-cpu": "mpirun"}[site]
                    states = re.findall(r"(?m)^(\S+): (?:to do|needs \d+ nodes); nodes \d+, ranks \d+.*\n  (\w+) ", finished.stdout)
                    self.assertTrue(states and all(used == launcher for _, used in states), finished.stdout)
        finished = self.project.run("weak", "--dry-run", HALOCLINE_SITE="slurm-4gpu")
        self.assertIn("  srun --nodes=16384 --ntasks=65536 --ntasks-per-node=4 --cpus-per-task=16 ", finished.stdout)
        self.assertIn(" compare --config configs/tempi-fig12.toml --memory device ", finished.stdout)

    def test_dry_run_tells_what_is_needed(self):
        """Checks the memory of points. The program's answer is for one rank; in a strong study, for its share of the
        points. PBS names the nodes in a file."""
        program = self.project.folder / "says_memory"
        program.write_text("""#!/bin/sh
case "$*" in *"--local 4 4 4"*) needs='2.0 GiB' ;; *) needs='512.0 MiB' ;; esac
echo "memory per rank: x; a node needs $needs of 22.1 GiB available"
""")
        program.chmod(0o755)
        self.project.study("1 2 compare", "2 8 run --global 9 9 9", "4 2 compare")
        site = self.project.folder / "site.sh"
        site.write_text("nodes=9 ranks_per_node=2 memory=host launcher=mpirun node_gib=0.9\nlaunch() { mpirun \"$@\"; }\n")
        finished = self.project.run("tiny", "--dry-run", "--max-nodes", "2", HALOCLINE_SITE="./site.sh", HALOCLINE_BINARY=str(program))
        self.assert_code(2, finished)
        self.assertIn("g-compare-1x2 needs about 1.0 GiB a node, and site has 0.9", finished.stderr)
        self.assertIn("g-run-2x8: to do; nodes 2, ranks 16, about 16.0 GiB a node, 3 minutes, 0.1 node-hours\n", finished.stdout)
        self.assertIn("left out: 1 points of more than 2 nodes\n", finished.stdout)
        self.assertNotIn("g-compare-4x2: ", finished.stdout)
        self.assertIn("== about 0.1 node-hours to do, if each point takes 3 minutes\n", finished.stdout)
        program.write_text("#!/bin/sh\necho 'halocline: there is no flag --local' >&2; exit 2\n")
        finished = self.project.run("tiny", "--dry-run", HALOCLINE_SITE="./site.sh", HALOCLINE_BINARY=str(program))
        self.assert_code(0, finished)
        self.assertIn("is not known, nor is that of later points (" + str(program) + " ends with exit code 2: halocline: there is no flag --local)", finished.stderr)
        self.assertEqual(len(finished.stderr.splitlines()), 1, finished.stderr)
        site.write_text(site.read_text().replace("0.9", "lots"))
        finished = self.project.run("tiny", "--dry-run", HALOCLINE_SITE="./site.sh", HALOCLINE_BINARY=str(program))
        self.assert_refused(2, "has to set node_gib to a number of GiB, not 'lots'", finished)
        nodes = self.project.folder / "nodes"
        nodes.write_text("a\na\nb\nb\n")
        finished = self.project.run("weak", "--dry-run", HALOCLINE_SITE="pbs-cpu", PBS_NODEFILE=str(nodes))
        self.assertIn("site pbs-cpu, 2 nodes;", finished.stdout)
        self.assertIn("  mpirun -n 64 --map-by ppr:32:node:PE=4 ", finished.stdout)

    def test_study_on_this_machine(self):
        self.project.study("1 2 compare")
        finished = self.project.run("tiny", script="jobs/local/study.sh", HALOCLINE_SITE="of-another-machine")
        self.assert_code(0, finished)
        self.assertEqual(list(self.project.results()), ["g-compare-1x2"])
        self.assert_refused(2, "there is no study jobs/studies/none.sh: use calibrate, gather, ", self.project.run("none", script="jobs/local/study.sh"))

    def test_what_cannot_be_is_refused(self):
        self.project.study("1 1 compare")
        self.project.study("1 1 compare", "1 1 compare --radius 1", name="twice")
        self.project.study("1 0 compare", name="nobody")
        self.project.study("1 1 compare", name="noconfig", config="configs/none.toml")
        (self.project.folder / "site.sh").write_text("nodes=1 memory=host\n")
        cases = (
            (2, "there is no study jobs/studies/none.sh", ("none",), {}),
            (2, "there is no study jobs/studies/run.sh", ("run",), {}),
            (2, "no option '--rerun'", ("tiny", "--rerun"), {}),
            (2, "one study at a time", ("tiny", "weak"), {}),
            (2, "--max-nodes takes a number", ("tiny", "--max-nodes"), {}),
            (2, "HALOCLINE_SITE is not set", ("tiny",), {"HALOCLINE_SITE": ""}),
            (2, "there is no site jobs/sites/none.sh: set HALOCLINE_SITE to local, lsf-6gpu, pbs-cpu, slurm-4gpu, slurm-cpu", ("tiny",), {"HALOCLINE_SITE": "none"}),
            (2, "site.sh has to set ranks_per_node", ("tiny",), {"HALOCLINE_SITE": "./site.sh"}),
            (2, "site slurm-4gpu sees no nodes", ("tiny",), {"HALOCLINE_SITE": "slurm-4gpu"}),
            (2, "two points are g-compare-1x1", ("twice",), {}),
            (2, "point takes GROUP NODES", ("nobody",), {}),
            (2, "there is no config configs/none.toml", ("noconfig",), {}),
            (3, "there is no program none", ("tiny",), {"HALOCLINE_BINARY": "none"}),
        )
        for code, message, arguments, environment in cases:
            with self.subTest(message=message):
                self.assert_refused(code, message, self.project.run(*arguments, **environment))
        (self.project.folder / "results" / "raw").write_text("a file, which nobody can make a folder in, root neither")
        self.assert_refused(2, "cannot write to results/raw/tiny", self.project.run("tiny"))
        help_text = self.project.run("--help")
        self.assert_code(0, help_text)
        self.assertIn("jobs/studies/run.sh STUDY [--dry-run]", help_text.stdout)
        self.assert_code(2, self.project.run())


if __name__ == "__main__":
    unittest.main()
