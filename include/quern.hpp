/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * quern.hpp: Quern for C++17: handles that release themselves, exceptions for statuses, values with operators, and
 * mdspan in and out. Everything is inline over quern.h; nothing of the standard library crosses into libquern.
 *
 * A failed call throws quern::error. Views and kernels are counted: a copy is a reference. Contexts, builders
 * and calls have one owner and can be moved. The builder is sticky, as in C: only builder::finish throws.
 */
#ifndef QUERN_HPP
#define QUERN_HPP

#include "quern.h"

#include <algorithm>
#include <array>
#include <complex>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#if defined(__has_include)
#if __has_include(<version>)
#include <version>
#endif
#endif
#if defined(__cpp_lib_mdspan)
#include <mdspan>
#endif

/** Quern for C++17. */
namespace quern
{

/* ------------------------------------------------------------------------------------------------ errors */

/** A failed call: the status, and the line that the library wrote. */
class error : public std::exception
{
  public:
    /** From what a call wrote. */
    explicit error(const qn_error &e) noexcept : error_(e)
    {
    }
    /** From a status and a message of ours. */
    error(qn_status status, const std::string &message) noexcept
    {
        error_.status = static_cast<std::int32_t>(status);
        const std::size_t n = message.copy(error_.message, sizeof error_.message - 1);
        error_.message[n] = '\0';
    }
    /** The message. */
    const char *what() const noexcept override
    {
        return error_.message;
    }
    /** The status. */
    qn_status status() const noexcept
    {
        return static_cast<qn_status>(error_.status);
    }
    /** Line in a kernel text, 0 where there is none. */
    int line() const noexcept
    {
        return error_.line;
    }

  private:
    qn_error error_{};
};

/** Throws if a call failed. */
inline void check(qn_status status, const qn_error &e)
{
    if (status != QN_OK)
        throw error(e);
}

/* ------------------------------------------------------------------------------------------------ dtypes */

/** The dtype of a C++ type: integers by size and sign, bool, float, double, std::complex of both. QN_VOID for dtypes
 *  that the library in use lacks. */
template <class T> qn_dtype dtype_of() noexcept
{
    using U = std::remove_cv_t<T>;
    if constexpr (std::is_same_v<U, bool>) {
        return QN_BOOL;
    } else if constexpr (std::is_integral_v<U>) {
        constexpr qn_dtype with_sign[] = {QN_I8, QN_I16, QN_I32, QN_I64};
        constexpr qn_dtype without[] = {QN_U8, QN_U16, QN_U32, QN_U64};
        constexpr int i = sizeof(U) == 1 ? 0 : sizeof(U) == 2 ? 1 : sizeof(U) == 4 ? 2 : 3;
        return std::is_signed_v<U> ? with_sign[i] : without[i];
    } else if constexpr (std::is_same_v<U, std::complex<float>>) {
        return qn_dtype_of_name("c64");
    } else if constexpr (std::is_same_v<U, std::complex<double>>) {
        return qn_dtype_of_name("c128");
    } else {
        static_assert(std::is_same_v<U, float> || std::is_same_v<U, double>, "no dtype for this type");
        return std::is_same_v<U, float> ? QN_F32 : QN_F64;
    }
}

/** Whether numbers of a dtype are floating-point. */
inline bool is_float(int dtype) noexcept
{
    switch (dtype) {
/** @cond */
#define QN_X(name, number, text, bytes, cls)                                                       \
    case number:                                                                                   \
        return #cls[0] == 'F';
        QN_DTYPE_LIST(QN_X)
#undef QN_X
    /** @endcond */
    default:
        return false;
    }
}

/* ------------------------------------------------------------------------------------------------ handles */

class kernel;

/** A context: its caches and threads. One owner. */
class context
{
  public:
    /** With default options, or those given. */
    explicit context(const qn_context_options *o = nullptr)
    {
        qn_error e{};
        check(qn_context_new(o, &context_, &e), e);
    }
    /** Takes the handle of the other one. */
    context(context &&other) noexcept : context_(std::exchange(other.context_, nullptr))
    {
    }
    /** Exchanges the handles. */
    context &operator=(context &&other) noexcept
    {
        std::swap(context_, other.context_);
        return *this;
    }
    context(const context &) = delete;
    context &operator=(const context &) = delete;
    ~context()
    {
        qn_context_release(context_);
    }
    /** The C handle, borrowed. */
    qn_context *get() const noexcept
    {
        return context_;
    }
    /** Its counters. */
    qn_counters counters() const noexcept
    {
        qn_counters c{};
        qn_context_counters(context_, &c);
        return c;
    }

    /** Runs a kernel: views and numbers in the order of its parameters. Numbers have the exact dtype. */
    template <class... A> void launch(const kernel &k, const A &...args) const;
    /** The same with options. */
    template <class... A>
    void launch_with(const qn_options &o, const kernel &k, const A &...args) const;

  private:
    qn_context *context_ = nullptr;
};

/** A finished kernel. Counted. */
class kernel
{
  public:
    /** Takes over one reference. */
    explicit kernel(qn_kernel *taken) noexcept : kernel_(taken)
    {
    }
    /** Reads a kernel from text. */
    static kernel parse(std::string_view text)
    {
        qn_error e{};
        qn_kernel *k = nullptr;
        check(qn_kernel_parse(text.data(), text.size(), &k, &e), e);
        return kernel(k);
    }
    /** Adds a reference. */
    kernel(const kernel &other) noexcept : kernel_(qn_kernel_retain(other.kernel_))
    {
    }
    /** Takes the handle of the other one. */
    kernel(kernel &&other) noexcept : kernel_(std::exchange(other.kernel_, nullptr))
    {
    }
    /** Drops the old reference. */
    kernel &operator=(kernel other) noexcept
    {
        std::swap(kernel_, other.kernel_);
        return *this;
    }
    ~kernel()
    {
        qn_kernel_release(kernel_);
    }
    /** The C handle, borrowed. */
    qn_kernel *get() const noexcept
    {
        return kernel_;
    }
    /** Its name. */
    std::string name() const
    {
        const char *n = qn_kernel_name(kernel_);
        return n ? n : "";
    }
    /** Its text. */
    std::string text() const
    {
        std::string s(qn_kernel_print(kernel_, nullptr, 0), '\0');
        qn_kernel_print(kernel_, s.data(), s.size() + 1);
        return s;
    }

  private:
    qn_kernel *kernel_ = nullptr;
};

/* ------------------------------------------------------------------------------------------------ views */

/** A view. Counted: a copy is a reference to the same data. */
class view
{
  public:
    /** The default view: rank 0, no data. */
    view() noexcept : view_{}
    {
    }
    /** Takes over the reference of a C view. */
    explicit view(const qn_view &taken) noexcept : view_(taken)
    {
    }
    /** New zeroed storage, C order. */
    template <class T>
    static view make(const char *label, const std::vector<std::int64_t> &extents)
    {
        qn_error e{};
        qn_view v{};
        check(qn_view_new(nullptr, label, dtype_of<T>(), static_cast<int>(extents.size()),
                          extents.data(), &v, &e),
              e);
        return view(v);
    }
    /** New zeroed storage for a layout. */
    template <class T> static view make_with(const char *label, const qn_layout &l)
    {
        qn_error e{};
        qn_view v{};
        check(qn_view_alloc(nullptr, label, dtype_of<T>(), &l, 0, &v, &e), e);
        return view(v);
    }
    /** Borrows memory in C order; const T makes it read-only. */
    template <class T>
    static view wrap(const char *label, T *data, const std::vector<std::int64_t> &extents,
                     std::uint32_t traits = 0)
    {
        qn_error e{};
        qn_layout l{};
        check(qn_layout_right(static_cast<int>(extents.size()), extents.data(), &l, &e), e);
        return wrap_with(label, data, l, traits);
    }
    /** Borrows memory in any layout; const T makes it read-only. */
    template <class T>
    static view wrap_with(const char *label, T *data, const qn_layout &l,
                          std::uint32_t traits = 0)
    {
        qn_error e{};
        qn_view v{};
        const std::uint32_t constant = std::is_const_v<T> ? std::uint32_t{QN_READ_ONLY} : 0u;
        check(qn_view_wrap(label, const_cast<std::remove_const_t<T> *>(data), dtype_of<T>(), &l,
                           traits | constant, &v, &e),
              e);
        return view(v);
    }
    /** Adds a reference. */
    view(const view &other) noexcept : view_(qn_view_copy(&other.view_))
    {
    }
    /** Takes the handle of the other one. */
    view(view &&other) noexcept : view_(std::exchange(other.view_, qn_view{}))
    {
    }
    /** Drops the old reference. */
    view &operator=(view other) noexcept
    {
        std::swap(view_, other.view_);
        return *this;
    }
    ~view()
    {
        qn_view_release(&view_);
    }

    /** The C view, borrowed. */
    const qn_view *get() const noexcept
    {
        return &view_;
    }
    /** The C view, to be changed in place. */
    qn_view *get() noexcept
    {
        return &view_;
    }
    /** Number of dimensions. */
    int rank() const noexcept
    {
        return view_.layout.rank;
    }
    /** Number of indices of a dimension. */
    std::int64_t extent(int d) const
    {
        return dim(d).extent;
    }
    /** Smallest index of a dimension. */
    std::int64_t lower(int d) const
    {
        return dim(d).lower;
    }
    /** Stride of a dimension, in elements. Throws if the dimension has several digits, or is projected. */
    std::int64_t stride(int d) const
    {
        (void)dim(d);
        qn_digit digits[QN_MAX_DIGITS];
        if (qn_layout_digits(&view_.layout, d, digits) != 1 || (view_.layout.projected >> d & 1u))
            throw error(QN_ERR_UNSUPPORTED, "quern::view::stride: dimension " + std::to_string(d) +
                                                " has no single stride");
        return digits[0].stride;
    }
    /** Number of elements. */
    std::int64_t size() const noexcept
    {
        return qn_layout_size(&view_.layout);
    }
    /** The element at the lower bounds. Throws if T is not the dtype, or not const for a read-only view. */
    template <class T> T *data() const
    {
        if (dtype_of<T>() != view_.dtype)
            throw error(QN_ERR_DTYPE, std::string("quern::view::data: the dtype is ") +
                                          qn_dtype_name(view_.dtype));
        if (!std::is_const_v<T> && (view_.traits & QN_READ_ONLY))
            throw error(QN_ERR_READ_ONLY, "quern::view::data: the view is read-only");
        return static_cast<T *>(view_.data);
    }
    /** An element, after a check of dtype and bounds. */
    template <class T, class... I> T &at(I... index) const
    {
        (void)data<T>();
        const std::array<std::int64_t, sizeof...(I)> indices{{static_cast<std::int64_t>(index)...}};
        qn_error e{};
        void *p = nullptr;
        check(qn_view_at(&view_, static_cast<int>(sizeof...(I)), indices.data(), &p, &e), e);
        return *static_cast<T *>(p);
    }
    /** A part: one slice for each dimension. */
    view part(std::initializer_list<qn_slice> slices) const
    {
        qn_error e{};
        qn_view v{};
        check(qn_subview(&view_, static_cast<int>(slices.size()), slices.begin(), &v, &e), e);
        return view(v);
    }
    /** The same data through another layout. */
    view with_layout(const qn_layout &l) const
    {
        qn_error e{};
        qn_view v{};
        check(qn_view_with_layout(&view_, &l, &v, &e), e);
        return view(v);
    }
    /** Number of references to the storage; 0 for borrowed memory. */
    std::int64_t use_count() const noexcept
    {
        return qn_view_use_count(&view_);
    }

  private:
    const qn_dim &dim(int d) const
    {
        if (d < 0 || d >= view_.layout.rank)
            throw error(QN_ERR_RANK, "quern::view: dimension " + std::to_string(d) +
                                         " of a view of rank " + std::to_string(rank()));
        return view_.layout.dim[d];
    }
    qn_view view_;
};

/** All indices of a dimension. */
inline qn_slice all() noexcept
{
    return qn_slice{QN_ALL, 0, 0, 0};
}
/** One index, which drops the dimension. */
inline qn_slice at(std::int64_t index) noexcept
{
    return qn_slice{QN_AT, index, 0, 0};
}
/** The indices begin, begin + step, ... below end. */
inline qn_slice range(std::int64_t begin, std::int64_t end, std::int64_t step = 1) noexcept
{
    return qn_slice{QN_RANGE, begin, end, step};
}

/** A view argument. */
inline qn_arg argument(const view &v) noexcept
{
    return qn_arg_view(v.get());
}
/** A scalar argument of exactly this dtype. */
template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>> qn_arg argument(T number) noexcept
{
    if constexpr (std::is_same_v<T, float>)
        return qn_arg_f32(number);
    else if constexpr (std::is_same_v<T, double>)
        return qn_arg_f64(number);
    else
        return qn_arg_int(dtype_of<T>(), static_cast<std::int64_t>(number));
}

template <class... A>
void context::launch_with(const qn_options &o, const kernel &k, const A &...args) const
{
    const std::array<qn_arg, sizeof...(A)> list{{argument(args)...}};
    qn_error e{};
    check(qn_launch(context_, k.get(), static_cast<int>(list.size()), list.data(), &o, &e), e);
}
template <class... A> void context::launch(const kernel &k, const A &...args) const
{
    qn_options o{};
    o.bytes = sizeof o;
    launch_with(o, k, args...);
}

/** A launch with its arguments bound once. One owner. */
class call
{
  public:
    /** Checks now what launch would check. */
    template <class... A> call(const context &c, const kernel &k, const A &...args)
    {
        const std::array<qn_arg, sizeof...(A)> list{{argument(args)...}};
        qn_error e{};
        check(qn_prepare(c.get(), k.get(), static_cast<int>(list.size()), list.data(), nullptr,
                         &call_, &e),
              e);
    }
    /** Takes the handle of the other one. */
    call(call &&other) noexcept : call_(std::exchange(other.call_, nullptr))
    {
    }
    /** Exchanges the handles. */
    call &operator=(call &&other) noexcept
    {
        std::swap(call_, other.call_);
        return *this;
    }
    call(const call &) = delete;
    call &operator=(const call &) = delete;
    ~call()
    {
        qn_call_release(call_);
    }
    /** Runs it. */
    void run()
    {
        qn_error e{};
        check(qn_run(call_, &e), e);
    }
    /** Replaces a scalar argument. */
    template <class T> void set(int i, T number)
    {
        qn_error e{};
        check(qn_call_set_scalar(call_, i, argument(number).bits, &e), e);
    }
    /** The C handle, borrowed. */
    qn_call *get() const noexcept
    {
        return call_;
    }

  private:
    qn_call *call_ = nullptr;
};

/* ------------------------------------------------------------------------------------------------ builder */

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
    qn_val value_{0};
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
#undef QN_HPP_UNARY

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
/** Any op of the table by its keyword. An unknown one is a builder error. */
template <class... V> value op(const char *name, const value &x, const V &...more)
{
    const std::array<qn_val, 1 + sizeof...(V)> list{{x.get(), more.get()...}};
    return value(x.builder(), qn_op(x.builder(), qn_op_of_name(name),
                                    static_cast<int>(list.size()), list.data()));
}

/** An element of a view parameter: reading it loads, assigning to it stores. */
class element
{
  public:
    /** Made by array::operator(). */
    element(qn_builder *builder, qn_param p, int dtype, std::vector<qn_val> index)
        : builder_(builder), param_(p), dtype_(dtype), index_(std::move(index))
    {
    }
    /** The same element. */
    element(const element &) = default;
    /** Loads. */
    operator value() const
    {
        return value(builder_, qn_load(builder_, param_, rank(), index_.data()));
    }
    /** Stores. */
    const element &operator=(const value &v) const
    {
        qn_store(builder_, param_, rank(), index_.data(), v.get());
        return *this;
    }
    /** Loads the other one and stores it here. */
    element &operator=(const element &other)
    {
        static_cast<const element &>(*this) = static_cast<value>(other);
        return *this;
    }
    /** Stores a constant. */
    template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
    const element &operator=(T number) const
    {
        return *this = value::constant(builder_, dtype_, number);
    }
    /** Adds to the element: a load and a store, not atomic. */
    const element &operator+=(const value &v) const
    {
        return *this = static_cast<value>(*this) + v;
    }
    /** Combines atomically and returns the old value. */
    value atomic(int combine, const value &v) const
    {
        return value(builder_, qn_atomic(builder_, combine, param_, rank(), index_.data(), v.get(),
                                         qn_val{0}));
    }

  private:
    int rank() const noexcept
    {
        return static_cast<int>(index_.size());
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
    array(qn_builder *builder, qn_param p, int dtype) noexcept
        : builder_(builder), param_(p), dtype_(dtype)
    {
    }
    /** An element; indices are values or integers. */
    template <class... I> element operator()(const I &...index) const
    {
        return element(builder_, param_, dtype_, {as_index(index)...});
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
    /** The C parameter. */
    qn_param get() const noexcept
    {
        return param_;
    }

  private:
    template <class I> qn_val as_index(const I &i) const
    {
        if constexpr (std::is_integral_v<I>)
            return qn_index(builder_, static_cast<std::int64_t>(i));
        else
            return static_cast<value>(i).get();
    }
    qn_builder *builder_;
    qn_param param_;
    int dtype_;
};

/** A kernel under construction. One owner. */
class builder
{
  public:
    /** A builder for a kernel of this name. */
    explicit builder(const char *name, std::uint32_t flags = 0) : builder_(qn_builder_new(name, flags))
    {
        if (!builder_)
            throw error(QN_ERR_MEMORY, "quern::builder: no memory");
    }
    /** Takes the handle of the other one. */
    builder(builder &&other) noexcept : builder_(std::exchange(other.builder_, nullptr))
    {
    }
    /** Exchanges the handles. */
    builder &operator=(builder &&other) noexcept
    {
        std::swap(builder_, other.builder_);
        return *this;
    }
    builder(const builder &) = delete;
    builder &operator=(const builder &) = delete;
    ~builder()
    {
        qn_builder_release(builder_);
    }
    /** The C handle, borrowed. */
    qn_builder *get() const noexcept
    {
        return builder_;
    }

    /** A view parameter; const T makes it read-only. */
    template <class T> array view(const char *name, int rank, std::uint32_t traits = 0)
    {
        const std::uint32_t constant = std::is_const_v<T> ? std::uint32_t{QN_READ_ONLY} : 0u;
        return array(builder_, qn_view_param(builder_, name, dtype_of<T>(), rank, traits | constant),
                     dtype_of<T>());
    }
    /** A scalar parameter. */
    template <class T> value scalar(const char *name)
    {
        return value(builder_, qn_scalar_param(builder_, name, dtype_of<T>()));
    }
    /** A constant of the dtype of T. */
    template <class T> value constant(T number)
    {
        return value::constant(builder_, dtype_of<T>(), number);
    }
    /** An index constant. */
    value index(std::int64_t number)
    {
        return value(builder_, qn_index(builder_, number));
    }
    /** A parallel dimension over [begin, end). */
    value parallel(const value &begin, const value &end)
    {
        return value(builder_, qn_parallel(builder_, begin.get(), end.get()));
    }
    /** A parallel dimension over all indices of a dimension of a view. */
    value parallel(const array &over, int d)
    {
        return value(builder_, qn_parallel_over(builder_, over.get(), d));
    }
    /** A reduction dimension over [begin, end). */
    value reduction(const value &begin, const value &end)
    {
        return value(builder_, qn_reduction(builder_, begin.get(), end.get()));
    }
    /** A reduction dimension over all indices of a dimension of a view. */
    value reduction(const array &over, int d)
    {
        return value(builder_, qn_reduction_over(builder_, over.get(), d));
    }
    /** A sequential dimension over [begin, end). */
    value sequential(const value &begin, const value &end)
    {
        return value(builder_, qn_sequential(builder_, begin.get(), end.get()));
    }

    /** Reduces what body() returns over some reduction dimensions. */
    template <class F>
    value reduce(int combine, std::initializer_list<value> dims, F &&body,
                 int order = QN_ORDER_DEFAULT)
    {
        std::vector<qn_val> list;
        for (const value &d : dims)
            list.push_back(d.get());
        qn_reduce(builder_, combine, order, static_cast<int>(list.size()), list.data());
        const value v = body();
        return value(builder_, qn_end_reduce(builder_, v.get()));
    }
    /** Runs body() where the condition holds. */
    template <class F> void if_(const value &condition, F &&body)
    {
        qn_if(builder_, condition.get());
        body();
        qn_end_if(builder_, 0, nullptr, nullptr);
    }
    /** The value of yes() where the condition holds, of no() elsewhere; only one of them is computed. */
    template <class F, class G> value if_else(const value &condition, F &&yes, G &&no)
    {
        qn_val result{0};
        qn_if(builder_, condition.get());
        const qn_val first = static_cast<value>(yes()).get();
        qn_else(builder_, 1, &first);
        const qn_val second = static_cast<value>(no()).get();
        qn_end_if(builder_, 1, &second, &result);
        return value(builder_, result);
    }
    /** Runs body(index) for begin, begin + step, ... below end. */
    template <class F>
    void for_(const value &begin, const value &end, F &&body, std::int64_t step = 1)
    {
        const value i(builder_, qn_for(builder_, begin.get(), end.get(), step, 0, nullptr, nullptr));
        body(i);
        qn_end_for(builder_, 0, nullptr, nullptr);
    }
    /** Runs body(index) for the entries of a row of a ragged array, see qn_for_row. */
    template <class F> void for_row(const array &map, const value &row, F &&body)
    {
        const value i(builder_, qn_for_row(builder_, map.get(), row.get(), 0, nullptr, nullptr));
        body(i);
        qn_end_for(builder_, 0, nullptr, nullptr);
    }
    /** Folds: carried = body(index, carried), starting with init; returns the last one. */
    template <class F>
    value fold(const value &begin, const value &end, const value &init, F &&body,
               std::int64_t step = 1)
    {
        const qn_val start = init.get();
        qn_val carried{0}, result{0};
        const value i(builder_,
                      qn_for(builder_, begin.get(), end.get(), step, 1, &start, &carried));
        const qn_val next = static_cast<value>(body(i, value(builder_, carried))).get();
        qn_end_for(builder_, 1, &next, &result);
        return value(builder_, result);
    }

    /** Finishes; throws the first error of all calls before. */
    kernel finish()
    {
        qn_error e{};
        qn_kernel *k = nullptr;
        check(qn_finish(builder_, &k, &e), e);
        return kernel(k);
    }

  private:
    qn_builder *builder_ = nullptr;
};

/* ------------------------------------------------------------------------------------------------ mdspan */

/**
 * Borrows the elements of an mdspan: of the standard, of Kokkos, or any type with data_handle(), extent(r), stride(r),
 * is_strided() and rank(). A const element makes the view read-only. The label is borrowed. Throws for mappings
 * without strides.
 */
template <class M> view from_mdspan(const M &m, const char *label = nullptr)
{
    using T = typename M::element_type;
    constexpr std::size_t rank = static_cast<std::size_t>(M::rank());
    static_assert(rank <= QN_MAX_RANK, "too many dimensions");
    static_assert(std::is_convertible_v<decltype(m.data_handle()), T *>,
                  "the accessor's handle must be a pointer");
    if (!m.is_strided())
        throw error(QN_ERR_UNSUPPORTED, "quern::from_mdspan: the mapping has no strides");
    std::array<std::int64_t, rank + 1> extents{}, strides{};
    for (std::size_t r = 0; r < rank; r++) {
        const auto d = static_cast<typename M::rank_type>(r);
        extents[r] = static_cast<std::int64_t>(m.extent(d));
        strides[r] = static_cast<std::int64_t>(m.stride(d));
    }
    qn_error e{};
    qn_layout l{};
    check(qn_layout_strided(static_cast<int>(rank), extents.data(), strides.data(), &l, &e), e);
    return view::wrap_with<T>(label, m.data_handle(), l);
}

/**
 * An mdspan of type M over the elements of a view, which must outlive it. M has the layout right, left or stride, or
 * any whose mapping is made from extents alone, or from extents and an array of strides. Lower bounds are dropped.
 * Throws if rank, dtype, constness, fixed extents, index type or strides do not fit; a layout of strides takes positive
 * ones only, as the standard demands.
 */
template <class M> M to_mdspan(const view &v)
{
    using T = typename M::element_type;
    using extents_type = typename M::extents_type;
    using mapping_type = typename M::mapping_type;
    using index_type = typename extents_type::index_type;
    constexpr std::size_t rank = static_cast<std::size_t>(M::rank());
    using list = std::array<index_type, rank>;
    [[maybe_unused]] const auto fail = [](qn_status status, std::size_t d, const char *what) {
        throw error(status, "quern::to_mdspan: dimension " + std::to_string(d) + ": " + what);
    };
    T *const data = v.data<T>();
    if (static_cast<std::size_t>(v.rank()) != rank)
        throw error(QN_ERR_RANK, "quern::to_mdspan: the view has rank " + std::to_string(v.rank()) +
                                     ", not " + std::to_string(rank));
    list extents{}, strides{};
    const bool is_empty = v.size() == 0;
    constexpr auto limit = std::numeric_limits<index_type>::max();
    for (std::size_t r = 0; r < rank; r++) {
        const int d = static_cast<int>(r);
        const std::int64_t extent = v.extent(d);
        const std::int64_t stride = is_empty || extent == 1 ? 1 : v.stride(d);
        if (static_cast<std::uint64_t>(extent) > static_cast<std::uint64_t>(limit))
            fail(QN_ERR_OVERFLOW, r, "the extent does not fit in the index type");
        if (stride < 1)
            fail(QN_ERR_UNSUPPORTED, r, "mdspan has no strides below 1");
        if (static_cast<std::uint64_t>(stride) > static_cast<std::uint64_t>(limit))
            fail(QN_ERR_OVERFLOW, r, "the stride does not fit in the index type");
        const auto fixed = extents_type::static_extent(static_cast<typename M::rank_type>(r));
        if (fixed != static_cast<decltype(fixed)>(-1) &&
            static_cast<std::uint64_t>(fixed) != static_cast<std::uint64_t>(extent))
            fail(QN_ERR_EXTENT, r, "the extent is not the fixed one");
        extents[r] = static_cast<index_type>(extent);
        strides[r] = static_cast<index_type>(stride);
    }
    const extents_type e(extents);
    if constexpr (rank > 0 && std::is_constructible_v<mapping_type, const extents_type &, const list &>) {
        return M(data, mapping_type(e, strides));
    } else {
        const mapping_type mapping(e);
        for (std::size_t r = 0; r < rank && !is_empty; r++)
            if (extents[r] > 1 &&
                mapping.stride(static_cast<typename M::rank_type>(r)) != strides[r])
                fail(QN_ERR_UNSUPPORTED, r, "the stride is not that of the layout");
        return M(data, mapping);
    }
}

#if defined(__cpp_lib_mdspan)
/** A std::mdspan with strides over the elements of a view. */
template <class T, std::size_t Rank>
using strided_mdspan = std::mdspan<T, std::dextents<std::int64_t, Rank>, std::layout_stride>;
#endif

} // namespace quern

#endif
