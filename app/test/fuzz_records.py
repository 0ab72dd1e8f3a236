# SPDX-License-Identifier: BSD-3-Clause
"""Feeds damaged records, studies and logs to the scripts that read them. A script must end with a result, or with
exit code 2 and one line.

    fuzz_records.py [INPUTS [SEED]]     default: 1500 inputs, and a new seed each day; the same seed makes
                                        the same inputs

HALOCLINE_BINARY makes the records that are damaged. An input on which a script fails is printed; then the exit code
is 1."""
import contextlib
import copy
import io
import json
import os
import pathlib
import random
import signal
import sys
import tempfile
import time
import traceback
from unittest import mock

SOURCE = pathlib.Path(os.environ["HALOCLINE_SOURCE"])
sys.path.insert(0, str(SOURCE / "results"))
import diff  # noqa: E402
import study  # noqa: E402
import study_plots  # noqa: E402

from halocline_program import halocline  # noqa: E402

LIMIT_S = 20  # far above the time of any input: a script that reaches it hangs
NASTY = (
    None, True, False, 0, 1, -1, 2, 0.5, -0.0, 1e-320, 1e300, 2**31, 2**53 + 1, 2**63, 2**64, 10**25, "", "x", "halocline/1", "vendor-pack",
    "0x" + 16 * "0", "\u2028", "\x1b[2J\n", "\ud800", "\0", 300 * "long ", [], [[]], {}, {"": None}, [None], [1, 1, 1], [0, 1, 2], {"median_s": 1},
)  # fmt: skip
TOKENS = (
    b"\n", b"\r", b"\0", b"\xff", b"\xed\xa0\x80", b"\xe2\x80\xa8", b"{", b"}", b"[", b"]", b'"', b"\\", b"\\u", b"\\ud800", b",", b":", b"-", b"e999",
    b"1e400", b"NaN", b"Infinity", b"null", b"true", b"9" * 30, b"9" * 5000, b"[" * 3000, b'{"a":' * 3000, b"{}", b"[]", b"\n{}\n", b"\n3\n", b"\xef\xbb\xbf",
)  # fmt: skip


def places(value, path=()):
    """Yields the paths of all members within a JSON value."""
    yield path
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield from places(value[key], (*path, key))


def with_another_value(random_, value):
    """Returns a copy in which one member is missing, or has another value, or the value of another member."""
    value = copy.deepcopy(value)
    paths = list(places(value))
    path = random_.choice(paths)
    if not path:
        return random_.choice(NASTY)
    inner = value
    for key in path[:-1]:
        inner = inner[key]
    action = random_.randrange(4)
    if action == 0:
        del inner[path[-1]]
    elif action == 1:
        other = value
        for key in random_.choice(paths):
            other = other[key]
        inner[path[-1]] = copy.deepcopy(other)
    else:
        inner[path[-1]] = random_.choice(NASTY)
    return value


def with_other_bytes(random_, content):
    content = bytearray(content)
    for _ in range(random_.choice((1, 1, 1, 2, 5))):
        at, to = sorted(random_.randrange(len(content) + 1) for _ in range(2))
        match random_.randrange(6):
            case 0:
                del content[at : min(to, at + random_.choice((1, 3, 1000)))]
            case 1:
                content[at:at] = random_.choice(TOKENS)
            case 2:
                del content[to:]
            case 3:
                content[at:at] = content[at : min(to, at + 500)]
            case 4 if content:
                content[min(at, len(content) - 1)] ^= 1 << random_.randrange(8)
            case _:
                content[at : at + 1] = random_.choice(TOKENS)
    return bytes(content)


def damaged(random_, content):
    """Returns a damaged copy of `content`, a text of lines that need not be JSON."""
    if random_.randrange(2):
        return with_other_bytes(random_, content)
    lines = content.decode().split("\n")[:-1]
    at = random_.randrange(len(lines))
    try:
        value = json.loads(lines[at])
    except ValueError:
        return with_other_bytes(random_, content)
    for _ in range(random_.choice((1, 1, 2, 4))):
        value = with_another_value(random_, value)
        if not isinstance(value, (dict, list)):
            break
    lines[at] = json.dumps(value)
    return ("\n".join(lines) + "\n").encode()


def records_of(folder, command, *arguments):
    path = folder / f"{command}.jsonl"
    size = () if command == "gather" else ("--local", "6", "6", "6")
    outcome = halocline(command, *size, "--quiet", "--output", path, *arguments)
    if outcome.code != 0:
        sys.exit(f"fuzz_records.py: {outcome.stderr}")
    return path.read_bytes()


def undamaged(folder):
    """Returns {name: content} of a study with a point of each kind."""
    two = ("--methods", "alltoallv,vendor-pack", "--iterations", "2", "--warmup", "0")
    points = [{"name": name, "group": "g", "nodes": 1, "ranks": 1, "command": name} for name in ("compare", "run", "gather", "calibrate")]
    study_json = {
        "schema": "halocline-study/1", "name": "fuzz", "title": "t", "config": "", "site": "s", "launcher": "mpirun",
        "groups": [{"name": "g", "title": "t", "scaling": "weak"}], "points": points,
    }  # fmt: skip
    return {
        "compare.jsonl": records_of(folder, "compare", *two),
        "run.jsonl": records_of(folder, "run", "--steps", "1", "--overlap", "--methods", "p2p"),
        "gather.jsonl": records_of(folder, "gather", "--sizes", "8", "--iterations", "2", "--variants", "mpi-gather,zero-copy", "--order", "ordered"),
        "study.json": json.dumps(study_json).encode() + b"\n",
        "calibrate.json": b'{"schema": "halocline-model/1"}\n',
        "compare.log": b"# site, 1 x 1 ranks: halocline compare\n# exit code 1\n",
        "session-1.txt": b"CPU(s):                  4\n    Thread(s) per core:  2\n",
    }


class Fuzzer:
    def __init__(self, folder, seed):
        self.random, self.folder = random.Random(seed), folder
        self.good = undamaged(folder)
        self.raw, self.out = folder / "raw", folder / "out"
        self.raw.mkdir()
        for name, content in self.good.items():
            (self.raw / name).write_bytes(content)

    def one(self):
        """Damages one file and lets the scripts read it. Returns the file's name and content, and the fault of the
        script, if any."""
        name = self.random.choice((*self.good, "compare.jsonl", "compare.jsonl"))
        content = damaged(self.random, self.good[name])
        path = self.raw / name
        path.write_bytes(content)
        try:
            # Records of one kind are compared with the undamaged records, in either order.
            if name in ("compare.jsonl", "run.jsonl") and self.random.randrange(4):
                good = self.folder / name
                both = [str(good), str(path)]
                self.random.shuffle(both)
                flags = self.random.choice(((), ("--by-total",), ("--tolerance", "0")))
                wrong = self.ending("diff-results.sh", lambda: diff.main([*both, *flags]), (0, 1, 2))
            else:
                arguments = ["fuzz", "--raw", str(self.raw), "--out", str(self.out)]
                wrong = self.ending("study.py", lambda: study.main(arguments), (0, 1, 2))
        finally:
            path.write_bytes(self.good[name])
        return name, content, wrong

    @staticmethod
    def ending(program, main, codes):
        """Returns the fault in the way `main` ends; None without a fault."""
        out, err = io.StringIO(), io.StringIO()
        signal.alarm(LIMIT_S)
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = main()
        except SystemExit as end:
            code = end.code
        except BaseException:  # pylint: disable=broad-except
            return traceback.format_exc()
        finally:
            signal.alarm(0)
        lines = err.getvalue().split("\n")[:-1]
        if code not in codes:
            return f"exit code {code}"
        if code == 2 and (len(lines) != 1 or not lines[0].startswith(f"{program}: ") or len(lines[0]) > 2000):
            return f"exit code 2 with {len(lines)} lines: {err.getvalue()[:2000]}"
        return None


def hang(*_):
    raise TimeoutError(f"no end in {LIMIT_S} s")


def main():
    today = str(int(time.time()) // 86400)
    inputs, seed = (int(word) for word in (sys.argv[1:] + ["1500", today][len(sys.argv) - 1 :]))
    signal.signal(signal.SIGALRM, hang)
    failed = ended = 0
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as folder:
        with mock.patch.object(study_plots, "draw", new=lambda *_: {}):  # a Mock would keep all studies
            fuzzer, begin = Fuzzer(pathlib.Path(folder), seed), time.monotonic()
            for number in range(inputs):
                name, content, wrong = fuzzer.one()
                ended += 1
                if wrong:
                    failed += 1
                    print(f"input {number} of seed {seed}, {name}:\n{content[:3000]!r}\n{wrong[:3000]}", flush=True)
                    if failed == 10:
                        break
    print(f"{ended} inputs of seed {seed}, {failed} failed, {ended / (time.monotonic() - begin):.0f} a second")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
