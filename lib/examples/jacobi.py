# SPDX-License-Identifier: BSD-3-Clause
"""Does Jacobi steps for Laplace's equation in a periodic box, once with Halocline and once with plain mpi4py.
Two arrays are swapped in each step. Prints one checksum, and how much faster the exchange was.

    mpirun -n 4 python3 jacobi.py [POINTS [STEPS]]"""

import sys
import time

import halocline
import numpy as np
from mpi4py import MPI

POINTS = int(sys.argv[1]) if len(sys.argv) > 1 else 256  # of a rank along each axis
STEPS = int(sys.argv[2]) if len(sys.argv) > 2 else 50


class ByMpi:
    """Exchanges the halo with subarrays of mpi4py: first along axis 0, then along axis 1 with the corners."""

    def __init__(self, cart, fields):
        self.cart, self.fields, self.now, self.rounds = cart, list(fields), 0, []
        stored = fields[0].shape
        for axis in range(2):
            faces = []
            for sign in (1, -1):
                source, target = cart.Shift(axis, sign)
                sent, received = (self.face(stored, axis, at) for at in ((-2, 0) if sign > 0 else (1, -1)))
                faces.append((source, target, sent, received))
            self.rounds.append(faces)

    @staticmethod
    def face(stored, axis, at):
        shape, start = list(stored), [0, 0]
        shape[axis], start[axis] = 1, at % stored[axis]
        return MPI.DOUBLE.Create_subarray(stored, shape, start).Commit()

    def exchange(self):
        u = self.fields[self.now]
        for tag, faces in enumerate(self.rounds):
            requests = []
            for side, (source, target, sent, received) in enumerate(faces):
                requests.append(self.cart.Irecv([u, 1, received], source, 2 * tag + side))
                requests.append(self.cart.Isend([u, 1, sent], target, 2 * tag + side))
            MPI.Request.Waitall(requests)

    def swap(self):
        self.now = 1 - self.now

    def free(self):
        for _, _, sent, received in (face for faces in self.rounds for face in faces):
            sent.Free()
            received.Free()


def solve(cart, fields, halo):
    """Returns the checksum after all steps and the seconds of the fastest exchange."""
    u, v = fields
    u[:] = (np.arange(u.size).reshape(u.shape) * 7919 + cart.rank * 104729) % 1000
    seconds = float("inf")
    for _ in range(STEPS):
        cart.Barrier()
        begin = time.perf_counter()
        halo.exchange()
        seconds = min(seconds, time.perf_counter() - begin)
        # The corners count, too, so that both ways must fill them.
        v[1:-1, 1:-1] = (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]) / 5
        v[1:-1, 1:-1] += (u[:-2, :-2] + u[:-2, 2:] + u[2:, :-2] + u[2:, 2:]) / 20
        u, v = v, u
        halo.swap()
    weights = 1 + np.add.outer(np.arange(POINTS), np.arange(POINTS)) % 7
    return cart.allreduce(float((u[1:-1, 1:-1] * weights).sum())), cart.allreduce(seconds, MPI.MAX)


def main():
    comm = MPI.COMM_WORLD
    cart = comm.Create_cart(MPI.Compute_dims(comm.size, 2), periods=[True, True])
    # Neighbours on the node reach these arrays, so that nothing is packed between them.
    fields = [halocline.empty(cart, (POINTS + 2, POINTS + 2)) for _ in range(2)]
    with halocline.Halo(cart, fields[0], widths=1, swapped=fields[1]) as halo:
        checksum, ours = solve(cart, fields, halo)
    twin_halo = ByMpi(cart, fields)
    twin, theirs = solve(cart, fields, twin_halo)
    twin_halo.free()
    if comm.rank == 0:
        same = "as" if checksum == twin else "NOT as"
        print(f"{comm.size} ranks, checksum {checksum!r} {same} by plain mpi4py, exchange {theirs / ours:.2f} x as fast as there")
    for field in fields:
        halocline.free(field)
    cart.Free()
    return int(checksum != twin)


if __name__ == "__main__":
    sys.exit(main())
