# SPDX-License-Identifier: BSD-3-Clause
"""Loads libhalocline.so and declares what halocline.h declares.

The functions are called by ctypes. So the package is compiled for no Python and for no MPI, and a call takes a third
of a microsecond. test/test_declarations.py compares the declarations with the header."""

from __future__ import annotations

import atexit
import ctypes
import operator
import os
import pathlib
import sys
import warnings
import weakref
from ctypes import POINTER, c_char_p, c_double, c_int, c_int64, c_size_t, c_void_p
from typing import Any, NoReturn, TypeVar

from mpi4py import MPI

VERSION = 100  # HALOCLINE_VERSION of the header
MAX_AXES = 4

# Handles of MPI are numbers in MPICH and its relatives, and pointers in Open MPI.
HANDLE: Any = c_int if MPI._sizeof(MPI.Comm) == ctypes.sizeof(c_int) else c_void_p


class Error(RuntimeError):
    """Reports what failed and what to do, in one sentence.

    `code` is the number in halocline.h: 3 if memory, MPI or a device failed, 4 for a fault of the library.

    >>> import halocline
    >>> issubclass(halocline.InputError, halocline.Error)
    True
    """

    code = 4

    def __init__(self, text: str, code: int | None = None) -> None:
        super().__init__(text)
        if code is not None:
            self.code = code


class InputError(Error, ValueError):
    """Reports an argument that cannot be used.

    Collective functions raise it on all ranks, also if one rank alone has the wrong argument.

    >>> import halocline
    >>> from mpi4py import MPI
    >>> try:
    ...     halocline.Plan(MPI.COMM_WORLD, method="fastest")
    ... except halocline.InputError as error:
    ...     print(str(error)[:24])
    unknown method (fastest)
    """

    code = 2


class Message(ctypes.Structure):
    _fields_ = [("buffer", c_void_p), ("count", c_int64), ("datatype", HANDLE), ("partner", c_int), ("tag", c_int), ("round", c_int)]


class PlanOptions(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("chunk_bytes", c_int64), ("model", c_char_p)]


class PlanInfo(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("method", c_char_p), ("transfer", c_char_p), ("predicted_seconds", c_double),
                ("bytes_to_others", c_int64), ("bytes_to_self", c_int64), ("messages", c_int64)]  # fmt: skip


class Field(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("buffer", c_void_p), ("swapped", c_void_p), ("element", HANDLE), ("order", c_int),
                ("owned", c_int64 * MAX_AXES), ("low", c_int64 * MAX_AXES), ("high", c_int64 * MAX_AXES)]  # fmt: skip


class Status(ctypes.Structure):
    _fields_ = [("source", c_int), ("tag", c_int), ("bytes", c_int64)]


HANDLES = POINTER(c_void_p)  # the address of a handle of the library
# Maps the name of each function to its arguments. All return a code, but for version and last_error.
FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "version": (),
    "last_error": (),
    "alloc": (HANDLE, c_int64, HANDLES),
    "free": (HANDLES,),
    "plan_create": (HANDLE, c_char_p, c_int, POINTER(Message), c_int, POINTER(Message), POINTER(PlanOptions), HANDLES),
    "start": (c_void_p,),
    "progress": (c_void_p,),
    "finish": (c_void_p,),
    "test": (c_void_p, POINTER(c_int)),
    "plan_free": (HANDLES,),
    "plan_inform": (c_void_p, POINTER(PlanInfo)),
    "halo_create": (HANDLE, c_char_p, c_int, POINTER(Field), c_int, POINTER(PlanOptions), HANDLES),
    "swap": (c_void_p,),
    "messages_create": (HANDLE, HANDLES),
    "messages_free": (HANDLES,),
    "send": (c_void_p, c_void_p, c_int64, HANDLE, c_int, c_int),
    "recv": (c_void_p, c_void_p, c_int64, HANDLE, c_int, c_int, POINTER(Status)),
    "isend": (c_void_p, c_void_p, c_int64, HANDLE, c_int, c_int, HANDLES),
    "irecv": (c_void_p, c_void_p, c_int64, HANDLE, c_int, c_int, HANDLES),
    "wait": (HANDLES, POINTER(Status)),
    "gather_create": (HANDLE, c_void_p, c_int64, HANDLE, c_void_p, POINTER(c_int64), HANDLE, c_int, HANDLES),
    "scatter_create": (HANDLE, c_void_p, c_int64, HANDLE, c_void_p, POINTER(c_int64), HANDLE, c_int, HANDLES),
    "allgather_create": (HANDLE, c_void_p, c_int64, HANDLE, c_void_p, POINTER(c_int64), HANDLE, HANDLES),
    "run": (c_void_p,),
    "collective_free": (HANDLES,),
    "packed_bytes": (c_int64, HANDLE, POINTER(c_int64)),
    "pack": (c_void_p, c_int64, HANDLE, c_void_p, c_int64, POINTER(c_int64)),
    "unpack": (c_void_p, c_int64, POINTER(c_int64), c_void_p, c_int64, HANDLE),
    "describe": (HANDLE, c_void_p, c_int64, POINTER(c_int64)),
}


def load() -> ctypes.CDLL:
    """Loads the library of HALOCLINE_LIBRARY, else that of the package. Raises ImportError with a remedy if it
    cannot be used with the MPI of mpi4py."""
    path = os.environ.get("HALOCLINE_LIBRARY") or str(pathlib.Path(__file__).with_name("libhalocline.so"))
    remedy = "install the package again with the mpicc of that MPI first in PATH, or set HALOCLINE_LIBRARY"
    if os.environ.get("HALOCLINE_LIBRARY"):
        remedy = "unset HALOCLINE_LIBRARY, or give one that was built with that MPI"
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise ImportError(f"libhalocline cannot be loaded ({error}): {remedy}") from error
    # A library that is loaded finds its own MPI first, so its answer differs from that of another MPI.
    text, length = ctypes.create_string_buffer(1 << 13), c_int()
    try:
        library.MPI_Get_library_version(text, ctypes.byref(length))
        its_handle = c_void_p if hasattr(library, "ompi_mpi_comm_world") else c_int
        missing = [name for name in FUNCTIONS if not hasattr(library, "halocline_" + name)]
    except AttributeError as error:
        raise ImportError(f"{path} is no libhalocline ({error}): {remedy}") from error
    ours, theirs = (one.split("\0")[0].split("\n")[0].split(", package")[0].strip() for one in (text.value.decode(), MPI.Get_library_version()))
    if text.value.decode().strip("\0\n ") != MPI.Get_library_version().strip("\0\n "):
        raise ImportError(f"libhalocline uses {ours} and mpi4py uses {theirs}: {remedy}")
    if its_handle is not HANDLE:
        raise ImportError("mpi4py uses the standard ABI of MPI, and libhalocline the own ABI of the same MPI: set MPI4PY_MPIABI=mpich")
    if missing or library.halocline_version() < VERSION:
        raise ImportError(f"{path} is of an older version than the package: {remedy}")
    for name, arguments in FUNCTIONS.items():
        function = getattr(library, "halocline_" + name)
        function.argtypes, function.restype = arguments, c_int
    library.halocline_last_error.restype = c_char_p
    return library


LIBRARY = load()


def function(name: str) -> Any:
    return getattr(LIBRARY, "halocline_" + name)


_last_error = function("last_error")
# Maps names in the texts of the library to the names in Python. A text comes before its parts.
_NAMES = {
    "halocline_alloc() (comm::SharedWindow in C++)": "halocline.empty()",
    "halocline_wait() for each": "wait() of each",
    "halocline_plan_create()": "halocline.Plan()",
    "halocline_halo_create()": "halocline.Halo()",
    "halocline_messages_create()": "halocline.Messages()",
    "halocline_gather_create()": "halocline.Gather()",
    "halocline_alloc()": "halocline.empty()",
    "halocline_packed_bytes()": "halocline.packed_bytes()",
}


def in_python(text: str) -> str:
    """Returns a text of the library with the names that functions have in Python."""
    for theirs, ours in _NAMES.items():
        text = text.replace(theirs, ours)
    return text


def fail(code: int) -> NoReturn:
    """Raises the last error of the library."""
    text = in_python(_last_error().decode(errors="replace"))
    raise InputError(text) if code == InputError.code else Error(text, code)


def check(code: int) -> None:
    """Raises the last error of the library, unless `code` is that of success."""
    if code:
        fail(code)


def handle_of(mpi: MPI.Comm | MPI.Datatype) -> int | None:
    """Returns the C handle of an object of mpi4py."""
    value: int | None = HANDLE.from_address(MPI._addressof(mpi)).value
    return value


def whole(value: Any, name: str, bits: int = 32) -> int:
    """Returns an integer that C can hold. Raises InputError for others, since ctypes would cut them silently."""
    try:
        if isinstance(value, bool):  # an index to Python, but here a mistake
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise InputError(f"{name} is a {type(value).__name__}: give a whole number") from None
    if not -(1 << bits - 1) <= number < 1 << bits - 1:
        raise InputError(f"{name} is {number}: give a number of at most {bits} bits")
    return number


_living: weakref.WeakSet[Handle] = weakref.WeakSet()
# Holds what was used by objects that were dropped: MPI may still write there.
_abandoned: list[Any] = []
AnyHandle = TypeVar("AnyHandle", bound="Handle")


class Handle:
    """Holds a handle of the library and the arrays that it uses. Warns if nobody frees it."""

    __slots__ = ("_handle", "_owners", "__weakref__")
    _kind = "a handle"

    def _begin(self) -> None:
        self._handle = ctypes.c_void_p()
        self._owners: list[Any] = []
        _living.add(self)

    def free(self) -> None:
        raise NotImplementedError

    def __enter__(self: AnyHandle) -> AnyHandle:
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        # An error may be that of one rank. To free then would wait for ranks that do not come.
        if error is None:
            self.free()

    def _warn(self) -> None:
        warnings.warn(f"{self._kind} was not freed: call free(), or use `with`", ResourceWarning, stacklevel=3, source=self)

    def __del__(self) -> None:
        # Ranks collect garbage at different times, so nothing collective can happen here.
        if not sys.is_finalizing() and getattr(self, "_handle", None):
            _abandoned.append(self._owners)
            self._warn()


@atexit.register
def _warn_at_exit() -> None:
    # Later, when Python drops what is left, modules may be gone.
    for one in list(_living):
        if one._handle:
            one._warn()
