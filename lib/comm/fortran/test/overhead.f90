! SPDX-License-Identifier: BSD-3-Clause
!> Measures what the module adds to start() and finish() of a plan: a rank sends 8 bytes to itself, in
!! turns by the module and by the functions of halocline.h. At most 100 ns more are meant; the
!! program only reports.
!!
!!     mpirun -n 1 taskset -c 1 build/release/lib/comm/fortran/test/mpi_f08/comm_fortran_overhead
program overhead
  use, intrinsic :: iso_c_binding, only: c_int, c_null_ptr, c_ptr
  use, intrinsic :: iso_fortran_env, only: real64
  use mpi_f08
  use halocline
  implicit none
  integer, parameter :: times = 20000, turns = 101
  interface
    integer(c_int) function c_start(plan) bind(c, name='halocline_start')
      import :: c_int, c_ptr
      type(c_ptr), value :: plan
    end function
    integer(c_int) function c_finish(plan) bind(c, name='halocline_finish')
      import :: c_int, c_ptr
      type(c_ptr), value :: plan
    end function
  end interface
  type(halocline_plan) :: plan
  type(c_ptr) :: handle
  real(real64), asynchronous :: sent = 1, received = 0
  real(real64) :: begin, by_module(turns), by_c(turns)
  integer :: turn, i, code

  call MPI_Init()
  call halocline_plan_create(plan, MPI_COMM_SELF, 'p2p', &
    [halocline_message(sent, 1, MPI_DOUBLE_PRECISION, 0, 0)], &
    [halocline_message(received, 1, MPI_DOUBLE_PRECISION, 0, 0)])
  handle = transfer(plan, c_null_ptr) ! the plan's only component
  code = 0
  do turn = 1, turns
    begin = MPI_Wtime()
    do i = 1, times
      call plan%start()
      call plan%finish()
    end do
    by_module(turn) = (MPI_Wtime() - begin) / times
    begin = MPI_Wtime()
    do i = 1, times
      code = ior(code, ior(c_start(handle), c_finish(handle)))
    end do
    by_c(turn) = (MPI_Wtime() - begin) / times
  end do
  if (code /= 0 .or. abs(received - sent) > 0) error stop 'overhead: the exchange failed'
  ! The fastest turns say what the code takes, also on a machine that does other things.
  print '(2(a, f7.1), a)', 'C ', 1e9 * minval(by_c), ' ns, Fortran ', 1e9 * minval(by_module), ' ns'
  print '(a, f6.1, a)', 'Fortran adds ', 1e9 * (minval(by_module) - minval(by_c)), ' ns'
  call plan%free()
  call MPI_Finalize()
end program
