# SPDX-License-Identifier: BSD-3-Clause
"""Configures ReFrame with one system: the site that $HALOCLINE_SITE names (a file of jobs/sites; default: this
machine).

A site's file is the only source of facts about it, here as for batch scripts. Its launcher decides the scheduler, and
its exports are the options of sbatch or bsub. A job's script sources it and calls its function launch."""

import os
import pathlib
import shlex
import subprocess

from reframe.core.backends import register_launcher
from reframe.core.exceptions import ConfigError
from reframe.core.launchers import JobLauncher

ROOT = pathlib.Path(__file__).resolve().parents[2]
# ReFrame splits its own command lines at blanks and does not quote them.
if shlex.quote(str(ROOT)) != str(ROOT):
    raise ConfigError(f"ReFrame takes no folder with blanks, quotes and the like in its path ({ROOT}): rename it")
RESULTS = ROOT / "results" / "raw" / "reframe"
SCHEDULERS = {"mpirun": "local", "srun": "squeue", "jsrun": "lsf"}  # squeue is Slurm, with or without accounting
SITE = pathlib.Path(os.environ.get("HALOCLINE_SITE") or ROOT / "jobs" / "sites" / "local.sh")
if SITE.parent == pathlib.Path() and not SITE.exists():
    SITE = ROOT / "jobs" / "sites" / f"{SITE}.sh"
SITE = SITE.resolve()


@register_launcher("site")
class SiteLauncher(JobLauncher):
    """Starts a job by launch NODES RANKS_PER_NODE COMMAND..., a function of the site's file."""

    def command(self, job):
        return ["launch", str(job.num_tasks // job.num_tasks_per_node), str(job.num_tasks_per_node)]


def of_site(*names):
    """Returns the values that the site's file sets for these names, the launcher last."""
    script = "source \"$0\" >&2; for name in \"$@\"; do printf '%s\\n' \"${!name:-}\"; done"
    told = subprocess.run(["bash", "-c", script, SITE, *names], stdout=subprocess.PIPE, text=True)
    values = told.stdout.split("\n")[:-1]
    if not SITE.is_file() or told.returncode != 0 or values[-1] not in SCHEDULERS:
        raise ConfigError(f"{SITE} is no site of which the launcher is one of {', '.join(SCHEDULERS)}: set HALOCLINE_SITE")
    return values


ranks_per_node, memory, launcher = of_site("ranks_per_node", "memory", "launcher")
preset = "release-cuda" if memory == "device" else "release"
site_configuration = {
    "systems": [
        {
            "name": SITE.stem,
            "hostnames": [".*"],
            "modules_system": "nomod",  # the site's file loads them
            "prefix": str(RESULTS),
            "partitions": [
                {
                    "name": "main",
                    "scheduler": SCHEDULERS[launcher],
                    "launcher": "site",
                    # Without this list, ReFrame would hide the site's exports from sbatch.
                    "sched_options": {
                        "use_nodes_option": True,
                        "slurm_envvar_whitelist": [name for name in os.environ if name.startswith("SBATCH_")],
                    },
                    "environs": ["builtin"],
                    "prepare_cmds": [f"source {shlex.quote(str(SITE))}"],
                    "max_jobs": 1 if launcher == "mpirun" else 8,
                    "extras": {
                        "ranks_per_node": int(ranks_per_node),
                        "memory": memory,
                        "nodes": 1 if launcher == "mpirun" else None,  # None: no limit
                        "program": os.environ.get("HALOCLINE_BINARY") or str(ROOT / "build" / preset / "app" / "halocline"),
                    },
                }
            ],
        }
    ],
    # The storage is for --performance-compare and --list-stored-sessions.
    "storage": [{"enable": True, "backend": "sqlite", "sqlite_db_file": str(RESULTS / "results.db")}],
    "logging": [{"handlers": [{"type": "stream", "name": "stdout", "level": "info", "format": "%(message)s"}]}],
}
