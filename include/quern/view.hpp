/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * view.hpp: views, the part of quern.hpp about views and slices of them.
 */
#ifndef QUERN_HPP
#include "quern.hpp" /* which includes this file in its place */
#elif !defined(QUERN_VIEW_HPP)
#define QUERN_VIEW_HPP

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace quern
{

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
    /** Stride of a dimension, in elements. Throws if the dimension has several digits, or is
     * projected. */
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
    /** The element at the lower bounds. Throws if T is not the dtype, or not const for a read-only
     * view. */
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
    /** The data of this view through another layout. */
    view with_layout(const qn_layout &l) const
    {
        qn_error e{};
        qn_view v{};
        check(qn_view_with_layout(&view_, &l, &v, &e), e);
        return view(v);
    }
    /** This view's data with other dimensions first: dimension p is dimension order[p]. */
    view permuted(const std::vector<int> &order) const
    {
        qn_error e{};
        qn_layout l{};
        if (order.size() != static_cast<std::size_t>(rank()))
            throw error(QN_ERR_RANK, "quern::view::permuted: " + std::to_string(order.size()) +
                                         " dimensions for rank " + std::to_string(rank()));
        check(qn_layout_permute(&view_.layout, order.data(), &l, &e), e);
        return through(l);
    }
    /** This view's data with a dimension reversed. */
    view reversed(int d) const
    {
        qn_error e{};
        qn_layout l{};
        check(qn_layout_reverse(&view_.layout, d, &l, &e), e);
        return through(l);
    }
    /** A field of records, or the real (0) or imaginary (1) part of complex numbers. */
    view field(int number) const
    {
        qn_error e{};
        qn_view v{};
        check(qn_view_field(&view_, number, &v, &e), e);
        return view(v);
    }
    /** This view's data with more traits: QN_READ_ONLY, ... */
    view with_traits(std::uint32_t traits) const
    {
        qn_error e{};
        qn_view v{};
        check(qn_view_with_traits(&view_, traits, &v, &e), e);
        return view(v);
    }
    /** Number of references to the storage; 0 for borrowed memory. */
    std::int64_t use_count() const noexcept
    {
        return qn_view_use_count(&view_);
    }

  private:
    view through(qn_layout &l) const
    {
        qn_error e{};
        qn_view v{};
        const qn_status status = qn_view_with_layout(&view_, &l, &v, &e);
        qn_layout_release(&l);
        check(status, e);
        return view(v);
    }
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

} // namespace quern

#endif
