# SPDX-License-Identifier: BSD-3-Clause
"""Sends single messages, and gathers arrays."""

import gc

import halocline
import numpy as np
from mpi4py import MPI
from ranks import COMM, IS_LAST, LEFT, RANK, RANKS, RIGHT, OnDevice, RanksTest


class Messages(RanksTest):
    def test_ring(self):
        with halocline.Messages(COMM) as messages:
            u, v = np.arange(12.0).reshape(3, 4) + RANK, np.zeros(3)
            request = messages.isend(u[:, 1], RIGHT, tag=3)
            self.assertEqual(messages.recv(v, LEFT, 3), halocline.Status(LEFT, 3, 24))
            self.assertIsNone(request.wait())
            self.assertEqual(v.tolist(), [1.0 + LEFT, 5.0 + LEFT, 9.0 + LEFT])
            request = messages.irecv(u[:, 0])
            messages.send(v, RIGHT)
            self.assertEqual(request.wait(), (LEFT, 0, 24))
            self.assertEqual(request.wait(), (LEFT, 0, 24))
            self.assertEqual(u[2, 0], 9.0 + (LEFT - 1) % RANKS)

    def test_mistakes(self):
        messages = halocline.Messages(COMM)
        self.refused("is no array", messages.send, 5, RIGHT)
        self.refused("read-only", messages.recv, b"text")
        self.refused(f"there is no rank {RANKS}: give one from 0 to {RANKS - 1}", messages.send, np.zeros(2), RANKS)
        self.refused("destination is a str: give a whole number", messages.send, np.zeros(2), "a")
        self.refused("destination is 4294967296: give a number of at most 32 bits", messages.isend, np.zeros(2), 1 << 32)
        self.refused("source is 4294967296: give", messages.irecv, np.zeros(2), 1 << 32)
        self.refused("tag is 4294967296: give", messages.recv, np.zeros(2), LEFT, 1 << 32)
        request = messages.irecv(np.zeros(2), LEFT)
        self.refused("1 messages of the engine are not complete: call wait() of each of them first", messages.free)
        messages.send(np.zeros(2), RIGHT)
        request.wait()
        messages.free()
        messages.free()
        self.refused("was freed: make a new one", messages.send, np.zeros(2), RIGHT)
        self.refused("COMM_NULL", halocline.Messages, MPI.COMM_NULL)

    def test_requests_that_are_dropped(self):
        received = np.zeros(3)
        with halocline.Messages(COMM) as messages:
            messages.irecv(received[:2], LEFT)  # completed by the end of `with`
            messages.isend(np.full(2, RANK, float), RIGHT)
            gc.collect()
        self.assertEqual(received.tolist(), [LEFT, LEFT, 0])


class Gathers(RanksTest):
    def test_equal_blocks(self):
        root = RANKS - 1
        u, everything = np.zeros((2, 3)), np.zeros((2 * RANKS, 6)) if RANK == root else None
        target = everything[:, ::2] if RANK == root else None
        with halocline.Gather(COMM, u, target, root=root) as gather:
            for step in range(3):
                u[:] = RANK + step
                gather.run()
                if RANK == root:
                    expected = np.repeat(np.arange(RANKS) + step, 2)[:, None] * [1, 0, 1, 0, 1, 0]
                    np.testing.assert_array_equal(everything, expected)

    def test_other_numbers_of_rows(self):
        counts = [rank + 1 for rank in range(RANKS)]
        u = np.full((counts[RANK], 2), RANK)
        everything = np.zeros((sum(counts), 2), int)
        with halocline.Allgather(COMM, u, everything, counts) as allgather:
            allgather.run()
        np.testing.assert_array_equal(everything[:, 1], np.repeat(range(RANKS), counts))
        back = np.zeros_like(u)
        with halocline.Scatter(COMM, back, everything if RANK == 0 else None, counts if RANK == 0 else None) as scatter:
            scatter.run()
        np.testing.assert_array_equal(back, u)

    def test_in_place_and_datatypes(self):
        everything = np.full(RANKS, RANK, "i4")
        with halocline.Gather(COMM, MPI.IN_PLACE if RANK == 0 else everything[:1], everything) as gather:
            gather.run()
        if RANK == 0:
            self.assertEqual(everything.tolist(), list(range(RANKS)))
        pair, out = MPI.INT.Create_contiguous(2), np.zeros((RANKS, 2), "i4")
        with halocline.Allgather(COMM, [np.full(2, RANK, "i4"), 1, pair], [out, pair]) as allgather:
            allgather.run()
        pair.Free()
        self.assertEqual(out[:, 1].tolist(), list(range(RANKS)))
        whole = np.zeros(2 * RANKS)
        with halocline.Allgather(COMM, [np.full(2, RANK, "f8"), MPI.DOUBLE], [whole, MPI.DOUBLE]) as allgather:
            allgather.run()
        self.assertEqual(whole.tolist(), np.repeat(range(RANKS), 2).tolist())

    def test_blocks_behind_the_end(self):
        own, whole = np.zeros(2), np.zeros(2 * RANKS)
        text, length = f"the datatype reaches from byte 0 to {16 * RANKS + 8} of an array of {16 * RANKS} bytes: give", 2 * RANKS
        counts = [2] * (RANKS - 1) + [3]
        for make in (halocline.Gather, halocline.Scatter, halocline.Allgather):
            self.refused(text, make, COMM, own, [whole, 2, MPI.DOUBLE], counts)
            make(COMM, own, [whole, 2, MPI.DOUBLE]).free()
            if RANKS > 1:
                self.refused(f"of an array of {16 * RANKS} bytes: give", make, COMM, own, [whole, length, MPI.DOUBLE])
        column = MPI.DOUBLE.Create_vector(2, 1, 2)
        if RANKS > 1:
            self.refused("the datatype reaches", halocline.Allgather, COMM, own, [np.zeros(3), column])
        column.Free()

    def test_memory_of_devices(self):
        u = OnDevice(np.zeros((2, 3)))
        text = "in the memory of a device, which the host cannot address: copy it"
        self.refused(text, halocline.Allgather, COMM, u, np.zeros((2 * RANKS, 3)))
        self.refused(text, halocline.pack, u)
        self.refused(text, halocline.unpack, np.zeros(48, "u1"), u)

    def test_mistakes(self):
        u = np.zeros((2, 3))
        self.refused("the root has no array", halocline.Gather, COMM, u)
        self.refused("the root has no array", halocline.Allgather, COMM, u, [MPI.IN_PLACE, 1, MPI.INT])
        self.refused("are no counts for", halocline.Allgather, COMM, u, np.zeros((2 * RANKS, 3)), [2] * (RANKS + IS_LAST))
        self.refused("counts is a int: give a number for each rank", halocline.Allgather, COMM, u, np.zeros((2 * RANKS, 3)), 2)
        self.refused("a count is a str: give", halocline.Allgather, COMM, u, np.zeros((2 * RANKS, 3)), "a" * RANKS)
        for make in (halocline.Gather, halocline.Scatter):
            self.refused("root is 4294967296: give", make, COMM, u, np.zeros((2 * RANKS, 3)), root=1 << 32 if IS_LAST else 0)
            self.refused("there is no such root: give", make, COMM, u, np.zeros((2 * RANKS, 3)), root=RANKS)
        if RANKS > 1:
            self.refused("give `counts`", halocline.Allgather, COMM, u, np.zeros((2 * RANKS + 1, 3)))
        allgather = halocline.Allgather(COMM, u, np.zeros((2 * RANKS, 3)))
        allgather.free()
        allgather.free()
        self.refused("freed: make a new one", allgather.run)
