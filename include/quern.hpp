/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * quern.hpp: Quern for C++17: handles that release themselves, exceptions for statuses, values with
 * operators, and mdspan in and out. Everything is inline over quern.h; nothing of the standard
 * library crosses into libquern. Views are in quern/view.hpp, functions in quern/function.hpp,
 * values in quern/value.hpp, the builder in quern/builder.hpp, mdspan in quern/mdspan.hpp, all
 * included here.
 *
 * A failed call throws quern::error. Views and kernels are counted: a copy is a reference.
 * Contexts, builders and calls have one owner and can be moved. The builder is sticky, as in C:
 * only builder::finish throws.
 */
#ifndef QUERN_HPP
#define QUERN_HPP

#if __cplusplus < 201703L
#error "quern.hpp needs C++17 or later: compile with -std=c++17"
/* The parts stay empty, too. */
#define QUERN_VIEW_HPP
#define QUERN_FUNCTION_HPP
#define QUERN_VALUE_HPP
#define QUERN_BUILDER_HPP
#define QUERN_MDSPAN_HPP
#else

#include "quern.h"
#include "quern/embed.h"

#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

/** Quern for C++17. */
namespace quern
{

/* ------------------------------------------------------------------------------------------------
 * errors */

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

/* ------------------------------------------------------------------------------------------------
 * dtypes */

/** @cond */
/** Whether U is the C++ type of a row of quern/dtypes.def: of an integer one of its size and sign,
 * of a complex one std::complex. */
template <class U, class C, char kind> constexpr bool is_type_of() noexcept
{
    if constexpr (kind == 'S' || kind == 'U')
        return std::is_integral_v<U> && !std::is_same_v<U, bool> && sizeof(U) == sizeof(C) &&
               std::is_signed_v<U> == std::is_signed_v<C>;
    else if constexpr (kind == 'C')
        return std::is_same_v<U, std::complex<C>>;
    else
        return std::is_same_v<U, C> && (kind != 'F' || std::is_floating_point_v<C>);
}

template <class U> constexpr qn_dtype dtype_or_void() noexcept
{
#define QN_DTYPE(NAME, number, text, bytes, cls, part, fraction, bias, c, ...)                     \
    if constexpr (is_type_of<U, c, #cls[0]>())                                                     \
        return QN_##NAME;
#include "quern/dtypes.def"
#undef QN_DTYPE
    return QN_VOID;
}
/** @endcond */

/** The dtype of a C++ type: integers by size and sign, bool, float, double, std::complex of both.
 */
template <class T> qn_dtype dtype_of() noexcept
{
    constexpr qn_dtype dtype = dtype_or_void<std::remove_cv_t<T>>();
    static_assert(dtype != QN_VOID, "no dtype for this type");
    return dtype;
}

/** The class of a dtype in quern/dtypes.def: 'B' bool, 'S' signed, 'U' unsigned, 'F' float, 'C'
 * complex; 0 for others. */
inline char class_of(int dtype) noexcept
{
    switch (dtype) {
/** @cond */
#define QN_DTYPE(NAME, number, text, bytes, cls, ...)                                              \
    case number:                                                                                   \
        return #cls[0];
#include "quern/dtypes.def"
#undef QN_DTYPE
    /** @endcond */
    default:
        return '\0';
    }
}

/** Whether numbers of a dtype are floating-point. */
inline bool is_float(int dtype) noexcept
{
    return class_of(dtype) == 'F';
}

/* ------------------------------------------------------------------------------------------------
 * handles */

/** The one owner of a handle of C; moves, but is not copied. */
template <class T, void (*release)(T *)> class owner
{
  public:
    /** Takes the handle of the other one. */
    owner(owner &&other) noexcept : handle_(std::exchange(other.handle_, nullptr))
    {
    }
    /** Exchanges the handles. */
    owner &operator=(owner &&other) noexcept
    {
        std::swap(handle_, other.handle_);
        return *this;
    }
    owner(const owner &) = delete;
    owner &operator=(const owner &) = delete;
    /** The C handle, borrowed. */
    T *get() const noexcept
    {
        return handle_;
    }

  protected:
    /** Takes over a handle, or has none yet. */
    explicit owner(T *taken = nullptr) noexcept : handle_(taken)
    {
    }
    ~owner()
    {
        release(handle_);
    }
    T *handle_; /**< what is owned, or NULL */
};

class kernel;
class view;

/** Options of launches from text, such as "executor=threads checks=none"; names of values are those
 * of `k`. One owner. */
class options : public owner<qn_options, qn_options_release>
{
  public:
    /** Reads the words of qn_options_parse. */
    explicit options(const char *text, const kernel *k = nullptr);
    /** The options of C, of which more fields may be set. */
    qn_options *operator->() const noexcept
    {
        return handle_;
    }
    /** What launches take. */
    operator const qn_options &() const noexcept
    {
        return *handle_;
    }
};

/** A context: its caches and threads. One owner. */
class context : public owner<qn_context, qn_context_release>
{
  public:
    /** With default options, or those given. */
    explicit context(const qn_context_options *o = nullptr)
    {
        qn_error e{};
        check(qn_context_new(o, &handle_, &e), e);
    }
    /** Its counters. */
    qn_counters counters() const noexcept
    {
        qn_counters c{};
        qn_context_counters(handle_, &c, sizeof c);
        return c;
    }

    /** Runs a kernel: views and numbers in the order of its parameters. Numbers have the exact
     * dtype. */
    template <class... A> void launch(const kernel &k, const A &...args) const;
    /** Runs a kernel as `launch` does, with options. */
    template <class... A>
    void launch_with(const qn_options &o, const kernel &k, const A &...args) const;
    /** Says in words what a launch would run, and why. */
    template <class... A> std::string explain(const kernel &k, const A &...args) const;
    /** Copies all elements, whatever the layouts. */
    void copy(const view &to, const view &from) const;
    /** Copies all elements, each converted to the other dtype. */
    void convert(const view &to, const view &from) const;
    /** Sets all elements to a number of the view's dtype. */
    template <class T> void fill(const view &v, T number) const;
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

} // namespace quern

#include "quern/view.hpp"

namespace quern
{

/* ------------------------------------------------------------------------------------------------
 * running */

/** A view argument. */
inline qn_arg argument(const view &v) noexcept
{
    return qn_arg_view(v.get());
}
/** A complex argument of exactly this dtype. */
inline qn_arg argument(std::complex<float> number) noexcept
{
    return qn_arg_c64(number.real(), number.imag());
}
/** @copydoc argument(std::complex<float>) */
inline qn_arg argument(std::complex<double> number) noexcept
{
    return qn_arg_c128(number.real(), number.imag());
}
/** A scalar argument of exactly this dtype. */
template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
qn_arg argument(T number) noexcept
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
    check(qn_launch(handle_, k.get(), static_cast<int>(list.size()), list.data(), &o, &e), e);
}
template <class... A> void context::launch(const kernel &k, const A &...args) const
{
    qn_options o{};
    o.bytes = sizeof o;
    launch_with(o, k, args...);
}

template <class... A> std::string context::explain(const kernel &k, const A &...args) const
{
    const std::array<qn_arg, sizeof...(A)> list{{argument(args)...}};
    const int n = static_cast<int>(list.size());
    qn_error e{};
    std::size_t needed = 0;
    check(qn_explain(handle_, k.get(), n, list.data(), nullptr, nullptr, 0, &needed, &e), e);
    std::string s(needed, '\0');
    check(
        qn_explain(handle_, k.get(), n, list.data(), nullptr, s.data(), s.size() + 1, nullptr, &e),
        e);
    return s;
}
inline void context::copy(const view &to, const view &from) const
{
    qn_error e{};
    check(qn_deep_copy(handle_, to.get(), from.get(), &e), e);
}
inline void context::convert(const view &to, const view &from) const
{
    qn_error e{};
    check(qn_convert_copy(handle_, QN_SERIAL, to.get(), from.get(), &e), e);
}
template <class T> void context::fill(const view &v, T number) const
{
    qn_error e{};
    check(qn_fill(handle_, v.get(), argument(number), &e), e);
}

inline options::options(const char *text, const kernel *k)
{
    qn_error e{};
    check(qn_options_parse(text, k ? k->get() : nullptr, &handle_, &e), e);
}

/** A launch with its arguments bound once. One owner. */
class call : public owner<qn_call, qn_call_release>
{
  public:
    /** Checks now what launch would check. */
    template <class... A> call(const context &c, const kernel &k, const A &...args)
    {
        const std::array<qn_arg, sizeof...(A)> list{{argument(args)...}};
        qn_error e{};
        check(qn_prepare(c.get(), k.get(), static_cast<int>(list.size()), list.data(), nullptr,
                         &handle_, &e),
              e);
    }
    /** Prepares a call with options. */
    template <class... A>
    call(const qn_options &o, const context &c, const kernel &k, const A &...args)
    {
        const std::array<qn_arg, sizeof...(A)> list{{argument(args)...}};
        qn_error e{};
        check(qn_prepare(c.get(), k.get(), static_cast<int>(list.size()), list.data(), &o, &handle_,
                         &e),
              e);
    }
    /** Runs it. */
    void run()
    {
        qn_error e{};
        check(qn_run(handle_, &e), e);
    }
    /** Replaces a scalar argument. */
    template <class T> void set(int i, T number)
    {
        qn_error e{};
        check(qn_call_set_scalar(handle_, i, argument(number).bits, &e), e);
    }
};

} // namespace quern

#include "quern/function.hpp"
#include "quern/value.hpp"
#include "quern/builder.hpp"
#include "quern/mdspan.hpp"

#endif /* C++17 */

#endif
