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
