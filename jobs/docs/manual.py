#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Keeps the manual true: its pages are README.md, CONTRIBUTING.md and the pages that they link to.

    jobs/docs/manual.py check               links, images, lengths, option tables, empty output, the notes of blocks that are not run
    jobs/docs/manual.py fill                writes the tables of options and of records' fields, the records' schemas, the man page
                                            and bash's completion
    jobs/docs/manual.py run [PAGE...]       runs every block of commands that is not marked, from the root of the repository
    jobs/docs/manual.py refresh [PAGE...]   does the same, and puts the new output into the blocks of output behind them

A block of commands begins with ```sh and runs in one bash. A block of output begins with ```text and follows its
commands. The line before a block of commands may say why it does not run here: <!-- not run: needs a cluster with
Slurm -->. <!-- run with: calibrate -> calibrate --max-seconds 5 --> there replaces words, so that what takes a user a
minute takes a test seconds; refresh takes the commands as they are. A line of three dots in a block of output stands for lines that are left out; such a block is not
refreshed.

An option table stands between <!-- options: SUBCOMMAND --> and <!-- end of options -->, a table of a record's fields
between <!-- record: SCHEMA --> and <!-- end of record -->. SCHEMA:FIELD stands for the fields of an object in it.
HALOCLINE_BINARY names the program, by default that of build/release.

Exit codes: 0, 1 if something is wrong, 2 bad input."""
import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("HALOCLINE_BINARY", ROOT / "build/release/app/halocline"))
MOST_LINES, MOST_COLUMNS, SECONDS, GRACE = 200, 110, 600, 5
README_LINES = 150
ENDS = ("<!-- end of options -->", "<!-- end of record -->")
# The text of a link may begin on the line before its target.
LINK = re.compile(r"(?:(?<!!)\[[^\]]*|^[^\[]*)\]\(([^)\s]+)\)")
IMAGE = re.compile(r"!\[.*?\]\(([^)\s]+)\)")
DEFINITION = re.compile(r"\[([^\]]+)\]: +(\S+)")
REFERENCE = re.compile(r"\[([^\]]+)\]\[([^\]]*)\]")


class BadInput(Exception):
    """Reports a page or a program that cannot be used; the text says why."""


class Block:
    """Holds commands with the output behind them. Line numbers begin at 0 and include the fences."""

    def __init__(self, begin, end, lines, note, replaced):
        self.begin, self.end, self.note = begin, end, note
        self.commands = "\n".join(lines[begin + 1 : end])
        self.in_short = self.commands.replace(*replaced) if replaced else self.commands
        if replaced and self.in_short == self.commands:
            raise BadInput(f"line {begin + 1} has no {replaced[0]} to replace")
        self.output = None
        at = end + 1
        while at < len(lines) and not lines[at].strip():
            at += 1
        if at < len(lines) and lines[at] == "```text":
            self.output = at, end_of(lines, at)


def lines_in(path):
    return path.read_text(encoding="utf-8").removesuffix("\n").split("\n")


def end_of(lines, at):
    """Returns the last line of the block that begins at line `at`."""
    if "```" not in lines[at + 1 :]:
        raise BadInput(f"the block that begins in line {at + 1} has no end")
    return lines.index("```", at + 1)


def blocks_of(lines):
    at = 0
    while at < len(lines):
        if lines[at].startswith("```"):
            end = end_of(lines, at)
            if lines[at] == "```sh":
                before = next((line for line in reversed(lines[:at]) if line.strip()), "")
                note = re.fullmatch(r"<!-- not run: (.+) -->", before.strip())
                replaced = re.fullmatch(r"<!-- run with: (.+) -> (.+) -->", before.strip())
                yield Block(at, end, lines, note.group(1) if note else None, replaced and replaced.groups())
            at = end
        at += 1


def text_outside_of_blocks(lines):
    inside = False
    for number, line in enumerate(lines):
        if line.startswith("```"):
            inside = not inside
        elif not inside:
            yield number, line


def without_code(line):
    return re.sub(r"`[^`]*`", "", line)


def anchors_of(path):
    """Returns the anchors of a page's headings, in GitHub's form."""
    out = set()
    for _, line in text_outside_of_blocks(lines_in(path)):
        if heading := re.match(r"#+ (.*)", line):
            plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.group(1)).lower()
            out.add(re.sub(r"[^\w\- ]", "", plain).replace(" ", "-"))
    return out


def links_of(path):
    for number, line in text_outside_of_blocks(lines_in(path)):
        line = without_code(line)
        definition = DEFINITION.match(line)
        for target in [definition.group(2)] if definition else LINK.findall(line):
            if not re.match(r"[a-z]+:", target):
                yield number, target


def undefined_references(lines):
    """Yields (line number, name) of each [text][name] whose target the page does not define."""
    text = [(number, without_code(line)) for number, line in text_outside_of_blocks(lines)]
    defined = {found.group(1).lower() for _, line in text if (found := DEFINITION.match(line))}
    for number, line in text:
        for words, name in REFERENCE.findall(line):
            if (name or words).lower() not in defined:
                yield number, name or words


def images_of(path):
    for _, line in text_outside_of_blocks(lines_in(path)):
        for target in IMAGE.findall(without_code(line)):
            if not re.match(r"[a-z]+:", target):
                yield (path.parent / target).resolve()


def pages():
    """Returns the pages in the order in which links lead to them. Leaves out reports of measurements, to which pages
    link, too."""
    found, waiting = [], [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    while waiting:
        page = waiting.pop(0)
        if page in found:
            continue
        found.append(page)
        for _, target in links_of(page):
            path = (page.parent / target.split("#")[0]).resolve() if target.split("#")[0] else page
            if not path.is_relative_to(ROOT):
                continue
            is_report = "results" in path.relative_to(ROOT).parts[:1] and path.parent != ROOT / "results"
            if path.suffix == ".md" and path.is_file() and not is_report and path.name != "CHANGELOG.md":
                waiting.append(path)
    return found


def option_table(subcommand, options):
    lines = ["| flag | default | meaning |", "|---|---|---|"]
    for option in options:
        if subcommand not in option["used_by"]:
            continue
        escaped = lambda text: text.replace("|", "\\|")
        flag = f"`--{option['flag']}{' ' + option['argument'] if option['argument'] else ''}`"
        default = f"`{option['default']}`" if option["default"] else ""
        meaning = option["meaning"] + (". " + option["details"] if option["details"] else "")
        lines.append(f"| {escaped(flag)} | {escaped(default)} | {escaped(meaning)} |")
    return lines


def record_table(name):
    """Returns a table with a row for each field of a record, or of an object in it, made of the descriptions in its
    schema."""
    file, *path = name.split(":")
    fields = json.loads((ROOT / "results" / file).read_text(encoding="utf-8"))["properties"]
    for field in path:
        fields = fields[field]["properties"]
    return ["| field | meaning |", "|---|---|", *(f"| `{name}` | {field['description']} |" for name, field in fields.items())]


def filled(lines, options):
    """Returns the lines with up-to-date tables."""
    out, inside = [], False
    for line in lines:
        if begin := re.fullmatch(r"<!-- (options|record): ([\w.:]+) -->", line):
            table = option_table(begin.group(2), options) if begin.group(1) == "options" else record_table(begin.group(2))
            out += [line, "", *table, ""]
            inside = True
        elif line in ENDS:
            inside = False
            out.append(line)
        elif not inside:
            out.append(line)
    return out


def man_page(options, overview, version):
    """Returns the man page halocline(1), made of the program's own help."""
    escaped = lambda text: text.replace("\\", "\\e").replace("-", "\\-")
    lines = [f'.TH HALOCLINE 1 "" "Halocline {version}"', ".SH NAME", "halocline \\- measures halo exchanges beside the installed MPI",
             ".SH SYNOPSIS", ".B halocline", ".I SUBCOMMAND", "[FLAG...]", ".SH DESCRIPTION", ".nf"]
    # A dot at the begin of a line would make it a request.
    lines += [("\\&" if line.startswith(".") else "") + escaped(line) for line in overview.strip().split("\n")]
    lines += [".fi", ".SH OPTIONS"]
    for option in options:
        lines += [".TP", escaped(f".BI --{option['flag']}") + (f' " {escaped(option["argument"])}"' if option["argument"] else "")]
        text = option["meaning"] + ("" if option["meaning"].endswith(".") else ".") + (" " + option["details"] if option["details"] else "")
        if option["default"]:
            text += f" Default: {option['default']}."
        lines.append(escaped(f"{text} For {', '.join(option['used_by'])}."))
    return "\n".join(lines) + "\n"


def completion(options):
    """Returns the completion for bash: subcommands, then their flags, then file names."""
    subcommands = list(dict.fromkeys(name for option in options for name in option["used_by"]))
    lines = ["# Completes halocline in bash; made by jobs/docs/manual.py fill.", "_halocline() {",
             "  local word=${COMP_WORDS[COMP_CWORD]} flags=", "  if ((COMP_CWORD == 1)); then",
             f'    mapfile -t COMPREPLY < <(compgen -W "{" ".join(subcommands)} help" -- "$word")', "    return", "  fi",
             "  case ${COMP_WORDS[1]} in"]
    for name in subcommands:
        flags = " ".join(f"--{option['flag']}" for option in options if name in option["used_by"])
        lines.append(f'    {name}) flags="{flags} --help" ;;')
    lines += [f'    help) flags="{" ".join(subcommands)} all json schema" ;;', "  esac",
              '  [[ $word != [!-]* || ${COMP_WORDS[1]} == help ]] && mapfile -t COMPREPLY < <(compgen -W "$flags" -- "$word")',
              "}", "complete -o default -F _halocline halocline"]
    return "\n".join(lines) + "\n"


def schema_text(value, margin="\n"):
    """Returns a JSON Schema with a line for each field that has a description."""
    text = json.dumps(value)
    if not isinstance(value, dict) or text.count("description") < 2:
        return text
    lines = [f"{margin}  {json.dumps(name)}: {schema_text(item, margin + '  ')}" for name, item in value.items()]
    return "{" + ",".join(lines) + margin + "}"


def generated_files(options):
    """Returns {path: content} of the other files that are made of what the program says of itself."""
    run_program = lambda *words: subprocess.run(
        [BINARY, *words], capture_output=True, text=True, check=True, env=os.environ | {"COLUMNS": "80"}
    ).stdout
    version = run_program("--version").split()[1]
    schemas = {ROOT / "results" / name: schema_text(schema) + "\n" for name, schema in json.loads(run_program("help", "schema")).items()}
    return schemas | {ROOT / "app/halocline.1": man_page(options, run_program("help"), version), ROOT / "app/halocline.bash": completion(options)}


def options_of_program():
    try:
        told = subprocess.run([BINARY, "help", "json"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise BadInput(f"{BINARY} does not tell its options ({error}): build it, or name it in HALOCLINE_BINARY") from error
    return json.loads(told.stdout)


def check(page, options):
    lines = lines_in(page)
    name = page.relative_to(ROOT)
    if filled(lines, options) != lines:
        yield f"{name}: a table is old: run jobs/docs/manual.py fill"
    table = sum(line.startswith("|") for line in lines) if set(ENDS) & set(lines) else 0
    most = README_LINES if page == ROOT / "README.md" else MOST_LINES
    if len(lines) - table > most:
        yield f"{name} has {len(lines) - table} lines without generated tables: {most} at most"
    for number, line in enumerate(lines, 1):
        is_table = line.startswith("|") and page != ROOT / "README.md"
        if len(line) > MOST_COLUMNS and not is_table and "](http" not in line:
            yield f"{name}:{number} has {len(line)} columns: {MOST_COLUMNS} at most"
    for number, target in links_of(page):
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists():
            yield f"{name}:{number + 1} links to {target}, which is not there"
        elif anchor and anchor not in anchors_of(file):
            yield f"{name}:{number + 1} links to {target}, but there is no such heading"
    for number, target in undefined_references(lines):
        yield f"{name}:{number + 1} refers to [{target}], which the page does not define"
    for image in images_of(page):
        if not image.is_file():
            yield f"{name} shows {os.path.relpath(image, ROOT)}, which is not there"
    for number, (line, next_one) in enumerate(zip(lines, lines[1:]), 1):
        if (line, next_one) == ("```text", "```"):
            yield f"{name}:{number} has no output: run jobs/docs/manual.py refresh {name}"
    for block in blocks_of(lines):
        if block.note is not None and len(block.note) < 8:
            yield f"{name}:{block.begin} does not say why its commands are not run"


def run(commands):
    """Runs commands. Returns their exit code and their output. The code is None if they took too long
    and were ended."""
    script = "source jobs/local/env.sh\n" + commands
    with tempfile.TemporaryFile() as told:
        process = subprocess.Popen(
            ["bash", "-euo", "pipefail", "-c", script], cwd=ROOT, stdout=told, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
            start_new_session=True, env=os.environ | {"COLUMNS": "100"},
        )
        try:
            code = process.wait(SECONDS)
        except (subprocess.TimeoutExpired, KeyboardInterrupt) as reason:
            os.killpg(process.pid, signal.SIGTERM)
            time.sleep(GRACE)  # meanwhile, mpirun ends its ranks
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if isinstance(reason, KeyboardInterrupt):
                raise
            code = None
        told.seek(0)
        return code, told.read().decode(errors="replace").replace("\r\n", "\n")


def run_page(page, refresh):
    """Returns the faults of a page's blocks. `refresh`: also replaces their output, from the last block to the first.
    """
    lines = lines_in(page)
    new = {}
    for block in blocks_of(lines):
        where = f"{page.relative_to(ROOT)}:{block.begin + 1}"
        if block.note is not None:
            print(f"   {where} is not run: {block.note}", flush=True)
            continue
        begin = time.monotonic()
        code, output = run(block.commands if refresh else block.in_short)
        print(f"{'ok' if code == 0 else '!!'} {where} {time.monotonic() - begin:.1f} s", flush=True)
        if code != 0:
            how = f"takes more than {SECONDS} s" if code is None else f"ends with exit code {code}"
            yield f"{where} {how}:\n{block.commands}\n{output[-2000:]}"
        elif block.output is not None and "..." not in lines[block.output[0] : block.output[1]]:
            new[block.output] = [line.split("\r")[-1].rstrip() for line in output.removesuffix("\n").split("\n")]
    if refresh:
        for (begin, end), output in sorted(new.items(), reverse=True):
            lines[begin + 1 : end] = output
        page.write_text("\n".join(lines) + "\n", encoding="utf-8")


@contextlib.contextmanager
def in_page(page):
    """Adds the page's name to a BadInput."""
    try:
        yield
    except BadInput as error:
        raise BadInput(f"{page.relative_to(ROOT)}: {error}") from error


def main(arguments):
    if not arguments or arguments[0] in ("-h", "--help"):
        print(__doc__)
        return 0 if arguments else 2
    try:
        faults = faults_of(*arguments)
    except (BadInput, OSError, UnicodeDecodeError) as error:
        print(f"manual.py: {error}", file=sys.stderr)
        return 2
    for fault in faults:
        print(f"manual.py: {fault}", file=sys.stderr)
    return 1 if faults else 0


def faults_of(action, *names):
    if action not in ("check", "fill", "run", "refresh"):
        raise BadInput(f"'{action}' is neither check, fill, run nor refresh")
    chosen = [(ROOT / name).resolve() for name in names] or pages()
    for page in chosen:
        if not (page.is_file() and page.is_relative_to(ROOT)):
            raise BadInput(f"there is no page {page} in {ROOT}: name one from there, such as app/README.md")
    faults = []
    if action == "fill":
        options = options_of_program()
        for path, content in generated_files(options).items():
            path.write_text(content, encoding="utf-8")
        for page in chosen:
            lines = lines_in(page)
            if filled(lines, options) != lines:
                page.write_text("\n".join(filled(lines, options)) + "\n", encoding="utf-8")
    elif action == "check":
        options = options_of_program()
        for path, content in generated_files(options).items():
            if not path.exists() or path.read_text(encoding="utf-8") != content:
                faults.append(f"{path.relative_to(ROOT)} is old: run jobs/docs/manual.py fill")
        for page in chosen:
            with in_page(page):
                faults += check(page, options)
    else:
        for page in chosen:
            with in_page(page):
                faults += run_page(page, action == "refresh")
    return faults


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
