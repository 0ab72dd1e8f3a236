# SPDX-License-Identifier: BSD-3-Clause
"""Packs arrays, describes datatypes, and makes thousands of plans in the same memory."""

import os
import pathlib

import halocline
import numpy as np
from mpi4py import MPI
from ranks import COMM, LEFT, RANK, RANKS, RIGHT, RanksTest


def resident():
    """Returns the bytes of memory that this process uses."""
    return int(pathlib.Path("/proc/self/statm").read_text(encoding="utf-8").split()[1]) * os.sysconf("SC_PAGESIZE")


class Packing(RanksTest):
    def test_packed_bytes_are_those_of_mpi(self):
        u = np.arange(60.0).reshape(6, 10)
        vector = MPI.DOUBLE.Create_vector(6, 2, 10)
        column = vector.Create_resized(0, u.nbytes).Commit()  # mpi4py packs whole extents
        vector.Free()
        by_mpi = bytearray(96)
        column.Pack(u, by_mpi, 0, MPI.COMM_SELF)
        self.assertEqual(halocline.pack(u[:, :2]).tobytes(), bytes(by_mpi))
        self.assertEqual(halocline.pack([u, 1, column]).tobytes(), bytes(by_mpi))
        self.assertEqual(halocline.packed_bytes([u, 1, column]), 96)
        column.Free()
        into = np.zeros(200, "u1")
        self.assertEqual(halocline.pack(u[:, :2], into[8:]).size, 96)
        self.assertEqual(into[8:104].tobytes(), bytes(by_mpi))
        v = np.zeros_like(u)
        self.assertEqual(halocline.unpack(into[8:], v[:, 4:6]), 96)
        np.testing.assert_array_equal(v[:, 4:6], u[:, :2])
        self.assertEqual(v.sum(), u[:, :2].sum())

    def test_mistakes(self):
        u = np.zeros((4, 4))
        self.refused("ask halocline.packed_bytes()", halocline.pack, u[:, 1], bytearray(31))
        self.refused("do not fit", halocline.unpack, bytes(31), u[:, 1])
        self.refused("without gaps that can be written", halocline.pack, u, bytes(1000))
        self.refused("a int holds no packed bytes: give an array", halocline.unpack, 3, u)
        self.refused("a str holds no packed bytes: give an array", halocline.pack, u, "text")
        self.refused("holds Python objects", halocline.unpack, np.array([None]), u)
        self.refused("read-only", halocline.unpack, bytes(8), bytes(8))
        self.refused("a int is no datatype", halocline.inspect, 3)
        self.refused("MPI_DATATYPE_NULL", halocline.inspect, MPI.DATATYPE_NULL)


class Inspection(RanksTest):
    def test_members(self):
        square = MPI.INT.Create_subarray([8, 8], [2, 3], [1, 2])
        found = halocline.inspect(square)
        self.assertTrue(found["supported"])
        self.assertEqual((found["size"], found["extent"], found["true_lb"]), (24, 256, 40))
        self.assertEqual((found["start"], found["counts"], found["strides"], found["packed_strides"]), (40, [12, 2], [1, 32], [1, 12]))
        self.assertEqual(found["blocks"], 2)
        square.Free()
        self.assertTrue(halocline.inspect(MPI.DOUBLE)["contiguous"])


class Leaks(RanksTest):
    def test_ten_thousand_plans(self):
        """Memory of plans, datatypes, communicators and references is used again."""
        number = 10000 // RANKS
        u = np.zeros((16, 16))

        def make(times):
            for _ in range(times):
                with halocline.Plan(COMM, [(u[:, 1], RIGHT)], [(u[:, 0], LEFT)]) as plan:
                    plan.exchange()
                try:
                    halocline.Plan(COMM, [(u[:, 1], RIGHT)], [(u[1], LEFT), (5, LEFT)])
                except halocline.InputError:
                    pass

        make(number // 5)
        before = resident()
        make(number)
        grown = resident() - before
        # Pages of MPI's own pools come now and then. A leak of one plan would be 10 MB.
        self.assertLess(grown, 1 << 20, f"rank {RANK}")

    def test_shared_arrays(self):
        def make(times):
            for _ in range(times):
                u = halocline.empty(COMM, (64, 64))
                u[:] = 1
                halocline.free(u)

        make(50)
        before = resident()
        make(300)
        self.assertLess(resident() - before, 1 << 20)
