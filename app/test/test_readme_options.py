# SPDX-License-Identifier: BSD-3-Clause
"""The README's option table lists the flags that --help shows, with the same defaults.

A row of the table: | `--flag ...` | `default` | meaning |, with "none" or nothing where there is no default.
"""
import os
import pathlib
import re
import unittest

from halocline_program import options_in_help

README = pathlib.Path(os.environ["HALOCLINE_SOURCE"]) / "README.md"


class ReadmeOptions(unittest.TestCase):
    def test_table_agrees_with_help(self):
        table = {}
        for line in README.read_text(encoding="utf-8").splitlines():
            match = re.match(r"\|\s*`--([a-z-]+)[^`]*`\s*\|([^|]*)\|", line)
            if match:
                self.assertNotIn(match.group(1), table, "listed twice")
                table[match.group(1)] = match.group(2).strip().strip("`")
        shown = {flag: default or "" for flag, default in options_in_help().items()}
        without_default = ("none", "-", "")
        normal = lambda default: "" if default in without_default else default
        self.assertEqual(
            {flag: normal(default) for flag, default in table.items()},
            {flag: normal(default) for flag, default in shown.items()},
        )


if __name__ == "__main__":
    unittest.main()
