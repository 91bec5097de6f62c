/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * mdspan.hpp: mdspan in and out, of the standard, of Kokkos, and what is like them.
 */
#ifndef QUERN_HPP
#include "quern.hpp" /* which includes this file in its place */
#elif !defined(QUERN_MDSPAN_HPP)
#define QUERN_MDSPAN_HPP

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

#if defined(__has_include)
#if __has_include(<version>)
#include <version>
#endif
#endif
#if defined(__cpp_lib_mdspan)
#include <mdspan>
#endif

namespace quern
{

/**
 * Borrows the elements of an mdspan: of the standard, of Kokkos, or any type with data_handle(),
 * extent(r), stride(r), is_strided() and rank(). A const element makes the view read-only. The
 * label is borrowed. Throws for mappings without strides.
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
 * An mdspan of type M over the elements of a view, which must outlive it. M has the layout right,
 * left or stride, or any whose mapping is made from extents alone, or from extents and an array of
 * strides. Lower bounds are dropped. Throws if rank, dtype, constness, fixed extents, index type or
 * strides do not fit; a layout of strides takes positive ones only, and no two indices of one
 * element, as the standard demands.
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
    if constexpr (rank > 0 &&
                  std::is_constructible_v<mapping_type, const extents_type &, const list &>) {
        if (!is_empty && !qn_layout_is_unique(&v.get()->layout))
            throw error(QN_ERR_NOT_INJECTIVE, "quern::to_mdspan: two indices have one element");
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
/** An mdspan with strides over the elements of a view: that of the standard, or that of Kokkos
 * where its header was included before this one. */
template <class T, std::size_t Rank>
using strided_mdspan = std::mdspan<T, std::dextents<std::int64_t, Rank>, std::layout_stride>;
#elif defined(MDSPAN_IMPL_STANDARD_NAMESPACE)
/** An mdspan with strides over the elements of a view, of Kokkos. */
template <class T, std::size_t Rank>
using strided_mdspan = MDSPAN_IMPL_STANDARD_NAMESPACE::mdspan<
    T, MDSPAN_IMPL_STANDARD_NAMESPACE::dextents<std::int64_t, Rank>,
    MDSPAN_IMPL_STANDARD_NAMESPACE::layout_stride>;
#define QUERN_HAS_MDSPAN 1
#endif
#if defined(__cpp_lib_mdspan)
#define QUERN_HAS_MDSPAN 1
#endif

#if defined(QUERN_HAS_MDSPAN)
/** The elements of a view as strided_mdspan<T, Rank>; see to_mdspan. */
template <class T, std::size_t Rank> strided_mdspan<T, Rank> as_mdspan(const view &v)
{
    return to_mdspan<strided_mdspan<T, Rank>>(v);
}
#endif

} // namespace quern

#endif
