! SPDX-License-Identifier: Apache-2.0
!
! kernels.f90: the module quern_kernels: kernels that are built in Fortran and launched on its arrays, compared with loops of
! Fortran. Prints TAP. With the argument "stop" a launch fails without stat, which ends the program.
module checks
    use, intrinsic :: iso_fortran_env, only: output_unit
    implicit none
    integer :: n_tests = 0, n_failed = 0
contains
    subroutine ok(passed, what)
        logical, intent(in) :: passed
        character(len=*), intent(in) :: what
        n_tests = n_tests + 1
        if (.not. passed) n_failed = n_failed + 1
        if (passed) then
            write (output_unit, '(a,i0,2a)') 'ok ', n_tests, ' - ', what
        else
            write (output_unit, '(a,i0,2a)') 'not ok ', n_tests, ' - ', what
        end if
    end subroutine

    ! A failure has the status, and its message the part.
    subroutine refused(stat, message, status, part)
        integer, intent(in) :: stat, status
        character(len=*), intent(in) :: message, part
        call ok(stat == status .and. index(message, part) > 0, 'refused: ' // trim(message))
    end subroutine
end module

program kernels
    use, intrinsic :: iso_c_binding
    use, intrinsic :: iso_fortran_env, only: int8, int32, int64, real32, real64
    use quern_kernels
    use checks
    implicit none
    ! Statuses, as in quern.h.
    integer, parameter :: err_argument = 1, err_rank = 2, err_dtype = 3, err_bounds = 9, err_type = 13, err_parse = 15, &
                          err_null_data = 26, err_assert = 39
    character(len=8) :: argument
    call get_command_argument(1, argument)
    if (argument == 'stop') call stop_without_stat()
    write (*, '(a)') 'TAP version 13'
    call test_operators()
    call test_mixed_types()
    call test_functions()
    call test_regions()
    call test_reductions()
    call test_sections()
    call test_bounds()
    call test_numbers()
    call test_element_types()
    call test_updates()
    call test_text()
    call test_failures()
    call test_prints()
    write (*, '(a,i0)') '1..', n_tests
    if (n_failed > 0) error stop 1

contains

    subroutine stop_without_stat()
        type(qn_kernel) :: k
        real(real64) :: x(3)
        call qn_launch(k, x)
        write (*, '(a)') 'not reached'
    end subroutine

    ! A kernel y(i) = f(x(i)) under construction.
    subroutine begin_map(b, y, x, i, dtype)
        type(qn_builder), intent(inout) :: b
        type(qn_array), intent(out) :: y, x
        type(qn_value), intent(out) :: i
        integer(c_int), intent(in) :: dtype
        call b%new('map')
        y = b%array('y', dtype, 1)
        x = b%array('x', dtype, 1, qn_read_only)
        i = b%parallel_over(y, 1)
    end subroutine

    subroutine test_operators()
        type(qn_builder) :: b
        type(qn_array) :: y, x
        type(qn_value) :: i, v
        type(qn_kernel) :: k
        real(real64) :: p(8), q(8), r(8)
        integer :: j
        p = [(0.75d0 * j - 2, j=1, 8)]
        call begin_map(b, y, x, i, qn_f64)
        v = x%load(i)
        call y%store((v + 1) * (2 - v) / (v - 0.125d0) - (-v)**3 + 1.5 * v + 2_int64 / (v * v + 1), i)
        call b%finish(k)
        call qn_launch(k, q, p)
        r = (p + 1) * (2 - p) / (p - 0.125d0) - (-p) * ((-p) * (-p)) + 1.5 * p + 2_int64 / (p * p + 1)
        call ok(all(q == r), 'operators of values and numbers')

        call begin_map(b, y, x, i, qn_f64)
        v = x%load(i)
        call y%store(merge(v, merge(v * 10, 7, v >= 2), v < 0 .or. (v > 1 .and. .not. v == 1.75d0)), i)
        call b%finish(k)
        call qn_launch(k, q, p)
        do j = 1, 8
            r(j) = 7
            if (p(j) >= 2) r(j) = p(j) * 10
            if (p(j) < 0 .or. (p(j) > 1 .and. p(j) /= 1.75d0)) r(j) = p(j)
        end do
        call ok(all(q == r), 'comparisons, .and., .or., .not., merge')
        call qn_release_kernel(k)
    end subroutine

    subroutine test_mixed_types()
        type(qn_builder) :: b
        type(qn_array) :: y, f, n
        type(qn_value) :: i
        type(qn_kernel) :: k
        real(real64) :: r(5)
        real(real32) :: s(5) = [1.5, 0.1, -2.25, 3.0, 1e6]
        integer(int32) :: m(5) = [1, 2, 3, 4, 5], j
        call b%new('mixed')
        y = b%array('y', qn_f64, 1)
        f = b%array('f', qn_f32, 1)
        n = b%array('n', qn_i32, 1)
        i = b%parallel_over(y, 1)
        call y%store(f%load(i) * n%load(i) + 0.5d0 + i / 2 + mod(n%load(i), 3), i)
        call b%finish(k)
        call qn_launch(k, r, s, m)
        call ok(all(r == [(real(s(j) * m(j), real64) + 0.5d0 + j / 2 + mod(m(j), 3), j=1, 5)]), 'types mix as in Fortran')

        call b%new('assigned')
        n = b%array('n', qn_i32, 1)
        f = b%array('f', qn_f32, 1)
        i = b%parallel_over(n, 1)
        call n%store(f%load(i) * 2, i)
        call b%finish(k)
        call qn_launch(k, m, s)
        call ok(all(m == int(s * 2)), 'a store converts as an assignment')
        call qn_release_kernel(k)
    end subroutine

    subroutine test_functions()
        type(qn_builder) :: b
        type(qn_array) :: y, x
        type(qn_value) :: i, v, whole
        type(qn_kernel) :: k
        real(real64) :: p(6) = [0.1d0, 0.5d0, 0.9d0, 0.25d0, 0.75d0, 0.3d0], q(6, 12), r(6, 12)
        call b%new('functions')
        y = b%array('y', qn_f64, 2)
        x = b%array('x', qn_f64, 1)
        i = b%parallel_over(x, 1)
        v = x%load(i)
        call y%store(sqrt(abs(v)) + aint(v * 10), i, 1)
        call y%store(exp(v) + log(v) + log10(v), i, 2)
        call y%store(sin(v) + cos(v) + tan(v), i, 3)
        call y%store(asin(v) + acos(v) + atan(v) + atan2(v, 2d0), i, 4)
        call y%store(sinh(v) + cosh(v) + tanh(v), i, 5)
        call y%store(asinh(v) + acosh(v + 1) + atanh(v), i, 6)
        call y%store(erf(v) + erfc(v) + gamma(v) + log_gamma(v), i, 7)
        call y%store(hypot(v, 3d0) + sign(v, -1d0) + mod(v * 7, 2d0), i, 8)
        call y%store(min(v, 0.5d0) + max(v, 0.4d0) + fma(v, v, v), i, 9)
        call y%store(v**0.5d0 + qn_math('cbrt', v), i, 10)
        whole = qn_cast(v * 100, qn_i64)
        call y%store(ior(iand(whole, 12), 1) + ieor(whole, 5) + shiftl(whole, 2) + shiftr(whole, 1), i, 11)
        call y%store(popcnt(whole) + leadz(whole) + trailz(whole) + not(whole), i, 12)
        call b%finish(k)
        call qn_launch(k, q, p)
        r(:, 1) = sqrt(abs(p)) + aint(p * 10)
        r(:, 2) = exp(p) + log(p) + log10(p)
        r(:, 3) = sin(p) + cos(p) + tan(p)
        r(:, 4) = asin(p) + acos(p) + atan(p) + atan2(p, 2d0)
        r(:, 5) = sinh(p) + cosh(p) + tanh(p)
        r(:, 6) = asinh(p) + acosh(p + 1) + atanh(p)
        r(:, 7) = erf(p) + erfc(p) + gamma(p) + log_gamma(p)
        r(:, 8) = hypot(p, 3d0) + sign(p, -1d0) + mod(p * 7, 2d0)
        r(:, 9) = min(p, 0.5d0) + max(p, 0.4d0) + (p * p + p)
        r(:, 10) = p**0.5d0 + p**(1 / 3d0)
        call ok(all(abs(q(:, 1:10) - r(:, 1:10)) <= 4d-15 * (1 + abs(r(:, 1:10)))), 'functions by their names in Fortran')
        call check_bits(q, p)
        call qn_release_kernel(k)
    end subroutine

    subroutine check_bits(q, p)
        real(real64), intent(in) :: q(:, :), p(:)
        integer(int64) :: n(6)
        n = int(p * 100, int64)
        call ok(all(q(:, 11) == ior(iand(n, 12_int64), 1_int64) + ieor(n, 5_int64) + shiftl(n, 2) + shiftr(n, 1)) .and. &
                all(q(:, 12) == popcnt(n) + leadz(n) + trailz(n) + not(n)), 'functions of bits')
    end subroutine

    ! Largest common divisors and steps of Collatz, with values of two branches and of loops.
    subroutine test_regions()
        type(qn_builder) :: b
        type(qn_array) :: y
        type(qn_value) :: i, j, s(2), t(1)
        type(qn_table) :: table
        type(qn_kernel) :: k
        integer(int64) :: q(6, 4), m, n, rest
        integer :: l
        logical :: same
        call b%new('regions')
        y = b%array('y', qn_i64, 2)
        i = b%parallel_over(y, 1)
        table = b%table([5_int64, 7_int64, 11_int64])
        s = [b%number(84_int64), i * 6]
        call b%begin_while(100, s)
        call b%while_holds(s(2) /= 0)
        s = [s(2), mod(s(1), s(2))]
        call b%end_while(s)
        call y%store(s(1), i, 1)
        t(1) = b%number(0_int64)
        j = b%begin_do(i, 10, t, step=3_int64)
        t(1) = t(1) + j
        call b%end_do(t)
        call y%store(t(1), i, 2)
        call b%begin_if(mod(i, 2) == 0)
        t(1) = i * 10
        call b%begin_else(t)
        t(1) = -i
        call b%end_if(t)
        call y%store(t(1), i, 3)
        call b%begin_if(i > 3, is_rare=.true.)
        call y%store(table%load(i - 3), i, 4)
        call b%end_if()
        call b%finish(k)
        q = 0
        call qn_launch(k, q)
        same = .true.
        do l = 1, 6
            m = 84
            n = l * 6
            do while (n /= 0)
                rest = mod(m, n)
                m = n
                n = rest
            end do
            same = same .and. q(l, 1) == m .and. q(l, 2) == sum_of_steps(l)
        end do
        call ok(same, 'while and do with carried values')
        call ok(all(q(:, 3) == [-1, 20, -3, 40, -5, 60]), 'if with values')
        call ok(all(q(:, 4) == [0, 0, 0, 5, 7, 11]), 'a rare if, and a table')
        call qn_release_kernel(k)
    end subroutine

    integer function sum_of_steps(first)
        integer, intent(in) :: first
        integer :: j
        sum_of_steps = 0
        do j = first, 10, 3
            sum_of_steps = sum_of_steps + j
        end do
    end function

    subroutine test_reductions()
        type(qn_builder) :: b
        type(qn_array) :: a, x, c
        type(qn_value) :: i, j, k, total
        type(qn_kernel) :: product
        real(real64) :: p(4, 3), q(3, 5), r(4, 5)
        integer :: l, m
        p = reshape([(l * 0.5d0, l=1, 12)], [4, 3])
        q = reshape([(m - 7d0, m=1, 15)], [3, 5])
        call b%new('product', qn_contract)
        c = b%array('c', qn_f64, 2)
        a = b%array('a', qn_f64, 2)
        x = b%array('x', qn_f64, 2)
        j = b%parallel_over(c, 2)
        i = b%parallel_over(c, 1)
        k = b%reduction_over(a, 2)
        call b%begin_reduce(qn_sum, [k], qn_ordered)
        total = b%end_reduce(a%load(i, k) * x%load(k, j))
        call c%store(total, i, j)
        call b%finish(product)
        call qn_launch(product, r, p, q)
        call ok(all(r == matmul(p, q)), 'a matrix product')
        r = 0
        call qn_launch(product, r, transpose(reshape(p, [3, 4], order=[2, 1])), q)
        call ok(all(r == matmul(p, q)), '... of the value of an expression')
        call qn_release_kernel(product)
    end subroutine

    ! Sections of any stride arrive as they are, in what a caller hands on, too.
    subroutine double_it(k, x)
        type(qn_kernel), intent(in) :: k
        real(real64), intent(inout) :: x(:, :)
        call qn_launch(k, x)
    end subroutine

    subroutine make_double(k)
        type(qn_kernel), intent(inout) :: k
        type(qn_builder) :: b
        type(qn_array) :: x
        type(qn_value) :: i, j
        call b%new('twice')
        x = b%array('x', qn_f64, 2)
        j = b%parallel_over(x, 2)
        i = b%parallel_over(x, 1)
        call x%store(x%load(i, j) * 2, i, j)
        call b%finish(k)
    end subroutine

    subroutine test_sections()
        type(qn_kernel) :: k
        real(real64), allocatable :: x(:, :, :)
        real(real64) :: y(9, 7, 4)
        complex(real64) :: z(3, 2)
        real(real64), pointer :: p(:, :)
        real(real64), allocatable, target :: t(:, :)
        integer :: i
        call make_double(k)
        x = reshape([(real(i, real64), i=1, 252)], [9, 7, 4])
        y = x
        call qn_launch(k, x(8:2:-3, ::2, 2))
        y(8:2:-3, ::2, 2) = y(8:2:-3, ::2, 2) * 2
        call ok(all(x == y), 'a section with a negative stride')
        call double_it(k, x(2, :, 4:1:-1))
        y(2, :, :) = y(2, :, :) * 2
        call ok(all(x == y), '... through an assumed-shape argument')
        call qn_launch(k, x(5:4, :, 1))
        call ok(all(x == y), 'an empty section')
        z = (1d0, 2d0)
        call qn_launch(k, z%im)
        call ok(all(z == (1d0, 4d0)), 'imaginary parts')
        allocate (t(-1:2, 3), source=1d0)
        p(0:, 5:) => t(2:-1:-1, :)
        call qn_launch(k, p)
        call ok(all(t == 2), 'a pointer')
        call qn_release_kernel(k)
    end subroutine

    subroutine test_bounds()
        type(qn_builder) :: b
        type(qn_array) :: y, x
        type(qn_value) :: i
        type(qn_kernel) :: k
        real(real64) :: p(-3:4), q(0:7)
        integer :: stat
        character(len=200) :: message
        call b%new('bounds')
        y = b%array('y', qn_i64, 1)
        x = b%array('x', qn_f64, 1)
        i = b%parallel(x%lbound(1), x%ubound(1))
        call x%store(i, i)
        call b%finish(k)
        call launch_indices(k, p, q)
        call ok(all(p == [1, 2, 3, 4, 5, 6, 7, 8]), 'indices begin at 1')
        call ok(all(q == [(real(stat, real64), stat=-3, 4)]), '... or at the bounds that are given')
        call qn_launch(k, [1_int64], p, lower=[1], stat=stat, errmsg=message)
        call refused(stat, message, err_rank, '1 lower bounds for 2 dimensions')
        call qn_release_kernel(k)
    end subroutine

    subroutine launch_indices(k, p, q)
        type(qn_kernel), intent(in) :: k
        real(real64), intent(inout) :: p(-3:), q(0:)
        integer(int64) :: none(2)
        none = 0
        call qn_launch(k, none, p)
        call qn_launch(k, none, q, lower=[lbound(none), lbound(p)])
    end subroutine

    ! Numbers have the type and kind of their parameters, or are integers that fit.
    subroutine test_numbers()
        type(qn_builder) :: b
        type(qn_array) :: y
        type(qn_value) :: i, r, n, small, z
        type(qn_kernel) :: k
        real(real64) :: q(4)
        integer :: stat
        character(len=200) :: message
        call b%new('numbers')
        y = b%array('y', qn_f64, 1)
        r = b%scalar('r', qn_f64)
        n = b%scalar('n', qn_i64)
        small = b%scalar('small', qn_i8)
        z = b%scalar('z', qn_c64)
        i = b%parallel(1, n)
        call y%store(r * i + small + abs(z), i)
        call b%finish(k)
        q = 0
        call qn_launch(k, q, 0.5d0, 3, 100_int8, (3.0, 4.0))
        call ok(all(q == [105.5d0, 106d0, 106.5d0, 0d0]), 'numbers as arguments')
        call qn_launch(k, q, 2, 2_int64, -7, (0.0, 1.0))
        call ok(all(q(1:2) == [-4, -2]), 'integers for numbers of other types')
        call qn_launch(k, q, 0.5, 3, 1, (0.0, 0.0), stat=stat, errmsg=message)
        call refused(stat, message, err_dtype, 'argument 2 (r): is a number of f32, where f64 is expected')
        call qn_launch(k, q, 0.5d0, 3, 128, (0.0, 0.0), stat=stat, errmsg=message)
        call refused(stat, message, err_dtype, 'argument 4 (small)')
        call qn_launch(k, q, 0.5d0, [3], 1, (0.0, 0.0), stat=stat, errmsg=message)
        call refused(stat, message, err_rank, 'argument 3 (n): is an array')
        call qn_launch(k, 1d0, 0.5d0, 3, 1, (0.0, 0.0), stat=stat, errmsg=message)
        call refused(stat, message, err_rank, 'argument 1 (y): is an array of another rank')
        call qn_release_kernel(k)
    end subroutine

    subroutine test_element_types()
        type(qn_builder) :: b
        type(qn_array) :: l, c, s
        type(qn_value) :: i
        type(qn_kernel) :: k
        logical(c_bool) :: flags(4)
        complex(real32) :: z(4) = [(1.0, 2.0), (-3.0, 0.5), (0.0, 0.0), (4.0, -4.0)]
        integer(int8) :: n(4) = [1_int8, -2_int8, 3_int8, 127_int8]
        call b%new('types')
        l = b%array('l', qn_bool, 1)
        c = b%array('c', qn_c64, 1)
        s = b%array('s', qn_i8, 1)
        i = b%parallel_over(l, 1)
        call l%store(s%load(i) > 0, i)
        call c%store(c%load(i) * (0.0, 1.0), i)
        call s%store(s%load(i) + 1_int8, i)
        call b%finish(k)
        call qn_launch(k, flags, z, n)
        call ok(count(flags) == 3 .and. .not. flags(2), 'logical(c_bool)')
        call ok(all(z == [(-2.0, 1.0), (-0.5, -3.0), (0.0, 0.0), (4.0, 4.0)]), 'complex')
        call ok(all(n == [2_int8, -1_int8, 4_int8, -127_int8 - 1_int8]), 'integer(int8), which wraps')
        call qn_release_kernel(k)
    end subroutine

    subroutine test_updates()
        type(qn_builder) :: b
        type(qn_array) :: bins, x, u
        type(qn_value) :: i, old
        type(qn_kernel) :: k, random
        integer(int32) :: counts(0:3), values(1000)
        real(real64) :: p(1000), q(1000)
        integer :: j
        values = [(mod(j * j, 4), j=1, 1000)]
        call b%new('histogram')
        bins = b%array('bins', qn_i32, 1)
        x = b%array('x', qn_i32, 1)
        i = b%parallel_over(x, 1)
        old = bins%atomic(qn_sum, 1, x%load(i))
        call b%finish(k)
        call qn_set_options(k, 'executor=threads')
        counts = 0
        call qn_launch(k, counts, values, lower=[lbound(counts), lbound(values)])
        call ok(all(counts == [(count(values == j), j=0, 3)]), 'atomic updates, with options')
        call b%new('random')
        u = b%array('u', qn_f64, 1)
        i = b%parallel_over(u, 1)
        call u%store(qn_math('uniform_f64', b%number(7), i), i)
        call b%finish(random)
        call qn_launch(random, p)
        call qn_launch(random, q)
        call ok(all(p == q) .and. abs(sum(p) / 1000 - 0.5d0) < 0.05d0 .and. all(p >= 0 .and. p < 1), 'random numbers')
        call qn_release_kernel(k)
        call qn_release_kernel(random)
    end subroutine

    subroutine test_text()
        type(qn_kernel) :: k, again
        integer :: stat
        character(len=200) :: message
        call make_double(k)
        call qn_parse(qn_text(k), again)
        call ok(qn_text(again) == qn_text(k) .and. index(qn_text(k), 'kernel "twice"') == 1, 'text and back')
        call qn_parse('kernel "k" { what; }', again, stat=stat, errmsg=message)
        call refused(stat, message, err_parse, 'line 1')
        call qn_set_options(k, 'engine=fast', stat=stat, errmsg=message)
        call refused(stat, message, err_argument, 'engine=fast')
        call qn_release_kernel(k)
        call qn_release_kernel(again)
    end subroutine

    subroutine test_failures()
        type(qn_builder) :: b
        type(qn_array) :: x, y
        type(qn_value) :: i, v
        type(qn_kernel) :: k
        real(real64), allocatable :: p(:), none(:)
        integer :: stat
        character(len=200) :: message
        character(len=10) :: short
        p = [1d0, 2d0, 3d0]
        call b%new('shift')
        y = b%array('y', qn_f64, 1)
        x = b%array('x', qn_f64, 1)
        i = b%parallel_over(y, 1)
        call b%at('shift.f90', 12)
        v = x%load(i + 1)
        call b%name(v, 'next')
        call b%at('shift.f90', 13)
        call b%check(v > 0, 'positive', [v, i])
        call y%store(v, i)
        call b%finish(k)
        stat = -1
        call qn_launch(k, p(1:2), p, stat=stat, errmsg=message)
        call ok(stat == 0 .and. all(p == [2, 3, 3]), 'stat is 0 for success')
        call qn_launch(k, p, [4d0, 5d0, 6d0], stat=stat, errmsg=message)
        call refused(stat, message, err_bounds, 'index 4')
        call ok(index(message, 'at shift.f90:12') > 0, '... with its place')
        call qn_launch(k, p(1:2), [4d0, 5d0, -6d0], stat=stat, errmsg=message)
        call refused(stat, message, err_assert, '"positive" failed: -6, 2')
        call qn_launch(k, p, stat=stat, errmsg=short)
        call ok(stat == err_argument .and. short == 'launch: ke', 'a short message is cut')
        call qn_launch(k, p, stat=stat)
        call ok(stat == err_argument, 'stat without errmsg')
        call qn_launch(k, p, none, stat=stat, errmsg=message)
        ! An array that is not allocated is absent, says Fortran 2008; older compilers hand on no data.
        call ok(stat == err_null_data .or. stat == err_argument, 'an array that is not allocated')
        call qn_launch(k, p, ['a', 'b', 'c'], stat=stat, errmsg=message)
        call refused(stat, message, err_dtype, 'not supported')
        call qn_launch(k, p, a3=p, stat=stat, errmsg=message)
        call refused(stat, message, err_argument, 'argument 2 is absent')
        call qn_release_kernel(k)
        call qn_launch(k, p, p, stat=stat, errmsg=message)
        call refused(stat, message, err_argument, 'not finished')

        call b%new('wrong')
        y = b%array('y', qn_f64, 1)
        i = b%parallel_over(y, 1)
        call b%at('wrong.f90', 7)
        call y%store(popcnt(y%load(i)), i)
        call b%finish(k, stat=stat, errmsg=message)
        call refused(stat, message, err_type, 'at wrong.f90:7')
    end subroutine

    subroutine test_prints()
        type(qn_builder) :: b
        type(qn_array) :: x
        type(qn_value) :: i
        type(qn_kernel) :: k
        real(real64) :: p(2)
        p = [1.5d0, 2.5d0]
        call b%new('prints')
        x = b%array('x', qn_f64, 1)
        i = b%parallel_over(x, 1)
        call b%print('# printed', [i, x%load(i)])
        call x%store(0, i)
        call b%finish(k)
        call qn_launch(k, p)
        call ok(all(p == 0), 'a kernel that prints')
        call qn_release_kernel(k)
    end subroutine
end program
