! SPDX-License-Identifier: Apache-2.0
!
! arrays.f90: the Fortran half of test_fortran.c: arrays and sections of many kinds are handed to C, and what C gives
! out is read and written. Elements say where they stand: x(i,j) = 100 i + j.
module arrays
    use, intrinsic :: iso_c_binding
    use quern
    implicit none


    interface
        subroutine see(which, x) bind(c)
            import :: c_int
            integer(c_int), value :: which
            type(*), intent(inout), dimension(..) :: x
        end subroutine
        subroutine see_double(which, x) bind(c)
            import :: c_int, c_double
            integer(c_int), value :: which
            real(c_double), intent(inout) :: x(:,:)
        end subroutine
        subroutine see_pointer(which, x) bind(c)
            import :: c_int, c_double
            integer(c_int), value :: which
            real(c_double), pointer, intent(in) :: x(:,:)
        end subroutine
        subroutine see_allocatable(which, x) bind(c)
            import :: c_int, c_double
            integer(c_int), value :: which
            real(c_double), allocatable, intent(in) :: x(:,:)
        end subroutine
        subroutine see_optional(which, x) bind(c)
            import :: c_int, c_double
            integer(c_int), value :: which
            real(c_double), optional, intent(in) :: x(:,:)
        end subroutine
    end interface

contains

    subroutine fill(x)
        real(c_double), intent(out) :: x(:, :)
        integer :: i, j
        do j = 1, size(x, 2)
            do i = 1, size(x, 1)
                x(i, j) = 100d0 * i + j
            end do
        end do
    end subroutine

    subroutine send_sections() bind(c)
        real(c_double), target :: x(10, 10)
        call fill(x)
        call see(1_c_int, x)
        call see(2_c_int, x(8:2:-3, ::2))
        call see_double(2_c_int, x(8:2:-3, ::2))
        call see(3_c_int, x(4, :))
        call see(4_c_int, x(5, 6))
        call see(5_c_int, x(5:4, :))
    end subroutine

    subroutine send_bounds() bind(c)
        real(c_double), allocatable, target :: x(:, :)
        real(c_double), pointer :: p(:, :)
        real(c_double), allocatable :: none(:, :)
        allocate (x(-2:3, 5:8))
        call fill(x)
        call see_allocatable(10_c_int, x)
        p(0:, 7:) => x(3:-2:-1, :)
        call see_pointer(11_c_int, p)
        call see_allocatable(12_c_int, none)
        call see_optional(13_c_int)
        call see_double(14_c_int, x)
    end subroutine

    subroutine send_assumed_size(x) bind(c)
        real(c_double), intent(inout) :: x(4, *)
        call see(20_c_int, x)
        call see(21_c_int, x)
    end subroutine

    subroutine send_types() bind(c)
        complex(c_double_complex), target :: z(6)
        integer(c_int32_t) :: i(3)
        integer(c_int8_t) :: b(3)
        real(c_float) :: r(3)
        logical(c_bool) :: l(3)
        logical :: big(3)
        character(kind=c_char) :: c(3)
        integer :: k
        do k = 1, 6
            z(k) = cmplx(k, -k, c_double_complex)
        end do
        i = [1, 2, 3]
        b = [1_c_int8_t, 2_c_int8_t, 3_c_int8_t]
        r = [1., 2., 3.]
        l = [.true._c_bool, .false._c_bool, .true._c_bool]
        big = .true.
        c = 'x'
        call see(30_c_int, z%im)
        call see(31_c_int, z(6:1:-2)%re)
        call see(32_c_int, i)
        call see(33_c_int, b)
        call see(34_c_int, r)
        call see(35_c_int, l)
        call see(36_c_int, big)
        call see(37_c_int, c)
        call see(38_c_int, z)
    end subroutine

    ! 1 if a pointer from C has the bounds and elements it should have; adds 1000 to each.
    function takes_pointer(x) result(holds) bind(c)
        real(c_double), pointer, intent(in) :: x(:, :)
        integer(c_int) :: holds
        integer :: i, j
        holds = 0
        if (any(lbound(x) /= [3, -1]) .or. any(shape(x) /= [4, 3])) return
        do j = -1, 1
            do i = 3, 6
                if (x(i, j) /= 10d0 * (i - 3) + (j + 1)) return
                x(i, j) = x(i, j) + 1000
            end do
        end do
        holds = 1
    end function

    ! The sum of an assumed-shape array from C.
    function sum_of(x) result(total) bind(c)
        real(c_double), intent(in) :: x(:, :)
        real(c_double) :: total
        total = sum(x)
    end function

    ! The module's own way: a section by address and strides. 1 if the view is as expected.
    function by_address() result(holds) bind(c)
        integer(c_int) :: holds
        real(c_double), target :: x(10, 10)
        type(qn_view) :: v
        type(qn_error) :: err
        integer(c_int64_t) :: strides(2)
        holds = 0
        call fill(x)
        strides(1) = qn_stride_bytes(c_loc(x(8, 1)), c_loc(x(5, 1)))
        strides(2) = qn_stride_bytes(c_loc(x(8, 1)), c_loc(x(8, 3)))
        if (qn_from_address(c_loc(x(8, 1)), qn_f64, [3_c_int64_t, 5_c_int64_t], strides, &
                            [1_c_int64_t, 1_c_int64_t], v, err) /= 0) return
        if (v%layout%rank /= 2 .or. v%layout%dim(1)%stride /= -3) return
        if (v%layout%dim(2)%stride /= 20 .or. v%layout%dim(2)%lower /= 1) return
        if (.not. c_associated(v%data, c_loc(x(8, 1)))) return
        strides(1) = 12
        if (qn_from_address(c_loc(x(8, 1)), qn_f64, [3_c_int64_t, 5_c_int64_t], strides, &
                            [1_c_int64_t, 1_c_int64_t], v, err) /= 0) return
        if (v%unit /= 4 .or. v%layout%dim(1)%stride /= 3) return
        call qn_release(v)
        holds = 1
    end function
end module
