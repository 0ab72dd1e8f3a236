# SPDX-License-Identifier: BSD-3-Clause
"""Arrays in memory that neighbours on a node reach, packing, and what the library makes of a datatype."""

from __future__ import annotations

import ctypes
import json
import math
from typing import Any

import numpy as np
from mpi4py import MPI

from . import _library as c
from ._regions import Datatypes, agree, entries, region_of


def empty(comm: MPI.Comm, shape: int | tuple[int, ...], dtype: Any = float, order: str = "C") -> np.ndarray[Any, Any]:
    """Returns a new array in memory that the ranks of a node share, so that the exchange "shared" copies straight
    between arrays.

    Its values are undefined. Shapes may differ between ranks. Where ranks cannot share memory, the memory is ordinary.
    `comm` has the ranks of the plans' communicator, in the same order. Collective over `comm`. The memory stays until free().

    >>> import halocline
    >>> from mpi4py import MPI
    >>> u = halocline.empty(MPI.COMM_WORLD, (4, 4))
    >>> u[:] = 1
    >>> float(u.sum())
    16.0
    >>> halocline.free(u)
    """

    def arguments() -> tuple[tuple[int, ...], np.dtype[Any], int]:
        given = entries(shape)
        lengths = tuple(c.whole(length, "a length", 64) for length in ([shape] if given is None else given))
        kind = np.dtype(dtype)
        if kind.hasobject:
            raise c.InputError(f"an array of {kind} holds Python objects: give a type of numbers")
        if order not in ("C", "F") or min(lengths, default=0) < 0:
            raise c.InputError(f"no array has shape {lengths} and order {order!r}: give lengths of 0 or more, and C or F")
        return lengths, kind, c.whole(math.prod(lengths) * kind.itemsize, "the number of bytes", 64)

    lengths, kind, size = agree(comm, arguments)
    memory = ctypes.c_void_p()
    c.check(c.function("alloc")(c.handle_of(comm), size, ctypes.byref(memory)))
    assert memory.value is not None
    owner: Any = (ctypes.c_char * max(size, 1)).from_address(memory.value)
    return np.ndarray(lengths, kind, owner, order="F" if order == "F" else "C")


def free(array: np.ndarray[Any, Any]) -> None:
    """Frees the memory of an array that empty() made. Neither the array nor a view of it may be used any more.

    Plans of the same ranks, whose arrays are in the memory, keep it until they are freed. Collective over the
    communicator of empty(). Memory that is never freed goes back to the system when the program ends.

    >>> import halocline
    >>> from mpi4py import MPI
    >>> u = halocline.empty(MPI.COMM_WORLD, 100)
    >>> halocline.free(u)
    """
    if not isinstance(array, np.ndarray):
        raise c.InputError(f"a {type(array).__name__} is no array of halocline.empty(): give that array")
    while isinstance(array.base, np.ndarray):
        array = array.base
    c.check(c.function("free")(ctypes.byref(ctypes.c_void_p(array.ctypes.data))))


def packed_bytes(data: Any) -> int:
    """Returns the bytes that an array, a view or [array, count, datatype] takes when it is packed. Local.

    >>> import halocline
    >>> import numpy as np
    >>> halocline.packed_bytes(np.zeros((4, 4))[:, 1])
    32
    """
    size = ctypes.c_int64()
    with Datatypes() as types:
        region = region_of(data, types, written=False)
        c.check(c.function("packed_bytes")(region.number, c.handle_of(region.datatype), ctypes.byref(size)))
    return size.value


def pack(data: Any, packed: Any = None) -> np.ndarray[Any, Any]:
    """Packs an array, a view or [array, count, datatype]. Returns the packed bytes.

    The bytes are those of MPI_Pack. They go to the begin of `packed`, or to a new array. Local.

    >>> import halocline
    >>> import numpy as np
    >>> u = np.arange(6, dtype="u1").reshape(2, 3)
    >>> halocline.pack(u[:, 1]).tolist()
    [1, 4]
    """
    with Datatypes() as types:
        region = region_of(data, types, written=False, on_host=True)
        room = _bytes_of(np.empty(packed_bytes(data), "u1") if packed is None else packed, written=True)
        position = ctypes.c_int64(0)
        c.check(c.function("pack")(region.address, region.number, c.handle_of(region.datatype), room.ctypes.data, room.size, ctypes.byref(position)))
    return room[: position.value]


def unpack(packed: Any, data: Any) -> int:
    """Unpacks bytes to an array, a view or [array, count, datatype]. Returns the number of bytes that it took. Local.

    >>> import halocline
    >>> import numpy as np
    >>> u = np.zeros((2, 3), "u1")
    >>> halocline.unpack(bytes([1, 4]), u[:, 1])
    2
    >>> u.tolist()
    [[0, 1, 0], [0, 4, 0]]
    """
    with Datatypes() as types:
        region = region_of(data, types, written=True, on_host=True)
        room = _bytes_of(packed, written=False)
        position = ctypes.c_int64(0)
        c.check(c.function("unpack")(room.ctypes.data, room.size, ctypes.byref(position), region.address, region.number, c.handle_of(region.datatype)))
    return position.value


def _bytes_of(packed: Any, written: bool) -> np.ndarray[Any, Any]:
    try:
        out = np.asarray(memoryview(packed))
    except (TypeError, ValueError):
        raise c.InputError(f"a {type(packed).__name__} holds no packed bytes: give an array, such as numpy.empty(bytes, 'u1')") from None
    if out.dtype.hasobject:
        raise c.InputError("the array of packed bytes holds Python objects: give one of numbers")
    if not out.flags.c_contiguous or (written and not out.flags.writeable):
        raise c.InputError("packed bytes need an array without gaps that can be written: give one of numpy.empty(bytes, 'u1')")
    return out.reshape(-1).view("u1")


def inspect(datatype: MPI.Datatype) -> dict[str, Any]:
    """Describes what the library makes of a datatype: its bounds, its loops, and the plan by which it is packed.

    results/inspect-json.md explains the members: those of a type that `halocline inspect --json` prints, without
    trees. Local.

    >>> import halocline
    >>> from mpi4py import MPI
    >>> column = MPI.DOUBLE.Create_vector(5, 4, 8)
    >>> found = halocline.inspect(column)
    >>> found["decoded"], found["blocks"], found["counts"], found["strides"]
    ('vector(5,4,8,double)', 5, [32, 5], [1, 64])
    >>> column.Free()
    """
    if not isinstance(datatype, MPI.Datatype):
        raise c.InputError(f"a {type(datatype).__name__} is no datatype: give one of mpi4py")
    size = ctypes.c_int64()
    describe, handle = c.function("describe"), c.handle_of(datatype)
    c.check(describe(handle, None, 0, ctypes.byref(size)))
    text = ctypes.create_string_buffer(size.value)
    c.check(describe(handle, text, size.value, ctypes.byref(size)))
    found: dict[str, Any] = json.loads(text.value)
    return found
