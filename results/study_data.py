# SPDX-License-Identifier: BSD-3-Clause
"""Holds a scaling study in memory: its groups and points, the records of each, and comparisons across points."""

import re

import gather
from diff import IDENTITY, text
from records import BadInput, fault, json_lines, load, read_text

# These settings change from point to point of one line in a plot; the other settings distinguish
# lines.
OF_POINT = ("ranks", "nodes", "nodes_emulated", "decomposition", "local", "global", "threads")
# These values need no words, since nearly every record has them.
UNSAID = {"storage": ("shared-window", "device"), "shape": ("direct",), "messages_per": ("partner",)}
WORDS = {"private": "private memory", "axes": "axes"}
NOISY = 3  # smallest ratio of p90 to p10 that is called noisy
STATISTICS = ("median_s", "p10_s", "p90_s", "min_s", "max_s")


class Point:
    """Holds one run of the program, done or not. `records`: those of compare, run or gather, in their order."""

    def __init__(self, fields, folder):
        self.name, self.group, self.command = fields["name"], fields["group"], fields["command"]
        self.nodes, self.ranks = fields["nodes"], fields["ranks"]
        self.path = folder / f"{self.name}.{'json' if self.command == 'calibrate' else 'jsonl'}"
        self.done = self.path.exists()
        log, failed = folder / f"{self.name}.log", folder / f"{self.name}.failed.jsonl"
        self.begun = log.exists()
        ended = re.search(r"^# exit code ([0-9]{1,3})$", read_text(log, "remove it", "replace"), re.M) if self.begun else None
        self.exit_code = int(ended[1]) if ended and not self.done else None
        if not self.done and failed.exists():  # not all records are verified
            self.path = failed
        self.records = []
        if self.path.exists():
            self.read()
        if self.records:
            self.nodes = self.records[0]["nodes"]
        self.nodes_asked = fields["nodes"]

    def read(self):
        again = f"remove it and run the study's job again, which repeats point {self.name} alone"
        if self.command == "calibrate":
            try:
                model = load(read_text(self.path, again))
            except ValueError as error:
                raise BadInput(f"{self.path} is cut off or damaged ({error}): {again}") from error
            if not isinstance(model, dict) or model.get("schema") != "halocline-model/1":
                raise BadInput(f"{self.path} is no system model of schema halocline-model/1: {again}")
            return
        schema = "gather.schema.json" if self.command == "gather" else "schema.json"
        lines = {}
        for number, record in json_lines(self.path, again):
            wrong = fault(record, schema)
            for field, wanted in (("kind", self.command), ("ranks", self.ranks)):
                if not wrong and record[field] != wanted:
                    wrong = f"{field} is {record[field]}, not {wanted}"
            total = self.command != "gather" and not wrong and record["phases"]["total"]
            if total and not 0 < total["p10_s"] <= total["median_s"] <= total["p90_s"]:
                wrong = "phases.total is not 0 < p10_s <= median_s <= p90_s"
            if wrong:
                raise BadInput(f"line {number} of {self.path} is no record of this point ({wrong}): {again}")
            settings = ("order", "variant", "bytes_per_rank", "root") if self.command == "gather" else IDENTITY
            other = lines.setdefault(str([record[name] for name in settings]), number)
            if other != number:
                raise BadInput(f"lines {other} and {number} of {self.path} are of the same experiment: {again}")
            self.records.append(record)
        if not self.records:
            raise BadInput(f"{self.path} has no records: {again}")

    def ratio(self, record):
        """Returns the speed relative to the fastest vendor method of this point; None if that method is not verified.
        """
        if record["kind"] == "gather":
            found = [other for other in self.records if all(other[key] == record[key] for key in ("order", "bytes_per_rank"))]
            found = [other for other in found if other["variant"] == record["baseline"]]
        else:
            baseline = [record[key] for key in ("baseline", "baseline_storage", "baseline_shape")]
            found = [other for other in self.records if [other[key] for key in ("method", "storage", "shape")] == baseline]
        return record["ratio_to_baseline"] if record["verified"] and found and all(other["verified"] for other in found) else None

    def place(self):
        emulated = "emulated " if self.records and is_emulated(self.records[0]) else ""
        return f"{self.ranks} rank{'s' if self.ranks > 1 else ''} on {self.nodes} {emulated}node{'s' if self.nodes > 1 else ''}"

    def timed(self):
        return [record for record in self.records if seconds_of(record)]

    def noisy(self):
        """Tells if the fastest records vary too much to be compared."""
        compared = [record for record in (self.best(False), self.best(True)) if record] if self.command in ("compare", "run") else []
        return any(seconds_of(record, field="p90_s") > NOISY * seconds_of(record, field="p10_s") for record in compared)

    def best(self, vendor):
        """Returns the fastest verified record of the vendor's methods, or of ours; None if there is none."""
        return min((record for record in self.timed() if is_vendor(record) == vendor), key=seconds_of, default=None)


def seconds_of(record, phase="total", field="median_s"):
    """Returns a time of the record. None if it was not timed or is not verified: wrong results have no speed."""
    statistics = record if record["kind"] == "gather" else record["phases"][phase]
    return statistics[field] if record["verified"] and statistics else None


def is_vendor(record):
    return record["exchange"].startswith("vendor-")


def is_emulated(record):
    """Tells if nodes share a host: those of --ranks-per-node, or of a batch system with several nodes on one machine.
    """
    return record["nodes_emulated"] or record["nodes"] > len(record["provenance"]["hosts"])


def is_oversubscribed(record, cores):
    """Tells if there are more ranks than cores; None if unknown. `cores`: cores of a host, or None. Open MPI 4 also
    reports it itself."""
    origin = record["provenance"]
    said = origin["environment"].get("OMPI_MCA_mpi_oversubscribe")
    more = cores is not None and record["ranks"] > cores * len(origin["hosts"])
    return True if more or said == "1" else None if cores is None and said is None else False


def ratio_text(value):
    return "-" if value is None else f"{value:.{2 if value < 9.995 else 1 if value < 99.95 else 0}f}x"


class Curve:
    """Holds one method with one set of settings: its timed records at the points of a group, from the fewest ranks
    on."""

    def __init__(self, kind, method):
        self.kind, self.method, self.label, self.settings, self.samples = kind, method, method, {}, []
        self.exchange = method.partition(":")[0]
        self.vendor = self.exchange.startswith("vendor-")

    def at(self, point):
        return next((record for at, record in self.samples if at is point), None)

    def sent(self):
        """Returns the samples in which something is sent to other ranks."""
        return [(point, record) for point, record in self.samples if self.kind == "run" or record["bytes_to_others"]]

    def efficiencies(self, scaling):
        """Returns (point, record, efficiency by median, by p90, by p10) for each sample. The efficiency is T(first) /
        T. With strong scaling it is also divided by the increase in ranks. The first point has the fewest ranks that
        send something to other ranks; for steps, the fewest ranks."""
        samples = self.sent()
        if not samples:
            return []
        first, seconds = samples[0][0].ranks, seconds_of(samples[0][1])
        more = lambda point: point.ranks / first if scaling == "strong" else 1  # noqa: E731
        return [
            (point, record, *(seconds / seconds_of(record, field=field) / more(point) for field in ("median_s", "p90_s", "p10_s")))
            for point, record in samples
        ]


def at_the_most_ranks(curve):
    """Returns a key: the curve with the smallest key is the fastest at the largest point."""
    point, record = curve.samples[-1]
    return -point.ranks, seconds_of(record)


class Group:
    def __init__(self, fields, points):
        self.name, self.title, self.scaling = fields["name"], fields["title"], fields["scaling"]
        self.points = sorted((point for point in points if point.group == self.name), key=lambda point: (point.ranks, point.nodes))

    def heading(self):
        return {"weak": "Weak scaling, ", "strong": "Strong scaling, ", "none": ""}[self.scaling] + self.title

    def timed(self, *commands):
        return [point for point in self.points if point.command in commands and point.timed()]

    def curves(self, *commands):
        """Returns the curves of all methods with all their settings. Grids that must not change for this scaling
        distinguish curves, too."""
        same = {"weak": ("local",), "strong": ("global",), "none": ()}[self.scaling]
        names = [name for name in IDENTITY if name not in OF_POINT] + list(same)
        out = {}
        for point in self.timed(*commands):
            for record in point.timed():
                settings = {name: text(tuple(record[name]) if isinstance(record[name], list) else record[name]) for name in names}
                curve = out.setdefault(tuple(settings.values()), Curve(record["kind"], record["method"]))
                curve.settings = settings
                curve.samples.append((point, record))
        curves = list(out.values())
        for curve in curves:
            others = [other for other in curves if (other.kind, other.method) == (curve.kind, curve.method)]
            for name, value in curve.settings.items():
                if len({other.settings[name] for other in others}) > 1 and value not in UNSAID.get(name, ()):
                    curve.label += ", " + WORDS.get(value, f"{name} {value}")
            if curve.kind == "run":
                curve.label = f"run: {curve.label}"
        return curves

    def fastest_curves(self, *commands):
        """Returns for each exchange its curve that is fastest at its largest point, in the order of the records."""
        out = {}
        for curve in self.curves(*commands):
            rank = at_the_most_ranks(curve)
            key = curve.kind, curve.exchange
            if key not in out or rank < out[key][0]:
                out[key] = rank, curve
        return [curve for _, curve in out.values()]


class Study:
    """Holds the files that jobs/studies/run.sh left in `folder`."""

    def __init__(self, folder):
        path = folder / "study.json"
        hint = "give a study that jobs/studies/run.sh has begun"
        try:
            fields = load(read_text(path, hint))
        except ValueError as error:
            raise BadInput(f"{path} is damaged ({error}): {hint}") from error
        wrong = fault(fields, "study.schema.json", "the study")
        if wrong:
            raise BadInput(f"{path} cannot be used ({wrong}): {hint}")
        names = [group["name"] for group in fields["groups"]]
        for point in fields["points"]:
            if point["group"] not in names:
                raise BadInput(f"{path} cannot be used (no group {point['group']}, of which {point['name']} is): {hint}")
        self.name, self.title, self.site, self.launcher, self.config = (
            fields[key] for key in ("name", "title", "site", "launcher", "config")
        )
        self.points = [Point(point, folder) for point in fields["points"]]
        if not any(point.path.exists() for point in self.points):
            raise BadInput(f"{folder} has no results yet: run the study's job first")
        self.groups = [Group(group, self.points) for group in fields["groups"]]
        self.cores = cores_of_host(folder)
        known = {point.path.name for point in self.points}
        self.strangers = sorted(path.name for path in folder.glob("*.jsonl") if path.name not in known)
        self.records = [record for point in self.points for record in point.records]

    def group(self, point):
        return next(group for group in self.groups if group.name == point.group)

    def oversubscribed(self, point):
        """Tells if the point has more ranks than cores; None if nobody knows."""
        return is_oversubscribed(point.records[0], self.cores) if point.records else None

    def origins(self, key):
        """Returns the values of `key` in the provenance of all records, each once, lists item by item."""
        values = [record["provenance"][key] for record in self.records]
        return list(dict.fromkeys(item for value in values for item in (value if isinstance(value, list) else [value])))

    def mpis(self):
        return list(dict.fromkeys(" ".join(name.split(",")[0].split()) for name in self.origins("mpi_library")))

    def commits(self):
        of = lambda origin: origin["git"][:12] + (" with changes" if origin["dirty"] else "")  # noqa: E731
        return list(dict.fromkeys(of(record["provenance"]) for record in self.records))

    def compared(self):
        """Returns (point, ours, theirs, ratio, low, high) of each point at which something is sent to other ranks.
        `ours` and `theirs` are the fastest records, `ratio` is the speed of ours relative to theirs. `low` and `high`
        combine opposite ends, p10 and p90, of both."""
        out = []
        for point in self.points:
            ours, theirs = (point.best(vendor) for vendor in (False, True)) if point.command == "compare" else (None, None)
            if ours and theirs and ours["bytes_to_others"]:
                pairs = (("median_s", "median_s"), ("p10_s", "p90_s"), ("p90_s", "p10_s"))
                ratios = (seconds_of(theirs, field=field) / seconds_of(ours, field=other) for field, other in pairs)
                out.append((point, ours, theirs, *ratios))
        return out

    def gathers(self):
        """Yields (group, its largest point, the result of gather.read())."""
        for group in self.groups:
            points = [point for point in group.points if point.command == "gather" and point.timed()]
            if points:
                yield group, points[-1], gather.read(points[-1].path)


def cores_of_host(folder):
    """Returns the cores of a host as lscpu reported them to jobs/studies/run.sh: the fewest of all sessions, None
    without."""
    found = []
    for path in sorted(folder.glob("session-*.txt")):
        told = dict(
            re.findall(r"^ *(CPU\(s\)|Thread\(s\) per core): +([0-9]{1,9})$", read_text(path, "remove it", "replace"), re.M)
        )
        if "CPU(s)" in told:
            found.append(int(told["CPU(s)"]) // max(1, int(told.get("Thread(s) per core", 1))))
    return min(found, default=None)
