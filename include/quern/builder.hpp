/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * builder.hpp: the builder, the part of quern.hpp about kernels under construction: elements,
 * arrays, regions.
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

/** An element of a view parameter: reading it loads, assigning to it stores. It is used where it is
 *  written, and has no name of its own: after `auto t = x(i)` every use of t is an error, as t
 * would be loaded at its use. `value t = x(i)` loads at once. */
class element
{
  public:
    /** Made by array::operator(). */
    element(qn_builder *builder, qn_param p, int dtype, std::vector<qn_val> index, int field = -1)
        : builder_(builder), param_(p), dtype_(dtype), field_(field), index_(std::move(index))
    {
    }
    /** A field of a record by its number, which is read and assigned to as elements are. T is its
     * type. */
    template <class T> element field(int number) &&
    {
        return element(builder_, param_, dtype_of<T>(), std::move(index_), number);
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
    template <class T, class = std::enable_if_t<is_number<T>>>
    value operator=(T number) &&
    {
        return store(value::constant(builder_, dtype_, number));
    }
    /** Loads, computes with a value or a number, and stores; through an atomic view one atomic
     * update. */
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

    /** Stores `desired` if the element is `expected`, atomically, and returns the old value. */
    value compare_exchange(const value &expected, const value &desired) &&
    {
        return value(builder_, qn_atomic(builder_, QN_COMBINE_COMPARE_EXCHANGE, param_, rank(),
                                         index_.data(), desired.get(), expected.get()));
    }

  private:
    int rank() const noexcept
    {
        return static_cast<int>(index_.size());
    }
    value load() const
    {
        if (field_ >= 0)
            return value(builder_,
                         qn_load_field(builder_, param_, field_, rank(), index_.data()));
        return value(builder_, qn_load(builder_, param_, rank(), index_.data()));
    }
    value store(const value &v) const
    {
        if (field_ >= 0)
            qn_store_field(builder_, param_, field_, rank(), index_.data(), v.get());
        else
            qn_store(builder_, param_, rank(), index_.data(), v.get());
        return v;
    }
    qn_builder *builder_;
    qn_param param_;
    int dtype_, field_;
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
    /** Of a map of rows of different lengths, this array: first index of a row, one past the last,
     * and index of its element k. */
    value row_begin(const value &row) const
    {
        return value(builder_, qn_row_begin(builder_, param_, row.get()));
    }
    /** @copydoc row_begin */
    value row_end(const value &row) const
    {
        return value(builder_, qn_row_end(builder_, param_, row.get()));
    }
    /** @copydoc row_begin */
    value row_at(const value &row, const value &k) const
    {
        return value(builder_, qn_row_at(builder_, param_, row.get(), k.get()));
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

/** Numbers that are part of a kernel's code. */
class table
{
  public:
    /** Made by builder::constants. */
    table(qn_builder *builder, qn_array a) noexcept : builder_(builder), array_(a)
    {
    }
    /** The number at an index: the first for an index below 0, the last for one beyond. */
    value operator()(const value &index) const
    {
        return value(builder_, qn_lookup(builder_, array_, index.get()));
    }

  private:
    qn_builder *builder_;
    qn_array array_;
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
    /** A parameter for views of records. */
    array records(const char *name, const qn_record *record, int rank, std::uint32_t traits = 0)
    {
        return array(handle_, qn_record_param(handle_, name, record, rank, traits), QN_RECORD,
                     n_params_++);
    }
    /** A record of one value for each field. */
    value record_of(const qn_record *record, std::initializer_list<value> values)
    {
        const auto list = handles(values);
        return value(handle_, qn_record_of(handle_, record, static_cast<int>(list.size()),
                                           list.data()));
    }
    /** Numbers that become part of the code, by table(index). */
    template <class T> table constants(const std::vector<T> &numbers)
    {
        static_assert(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>, "numbers");
        return table(handle_, qn_const_array(handle_, dtype_of<T>(),
                                             static_cast<std::int64_t>(numbers.size()),
                                             numbers.data()));
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

    /** A sequential dimension over all indices of a dimension of a view. */
    value sequential(const array &over, int d)
    {
        return sequential(over.lower(d), over.lower(d) + over.extent(d));
    }

    /** What is built from now on belongs to this place, which messages name; line 0 ends it. */
    void at(const char *file, int line, int column = 0)
    {
        qn_builder_at(handle_, file, line, column);
    }
    /** What messages and options call a value. Returns the value. */
    value name(const value &v, const char *text)
    {
        qn_builder_name(handle_, v.get(), text);
        return v;
    }
    /** Throws the first error so far. */
    void check_so_far() const
    {
        qn_error e{};
        check(qn_builder_status(handle_, &e), e);
    }

    /** Calls a function: values and views for its parameters, in their order. Returns its results.
     */
    std::vector<value> invoke(const function &f, const std::vector<value> &values,
                              const std::vector<array> &views = {});
    /** Builds the body of a finished kernel here: an index for each of its dimensions, values and
     * views for its parameters, in their order. */
    void apply(const kernel &k, const std::vector<value> &index, const std::vector<value> &values,
               const std::vector<array> &views)
    {
        const auto indices = handles(index), numbers = handles(values);
        const auto arrays = params(views);
        qn_apply(handle_, k.get(), static_cast<int>(indices.size()), indices.data(),
                 static_cast<int>(numbers.size()), numbers.data(), static_cast<int>(arrays.size()),
                 arrays.data());
    }

    /** Asserts that a condition holds; a failure shows the message and some values. */
    void assert_that(const value &condition, const char *message,
                     std::initializer_list<value> shown = {})
    {
        const auto list = handles(shown);
        qn_assert(handle_, condition.get(), message, static_cast<int>(list.size()), list.data());
    }

    /** Prints a line with a message and some values, see qn_print. */
    void print(const char *message, std::initializer_list<value> shown = {})
    {
        const auto list = handles(shown);
        qn_print(handle_, message, static_cast<int>(list.size()), list.data());
    }

    /** Reduces what body() returns over some reduction dimensions. */
    template <class F>
    value reduce(int combine, std::initializer_list<value> dims, F &&body,
                 int order = QN_ORDER_DEFAULT)
    {
        const auto list = handles(dims);
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
    /** Folds several values over the entries of a row of a ragged array, see qn_for_row. */
    template <std::size_t N, class F>
    std::array<value, N> fold_row(const array &map, const value &row,
                                  const std::array<value, N> &init, F &&body)
    {
        const auto start = handles(init);
        std::array<qn_val, N> carried{}, result{};
        const value i(handle_, qn_for_row(handle_, map.get(), row.get(), static_cast<int>(N),
                                          start.data(), carried.data()));
        const auto next = handles<N>(body(i, values(carried)));
        qn_end_for(handle_, static_cast<int>(N), next.data(), result.data());
        return values(result);
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
    /** A `while` that carries one value. */
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

  protected:
    /** Takes over a builder of C. */
    explicit builder(qn_builder *taken) : owner(taken)
    {
        if (!handle_)
            throw error(QN_ERR_MEMORY, "quern::builder: no memory");
    }
    /** The C values of a list. */
    template <class L> static std::vector<qn_val> handles(const L &list)
    {
        std::vector<qn_val> out;
        out.reserve(list.size());
        for (const value &v : list)
            out.push_back(v.get());
        return out;
    }

  private:
    static std::vector<qn_param> params(const std::vector<array> &list)
    {
        std::vector<qn_param> out;
        for (const array &a : list)
            out.push_back(a.get());
        return out;
    }
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

inline std::vector<value> builder::invoke(const function &f, const std::vector<value> &values,
                                          const std::vector<array> &views)
{
    const auto numbers = handles(values);
    const auto arrays = params(views);
    std::vector<qn_val> results(static_cast<std::size_t>(f.n_results()));
    qn_invoke(handle_, f.get(), static_cast<int>(numbers.size()), numbers.data(),
              static_cast<int>(arrays.size()), arrays.data(), results.data());
    std::vector<value> out;
    for (const qn_val &v : results)
        out.push_back(value(handle_, v));
    return out;
}

/** A function under construction, with scalar and view parameters. One owner. */
class function_builder : public builder
{
  public:
    /** A builder for a function of this name. */
    explicit function_builder(const char *name, std::uint32_t flags = 0)
        : builder(qn_function_new(name, flags))
    {
    }
    /** Finishes with the results of the function; throws the first error of all calls before. */
    function finish(std::initializer_list<value> results)
    {
        qn_error e{};
        qn_function *f = nullptr;
        const auto list = handles(results);
        check(qn_function_finish(handle_, static_cast<int>(list.size()), list.data(), &f, &e), e);
        return function(f);
    }
};

} // namespace quern

#endif
