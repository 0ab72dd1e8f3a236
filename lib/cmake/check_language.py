#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Refuses comments that are hard to read, by the rules of CONTRIBUTING.md that a program can check.

    check_language.py [FOLDER or FILE...]     default: app lib jobs results

Looks at comments of C, C++, CUDA, Fortran, Python and shell, and at docstrings of Python. Prints a line for each
fault. Exit code: 0, or 1 with faults."""
import ast
import itertools
import pathlib
import re
import subprocess
import sys

MOST_WORDS, MOST_COLUMNS = 25, 110
FIRST = re.compile(r"(Of|Those|Likewise|Where|What|Whether|As|How)\b")
UNCLEAR = re.compile(r"\b(so many|as much|the others|told|[Ll]ikewise)\b")
CPP, SCRIPTS = (".hpp", ".cpp", ".cu", ".cuh"), (".sh", ".py", ".sbatch", ".lsf", ".pbs")
C, FORTRAN = (".h", ".c"), (".f90", ".F90")
HEAD = re.compile(r"SPDX-License-Identifier: \S+")


def comments(lines, whole, behind):
    """Yields the line number and the text of each comment. A comment is a block of lines of their own, or the end of
    a line."""
    text, begin, kind = [], 0, None
    for number, line in enumerate([*lines, ""], 1):
        found = whole.match(line)
        if text and (not found or found[1] != kind):
            yield begin, "\n".join(text)
            text = []
        if found:
            if not text:
                begin, kind = number, found[1]
            text.append(found[2])
        elif (end := behind.search(line)):
            yield number, end[1]


def blocks(text):
    """Yields the line number and the text of each block comment of C."""
    for found in re.finditer(r"/\*+<?\s?(.*?)\*/", text, re.S):
        yield text.count("\n", 0, found.start()) + 1, re.sub(r"(?m)^ *\* ?", "", found[1])


def docstrings(text):
    """Yields the line number and the text of each docstring of Python, without examples."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and (found := ast.get_docstring(node)):
            yield node.body[0].lineno, re.sub(r"(?ms)^ *>>> .*?(?=^ *$|\Z)", "", found)


def comments_of(path):
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    if path.suffix in C:
        return blocks(text)
    if path.suffix in FORTRAN:
        return comments(lines, re.compile(r"\s*(!)[>!<]?\s?(.*)$"), re.compile(r"\S\s\s+!<?\s(.*)$"))
    if path.suffix in CPP:
        return comments(lines, re.compile(r"\s*(///?)(?!/)<?\s?(.*)$"), re.compile(r"[;,{})\w]\s+///?<?\s(.*)$"))
    of_python = docstrings(text) if path.suffix == ".py" else ()
    return itertools.chain(of_python, comments(lines, re.compile(r"\s*(#)(?!!)\s?(.*)$"), re.compile(r"\S\s\s# (.*)$")))


def sentences(text):
    """Splits a comment into sentences. Blank lines, list items, commands (\\param), and indented text end a sentence,
    too."""
    out = [""]
    for line in text.split("\n"):
        stripped = HEAD.sub("", line).strip()
        if not stripped or line.startswith("  ") or re.match(r"([-*\\|]|\d+\.)", stripped):
            out.append("")
        out[-1] += " " + stripped
    return [s for paragraph in out for s in re.split(r"(?<=[.:;?!])\s+", paragraph.strip()) if s]


def faults(path):
    for number, text in comments_of(path):
        clean = HEAD.sub("", text).strip()
        if FIRST.match(clean):
            yield number, f"begins with '{clean.split()[0]}': begin with a verb or the subject"
        if (word := UNCLEAR.search(clean)):
            yield number, f"'{word[0]}': repeat the noun"
        for sentence in sentences(text):
            if (words := len(sentence.split())) > MOST_WORDS:
                yield number, f"a sentence of {words} words, {MOST_WORDS} at most: {sentence[:50]}..."
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if path.suffix in CPP and len(line) > MOST_COLUMNS:
            yield number, f"{len(line)} columns, {MOST_COLUMNS} at most"


def main(names):
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", *(names or ["app", "lib", "jobs", "results"])],
                            capture_output=True, text=True, check=True).stdout.split("\n")
    found = 0
    for path in (pathlib.Path(name) for name in listed if name):
        if path.suffix in CPP + SCRIPTS + C + FORTRAN and path.is_file():
            for number, fault in faults(path):
                print(f"{path}:{number}: {fault}")
                found += 1
    return 1 if found else 0


if __name__ == "__main__":
    if sys.argv[1:] in (["-h"], ["--help"]):
        print(__doc__)
        sys.exit(0)
    sys.exit(main(sys.argv[1:]))
