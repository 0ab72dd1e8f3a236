# SPDX-License-Identifier: BSD-3-Clause
"""Turns what users have, such as arrays and views, into addresses, counts and MPI datatypes."""

from __future__ import annotations

import ctypes
import math
from typing import Any, Callable, NamedTuple, Sequence, TypeVar

import numpy as np
from mpi4py import MPI

from ._library import InputError, whole

T = TypeVar("T")
MOST = 2**31 - 1  # largest number that constructors of datatypes take in every MPI
BASIC = {
    "b1": MPI.C_BOOL, "i1": MPI.INT8_T, "i2": MPI.INT16_T, "i4": MPI.INT32_T, "i8": MPI.INT64_T, "u1": MPI.UINT8_T,
    "u2": MPI.UINT16_T, "u4": MPI.UINT32_T, "u8": MPI.UINT64_T, "f4": MPI.FLOAT, "f8": MPI.DOUBLE,
    "c8": MPI.C_FLOAT_COMPLEX, "c16": MPI.C_DOUBLE_COMPLEX,
}  # fmt: skip


def agree(comm: MPI.Comm, local: Callable[[], T]) -> T:
    """Returns `local()`. Raises InputError on all ranks of `comm` if it raises on one of them."""
    if not isinstance(comm, MPI.Comm):
        raise InputError(f"the communicator is a {type(comm).__name__}: give one of mpi4py, such as MPI.COMM_WORLD")
    if comm == MPI.COMM_NULL:
        raise InputError("the communicator is MPI.COMM_NULL: give one of all ranks")
    if comm.Is_inter():
        raise InputError("the communicator has two groups: merge them with its Merge()")
    error: InputError | None = None
    try:
        out = local()
    except InputError as why:
        error = why
    except Exception as why:  # whatever it is, the other ranks must not wait
        error = InputError(f"an argument cannot be used ({why}): give what help() of the function names")
        error.__cause__ = why
    first = np.array([comm.rank if error else comm.size], "i4")
    comm.Allreduce(MPI.IN_PLACE, first, MPI.MIN)
    if first[0] < comm.size:
        text = comm.bcast(str(error), root=int(first[0]))
        raise InputError(text if comm.size == 1 else f"rank {first[0]}: {text}") from error
    return out


class Memory(NamedTuple):
    """Describes an array: any object that a program keeps numbers in."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]
    writable: bool
    owner: Any  # keeps the memory alive
    bounds: tuple[int, int] | None  # first byte of the memory and the one behind it, if they are known
    on_device: bool = False  # the host may not reach it


def dense(shape: Sequence[int], size: int, order: str = "C") -> tuple[int, ...]:
    """Returns the strides of an array without gaps, whose points have `size` bytes."""
    out = []
    for length in reversed(shape) if order == "C" else shape:
        out.append(size)
        size *= length
    return tuple(reversed(out) if order == "C" else out)


_ON_HOST = (1, 3, 11, 13)  # devices of DLPack: kDLCPU, kDLCUDAHost, kDLROCMHost, kDLCUDAManaged


class _DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]  # fmt: skip


def _of_dlpack(data: Any) -> Memory:
    # The capsule owns the memory until somebody takes it over, which nobody does here.
    try:
        capsule = data.__dlpack__()
    except BufferError as why:  # such as for an array that cannot be written
        raise InputError(f"a {type(data).__name__} gives no memory by DLPack ({why}): give an array of numbers that can be written") from why
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    tensor = _DLTensor.from_address(pointer_of(capsule, b"dltensor"))
    itemsize = tensor.bits * tensor.lanes // 8
    shape = tuple(tensor.shape[: tensor.ndim])
    strides = tuple(step * itemsize for step in tensor.strides[: tensor.ndim]) if tensor.strides else dense(shape, itemsize)
    kind = {0: "i", 1: "u", 2: "f", 5: "c", 6: "b"}.get(tensor.code, "V")
    dtype = np.dtype(f"{kind}{itemsize}") if f"{kind}{itemsize}" in BASIC else np.dtype(f"V{itemsize}")
    address = (tensor.data or 0) + tensor.byte_offset
    return Memory(address, shape, strides, dtype, True, capsule, None, tensor.device_type not in _ON_HOST)


def _of_cuda(data: Any) -> Memory:
    told = data.__cuda_array_interface__
    dtype, shape = np.dtype(told["typestr"]), tuple(told["shape"])
    strides = told.get("strides") or dense(shape, dtype.itemsize)
    address, read_only = told["data"]
    return Memory(address, shape, tuple(strides), dtype, not read_only, data, None, on_device=True)


def _bounds(array: np.ndarray[Any, Any]) -> tuple[int, int]:
    reach = [(length - 1) * stride for length, stride in zip(array.shape, array.strides)]
    if array.size == 0:
        return array.ctypes.data, array.ctypes.data
    low = array.ctypes.data + sum(min(step, 0) for step in reach)
    return low, array.ctypes.data + sum(max(step, 0) for step in reach) + array.itemsize


def memory_of(data: Any) -> Memory:
    """Returns the memory of an array: one of numpy, any object with the buffer protocol, or one that has DLPack or
    the CUDA array interface."""
    if isinstance(data, np.generic):
        raise InputError(f"a {type(data).__name__} is a copy of one number: give a view, such as u[3:4] in place of u[3]")
    if not isinstance(data, np.ndarray):
        if hasattr(data, "__cuda_array_interface__"):
            return _of_cuda(data)
        try:
            data = np.asarray(memoryview(data))
        except TypeError:
            if hasattr(data, "__dlpack__"):
                return _of_dlpack(data)
            raise InputError(f"a {type(data).__name__} is no array: give one of numpy, or an object with the buffer protocol or DLPack") from None
    if data.dtype.hasobject:
        raise InputError("the array holds Python objects: give one of numbers")
    whole = data
    while isinstance(whole.base, np.ndarray):
        whole = whole.base
    return Memory(data.ctypes.data, data.shape, data.strides, data.dtype, data.flags.writeable, data, _bounds(whole))


class Datatypes:
    """Holds datatypes until the library has read them."""

    def __init__(self) -> None:
        self.made: list[MPI.Datatype] = []

    def __enter__(self) -> Datatypes:
        return self

    def __exit__(self, *_: object) -> None:
        for datatype in self.made:
            datatype.Free()

    def keep(self, datatype: MPI.Datatype) -> MPI.Datatype:
        self.made.append(datatype)
        return datatype

    def element(self, dtype: np.dtype[Any]) -> MPI.Datatype:
        """Returns the MPI datatype of one element. Elements without one of their own are bytes to MPI."""
        if dtype.isnative and f"{dtype.kind}{dtype.itemsize}" in BASIC:
            return BASIC[f"{dtype.kind}{dtype.itemsize}"]
        return self.keep(MPI.BYTE.Create_contiguous(dtype.itemsize))

    def strided(self, memory: Memory) -> tuple[MPI.Datatype, int]:
        """Returns datatype and count of all elements of a view, in the order of its axes."""
        element = self.element(memory.dtype)
        if 0 in memory.shape:
            return element, 0
        loops: list[tuple[int, int]] = []  # the innermost first
        for length, stride in zip(reversed(memory.shape), reversed(memory.strides)):
            if loops and stride == loops[-1][0] * loops[-1][1]:
                loops[-1] = length * loops[-1][0], loops[-1][1]
            elif length != 1:
                loops.append((length, stride))
        if not loops:
            return element, 1
        if len(loops) == 1 and loops[0][1] == memory.dtype.itemsize:
            return element, loops[0][0]
        for length, stride in loops:
            if length > MOST:
                raise InputError(f"a view with gaps has {length} points in a row: divide it into views of at most {MOST}")
            element = self.keep(element.Create_hvector(length, 1, stride))
        return element, 1

    def rows(self, memory: Memory) -> tuple[MPI.Datatype, int]:
        """Returns the datatype of a row, which is what the first index selects, and the number of rows."""
        if not memory.shape:
            return self.element(memory.dtype), 1
        row, count = self.strided(memory._replace(shape=memory.shape[1:], strides=memory.strides[1:]))
        if count != 1:
            row = self.keep(row.Create_contiguous(count))
        if row.Get_extent() != (0, memory.strides[0]):
            row = self.keep(row.Create_resized(0, memory.strides[0]))
        return row, memory.shape[0]


class Region(NamedTuple):
    """Describes what a message sends or fills."""

    address: int | None
    number: int  # of instances of the datatype
    datatype: MPI.Datatype
    owner: Any


def is_place(data: Any) -> bool:
    """Tells if `data` is an address that MPI defines: MPI.BOTTOM or MPI.IN_PLACE."""
    return data is MPI.BOTTOM or data is MPI.IN_PLACE


def _check_reach(memory: Memory, count: int, datatype: MPI.Datatype) -> None:
    if memory.bounds is None or count <= 0 or datatype.Get_size() == 0:
        return
    (_, extent), (begin, length) = datatype.Get_extent(), datatype.Get_true_extent()
    others = (count - 1) * extent
    first, end = memory.address + begin + min(others, 0), memory.address + begin + length + max(others, 0)
    if first < memory.bounds[0] or end > memory.bounds[1]:
        low, high = first - memory.bounds[0], end - memory.bounds[0]
        raise InputError(f"the datatype reaches from byte {low} to {high} of an array of {memory.bounds[1] - memory.bounds[0]} bytes: give the whole array, or a smaller count")


def region_of(data: Any, types: Datatypes, written: bool, by_rows: bool = False, on_host: bool = False) -> Region:
    """Returns the region of an array or a view, or of [array, datatype] or [array, count, datatype] as mpi4py has
    them. `by_rows`: counts the rows of an array, and allows MPI.IN_PLACE. `on_host`: refuses memory of a device."""
    if data is MPI.IN_PLACE and by_rows:
        return Region(int(data), 0, MPI.BYTE, None)
    if is_place(data):
        raise InputError("an address of MPI alone does not say what is exchanged: give an array, or [MPI.BOTTOM, count, datatype]")
    if not isinstance(data, (list, tuple)):
        memory = memory_of(data)
        datatype, count = types.rows(memory) if by_rows else types.strided(memory)
    else:
        if len(data) not in (2, 3) or not isinstance(data[-1], MPI.Datatype):
            raise InputError("a list says what to exchange as [array, datatype] or [array, count, datatype]: give one of these")
        array, datatype = data[0], data[-1]
        if datatype == MPI.DATATYPE_NULL:
            raise InputError("the datatype is MPI.DATATYPE_NULL: give one that is made")
        if array is MPI.IN_PLACE and not by_rows:
            raise InputError("MPI.IN_PLACE is for gathers and scatters: give an array, or MPI.BOTTOM")
        if is_place(array):
            return Region(int(array), whole(data[1], "the count", 64) if len(data) == 3 else 1, datatype, None)
        memory = memory_of(array)
        if len(data) == 3:
            count = whole(data[1], "the count", 64)
        else:
            count = math.prod(memory.shape) * memory.dtype.itemsize // max(datatype.Get_size(), 1) if datatype.is_predefined else 1
        _check_reach(memory, count, datatype)
    if count < 0:
        raise InputError(f"the count is {count}: give 0 or more")
    if on_host and memory.on_device:
        raise InputError("the array is in the memory of a device, which the host cannot address: copy it to an array of numpy")
    if written and not memory.writable:
        raise InputError("an array that gets data is read-only: give one that can be written")
    return Region(memory.address, count, datatype, memory.owner)


def entries(value: Any) -> list[Any] | None:
    """Returns the entries of a list, a tuple or an array; None for a single number."""
    try:
        return list(value)
    except TypeError:
        return None


def in_c(values: Sequence[Any], kind: Any) -> Any:
    """Returns an array of C."""
    return (kind * len(values))(*values)
