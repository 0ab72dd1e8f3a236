#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tests the interposer as users have it: loaded in front of the MPI of programs that know nothing of it."""
import functools
import json
import os
import pathlib
import re
import shutil
import tempfile
import unittest

import fortran_calls
from fortran_calls import run

LIBRARY = os.environ["HALOCLINE_INTERPOSER"]
MPIEXEC = os.environ["HALOCLINE_MPIEXEC"]
HALOCLINE = os.environ["HALOCLINE_BINARY"]
MESSAGES = os.environ["HALOCLINE_INTERPOSE_TEST"]
END = os.environ["HALOCLINE_END_TEST"]
WAYS_TO_END = ("types-kept", "requests-left", "at-exit", "calls-in-finalize", "threads")
HERE = pathlib.Path(__file__).resolve().parent
EXAMPLES = HERE.parent / "examples"
CALLS = ("Pack", "Unpack", "Send", "Recv", "Isend", "Irecv", "Sendrecv", "Send_init", "Recv_init", "Alltoallv", "Alltoallw", "Neighbor_alltoallw")


# Is a program that makes the same type anew in every step.
STEPS = """
#include <mpi.h>
#include <stdio.h>

int main(void) {
  static double from[200], packed[100];
  MPI_Init(NULL, NULL);
  for (int step = 0; step < 50; ++step) {
    MPI_Datatype type;
    int position = 0;
    MPI_Type_vector(100, 1, 2, MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    MPI_Pack(from, 1, type, packed, sizeof packed, &position, MPI_COMM_SELF);
    MPI_Type_free(&type);
  }
  puts("all points are right");
  return MPI_Finalize();
}
"""


# Is a program without derived types: the library first reads its settings when the process ends, after MPI_Finalize.
NO_TYPES = """
#include <mpi.h>
#include <stdio.h>

int main(void) {
  MPI_Init(NULL, NULL);
  puts("all points are right");
  return MPI_Finalize();
}
"""


class Library(unittest.TestCase):
    def symbols(self, which):
        finished = run("nm", "-D", which, "--format=posix", LIBRARY)
        self.assertEqual(finished.returncode, 0, finished.stderr)
        return [line.split()[0] for line in finished.stdout.splitlines()]

    def test_shows_mpis_names_alone(self):
        names = self.symbols("--defined-only")
        self.assertIn("MPI_Pack", names)
        self.assertIn("mpi_pack_", names)
        self.assertIn("mpi_pack_f08_", names)
        self.assertEqual([name for name in names if not re.fullmatch("MPI_[A-Z][a-z_]+|mpi_[a-z_]+(_f08_)?", name)], [])

    def test_calls_the_profiling_interface_alone(self):
        self.assertEqual([name for name in self.symbols("--undefined-only") if re.match("MPI_[A-Z][a-z]|mpi_", name)], [])

    def test_brings_no_runtime_of_its_own(self):
        needed = re.findall(r"NEEDED +(\S+)", run("objdump", "-p", LIBRARY).stdout)
        self.assertTrue(needed)
        self.assertEqual([name for name in needed if re.match("lib(stdc|gcc|gomp|omp|kokkos)", name)], [])


    def test_is_never_unloaded(self):
        self.assertRegex(run("readelf", "-d", LIBRARY).stdout, r"FLAGS_1.*NODELETE")


class Preloaded(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)

    def program(self, compiler, source, *words):
        # Debian's development package of Open MPI brings both compilers.
        self.assertIsNotNone(shutil.which(compiler), f"{compiler} is missing")
        source = pathlib.Path(source)
        path = pathlib.Path(self.folder.name) / source.name
        finished = run(compiler, "-O2", "-Wall", "-Werror", *words, EXAMPLES / source, "-o", path.with_suffix(".x"))
        self.assertEqual(finished.returncode, 0, finished.stderr)
        return path.with_suffix(".x")

    @classmethod
    @functools.cache
    def fortran_program(cls, module):
        flags = ("-Wall", "-Werror", "-J", cls.folder.name)
        program, why = fortran_calls.build("mpifort", module, LIBRARY, cls.folder.name, flags)
        if why:
            raise AssertionError(why)
        return program

    def launch(self, program, *arguments, ranks=2, **variables):
        words = [word for item in variables.items() for word in ("-x", "=".join(item))]
        finished = run(MPIEXEC, "-n", ranks, *words, program, *arguments)
        self.assertEqual(finished.returncode, 0, finished.stdout + finished.stderr)
        self.assertIn("all points are right", finished.stdout)
        return finished.stderr

    def test_programs_give_the_same_results(self):
        for compiler, source in (("mpicc", "pack_halo.c"), ("mpifort", "pack_halo.f90")):
            with self.subTest(source=source):
                program = self.program(compiler, source)
                self.assertEqual(self.launch(program), "")
                self.assertEqual(self.launch(program, LD_PRELOAD=LIBRARY), "")
                told = self.launch(program, LD_PRELOAD=LIBRARY, HALOCLINE_MPI="engine", HALOCLINE_MPI_LOG="summary")
                for call in ("MPI_Pack", "MPI_Unpack", "MPI_Isend", "MPI_Irecv"):
                    self.assertRegex(told, rf"halocline\[0\]: {call} +engine +[1-9]")

    def test_stands_in_front_of_fortrans_calls(self):
        for module in fortran_calls.MODULES:
            program = self.fortran_program(module)
            for ranks in (1, 2, 3):
                with self.subTest(module=module, ranks=ranks):
                    self.launch(program, ranks=ranks, LD_PRELOAD=LIBRARY)
                    told = self.launch(program, ranks=ranks, LD_PRELOAD=LIBRARY, HALOCLINE_MPI="engine", HALOCLINE_MPI_LOG="summary")
                    for call in CALLS:
                        self.assertGreater(self.engines_part(f"MPI_{call}", told), 0.9, call)

    def test_counts_each_call_of_fortran_once(self):
        for module in fortran_calls.MODULES:
            program = self.fortran_program(module)
            for ranks in (1, 2):
                for mode in ("engine", "auto"):
                    with self.subTest(module=module, ranks=ranks, mode=mode):
                        told = self.launch(program, fortran_calls.TIMES, ranks=ranks, LD_PRELOAD=LIBRARY, HALOCLINE_MPI=mode,
                                           HALOCLINE_MPI_LOG="summary")
                        self.assertEqual(fortran_calls.counted(told), fortran_calls.expected(ranks), told)

    def test_programs_of_the_study_give_the_same_results(self):
        study = HERE.parents[2] / "examples" / "study"
        for name in ("jacobi", "life", "image"):
            program = self.program("mpicc", study / f"{name}.c", "-ffp-contract=off", "-DSIZE=96", "-DSTEPS=6")
            checksums = set()
            for ranks in (1, 2, 3, 4):
                preload = ("-x", f"LD_PRELOAD={LIBRARY}", "-x", "HALOCLINE_MPI=engine", "-x", "HALOCLINE_MPI_LOG=summary")
                finished = run(MPIEXEC, "-n", ranks, *preload, program)
                self.assertEqual(finished.returncode, 0, finished.stderr)
                self.assertRegex(finished.stderr, r"halocline\[0\]: types committed: [1-9]")
                rows = [line.split() for line in finished.stdout.splitlines() if not line.startswith("#")]
                self.assertEqual(len(rows), 12, finished.stdout)  # half of them without the library
                checksums |= {row[-1] for row in rows}
            self.assertEqual(len(checksums), 1, name)

    def test_compares_although_a_library_replaces_mremap(self):
        fake = pathlib.Path(self.folder.name) / "libucm.so"
        finished = run("gcc", "-shared", "-fPIC", "-Wall", "-Werror", HERE / "ucx_mremap.c", "-o", fake)
        self.assertEqual(finished.returncode, 0, finished.stderr)
        told = self.launch(self.program("mpicc", "pack_halo.c"), ranks=1, LD_PRELOAD=f"{LIBRARY}:{fake}", HALOCLINE_MPI_LOG="summary")
        self.assertGreater(self.engines_part("MPI_Pack", told), 0.9)

    def test_tells_what_it_does(self):
        program = self.program("mpicc", "pack_halo.c")
        of_types = self.launch(program, ranks=1, LD_PRELOAD=LIBRARY, HALOCLINE_MPI_LOG="types")
        self.assertIn("393216 bytes packed by engine (blocks of 24 bytes), messages by mpi: there is no model of them: subarray", of_types)
        self.assertIn("393216 bytes packed by engine (blocks of 1024 bytes), messages by mpi: blocks of 512 bytes or more: subarray", of_types)
        self.assertEqual(of_types.count("there is no system model"), 1)
        self.assertIn("subarray(C,{134,134,134},{128,128,3},{3,3,3},double)", of_types)
        self.assertNotRegex(of_types, r"MPI_Pack by engine: ")
        of_calls = self.launch(program, ranks=1, LD_PRELOAD=LIBRARY, HALOCLINE_MPI_LOG="calls")
        # No MPI packs scattered doubles as fast as the engine.
        self.assertRegex(of_calls, r"halocline\[0\]: MPI_Pack by engine: 1 of .* \(32768 bytes\) in [0-9.]+ us")

    def test_tells_of_long_blocks(self):
        source = pathlib.Path(self.folder.name) / "long_blocks.c"
        source.write_text(STEPS.replace("100, 1, 2", "4, 512, 600").replace("200", "2400").replace("[100]", "[2048]"), encoding="utf-8")
        told = self.launch(self.program("mpicc", source), ranks=1, LD_PRELOAD=LIBRARY, HALOCLINE_MPI_LOG="types")
        self.assertIn("all by mpi: blocks of 4096 bytes, 4096 or more: vector(4,512,600,double)", told)

    def test_tells_of_equal_types_once(self):
        source = pathlib.Path(self.folder.name) / "steps.c"
        source.write_text(STEPS, encoding="utf-8")
        told = self.launch(self.program("mpicc", source), ranks=1, LD_PRELOAD=LIBRARY, HALOCLINE_MPI="engine", HALOCLINE_MPI_LOG="types")
        self.assertEqual(told.count("vector(100,1,2,double)"), 1, told)

    def test_tells_of_programs_without_types_at_their_end(self):
        source = pathlib.Path(self.folder.name) / "no_types.c"
        source.write_text(NO_TYPES, encoding="utf-8")
        program = self.program("mpicc", source)
        nothing = "halocline: no derived type was committed in its sight: all was left to MPI\n"
        wrong = "halocline: HALOCLINE_MPI_LOG is 'all', and counts as unset: give one of summary, types, calls\n"
        for setting, text in (("summary", nothing), ("all", wrong), ("", "")):
            with self.subTest(setting=setting):
                self.assertEqual(self.launch(program, LD_PRELOAD=LIBRARY, HALOCLINE_MPI_LOG=setting), text)
        self.assertEqual(self.launch(program, LD_PRELOAD=LIBRARY, HALOCLINE_MPI="verify"), nothing)
        self.assertEqual(self.launch(program, LD_PRELOAD=LIBRARY, HALOCLINE_MPI="engine"), "")

    def test_is_in_the_record_of_what_it_changes(self):
        for variables, interposed in (({}, False), ({"LD_PRELOAD": LIBRARY}, True)):
            with self.subTest(interposed=interposed), tempfile.TemporaryDirectory() as folder:
                words = [word for item in variables.items() for word in ("-x", "=".join(item))]
                compare = ("compare", "--local", 8, 8, 8, "--iterations", 2, "--methods", "alltoallv,vendor-pack", "--output", f"{folder}/out")
                finished = run(MPIEXEC, "-n", 1, *words, HALOCLINE, *compare)
                self.assertEqual(finished.returncode, 0, finished.stdout + finished.stderr)
                records = [json.loads(line) for line in pathlib.Path(folder, "out").read_text(encoding="utf-8").splitlines()]
                self.assertEqual({record["provenance"]["interposed"] for record in records}, {interposed})
                self.assertEqual("stands in front of MPI" in finished.stdout, interposed)

    def model(self, seconds):
        """Returns the file of a model of this machine in which every packed message takes `seconds`."""
        path = pathlib.Path(self.folder.name) / "model.json"
        if not path.exists():
            finished = run(MPIEXEC, "-n", 2, HALOCLINE, "calibrate", "--max-seconds", 2, "--model", path)
            self.assertEqual(finished.returncode, 0, finished.stderr)
        model = json.loads(path.read_text(encoding="utf-8"))
        for order in model["block_messages"]["on_node"].values():
            for traffic in order.values():
                for packer, table in traffic.items():
                    # Short and long enough, even if the measurement was cut short.
                    table["bytes"][0], table["bytes"][-1] = 1, 1 << 30
                    if packer == "packed":
                        table["seconds"] = [[[seconds for _ in row] for row in block] for block in table["seconds"]]
        path.write_text(json.dumps(model), encoding="utf-8")
        return path

    def engines_part(self, call, told):
        """Returns the engine's part of the first rank's calls."""
        calls = {path: sum(map(int, re.findall(rf"halocline\[0\]: {call} +{path} +(\d+)", told))) for path in ("engine", "mpi")}
        return calls["engine"] / sum(calls.values())

    def test_sends_packed_what_the_model_says_is_faster(self):
        for seconds, at_least, at_most in ((1e-12, 0.4, 1), (1e3, 0, 0)):
            with self.subTest(seconds=seconds):
                variables = {"HALOCLINE_MPI": "auto", "HALOCLINE_MPI_LOG": "summary", "HALOCLINE_MODEL": self.model(seconds)}
                words = [word for name, value in variables.items() for word in ("-x", f"{name}={value}")]
                # The tests left out use each type once.
                finished = run(MPIEXEC, "-n", 2, *words, MESSAGES, "--gtest_filter=-*LeaveNothingBehind")
                self.assertEqual(finished.returncode, 0, finished.stdout + finished.stderr)
                for call in ("MPI_Isend", "MPI_Send_init", "MPI_Alltoallw"):
                    self.assertGreaterEqual(self.engines_part(call, finished.stderr), at_least, call)
                    self.assertLessEqual(self.engines_part(call, finished.stderr), at_most, call)

    def test_programs_end_in_every_way(self):
        # MALLOC_PERTURB_ overwrites freed memory, so that a use of it is noticed.
        variables = {"LD_PRELOAD": LIBRARY, "HALOCLINE_MPI": "auto", "HALOCLINE_MPI_LOG": "summary",
                     "HALOCLINE_MODEL": self.model(1e-12), "MALLOC_PERTURB_": "165"}
        words = [word for name, value in variables.items() for word in ("-x", f"{name}={value}")]
        for way in WAYS_TO_END:
            for ranks in (2, 4):
                with self.subTest(way=way, ranks=ranks):
                    finished = run(MPIEXEC, "-n", ranks, *words, END, way)
                    self.assertEqual(finished.returncode, 0, finished.stdout + finished.stderr)
                    self.assertGreater(self.engines_part("MPI_Isend", finished.stderr), 0)

    def test_leaves_nothing_to_mpi_that_it_is_forced_to_do(self):
        finished = run(MPIEXEC, "-n", 2, "-x", "HALOCLINE_MPI=engine", "-x", "HALOCLINE_MPI_LOG=summary", MESSAGES)
        self.assertEqual(finished.returncode, 0, finished.stdout + finished.stderr)
        for call in CALLS:
            self.assertGreater(self.engines_part(f"MPI_{call}", finished.stderr), 0.5, call)

    def test_works_on_devices(self):
        variables = {"HALOCLINE_DEVICE": "emulated", "HALOCLINE_TEST_MEMORY": "device", "HALOCLINE_MPI_LOG": "summary"}
        words = [word for item in variables.items() for word in ("-x", "=".join(item))]
        finished = run(MPIEXEC, "-n", 2, *words, MESSAGES + "_device")
        self.assertEqual(finished.returncode, 0, finished.stdout + finished.stderr)
        for call in ("Unpack", "Send", "Recv", "Isend", "Irecv", "Sendrecv", "Send_init", "Recv_init", "Alltoallw", "Neighbor_alltoallw"):
            self.assertGreater(self.engines_part(f"MPI_{call}", finished.stderr), 0.5, call)

    def test_goes_no_further_than_the_model(self):
        model = json.loads(self.model(1e-12).read_text(encoding="utf-8"))
        tables = [table for order in model["block_messages"]["on_node"].values() for traffic in order.values() for table in traffic.values()]
        for table in tables:
            table["bytes"], table["seconds"] = [1, 64], [table["seconds"][0], table["seconds"][0]]
        model["messages"]["host"]["on_node"] = [{"messages": 1, "bytes": [1, 64], "seconds": [0.084, 1e-6]}]
        path = pathlib.Path(self.folder.name) / "cut.json"
        path.write_text(json.dumps(model), encoding="utf-8")
        told = self.launch(self.program("mpicc", "pack_halo.c"), ranks=2, LD_PRELOAD=LIBRARY, HALOCLINE_MPI_LOG="types", HALOCLINE_MODEL=str(path))
        self.assertIn("by mpi: shorter or longer than the model's messages", told)
        self.assertNotIn("too long", told)
        self.assertEqual(told.count("over 10 times as slow as their neighbours: "), 1, told)

    def test_leaves_messages_of_long_blocks_to_mpi(self):
        model = str(self.model(1e-12))
        told = self.launch(self.program("mpicc", "pack_halo.c"), ranks=2, LD_PRELOAD=LIBRARY, HALOCLINE_MPI_LOG="summary", HALOCLINE_MODEL=model)
        # Two of the six types, the y and z faces, have blocks of 1 KiB. MPI also does the first calls of short types.
        self.assertAlmostEqual(self.engines_part("MPI_Isend", told), 4 / 6, delta=0.05)

    def test_verifies_what_it_packs(self):
        variables = {"HALOCLINE_MPI": "verify", "HALOCLINE_MPI_LOG": "summary", "HALOCLINE_MODEL": self.model(1e-12)}
        words = [word for item in variables.items() for word in ("-x", "=".join(map(str, item)))]
        finished = run(MPIEXEC, "-n", 2, *words, MESSAGES, "--gtest_filter=-*LeaveNothingBehind")
        self.assertEqual(finished.returncode, 0, finished.stdout + finished.stderr)
        self.assertGreater(self.engines_part("MPI_Isend", finished.stderr), 0.4)
        self.assertNotIn("differs from MPI's", finished.stderr)
        self.assertRegex(finished.stderr, r"halocline\[0\]: compared with MPI's packs: [1-9]\d+ \([1-9]\d+ bytes\); differ: 0\n")
        told = self.launch(self.program("mpicc", "pack_halo.c"), LD_PRELOAD=LIBRARY, HALOCLINE_MPI="verify")
        self.assertRegex(told, r"halocline\[1\]: compared with MPI's packs: [1-9]")

    def test_goes_on_without_a_model_that_it_cannot_use(self):
        program = self.program("mpicc", "pack_halo.c")
        told = self.launch(program, ranks=1, LD_PRELOAD=LIBRARY, HALOCLINE_MODEL="/nowhere/model.json")
        self.assertEqual(told.count("/nowhere/model.json"), 1, told)
        self.assertIn("goes on without a model", told)

    def test_tells_once_that_there_is_no_such_device(self):
        program = self.program("mpicc", "pack_halo.c")
        told = self.launch(program, ranks=1, LD_PRELOAD=LIBRARY, HALOCLINE_DEVICE="nonsense")
        self.assertEqual(told.count("HALOCLINE_DEVICE is 'nonsense'"), 1, told)

    def test_can_be_switched_off(self):
        program = self.program("mpicc", "pack_halo.c")
        self.assertEqual(self.launch(program, LD_PRELOAD=LIBRARY, HALOCLINE_MPI="off"), "")
        told = self.launch(program, LD_PRELOAD=LIBRARY, HALOCLINE_MPI="Off", HALOCLINE_MPI_LOG="calls")
        self.assertEqual(told, "halocline: HALOCLINE_MPI is off: all is left to MPI\n")
        wrong = self.launch(program,  LD_PRELOAD=LIBRARY, HALOCLINE_MPI="maybe")
        self.assertEqual(wrong, "halocline: HALOCLINE_MPI is 'maybe', and counts as unset: give one of off, auto, engine, verify\n")

    def test_tells_once_what_it_does_not_know_of_the_mpi(self):
        program = self.program("mpicc", "pack_halo.c")
        self.assertEqual(self.launch(program, LD_PRELOAD=LIBRARY, HALOCLINE_GPU_AWARE_MPI="no"), "")
        wrong = self.launch(program, LD_PRELOAD=LIBRARY, HALOCLINE_GPU_AWARE_MPI="perhaps")
        self.assertEqual(wrong, "halocline: HALOCLINE_GPU_AWARE_MPI is 'perhaps', and counts as unset: give one of yes, no, ask\n")


if __name__ == "__main__":
    unittest.main()
