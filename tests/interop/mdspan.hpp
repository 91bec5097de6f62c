/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mdspan.hpp: a very small mdspan for the tests, with the names and meanings of the C++23 one:
 * extents, the layouts right, left and stride, and what quern.hpp uses of them. Where <mdspan>
 * exists, that is tested too.
 */
#ifndef QN_TESTS_INTEROP_MDSPAN_HPP
#define QN_TESTS_INTEROP_MDSPAN_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace tiny
{

constexpr std::size_t dynamic_extent = static_cast<std::size_t>(-1);

template <class Index, std::size_t... E> class extents
{
  public:
    using index_type = Index;
    using rank_type = std::size_t;
    static constexpr rank_type rank()
    {
        return sizeof...(E);
    }
    static constexpr std::size_t static_extent(rank_type r)
    {
        constexpr std::size_t fixed[] = {E..., 0};
        return fixed[r];
    }
    explicit extents(const std::array<Index, sizeof...(E)> &e) : extent_(e)
    {
    }
    Index extent(rank_type r) const
    {
        return extent_[r];
    }

  private:
    std::array<Index, sizeof...(E)> extent_;
};

template <class Index, std::size_t> inline constexpr std::size_t always_dynamic = dynamic_extent;
template <class Index, class Sequence> struct all_dynamic;
template <class Index, std::size_t... R> struct all_dynamic<Index, std::index_sequence<R...>> {
    using type = extents<Index, always_dynamic<Index, R>...>;
};
/** Extents that are all known at run time only. */
template <class Index, std::size_t Rank>
using dextents = typename all_dynamic<Index, std::make_index_sequence<Rank>>::type;

/** Dense; the last dimension is the fastest if `Right`, else the first. */
template <bool Right> struct layout_dense {
    template <class Extents> class mapping
    {
      public:
        using index_type = typename Extents::index_type;
        explicit mapping(const Extents &e) : extents_(e)
        {
        }
        const Extents &extents() const
        {
            return extents_;
        }
        index_type stride(std::size_t r) const
        {
            index_type s = 1;
            for (std::size_t k = 0; k < Extents::rank(); k++)
                if (Right ? k > r : k < r)
                    s = static_cast<index_type>(s * extents_.extent(k));
            return s;
        }

      private:
        Extents extents_;
    };
};
using layout_right = layout_dense<true>;
using layout_left = layout_dense<false>;

struct layout_stride {
    template <class Extents> class mapping
    {
      public:
        using index_type = typename Extents::index_type;
        using list = std::array<index_type, Extents::rank()>;
        mapping(const Extents &e, const list &strides) : extents_(e), strides_(strides)
        {
        }
        const Extents &extents() const
        {
            return extents_;
        }
        index_type stride(std::size_t r) const
        {
            return strides_[r];
        }

      private:
        Extents extents_;
        list strides_;
    };
};

template <class T, class Extents, class Layout = layout_right> class mdspan
{
  public:
    using element_type = T;
    using extents_type = Extents;
    using mapping_type = typename Layout::template mapping<Extents>;
    using index_type = typename Extents::index_type;
    using rank_type = std::size_t;
    mdspan(T *data, const mapping_type &mapping) : data_(data), mapping_(mapping)
    {
    }
    static constexpr rank_type rank()
    {
        return Extents::rank();
    }
    T *data_handle() const
    {
        return data_;
    }
    index_type extent(rank_type r) const
    {
        return mapping_.extents().extent(r);
    }
    index_type stride(rank_type r) const
    {
        return mapping_.stride(r);
    }
    bool is_strided() const
    {
        return true;
    }

  private:
    T *data_;
    mapping_type mapping_;
};

} // namespace tiny

#endif
