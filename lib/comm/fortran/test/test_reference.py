# SPDX-License-Identifier: BSD-3-Clause
"""Tests that reference.md names everything that halocline.F90 makes public, with the names of its arguments."""
import pathlib
import re
import unittest

FOLDER = pathlib.Path(__file__).resolve().parents[1]
PAGE = (FOLDER / "reference.md").read_text(encoding="utf-8")
SOURCE = (FOLDER / "halocline.F90").read_text(encoding="utf-8")
TYPES = ("halocline_plan", "halocline_info", "halocline_messages", "halocline_request", "halocline_status", "halocline_collective")


def arguments(text):
    """Returns the names of arguments, without optional ones' brackets and without `ierror`."""
    return [name for name in re.findall(r"\w+", text) if name not in ("this", "ierror")]


class Reference(unittest.TestCase):
    def test_public_names(self):
        names = [name for names in re.findall(r"public :: (.*?)(?: = .*)?$", SOURCE, re.M) for name in re.findall(r"halocline_\w+", names)]
        self.assertGreater(len(names), 25)
        self.assertEqual([name for name in names if name not in PAGE and name not in TYPES], [])

    def test_bound_procedures(self):
        for name, body in re.findall(r"procedure :: (\w+) => (\w+)$", SOURCE, re.M):
            found = re.search(rf"subroutine {body}\((.*?)\)", SOURCE)
            shown = re.search(rf"`{body.split('_')[0].replace('collective', 'gather')}%{name}\((.*?)\)`", PAGE)
            self.assertIsNotNone(shown, body)
            self.assertEqual(arguments(shown[1]), arguments(found[1]), body)

    def test_procedures(self):
        for interface, body in re.findall(r"interface (halocline_\w+)\n    procedure :: (\w+)", SOURCE):
            found = re.search(rf"(?:subroutine|function) {body}\((.*?)\)", SOURCE)
            shown = re.search(rf"`{interface}\((.*?)\)`", PAGE)
            self.assertIsNotNone(shown, interface)
            self.assertEqual(arguments(shown[1]), arguments(found[1]), interface)
        for body, found in re.findall(r"subroutine (halocline_\w+)\((.*?)\)", SOURCE):
            self.assertEqual(arguments(re.search(rf"`{body}\((.*?)\)`", PAGE)[1]), arguments(found), body)


if __name__ == "__main__":
    unittest.main()
