# SPDX-License-Identifier: BSD-3-Clause
"""Compares the declarations of Python with halocline.h, and runs the examples of all docstrings."""

import contextlib
import ctypes
import doctest
import importlib.util
import inspect
import io
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import halocline
from halocline import _library as library
from mpi4py import MPI

HEADER = pathlib.Path(__file__).resolve().parents[2] / "c" / "halocline.h"
MODULES = ("halocline", *("halocline._" + name for name in ("exchange", "library", "memory", "messages", "records", "regions")))
HANDLES = ("halocline_plan", "halocline_messages", "halocline_request", "halocline_collective")


@unittest.skipIf(MPI.COMM_WORLD.rank > 0, "one rank is enough")
class Declarations(unittest.TestCase):
    def setUp(self):
        text = re.sub(r"/\*.*?\*/", "", HEADER.read_text(encoding="utf-8"), flags=re.S)
        self.text = re.sub(r"\s+", " ", text)

    def type_of(self, words):
        """Returns the type in Python of a declaration such as `const void* buffer`."""
        words = re.sub(r"\bconst\b", "", words).strip()
        kind, stars = re.match(r"(\w+)", words)[1], words.count("*")
        structs = {"halocline_message": library.Message, "halocline_plan_options": library.PlanOptions, "halocline_plan_info": library.PlanInfo,
                   "halocline_field": library.Field, "halocline_status": library.Status}  # fmt: skip
        basic = {"int": ctypes.c_int, "int64_t": ctypes.c_int64, "size_t": ctypes.c_size_t, "double": ctypes.c_double, "MPI_Comm": library.HANDLE,
                 "MPI_Datatype": library.HANDLE} | dict.fromkeys(HANDLES, ctypes.c_void_p) | structs  # fmt: skip
        if kind == "void":
            return ctypes.c_void_p if stars == 1 else library.HANDLES
        if kind == "char":
            return ctypes.c_char_p
        return ctypes.POINTER(basic[kind]) if stars else basic[kind]

    def test_functions(self):
        found = {}
        for name, arguments in re.findall(r"(?:int|const char\*) halocline_(\w+)\(([^)]*)\);", self.text):
            found[name] = () if arguments == "void" else tuple(map(self.type_of, arguments.split(",")))
        # The text of describe() is written, so it is no string of Python.
        found["describe"] = (found["describe"][0], ctypes.c_void_p, *found["describe"][2:])
        self.assertEqual(found, library.FUNCTIONS)

    def test_structs(self):
        for struct, name in ((library.Message, "message"), (library.PlanOptions, "plan_options"), (library.PlanInfo, "plan_info"),
                             (library.Field, "field"), (library.Status, "status")):  # fmt: skip
            members = []
            for one in re.search(rf"typedef struct halocline_{name} {{(.*?)}}", self.text)[1].split(";")[:-1]:
                member = re.fullmatch(r" ?(.*?)\b(\w+)(\[HALOCLINE_MAX_AXES\])? ?", one)
                kind = self.type_of(member[1])
                members.append((member[2], kind * library.MAX_AXES if member[3] else kind))
            self.assertEqual(members, struct._fields_)

    def test_numbers(self):
        for name, value in (("VERSION", library.VERSION), ("MAX_AXES", library.MAX_AXES)):
            self.assertIn(f"#define HALOCLINE_{name} {value} ", self.text)
        self.assertIn("HALOCLINE_ERR_ARGUMENT = 2,", self.text)


class Docstrings(unittest.TestCase):
    @unittest.skipIf(MPI.COMM_WORLD.size > 1, "examples are for one rank")
    def test_examples(self):
        for name in MODULES:
            if name == "halocline._records" and importlib.util.find_spec("pandas") is None:
                continue
            result = doctest.testmod(importlib.import_module(name), raise_on_error=False)
            self.assertEqual(result.failed, 0, name)

    def test_every_function_has_one(self):
        public = [getattr(halocline, name) for name in halocline.__all__]
        for one in (*public, *(value for item in public if inspect.isclass(item) for name, value in vars(item).items() if name[0] != "_")):
            if inspect.isfunction(one) or inspect.isclass(one) or isinstance(one, property):
                self.assertIn(">>> ", one.__doc__, one)


class Page(unittest.TestCase):
    def test_code_of_the_manual(self):
        text = (pathlib.Path(__file__).resolve().parents[1] / "README.md").read_text(encoding="utf-8")
        names = {}
        with contextlib.redirect_stdout(io.StringIO()):
            for code in re.findall(r"```python\n(.*?)```", text, re.S):
                exec(code, names)  # noqa: S102


class Texts(unittest.TestCase):
    def test_names_are_those_of_python(self):
        before, behind = "(a send buffer of rank 0 is not in memory of ", " of the plan's ranks, or the node could not share it): use another method, such as p2p"
        told = library.in_python(f"{before}halocline_alloc() (comm::SharedWindow in C++){behind}")
        self.assertEqual(told, f"{before}halocline.empty(){behind}")


@unittest.skipIf(MPI.COMM_WORLD.size > 1, "one rank is enough")
class Imports(unittest.TestCase):
    def told(self, path, code="import halocline", *options, whole=False, **more):
        # Open MPI's own variables would make the process a part of this job.
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("OMPI_COMM", "PMIX", "OMPI_MCA_ess", "OMPI_MCA_orte_", "OMPI_MCA_pmix"))}
        run = subprocess.run([sys.executable, *options, "-c", "import mpi4py; mpi4py.rc.initialize = False\n" + code], capture_output=True, text=True, check=False,
                             env=clean | {"HALOCLINE_LIBRARY": str(path)} | more)  # fmt: skip
        return run.stderr.strip() if whole else run.stderr.strip().split("\n")[-1]

    def test_a_library_that_cannot_be_used(self):
        self.assertRegex(self.told("/nowhere/libhalocline.so"), r"ImportError: libhalocline cannot be loaded \(/nowhere/.*: unset HALOCLINE_LIBRARY")
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "other.so")
            code = 'int MPI_Get_library_version(char* text, int* length) { *length = 1; text[0] = \'X\'; text[1] = 0; return 0; }'
            subprocess.run(["cc", "-shared", "-fPIC", "-xc", "-", "-o", path], input=code, text=True, check=True)
            self.assertRegex(self.told(path), r"^ImportError: libhalocline uses X and mpi4py uses .*: unset HALOCLINE_LIBRARY, or give")

    def test_a_library_that_is_older(self):
        with mock.patch.object(library, "VERSION", library.VERSION + 1), self.assertRaisesRegex(ImportError, "older version .*: (install the package again|unset HALOCLINE_LIBRARY)"):
            library.load()

    def test_mpi_that_is_not_running(self):
        told = self.told(library.LIBRARY._name, "import halocline, numpy; halocline.free(numpy.zeros(2))")
        self.assertIn("MPI is not running: call between", told)

    def test_what_nobody_frees(self):
        code = """
import halocline, numpy
from mpi4py import MPI
MPI.Init()
comm, u = MPI.COMM_WORLD, numpy.zeros(2)
cart = comm.Create_cart([1], periods=[True])
halo, plan, messages = halocline.Halo(cart, halocline.empty(cart, 8)), halocline.Plan(comm), halocline.Messages(comm)
gather, scatter, allgather = (make(comm, u, u.copy()) for make in (halocline.Gather, halocline.Scatter, halocline.Allgather))
with halocline.Plan(comm):
    pass
"""
        kinds = ["a gather", "a halo", "a plan", "a scatter", "an allgather", "an engine of messages"]
        told = self.told(library.LIBRARY._name, code, "-X", "dev", whole=True)
        found = re.findall("ResourceWarning: (.*) was not freed: call free\\(\\), or use `with`", told)
        self.assertEqual(sorted(found), kinds, told)
        self.assertNotIn("not freed", self.told(library.LIBRARY._name, code, whole=True))


class Records(unittest.TestCase):
    @unittest.skipIf(importlib.util.find_spec("pandas") is None, "pandas is not installed")
    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            lines, rows, bad = (pathlib.Path(folder, name) for name in ("a.jsonl", "a.csv", "bad.jsonl"))
            lines.write_text('{"provenance": {}}\n{"method": "p2p", "local": [1, 2, 3], "phases": {"total": {"median_s": 2.5}}}\n', encoding="utf-8")
            rows.write_text("method,ranks\nshared,4\n", encoding="utf-8")
            frame = halocline.read_records(folder + "/a.*")
            self.assertEqual(frame["method"].tolist(), ["shared", "p2p"])
            self.assertEqual(frame["phases.total.median_s"][1], 2.5)
            self.assertEqual(frame["local"][1], [1, 2, 3])
            bad.write_text("[1]\n", encoding="utf-8")
            with self.assertRaisesRegex(halocline.InputError, r"line 1 of .*bad.jsonl is no record \(no object\): write"):
                halocline.read_records(bad)
            with self.assertRaisesRegex(halocline.InputError, "a.csv cannot be read .*: give a file"):
                rows.write_text("", encoding="utf-8")
                halocline.read_records(rows)
            with self.assertRaisesRegex(halocline.InputError, "there is no .*none: write"):
                halocline.read_records(folder + "/none")
        self.assertEqual(len(halocline.read_records()), 0)

    def test_without_pandas(self):
        with mock.patch.dict(sys.modules, {"pandas": None}), self.assertRaisesRegex(ImportError, "run `pip install pandas`"):
            halocline.read_records("none")
