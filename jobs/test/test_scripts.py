# SPDX-License-Identifier: BSD-3-Clause
"""Checks rules for all scripts: --help explains the script and does nothing else, and odd folders and variables do
not mislead it."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["HALOCLINE_SOURCE"])
FOLDERS = ("jobs", "lib", "results", ".ci")


def files(*patterns):
    found = [path for folder in FOLDERS for pattern in patterns for path in sorted((SOURCE / folder).rglob(pattern)) if path.is_file()]
    return [path for path in found if not {"raw", "mine", "__pycache__"} & set(path.relative_to(SOURCE).parts)]


def scripts():
    """Yields (path, text) of each script that users start by its name. Leaves out tests."""
    for path in files("*"):
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        if text.startswith("#!") and not path.name.startswith("test_") and path.parent.name != "stub":
            yield path, text


def shell_texts():
    """Returns (path, text) of all files that a shell reads."""
    return [(path, path.read_text(encoding="utf-8")) for path in files("*.sh", "*.sbatch", "*.lsf", "run")]


def paragraph(path, text):
    """Returns the first line of a script's own description."""
    if "python" in text.split("\n", 1)[0]:
        return re.search(r'"""(.+)', text)[1]
    return next(line[2:] for line in text.split("\n")[1:] if line.startswith("# "))


class EveryScript(unittest.TestCase):
    def test_help(self):
        seen = 0
        for path, text in scripts():
            with self.subTest(script=path.name), tempfile.TemporaryDirectory() as folder:
                # The script is started by a relative path, with folders that cd would find first.
                for name in ("jobs/local", "lib/cmake", ".ci", "results"):
                    (pathlib.Path(folder) / "other" / name).mkdir(parents=True)
                interpreter = [] if os.access(path, os.X_OK) else [sys.executable] if path.suffix == ".py" else ["bash"]
                finished = subprocess.run(
                    [*interpreter, path.relative_to(SOURCE), "--help"],
                    cwd=SOURCE, env=os.environ | {"CDPATH": f"{folder}/other"}, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
                )  # fmt: skip
                self.assertEqual((finished.returncode, finished.stderr), (0, ""))
                first = paragraph(path, text).split("?")[0]
                self.assertIn(" ".join(first.split()), " ".join(finished.stdout.split()))
                seen += 1
        self.assertGreater(seen, 30)

    def test_cd_goes_where_it_says(self):
        for path, text in shell_texts():
            if re.search(r"(^|[;(&|] *)cd ", text, re.M) and text.startswith("#!"):
                self.assertRegex(text, r"(?m)^(source .*/script\.sh\"|unset CDPATH)$", path.name)

    def test_cores_and_pip_are_asked_for_rightly(self):
        for path, text in shell_texts():
            if path.name != "script.sh":
                self.assertNotRegex(text, r"\$\(nproc\)", f"{path.name}: nproc obeys OMP_NUM_THREADS, cores of script.sh does not")
            self.assertNotRegex(text, r"bin/pip\b", f"{path.name}: its first line has a path, use python3 -m pip")

    def test_what_is_downloaded_has_a_hash(self):
        for path, text in shell_texts():
            for line in re.findall(r".*-m pip (?:install|download)(?:.*\\\n)*.*", text):
                self.assertRegex(line, "--require-hashes|--no-index", path.name)  # --no-index downloads nothing
        for path in (SOURCE / "jobs" / "local" / "requirements").glob("*.txt"):
            for item in re.split(r"(?<!\\)\n", path.read_text(encoding="utf-8")):
                if item and not item.startswith("#"):
                    self.assertRegex(item, r"^[a-z0-9.-]+==[^ ]+( \\\n    --hash=sha256:[0-9a-f]{64})+$", path.name)

    def test_custom_commands_are_verbatim(self):
        for path in (SOURCE / "CMakeLists.txt", *files("CMakeLists.txt", "*.cmake")):
            for call in re.findall(r"(?s)\badd_custom_(?:target|command)\((.*?)\n? *\)\n", path.read_text(encoding="utf-8")):
                self.assertIn("VERBATIM", call, path)

    def test_cores_do_not_obey_openmp(self):
        script = f'set -- ; source "{SOURCE}/jobs/local/script.sh"; cores'
        told = [
            subprocess.run(["bash", "-c", script], env=os.environ | threads, capture_output=True, text=True, check=True).stdout
            for threads in ({"OMP_NUM_THREADS": "77", "OMP_THREAD_LIMIT": "1"}, {"OMP_NUM_THREADS": "1"})
        ]
        self.assertEqual(told[0], told[1])
        self.assertEqual(int(told[0]), len(os.sched_getaffinity(0)))


if __name__ == "__main__":
    unittest.main()
