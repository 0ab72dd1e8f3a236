# SPDX-License-Identifier: BSD-3-Clause
"""Tests a real Slurm on this machine: the weak-scaling job is submitted with sbatch, runs 4 ranks on 2 emulated
nodes, is killed and completed. Exit code 77 if that is not possible, after a line that says why.

A node is a slurmd with its own host name and /dev/shm, so that MPI sees two hosts. The configuration invents the
number of cores and GPUs. All daemons and jobs live in namespaces of this process, and end with it, however it ends.
The network is a namespace, too, so that no other Slurm of this machine interferes."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from study_project import REFRAME, Project, wait_for

INSIDE = "HALOCLINE_SLURM_INSIDE"
DAEMONS = ("munged", "slurmctld", "slurmd")
NODES = ("node1", "node2")
START_S = 30
LIVES = ("PENDING", "CONFIGURING", "RUNNING", "SUSPENDED", "COMPLETING", "not told")

CONFIGURATION = """
ClusterName=emulated
SlurmctldHost=login(192.0.2.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmdSpoolDir={folder}/%n
TmpFS={folder}/%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
GresTypes=gpu
KillWait=2
SchedulerParameters=batch_sched_delay=0
NodeName=node1 NodeAddr=192.0.2.1 Port=6821 CPUs=64 RealMemory=1000 Gres=gpu:4
NodeName=node2 NodeAddr=192.0.2.1 Port=6822 CPUs=64 RealMemory=1000 Gres=gpu:4
PartitionName=gpu Nodes=ALL Default=YES State=UP
"""

# Lists any four devices that every machine has.
GPUS = "Name=gpu File=/dev/null,/dev/zero,/dev/full,/dev/random\n"

NODE = 'echo "$1" >/proc/sys/kernel/hostname && mount -t tmpfs tmpfs /dev/shm && exec slurmd -D -N "$1"'

# The test replaces only ranks, memory and network of the site; ranks have no cores of their own.
SITE = """HALOCLINE_SITE=$(realpath -- "${BASH_SOURCE[0]}")
folder=$(dirname "$HALOCLINE_SITE")
source "$folder/jobs/sites/slurm-4gpu.sh"
HALOCLINE_SITE=$folder/site.sh ranks_per_node=2 memory=host
export OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_pml=ob1 OMPI_MCA_btl=self,vader,tcp OMPI_MCA_btl_tcp_if_include=192.0.2.0/24
"""


def impossible(reason):
    print(f"test_slurm.py: no Slurm can be started here ({reason})")
    sys.exit(77)


def enter():
    """Starts this file again in namespaces of its own. Whoever kills this process kills all of them."""
    if os.getuid() != 0:
        impossible("not root")
    for tool in (*DAEMONS, "sbatch", "srun", "unshare", "mount", "ip"):
        shutil.which(tool) or impossible(f"no {tool}: jobs/local/test.sh installs munge, slurmctld, slurmd and slurm-client")
    command = ["unshare", "--mount", "--propagation", "unchanged", "--net", "--uts", "--ipc", "--pid", "--fork", "--kill-child"]
    tried = subprocess.run([*command, "true"], capture_output=True, text=True)
    if tried.returncode != 0:
        impossible(tried.stderr.strip())
    os.environ[INSIDE] = "1"
    os.execvp("unshare", [*command, sys.executable, *sys.argv])


def prepare():
    """Prepares the namespaces. Later mounts stay invisible outside; in a chroot, / need not be a mount point. Slurm
    resolves addresses only if there is more than the loopback."""
    script = """
      mount --make-rprivate / 2>/dev/null || { mount --make-private /proc && mount --make-private /dev/shm; }
      mount -t proc proc /proc
      echo login >/proc/sys/kernel/hostname
      ip link set lo up
      ip link add wire type veth peer name other
      ip address add 192.0.2.1/24 dev wire
      ip link set wire up
      ip link set other up"""
    done = subprocess.run(["bash", "-ec", script], capture_output=True, text=True)
    if done.returncode != 0:
        impossible(done.stderr.strip())


class Cluster:
    def __init__(self, folder):
        self.folder = folder
        for name in ("state", *NODES):
            (folder / name).mkdir()
        (folder / "slurm.conf").write_text(CONFIGURATION.format(folder=folder))
        (folder / "gres.conf").write_text(GPUS)
        (folder / "munge.key").write_bytes(os.urandom(64))
        (folder / "munge.key").chmod(0o600)
        folder.chmod(0o755)  # otherwise munge does not trust it
        os.environ["SLURM_CONF"] = str(folder / "slurm.conf")

    def start(self):
        self.daemon("munged", "--foreground", "--force", *(f"--{name}-file={self.folder}/munge.{name}" for name in ("key", "log", "pid", "seed")),
                    f"--socket={self.folder}/munge.socket")  # fmt: skip
        self.wait_for((self.folder / "munge.socket").is_socket, "munged")
        self.daemon("slurmctld", "-D")
        for node in NODES:
            self.daemon("unshare", "--mount", "--uts", "bash", "-c", NODE, "bash", node, log=node)
        self.wait_for(lambda: self.idle() == 2, "slurmd")

    def daemon(self, *command, log=None):
        with open(self.folder / f"{log or command[0]}.out", "w") as out:
            subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out)

    def idle(self):
        found = subprocess.run(["sinfo", "-h", "-t", "idle", "-o", "%D"], capture_output=True, text=True).stdout.split()
        return sum(int(number) for number in found)

    def wait_for(self, condition, daemon):
        try:
            wait_for(condition, "", START_S)
        except AssertionError:
            for path in sorted(self.folder.glob("*.out")):
                print(f"== {path.name}\n{path.read_text(errors='replace')[-2000:]}")
            sys.exit(f"test_slurm.py: {daemon} does not start, see above")


class Slurm(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="hl", ignore_cleanup_errors=True)
        self.addCleanup(folder.cleanup)
        self.project = Project(folder.name)
        (self.project.folder / "site.sh").write_text(SITE)
        self.project.environment["HALOCLINE_CONFIG"] = "configs/small.toml"
        del self.project.environment["HALOCLINE_SITE"]
        self.raw = self.project.raw("draft-weak")

    def submit(self):
        job = self.project.start("bash", "-c", "source ./site.sh && sbatch --parsable --nodes=2 jobs/slurm/study.sbatch weak")
        out, err = job.communicate(timeout=120)
        self.job = out.strip()
        self.assertTrue(job.returncode == 0 and self.job.isdigit(), out + err)

    def output(self):
        path = self.project.folder / f"halocline-{self.job}.out"
        return path.read_text() if path.exists() else ""

    def state(self):
        told = subprocess.run(["scontrol", "--oneliner", "show", "job", self.job], capture_output=True, text=True).stdout
        return next(iter(re.findall(r" JobState=(\S+)", told)), "not told")

    def ended(self):
        """Waits for the end of the job and returns its state. sbatch --wait would ask at longer and longer intervals.
        """
        return wait_for(lambda: None if (state := self.state()) in LIVES else state, lambda: f"the job does not end:\n{self.output()}", 120)

    def results(self):
        return self.project.results("draft-weak")

    def begun(self, point):
        wait_for(lambda: (self.raw / f"{point}.log").exists(), lambda: f"no {point} has begun:\n{self.output()}", 60)

    def test_weak_scaling_on_two_nodes(self):
        self.submit()
        self.assertEqual(self.ended(), "COMPLETED", self.output())
        names = [f"weak-{command}-{nodes}x2" for nodes in (1, 2) for command in ("compare", "run")]
        self.assertEqual(sorted(self.results()), sorted(names), self.output())
        for name in names:
            nodes = int(name[-3])
            for record in self.project.records(name, "draft-weak"):
                self.assertEqual((record["verified"], record["ranks"], record["nodes"], record["nodes_emulated"]), (True, 2 * nodes, nodes, False))
        study = json.loads((self.raw / "study.json").read_text())
        self.assertEqual((study["site"], study["launcher"]), ("site", "srun"))
        self.assertIn("left for a larger allocation: weak-compare-4x2", self.output())
        (session,) = self.raw.glob("session-*.txt")
        self.assertIn(f"job: {self.job}\nnode list: node[1-2]\n", session.read_text())
        collected = self.project.folder / "results" / "mine" / "draft-weak"
        self.assertTrue((collected / "data.csv").exists() and (collected / "REPORT.md").exists(), self.output())
        self.assertTrue(list(collected.glob("*.svg")), self.output())

    def test_a_simulation_goes_on_in_the_next_job(self):
        flags = "--physics mhd --global 16 16 16 --threads 1 --series-every 1 --steps 400"
        job = self.project.start("bash", "-c", f"source ./site.sh && sbatch --parsable --nodes=2 jobs/slurm/simulate.sbatch out {flags}")
        out, err = job.communicate(timeout=120)
        self.assertEqual(job.returncode, 0, out + err)
        first, series = out.strip(), self.project.folder / "out" / "timeseries.csv"
        log = self.project.folder / f"simulate-{first}.out"
        told = lambda: log.read_text() if log.exists() else "no output"  # noqa: E731
        wait_for(lambda: series.exists() and series.read_text().count("\n") > 5, told, 60)
        subprocess.run(["scancel", "--batch", "--signal=USR1", first], check=True)
        wait_for(lambda: "Submitted batch job" in told(), told, 60)
        (self.job,) = re.findall(r"Submitted batch job (\d+)", told())
        self.assertEqual(self.ended(), "COMPLETED", told())
        text = (self.project.folder / f"simulate-{self.job}.out").read_text()
        self.assertRegex(text, r"goes on from out/checkpoint-\d+, step \d+\n")
        self.assertEqual(series.read_text().count("\n"), 402)

    def test_reframe_on_one_and_two_nodes(self):
        if not os.access(REFRAME, os.X_OK):
            self.skipTest("no ReFrame: jobs/local/test.sh installs it")
        run = self.project.start("bash", "-c", f"source ./site.sh && {self.project.reframe()} -r --tag=smoke")
        out, err = run.communicate(timeout=120)
        self.assertEqual(run.returncode, 0, out + err)
        records = [path.read_text().splitlines() for path in self.project.raw("reframe").glob("output/site/**/records.jsonl")]
        ranks = sorted({(record["ranks"], record["nodes"], record["nodes_emulated"]) for lines in records for record in map(json.loads, lines)})
        self.assertEqual(ranks, [(2, 1, False), (4, 2, False)])
        jobs = subprocess.run(["scontrol", "--oneliner", "show", "jobs"], capture_output=True, text=True, check=True).stdout
        accounts = [line for line in jobs.splitlines() if "JobName=rfm_Smoke" in line and "Account=myproject" in line]
        self.assertEqual(len(accounts), 2, jobs)  # exported by the site

    def test_a_job_that_was_killed_is_completed_by_the_next_one(self):
        # The first way is Slurm's before the time limit, the second a user's.
        for point, how in (("weak-run-1x2", ("--batch", "--signal=TERM")), ("weak-run-2x2", ())):
            with self.subTest(point=point):
                self.project.wait.write_text(point)
                self.submit()
                self.begun(point)
                before = self.results()
                subprocess.run(["scancel", *how, self.job], check=True)
                self.ended()
                self.project.wait.unlink()
                self.assertEqual(self.results(), before)
                self.assertNotIn(point, before)
                if how:
                    self.assertIn(f"stopped by SIGTERM in point {point}", self.output())
        self.assertEqual(sorted(before), ["weak-compare-1x2", "weak-compare-2x2"])  # the point that was cut off does not come first again
        self.submit()
        self.assertEqual(self.ended(), "COMPLETED", self.output())
        self.assertIn("done already: weak-compare-1x2 weak-compare-2x2\n", self.output())
        after = self.results()
        self.assertEqual({name: after[name] for name in before}, before)
        self.assertEqual(sorted(after), sorted([*before, "weak-run-1x2", "weak-run-2x2"]))


if __name__ == "__main__":
    os.environ["PATH"] += ":/usr/sbin:/sbin"  # where some keep daemons and ip
    if INSIDE not in os.environ:
        enter()
    prepare()
    with tempfile.TemporaryDirectory(prefix="hl", ignore_cleanup_errors=True) as cluster_folder:
        Cluster(pathlib.Path(cluster_folder)).start()
        unittest.main()
