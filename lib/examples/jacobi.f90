! SPDX-License-Identifier: BSD-3-Clause
!> Solves Laplace's equation in a box by Jacobi steps, once with Halocline and once with plain MPI.
!! One side of the box is hot. Two arrays take turns.
!!   mpirun -n 4 jacobi_f [POINTS [STEPS]]
program jacobi
  use, intrinsic :: iso_fortran_env, only: real64
  use mpi_f08
  use halocline
  implicit none
  integer :: n = 512, steps = 50                !< owned points per axis of a rank
  integer :: ranks, me, grid(2) = 0, place(2), partner(2, 2)  !< below and above along each axis
  type(MPI_Comm) :: cart
  type(MPI_Datatype) :: column, row             !< owned points of a layer across axis 2, axis 1
  type(halocline_plan) :: plan
  real(real64), pointer, contiguous :: a(:, :) => null(), b(:, :) => null()
  real(real64) :: sums(2), seconds(2)

  call MPI_Init()
  call read_argument(1, n)
  call read_argument(2, steps)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  call MPI_Dims_create(ranks, 2, grid)
  call MPI_Cart_create(MPI_COMM_WORLD, 2, grid, [.false., .false.], .true., cart)
  call MPI_Comm_rank(cart, me)
  call MPI_Cart_coords(cart, me, 2, place)
  call MPI_Cart_shift(cart, 0, 1, partner(1, 1), partner(2, 1))
  call MPI_Cart_shift(cart, 1, 1, partner(1, 2), partner(2, 2))
  call MPI_Type_contiguous(n, MPI_DOUBLE_PRECISION, column)
  call MPI_Type_vector(n, 1, n + 2, MPI_DOUBLE_PRECISION, row)
  call MPI_Type_commit(column)
  call MPI_Type_commit(row)

  ! Without `ierror`, an error prints its reason and ends the program.
  call halocline_allocate(a, cart, [0, 0], [n + 1, n + 1])
  call halocline_allocate(b, cart, [0, 0], [n + 1, n + 1])
  call halocline_halo_create(plan, cart, 'auto', &
    [halocline_field(a, MPI_DOUBLE_PRECISION, [1, 1], swapped=b)], most_axes=1)
  call solve(.true., sums(1), seconds(1))
  call solve(.false., sums(2), seconds(2))
  if (me == 0) print '(i0, a, g0, 3a, f7.2, a)', ranks, ' ranks, checksum ', sums(1), ' ', &
    trim(merge('as    ', 'NOT as', same())), ' by plain MPI, exchange', seconds(2) / seconds(1), &
    ' x as fast as there'
  call plan%free()
  call halocline_deallocate(a)
  call halocline_deallocate(b)
  call MPI_Type_free(column)
  call MPI_Type_free(row)
  call MPI_Comm_free(cart)
  call MPI_Finalize()
  if (.not. same()) stop 1

contains

  logical function same()
    same = transfer(sums(1), 0_8) == transfer(sums(2), 0_8)
  end function

  subroutine read_argument(which, number)
    integer, intent(in) :: which
    integer, intent(inout) :: number
    character(20) :: text
    call get_command_argument(which, text)
    if (text /= '') read (text, *) number
  end subroutine

  subroutine exchange_by_mpi(u)
    real(real64), intent(inout), asynchronous :: u(0:, 0:)
    type(MPI_Request) :: requests(8)
    call MPI_Irecv(u(0, 1), 1, row, partner(1, 1), 1, cart, requests(1))
    call MPI_Irecv(u(n + 1, 1), 1, row, partner(2, 1), 2, cart, requests(2))
    call MPI_Irecv(u(1, 0), 1, column, partner(1, 2), 3, cart, requests(3))
    call MPI_Irecv(u(1, n + 1), 1, column, partner(2, 2), 4, cart, requests(4))
    call MPI_Isend(u(n, 1), 1, row, partner(2, 1), 1, cart, requests(5))
    call MPI_Isend(u(1, 1), 1, row, partner(1, 1), 2, cart, requests(6))
    call MPI_Isend(u(1, n), 1, column, partner(2, 2), 3, cart, requests(7))
    call MPI_Isend(u(1, 1), 1, column, partner(1, 2), 4, cart, requests(8))
    call MPI_Waitall(8, requests, MPI_STATUSES_IGNORE)
  end subroutine

  !> Returns the sum of all points after all steps, and the seconds of the fastest exchange.
  subroutine solve(by_halocline, total, time)
    logical, intent(in) :: by_halocline
    real(real64), intent(out) :: total, time
    real(real64), pointer, contiguous :: now(:, :), next(:, :), other(:, :)
    real(real64) :: begin
    integer :: step, x, y
    a = 0
    if (place(1) == 0) a(0, :) = 1              ! the hot side is a layer of ghosts
    b = a
    now => a
    next => b
    time = huge(time)
    do step = 1, steps
      call MPI_Barrier(cart)
      begin = MPI_Wtime()
      if (by_halocline) then
        call plan%start()
        call plan%finish()
        call plan%swap()
      else
        call exchange_by_mpi(now)
      end if
      time = min(time, MPI_Wtime() - begin)
      do y = 1, n
        do x = 1, n
          next(x, y) = (now(x - 1, y) + now(x + 1, y) + now(x, y - 1) + now(x, y + 1)) / 4
        end do
      end do
      other => now
      now => next
      next => other
    end do
    call MPI_Allreduce(sum(now(1:n, 1:n)), total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, cart)
  end subroutine
end program
