/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * value.hpp: values of kernels under construction, the part of quern.hpp with their operators and
 * functions.
 */
#ifndef QUERN_HPP
#include "quern.hpp" /* which includes this file in its place */
#elif !defined(QUERN_VALUE_HPP)
#define QUERN_VALUE_HPP

#include <array>
#include <complex>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace quern
{

/** Whether T is a std::complex. */
template <class T> struct is_complex : std::false_type {
};
/** @copydoc is_complex */
template <class T> struct is_complex<std::complex<T>> : std::true_type {
};

/** Whether T is a number that a value can be computed with. */
template <class T>
inline constexpr bool is_number = std::is_arithmetic_v<T> || is_complex<T>::value;

/** A value of a kernel under construction. Lives as long as its builder. */
class value
{
  public:
    /** The inert value. */
    value() noexcept = default;
    /** A C value of a builder. */
    value(qn_builder *builder, qn_val v) noexcept : builder_(builder), value_(v)
    {
    }
    /** The builder, borrowed. */
    qn_builder *builder() const noexcept
    {
        return builder_;
    }
    /** The C value. */
    qn_val get() const noexcept
    {
        return value_;
    }
    /** Its dtype. */
    qn_dtype dtype() const noexcept
    {
        return qn_type_of(builder_, value_);
    }
    /** This value with another index kind, or without (0). */
    value with_kind(int kind) const
    {
        return value(builder_, qn_with_kind(builder_, value_, kind));
    }
    /** A constant of this value's dtype. A fraction for an integer is a builder error. */
    template <class T> value like(T number) const
    {
        return constant(builder_, dtype(), number);
    }
    /** A constant of a dtype. */
    template <class T> static value constant(qn_builder *b, int dtype, T number)
    {
        static_assert(is_number<T>, "a constant is a number");
        if constexpr (is_complex<T>::value) {
            return value(b, qn_const_complex(b, dtype, static_cast<double>(number.real()),
                                             static_cast<double>(number.imag())));
        } else {
            if (class_of(dtype) == 'C')
                return value(b, qn_const_complex(b, dtype, static_cast<double>(number), 0));
            if (std::is_floating_point_v<T> || is_float(dtype))
                return value(b, qn_const_float(b, dtype, static_cast<double>(number)));
            return value(b, qn_const_int(b, dtype, static_cast<std::int64_t>(number)));
        }
    }

  private:
    qn_builder *builder_ = nullptr;
    qn_val value_{};
};

/** Operators of two values, and of a value and a number of its dtype. */
#define QN_HPP_BINARY(token, function)                                                             \
    inline value operator token(const value &x, const value &y)                                    \
    {                                                                                              \
        return value(x.builder(), function(x.builder(), x.get(), y.get()));                        \
    }                                                                                              \
    template <class T, class = std::enable_if_t<is_number<T>>>                          \
    value operator token(const value &x, T y)                                                      \
    {                                                                                              \
        return x token x.like(y);                                                                  \
    }                                                                                              \
    template <class T, class = std::enable_if_t<is_number<T>>>                          \
    value operator token(T x, const value &y)                                                      \
    {                                                                                              \
        return y.like(x) token y;                                                                  \
    }
QN_HPP_BINARY(+, qn_add)
QN_HPP_BINARY(-, qn_sub)
QN_HPP_BINARY(*, qn_mul)
QN_HPP_BINARY(/, qn_div)
QN_HPP_BINARY(%, qn_rem)
QN_HPP_BINARY(&, qn_and)
QN_HPP_BINARY(|, qn_or)
QN_HPP_BINARY(^, qn_xor)
QN_HPP_BINARY(<<, qn_shl)
QN_HPP_BINARY(>>, qn_shr)
QN_HPP_BINARY(==, qn_eq)
QN_HPP_BINARY(!=, qn_ne)
QN_HPP_BINARY(<, qn_lt)
QN_HPP_BINARY(<=, qn_le)
QN_HPP_BINARY(>, qn_gt)
QN_HPP_BINARY(>=, qn_ge)
#undef QN_HPP_BINARY

/** Assignment operators: the name stands for the new value from now on, nothing is stored. */
#define QN_HPP_ASSIGN(token)                                                                       \
    template <class V> value &operator token##=(value &x, V &&y)                                   \
    {                                                                                              \
        return x = x token std::forward<V>(y);                                                     \
    }
QN_HPP_ASSIGN(+)
QN_HPP_ASSIGN(-)
QN_HPP_ASSIGN(*)
QN_HPP_ASSIGN(/)
QN_HPP_ASSIGN(%)
QN_HPP_ASSIGN(&)
QN_HPP_ASSIGN(|)
QN_HPP_ASSIGN(^)
QN_HPP_ASSIGN(<<)
QN_HPP_ASSIGN(>>)
#undef QN_HPP_ASSIGN

/** Functions of one value. */
#define QN_HPP_UNARY(name, function)                                                               \
    inline value name(const value &x)                                                              \
    {                                                                                              \
        return value(x.builder(), function(x.builder(), x.get()));                                 \
    }
QN_HPP_UNARY(operator-, qn_neg)
QN_HPP_UNARY(operator~, qn_not)
QN_HPP_UNARY(operator!, qn_not)
QN_HPP_UNARY(abs, qn_abs)
QN_HPP_UNARY(sqrt, qn_sqrt)
QN_HPP_UNARY(floor, qn_floor)
QN_HPP_UNARY(ceil, qn_ceil)
QN_HPP_UNARY(round, qn_round)
QN_HPP_UNARY(trunc, qn_trunc)
QN_HPP_UNARY(popcount, qn_popcount)
QN_HPP_UNARY(clz, qn_clz)
QN_HPP_UNARY(ctz, qn_ctz)
QN_HPP_UNARY(real, qn_real)
QN_HPP_UNARY(imag, qn_imag)
QN_HPP_UNARY(conj, qn_conj)
QN_HPP_UNARY(arg, qn_complex_arg)
#undef QN_HPP_UNARY

/** The complex number of these parts. */
inline value complex(const value &re, const value &im)
{
    return value(re.builder(), qn_complex(re.builder(), re.get(), im.get()));
}
/** The complex number of this length and angle. */
inline value polar(const value &length, const value &angle)
{
    return value(length.builder(), qn_complex_polar(length.builder(), length.get(), angle.get()));
}
/** The smaller value; NaN if either is. */
inline value min(const value &x, const value &y)
{
    return value(x.builder(), qn_min(x.builder(), x.get(), y.get()));
}
/** The larger value; NaN if either is. */
inline value max(const value &x, const value &y)
{
    return value(x.builder(), qn_max(x.builder(), x.get(), y.get()));
}
/** x * y + z, rounded once. */
inline value fma(const value &x, const value &y, const value &z)
{
    return value(x.builder(), qn_fma(x.builder(), x.get(), y.get(), z.get()));
}
/** The magnitude of the first value with the sign of the second. */
inline value copysign(const value &x, const value &y)
{
    return value(x.builder(), qn_copysign(x.builder(), x.get(), y.get()));
}
/** x if the condition holds, else y; both are computed. */
inline value select(const value &condition, const value &x, const value &y)
{
    return value(x.builder(), qn_select(x.builder(), condition.get(), x.get(), y.get()));
}
/** Conversion to the dtype of T, as qn_cast. */
template <class T> value cast(const value &x)
{
    return value(x.builder(), qn_cast(x.builder(), dtype_of<T>(), x.get()));
}
/** The bits of a value in the dtype of T, of the same size. */
template <class T> value bitcast(const value &x)
{
    return value(x.builder(), qn_bitcast(x.builder(), dtype_of<T>(), x.get()));
}
/** A field of a record value by its number. */
inline value field_of(const value &x, int field)
{
    return value(x.builder(), qn_field_of(x.builder(), x.get(), field));
}
/** A record value with another value of a field. */
inline value with_field(const value &x, int field, const value &y)
{
    return value(x.builder(), qn_with_field(x.builder(), x.get(), field, y.get()));
}
/** The mathematical functions of quern/math.def by these names: exp(x), pow(x, 2.0), ldexp(x, 3),
 * auto [f, n] = frexp(x), ... Numbers take the dtype of the other argument, or that of an exponent.
 */
#define QN_HPP_ARGS_1 const value &x
#define QN_HPP_ARGS_2 const value &x, const value &y
#define QN_HPP_ARGS_3 const value &x, const value &y, const value &z
#define QN_HPP_ARGS_T QN_HPP_ARGS_1
#define QN_HPP_ARGS_TT QN_HPP_ARGS_2
#define QN_HPP_ARGS_TI QN_HPP_ARGS_2
#define QN_HPP_LIST_1 x.builder(), x.get()
#define QN_HPP_LIST_2 x.builder(), x.get(), y.get()
#define QN_HPP_LIST_3 x.builder(), x.get(), y.get(), z.get()
#define QN_HPP_LIST_T QN_HPP_LIST_1
#define QN_HPP_LIST_TT QN_HPP_LIST_2
#define QN_HPP_LIST_TI QN_HPP_LIST_2
#define QN_HPP_NUMBERS_T(name)
#define QN_HPP_NUMBERS_TT(name)                                                                    \
    template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>                          \
    auto name(const value &x, T y)                                                                 \
    {                                                                                              \
        return name(x, x.like(y));                                                                 \
    }                                                                                              \
    template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>                          \
    auto name(T x, const value &y)                                                                 \
    {                                                                                              \
        return name(y.like(x), y);                                                                 \
    }
#define QN_HPP_NUMBERS_TI(name)                                                                    \
    inline auto name(const value &x, int y)                                                        \
    {                                                                                              \
        return name(x, value::constant(x.builder(), QN_I32, y));                                   \
    }
#define QN_HPP_T(name, args)                                                                       \
    inline value name(QN_HPP_ARGS_##args)                                                          \
    {                                                                                              \
        return value(x.builder(), qn_##name(QN_HPP_LIST_##args));                                  \
    }
#define QN_HPP_B(name, args) QN_HPP_T(name, args)
#define QN_HPP_TT(name, args)                                                                      \
    inline std::array<value, 2> name(QN_HPP_ARGS_##args)                                           \
    {                                                                                              \
        qn_val results[2];                                                                         \
        qn_##name(QN_HPP_LIST_##args, results);                                                    \
        return {value(x.builder(), results[0]), value(x.builder(), results[1])};                   \
    }
#define QN_HPP_TI(name, args) QN_HPP_TT(name, args)
#define QN_MATH(name, arguments, results, doc)                                                     \
    QN_HPP_##results(name, arguments) QN_HPP_NUMBERS_##arguments(name)
#define QN_RANDOM(name, arity, doc) QN_HPP_T(name, arity)
#include "quern/math.def"
#undef QN_MATH
#undef QN_HPP_ARGS_1
#undef QN_HPP_ARGS_2
#undef QN_HPP_ARGS_3
#undef QN_HPP_LIST_1
#undef QN_HPP_LIST_2
#undef QN_HPP_LIST_3
#undef QN_HPP_ARGS_T
#undef QN_HPP_ARGS_TT
#undef QN_HPP_ARGS_TI
#undef QN_HPP_LIST_T
#undef QN_HPP_LIST_TT
#undef QN_HPP_LIST_TI
#undef QN_HPP_NUMBERS_T
#undef QN_HPP_NUMBERS_TT
#undef QN_HPP_NUMBERS_TI
#undef QN_HPP_T
#undef QN_HPP_B
#undef QN_HPP_TT
#undef QN_HPP_TI

/** Any op of the table by its keyword. An unknown one is a builder error. */
template <class... V> value op(const char *name, const value &x, const V &...more)
{
    const std::array<qn_val, 1 + sizeof...(V)> list{{x.get(), more.get()...}};
    return value(x.builder(), qn_op(x.builder(), qn_op_of_name(name),
                                    static_cast<int>(list.size()), list.data()));
}

/** A function of quern/math.def or docs/random.md by name, with N results: random4, philox4x32, ...
 */
template <std::size_t N, class... V>
std::array<value, N> math(const char *name, const value &x, const V &...more)
{
    const std::array<qn_val, 1 + sizeof...(V)> list{{x.get(), more.get()...}};
    std::array<qn_val, 32> results{};
    static_assert(N <= 32, "no function has so many results");
    qn_math(x.builder(), name, static_cast<int>(list.size()), list.data(), results.data());
    std::array<value, N> out{};
    for (std::size_t i = 0; i < N; i++)
        out[i] = value(x.builder(), results[i]);
    return out;
}

} // namespace quern

#endif
