# SPDX-License-Identifier: BSD-3-Clause
"""Single messages, and gathers that are set up once and run often."""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple, Sequence

from mpi4py import MPI

from . import _library as c
from ._regions import Datatypes, agree, entries, in_c, is_place, region_of


class Status(NamedTuple):
    """Describes a message that was received.

    >>> import halocline
    >>> halocline.Status(source=1, tag=7, bytes=80).bytes
    80
    """

    source: int
    tag: int
    bytes: int


class Request:
    """Represents a message under way. Messages.isend() and Messages.irecv() make it.

    A request that is dropped goes on. The engine waits for it when it is freed.

    >>> import halocline
    >>> import numpy as np
    >>> from mpi4py import MPI
    >>> with halocline.Messages(MPI.COMM_SELF) as messages:
    ...     request = messages.irecv(np.zeros(2), source=0)
    ...     messages.send(np.ones(2), destination=0)
    ...     print(request.wait())
    Status(source=0, tag=0, bytes=16)
    """

    __slots__ = ("_engine", "_handle", "_owner", "_status")

    def __init__(self, engine: Messages, handle: ctypes.c_void_p, owner: Any) -> None:
        self._engine, self._handle, self._owner = engine, handle, owner
        self._status: Status | None = None

    def wait(self) -> Status | None:
        """Waits until the message is complete. Returns its status, or None for one that was sent.

        A second call returns the same.

        >>> import halocline
        >>> import numpy as np
        >>> from mpi4py import MPI
        >>> with halocline.Messages(MPI.COMM_SELF) as messages:
        ...     request = messages.isend(np.ones(2), destination=0)
        ...     status = messages.recv(np.zeros(2))
        ...     request.wait()
        """
        if self._handle.value is not None:
            told = c.Status(-1, -1, -1)
            c.check(c.function("wait")(ctypes.byref(self._handle), ctypes.byref(told)))
            if self._is_receive():
                self._status = Status(told.source, told.tag, told.bytes)
            self._owner = None
        return self._status

    def _is_receive(self) -> bool:
        return isinstance(self, _Receive)

    def __del__(self) -> None:
        if self._handle.value is not None:
            self._engine._owners.append((self._handle, self._owner))


class _Receive(Request):
    __slots__ = ()


class Messages(c.Handle):
    """Sends and receives single messages between the ranks of `comm`, which is duplicated. Only its own calls match
    its messages.

    Every call makes progress for all messages of the engine, and nothing else does. To create and to free it is
    collective. `data` is what a Message takes.

    >>> import halocline
    >>> import numpy as np
    >>> from mpi4py import MPI
    >>> with halocline.Messages(MPI.COMM_SELF) as messages:
    ...     u, v = np.ones((3, 3)), np.zeros(3)
    ...     request = messages.isend(u[:, 1], destination=0)
    ...     status = messages.recv(v)
    ...     request.wait()
    >>> v.tolist()
    [1.0, 1.0, 1.0]
    """

    __slots__ = ()
    _kind = "an engine of messages"

    def __init__(self, comm: MPI.Comm) -> None:
        self._begin()
        agree(comm, lambda: None)
        c.check(c.function("messages_create")(c.handle_of(comm), ctypes.byref(self._handle)))

    def _call(self, name: str, data: Any, partner: int, tag: int, *more: Any) -> Any:
        if self._handle.value is None:
            raise c.InputError("the engine of messages was freed: make a new one")
        receives = name.endswith("recv")
        to, tag = c.whole(partner, "source" if receives else "destination"), c.whole(tag, "tag")
        with Datatypes() as types:
            region = region_of(data, types, written=receives)
            c.check(c.function(name)(self._handle, region.address, region.number, c.handle_of(region.datatype), to, tag, *more))
            return region.owner

    def send(self, data: Any, destination: int, tag: int = 0) -> None:
        """Sends a message. Returns when the array may be written again.

        >>> import halocline
        >>> import numpy as np
        >>> from mpi4py import MPI
        >>> with halocline.Messages(MPI.COMM_SELF) as messages:
        ...     request = messages.irecv(np.zeros(2))
        ...     messages.send(np.ones(2), destination=0)
        ...     status = request.wait()
        """
        self._call("send", data, destination, tag)

    def recv(self, data: Any, source: int = MPI.ANY_SOURCE, tag: int = MPI.ANY_TAG) -> Status:
        """Receives a message that is at most as long as `data`. Returns what arrived.

        >>> import halocline
        >>> import numpy as np
        >>> from mpi4py import MPI
        >>> with halocline.Messages(MPI.COMM_SELF) as messages:
        ...     request = messages.isend(np.ones(2), destination=0, tag=5)
        ...     print(messages.recv(np.zeros(4)))
        ...     request.wait()
        Status(source=0, tag=5, bytes=16)
        """
        told = c.Status()
        self._call("recv", data, source, tag, ctypes.byref(told))
        return Status(told.source, told.tag, told.bytes)

    def isend(self, data: Any, destination: int, tag: int = 0) -> Request:
        """Starts to send. The array must not be written before the request is waited for.

        >>> import halocline
        >>> import numpy as np
        >>> from mpi4py import MPI
        >>> with halocline.Messages(MPI.COMM_SELF) as messages:
        ...     request = messages.isend(np.ones(2), destination=0)
        ...     status = messages.recv(np.zeros(2))
        ...     request.wait()
        """
        handle = ctypes.c_void_p()
        return Request(self, handle, self._call("isend", data, destination, tag, ctypes.byref(handle)))

    def irecv(self, data: Any, source: int = MPI.ANY_SOURCE, tag: int = MPI.ANY_TAG) -> Request:
        """Starts to receive. The array must not be used before the request is waited for.

        >>> import halocline
        >>> import numpy as np
        >>> from mpi4py import MPI
        >>> with halocline.Messages(MPI.COMM_SELF) as messages:
        ...     request = messages.irecv(np.zeros(2), tag=3)
        ...     messages.send(np.ones(2), destination=0, tag=3)
        ...     print(request.wait().tag)
        3
        """
        handle = ctypes.c_void_p()
        return _Receive(self, handle, self._call("irecv", data, source, tag, ctypes.byref(handle)))

    def free(self) -> None:
        """Frees the engine. Requests that the program still has must be complete. Waits for those that it dropped.
        Collective. A second call does nothing.

        >>> import halocline
        >>> from mpi4py import MPI
        >>> messages = halocline.Messages(MPI.COMM_SELF)
        >>> messages.free()
        """
        error = None
        while self._owners:  # of requests that were dropped
            request, _owner = self._owners.pop()
            try:
                c.check(c.function("wait")(ctypes.byref(request), None))
            except c.Error as why:  # of this rank alone: its partners free the engine
                error = error or why
        c.check(c.function("messages_free")(ctypes.byref(self._handle)))
        if error:
            raise error


class _Collective(c.Handle):
    __slots__ = ()

    def _make(self, name: str, comm: MPI.Comm, data: Any, all_data: Any, counts: Sequence[int] | None, root: int | None) -> None:
        self._begin()
        with Datatypes() as types:

            def arguments() -> tuple[Any, ...]:
                holds_all = root is None or comm.rank == c.whole(root, "root")
                place = all_data[0] if isinstance(all_data, (list, tuple)) and all_data else all_data
                if holds_all and (place is None or place is MPI.IN_PLACE or is_place(all_data)):
                    raise c.InputError("the root has no array for the blocks of all ranks: give one there")
                own = region_of(data, types, written=name == "scatter", by_rows=True, on_host=True)
                everything = region_of(all_data, types, written=name != "scatter", by_rows=True, on_host=True) if holds_all else None
                blocks = None
                if everything:
                    blocks = _counts(counts, everything.number, comm.size, _is_of_each(all_data))
                    if isinstance(all_data, (list, tuple)):  # the blocks of all ranks must be in the array, too
                        region_of([all_data[0], sum(blocks), all_data[-1]], types, written=name != "scatter")
                self._owners += [own.owner, everything and everything.owner]
                return own, everything, blocks

            own, everything, blocks = agree(comm, arguments)
            before = (c.handle_of(comm), own.address, own.number, c.handle_of(own.datatype))
            whole = (everything.address, blocks, c.handle_of(everything.datatype)) if everything else (None, None, c.handle_of(MPI.BYTE))
            behind = () if root is None else (root,)
            c.check(c.function(name + "_create")(*before, *whole, *behind, ctypes.byref(self._handle)))

    def run(self) -> None:
        """Runs it with what the arrays hold now. Collective.

        >>> import halocline
        >>> import numpy as np
        >>> from mpi4py import MPI
        >>> with halocline.Allgather(MPI.COMM_SELF, np.ones(2), np.zeros(2)) as allgather:
        ...     allgather.run()
        """
        if self._handle.value is None:
            raise c.InputError("it was freed: make a new one")
        c.check(c.function("run")(self._handle))

    def free(self) -> None:
        """Frees it. A second call does nothing. Collective.

        >>> import halocline
        >>> import numpy as np
        >>> from mpi4py import MPI
        >>> allgather = halocline.Allgather(MPI.COMM_SELF, np.ones(2), np.zeros(2))
        >>> allgather.free()
        """
        c.check(c.function("collective_free")(ctypes.byref(self._handle)))
        self._owners.clear()


def _is_of_each(data: Any) -> bool:
    """Tells if the number of instances is that of each rank: it was given, or is that of a datatype of its own."""
    return isinstance(data, (list, tuple)) and (len(data) == 3 or not data[-1].is_predefined)


def _counts(counts: Any, number: int, ranks: int, is_of_each: bool) -> Any:
    if counts is None:
        if is_of_each:
            counts = [number] * ranks
        elif number % ranks != 0:
            raise c.InputError(f"{number} rows are not the same number for {ranks} ranks: give `counts`")
        else:
            counts = [number // ranks] * ranks
    given = entries(counts)
    if given is None:
        raise c.InputError(f"counts is a {type(counts).__name__}: give a number for each rank")
    numbers = [c.whole(count, "a count", 64) for count in given]
    if len(numbers) != ranks or min(numbers) < 0:
        raise c.InputError(f"the counts {numbers} are no counts for {ranks} ranks: give one of 0 or more for each rank")
    if not is_of_each and sum(numbers) > number:
        raise c.InputError(f"the counts {numbers} are more than the {number} rows of the array for all ranks: give smaller ones, or a larger array")
    return in_c(numbers, ctypes.c_int64)


class Gather(_Collective):
    """Gathers the blocks of all ranks in an array of the root, again and again.

    A row is what the first index of an array selects. Rank i sends the rows of its `data`, and they become the next
    counts[i] rows of `root_data`. By default, all ranks send the same number of rows. `data` may be MPI.IN_PLACE at
    the root. `[array, count, datatype]` is allowed for both; then counts are instances of the datatype,
    and `count` is that of each rank.

    >>> import halocline
    >>> import numpy as np
    >>> from mpi4py import MPI
    >>> comm = MPI.COMM_WORLD
    >>> rows = np.zeros((2 * comm.size, 3)) if comm.rank == 0 else None
    >>> with halocline.Gather(comm, np.ones((2, 3)), rows) as gather:
    ...     gather.run()
    """

    __slots__ = ()
    _kind = "a gather"

    def __init__(self, comm: MPI.Comm, data: Any, root_data: Any = None, counts: Sequence[int] | None = None, root: int = 0) -> None:
        self._make("gather", comm, data, root_data, counts, root)


class Scatter(_Collective):
    """Scatters the rows of an array of the root, again and again. Rank i gets the next counts[i] rows in its `data`.

    Arguments are those of a Gather.

    >>> import halocline
    >>> import numpy as np
    >>> from mpi4py import MPI
    >>> comm, block = MPI.COMM_WORLD, np.zeros(2)
    >>> everything = np.arange(2 * comm.size) * 1.0 if comm.rank == 0 else None
    >>> with halocline.Scatter(comm, block, everything) as scatter:
    ...     scatter.run()
    >>> float(block[1] - block[0])
    1.0
    """

    __slots__ = ()
    _kind = "a scatter"

    def __init__(self, comm: MPI.Comm, data: Any, root_data: Any = None, counts: Sequence[int] | None = None, root: int = 0) -> None:
        self._make("scatter", comm, data, root_data, counts, root)


class Allgather(_Collective):
    """Gathers the blocks of all ranks in an array of each rank, again and again.

    Arguments are those of a Gather.

    >>> import halocline
    >>> import numpy as np
    >>> from mpi4py import MPI
    >>> comm = MPI.COMM_WORLD
    >>> everything = np.zeros(2 * comm.size)
    >>> with halocline.Allgather(comm, np.ones(2), everything) as allgather:
    ...     allgather.run()
    >>> bool(everything.all())
    True
    """

    __slots__ = ()
    _kind = "an allgather"

    def __init__(self, comm: MPI.Comm, data: Any, all_data: Any, counts: Sequence[int] | None = None) -> None:
        self._make("allgather", comm, data, all_data, counts, None)
