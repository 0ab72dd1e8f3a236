#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares two files of result records and lists what has become slower. jobs/local/diff-results.sh calls this
script.

    jobs/local/diff-results.sh OLD NEW [--tolerance P] [--by-total]

    mpirun -n 2 halocline compare --local 64 64 64 --output old.jsonl     # then change something, build it, and
    mpirun -n 2 halocline compare --local 64 64 64 --output new.jsonl
    jobs/local/diff-results.sh old.jsonl new.jsonl --tolerance 5

OLD and NEW are files that halocline run or compare wrote with --output: JSON lines of schema halocline/1
(results/records.md). Records of both files belong together if they have the same settings: method, ranks, grid,
fields, layout and so on. Several records of one experiment in a file count as their median.

A change counts if it is larger than P percent and beyond doubt. The column "by" says which of these numbers has
decided:
  ratio   the time relative to a vendor method of the same run: OLD's baseline, or else another one that is in both files.
          Methods of a compare take turns, so a disturbance mostly slows both. That makes ratios comparable across runs.
          Two runs of one program still differ, by more than 5 % on a busy machine: measure several times into one file.
          A ratio does not show what slows all methods alike, the vendor's too; the times beside it do.
  total   the median time itself, if there is no such ratio: for run, and for compare without a vendor method in both files.
          With --by-total always. Trust it on a machine that does nothing else.
In doubt there is no verdict, and no regression:
  noise          p10 to p90 of the times of OLD and of NEW overlap: measure longer, several times, or on a quieter machine
  contradicting  the ratio says slower and the time says faster, or the other way round. This happens if only the vendor's
                 method has changed: measure both on one machine in one state, or use --by-total
Two changes are regressions whatever P is: a method is no longer verified, or run ends in other fields after the same
steps from the same values. A record that is in one file only is listed and decides nothing.

Exit codes: 0 no regression, 1 a regression, 2 bad input (unreadable, not JSON, another schema, nothing in common), 3
the result cannot be written. Standard library only."""
import argparse
import collections
import math
import statistics

from records import BadInput, damaged, end, excerpt_of_text, fault, json_lines, schema_file, tell

SCHEMA = "halocline/1"
FIELDS = schema_file("schema.json")["properties"]
ORIGINS = FIELDS["provenance"]["properties"]
# The settings of a record distinguish experiments.
IDENTITY = tuple(name for name, field in FIELDS.items() if field.get("setting"))
# These settings distinguish the rows of a table; the other settings are its heading.
IN_ROW = ("method", "storage", "shape")
# The machine and the MPI distinguish records only in a file that has several of them.
CONTEXT = tuple(name for name, field in ORIGINS.items() if field.get("setting"))
# These are the values of versions that did not record a setting.
EARLIER = {name: field["default"] for name, field in (FIELDS | ORIGINS).items() if "default" in field}
# The final fields of a run also depend on these members of its config.
STATE = ("steps", "stages", "seed", "inject")


class Record:
    """Holds one line of a file: its measurements and its settings."""

    def __init__(self, fields):
        if fields.get("schema") != SCHEMA:
            raise BadInput(
                f"is of schema {excerpt_of_text(str(fields.get('schema', 'none')))}, not {SCHEMA}: give what halocline run or compare wrote with --output"
                " (rows of benchmarks: results/tables.py)"
            )
        if fields.get("kind") == "gather":
            raise BadInput("is of halocline gather: give what halocline run or compare wrote with --output")
        wrong = fault(fields, "schema.json", all_there=False)
        if wrong:
            raise ValueError(wrong)
        self.fields = fields
        self.provenance = fields["provenance"]
        self.earlier = EARLIER | {"storage": "device" if fields.get("memory") == "device" else "private"}
        self.method = fields["method"], self.setting("storage"), self.setting("shape")
        self.verified = fields["verified"]
        self.baseline = None
        if fields["baseline"]:
            self.baseline = fields["baseline"], fields.get("baseline_storage", self.method[1]), fields.get("baseline_shape", "direct")
        total = fields["phases"]["total"]
        self.total = None if total is None else float(total["median_s"])
        self.low, self.high = (total and total.get(field) for field in ("p10_s", "p90_s"))
        if self.total is not None and not self.total > 0:
            raise ValueError(f"a median of {self.total} s")
        hash((self.key(IDENTITY + CONTEXT), self.state(), fields["state_hash"]))  # fails if a setting is missing or has another type

    def setting(self, name):
        if name == "stencil" and self.fields["kind"] == "compare":
            return None  # the stencil is configured, but compare computes none
        value = (
            self.provenance.get(name, self.earlier.get(name)) if name in CONTEXT
            else self.fields[name] if name in self.fields else self.earlier[name]
        )  # fmt: skip
        return tuple(value) if isinstance(value, list) else value

    def key(self, names):
        return tuple(self.setting(name) for name in names)

    def state(self):
        config = self.provenance.get("config", {})
        return tuple(config.get(name) for name in STATE)


class File:
    """Holds the records of a file in their order, and the median totals of each run: {(method, storage, shape):
    seconds}."""

    def __init__(self, path):
        self.path = path
        self.records = list(read(path))
        if not self.records:
            raise BadInput(f"{path} has no records: measure with --output {path}")
        self.runs = collections.defaultdict(dict)
        for record in self.records:
            self.runs[self.run_of(record)][record.method] = record.total

    @staticmethod
    def run_of(record):
        # messages_per is left out: not all methods of a comparison can have several messages.
        names = [name for name in IDENTITY + CONTEXT if name not in (*IN_ROW, "messages_per")]
        return record.key(names) + (record.provenance.get("time"),)

    def describe(self):
        revisions = dict.fromkeys(str(record.provenance.get("git", "unknown"))[:9] for record in self.records)
        begin = min(str(record.provenance.get("time", "unknown")) for record in self.records)
        return f"{self.path}, {len(self.records)} records of revision {', '.join(revisions)}, from {begin} on"

    def settings(self, name):
        return {record.setting(name) for record in self.records}

    def ratio(self, record, baseline):
        """Returns the speed relative to `baseline` in the same run, or None."""
        reference = self.runs[self.run_of(record)].get(baseline)
        return reference / record.total if reference and record.total else None


def read(path):
    for number, fields in json_lines(path, "give what halocline run or compare wrote with --output"):
        try:
            with damaged("", "measure again"):
                if set(fields) == {"provenance"}:
                    continue  # first line of a file of jobs/local/vendors.sh
                record = Record(fields)
            yield record
        except BadInput as error:
            raise BadInput(f"line {number} of {path} {str(error).strip()}") from error


def names_to_match(old, new):
    """Returns the settings by which records are matched, and warnings of other settings that differ."""
    names, warnings = list(IDENTITY), []
    for name in CONTEXT:
        found = old.settings(name), new.settings(name)
        if max(map(len, found)) > 1:
            names.append(name)
        elif found[0] != found[1] and {None} not in found:
            warnings.append(f"WARNING: {name} {text(*found[1])}, in OLD {text(*found[0])}: a difference may come from that")
    return names, warnings


def grouped(file, names):
    groups = collections.defaultdict(list)
    for record in file.records:
        groups[record.key(names)].append(record)
    return groups


def median(values):
    values = [value for value in values if value is not None]
    return statistics.median(values) if values else None


class Pair:
    """Holds the records of one experiment in both files."""

    def __init__(self, old, new, old_records, new_records, by_total):
        self.method = new_records[0].method
        self.label = ", ".join(part for part in self.method if part != "direct")
        self.records = old_records, new_records
        self.totals = [median(record.total for record in records) for records in self.records]
        self.spreads = [(median(record.low for record in records), median(record.high for record in records)) for records in self.records]
        self.baseline, self.ratios = common_ratio(old, new, *self.records)
        self.by = "total" if by_total or None in self.ratios else "ratio"

    def change(self, by):
        """Returns the relative increase in time: 0.1 is 10 % longer. For "ratio" the time is relative to the
        baseline. None if unknown."""
        before, after = self.totals if by == "total" else reversed(self.ratios)
        return after / before - 1 if before and after else None

    def verdict(self, tolerance):
        """Returns (True for a regression, a few words)."""
        old, new = self.records
        if not all(record.verified for record in new):
            broken = all(record.verified for record in old)
            return broken, "NOT VERIFIED" if broken else "not verified, as before"
        states = [{(record.state(), record.fields["state_hash"]) for record in records} for records in self.records]
        if any(before[0] == after[0] and before[1] != after[1] for before in states[0] for after in states[1]):
            return True, "OTHER STATE"
        change = self.change(self.by)
        if change is None:
            return False, "not timed"
        if self.by == "ratio" and self.method == self.baseline:
            return False, "baseline"
        # The limit for faster is a factor, too: 1 + tolerance times as fast.
        is_slower, is_faster = change > tolerance, change <= -1 or 1 / (1 + change) - 1 > tolerance
        if not (is_slower or is_faster):
            return False, "ok"
        if self.by == "ratio" and change * self.change("total") < 0:
            return False, "contradicting"
        if self.is_noise():
            return False, "noise"
        return is_slower, "SLOWER" if is_slower else "faster"

    def is_noise(self):
        """Tells if p10 to p90 of the times before and after overlap."""
        (low, high), (new_low, new_high) = self.spreads
        return None not in (low, high, new_low, new_high) and low <= new_high and new_low <= high


def common_ratio(old, new, old_records, new_records):
    """Returns a vendor method that the runs of all these records have measured, and the median ratio to it in each
    file. Returns Nones without such a method."""
    recorded = [record.baseline for record in old_records + new_records if record.baseline]
    others = [method for method in old.runs[old.run_of(old_records[0])] if method[0].startswith("vendor-")]
    for baseline in dict.fromkeys(recorded + others):
        ratios = [[file.ratio(record, baseline) for record in records] for file, records in ((old, old_records), (new, new_records))]
        if None not in ratios[0] + ratios[1]:
            return baseline, [statistics.median(values) for values in ratios]
    return None, [None, None]


def text(value):
    if isinstance(value, tuple):
        return (" x " if all(type(item) is int for item in value) else ", ").join(map(text, value)) or "none"
    return str(value).lower() if isinstance(value, bool) else str(value)


def seconds(value):
    if value is None:
        return "-"
    factor, unit = next(((f, u) for f, u in ((1, "s"), (1e3, "ms")) if value * f >= 1), (1e6, "us"))
    digits = next((digits for limit, digits in ((10, 2), (100, 1)) if value * factor < limit), 0)
    return f"{value * factor:.{digits}f} {unit}"


def percent(value):
    return "-" if value is None else f"{100 * value:+.1f} %"


def times(value):
    return "-" if value is None else f"{value:.2f}x"


def phrase(names, key):
    """Returns `key` for people, without settings that are None."""
    return ", ".join(f"{name} {text(value)}" for name, value in zip(names, key) if value is not None)


def table(rows):
    widths = [max(map(len, column)) for column in zip(*rows)]
    for index, row in enumerate(rows):
        cells = [cell.ljust(width) if at in (0, len(row) - 1) else cell.rjust(width) for at, (cell, width) in enumerate(zip(row, widths))]
        print("  ".join(cells).rstrip())
        if index == 0:
            print("  ".join("-" * width for width in widths))


HEADER = ["method, storage", "old", "new", "time", "old ratio", "new ratio", "time by baseline", "by", "verdict"]


def row_of(pair, words):
    old, new = pair.records
    count = "" if len(old) == len(new) == 1 else f" ({len(old)}, {len(new)} records)"
    return [
        pair.label + count, *map(seconds, pair.totals), percent(pair.change("total")),
        *map(times, pair.ratios), percent(pair.change("ratio")), pair.by, words,
    ]  # fmt: skip


def print_tables(pairs, names, verdicts):
    """Prints a table for each group of settings, below the settings that all of them have in common."""
    others = [at for at, name in enumerate(names) if name not in IN_ROW]
    varying = [at for at in others if len({key[at] for key in pairs}) > 1]
    first = next(iter(pairs))
    part = lambda key, which: phrase([names[at] for at in which], [key[at] for at in which])  # noqa: E731
    print(part(first, [at for at in others if at not in varying]))
    for heading in dict.fromkeys(part(key, varying) for key in pairs):
        print(f"\n{heading}" if heading else "")
        table([HEADER] + [row_of(pairs[key], verdicts[key][1]) for key in pairs if part(key, varying) == heading])


def closest(names, old_keys, new_keys):
    """Returns the differences of the two keys that differ least."""
    both = ([(name, *pair) for name, *pair in zip(names, old, new) if pair[0] != pair[1]] for old in old_keys for new in new_keys)
    return ", ".join(f"{name}: {text(old)} and {text(new)}" for name, old, new in min(both, key=len))


def compare(old, new, tolerance, by_total):
    """Prints the comparison; returns the number of regressions."""
    names, warnings = names_to_match(old, new)
    groups = [grouped(file, names) for file in (old, new)]
    pairs = {key: Pair(old, new, groups[0][key], groups[1][key], by_total) for key in groups[0] if key in groups[1]}
    if not pairs:
        raise BadInput(
            f"{old.path} and {new.path} have no experiment in common (the closest ones differ in {closest(names, *groups)}):"
            " measure NEW with the flags of OLD"
        )
    verdicts = {key: pair.verdict(tolerance) for key, pair in pairs.items()}
    for title, file in (("OLD", old), ("NEW", new)):
        print(f"{title}: {file.describe()}")
    for warning in warnings:
        print(warning)
    print()
    print_tables(pairs, names, verdicts)
    print(
        "\ntime: medians, + is slower; ratio: speed relative to the baseline of the same run; time by baseline: what that says about"
        "\nthe time; by: which of the two decides"
    )
    for title, group, other in (("OLD", groups[0], groups[1]), ("NEW", groups[1], groups[0])):
        alone = [key for key in group if key not in other]
        if alone:
            print(f"\nonly in {title}:")
        for key in alone:
            print(f"  {phrase(names, key)}")
    found = [pairs[key].label for key in pairs if verdicts[key][0]]
    limit = f"{100 * tolerance:g} %"
    print(f"\n{len(found)} of {len(pairs)} worse, tolerance {limit}" + (f": {'; '.join(found)}" if found else ""))
    return len(found)


def tolerance_in_percent(word):
    try:
        value = float(word)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value >= 0):
        raise argparse.ArgumentTypeError(f"a tolerance is a number of percent, 0 or more, not '{word}'")
    return value / 100


def main(words=None):
    parser = argparse.ArgumentParser(
        prog="diff-results.sh", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, usage="%(prog)s OLD NEW [--tolerance P] [--by-total]"
    )
    parser.add_argument("old", metavar="OLD", help="what was")
    parser.add_argument("new", metavar="NEW", help="what is")
    parser.add_argument(
        "--tolerance", metavar="P", type=tolerance_in_percent, default="5", help="percent that is not yet a regression (default: 5)"
    )
    parser.add_argument("--by-total", action="store_true", help="the time itself decides everywhere, not that by the vendor's")
    arguments = parser.parse_args(words)
    try:
        regressions = compare(File(arguments.old), File(arguments.new), arguments.tolerance, arguments.by_total)
    except BadInput as error:
        tell("diff-results.sh", str(error))
        return 2
    return 1 if regressions else 0


if __name__ == "__main__":
    end("diff-results.sh", main)
