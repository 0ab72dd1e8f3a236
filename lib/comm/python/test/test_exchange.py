# SPDX-License-Identifier: BSD-3-Clause
"""Exchanges arrays of all kinds around a ring of ranks, and halos of Cartesian communicators."""

import gc
import itertools
import unittest
import warnings

import halocline
import numpy as np
from halocline import Message, Plan
from mpi4py import MPI
from ranks import COMM, IS_LAST, LEFT, RANK, RANKS, RIGHT, OfDlpack, OnDevice, RanksTest

METHODS = ("auto", "p2p", "alltoallv", "neighbor", "vendor-p2p")


def pattern(rank, shape=(6, 5), dtype=float):
    return (np.arange(np.prod(shape)).reshape(shape) % 50 + 50 * rank).astype(dtype)


class Ring(RanksTest):
    def exchanged(self, sent, received, **options):
        """Sends to the right and receives from the left, twice. The plan must not need the lists any more."""
        with Plan(COMM, [Message(sent, RIGHT)], [Message(received, LEFT)], **options) as plan:
            plan.exchange()
            plan.start()
            plan.progress()
            plan.finish()

    def test_columns_by_each_method(self):
        for method in METHODS:
            u, expected = pattern(RANK), pattern(RANK)
            expected[:, 0] = pattern(LEFT)[:, 3]
            self.exchanged(u[:, 3], u[:, 0], method=method)
            np.testing.assert_array_equal(u, expected, method)

    def test_views(self):
        everything = slice(None)
        views = [
            (everything, 2), (2, everything), (slice(1, 5, 2), slice(0, 4, 3)), (slice(None, None, -1), everything),
            (everything, slice(3, 0, -2)), (slice(1, 2), 1), (slice(0, 0), everything), (slice(2, 4), everything), ...,
        ]  # fmt: skip
        for view, dtype in itertools.product(views, ("f8", "i2", "c16", "?", "f2", ">i4", "S3", [("a", "i1"), ("b", "f8")])):
            u = np.zeros((6, 5), dtype) if isinstance(dtype, list) else pattern(RANK, dtype=dtype)
            if isinstance(dtype, list):
                u["a"], u["b"] = RANK, pattern(RANK)
            v = np.zeros_like(u)
            self.exchanged(u[view], v[view])
            expected = np.zeros_like(u)
            source = COMM.sendrecv(u, RIGHT, source=LEFT)
            expected[view] = source[view]
            self.assertEqual(v.tobytes(), expected.tobytes(), f"{view} {dtype}")

    def test_transposed_and_of_four_axes(self):
        u, v = pattern(RANK, (3, 4, 5, 2)), np.zeros((5, 3))
        self.exchanged(u[:, 1, :, 1].T, v)
        np.testing.assert_array_equal(v, pattern(LEFT, (3, 4, 5, 2))[:, 1, :, 1].T)

    def test_other_arrays(self):
        u = pattern(RANK, (40,), "u1")
        for make in (bytearray, memoryview, OnDevice, OfDlpack, lambda v: memoryview(v)[::2]):
            v = np.zeros(40, "u1")
            target = bytearray(40) if make is bytearray else make(v)
            sent = bytes(u) if make is bytearray else make(u)
            self.exchanged(sent, target)
            got = np.frombuffer(target, "u1") if make is bytearray else v
            step = 2 if isinstance(target, memoryview) and len(target) == 20 else 1
            np.testing.assert_array_equal(got[::step], pattern(LEFT, (40,), "u1")[::step])
        for make in (OnDevice, OfDlpack):
            u, v = pattern(RANK), np.zeros((6, 2))
            self.exchanged(make(u[:, 1:4:2]), make(v))
            np.testing.assert_array_equal(v, pattern(LEFT)[:, 1:4:2])

    def test_own_datatypes(self):
        column = MPI.DOUBLE.Create_vector(6, 1, 5)
        u, expected = pattern(RANK), pattern(RANK)
        expected[:, 0] = pattern(LEFT)[:, 3]
        self.exchanged([u[0, 3:], column], [u, 1, column])
        np.testing.assert_array_equal(u, expected)
        bottom = MPI.DOUBLE.Create_hindexed([1], [u[1:, 1:].ctypes.data])
        target = np.zeros(1)
        self.exchanged([MPI.BOTTOM, 1, bottom], target)
        self.assertEqual(target[0], 50.0 * LEFT + 6)
        for one in (column, bottom):
            one.Free()
        u, v = pattern(RANK), np.zeros((6, 5))
        self.exchanged([u, MPI.DOUBLE], v)  # the count is that of the array
        np.testing.assert_array_equal(v, pattern(LEFT))

    def test_arrays_of_plans_stay_alive(self):
        sent, received = np.full(1000, RANK, "f8"), np.zeros(1000)
        view = received[:]
        plan = Plan(COMM, [(sent, RIGHT)], [(received, LEFT)])
        del sent, received
        gc.collect()
        np.zeros(1000)
        plan.exchange()
        plan.free()
        self.assertEqual(view[999], LEFT)

    def test_rounds_tags_and_nobody(self):
        a, b, got = np.full(3, RANK), np.zeros(3, int), np.zeros(3, int)
        sends = [Message(a, RIGHT, round=0), Message(b, RIGHT, tag=4, round=1), Message(a, MPI.PROC_NULL)]
        receives = [Message(b, LEFT), Message(got, LEFT, 4, 1), (a, MPI.PROC_NULL)]
        with Plan(COMM, sends, receives, chunk_bytes=0, model=None) as plan:
            plan.exchange()
        self.assertEqual(got.tolist(), [(RANK - 2) % RANKS] * 3)
        with Plan(COMM, Message(a, RIGHT), Message(b, LEFT)) as plan:  # one message needs no list
            plan.exchange()
        self.assertEqual(b.tolist(), [LEFT] * 3)

    def test_test(self):
        u, v = pattern(RANK), np.zeros((6, 5))
        with Plan(COMM, [(u, RIGHT)], [(v, LEFT)]) as plan:
            for _ in range(3):
                plan.start()
                while not plan.test():
                    pass
        np.testing.assert_array_equal(v, pattern(LEFT))

    def test_shared_arrays(self):
        for order in "CF":
            u = halocline.empty(COMM, (6, 5), order=order)
            u[:] = pattern(RANK)
            COMM.Barrier()
            self.exchanged(u[:, 3], u[:, 0], method="shared")
            np.testing.assert_array_equal(u[:, 0], pattern(LEFT)[:, 3])
            with Plan(COMM, [(u[:, 3], RIGHT)], [(u[:, 0], LEFT)]) as plan:
                self.assertEqual(plan.info.method, "shared" if RANKS > 1 else "p2p")
                self.assertEqual(plan.info.bytes_to_others if RANKS > 1 else plan.info.bytes_to_self, 48)
            halocline.free(u[:, 1])
        none = halocline.empty(COMM, (0, 3), "i4")
        self.assertEqual(none.shape, (0, 3))
        halocline.free(none)


class Mistakes(RanksTest):
    def test_arguments_of_one_rank(self):
        u = np.zeros((4, 4))
        plan = lambda sends=(), receives=(), *more, **named: Plan(COMM, sends, receives, *more, **named)  # noqa: E731
        frozen = np.zeros(4)
        frozen.flags.writeable = False
        self.refused("unknown method (fastest)", plan, method="fastest")
        self.refused("the method is a NoneType", plan, method=None if IS_LAST else "auto")
        where = "" if RANKS == 1 else f"rank {RANKS - 1}: "
        for text, send in (
            ("a list says what to exchange", [1, 2, 3]),
            ("a int is no array", 5),
            ("a float64 is a copy of one number", u[1, 1]),
            ("a str is no array", "text"),
            ("the datatype reaches from byte 0 to 136 of an array of 128 bytes", [u, 17, MPI.DOUBLE]),
            ("the count is -1", [u, -1, MPI.DOUBLE]),
            ("MPI.DATATYPE_NULL", [u, MPI.DATATYPE_NULL]),
            ("holds Python objects", np.array([None])),
        ):
            self.refused(f"{where}message 0 of sends: ", plan, [(send if IS_LAST else u, MPI.PROC_NULL)])
            self.refused(text, plan, [(send if IS_LAST else u, MPI.PROC_NULL)])
        self.refused("message 1 of receives: an array that gets data is read-only", plan, [], [(u, MPI.PROC_NULL), (frozen if IS_LAST else u, MPI.PROC_NULL)])
        self.refused("message 0 of sends", plan, [(u,)])
        self.refused("message 0 of sends: partner is a str: give a whole number", plan, [(u, "left")])
        for partner, tag, step, text in (
            (1 << 32, 0, 0, "partner is 4294967296: give a number of at most 32 bits"),
            (MPI.PROC_NULL, -(1 << 40), 0, "tag is -1099511627776: give"),
            (MPI.PROC_NULL, 0, (1 << 32) + 1, "round is 4294967297: give"),
            (MPI.PROC_NULL, 0, 0.5, "round is a float: give a whole number"),
        ):
            self.refused(f"{where}message 0 of receives: {text}", plan, [], [(u, partner, tag, step) if IS_LAST else (u, MPI.PROC_NULL)])
        self.refused("the count is 18446744073709551617: give a number of at most 64 bits", plan, [([u, (1 << 64) + 1, MPI.DOUBLE], MPI.PROC_NULL)])
        self.refused("chunk_bytes is 18446744073709551616: give", plan, chunk_bytes=1 << 64 if IS_LAST else 0)
        self.refused("an argument cannot be used (expected str, bytes or os.PathLike object, not int): give what help()", plan, model=3)
        self.refused("/nowhere/model.json", plan, model="/nowhere/model.json")

    def test_communicators(self):
        self.refused("a NoneType: give one of mpi4py", Plan, None)
        self.refused("MPI.COMM_NULL", Plan, MPI.COMM_NULL)
        if RANKS > 1:
            half = COMM.Split(RANK % 2)
            both = half.Create_intercomm(0, COMM, (RANK + 1) % 2)
            self.refused("two groups", Plan, both)
            both.Free()
            half.Free()

    def test_messages_that_do_not_fit(self):
        u, v = np.zeros(4), np.zeros(4)
        last, where = RANKS - 1, f", rank {RIGHT if IS_LAST else 0} expects"
        self.refused(f"rank {last} sends 24 bytes with tag 0{where} 32 bytes", Plan, COMM, [(u[:3] if IS_LAST else u, RIGHT)], [(v, LEFT)])
        self.refused(f"rank {last} sends 32 bytes with tag 1{where} 32 bytes with tag 0", Plan, COMM, [(u, RIGHT, 1 if IS_LAST else 0)], [(v, LEFT)])
        if RANKS > 1:
            end = r"is not in memory of halocline\.empty\(\) of the plan's ranks in the plan's order, or the node could not share it\): use another method, such as p2p$"
            with self.assertRaisesRegex(halocline.InputError, end):
                Plan(COMM, [(u, RIGHT)], [(v, LEFT)], method="shared")

    def test_plans_that_were_freed(self):
        plan = Plan(COMM)
        plan.free()
        plan.free()
        for call in (plan.start, plan.finish, plan.progress, plan.test, plan.exchange, lambda: plan.info):
            self.refused("the plan was freed: make a new one", call)

    def test_places_of_mpi_alone(self):
        for place in (MPI.IN_PLACE, MPI.BOTTOM, [MPI.IN_PLACE, 1, MPI.INT]):
            self.refused("message 0 of sends: ", Plan, COMM, [(place, RIGHT)], [])

    def test_order_of_calls(self):
        with Plan(COMM) as plan:
            self.refused("start it first", plan.finish)
            plan.start()
            self.refused("finish it first", plan.start)
            plan.finish()

    def test_a_plan_that_is_forgotten(self):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            plan = Plan(COMM)
            handle = plan._handle.value
            del plan
            gc.collect()
        self.assertEqual([str(one.message) for one in told], ["a plan was not freed: call free(), or use `with`"])
        again = Plan.__new__(Plan)
        again._begin()
        again._handle.value = handle
        again.free()

    def test_memory(self):
        self.refused("no array has shape", halocline.empty, COMM, -1 if IS_LAST else 1)
        self.refused("a length is a str: give a whole number", halocline.empty, COMM, "x" if IS_LAST else 1)
        self.refused("the number of bytes is 9671406556917033397649408: give", halocline.empty, COMM, (1 << 40, 1 << 40))
        self.refused("(data type 'x' not understood): give what help() of the function names", halocline.empty, COMM, 1, "x")
        self.refused("Python objects", halocline.empty, COMM, 1, object)
        self.refused("halocline.empty()", halocline.free, np.zeros(3))
        self.refused("is no array of halocline.empty()", halocline.free, 3)


class Halos(RanksTest):
    def test_an_axis_of_one_point(self):
        u = np.full(4, RANK, float)[None, :]  # such an array has strides (0, 8)
        cart = COMM.Create_cart([1, RANKS], [True, True])
        with halocline.Halo(cart, u, [0, 1], swapped=np.zeros((1, 4))) as halo:
            halo.exchange()
        self.assertEqual(u.tolist(), [[LEFT, RANK, RANK, RIGHT]])
        # One rank has one row, so its array is in both orders.
        u = np.full((1 + (RANK > 0), 3), RANK, float, order="F")
        line = COMM.Create_cart([RANKS, 1], [True, True])
        with halocline.Halo(line, u, [0, 1]) as halo:
            halo.exchange()
        line.Free()
        cart.Free()

    def check(self, shape, widths, periods, most_axes=None, order="C", method="auto", swapped=False, behind=()):
        """Compares every point with a value that its place in the grid of all ranks gives."""
        dims = MPI.Compute_dims(RANKS, len(shape))
        cart = COMM.Create_cart(dims, periods)
        here = cart.coords
        sides = [(w, w) if isinstance(w, int) else w for w in widths]
        stored = tuple(n + low + high for n, (low, high) in zip(shape, sides))
        number = np.arange(np.prod(behind, dtype=int)).reshape(behind)
        expected = np.empty(stored + behind)
        own = np.zeros(stored, bool)
        own[tuple(slice(low, low + n) for n, (low, _) in zip(shape, sides))] = True
        for point in itertools.product(*map(range, stored)):
            value, inside, outside = 0, True, 0
            for axis, at in enumerate(point):
                local, size = at - sides[axis][0], shape[axis] * dims[axis]
                place = here[axis] * shape[axis] + local
                outside += not 0 <= local < shape[axis]
                inside &= periods[axis] or 0 <= place < size
                value = value * 100 + place % size
            filled = own[point] or (inside and outside <= (most_axes or len(shape)))
            expected[point] = value * 10 + number if filled else -1
        clean = np.where(own.reshape(own.shape + (1,) * len(behind)), expected, -1)
        if order == "planes":  # the axes of components are outermost in memory, and their view is last
            last, first = range(len(shape), clean.ndim), range(len(behind))
            u, v = (np.moveaxis(np.array(np.moveaxis(clean, last, first), order="C"), first, last) for _ in range(2))
        else:
            u, v = np.array(clean, order=order), np.array(clean, order=order)
        options = {"swapped": [v]} if swapped else {}
        with halocline.Halo(cart, [u], widths, method, most_axes, **options) as halo:
            halo.exchange()
            np.testing.assert_array_equal(u, expected)
            np.testing.assert_array_equal(v, clean)
            if swapped:
                halo.swap()
                halo.exchange()
                np.testing.assert_array_equal(v, expected)
                u[...] = clean
                halo.swap()
                halo.exchange()
                np.testing.assert_array_equal(u, expected)
        cart.Free()

    def test_halos(self):
        for order, most_axes, periods in itertools.product("CF", (1, 2), ((True, True), (True, False), (False, False))):
            self.check((4, 3), (1, 1), periods, most_axes, order)
        self.check((4,), [(2, 1)], [True])
        self.check((4, 3, 5), (1, 2, (0, 1)), [True] * 3)
        for most_axes in (1, 2, 3):
            self.check((3, 4, 3), (1, 1, 1), [True, False, True], most_axes, swapped=True)
        for order, behind in itertools.product(("C", "F", "planes"), ((3,), (2, 3), (1,))):
            self.check((3, 4), (1, 1), [True, False], None, order, swapped=True, behind=behind)
            self.check((4,), (1,), [True], None, order, behind=behind)
        for widths in (np.array([1, 2]), np.array([[1, 1], [2, 2]]), [np.int32(1), (2, 2)]):
            cart, u = COMM.Create_cart(MPI.Compute_dims(RANKS, 2), [True, True]), np.zeros((4, 6))
            u[1:-1, 2:-2] = 1
            with halocline.Halo(cart, u, widths) as halo:
                halo.exchange()
            self.assertEqual(u.sum(), 24)
            cart.Free()
        for method in METHODS:
            self.check((4, 3), (1, 1), (True, True), method=method)

    def test_mistakes(self):
        cart = COMM.Create_cart(MPI.Compute_dims(RANKS, 2), [True, True])
        u = np.zeros((4, 4))
        self.refused("no Cartesian topology", halocline.Halo, COMM, u)
        self.refused("does not fit 2 dimensions", halocline.Halo, cart, np.zeros(4))
        gaps = np.zeros((4, 8))[:, ::2] if IS_LAST else u
        self.refused("field 1: the array is a view with gaps: give a whole array", halocline.Halo, cart, [u, gaps])
        self.refused("(\'a\'): give one for each dimension", halocline.Halo, cart, u, "a")
        self.refused("a width is a str: give a whole number", halocline.Halo, cart, u, "ab")
        self.refused("a width is a float: give a whole number", halocline.Halo, cart, u, 0.5)
        self.refused("the width (1, 1, 1) has 3 sides: give", halocline.Halo, cart, u, [1, (1, 1, 1)])
        self.refused("widths for 3 axes", halocline.Halo, cart, u, [1, 1, 1])
        self.refused("negative", halocline.Halo, cart, u, -1)
        self.refused("fewer than the 6 ghosts", halocline.Halo, cart, u, 3)
        self.refused("another shape", halocline.Halo, cart, u, swapped=np.zeros((5, 4)))
        self.refused("1 fields have 2 arrays", halocline.Halo, cart, u, swapped=[u, u])
        self.refused("unknown method", halocline.Halo, cart, u, method="fastest")
        self.refused("ghosts along 0 axes at most are none: give 1 or more", halocline.Halo, cart, u, most_axes=0)
        frozen = np.zeros((4, 4))
        frozen.flags.writeable = False
        self.refused("gives no memory by DLPack", halocline.Halo, cart, OfDlpack(frozen) if IS_LAST else u)
        self.refused("most_axes is a bool: give a whole number", halocline.Halo, cart, u, most_axes=True)
        if RANKS > 1:
            self.refused("`most_axes` differs (1 on rank", halocline.Halo, cart, u, most_axes=1 if IS_LAST else 2)
        with halocline.Halo(cart, u, swapped=u.copy()) as halo:
            halo.start()
            self.refused("an exchange of this plan is under way: finish it first", halo.swap)
            halo.finish()
        with halocline.Halo(cart, u) as halo:
            self.refused("no field of this halo has a second array: give it as `swapped`", halo.swap)
        self.refused("freed", halo.swap)
        cart.Free()


if __name__ == "__main__":
    unittest.main()
