#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Builds the HTML site of jobs/local/docs.sh: the manual's pages and a reference page for each installed header.

    jobs/docs/site.py FOLDER        FOLDER/source, FOLDER/xml and FOLDER/html are made anew

Exit codes: 0, 1 if a tool has a warning, 3 if a tool is not there.
"""
import pathlib
import shutil
import subprocess
import sys

import manual

ROOT = manual.ROOT
CONF = '''
project = "Halocline"
author = "The Halocline developers"
extensions = ["myst_parser", "breathe"]
breathe_projects = {"halocline": r"%s"}
breathe_default_project = "halocline"
myst_heading_anchors = 3
suppress_warnings = ["myst.header"]
html_theme = "furo"
html_title = "Halocline"
highlight_language = "none"
'''
DOXYFILE = '''
PROJECT_NAME = Halocline
INPUT = lib
RECURSIVE = YES
FILE_PATTERNS = *.hpp
EXCLUDE_PATTERNS = */test/* */bench/* */example/* */interpose/*
EXCLUDE_SYMBOLS = *::detail *::detail::*
GENERATE_HTML = NO
GENERATE_LATEX = NO
GENERATE_XML = YES
QUIET = YES
WARN_IF_UNDOCUMENTED = NO
WARN_AS_ERROR = FAIL_ON_WARNINGS
XML_OUTPUT = %s
STRIP_FROM_PATH = lib
MACRO_EXPANSION = YES
EXPAND_ONLY_PREDEF = YES
'''


def tool(*command, **options):
    try:
        finished = subprocess.run([str(word) for word in command], cwd=ROOT, check=False, **options)
    except FileNotFoundError:
        print(f"site.py: {command[0]} is not there: run jobs/local/docs.sh", file=sys.stderr)
        sys.exit(3)
    if finished.returncode != 0:
        print(f"site.py: {command[0]} found faults, see above", file=sys.stderr)
        sys.exit(1)


def headers():
    """The installed headers that have something to say: those of lib/ but for tests and what is inside."""
    for path in sorted((ROOT / "lib").rglob("*.hpp")):
        name = path.relative_to(ROOT / "lib")
        if not {"test", "bench", "example", "interpose"} & set(name.parts):
            yield name


def main(arguments):
    if len(arguments) != 1 or arguments[0] in ("-h", "--help"):
        print(__doc__)
        return 0 if arguments else 2
    folder = pathlib.Path(arguments[0]).resolve()
    source, xml = folder / "source", folder / "xml"
    for old in (source, xml, folder / "html"):
        shutil.rmtree(old, ignore_errors=True)
    tool("doxygen", "-", input=DOXYFILE % xml, text=True)
    pages = manual.pages()
    for page in pages:
        copy = source / page.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(page, copy)
        # What a page links to, figures and sources, is part of the site.
        for _, target in manual.links_of(page):
            path = (page.parent / target.split("#")[0]).resolve()
            if path.is_file() and path not in pages:
                (source / path.relative_to(ROOT)).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, source / path.relative_to(ROOT))
        for image in manual.images_of(page):
            (source / image.relative_to(ROOT)).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(image, source / image.relative_to(ROOT))
    reference = source / "reference"
    reference.mkdir()
    for name in headers():
        title = str(name)
        text = f"{title}\n{'=' * len(title)}\n\n.. doxygenfile:: {title}\n   :project: halocline\n"
        (reference / (title.replace("/", "-") + ".rst")).write_text(text, encoding="utf-8")
    (reference / "index.rst").write_text(
        "Reference of the library\n========================\n\n.. toctree::\n   :glob:\n   :maxdepth: 1\n\n   *\n", encoding="utf-8"
    )
    listed = "\n".join(f"   {page.relative_to(ROOT).with_suffix('')}" for page in pages)
    (source / "index.rst").write_text(
        f"Halocline\n=========\n\n.. toctree::\n   :maxdepth: 1\n\n{listed}\n   reference/index\n", encoding="utf-8"
    )
    (source / "conf.py").write_text(CONF % xml, encoding="utf-8")
    tool("sphinx-build", "-W", "--keep-going", "-q", "-b", "html", source, folder / "html")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
