/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * builder.hpp: the builder, the part of quern.hpp about kernels under construction: values with operators, arrays.
 */
#ifndef QUERN_HPP
#include "quern.hpp" /* which includes this file in its place */
#elif !defined(QUERN_BUILDER_HPP)
#define QUERN_BUILDER_HPP

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <type_traits>
#include <utility>
#include <vector>

namespace quern
{

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
    /** The same value with another index kind, or without (0). */
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
        static_assert(std::is_arithmetic_v<T>, "a constant is a number");
        if (std::is_floating_point_v<T> || is_float(dtype))
            return value(b, qn_const_float(b, dtype, static_cast<double>(number)));
        return value(b, qn_const_int(b, dtype, static_cast<std::int64_t>(number)));
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
    template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>                          \
    value operator token(const value &x, T y)                                                      \
    {                                                                                              \
        return x token x.like(y);                                                                  \
    }                                                                                              \
    template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>                          \
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
/** The mathematical functions of quern/math.def by these names: exp(x), pow(x, 2.0), ldexp(x, 3), auto [f, n] = frexp(x), ...
 *  Numbers take the dtype of the other argument, or that of an exponent. */
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

/** An element of a view parameter: reading it loads, assigning to it stores. It is used where it is
 *  written, and has no name of its own: after `auto t = x(i)` every use of t is an error, as t
 * would be loaded at its use. `value t = x(i)` loads at once. */
class element
{
  public:
    /** Made by array::operator(). */
    element(qn_builder *builder, qn_param p, int dtype, std::vector<qn_val> index)
        : builder_(builder), param_(p), dtype_(dtype), index_(std::move(index))
    {
    }
    element(const element &) = delete;
    /** Loads. */
    operator value() &&
    {
        return load();
    }
    operator value() const & = delete; /* write `value t = x(i)`, not `auto t = x(i)` */
    /** Stores, and gives what was stored. */
    value operator=(const value &v) &&
    {
        return store(v);
    }
    /** Loads the other one and stores it here. */
    value operator=(element &&other) &&
    {
        return store(other.load());
    }
    value operator=(const element &) = delete;
    /** Stores a constant. */
    template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
    value operator=(T number) &&
    {
        return store(value::constant(builder_, dtype_, number));
    }
    /** Loads, computes with a value or a number, and stores; through an atomic view one atomic update. */
#define QN_HPP_UPDATE(token)                                                                       \
    template <class V> value operator token##=(V &&v) &&                                           \
    {                                                                                              \
        return store(load() token std::forward<V>(v));                                             \
    }
    QN_HPP_UPDATE(+)
    QN_HPP_UPDATE(-)
    QN_HPP_UPDATE(*)
    QN_HPP_UPDATE(/)
    QN_HPP_UPDATE(%)
    QN_HPP_UPDATE(&)
    QN_HPP_UPDATE(|)
    QN_HPP_UPDATE(^)
    QN_HPP_UPDATE(<<)
    QN_HPP_UPDATE(>>)
#undef QN_HPP_UPDATE
    /** Combines atomically and returns the old value. */
    value atomic(int combine, const value &v) &&
    {
        return value(builder_, qn_atomic(builder_, combine, param_, rank(), index_.data(), v.get(),
                                         qn_val{}));
    }

  private:
    int rank() const noexcept
    {
        return static_cast<int>(index_.size());
    }
    value load() const
    {
        return value(builder_, qn_load(builder_, param_, rank(), index_.data()));
    }
    value store(const value &v) const
    {
        qn_store(builder_, param_, rank(), index_.data(), v.get());
        return v;
    }
    qn_builder *builder_;
    qn_param param_;
    int dtype_;
    std::vector<qn_val> index_;
};

/** A view parameter of a kernel under construction. */
class array
{
  public:
    /** Made by builder::view. */
    array(qn_builder *builder, qn_param p, int dtype, int index) noexcept
        : builder_(builder), param_(p), dtype_(dtype), index_(index)
    {
    }
    /** An element; indices are values or integers. */
    template <class... I> element operator()(I &&...index) const
    {
        return element(builder_, param_, dtype_, {as_index(std::forward<I>(index))...});
    }
    /** Number of indices of a dimension. */
    value extent(int d) const
    {
        return value(builder_, qn_extent(builder_, param_, d));
    }
    /** Typed indices: one kind for each dimension, 0 (none) for those not listed. */
    void kinds(const std::vector<std::uint8_t> &list) const
    {
        std::array<std::uint8_t, QN_MAX_RANK> all{};
        std::copy_n(list.begin(), std::min(list.size(), all.size()), all.begin());
        qn_param_kinds(builder_, param_, all.data());
    }
    /** Smallest index of a dimension. */
    value lower(int d) const
    {
        return value(builder_, qn_lower(builder_, param_, d));
    }
    /** Pins a number of the parameter: QN_PIN_EXTENT, QN_PIN_STRIDE or QN_PIN_LOWER of dimension d
     * is QN_PIN_CONSTANT or QN_PIN_DYNAMIC. */
    const array &pin(int of, int d, int as) const
    {
        return add_pin({index_, of, d, as, 0});
    }
    /** The number is a multiple of n, or launches run code that does not rely on that. */
    const array &multiple_of(int of, int d, std::int64_t n) const
    {
        return add_pin({index_, of, d, QN_PIN_MULTIPLE, n});
    }
    /** The C parameter. */
    qn_param get() const noexcept
    {
        return param_;
    }

  private:
    template <class I> qn_val as_index(I &&i) const
    {
        if constexpr (std::is_integral_v<std::decay_t<I>>)
            return qn_index(builder_, static_cast<std::int64_t>(i));
        else
            return static_cast<value>(std::forward<I>(i)).get();
    }
    const array &add_pin(const qn_fact_pin &pin) const
    {
        qn_builder_pin(builder_, &pin);
        return *this;
    }
    qn_builder *builder_;
    qn_param param_;
    int dtype_, index_;
};

/** A kernel under construction. One owner. */
class builder : public owner<qn_builder, qn_builder_release>
{
  public:
    /** A builder for a kernel of this name. */
    explicit builder(const char *name, std::uint32_t flags = 0) : owner(qn_builder_new(name, flags))
    {
        if (!handle_)
            throw error(QN_ERR_MEMORY, "quern::builder: no memory");
    }

    /** A view parameter; const T makes it read-only. */
    template <class T> array view(const char *name, int rank, std::uint32_t traits = 0)
    {
        const std::uint32_t constant = std::is_const_v<T> ? std::uint32_t{QN_READ_ONLY} : 0u;
        return array(handle_, qn_view_param(handle_, name, dtype_of<T>(), rank, traits | constant),
                     dtype_of<T>(), n_params_++);
    }
    /** A scalar parameter; `as`: QN_PIN_CONSTANT or QN_PIN_DYNAMIC, or 0 as launches decide. */
    template <class T> value scalar(const char *name, int as = 0)
    {
        const value v(handle_, qn_scalar_param(handle_, name, dtype_of<T>()));
        const qn_fact_pin pin = {n_params_++, QN_PIN_SCALAR, 0, as, 0};
        if (as)
            qn_builder_pin(handle_, &pin);
        return v;
    }
    /** A scalar parameter that is a multiple of n, or launches run code that does not rely on that.
     */
    template <class T> value scalar_multiple_of(const char *name, std::int64_t n)
    {
        const value v(handle_, qn_scalar_param(handle_, name, dtype_of<T>()));
        const qn_fact_pin pin = {n_params_++, QN_PIN_SCALAR, 0, QN_PIN_MULTIPLE, n};
        qn_builder_pin(handle_, &pin);
        return v;
    }
    /** A constant of the dtype of T. */
    template <class T> value constant(T number)
    {
        return value::constant(handle_, dtype_of<T>(), number);
    }
    /** An index constant. */
    value index(std::int64_t number)
    {
        return value(handle_, qn_index(handle_, number));
    }
    /** A parallel dimension over [begin, end). */
    value parallel(const value &begin, const value &end)
    {
        return value(handle_, qn_parallel(handle_, begin.get(), end.get()));
    }
    /** A parallel dimension over all indices of a dimension of a view. */
    value parallel(const array &over, int d)
    {
        return value(handle_, qn_parallel_over(handle_, over.get(), d));
    }
    /** A reduction dimension over [begin, end). */
    value reduction(const value &begin, const value &end)
    {
        return value(handle_, qn_reduction(handle_, begin.get(), end.get()));
    }
    /** A reduction dimension over all indices of a dimension of a view. */
    value reduction(const array &over, int d)
    {
        return value(handle_, qn_reduction_over(handle_, over.get(), d));
    }
    /** A sequential dimension over [begin, end). */
    value sequential(const value &begin, const value &end)
    {
        return value(handle_, qn_sequential(handle_, begin.get(), end.get()));
    }

    /** Asserts that a condition holds; a failure shows the message and some values. */
    void assert_that(const value &condition, const char *message,
                     std::initializer_list<value> shown = {})
    {
        std::vector<qn_val> list;
        for (const value &v : shown)
            list.push_back(v.get());
        qn_assert(handle_, condition.get(), message, static_cast<int>(list.size()), list.data());
    }

    /** Prints a line with a message and some values, see qn_print. */
    void print(const char *message, std::initializer_list<value> shown = {})
    {
        std::vector<qn_val> list;
        for (const value &v : shown)
            list.push_back(v.get());
        qn_print(handle_, message, static_cast<int>(list.size()), list.data());
    }

    /** Reduces what body() returns over some reduction dimensions. */
    template <class F>
    value reduce(int combine, std::initializer_list<value> dims, F &&body,
                 int order = QN_ORDER_DEFAULT)
    {
        std::vector<qn_val> list;
        for (const value &d : dims)
            list.push_back(d.get());
        qn_reduce(handle_, combine, order, static_cast<int>(list.size()), list.data());
        const value v = body();
        return value(handle_, qn_end_reduce(handle_, v.get()));
    }
    /** Runs body() where the condition holds. */
    template <class F> void if_(const value &condition, F &&body)
    {
        qn_if(handle_, condition.get());
        body();
        qn_end_if(handle_, 0, nullptr, nullptr);
    }
    /** The value of yes() where the condition holds, of no() elsewhere; only one of them is
     * computed. Both may give several values, as std::array{first, second} and so on. */
    template <class F, class G> auto if_else(const value &condition, F &&yes, G &&no)
    {
        qn_if(handle_, condition.get());
        return both(yes, no);
    }
    /** if_else whose condition rarely holds (qn_if_rare). */
    template <class F, class G> auto if_rare(const value &condition, F &&yes, G &&no)
    {
        qn_if_rare(handle_, condition.get());
        return both(yes, no);
    }
    /** Runs body(index) for begin, begin + step, ... below end. */
    template <class F>
    void for_(const value &begin, const value &end, F &&body, std::int64_t step = 1)
    {
        const value i(handle_, qn_for(handle_, begin.get(), end.get(), step, 0, nullptr, nullptr));
        body(i);
        qn_end_for(handle_, 0, nullptr, nullptr);
    }
    /** Runs body(index) for the entries of a row of a ragged array, see qn_for_row. */
    template <class F> void for_row(const array &map, const value &row, F &&body)
    {
        const value i(handle_, qn_for_row(handle_, map.get(), row.get(), 0, nullptr, nullptr));
        body(i);
        qn_end_for(handle_, 0, nullptr, nullptr);
    }
    /** Folds: carried = body(index, carried), starting with init; returns the last one. */
    template <class F>
    value fold(const value &begin, const value &end, const value &init, F &&body,
               std::int64_t step = 1)
    {
        const qn_val start = init.get();
        qn_val carried{}, result{};
        const value i(handle_, qn_for(handle_, begin.get(), end.get(), step, 1, &start, &carried));
        const qn_val next = static_cast<value>(body(i, value(handle_, carried))).get();
        qn_end_for(handle_, 1, &next, &result);
        return value(handle_, result);
    }

    /** Folds of several values: std::array{first, second} and so on, here and from body(). */
    template <std::size_t N, class F>
    std::array<value, N> fold(const value &begin, const value &end,
                              const std::array<value, N> &init, F &&body, std::int64_t step = 1)
    {
        const auto start = handles(init);
        std::array<qn_val, N> carried{}, result{};
        const value i(handle_, qn_for(handle_, begin.get(), end.get(), step, static_cast<int>(N),
                                      start.data(), carried.data()));
        const auto next = handles<N>(body(i, values(carried)));
        qn_end_for(handle_, static_cast<int>(N), next.data(), result.data());
        return values(result);
    }
    /** Repeats carried = body(carried) while condition(carried) holds, starting with init, and
     *  returns the last ones. After max_trips repetitions the launch returns QN_ERR_LIMIT. */
    template <std::size_t N, class C, class F>
    std::array<value, N> while_(const value &max_trips, const std::array<value, N> &init,
                                C &&condition, F &&body)
    {
        const auto start = handles(init);
        std::array<qn_val, N> carried{}, result{};
        qn_while(handle_, max_trips.get(), static_cast<int>(N), start.data(), carried.data());
        qn_do(handle_, static_cast<value>(condition(values(carried))).get());
        const auto next = handles<N>(body(values(carried)));
        qn_end_while(handle_, static_cast<int>(N), next.data(), result.data());
        return values(result);
    }
    /** The same loop over one value. */
    template <class C, class F>
    value while_(const value &max_trips, const value &init, C &&condition, F &&body)
    {
        return while_(
            max_trips, std::array<value, 1>{init},
            [&](const std::array<value, 1> &x) { return condition(x[0]); },
            [&](const std::array<value, 1> &x) {
                return std::array<value, 1>{static_cast<value>(body(x[0]))};
            })[0];
    }

    /** Finishes; throws the first error of all calls before. */
    kernel finish()
    {
        qn_error e{};
        qn_kernel *k = nullptr;
        check(qn_finish(handle_, &k, &e), e);
        return kernel(k);
    }

  private:
    template <std::size_t N> static std::array<qn_val, N> handles(const std::array<value, N> &list)
    {
        std::array<qn_val, N> out{};
        for (std::size_t i = 0; i < N; i++)
            out[i] = list[i].get();
        return out;
    }
    template <std::size_t... I>
    std::array<value, sizeof...(I)> values(const std::array<qn_val, sizeof...(I)> &list,
                                           std::index_sequence<I...>) const
    {
        return {value(handle_, list[I])...};
    }
    template <std::size_t N> std::array<value, N> values(const std::array<qn_val, N> &list) const
    {
        return values(list, std::make_index_sequence<N>());
    }
    /** What a branch gives: one value, or an array of them. */
    template <class T> struct branch {
        static constexpr std::size_t n = 1;
        using type = value;
        static std::array<value, 1> list(T &&given)
        {
            return {static_cast<value>(std::forward<T>(given))};
        }
        static value result(const std::array<value, 1> &list)
        {
            return list[0];
        }
    };
    template <std::size_t N> struct branch<std::array<value, N>> {
        static constexpr std::size_t n = N;
        using type = std::array<value, N>;
        static const type &list(const type &given)
        {
            return given;
        }
        static const type &result(const type &list)
        {
            return list;
        }
    };
    template <class F> using branch_of = branch<std::decay_t<std::invoke_result_t<F>>>;

    /** Both branches of the `if` that was just opened, and its value or values. */
    template <class F, class G> typename branch_of<F>::type both(F &&yes, G &&no)
    {
        constexpr std::size_t n = branch_of<F>::n;
        std::array<qn_val, n> result{};
        const auto first = handles<n>(branch_of<F>::list(yes()));
        qn_else(handle_, static_cast<int>(n), first.data());
        const auto second = handles<n>(branch_of<G>::list(no()));
        qn_end_if(handle_, static_cast<int>(n), second.data(), result.data());
        return branch_of<F>::result(values(result));
    }

    int n_params_ = 0;
};

} // namespace quern

#endif
