! SPDX-License-Identifier: BSD-3-Clause
!> Tests halocline.F90 as programs use it. Is compiled for `use mpi` and, with TEST_MPI_F08, for
!! `use mpi_f08`. With the argument `stop`, makes an error that ends the program.
#ifdef TEST_MPI_F08
#define MODULE mpi_f08
#define COMM type(MPI_Comm)
#define DATATYPE type(MPI_Datatype)
#else
#define MODULE mpi
#define COMM integer
#define DATATYPE integer
#endif
module testing
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env
  use, intrinsic :: ieee_arithmetic, only: ieee_is_nan
  use MODULE
  use halocline
  implicit none
  integer, parameter :: ghosts = 2, owned = 3, stored = owned + 2 * ghosts
  character(*), parameter :: shared(2) = [character(9) :: 'shared', 'auto']
  character(*), parameter :: all_but_shared(3) = [character(9) :: 'auto', 'p2p', 'alltoallv']
  integer :: me, ranks, left, right, mistakes = 0, ierror

  ! The leak sanitizer knows what MPI keeps if C's functions are called (lsan_mpi.cpp).
  interface
    integer(c_int) function begin_mpi(argc, argv) bind(c, name='MPI_Init')
      import :: c_int, c_ptr
      type(c_ptr), value :: argc, argv
    end function
    integer(c_int) function end_mpi() bind(c, name='MPI_Finalize')
      import :: c_int
    end function
  end interface

contains

  subroutine expect(holds, what)
    logical, intent(in) :: holds
    character(*), intent(in) :: what
    if (holds) return
    mistakes = mistakes + 1
    write (error_unit, '(a, i0, 4a)') 'rank ', me, ': ', what, '; the last error: ', &
      halocline_last_error()
  end subroutine

  !> Expects that the last call succeeded.
  subroutine expect_success(what)
    character(*), intent(in) :: what
    call expect(ierror == halocline_success, what)
    ierror = -1
  end subroutine

  !> Expects that the last call refused an argument, with a text in its reason.
  subroutine expect_error(text)
    character(*), intent(in) :: text
    character(:), allocatable :: reason
    reason = halocline_last_error()
    call expect(ierror == halocline_err_argument .and. index(reason, text) > 0, &
                'not refused: ' // text)
    ierror = -1
  end subroutine

  !> Returns what point i of a rank holds.
  integer function value(of, i)
    integer, intent(in) :: of, i
    value = 10000 * of + mod(i, 9973)
  end function

  ! ---- Fields of all ranks ----

  !> Fills the ghosts below the first axis from the left neighbour, by each of the methods.
  subroutine test_field(axes, u, number, methods)
    integer, intent(in) :: axes
    type(*), dimension(..), intent(in), target :: u
    DATATYPE, intent(in) :: number
    character(*), intent(in) :: methods(:)
    real(real32), pointer :: singles(:)
    real(real64), pointer :: doubles(:)
    type(halocline_plan) :: plan
    type(halocline_info) :: info
    DATATYPE :: sent, received
    integer, dimension(7) :: whole, part, start
    integer :: m, i, wrong, of, bytes
    whole = stored
    part = stored
    part(1) = ghosts
    start = 0
    call MPI_Type_create_subarray(axes, whole, part, start, MPI_ORDER_FORTRAN, number, received, &
                                  ierror)
    start(1) = owned
    call MPI_Type_create_subarray(axes, whole, part, start, MPI_ORDER_FORTRAN, number, sent, ierror)
    call MPI_Type_size(number, bytes, ierror)
    call c_f_pointer(c_loc(u), singles, [stored**axes])
    call c_f_pointer(c_loc(u), doubles, [stored**axes])
    do m = 1, size(methods)
      call halocline_plan_create(plan, MPI_COMM_WORLD, methods(m), &
        [halocline_message(u, 1, sent, right, 7)], [halocline_message(u, 1, received, left, 7)], &
        ierror)
      call expect_success('plan of ' // methods(m))
      call plan%info(info)
      call expect(info%method == methods(m) .or. methods(m) == 'auto', 'method')
      call expect(info%transfer == 'host' .or. info%method == 'shared', 'transfer ' // info%transfer)
      call expect(ieee_is_nan(info%predicted_seconds), 'time without a model')
      call expect(info%bytes_to_self + info%bytes_to_others == &
                  int(bytes, int64) * ghosts * stored**(axes - 1), 'bytes')
      call expect(info%messages == merge(0, 1, ranks == 1), 'messages')
      do i = 1, stored**axes
        if (bytes == 4) singles(i) = real(value(me, i), real32)
        if (bytes == 8) doubles(i) = real(value(me, i), real64)
      end do
      call MPI_Barrier(MPI_COMM_WORLD, ierror)
      call plan%start()
      call plan%progress()
      call plan%finish()
      wrong = 0
      do i = 1, stored**axes
        of = i
        if (mod(i - 1, stored) < ghosts) of = i + owned
        if (bytes == 4) wrong = wrong + merge(0, 1, nint(singles(i)) == expected())
        if (bytes == 8) wrong = wrong + merge(0, 1, nint(doubles(i)) == expected())
      end do
      call expect(wrong == 0, 'points of ' // methods(m))
      call MPI_Barrier(MPI_COMM_WORLD, ierror)
      call plan%free()
    end do
    call MPI_Type_free(sent, ierror)
    call MPI_Type_free(received, ierror)

  contains

    integer function expected()
      expected = value(merge(me, left, of == i), of)
    end function
  end subroutine

  subroutine check_bounds(lower, upper)
    integer, intent(in) :: lower(:), upper(:)
    call expect(all(lower == 1 - ghosts) .and. all(upper == owned + ghosts), 'bounds')
  end subroutine

  !> Tests fields of ranks 1 to 7 in memory that neighbours reach, and in memory of the program.
  subroutine test_ranks()
    integer, parameter :: low(7) = 1 - ghosts, high(7) = owned + ghosts
    real(real32), pointer, contiguous :: s1(:) => null(), s2(:,:) => null(), s3(:,:,:) => null()
    real(real32), pointer, contiguous :: s4(:,:,:,:) => null(), s5(:,:,:,:,:) => null()
    real(real32), pointer, contiguous :: s6(:,:,:,:,:,:) => null(), s7(:,:,:,:,:,:,:) => null()
    real(real64), pointer, contiguous :: d1(:) => null(), d2(:,:) => null(), d3(:,:,:) => null()
    real(real64), pointer, contiguous :: d4(:,:,:,:) => null(), d5(:,:,:,:,:) => null()
    real(real64), pointer, contiguous :: d6(:,:,:,:,:,:) => null(), d7(:,:,:,:,:,:,:) => null()
    real(real32), target, save :: s(stored**7)
    real(real64), target, save :: d(stored**7)

    call halocline_allocate(s1, MPI_COMM_WORLD, low(:1), high(:1))
    call check_bounds(lbound(s1), ubound(s1))
    call test_field(1, s1, MPI_REAL, shared)
    call halocline_deallocate(s1)
    call expect(.not. associated(s1), 'deallocate')
    s1(1:stored) => s
    call test_field(1, s1, MPI_REAL, all_but_shared)
    call halocline_allocate(s2, MPI_COMM_WORLD, low(:2), high(:2))
    call check_bounds(lbound(s2), ubound(s2))
    call test_field(2, s2, MPI_REAL, shared)
    call halocline_deallocate(s2)
    call expect(.not. associated(s2), 'deallocate')
    s2(1:stored, 1:stored) => s
    call test_field(2, s2, MPI_REAL, all_but_shared)
    call halocline_allocate(s3, MPI_COMM_WORLD, low(:3), high(:3))
    call check_bounds(lbound(s3), ubound(s3))
    call test_field(3, s3, MPI_REAL, shared)
    call halocline_deallocate(s3)
    call expect(.not. associated(s3), 'deallocate')
    s3(1:stored, 1:stored, 1:stored) => s
    call test_field(3, s3, MPI_REAL, all_but_shared)
    call halocline_allocate(s4, MPI_COMM_WORLD, low(:4), high(:4))
    call check_bounds(lbound(s4), ubound(s4))
    call test_field(4, s4, MPI_REAL, shared)
    call halocline_deallocate(s4)
    call expect(.not. associated(s4), 'deallocate')
    s4(1:stored, 1:stored, 1:stored, 1:stored) => s
    call test_field(4, s4, MPI_REAL, all_but_shared)
    call halocline_allocate(s5, MPI_COMM_WORLD, low(:5), high(:5))
    call check_bounds(lbound(s5), ubound(s5))
    call test_field(5, s5, MPI_REAL, shared)
    call halocline_deallocate(s5)
    call expect(.not. associated(s5), 'deallocate')
    s5(1:stored, 1:stored, 1:stored, 1:stored, 1:stored) => s
    call test_field(5, s5, MPI_REAL, all_but_shared)
    call halocline_allocate(s6, MPI_COMM_WORLD, low(:6), high(:6))
    call check_bounds(lbound(s6), ubound(s6))
    call test_field(6, s6, MPI_REAL, shared)
    call halocline_deallocate(s6)
    call expect(.not. associated(s6), 'deallocate')
    s6(1:stored, 1:stored, 1:stored, 1:stored, 1:stored, 1:stored) => s
    call test_field(6, s6, MPI_REAL, all_but_shared)
    call halocline_allocate(s7, MPI_COMM_WORLD, low(:7), high(:7))
    call check_bounds(lbound(s7), ubound(s7))
    call test_field(7, s7, MPI_REAL, shared)
    call halocline_deallocate(s7)
    call expect(.not. associated(s7), 'deallocate')
    s7(1:stored, 1:stored, 1:stored, 1:stored, 1:stored, 1:stored, 1:stored) => s
    call test_field(7, s7, MPI_REAL, all_but_shared)

    call halocline_allocate(d1, MPI_COMM_WORLD, low(:1), high(:1))
    call check_bounds(lbound(d1), ubound(d1))
    call test_field(1, d1, MPI_DOUBLE_PRECISION, shared)
    call halocline_deallocate(d1)
    call expect(.not. associated(d1), 'deallocate')
    d1(1:stored) => d
    call test_field(1, d1, MPI_DOUBLE_PRECISION, all_but_shared)
    call halocline_allocate(d2, MPI_COMM_WORLD, low(:2), high(:2))
    call check_bounds(lbound(d2), ubound(d2))
    call test_field(2, d2, MPI_DOUBLE_PRECISION, shared)
    call halocline_deallocate(d2)
    call expect(.not. associated(d2), 'deallocate')
    d2(1:stored, 1:stored) => d
    call test_field(2, d2, MPI_DOUBLE_PRECISION, all_but_shared)
    call halocline_allocate(d3, MPI_COMM_WORLD, low(:3), high(:3))
    call check_bounds(lbound(d3), ubound(d3))
    call test_field(3, d3, MPI_DOUBLE_PRECISION, shared)
    call halocline_deallocate(d3)
    call expect(.not. associated(d3), 'deallocate')
    d3(1:stored, 1:stored, 1:stored) => d
    call test_field(3, d3, MPI_DOUBLE_PRECISION, all_but_shared)
    call halocline_allocate(d4, MPI_COMM_WORLD, low(:4), high(:4))
    call check_bounds(lbound(d4), ubound(d4))
    call test_field(4, d4, MPI_DOUBLE_PRECISION, shared)
    call halocline_deallocate(d4)
    call expect(.not. associated(d4), 'deallocate')
    d4(1:stored, 1:stored, 1:stored, 1:stored) => d
    call test_field(4, d4, MPI_DOUBLE_PRECISION, all_but_shared)
    call halocline_allocate(d5, MPI_COMM_WORLD, low(:5), high(:5))
    call check_bounds(lbound(d5), ubound(d5))
    call test_field(5, d5, MPI_DOUBLE_PRECISION, shared)
    call halocline_deallocate(d5)
    call expect(.not. associated(d5), 'deallocate')
    d5(1:stored, 1:stored, 1:stored, 1:stored, 1:stored) => d
    call test_field(5, d5, MPI_DOUBLE_PRECISION, all_but_shared)
    call halocline_allocate(d6, MPI_COMM_WORLD, low(:6), high(:6))
    call check_bounds(lbound(d6), ubound(d6))
    call test_field(6, d6, MPI_DOUBLE_PRECISION, shared)
    call halocline_deallocate(d6)
    call expect(.not. associated(d6), 'deallocate')
    d6(1:stored, 1:stored, 1:stored, 1:stored, 1:stored, 1:stored) => d
    call test_field(6, d6, MPI_DOUBLE_PRECISION, all_but_shared)
    call halocline_allocate(d7, MPI_COMM_WORLD, low(:7), high(:7))
    call check_bounds(lbound(d7), ubound(d7))
    call test_field(7, d7, MPI_DOUBLE_PRECISION, shared)
    call halocline_deallocate(d7)
    call expect(.not. associated(d7), 'deallocate')
    d7(1:stored, 1:stored, 1:stored, 1:stored, 1:stored, 1:stored, 1:stored) => d
    call test_field(7, d7, MPI_DOUBLE_PRECISION, all_but_shared)
  end subroutine

  !> Tests arrays of derived types and elements of arrays.
  subroutine test_other_arrays()
    type :: point
      real(real64) :: x, y
      integer(int64) :: id
    end type
    type(point), target :: points(4)
    type(halocline_plan) :: plan
    integer :: i
    points = [(point(me, i, 100 * me + i), i = 1, 4)]
    call halocline_plan_create(plan, MPI_COMM_WORLD, 'p2p', &
      [halocline_message(points(3), 24, MPI_BYTE, right, 1), &
       halocline_message(points(3)%id, 8_int64, MPI_BYTE, left, 2)], &
      [halocline_message(points(1:1), 24, MPI_BYTE, left, 1), &
       halocline_message(points(2)%id, 8_int64, MPI_BYTE, right, 2)])
    call plan%start()
    call plan%finish()
    call expect(nint(points(1)%x) == left .and. points(1)%id == 100 * left + 3, 'element')
    call expect(points(2)%id == 100 * right + 3 .and. nint(points(2)%y) == 2, 'component')
    call plan%free()
  end subroutine

  ! ---- Errors ----

  !> Tests that mistakes are refused, and those of one rank on all ranks.
  subroutine test_errors()
    real(real64), target :: u(6, 4), v(6, 4)
    real(real64), pointer :: w(:, :) => null()
    type(halocline_plan) :: plan, copy, other
    type(halocline_info) :: info
    logical :: is_last
    real(real64), pointer :: of_rank_8(:, :, :, :, :, :, :, :) => null(), scalar => null()
    COMM :: nothing
#ifndef TEST_NO_INTERCOMMUNICATORS
    COMM :: half, both
#endif
    is_last = me == ranks - 1
    u = me
    call create('fastest', u(:, 1), 1)
    call expect_error('alltoallv')
    call create(merge('fast', 'p2p ', is_last), u(:, 1), 1)
    call expect_error("fast")
    if (is_last) then
      call create('p2p', u(2, :), 1)
    else
      call create('p2p', u(:, 2), 1)
    end if
    call expect_error('send message 1: the array (rank 1 of Fortran, dimension 1 has a stride of 48 bytes)')
    call create('p2p', u(2:3, :), 1)
    call expect_error('rank 2 of Fortran, dimension 2 has a stride of 48 bytes')
    call create('p2p', u(::3, ::2), 1)
    call expect_error('dimension 1 has a stride of 24 bytes')
    call halocline_plan_create(plan, MPI_COMM_WORLD, 'p2p', [halocline_message ::], &
      [halocline_message(v, 1, MPI_DOUBLE_PRECISION, left, 0), &
       halocline_message(u(2, :), 1, MPI_DOUBLE_PRECISION, left, 0)], ierror)
    call expect_error('receive message 2: the array')
    call create('p2p', u(:, 1), merge(2, 1, is_last))
    call expect_error('bytes')
    call create('p2p', u(:, 1), -1)
    call expect_error('count')
    if (ranks > 1) then
      call create('shared', u(:, 1), 1)
      call expect_error('memory of halocline_allocate()')
    end if
    call halocline_plan_create(plan, MPI_COMM_WORLD, 'p2p', [halocline_message ::], &
                               [halocline_message ::], ierror, model='/nowhere/model.json')
    call expect_error('/nowhere/model.json')
    call halocline_plan_create(plan, MPI_COMM_WORLD, 'p2p', [halocline_message ::], &
                               [halocline_message ::], ierror, chunk_bytes=-5_int64)
    call expect_error('0 or more')
#ifndef TEST_NO_INTERCOMMUNICATORS
    if (ranks > 1) then
      call MPI_Comm_split(MPI_COMM_WORLD, merge(1, 0, me == 0), 0, half, ierror)
      call MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, merge(1, 0, me == 0), 0, both, ierror)
      call halocline_plan_create(plan, both, 'p2p', [halocline_message ::], &
                                 [halocline_message ::], ierror)
      call expect_error('MPI_Intercomm_merge')
      call MPI_Comm_free(both, ierror)
      call MPI_Comm_free(half, ierror)
    end if
#endif
    nothing = MPI_COMM_NULL
    call halocline_plan_create(plan, nothing, 'p2p', [halocline_message ::], &
                               [halocline_message ::], ierror)
    call expect_error('MPI_COMM_NULL')
    call plan%start(ierror)
    call expect_error('the plan was not made or was freed: make it with halocline_plan_create()')
    call plan%info(info, ierror)
    call expect_error('was not made')

    call create('p2p', u(:, 1), 1)
    call expect_success('create')
    copy = plan
    if (is_last) then
      call create('p2p', u(:, 1), 1)
    else
      call halocline_plan_create(other, MPI_COMM_WORLD, 'p2p', [halocline_message ::], &
                                 [halocline_message ::], ierror)
    end if
    call expect_error('a plan that was not freed: free it first')
    call other%start(ierror)
    call expect_error('was not made')
    call plan%finish(ierror)
    call expect_error('start it first')
    call plan%start(ierror)
    call expect_success('start')
    call plan%start(ierror)
    call expect_error('finish it first')
    call plan%swap(ierror)
    call expect(ierror == halocline_err_argument, 'swap of a plan without fields')
    call plan%free(ierror)
    call expect_success('free')
    call plan%free(ierror)
    call expect_success('free of none')
    call copy%start(ierror)
    call expect_error('was freed')
    call copy%finish(ierror)
    call expect_error('was freed')
    call copy%free(ierror)
    call expect_error('was freed')
    call halocline_plan_create(copy, MPI_COMM_WORLD, 'p2p', [halocline_message ::], &
                               [halocline_message ::], ierror)
    call expect_success('create where a plan was freed')
    call copy%free()

    call halocline_allocate(w, MPI_COMM_WORLD, [1, 1], [merge(1, 2, is_last), 2, 3], ierror)
    call expect_error('rank 2 has 2 lower and 3 upper bounds')
    call halocline_allocate(w, nothing, [1, 1], [2, 2], ierror)
    call expect_error('MPI_COMM_NULL')
    call expect(.not. associated(w), 'pointer after an error')
    call halocline_allocate(of_rank_8, MPI_COMM_WORLD, [1, 1, 1, 1, 1, 1, 1, 1], &
                            [1, 1, 1, 1, 1, 1, 1, 1], ierror)
    call expect_error('1 to 7 dimensions')
    call halocline_allocate(scalar, MPI_COMM_WORLD, [integer ::], [integer ::], ierror)
    call expect_error('1 to 7 dimensions')
    call halocline_allocate(w, MPI_COMM_WORLD, [1, 1], [0, 2 + me], ierror)
    call expect(size(w, 1) == 0 .and. size(w, 2) == 2 + me, 'no elements')
    if (.not. is_last) call halocline_deallocate(w)
    call halocline_allocate(w, MPI_COMM_WORLD, [1, 1], [2, 2], ierror)
    call expect_error('the pointer is associated already: call halocline_deallocate() first')
    call expect(associated(w) .eqv. is_last, 'pointer that was refused')
    call halocline_deallocate(w, ierror)
    call expect_success('deallocate of no elements')
    call halocline_deallocate(w, ierror)
    call expect_success('deallocate of none')
    w => v
    call halocline_deallocate(w, ierror)
    call expect_error('halocline_allocate()')

  contains

    subroutine create(method, array, count)
      character(*), intent(in) :: method
      type(*), dimension(..), intent(in) :: array
      integer, intent(in) :: count
      call halocline_plan_create(plan, MPI_COMM_WORLD, method, &
        [halocline_message(array, count, MPI_DOUBLE_PRECISION, right, 0)], &
        [halocline_message(v, 1, MPI_DOUBLE_PRECISION, left, 0)], ierror)
    end subroutine
  end subroutine

  ! ---- Packing and large counts ----

  subroutine test_packing()
    integer, parameter :: number = 10, stride = 3
    real(real64), target :: from(stride, number), to(stride, number)
    character :: packed(100), gaps(2, 100)
    integer(int64) :: bytes, position
    DATATYPE :: column
    integer :: i
    call MPI_Type_vector(number, 1, stride, MPI_DOUBLE_PRECISION, column, ierror)
    from = reshape([(i, i = 1, stride * number)], [stride, number])
    to = 0
    call halocline_packed_bytes(halocline_buffer(from, 1, column), bytes)
    call expect(bytes == 8 * number, 'packed bytes')
    position = 20
    call halocline_pack(halocline_buffer(from(2, 1), 1, column), packed, position)
    call expect(position == 20 + 8 * number, 'position')
    position = 20
    call halocline_unpack(packed, position, halocline_buffer(to(2, 1), 1_int64, column))
    call expect(position == 20 + 8 * number, 'position')
    call expect(all(nint(to(2, :)) == nint(from(2, :))) .and. all(nint(to(1::2, :)) == 0), 'unpack')
    position = 21
    call halocline_pack(halocline_buffer(from, 1, column), packed, position, ierror)
    call expect_error('do not fit')
    call expect(position == 21, 'position after an error')
    call halocline_pack(halocline_buffer(from, 1, column), gaps(1, :), position, ierror)
    call expect_error('`packed`: the array')
    call halocline_pack(halocline_buffer(from(1, :), 1, column), packed, position, ierror)
    call expect_error('`buffer`: the array')
    call MPI_Type_free(column, ierror)
  end subroutine

  !> Tests counts beyond 32 bits.
  subroutine test_large_counts()
    integer(int64), parameter :: large = 3 * 2_int64**32
    real(real64), target :: u(4), v(4)
    type(halocline_plan) :: plan
    integer(int64) :: bytes
    call halocline_packed_bytes(halocline_buffer(u, large, MPI_DOUBLE_PRECISION), bytes)
    call expect(bytes == 8 * large, 'packed bytes')
    call halocline_plan_create(plan, MPI_COMM_WORLD, 'p2p', &
      [halocline_message(u, large, MPI_DOUBLE_PRECISION, MPI_PROC_NULL, 0)], &
      [halocline_message ::], ierror, chunk_bytes=2_int64**33)
    call expect_success('large message to nobody')
    call plan%free()
    call halocline_plan_create(plan, MPI_COMM_WORLD, 'p2p', &
      [halocline_message(u, large, MPI_DOUBLE_PRECISION, right, 0)], &
      [halocline_message(v, 1, MPI_DOUBLE_PRECISION, left, 0)], ierror)
    call expect_error('103079215104')
  end subroutine

  ! ---- Halos ----

  !> Returns what the point at (x, y) of the global grid holds in a step. The grid is periodic.
  integer function global(x, y, extent, part, step)
    integer, intent(in) :: x, y, extent(2), part, step
    global = 1000 * step + 100 * part + 10 * modulo(x - 1, extent(1)) + modulo(y - 1, extent(2))
  end function

  !> Tests fields with two numbers at each point, and fields that swap their arrays.
  subroutine test_halos()
    integer, parameter :: n(2) = [3, 4]
    real(real64), pointer, contiguous :: u(:, :, :) => null(), v(:, :, :) => null()
    real(real32), allocatable, target :: w(:, :)
    real(real64), target :: doubles(0:5)
    real(real32), target :: singles(0:5)
    type(halocline_plan) :: plan
    type(halocline_info) :: info, as_default
    COMM :: cart, line
    integer :: grid(2), place(2), first(2), extent(2), step, wrong, x, y, part
    logical :: is_done
    grid = 0
    call MPI_Dims_create(ranks, 2, grid, ierror)
    call MPI_Cart_create(MPI_COMM_WORLD, 2, grid, [.true., .true.], .false., cart, ierror)
    call MPI_Cart_coords(cart, me, 2, place, ierror)
    first = place * n
    extent = grid * n
    call halocline_allocate(u, cart, [1, 0, 0], [2, n + 1])
    call halocline_allocate(v, cart, [1, 0, 0], [2, n + 1])
    allocate (w(-1:n(1) + 1, 0:n(2)))
    call halocline_halo_create(plan, cart, 'auto', &
      [halocline_field(u, MPI_DOUBLE_PRECISION, [1, 1], swapped=v), &
       halocline_field(w, MPI_REAL, [2, 1], [1, 0])], 2, ierror)
    call expect_success('halo')
    do step = 1, 4
      if (mod(step, 2) == 1) call run(u)
      if (mod(step, 2) == 0) call run(v)
      call plan%swap()
    end do
    call plan%free()

    call halocline_halo_create(plan, MPI_COMM_WORLD, 'p2p', [halocline_field ::], 1, ierror)
    call expect_error('Cartesian')
    call create([1], u, v)
    call expect_error('rank 3 and widths of ghosts for 1 and 1 axes')
    call create([1, 1], u(:, :, 1), v)
    call expect_error('same shape')
    call create([1, 1], u(1, :, :), v)
    call expect_error('gaps')
    call create([1, 1], u, v(1, :, :))
    call expect_error('`swapped` of field 1: the array')
    call create([1, 1], u, u)
    call expect_error('field 1: `swapped` is the same array')
    call create([2, 2], u, v)
    call expect(ierror == halocline_err_argument, 'too few points')
    call halocline_halo_create(plan, cart, 'p2p', [halocline_field(w, MPI_DOUBLE_PRECISION, [1, 1])], &
                               1, ierror)
    call expect_error('4 bytes, but their datatype has 8')
    call MPI_Cart_create(MPI_COMM_WORLD, 1, [ranks], [.true.], .false., line, ierror)
    call halocline_halo_create(plan, line, 'p2p', &
      [halocline_field(singles, MPI_REAL, [1]), &
       halocline_field(doubles, MPI_DOUBLE_PRECISION, [1], swapped=singles)], ierror=ierror)
    call expect_error('field 2: the elements have 8 bytes, but those of `swapped` 4')
    call MPI_Comm_free(line, ierror)

    ! Corners take more bytes than faces alone, and are the default.
    call halocline_halo_create(plan, cart, 'p2p', [halocline_field(u, MPI_DOUBLE_PRECISION, [1, 1])])
    call plan%info(as_default)
    call halocline_halo_create(plan, cart, 'p2p', [halocline_field(u, MPI_DOUBLE_PRECISION, [1, 1])], &
                               ierror=ierror)
    call expect_error('free it first')
    call plan%free()
    call create([1, 1], u, v)
    call plan%info(info)
    call plan%free()
    call expect(as_default%bytes_to_self + as_default%bytes_to_others == &
                info%bytes_to_self + info%bytes_to_others + 4 * 2 * 8, 'bytes with corners')
    call halocline_deallocate(u)
    call halocline_deallocate(v)
    call MPI_Comm_free(cart, ierror)

  contains

    subroutine create(low, one, two)
      integer, intent(in) :: low(:)
      type(*), dimension(..), intent(in) :: one, two
      call halocline_halo_create(plan, cart, 'p2p', &
        [halocline_field(one, MPI_DOUBLE_PRECISION, low, swapped=two)], 1, ierror)
    end subroutine

    !> Exchanges an array and `w`, and checks all points.
    subroutine run(a)
      real(real64), intent(inout), target :: a(1:, 0:, 0:)
      a = -1
      w = -1
      do y = 1, n(2)
        do x = 1, n(1)
          do part = 1, 2
            a(part, x, y) = global(first(1) + x, first(2) + y, extent, part, step)
          end do
          w(x, y) = real(global(first(1) + x, first(2) + y, extent, 0, step), real32)
        end do
      end do
      call MPI_Barrier(cart, ierror)
      call plan%start()
      if (step <= 2) then
        call plan%finish()
      else
        is_done = .false.
        do while (.not. is_done)
          call plan%test(is_done)
        end do
      end if
      wrong = 0
      do y = 0, n(2) + 1
        do x = 0, n(1) + 1
          do part = 1, 2
            if (nint(a(part, x, y)) /= global(first(1) + x, first(2) + y, extent, part, step)) &
              wrong = wrong + 1
          end do
        end do
      end do
      do y = 0, n(2)
        do x = -1, n(1) + 1
          if (nint(w(x, y)) /= global(first(1) + x, first(2) + y, extent, 0, step)) wrong = wrong + 1
        end do
      end do
      call expect(wrong == 0, 'points of a halo')
      call MPI_Barrier(cart, ierror)
    end subroutine
  end subroutine

  ! ---- Single messages and gathers ----

  subroutine test_messages()
    real(real64), target :: out(3, 5), in(3, 5)
    type(halocline_messages) :: messages, copy
    type(halocline_request) :: sent, received
    type(halocline_status) :: status
    DATATYPE :: column
    call MPI_Type_vector(5, 1, 3, MPI_DOUBLE_PRECISION, column, ierror)
    call halocline_messages_create(messages, MPI_COMM_WORLD, ierror)
    call expect_success('messages')
    out = me
    in = -1
    call messages%irecv(halocline_message(in(2, 1), 1, column, MPI_ANY_SOURCE, MPI_ANY_TAG), received)
    call messages%isend(halocline_message(out(2, 1), 1, column, right, 11), sent)
    call messages%isend(halocline_message(out(2, 1), 1, column, right, 11), sent, ierror)
    call expect_error('that is not complete')
    call messages%irecv(halocline_message(in(2, 1), 1, column, left, 12), received, ierror)
    call expect_error('that is not complete')
    call received%wait(status)
    call sent%wait()
    call expect(status%source == left .and. status%tag == 11 .and. status%bytes == 40, 'status')
    call expect(all(nint(in(2, :)) == left) .and. all(nint(in(1::2, :)) == -1), 'received')
    call MPI_Barrier(MPI_COMM_WORLD, ierror)
    if (ranks > 1) then
      if (mod(me, 2) == 0 .and. me + 1 < ranks) &
        call messages%send(halocline_message(out, 15, MPI_DOUBLE_PRECISION, me + 1, 12))
      if (mod(me, 2) == 1) then
        call messages%recv(halocline_message(in, 15, MPI_DOUBLE_PRECISION, me - 1, 12), status)
        call expect(all(nint(in) == me - 1) .and. status%bytes == 120, 'sent and received')
      end if
    end if
    call messages%isend(halocline_message(out(1, :), 5, MPI_DOUBLE_PRECISION, right, 0), sent, ierror)
    call expect_error('the message: the array')
    call messages%irecv(halocline_message(in, 1, MPI_DOUBLE_PRECISION, MPI_PROC_NULL, 0), received)
    copy = messages
    call messages%free(ierror)
    call expect_error('call wait() for')
    call received%wait()
    call halocline_messages_create(messages, MPI_COMM_WORLD, ierror)
    call expect_error('an engine of messages that was not freed: free it first')
    call messages%free()
    call copy%send(halocline_message(out, 1, MPI_DOUBLE_PRECISION, right, 0), ierror)
    call expect_error('freed')
    call MPI_Type_free(column, ierror)
  end subroutine

  subroutine test_gathers()
    integer, target :: mine(2), whole(2, ranks), odd(ranks**2)
    type(halocline_collective) :: collective, copy
    integer(int64) :: counts(ranks)
    integer :: root, i, j
    root = ranks - 1
    do i = 1, 2
      whole = -1
      mine = [me, 100 + me]
      if (i == 1) call halocline_gather_create(collective, MPI_COMM_WORLD, &
        halocline_buffer(mine, 2, MPI_INTEGER), halocline_buffer(whole, 2, MPI_INTEGER), root)
      if (i == 2) call halocline_allgather_create(collective, MPI_COMM_WORLD, &
        halocline_buffer(mine, 2, MPI_INTEGER), halocline_buffer(whole, 2, MPI_INTEGER))
      call collective%run(ierror)
      call expect_success('run')
      if (i == 2 .or. me == root) then
        call expect(all(whole(1, :) == [(j, j = 0, ranks - 1)]), 'gathered')
        call expect(all(whole(2, :) == [(100 + j, j = 0, ranks - 1)]), 'gathered')
      end if
      call collective%free()
    end do

    counts = [(int(j, int64), j = 1, ranks)]
    odd = [(j, j = 1, ranks**2)]
    if (me == root) then
      call halocline_scatter_create(collective, MPI_COMM_WORLD, halocline_in_place, &
        halocline_buffer(odd, 1, MPI_INTEGER), root, counts, ierror)
    else
      call halocline_scatter_create(collective, MPI_COMM_WORLD, &
        halocline_buffer(odd, me + 1, MPI_INTEGER), halocline_no_buffer, root, ierror=ierror)
    end if
    call expect_success('scatter')
    call collective%run()
    if (me /= root) call expect(all(odd(:me + 1) == [(me * (me + 1) / 2 + j, j = 1, me + 1)]), 'scattered')
    copy = collective
    call halocline_gather_create(collective, MPI_COMM_WORLD, halocline_buffer(mine, 2, MPI_INTEGER), &
                                 halocline_buffer(whole, 2, MPI_INTEGER), root, ierror=ierror)
    call expect_error('a gather or scatter that was not freed: free it first')
    call collective%free()
    call copy%run(ierror)
    call expect_error('freed')
    call halocline_gather_create(collective, MPI_COMM_WORLD, halocline_buffer(mine, 2, MPI_INTEGER), &
                                 halocline_no_buffer, root, ierror=ierror)
    call expect_error('`all`: the buffer is missing')
    call halocline_allgather_create(collective, MPI_COMM_WORLD, &
      halocline_buffer(mine, 2, MPI_INTEGER), halocline_buffer(whole(1, :), 2, MPI_INTEGER), ierror=ierror)
    if (ranks > 1) then
      call expect_error('`all`: the array')
    else
      call collective%free()
    end if
    call halocline_allgather_create(collective, MPI_COMM_WORLD, &
      halocline_buffer(mine, 2, MPI_INTEGER), halocline_buffer(whole, 2, MPI_INTEGER), &
      [counts, 1_int64], ierror)
    call expect_error('one for each rank')
  end subroutine

end module

program test_fortran
  use testing
  implicit none
  type(halocline_plan) :: none
  character(8) :: way
  call none%start(ierror)
  call expect_error('MPI is not running')
  ierror = begin_mpi(c_null_ptr, c_null_ptr)
  call MPI_Comm_rank(MPI_COMM_WORLD, me, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
  left = modulo(me - 1, ranks)
  right = modulo(me + 1, ranks)
  call get_command_argument(1, way)
  if (way == 'stop') call none%start()
  call expect(halocline_version() >= 100, 'version')
  call test_ranks()
  call test_other_arrays()
  call test_errors()
  call test_packing()
  call test_large_counts()
  call test_halos()
  call test_messages()
  call test_gathers()
  call MPI_Allreduce(MPI_IN_PLACE, mistakes, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
  ierror = end_mpi()
  if (mistakes /= 0) error stop 'test_fortran: there were mistakes'
end program
