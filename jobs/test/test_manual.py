# SPDX-License-Identifier: BSD-3-Clause
"""Checks jobs/docs/manual.py with small pages: every fault is one line."""

import contextlib
import io
import os
import pathlib
import sys
import tempfile
import time
import unittest
from unittest import mock

SOURCE = pathlib.Path(os.environ["HALOCLINE_SOURCE"])
sys.path.insert(0, str(SOURCE / "jobs" / "docs"))
import manual  # noqa: E402


class Manual(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name).resolve()
        (self.root / "jobs" / "local").mkdir(parents=True)
        (self.root / "jobs" / "local" / "env.sh").touch()
        for name in ("README.md", "CONTRIBUTING.md", "picture.png"):
            (self.root / name).write_text("# Page\n")

    def manual(self, *arguments, page=None):
        """Runs the script. Returns the exit code and the lines on standard error."""
        if page is not None:
            (self.root / "README.md").write_text(page)
        err = io.StringIO()
        quiet = {"ROOT": self.root, "options_of_program": list, "generated_files": lambda options: {}, "SECONDS": 0.5, "GRACE": 0.1}
        with mock.patch.multiple(manual, **quiet), contextlib.redirect_stderr(err), contextlib.redirect_stdout(io.StringIO()):
            code = manual.main(arguments)
        return code, err.getvalue().splitlines()

    def test_faults_of_pages(self):
        for page, fault in (
            ("![a](picture.png) `![b](none.png)` ![c](https://example.org/none.png)", None),
            ("![a](none.png)", "README.md shows none.png, which is not there"),
            ("[a](none.md)", "README.md:1 links to none.md, which is not there"),
            ("[a\nb](none.md)", "README.md:2 links to none.md, which is not there"),
            ("[a][b]\n\n[b]: CONTRIBUTING.md", None),
            ("[a][b]", "README.md:1 refers to [b], which the page does not define"),
            ("[a][]", "README.md:1 refers to [a], which the page does not define"),
            ("[a][b]\n\n[b]: none.md", "README.md:3 links to none.md, which is not there"),
            ("`u[i][j]`", None),
            ("```text\nx\n```", None),
            ("```text\n```", "README.md:1 has no output: run jobs/docs/manual.py refresh README.md"),
        ):
            with self.subTest(page=page):
                code, lines = self.manual("check", page=page + "\n")
                self.assertEqual((code, lines), (1, [f"manual.py: {fault}"]) if fault else (0, []))

    def test_what_cannot_be_used(self):
        for arguments, page, fault in (
            (("check", "none.md"), "", "there is no page"),
            (("run", "../none.md"), "", "there is no page"),
            (("check",), "```sh\ntrue\n", "README.md: the block that begins in line 1 has no end"),
            (("run",), "text\n```sh\ntrue\n```\n```text\n", "README.md: the block that begins in line 5 has no end"),
            (("run",), "<!-- run with: a -> b -->\n```sh\ntrue\n```\n", "line 2 has no a to replace"),
            (("look",), "", "'look' is neither check"),
        ):
            with self.subTest(arguments=arguments, page=page):
                code, lines = self.manual(*arguments, page=page)
                self.assertEqual((code, len(lines)), (2, 1), lines)
                self.assertIn(fault, lines[0])

    def test_a_block_that_is_run_in_short(self):
        page = "<!-- run with: sleep 9 -> sleep 0 -->\n```sh\nsleep 9\n```\n"
        self.assertEqual(self.manual("run", page=page), (0, []))

    def test_a_block_that_does_not_end(self):
        code, lines = self.manual("run", page="```sh\nsh -c 'sleep 2; echo late >late' &\necho begun\nwait\n```\n")
        self.assertEqual((code, lines[0]), (1, "manual.py: README.md:1 takes more than 0.5 s:"))
        self.assertIn("begun", lines)
        time.sleep(2)
        self.assertFalse((self.root / "late").exists(), "its processes go on")

    def test_refresh(self):
        code, lines = self.manual("refresh", page="```sh\nprintf 'a  \\nb\\n'\n```\n\n```text\n```\n")
        self.assertEqual((code, lines), (0, []))
        self.assertTrue((self.root / "README.md").read_text().endswith("```text\na\nb\n```\n"))


if __name__ == "__main__":
    unittest.main()
