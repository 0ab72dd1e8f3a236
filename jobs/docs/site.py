#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Builds the HTML site of jobs/local/docs.sh: the manual's pages and a reference page for each installed header.

    jobs/docs/site.py FOLDER        FOLDER/source, FOLDER/xml and FOLDER/html are made anew

Exit codes: 0, 1 if a tool has a warning, 3 if a tool is not there.
"""
import importlib.util
import itertools
import pathlib
import re
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

# Breathe declares a namespace once on each page.
import logging
logging.getLogger("sphinx.sphinx.domains.cpp").addFilter(lambda record: "Duplicate C++" not in str(record.msg))
'''
DOXYFILE = '''
PROJECT_NAME = Halocline
INPUT = lib
RECURSIVE = YES
FILE_PATTERNS = *.hpp
EXCLUDE_PATTERNS = */test/* */bench/* */example/* */interpose/* */pack/host/copy_* */pack/device/copy_*
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
PREDEFINED = HALOCLINE_FUNCTION= HALOCLINE_DEVICE=
MAX_INITIALIZER_LINES = 0
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
    """Yields the headers of lib/ that programs include. Leaves out tests, and the loops that copy bytes."""
    for path in sorted((ROOT / "lib").rglob("*.hpp")):
        name = path.relative_to(ROOT / "lib")
        if not {"test", "bench", "example", "interpose"} & set(name.parts) and not name.name.startswith("copy_"):
            yield name


def copy_page(page, source):
    """Copies a page with its figures. Removes links to folders, which have no target in the site."""
    copy = source / page.relative_to(ROOT)
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.write_text(re.sub(r"\[([^\]]*)\]\([^)\s]*/\)", r"\1", page.read_text(encoding="utf-8")), encoding="utf-8")
    for image in manual.images_of(page):
        (source / image.relative_to(ROOT)).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(image, source / image.relative_to(ROOT))


def main(arguments):
    if len(arguments) != 1 or arguments[0] in ("-h", "--help"):
        print(__doc__)
        return 0 if arguments else 2
    for name in ("sphinx", "myst_parser", "breathe", "furo"):
        if importlib.util.find_spec(name) is None:
            print(f"site.py: {sys.executable} has no {name}: run jobs/local/docs.sh as root", file=sys.stderr)
            return 3
    folder = pathlib.Path(arguments[0]).resolve()
    source, xml = folder / "source", folder / "xml"
    for old in (source, xml, folder / "html"):
        shutil.rmtree(old, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    tool("doxygen", "-", input=DOXYFILE % xml, text=True)
    pages = manual.pages()
    measured = []
    for page in itertools.chain(pages, measured):  # the latter grows meanwhile
        copy_page(page, source)
        # The site contains the reports and sources to which a page links.
        for _, target in manual.links_of(page):
            path = (page.parent / target.split("#")[0]).resolve()
            if not path.is_file() or path in pages or path in measured:
                continue
            if path.suffix == ".md":
                measured.append(path)
            else:
                (source / path.relative_to(ROOT)).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, source / path.relative_to(ROOT))
    reference = source / "reference"
    reference.mkdir()
    for name in headers():
        title = str(name)
        text = f"{title}\n{'=' * len(title)}\n\n.. doxygenfile:: {title}\n   :project: halocline\n"
        (reference / (title.replace("/", "-") + ".rst")).write_text(text, encoding="utf-8")
    (reference / "index.rst").write_text(
        "Reference of the library\n========================\n\n.. toctree::\n   :glob:\n   :maxdepth: 1\n\n   *\n", encoding="utf-8"
    )
    listed = lambda paths: "\n".join(f"   {path.relative_to(ROOT).with_suffix('')}" for path in paths)
    (source / "index.rst").write_text(
        "Halocline\n=========\n\n"
        f".. toctree::\n   :maxdepth: 1\n   :caption: Manual\n\n{listed(pages)}\n\n"
        ".. toctree::\n   :maxdepth: 1\n   :caption: Library\n\n   reference/index\n\n"
        f".. toctree::\n   :maxdepth: 1\n   :caption: Measured\n\n{listed(measured)}\n",
        encoding="utf-8",
    )
    (source / "conf.py").write_text(CONF % xml, encoding="utf-8")
    tool(sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", source, folder / "html")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
