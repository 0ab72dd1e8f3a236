! SPDX-License-Identifier: BSD-3-Clause
! Does the same as pack_halo.c in Fortran, with fewer parts. Exchanges by mpi_isend and, in turns, by pmpi_isend, which leaves out
! a library in front of MPI. It is an ordinary MPI program that knows nothing of Halocline.
!
!   mpifort -O2 pack_halo.f90 -o pack_halo_f
!   mpirun -n 2 pack_halo_f
!   mpirun -n 2 -x LD_PRELOAD=$PWD/build/release/lib/libhalocline_mpi.so pack_halo_f
program pack_halo
  use mpi
  implicit none
  integer, parameter :: n = 128, radius = 3, stored = n + 2 * radius, times = 200
  character(len=26), parameter :: names(4) = [character(len=26) :: 'x face, rows of 24 bytes', 'y face, rows of 1 KiB', &
                                              'edge along z', 'corner']
  integer, parameter :: boxes(3, 4) = reshape([radius, n, n, n, radius, n, radius, radius, n, radius, radius, radius], [3, 4])
  double precision, allocatable :: field(:, :, :), ghost(:, :, :)
  character, allocatable :: packed(:)
  double precision :: pack(times), unpack(times), exchange(times, 2), start, sums(2)
  integer, parameter :: by_pmpi = 1, by_mpi = 2
  integer :: rank, ranks, next, previous, error, part, type, bytes, position, i, way, wrong, requests(2)

  call mpi_init(error)
  call mpi_comm_rank(mpi_comm_world, rank, error)
  call mpi_comm_size(mpi_comm_world, ranks, error)
  next = mod(rank + 1, ranks)
  previous = mod(rank + ranks - 1, ranks)
  allocate (field(stored, stored, stored), ghost(stored, stored, stored))
  field = reshape([(i + 0.25d0 * rank, i=1, stored**3)], [stored, stored, stored])
  wrong = 0
  sums = 0
  if (rank == 0) print '(a26, a10, a11, a13, a15, a19)', 'part'//repeat(' ', 22), 'bytes', 'pack, us', &
    'unpack, us', 'exchange, us', 'x as fast as PMPI'
  do part = 1, size(names)
    call mpi_type_create_subarray(3, [stored, stored, stored], boxes(:, part), [radius, radius, radius], mpi_order_fortran, &
                                  mpi_double_precision, type, error)
    call mpi_type_commit(type, error)
    call mpi_pack_size(1, type, mpi_comm_world, bytes, error)
    allocate (packed(bytes))
    ghost = -1
    do i = 1, times
      start = mpi_wtime()
      position = 0
      call mpi_pack(field, 1, type, packed, bytes, position, mpi_comm_world, error)
      pack(i) = mpi_wtime() - start
      start = mpi_wtime()
      position = 0
      call mpi_unpack(packed, bytes, position, ghost, 1, type, mpi_comm_world, error)
      unpack(i) = mpi_wtime() - start
    end do
    wrong = wrong + count(ghost /= -1 .and. ghost /= field) + abs(count(ghost /= -1) - product(boxes(:, part)))
    do i = 1, times
      do way = by_pmpi, by_mpi
        if (i == times) ghost = -1
        call mpi_barrier(mpi_comm_world, error)
        start = mpi_wtime()
        if (way == by_pmpi) then
          call pmpi_irecv(ghost, 1, type, previous, 0, mpi_comm_world, requests(1), error)
          call pmpi_isend(field, 1, type, next, 0, mpi_comm_world, requests(2), error)
          call pmpi_waitall(2, requests, mpi_statuses_ignore, error)
        else
          call mpi_irecv(ghost, 1, type, previous, 0, mpi_comm_world, requests(1), error)
          call mpi_isend(field, 1, type, next, 0, mpi_comm_world, requests(2), error)
          call mpi_waitall(2, requests, mpi_statuses_ignore, error)
        end if
        exchange(i, way) = mpi_wtime() - start
        if (i < times) cycle
        wrong = wrong + count(ghost /= -1 .and. ghost /= field + 0.25d0 * (previous - rank)) + &
          abs(count(ghost /= -1) - product(boxes(:, part)))
        sums(way) = sums(way) + sum(ghost, ghost /= -1)
      end do
    end do
    if (rank == 0) print '(a26, i10, f11.2, f13.2, f15.2, f19.2)', names(part), position, 1d6 * median(pack), &
      1d6 * median(unpack), 1d6 * median(exchange(:, by_mpi)), median(exchange(:, by_pmpi)) / median(exchange(:, by_mpi))
    call mpi_type_free(type, error)
    deallocate (packed)
  end do
  call mpi_allreduce(mpi_in_place, wrong, 1, mpi_integer, mpi_sum, mpi_comm_world, error)
  if (sums(by_pmpi) /= sums(by_mpi)) wrong = wrong + 1
  if (rank == 0) print '(a, f0.2, a, f0.2, 2a)', 'checksum ', sums(by_mpi), ', by PMPI ', sums(by_pmpi), ': ', &
    trim(merge('all points are right ', 'SOME POINTS ARE WRONG', wrong == 0))
  call mpi_finalize(error)
  if (wrong /= 0) stop 1

contains

  double precision function median(values)
    double precision, intent(in) :: values(times)
    double precision :: sorted(times), value
    integer :: i, at
    sorted = values
    do i = 2, times
      value = sorted(i)
      at = i - 1
      do while (at > 0)
        if (sorted(at) <= value) exit
        sorted(at + 1) = sorted(at)
        at = at - 1
      end do
      sorted(at + 1) = value
    end do
    median = sorted(times / 2 + 1)
  end function

end program
