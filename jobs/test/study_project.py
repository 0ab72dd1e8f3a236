# SPDX-License-Identifier: BSD-3-Clause
"""Copies the files of a study to a folder of its own, so that tests do not disturb results/ or each other."""
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import time

SOURCE = pathlib.Path(os.environ["HALOCLINE_SOURCE"])
BINARY = os.environ["HALOCLINE_BINARY"]
REFRAME = SOURCE / ".deps" / "reframe" / "bin" / "reframe"
TIMEOUT_S = 120  # far above the time of any test

SMALL = """# A grid that takes no time.
[run]
local = [8, 8, 8]
fields = 2
stencil = "point26"
threads = 1
steps = 2

[compare]
local = [8, 8, 8]
fields = 2
threads = 1
iterations = 2
warmup = 0

[gather]
iterations = 2
warmup = 0
sizes = [1, 64]
"""

# Starts the program. In the point that a file names, it waits until the file is gone, so that a
# test can kill the study there.
SLOW = f"""#!/bin/sh
while point=$(cat "$HALOCLINE_TEST_WAIT" 2>/dev/null); do
  case "$*" in *"$point"*) sleep 0.05 ;; *) break ;; esac
done
exec {shlex.quote(BINARY)} "$@"
"""


class Project:
    def __init__(self, folder):
        """Makes the project in `folder`, which the caller removes."""
        self.folder = pathlib.Path(folder)
        for name in ("jobs", "configs", "results"):
            keep = shutil.ignore_patterns("raw", "mine", "__pycache__", "*.md", "*.svg")
            shutil.copytree(SOURCE / name, self.folder / name, ignore=keep)
        (self.folder / ".deps").mkdir()
        (self.folder / ".deps" / "reports").symlink_to(SOURCE / ".deps" / "reports")
        (self.folder / "configs" / "small.toml").write_text(SMALL)
        self.wait = self.folder / "wait"
        slow = self.folder / "slow"
        slow.write_text(SLOW)
        slow.chmod(0o755)
        self.environment = dict(os.environ)
        self.environment |= {"HALOCLINE_BINARY": str(slow), "HALOCLINE_SITE": "local", "HALOCLINE_TEST_WAIT": str(self.wait)}
        self.environment.pop("HALOCLINE_MODEL", None)
        self.environment |= {"XDG_CONFIG_HOME": str(self.folder / "no-model"), "OMPI_MCA_orte_tmpdir_base": str(self.folder)}

    def study(self, *points, name="tiny", config="configs/small.toml"):
        """Writes a study of these points, each like the words behind `point g`, all in group g."""
        lines = ["title='A \"tiny\" study' config=" + config, "group g weak 'small grids'", *(f"point g {point}" for point in points)]
        (self.folder / "jobs" / "studies" / f"{name}.sh").write_text("\n".join(lines) + "\n")

    def start(self, *command, **environment):
        return subprocess.Popen(
            [str(part) for part in command], cwd=self.folder, env=self.environment | environment, text=True, errors="replace",
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def run(self, *arguments, script="jobs/studies/run.sh", **environment):
        job = self.start(script, *arguments, **environment)
        try:
            out, err = job.communicate(timeout=TIMEOUT_S)
        finally:
            job.kill()
        return subprocess.CompletedProcess(job.args, job.returncode, out, err)

    def reframe(self):
        """Returns a script that calls ReFrame with this folder's suite."""
        script = self.folder / "reframe"
        script.write_text(f"#!/bin/sh\nTMPDIR={shlex.quote(str(self.folder))} exec {shlex.quote(str(REFRAME))} -C jobs/reframe/settings.py -c jobs/reframe/halo.py \"$@\"\n")
        script.chmod(0o755)
        return script

    def raw(self, study="tiny"):
        return self.folder / "results" / "raw" / study

    def results(self, study="tiny"):
        """Returns {point: (file name, time of change, content)}. A changed time shows that a file was written again."""
        files = [path for path in self.raw(study).glob("*.json*") if not path.name.startswith("study.json") and ".failed." not in path.name]
        return {path.stem: (path.name, path.stat().st_mtime_ns, path.read_bytes()) for path in files}

    def records(self, point, study="tiny"):
        return [json.loads(line) for line in (self.raw(study) / f"{point}.jsonl").read_text().splitlines()]

    def begun(self, point, study="tiny"):
        """Waits until the point runs."""
        wait_for(lambda: (self.raw(study) / f"{point}.log").exists(), f"no {point} has begun")


def wait_for(condition, message, seconds=TIMEOUT_S):
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(message() if callable(message) else message)
        time.sleep(0.05)
    return found
