/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layout.h: layouts, the part of quern.h about functions from index tuples to element offsets: how
 * they are made, transformed, cut and asked. Units, errors, ownership and threads are those of
 * quern.h.
 */
#ifndef QUERN_H
#include "quern.h" /* which includes this file in its place */
#elif !defined(QUERN_LAYOUT_H)
#define QUERN_LAYOUT_H

#define QN_MAX_RANK 16   /**< largest rank of a layout, view or domain */
#define QN_MAX_DIGITS 64 /**< largest number of digits of a layout, over all dimensions */

/** One dimension of a layout. `stride` is that of its only digit, and 0 in a layout with a digit
 * table. */
typedef struct qn_dim {
    int64_t lower;  /**< smallest index */
    int64_t extent; /**< number of indices, >= 0 */
    int64_t stride; /**< elements */
} qn_dim;

/** A digit: the part of an index with this extent contributes digit x stride to the offset. */
typedef struct qn_digit {
    int64_t extent;
    int64_t stride;
} qn_digit;

/** Shared, counted digit table of a layout with several digits in a dimension. Opaque. */
typedef struct qn_digits qn_digits;

/**
 * A layout: a function from an index tuple to an element offset. The index of a dimension, minus
 * its lower bound, is written in the mixed radix of the dimension's digits, fastest first; the
 * offset is `origin` plus the sum of digit x stride over all digits of all dimensions. All-zero is
 * the layout of a scalar (rank 0). Plain data; only layouts with `digits` own something
 * (qn_layout_release). Entries of `dim` from `rank` on are unspecified: constructors and transforms
 * write the first `rank` only.
 */
typedef struct qn_layout {
    int32_t rank;
    uint32_t projected; /**< bit d: dimension d accepts any index and contributes nothing */
    int64_t origin;     /**< offset of the element at the lower bounds */
    qn_digits *digits;  /**< NULL: one digit per dimension */
    qn_dim dim[QN_MAX_RANK];
} qn_layout;

/** C order: the last dimension has stride 1. Errors: rank, negative extents, product overflow. No
 * allocation. */
QN_API qn_status qn_layout_right(int rank, const int64_t *extents, qn_layout *out, qn_error *err);
/** Fortran order: the first dimension has stride 1. Errors as qn_layout_right. No allocation. */
QN_API qn_status qn_layout_left(int rank, const int64_t *extents, qn_layout *out, qn_error *err);
/** Any strides, also negative and zero. Errors: rank, negative extents, offsets beyond int64. No
 * allocation. */
QN_API qn_status qn_layout_strided(int rank, const int64_t *extents, const int64_t *strides,
                                   qn_layout *out, qn_error *err);
/** Dense strides in the given order of dimensions, fastest first; {rank-1,..,0} is Right. `order`
 * is a permutation. */
QN_API qn_status qn_layout_ordered(int rank, const int64_t *extents, const int *order,
                                   qn_layout *out, qn_error *err);
/**
 * Tiled: dimension d is cut into tiles of tile[d] indices (1 <= tile[d]); the elements of a tile
 * are contiguous. Inside a tile the dimensions run in the order `inner`, the tiles in the order
 * `outer`, each fastest first; NULL is Right order. Extents need not divide: storage covers whole
 * tiles. Allocates a digit table.
 */
QN_API qn_status qn_layout_tiled(int rank, const int64_t *extents, const int64_t *tile,
                                 const int *inner, const int *outer, qn_layout *out, qn_error *err);
/**
 * Right with the stride next to the unit-stride dimension padded to 64 bytes: with A = 64 /
 * element_bytes, if that divides, and the last extent N > A, that stride is N rounded up to a
 * multiple of A. Rank > 1 only; else Right.
 */
QN_API qn_status qn_layout_right_padded(int rank, const int64_t *extents, int64_t element_bytes,
                                        qn_layout *out, qn_error *err);
/** Left padded likewise: N is the first extent, the padded stride that of dimension 1. */
QN_API qn_status qn_layout_left_padded(int rank, const int64_t *extents, int64_t element_bytes,
                                       qn_layout *out, qn_error *err);
/** Dense strides in the given order of dimensions, longest stride first (the reverse of
 * qn_layout_ordered). */
QN_API qn_status qn_layout_permuted(int rank, const int64_t *extents, const int *longest_first,
                                    qn_layout *out, qn_error *err);
/** Right over the dimensions of extent > 0; those of extent 0 are projected: any index,
 * contributing nothing. */
QN_API qn_status qn_layout_projected(int rank, const int64_t *extents, qn_layout *out,
                                     qn_error *err);
/**
 * Dense, dimension d with the indices begin[d] <= i < end[d]. `order` as in qn_layout_ordered, NULL
 * is Right. Errors: end < begin (QN_ERR_RANGE), an extent or a product of extents that does not
 * fit.
 */
QN_API qn_status qn_layout_bounds(int rank, const int64_t *begin, const int64_t *end,
                                  const int *order, qn_layout *out, qn_error *err);
/** Left with the indices lower[d] <= i <= upper[d], both included; `lower` NULL is 1. upper = lower
 * - 1 is an empty dimension. Errors: upper < lower - 1. */
QN_API qn_status qn_layout_fortran(int rank, const int64_t *lower, const int64_t *upper,
                                   qn_layout *out, qn_error *err);
/**
 * Morton order: the bits of the offset are those of the indices in turn, lowest first, dimensions
 * in the order `order` (fastest first, NULL is Right). Extents are padded to powers of two; a
 * dimension whose bits are used up is left out. Errors: more than 63 bits, more than QN_MAX_DIGITS
 * digits. Allocates a digit table.
 */
QN_API qn_status qn_layout_morton(int rank, const int64_t *extents, const int *order,
                                  qn_layout *out, qn_error *err);
/**
 * Any digits: n_digits[d] of them for dimension d, fastest first, those of dimension 0 at the start
 * of `digits`. `extents` may be smaller than the products of the digits' extents (NULL: these
 * products); a dimension without digits has stride 0 and extent 0 or 1. What qn_layout_digits
 * writes gives the layout back. Kept in the shortest form. Errors: digit extents < 0, 0 below the
 * last; extents beyond the digits; offsets beyond int64; QN_ERR_LIMIT.
 */
QN_API qn_status qn_layout_custom(int rank, const int64_t *extents, const int *n_digits,
                                  const qn_digit *digits, qn_layout *out, qn_error *err);
/** `l` with other lower bounds: index i of the result is index i - lower + old lower of `l`. `out`
 * may be `l`. */
QN_API qn_status qn_layout_offset(const qn_layout *l, const int64_t *lower, qn_layout *out,
                                  qn_error *err);
/** Dimension p of the result is dimension perm[p] of `l`. */
QN_API qn_status qn_layout_permute(const qn_layout *l, const int *perm, qn_layout *out,
                                   qn_error *err);
/** Inserts a dimension of the given extent and stride 0 before dimension `at` (0 <= at <= rank). */
QN_API qn_status qn_layout_broadcast(const qn_layout *l, int at, int64_t extent, qn_layout *out,
                                     qn_error *err);
/** Reverses dimension d: index i of the result is index first + last - i of `l`. One-digit
 * dimensions only. */
QN_API qn_status qn_layout_reverse(const qn_layout *l, int d, qn_layout *out, qn_error *err);
/** Adds amount[d] to the lower bounds: index i of the result is i - amount of `l`. */
QN_API qn_status qn_layout_shift(const qn_layout *l, const int64_t *amount, qn_layout *out,
                                 qn_error *err);
/** Drops the dimensions of extent 1. Projected ones stay. */
QN_API qn_status qn_layout_squeeze(const qn_layout *l, qn_layout *out, qn_error *err);
/** Inserts a dimension of extent 1 before dimension `at` (0 <= at <= rank). */
QN_API qn_status qn_layout_expand(const qn_layout *l, int at, qn_layout *out, qn_error *err);
/** A Right layout by the name of C style: the same index, counted from 0. QN_ERR_UNSUPPORTED for
 * all layouts that are not Right (qn_layout_is_right). */
QN_API qn_status qn_layout_as_c(const qn_layout *l, qn_layout *out, qn_error *err);
/** A Left layout by the name of Fortran style: the same index, counted from `lower`, or from 1 if
 * that is NULL. QN_ERR_UNSUPPORTED for all layouts that are not Left (qn_layout_is_left). */
QN_API qn_status qn_layout_as_fortran(const qn_layout *l, const int64_t *lower, qn_layout *out,
                                      qn_error *err);
/** The elements of `l` in C style: dimensions reversed, lower bounds 0. */
QN_API qn_status qn_layout_to_c(const qn_layout *l, qn_layout *out, qn_error *err);
/** The elements of `l` in Fortran style: dimensions reversed, lower bounds lower[p] of dimension p
 * of the result, 1 if `lower` is NULL. */
QN_API qn_status qn_layout_to_fortran(const qn_layout *l, const int64_t *lower, qn_layout *out,
                                      qn_error *err);
/**
 * Cuts dimension d into two: result(.., o, n, ..) = l(.., lower + o * inner + n, ..), n < inner,
 * lower bounds 0. Errors: `inner` < 1 or no divisor of the extent (QN_ERR_EXTENT), digits that it
 * would cut, a projected dimension (QN_ERR_UNSUPPORTED).
 */
QN_API qn_status qn_layout_split(const qn_layout *l, int d, int64_t inner, qn_layout *out,
                                 qn_error *err);
/**
 * Makes dimensions d and d + 1 one, the second fastest: with E the extent of d + 1,
 * result(.., o * E + n, ..) = l(.., lower + o, lower' + n, ..), lower bound 0. One digit if the
 * strides continue one another, else several. QN_ERR_UNSUPPORTED if tiles of d + 1 are cut by its
 * extent, or one of both is projected.
 */
QN_API qn_status qn_layout_merge(const qn_layout *l, int d, qn_layout *out, qn_error *err);
/**
 * The offsets of `l` in index order, last dimension fastest, under other extents, lower bounds 0;
 * projected dimensions of `l` count as extent 1. Never copies: QN_ERR_UNSUPPORTED, with the extent,
 * if the digits do not allow it. QN_ERR_EXTENT if the sizes differ.
 */
QN_API qn_status qn_layout_reshape(const qn_layout *l, int rank, const int64_t *extents,
                                   qn_layout *out, qn_error *err);
/** The offsets of `l` in index order with the fewest dimensions: those of extent 1 and projected
 * ones left out, neighbours joined where the stride of one continues that of the other. Lower
 * bounds 0. */
QN_API qn_status qn_layout_coalesce(const qn_layout *l, qn_layout *out, qn_error *err);

struct qn_view; /* view.h */

/**
 * An index list for dimension d: result(.., i, ..) = l(.., list(i), ..), i from 0 to the extent of
 * the list less 1. The list is a view of rank 1 and i64 with one stride, and holds indices of
 * dimension d of `l`. It is read at every access, on the host and in kernels, and what it holds is
 * checked there; the layout keeps a reference to it (of an unmanaged view: borrows it). A GPU reads
 * a list in a CUDA space where it is, and of one in host memory a copy made at the launch; the host
 * refuses one in device memory. NULL is identity. Such layouts are not unique: that kernels do not
 * store to one element through two positions is the caller's promise. Range, span and digits are
 * those of `l`. Errors: a projected dimension, one with a list or members, a list that is not of
 * this form.
 */
QN_API qn_status qn_layout_list(const qn_layout *l, int d, const struct qn_view *list,
                                qn_layout *out, qn_error *err);

/** One argument of a subview, per dimension, in the index space of the view. All-zero is "all". */
typedef struct qn_slice {
    int32_t kind;  /**< QN_ALL, QN_AT or QN_RANGE */
    int64_t begin; /**< the index (QN_AT), or the first index of the range */
    int64_t end;   /**< one past the last index of the range */
    int64_t step;  /**< >= 1, 0 means 1; range only */
} qn_slice;
/** Kinds of a slice: the whole dimension, one index, a range. */
enum { QN_ALL = 0, QN_AT = 1, QN_RANGE = 2 };
/** All indices of a dimension, which stays with its lower bound. */
static inline qn_slice qn_all(void)
{
    qn_slice s = {QN_ALL, 0, 0, 0};
    return s;
}
/** One index of a dimension, which is dropped. */
static inline qn_slice qn_at(int64_t index)
{
    qn_slice s = {QN_AT, 0, 0, 0};
    s.begin = index;
    return s;
}
/** The indices begin .. end - 1 of a dimension, in steps of `step` >= 1; index 0 of the result is
 * `begin`. */
static inline qn_slice qn_range_step(int64_t begin, int64_t end, int64_t step)
{
    qn_slice s = {QN_RANGE, 0, 0, 0};
    s.begin = begin;
    s.end = end;
    s.step = step;
    return s;
}
/** The indices begin .. end - 1 of a dimension; index 0 of the result is `begin`. */
static inline qn_slice qn_range(int64_t begin, int64_t end)
{
    return qn_range_step(begin, end, 1);
}

/**
 * Cuts a layout: QN_AT drops the dimension, QN_ALL keeps it with its lower bound, QN_RANGE keeps
 * ceil((end-begin)/step) indices and resets the lower bound to 0. Errors: number of slices,
 * reversed or out-of-range ranges (QN_ERR_RANGE), a proper range of a dimension with several digits
 * that is not aligned to them (QN_ERR_UNSUPPORTED): whole tiles, and parts of one tile, are. No
 * allocation unless `l` has a digit table.
 */
QN_API qn_status qn_layout_slice(const qn_layout *l, int n, const qn_slice *slices, qn_layout *out,
                                 qn_error *err);
/** QN_RANGE of one dimension, all of the others: index i of dimension d of the result is begin + i
 * * step of `l`. */
QN_API qn_status qn_layout_section(const qn_layout *l, int d, int64_t begin, int64_t end,
                                   int64_t step, qn_layout *out, qn_error *err);
/** A copy that owns its own reference to the digit table. Never fails. */
QN_API qn_layout qn_layout_copy(const qn_layout *l);
/** Drops the digit table, if any, and makes the layout all-zero. NULL is ignored. */
QN_API void qn_layout_release(qn_layout *l);

/** Number of index tuples. Saturates at INT64_MAX for hand-made layouts that overflow. */
QN_API int64_t qn_layout_size(const qn_layout *l);
/** Smallest and largest offset over all index tuples, both included; QN_ERR_OVERFLOW if one does
 * not fit. For an empty layout *low = 0 and *high = -1. */
QN_API qn_status qn_layout_range(const qn_layout *l, int64_t *low, int64_t *high, qn_error *err);
/** Span: highest - lowest offset + 1; 0 if empty; -1 if it does not fit. */
QN_API int64_t qn_layout_span(const qn_layout *l);
/** Offset of an index tuple of n == rank indices. Errors: rank, QN_ERR_BOUNDS with dimension, index
 * and range. */
QN_API qn_status qn_layout_at(const qn_layout *l, int n, const int64_t *index, int64_t *offset,
                              qn_error *err);
/** Indices of an offset, for layouts that are injective. QN_ERR_NOT_FOUND if no index tuple has it.
 */
QN_API qn_status qn_layout_inverse(const qn_layout *l, int64_t offset, int64_t *index,
                                   qn_error *err);
/** Whether different index tuples are known to have different offsets. */
QN_API bool qn_layout_is_unique(const qn_layout *l);
/** Whether every offset of the span belongs to an index tuple. Empty layouts are contiguous. */
QN_API bool qn_layout_is_contiguous(const qn_layout *l);
/** Number of digits of dimension d (1 without a table, 0 for a bad d); writes them to `out` if not
 * NULL. */
QN_API int qn_layout_digits(const qn_layout *l, int d, qn_digit *out);
/** Number of digits over all dimensions; 0 for a bad layout. */
QN_API int qn_layout_n_digits(const qn_layout *l);
/** Stride of a dimension with one digit. Errors: a bad d, several digits (QN_ERR_UNSUPPORTED). */
QN_API qn_status qn_layout_stride(const qn_layout *l, int d, int64_t *stride, qn_error *err);
/** Whether every dimension has one digit, so that strides describe the layout. */
QN_API bool qn_layout_is_strided(const qn_layout *l);
/** Another name of qn_layout_is_contiguous. */
QN_API bool qn_layout_is_exhaustive(const qn_layout *l);
/**
 * Whether it is Right for the purpose of assignment: with one p >= e(n-1), s(n-1) = 1 and
 * s(k) = p * e(k+1) * .. * e(n-2) for k <= n-2 (p > e(n-1): padded). Dimensions of extent 1 are
 * skipped. Rank 0 and empty layouts are; several digits or projected dimensions are not. Lower
 * bounds do not matter.
 */
QN_API bool qn_layout_is_right(const qn_layout *l);
/** The mirror image: s(0) = 1, s(k) = p * e(1) * .. * e(k-1) for k >= 1 and one p >= e(0). */
QN_API bool qn_layout_is_left(const qn_layout *l);
/** Span x element_bytes: what the elements occupy. (qn_view_alloc reserves whole tiles where tiles
 * are cut.) Errors: element_bytes < 0, QN_ERR_OVERFLOW. */
QN_API qn_status qn_layout_required_bytes(const qn_layout *l, int64_t element_bytes, int64_t *bytes,
                                          qn_error *err);
/** Prints as "shape:stride", (2,3):(3,1), digits in nested parentheses. Returns the length needed,
 * as snprintf. */
QN_API size_t qn_layout_print(const qn_layout *l, char *buffer, size_t buffer_bytes);

#endif
