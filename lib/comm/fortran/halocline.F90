! SPDX-License-Identifier: BSD-3-Clause
!> Exchanges halos for programs in Fortran 2018. The manual's page is lib/comm/fortran/README.md.
!!
!! Compile this file with your compiler and your MPI, and link libhalocline. Handles of MPI may be
!! integers (`use mpi`) or types (`use mpi_f08`). Where the MPI has no module mpi_f08, define
!! HALOCLINE_NO_MPI_F08.
!!
!! Every procedure has an optional `ierror`, which gets halocline_success or another code. Without
!! it, an error prints its reason and ends the program. If one rank gives a wrong argument to a
!! procedure that makes something, all ranks get the error, except for MPI_COMM_NULL. Errors of
!! start, finish, run and of single messages are their caller's alone. Arrays that plans keep must be
!! targets, pointers or asynchronous.
module halocline
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: int32, int64, real32, real64
#ifndef HALOCLINE_NO_MPI_F08
  use mpi_f08, only: MPI_Comm, MPI_Datatype
#endif
  implicit none
  private
  public :: halocline_version, halocline_last_error
  public :: halocline_allocate, halocline_deallocate
  public :: halocline_buffer, halocline_message, halocline_field
  public :: halocline_plan, halocline_info, halocline_plan_create, halocline_halo_create
  public :: halocline_messages, halocline_request, halocline_status, halocline_messages_create
  public :: halocline_collective, halocline_gather_create, halocline_scatter_create
  public :: halocline_allgather_create
  public :: halocline_packed_bytes, halocline_pack, halocline_unpack

  integer, parameter, public :: halocline_success = 0
  integer, parameter, public :: halocline_err_argument = 2     !< the program has to be changed
  integer, parameter, public :: halocline_err_environment = 3  !< memory, MPI or a device failed
  integer, parameter, public :: halocline_err_internal = 4     !< a fault of the library

  integer, parameter :: most_axes = 15

  !> Describes `count` instances of a datatype in an array. Make it with halocline_buffer(array,
  !! count, datatype). The array is of any type and rank, and without gaps.
  type, bind(c) :: halocline_buffer
    private
    type(c_ptr) :: address = c_null_ptr
    integer(c_int64_t) :: count = 0, stride = 0
    integer(c_int) :: datatype = 0, state = 0, rank = 0, dimension = 0
  end type
  !> Stands for the buffer of the root, if its block is in its place already.
  type(halocline_buffer), parameter, public :: halocline_in_place = &
    halocline_buffer(c_null_ptr, 0, 0, 0, 1, 0, 0)
  !> Stands for the buffer of all blocks on ranks other than the root.
  type(halocline_buffer), parameter, public :: halocline_no_buffer = &
    halocline_buffer(c_null_ptr, 0, 0, 0, 2, 0, 0)

  !> Describes a message to or from `partner`. Make it with halocline_message(array, count,
  !! datatype, partner, tag [, round]).
  type, bind(c) :: halocline_message
    private
    type(halocline_buffer) :: buffer
    integer(c_int) :: partner = 0, tag = 0, round = 0
  end type

  !> Describes an array with ghost points. Make it with halocline_field().
  type, bind(c) :: halocline_field
    private
    type(halocline_buffer) :: buffer, swapped
    integer(c_int64_t) :: element_bytes = 0, swapped_element_bytes = 0
    integer(c_int) :: has_swapped = 0, lows = 0, highs = 0
    integer(c_int64_t), dimension(most_axes) :: extent = 0, swapped_extent = 0, low = 0, high = 0
  end type

  !> Describes a plan.
  type :: halocline_info
    character(:), allocatable :: method      !< in use, also where "auto" was asked for
    character(:), allocatable :: transfer    !< how packed bytes travel: "host", "device", ...
    real(real64) :: predicted_seconds = 0    !< time of an exchange by the model; NaN without one
    integer(int64) :: bytes_to_others = 0    !< bytes that this rank sends to other ranks
    integer(int64) :: bytes_to_self = 0      !< bytes that it copies to itself
    integer(int64) :: messages = 0           !< messages to other ranks
  end type

  !> Represents a plan of an exchange. Make it with halocline_plan_create() or
  !! halocline_halo_create(). Copies are the same plan.
  type :: halocline_plan
    private
    type(c_ptr) :: handle = c_null_ptr
  contains
    procedure :: start => plan_start
    procedure :: progress => plan_progress
    procedure :: test => plan_test
    procedure :: finish => plan_finish
    procedure :: swap => plan_swap
    procedure :: info => plan_info
    procedure :: free => plan_free
  end type

  !> Describes a message that was received.
  type, bind(c) :: halocline_status
    integer(c_int) :: source = 0, tag = 0
    integer(c_int64_t) :: bytes = 0          !< packed bytes that arrived
  end type

  !> Represents an engine for single messages. Make it with halocline_messages_create().
  type :: halocline_messages
    private
    type(c_ptr) :: handle = c_null_ptr
  contains
    procedure :: send => messages_send
    procedure :: recv => messages_recv
    procedure :: isend => messages_isend
    procedure :: irecv => messages_irecv
    procedure :: free => messages_free
  end type

  !> Represents a message under way.
  type :: halocline_request
    private
    type(c_ptr) :: handle = c_null_ptr
  contains
    procedure :: wait => request_wait
  end type

  !> Represents a gather, scatter or allgather that runs often.
  type :: halocline_collective
    private
    type(c_ptr) :: handle = c_null_ptr
  contains
    procedure :: run => collective_run
    procedure :: free => collective_free
  end type

  !> Mirrors halocline_plan_info of C.
  type, bind(c) :: c_info
    integer(c_size_t) :: size
    type(c_ptr) :: method, transfer
    real(c_double) :: predicted_seconds
    integer(c_int64_t) :: bytes_to_others, bytes_to_self, messages
  end type

  !> Allocates `u(lower(1):upper(1), ...)`, which is real32 or real64 and of rank 1 to 7, in memory
  !! that neighbours on the node reach. The numbers are undefined. Free it with
  !! halocline_deallocate(). Collective over `comm`; bounds may differ between ranks. A pointer that
  !! is associated is refused. An error leaves `u` as it was.
  interface halocline_allocate
    procedure :: allocate_real32, allocate_real64
#ifndef HALOCLINE_NO_MPI_F08
    procedure :: allocate_real32_f08, allocate_real64_f08
#endif
  end interface

  !> Frees an array of halocline_allocate(). Plans of the same ranks, with messages or fields
  !! in it, keep its memory until they are freed. Collective.
  interface halocline_deallocate
    procedure :: deallocate_real32, deallocate_real64
  end interface

  interface halocline_buffer
    procedure :: buffer_int32, buffer_int64
#ifndef HALOCLINE_NO_MPI_F08
    procedure :: buffer_int32_f08, buffer_int64_f08
#endif
  end interface

  interface halocline_message
    procedure :: message_int32, message_int64
#ifndef HALOCLINE_NO_MPI_F08
    procedure :: message_int32_f08, message_int64_f08
#endif
  end interface

  interface halocline_field
    procedure :: field_of
#ifndef HALOCLINE_NO_MPI_F08
    procedure :: field_of_f08
#endif
  end interface

  !> Creates a plan that sends the messages `send` and receives `receive`. Collective over `comm`.
  !! Refuses a variable whose plan was not freed, as do the other procedures that create something.
  interface halocline_plan_create
    procedure :: plan_create
#ifndef HALOCLINE_NO_MPI_F08
    procedure :: plan_create_f08
#endif
  end interface

  !> Creates a plan that fills the ghost points of fields from the neighbours in a Cartesian
  !! communicator. Collective over it.
  interface halocline_halo_create
    procedure :: halo_create
#ifndef HALOCLINE_NO_MPI_F08
    procedure :: halo_create_f08
#endif
  end interface

  !> Creates an engine for single messages between the ranks of `comm`. Collective over `comm`.
  interface halocline_messages_create
    procedure :: messages_create
#ifndef HALOCLINE_NO_MPI_F08
    procedure :: messages_create_f08
#endif
  end interface

  !> Creates a gather. Each rank contributes `buffer`. The root gets the block of rank i as
  !! counts(i + 1) instances of the datatype of `all`. Without `counts`, each block has the count of
  !! `all`.
  interface halocline_gather_create
    procedure :: gather_create
#ifndef HALOCLINE_NO_MPI_F08
    procedure :: gather_create_f08
#endif
  end interface

  !> Creates a scatter, with the arguments of halocline_gather_create(): the root sends the blocks.
  interface halocline_scatter_create
    procedure :: scatter_create
#ifndef HALOCLINE_NO_MPI_F08
    procedure :: scatter_create_f08
#endif
  end interface

  !> Creates an allgather, in which every rank gets all blocks.
  interface halocline_allgather_create
    procedure :: allgather_create
#ifndef HALOCLINE_NO_MPI_F08
    procedure :: allgather_create_f08
#endif
  end interface

  ! ---- Functions of C ----

  abstract interface
    integer(c_int) function on_handle(handle) bind(c)
      import
      type(c_ptr), value :: handle
    end function
    integer(c_int) function on_address(handle) bind(c)
      import
      type(c_ptr), intent(inout) :: handle
    end function
    integer(c_int) function on_message(messages, message, request) bind(c)
      import
      type(c_ptr), value :: messages
      type(halocline_message), intent(in) :: message
      type(c_ptr), intent(inout) :: request
    end function
  end interface
  procedure(on_handle), bind(c, name='halocline_start') :: c_start
  procedure(on_handle), bind(c, name='halocline_progress') :: c_progress
  procedure(on_handle), bind(c, name='halocline_finish') :: c_finish
  procedure(on_handle), bind(c, name='halocline_swap') :: c_swap
  procedure(on_handle), bind(c, name='halocline_run') :: c_run
  procedure(on_address), bind(c, name='halocline_free') :: c_free
  procedure(on_address), bind(c, name='halocline_plan_free') :: c_plan_free
  procedure(on_address), bind(c, name='halocline_messages_free') :: c_messages_free
  procedure(on_address), bind(c, name='halocline_collective_free') :: c_collective_free
  procedure(on_message), bind(c, name='halocline_f_isend') :: c_isend
  procedure(on_message), bind(c, name='halocline_f_irecv') :: c_irecv

  interface
    !> Returns the version of the library that is loaded: 10000 major + 100 minor + patch.
    integer(c_int) function halocline_version() bind(c)
      import
    end function
    type(c_ptr) function c_last_error() bind(c, name='halocline_f_last_error')
      import
    end function
    integer(c_int) function c_test(plan, is_done) bind(c, name='halocline_test')
      import
      type(c_ptr), value :: plan
      integer(c_int), intent(out) :: is_done
    end function
    integer(c_int) function c_plan_inform(plan, info) bind(c, name='halocline_plan_inform')
      import
      type(c_ptr), value :: plan
      type(c_info), intent(inout) :: info
    end function
    integer(c_int) function c_wait(request, status) bind(c, name='halocline_wait')
      import
      type(c_ptr), intent(inout) :: request
      type(halocline_status), intent(out), optional :: status
    end function
    integer(c_int64_t) function c_look(array, axes, extent, is_dense, out) &
        bind(c, name='halocline_f_look')
      import
      type(*), dimension(..), target :: array
      integer(c_int), value :: axes, is_dense
      integer(c_int64_t), intent(in) :: extent(*)
      type(halocline_buffer), intent(inout) :: out
    end function
    integer(c_int) function c_alloc(comm, axes, element_bytes, is_associated, lowers, lower, &
        uppers, upper, memory) bind(c, name='halocline_f_alloc')
      import
      integer(c_int), value :: comm, axes, is_associated, lowers, uppers
      integer(c_int64_t), value :: element_bytes
      integer(c_int), intent(in) :: lower(*), upper(*)
      type(c_ptr), intent(inout) :: memory
    end function
    integer(c_int) function c_plan_create(comm, method, sends, send, receives, receive, &
        chunk_bytes, model, plan) bind(c, name='halocline_f_plan_create')
      import
      integer(c_int), value :: comm, sends, receives
      character(kind=c_char), intent(in) :: method(*)
      type(halocline_message), intent(in) :: send(*), receive(*)
      integer(c_int64_t), value :: chunk_bytes
      character(kind=c_char), intent(in), optional :: model(*)
      type(c_ptr), intent(inout) :: plan
    end function
    integer(c_int) function c_halo_create(cart, method, number, fields, most_axes, chunk_bytes, &
        model, plan) bind(c, name='halocline_f_halo_create')
      import
      integer(c_int), value :: cart, number, most_axes
      character(kind=c_char), intent(in) :: method(*)
      type(halocline_field), intent(in) :: fields(*)
      integer(c_int64_t), value :: chunk_bytes
      character(kind=c_char), intent(in), optional :: model(*)
      type(c_ptr), intent(inout) :: plan
    end function
    integer(c_int) function c_messages_create(comm, messages) &
        bind(c, name='halocline_f_messages_create')
      import
      integer(c_int), value :: comm
      type(c_ptr), intent(inout) :: messages
    end function
    integer(c_int) function c_send(messages, message) bind(c, name='halocline_f_send')
      import
      type(c_ptr), value :: messages
      type(halocline_message), intent(in) :: message
    end function
    integer(c_int) function c_recv(messages, message, status) bind(c, name='halocline_f_recv')
      import
      type(c_ptr), value :: messages
      type(halocline_message), intent(in) :: message
      type(halocline_status), intent(out), optional :: status
    end function
    integer(c_int) function c_collective_create(kind, comm, buffer, all, numbers, counts, root, &
        collective) bind(c, name='halocline_f_collective_create')
      import
      integer(c_int), value :: kind, comm, numbers, root
      type(halocline_buffer), intent(in) :: buffer, all
      integer(c_int64_t), intent(in), optional :: counts(*)
      type(c_ptr), intent(inout) :: collective
    end function
    integer(c_int) function c_packed_bytes(buffer, bytes) bind(c, name='halocline_f_packed_bytes')
      import
      type(halocline_buffer), intent(in) :: buffer
      integer(c_int64_t), intent(out) :: bytes
    end function
    integer(c_int) function c_pack(buffer, packed, position) bind(c, name='halocline_f_pack')
      import
      type(halocline_buffer), intent(in) :: buffer, packed
      integer(c_int64_t), intent(inout) :: position
    end function
    integer(c_int) function c_unpack(packed, position, buffer) bind(c, name='halocline_f_unpack')
      import
      type(halocline_buffer), intent(in) :: buffer, packed
      integer(c_int64_t), intent(inout) :: position
    end function
    subroutine c_stop(code) bind(c, name='halocline_f_stop')
      import
      integer(c_int), value :: code
    end subroutine
    integer(c_size_t) function c_strlen(text) bind(c, name='strlen')
      import
      type(c_ptr), value :: text
    end function
  end interface

contains

  ! ---- Errors ----

  !> Returns the reason of the last error in this thread, and what to do.
  function halocline_last_error() result(text)
    character(:), allocatable :: text
    text = text_of(c_last_error())
  end function

  function text_of(address) result(text)
    type(c_ptr), intent(in) :: address
    character(:), allocatable :: text
    character(kind=c_char), pointer :: letters(:)
    integer :: i
    call c_f_pointer(address, letters, [c_strlen(address)])
    allocate(character(size(letters)) :: text)
    do i = 1, size(letters)
      text(i:i) = letters(i)
    end do
  end function

  subroutine give(code, ierror)
    integer(c_int), intent(in) :: code
    integer, intent(out), optional :: ierror
    if (present(ierror)) then
      ierror = code
    else if (code /= halocline_success) then
      call c_stop(code)
    end if
  end subroutine

  ! ---- Memory ----

  !> Allocates memory for an array. Returns its address and the number of its elements.
  subroutine room(axes, element_bytes, is_taken, comm, lower, upper, address, elements, ierror)
    integer, intent(in) :: axes, element_bytes, comm, lower(:), upper(:)
    logical, intent(in) :: is_taken
    type(c_ptr), intent(out) :: address
    integer(int64), intent(out) :: elements
    integer, intent(out) :: ierror
    address = c_null_ptr
    elements = 0
    ierror = c_alloc(comm, axes, int(element_bytes, c_int64_t), merge(1, 0, is_taken), &
                     size(lower), lower, size(upper), upper, address)
    if (ierror == halocline_success) elements = product(max(int(upper, int64) - lower + 1, 0_int64))
  end subroutine

  ! Is written out for each kind, since a pointer of any type cannot get bounds.
  subroutine allocate_real32(u, comm, lower, upper, ierror)
    real(real32), pointer, intent(inout) :: u(..)
    integer, intent(in) :: comm, lower(:), upper(:)
    integer, intent(out), optional :: ierror
    real(real32), pointer :: flat(:)
    type(c_ptr) :: memory
    integer(int64) :: elements
    integer :: code
    call room(rank(u), 4, associated(u), comm, lower, upper, memory, elements, code)
    if (code == halocline_success) then
      call c_f_pointer(memory, flat, [elements])
      associate (l => lower, h => upper)
        select rank (u)
        rank (1); u(l(1):h(1)) => flat
        rank (2); u(l(1):h(1), l(2):h(2)) => flat
        rank (3); u(l(1):h(1), l(2):h(2), l(3):h(3)) => flat
        rank (4); u(l(1):h(1), l(2):h(2), l(3):h(3), l(4):h(4)) => flat
        rank (5); u(l(1):h(1), l(2):h(2), l(3):h(3), l(4):h(4), l(5):h(5)) => flat
        rank (6); u(l(1):h(1), l(2):h(2), l(3):h(3), l(4):h(4), l(5):h(5), l(6):h(6)) => flat
        rank (7); u(l(1):h(1), l(2):h(2), l(3):h(3), l(4):h(4), l(5):h(5), l(6):h(6), l(7):h(7)) => flat
        end select
      end associate
    end if
    call give(code, ierror)
  end subroutine

  subroutine allocate_real64(u, comm, lower, upper, ierror)
    real(real64), pointer, intent(inout) :: u(..)
    integer, intent(in) :: comm, lower(:), upper(:)
    integer, intent(out), optional :: ierror
    real(real64), pointer :: flat(:)
    type(c_ptr) :: memory
    integer(int64) :: elements
    integer :: code
    call room(rank(u), 8, associated(u), comm, lower, upper, memory, elements, code)
    if (code == halocline_success) then
      call c_f_pointer(memory, flat, [elements])
      associate (l => lower, h => upper)
        select rank (u)
        rank (1); u(l(1):h(1)) => flat
        rank (2); u(l(1):h(1), l(2):h(2)) => flat
        rank (3); u(l(1):h(1), l(2):h(2), l(3):h(3)) => flat
        rank (4); u(l(1):h(1), l(2):h(2), l(3):h(3), l(4):h(4)) => flat
        rank (5); u(l(1):h(1), l(2):h(2), l(3):h(3), l(4):h(4), l(5):h(5)) => flat
        rank (6); u(l(1):h(1), l(2):h(2), l(3):h(3), l(4):h(4), l(5):h(5), l(6):h(6)) => flat
        rank (7); u(l(1):h(1), l(2):h(2), l(3):h(3), l(4):h(4), l(5):h(5), l(6):h(6), l(7):h(7)) => flat
        end select
      end associate
    end if
    call give(code, ierror)
  end subroutine

  subroutine deallocate_real32(u, ierror)
    real(real32), pointer, intent(inout) :: u(..)
    integer, intent(out), optional :: ierror
    integer :: code
    code = halocline_success
    if (associated(u)) code = released(described(u))
    if (code == halocline_success) then
      select rank (u)
      rank (1); nullify(u); rank (2); nullify(u); rank (3); nullify(u); rank (4); nullify(u)
      rank (5); nullify(u); rank (6); nullify(u); rank (7); nullify(u)
      end select
    end if
    call give(code, ierror)
  end subroutine

  subroutine deallocate_real64(u, ierror)
    real(real64), pointer, intent(inout) :: u(..)
    integer, intent(out), optional :: ierror
    integer :: code
    code = halocline_success
    if (associated(u)) code = released(described(u))
    if (code == halocline_success) then
      select rank (u)
      rank (1); nullify(u); rank (2); nullify(u); rank (3); nullify(u); rank (4); nullify(u)
      rank (5); nullify(u); rank (6); nullify(u); rank (7); nullify(u)
      end select
    end if
    call give(code, ierror)
  end subroutine

  integer function released(buffer)
    type(halocline_buffer), intent(in) :: buffer
    type(c_ptr) :: memory
    memory = buffer%address
    released = c_free(memory)
  end function

  ! ---- Arrays, messages, fields ----

  !> Describes where an array lies, and whether it has gaps. C cannot ask that: the descriptors of
  !! compilers differ.
  function described(array, element_bytes, extent) result(buffer)
    type(*), dimension(..), target :: array
    integer(c_int64_t), intent(out), optional :: element_bytes, extent(most_axes)
    type(halocline_buffer) :: buffer
    integer(c_int64_t) :: bytes, extents(most_axes)
    extents = 0
    extents(:rank(array)) = shape(array, c_int64_t)
    bytes = c_look(array, rank(array), extents, merge(1, 0, is_contiguous(array)), buffer)
    if (present(element_bytes)) element_bytes = bytes
    if (present(extent)) extent = extents
  end function

  function buffer_int64(array, count, datatype) result(buffer)
    type(*), dimension(..), target :: array
    integer(int64), intent(in) :: count
    integer, intent(in) :: datatype
    type(halocline_buffer) :: buffer
    buffer = described(array)
    buffer%count = count
    buffer%datatype = datatype
  end function

  function buffer_int32(array, count, datatype) result(buffer)
    type(*), dimension(..), target :: array
    integer(int32), intent(in) :: count
    integer, intent(in) :: datatype
    type(halocline_buffer) :: buffer
    buffer = buffer_int64(array, int(count, int64), datatype)
  end function

  function message_int64(array, count, datatype, partner, tag, round) result(message)
    type(*), dimension(..), target :: array
    integer(int64), intent(in) :: count
    integer, intent(in) :: datatype, partner, tag
    integer, intent(in), optional :: round
    type(halocline_message) :: message
    message%buffer = buffer_int64(array, count, datatype)
    message%partner = partner
    message%tag = tag
    if (present(round)) message%round = round
  end function

  function message_int32(array, count, datatype, partner, tag, round) result(message)
    type(*), dimension(..), target :: array
    integer(int32), intent(in) :: count
    integer, intent(in) :: datatype, partner, tag
    integer, intent(in), optional :: round
    type(halocline_message) :: message
    message = message_int64(array, int(count, int64), datatype, partner, tag, round)
  end function

  !> Describes an array with `low` ghost points below its owned points along each dimension of the
  !! Cartesian communicator, and `high` ones above (default: as below). Axes of the array before
  !! those are numbers of one point. `swapped` is the array of every second step, see swap().
  function field_of(array, element, low, high, swapped) result(field)
    type(*), dimension(..), target :: array
    integer, intent(in) :: element, low(:)
    integer, intent(in), optional :: high(:)
    type(*), dimension(..), target, optional :: swapped
    type(halocline_field) :: field
    field%buffer = described(array, field%element_bytes, field%extent)
    field%buffer%datatype = element
    field%buffer%count = 1
    field%lows = size(low)
    field%low = padded(low)
    if (present(high)) then
      field%highs = size(high)
      field%high = padded(high)
    else
      field%highs = field%lows
      field%high = field%low
    end if
    if (present(swapped)) then
      field%swapped = described(swapped, field%swapped_element_bytes, field%swapped_extent)
      field%swapped%count = 1
      field%has_swapped = 1
    end if
  end function

  function padded(widths) result(all)
    integer, intent(in) :: widths(:)
    integer(c_int64_t) :: all(most_axes)
    integer :: given
    given = min(size(widths), most_axes)
    all = 0
    all(:given) = widths(:given)
  end function

  ! ---- Plans ----

  subroutine plan_create(plan, comm, method, send, receive, ierror, chunk_bytes, model)
    type(halocline_plan), intent(inout) :: plan
    integer, intent(in) :: comm
    character(*), intent(in) :: method
    type(halocline_message), intent(in) :: send(:), receive(:)
    integer, intent(out), optional :: ierror
    integer(int64), intent(in), optional :: chunk_bytes  !< length of pieces; 0: whole messages
    character(*), intent(in), optional :: model          !< file of a system model; '': the default
    character(:), allocatable :: path
    integer(c_int64_t) :: chunk
    call options(chunk_bytes, model, chunk, path)
    call give(c_plan_create(comm, trim(method)//c_null_char, size(send), send, size(receive), &
                            receive, chunk, path, plan%handle), ierror)
  end subroutine

  subroutine halo_create(plan, cart, method, fields, most_axes, ierror, chunk_bytes, model)
    type(halocline_plan), intent(inout) :: plan
    integer, intent(in) :: cart
    character(*), intent(in) :: method
    type(halocline_field), intent(in) :: fields(:)
    integer, intent(in), optional :: most_axes           !< 3-D: 1, 6 neighbours; 2: 18; else 26
    integer, intent(out), optional :: ierror
    integer(int64), intent(in), optional :: chunk_bytes
    character(*), intent(in), optional :: model
    character(:), allocatable :: path
    integer(c_int64_t) :: chunk
    integer(c_int) :: axes
    axes = 4  ! HALOCLINE_MAX_AXES: all
    if (present(most_axes)) axes = most_axes
    call options(chunk_bytes, model, chunk, path)
    call give(c_halo_create(cart, trim(method)//c_null_char, size(fields), fields, axes, &
                            chunk, path, plan%handle), ierror)
  end subroutine

  !> Leaves `path` unallocated without a model: C gets NULL for it.
  subroutine options(chunk_bytes, model, chunk, path)
    integer(int64), intent(in), optional :: chunk_bytes
    character(*), intent(in), optional :: model
    integer(c_int64_t), intent(out) :: chunk
    character(:), allocatable, intent(out) :: path
    chunk = -1  ! stands for the default, so other negative numbers stand for mistakes
    if (present(chunk_bytes)) chunk = merge(-2_int64, chunk_bytes, chunk_bytes == -1)
    if (present(model)) path = trim(model)//c_null_char
  end subroutine

  !> Starts an exchange. Until it is finished, leave what is sent and received alone.
  subroutine plan_start(this, ierror)
    class(halocline_plan), intent(in) :: this
    integer, intent(out), optional :: ierror
    call give(c_start(this%handle), ierror)
  end subroutine

  !> Lets MPI and the plan do what they can do without waiting.
  subroutine plan_progress(this, ierror)
    class(halocline_plan), intent(in) :: this
    integer, intent(out), optional :: ierror
    call give(c_progress(this%handle), ierror)
  end subroutine

  !> Completes the exchange if no message is awaited any more. Repeat it until `is_done`.
  subroutine plan_test(this, is_done, ierror)
    class(halocline_plan), intent(in) :: this
    logical, intent(out) :: is_done
    integer, intent(out), optional :: ierror
    integer(c_int) :: done
    done = 0
    call give(c_test(this%handle, done), ierror)
    is_done = done /= 0
  end subroutine

  !> Completes the exchange: ghosts are filled, and what was sent may be written.
  subroutine plan_finish(this, ierror)
    class(halocline_plan), intent(in) :: this
    integer, intent(out), optional :: ierror
    call give(c_finish(this%handle), ierror)
  end subroutine

  !> Makes the next start exchange the other array of each field.
  subroutine plan_swap(this, ierror)
    class(halocline_plan), intent(in) :: this
    integer, intent(out), optional :: ierror
    call give(c_swap(this%handle), ierror)
  end subroutine

  !> Describes a plan.
  subroutine plan_info(this, info, ierror)
    class(halocline_plan), intent(in) :: this
    type(halocline_info), intent(out) :: info
    integer, intent(out), optional :: ierror
    type(c_info) :: got
    integer :: code
    got%size = c_sizeof(got)
    code = c_plan_inform(this%handle, got)
    if (code == halocline_success) then
      info%method = text_of(got%method)
      info%transfer = text_of(got%transfer)
      info%predicted_seconds = got%predicted_seconds
      info%bytes_to_others = got%bytes_to_others
      info%bytes_to_self = got%bytes_to_self
      info%messages = got%messages
    end if
    call give(code, ierror)
  end subroutine

  !> Frees a plan. Completes an exchange that was started. Collective.
  subroutine plan_free(this, ierror)
    class(halocline_plan), intent(inout) :: this
    integer, intent(out), optional :: ierror
    call give(c_plan_free(this%handle), ierror)
  end subroutine

  ! ---- Single messages ----

  subroutine messages_create(messages, comm, ierror)
    type(halocline_messages), intent(inout) :: messages
    integer, intent(in) :: comm
    integer, intent(out), optional :: ierror
    call give(c_messages_create(comm, messages%handle), ierror)
  end subroutine

  !> Sends a message. Returns when the array may be used again.
  subroutine messages_send(this, message, ierror)
    class(halocline_messages), intent(in) :: this
    type(halocline_message), intent(in) :: message
    integer, intent(out), optional :: ierror
    call give(c_send(this%handle, message), ierror)
  end subroutine

  !> Receives a message. Its partner may be MPI_ANY_SOURCE, its tag MPI_ANY_TAG.
  subroutine messages_recv(this, message, status, ierror)
    class(halocline_messages), intent(in) :: this
    type(halocline_message), intent(in) :: message
    type(halocline_status), intent(out), optional :: status
    integer, intent(out), optional :: ierror
    call give(c_recv(this%handle, message, status), ierror)
  end subroutine

  !> Starts to send. The array must not change before the request is waited for. Refuses a request
  !! that is open already.
  subroutine messages_isend(this, message, request, ierror)
    class(halocline_messages), intent(in) :: this
    type(halocline_message), intent(in) :: message
    type(halocline_request), intent(inout) :: request
    integer, intent(out), optional :: ierror
    call give(c_isend(this%handle, message, request%handle), ierror)
  end subroutine

  !> Starts to receive. The array must not be used before the request is waited for. Refuses a
  !! request that is open already.
  subroutine messages_irecv(this, message, request, ierror)
    class(halocline_messages), intent(in) :: this
    type(halocline_message), intent(in) :: message
    type(halocline_request), intent(inout) :: request
    integer, intent(out), optional :: ierror
    call give(c_irecv(this%handle, message, request%handle), ierror)
  end subroutine

  !> Waits until a message is complete.
  subroutine request_wait(this, status, ierror)
    class(halocline_request), intent(inout) :: this
    type(halocline_status), intent(out), optional :: status
    integer, intent(out), optional :: ierror
    call give(c_wait(this%handle, status), ierror)
  end subroutine

  !> Frees an engine, whose requests must be complete. Collective.
  subroutine messages_free(this, ierror)
    class(halocline_messages), intent(inout) :: this
    integer, intent(out), optional :: ierror
    call give(c_messages_free(this%handle), ierror)
  end subroutine

  ! ---- Gathers ----

  subroutine gather_create(gather, comm, buffer, all, root, counts, ierror)
    type(halocline_collective), intent(inout) :: gather
    integer, intent(in) :: comm, root
    type(halocline_buffer), intent(in) :: buffer, all
    integer(int64), intent(in), optional :: counts(:)
    integer, intent(out), optional :: ierror
    call collective_create(gather, 0, comm, buffer, all, root, counts, ierror)
  end subroutine

  subroutine scatter_create(scatter, comm, buffer, all, root, counts, ierror)
    type(halocline_collective), intent(inout) :: scatter
    integer, intent(in) :: comm, root
    type(halocline_buffer), intent(in) :: buffer, all
    integer(int64), intent(in), optional :: counts(:)
    integer, intent(out), optional :: ierror
    call collective_create(scatter, 1, comm, buffer, all, root, counts, ierror)
  end subroutine

  subroutine allgather_create(allgather, comm, buffer, all, counts, ierror)
    type(halocline_collective), intent(inout) :: allgather
    integer, intent(in) :: comm
    type(halocline_buffer), intent(in) :: buffer, all
    integer(int64), intent(in), optional :: counts(:)
    integer, intent(out), optional :: ierror
    call collective_create(allgather, 2, comm, buffer, all, 0, counts, ierror)
  end subroutine

  subroutine collective_create(collective, kind, comm, buffer, all, root, counts, ierror)
    type(halocline_collective), intent(inout) :: collective
    integer, intent(in) :: kind, comm, root
    type(halocline_buffer), intent(in) :: buffer, all
    integer(int64), intent(in), optional :: counts(:)
    integer, intent(out), optional :: ierror
    integer :: numbers
    numbers = -1
    if (present(counts)) numbers = size(counts)
    call give(c_collective_create(kind, comm, buffer, all, numbers, counts, root, &
                                  collective%handle), ierror)
  end subroutine

  !> Runs a collective with the present contents of its arrays. Collective.
  subroutine collective_run(this, ierror)
    class(halocline_collective), intent(in) :: this
    integer, intent(out), optional :: ierror
    call give(c_run(this%handle), ierror)
  end subroutine

  !> Frees a collective.
  subroutine collective_free(this, ierror)
    class(halocline_collective), intent(inout) :: this
    integer, intent(out), optional :: ierror
    call give(c_collective_free(this%handle), ierror)
  end subroutine

  ! ---- Packing ----

  !> Returns the bytes that a buffer takes when it is packed.
  subroutine halocline_packed_bytes(buffer, bytes, ierror)
    type(halocline_buffer), intent(in) :: buffer
    integer(int64), intent(out) :: bytes
    integer, intent(out), optional :: ierror
    bytes = 0
    call give(c_packed_bytes(buffer, bytes), ierror)
  end subroutine

  !> Packs a buffer behind the first `position` bytes of `packed`, which `position` then includes.
  subroutine halocline_pack(buffer, packed, position, ierror)
    type(halocline_buffer), intent(in) :: buffer
    type(*), dimension(..), intent(inout), target :: packed
    integer(int64), intent(inout) :: position
    integer, intent(out), optional :: ierror
    call give(c_pack(buffer, bytes_of(packed), position), ierror)
  end subroutine

  !> Unpacks a buffer from behind the first `position` bytes of `packed`.
  subroutine halocline_unpack(packed, position, buffer, ierror)
    type(*), dimension(..), intent(in), target :: packed
    integer(int64), intent(inout) :: position
    type(halocline_buffer), intent(in) :: buffer
    integer, intent(out), optional :: ierror
    call give(c_unpack(bytes_of(packed), position, buffer), ierror)
  end subroutine

  !> Describes an array by its bytes.
  function bytes_of(array) result(buffer)
    type(*), dimension(..), target :: array
    type(halocline_buffer) :: buffer
    integer(c_int64_t) :: element_bytes
    buffer = described(array, element_bytes)
    buffer%count = element_bytes * size(array, kind=int64)
  end function

#ifndef HALOCLINE_NO_MPI_F08
  ! ---- Handles of mpi_f08 ----

  subroutine allocate_real32_f08(u, comm, lower, upper, ierror)
    real(real32), pointer, intent(inout) :: u(..)
    type(MPI_Comm), intent(in) :: comm
    integer, intent(in) :: lower(:), upper(:)
    integer, intent(out), optional :: ierror
    call allocate_real32(u, comm%MPI_VAL, lower, upper, ierror)
  end subroutine

  subroutine allocate_real64_f08(u, comm, lower, upper, ierror)
    real(real64), pointer, intent(inout) :: u(..)
    type(MPI_Comm), intent(in) :: comm
    integer, intent(in) :: lower(:), upper(:)
    integer, intent(out), optional :: ierror
    call allocate_real64(u, comm%MPI_VAL, lower, upper, ierror)
  end subroutine

  function buffer_int64_f08(array, count, datatype) result(buffer)
    type(*), dimension(..), target :: array
    integer(int64), intent(in) :: count
    type(MPI_Datatype), intent(in) :: datatype
    type(halocline_buffer) :: buffer
    buffer = buffer_int64(array, count, datatype%MPI_VAL)
  end function

  function buffer_int32_f08(array, count, datatype) result(buffer)
    type(*), dimension(..), target :: array
    integer(int32), intent(in) :: count
    type(MPI_Datatype), intent(in) :: datatype
    type(halocline_buffer) :: buffer
    buffer = buffer_int64(array, int(count, int64), datatype%MPI_VAL)
  end function

  function message_int64_f08(array, count, datatype, partner, tag, round) result(message)
    type(*), dimension(..), target :: array
    integer(int64), intent(in) :: count
    type(MPI_Datatype), intent(in) :: datatype
    integer, intent(in) :: partner, tag
    integer, intent(in), optional :: round
    type(halocline_message) :: message
    message = message_int64(array, count, datatype%MPI_VAL, partner, tag, round)
  end function

  function message_int32_f08(array, count, datatype, partner, tag, round) result(message)
    type(*), dimension(..), target :: array
    integer(int32), intent(in) :: count
    type(MPI_Datatype), intent(in) :: datatype
    integer, intent(in) :: partner, tag
    integer, intent(in), optional :: round
    type(halocline_message) :: message
    message = message_int64(array, int(count, int64), datatype%MPI_VAL, partner, tag, round)
  end function

  function field_of_f08(array, element, low, high, swapped) result(field)
    type(*), dimension(..), target :: array
    type(MPI_Datatype), intent(in) :: element
    integer, intent(in) :: low(:)
    integer, intent(in), optional :: high(:)
    type(*), dimension(..), target, optional :: swapped
    type(halocline_field) :: field
    field = field_of(array, element%MPI_VAL, low, high, swapped)
  end function

  subroutine plan_create_f08(plan, comm, method, send, receive, ierror, chunk_bytes, model)
    type(halocline_plan), intent(inout) :: plan
    type(MPI_Comm), intent(in) :: comm
    character(*), intent(in) :: method
    type(halocline_message), intent(in) :: send(:), receive(:)
    integer, intent(out), optional :: ierror
    integer(int64), intent(in), optional :: chunk_bytes
    character(*), intent(in), optional :: model
    call plan_create(plan, comm%MPI_VAL, method, send, receive, ierror, chunk_bytes, model)
  end subroutine

  subroutine halo_create_f08(plan, cart, method, fields, most_axes, ierror, chunk_bytes, model)
    type(halocline_plan), intent(inout) :: plan
    type(MPI_Comm), intent(in) :: cart
    character(*), intent(in) :: method
    type(halocline_field), intent(in) :: fields(:)
    integer, intent(in), optional :: most_axes
    integer, intent(out), optional :: ierror
    integer(int64), intent(in), optional :: chunk_bytes
    character(*), intent(in), optional :: model
    call halo_create(plan, cart%MPI_VAL, method, fields, most_axes, ierror, chunk_bytes, model)
  end subroutine

  subroutine messages_create_f08(messages, comm, ierror)
    type(halocline_messages), intent(inout) :: messages
    type(MPI_Comm), intent(in) :: comm
    integer, intent(out), optional :: ierror
    call messages_create(messages, comm%MPI_VAL, ierror)
  end subroutine

  subroutine gather_create_f08(gather, comm, buffer, all, root, counts, ierror)
    type(halocline_collective), intent(inout) :: gather
    type(MPI_Comm), intent(in) :: comm
    type(halocline_buffer), intent(in) :: buffer, all
    integer, intent(in) :: root
    integer(int64), intent(in), optional :: counts(:)
    integer, intent(out), optional :: ierror
    call gather_create(gather, comm%MPI_VAL, buffer, all, root, counts, ierror)
  end subroutine

  subroutine scatter_create_f08(scatter, comm, buffer, all, root, counts, ierror)
    type(halocline_collective), intent(inout) :: scatter
    type(MPI_Comm), intent(in) :: comm
    type(halocline_buffer), intent(in) :: buffer, all
    integer, intent(in) :: root
    integer(int64), intent(in), optional :: counts(:)
    integer, intent(out), optional :: ierror
    call scatter_create(scatter, comm%MPI_VAL, buffer, all, root, counts, ierror)
  end subroutine

  subroutine allgather_create_f08(allgather, comm, buffer, all, counts, ierror)
    type(halocline_collective), intent(inout) :: allgather
    type(MPI_Comm), intent(in) :: comm
    type(halocline_buffer), intent(in) :: buffer, all
    integer(int64), intent(in), optional :: counts(:)
    integer, intent(out), optional :: ierror
    call allgather_create(allgather, comm%MPI_VAL, buffer, all, counts, ierror)
  end subroutine
#endif

end module
