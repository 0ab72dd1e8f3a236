# SPDX-License-Identifier: BSD-3-Clause
"""Reads records that the program writes."""

from __future__ import annotations

import glob
import json
import os
from typing import TYPE_CHECKING, Any

from ._library import InputError

if TYPE_CHECKING:
    import pandas


def read_records(*files: str | os.PathLike[str]) -> pandas.DataFrame:
    """Returns one row for each record of files that `halocline run` or `compare` wrote by --output or --csv.

    A file may be a pattern such as "raw/*.jsonl". Columns have dots for members of members, such as
    `phases.total.median_s` (seconds). The column `file` names the file. Lines that have only `provenance` are
    skipped. Needs pandas. results/records.md explains the fields.

    >>> import halocline
    >>> import json, os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "compare.jsonl")
    ...     with open(path, "w") as file:
    ...         print(json.dumps({"method": "p2p", "phases": {"total": {"median_s": 1e-5}}}), file=file)
    ...     frame = halocline.read_records(path)
    >>> float(frame["phases.total.median_s"][0])
    1e-05
    """
    try:
        import pandas
    except ImportError as error:
        raise ImportError("records become a DataFrame of pandas, which is not installed: run `pip install pandas`") from error
    frames = []
    for pattern in [os.fspath(file) for file in files]:
        paths = [pattern] if os.path.exists(pattern) else sorted(glob.glob(pattern))
        if not paths:
            raise InputError(f"there is no {pattern}: write records with --output")
        for path in paths:
            try:
                frame = pandas.read_csv(path) if path.endswith(".csv") else pandas.json_normalize(_records(path))
            except InputError:
                raise
            except (OSError, ValueError) as error:
                raise InputError(f"{path} cannot be read ({error}): give a file that `halocline run` or `compare` wrote") from error
            frames.append(frame.assign(file=path))
    return pandas.concat(frames, ignore_index=True) if frames else pandas.DataFrame()


def _records(path: str) -> list[dict[str, Any]]:
    out = []
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
                if not isinstance(record, dict):
                    raise ValueError("no object")
            except ValueError as error:
                raise InputError(f"line {number} of {path} is no record ({error}): write it again with --output") from error
            if record.keys() != {"provenance"}:
                out.append(record)
    return out
