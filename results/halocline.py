# SPDX-License-Identifier: BSD-3-Clause
"""Reads records of `--output` into a pandas DataFrame, for notebooks and scripts of your own.

    import sys; sys.path.insert(0, "results")
    import halocline
    frame = halocline.read("compare.jsonl", "more/*.jsonl")
    frame.pivot_table("phases.total.median_s", "method", "ranks")

Needs pandas (Debian: python3-pandas).
"""

import glob

import records


def read(*files):
    """Returns one row for each record of these files, which may be patterns such as `raw/weak/*.jsonl`.

    Members of members have dots in the names of their columns, such as `phases.total.median_s` (seconds). Lists stay lists: `local` is
    [x, y, z]. The column `file` names the file. Raises records.BadInput for what is no record, and FileNotFoundError for a pattern
    without files.
    """
    import pandas

    rows = []
    for pattern in files:
        paths = sorted(glob.glob(str(pattern)))
        if not paths:
            raise FileNotFoundError(f"there is no {pattern}: write records with --output")
        for path in paths:
            rows += [record | {"file": path} for _, record in records.json_lines(path, "write it again with --output")]
    return pandas.json_normalize(rows)
