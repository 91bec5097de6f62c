! SPDX-License-Identifier: Apache-2.0
!
! quern_values.f90: values of a kernel under construction, with Fortran's operators and the names of its intrinsic functions.
! Operands of different types are converted as Fortran does: an integer becomes real, a real the larger of both kinds. Numbers
! have the type and kind that they have in Fortran. Used through the module quern_kernels.
module quern_values
    use, intrinsic :: iso_c_binding
    use, intrinsic :: iso_fortran_env, only: int8, int16, int32, int64, real32, real64
    use quern
    use quern_c
    implicit none
    private
    public :: qn_value, qn_number, qn_op, qn_math, qn_cast, qn_bitcast, qn_type_of, value_of, ids_of
    public :: operator(+), operator(-), operator(*), operator(/), operator(**)
    public :: operator(==), operator(/=), operator(<), operator(<=), operator(>), operator(>=)
    public :: operator(.and.), operator(.or.), operator(.not.)
    public :: abs, sqrt, min, max, mod, sign, merge, aint, iand, ior, ieor, not, shiftl, shiftr
    public :: exp, log, log10, sin, cos, tan, asin, acos, atan, atan2, sinh, cosh, tanh, asinh, acosh, atanh
    public :: erf, erfc, gamma, log_gamma, hypot, popcnt, leadz, trailz, fma

    ! A value. It lives as long as its builder.
    type :: qn_value
        integer(c_int64_t) :: id = 0
        type(c_ptr) :: builder = c_null_ptr
    end type

    interface operator(+)
        module procedure add_value, i4_add, i8_add, r4_add, r8_add
    end interface
    interface operator(-)
        module procedure sub_value, i4_sub, i8_sub, r4_sub, r8_sub, negative
    end interface
    interface operator(*)
        module procedure mul_value, i4_mul, i8_mul, r4_mul, r8_mul
    end interface
    interface operator(/)
        module procedure div_value, i4_div, i8_div, r4_div, r8_div
    end interface
    interface operator(**)
        module procedure power
    end interface
    interface operator(==)
        module procedure eq_value
    end interface
    interface operator(/=)
        module procedure ne_value
    end interface
    interface operator(<)
        module procedure lt_value
    end interface
    interface operator(<=)
        module procedure le_value
    end interface
    interface operator(>)
        module procedure gt_value
    end interface
    interface operator(>=)
        module procedure ge_value
    end interface
    interface operator(.and.)
        module procedure and_value
    end interface
    interface operator(.or.)
        module procedure or_value
    end interface
    interface operator(.not.)
        module procedure negation
    end interface
    interface abs
        module procedure abs_value
    end interface
    interface sqrt
        module procedure sqrt_value
    end interface
    interface mod
        module procedure mod_value
    end interface
    interface merge
        module procedure merge_values
    end interface
    interface min
        module procedure min_values
    end interface
    interface max
        module procedure max_values
    end interface
    interface sign
        module procedure sign_values
    end interface
    interface iand
        module procedure iand_values
    end interface
    interface ior
        module procedure ior_values
    end interface
    interface ieor
        module procedure ieor_values
    end interface
    interface shiftl
        module procedure shiftl_values
    end interface
    interface shiftr
        module procedure shiftr_values
    end interface
    interface atan2
        module procedure atan2_values
    end interface
    interface hypot
        module procedure hypot_values
    end interface
    interface aint
        module procedure aint_value
    end interface
    interface not
        module procedure not_value
    end interface
    interface popcnt
        module procedure popcnt_value
    end interface
    interface leadz
        module procedure leadz_value
    end interface
    interface trailz
        module procedure trailz_value
    end interface
    interface exp
        module procedure exp_value
    end interface
    interface log
        module procedure log_value
    end interface
    interface log10
        module procedure log10_value
    end interface
    interface sin
        module procedure sin_value
    end interface
    interface cos
        module procedure cos_value
    end interface
    interface tan
        module procedure tan_value
    end interface
    interface asin
        module procedure asin_value
    end interface
    interface acos
        module procedure acos_value
    end interface
    interface atan
        module procedure atan_value
    end interface
    interface sinh
        module procedure sinh_value
    end interface
    interface cosh
        module procedure cosh_value
    end interface
    interface tanh
        module procedure tanh_value
    end interface
    interface asinh
        module procedure asinh_value
    end interface
    interface acosh
        module procedure acosh_value
    end interface
    interface atanh
        module procedure atanh_value
    end interface
    interface erf
        module procedure erf_value
    end interface
    interface erfc
        module procedure erfc_value
    end interface
    interface gamma
        module procedure gamma_value
    end interface
    interface log_gamma
        module procedure log_gamma_value
    end interface

contains

    ! ---------------------------------------------------------------------------------------------- numbers and types

    ! A number as a value, of the type and kind that it has in Fortran; values as they are.
    function value_of(b, x) result(v)
        type(c_ptr), intent(in) :: b
        class(*), intent(in) :: x
        type(qn_value) :: v
        v%builder = b
        select type (x)
        type is (qn_value)
            v = x
        type is (integer(int8))
            v%id = const_int(b, qn_i8, int(x, c_int64_t))
        type is (integer(int16))
            v%id = const_int(b, qn_i16, int(x, c_int64_t))
        type is (integer(int32))
            v%id = const_int(b, qn_i32, int(x, c_int64_t))
        type is (integer(int64))
            v%id = const_int(b, qn_i64, int(x, c_int64_t))
        type is (real(real32))
            v%id = const_float(b, qn_f32, real(x, c_double))
        type is (real(real64))
            v%id = const_float(b, qn_f64, real(x, c_double))
        type is (complex(real32))
            v%id = const_complex(b, qn_c64, real(x, c_double), real(aimag(x), c_double))
        type is (complex(real64))
            v%id = const_complex(b, qn_c128, real(x, c_double), real(aimag(x), c_double))
        type is (logical)
            v%id = const_int(b, qn_bool, merge(1_c_int64_t, 0_c_int64_t, x))
        class default
            v%id = 0 ! inert: the builder's error says so
        end select
    end function

    ! A number as a value beside another one.
    function qn_number(like, x) result(v)
        type(qn_value), intent(in) :: like
        class(*), intent(in) :: x
        type(qn_value) :: v
        v = value_of(like%builder, x)
    end function

    ! The dtype of a value: qn_f64, ...; 0 for none.
    function qn_type_of(x) result(dtype)
        type(qn_value), intent(in) :: x
        integer(c_int) :: dtype
        dtype = type_of(x%builder, x%id)
    end function

    function qn_cast(x, dtype) result(y)
        type(qn_value), intent(in) :: x
        integer(c_int), intent(in) :: dtype
        type(qn_value) :: y
        y = x
        if (qn_type_of(x) /= dtype) y%id = cast_n(x%builder, dtype, x%id)
    end function

    function qn_bitcast(x, dtype) result(y)
        type(qn_value), intent(in) :: x
        integer(c_int), intent(in) :: dtype
        type(qn_value) :: y
        y%builder = x%builder
        y%id = bitcast_n(x%builder, dtype, x%id)
    end function

    ! How high a type stands where two meet: bool, integers by size, reals, complex numbers. The types are in the order of their
    ! numbers, from qn_bool to qn_c128; qn_f16 and qn_bf16 are the twelfth and thirteenth.
    pure function height(dtype)
        integer(c_int), intent(in) :: dtype
        integer :: height
        integer, parameter :: of(15) = [0, 1, 2, 3, 4, 1, 2, 3, 4, 6, 7, 5, 5, 8, 9]
        height = 0
        if (dtype >= 1 .and. dtype <= 15) height = of(dtype)
    end function

    ! The type that values of two types have together.
    pure function together(a, b) result(dtype)
        integer(c_int), intent(in) :: a, b
        integer(c_int) :: dtype
        dtype = merge(a, b, height(a) >= height(b))
        if (min(a, b) == qn_f64 .and. max(a, b) == qn_c64) dtype = qn_c128
    end function

    function ids_of(list) result(ids)
        type(qn_value), intent(in) :: list(:)
        integer(c_int64_t) :: ids(size(list))
        integer :: i
        do i = 1, size(list)
            ids(i) = list(i)%id
        end do
    end function

    ! ---------------------------------------------------------------------------------------------- ops and functions

    ! An op of docs/ops.md by its keyword, on values of the types that it takes.
    function qn_op(name, x, y, z) result(r)
        character(len=*), intent(in) :: name
        type(qn_value), intent(in) :: x
        type(qn_value), intent(in), optional :: y, z
        type(qn_value) :: r
        integer(c_int64_t) :: ids(3)
        integer(c_int) :: n
        n = 1
        ids(1) = x%id
        if (present(y)) then
            n = 2
            ids(2) = y%id
        end if
        if (present(z)) then
            n = 3
            ids(3) = z%id
        end if
        r%builder = x%builder
        r%id = op_n(x%builder, op_of_name(name // c_null_char), n, ids)
    end function

    ! An op on two operands in their common type.
    function binary(name, x, other) result(r)
        character(len=*), intent(in) :: name
        type(qn_value), intent(in) :: x
        class(*), intent(in) :: other
        type(qn_value) :: r, y
        integer(c_int) :: dtype
        y = value_of(x%builder, other)
        dtype = together(qn_type_of(x), qn_type_of(y))
        r = qn_op(name, qn_cast(x, dtype), qn_cast(y, dtype))
    end function

    ! A function of docs/math.md or docs/random.md by its name. Real arguments are taken in their common type, integers as
    ! f64, seed and index of a random number as they are needed; the second argument of ldexp and powi is an i32.
    function qn_math(name, x, other) result(r)
        character(len=*), intent(in) :: name
        type(qn_value), intent(in) :: x
        class(*), intent(in), optional :: other
        type(qn_value) :: r, y, args(2)
        integer(c_int64_t) :: results(2)
        integer(c_int) :: dtype, n
        n = 1
        args(1) = x
        if (present(other)) then
            n = 2
            args(2) = value_of(x%builder, other)
        end if
        select case (name)
        case ('uniform_f32', 'uniform_f64', 'normal_f32', 'normal_f64')
            args(1) = qn_cast(args(1), qn_u64)
            args(2) = qn_cast(args(2), qn_i64)
        case ('ldexp', 'powi')
            args(1) = as_float(args(1))
            args(2) = qn_cast(args(2), qn_i32)
        case default
            args(1) = as_float(args(1))
            if (n == 2) then
                y = as_float(args(2))
                dtype = together(qn_type_of(args(1)), qn_type_of(y))
                args(1) = qn_cast(args(1), dtype)
                args(2) = qn_cast(y, dtype)
            end if
        end select
        results = 0
        call math_n(x%builder, name // c_null_char, n, ids_of(args(1:n)), results)
        r%builder = x%builder
        r%id = results(1)
    end function

    function as_float(x) result(y)
        type(qn_value), intent(in) :: x
        type(qn_value) :: y
        y = x
        if (height(qn_type_of(x)) < height(qn_f16)) y = qn_cast(x, qn_f64)
    end function

    ! x to an integer power from 0 to 64 by products, else by the function pow.
    function power(x, y) result(r)
        type(qn_value), intent(in) :: x
        class(*), intent(in) :: y
        type(qn_value) :: r, base
        integer :: n
        n = -1
        select type (y)
        type is (integer(int32))
            n = y
        end select
        if (n < 0 .or. n > 64) then
            r = qn_math("pow", x, y)
            return
        end if
        r = qn_cast(value_of(x%builder, 1), qn_type_of(x))
        base = x
        do while (n > 0)
            if (mod(n, 2) == 1) r = binary("mul", r, base)
            n = n / 2
            if (n > 0) base = binary("mul", base, base)
        end do
    end function

    function negative(x) result(r)
        type(qn_value), intent(in) :: x
        type(qn_value) :: r
        r = qn_op("neg", x)
    end function

    function negation(x) result(r)
        type(qn_value), intent(in) :: x
        type(qn_value) :: r
        r = qn_op("not", x)
    end function

    ! Fortran's mod: exact, with the sign of the first argument.
    function mod_value(x, y) result(r)
        type(qn_value), intent(in) :: x
        class(*), intent(in) :: y
        type(qn_value) :: r
        type(qn_value) :: other
        other = value_of(x%builder, y)
        if (together(qn_type_of(x), qn_type_of(other)) <= qn_u64) then
            r = binary("rem", x, other)
        else
            r = qn_math("fmod", x, other)
        end if
    end function

    function abs_value(x) result(r)
        type(qn_value), intent(in) :: x
        type(qn_value) :: r
        if (height(qn_type_of(x)) >= height(qn_c64)) then
            r = qn_math("abs", x)
        else
            r = qn_op("abs", x)
        end if
    end function

    function sqrt_value(x) result(r)
        type(qn_value), intent(in) :: x
        type(qn_value) :: r
        if (height(qn_type_of(x)) >= height(qn_c64)) then
            r = qn_math("sqrt", x)
        else
            r = qn_op("sqrt", as_float(x))
        end if
    end function

    ! x where the mask holds, else y; both are computed.
    function merge_values(x, y, mask) result(r)
        type(qn_value), intent(in) :: x, mask
        class(*), intent(in) :: y
        type(qn_value) :: r, other
        integer(c_int) :: dtype
        other = value_of(x%builder, y)
        dtype = together(qn_type_of(x), qn_type_of(other))
        r = qn_op("select", mask, qn_cast(x, dtype), qn_cast(other, dtype))
    end function

    ! x*y + z, rounded once.
    function fma(x, y, z) result(r)
        type(qn_value), intent(in) :: x, y, z
        type(qn_value) :: r
        r = qn_op("fma", x, y, z)
    end function

    ! ---------------------------------------------------------------------------------------------- operators

    function add_value(x, y) result(r)
        type(qn_value), intent(in) :: x
        class(*), intent(in) :: y
        type(qn_value) :: r
        r = binary("add", x, y)
    end function
    function sub_value(x, y) result(r)
        type(qn_value), intent(in) :: x
        class(*), intent(in) :: y
        type(qn_value) :: r
        r = binary("sub", x, y)
    end function
    function mul_value(x, y) result(r)
        type(qn_value), intent(in) :: x
        class(*), intent(in) :: y
        type(qn_value) :: r
        r = binary("mul", x, y)
    end function
    function div_value(x, y) result(r)
        type(qn_value), intent(in) :: x
        class(*), intent(in) :: y
        type(qn_value) :: r
        r = binary("div", x, y)
    end function
    function eq_value(x, y) result(r)
        type(qn_value), intent(in) :: x
        class(*), intent(in) :: y
        type(qn_value) :: r
        r = binary("eq", x, y)
    end function
    function ne_value(x, y) result(r)
        type(qn_value), intent(in) :: x
        class(*), intent(in) :: y
        type(qn_value) :: r
        r = binary("ne", x, y)
    end function
    function lt_value(x, y) result(r)
        type(qn_value), intent(in) :: x
        class(*), intent(in) :: y
        type(qn_value) :: r
        r = binary("lt", x, y)
    end function
    function le_value(x, y) result(r)
        type(qn_value), intent(in) :: x
        class(*), intent(in) :: y
        type(qn_value) :: r
        r = binary("le", x, y)
    end function
    function gt_value(x, y) result(r)
        type(qn_value), intent(in) :: x
        class(*), intent(in) :: y
        type(qn_value) :: r
        r = binary("gt", x, y)
    end function
    function ge_value(x, y) result(r)
        type(qn_value), intent(in) :: x
        class(*), intent(in) :: y
        type(qn_value) :: r
        r = binary("ge", x, y)
    end function
    function and_value(x, y) result(r)
        type(qn_value), intent(in) :: x
        class(*), intent(in) :: y
        type(qn_value) :: r
        r = binary("and", x, y)
    end function
    function or_value(x, y) result(r)
        type(qn_value), intent(in) :: x
        class(*), intent(in) :: y
        type(qn_value) :: r
        r = binary("or", x, y)
    end function
    function i4_add(x, y) result(r)
        integer(int32), intent(in) :: x
        type(qn_value), intent(in) :: y
        type(qn_value) :: r
        r = binary("add", value_of(y%builder, x), y)
    end function
    function i8_add(x, y) result(r)
        integer(int64), intent(in) :: x
        type(qn_value), intent(in) :: y
        type(qn_value) :: r
        r = binary("add", value_of(y%builder, x), y)
    end function
    function r4_add(x, y) result(r)
        real(real32), intent(in) :: x
        type(qn_value), intent(in) :: y
        type(qn_value) :: r
        r = binary("add", value_of(y%builder, x), y)
    end function
    function r8_add(x, y) result(r)
        real(real64), intent(in) :: x
        type(qn_value), intent(in) :: y
        type(qn_value) :: r
        r = binary("add", value_of(y%builder, x), y)
    end function
    function i4_sub(x, y) result(r)
        integer(int32), intent(in) :: x
        type(qn_value), intent(in) :: y
        type(qn_value) :: r
        r = binary("sub", value_of(y%builder, x), y)
    end function
    function i8_sub(x, y) result(r)
        integer(int64), intent(in) :: x
        type(qn_value), intent(in) :: y
        type(qn_value) :: r
        r = binary("sub", value_of(y%builder, x), y)
    end function
    function r4_sub(x, y) result(r)
        real(real32), intent(in) :: x
        type(qn_value), intent(in) :: y
        type(qn_value) :: r
        r = binary("sub", value_of(y%builder, x), y)
    end function
    function r8_sub(x, y) result(r)
        real(real64), intent(in) :: x
        type(qn_value), intent(in) :: y
        type(qn_value) :: r
        r = binary("sub", value_of(y%builder, x), y)
    end function
    function i4_mul(x, y) result(r)
        integer(int32), intent(in) :: x
        type(qn_value), intent(in) :: y
        type(qn_value) :: r
        r = binary("mul", value_of(y%builder, x), y)
    end function
    function i8_mul(x, y) result(r)
        integer(int64), intent(in) :: x
        type(qn_value), intent(in) :: y
        type(qn_value) :: r
        r = binary("mul", value_of(y%builder, x), y)
    end function
    function r4_mul(x, y) result(r)
        real(real32), intent(in) :: x
        type(qn_value), intent(in) :: y
        type(qn_value) :: r
        r = binary("mul", value_of(y%builder, x), y)
    end function
    function r8_mul(x, y) result(r)
        real(real64), intent(in) :: x
        type(qn_value), intent(in) :: y
        type(qn_value) :: r
        r = binary("mul", value_of(y%builder, x), y)
    end function
    function i4_div(x, y) result(r)
        integer(int32), intent(in) :: x
        type(qn_value), intent(in) :: y
        type(qn_value) :: r
        r = binary("div", value_of(y%builder, x), y)
    end function
    function i8_div(x, y) result(r)
        integer(int64), intent(in) :: x
        type(qn_value), intent(in) :: y
        type(qn_value) :: r
        r = binary("div", value_of(y%builder, x), y)
    end function
    function r4_div(x, y) result(r)
        real(real32), intent(in) :: x
        type(qn_value), intent(in) :: y
        type(qn_value) :: r
        r = binary("div", value_of(y%builder, x), y)
    end function
    function r8_div(x, y) result(r)
        real(real64), intent(in) :: x
        type(qn_value), intent(in) :: y
        type(qn_value) :: r
        r = binary("div", value_of(y%builder, x), y)
    end function

    ! ---------------------------------------------------------------------------------------------- names of intrinsic functions

    function min_values(x, y) result(r)
        type(qn_value), intent(in) :: x
        class(*), intent(in) :: y
        type(qn_value) :: r
        r = binary("min", x, y)
    end function
    function max_values(x, y) result(r)
        type(qn_value), intent(in) :: x
        class(*), intent(in) :: y
        type(qn_value) :: r
        r = binary("max", x, y)
    end function
    function sign_values(x, y) result(r)
        type(qn_value), intent(in) :: x
        class(*), intent(in) :: y
        type(qn_value) :: r
        r = binary("copysign", x, y)
    end function
    function iand_values(x, y) result(r)
        type(qn_value), intent(in) :: x
        class(*), intent(in) :: y
        type(qn_value) :: r
        r = binary("and", x, y)
    end function
    function ior_values(x, y) result(r)
        type(qn_value), intent(in) :: x
        class(*), intent(in) :: y
        type(qn_value) :: r
        r = binary("or", x, y)
    end function
    function ieor_values(x, y) result(r)
        type(qn_value), intent(in) :: x
        class(*), intent(in) :: y
        type(qn_value) :: r
        r = binary("xor", x, y)
    end function
    function shiftl_values(x, y) result(r)
        type(qn_value), intent(in) :: x
        class(*), intent(in) :: y
        type(qn_value) :: r
        r = binary("shl", x, y)
    end function
    function shiftr_values(x, y) result(r)
        type(qn_value), intent(in) :: x
        class(*), intent(in) :: y
        type(qn_value) :: r
        r = binary("shr", x, y)
    end function
    function atan2_values(x, y) result(r)
        type(qn_value), intent(in) :: x
        class(*), intent(in) :: y
        type(qn_value) :: r
        r = qn_math("atan2", x, y)
    end function
    function hypot_values(x, y) result(r)
        type(qn_value), intent(in) :: x
        class(*), intent(in) :: y
        type(qn_value) :: r
        r = qn_math("hypot", x, y)
    end function
    function aint_value(x) result(r)
        type(qn_value), intent(in) :: x
        type(qn_value) :: r
        r = qn_op("trunc", x)
    end function
    function not_value(x) result(r)
        type(qn_value), intent(in) :: x
        type(qn_value) :: r
        r = qn_op("not", x)
    end function
    function popcnt_value(x) result(r)
        type(qn_value), intent(in) :: x
        type(qn_value) :: r
        r = qn_op("popcount", x)
    end function
    function leadz_value(x) result(r)
        type(qn_value), intent(in) :: x
        type(qn_value) :: r
        r = qn_op("clz", x)
    end function
    function trailz_value(x) result(r)
        type(qn_value), intent(in) :: x
        type(qn_value) :: r
        r = qn_op("ctz", x)
    end function
    function exp_value(x) result(r)
        type(qn_value), intent(in) :: x
        type(qn_value) :: r
        r = qn_math("exp", x)
    end function
    function log_value(x) result(r)
        type(qn_value), intent(in) :: x
        type(qn_value) :: r
        r = qn_math("log", x)
    end function
    function log10_value(x) result(r)
        type(qn_value), intent(in) :: x
        type(qn_value) :: r
        r = qn_math("log10", x)
    end function
    function sin_value(x) result(r)
        type(qn_value), intent(in) :: x
        type(qn_value) :: r
        r = qn_math("sin", x)
    end function
    function cos_value(x) result(r)
        type(qn_value), intent(in) :: x
        type(qn_value) :: r
        r = qn_math("cos", x)
    end function
    function tan_value(x) result(r)
        type(qn_value), intent(in) :: x
        type(qn_value) :: r
        r = qn_math("tan", x)
    end function
    function asin_value(x) result(r)
        type(qn_value), intent(in) :: x
        type(qn_value) :: r
        r = qn_math("asin", x)
    end function
    function acos_value(x) result(r)
        type(qn_value), intent(in) :: x
        type(qn_value) :: r
        r = qn_math("acos", x)
    end function
    function atan_value(x) result(r)
        type(qn_value), intent(in) :: x
        type(qn_value) :: r
        r = qn_math("atan", x)
    end function
    function sinh_value(x) result(r)
        type(qn_value), intent(in) :: x
        type(qn_value) :: r
        r = qn_math("sinh", x)
    end function
    function cosh_value(x) result(r)
        type(qn_value), intent(in) :: x
        type(qn_value) :: r
        r = qn_math("cosh", x)
    end function
    function tanh_value(x) result(r)
        type(qn_value), intent(in) :: x
        type(qn_value) :: r
        r = qn_math("tanh", x)
    end function
    function asinh_value(x) result(r)
        type(qn_value), intent(in) :: x
        type(qn_value) :: r
        r = qn_math("asinh", x)
    end function
    function acosh_value(x) result(r)
        type(qn_value), intent(in) :: x
        type(qn_value) :: r
        r = qn_math("acosh", x)
    end function
    function atanh_value(x) result(r)
        type(qn_value), intent(in) :: x
        type(qn_value) :: r
        r = qn_math("atanh", x)
    end function
    function erf_value(x) result(r)
        type(qn_value), intent(in) :: x
        type(qn_value) :: r
        r = qn_math("erf", x)
    end function
    function erfc_value(x) result(r)
        type(qn_value), intent(in) :: x
        type(qn_value) :: r
        r = qn_math("erfc", x)
    end function
    function gamma_value(x) result(r)
        type(qn_value), intent(in) :: x
        type(qn_value) :: r
        r = qn_math("tgamma", x)
    end function
    function log_gamma_value(x) result(r)
        type(qn_value), intent(in) :: x
        type(qn_value) :: r
        r = qn_math("lgamma", x)
    end function
end module
