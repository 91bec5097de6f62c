! SPDX-License-Identifier: Apache-2.0
!
! quern_kernels.f90: kernels in Fortran: a builder whose values have Fortran's operators, and launches on Fortran arrays of
! any rank and stride as they are. Fortran 2018, compiled into your program with quern_f.f90, quern_values.f90 and quern_f.c.
! Dimensions and ranges count as in Fortran: from 1, with both ends. A failure sets stat and errmsg, as that of an allocate
! statement; without stat the program stops with the message.
module quern_kernels
    use, intrinsic :: iso_c_binding
    use, intrinsic :: iso_fortran_env, only: int32, int64, real32, real64, output_unit
    use quern, only: qn_error, qn_message, qn_bool, qn_i8, qn_i16, qn_i32, qn_i64, qn_u8, qn_u16, qn_u32, qn_u64, qn_f32, &
                     qn_f64, qn_f16, qn_bf16, qn_c64, qn_c128, qn_read_only
    use quern_values
    use quern_c
    implicit none
    private
    public :: qn_builder, qn_array, qn_table, qn_kernel, qn_parse, qn_launch, qn_set_options, qn_text, qn_release_kernel
    public :: qn_value, qn_number, qn_op, qn_math, qn_cast, qn_bitcast, qn_type_of
    public :: operator(+), operator(-), operator(*), operator(/), operator(**)
    public :: operator(==), operator(/=), operator(<), operator(<=), operator(>), operator(>=)
    public :: operator(.and.), operator(.or.), operator(.not.)
    public :: abs, sqrt, min, max, mod, sign, merge, aint, iand, ior, ieor, not, shiftl, shiftr
    public :: exp, log, log10, sin, cos, tan, asin, acos, atan, atan2, sinh, cosh, tanh, asinh, acosh, atanh
    public :: erf, erfc, gamma, log_gamma, hypot, popcnt, leadz, trailz, fma
    public :: qn_bool, qn_i8, qn_i16, qn_i32, qn_i64, qn_u8, qn_u16, qn_u32, qn_u64, qn_f32, qn_f64, qn_f16, qn_bf16, &
              qn_c64, qn_c128, qn_read_only, qn_atomic, qn_contract
    public :: qn_sum, qn_prod, qn_min, qn_max, qn_and, qn_or, qn_xor, qn_exchange, qn_indexed, qn_striped, qn_ordered

    ! Traits, flags, combinations and orders, as in quern.h.
    integer(c_int32_t), parameter :: qn_atomic = 2, qn_contract = 1
    integer(c_int), parameter :: qn_sum = 0, qn_prod = 1, qn_min = 2, qn_max = 3, qn_and = 4, qn_or = 5, qn_xor = 6, &
                                 qn_exchange = 7
    integer(c_int), parameter :: qn_indexed = 1, qn_striped = 2, qn_ordered = 3
    integer(c_int), parameter :: parallel_kind = 0, reduction_kind = 1, sequential_kind = 2

    ! A kernel under construction. release it, finished or not.
    type :: qn_builder
        type(c_ptr) :: handle = c_null_ptr
    contains
        procedure :: new => builder_new
        procedure :: release => builder_release
        procedure :: array => builder_array
        procedure :: scalar => builder_scalar
        procedure :: number => builder_number
        procedure :: table => builder_table
        procedure :: parallel => builder_parallel
        procedure :: parallel_over => builder_parallel_over
        procedure :: reduction => builder_reduction
        procedure :: reduction_over => builder_reduction_over
        procedure :: sequential => builder_sequential
        procedure :: begin_reduce => builder_begin_reduce
        procedure :: end_reduce => builder_end_reduce
        procedure :: begin_if => builder_begin_if
        procedure :: begin_else => builder_begin_else
        procedure :: end_if => builder_end_if
        procedure :: begin_do => builder_begin_do
        procedure :: end_do => builder_end_do
        procedure :: begin_while => builder_begin_while
        procedure :: while_holds => builder_while_holds
        procedure :: end_while => builder_end_while
        procedure :: check => builder_check
        procedure :: print => builder_print
        procedure :: at => builder_at
        procedure :: name => builder_name
        procedure :: finish => builder_finish
    end type

    ! An array parameter of a kernel under construction.
    type :: qn_array
        integer(c_int64_t) :: id = 0
        type(c_ptr) :: builder = c_null_ptr
        integer(c_int) :: dtype = 0
    contains
        procedure :: load => array_load
        procedure :: store => array_store
        procedure :: atomic => array_atomic
        procedure :: size => array_size
        procedure :: lbound => array_lbound
        procedure :: ubound => array_ubound
    end type

    ! Numbers that are part of a kernel's code.
    type :: qn_table
        integer(c_int32_t) :: id = 0
        type(c_ptr) :: builder = c_null_ptr
    contains
        procedure :: load => table_load
    end type

    ! A finished kernel with the options of its launches. Assignment copies the handle; release it once.
    type, bind(c) :: qn_kernel
        type(c_ptr) :: handle = c_null_ptr, options = c_null_ptr
    end type

    ! Indices of an element.
    integer, parameter :: most_indices = 7

    interface
        ! Runs a kernel on arrays and numbers, in the order of its parameters. Arrays are used as they are: sections with any
        ! stride, no copies. Indices begin at 1 in each dimension, or at `lower`, which has the bounds of all arrays one
        ! behind the other: lower=[lbound(x), lbound(y)]. A number has the type and kind of its parameter, or is an integer.
        subroutine qn_launch(k, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, lower, stat, errmsg) &
            bind(c, name="qn_f_launch")
            import :: c_int, c_char, qn_kernel
            type(qn_kernel), intent(in) :: k
            type(*), dimension(..), optional :: a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16
            integer(c_int), intent(in), optional :: lower(:)
            integer(c_int), intent(out), optional :: stat
            character(kind=c_char, len=*), intent(inout), optional :: errmsg
        end subroutine
    end interface

contains

    ! ---------------------------------------------------------------------------------------------- errors

    ! Where quern_f.c stops the program, as report does.
    subroutine stop_with(err) bind(c, name="qn_f_stop")
        type(qn_error), intent(in) :: err
        call report(err%status, err)
    end subroutine

    ! Where quern_f.c writes a line that a kernel prints.
    subroutine print_line(text, n) bind(c, name="qn_f_print")
        character(kind=c_char), intent(in) :: text(*)
        integer(c_int), value :: n
        integer :: i
        write (output_unit, '(*(a))') (text(i), i=1, n)
    end subroutine

    ! Gives a status and its message to the caller, or stops where the caller takes none.
    subroutine report(status, err, stat, errmsg)
        integer(c_int), intent(in) :: status
        type(qn_error), intent(in) :: err
        integer, intent(out), optional :: stat
        character(len=*), intent(inout), optional :: errmsg
        if (status /= 0 .and. present(errmsg)) errmsg = qn_message(err)
        if (present(stat)) then
            stat = status
        else if (status /= 0) then
            error stop trim(qn_message(err))
        end if
    end subroutine

    ! ---------------------------------------------------------------------------------------------- builder

    ! Begins a kernel of this name; flags: qn_contract or 0.
    subroutine builder_new(b, name, flags)
        class(qn_builder), intent(inout) :: b
        character(len=*), intent(in) :: name
        integer(c_int32_t), intent(in), optional :: flags
        integer(c_int32_t) :: given
        given = 0
        if (present(flags)) given = flags
        call b%release()
        b%handle = builder_new_c(name // c_null_char, given)
    end subroutine

    subroutine builder_release(b)
        class(qn_builder), intent(inout) :: b
        call builder_release_c(b%handle)
        b%handle = c_null_ptr
    end subroutine

    ! An array parameter: dtype qn_f64, ...; traits qn_read_only, qn_atomic. All parameters come first.
    function builder_array(b, name, dtype, rank, traits) result(a)
        class(qn_builder), intent(in) :: b
        character(len=*), intent(in) :: name
        integer(c_int), intent(in) :: dtype
        integer, intent(in) :: rank
        integer(c_int32_t), intent(in), optional :: traits
        type(qn_array) :: a
        integer(c_int32_t) :: given
        given = 0
        if (present(traits)) given = traits
        a%builder = b%handle
        a%dtype = dtype
        a%id = view_param_n(b%handle, name // c_null_char, dtype, int(rank, c_int), given)
    end function

    function builder_scalar(b, name, dtype) result(x)
        class(qn_builder), intent(in) :: b
        character(len=*), intent(in) :: name
        integer(c_int), intent(in) :: dtype
        type(qn_value) :: x
        x = qn_value(scalar_param_n(b%handle, name // c_null_char, dtype), b%handle)
    end function

    ! A number as a value, of its type and kind.
    function builder_number(b, number) result(x)
        class(qn_builder), intent(in) :: b
        class(*), intent(in) :: number
        type(qn_value) :: x
        x = value_of(b%handle, number)
    end function

    ! Numbers that become part of the code.
    function builder_table(b, numbers) result(t)
        class(qn_builder), intent(in) :: b
        class(*), intent(in) :: numbers(:)
        type(qn_table) :: t
        integer(int32), allocatable, target :: i4(:)
        integer(int64), allocatable, target :: i8(:)
        real(real32), allocatable, target :: r4(:)
        real(real64), allocatable, target :: r8(:)
        integer(c_int64_t) :: n
        n = size(numbers, kind=c_int64_t)
        t%builder = b%handle
        select type (numbers)
        type is (integer(int32))
            allocate (i4(size(numbers)), source=numbers)
            t%id = const_array_n(b%handle, qn_i32, n, c_loc(i4))
        type is (integer(int64))
            allocate (i8(size(numbers)), source=numbers)
            t%id = const_array_n(b%handle, qn_i64, n, c_loc(i8))
        type is (real(real32))
            allocate (r4(size(numbers)), source=numbers)
            t%id = const_array_n(b%handle, qn_f32, n, c_loc(r4))
        type is (real(real64))
            allocate (r8(size(numbers)), source=numbers)
            t%id = const_array_n(b%handle, qn_f64, n, c_loc(r8))
        class default
            t%id = const_array_n(b%handle, 0_c_int, n, c_null_ptr)
        end select
    end function

    ! Number i of a table, from 1; the first or last one for an i beyond.
    function table_load(t, i) result(x)
        class(qn_table), intent(in) :: t
        class(*), intent(in) :: i
        type(qn_value) :: x, before
        before = value_of(t%builder, i) - 1
        x = qn_value(lookup_n(t%builder, t%id, before%id), t%builder)
    end function

    ! ---------------------------------------------------------------------------------------------- dimensions

    ! The index from first to last, both included, of a dimension of a kind.
    function range_of(b, kind, first, last) result(i)
        type(c_ptr), intent(in) :: b
        integer(c_int), intent(in) :: kind
        class(*), intent(in) :: first, last
        type(qn_value) :: i, begin, past
        begin = qn_cast(value_of(b, first), qn_i64)
        past = qn_cast(value_of(b, last), qn_i64) + 1
        i = qn_value(dimension_n(b, kind, begin%id, past%id), b)
    end function

    ! Independent iterations over a range, and over a dimension of an array.
    function builder_parallel(b, first, last) result(i)
        class(qn_builder), intent(in) :: b
        class(*), intent(in) :: first, last
        type(qn_value) :: i
        i = range_of(b%handle, parallel_kind, first, last)
    end function

    function builder_parallel_over(b, a, d) result(i)
        class(qn_builder), intent(in) :: b
        type(qn_array), intent(in) :: a
        integer, intent(in) :: d
        type(qn_value) :: i
        i = range_of(b%handle, parallel_kind, a%lbound(d), a%ubound(d))
    end function

    ! Indices for begin_reduce.
    function builder_reduction(b, first, last) result(i)
        class(qn_builder), intent(in) :: b
        class(*), intent(in) :: first, last
        type(qn_value) :: i
        i = range_of(b%handle, reduction_kind, first, last)
    end function

    function builder_reduction_over(b, a, d) result(i)
        class(qn_builder), intent(in) :: b
        type(qn_array), intent(in) :: a
        integer, intent(in) :: d
        type(qn_value) :: i
        i = range_of(b%handle, reduction_kind, a%lbound(d), a%ubound(d))
    end function

    ! Steps in order, outside all parallel dimensions.
    function builder_sequential(b, first, last) result(i)
        class(qn_builder), intent(in) :: b
        class(*), intent(in) :: first, last
        type(qn_value) :: i
        i = range_of(b%handle, sequential_kind, first, last)
    end function

    ! ---------------------------------------------------------------------------------------------- arrays

    subroutine add_index(b, index, ids, n)
        type(c_ptr), intent(in) :: b
        class(*), intent(in), optional :: index
        integer(c_int64_t), intent(inout) :: ids(most_indices)
        integer(c_int), intent(inout) :: n
        type(qn_value) :: v
        if (.not. present(index)) return
        v = value_of(b, index)
        n = n + 1
        ids(n) = v%id
    end subroutine

    ! The element at some indices.
    function array_load(a, i1, i2, i3, i4, i5, i6, i7) result(x)
        class(qn_array), intent(in) :: a
        class(*), intent(in), optional :: i1, i2, i3, i4, i5, i6, i7
        type(qn_value) :: x
        integer(c_int64_t) :: ids(most_indices)
        integer(c_int) :: n
        n = 0
        call add_index(a%builder, i1, ids, n)
        call add_index(a%builder, i2, ids, n)
        call add_index(a%builder, i3, ids, n)
        call add_index(a%builder, i4, ids, n)
        call add_index(a%builder, i5, ids, n)
        call add_index(a%builder, i6, ids, n)
        call add_index(a%builder, i7, ids, n)
        x = qn_value(load_n(a%builder, a%id, n, ids), a%builder)
    end function

    ! Stores x, converted to the type of the array as in an assignment.
    subroutine array_store(a, x, i1, i2, i3, i4, i5, i6, i7)
        class(qn_array), intent(in) :: a
        class(*), intent(in) :: x
        class(*), intent(in), optional :: i1, i2, i3, i4, i5, i6, i7
        type(qn_value) :: v
        integer(c_int64_t) :: ids(most_indices)
        integer(c_int) :: n
        n = 0
        v = qn_cast(value_of(a%builder, x), a%dtype)
        call add_index(a%builder, i1, ids, n)
        call add_index(a%builder, i2, ids, n)
        call add_index(a%builder, i3, ids, n)
        call add_index(a%builder, i4, ids, n)
        call add_index(a%builder, i5, ids, n)
        call add_index(a%builder, i6, ids, n)
        call add_index(a%builder, i7, ids, n)
        call store_n(a%builder, a%id, n, ids, v%id)
    end subroutine

    ! Combines an element with x in one step: qn_sum, qn_min, ...; gives the old value.
    function array_atomic(a, combine, x, i1, i2, i3, i4, i5, i6, i7) result(old)
        class(qn_array), intent(in) :: a
        integer(c_int), intent(in) :: combine
        class(*), intent(in) :: x
        class(*), intent(in), optional :: i1, i2, i3, i4, i5, i6, i7
        type(qn_value) :: old, v
        integer(c_int64_t) :: ids(most_indices)
        integer(c_int) :: n
        n = 0
        v = qn_cast(value_of(a%builder, x), a%dtype)
        call add_index(a%builder, i1, ids, n)
        call add_index(a%builder, i2, ids, n)
        call add_index(a%builder, i3, ids, n)
        call add_index(a%builder, i4, ids, n)
        call add_index(a%builder, i5, ids, n)
        call add_index(a%builder, i6, ids, n)
        call add_index(a%builder, i7, ids, n)
        old = qn_value(atomic_n(a%builder, combine, a%id, n, ids, v%id, 0_c_int64_t), a%builder)
    end function

    ! Extent and bounds of dimension d.
    function array_size(a, d) result(x)
        class(qn_array), intent(in) :: a
        integer, intent(in) :: d
        type(qn_value) :: x
        x = qn_value(extent_n(a%builder, a%id, int(d - 1, c_int)), a%builder)
    end function

    function array_lbound(a, d) result(x)
        class(qn_array), intent(in) :: a
        integer, intent(in) :: d
        type(qn_value) :: x
        x = qn_value(lower_n(a%builder, a%id, int(d - 1, c_int)), a%builder)
    end function

    function array_ubound(a, d) result(x)
        class(qn_array), intent(in) :: a
        integer, intent(in) :: d
        type(qn_value) :: x
        x = a%lbound(d) + a%size(d) - 1
    end function

    ! ---------------------------------------------------------------------------------------------- regions

    ! Reduces over indices what end_reduce is given: qn_sum, ...; order: qn_indexed, ...
    subroutine builder_begin_reduce(b, combine, dims, order)
        class(qn_builder), intent(in) :: b
        integer(c_int), intent(in) :: combine
        type(qn_value), intent(in) :: dims(:)
        integer(c_int), intent(in), optional :: order
        integer(c_int) :: given
        given = 0
        if (present(order)) given = order
        call reduce_n(b%handle, combine, given, size(dims, kind=c_int), ids_of(dims))
    end subroutine

    function builder_end_reduce(b, x) result(total)
        class(qn_builder), intent(in) :: b
        type(qn_value), intent(in) :: x
        type(qn_value) :: total
        total = qn_value(end_reduce_n(b%handle, x%id), b%handle)
    end function

    ! begin_if(c) ... end_if(), or begin_if(c) ... begin_else(values) ... end_if(values), where the last values become
    ! those of the branch that was taken. Both branches give values of the same types.
    subroutine builder_begin_if(b, condition, is_rare)
        class(qn_builder), intent(in) :: b
        type(qn_value), intent(in) :: condition
        logical, intent(in), optional :: is_rare
        integer(c_int) :: rare
        rare = 0
        if (present(is_rare)) rare = merge(1_c_int, 0_c_int, is_rare)
        call if_n(b%handle, condition%id, rare)
    end subroutine

    subroutine builder_begin_else(b, values)
        class(qn_builder), intent(in) :: b
        type(qn_value), intent(in), optional :: values(:)
        integer(c_int64_t) :: none(1)
        none = 0
        if (present(values)) then
            call else_n(b%handle, size(values, kind=c_int), ids_of(values))
        else
            call else_n(b%handle, 0_c_int, none)
        end if
    end subroutine

    subroutine builder_end_if(b, values)
        class(qn_builder), intent(in) :: b
        type(qn_value), intent(inout), optional :: values(:)
        integer(c_int64_t) :: none(1)
        integer(c_int64_t), allocatable :: results(:)
        none = 0
        if (present(values)) then
            allocate (results(size(values)), source=0_c_int64_t)
            call end_if_n(b%handle, size(values, kind=c_int), ids_of(values), results)
            call take(values, results)
        else
            call end_if_n(b%handle, 0_c_int, none, none)
        end if
    end subroutine

    ! The values of these ids.
    subroutine take(values, ids)
        type(qn_value), intent(inout) :: values(:)
        integer(c_int64_t), intent(in) :: ids(:)
        integer :: i
        do i = 1, size(values)
            values(i)%id = ids(i)
        end do
    end subroutine

    ! A counted loop from first to last: gives the index. carried begins with the values before the loop, has those of an
    ! iteration in it, and is given to end_do with the next ones, of the same types, which makes it the last ones.
    function builder_begin_do(b, first, last, carried, step) result(i)
        class(qn_builder), intent(in) :: b
        class(*), intent(in) :: first, last
        type(qn_value), intent(inout), optional :: carried(:)
        integer(c_int64_t), intent(in), optional :: step
        type(qn_value) :: i, begin, past
        integer(c_int64_t) :: by, none(1)
        integer(c_int64_t), allocatable :: inside(:)
        none = 0
        by = 1
        if (present(step)) by = step
        begin = qn_cast(value_of(b%handle, first), qn_i64)
        past = qn_cast(value_of(b%handle, last), qn_i64) + 1
        i%builder = b%handle
        if (present(carried)) then
            allocate (inside(size(carried)), source=0_c_int64_t)
            i%id = for_n(b%handle, begin%id, past%id, by, size(carried, kind=c_int), ids_of(carried), inside)
            call take(carried, inside)
        else
            i%id = for_n(b%handle, begin%id, past%id, by, 0_c_int, none, none)
        end if
    end function

    subroutine builder_end_do(b, carried)
        class(qn_builder), intent(in) :: b
        type(qn_value), intent(inout), optional :: carried(:)
        integer(c_int64_t) :: none(1)
        integer(c_int64_t), allocatable :: results(:)
        none = 0
        if (present(carried)) then
            allocate (results(size(carried)), source=0_c_int64_t)
            call end_for_n(b%handle, size(carried, kind=c_int), ids_of(carried), results)
            call take(carried, results)
        else
            call end_for_n(b%handle, 0_c_int, none, none)
        end if
    end subroutine

    ! begin_while(most, carried), the condition, while_holds(condition), the body, end_while(carried): a loop of at most so
    ! many trips, see begin_do.
    subroutine builder_begin_while(b, most, carried)
        class(qn_builder), intent(in) :: b
        class(*), intent(in) :: most
        type(qn_value), intent(inout) :: carried(:)
        integer(c_int64_t) :: inside(size(carried))
        type(qn_value) :: limit
        inside = 0
        limit = qn_cast(value_of(b%handle, most), qn_i64)
        call while_n(b%handle, limit%id, size(carried, kind=c_int), ids_of(carried), inside)
        call take(carried, inside)
    end subroutine

    subroutine builder_while_holds(b, condition)
        class(qn_builder), intent(in) :: b
        type(qn_value), intent(in) :: condition
        call do_n(b%handle, condition%id)
    end subroutine

    subroutine builder_end_while(b, carried)
        class(qn_builder), intent(in) :: b
        type(qn_value), intent(inout) :: carried(:)
        integer(c_int64_t) :: results(size(carried))
        results = 0
        call end_while_n(b%handle, size(carried, kind=c_int), ids_of(carried), results)
        call take(carried, results)
    end subroutine

    ! A launch where the condition does not hold fails with the message and the values.
    subroutine builder_check(b, condition, message, shown)
        class(qn_builder), intent(in) :: b
        type(qn_value), intent(in) :: condition
        character(len=*), intent(in) :: message
        type(qn_value), intent(in), optional :: shown(:)
        integer(c_int64_t) :: none(1)
        none = 0
        if (present(shown)) then
            call assert_n(b%handle, condition%id, message // c_null_char, size(shown, kind=c_int), ids_of(shown))
        else
            call assert_n(b%handle, condition%id, message // c_null_char, 0_c_int, none)
        end if
    end subroutine

    ! A line on standard output for each iteration, in their order.
    subroutine builder_print(b, message, shown)
        class(qn_builder), intent(in) :: b
        character(len=*), intent(in) :: message
        type(qn_value), intent(in), optional :: shown(:)
        integer(c_int64_t) :: none(1)
        none = 0
        if (present(shown)) then
            call print_n(b%handle, message // c_null_char, size(shown, kind=c_int), ids_of(shown))
        else
            call print_n(b%handle, message // c_null_char, 0_c_int, none)
        end if
    end subroutine

    ! What is built from now on belongs to a line of a file, which messages name: call b%at(__FILE__, __LINE__) in a file that
    ! is preprocessed.
    subroutine builder_at(b, file, line)
        class(qn_builder), intent(in) :: b
        character(len=*), intent(in) :: file
        integer, intent(in) :: line
        call builder_at_c(b%handle, file // c_null_char, int(line, c_int), 0_c_int)
    end subroutine

    ! What messages call a value.
    subroutine builder_name(b, x, name)
        class(qn_builder), intent(in) :: b
        type(qn_value), intent(in) :: x
        character(len=*), intent(in) :: name
        call builder_name_c(b%handle, x%id, name // c_null_char)
    end subroutine

    ! The kernel; the builder is then released. The first error of all calls before is the one that is reported.
    subroutine builder_finish(b, k, stat, errmsg)
        class(qn_builder), intent(inout) :: b
        type(qn_kernel), intent(inout) :: k
        integer, intent(out), optional :: stat
        character(len=*), intent(inout), optional :: errmsg
        type(qn_error) :: err
        integer(c_int) :: status
        call qn_release_kernel(k)
        status = finish_c(b%handle, k%handle, err)
        call b%release()
        call report(status, err, stat, errmsg)
    end subroutine

    ! ---------------------------------------------------------------------------------------------- kernels

    ! Reads kernel text.
    subroutine qn_parse(text, k, stat, errmsg)
        character(len=*), intent(in) :: text
        type(qn_kernel), intent(inout) :: k
        integer, intent(out), optional :: stat
        character(len=*), intent(inout), optional :: errmsg
        type(qn_error) :: err
        integer(c_int) :: status
        call qn_release_kernel(k)
        status = parse_c(text // c_null_char, len(text, kind=c_size_t), k%handle, err)
        call report(status, err, stat, errmsg)
    end subroutine

    ! Options of all launches from now on, as text: "executor=threads checks=none".
    subroutine qn_set_options(k, text, stat, errmsg)
        type(qn_kernel), intent(inout) :: k
        character(len=*), intent(in) :: text
        integer, intent(out), optional :: stat
        character(len=*), intent(inout), optional :: errmsg
        type(qn_error) :: err
        type(c_ptr) :: made
        integer(c_int) :: status
        made = c_null_ptr
        status = options_parse_c(text // c_null_char, k%handle, made, err)
        if (status == 0) then
            call options_release_c(k%options)
            k%options = made
        end if
        call report(status, err, stat, errmsg)
    end subroutine

    ! The text of a kernel.
    function qn_text(k) result(text)
        type(qn_kernel), intent(in) :: k
        character(len=:), allocatable :: text
        character(kind=c_char), allocatable, target :: buffer(:)
        integer(c_size_t) :: n
        integer :: i
        n = print_c(k%handle, c_null_ptr, 0_c_size_t)
        allocate (buffer(n + 1))
        n = print_c(k%handle, c_loc(buffer), n + 1)
        allocate (character(len=n) :: text)
        do i = 1, int(n)
            text(i:i) = buffer(i)
        end do
    end function

    subroutine qn_release_kernel(k)
        type(qn_kernel), intent(inout) :: k
        call kernel_release_c(k%handle)
        call options_release_c(k%options)
        k%handle = c_null_ptr
        k%options = c_null_ptr
    end subroutine
end module
