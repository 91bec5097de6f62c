/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * function.hpp: functions that kernels call, and libraries of them, the part of quern.hpp over
 * quern/function.h.
 */
#ifndef QUERN_HPP
#include "quern.hpp" /* which includes this file in its place */
#elif !defined(QUERN_FUNCTION_HPP)
#define QUERN_FUNCTION_HPP

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace quern
{

/** A finished function. Counted. */
class function
{
  public:
    /** Takes over one reference. */
    explicit function(qn_function *taken) noexcept : function_(taken)
    {
    }
    /** Adds a reference. */
    function(const function &other) noexcept : function_(qn_function_retain(other.function_))
    {
    }
    /** Takes the handle of the other one. */
    function(function &&other) noexcept : function_(std::exchange(other.function_, nullptr))
    {
    }
    /** Drops the old reference. */
    function &operator=(function other) noexcept
    {
        std::swap(function_, other.function_);
        return *this;
    }
    ~function()
    {
        qn_function_release(function_);
    }
    /** The C handle, borrowed. */
    qn_function *get() const noexcept
    {
        return function_;
    }
    /** Its name. */
    std::string name() const
    {
        return qn_function_name(function_);
    }
    /** Numbers of its parameters and results. */
    int n_params() const noexcept
    {
        return qn_function_n_params(function_);
    }
    /** @copydoc n_params */
    int n_results() const noexcept
    {
        return qn_function_n_results(function_);
    }
    /** Its text, with the functions that it calls. */
    std::string text() const
    {
        std::string s(qn_function_print(function_, nullptr, 0), '\0');
        qn_function_print(function_, s.data(), s.size() + 1);
        return s;
    }

  private:
    qn_function *function_ = nullptr;
};

/** Functions that were read from one text. One owner. */
class library : public owner<qn_library, qn_library_release>
{
  public:
    /** Reads functions, which may call those of another library. */
    explicit library(std::string_view text, const library *uses = nullptr)
    {
        qn_error e{};
        check(
            qn_library_parse(text.data(), text.size(), uses ? uses->get() : nullptr, &handle_, &e),
            e);
    }
    /** The function of a name. Throws if there is none. */
    function find(const char *name) const
    {
        const qn_function *f = qn_library_find(handle_, name);
        if (!f)
            throw error(QN_ERR_NOT_FOUND, std::string("quern::library: no function ") + name);
        return function(qn_function_retain(f));
    }
    /** Reads a kernel that calls functions of this library. */
    kernel parse(std::string_view text) const
    {
        qn_error e{};
        qn_kernel *k = nullptr;
        check(qn_kernel_parse_with(text.data(), text.size(), handle_, &k, &e), e);
        return kernel(k);
    }
};

} // namespace quern

#endif
