# SPDX-License-Identifier: BSD-3-Clause
"""Exchanges that are set up once and run often: plans, and halos of Cartesian communicators."""

from __future__ import annotations

import ctypes
import math
import os
from typing import Any, Iterable, NamedTuple, Sequence, Union

import numpy as np
from mpi4py import MPI

from . import _library as c
from ._regions import Datatypes, Memory, agree, dense, entries, in_c, memory_of, region_of

_start, _progress, _finish, _test = (c.function(name) for name in ("start", "progress", "finish", "test"))


class Message(NamedTuple):
    """Describes a message of a plan: what, with whom, and which one of several.

    `data` is an array or a view of one. Its elements travel in the order of its axes. For a datatype of your own,
    give `[array, datatype]` or `[array, count, datatype]` as in mpi4py. The count is 1 by default, and for predefined
    datatypes as many as the array holds. A message to `partner` meets the partner's receive from this rank with the same
    `tag` and `round`. Messages of round 1 may send what round 0 received. With MPI.PROC_NULL nothing is exchanged.
    Both ends have the same bytes; types are not compared.

    >>> import halocline
    >>> import numpy as np
    >>> u = np.zeros((4, 4))
    >>> halocline.Message(u[:, 1], partner=0).tag
    0
    """

    data: Any
    partner: int
    tag: int = 0
    round: int = 0


class PlanInfo(NamedTuple):
    """Describes a plan.

    `predicted_seconds` is None without a model. Bytes and messages are those that this rank sends.

    >>> import halocline
    >>> from mpi4py import MPI
    >>> with halocline.Plan(MPI.COMM_WORLD, method="p2p") as plan:
    ...     print(plan.info.method, plan.info.bytes_to_others)
    p2p 0
    """

    method: str
    transfer: str
    predicted_seconds: float | None
    bytes_to_others: int
    bytes_to_self: int
    messages: int


AnyMessage = Union[Message, tuple[Any, int], tuple[Any, int, int], tuple[Any, int, int, int]]


class Plan(c.Handle):
    """Exchanges messages again and again.

    Sends and receives are messages, or tuples with the same members. The plan keeps its arrays alive and never
    copies them, so later steps exchange what they hold then. All functions but `progress` and `info` are collective
    over `comm`.

    Parameters:
        comm: communicator of mpi4py, which is duplicated
        sends, receives: messages of this rank
        method: "auto", "shared", "p2p", "alltoallv" or another one of `halocline help methods`
        chunk_bytes: length of the pieces in which long messages travel; 0: whole
        model: file that `halocline calibrate` wrote; "": the default place; None: no model

    Raises InputError on all ranks if the messages of two ranks do not fit.

    >>> import halocline
    >>> import numpy as np
    >>> from mpi4py import MPI
    >>> comm = MPI.COMM_WORLD
    >>> left, right = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size
    >>> u = np.arange(12.0).reshape(3, 4)
    >>> with halocline.Plan(comm, [(u[:, 2], right)], [(u[:, 0], left)]) as plan:
    ...     plan.exchange()
    >>> u[:, 0].tolist()
    [2.0, 6.0, 10.0]
    """

    __slots__ = ("_done",)
    _kind = "a plan"

    def __init__(self, comm: MPI.Comm, sends: Iterable[AnyMessage] = (), receives: Iterable[AnyMessage] = (), method: str = "auto", *,
                 chunk_bytes: int = 1 << 20, model: str | os.PathLike[str] | None = None) -> None:  # fmt: skip
        self._begin()
        with Datatypes() as types:

            def messages(given: Iterable[AnyMessage], what: str) -> Any:
                out = []
                for number, one in enumerate([given] if isinstance(given, Message) else given):
                    try:
                        message = Message(*one)
                        region = region_of(message.data, types, written=what == "receives")
                        place = [c.whole(value, name) for value, name in zip(message[1:], message._fields[1:])]
                        out.append(c.Message(region.address, region.number, c.handle_of(region.datatype), *place))
                    except c.InputError as error:
                        raise c.InputError(f"message {number} of {what}: {error}") from error
                    except (TypeError, ValueError, OverflowError, BufferError) as error:
                        raise c.InputError(f"message {number} of {what} cannot be used ({error}): give data, partner, tag and round") from error
                    self._owners.append(region.owner)
                return in_c(out, c.Message)

            def arguments() -> tuple[Any, ...]:
                return messages(sends, "sends"), messages(receives, "receives"), *_options(method, chunk_bytes, model)

            send, receive, name, options = agree(comm, arguments)
            self._make("plan_create", comm, name, len(send), send, len(receive), receive, options)

    def _begin(self) -> None:
        super()._begin()
        self._done = ctypes.c_int()

    def _make(self, function: str, comm: MPI.Comm, *arguments: Any) -> None:
        c.check(c.function(function)(c.handle_of(comm), *arguments, ctypes.byref(self._handle)))

    def _fail(self, code: int) -> None:
        if self._handle.value is None:
            raise c.InputError("the plan was freed: make a new one")
        c.fail(code)

    def start(self) -> None:
        """Starts an exchange.

        Until `finish()` returns, do not write arrays that are sent, and do not touch arrays that receive.

        >>> import halocline
        >>> from mpi4py import MPI
        >>> with halocline.Plan(MPI.COMM_WORLD) as plan:
        ...     plan.start()
        ...     plan.finish()
        """
        code = _start(self._handle)
        if code:
            self._fail(code)

    def progress(self) -> None:
        """Lets MPI do what it can do without waiting, between `start()` and `finish()`. Local.

        >>> import halocline
        >>> from mpi4py import MPI
        >>> with halocline.Plan(MPI.COMM_WORLD) as plan:
        ...     plan.start()
        ...     plan.progress()
        ...     plan.finish()
        """
        code = _progress(self._handle)
        if code:
            self._fail(code)

    def test(self) -> bool:
        """Completes the exchange if nothing is awaited any more. Returns True if it is complete.

        >>> import halocline
        >>> from mpi4py import MPI
        >>> with halocline.Plan(MPI.COMM_WORLD) as plan:
        ...     plan.start()
        ...     while not plan.test():
        ...         pass
        """
        code = _test(self._handle, ctypes.byref(self._done))
        if code:
            self._fail(code)
        return self._done.value != 0

    def finish(self) -> None:
        """Completes the exchange: the arrays that receive are filled. Other threads of Python run meanwhile.

        >>> import halocline
        >>> from mpi4py import MPI
        >>> with halocline.Plan(MPI.COMM_WORLD) as plan:
        ...     plan.start()
        ...     plan.finish()
        """
        code = _finish(self._handle)
        if code:
            self._fail(code)

    def exchange(self) -> None:
        """Starts and completes an exchange.

        >>> import halocline
        >>> from mpi4py import MPI
        >>> with halocline.Plan(MPI.COMM_WORLD) as plan:
        ...     plan.exchange()
        """
        code = _start(self._handle) or _finish(self._handle)
        if code:
            self._fail(code)

    @property
    def info(self) -> PlanInfo:
        """Describes the plan: the method in use, also for "auto", and what this rank sends.

        >>> import halocline
        >>> from mpi4py import MPI
        >>> with halocline.Plan(MPI.COMM_WORLD, method="p2p") as plan:
        ...     print(plan.info.method)
        p2p
        """
        told = c.PlanInfo(ctypes.sizeof(c.PlanInfo))
        code = c.function("plan_inform")(self._handle, ctypes.byref(told))
        if code:
            self._fail(code)
        predicted = None if math.isnan(told.predicted_seconds) else told.predicted_seconds
        return PlanInfo(told.method.decode(), told.transfer.decode(), predicted, told.bytes_to_others, told.bytes_to_self, told.messages)

    def free(self) -> None:
        """Frees the plan. Completes an exchange that was started. A second call does nothing.

        >>> import halocline
        >>> from mpi4py import MPI
        >>> plan = halocline.Plan(MPI.COMM_WORLD)
        >>> plan.free()
        """
        c.check(c.function("plan_free")(ctypes.byref(self._handle)))
        self._owners.clear()


def _options(method: str, chunk_bytes: int, model: str | os.PathLike[str] | None) -> tuple[bytes, Any]:
    if not isinstance(method, str):
        raise c.InputError(f'the method is a {type(method).__name__}: give a name such as "auto"')
    options = c.PlanOptions(ctypes.sizeof(c.PlanOptions), c.whole(chunk_bytes, "chunk_bytes", 64), None if model is None else os.fsencode(model))
    return method.encode(), ctypes.byref(options)


Width = Union[int, Sequence[int]]


class Halo(Plan):
    """Fills the ghost points of arrays from the neighbours in a Cartesian communicator.

    Axis i of the arrays lies along dimension i of `cart`. Axes behind these belong to a point. Arrays
    are in the order of C or of Fortran, the same on all ranks. An array has its ghost points around its own points.
    Ghosts at open sides of the grid stay as they are.

    Parameters:
        cart: communicator of Create_cart()
        fields: an array, or a list of arrays that travel in one message per neighbour
        widths: ghost points on either side. A number, or one for each axis, or (low, high) for each axis.
        method: as for a Plan
        most_axes: largest number of axes along which a neighbour may lie. In 3-D, 1: 6 neighbours; 2: 18; 3: 26. Default: all.
        swapped: arrays for every second step, one for each field, see swap()
        chunk_bytes, model: as for a Plan

    >>> import halocline
    >>> import numpy as np
    >>> from mpi4py import MPI
    >>> cart = MPI.COMM_WORLD.Create_cart([MPI.COMM_WORLD.size, 1], periods=[True, True])
    >>> u = np.arange(16.0).reshape(4, 4)
    >>> with halocline.Halo(cart, u) as halo:
    ...     halo.exchange()
    >>> u.tolist()[0]
    [10.0, 9.0, 10.0, 9.0]
    >>> cart.Free()
    """

    __slots__ = ()
    _kind = "a halo"

    def __init__(self, cart: MPI.Comm, fields: Any, widths: int | Sequence[Width] = 1, method: str = "auto", most_axes: int | None = None, *,
                 swapped: Any = None, chunk_bytes: int = 1 << 20, model: str | os.PathLike[str] | None = None) -> None:  # fmt: skip
        self._begin()
        with Datatypes() as types:

            def arguments() -> tuple[Any, ...]:
                if cart.Get_topology() != MPI.CART:
                    raise c.InputError("the communicator has no Cartesian topology: make one with Create_cart()")
                axes = len(MPI.Cartcomm(cart).dims)
                arrays = list(fields) if isinstance(fields, (list, tuple)) else [fields]
                others = [None] * len(arrays) if swapped is None else list(swapped) if isinstance(swapped, (list, tuple)) else [swapped]
                if len(others) != len(arrays):
                    raise c.InputError(f"{len(arrays)} fields have {len(others)} arrays to swap with: give one for each field")
                sides, out = _widths(widths, axes), []
                for number, (array, other) in enumerate(zip(arrays, others)):
                    try:
                        out += _fields(array, other, axes, sides, types)
                    except c.InputError as error:
                        raise c.InputError(f"field {number}: {error}") from error
                self._owners += [arrays, others]
                most = c.MAX_AXES if most_axes is None else c.whole(most_axes, "most_axes")
                return in_c(out, c.Field), most, *_options(method, chunk_bytes, model)

            field, most, name, options = agree(cart, arguments)
            self._make("halo_create", cart, name, len(field), field, most, options)

    def swap(self) -> None:
        """Makes the next exchange use the other array of each field. Local; call it on all ranks alike.

        >>> import halocline
        >>> import numpy as np
        >>> from mpi4py import MPI
        >>> cart = MPI.COMM_WORLD.Create_cart([MPI.COMM_WORLD.size], periods=[True])
        >>> u, v = np.zeros(4), np.ones(4)
        >>> with halocline.Halo(cart, u, swapped=v) as halo:
        ...     for step in range(10):
        ...         halo.exchange()
        ...         v[1:-1] = (u[:-2] + u[2:]) / 2
        ...         u, v = v, u
        ...         halo.swap()
        >>> cart.Free()
        """
        code = c.function("swap")(self._handle)
        if code:
            self._fail(code)


def _widths(widths: Any, axes: int) -> list[tuple[int, int]]:
    given = entries(widths)
    of_axes = [widths] * axes if given is None else given
    if len(of_axes) != axes:
        raise c.InputError(f"there are widths for {len(of_axes)} axes and {axes} dimensions ({widths!r}): give one for each dimension")
    out = []
    for width in of_axes:
        pair = entries(width)
        sides = [c.whole(one, "a width", 64) for one in ([width, width] if pair is None or isinstance(width, str) else pair)]
        if len(sides) != 2:
            raise c.InputError(f"the width {width} has {len(sides)} sides: give a number or (low, high)")
        if min(sides) < 0:
            raise c.InputError(f"the width {width} is negative: give 0 or more")
        out.append((sides[0], sides[1]))
    return out


def _order(strides: tuple[int, ...], shape: tuple[int, ...], size: int) -> int | None:
    """Returns the order of an array without gaps, whose points have `size` bytes; None for others."""
    both = [(order, dense(shape, size, name)) for order, name in ((MPI.ORDER_C, "C"), (MPI.ORDER_FORTRAN, "F"))]
    exact = (order for order, wanted in both if strides == wanted)
    loose = (order for order, wanted in both if _steps(shape, strides) == _steps(shape, wanted))
    return next(exact, next(loose, None))


def _steps(shape: tuple[int, ...], strides: tuple[int, ...]) -> list[int]:
    """Returns the strides of axes with several points. numpy gives an axis of one point any stride."""
    return [stride for length, stride in zip(shape, strides) if length != 1]


def _fields(array: Any, other: Any, axes: int, widths: list[tuple[int, int]], types: Datatypes) -> list[c.Field]:
    memory = memory_of(array)
    shape, behind = memory.shape[:axes], memory.shape[axes:]
    if len(shape) < axes or axes > c.MAX_AXES:
        raise c.InputError(f"an array of {len(memory.shape)} axes does not fit {axes} dimensions: give one with as many axes, at most {c.MAX_AXES}")
    arrays: list[Memory] = [memory]
    if other is not None:
        second = memory_of(other)
        alike = second.shape == memory.shape and _steps(second.shape, second.strides) == _steps(memory.shape, memory.strides)
        if not alike or second.dtype != memory.dtype:
            raise c.InputError("the array to swap with has another shape or type: give one like the field")
        arrays.append(second)
    if not all(one.writable for one in arrays):
        raise c.InputError("an array that gets data is read-only: give one that can be written")
    element, count = types.strided(memory._replace(shape=behind, strides=memory.strides[axes:]))
    size, begins = memory.dtype.itemsize * math.prod(behind), [0]
    order = _order(memory.strides[:axes], shape, size)
    if order is None:
        # In the order of Fortran, a point is not in one piece, but each of its components is an array without gaps.
        order, size, element, count = _order(memory.strides[:axes], shape, memory.dtype.itemsize), memory.dtype.itemsize, types.element(memory.dtype), 1
        begins = [sum(at * step for at, step in zip(index, memory.strides[axes:])) for index in np.ndindex(behind)]
    if order is None:
        raise c.InputError("the array is a view with gaps: give a whole array, as numpy.ascontiguousarray() makes one")
    if count != 1 or element.Get_extent() != (0, size):
        element = types.keep(types.keep(element.Create_contiguous(count)).Create_resized(0, size))
    owned = []
    for axis, (low, high) in enumerate(widths):
        if shape[axis] < low + high:
            raise c.InputError(f"{shape[axis]} points along axis {axis} are fewer than the {low + high} ghosts: give a larger array")
        owned.append(shape[axis] - low - high)
    rest = order, *(in_c([*values, *[0] * (c.MAX_AXES - axes)], ctypes.c_int64) for values in (owned, *zip(*widths)))
    swapped = arrays[1].address if other is not None else None
    return [
        c.Field(ctypes.sizeof(c.Field), memory.address + begin, None if swapped is None else swapped + begin, c.handle_of(element), *rest) for begin in begins
    ]
