#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compiles the code that `halocline inspect --emit` prints, and checks the types that the programs make.

The interposer stands in front of the programs and names the constructor calls of each type that they pack."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from halocline_program import halocline, own_session

TYPES = (
    "vector(5,4,6,double)",
    "hvector(3,2,40,resized(vector(2,1,2,float),-8,32))",
    "dup(contiguous(3,long_int))",
    "indexed({1,2,3},{9,0,20},unsigned_char)",
    "hindexed({2,1},{64,0},double_int)",
    "indexed_block(2,{8,1,4},short)",
    "hindexed_block(1,{-8,64},c_double_complex)",
    "subarray(F,{7,8,9},{2,3,4},{1,0,5},c_bool)",
    "darray(4,1,{7,9},{block,cyclic},{default,2},{2,2},F,vector(2,1,2,double))",
    "struct({1,2,1},{0,8,600},{f90_real(15,undefined),subarray(C,{6,6},{1,2},{5,2},double),vector(5,4,4,double)})",
    "struct({1,1},{0,256},{vector(5,1,4,int),vector(5,1,4,int)})",
    "resized(vector(2,1,2,float),-5000000000,8000000000)",
    "hindexed_block(1,{%s},int)" % ",".join(str(40 * i) for i in range(16)),
)

C_MAIN = """
#include <stdio.h>
static void show(MPI_Datatype type) {
  static char data[100000], packed[100000];
  int size, position = 0;
  MPI_Aint lb, extent;
  MPI_Type_size(type, &size);
  MPI_Type_get_extent(type, &lb, &extent);
  printf("%d %ld %ld\\n", size, (long)lb, (long)extent);
  MPI_Pack(data + 1000, 1, type, packed, sizeof packed, &position, MPI_COMM_SELF);
  MPI_Type_free(&type);
}
int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
CALLS  MPI_Finalize();
}
"""
FORTRAN_MAIN = """
program main
  use mpi
  implicit none
  integer :: t, ierror
  call MPI_Init(ierror)
CALLS  call MPI_Finalize(ierror)
contains
  subroutine show(t)
    integer :: t, size, position
    integer(MPI_ADDRESS_KIND) :: lb, extent
    character, save :: data(100000), packed(100000)
    call MPI_Type_size(t, size, ierror)
    call MPI_Type_get_extent(t, lb, extent, ierror)
    print '(I0, 1X, I0, 1X, I0)', size, lb, extent
    position = 0
    call MPI_Pack(data(1000), 1, t, packed, 100000, position, MPI_COMM_SELF, ierror)
    call MPI_Type_free(t, ierror)
  end subroutine
end program
"""


class Emit(unittest.TestCase):
    def emitted(self, expression, language, name):
        outcome = halocline("inspect", expression, "--emit", language)
        self.assertEqual(outcome.code, 0, outcome.stderr)
        for line in outcome.stdout.splitlines():
            self.assertLessEqual(len(line), 80, line)
        return re.sub(r"\bmake_type\b", name, outcome.stdout)

    def check(self, language, compiler, suffix, main, call):
        if shutil.which(compiler) is None:
            self.skipTest(f"there is no {compiler}")
        names = [f"make_type_{i}" for i in range(len(TYPES))]
        code = [self.emitted(expression, language, name) for expression, name in zip(TYPES, names)]
        code.append(main.replace("CALLS", "".join(call.format(name) for name in names)))
        with tempfile.TemporaryDirectory() as folder, own_session() as environment:
            source, program = pathlib.Path(folder, f"all.{suffix}"), pathlib.Path(folder, "all")
            source.write_text("\n".join(code), encoding="utf-8")
            flags = ["-Wall", "-Werror"] if language == "c" else []
            built = subprocess.run([compiler, *flags, source, "-o", program], capture_output=True, text=True, check=False)
            self.assertEqual(built.returncode, 0, built.stderr)
            log = {"HALOCLINE_MPI": "engine", "HALOCLINE_MPI_LOG": "types", "LD_PRELOAD": os.environ["HALOCLINE_INTERPOSER"]}
            ran = subprocess.run([program], env=environment | log, capture_output=True, text=True, check=False)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        lines = ran.stdout.splitlines()
        self.assertEqual(len(lines), len(TYPES), ran.stdout)
        for expression, line in zip(TYPES, lines):
            found = json.loads(halocline("inspect", expression, "--json").stdout)
            self.assertEqual(line, "{size} {lb} {extent}".format(**found["mpi"]), expression)
            self.assertIn(f"by engine: {found['decoded']}\n", ran.stderr)

    def test_c(self):
        self.check("c", "mpicc", "c", C_MAIN, "  show({}());\n")

    def test_fortran(self):
        self.check("fortran", "mpifort", "f90", FORTRAN_MAIN, "  call {}(t)\n  call show(t)\n")

    def test_predefined_types_are_copied(self):
        self.assertIn("MPI_Type_dup(MPI_INT, &t1);", self.emitted("int", "c", "make"))

    def test_what_mpi_lacks_is_made_of_its_types(self):
        self.assertIn("MPI_Type_create_hindexed(", self.emitted("triangular(3,1,1,10,int)", "c", "make"))

    def test_refuses_what_has_no_call(self):
        for arguments, message in (
            (("indexed({%s},{%s},int)" % (",".join(["1"] * 1001), ",".join(str(3 * i) for i in range(1001))),), "list of 1001 entries"),
            (("--displacements", "/dev/null"), "emit is for expressions"),
        ):
            outcome = halocline("inspect", *arguments, "--emit", "c")
            self.assertEqual(outcome.code, 2, outcome.stdout)
            self.assertEqual(len(outcome.ours), 1, outcome.stderr)
            self.assertIn(message, outcome.ours[0])


if __name__ == "__main__":
    unittest.main(verbosity=2)
