! SPDX-License-Identifier: Apache-2.0
!
! launch.f90: what a launch from Fortran takes (docs/fortran.md). Built as the program of that page.
program bench
    use, intrinsic :: iso_fortran_env, only: real64, int64
    use quern_kernels
    implicit none
    type(qn_builder) :: b
    type(qn_array) :: x, y, z
    type(qn_value) :: i
    type(qn_kernel) :: k
    real(real64) :: p(5) = 1, q(5) = 2, r(5), least
    integer(int64) :: begin, end, rate
    integer :: n, m
    call b%new('add')
    z = b%array('z', qn_f64, 1)
    x = b%array('x', qn_f64, 1)
    y = b%array('y', qn_f64, 1)
    i = b%parallel_over(z, 1)
    call z%store(x%load(i) + y%load(i), i)
    call b%finish(k)
    least = 1
    do m = 1, 15
        call system_clock(begin, rate)
        do n = 1, 100000
            call qn_launch(k, r, p, q)
        end do
        call system_clock(end)
        least = min(least, real(end - begin, real64) / real(rate, real64) / 100000)
    end do
    print '(a,f5.2,a)', 'a kernel, three arrays of 5: ', least * 1d6, ' us'
    call qn_release_kernel(k)
end program
