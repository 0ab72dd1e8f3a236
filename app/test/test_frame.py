#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Reads records into a pandas DataFrame by results/halocline.py."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

RESULTS = pathlib.Path(os.environ["HALOCLINE_SOURCE"]) / "results"
sys.path.insert(0, str(RESULTS))
import reports  # noqa: E402, F401 - starts this test again with a Python that has pandas


class Frame(unittest.TestCase):
    def run_code(self, code):
        return subprocess.run([sys.executable, "-c", "import halocline\n" + code], cwd=RESULTS, capture_output=True, text=True, check=False)

    def test_one_row_for_each_record(self):
        finished = self.run_code(
            "frame = halocline.read('reference/*.jsonl')\n"
            "assert len(frame) == sum(1 for path in set(frame['file']) for _ in open(path)), len(frame)\n"
            "total = frame.set_index('method')['phases.total.median_s']\n"
            "assert total['alltoallv'] > 0 and isinstance(frame['local'][0], list), frame\n"
        )
        self.assertEqual((finished.returncode, finished.stderr), (0, ""))

    def test_what_cannot_be_read(self):
        self.assertIn("FileNotFoundError: there is no none*.jsonl: write", self.run_code("halocline.read('none*.jsonl')").stderr)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "x.jsonl")
            path.write_text("{", encoding="utf-8")
            self.assertIn("BadInput: line 1 of", self.run_code(f"halocline.read({str(path)!r})").stderr)
            path.write_text("[1]\n", encoding="utf-8")
            self.assertIn("x.jsonl is no record ([1]): write it again", self.run_code(f"halocline.read({str(path)!r})").stderr)

    def test_a_name_with_brackets_and_lines_of_provenance_alone(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "x[1].jsonl")
            path.write_text('{"provenance": {}}\n{"method": "p2p", "provenance": {}}\n', encoding="utf-8")
            finished = self.run_code(f"assert list(halocline.read({str(path)!r})['method']) == ['p2p']")
            self.assertEqual((finished.returncode, finished.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main(verbosity=2)
