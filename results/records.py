# SPDX-License-Identifier: BSD-3-Clause
"""Shares code between the scripts: reads records, checks them against a JSON Schema, ends with a clear line,
and finds the packages of reports. Needs the standard library alone."""

import contextlib
import functools
import importlib.util
import io
import json
import os
import pathlib
import re
import select
import signal
import stat
import subprocess
import sys
import traceback

RESULTS = pathlib.Path(__file__).resolve().parent
# A user's measurements must not overwrite the results that are kept with the project, unless
# HALOCLINE_RESULTS=results.
PLACE = pathlib.Path(os.environ.get("HALOCLINE_RESULTS") or RESULTS / "mine")
PACKAGES = ("pandas", "matplotlib", "markdown_it")  # of jobs/local/requirements/reports.txt
LARGEST = 1 << 30  # largest file in bytes; the largest study has some megabytes
PATIENCE_S = 10  # longest time to wait for the first byte of a pipe


class BadInput(Exception):
    """Reports a file that cannot be used; the text says why and what to do."""


def one_line(text):
    """Returns `text` with an escape for everything that would end a line or steer a terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def tell(program, text):
    """Prints one line on standard error, if anybody listens. A long text is cut to its begin and its end,
    which says what to do."""
    line, part = one_line(text), 700
    if len(line) > 2 * part:
        line = f"{line[:part]} ... {line[-part:]}"
    with contextlib.suppress(OSError, AttributeError):
        print(f"{program}: {line}", file=sys.stderr, flush=True)


class CheckedOutput(io.FileIO):
    """Is a standard output that remembers why it could not be written, whoever writes: argparse ignores
    that."""

    fault = None

    def write(self, data):
        try:
            return super().write(data)
        except OSError as error:
            self.fault = error
            return len(data)


def end(program, main):
    """Runs `main` and ends the process with the exit code that it returns.

    If standard output cannot be written, prints one line and exits with 3. A fault of the script itself also
    exits with 3, after its traceback: Python's own exit code for it, 1, means something else here."""
    if sys.stdout is None:
        tell(program, "stdout is closed: send it to a terminal, a pipe or a file")
        sys.exit(3)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` is no error
    sys.stdout.flush()
    output = CheckedOutput(sys.stdout.fileno(), "w", closefd=False)
    # Any character can be printed, whatever the locale is.
    wrapped, encoding = io.BufferedWriter(output), sys.stdout.encoding
    sys.stdout = io.TextIOWrapper(wrapped, encoding, "backslashreplace", line_buffering=output.isatty())
    try:
        code = main()
    except SystemExit as error:
        code = error.code
    except Exception:
        code = 3
        traceback.print_exc()
        tell(program, "this is a fault of the script, not a result: please report it with the files")
    sys.stdout.flush()
    if output.fault:
        where = "a terminal, a pipe or a file on a disk with free space"
        tell(program, f"stdout cannot be written ({output.fault.strerror}): send it to {where}")
        code = 3
    sys.exit(code)


@contextlib.contextmanager
def clear_ending(program, hint):
    """Ends the program with one line and exit code 2 if input cannot be used or results cannot be written."""
    try:
        yield
    except BadInput as error:
        tell(program, str(error))
        raise SystemExit(2) from error
    except OSError as error:
        what = error.filename or "a result"
        tell(program, f"{what} cannot be written ({error.strerror}): {hint}")
        raise SystemExit(2) from error


@contextlib.contextmanager
def damaged(what, hint):
    """Turns Python's errors for missing values, or values of another type, into BadInput: `what` is
    damaged."""
    try:
        yield
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        reason = excerpt_of_text(f"no {error}" if isinstance(error, KeyError) else str(error))
        raise BadInput(f"{what} is damaged ({reason}): {hint}") from error


def open_without_waiting(path, flags):
    """Opens a file. Opens a pipe at once even if nobody writes to it; later reads wait."""
    descriptor = os.open(path, flags | os.O_NONBLOCK)
    os.set_blocking(descriptor, True)
    return descriptor


def read_text(path, hint, errors="strict"):
    """Returns the text of a file with its line ends unchanged. Throws BadInput if it cannot be read."""
    try:
        with open(path, "rb", opener=open_without_waiting) as file:
            kind = os.fstat(file.fileno()).st_mode
            if not (stat.S_ISREG(kind) or stat.S_ISFIFO(kind)):  # a device may never end
                raise BadInput(f"{path} cannot be read (it is no file): {hint}")
            if stat.S_ISFIFO(kind) and not select.select([file], [], [], PATIENCE_S)[0]:
                why = f"it is a pipe to which nobody has written for {PATIENCE_S} s"
                raise BadInput(f"{path} cannot be read ({why}): {hint}")
            content = file.read(LARGEST + 1)
        if len(content) > LARGEST:
            raise BadInput(f"{path} cannot be read (it has more than {LARGEST >> 20} MiB): {hint}")
        return content.decode("utf-8", errors)
    except (OSError, ValueError, MemoryError) as error:
        why = getattr(error, "strerror", None) or error
        raise BadInput(f"{path} cannot be read ({why}): {hint}") from error


def lines_of(text):
    """Returns the lines of `text`, which end at a line feed alone. Python's splitlines also ends lines at
    U+2028 and others, which strings of JSON may contain unescaped."""
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def no_number(name):
    raise ValueError(f"{name} is no JSON")


def finite(word):
    value = float(word)
    if value - value != 0:
        raise ValueError(f"{excerpt_of_text(word)} is too large")
    return value


def whole(word):
    if len(word) > 20:  # digits of 64 bits
        raise ValueError(f"{excerpt_of_text(word)} is too large")
    return int(word)


def load(text):
    """Returns the value of the JSON `text`. Throws ValueError for values that no record can hold: NaN,
    numbers beyond 64 bits, values nested too deep, halves of surrogate pairs."""
    try:
        value = json.loads(text, parse_constant=no_number, parse_float=finite, parse_int=whole)
        if "\\ud" in text or "\\uD" in text:
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError as error:
        raise ValueError("nested too deep") from error
    except UnicodeEncodeError as error:
        raise ValueError("half of a surrogate pair") from error
    return value


def json_lines(path, hint):
    """Yields (line number, value) of each line that is not empty."""
    lines = lines_of(read_text(path, hint))
    for number, line in enumerate(lines, 1):
        try:
            if line.strip(" \t\r"):
                yield number, load(line)
        except ValueError as error:
            how = "cut off or damaged" if number == len(lines) else "damaged"
            raise BadInput(f"line {number} of {path} is {how} ({error}): {hint}") from error


def excerpt_of_text(text):
    return text if len(text) <= 60 else text[:57] + "..."


def excerpt(value):
    """Returns the beginning of `value` as JSON, for a message."""
    try:
        return excerpt_of_text(json.dumps(value))
    except RecursionError:
        return "..."


@functools.cache
def schema_file(name):
    return json.loads((RESULTS / name).read_text(encoding="utf-8"))


TYPES = {
    "null": type(None), "boolean": bool, "string": str, "array": list, "object": dict, "integer": int,
    "number": (int, float),
}  # fmt: skip


def is_a(value, kind):
    # JSON distinguishes booleans from numbers, Python does not.
    return isinstance(value, TYPES[kind]) and (kind == "boolean") == isinstance(value, bool)


@functools.cache
def referred(file, path):
    return functools.reduce(lambda outer, key: outer[key], path.split("/"), schema_file(file))


@functools.cache
def pattern(text):
    return re.compile(re.sub(r"\$$", r"\\Z", text))


def fault(value, name, where="the record", all_there=True):
    """Returns the difference of `value` from the JSON Schema in file `name`, or None. Knows the parts of JSON
    Schema that our schemas use. `all_there`: False for records of other versions, whose members may be fewer
    or more."""
    difference = difference_from(schema_file(name), value, name, all_there)
    return difference and f"{where}{difference}".replace("the record.", "")


def difference_from(schema, value, name, all_there):
    """Returns the place within `value` and the fault there, such as ".shape[2] is -1"; None if there is
    none."""
    if "$ref" in schema:
        file, _, path = schema["$ref"].partition("#/")
        return difference_from(referred(file or name, path), value, file or name, all_there)
    kinds = schema.get("type", ())
    kinds = (kinds,) if isinstance(kinds, str) else kinds
    if kinds and not any(is_a(value, kind) for kind in kinds):
        return f" is no {' or '.join(kinds)}"
    if ("enum" in schema and value not in schema["enum"]) or value != schema.get("const", value):
        return f" is {excerpt(value)}"
    if isinstance(value, str):
        good = "pattern" not in schema or pattern(schema["pattern"]).search(value)
        return None if good else f" is {excerpt(value)}"
    if is_a(value, "number"):
        inside = schema.get("minimum", value) <= value <= schema.get("maximum", value)
        above = "exclusiveMinimum" not in schema or value > schema["exclusiveMinimum"]
        return None if inside and above else f" is {value}"
    if isinstance(value, list):
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            return f" has {len(value)} items"
        if rule := schema.get("items"):
            for at, item in enumerate(value):
                if difference := difference_from(rule, item, name, all_there):
                    return f"[{at}]{difference}"
    elif isinstance(value, dict):
        properties, others = schema.get("properties", {}), schema.get("additionalProperties", {})
        missing = [key for key in schema.get("required", ()) if key not in value]
        if missing and all_there:
            return f" has no {', '.join(missing)}"
        unknown = [key for key in value if key not in properties]
        if unknown and others is False and all_there:
            return f" has an unknown {excerpt_of_text(', '.join(unknown))}"
        for key, item in value.items():
            rule = properties.get(key, others)
            if difference := rule and difference_from(rule, item, name, all_there):
                return f".{key}{difference}"
    return None


def need_packages():
    """Starts the script again with a Python that has PACKAGES, unless this one has them. Ends it with one
    line and exit code 3 if there is no such Python."""
    lacking = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if not lacking:
        return
    # The first Python in PATH need not be the one that has them. To import them would take a second.
    has_all = "import importlib.util as i, sys; sys.exit(None in map(i.find_spec, sys.argv[1:]))"
    for python in map(str, (RESULTS.parent / ".deps/reports/bin/python3", "/usr/bin/python3")):
        test = [python, "-c", has_all, *PACKAGES]
        if os.access(python, os.X_OK) and subprocess.run(test, stderr=subprocess.DEVNULL).returncode == 0:
            os.execv(python, [python, *sys.argv])
    what = f"{sys.executable} has no {', '.join(lacking)}"
    tell(pathlib.Path(sys.argv[0]).name, f"{what}: run jobs/local/reports.sh, which installs them in .deps")
    sys.exit(3)


def shown(path):
    """Returns a path for people: relative to the project's folder if it is inside."""
    path = pathlib.Path(path).resolve()
    return path.relative_to(RESULTS.parent) if path.is_relative_to(RESULTS.parent) else path
