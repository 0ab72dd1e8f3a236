# SPDX-License-Identifier: BSD-3-Clause
"""Reads records of `--output` into a pandas DataFrame, for notebooks and scripts of your own.

    import sys; sys.path.insert(0, "results")
    import halocline
    frame = halocline.read("compare.jsonl", "more/*.jsonl")
    frame.pivot_table("phases.total.median_s", "method", "ranks")

Needs pandas: jobs/local/reports.sh installs it for .deps/reports/bin/python3.
"""

import glob
import os

import records


def read(*files):
    """Returns one row for each record of these files, which may be patterns such as `raw/weak/*.jsonl`.

    Members of members have dots in the names of their columns, such as `phases.total.median_s` (seconds).
    Lists stay lists: `local` is [x, y, z]. The column `file` names the file. Lines that have only
    `provenance` are skipped. Raises records.BadInput for a line that is no object, and FileNotFoundError for
    a pattern without files."""
    import pandas

    rows, hint = [], "write it again with --output"
    for pattern in files:
        paths = [str(pattern)] if os.path.exists(pattern) else sorted(glob.glob(str(pattern)))
        if not paths:
            raise FileNotFoundError(f"there is no {pattern}: write records with --output")
        for path in paths:
            for number, record in records.json_lines(path, hint):
                if not isinstance(record, dict):
                    what = records.excerpt(record)
                    raise records.BadInput(f"line {number} of {path} is no record ({what}): {hint}")
                if record.keys() != {"provenance"}:
                    rows.append(record | {"file": path})
    return pandas.json_normalize(rows)
