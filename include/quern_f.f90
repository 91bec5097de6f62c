! SPDX-License-Identifier: Apache-2.0
!
! quern_f.f90: the Fortran 2003 side of Quern, compiled into your program (modules of different compilers do not mix).
! It makes views of Fortran arrays without Fortran 2018 descriptors: address by c_loc, shape and strides in bytes
! computed here. Kernels are built and launched by the module quern_kernels; a view travels to C as type(qn_view).
module quern
    use, intrinsic :: iso_c_binding
    implicit none
    private
    public :: qn_view, qn_error, qn_from_address, qn_message, qn_release, qn_stride_bytes
    public :: qn_bool, qn_i8, qn_i16, qn_i32, qn_i64, qn_u8, qn_u16, qn_u32, qn_u64, qn_f32, &
              qn_f64, qn_f16, qn_bf16, qn_c64, qn_c128, qn_read_only

    ! Dtypes and traits, as in quern.h.
    integer(c_int), parameter :: qn_bool = 1, qn_i8 = 2, qn_i16 = 3, qn_i32 = 4, qn_i64 = 5, &
                                 qn_u8 = 6, qn_u16 = 7, qn_u32 = 8, qn_u64 = 9, &
                                 qn_f32 = 10, qn_f64 = 11, qn_f16 = 12, qn_bf16 = 13, &
                                 qn_c64 = 14, qn_c128 = 15
    integer(c_int32_t), parameter :: qn_read_only = 1
    integer, parameter :: max_rank = 16, message_bytes = 504

    type, bind(c) :: qn_dim
        integer(c_int64_t) :: lower = 0, extent = 0, stride = 0
    end type
    type, bind(c) :: qn_layout
        integer(c_int32_t) :: rank = 0, projected = 0
        integer(c_int64_t) :: origin = 0
        type(c_ptr) :: digits = c_null_ptr
        type(qn_dim) :: dim(max_rank)
    end type
    ! A view, as in quern.h. Release it with qn_release if it may own storage.
    type, bind(c) :: qn_view
        type(c_ptr) :: data = c_null_ptr, owner = c_null_ptr, label = c_null_ptr
        integer(c_int32_t) :: dtype = 0, space = 0, traits = 0, unit = 0, device = 0, reserved = 0
        type(c_ptr) :: record = c_null_ptr
        type(qn_layout) :: layout
    end type
    type, bind(c) :: qn_error
        integer(c_int32_t) :: status = 0, line = 0
        character(kind=c_char) :: message(message_bytes) = c_null_char
    end type

    interface
        function from_bytes(label, data, dtype, rank, extents, stride_bytes, lower, traits, view, &
                            err) bind(c, name="qn_view_from_bytes") result(status)
            import :: c_ptr, c_int, c_int32_t, c_int64_t, qn_view, qn_error
            type(c_ptr), value :: label, data
            integer(c_int), value :: dtype, rank
            integer(c_int64_t), intent(in) :: extents(*), stride_bytes(*), lower(*)
            integer(c_int32_t), value :: traits
            type(qn_view), intent(out) :: view
            type(qn_error), intent(inout) :: err
            integer(c_int) :: status
        end function
        subroutine qn_release(view) bind(c, name="qn_view_release")
            import :: qn_view
            type(qn_view), intent(inout) :: view
        end subroutine
    end interface

contains

    ! A view of the array whose first element is at `first` (c_loc of it), with extents, strides in bytes and lower
    ! bounds, one each for every dimension. Returns the status, 0 for success. The array must be a target, and outlive
    ! the view.
    function qn_from_address(first, dtype, extents, stride_bytes, lower, view, err, traits) &
        result(status)
        type(c_ptr), intent(in) :: first
        integer(c_int), intent(in) :: dtype
        integer(c_int64_t), intent(in) :: extents(:), stride_bytes(:), lower(:)
        type(qn_view), intent(inout) :: view
        type(qn_error), intent(inout) :: err
        integer(c_int32_t), intent(in), optional :: traits
        integer(c_int) :: status
        integer(c_int32_t) :: given
        given = 0
        if (present(traits)) given = traits
        status = from_bytes(c_null_ptr, first, dtype, int(size(extents), c_int), extents, &
                            stride_bytes, lower, given, view, err)
    end function

    ! Bytes from one element to another: the stride of a dimension, from the c_loc of two neighbours in it.
    function qn_stride_bytes(first, next) result(bytes)
        type(c_ptr), intent(in) :: first, next
        integer(c_int64_t) :: bytes
        bytes = transfer(next, 0_c_int64_t) - transfer(first, 0_c_int64_t)
    end function

    ! The message of an error.
    function qn_message(err) result(text)
        type(qn_error), intent(in) :: err
        character(len=message_bytes) :: text
        integer :: i
        text = ' '
        do i = 1, message_bytes
            if (err%message(i) == c_null_char) exit
            text(i:i) = err%message(i)
        end do
    end function
end module

! The builder of quern/embed.h as it is in C, for quern_values and quern_kernels.
module quern_c
    use, intrinsic :: iso_c_binding
    use quern, only: qn_error
    implicit none
    public

    interface
        function const_int(b, dtype, number) bind(c, name="qn_const_int_n")
            import :: c_ptr, c_int, c_int64_t
            type(c_ptr), value :: b
            integer(c_int), value :: dtype
            integer(c_int64_t), value :: number
            integer(c_int64_t) :: const_int
        end function
        function const_float(b, dtype, number) bind(c, name="qn_const_float_n")
            import :: c_ptr, c_int, c_int64_t, c_double
            type(c_ptr), value :: b
            integer(c_int), value :: dtype
            real(c_double), value :: number
            integer(c_int64_t) :: const_float
        end function
        function const_complex(b, dtype, re, im) bind(c, name="qn_const_complex_n")
            import :: c_ptr, c_int, c_int64_t, c_double
            type(c_ptr), value :: b
            integer(c_int), value :: dtype
            real(c_double), value :: re, im
            integer(c_int64_t) :: const_complex
        end function
        function type_of(b, x) bind(c, name="qn_type_of_n")
            import :: c_ptr, c_int, c_int64_t
            type(c_ptr), value :: b
            integer(c_int64_t), value :: x
            integer(c_int) :: type_of
        end function
        function op_of_name(name) bind(c, name="qn_op_of_name")
            import :: c_int, c_char
            character(kind=c_char), intent(in) :: name(*)
            integer(c_int) :: op_of_name
        end function
        function op_n(b, op, n, args) bind(c, name="qn_op_n")
            import :: c_ptr, c_int, c_int64_t
            type(c_ptr), value :: b
            integer(c_int), value :: op, n
            integer(c_int64_t), intent(in) :: args(*)
            integer(c_int64_t) :: op_n
        end function
        function cast_n(b, dtype, x) bind(c, name="qn_cast_n")
            import :: c_ptr, c_int, c_int64_t
            type(c_ptr), value :: b
            integer(c_int), value :: dtype
            integer(c_int64_t), value :: x
            integer(c_int64_t) :: cast_n
        end function
        function bitcast_n(b, dtype, x) bind(c, name="qn_bitcast_n")
            import :: c_ptr, c_int, c_int64_t
            type(c_ptr), value :: b
            integer(c_int), value :: dtype
            integer(c_int64_t), value :: x
            integer(c_int64_t) :: bitcast_n
        end function
        subroutine math_n(b, name, n, args, results) bind(c, name="qn_math_n")
            import :: c_ptr, c_int, c_int64_t, c_char
            type(c_ptr), value :: b
            character(kind=c_char), intent(in) :: name(*)
            integer(c_int), value :: n
            integer(c_int64_t), intent(in) :: args(*)
            integer(c_int64_t), intent(inout) :: results(*)
        end subroutine
        function builder_new_c(name, flags) bind(c, name="qn_builder_new")
            import :: c_ptr, c_char, c_int32_t
            character(kind=c_char), intent(in) :: name(*)
            integer(c_int32_t), value :: flags
            type(c_ptr) :: builder_new_c
        end function
        subroutine builder_release_c(b) bind(c, name="qn_builder_release")
            import :: c_ptr
            type(c_ptr), value :: b
        end subroutine
        function view_param_n(b, name, dtype, rank, traits) bind(c, name="qn_view_param_n")
            import :: c_ptr, c_char, c_int, c_int32_t, c_int64_t
            type(c_ptr), value :: b
            character(kind=c_char), intent(in) :: name(*)
            integer(c_int), value :: dtype, rank
            integer(c_int32_t), value :: traits
            integer(c_int64_t) :: view_param_n
        end function
        function scalar_param_n(b, name, dtype) bind(c, name="qn_scalar_param_n")
            import :: c_ptr, c_char, c_int, c_int64_t
            type(c_ptr), value :: b
            character(kind=c_char), intent(in) :: name(*)
            integer(c_int), value :: dtype
            integer(c_int64_t) :: scalar_param_n
        end function
        function extent_n(b, view, d) bind(c, name="qn_extent_n")
            import :: c_ptr, c_int, c_int64_t
            type(c_ptr), value :: b
            integer(c_int64_t), value :: view
            integer(c_int), value :: d
            integer(c_int64_t) :: extent_n
        end function
        function lower_n(b, view, d) bind(c, name="qn_lower_n")
            import :: c_ptr, c_int, c_int64_t
            type(c_ptr), value :: b
            integer(c_int64_t), value :: view
            integer(c_int), value :: d
            integer(c_int64_t) :: lower_n
        end function
        function dimension_n(b, kind, first, past) bind(c, name="qn_dimension_n")
            import :: c_ptr, c_int, c_int64_t
            type(c_ptr), value :: b
            integer(c_int), value :: kind
            integer(c_int64_t), value :: first, past
            integer(c_int64_t) :: dimension_n
        end function
        function load_n(b, view, n, index) bind(c, name="qn_load_n")
            import :: c_ptr, c_int, c_int64_t
            type(c_ptr), value :: b
            integer(c_int64_t), value :: view
            integer(c_int), value :: n
            integer(c_int64_t), intent(in) :: index(*)
            integer(c_int64_t) :: load_n
        end function
        subroutine store_n(b, view, n, index, x) bind(c, name="qn_store_n")
            import :: c_ptr, c_int, c_int64_t
            type(c_ptr), value :: b
            integer(c_int64_t), value :: view, x
            integer(c_int), value :: n
            integer(c_int64_t), intent(in) :: index(*)
        end subroutine
        function atomic_n(b, combine, view, n, index, x, compare) bind(c, name="qn_atomic_n")
            import :: c_ptr, c_int, c_int64_t
            type(c_ptr), value :: b
            integer(c_int), value :: combine, n
            integer(c_int64_t), value :: view, x, compare
            integer(c_int64_t), intent(in) :: index(*)
            integer(c_int64_t) :: atomic_n
        end function
        function const_array_n(b, dtype, n, elements) bind(c, name="qn_const_array_n")
            import :: c_ptr, c_int, c_int32_t, c_int64_t
            type(c_ptr), value :: b, elements
            integer(c_int), value :: dtype
            integer(c_int64_t), value :: n
            integer(c_int32_t) :: const_array_n
        end function
        function lookup_n(b, array, index) bind(c, name="qn_lookup_n")
            import :: c_ptr, c_int32_t, c_int64_t
            type(c_ptr), value :: b
            integer(c_int32_t), value :: array
            integer(c_int64_t), value :: index
            integer(c_int64_t) :: lookup_n
        end function
        subroutine if_n(b, condition, is_rare) bind(c, name="qn_if_n")
            import :: c_ptr, c_int, c_int64_t
            type(c_ptr), value :: b
            integer(c_int64_t), value :: condition
            integer(c_int), value :: is_rare
        end subroutine
        subroutine else_n(b, n, values) bind(c, name="qn_else_n")
            import :: c_ptr, c_int, c_int64_t
            type(c_ptr), value :: b
            integer(c_int), value :: n
            integer(c_int64_t), intent(in) :: values(*)
        end subroutine
        subroutine end_if_n(b, n, values, results) bind(c, name="qn_end_if_n")
            import :: c_ptr, c_int, c_int64_t
            type(c_ptr), value :: b
            integer(c_int), value :: n
            integer(c_int64_t), intent(in) :: values(*)
            integer(c_int64_t), intent(inout) :: results(*)
        end subroutine
        function for_n(b, first, past, step, n, init, carried) bind(c, name="qn_for_n")
            import :: c_ptr, c_int, c_int64_t
            type(c_ptr), value :: b
            integer(c_int64_t), value :: first, past, step
            integer(c_int), value :: n
            integer(c_int64_t), intent(in) :: init(*)
            integer(c_int64_t), intent(inout) :: carried(*)
            integer(c_int64_t) :: for_n
        end function
        subroutine end_for_n(b, n, values, results) bind(c, name="qn_end_for_n")
            import :: c_ptr, c_int, c_int64_t
            type(c_ptr), value :: b
            integer(c_int), value :: n
            integer(c_int64_t), intent(in) :: values(*)
            integer(c_int64_t), intent(inout) :: results(*)
        end subroutine
        subroutine while_n(b, max_trips, n, init, carried) bind(c, name="qn_while_n")
            import :: c_ptr, c_int, c_int64_t
            type(c_ptr), value :: b
            integer(c_int64_t), value :: max_trips
            integer(c_int), value :: n
            integer(c_int64_t), intent(in) :: init(*)
            integer(c_int64_t), intent(inout) :: carried(*)
        end subroutine
        subroutine do_n(b, condition) bind(c, name="qn_do_n")
            import :: c_ptr, c_int64_t
            type(c_ptr), value :: b
            integer(c_int64_t), value :: condition
        end subroutine
        subroutine end_while_n(b, n, values, results) bind(c, name="qn_end_while_n")
            import :: c_ptr, c_int, c_int64_t
            type(c_ptr), value :: b
            integer(c_int), value :: n
            integer(c_int64_t), intent(in) :: values(*)
            integer(c_int64_t), intent(inout) :: results(*)
        end subroutine
        subroutine reduce_n(b, combine, order, n, dims) bind(c, name="qn_reduce_n")
            import :: c_ptr, c_int, c_int64_t
            type(c_ptr), value :: b
            integer(c_int), value :: combine, order, n
            integer(c_int64_t), intent(in) :: dims(*)
        end subroutine
        function end_reduce_n(b, x) bind(c, name="qn_end_reduce_n")
            import :: c_ptr, c_int64_t
            type(c_ptr), value :: b
            integer(c_int64_t), value :: x
            integer(c_int64_t) :: end_reduce_n
        end function
        subroutine assert_n(b, condition, message, n, values) bind(c, name="qn_assert_n")
            import :: c_ptr, c_char, c_int, c_int64_t
            type(c_ptr), value :: b
            integer(c_int64_t), value :: condition
            character(kind=c_char), intent(in) :: message(*)
            integer(c_int), value :: n
            integer(c_int64_t), intent(in) :: values(*)
        end subroutine
        subroutine print_n(b, message, n, values) bind(c, name="qn_print_n")
            import :: c_ptr, c_char, c_int, c_int64_t
            type(c_ptr), value :: b
            character(kind=c_char), intent(in) :: message(*)
            integer(c_int), value :: n
            integer(c_int64_t), intent(in) :: values(*)
        end subroutine
        subroutine builder_at_c(b, file, line, column) bind(c, name="qn_builder_at")
            import :: c_ptr, c_char, c_int
            type(c_ptr), value :: b
            character(kind=c_char), intent(in) :: file(*)
            integer(c_int), value :: line, column
        end subroutine
        subroutine builder_name_c(b, x, name) bind(c, name="qn_builder_name_n")
            import :: c_ptr, c_char, c_int64_t
            type(c_ptr), value :: b
            integer(c_int64_t), value :: x
            character(kind=c_char), intent(in) :: name(*)
        end subroutine
        function finish_c(b, k, err) bind(c, name="qn_finish") result(status)
            import :: c_ptr, c_int, qn_error
            type(c_ptr), value :: b
            type(c_ptr), intent(inout) :: k
            type(qn_error), intent(inout) :: err
            integer(c_int) :: status
        end function
        function parse_c(text, n, k, err) bind(c, name="qn_kernel_parse") result(status)
            import :: c_ptr, c_int, c_char, c_size_t, qn_error
            character(kind=c_char), intent(in) :: text(*)
            integer(c_size_t), value :: n
            type(c_ptr), intent(inout) :: k
            type(qn_error), intent(inout) :: err
            integer(c_int) :: status
        end function
        function print_c(k, buffer, n) bind(c, name="qn_kernel_print") result(needed)
            import :: c_ptr, c_size_t
            type(c_ptr), value :: k, buffer
            integer(c_size_t), value :: n
            integer(c_size_t) :: needed
        end function
        subroutine kernel_release_c(k) bind(c, name="qn_kernel_release")
            import :: c_ptr
            type(c_ptr), value :: k
        end subroutine
        function options_parse_c(text, k, o, err) bind(c, name="qn_options_parse") result(status)
            import :: c_ptr, c_int, c_char, qn_error
            character(kind=c_char), intent(in) :: text(*)
            type(c_ptr), value :: k
            type(c_ptr), intent(inout) :: o
            type(qn_error), intent(inout) :: err
            integer(c_int) :: status
        end function
        subroutine options_release_c(o) bind(c, name="qn_options_release")
            import :: c_ptr
            type(c_ptr), value :: o
        end subroutine
    end interface
end module
