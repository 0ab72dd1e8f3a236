# SPDX-License-Identifier: BSD-3-Clause
"""Holds a scaling study in memory: its groups, its points, and a frame with a row for each record.

Columns of the frame: the fields of the record, those of its point, PHASE.median_s and so on, and
  seconds, p10, p90  times of `total`; missing if it was not timed or is not verified
  ratio              speed relative to the fastest vendor method; missing if one of the two is not verified
  said               method with the settings that distinguish it from another one at this point
  place              number of ranks and nodes, in words
  vendor, sent       if the method is the MPI's; if something is sent to other ranks
  crowded, emulated  if there were more ranks than cores (None: not known); if nodes share a host"""

import re

import gather
from diff import IDENTITY, text
from records import BadInput, fault, json_lines, load, read_text, schema_file
from reports import commit, pandas

# These settings change from point to point of one line in a plot; the other settings distinguish
# lines.
OF_POINT = ("ranks", "nodes", "nodes_emulated", "decomposition", "local", "global", "threads")
# These values need no words, since nearly every record has them.
UNSAID = {"storage": ("shared-window", "device"), "shape": ("direct",), "messages_per": ("partner",)}
WORDS = {"private": "private memory", "axes": "axes"}
NOISY = 3  # smallest ratio of p90 to p10 that is called noisy
STATISTICS = ("median_s", "p10_s", "p90_s", "min_s", "max_s")
PHASES = (
    "pack", "transfer", "unpack", "compute", "total", "post", "interior", "wait", "boundary",
    "plain_exchange", "plain_compute", "plain_total",
)  # fmt: skip
SHORT = {"seconds": "median_s", "p10": "p10_s", "p90": "p90_s"}
TRIPLES = ("decomposition", "local", "global")
FIELDS_OF_GATHER = schema_file("gather.schema.json")["properties"]
OF_GATHER = tuple(name for name, field in FIELDS_OF_GATHER.items() if field.get("setting"))


class Point:
    """Holds one run of the program, done or not. `records`: those of compare, run or gather, in their
    order."""

    def __init__(self, fields, folder):
        self.name, self.group, self.command = fields["name"], fields["group"], fields["command"]
        self.nodes, self.ranks = fields["nodes"], fields["ranks"]
        self.path = folder / f"{self.name}.{'json' if self.command == 'calibrate' else 'jsonl'}"
        self.done = self.path.exists()
        log, failed = folder / f"{self.name}.log", folder / f"{self.name}.failed.jsonl"
        self.begun = log.exists()
        told = read_text(log, "remove it", "replace") if self.begun else ""
        ended = re.search(r"^# exit code ([0-9]{1,3})$", told, re.M)
        self.exit_code = int(ended[1]) if ended and not self.done else None
        if not self.done and failed.exists():  # not all records are verified
            self.path = failed
        self.records = self.read() if self.path.exists() else []
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
            return []
        schema = "gather.schema.json" if self.command == "gather" else "schema.json"
        lines, records = {}, []
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
            settings = OF_GATHER if self.command == "gather" else IDENTITY
            other = lines.setdefault(str([record[name] for name in settings]), number)
            if other != number:
                both = f"lines {other} and {number} of {self.path}"
                raise BadInput(f"{both} are of the same experiment: {again}")
            records.append(record)
        if not records:
            raise BadInput(f"{self.path} has no records: {again}")
        return records

    def ratio(self, record):
        """Returns the speed relative to the fastest vendor method of this point; None if one of the two is
        not verified."""
        if record["kind"] == "gather":
            fields = {"variant": "baseline", "order": "order", "bytes_per_rank": "bytes_per_rank"}
        else:
            fields = {"method": "baseline", "storage": "baseline_storage", "shape": "baseline_shape"}
        baseline = [record[field] for field in fields.values()]
        found = [other["verified"] for other in self.records if [other[name] for name in fields] == baseline]
        return record["ratio_to_baseline"] if record["verified"] and found and all(found) else None

    @property
    def place(self):
        emulated = "emulated " if self.records and is_emulated(self.records[0]) else ""
        nodes = f"{self.nodes} {emulated}node{'s' if self.nodes > 1 else ''}"
        return f"{self.ranks} rank{'s' if self.ranks > 1 else ''} on {nodes}"


def is_emulated(record):
    """Tells if nodes share a host: those of --ranks-per-node, or of a batch system with several nodes on one
    machine."""
    return record["nodes_emulated"] or record["nodes"] > len(record["provenance"]["hosts"])


def is_crowded(record, cores):
    """Tells if there are more ranks than cores; None if unknown. `cores`: cores of a host, or None. Open MPI
    4 also reports it itself."""
    origin = record["provenance"]
    said = origin["environment"].get("OMPI_MCA_mpi_oversubscribe")
    more = cores is not None and record["ranks"] > cores * len(origin["hosts"])
    return True if more or said == "1" else None if cores is None and said is None else False


def ratio_text(value):
    return "-" if pandas.isna(value) else f"{value:.{2 if value < 9.995 else 1 if value < 99.95 else 0}f}x"


class Group:
    """Holds the title of a group and how it scales: weak, strong or none."""

    def __init__(self, fields):
        self.name, self.title, self.scaling = fields["name"], fields["title"], fields["scaling"]
        self.heading = ("" if self.scaling == "none" else f"{self.scaling.title()} scaling, ") + self.title


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
        self.groups = {group["name"]: Group(group) for group in fields["groups"]}
        for point in fields["points"]:
            if point["group"] not in self.groups:
                lacking = f"no group {point['group']}, of which {point['name']} is"
                raise BadInput(f"{path} cannot be used ({lacking}): {hint}")
        self.name, self.title, self.site, self.launcher, self.config = (
            fields[key] for key in ("name", "title", "site", "launcher", "config")
        )
        self.points = [Point(point, folder) for point in fields["points"]]
        if not any(point.path.exists() for point in self.points):
            raise BadInput(f"{folder} has no results yet: run the study's job first")
        known = {point.path.name for point in self.points}
        self.strangers = sorted(path.name for path in folder.glob("*.jsonl") if path.name not in known)
        self.records = [record for point in self.points for record in point.records]
        cores = cores_of_host(folder)
        for point in self.points:
            point.crowded = is_crowded(point.records[0], cores) if point.records else None
        self.frame = frame_of(self.points)

    def timed(self, group, *commands):
        """Returns the timed records of a group, from the fewest ranks on."""
        frame = self.frame
        rows = frame[(frame.group == group.name) & frame.kind.isin(commands) & frame.seconds.notna()]
        return rows.sort_values(["ranks", "nodes", "at"], kind="stable")

    def curves(self, group, *commands):
        """Returns the timed records with the number of their curve (`curve`) and its `label`. A curve is one
        method with one set of settings. Grids that must not change for this scaling distinguish curves,
        too."""
        rows = self.timed(group, *commands)
        same = {"weak": ["local"], "strong": ["global"], "none": []}[group.scaling]
        names = [name for name in IDENTITY if name not in OF_POINT] + same
        settings = rows[names].apply(lambda values: values.map(words_of))
        varied = settings.groupby(["kind", "method"]).transform("nunique") > 1
        labels = rows.kind.map({"run": "run: "}).fillna("") + rows.method
        for name in varied.columns[varied.any()]:
            said = settings[name].map(lambda value, name=name: ", " + WORDS.get(value, f"{name} {value}"))
            labels += said.where(varied[name] & ~settings[name].isin(UNSAID.get(name, ())), "")
        rows = rows.assign(curve=settings.groupby(names, sort=False).ngroup(), label=labels)
        first = rows[rows.sent].groupby("curve")[["ranks", "seconds"]].transform("first")
        more = rows.ranks / first.ranks if group.scaling == "strong" else 1
        # The efficiency is T(first) / T. With strong scaling it is also divided by the increase in ranks.
        times = {"efficiency": "seconds", "low_efficiency": "p90", "high_efficiency": "p10"}
        return rows.assign(**{name: first.seconds / rows[time] / more for name, time in times.items()})

    def fastest_curves(self, group, *commands):
        """Returns for each exchange its curve that is fastest at its largest point, in the order of the
        records."""
        if not len(self.timed(group, *commands)):
            return []
        rows = self.curves(group, *commands)
        last = rows.groupby("curve").tail(1).sort_values("seconds", kind="stable")
        last = last.sort_values("ranks", ascending=False, kind="stable")
        best = last.groupby(["kind", "family"]).curve.first()
        exchanges = rows[["kind", "family"]].drop_duplicates().itertuples(index=False)
        return [rows[rows.curve == best[tuple(exchange)]] for exchange in exchanges]

    def origins(self, key):
        """Returns the values of `key` in the provenance of all records, each once, lists item by item."""
        values = pandas.Series([record["provenance"][key] for record in self.records], dtype=object)
        return list(values.explode().dropna().unique())

    def commits(self):
        return list(dict.fromkeys(commit(record["provenance"]) for record in self.records))

    def best(self):
        """Returns the fastest verified records of ours and of the MPI's at each point of compare or run."""
        timed = self.frame[self.frame.kind.isin(("compare", "run")) & self.frame.seconds.notna()]
        return timed.loc[timed.groupby(["at", "vendor"]).seconds.idxmin()]

    def noisy(self):
        """Returns the names of points whose fastest records vary too much to be compared."""
        best = self.best()
        return set(best.point[best.p90 > NOISY * best.p10])

    def compared(self):
        """Returns the fastest record of ours at each point of compare at which something is sent to other
        ranks. The columns that end in _theirs are of the MPI's fastest; `ratio` is the speed of ours relative
        to theirs. `low` and `high` combine opposite ends, p10 and p90, of both."""
        best = self.best().query("kind == 'compare'").set_index("point", drop=False)
        theirs = best.loc[best.vendor, ["said", "seconds", "p10", "p90"]].add_suffix("_theirs")
        both = best[~best.vendor & best.sent].join(theirs, how="inner")
        ratios = {"ratio": both.seconds_theirs / both.seconds}
        return both.assign(**ratios, low=both.p10_theirs / both.p90, high=both.p90_theirs / both.p10)

    def gathers(self):
        """Yields (group, its largest point, the frame of gather.read())."""
        for group in self.groups.values():
            timed = self.timed(group, "gather")
            if len(timed):
                point = self.points[timed["at"].iloc[-1]]
                yield group, point, gather.read(point.path)


def words_of(value):
    return text(tuple(value) if isinstance(value, list) else value)


def frame_of(points):
    """Returns the frame of a study (see the top of this file)."""
    rows, times = [], []
    for at, point in enumerate(points):
        for record in point.records:
            row = record | {"point": point.name, "group": point.group, "at": at}
            row |= {"place": point.place, "crowded": point.crowded}
            gathered = record["kind"] == "gather"
            method = record["variant" if gathered else "method"]
            row |= {"emulated": is_emulated(record), "method": method, "family": method.partition(":")[0]}
            row |= {"vendor": not gathered and record["exchange"].startswith("vendor-")}
            row |= {"sent": record["kind"] == "run" or bool(record.get("bytes_to_others"))}
            if gathered:
                said = f" ({record['order']}, {gather.size_text(record['bytes_per_rank'])})"
            else:
                said = "" if record["shape"] == "direct" else f", {record['shape']}"
            row |= {"said": method + said}
            for name in TRIPLES:
                row |= {f"{name}_{axis}": value for axis, value in zip("xyz", record.get(name, ()))}
            of_row = {}
            for phase, values in ({"total": record} if gathered else record["phases"]).items():
                of_row |= {f"{phase}.{name}": values and values[name] for name in STATISTICS}
            if record["verified"]:
                of_row |= {name: of_row.get(f"total.{field}") for name, field in SHORT.items()}
            rows.append(row)
            times.append(of_row | {"ratio": point.ratio(record)})
    words = ("point", "group", "place", "kind", "method", "family", "said", "storage", "crowded")
    types = dict.fromkeys(("at", "ranks", "nodes"), int)
    types |= dict.fromkeys(("verified", "emulated", "vendor", "sent"), bool)
    frame = pandas.DataFrame(rows, dtype=object)
    frame = frame.reindex(columns=list(dict.fromkeys([*frame, *words, *types])))
    several = frame.groupby(["point", "method"]).storage.transform("nunique") > 1
    private = (frame.storage == "private") & several
    frame["said"] += private.map({True: ", private memory", False: ""})
    fields = [f"{phase}.{name}" for phase in PHASES for name in STATISTICS]
    numbers = pandas.DataFrame(times, frame.index, [*fields, *SHORT, "ratio"], dtype=float)
    return frame.astype(types).join(numbers)


def cores_of_host(folder):
    """Returns the cores of a host as lscpu reported them to jobs/studies/run.sh: the fewest of all sessions,
    None without."""
    found = []
    for path in sorted(folder.glob("session-*.txt")):
        line = r"^ *(CPU\(s\)|Thread\(s\) per core): +([0-9]{1,9})$"
        told = dict(re.findall(line, read_text(path, "remove it", "replace"), re.M))
        if "CPU(s)" in told:
            found.append(int(told["CPU(s)"]) // max(1, int(told.get("Thread(s) per core", 1))))
    return min(found, default=None)
