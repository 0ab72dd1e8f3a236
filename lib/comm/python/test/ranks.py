# SPDX-License-Identifier: BSD-3-Clause
"""Shares code between the tests."""

import unittest

import halocline
from mpi4py import MPI

COMM = MPI.COMM_WORLD
RANK, RANKS = COMM.rank, COMM.size
LEFT, RIGHT = (RANK - 1) % RANKS, (RANK + 1) % RANKS
IS_LAST = RANK == RANKS - 1


class RanksTest(unittest.TestCase):
    def refused(self, text, call, *arguments, **named):
        """Expects an InputError with `text` and a remedy behind a colon, the same on all ranks."""
        try:
            call(*arguments, **named)
            told = "nothing"
        except halocline.InputError as error:
            told = str(error)
        every = COMM.allgather(told)
        self.assertEqual(every, [told] * RANKS)
        self.assertIn(text, told)
        self.assertRegex(told, r": \w+ .+")
        self.assertNotIn("\n", told)


class OnDevice:
    """Is an array in the memory of a device, as far as its user can see."""

    def __init__(self, array):
        self.array = array

    @property
    def __cuda_array_interface__(self):
        told = self.array.__array_interface__
        return {"shape": told["shape"], "typestr": told["typestr"], "strides": told["strides"], "data": told["data"], "version": 3}


class OfDlpack:
    """Is an array of a library that has DLPack alone."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **named):
        return self.array.__dlpack__(**named)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()
