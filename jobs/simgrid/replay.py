#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Simulates exchanges with SimGrid's SMPI: no data is moved, nothing is computed. jobs/simgrid/replay.sh calls this
script.

    jobs/simgrid/replay.sh [--output FILE] FOLDER...

A FOLDER holds
  trace.txt      SMPI's time-independent trace of all ranks, rank by rank: for each one "RANK init", then for each round of each
                 exchange "RANK irecv FROM TAG BYTES", "RANK isend TO TAG BYTES" and "RANK waitall", then "RANK finalize".
                 Messages of a round from one rank to another need different tags: SMPI loses one of two with the same
  platform.json  {"nodes", "ranks_per_node": consecutive ranks, "rounds": rounds of an exchange,
                  "on_node", "off_node": {"latency_s", "bytes_per_s", "bandwidth_of"} of a message within a node and to another,
                  "overhead_s": time that a rank needs to send a message before it can send another one,
                  "injection_bytes_per_s": rate at which all ranks of a node can send to others, and receive at the same time,
                  "radix": ports of a switch. Switches form a fat tree of full bisection with static routes (destination modulo
                  k); if it is not below the number of nodes there is one switch, where messages share nothing}
                 bandwidth_of names the owner of bytes_per_s: each "message", all messages from a "rank" (and all to it)
                 or, on_node, all messages within a "node".
A message alone takes overhead_s + latency_s + bytes / bytes_per_s. Simultaneous messages get fair shares of the links
that they share.

FILE gets a line of JSON for each FOLDER: kind "simulation", nodes, ranks, exchanges, seconds (of one exchange),
simgrid (its version) and platform (platform.json).
Exit codes: 0; 2 bad input; 3 SimGrid failed. Standard library only."""
import argparse
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "results"))
from records import BadInput, end, lines_of, load, read_text  # noqa: E402

# Makes message times exactly those of platform.json: no factors of SimGrid's own, no TCP windows,
# no acknowledgements.
SETTINGS = ("network/model:CM02", "network/TCP-gamma:0", "network/crosstraffic:no", "smpi/host-speed:1Gf")


class Failed(Exception):
    """Reports that SimGrid failed."""


def checked(value, fields, where):
    """Returns `value`. It must be an object with exactly these fields: name -> (condition, words)."""
    if not isinstance(value, dict) or set(value) != set(fields):
        raise BadInput(f"{where}: takes an object with {', '.join(fields)}")
    for name, (condition, words) in fields.items():
        if not condition(value[name]):
            raise BadInput(f"{where}: {name} must be {words}, not {json.dumps(value[name])}")
    return value


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def is_count(value):
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def read_platform(path):
    try:
        platform = load(read_text(path, "give folders that halocline predict --traces wrote"))
    except ValueError as error:
        raise BadInput(f"{path} is not JSON ({error}): write it again") from error
    rate = (lambda value: is_number(value) and value > 0, "a number above 0")
    time = (lambda value: is_number(value) and value >= 0, "a number, at least 0")
    count = (is_count, "a whole number, at least 1")
    checked(platform, {
        "nodes": count, "ranks_per_node": count, "rounds": count,
        "on_node": (lambda value: True, ""), "off_node": (lambda value: True, ""), "overhead_s": time,
        "injection_bytes_per_s": rate,
        "radix": (lambda value: is_count(value) and value >= 4 and value % 2 == 0, "an even number, at least 4"),
    }, path)
    for name, whose in (("on_node", ("message", "rank", "node")), ("off_node", ("message", "rank"))):
        checked(platform[name], {
            "latency_s": time, "bytes_per_s": rate,
            "bandwidth_of": (lambda value, whose=whose: value in whose, " or ".join(whose)),
        }, f"{path}: {name}")
    return platform


def exchanges_in(path, ranks, rounds):
    """Returns the number of exchanges of each rank, with `rounds` rounds each. All ranks must have equally many."""
    counts = [0] * ranks
    number = 0
    try:
        with path.open(encoding="utf-8", newline="\n") as lines:
            for number, line in enumerate(lines, 1):
                rank, action = line.split()[:2]
                counts[int(rank)] += action == "waitall"
    except OSError as error:
        raise BadInput(f"{path} cannot be read ({error.strerror}): give folders that halocline predict --traces wrote") from error
    except (ValueError, IndexError) as error:
        raise BadInput(f"{path}: line {number} is not an action of one of the {ranks} ranks of platform.json") from error
    if min(counts) == 0 or min(counts) != max(counts) or counts[0] % rounds:
        have = f"from {min(counts)} to {max(counts)} rounds"
        raise BadInput(f"{path}: the {ranks} ranks of platform.json have {have}: all must have as many, of whole exchanges of {rounds}")
    return counts[0] // rounds


def simulate(folder, version):
    platform = read_platform(folder / "platform.json")
    nodes, per_node = platform["nodes"], platform["ranks_per_node"]
    trace = (folder / "trace.txt").resolve()
    exchanges = exchanges_in(trace, nodes * per_node, platform["rounds"])
    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work)
        (work / "hosts").write_text("".join(f"node-{node}-{rank}\n" for node in range(nodes) for rank in range(per_node)))
        (work / "traces").write_text(f"{trace}\n")
        settings = (*SETTINGS, f"smpi/ois:0:{platform['overhead_s']:.12g}:0")
        command = ["smpirun", "-quiet", "-no-privatize", "-np", str(nodes * per_node), "-hostfile", str(work / "hosts"),
                   "-platform", os.environ["HALOCLINE_PLATFORM_LIBRARY"], "-replay", str(work / "traces"),
                   *(f"--cfg={setting}" for setting in settings), "--log=root.fmt:%.12r:%m%n"]
        environment = dict(os.environ, HALOCLINE_PLATFORM=str((folder / "platform.json").resolve()))
        run = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             text=True, check=False)
    # The last rank to end reports this; the time stands before it.
    last = re.search(r"^([0-9.]+):Simulation time", run.stdout, re.MULTILINE)
    if run.returncode != 0 or not last:
        raise Failed(f"{folder}: SimGrid failed with exit code {run.returncode}:\n" + "\n".join(lines_of(run.stdout)[-10:]))
    return {"kind": "simulation", "nodes": nodes, "ranks": nodes * per_node, "exchanges": exchanges,
            "seconds": float(last[1]) / exchanges, "simgrid": version, "platform": platform}


def write(path, records):
    """Writes the records, whole or not at all."""
    beside = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        beside.write_text("".join(json.dumps(record) + "\n" for record in records))
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise BadInput(f"{path} cannot be written ({error.strerror}): name another --output") from error


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", metavar="FILE", type=pathlib.Path, required=True)
    parser.add_argument("--simgrid", metavar="VERSION", required=True, help="as replay.sh found it")
    parser.add_argument("folder", metavar="FOLDER", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    records = []
    try:
        for folder in options.folder:
            records.append(simulate(folder, options.simgrid))
            print(f"{records[-1]['nodes']} nodes, {records[-1]['ranks']} ranks: {1e3 * records[-1]['seconds']:.4g} ms", flush=True)
        write(options.output, records)
    except (BadInput, Failed) as error:
        print(f"replay.py: {error}", file=sys.stderr)
        return 2 if isinstance(error, BadInput) else 3
    return 0


if __name__ == "__main__":
    end("replay.py", main)
