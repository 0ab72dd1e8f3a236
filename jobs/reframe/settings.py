# SPDX-License-Identifier: BSD-3-Clause
"""ReFrame's configuration: one system, the site that $HALOCLINE_SITE names (a file of jobs/sites; default: this machine).

A site's file tells all that there is to tell about it, here as for batch scripts: its launcher decides the scheduler, what it exports is
what sbatch or bsub goes by, and a job's script sources it and calls its function launch.
"""

import os
import pathlib
import shlex
import subprocess

from reframe.core.backends import register_launcher
from reframe.core.exceptions import ConfigError
from reframe.core.launchers import JobLauncher

ROOT = pathlib.Path(__file__).resolve().parents[2]
# ReFrame divides its own command lines at blanks, and does not quote them.
if shlex.quote(str(ROOT)) != str(ROOT):
    raise ConfigError(f"ReFrame takes no folder with blanks, quotes and the like in its path ({ROOT}): rename it")
RESULTS = ROOT / "results" / "raw" / "reframe"
SCHEDULERS = {"mpirun": "local", "srun": "squeue", "jsrun": "lsf"}  # squeue: Slurm, with or without accounting
SITE = pathlib.Path(os.environ.get("HALOCLINE_SITE") or ROOT / "jobs" / "sites" / "local.sh")
if SITE.parent == pathlib.Path() and not SITE.exists():
    SITE = ROOT / "jobs" / "sites" / f"{SITE}.sh"
SITE = SITE.resolve()


@register_launcher("site")
class SiteLauncher(JobLauncher):
    """launch NODES RANKS_PER_NODE COMMAND..., as the site's file defines it."""

    def command(self, job):
        return ["launch", str(job.num_tasks // job.num_tasks_per_node), str(job.num_tasks_per_node)]


def of_site(*names):
    """What the site's file sets."""
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
                    # Without the list ReFrame would take what the site exports away from sbatch.
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
                        "nodes": 1 if launcher == "mpirun" else None,  # None: as many as somebody asks for
                        "program": os.environ.get("HALOCLINE_BINARY") or str(ROOT / "build" / preset / "app" / "halocline"),
                    },
                }
            ],
        }
    ],
    # For --performance-compare and --list-stored-sessions.
    "storage": [{"enable": True, "backend": "sqlite", "sqlite_db_file": str(RESULTS / "results.db")}],
    "logging": [{"handlers": [{"type": "stream", "name": "stdout", "level": "info", "format": "%(message)s"}]}],
}
