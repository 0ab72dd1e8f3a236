# SPDX-License-Identifier: BSD-3-Clause
"""Exchanges halos of numpy arrays and of all other arrays, between communicators and with datatypes of mpi4py.

lib/comm/python/README.md is the manual's page. All errors are exceptions below halocline.Error, and name a remedy.

>>> import halocline
>>> import numpy as np
>>> from mpi4py import MPI
>>> cart = MPI.COMM_WORLD.Create_cart([MPI.COMM_WORLD.size, 1], periods=[True, True])
>>> u = np.ones((6, 6))
>>> with halocline.Halo(cart, u, widths=1) as halo:
...     for step in range(3):
...         halo.exchange()
...         u[1:-1, 1:-1] = (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]) / 4
>>> cart.Free()
"""

from ._exchange import Halo, Message, Plan, PlanInfo
from ._library import Error, InputError, function as _function
from ._memory import empty, free, inspect, pack, packed_bytes, unpack
from ._messages import Allgather, Gather, Messages, Request, Scatter, Status
from ._records import read_records

__all__ = [
    "Allgather", "Error", "Gather", "Halo", "InputError", "Message", "Messages", "Plan", "PlanInfo", "Request", "Scatter",
    "Status", "empty", "free", "inspect", "pack", "packed_bytes", "read_records", "unpack",
]  # fmt: skip


def _version() -> str:
    number = int(_function("version")())
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"


__version__ = _version()  # of the library
