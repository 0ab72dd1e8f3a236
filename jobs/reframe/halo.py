# SPDX-License-Identifier: BSD-3-Clause
"""Runs ReFrame tests of exchanges, steps and gathers. All are verified; each records its phases and its speed
relative to the MPI's.

    source jobs/sites/mine.sh       # unless it runs on this machine alone
    reframe -C jobs/reframe/settings.py -c jobs/reframe/halo.py --list -E "nodes <= 2"      # -r in place of --list runs them
    reframe -C jobs/reframe/settings.py -c jobs/reframe/halo.py -r --tag smoke

A reference is a ratio of two medians of one run, never a time, so it holds on any machine. Times are recorded for
--performance-compare."""

import json
import os
import pathlib
import shlex

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import parameter, run_after, run_before, sanity_function
from reframe.core.exceptions import ReframeError, SanityError

CONFIGS = pathlib.Path(__file__).resolve().parents[2] / "configs"
RECORDS = "records.jsonl"
PHASES = ("pack", "transfer", "unpack", "compute", "total")
FASTEST = "fastest of ours, as fast as the MPI's fastest"
REORDERING = "zero-copy, as fast as hier-unpack, random, 1048576 B"
AT_LEAST_AS_FAST = (1.0, -0.05, None, "x")  # 5 %: the difference between two runs of the same program


class Halocline(rfm.RunOnlyRegressionTest):
    """Is a run of the program on `nodes` nodes, judged by its records."""

    valid_systems = ["*"]
    valid_prog_environs = ["builtin"]
    time_limit = "20m"
    exclusive_access = True
    keep_files = [RECORDS]
    postrun_cmds = ["echo exit code $?"]  # not every scheduler reports it

    @run_after("setup")
    def place(self):
        site = self.current_partition.extras
        self.skip_if(site["nodes"] and self.nodes > site["nodes"], "there are not as many nodes")
        self.num_tasks_per_node = site["ranks_per_node"]
        self.num_tasks = self.nodes * self.num_tasks_per_node
        self.program = site["program"]
        self.executable = shlex.quote(self.program)  # it stands in a script, like its arguments
        self.executable_opts = [*self.command(site["memory"]), "--output", RECORDS]

    @run_before("run")
    def is_built(self):
        if not os.access(self.program, os.X_OK):
            raise ReframeError(f"there is no program {self.program}: build it (README.md), or set HALOCLINE_BINARY")

    def records(self):
        path = pathlib.Path(self.stagedir) / RECORDS
        if not path.exists():
            raise SanityError(f"no records, see {self.stderr} in {self.stagedir}")
        # Lines end only at a line feed: strings of JSON may contain other line ends.
        return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]

    @sanity_function
    def verified(self):
        if not self.records():
            raise SanityError(f"no records, see {self.stderr} in {self.stagedir}")
        sn.evaluate(sn.assert_found(r"^exit code 0$", self.stdout, "the program failed: see its output"))
        wrong = [self.name_of(record) for record in self.records() if not record["verified"]]
        if wrong:
            raise SanityError(f"not verified: {', '.join(wrong)}")
        return True

    @run_before("performance")
    def collect(self):
        if self.is_dry_run():
            return
        found = {}
        for record in self.records():
            for what, value, unit in self.figures(record):
                found[f"{self.name_of(record)} {what}"] = sn.make_performance_function(sn.defer(value), unit)
        for name, ratio in self.ratios(self.records()):
            found[name] = sn.make_performance_function(sn.defer(ratio), "x")
        self.perf_variables = found


class OnHalos(Halocline):
    """Is a run on halos. `edge`: points of a rank along each axis; `subcommand` and `flags` are the program's."""

    def command(self, memory):
        return [self.subcommand, shlex.quote(f"--config={CONFIGS / 'tempi-fig12.toml'}"), "--local", *[str(self.edge)] * 3, "--memory", memory,
                *self.flags]  # fmt: skip

    def name_of(self, record):
        name = [record["method"]] + [record["shape"]] * (record["shape"] != "direct") + ["private"] * (record["storage"] == "private")
        return ", ".join(name)

    def figures(self, record):
        for phase in PHASES:
            if record["phases"][phase]:
                yield phase, record["phases"][phase]["median_s"], "s"
        if record["ratio_to_baseline"]:
            yield "ratio", record["ratio_to_baseline"], "x"

    def ratios(self, records):
        of_ours = [record["ratio_to_baseline"] for record in records if not record["exchange"].startswith("vendor-")]
        if self.subcommand == "compare":
            yield FASTEST, max(filter(None, of_ours), default=0)


@rfm.simple_test
class Exchange(OnHalos):
    """Compares all methods in both shapes. Our fastest method must be as fast as the MPI's fastest."""

    nodes = parameter([1, 2, 8, 64], type=int, loggable=True)
    edge = parameter([64, 128, 256], type=int, loggable=True)
    subcommand, flags = "compare", ("--shape", "direct,axes")
    reference = {"*": {FASTEST: AT_LEAST_AS_FAST}}


@rfm.simple_test
class Step(OnHalos):
    """Runs the stencil with the exchange p2p, overlapped."""

    nodes = parameter([1, 2, 8, 64], type=int, loggable=True)
    edge = parameter([128, 256], type=int, loggable=True)
    subcommand, flags = "run", ("--methods", "p2p", "--overlap")


@rfm.simple_test
class Gather(Halocline):
    """Runs gathers in every order of the ranks. If the root has to reorder much, zero-copy must be as fast as
    MPI_Unpack."""

    nodes = parameter([2, 8, 64], type=int, loggable=True)
    reference = {"*": {REORDERING: AT_LEAST_AS_FAST}}

    def command(self, memory):
        return ["gather", shlex.quote(f"--config={CONFIGS / 'gather-orders.toml'}")]

    def name_of(self, record):
        return f"{record['variant']}, {record['order']}, {record['bytes_per_rank']} B"

    def figures(self, record):
        if record["median_s"]:
            yield "total", record["median_s"], "s"
        if record["ratio_to_baseline"]:
            yield "ratio", record["ratio_to_baseline"], "x"

    def ratios(self, records):
        found = {(record["variant"], record["order"], record["bytes_per_rank"]): record["median_s"] for record in records}
        for (variant, order, size), median in found.items():
            if variant == "zero-copy" and median and found.get(("hier-unpack", order, size)):
                yield f"zero-copy, as fast as hier-unpack, {order}, {size} B", found["hier-unpack", order, size] / median


@rfm.simple_test
class Smoke(OnHalos):
    """Runs a grid that is too small to compare speeds. All methods must be right, and all figures must exist."""

    tags = {"smoke"}
    nodes = parameter([1, 2], type=int, loggable=True)
    edge = 32
    subcommand, flags = "compare", ("--iterations", "3", "--warmup", "1", "--threads", "1")
