# SPDX-License-Identifier: BSD-3-Clause
"""What the scripts of this folder share: reading records, checking them against a JSON Schema, and finding matplotlib."""

import contextlib
import functools
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys

RESULTS = pathlib.Path(__file__).resolve().parent


class BadInput(Exception):
    """A file that cannot be used; the text says why and what to do."""


@contextlib.contextmanager
def clear_ending(program, hint):
    """Input that cannot be used, and results that cannot be written, end the program with one line and exit code 2."""
    try:
        yield
    except BadInput as error:
        print(f"{program}: {error}", file=sys.stderr)
        raise SystemExit(2) from error
    except OSError as error:
        what = error.filename or "a result"
        print(f"{program}: {what} cannot be written ({error.strerror}): {hint}", file=sys.stderr)
        raise SystemExit(2) from error


def read_text(path, hint):
    try:
        return pathlib.Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path} cannot be read ({getattr(error, 'strerror', None) or error}): {hint}") from error


def no_number(name):
    raise ValueError(f"{name} is no JSON")


def json_lines(path, hint):
    """(line number, value) of each line that is not empty."""
    lines = read_text(path, hint).splitlines()
    for number, line in enumerate(lines, 1):
        try:
            if line.strip():
                yield number, json.loads(line, parse_constant=no_number)
        except ValueError as error:
            how = "cut off or damaged" if number == len(lines) else "damaged"
            raise BadInput(f"line {number} of {path} is {how} ({error}): {hint}") from error


@functools.cache
def schema_file(name):
    return json.loads((RESULTS / name).read_text(encoding="utf-8"))


TYPES = {
    "null": type(None), "boolean": bool, "string": str, "array": list, "object": dict, "integer": int, "number": (int, float),
}  # fmt: skip


def is_a(value, kind):
    # JSON tells booleans from numbers, Python does not.
    return isinstance(value, TYPES[kind]) and (kind == "boolean") == isinstance(value, bool)


def fault(value, name, where="the record", schema=None):
    """How `value` differs from the JSON Schema in file `name`, or None. Knows what our schemas use of that language."""
    schema = schema or schema_file(name)
    if "$ref" in schema:
        file, _, path = schema["$ref"].partition("#/")
        part = functools.reduce(lambda outer, key: outer[key], path.split("/"), schema_file(file or name))
        return fault(value, file or name, where, part)
    if "oneOf" in schema:
        faults = [fault(value, name, where, choice) for choice in schema["oneOf"]]
        return None if None in faults else faults[-1]
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(is_a(value, kind) for kind in kinds):
        return f"{where} is no {' or '.join(kinds)}"
    if value not in schema.get("enum", [value]) or value != schema.get("const", value):
        return f"{where} is {json.dumps(value)}"
    if isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
        return f"{where} is {json.dumps(value)}"
    if is_a(value, "number"):
        inside = schema.get("minimum", value) <= value <= schema.get("maximum", value)
        return (
            None if inside and ("exclusiveMinimum" not in schema or value > schema["exclusiveMinimum"]) else f"{where} is {value}"
        )
    if isinstance(value, list):
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            return f"{where} has {len(value)} items"
        members = [(item, f"{where}[{at}]", schema.get("items", {})) for at, item in enumerate(value)]
    elif isinstance(value, dict):
        properties = schema.get("properties", {})
        missing = [key for key in schema.get("required", ()) if key not in value]
        if missing:
            return f"{where} has no {', '.join(missing)}"
        others = schema.get("additionalProperties", {})
        unknown = [key for key in value if key not in properties]
        if unknown and others is False:
            return f"{where} has an unknown {', '.join(unknown)}"
        members = [(item, f"{where}.{key}".replace("the record.", ""), properties.get(key, others)) for key, item in value.items()]
    else:
        members = []
    return next(filter(None, (fault(item, name, at, rule) if rule else None for item, at, rule in members)), None)


def prefer_matplotlib():
    """Starts the script again with Debian's Python if matplotlib is there alone: it need not be the first one in PATH."""
    debian = "/usr/bin/python3"
    if importlib.util.find_spec("matplotlib") or sys.prefix == "/usr" or not os.access(debian, os.X_OK):
        return
    if subprocess.run([debian, "-c", "import matplotlib"], stderr=subprocess.DEVNULL).returncode == 0:
        os.execv(debian, [debian, *sys.argv])


def pyplot(program):
    """matplotlib.pyplot for files, or None after a line that says so."""
    try:
        import matplotlib

        matplotlib.use("Agg")
        matplotlib.rcParams["svg.hashsalt"] = "halocline"
        from matplotlib import pyplot as module
    except ImportError:
        print(f"{program}: no plots ({sys.executable} has no matplotlib: install it; Debian: python3-matplotlib)", file=sys.stderr)
        return None
    return module
