! SPDX-License-Identifier: BSD-3-Clause
! Tests every call of Fortran that the interposer stands in front of, with a derived type: every fourth double of a column. Other
! data must stay as they were. With HALOCLINE_F08 it uses mpi_f08 in place of mpi.
!
! With a number as its argument, it makes each call that is counted in the summary so often, and no other one of them.
! HALOCLINE_HAS_GET_STATUS_SOME says that MPI has these calls of MPI 4.1, and HALOCLINE_HAS_LARGE_COUNTS those of MPI 4.0.
#ifdef HALOCLINE_F08
#define USE_MPI use mpi_f08
#define DETACH call mpi_buffer_detach(address, room_size, error)
#define HANDLE(kind) type(kind)
#define NUMBER(handle) handle%mpi_val
#define STATUS type(mpi_status)
#define STATUSES(n) type(mpi_status), dimension(n)
#define SOURCE_OF(status) status%mpi_source
#define TAG_OF(status) status%mpi_tag
#define STATUS_AT(statuses, i) statuses(i)
#else
#ifdef HALOCLINE_HAS_GET_STATUS_SOME
! The interfaces of Intel MPI 2021.18 have a wrong type, so these two are called without interfaces.
#define USE_MPI use mpi, wrong_any => mpi_request_get_status_any, wrong_all => mpi_request_get_status_all
#else
#define USE_MPI use mpi
#endif
#define DETACH call mpi_buffer_detach(room, room_size, error)
#define HANDLE(kind) integer
#define NUMBER(handle) handle
#define STATUS integer, dimension(mpi_status_size)
#define STATUSES(n) integer, dimension(mpi_status_size, n)
#define SOURCE_OF(status) status(mpi_source)
#define TAG_OF(status) status(mpi_tag)
#define STATUS_AT(statuses, i) statuses(:, i)
#endif
program test_fortran
  use, intrinsic :: iso_c_binding, only: c_double, c_f_pointer, c_int, c_ptr
  USE_MPI
  implicit none
  integer, parameter :: n = 4000, step = 4
#ifdef HALOCLINE_HAS_GET_STATUS_SOME
  integer, parameter :: ways = 23
#else
  integer, parameter :: ways = 20
#endif
  double precision, allocatable, target :: field(:, :), ghost(:, :)
  character :: packed(8 * n)
  character(len=8) :: argument
  integer :: rank, ranks, next, previous, error, wrong, way, round, times, bytes, first, i
  HANDLE(mpi_datatype) :: type, plain
  HANDLE(mpi_comm) :: ring
  integer(kind=mpi_address_kind) :: from, extent
  integer, allocatable :: counts(:), places(:), addresses(:)
  HANDLE(mpi_datatype), allocatable :: types(:)
  integer(kind=mpi_address_kind) :: sides(2)

  ! other_languages.c
  interface
    subroutine receive_in_c(buffer, type, source, tag, request) bind(c)
      import c_double, c_int
      real(c_double) :: buffer(*)
      integer(c_int), value :: type, source, tag
      integer(c_int) :: request
    end subroutine
    subroutine receive_in_fortran(buffer, type, source, tag, request) bind(c)
      import c_double, c_int
      real(c_double) :: buffer(*)
      integer(c_int), value :: type, source, tag
      integer(c_int) :: request
    end subroutine
    subroutine wait_in_c(request) bind(c)
      import c_int
      integer(c_int) :: request
    end subroutine
  end interface

  call mpi_init(error)
  call mpi_comm_rank(mpi_comm_world, rank, error)
  call mpi_comm_size(mpi_comm_world, ranks, error)
  next = mod(rank + 1, ranks)
  previous = mod(rank + ranks - 1, ranks)
  allocate (field(n, max(ranks, 2)), ghost(n, max(ranks, 2)))
  field = reshape([(i + n * 100 * rank, i=1, size(field))] * 1d0, shape(field))
  wrong = 0

  call find_first_index
  call mpi_type_vector(n / step, 1, step, mpi_double_precision, plain, error)
  from = 0
  extent = 8 * n
  call mpi_type_create_resized(plain, from, extent, type, error)
  call mpi_type_commit(type, error)
  call mpi_type_free(plain, error)
  call mpi_type_dup(type, plain, error)  ! a copy of a committed type is committed
  call mpi_type_free(type, error)
  type = plain

  call mpi_pack_size(1, type, mpi_comm_world, bytes, error)
  allocate (counts(ranks), places(ranks), addresses(ranks), types(ranks))
  counts = 1
  places = [(i, i=0, ranks - 1)]
  addresses = 8 * n * places
  types = type
  ! Not a Cartesian communicator: MPICH 4.0.2 asks it for a graph in mpi_f08's mpi_neighbor_alltoallw.
  call mpi_dist_graph_create_adjacent(mpi_comm_world, 2, [previous, next], [1, 1], 2, [previous, next], [1, 1], &
                                      mpi_info_null, .false., ring, error)
  sides = [0, 8 * n]

  argument = '0'
  if (command_argument_count() > 0) call get_command_argument(1, argument)
  read (argument, *) times
  do round = 1, merge(times, 4, times > 0)
    call pack_and_unpack
    ! The first four ways have each counted call once.
    do way = 1, merge(4, ways, times > 0)
      ghost = -1
      call exchange(way)
      call check_column(1, previous, 1)
    end do
    call exchange_with_all
    call exchange_with_neighbors
  end do
  if (times == 0) call other_uses
  call mpi_comm_free(ring, error)
  call mpi_type_free(type, error)
  call mpi_allreduce(mpi_in_place, wrong, 1, mpi_integer, mpi_sum, mpi_comm_world, error)
  if (rank == 0) print '(a)', trim(merge('all points are right ', 'SOME POINTS ARE WRONG', wrong == 0))
  call mpi_finalize(error)
  if (wrong /= 0) stop 1

contains

  ! Does what the counted calls leave out.
  subroutine other_uses
    integer :: round
    do round = 1, 4
      call absolute_addresses
      call in_place
      call between_groups
      call neighbors_of_a_line
      call neighbors_of_a_graph
      call short_messages
      call probed_message
    end do
    call cancelled_receive
    call types_of_all_kinds
    call errors_that_return
#ifdef HALOCLINE_F08
    call without_error
#endif
    call watched_calls
  end subroutine

  ! Asks for the index of the first request: MPICH 4.0's mpi_f08 counts from 0.
  subroutine find_first_index
    HANDLE(mpi_request) :: requests(1)
    integer :: s
    s = 0
    call mpi_isend(s, 1, mpi_integer, mpi_proc_null, 0, mpi_comm_world, requests(1), error)
    call mpi_waitany(1, requests, first, mpi_status_ignore, error)
  end subroutine

  subroutine check(right)
    logical, intent(in) :: right
    if (.not. right) wrong = wrong + 1
  end subroutine

  ! Counts an error unless a column of the ghost has that rank's data at the places of the type, and old values elsewhere.
  subroutine check_column(column, of_rank, of_column)
    integer, intent(in) :: column, of_rank, of_column
    integer :: i
    call check(all(ghost(1::step, column) == field(1::step, of_column) + 100d0 * n * (of_rank - rank)))
    do i = 2, step
      call check(all(ghost(i::step, column) == -1d0))
    end do
  end subroutine

  ! Counts an error unless a column of the ghost has old values alone.
  subroutine check_untouched(column)
    integer, intent(in) :: column
    call check(all(ghost(:, column) == -1d0))
  end subroutine

  subroutine check_status(status)
    STATUS, intent(in) :: status
    integer :: count
    call mpi_get_count(status, type, count, error)
    call check(count == 1 .and. SOURCE_OF(status) == previous .and. TAG_OF(status) == 7)
  end subroutine

  subroutine pack_and_unpack
    integer :: position
    ghost = -1
    position = 0
    call mpi_pack(field, 1, type, packed, size(packed), position, mpi_comm_world, error)
    call check(position == 8 * n / step .and. bytes >= position)
    position = 0
    call mpi_unpack(packed, size(packed), position, ghost, 1, type, mpi_comm_world, error)
    call check(position == 8 * n / step)
    call check_column(1, rank, 1)
  end subroutine

  subroutine exchange_with_all
    integer :: i
    ghost = -1
    call mpi_alltoallv(field, counts, places, type, ghost, counts, places, type, mpi_comm_world, error)
    do i = 1, ranks
      call check_column(i, i - 1, rank + 1)
    end do
    ghost = -1
    call mpi_alltoallw(field, counts, addresses, types, ghost, counts, addresses, types, mpi_comm_world, error)
    do i = 1, ranks
      call check_column(i, i - 1, rank + 1)
    end do
  end subroutine

  subroutine exchange_with_neighbors
    ghost = -1
    call mpi_neighbor_alltoallw(field, [1, 1], sides, [type, type], ghost, [1, 1], sides, [type, type], ring, error)
    ! A message sent down arrives from above. With one or two ranks, both have the same ends, and MPIs differ in their order.
    if (ranks > 2) then
      call check_column(1, previous, 2)
      call check_column(2, next, 1)
    end if
  end subroutine

  subroutine exchange(way)
    integer, intent(in) :: way
    integer :: index, completed, indices(2), left, i
    HANDLE(mpi_request) :: requests(2), late(1)
    STATUS :: status
    STATUSES(2) :: statuses
    logical :: done
    double precision :: spare(n)
    SOURCE_OF(status) = previous
    select case (way)
    case (1)
      call mpi_sendrecv(field, 1, type, next, 7, ghost, 1, type, previous, 7, mpi_comm_world, status, error)
      call check_status(status)
      return
    case (2)
      call mpi_isend(field, 1, type, next, 7, mpi_comm_world, requests(2), error)
      call mpi_recv(ghost, 1, type, mpi_any_source, 7, mpi_comm_world, status, error)
      call check_status(status)
      call mpi_wait(requests(2), mpi_status_ignore, error)
      return
    case (3)
      call mpi_irecv(ghost, 1, type, previous, 7, mpi_comm_world, requests(1), error)
      call mpi_send(field, 1, type, next, 7, mpi_comm_world, error)
      call mpi_wait(requests(1), status, error)
      call check_status(status)
      return
    case (4, 5)
      call mpi_recv_init(ghost, 1, type, previous, 7, mpi_comm_world, requests(1), error)
      call mpi_send_init(field, 1, type, next, 7, mpi_comm_world, requests(2), error)
      if (way == 4) then
        call mpi_startall(2, requests, error)
      else
        call mpi_start(requests(1), error)
        call mpi_start(requests(2), error)
      end if
      call mpi_waitall(2, requests, statuses, error)
      call check_status(STATUS_AT(statuses, 1))
      call mpi_request_free(requests(1), error)
      call mpi_request_free(requests(2), error)
      return
    case (18, 19)
      if (way == 18) call receive_in_c(ghost, NUMBER(type), previous, 7, NUMBER(requests(1)))
      if (way == 19) call receive_in_fortran(ghost, NUMBER(type), previous, 7, NUMBER(requests(1)))
      call mpi_send(field, 1, type, next, 7, mpi_comm_world, error)
      call mpi_wait(requests(1), status, error)
      call check_status(status)
      return
    end select

    call mpi_irecv(ghost, 1, type, previous, 7, mpi_comm_world, requests(1), error)
    call mpi_isend(field, 1, type, next, 7, mpi_comm_world, requests(2), error)
    done = .false.
    left = 2
    select case (way)
    case (6)
      call mpi_waitall(2, requests, statuses, error)
      call check_status(STATUS_AT(statuses, 1))
    case (7)
      call mpi_waitall(2, requests, mpi_statuses_ignore, error)
    case (8)
      do while (.not. done)
        call mpi_testall(2, requests, done, statuses, error)
      end do
      call check_status(STATUS_AT(statuses, 1))
    case (9)
      do i = 1, 2
        call mpi_waitany(2, requests, index, status, error)
        if (index == first) call check_status(status)
      end do
    case (10)
      ! A test that finds nothing gives no index.
      call mpi_irecv(spare, 1, type, rank, 8, mpi_comm_world, late(1), error)
      call mpi_testany(1, late, index, done, mpi_status_ignore, error)
      call check(.not. done)
      call mpi_send(field, 1, type, rank, 8, mpi_comm_world, error)
      call mpi_wait(late(1), mpi_status_ignore, error)
      call check(all(spare(1::step) == field(1::step, 1)))
      do while (left > 0)
        call mpi_testany(2, requests, index, done, status, error)
        if (.not. done) cycle
        left = left - 1
        if (index == first) call check_status(status)
      end do
    case (11, 12)
      do while (left > 0)
        if (way == 11) call mpi_waitsome(2, requests, completed, indices, statuses, error)
        if (way == 12) call mpi_testsome(2, requests, completed, indices, statuses, error)
        do i = 1, completed
          if (indices(i) == first) call check_status(STATUS_AT(statuses, i))
        end do
        left = left - completed
      end do
    case (13)
      do while (.not. done)
        call mpi_test(requests(1), done, status, error)
      end do
      call check_status(status)
      call mpi_wait(requests(2), mpi_status_ignore, error)
    case (14)
      do while (.not. done)
        call mpi_request_get_status(requests(1), done, status, error)
      end do
      call check_status(status)
      call wait_for_seen(requests)
    case (15)
      call mpi_request_free(requests(2), error)
      call check(requests(2) == mpi_request_null)
      call mpi_wait(requests(1), status, error)
      call check_status(status)
    case (16)
      call mpi_wait(requests(2), status, error)
      call mpi_wait(requests(1), mpi_status_ignore, error)
    case (17)
      ! The receive's request is freed, so only the data show that the message has arrived.
      call mpi_request_free(requests(1), error)
      call mpi_wait(requests(2), mpi_status_ignore, error)
      do i = 1, 100000
        call mpi_allreduce(merge(0, 1, ghost(n - step + 1, 1) == -1d0), left, 1, mpi_integer, mpi_sum, mpi_comm_world, error)
        if (left == ranks) exit
      end do
      call check(left == ranks)
    case (20)
      call wait_in_c(NUMBER(requests(1)))
      call mpi_wait(requests(2), mpi_status_ignore, error)
#ifdef HALOCLINE_HAS_GET_STATUS_SOME
    case (21)
      do while (.not. done)
        call mpi_request_get_status_any(1, requests, index, done, status, error)
      end do
      call check(index == first .or. index == 0)  ! Intel MPI 2021.18 counts from 0 here
      call check_status(status)
      call wait_for_seen(requests)
    case (22)
      do while (.not. done)
        call mpi_request_get_status_all(2, requests, done, statuses, error)
      end do
      call check_status(STATUS_AT(statuses, 1))
      call wait_for_seen(requests)
    case (23)
      completed = 0
      do while (completed == 0)
        call mpi_request_get_status_some(1, requests, completed, indices, statuses, error)
      end do
      call check(completed == 1 .and. (indices(1) == first .or. indices(1) == 0))
      call check_status(STATUS_AT(statuses, 1))
      call wait_for_seen(requests)
#endif
    end select
    call check(requests(1) == mpi_request_null .and. requests(2) == mpi_request_null)
  end subroutine

  ! Waits for a receive whose data are there: it must leave them alone.
  subroutine wait_for_seen(requests)
    HANDLE(mpi_request), intent(inout) :: requests(2)
    double precision :: arrived(n)
    call check_column(1, previous, 1)
    arrived = ghost(:, 1)
    ghost(:, 1) = -1
    call mpi_waitall(2, requests, mpi_statuses_ignore, error)
    call check_untouched(1)
    ghost(:, 1) = arrived
  end subroutine

  ! Makes the type at the address of the memory.
  subroutine make_absolute(memory, made)
    double precision, intent(in), target :: memory(n)
    HANDLE(mpi_datatype), intent(out) :: made
    integer(kind=mpi_address_kind) :: address(1)
    call mpi_get_address(memory, address(1), error)
    call mpi_type_create_hindexed(1, [1], address, type, made, error)
    call mpi_type_commit(made, error)
  end subroutine

  subroutine absolute_addresses
    HANDLE(mpi_datatype) :: sent, received
    HANDLE(mpi_comm) :: comm
    HANDLE(mpi_request) :: request
    integer :: position, i
    call make_absolute(field, sent)
    call make_absolute(ghost, received)
    ghost = -1
    call mpi_sendrecv(mpi_bottom, 1, sent, next, 7, mpi_bottom, 1, received, previous, 7, mpi_comm_world, &
                      mpi_status_ignore, error)
    call check_column(1, previous, 1)
    ghost = -1
    call mpi_irecv(mpi_bottom, 1, received, previous, 7, mpi_comm_world, request, error)
    call mpi_send(mpi_bottom, 1, sent, next, 7, mpi_comm_world, error)
    call mpi_wait(request, mpi_status_ignore, error)
    call check_column(1, previous, 1)
    ghost = -1
    call mpi_isend(mpi_bottom, 1, sent, next, 7, mpi_comm_world, request, error)
    call mpi_recv(mpi_bottom, 1, received, previous, 7, mpi_comm_world, mpi_status_ignore, error)
    call mpi_wait(request, mpi_status_ignore, error)
    call check_column(1, previous, 1)
    ! MPICH 4.0.2 alone refuses to pack there, too.
    ghost = -1
    position = 0
    call mpi_comm_dup(mpi_comm_world, comm, error)
    call mpi_comm_set_errhandler(comm, mpi_errors_return, error)
    call mpi_pack(mpi_bottom, 1, sent, packed, size(packed), position, comm, error)
    position = 0
    if (error == mpi_success) call mpi_unpack(packed, size(packed), position, mpi_bottom, 1, received, comm, error)
    if (error == mpi_success) call check_column(1, rank, 1)
    call mpi_comm_free(comm, error)
    ghost = -1
    call mpi_alltoallw(mpi_bottom, counts, addresses, [(sent, i=1, ranks)], mpi_bottom, counts, addresses, &
                       [(received, i=1, ranks)], mpi_comm_world, error)
    do i = 1, ranks
      call check_column(i, i - 1, rank + 1)
    end do
    call mpi_type_free(sent, error)
    call mpi_type_free(received, error)
  end subroutine

  ! Exchanges in place. An MPI may copy the gaps, too, so they are not checked.
  subroutine in_place
    integer :: way, i
    do way = 1, 2
      ghost = field
      if (way == 1) call mpi_alltoallv(mpi_in_place, counts, places, type, ghost, counts, places, type, mpi_comm_world, error)
      if (way == 2) call mpi_alltoallw(mpi_in_place, counts, addresses, types, ghost, counts, addresses, types, &
                                       mpi_comm_world, error)
      do i = 1, ranks
        call check(all(ghost(1::step, i) == field(1::step, rank + 1) + 100d0 * n * (i - 1 - rank)))
      end do
    end do
  end subroutine

  ! Even ranks exchange with odd ranks.
  subroutine between_groups
    HANDLE(mpi_comm) :: half, both
    integer :: way, others, i
    if (ranks == 1) return
    call mpi_comm_split(mpi_comm_world, mod(rank, 2), 0, half, error)
    call mpi_intercomm_create(half, 0, mpi_comm_world, 1 - mod(rank, 2), 0, both, error)
    call mpi_comm_remote_size(both, others, error)
    do way = 1, 2
      ghost = -1
      if (way == 1) call mpi_alltoallv(field, counts, places, type, ghost, counts, places, type, both, error)
      if (way == 2) call mpi_alltoallw(field, counts, addresses, types, ghost, counts, addresses, types, both, error)
      do i = 1, others
        call check_column(i, 2 * i - 1 - mod(rank, 2), rank / 2 + 1)
      end do
    end do
    call mpi_comm_free(both, error)
    call mpi_comm_free(half, error)
  end subroutine

  ! The ends of the line have one neighbor. Data beyond an end must not be touched.
  subroutine neighbors_of_a_line
    HANDLE(mpi_comm) :: line
    if (ranks == 1 .or. first == 0) return  ! MPICH 4.0's mpi_f08 refuses Cartesian communicators
    call mpi_cart_create(mpi_comm_world, 1, [ranks], [.false.], .false., line, error)
    ghost = -1
    call mpi_neighbor_alltoallw(field, [1, 1], sides, [type, type], ghost, [1, 1], sides, [type, type], line, error)
    if (rank > 0) call check_column(1, rank - 1, 2)
    if (rank == 0) call check_untouched(1)
    if (rank < ranks - 1) call check_column(2, rank + 1, 1)
    if (rank == ranks - 1) call check_untouched(2)
    call mpi_comm_free(line, error)
  end subroutine

  ! The graph is a line, and its ends have one neighbor.
  subroutine neighbors_of_a_graph
    HANDLE(mpi_comm) :: graph
    integer :: ends(ranks), edges(2 * ranks), count, i, k
    if (ranks == 1 .or. first == 0) return  ! MPICH 4.0's mpi_f08 wants a distributed graph
    count = 0
    do i = 0, ranks - 1
      do k = i - 1, i + 1, 2
        if (k < 0 .or. k == ranks) cycle
        count = count + 1
        edges(count) = k
      end do
      ends(i + 1) = count
    end do
    call mpi_graph_create(mpi_comm_world, ranks, ends, edges, .false., graph, error)
    ghost = -1
    call mpi_neighbor_alltoallw(field, [1, 1], sides, [type, type], ghost, [1, 1], sides, [type, type], graph, error)
    ! A rank is the second neighbor of the rank before it, unless that is the first rank.
    if (rank > 0) call check_column(1, rank - 1, merge(1, 2, rank == 1))
    if (rank < ranks - 1) call check_column(merge(1, 2, rank == 0), rank + 1, 1)
    if (rank == 0 .or. rank == ranks - 1) call check_untouched(2)
    call mpi_comm_free(graph, error)
  end subroutine

  ! Receives no more than a part of the type.
  subroutine short_messages
    integer, parameter :: sizes(4) = [0, 1, n / step - 1, n / step]
    HANDLE(mpi_request) :: send, receive
    STATUS :: status
    integer :: way, i, m, whole, elements
    do i = 1, size(sizes)
      m = sizes(i)
      do way = 1, 2
        ghost = -1
        call mpi_isend(field, m, mpi_double_precision, next, 7, mpi_comm_world, send, error)
        if (way == 1) call mpi_recv(ghost, 1, type, previous, 7, mpi_comm_world, status, error)
        if (way == 2) call mpi_irecv(ghost, 1, type, previous, 7, mpi_comm_world, receive, error)
        if (way == 2) call mpi_wait(receive, status, error)
        call mpi_wait(send, mpi_status_ignore, error)
        call mpi_get_count(status, type, whole, error)
        call check(whole == merge(step * m / n, mpi_undefined, mod(step * m, n) == 0))
        call mpi_get_elements(status, type, elements, error)
        call check(elements == m)
        call check(all(ghost(1:step * m:step, 1) == field(1:m, 1) + 100d0 * n * (previous - rank)))
        call check(count(ghost /= -1d0) == m)
      end do
    end do
  end subroutine

  subroutine probed_message
    HANDLE(mpi_request) :: request
    STATUS :: status
    ghost = -1
    call mpi_isend(field, 1, type, next, 7, mpi_comm_world, request, error)
    call mpi_probe(mpi_any_source, 7, mpi_comm_world, status, error)
    call check_status(status)
    call mpi_recv(ghost, 1, type, SOURCE_OF(status), 7, mpi_comm_world, mpi_status_ignore, error)
    call mpi_wait(request, mpi_status_ignore, error)
    call check_column(1, previous, 1)
  end subroutine

  subroutine cancelled_receive
    HANDLE(mpi_request) :: request
    STATUS :: status
    logical :: cancelled
    ghost = -1
    call mpi_irecv(ghost, 1, type, mpi_any_source, 99, mpi_comm_world, request, error)
    call mpi_cancel(request, error)
    call mpi_wait(request, status, error)
    call mpi_test_cancelled(status, cancelled, error)
    call check(cancelled .and. request == mpi_request_null)
    call check(all(ghost == -1d0))
  end subroutine

  ! Makes the type by each function that makes types.
  subroutine types_of_all_kinds
    integer, parameter :: count = n / step
    HANDLE(mpi_datatype) :: made, one, doubles(count)
    integer :: kind, round, i, at(count), ones(count)
    integer(kind=mpi_address_kind) :: stride, zero, bytes_to(count)
    at = [(step * i, i=0, count - 1)]
    ones = 1
    bytes_to = 8 * at
    doubles = mpi_double_precision
    stride = 8 * step
    zero = 0
    call mpi_type_create_resized(mpi_double_precision, zero, stride, one, error)
    do kind = 1, 10
      select case (kind)
      case (1); call mpi_type_contiguous(count, one, made, error)
      case (2); call mpi_type_vector(count, 1, step, mpi_double_precision, made, error)
      case (3); call mpi_type_create_hvector(count, 1, stride, mpi_double_precision, made, error)
      case (4); call mpi_type_indexed(count, ones, at, mpi_double_precision, made, error)
      case (5); call mpi_type_create_hindexed(count, ones, bytes_to, mpi_double_precision, made, error)
      case (6); call mpi_type_create_indexed_block(count, 1, at, mpi_double_precision, made, error)
      case (7); call mpi_type_create_hindexed_block(count, 1, bytes_to, mpi_double_precision, made, error)
      case (8); call mpi_type_create_struct(count, ones, bytes_to, doubles, made, error)
      case (9)
        call mpi_type_create_subarray(2, [step, count], [1, count], [0, 0], mpi_order_fortran, mpi_double_precision, made, error)
      case (10)
#if defined(HALOCLINE_F08) && defined(HALOCLINE_HAS_LARGE_COUNTS)
        call mpi_type_vector(int(count, mpi_count_kind), 1_mpi_count_kind, int(step, mpi_count_kind), mpi_double_precision, &
                             made, error)
#else
        cycle
#endif
      end select
      call mpi_type_commit(made, error)
      do round = 1, 3
        ghost = -1
        call mpi_sendrecv(field, 1, made, next, 7, ghost, 1, made, previous, 7, mpi_comm_world, mpi_status_ignore, error)
        call check_column(1, previous, 1)
      end do
      call mpi_type_free(made, error)
    end do
    call mpi_type_free(one, error)
  end subroutine

  ! The error codes of MPI are those of the calls.
  subroutine errors_that_return
    HANDLE(mpi_comm) :: comm
    HANDLE(mpi_request) :: request
    integer :: codes(4), class, i
    call mpi_comm_dup(mpi_comm_world, comm, error)
    call mpi_comm_set_errhandler(comm, mpi_errors_return, error)
    call mpi_send(field, 1, type, ranks, 7, comm, codes(1))
    call mpi_recv(ghost, 1, type, ranks, 7, comm, mpi_status_ignore, codes(2))
    call mpi_isend(field, 1, type, ranks, 7, comm, request, codes(3))
    call mpi_irecv(ghost, 1, type, ranks, 7, comm, request, codes(4))
    do i = 1, size(codes)
      call mpi_error_class(codes(i), class, error)
      call check(class == mpi_err_rank)
    end do
    call mpi_comm_free(comm, error)
  end subroutine

#ifdef HALOCLINE_F08
  ! Leaves out the last argument, which is optional in mpi_f08.
  subroutine without_error
    type(mpi_request) :: requests(2)
    type(mpi_datatype) :: copy
    logical :: done
    integer :: way, position, i
    call mpi_type_dup(type, copy)
    call mpi_type_commit(copy)
    do way = 1, 6
      ghost = -1
      select case (way)
      case (1)
        call mpi_irecv(ghost, 1, copy, previous, 7, mpi_comm_world, requests(1))
        call mpi_send(field, 1, copy, next, 7, mpi_comm_world)
        call mpi_wait(requests(1), mpi_status_ignore)
      case (2)
        call mpi_isend(field, 1, copy, next, 7, mpi_comm_world, requests(1))
        call mpi_recv(ghost, 1, copy, previous, 7, mpi_comm_world, mpi_status_ignore)
        call mpi_wait(requests(1), mpi_status_ignore)
      case (3)
        call mpi_irecv(ghost, 1, copy, previous, 7, mpi_comm_world, requests(1))
        call mpi_isend(field, 1, copy, next, 7, mpi_comm_world, requests(2))
        call mpi_waitall(2, requests, mpi_statuses_ignore)
      case (4)
        call mpi_sendrecv(field, 1, copy, next, 7, ghost, 1, copy, previous, 7, mpi_comm_world, mpi_status_ignore)
      case (5)
        call mpi_recv_init(ghost, 1, copy, previous, 7, mpi_comm_world, requests(1))
        call mpi_send_init(field, 1, copy, next, 7, mpi_comm_world, requests(2))
        call mpi_startall(2, requests)
        done = .false.
        do while (.not. done)
          call mpi_testall(2, requests, done, mpi_statuses_ignore)
        end do
        call mpi_request_free(requests(1))
        call mpi_request_free(requests(2))
      case (6)
        call mpi_alltoallv(field, counts, places, copy, ghost, counts, places, copy, mpi_comm_world)
        call check_column(ranks, ranks - 1, rank + 1)
        ghost = -1
        call mpi_alltoallw(field, counts, addresses, [(copy, i=1, ranks)], ghost, counts, addresses, [(copy, i=1, ranks)], &
                           mpi_comm_world)
        do i = 1, ranks
          call check_column(i, i - 1, rank + 1)
        end do
      end select
      if (way < 6) call check_column(1, previous, 1)
    end do
    ghost = -1
    position = 0
    call mpi_pack(field, 1, copy, packed, size(packed), position, mpi_comm_world)
    position = 0
    call mpi_unpack(packed, size(packed), position, ghost, 1, copy, mpi_comm_world)
    call check_column(1, rank, 1)
    call mpi_barrier(mpi_comm_world)
    call mpi_type_free(copy)
  end subroutine
#endif

  subroutine got(number)
    integer, intent(inout) :: number
    call check(number == 7)
    number = 0
  end subroutine

  ! Calls the functions that are only watched. Each moves one number from this rank to itself.
  subroutine watched_calls
    integer :: s, r, k, room_size
    HANDLE(mpi_comm) :: line, part
    HANDLE(mpi_request) :: request
    HANDLE(mpi_message) :: message
    HANDLE(mpi_win) :: window
    HANDLE(mpi_group) :: group
    STATUS :: status
    integer, pointer, asynchronous :: memory
    type(c_ptr) :: address
    integer :: one(1), zero(1)
    integer(kind=mpi_address_kind) :: size, place
    character :: room(1000)
    logical :: flag
    s = 7
    one = 1
    zero = 0
    place = 0
    r = 0
    call mpi_reduce(s, r, 1, mpi_integer, mpi_sum, 0, mpi_comm_self, error); call got(r)
    call mpi_allreduce(s, r, 1, mpi_integer, mpi_sum, mpi_comm_self, error); call got(r)
    call mpi_reduce_scatter(s, r, one, mpi_integer, mpi_sum, mpi_comm_self, error); call got(r)
    call mpi_reduce_scatter_block(s, r, 1, mpi_integer, mpi_sum, mpi_comm_self, error); call got(r)
    call mpi_scan(s, r, 1, mpi_integer, mpi_sum, mpi_comm_self, error); call got(r)
    call mpi_exscan(s, r, 1, mpi_integer, mpi_sum, mpi_comm_self, error)
    r = s
    call mpi_bcast(r, 1, mpi_integer, 0, mpi_comm_self, error); call got(r)
    call mpi_gather(s, 1, mpi_integer, r, 1, mpi_integer, 0, mpi_comm_self, error); call got(r)
    call mpi_gatherv(s, 1, mpi_integer, r, one, zero, mpi_integer, 0, mpi_comm_self, error); call got(r)
    call mpi_scatter(s, 1, mpi_integer, r, 1, mpi_integer, 0, mpi_comm_self, error); call got(r)
    call mpi_scatterv(s, one, zero, mpi_integer, r, 1, mpi_integer, 0, mpi_comm_self, error); call got(r)
    call mpi_allgather(s, 1, mpi_integer, r, 1, mpi_integer, mpi_comm_self, error); call got(r)
    call mpi_allgatherv(s, 1, mpi_integer, r, one, zero, mpi_integer, mpi_comm_self, error); call got(r)
    call mpi_alltoall(s, 1, mpi_integer, r, 1, mpi_integer, mpi_comm_self, error); call got(r)
    call mpi_dist_graph_create_adjacent(mpi_comm_self, 1, zero, one, 1, zero, one, mpi_info_null, .false., line, error)
    call mpi_neighbor_allgather(s, 1, mpi_integer, r, 1, mpi_integer, line, error); call got(r)
    call mpi_neighbor_allgatherv(s, 1, mpi_integer, r, one, zero, mpi_integer, line, error); call got(r)
    call mpi_neighbor_alltoall(s, 1, mpi_integer, r, 1, mpi_integer, line, error); call got(r)
    call mpi_neighbor_alltoallv(s, one, zero, mpi_integer, r, one, zero, mpi_integer, line, error); call got(r)
    call mpi_comm_free(line, error)
    call mpi_comm_split(mpi_comm_self, 0, 0, part, error)
    call mpi_comm_dup(part, line, error)
    call mpi_barrier(line, error)
    call mpi_comm_free(part, error)
    call mpi_comm_free(line, error)
    room_size = size_of_room(room)
    call mpi_buffer_attach(room, room_size, error)
    do k = 1, 3
      call mpi_irecv(r, 1, mpi_integer, 0, 3, mpi_comm_self, request, error)
      if (k == 1) call mpi_ssend(s, 1, mpi_integer, 0, 3, mpi_comm_self, error)
      if (k == 2) call mpi_rsend(s, 1, mpi_integer, 0, 3, mpi_comm_self, error)
      if (k == 3) call mpi_bsend(s, 1, mpi_integer, 0, 3, mpi_comm_self, error)
      call mpi_wait(request, status, error); call got(r)
    end do
    DETACH
    r = s
    call mpi_sendrecv_replace(r, 1, mpi_integer, 0, 3, 0, 3, mpi_comm_self, status, error); call got(r)
    do k = 1, 2
      call mpi_isend(s, 1, mpi_integer, 0, 5, mpi_comm_self, request, error)
      call mpi_probe(0, 5, mpi_comm_self, status, error)
      call check(TAG_OF(status) == 5)
      flag = .false.
      do while (.not. flag)
        call mpi_iprobe(0, 5, mpi_comm_self, flag, status, error)
      end do
      flag = k == 2
      if (k == 2) call mpi_mprobe(0, 5, mpi_comm_self, message, status, error)
      do while (.not. flag)
        call mpi_improbe(0, 5, mpi_comm_self, flag, message, status, error)
      end do
      call mpi_mrecv(r, 1, mpi_integer, message, status, error); call got(r)
      call mpi_wait(request, status, error)
    end do
    size = 4
    call mpi_win_allocate(size, 4, mpi_info_null, mpi_comm_self, address, window, error)
    call c_f_pointer(address, memory)
    memory = 0
    call mpi_comm_group(mpi_comm_self, group, error)
    do k = 1, 5
      if (k == 1) call mpi_win_fence(0, window, error)
      if (k == 2) call mpi_win_lock(mpi_lock_exclusive, 0, 0, window, error)
      if (k == 3) call mpi_win_lock_all(0, window, error)
      if (k >= 4) call mpi_win_post(group, 0, window, error)
      if (k >= 4) call mpi_win_start(group, 0, window, error)
      call mpi_put(s, 1, mpi_integer, 0, place, 1, mpi_integer, window, error)
      if (k == 1) call mpi_win_fence(0, window, error)
      if (k == 2) call mpi_win_flush(0, window, error)
      if (k == 2) call mpi_win_flush_local(0, window, error)
      if (k == 2) call mpi_win_unlock(0, window, error)
      if (k == 3) call mpi_win_flush_all(window, error)
      if (k == 3) call mpi_win_flush_local_all(window, error)
      if (k == 3) call mpi_win_unlock_all(window, error)
      if (k >= 4) call mpi_win_complete(window, error)
      flag = k < 4
      if (k == 5) call mpi_win_test(window, flag, error)
      if (.not. flag) call mpi_win_wait(window, error)
      call got(memory)
    end do
    call mpi_group_free(group, error)
    call mpi_win_free(window, error)
  end subroutine

  integer function size_of_room(room)
    character, intent(in) :: room(:)
    size_of_room = size(room)
  end function

end program
